"""NoC requests of one initiator: reads, writes, inline writes, atomics, and the counters they move (tile N14 to N26).

A request takes no time (N26): data move and both ends have counted before the store that starts it returns. `start` is
what that store does. `check` says whether a request is sound, `execute` carries it out between two tiles; neither asks
where the tiles are, so that a chip can call them with two of its own.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.errors import NonContractualBehavior, UndefinedBehavior, Unimplemented
from bhemu.machine.agents import NOC
from bhemu.machine.device_state import COLUMN_MASK, NIU_CFG_0, ROW_MASK, X_TABLE, Y_TABLE
from bhemu.machine.faults import DONE, REFUSED, fault, open_choice, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.state import L1_SIZE
from bhemu.tensix.mmio import mmio_load, mmio_store
from bhemu.tile import niu_registers as r
from bhemu.tile.interrupts import notice
from bhemu.tile.noc_atomic import apply_atomic, is_known_atomic

READ: Final = 0
WRITE: Final = 1
INLINE: Final = 2
ATOMIC: Final = 3
KINDS: Final = ("read", "write", "inline write", "atomic")

# Bits of CTRL (N14)
_ATOMIC: Final = 1
_WRITE: Final = 2
_BYTE_ENABLES: Final = 4
_INLINE: Final = 8
_RESPONSE: Final = 16
_MULTICAST: Final = 32
_ACCUMULATE: Final = 1 << 31
_RESERVED: Final = 0x7FC1C00
# Bits of PACKET_TAG
_ID_LSB: Final = 10
_HEADER_STORE: Final = 1 << 9
_TO_OVERLAY: Final = 1 << 6

MMIO_FIRST: Final = 0xFF000000
LONGEST_PACKET: Final = 16384
WORD: Final = 4
BLOCK: Final = 16
"""Source and destination in L1 must agree modulo this."""
ENABLED_BYTES: Final = 64
FLIT: Final = 64
_NIU_FIRST: Final = 0xFFB20000
_NIU_END: Final = 0xFFB40000
_COORDINATE_BITS: Final = 0xFFF
_TRANSLATE: Final = 1 << 14

ELSEWHERE: Final = tuple(
    fault(
        f"noc.elsewhere.{noc}.{kind.replace(' ', '-')}",
        Unimplemented,
        f"NoC {noc} {kind} between this tile, address {{3:#x}}, and tile ({{0}}, {{1}}), address {{2:#x}}: NoC commands "
        "come with the chip, this tile is alone",
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
NOT_OWN: Final = fault(
    "noc.own-side",
    Unimplemented,
    "the initiator's own side of a NoC request is at ({0}, {1}), which is another tile",
    remedy="a read and an atomic return to their own tile, a write takes its data from it: set RET_ADDR_HI or "
    "TARG_ADDR_HI to ID_LOGICAL",
    rule="tile N16",
)
BAD_CONTROL: Final = fault(
    "noc.control",
    UndefinedBehavior,
    "CTRL is {0:#x}: a request is a read, a write (2) or an atomic (1), and bits 12:10 and 26:18 are zero",
    remedy="read 0x2090, write 0x2092, inline write 0x209a, atomic 0x2091",
    rule="tile N14",
)
L1_ACCUMULATE: Final = fault(
    "noc.accumulate",
    NonContractualBehavior,
    "CTRL is {0:#x}: accumulation in L1 cannot be used safely on Blackhole (hardware bug)",
    remedy="clear bit 31; use an atomic or the packer's L1 accumulation",
    rule="tile N14, E23",
)
TAG: Final = fault(
    "noc.tag",
    Unimplemented,
    "PACKET_TAG is {0:#x}: header store (bit 9) and delivery to overlay streams (bit 6) are not built",
    remedy="use the transaction id (bits 13:10) alone",
    rule="tile N13, E27",
)
LENGTH: Final = fault(
    "noc.length",
    UndefinedBehavior,
    "a NoC request of no bytes",
    remedy="set AT_LEN_BE to 1 to 16384",
    rule="tile N17",
)
TOO_LONG: Final = fault(
    "noc.too-long",
    Unimplemented,
    "a NoC request of {0} bytes: splitting into packets of {1} is not built",
    remedy="split the transfer in software",
    rule="tile N17, E29",
)
NOWHERE: Final = fault(
    "noc.nowhere",
    UndefinedBehavior,
    "a NoC request touches {1} bytes at {0:#x}, which are neither all in L1 (below {2:#x}) nor registers (from {3:#x})",
    remedy="Tensix tiles have 32-bit addresses: MID is zero, L1 below 0x180000, registers from 0xffb00000",
    rule="tile N18",
)
MISALIGNED: Final = fault(
    "noc.alignment",
    UndefinedBehavior,
    "a NoC request from {0:#x} to {1:#x}: the addresses differ modulo {2}",
    remedy="L1 to L1: equal modulo 16; registers: aligned words",
    rule="tile N19",
)
REGISTER_WIDTH: Final = fault(
    "noc.register-width",
    UndefinedBehavior,
    "a NoC request of {1} bytes to or from the register at {0:#x}",
    remedy="registers are accessed as aligned words of 4 bytes",
    rule="tile N18",
)
INLINE_TO_L1: Final = fault(
    "noc.inline-l1",
    NonContractualBehavior,
    "an inline NoC write to L1 ({0:#x}) is not safe on Blackhole (hardware bug)",
    remedy="write from a staged block in L1, or allow open choices to have the enabled bytes written",
    rule="tile N19, E25",
)
ATOMIC_TO_REGISTER: Final = fault(
    "noc.atomic-register",
    UndefinedBehavior,
    "a NoC atomic between {0:#x} and {1:#x}: both must be aligned words of L1",
    remedy="atomics work in the L1 of Tensix and Ethernet tiles",
    rule="tile N22",
)
STARTS_ANOTHER: Final = fault(
    "noc.starts-another",
    Unimplemented,
    "a NoC request writes CMD_CTRL of a network interface ({0:#x}), which would start another request",
    remedy="start requests from a core",
    rule="tile N26",
)


@kernel
def _word(t, noc, initiator, offset):
    return np.int64(t.niu_initiator[noc, initiator, offset // WORD])


@kernel
def kind_of(t, noc, initiator):
    """READ, WRITE, INLINE or ATOMIC; valid once `check` has passed CTRL."""
    control = _word(t, noc, initiator, r.CTRL)
    if control & _ATOMIC:
        return ATOMIC
    if control & _WRITE:
        return INLINE if control & _INLINE else WRITE
    return READ


@kernel
def _table_entry(t, noc, table, index):
    return (np.int64(t.niu_config[noc, table + index // 6]) >> (5 * (index % 6))) & 0x1F


@kernel
def translate(t, noc, coordinate):
    """Raw coordinate on NoC `noc` (y << 6 | x) of one that software uses, by the tile's tables (N5, N6).

    The registers keep what software wrote. Documents say that the raw coordinate is written back to them; firmware
    writes its own coordinate once and uses it for every request, which only works when it is not.
    """
    x, y = coordinate & 0x3F, (coordinate >> 6) & 0x3F
    if (np.int64(t.niu_config[noc, NIU_CFG_0]) & _TRANSLATE) == 0:
        return coordinate & _COORDINATE_BITS
    raw_x, raw_y = x, y
    if ((np.int64(t.niu_config[noc, ROW_MASK]) >> (y & 31)) & 1) == 0:
        raw_x = _table_entry(t, noc, X_TABLE, x & 31)
    if ((np.int64(t.niu_config[noc, COLUMN_MASK]) >> (x & 31)) & 1) == 0:
        raw_y = _table_entry(t, noc, Y_TABLE, y & 31)
    return raw_y << 6 | raw_x


@kernel
def _is_own(t, noc, coordinate):
    return translate(t, noc, coordinate) == np.int64(t.niu_place[noc, 0]) & _COORDINATE_BITS


@kernel
def _is_register(address):
    return address >= MMIO_FIRST


@kernel
def _check_place(t, address, high, size):
    """DONE when `size` bytes at a 64-bit address are in L1, or are one word of registers."""
    if high != 0 or (not _is_register(address) and address + size > L1_SIZE):
        return refuse(t, NOWHERE, high << 32 | address, size, L1_SIZE, MMIO_FIRST)
    if _is_register(address) and (size != WORD or address & (WORD - 1)):
        return refuse(t, REGISTER_WIDTH, address, size)
    return DONE


@kernel
def _check_atomic(t, noc, initiator):
    target, back = _word(t, noc, initiator, r.TARGET_LO), _word(t, noc, initiator, r.RETURN_LO)
    code = _word(t, noc, initiator, r.LENGTH)
    answers = (_word(t, noc, initiator, r.CTRL) & _RESPONSE) != 0
    if not is_known_atomic(t, code):
        return REFUSED
    if target & 3 or target >= L1_SIZE or (answers and (back & 3 or back >= L1_SIZE)):
        return refuse(t, ATOMIC_TO_REGISTER, target, back)
    return DONE


@kernel
def length_of(t, noc, initiator):
    """Bytes that a read or write may touch, from its first address on."""
    if _word(t, noc, initiator, r.CTRL) & _WRITE and _word(t, noc, initiator, r.CTRL) & _BYTE_ENABLES:
        return np.int64(WORD if _is_register(_word(t, noc, initiator, r.RETURN_LO)) else ENABLED_BYTES)
    return _word(t, noc, initiator, r.LENGTH_HIGH) << 32 | _word(t, noc, initiator, r.LENGTH)


@kernel
def _check_copy(t, noc, initiator, kind):
    """Both places, length and alignment of a read or write (N17 to N19)."""
    source, destination = _word(t, noc, initiator, r.TARGET_LO), _word(t, noc, initiator, r.RETURN_LO)
    size = length_of(t, noc, initiator)
    if size == 0:
        return refuse(t, LENGTH)
    if size > LONGEST_PACKET:
        return refuse(t, TOO_LONG, size, LONGEST_PACKET)
    if kind == WRITE and _word(t, noc, initiator, r.CTRL) & _BYTE_ENABLES and not _is_register(destination):
        source, destination = source & ~(BLOCK - 1), destination & ~(BLOCK - 1)
    if _check_place(t, source, _word(t, noc, initiator, r.TARGET_MID), size) != DONE:
        return REFUSED
    if _check_place(t, destination, _word(t, noc, initiator, r.RETURN_MID), size) != DONE:
        return REFUSED
    modulus = WORD if _is_register(source) or _is_register(destination) else BLOCK
    if (source - destination) & (modulus - 1):
        return refuse(t, MISALIGNED, source, destination, modulus)
    return _check_not_a_start(t, destination)


@kernel
def _check_not_a_start(t, address):
    if address >= _NIU_FIRST and address < _NIU_END and (address & (r.INITIATOR_BYTES - 1)) == r.CMD_CTRL:
        return refuse(t, STARTS_ANOTHER, address)
    return DONE


@kernel
def _check_inline(t, noc, initiator):
    target = _word(t, noc, initiator, r.TARGET_LO)
    if _check_place(t, target, _word(t, noc, initiator, r.TARGET_MID), WORD if _is_register(target) else 1) != DONE:
        return REFUSED
    if not _is_register(target) and not open_choice(t, INLINE_TO_L1, target):
        return REFUSED
    return _check_not_a_start(t, target)


@kernel
def check(t, noc, initiator):
    """DONE when the request that an initiator holds is sound, wherever it goes; nothing is changed."""
    control, tag = _word(t, noc, initiator, r.CTRL), _word(t, noc, initiator, r.PACKET_TAG)
    if control & _RESERVED or (control & _ATOMIC and control & _WRITE):
        return refuse(t, BAD_CONTROL, control)
    if control & _ACCUMULATE:
        return refuse(t, L1_ACCUMULATE, control)
    if tag & (_HEADER_STORE | _TO_OVERLAY):
        return refuse(t, TAG, tag)
    kind = kind_of(t, noc, initiator)
    if kind == ATOMIC:
        return _check_atomic(t, noc, initiator)
    if kind == INLINE:
        return _check_inline(t, noc, initiator)
    return _check_copy(t, noc, initiator, kind)


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
    control = _word(t, noc, initiator, r.CTRL)
    transaction = (_word(t, noc, initiator, r.PACKET_TAG) >> _ID_LSB) & (r.TRANSACTION_IDS - 1)
    flits = (length_of(t, noc, initiator) + FLIT - 1) // FLIT
    answers = kind == READ or (control & _RESPONSE) != 0
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
def _count_at_target(t, target, noc, initiator):
    """Move the counters of the tile that has served a request (N20); `t` is the initiator's."""
    kind = kind_of(t, noc, initiator)
    flits = (length_of(t, noc, initiator) + FLIT - 1) // FLIT
    answers = (_word(t, noc, initiator, r.CTRL) & _RESPONSE) != 0
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
    if not _is_register(first) and not _is_register(to):
        _copy_l1(source, destination, first, to, size)
        return DONE
    if _is_register(first):
        status, value = mmio_load(source, NOC, first)
        if status != DONE:
            return status
    else:
        value = np.int64(0)
        for i in range(WORD):
            value |= np.int64(source.l1[first + i]) << (8 * i)
    if _is_register(to):
        return mmio_store(destination, NOC, to, value)
    for i in range(WORD):
        destination.l1[to + i] = np.uint8((value >> (8 * i)) & 0xFF)
    return DONE


@kernel
def _write_enabled_bytes(t, target, noc, initiator):
    """A write whose bytes are selected by a mask of 64 bits; both addresses count from a multiple of 16 (N19)."""
    mask_low, mask_high = _word(t, noc, initiator, r.LENGTH), _word(t, noc, initiator, r.LENGTH_HIGH)
    first = _word(t, noc, initiator, r.TARGET_LO) & ~(BLOCK - 1)
    to = _word(t, noc, initiator, r.RETURN_LO) & ~(BLOCK - 1)
    for step in range(ENABLED_BYTES):
        i = step if to <= first else ENABLED_BYTES - 1 - step  # the two may overlap
        mask = mask_low if i < 32 else mask_high
        if (mask >> (i & 31)) & 1:
            target.l1[to + i] = t.l1[first + i]


@kernel
def _write_inline(t, target, noc, initiator):
    """AT_DATA to a register; in L1 to those of 16 bytes that the low or the high half of AT_LEN_BE selects (N16)."""
    address, data = _word(t, noc, initiator, r.TARGET_LO), _word(t, noc, initiator, r.DATA)
    if _is_register(address):
        return mmio_store(target, NOC, address, data)
    mask = _word(t, noc, initiator, r.LENGTH)
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
    there, back = _word(t, noc, initiator, r.TARGET_LO), _word(t, noc, initiator, r.RETURN_LO)
    control = _word(t, noc, initiator, r.CTRL)
    status = np.int64(DONE)
    if kind == READ:
        status = _copy(target, t, there, back, length_of(t, noc, initiator))
    elif kind == ATOMIC:
        code, data = _word(t, noc, initiator, r.LENGTH), _word(t, noc, initiator, r.DATA)
        old = apply_atomic(target, there, code, data)
        if control & _RESPONSE:
            t.l1_u32[back >> 2] = np.uint32(old)
    elif kind == INLINE:
        status = _write_inline(t, target, noc, initiator)
    elif control & _BYTE_ENABLES and not _is_register(back):
        _write_enabled_bytes(t, target, noc, initiator)
    else:
        status = _copy(t, target, there, back, length_of(t, noc, initiator))
    if status == DONE:
        _count_at_target(t, target, noc, initiator)
    return status


@kernel
def execute(t, target, noc, initiator):
    """Carry out a sound request of tile `t` at the single tile `target`, which may be the same; returns a status."""
    status = serve(t, target, noc, initiator)
    if status == DONE:
        count_at_initiator(t, noc, initiator, 1)
    return status


@kernel
def start(t, noc, initiator):
    """What a store of 1 to CMD_CTRL does; returns a status, and has changed nothing when it is not DONE."""
    control = _word(t, noc, initiator, r.CTRL)
    target, back = _word(t, noc, initiator, r.TARGET_HI), _word(t, noc, initiator, r.RETURN_HI)
    if control & _MULTICAST:
        return refuse(t, MULTICAST, control, noc, target if control & (_ATOMIC | _INLINE) else back)
    if check(t, noc, initiator) != DONE:
        return REFUSED
    kind = kind_of(t, noc, initiator)
    there = back if kind == WRITE else target
    if kind != INLINE and (kind != ATOMIC or control & _RESPONSE):
        own = target if kind == WRITE else back
        if not _is_own(t, noc, own):
            return refuse(t, NOT_OWN, own & 0x3F, (own >> 6) & 0x3F)
    if not _is_own(t, noc, there):
        addresses = _word(t, noc, initiator, r.TARGET_LO), _word(t, noc, initiator, r.RETURN_LO)
        away, here = (addresses[1], addresses[0]) if kind == WRITE else addresses
        return refuse(t, ELSEWHERE[len(KINDS) * noc + kind], there & 0x3F, (there >> 6) & 0x3F, away, here)
    return execute(t, t, noc, initiator)


def start_entry(t, noc, initiator):
    """`start` for the table of handlers."""
    return start(t, noc, initiator)
