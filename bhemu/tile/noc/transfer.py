"""Carrying out NoC requests, and the counters that they move (tile N16 to N26).

A request takes no time (N26): data move and both ends have counted before the store that starts it returns. `start` is
what that store does. When another tile takes part, the host carries the request out between two attempts at the store.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.errors import Unimplemented
from bhemu.machine.agents import NOC
from bhemu.machine.faults import DONE, REFUSED, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.tensix.mmio import mmio_load, mmio_store
from bhemu.tile.interrupts import notice
from bhemu.tile.noc import niu_registers as r
from bhemu.tile.noc.atomic import apply_atomic
from bhemu.tile.noc.request import (
    ATOMIC,
    BLOCK,
    BYTE_ENABLES,
    CONNECTED,
    ENABLED_BYTES,
    ID_LSB,
    INLINE,
    KINDS,
    MULTICAST_BIT,
    NO_ANSWER,
    READ,
    RESPONSE,
    RESPONSES,
    WORD,
    WRITE,
    ask_host,
    check,
    check_kind,
    is_own,
    is_register,
    kind_of,
    length_of,
    take_answer,
    word_of,
)

FLIT: Final = 64
"""Bytes of a data word of the NoC, which counters count."""

ELSEWHERE: Final = tuple(
    fault(
        f"noc.elsewhere.{noc}.{kind.replace(' ', '-')}",
        Unimplemented,
        f"NoC {noc} {kind} between this tile, address {{3:#x}}, and tile ({{0}}, {{1}}), address {{2:#x}}: "
        "NoC commands come with the chip, this tile is alone",
        remedy="a lone tile reaches only itself: use the coordinates that ID_LOGICAL (NIU + 0x148) shows",
        rule="tile N16",
    )
    for noc in range(2)
    for kind in KINDS
)
MULTICAST: Final = fault(
    "noc.multicast",
    Unimplemented,
    "multicast {0} on NoC {1} to the rectangle {2:#x}: NoC commands come with the chip, this tile is alone",
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
NOT_OWN: Final = fault(
    "noc.own-side",
    Unimplemented,
    "the initiator's own side of a NoC request is at ({0}, {1}), which is another tile",
    remedy="a read and an atomic return to their own tile, a write takes its data from it: set RET_ADDR_HI or "
    "TARG_ADDR_HI to ID_LOGICAL",
    rule="tile N16",
)


@kernel
def _count(t, noc, counter, amount=1):
    t.niu_counter[noc, counter] = np.uint32((np.int64(t.niu_counter[noc, counter]) + amount) & 0xFFFFFFFF)


@kernel
def _count_outstanding(t, noc, transaction, responses):
    """A request that wants a response, and the responses to it; back at zero is remembered (N20, N24)."""
    counter = r.OUTSTANDING + transaction
    value = (np.int64(t.niu_counter[noc, counter]) + 1) & 0xFF
    for _ in range(responses):
        if value == 1:
            t.niu_rtz[noc] = np.uint32(np.int64(t.niu_rtz[noc]) | 1 << transaction)
        value = (value - 1) & 0xFF
    t.niu_counter[noc, counter] = np.uint32(value)
    notice(t)


@kernel
def count_at_initiator(t, noc, initiator, responses):
    """Move the counters of the tile that has started a request and has got its responses (N20).

    Args:
        responses: how many tiles have answered, should the request want answers: 1, or the receivers of a multicast.
    """
    kind = kind_of(t, noc, initiator)
    control = word_of(t, noc, initiator, r.CTRL)
    transaction = (word_of(t, noc, initiator, r.PACKET_TAG) >> ID_LSB) & (r.TRANSACTION_IDS - 1)
    flits = (length_of(t, noc, initiator) + FLIT - 1) // FLIT
    answers = kind == READ or (control & RESPONSE) != 0
    _count(t, noc, r.COMMANDS)
    if kind == READ:
        _count(t, noc, r.READS_STARTED)
        _count(t, noc, r.READS_SENT)
        _count(t, noc, r.READ_RESPONSES, responses)
        _count(t, noc, r.READ_WORDS, flits)
    elif kind == ATOMIC:
        if answers:
            _count(t, noc, r.ATOMICS_STARTED)
            _count(t, noc, r.ATOMIC_RESPONSES, responses)
        _count(t, noc, r.ATOMICS_SENT if answers else r.POSTED_ATOMICS_SENT)
    else:
        _count(t, noc, r.WRITES_STARTED if answers else r.POSTED_WRITES_STARTED)
        _count(t, noc, r.WRITES_SENT if answers else r.POSTED_WRITES_SENT)
        if kind == WRITE:
            _count(t, noc, r.WRITE_WORDS if answers else r.POSTED_WRITE_WORDS, flits)
        if answers:
            _count(t, noc, r.WRITE_ACKNOWLEDGEMENTS, responses)
    if answers:
        _count_outstanding(t, noc, transaction, responses)


@kernel
def count_at_target(t, target, noc, initiator):
    """Move the counters of the tile that has served a request (N20); `t` is the initiator's."""
    kind = kind_of(t, noc, initiator)
    flits = (length_of(t, noc, initiator) + FLIT - 1) // FLIT
    answers = (word_of(t, noc, initiator, r.CTRL) & RESPONSE) != 0
    if kind == READ:
        _count(target, noc, r.REQUESTS_ACCEPTED)
        _count(target, noc, r.READS_RECEIVED)
        _count(target, noc, r.READ_RESPONSES_SENT)
        _count(target, noc, r.READ_WORDS_SENT, flits)
    elif kind == ATOMIC:
        _count(target, noc, r.REQUESTS_ACCEPTED)
        _count(target, noc, r.ATOMICS_RECEIVED if answers else r.POSTED_ATOMICS_RECEIVED)
        if answers:
            _count(target, noc, r.ATOMIC_RESPONSES_SENT)
    else:
        _count(target, noc, r.WRITES_BEGUN if answers else r.POSTED_WRITES_BEGUN)
        _count(target, noc, r.WRITES_RECEIVED if answers else r.POSTED_WRITES_RECEIVED)
        _count(
            target,
            noc,
            r.WRITE_WORDS_RECEIVED if answers else r.POSTED_WRITE_WORDS_RECEIVED,
            flits if kind == WRITE else 1,
        )
        if answers:
            _count(target, noc, r.ACKNOWLEDGEMENTS_SENT)


@kernel
def _copy_l1(source, destination, first, to, size):
    """Bytes from one L1 to another, or inside one: as if all were read before the first is written."""
    if to <= first:
        for i in range(size):
            destination.l1[to + i] = source.l1[first + i]
    else:
        for i in range(size - 1, -1, -1):
            destination.l1[to + i] = source.l1[first + i]


@kernel
def _copy(source, destination, first, to, size):
    """Status of a copy in which registers may take part, as one word."""
    if not is_register(first) and not is_register(to):
        _copy_l1(source, destination, first, to, size)
        return DONE
    if is_register(first):
        status, value = mmio_load(source, NOC, first)
        if status != DONE:
            return status
    else:
        value = np.int64(0)
        for i in range(WORD):
            value |= np.int64(source.l1[first + i]) << (8 * i)
    if is_register(to):
        return mmio_store(destination, NOC, to, value)
    for i in range(WORD):
        destination.l1[to + i] = np.uint8((value >> (8 * i)) & 0xFF)
    return DONE


@kernel
def _write_enabled_bytes(t, target, noc, initiator):
    """A write whose bytes are selected by a mask of 64 bits; both addresses count from a multiple of 16 (N19)."""
    mask_low, mask_high = word_of(t, noc, initiator, r.LENGTH), word_of(t, noc, initiator, r.LENGTH_HIGH)
    first = word_of(t, noc, initiator, r.TARGET_LO) & ~(BLOCK - 1)
    to = word_of(t, noc, initiator, r.RETURN_LO) & ~(BLOCK - 1)
    for step in range(ENABLED_BYTES):
        i = step if to <= first else ENABLED_BYTES - 1 - step  # the two may overlap
        mask = mask_low if i < 32 else mask_high
        if (mask >> (i & 31)) & 1:
            target.l1[to + i] = t.l1[first + i]


@kernel
def _write_inline(t, target, noc, initiator):
    """AT_DATA to a register; in L1 to those of 16 bytes that the low or the high half of AT_LEN_BE selects (N16)."""
    address, data = word_of(t, noc, initiator, r.TARGET_LO), word_of(t, noc, initiator, r.DATA)
    if is_register(address):
        return mmio_store(target, NOC, address, data)
    mask = word_of(t, noc, initiator, r.LENGTH)
    for i in range(BLOCK):
        if ((mask >> i) | (mask >> (BLOCK + i))) & 1:
            target.l1[(address & ~(BLOCK - 1)) + i] = np.uint8((data >> (8 * (i & 3))) & 0xFF)
    return DONE


@kernel
def serve(t, target, noc, initiator):
    """Move the data of a sound request between the initiator's tile `t` and the tile `target`, which counts it.

    Returns:
        A status; when it is not DONE, nothing has changed.
    """
    kind = kind_of(t, noc, initiator)
    there, back = word_of(t, noc, initiator, r.TARGET_LO), word_of(t, noc, initiator, r.RETURN_LO)
    control = word_of(t, noc, initiator, r.CTRL)
    status = np.int64(DONE)
    if kind == READ:
        status = _copy(target, t, there, back, length_of(t, noc, initiator))
    elif kind == ATOMIC:
        code, data = word_of(t, noc, initiator, r.LENGTH), word_of(t, noc, initiator, r.DATA)
        old = apply_atomic(target, there, code, data)
        if control & RESPONSE:
            t.l1_u32[back >> 2] = np.uint32(old)
    elif kind == INLINE:
        status = _write_inline(t, target, noc, initiator)
    elif control & BYTE_ENABLES and not is_register(back):
        _write_enabled_bytes(t, target, noc, initiator)
    else:
        status = _copy(t, target, there, back, length_of(t, noc, initiator))
    if status == DONE:
        count_at_target(t, target, noc, initiator)
    return status


@kernel
def execute(t, target, noc, initiator):
    """Carry out a sound request of tile `t` at the single tile `target`, which may be the same; returns a status."""
    status = serve(t, target, noc, initiator)
    if status == DONE:
        count_at_initiator(t, noc, initiator, 1)
    return status


@kernel
def _end_away(t, noc, initiator, status):
    """The host has carried a request out, or has not: what remains to be done here; returns a status."""
    if status == DONE:
        count_at_initiator(t, noc, initiator, word_of(t, noc, initiator, RESPONSES * WORD))
    elif status == REFUSED:
        return refuse(t, AWAY)
    return status


@kernel
def start(t, noc, initiator):
    """What a store of 1 to CMD_CTRL does; returns a status, and has changed nothing when it is not DONE.

    What only this tile takes part in is carried out here. For the rest a chip is asked, and the store made again; a
    tile without a chip refuses it.
    """
    answer = take_answer(t, noc, initiator)
    if answer != NO_ANSWER:
        return _end_away(t, noc, initiator, answer)
    if check_kind(t, noc, initiator) != DONE:
        return REFUSED
    control = word_of(t, noc, initiator, r.CTRL)
    target, back = word_of(t, noc, initiator, r.TARGET_HI), word_of(t, noc, initiator, r.RETURN_HI)
    kind = kind_of(t, noc, initiator)
    there = back if kind == WRITE else target
    connected = word_of(t, noc, initiator, CONNECTED * WORD) != 0
    multicast = (control & MULTICAST_BIT) != 0
    if multicast and not connected:
        return refuse(t, MULTICAST, control, noc, there)
    if not connected and check(t, noc, initiator) != DONE:
        return REFUSED
    if kind != INLINE and (kind != ATOMIC or control & RESPONSE):
        own = target if kind == WRITE else back
        if not (multicast and kind == READ) and not is_own(t, noc, own):
            return refuse(t, NOT_OWN, own & 0x3F, (own >> 6) & 0x3F)
    if multicast or not is_own(t, noc, there):
        if connected:
            return ask_host(t, noc, initiator, there)
        addresses = word_of(t, noc, initiator, r.TARGET_LO), word_of(t, noc, initiator, r.RETURN_LO)
        away, here = (addresses[1], addresses[0]) if kind == WRITE else addresses
        return refuse(t, ELSEWHERE[len(KINDS) * noc + kind], there & 0x3F, (there >> 6) & 0x3F, away, here)
    if connected and check(t, noc, initiator) != DONE:
        return REFUSED
    return execute(t, t, noc, initiator)


def start_entry(t, noc, initiator):
    """`start` for the table of handlers."""
    return start(t, noc, initiator)


def atomic_entry(t, address, code, data):
    """`apply_atomic` at the tile that an atomic is sent to, for a chip: the operation is known, the address sound."""
    return apply_atomic(t, address, code, data)
