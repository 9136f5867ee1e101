"""What clusters have in common, whether their chips are in this process or in several."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np

import bhemu.checks as checks
from bhemu.api.blocked import can_move
from bhemu.api.chip import Chip
from bhemu.api.machine import DEFAULT_CLOCKS
from bhemu.checks import checked
from bhemu.chip.coordinates import Harvesting
from bhemu.cluster.topology import Topology, load_topology
from bhemu.errors import BhemuError, CycleLimit, Deadlock


@checked
class ClusterRun(ABC):
    """Several chips with one clock."""

    @property
    @abstractmethod
    def time(self) -> int:
        """Clocks that have passed on all chips."""

    @abstractmethod
    def clock(self, clocks: int = 1) -> None:
        """Let clocks of all chips pass."""

    @abstractmethod
    def is_at_rest(self) -> bool:
        """Nothing proceeds, is on its way, or will happen to a link."""

    @abstractmethod
    def explain(self) -> str:
        """Who does what or waits for what, chip by chip."""

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
            Deadlock: no core or thread of any chip can proceed, nothing is on its way over a link, and the condition is
                not true.
            CycleLimit: the condition is not true after `max_clocks`.
        """
        checks.function(until, "until")
        step = checks.integer(step, "step", 1, checks.MAX_CLOCKS)
        start, rested = self.time, False
        while not until():
            passed = self.time - start
            rests = self.is_at_rest()
            if rests and rested:
                raise Deadlock(
                    f"nothing on the chips can move after {passed:,} clocks\n{self.explain()}".rstrip(),
                    remedy="see what the cores wait for, and whether a link has failed",
                )
            rested = rests
            if passed >= max_clocks:
                raise CycleLimit(
                    f"not done after {passed:,} clocks\n{self.explain()}".rstrip(),
                    remedy="allow more with max_clocks, or see what the cores wait for",
                )
            self.clock(min(step, max_clocks - passed))
        return self.time - start


def describe(
    topology: Topology | str | Path, missing: Iterable[int], harvesting: Mapping[int, Harvesting] | None
) -> Topology:
    """The system that arguments of a cluster name; see `bhemu.Cluster`."""
    described = topology if isinstance(topology, Topology) else load_topology(topology)
    off = {
        checks.integer(chip, "chip"): checks.instance(given, "harvesting", Harvesting)
        for chip, given in (harvesting or {}).items()
    }
    gone = [checks.integer(chip, "chip") for chip in checks.items(missing, "missing")]
    return described.harvested(off).without(*gone)


def chip_is_at_rest(chip: Chip) -> bool:
    """Nothing proceeds on a chip, is on its way from or to it, or will happen to its links."""
    record = chip.device.record
    if record.fault.count or record.sent or np.any(record.frame_first) or np.any(record.waiting) or not chip.is_quiet:
        return False
    return not any(can_move(chip.device.tiles[index]) for index in record.order[: int(record.active_count)])


def name_chip(error: BhemuError, number: int, chip: Chip) -> None:
    """Add to a refusal where it was: chip, tile, source line."""
    chip.locate(error)
    error.message = f"chip {number}: {error.message}"
