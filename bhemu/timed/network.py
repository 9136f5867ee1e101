"""NoC requests of a timed chip: when one is started, what happens at once, and what when it arrives and is answered.

- Written data are copied when a request starts, and change their tile when it arrives.
- Data that are read, and data written to DRAM, move when the request starts; the answer is counted when it comes. A
  program without races looks at them only then.
- Requests to registers, frames of links, and what compiled code leaves to Python take no time. Before them everything
  is delivered that the tile has sent.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.chip.clock.tiles import ATTENDED, tile_of, touch
from bhemu.chip.coordinates import WIDTH
from bhemu.chip.noc.multicast import INCLUDE_SOURCE
from bhemu.chip.noc.transfer import (
    carry_out,
    change_tile,
    mirrored,
    place_of,
    survey_multicast,
    unsound_at,
    visit_receivers,
)
from bhemu.chip.nodes.kinds import DRAM, IS_TILE
from bhemu.machine.buffer_memory import load_i64, store_i64
from bhemu.machine.bytes import move_bytes, record_address
from bhemu.machine.faults import DONE
from bhemu.machine.kernel import kernel
from bhemu.machine.noc_state import ENDED, FRAMES
from bhemu.machine.types import AnyInt, Bool, ChipRecord, Int, LogAddress, NocRequestRecord, TileRecord
from bhemu.tile.noc import request as q
from bhemu.tile.noc.counters import count_responses
from bhemu.tile.noc.soundness import SOUND, note_choice
from bhemu.tile.noc.transfer import load, word_of
from bhemu.timed import net_layout as at
from bhemu.timed.net_events import add_event, event_at, new_event, take_block
from bhemu.timed.routes import LOOKAHEAD, multicast_times, raw_node, read_time, write_times

_NOWHERE: Final = -1
_LINKED: Final = 1 << 6
_BY_COLUMN: Final = 1 << 16
"""Bits of CTRL: the next request has the same path; a multicast goes along a column first."""
_RECORD_BYTES: Final = 8 * at.RECORD_WORDS


@kernel
def _cycles(parts: Int) -> AnyInt:
    """Whole cycles, rounded up."""
    return np.int64((parts + at.PART - 1) // at.PART)


@kernel
def _answer_later(net: LogAddress, index: Int, number: Int, request: NocRequestRecord, cycle: Int) -> bool:
    """Count the answers of a request that has been carried out when they come; False when there is no room for it."""
    event = new_event(net)
    if event < 0:
        return False
    store_i64(net, event + at.WHAT, at.ANSWER)
    store_i64(net, event + at.TILE, index)
    store_i64(net, event + at.NUMBER, number)
    store_i64(net, event + at.ANSWERS, np.int64(request.responses))
    move_bytes(load_i64(net, at.ADDRESS) + 8 * (event + at.RECORD), record_address(request), _RECORD_BYTES)
    add_event(net, event, cycle)
    return True


@kernel
def _after(net: LogAddress, place: Int, cycle: Int) -> AnyInt:
    """A cycle, or that of the request before it where it is later."""
    return max(np.int64(cycle), load_i64(net, place))


@kernel
def _in_order(net: LogAddress, noc: Int, index: Int, other: Int, many: Bool, cycle: Int) -> AnyInt:
    """The cycle in which a request arrives after those that its sender has sent there before."""
    sender = noc * at.TILES + index
    cycle = _after(net, at.LAST_MANY + sender, cycle)
    if many:
        cycle = _after(net, at.LAST_ANY + sender, cycle)
        store_i64(net, at.LAST_MANY + sender, cycle)
    else:
        cycle = _after(net, at.LAST + sender * at.TILES + other, cycle)
        store_i64(net, at.LAST + sender * at.TILES + other, cycle)
    store_i64(net, at.LAST_ANY + sender, _after(net, at.LAST_ANY + sender, cycle))
    return cycle


@kernel
def _park(
    chip: ChipRecord, net: LogAddress, index: Int, t: TileRecord, number: Int, start: Int, end: Int, now: Int
) -> bool:
    """Let a sound write, inline write or atomic to L1 arrive later; False when there is no room for it.

    Args:
        start, end: physical places of a multicast's corners; without one `end` is the receiver.
    """
    request = t.noc_request[number]
    noc, size = np.int64(request.noc), np.int64(request.byte_count)
    has_data = request.kind == q.WRITE and request.from_register == 0
    if request.kind != q.WRITE:
        size = np.int64(q.WORD)
    if size > at.BLOCK_BYTES or load_i64(net, at.FREE_COUNT) < 2 or (has_data and load_i64(net, at.BLOCKS_FREE) < 1):
        return False
    chip.noc_end = index
    status, source = load(t, request)
    if status != DONE:
        return False
    event = new_event(net)
    block = np.int64(-1)
    if has_data:
        block = take_block(net)
        move_bytes(load_i64(net, at.DATA) + block * at.BLOCK_BYTES, source, size)
    many = (request.control & q.MULTICAST_BIT) != 0
    own = raw_node(load_i64(net, at.PLACE + index), noc)
    other = np.int64(chip.place_index[end])
    if many:
        first, last = mirrored(start, noc), mirrored(end, noc)
        corner, opposite = raw_node(start, noc), raw_node(end, noc)
        x, y = own % WIDTH, own // WIDTH
        inside = corner % WIDTH <= x <= opposite % WIDTH and corner // WIDTH <= y <= opposite // WIDTH
        linked = (request.control & _LINKED) != 0
        by_column = (request.control & _BY_COLUMN) != 0
        tail, answered = multicast_times(
            net, noc, own, corner, opposite, now * at.PART, size, inside, linked, by_column
        )
        store_i64(net, event + at.FIRST, np.int64(first))
        store_i64(net, event + at.END, np.int64(last))
    else:
        tail, answered = write_times(net, noc, own, raw_node(end, noc), np.int64(-1), now * at.PART, size)
    arrives = _in_order(net, noc, index, other, many, max(_cycles(tail), now + LOOKAHEAD))
    store_i64(net, event + at.WHAT, at.ARRIVES)
    store_i64(net, event + at.TILE, index)
    store_i64(net, event + at.NUMBER, number)
    store_i64(net, event + at.OTHER, -1 - noc if many else other)
    store_i64(net, event + at.BLOCK, block)
    store_i64(net, event + at.ANSWERED, max(_cycles(answered), arrives + 1))
    store_i64(net, at.PARKED + index, load_i64(net, at.PARKED + index) + 1)
    move_bytes(load_i64(net, at.ADDRESS) + 8 * (event + at.RECORD), record_address(request), _RECORD_BYTES)
    add_event(net, event, arrives)
    store_i64(net, at.BYTES, load_i64(net, at.BYTES) + size)
    return True


@kernel
def arrive(chip: ChipRecord, net: LogAddress, event: Int) -> None:
    """A parked request changes its receivers; its answers are on their way then."""
    index, number = load_i64(net, event + at.TILE), load_i64(net, event + at.NUMBER)
    other, block = load_i64(net, event + at.OTHER), load_i64(net, event + at.BLOCK)
    t = tile_of(chip, index)
    request = t.noc_request[number]
    here, saved = record_address(request), load_i64(net, at.ADDRESS) + 8 * at.SAVED
    # Its record takes the place of what the initiator's is used for now.
    move_bytes(saved, here, _RECORD_BYTES)
    move_bytes(here, load_i64(net, at.ADDRESS) + 8 * (event + at.RECORD), _RECORD_BYTES)
    request.responses = 0
    source = word_of(request)
    if block >= 0:
        source = load_i64(net, at.DATA) + block * at.BLOCK_BYTES
    if other >= 0:
        change_tile(chip, index, t, request, other, source, 0)
    else:
        first, last = load_i64(net, event + at.FIRST), load_i64(net, event + at.END)
        if request.control & INCLUDE_SOURCE:
            touch(chip, index, np.int64(chip.time))
        visit_receivers(chip, index, request, first, last, source, 0)
    answers = np.int64(request.responses)
    move_bytes(here, saved, _RECORD_BYTES)
    store_i64(net, event + at.ANSWERS, answers)
    store_i64(net, at.PARKED + index, load_i64(net, at.PARKED + index) - 1)


@kernel
def answer(chip: ChipRecord, net: LogAddress, event: Int) -> None:
    """The sender of a request counts its answers."""
    index, number = load_i64(net, event + at.TILE), load_i64(net, event + at.NUMBER)
    t = tile_of(chip, index)
    touch(chip, index, np.int64(chip.time))
    request = t.noc_request[number]
    here, saved = record_address(request), load_i64(net, at.ADDRESS) + 8 * at.SAVED
    move_bytes(saved, here, _RECORD_BYTES)
    move_bytes(here, load_i64(net, at.ADDRESS) + 8 * (event + at.RECORD), _RECORD_BYTES)
    count_responses(t, request, 0, load_i64(net, event + at.ANSWERS))
    move_bytes(here, saved, _RECORD_BYTES)


@kernel
def _goes_to_l1(chip: ChipRecord, request: NocRequestRecord, end: Int) -> Any:
    if end == _NOWHERE or request.kind == q.READ or request.to_register != 0:
        return False
    return IS_TILE[chip.place_kind[end]]


@kernel
def _ended(chip: ChipRecord, index: Int, t: TileRecord, request: NocRequestRecord) -> None:
    """The store that has started a request can end."""
    request.responses = 0
    request.status = DONE
    request.state = ENDED
    t.noc_pending = 0
    chip.waiting[index] = 0
    chip.status[index] = np.uint8(chip.status[index] | ATTENDED)


@kernel
def park_request(chip: ChipRecord, net: LogAddress, index: Int) -> bool:
    """Start the pending request of a tile if it goes to L1 of others and can arrive later."""
    t = tile_of(chip, index)
    number = np.int64(t.noc_pending) - 1
    if number >= FRAMES:
        return False
    request = t.noc_request[number]
    end = place_of(chip, request.noc, request.other, request.end)
    if not _goes_to_l1(chip, request, end):
        return False
    start: Int = np.int64(0)
    if request.control & q.MULTICAST_BIT:
        start = place_of(chip, request.noc, request.other >> q.CORNER_LSB, request.start)
        if start == _NOWHERE:
            return False
    many = (request.control & q.MULTICAST_BIT) != 0
    if many and survey_multicast(chip, index, request, start, end) != SOUND:
        return False  # and it is refused by the store that starts it, as always
    if unsound_at(chip, t, request, end, many) != SOUND or not note_choice(t, request, True):
        return False
    if not _park(chip, net, index, t, number, start, end, np.int64(chip.local[index])):
        return False
    store_i64(net, at.REQUESTS, load_i64(net, at.REQUESTS) + 1)
    _ended(chip, index, t, request)
    return True


@kernel
def moves_at_once(chip: ChipRecord, index: Int) -> Any:
    """The pending request of a tile reads, or writes to DRAM: only its answer takes time."""
    t = tile_of(chip, index)
    number = np.int64(t.noc_pending) - 1
    if number >= FRAMES:
        return False
    request = t.noc_request[number]
    end = place_of(chip, request.noc, request.other, request.end)
    if end == _NOWHERE:
        return False
    return request.kind == q.READ or chip.place_kind[end] == DRAM


@kernel
def carry_out_timed(chip: ChipRecord, net: LogAddress, index: Int) -> bool:
    """Carry out a request whose data move at once, and count its answer later; False when Python has to."""
    t = tile_of(chip, index)
    number = np.int64(t.noc_pending) - 1
    known = number < FRAMES
    if not carry_out(chip, index, 1):
        return False
    request = t.noc_request[number]
    if not known or request.status != DONE or request.responses == 0 or request.answers == 0:
        return True
    if request.control & q.MULTICAST_BIT:
        return True
    now, noc, size = np.int64(chip.local[index]), np.int64(request.noc), np.int64(request.byte_count)
    end = place_of(chip, noc, request.other, request.end)
    channel = np.int64(chip.place_index[end]) if chip.place_kind[end] == DRAM else np.int64(-1)
    own, far = raw_node(load_i64(net, at.PLACE + index), noc), raw_node(end, noc)
    if request.kind == q.READ:
        answered = read_time(net, noc, own, far, channel, now * at.PART, size)
    else:
        if request.kind != q.WRITE:
            size = np.int64(q.WORD)
        _, answered = write_times(net, noc, own, far, channel, now * at.PART, size)
    if _answer_later(net, index, number, request, max(_cycles(answered), now + 1)):
        request.responses = 0
        store_i64(net, at.REQUESTS, load_i64(net, at.REQUESTS) + 1)
        store_i64(net, at.BYTES, load_i64(net, at.BYTES) + size)
    return True


@kernel
def has_event(net: LogAddress) -> Any:
    """Something is on its way."""
    return load_i64(net, at.HEAP_COUNT) > 0


@kernel
def first_cycle(net: LogAddress) -> AnyInt:
    """Cycle of the next event."""
    return load_i64(net, event_at(net, 0) + at.CYCLE)
