"""Carrying out NoC requests, and the counters that they change (tile N16 to N26).

A request takes no time (N26): data move and both ends have counted before the store that starts it has ended. `start`
is what that store does. When another node takes part, the store leaves the request pending, the chip carries it out
(chip/noc), and `end_request` is the rest of the store.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.errors import Unimplemented
from bhemu.isa import niu as r
from bhemu.machine.agents import CORES, NOC
from bhemu.machine.bytes import move_bytes, record_address
from bhemu.machine.dispatch import DEVICE_LOAD, DEVICE_STORE, NOT_COMPILED, access_device, handlers_of
from bhemu.machine.faults import DONE, REFUSED, REQUEST_PENDING, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.noc_state import ENDED, FRAMES, IDLE, NOC_REQUEST, PENDING
from bhemu.machine.state import TILE, offset_of
from bhemu.machine.types import AnyInt, Bool, Int, NocRequestRecord, TileRecord
from bhemu.tile.noc.atomic import apply_atomic
from bhemu.tile.noc.counters import INITIATOR, TARGET, count, count_responses
from bhemu.tile.noc.request import (
    ADDRESS_BITS,
    ATOMIC,
    BLOCK,
    COORDINATE_BITS,
    ENABLED_BYTES,
    INITIATORS,
    INLINE,
    KINDS,
    LONGEST_PACKET,
    MULTICAST_BIT,
    READ,
    WORD,
    WRITE,
    check_request,
    decode,
)
from bhemu.tile.noc.soundness import check

_L1: Final = offset_of(TILE, "l1")
_WORD: Final = offset_of(NOC_REQUEST, "word")

ELSEWHERE: Final = tuple(
    fault(
        f"noc.elsewhere.{noc}.{kind.replace(' ', '-')}",
        Unimplemented,
        f"NoC {noc} {kind} between this tile, address {{3:#x}}, and tile ({{0}}, {{1}}), address {{2:#x}}: "
        "NoC commands need a chip, and this tile has none",
        remedy="a tile without a chip reaches only itself: use the coordinates that ID_LOGICAL (NIU + 0x148) shows",
        rule="tile N16",
    )
    for noc in range(2)
    for kind in KINDS
)
MULTICAST: Final = fault(
    "noc.multicast",
    Unimplemented,
    "multicast {0} on NoC {1} to the rectangle {2:#x}: NoC commands need a chip, and this tile has none",
    remedy="clear bit 5 of CTRL",
    rule="tile N21",
)
AWAY: Final = fault(
    "noc.away",
    Unimplemented,
    "the chip has refused a NoC request",
    remedy="the exception that the host raises says why",
    rule="tile N16",
)


@kernel
def _end_at_initiator(t: TileRecord, q: NocRequestRecord, number: Int, responses: Int) -> None:
    """Count a request that has ended, and its responses; one that was split leaves its last packet in the registers."""
    count(t, q, INITIATOR)
    count_responses(t, q, q.packets, responses)
    passed = (q.packets - 1) * LONGEST_PACKET  # N17
    if passed != 0:
        words = t.niu_initiator[q.noc, number % INITIATORS]
        words[r.TARGET_LO // WORD] = np.uint32((np.int64(words[r.TARGET_LO // WORD]) + passed) & ADDRESS_BITS)
        words[r.RETURN_LO // WORD] = np.uint32((np.int64(words[r.RETURN_LO // WORD]) + passed) & ADDRESS_BITS)
        words[r.LENGTH // WORD] = np.uint32(q.byte_count - passed)


# --- ends in tiles, for a tile alone and for a chip (chip/noc/transfer.py) --------------------------------------------


@kernel
def _l1_of(t: TileRecord) -> AnyInt:
    """Where a tile's L1 is in this process."""
    return record_address(t) + _L1


@kernel
def word_of(q: NocRequestRecord) -> AnyInt:
    """Where the word of a request is in this process."""
    return record_address(q) + _WORD


@kernel
def _register(t: TileRecord, place: Int, address: Int, value: Int) -> tuple[Int, Int]:
    """(status, value) of an access to a register of a tile; `place`: DEVICE_LOAD or DEVICE_STORE."""
    if t.handlers == 0:
        t.needs_place = place
        return np.int64(NOT_COMPILED), np.int64(0)
    return access_device(t, handlers_of(t), place, NOC, address, value, WORD)


@kernel
def load(t: TileRecord, q: NocRequestRecord) -> tuple[Int, AnyInt]:
    """(status, address in this process) of what a request carries, from tile `t`: its own word, a register's, or L1."""
    if q.kind in (INLINE, ATOMIC):
        return np.int64(DONE), word_of(q)
    if q.from_register != 0:
        status, value = _register(t, DEVICE_LOAD, q.source, np.int64(0))
        if status == DONE:
            q.word = value
        return status, word_of(q)
    source: AnyInt = _l1_of(t) + (q.source & ~(BLOCK - 1) if q.masked != 0 else np.int64(q.source))
    if q.to_register != 0 and q.byte_count == WORD:
        move_bytes(word_of(q), source, WORD)
    return np.int64(DONE), source


@kernel
def selects(q: NocRequestRecord, i: Int) -> AnyInt:
    """True when AT_LEN_BE selects byte i of the block: by 64 bits, in an inline write by either half of 32 (N16)."""
    if q.kind == INLINE:
        return ((q.length | q.length >> BLOCK) >> i) & 1
    return (q.length >> i) & 1


@kernel
def store(t: TileRecord, q: NocRequestRecord, source: Int) -> Int:
    """Status of storing at tile `t` what a read, write or inline write carries, from an address in this process."""
    if q.to_register != 0:
        return _register(t, DEVICE_STORE, q.target, q.word & ADDRESS_BITS)[0]
    if q.kind != INLINE and q.masked == 0:
        move_bytes(_l1_of(t) + q.target, source, q.byte_count)
        return np.int64(DONE)
    to = _l1_of(t) + (q.target & ~(BLOCK - 1))  # addresses of selected bytes count from a multiple of 16 (N19)
    size, step = (BLOCK, WORD) if q.kind == INLINE else (ENABLED_BYTES, ENABLED_BYTES)
    for n in range(size):
        i = n if to <= source else size - 1 - n  # the two may overlap
        if selects(q, i):
            move_bytes(to + i, source + i % step, 1)
    return np.int64(DONE)


@kernel
def change(own: TileRecord, q: NocRequestRecord, target: TileRecord, source: Int) -> Int:
    """Carry out a write, inline write or atomic of tile `own` at tile `target`, or end its read there.

    Args:
        source: address in this process of what is written.

    Returns:
        A status; when it is not DONE, nothing has changed.
    """
    if q.kind != ATOMIC:
        return store(target, q, source)
    old = apply_atomic(target, q.target & ADDRESS_BITS, q.length & ADDRESS_BITS, q.operand)
    if q.answers != 0:
        own.l1_u32[(q.result & ADDRESS_BITS) >> 2] = np.uint32(old)
    return np.int64(DONE)


# --- the store that starts a request ----------------------------------------------------------------------------------


@kernel
def ask_chip(t: TileRecord, number: Int) -> AnyInt:
    """Leave request `number` to the chip; the store that has started it waits for its end."""
    q = t.noc_request[number]
    q.state = PENDING
    q.agent, q.started = t.now_agent, t.now_round
    q.responses = 0
    t.noc_pending = 1 + number
    return REQUEST_PENDING


@kernel
def end_request(t: TileRecord, number: Int) -> AnyInt:
    """Status of the store that has started request `number`, now that the chip has carried it out, or has not."""
    q = t.noc_request[number]
    q.state = IDLE
    if q.status == DONE and number < FRAMES:
        _end_at_initiator(t, q, number, q.responses)
    elif q.status == REFUSED:
        return refuse(t, AWAY)
    return q.status


@kernel
def has_ended(t: TileRecord, q: NocRequestRecord) -> Bool:
    """True when the store in progress is repeated because its request has ended.

    Cores do not repeat their own store (`_end_request` of tile/schedule.py). An instruction that does more than
    the store is executed again: a word of the coprocessor, an access by the debug interface, or the host's. A request
    that has put its own core into reset belongs to another round or agent.
    """
    if q.state != ENDED or q.agent != t.now_agent:
        return False
    return q.agent >= CORES or q.started == t.now_round


def start(t: TileRecord, noc: Int, initiator: Int) -> AnyInt:
    """What a store of 1 to CMD_CTRL does; returns a status, and has moved no data unless it is DONE.

    Requests of the tile to itself are carried out here. The chip is asked for the others: REQUEST_PENDING; a tile
    without a chip refuses it.
    """
    number = INITIATORS * noc + initiator
    q = t.noc_request[number]
    q.noc = noc  # written before it is read: see `_layout` of machine/state.py
    if has_ended(t, q):
        return end_request(t, number)
    here = np.int64(t.niu_place[noc, 0]) & COORDINATE_BITS
    decode(t, q, noc, initiator)
    if check_request(t, q, here) != DONE:
        return REFUSED
    multicast = (q.control & MULTICAST_BIT) != 0
    if t.noc_connected != 0 and (multicast or q.end != here):
        return ask_chip(t, number)
    if multicast:
        return refuse(t, MULTICAST, q.control, noc, q.other)
    if check(t, q) != DONE:
        return REFUSED
    if q.end != here:
        return _refuse_elsewhere(t, q)
    status, source = load(t, q)
    if status == DONE:
        status = change(t, q, t, source)
    if status == DONE:
        count(t, q, TARGET)
        _end_at_initiator(t, q, number, np.int64(1))
    return status


@kernel
def _refuse_elsewhere(t: TileRecord, q: NocRequestRecord) -> Int:
    away, here = q.target, q.source
    if q.kind == READ:
        away, here = here, away
    elif q.kind != WRITE:
        here = q.result
    x, y = q.other & 0x3F, (q.other >> 6) & 0x3F
    return refuse(t, ELSEWHERE[len(KINDS) * q.noc + q.kind], x, y, away & ADDRESS_BITS, here & ADDRESS_BITS)
