"""NoC requests between nodes, in compiled code (tile N16 to N27).

A request takes no time (N26): the store that starts it ends when the data have moved and both ends have counted. What
is sound is carried out here. The reasons for a refusal are in refusals.py; a request that is refused has changed
nothing, unless another node refuses it halfway through a mask.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.chip.clock.tiles import ATTENDED, before_write, l1_address, make, tile_of, touch_by
from bhemu.chip.coordinates import HEIGHT, WIDTH, X_LSB, Y_MASK
from bhemu.chip.links.send import send_frame
from bhemu.chip.noc.multicast import (
    BAD_NODE,
    CORNER,
    INCLUDE_SOURCE,
    READ_TO_MANY,
    distance_to,
    reaches,
    unknown_exclusion,
)
from bhemu.chip.nodes.access import access_node
from bhemu.chip.nodes.dram import copy_dram, dram_ready
from bhemu.chip.nodes.kinds import DRAM, IS_TILE, MEMORY, READ_ALIGNMENT, TENSIX
from bhemu.chip.state import CHIP, PLACES
from bhemu.machine.bytes import move_bytes
from bhemu.machine.dispatch import NOT_COMPILED
from bhemu.machine.faults import DONE, REFUSED, WAIT
from bhemu.machine.kernel import kernel
from bhemu.machine.noc_state import ENDED, FRAMES
from bhemu.machine.state import offset_of
from bhemu.machine.types import AnyInt, ChipRecord, Int, NocRequestRecord, TileRecord
from bhemu.tile.noc import request as q
from bhemu.tile.noc.counters import TARGET, count
from bhemu.tile.noc.soundness import CHECKS_ITSELF, SOUND, note_choice, unsound
from bhemu.tile.noc.transfer import change, load, selects, store, word_of

LEFT: Final = -1
"""Nothing has been done: `noc_unsound` of the chip's record says why."""
NO_NODE: Final = 36
"""A reason besides those of multicast.py and tile/noc/soundness.py: coordinates name no node."""
_COORDINATE: Final = 63
_NOWHERE: Final = -1
_BUFFER: Final = offset_of(CHIP, "buffer")


@kernel
def mirrored(place: Int, noc: Int) -> Any:
    """Physical place (x << X_LSB | y) of raw coordinates of a NoC, and back (N1)."""
    if noc == 0:
        return place
    return ((WIDTH - 1 - (place >> X_LSB)) << X_LSB) | (HEIGHT - 1 - (place & Y_MASK))


@kernel
def place_of(chip: ChipRecord, noc: Int, coordinate: Int, raw: Int) -> Int:
    """Physical place of the other end, or of a multicast's corner; _NOWHERE where network.py has to resolve it."""
    x, y = coordinate & _COORDINATE, (coordinate >> 6) & _COORDINATE
    if x >= PLACES or y >= PLACES:
        return np.int64(_NOWHERE)
    if chip.named != 0:
        return np.int64(chip.place[x, y])
    x, y = raw & _COORDINATE, (raw >> 6) & _COORDINATE
    if x >= WIDTH or y >= HEIGHT:
        return np.int64(_NOWHERE)
    place = (x << X_LSB) | y
    return mirrored(place, noc) if noc != 0 else place


@kernel
def unsound_at(chip: ChipRecord, t: TileRecord, request: NocRequestRecord, end: Int, multicast: bool) -> Int:
    """`unsound` for a request to the node at a physical place; a multicast that no tile receives has no other end."""
    node = np.int64(chip.place_kind[end])
    memory = np.int64(CHECKS_ITSELF) if multicast and chip.noc_first == _NOWHERE else np.int64(MEMORY[node])
    return unsound(t, request, IS_TILE[node], memory, np.int64(READ_ALIGNMENT[node]), np.int64(-1))


# --- ends -------------------------------------------------------------------------------------------------------------


@kernel
def access_own_l1(chip: ChipRecord, index: Int, address: Int, pointer: Int, size: Int, writes: Int) -> None:
    """Bytes between a tile's L1 and an address in this process."""
    at = l1_address(chip, index) + address
    if writes:
        move_bytes(at, pointer, size)
    else:
        move_bytes(pointer, at, size)


@kernel
def _before_register(chip: ChipRecord, index: Int, other: Int, target: TileRecord, in_turn: Int) -> None:
    """Before a register of `target`, tile `other`, is accessed by a request of tile `index`."""
    chip.noc_end = other
    if other != index:
        touch_by(chip, index, other, in_turn)
        target.now_round = target.round_goal
        target.now_agent = -1


@kernel
def _write_dram(chip: ChipRecord, request: NocRequestRecord, channel: Int, source: Int) -> Int:
    """Status of a write or inline write to DRAM, from an address in this process."""
    whole = request.kind == q.WRITE and request.masked == 0
    to = np.int64(request.target) if whole else request.target & ~(q.BLOCK - 1)
    size = np.int64(q.BLOCK) if request.kind == q.INLINE else np.int64(request.byte_count)
    if not dram_ready(chip, channel, to, size):
        return np.int64(REFUSED)
    if whole:
        copy_dram(chip, channel, to, source, size, True)
        return np.int64(DONE)
    step = q.WORD if request.kind == q.INLINE else q.ENABLED_BYTES
    for i in range(size):
        if selects(request, i):
            copy_dram(chip, channel, to + i, source + i % step, 1, True)
    return np.int64(DONE)


@kernel
def _write_node(chip: ChipRecord, request: NocRequestRecord, place: Int, source: Int) -> Any:
    """Status of a write or inline write to another kind of node, from an address in this process."""
    target, noc = np.int64(request.target), np.int64(request.noc)
    if request.kind == q.WRITE and request.masked == 0:
        return access_node(chip, place, noc, target, source, np.int64(request.byte_count), 1)
    to, buffer = target & ~(q.BLOCK - 1), chip.address + _BUFFER
    size = np.int64(q.BLOCK) if request.kind == q.INLINE else np.int64(request.byte_count)
    step = q.WORD if request.kind == q.INLINE else q.ENABLED_BYTES
    count = np.int64(0)
    for i in range(size + 1):  # runs of selected bytes, each an access
        if i < size and selects(request, i):
            move_bytes(buffer + count, source + i % step, 1)
            count += np.int64(1)
        elif count > 0:
            status = access_node(chip, place, noc, to + i - count, buffer, count, 1)
            if status != DONE:
                return status
            count = np.int64(0)
    return np.int64(DONE)


@kernel
def change_tile(
    chip: ChipRecord, index: Int, t: TileRecord, request: NocRequestRecord, other: Int, source: Int, in_turn: Int
) -> Int:
    """Status of a write, inline write or atomic at one tile."""
    make(chip, other)
    target = tile_of(chip, other)
    if request.to_register != 0:
        _before_register(chip, index, other, target, in_turn)
    else:
        before_write(chip, index, other, target, in_turn)
    status = change(t, request, target, source)
    if status == DONE:
        count(target, request, TARGET)
        request.responses += 1
    return status


@kernel
def _read(chip: ChipRecord, index: Int, t: TileRecord, request: NocRequestRecord, place: Int, in_turn: Int) -> Int:
    """Status of a read from the node at a physical place."""
    node, other = np.int64(chip.place_kind[place]), np.int64(chip.place_index[place])
    source: AnyInt = word_of(request)
    status: Int
    if not IS_TILE[node]:
        to = source if request.to_register != 0 else l1_address(chip, index) + request.target
        status = access_node(chip, place, request.noc, request.source, to, request.byte_count, 0)
        if status != DONE:
            return status
    else:
        make(chip, other)
        target = tile_of(chip, other)
        if request.from_register != 0:
            _before_register(chip, index, other, target, in_turn)
        status, source = load(target, request)
        if status != DONE:
            return status
    if request.to_register != 0:
        chip.noc_end = index
    if IS_TILE[node] or request.to_register != 0:
        status = store(t, request, source)
        if status != DONE:
            return status
    if IS_TILE[node]:
        count(tile_of(chip, other), request, TARGET)
    request.responses = 1
    return np.int64(DONE)


# --- multicasts -------------------------------------------------------------------------------------------------------


@kernel
def visit_receivers(
    chip: ChipRecord, index: Int, request: NocRequestRecord, first: Int, last: Int, source: Int, in_turn: Int
) -> Any:
    """Visit the nodes of a multicast's rectangle in the order of tiles: check them, or carry it out at its tiles.

    Args:
        first, last: raw places of the corners on the request's NoC.
        source: address in this process of what is written; 0 to check only: `noc_first` is then the place of the first
            receiver, `noc_bad` that of a node which takes no multicasts, each _NOWHERE if there is none.

    Returns:
        A status. Receivers that have the request already, by `responses`, are skipped.
    """
    t = tile_of(chip, index)
    include = (request.control & INCLUDE_SOURCE) != 0
    in_order = request.kind == q.ATOMIC or request.to_register != 0
    way: Int
    count, way = 0, WIDTH * HEIGHT
    own = False
    for y in range(HEIGHT):
        raw_y = HEIGHT - 1 - y if request.noc else y
        for x in range(WIDTH):
            raw_x = WIDTH - 1 - x if request.noc else x
            if not reaches(t, request, first, last, raw_x, raw_y):
                continue
            place = (x << X_LSB) | y
            other = np.int64(chip.place_index[place])
            if source == 0:
                if chip.place_kind[place] != TENSIX:
                    distance = distance_to(first, raw_x, raw_y)
                    if distance < way:
                        way = distance
                        chip.noc_bad = place
                elif chip.noc_first == _NOWHERE and (other != index or include):
                    chip.noc_first = place
            elif other == index and not in_order:
                own = include  # last: it may overwrite what the others get
            elif other != index or include:
                count += 1
                if count > request.responses:
                    status = change_tile(chip, index, t, request, other, source, in_turn)
                    if status != DONE:
                        return status
    if own:
        return change_tile(chip, index, t, request, index, source, in_turn)
    return np.int64(DONE)


@kernel
def survey_multicast(chip: ChipRecord, index: Int, request: NocRequestRecord, start: Int, end: Int) -> Int:
    """SOUND when a multicast can reach all nodes of its rectangle, whose corners are the places `start` and `end`."""
    first, last = mirrored(start, request.noc), mirrored(end, request.noc)
    chip.noc_first = chip.noc_bad = _NOWHERE
    if chip.place_kind[start] != TENSIX or chip.place_kind[end] != TENSIX:
        return np.int64(CORNER)
    wrong = unknown_exclusion(request.exclude, first, last)
    if wrong == SOUND:
        visit_receivers(chip, index, request, first, last, 0, 0)
    return np.int64(BAD_NODE) if wrong == SOUND and chip.noc_bad != _NOWHERE else wrong


# --- requests ---------------------------------------------------------------------------------------------------------


@kernel
def _carry_out(chip: ChipRecord, index: Int, t: TileRecord, number: Int, in_turn: Int) -> Any:
    """Status with which a request of tile `index`, whose record is `t`, has ended; others: see `carry_out_entry`."""
    request = t.noc_request[number]
    if number >= FRAMES:
        return send_frame(chip, index, request, word_of(request))
    multicast = (request.control & q.MULTICAST_BIT) != 0
    end = place_of(chip, request.noc, request.other, request.end)
    start: Int = np.int64(0)
    if multicast:
        start = place_of(chip, request.noc, request.other >> q.CORNER_LSB, request.start)
    wrong: Int = np.int64(READ_TO_MANY if multicast and request.kind == q.READ else SOUND)
    if wrong == SOUND and (end == _NOWHERE or start == _NOWHERE):
        wrong = np.int64(NO_NODE)
    if wrong == SOUND and multicast:
        wrong = survey_multicast(chip, index, request, start, end)
    if wrong == SOUND:
        wrong = unsound_at(chip, t, request, end, multicast)
    chip.noc_unsound = wrong
    if wrong != SOUND:
        return np.int64(LEFT)
    node = np.int64(chip.place_kind[end])
    note_choice(t, request, IS_TILE[node])
    other = np.int64(chip.place_index[end])
    if request.kind == q.READ:
        return _read(chip, index, t, request, end, in_turn)
    chip.noc_end = index
    status, source = load(t, request)
    if status != DONE:
        return status
    if multicast:
        first, last = mirrored(start, request.noc), mirrored(end, request.noc)
        return visit_receivers(chip, index, request, first, last, source, in_turn)
    if IS_TILE[node]:
        return change_tile(chip, index, t, request, other, source, in_turn)
    if node == DRAM:
        status = _write_dram(chip, request, other, source)
    else:
        status = _write_node(chip, request, end, source)
    if status == DONE:
        request.responses = 1
    return status


@kernel
def _forget_fault(chip: ChipRecord, status: Int) -> None:
    """What has stopped a request at its other end: Python asks again, and says why."""
    if status == REFUSED and chip.fault_code != 0:
        chip.fault_code = 0
    elif status == REFUSED:
        tile_of(chip, chip.noc_end).fault_code = 0
    elif status == NOT_COMPILED:
        tile_of(chip, chip.noc_end).needs_place = 0


@kernel
def carry_out(chip: ChipRecord, index: Int, in_turn: Int) -> bool:
    """Carry out the pending request of a tile, in its turn or (0) between two clocks; False when Python has to."""
    t = tile_of(chip, index)
    number = np.int64(t.noc_pending) - 1
    request = t.noc_request[number]
    status = _carry_out(chip, index, t, number, in_turn)
    waits = in_turn != 0 and status == WAIT and request.responses == 0
    if status != DONE and not waits:
        _forget_fault(chip, status)
        return False
    request.status = status
    request.state = ENDED
    t.noc_pending = 0
    if in_turn != 0:
        chip.waiting[index] = 1 if waits else 0
        chip.status[index] = np.uint8(chip.status[index] | ATTENDED)
    return True


def carry_out_entry(chip: ChipRecord, index: Int, number: Int, in_turn: Int) -> AnyInt:
    """Carry out a request of a tile.

    Args:
        in_turn: 1 in the turn of one of the tile's agents, 0 between two clocks.

    Returns:
        DONE; WAIT; REFUSED, by the node (`chip.fault_code`) or a register of tile `noc_end`; NOT_COMPILED, of that
        tile; LEFT, nothing has been done.
    """
    return _carry_out(chip, index, tile_of(chip, index), number, in_turn)
