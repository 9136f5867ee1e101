"""Several chips whose Ethernet tiles are joined, with one clock (ethernet 2.2, 6)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from bhemu import checks
from bhemu.api.chip import Chip
from bhemu.api.machine import DEFAULT_CLOCKS
from bhemu.checks import checked
from bhemu.chip.clock.clocks import QUANTUM
from bhemu.chip.pcie.host_memory import HostMemory
from bhemu.cluster.join import join
from bhemu.cluster.topology import Topology, load_topology
from bhemu.errors import BhemuError, CycleLimit


@checked
class Cluster:
    """Several Blackhole chips with links between them.

    Example:
        >>> import bhemu
        >>> cluster = bhemu.Cluster("p300")
        >>> cluster, cluster[0].ethernet[2].read_word(0x7CC04)
        (<Cluster p300: 2 chips, 2 links, 0 clocks>, 1)

    Attributes:
        topology: which chips and links there are.
        chips: each a `bhemu.Chip`, by number.
    """

    def __init__(
        self,
        topology: Topology | str | Path,
        *,
        allow_open: bool = False,
        threads: int = 1,
        quantum: int = QUANTUM,
        simulator_order: bool = False,
        host: HostMemory | None = None,
    ) -> None:
        """
        Args:
            topology: `p150`, `p300`, `p300x2`, `galaxy`, a YAML file that describes a system, or a description.
            allow_open, threads, quantum, simulator_order, host: of each chip; see `Chip`.

        Raises:
            ProgramError: there is no such file.
            ConfigurationError: the description makes no sense; the message says where.
        """
        self.topology = topology if isinstance(topology, Topology) else load_topology(topology)
        self.chips = tuple(
            Chip(
                harvesting=chip.harvesting,
                identity=chip.identity,
                allow_open=allow_open,
                threads=threads,
                quantum=quantum,
                simulator_order=simulator_order,
                host=host,
            )
            for chip in self.topology.chips
        )
        self._span = self.topology.latency if self.topology.links else checks.MAX_CLOCKS
        join([chip.device for chip in self.chips], self.topology)

    def __getitem__(self, number: int) -> Chip:
        """The chip of a number."""
        return self.chips[checks.integer(number, "chip", 0, len(self.chips) - 1)]

    def __len__(self) -> int:
        return len(self.chips)

    @property
    def time(self) -> int:
        """Clocks that have passed on all chips."""
        return min(chip.time for chip in self.chips)

    def clock(self, clocks: int = 1) -> None:
        """Let clocks of all chips pass.

        A frame takes `topology.latency` clocks over a link. In a span of so many clocks a chip sees nothing of what the
        others do in it, so they move one after the other from span to span.

        Raises:
            BhemuError: an instruction was refused; the message says on which chip. Its core halts, the cluster can go
                on: chips that are behind catch up first.
        """
        end = self.time + checks.integer(clocks, "clocks", 0, checks.MAX_CLOCKS)
        while self.time < end:
            goal = min(end, self.time + self._span)
            for number, chip in enumerate(self.chips):
                self._bring(number, chip, goal)

    def _bring(self, number: int, chip: Chip, goal: int) -> None:
        """Let a chip move up to a clock."""
        if chip.time >= goal:
            return
        try:
            chip.clock(goal - chip.time)
        except BhemuError as error:
            error.message = f"chip {number}: {error.message}"
            raise

    def run(
        self,
        until: Callable[[], bool],
        *,
        max_clocks: int = DEFAULT_CLOCKS,
        step: int = 1000,
    ) -> int:
        """Let clocks pass until a condition is true; returns how many have.

        Args:
            until: called every `step` clocks.
            max_clocks: stop after this many clocks.
            step: clocks between two calls.

        Raises:
            BhemuError: an instruction was refused.
            CycleLimit: the condition is not true after `max_clocks`.
        """
        checks.function(until, "until")
        step = checks.integer(step, "step", 1, checks.MAX_CLOCKS)
        start = self.time
        while not until():
            passed = self.time - start
            if passed >= max_clocks:
                raise CycleLimit(
                    f"not done after {passed:,} clocks\n{self.explain()}".rstrip(),
                    remedy="allow more with max_clocks, or see what the cores wait for",
                )
            self.clock(min(step, max_clocks - passed))
        return self.time - start

    def explain(self) -> str:
        """Who does what or waits for what, chip by chip."""
        texts = ((number, chip.explain()) for number, chip in enumerate(self.chips))
        return "\n".join(f"chip {number}:\n{text}" for number, text in texts if text)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a cluster cannot be copied or pickled")

    def _repr_html_(self) -> str:
        return "".join(_html(chip) for chip in self.chips)

    def __repr__(self) -> str:
        links = len(self.topology.links)
        return f"<Cluster {self.topology.name}: {len(self)} chips, {links} links, {self.time:,} clocks>"


def _html(chip: Any) -> str:
    return str(chip._repr_html_())
