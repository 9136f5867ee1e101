"""NoC requests that end in Tensix tiles and DRAM, in compiled code (tile N16 to N26).

What is sound is carried out here. The reasons for a refusal, and nodes that only Python has, are in network.py.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.chip.clock.tiles import ATTENDED, before_write, l1_address, tile_of, touch_by
from bhemu.chip.coordinates import HEIGHT, WIDTH
from bhemu.chip.noc.multicast import INCLUDE_SOURCE, distance_to, is_known_exclusion, reaches
from bhemu.chip.nodes.dram import PAGE, PAGE_BITS
from bhemu.chip.nodes.kinds import DRAM, DRAM_CHANNEL, DRAM_READ_ALIGNMENT, TENSIX
from bhemu.chip.state import PLACES, X_LSB
from bhemu.machine.agents import NOC
from bhemu.machine.bytes import move_bytes
from bhemu.machine.dispatch import DEVICE_LOAD, DEVICE_STORE, NOT_COMPILED, call_handler, handlers_of, has_handler
from bhemu.machine.faults import DONE, REFUSED, WAIT, open_choice
from bhemu.machine.kernel import kernel
from bhemu.machine.noc_state import ENDED, NOC_REQUEST
from bhemu.machine.state import L1_SIZE, TILE, offset_of
from bhemu.machine.types import AnyInt, Bool, ChipRecord, Int, NocRequestRecord, TileRecord
from bhemu.tile.noc import request as q
from bhemu.tile.noc.atomic import apply_atomic
from bhemu.tile.noc.transfer import count_at_target

LEFT: Final = -1
"""Nothing has been done: it is for Python to decide."""
_COORDINATE: Final = 63
_NOWHERE: Final = -1
_TILE_BYTES: Final = TILE.itemsize
_REQUEST_BYTES: Final = NOC_REQUEST.itemsize
_WORD: Final = offset_of(TILE, "noc_request") + offset_of(NOC_REQUEST, "word")


@kernel
def _mirrored(place: Int, noc: Int) -> Any:
    """Physical place (x << 8 | y) of raw coordinates of a NoC, and back (N1)."""
    if noc == 0:
        return place
    return ((WIDTH - 1 - (place >> X_LSB)) << X_LSB) | (HEIGHT - 1 - (place & 0xFF))


@kernel
def _place(chip: ChipRecord, noc: Int, coordinate: Int, raw: Int) -> Int:
    """Physical place of the other end, or of a multicast's corner; _NOWHERE where network.py has to look."""
    x, y = coordinate & _COORDINATE, (coordinate >> 6) & _COORDINATE
    if x >= PLACES or y >= PLACES:
        return np.int64(_NOWHERE)
    if chip.named != 0:
        return np.int64(chip.place[x, y])
    x, y = raw & _COORDINATE, (raw >> 6) & _COORDINATE
    if x >= WIDTH or y >= HEIGHT:
        return np.int64(_NOWHERE)
    place = (x << X_LSB) | y
    return _mirrored(place, noc) if noc != 0 else place


# --- what is sound ----------------------------------------------------------------------------------------------------


@kernel
def _has(node: Int, register: Int, address: Int, size: Int) -> Bool:
    """True when a Tensix tile or a DRAM channel has bytes at an address; registers of a tile are whole words."""
    if register:
        return size == q.WORD and (address & (q.WORD - 1)) == 0
    return address >= 0 and address + size <= (DRAM_CHANNEL if node == DRAM else L1_SIZE)


@kernel
def _is_sound_copy(request: NocRequestRecord, node: Int) -> bool:
    """A read or write between the own tile and a node (N17 to N19)."""
    source, target, size = np.int64(request.source), np.int64(request.target), np.int64(request.byte_count)
    if size <= 0 or not q.can_split(source, target, size):
        return False
    from_node, to_node = np.int64(TENSIX), np.int64(node)
    modulus = q.BLOCK
    if request.kind == q.READ:
        from_node, to_node = to_node, from_node
        modulus = DRAM_READ_ALIGNMENT if node == DRAM else q.BLOCK
    elif request.masked != 0:
        source, target = source & ~(q.BLOCK - 1), target & ~(q.BLOCK - 1)
    from_register = request.from_register != 0 and from_node == TENSIX
    to_register = request.to_register != 0 and to_node == TENSIX
    if from_register or to_register:
        modulus = q.WORD
    if (source - target) & (modulus - 1) or not _has(from_node, from_register, source, size):
        return False
    return _has(to_node, to_register, target, size) and not (to_register and q.starts_another(target))


@kernel
def _is_sound(t: TileRecord, request: NocRequestRecord, node: Int) -> Bool:
    """True when nothing speaks against a request to a Tensix tile or a DRAM channel."""
    target, back = np.int64(request.target), np.int64(request.result)
    if request.kind == q.INLINE:
        if node == TENSIX and request.to_register != 0:
            return _has(node, True, target, q.WORD) and not q.starts_another(target)
        return _has(node, False, target & ~(q.BLOCK - 1), q.BLOCK) and (node == DRAM or t.allow_open != 0)
    if request.kind != q.ATOMIC:
        return _is_sound_copy(request, node)
    if node != TENSIX or target & 3 or target < 0 or target >= L1_SIZE:
        return False
    return (request.control & q.RESPONSE) == 0 or (back & 3 == 0 and back >= 0 and back < L1_SIZE)


# --- ends -------------------------------------------------------------------------------------------------------------


@kernel
def _dram_ready(chip: ChipRecord, channel: Int, address: Int, size: Int) -> bool:
    """True when all pages exist."""
    for page in range(address >> PAGE_BITS, ((address + size - 1) >> PAGE_BITS) + 1):
        if chip.page[channel, page] == 0:
            return False
    return True


@kernel
def _copy_dram(chip: ChipRecord, channel: Int, address: Int, local: Int, size: Int, writes: Int) -> None:
    """Bytes between DRAM and an address in this process."""
    while size > 0:
        start = address & (PAGE - 1)
        count = min(size, PAGE - start)
        page = np.int64(chip.page[channel, address >> PAGE_BITS])
        if writes:
            move_bytes(page + start, local, count)
        else:
            move_bytes(local, (page if page != 0 else np.int64(chip.zeros)) + start, count)
        address += count
        local += count
        size -= count


@kernel
def _register(chip: ChipRecord, index: Int, other: Int, place: Int, address: Int, value: Int, in_turn: Int) -> Any:
    """(status, value) of an access to a register of a tile, the own one in the turn that is in progress."""
    t = tile_of(chip, other)
    if other != index:
        touch_by(chip, index, other, in_turn)
        t.now_round = t.round_goal
        t.now_agent = -1
    chip.noc_end = other
    if t.handlers == 0 or not has_handler(handlers_of(t), place):
        t.needs_place = place
        return np.int64(NOT_COMPILED), np.int64(0)
    t.device_size = q.WORD
    t.device_value = value
    status = np.int64(call_handler(handlers_of(t), place, t, NOC, address))
    return status, np.int64(t.device_value)


@kernel
def _selects(request: NocRequestRecord, i: Int) -> AnyInt:
    """True when AT_LEN_BE selects byte i of the block: by 64 bits, in an inline write by either half of 32 (N16)."""
    if request.kind == q.INLINE:
        return ((request.length | request.length >> q.BLOCK) >> i) & 1
    return (request.length >> i) & 1


@kernel
def _write_dram(chip: ChipRecord, request: NocRequestRecord, channel: Int, source: Int) -> Int:
    """Status of a write or inline write to DRAM, from an address in this process; LEFT: it has no pages there yet."""
    whole = request.kind == q.WRITE and request.masked == 0
    to = np.int64(request.target) if whole else request.target & ~(q.BLOCK - 1)
    size = np.int64(q.BLOCK) if request.kind == q.INLINE else np.int64(request.byte_count)
    if not _dram_ready(chip, channel, to, size):
        return np.int64(LEFT)
    if whole:
        _copy_dram(chip, channel, to, source, size, True)
        return np.int64(DONE)
    step = q.WORD if request.kind == q.INLINE else q.ENABLED_BYTES
    for i in range(size):
        if _selects(request, i):
            _copy_dram(chip, channel, to + i, source + i % step, 1, True)
    return np.int64(DONE)


@kernel
def _write_tile(
    chip: ChipRecord, index: Int, request: NocRequestRecord, other: Int, target: TileRecord, source: Int, in_turn: Int
) -> AnyInt:
    """Status of a write or inline write at one tile, from an address in this process."""
    if request.to_register != 0:
        return _register(chip, index, other, DEVICE_STORE, request.target, request.word, in_turn)[0]
    before_write(chip, index, other, target, in_turn)
    if request.kind == q.WRITE and request.masked == 0:
        move_bytes(l1_address(chip, other) + request.target, source, request.byte_count)
        return np.int64(DONE)
    to = l1_address(chip, other) + (request.target & ~(q.BLOCK - 1))
    size, step = (q.BLOCK, q.WORD) if request.kind == q.INLINE else (q.ENABLED_BYTES, q.ENABLED_BYTES)
    for n in range(size):
        i = n if to <= source else size - 1 - n  # the two may overlap
        if _selects(request, i):
            move_bytes(to + i, source + i % step, 1)
    return np.int64(DONE)


@kernel
def _change_tile(
    chip: ChipRecord, index: Int, t: TileRecord, request: NocRequestRecord, other: Int, source: Int, in_turn: Int
) -> Any:
    """Status of a write, inline write or atomic at one tile, which counts it."""
    target = tile_of(chip, other)
    status: Int = np.int64(DONE)
    if request.kind == q.ATOMIC:
        before_write(chip, index, other, target, in_turn)
        old = apply_atomic(target, request.target, request.length & q.ADDRESS_BITS, request.operand)
        if request.control & q.RESPONSE:
            t.l1_u32[request.result >> 2] = np.uint32(old)
    else:
        status = _write_tile(chip, index, request, other, target, source, in_turn)
    if status == DONE:
        count_at_target(target, request)
        request.responses += 1
    return status


@kernel
def _read(
    chip: ChipRecord, index: Int, request: NocRequestRecord, node: Int, other: Int, word: Int, in_turn: Int
) -> Any:
    """Status of a read; `word` is the address in this process of `request.word`."""
    to = l1_address(chip, index) + request.target
    into_register = request.to_register != 0
    if into_register:
        to = word
    if node == DRAM:
        _copy_dram(chip, other, request.source, to, request.byte_count, False)
    elif request.from_register != 0:
        status, value = _register(chip, index, other, DEVICE_LOAD, request.source, np.int64(0), in_turn)
        if status != DONE:
            return status
        request.word = value
        if not into_register:
            move_bytes(to, word, q.WORD)
    else:
        move_bytes(to, l1_address(chip, other) + request.source, request.byte_count)
    if into_register:
        status = _register(chip, index, index, DEVICE_STORE, request.target, request.word & q.ADDRESS_BITS, in_turn)[0]
        if status != DONE:
            return status
    if node == TENSIX:
        count_at_target(tile_of(chip, other), request)
    request.responses = 1
    return np.int64(DONE)


# --- multicasts -------------------------------------------------------------------------------------------------------


@kernel
def _multicast(
    chip: ChipRecord, index: Int, request: NocRequestRecord, first: Int, last: Int, source: Int, in_turn: Int
) -> Any:
    """Look at the nodes of a multicast's rectangle in the order of tiles, or let all its tiles have it.

    Args:
        first, last: raw places of the corners on the request's NoC.
        source: address in this process of what is written; 0 to look only: `noc_first` is then the place of the first
            receiver, `noc_bad` that of a node which takes no multicasts, each _NOWHERE if there is none.

    Returns:
        A status. Receivers that have the request already, by `responses`, are passed over.
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
                    status = _change_tile(chip, index, t, request, other, source, in_turn)
                    if status != DONE:
                        return status
    if own:
        return _change_tile(chip, index, t, request, index, source, in_turn)
    return np.int64(DONE)


@kernel
def _survey(chip: ChipRecord, index: Int, request: NocRequestRecord, start: Int, end: Int) -> Bool:
    """True when a multicast can go where it shall; `start` and `end` are the physical places of its corners."""
    first, last = _mirrored(start, request.noc), _mirrored(end, request.noc)
    chip.noc_first = chip.noc_bad = _NOWHERE
    if request.kind == q.READ or start == _NOWHERE or not is_known_exclusion(request.exclude, first, last):
        return False
    if chip.place_kind[start] != TENSIX or chip.place_kind[end] != TENSIX:
        return False
    _multicast(chip, index, request, first, last, 0, 0)
    return chip.noc_bad == _NOWHERE


# --- requests ---------------------------------------------------------------------------------------------------------


@kernel
def _carry(chip: ChipRecord, index: Int, t: TileRecord, number: Int, in_turn: Int) -> Any:
    """Status with which a request of tile `index`, whose record is `t`, has ended; others: see `carry_out_entry`."""
    request = t.noc_request[number]
    end = _place(chip, request.noc, request.other, request.end)
    if end == _NOWHERE:
        return np.int64(LEFT)
    start: Int = np.int64(_NOWHERE)
    multicast = (request.control & q.MULTICAST_BIT) != 0
    if multicast:
        start = _place(chip, request.noc, request.other >> q.CORNER_LSB, request.start)
        if not _survey(chip, index, request, start, end):
            return np.int64(LEFT)
    node = np.int64(chip.place_kind[end])
    if node not in (TENSIX, DRAM) or not _is_sound(t, request, node):
        return np.int64(LEFT)
    if request.kind == q.INLINE and node == TENSIX and request.to_register == 0:
        open_choice(t, q.INLINE_TO_L1, request.target)
    word = chip.tiles + index * _TILE_BYTES + number * _REQUEST_BYTES + _WORD
    other = np.int64(chip.place_index[end])
    if request.kind == q.READ:
        return _read(chip, index, request, node, other, word, in_turn)
    source = word
    if request.kind == q.WRITE and request.from_register != 0:
        status, value = _register(chip, index, index, DEVICE_LOAD, request.source, np.int64(0), in_turn)
        if status != DONE:
            return status
        request.word = value
    elif request.kind == q.WRITE:
        source = l1_address(chip, index) + request.source
        if request.masked != 0:
            source = l1_address(chip, index) + (request.source & ~(q.BLOCK - 1))
        elif request.to_register != 0 and node == TENSIX:
            move_bytes(word, source, request.byte_count)
    if multicast:
        first, last = _mirrored(start, request.noc), _mirrored(end, request.noc)
        return _multicast(chip, index, request, first, last, source, in_turn)
    if node == TENSIX:
        return _change_tile(chip, index, t, request, other, source, in_turn)
    status = _write_dram(chip, request, other, source)
    if status == DONE:
        request.responses = 1
    return status


@kernel
def carry_out(chip: ChipRecord, index: Int) -> bool:
    """Carry out the pending request of a tile whose turn it is; False when Python has to (clock/clocks.py)."""
    t = tile_of(chip, index)
    request = t.noc_request[t.noc_pending - 1]
    status = _carry(chip, index, t, np.int64(t.noc_pending) - 1, 1)
    if status == WAIT and request.responses == 0:
        chip.waiting[index] = 1
    elif status == DONE:
        chip.waiting[index] = 0
    else:
        if status == REFUSED:
            tile_of(chip, chip.noc_end).fault_code = 0  # Python asks again, and says why
        elif status == NOT_COMPILED:
            tile_of(chip, chip.noc_end).needs_place = 0
        return False
    request.status = status
    request.state = ENDED
    t.noc_pending = 0
    chip.status[index] = np.uint8(chip.status[index] | ATTENDED)
    return True


def carry_out_entry(chip: ChipRecord, index: Int, number: Int, in_turn: Int) -> AnyInt:
    """Carry out a request of a tile.

    Args:
        in_turn: 1 in the turn of one of the tile's agents, 0 between two clocks.

    Returns:
        DONE; WAIT; REFUSED or NOT_COMPILED, of a register of tile `noc_end`; LEFT, nothing has been done.
    """
    return _carry(chip, index, tile_of(chip, index), number, in_turn)
