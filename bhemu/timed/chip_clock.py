"""Clocks of a timed chip: tiles run ahead of each other by less than any request takes, then requests start.

What a tile does reaches another one `lookahead` cycles later at the earliest. So all tiles can run that far from the
one that is behind, each by itself and on any number of threads, but not past what is on its way to them. Requests for
which tiles have stopped start in the order of their cycles, and those of the same cycle in the order of the tiles.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.chip.clock.run import FRAME_ARRIVES, all_ahead, first_clocks, forget_idle, run_tile
from bhemu.chip.clock.tiles import ATTENDED, MIDST, STATUS
from bhemu.chip.links.receive import begin_span
from bhemu.machine.buffer_memory import load_i64, store_i64
from bhemu.machine.faults import DONE
from bhemu.machine.kernel import kernel
from bhemu.machine.types import AnyInt, ChipRecord, Int, LogAddress, Table
from bhemu.tensix.frontend.observer import NO_LOG
from bhemu.tile.turn_ends import ADVANCED
from bhemu.timed import layout
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
from bhemu.timed.observer import buffer_of
from bhemu.timed.routes import in_rectangle, lookahead

_NONE: Final = -1
_FEW: Final = 2
"""So many tiles are not worth the threads' attention."""


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
def _affects(net: LogAddress, event: Int, index: Int) -> Any:
    """The event changes a tile; of a multicast's rectangle all tiles, also those that it leaves out."""
    if load_i64(net, event + at.WHAT) == at.ANSWER:
        return load_i64(net, event + at.TILE) == index
    other = load_i64(net, event + at.OTHER)
    if other >= 0:
        return other == index
    first, last = load_i64(net, event + at.FIRST), load_i64(net, event + at.END)
    return in_rectangle(load_i64(net, at.PLACE + index), -1 - other, first, last)


@kernel
def _can_happen(chip: ChipRecord, net: LogAddress, event: Int) -> bool:
    """The tiles that an event changes have come to its cycle."""
    cycle = load_i64(net, event + at.CYCLE)
    for k in range(chip.active_count):
        index = np.int64(chip.order[k])
        if chip.local[index] < cycle and _affects(net, event, index):
            return False
    return True


@kernel
def _limit(net: LogAddress, index: Int, cycle: Int) -> None:
    store_i64(net, at.LIMIT + index, min(load_i64(net, at.LIMIT + index), cycle))


@kernel
def _set_limits(chip: ChipRecord, net: LogAddress, goal: Int) -> None:
    """How far each tile may go, by the events before a goal."""
    for k in range(chip.active_count):
        store_i64(net, at.LIMIT + np.int64(chip.order[k]), goal)
    for place in range(load_i64(net, at.HEAP_COUNT)):
        event = event_at(net, place)
        cycle = load_i64(net, event + at.CYCLE)
        if cycle >= goal:
            continue
        if load_i64(net, event + at.WHAT) == at.ARRIVES:
            _limit(net, load_i64(net, event + at.TILE), max(load_i64(net, event + at.ANSWERED), cycle + 1))
            if load_i64(net, event + at.OTHER) >= 0:
                _limit(net, load_i64(net, event + at.OTHER), cycle)
                continue
        else:
            _limit(net, load_i64(net, event + at.TILE), cycle)
            continue
        for k in range(chip.active_count):
            index = np.int64(chip.order[k])
            if _affects(net, event, index):
                _limit(net, index, cycle)


@kernel
def _can_go(chip: ChipRecord, net: LogAddress, index: Int) -> Any:
    stopped = chip.status[index] != 0 and chip.status[index] & ATTENDED == 0
    return not stopped and chip.local[index] < load_i64(net, at.LIMIT + index)


@kernel
def _who_can_go(chip: ChipRecord, net: LogAddress) -> Any:
    """(how many tiles can go on, the clock of the one of them that is behind)."""
    count, first = 0, np.int64(chip.end)
    for k in range(chip.active_count):
        index = np.int64(chip.order[k])
        if _can_go(chip, net, index):
            count += 1
            first = min(first, np.int64(chip.local[index]))
    return count, first


@kernel
def _go(chip: ChipRecord, table: Table, net: LogAddress, goal: Int, count: Int) -> None:
    """Let `count` tiles, which can go on, run up to a goal or their limits."""
    for k in range(chip.active_count):
        index = np.int64(chip.order[k])
        limit = load_i64(net, at.LIMIT + index)
        if limit < goal and chip.observer[index] == NO_LOG:
            goal = limit  # an Ethernet tile knows no limit of its own
    for k in range(chip.active_count):
        index = np.int64(chip.order[k])
        goes = chip.status[index] == 0 or chip.status[index] & ATTENDED
        if not goes or chip.local[index] >= goal or (count <= _FEW and not _can_go(chip, net, index)):
            continue
        limit = load_i64(net, at.LIMIT + index)
        if limit < goal:
            store_i64(buffer_of(chip.observer[index]), layout.LIMIT, limit)
        if count <= _FEW:
            run_tile(chip, table, index, goal)
    if count > _FEW:
        all_ahead(chip, table, goal)


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
    window: AnyInt = np.int64(0)
    ahead = lookahead(net)
    while True:
        forget_idle(chip)
        first, _, _, free, waits = first_clocks(chip)
        window = first + ahead if first >= window else min(window, first + ahead)
        if has_event(net):
            cycle = first_cycle(net)
            soon = cycle <= first or (cycle < min(np.int64(chip.end), window) and not waits)
            if soon and _can_happen(chip, net, event_at(net, 0)):
                chip.time = max(np.int64(chip.time), cycle)
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
        alone = chip.active_count == 1 and not has_event(net)
        goal = np.int64(chip.end) if alone else min(np.int64(chip.end), window)
        _set_limits(chip, net, goal)
        count, behind = _who_can_go(chip, net)
        index = _NONE if free else _first_request(chip)
        if index == _NONE or (count > 0 and behind < chip.local[index]):
            _go(chip, table, net, goal, count)
        elif not chip.status[index] & MIDST or not _start(chip, net, index):
            chip.current = index
            return np.int64(chip.status[index]) & STATUS


@kernel
def pass_timed(chip: ChipRecord, table: Table, clocks: Int, net: LogAddress) -> AnyInt:
    """Let clocks of a timed chip pass; see `bhemu.chip.clock.run.pass_clocks`."""
    if clocks > 0:
        chip.end = chip.time
        if chip.links != 0:
            chip.goal = chip.time + clocks
        else:
            chip.end += clocks
    while True:
        status = _move(chip, table, net)
        if status != ADVANCED or chip.links == 0 or chip.time >= chip.goal:
            return np.int64(status)
        if begin_span(chip) != DONE:
            return np.int64(FRAME_ARRIVES)


def clock_timed_entry(chip: ChipRecord, table: Table, clocks: Int, net: LogAddress) -> AnyInt:
    """`bhemu.chip.clock.run.clock_entry` of a timed chip.

    Args:
        net: address of the buffer of net_layout.py.
    """
    return pass_timed(chip, table, clocks, net)
