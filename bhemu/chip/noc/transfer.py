"""NoC requests between Tensix tiles and DRAM in compiled code (tile N16 to N26).

The common ones are carried out here: bytes of L1 and DRAM, atomics, multicasts of bytes. Registers, other nodes and
whatever may have to be refused are left to chip/noc/network.py, which decides everything and gives the reasons.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg"

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.chip.clock.tiles import can_react, l1_address, tile_of, touch
from bhemu.chip.coordinates import HEIGHT, RAW_ROWS, WIDTH
from bhemu.chip.nodes.dram import CHANNEL_BYTES, PAGE, PAGE_BITS
from bhemu.chip.state import DRAM, PLACES, TENSIX, X_LSB
from bhemu.machine.bytes import move_bytes
from bhemu.machine.device_state import ROUTER_CFG_1, ROUTER_CFG_3
from bhemu.machine.faults import DONE
from bhemu.machine.kernel import kernel
from bhemu.machine.state import L1_SIZE
from bhemu.tile.noc import niu_registers as r
from bhemu.tile.noc import request as q
from bhemu.tile.noc.transfer import count_at_target, serve

_COORDINATE: Final = 63
_NOWHERE: Final = -1
INCLUDE_SOURCE: Final = 1 << 17
"""Bit of CTRL: a multicast goes to its sender, too (N14)."""
DRAM_READ_ALIGNMENT: Final = 64
"""What both addresses of a read from DRAM must agree modulo (N19)."""
CORNER_LSB: Final = 12
"""Where the coordinate of a multicast's first corner begins (N21)."""


@kernel
def _mirrored(place, noc):
    """Physical place (x << 8 | y) of raw coordinates of a NoC, and back (N1)."""
    if noc == 0:
        return place
    return ((WIDTH - 1 - (place >> X_LSB)) << X_LSB) | (HEIGHT - 1 - (place & 0xFF))


@kernel
def _place(chip, t, noc, initiator, coordinate, corner):
    """Physical place of the other end, or of a multicast's corner; _NOWHERE where chip/noc/network.py has to look."""
    x, y = coordinate & _COORDINATE, (coordinate >> 6) & _COORDINATE
    if x >= PLACES or y >= PLACES:
        return np.int64(_NOWHERE)
    if chip.named != 0:
        return np.int64(chip.place[x, y]) if y >= RAW_ROWS else np.int64(_NOWHERE)
    raw = q.word_of(t, noc, initiator, (q.START if corner else q.END) * q.WORD)
    x, y = raw & _COORDINATE, (raw >> 6) & _COORDINATE
    if x >= WIDTH or y >= HEIGHT:
        return np.int64(_NOWHERE)
    return _mirrored((x << X_LSB) | y, noc)


@kernel
def _before_write(chip, index, other, clock):
    """L1 of tile `other` is about to be changed by tile `index`."""
    if other != index and (chip.active[other] != 0 or can_react(tile_of(chip, other))):
        touch(chip, other, clock + (1 if other < index else 0))


@kernel
def _dram_ready(chip, channel, address, size):
    """True when all pages exist."""
    for page in range(address >> PAGE_BITS, ((address + size - 1) >> PAGE_BITS) + 1):
        if chip.page[channel, page] == 0:
            return False
    return True


@kernel
def _copy_dram(chip, channel, address, local, size, writes):
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
def _is_plain(there, back, size, limit):
    """True when both ends of a copy are memory: L1 at the own end, `limit` bytes of it at the other."""
    return size > 0 and size <= q.LONGEST_PACKET and there + size <= limit and back + size <= L1_SIZE


@kernel
def _copy(chip, index, noc, initiator, place):
    """A read or write of all bytes; False when nothing has been done."""
    t = tile_of(chip, index)
    kind = q.kind_of(t, noc, initiator)
    target, back = q.word_of(t, noc, initiator, r.TARGET_LO), q.word_of(t, noc, initiator, r.RETURN_LO)
    size = q.length_of(t, noc, initiator)
    here, there = (target, back) if kind == q.WRITE else (back, target)
    node = np.int64(chip.place_kind[place])
    other = np.int64(chip.place_index[place])
    alignment = DRAM_READ_ALIGNMENT if node == DRAM and kind == q.READ else q.BLOCK
    limit = CHANNEL_BYTES if node == DRAM else L1_SIZE
    if (here - there) & (alignment - 1) or not _is_plain(there, here, size, limit):
        return False
    local = l1_address(chip, index) + here
    if node == TENSIX:
        away = l1_address(chip, other) + there
        if kind == q.READ:
            move_bytes(local, away, size)
        else:
            _before_write(chip, index, other, chip.local[index])
            move_bytes(away, local, size)
        count_at_target(t, tile_of(chip, other), noc, initiator)
        return True
    if node == DRAM and (kind == q.READ or _dram_ready(chip, other, there, size)):
        _copy_dram(chip, other, there, local, size, kind == q.WRITE)
        return True
    return False


@kernel
def _atomic(chip, index, noc, initiator, place):
    """An atomic at one other tile; False when nothing has been done."""
    t = tile_of(chip, index)
    target, back = q.word_of(t, noc, initiator, r.TARGET_LO), q.word_of(t, noc, initiator, r.RETURN_LO)
    if chip.place_kind[place] != TENSIX or target & 3 or target >= L1_SIZE:
        return False
    answers = (q.word_of(t, noc, initiator, r.CTRL) & q.RESPONSE) != 0
    if answers and (back & 3 or back >= L1_SIZE):
        return False
    other = np.int64(chip.place_index[place])
    _before_write(chip, index, other, chip.local[index])
    return serve(t, tile_of(chip, other), noc, initiator) == DONE


@kernel
def _next(position, end, size):
    """The coordinate behind one on the way to the end of a rectangle, or _NOWHERE behind the end (N21)."""
    if position == end:
        return _NOWHERE
    return position + 1 if position + 1 < size else 0


@kernel
def _multicast(chip, index, noc, initiator, start, end, carries):
    """Bytes to the tiles of a rectangle; returns how many there are, or _NOWHERE when chip/noc/network.py has to look.

    Args:
        start, end: physical places of the corners.
        carries: False to look only.
    """
    t = tile_of(chip, index)
    include = q.word_of(t, noc, initiator, r.CTRL) & INCLUDE_SOURCE
    columns, rows = np.int64(t.niu_config[noc, ROUTER_CFG_1]), np.int64(t.niu_config[noc, ROUTER_CFG_3])
    first, last = _mirrored(start, noc), _mirrored(end, noc)
    here, there = q.word_of(t, noc, initiator, r.TARGET_LO), q.word_of(t, noc, initiator, r.RETURN_LO)
    size = q.length_of(t, noc, initiator)
    count = 0
    y = first & 0xFF
    while y != _NOWHERE:
        x = first >> X_LSB
        while x != _NOWHERE:
            if not ((columns >> x) & 1 or (rows >> y) & 1):
                place = _mirrored((x << X_LSB) | y, noc)
                other = np.int64(chip.place_index[place])
                if chip.place_kind[place] != TENSIX:
                    return np.int64(_NOWHERE)
                if other != index or include:
                    count += 1
                    if carries:
                        _before_write(chip, index, other, chip.local[index])
                        move_bytes(l1_address(chip, other) + there, l1_address(chip, index) + here, size)
                        count_at_target(t, tile_of(chip, other), noc, initiator)
            x = _next(x, last >> X_LSB, WIDTH)
        y = _next(y, last & 0xFF, HEIGHT)
    return np.int64(count)


@kernel
def _carry_multicast(chip, index, noc, initiator, coordinates, place):
    """A multicast of all bytes; returns how many tiles have answered, or _NOWHERE when nothing has been done."""
    t = tile_of(chip, index)
    size = q.length_of(t, noc, initiator)
    here, there = q.word_of(t, noc, initiator, r.TARGET_LO), q.word_of(t, noc, initiator, r.RETURN_LO)
    start = _place(chip, t, noc, initiator, coordinates >> CORNER_LSB, 1)
    if start == _NOWHERE or q.kind_of(t, noc, initiator) != q.WRITE or q.word_of(t, noc, initiator, r.EXCLUDE) != 0:
        return np.int64(_NOWHERE)
    for corner in (start, place):
        if chip.place_kind[corner] != TENSIX:
            return np.int64(_NOWHERE)
    if (here - there) & (q.BLOCK - 1) or not _is_plain(there, here, size, L1_SIZE):
        return np.int64(_NOWHERE)
    if q.word_of(t, noc, initiator, r.CTRL) & INCLUDE_SOURCE and abs(here - there) < size:
        return np.int64(_NOWHERE)  # the own copy would change what the others get
    if _multicast(chip, index, noc, initiator, start, place, False) == _NOWHERE:
        return np.int64(_NOWHERE)
    return _multicast(chip, index, noc, initiator, start, place, True)


@kernel
def carry_out(chip, index, noc, initiator):
    """Carry out the request that a tile's initiator holds, if it is one of the common ones.

    Returns:
        False when nothing has been done.
    """
    t = tile_of(chip, index)
    kind = q.kind_of(t, noc, initiator)
    control = q.word_of(t, noc, initiator, r.CTRL)
    middle = q.word_of(t, noc, initiator, r.TARGET_MID) | q.word_of(t, noc, initiator, r.RETURN_MID)
    if kind == q.INLINE or middle != 0 or (kind == q.WRITE and control & q.BYTE_ENABLES):
        return False
    coordinates = q.word_of(t, noc, initiator, r.RETURN_HI if kind == q.WRITE else r.TARGET_HI)
    place = _place(chip, t, noc, initiator, coordinates, 0)
    if place == _NOWHERE:
        return False
    answers = np.int64(1)
    if control & q.MULTICAST_BIT:
        answers = _carry_multicast(chip, index, noc, initiator, coordinates, place)
        if answers == _NOWHERE:
            return False
    elif kind == q.ATOMIC:
        if not _atomic(chip, index, noc, initiator, place):
            return False
    elif not _copy(chip, index, noc, initiator, place):
        return False
    t.niu_initiator[noc, initiator, q.ANSWER] = np.uint32(1 + DONE)
    t.niu_initiator[noc, initiator, q.RESPONSES] = np.uint32(answers)
    return True
