"""Clocks of several chips in compiled code, on one thread or on several (ethernet 6).

A frame takes `latency` clocks over a link. In a *span* of that many clocks no chip can see what another one does in it,
so chips move through it in any order, also at the same time. What they send stays with them (chip/links/send.py) and is
handed over between two spans. Results depend neither on the number of threads nor on how clocks are asked for.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.chip.clock.run import pass_clocks
from bhemu.chip.coordinates import ETHERNET_TILES
from bhemu.chip.links.send import frame_at
from bhemu.chip.state import chip_at
from bhemu.cluster.state import CLUSTER, ClusterRecord
from bhemu.machine.kernel import kernel
from bhemu.machine.share import make_sharing
from bhemu.machine.types import AnyInt, ChipRecord, Int, Table

GOES_ON: Final = -1
"""Status of a chip for which the host has done what it needed: it goes on with the span."""


@kernel
def _hand_over(cluster: ClusterRecord) -> None:
    """Frames that have left chips are on their way to their partners."""
    for k in range(cluster.count):
        chip = chip_at(cluster.chip[k])
        if chip.sent == 0:
            continue
        for channel in range(ETHERNET_TILES):
            if chip.sent_first[channel] == 0 or chip.peer_number[channel] >= cluster.count:
                continue  # nothing, or for a chip of another process (bhemu/hosts)
            other, place = chip_at(cluster.chip[chip.peer_number[channel]]), np.int64(chip.peer_channel[channel])
            if other.frame_first[place] == 0:
                other.frame_first[place] = chip.sent_first[channel]
            else:
                last = frame_at(other.frame_last[place])
                last.after = chip.sent_first[channel]
            other.frame_last[place] = chip.sent_last[channel]
            chip.sent_first[channel] = 0
        chip.sent = 0


@kernel
def has_nothing_to_do(chip: ChipRecord, goal: Int) -> bool:
    """Nothing in a chip can proceed before a clock, and no frame arrives."""
    if chip.active_count != 0 or (chip.fault.count != 0 and chip.fault.event[0].clock < goal):
        return False
    count = 0
    for channel in range(ETHERNET_TILES):
        count += chip.frame_first[channel] != 0
    return bool(count == 0)


@kernel
def _first_time(cluster: ClusterRecord) -> Int:
    """The clock of the chip that is farthest behind."""
    first = np.int64(chip_at(cluster.chip[0]).time)
    for k in range(1, cluster.count):
        first = min(first, np.int64(chip_at(cluster.chip[k]).time))
    return first


@kernel
def _first_stopped(cluster: ClusterRecord) -> Int:
    """1 + the number of the first chip with a status; 0: none has one."""
    for k in range(cluster.count):
        if cluster.status[k] != 0:
            return np.int64(k + 1)
    return np.int64(0)


def make_clock(is_still: Any, pass_clocks: Any) -> tuple[Any, Any]:
    """Two kernels: `advance(cluster, table, clocks)` lets clocks pass, see `cluster_clock_entry`; the other one helps.

    Args:
        is_still: a kernel, `is_still(cluster, k, goal)`: nothing happens in chip `k` before a clock.
        pass_clocks: a kernel, `pass_clocks(cluster, table, k, clocks)`: clocks of chip `k` pass (0: go on with what is
            left); its status.
    """

    @kernel
    def run_chip(cluster: ClusterRecord, table: Table, k: Int) -> None:
        """A chip moves up to the end of the span, or until it needs the host."""
        chip = chip_at(cluster.chip[k])
        clocks: Int = np.int64(0)
        if cluster.status[k] != GOES_ON:
            clocks = cluster.goal - np.int64(chip.time)
            if clocks <= 0 or cluster.status[k] != 0:
                return
            if is_still(cluster, k, cluster.goal):
                chip.goal = cluster.goal
                chip.end = cluster.goal
                chip.time = cluster.goal
                return
        cluster.status[k] = pass_clocks(cluster, table, k, clocks)

    run_all, help_others = make_sharing(CLUSTER, run_chip)

    @kernel
    def run_chips(cluster: ClusterRecord, table: Table) -> None:
        """All chips move up to the end of the span."""
        busy = 0
        for k in range(cluster.count):
            if chip_at(cluster.chip[k]).active_count != 0:
                busy += 1
        run_all(cluster, table, cluster.count, busy)

    @kernel
    def new_span(cluster: ClusterRecord) -> bool:
        """Set the end of the next span; False when all clocks have passed, or a chip is still in the one before."""
        if _first_stopped(cluster) != 0:
            return True
        first, still = _first_time(cluster), True
        if first >= cluster.end:
            return False
        _hand_over(cluster)
        for k in range(cluster.count):
            still = still and is_still(cluster, k, cluster.end)
        cluster.goal = cluster.end if still else min(np.int64(cluster.end), first + cluster.span)
        return True

    @kernel
    def advance(cluster: ClusterRecord, table: Table, clocks: Int) -> Any:
        if clocks > 0:
            cluster.end = _first_time(cluster) + clocks
        while new_span(cluster):
            run_chips(cluster, table)
            stopped = _first_stopped(cluster)
            if stopped != 0:
                return stopped
        return np.int64(0)

    return advance, help_others


@kernel
def _is_still(cluster: ClusterRecord, k: Int, goal: Int) -> bool:
    return has_nothing_to_do(chip_at(cluster.chip[k]), goal)


@kernel(seldom=True)
def _pass_clocks(cluster: ClusterRecord, table: Table, k: Int, clocks: Int) -> Any:
    return pass_clocks(chip_at(cluster.chip[k]), table, clocks)


_advance, _help_others = make_clock(_is_still, _pass_clocks)


def cluster_clock_entry(cluster: ClusterRecord, table: Table, clocks: Int) -> AnyInt:
    """Let clocks pass on all chips (0: go on with what is left).

    Returns:
        0, or 1 + the number of the first chip with a `status`: the host has to do what it needs.
    """
    return _advance(cluster, table, clocks)


def cluster_help_entry(cluster: ClusterRecord, table: Table, begun: Int) -> AnyInt:
    """Take part in the work of another thread until no more comes; as `help_entry` of chip/clock/run.py."""
    return _help_others(cluster, table, begun)
