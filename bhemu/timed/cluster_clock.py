"""Clocks of several timed chips: cluster/clock.py, with chips whose clocks are cycles and whose NoC takes time.

A frame takes as many cycles over a link as clocks in functional mode, so spans are the same.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from bhemu.chip.state import chip_at
from bhemu.cluster.clock import has_nothing_to_do, make_clock
from bhemu.cluster.clocks import OtherClock
from bhemu.cluster.state import CLUSTER_TYPE, ClusterRecord
from bhemu.machine.compiler import JIT, compile_entry
from bhemu.machine.kernel import kernel
from bhemu.machine.types import AnyInt, Int, LogAddress, Table
from bhemu.timed.chip_clock import pass_timed
from bhemu.timed.network import has_event

if TYPE_CHECKING:
    from bhemu.timed.chip import ChipTime

PLAIN_NETS: Final[dict[int, Any]] = {}
"""Buffers of chips by their addresses, where nothing is compiled."""

if JIT:

    @kernel
    def _net_of(cluster: ClusterRecord, k: Int) -> LogAddress:
        """The buffer of net_layout.py of a chip."""
        return cluster.time[k]

else:

    def _net_of(cluster: ClusterRecord, k: Int) -> LogAddress:
        """The buffer of net_layout.py of a chip."""
        return PLAIN_NETS[int(cluster.time[k])]


@kernel
def _is_still(cluster: ClusterRecord, k: Int, goal: Int) -> bool:
    """Nothing in a chip can proceed before a cycle, nothing is on its way in it, and no frame arrives."""
    return has_nothing_to_do(chip_at(cluster.chip[k]), goal) and not has_event(_net_of(cluster, k))


@kernel(seldom=True)
def _pass_clocks(cluster: ClusterRecord, table: Table, k: Int, clocks: Int) -> Any:
    return pass_timed(chip_at(cluster.chip[k]), table, clocks, _net_of(cluster, k))


_advance, _help_others = make_clock(_is_still, _pass_clocks)


def cluster_clock_timed_entry(cluster: ClusterRecord, table: Table, clocks: Int) -> AnyInt:
    """`bhemu.cluster.clock.cluster_clock_entry` of timed chips."""
    return _advance(cluster, table, clocks)


def cluster_help_timed_entry(cluster: ClusterRecord, table: Table, begun: Int) -> AnyInt:
    """`bhemu.cluster.clock.cluster_help_entry` of timed chips."""
    return _help_others(cluster, table, begun)


@functools.cache
def timed_cluster_entries() -> tuple[Any, Any]:
    """The compiled clock of several timed chips, and what other threads run."""
    return (
        compile_entry("cluster_clock_timed", cluster_clock_timed_entry, record=CLUSTER_TYPE),
        compile_entry("cluster_help_timed", cluster_help_timed_entry, record=CLUSTER_TYPE),
    )


def timed_cluster(times: Sequence[ChipTime]) -> OtherClock:
    """The clock of a system whose chips are timed.

    Args:
        times: their timed modes, in their order.
    """
    if not JIT:
        PLAIN_NETS.update({time.address: time.net for time in times})
    clock, help_ = timed_cluster_entries()
    return OtherClock(clock, help_, tuple(time.address for time in times))
