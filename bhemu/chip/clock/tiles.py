"""The tiles of a chip as compiled code finds and changes them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba.extending import register_jitable

from bhemu.chip.state import tile_at
from bhemu.machine.core_state import HALTED, IN_RESET
from bhemu.machine.kernel import kernel
from bhemu.machine.process_memory import call_host
from bhemu.machine.state import TILE, offset_of
from bhemu.machine.types import AnyInt, ChipRecord, Int, TileRecord

MIDST: Final = 0x80
"""Bit of a tile's status: it is blocked on a NoC request, in round `stop_round` of clock `local`."""
ATTENDED: Final = 0x40
"""Bit of a tile's status: the host has done what was to be done, and the tile can go on."""
STATUS: Final = 0x3F
"""Its other bits: what `advance` (tile/schedule.py) has returned."""
_TILE_BYTES: Final = TILE.itemsize
_L1: Final = offset_of(TILE, "l1")


@kernel
def tile_of(chip: ChipRecord, index: Int) -> TileRecord:
    """The record of a tile."""
    return tile_at(chip.tiles + index * _TILE_BYTES)  # type: ignore[no-any-return]  # an intrinsic


@kernel
def make(chip: ChipRecord, index: Int) -> None:
    """Before a tile is accessed from outside: the C library fills in its record, if that has waited for this.

    A process that uses few of the tiles does not pay for all. Until then the record holds zeros: cores in reset.
    """
    if chip.unmade[index] != 0:
        call_host(chip.make_tile, index, chip.address, 0)


@kernel
def l1_address(chip: ChipRecord, index: Int) -> AnyInt:
    """Where a tile's L1 is in this process."""
    return chip.tiles + index * _TILE_BYTES + _L1


@register_jitable
def can_react(t: Any) -> bool:
    """True when a change in L1 can make a difference to a tile's agents; from Python and from compiled code."""
    for state in t.core_state:
        if state not in (IN_RESET, HALTED):
            return True
    return bool(t.tensix_state != IN_RESET)


@kernel
def touch(chip: ChipRecord, index: Int, clock: Int) -> None:
    """Before a tile is changed: bring it to a clock; it moves from then on."""
    make(chip, index)
    t = tile_of(chip, index)
    # Where clocks adapt their pace, others need not stay together because a tile that was held in reset is started.
    moves = chip.run_ahead == 0 or can_react(t)
    if chip.active[index] == 0:
        behind = clock - np.int64(t.clock)
        if behind > 0:
            t.round_goal += behind
            t.clock += behind
        chip.local[index] = t.clock
        chip.active[index] = 1
        k = np.int64(chip.active_count)
        while k > 0 and chip.order[k - 1] > index:
            chip.order[k] = chip.order[k - 1]
            k -= 1
        chip.order[k] = index
        chip.active_count += 1
    elif chip.status[index] & MIDST:
        t.round_goal = max(clock + t.free_rounds, np.int64(chip.stop_round[index]) + 1)
        t.clock = t.round_goal - t.free_rounds
    chip.touched[index] = 1
    if moves:
        chip.last_message = max(np.int64(chip.last_message), clock)


@kernel
def touch_by(chip: ChipRecord, index: Int, other: Int, in_turn: Int) -> None:
    """Before tile `other` is changed by tile `index`, in the turn of one of its agents or (0) between two clocks."""
    if in_turn != 0:
        touch(chip, other, chip.local[index] + (1 if other < index else 0))
    else:
        touch(chip, other, chip.time)


@kernel
def before_write(chip: ChipRecord, index: Int, other: Int, target: TileRecord, in_turn: Int) -> None:
    """The same for L1 of `target`, tile `other`, alone: a tile that cannot react to the change need not move."""
    if other != index and (chip.active[other] != 0 or can_react(target)):
        touch_by(chip, index, other, in_turn)
