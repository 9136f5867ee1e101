"""Clocks of a timed chip: tiles run ahead of each other by less than any request takes, then requests start.

What a tile does reaches another one `LOOKAHEAD` cycles later at the earliest. So all tiles can run that far from the
one that is behind, each by itself and on any number of threads. Then the requests for which they have stopped start, in
the order of their cycles, and tiles of the same cycle in the order of their numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bhemu.chip.clock.run import all_ahead, first_clocks, forget_idle, run_tile
from bhemu.chip.clock.tiles import ATTENDED, MIDST, STATUS
from bhemu.machine.buffer_memory import load_i64, store_i64
from bhemu.machine.kernel import kernel
from bhemu.machine.types import AnyInt, ChipRecord, Int, LogAddress, Table
from bhemu.tile.schedule import ADVANCED
from bhemu.timed import net_layout as at
from bhemu.timed.net_events import add_event, event_at, free_block, free_event, remove_event
from bhemu.timed.network import (
    answer,
    arrive,
    carry_out_timed,
    first_cycle,
    has_event,
    moves_at_once,
    park_request,
)
from bhemu.timed.routes import LOOKAHEAD

_NONE = -1


@kernel
def _happen(chip: ChipRecord, net: LogAddress, place: Int) -> None:
    """The event at a place of the heap happens."""
    event = remove_event(net, place)
    if load_i64(net, event + at.WHAT) == at.ANSWER:
        answer(chip, net, event)
        free_event(net, event)
        return
    arrive(chip, net, event)
    if load_i64(net, event + at.BLOCK) >= 0:
        free_block(net, load_i64(net, event + at.BLOCK))
    store_i64(net, event + at.WHAT, at.ANSWER)
    add_event(net, event, max(load_i64(net, event + at.ANSWERED), load_i64(net, event + at.CYCLE) + 1))


@kernel
def _deliver_all_of(chip: ChipRecord, net: LogAddress, index: Int) -> None:
    """Everything that a tile has sent arrives now: a request follows that takes no time, and must not overtake it."""
    while load_i64(net, at.PARKED + index) > 0:
        found = np.int64(_NONE)
        for place in range(load_i64(net, at.HEAP_COUNT)):
            event = event_at(net, place)
            if load_i64(net, event + at.TILE) != index or load_i64(net, event + at.WHAT) != at.ARRIVES:
                continue
            if found == _NONE or load_i64(net, event + at.ORDER) < load_i64(net, event_at(net, found) + at.ORDER):
                found = np.int64(place)
        _happen(chip, net, found)


@kernel
def _first_request(chip: ChipRecord) -> AnyInt:
    """The tile that has stopped first and waits for something, or _NONE."""
    found = np.int64(_NONE)
    for k in range(chip.active_count):
        index = np.int64(chip.order[k])
        if chip.status[index] == 0 or chip.status[index] & ATTENDED:
            continue
        if found == _NONE or chip.local[index] < chip.local[found]:
            found = index
    return found


@kernel
def _start(chip: ChipRecord, net: LogAddress, index: Int) -> bool:
    """Start the request for which a tile has stopped; False when the host has to do something."""
    if park_request(chip, net, index):
        return True
    if not moves_at_once(chip, index):
        _deliver_all_of(chip, net, index)
        store_i64(net, at.AT_ONCE, load_i64(net, at.AT_ONCE) + 1)
    return carry_out_timed(chip, net, index)


@kernel
def _step(chip: ChipRecord, table: Table, net: LogAddress, first: Int) -> AnyInt:
    """One clock of the tiles that are at clock `first`, one after the other: a request waits for a register."""
    for k in range(chip.active_count):
        index = np.int64(chip.order[k])
        if chip.local[index] != first:
            continue
        if chip.status[index] == 0 or chip.status[index] & ATTENDED:
            run_tile(chip, table, index, first + 1)
        if chip.status[index] & MIDST and chip.status[index] & ATTENDED == 0 and _start(chip, net, index):
            return np.int64(ADVANCED)
        if chip.status[index] != 0:
            chip.current = index
            return np.int64(chip.status[index]) & STATUS
    return np.int64(ADVANCED)


@kernel
def _move(chip: ChipRecord, table: Table, net: LogAddress) -> Any:
    """Let all tiles move up to `chip.end`; see `bhemu.chip.clock.run.move`."""
    while True:
        forget_idle(chip)
        first, count, second, free, waits = first_clocks(chip)
        if has_event(net) and first_cycle(net) <= first:
            chip.time = max(np.int64(chip.time), first_cycle(net))
            _happen(chip, net, 0)
            continue
        if first >= chip.end:
            chip.time = chip.end
            return np.int64(ADVANCED)
        chip.time = first
        if waits:
            status = _step(chip, table, net, first)
            if status != ADVANCED:
                return status
            continue
        if not free:
            index = _first_request(chip)
            if not chip.status[index] & MIDST or not _start(chip, net, index):
                chip.current = index
                return np.int64(chip.status[index]) & STATUS
            continue
        goal = min(np.int64(chip.end), (second if count == 1 else first) + LOOKAHEAD)
        if has_event(net):
            goal = min(goal, first_cycle(net))
        all_ahead(chip, table, goal)


def clock_timed_entry(chip: ChipRecord, table: Table, clocks: Int, net: LogAddress) -> AnyInt:
    """`bhemu.chip.clock.run.clock_entry` of a timed chip.

    Args:
        net: address of the buffer of net_layout.py.
    """
    if clocks > 0:
        chip.end = chip.time + clocks
    return _move(chip, table, net)
