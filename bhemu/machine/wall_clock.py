"""The clock that cores of a tile read: WALL_CLOCK_0 and the high half that an access to it latches (tile K32).

A core reads it in its inner loop (riscv/execute.py): what waits for some time does little else.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.isa.tile_registers import address_of
from bhemu.machine.agents import CORES
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Bool, Int, TileRecord

LOW: Final = address_of("control", "WALL_CLOCK_0")
LATCHED: Final = address_of("control", "WALL_CLOCK_1_AT")

HALF: Final = 32
HALF_BITS: Final = (1 << HALF) - 1


@kernel
def clock_now(t: TileRecord) -> Int:
    """The tile's clock in the round of the access in progress."""
    return np.int64(t.now_round) - np.int64(t.free_rounds)


@kernel(forceinline=True)
def _latch(t: TileRecord, clock: Int) -> Int:
    t.wall_clock_latch = np.uint32((clock >> HALF) & HALF_BITS)
    return clock & HALF_BITS


@kernel(forceinline=True)
def _latch_for_core(t: TileRecord, core: Int, at_round: Int) -> Int:
    """A core has latched the clock in a round.

    For a core it never goes back: where it is ahead of the coprocessor, rounds that are free afterwards would do that.
    """
    clock = max(np.int64(at_round) - np.int64(t.free_rounds), np.int64(t.clock_read[core]))
    t.clock_read[core] = clock
    return _latch(t, clock)


@kernel
def latch_clock(t: TileRecord) -> Int:
    """The low half of the tile's clock; the access in progress, of a core or not, latches the high half."""
    if t.now_agent >= 0 and t.now_agent < CORES:
        return _latch_for_core(t, t.now_agent, np.int64(t.now_round))
    return _latch(t, clock_now(t))


@kernel
def set_wall_clock(t: TileRecord, core: Int, clock: Int) -> None:
    """A core has latched a clock, which is not before what it has read last."""
    t.clock_read[core] = clock
    _latch(t, clock)


@kernel(forceinline=True)
def is_wall_clock(address: Int) -> Bool:
    """A word from which cores read the clock in their inner loop."""
    return address in (LOW, LATCHED)


@kernel
def may_load_ahead(t: TileRecord, at_round: Int, ahead: Int) -> Bool:
    """A core may load such a word `ahead` rounds early: the halves that others latch meanwhile are the same."""
    clock = np.int64(at_round) - np.int64(t.free_rounds)
    return (clock - 2 * ahead) >> HALF == (clock + 2 * ahead) >> HALF


@kernel(forceinline=True)
def load_wall_clock(t: TileRecord, core: Int, address: Int, at_round: Int) -> Int:
    """What a core's load of such a word gets in a round."""
    return _latch_for_core(t, core, at_round) if address == LOW else np.int64(t.wall_clock_latch)
