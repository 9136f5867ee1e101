"""Several chips whose Ethernet tiles are joined, with one clock (ethernet 2.2, 6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import bhemu.checks as checks
from bhemu.api.chip import Chip
from bhemu.api.chip_snapshot import ChipSnapshot
from bhemu.api.cluster_run import ClusterRun, chip_is_at_rest, describe, name_chip
from bhemu.api.cluster_snapshot import ClusterSnapshot, without_failures
from bhemu.api.links import DeviceWiring, Links
from bhemu.checks import checked
from bhemu.chip.clock.clocks import QUANTUM
from bhemu.chip.coordinates import Harvesting
from bhemu.chip.pcie.host_memory import HostMemory
from bhemu.cluster.clocks import ClusterClocks
from bhemu.cluster.join import join
from bhemu.cluster.snapshot import copy_links, put_links
from bhemu.cluster.topology import Topology
from bhemu.errors import BhemuError
from bhemu.recording.link_recording import LinkRecording
from bhemu.timed import timed_cluster


@checked
class Cluster(ClusterRun):
    """Several Blackhole chips with links between them.

    Example:
        >>> import bhemu
        >>> cluster = bhemu.Cluster("p300")
        >>> cluster, cluster[0].ethernet[2].read_word(0x7CC04)
        (<Cluster p300: 2 chips, 2 links, 0 clocks>, 1)

    Attributes:
        topology: which chips and links there are.
        chips: each a `bhemu.Chip`, by number.
        links: between them; they can be made to fail.
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
        missing: Iterable[int] = (),
        harvesting: Mapping[int, Harvesting] | None = None,
        timed: bool = False,
    ) -> None:
        """
        Args:
            topology: `p150`, `p300`, `p300x2`, `galaxy`, a YAML file that describes a system, or a description.
            allow_open, quantum, simulator_order, host: of each chip; see `Chip`.
            threads: of the host, that chips run on, or the tiles of one that is busy alone; results are the same for
                any number.
            missing: numbers of chips that are left out with their links; those after them have smaller numbers.
            harvesting: what chips do not have, by number before any is missing, in place of what the description says.
            timed: of each chip: clocks are estimates of cycles of silicon (docs/time.md).

        Raises:
            ProgramError: there is no such file.
            ConfigurationError: the description makes no sense; the message says where.
        """
        self.topology = describe(topology, missing, harvesting)
        self._settings: dict[str, Any] = {
            "allow_open": allow_open,
            "threads": threads,
            "quantum": quantum,
            "simulator_order": simulator_order,
            "host": host,
        }
        self.chips = tuple(
            Chip(harvesting=chip.harvesting, identity=chip.identity, timed=timed, **self._settings)
            for chip in self.topology.chips
        )
        devices = [chip.device for chip in self.chips]
        join(devices, self.topology)
        times = [chip.timing for chip in self.chips if chip.timing is not None]
        self._clocks = ClusterClocks(devices, self.topology, threads, timed_cluster(times) if times else None)
        self._recordings: list[LinkRecording] = []
        self.links = Links(DeviceWiring(devices, self.topology), self.topology)

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

        A frame takes `topology.latency` clocks over a link. In a span of that many clocks a chip sees nothing of
        what the others do in it, so they move through it side by side, on as many host threads as you allow.

        Raises:
            BhemuError: an instruction was refused; the message says on which chip. Its core halts, the cluster can go
                on: chips that are behind catch up first.
        """
        left = checks.integer(clocks, "clocks", 0, checks.MAX_CLOCKS)
        for chip in self.chips:
            chip.prepare()
        while left > 0:
            step = min(chip.next_step(left) for chip in self.chips)
            if self._recordings:
                step = min(step, self.topology.latency)
            self._note()
            try:
                self._clocks.advance(step)
            except BhemuError as error:
                name_chip(error, self._clocks.refusing, self.chips[self._clocks.refusing])
                raise
            finally:
                self._note()
            left -= step
            for chip in self.chips:
                chip.arrive()
        for chip in self.chips:
            chip.touch_exposed()

    def record_links(self) -> LinkRecording:
        """Record each frame that leaves, until the recording's `stop`; tiles are recorded by `Chip.record`."""
        self._recordings.append(LinkRecording([chip.device for chip in self.chips], self.topology))
        return self._recordings[-1]

    def _note(self) -> None:
        self._recordings = [recording for recording in self._recordings if not recording.is_over]
        for recording in self._recordings:
            recording.note()

    def is_at_rest(self) -> bool:
        """Nothing proceeds, is on its way, or will happen to a link."""
        return all(map(chip_is_at_rest, self.chips))

    def explain(self) -> str:
        """Who does what or waits for what, chip by chip, and which links are down or have lost something."""
        texts = ((number, chip.explain()) for number, chip in enumerate(self.chips))
        lines = [f"chip {number}:\n{text}" for number, text in texts if text]
        return "\n".join([*lines, *filter(None, [self.links.explain()])])

    # --- copies -----------------------------------------------------------------------------------------------------

    def snapshot(self) -> ClusterSnapshot:
        """A copy of everything that the chips hold, of what is on its way between them, and of what fails.

        Memory of the host is not part of it.

        Raises:
            ConfigurationError: the chips are timed.
        """
        for chip in self.chips:
            chip.refuse_copy()
        return ClusterSnapshot(
            without_failures(self.topology),
            tuple(ChipSnapshot(chip.device.state(), chip.programs()) for chip in self.chips),
            copy_links([chip.device for chip in self.chips]),
        )

    def restore(self, snapshot: ClusterSnapshot) -> None:
        """Put the chips back into a snapshot's state; they continue from there as they did the first time.

        Settings of this cluster, such as its threads, stay its own.

        Raises:
            ConfigurationError: the copy is of another system, or of another version of bhemu.
        """
        state = checks.instance(snapshot, "snapshot", ClusterSnapshot)
        state.check(self.topology)
        for chip, copy in zip(self.chips, state.chips, strict=True):
            chip.restore(copy)
        put_links([chip.device for chip in self.chips], state.links)
        self._clocks.forget()

    def __getstate__(self) -> tuple[Topology, dict[str, Any], ClusterSnapshot]:
        """What `copy` and `pickle` take. Functions of `host` must be picklable."""
        return without_failures(self.topology), self._settings, self.snapshot()

    def __setstate__(self, state: tuple[Topology, dict[str, Any], ClusterSnapshot]) -> None:
        topology, settings, snapshot = state
        Cluster.__init__(self, topology, **settings)
        self.restore(snapshot)

    def _repr_html_(self) -> str:
        return "".join(_html(chip) for chip in self.chips)

    def __repr__(self) -> str:
        links = len(self.topology.links)
        return f"<Cluster {self.topology.name}: {len(self)} chips, {links} links, {self.time:,} clocks>"


def _html(chip: Any) -> str:
    return str(chip._repr_html_())
