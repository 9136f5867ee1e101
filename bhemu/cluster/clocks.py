"""Time of several chips as the host sees it: clocks in, exceptions out; cluster/clock.py is what happens in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Final

import bhemu.checks as checks
from bhemu.chip.clock.clocks import WORTH_SHARE, WORTH_THREADS, helped
from bhemu.chip.device import Device
from bhemu.chip.entries import chip_entry
from bhemu.cluster.clock import GOES_ON, cluster_clock_entry, cluster_help_entry
from bhemu.cluster.state import CLUSTER_TYPE, new_cluster
from bhemu.cluster.topology import Topology
from bhemu.machine.codegen import JIT
from bhemu.machine.compiler import Entry, compile_entry
from bhemu.tile.cores import MOVING

_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "cluster_clock": cluster_clock_entry,
    "cluster_help": cluster_help_entry,
}
_entries: dict[str, Entry] = {}


def cluster_entry(name: str) -> Entry:
    """A compiled function on the record of a system."""
    if name not in _entries:
        _entries[name] = compile_entry(name, _FUNCTIONS[name], record=CLUSTER_TYPE)
    return _entries[name]


def ensure_cluster_entries() -> None:
    """Compile what moves a system of chips, or fetch it from the cache: for `bhemu warm`."""
    for name in _FUNCTIONS:
        cluster_entry(name)


@dataclass(frozen=True, slots=True)
class OtherClock:
    """Another clock than that of functional mode.

    Attributes:
        clock, help: as the entries `cluster_clock` and `cluster_help`.
        buffers: address of a buffer for each chip.
    """

    clock: Entry
    help: Entry
    buffers: tuple[int, ...]


class ClusterClocks:
    """Moves the chips of a system.

    Args:
        devices: the chips, joined.
        topology: how.
        threads: of the host, that chips, or tiles of a chip that is busy alone, run on.
        other: the clock of timed mode (timed/cluster_clock.py).

    Attributes:
        refusing: number of the chip that has refused something last.
        target: the system's record, as entries take it.
    """

    def __init__(
        self, devices: Sequence[Device], topology: Topology, threads: int, other: OtherClock | None = None
    ) -> None:
        self._devices = devices
        self._memory: Any = new_cluster()
        self.record: Any = self._memory[0]
        self.record.count = len(devices)
        self.record.span = topology.latency if topology.links else checks.MAX_CLOCKS
        for number, device in enumerate(devices):
            self.record.chip[number] = device.record.address
        self.target: Any = self._memory.ctypes.data if JIT else self.record
        self._call = (cluster_entry("cluster_clock") if other is None else other.clock).call
        self._help = cluster_entry("cluster_help") if other is None else other.help
        if other is not None:
            self.record.time[: len(devices)] = other.buffers
        self.threads = threads if JIT else 1
        self.refusing = 0

    def advance(self, clocks: int) -> None:
        """Let clocks pass on all chips.

        Raises:
            BhemuError: an instruction was refused, on chip `refusing`. Its core halts, the system can go on: chips that
                are behind catch up first.
        """
        if clocks == 0:
            return
        with self._helpers(clocks) as refresh:
            self._pass(clocks, refresh)

    def attend(self) -> None:
        """Do what chips need for which compiled code has stopped.

        Raises:
            BhemuError: see `advance`.
        """
        self._attend(lambda: None)

    def _pass(self, clocks: int, refresh: Callable[[], None]) -> None:
        table = self._devices[0].clocks.table
        while True:
            with MOVING.context:
                status = self._call(self.target, table, clocks)
            if status == 0:
                return
            clocks = 0
            self._attend(refresh)

    def _helpers(self, clocks: int) -> Any:
        """Threads that help with `clocks`, if it is worth while: with chips, or with the tiles of a lone one."""
        if self.threads > 1:
            active = [device.clocks.active for device in self._devices]
            span = min(clocks, int(self.record.span))
            if sum(active) > 1 and clocks * sum(active) >= WORTH_THREADS and span * sum(active) >= WORTH_SHARE:
                if len(active) - active.count(0) > 1:
                    return helped(self.record, self._help, self.target, self.threads)
                device = self._devices[active.index(sum(active))]
                return helped(device.record, chip_entry("chip_help"), device.clocks.target, self.threads)
        return nullcontext(lambda: None)

    def _attend(self, refresh: Callable[[], None]) -> None:
        """Do what chips need that have stopped, in the order of their numbers: results do not depend on threads."""
        stopped = False
        for number, device in enumerate(self._devices):
            if self.record.status[number] > 0:
                self.record.status[number] = 0
                self.refusing = number
                device.clocks.attend()
                self.record.status[number] = GOES_ON
                stopped = True
        if stopped:
            refresh()

    def forget(self) -> None:
        """The chips are in another state: what they needed, they say again."""
        self.record.status[:] = 0
