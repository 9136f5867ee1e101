"""NoC requests as an initiator's registers describe them: kinds, and whether they are sound (tile N14, N16 to N19).

Nothing here asks where tiles are, except `translate`.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.errors import NonContractualBehavior, UndefinedBehavior, Unimplemented
from bhemu.isa.memory_map import L1_SIZE, LOCAL_RAM_BASE, region
from bhemu.isa.tile_registers import bit_of
from bhemu.machine.agents import CORES
from bhemu.machine.device_state import COLUMN_MASK, NIU_CFG_0, ROW_MASK, X_TABLE, Y_TABLE
from bhemu.machine.dispatch import NOT_COMPILED
from bhemu.machine.faults import DONE, REFUSED, fault, open_choice, refuse
from bhemu.machine.kernel import kernel
from bhemu.tile.noc import niu_registers as r
from bhemu.tile.noc.atomic import is_known_atomic

READ: Final = 0
WRITE: Final = 1
INLINE: Final = 2
ATOMIC: Final = 3
KINDS: Final = ("read", "write", "inline write", "atomic")

# Bits of CTRL (N14)
ATOMIC_BIT: Final = 1 << bit_of("niu", "CTRL", "ATOMIC")
WRITE_BIT: Final = 1 << bit_of("niu", "CTRL", "WRITE")
BYTE_ENABLES: Final = 1 << bit_of("niu", "CTRL", "BYTE_ENABLES")
INLINE_BIT: Final = 1 << bit_of("niu", "CTRL", "INLINE")
RESPONSE: Final = 1 << bit_of("niu", "CTRL", "RESPONSE")
MULTICAST_BIT: Final = 1 << bit_of("niu", "CTRL", "MULTICAST")
_ACCUMULATE: Final = 1 << bit_of("niu", "CTRL", "L1_ACCUMULATE")
_RESERVED: Final = 0x7FC1C00
# Bits of PACKET_TAG
ID_LSB: Final = bit_of("niu", "PACKET_TAG", "TRANSACTION_ID")
_HEADER_STORE: Final = 1 << bit_of("niu", "PACKET_TAG", "HEADER_STORE")
_TO_OVERLAY: Final = 1 << bit_of("niu", "PACKET_TAG", "TO_OVERLAY")

MMIO_FIRST: Final = 0xFF000000
"""From here on a request means registers, below it L1 (N18)."""
LONGEST_PACKET: Final = 16384
WORD: Final = 4
BLOCK: Final = 16
"""Source and destination in L1 must agree modulo this."""
ENABLED_BYTES: Final = 64
_NIU_FIRST: Final = region("niu0").base
_NIU_END: Final = region("niu1").end
_CORNER_LSB: Final = bit_of("niu", "TARG_ADDR_HI", "START_X")
_COORDINATE_BITS: Final = (1 << _CORNER_LSB) - 1
_TRANSLATE: Final = 1 << bit_of("niu", "NIU_CFG_0", "TRANSLATE")

# Words of an initiator's record behind its registers: a request to another tile on its way through the host, which
# carries it out (chip/noc.py) before the store that starts it is made again (`noc_transfer.start`)
CONNECTED: Final = 16
"""1: there is a chip around the tile."""
END: Final = 17
"""Raw coordinate (y << 6 | x) of the other tile on this NoC, or of a multicast's second corner."""
START: Final = 18
"""Raw coordinate of a multicast's first corner."""
ANSWER: Final = 19
"""1 + the status with which the request has ended; 0 while there is none."""
RESPONSES: Final = 20
"""How many tiles have answered."""
ASKED_ROUND: Final = 21
ASKED_AGENT: Final = 22
"""In which round, and for which agent (+ 1) of the tile."""
NO_ANSWER: Final = -1
NOC_AWAY: Final = 0x1000
"""Used like a place of the table of handlers: + 4 * NoC + initiator asks the host to carry a request out."""
INITIATORS: Final = r.INITIATORS

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
    remedy=f"Tensix tiles have 32-bit addresses: MID is zero, L1 below {L1_SIZE:#x}, "
    f"registers from {LOCAL_RAM_BASE:#x}",
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
def word_of(t, noc, initiator, offset):
    return np.int64(t.niu_initiator[noc, initiator, offset // WORD])


@kernel
def kind_of(t, noc, initiator):
    """READ, WRITE, INLINE or ATOMIC; valid once `check` has passed CTRL."""
    control = word_of(t, noc, initiator, r.CTRL)
    if control & ATOMIC_BIT:
        return ATOMIC
    if control & WRITE_BIT:
        return INLINE if control & INLINE_BIT else WRITE
    return READ


@kernel
def _table_entry(t, noc, table, index):
    return (np.int64(t.niu_config[noc, table + index // 6]) >> (5 * (index % 6))) & 0x1F


@kernel
def translate(t, noc, coordinate):
    """Raw coordinate on NoC `noc` (y << 6 | x) of one that software uses, by the tile's tables (N5, N6).

    The registers keep what software wrote. Documents say that the raw coordinate is written back to them; firmware
    writes its own coordinate once and uses it for every request, which only works when it is not. The official
    simulator translates always (E47).
    """
    x, y = coordinate & 0x3F, (coordinate >> 6) & 0x3F
    if (np.int64(t.niu_config[noc, NIU_CFG_0]) & _TRANSLATE) == 0 and t.simulator_order == 0:
        return coordinate & _COORDINATE_BITS
    raw_x, raw_y = x, y
    if ((np.int64(t.niu_config[noc, ROW_MASK]) >> (y & 31)) & 1) == 0:
        raw_x = _table_entry(t, noc, X_TABLE, x & 31)
    if ((np.int64(t.niu_config[noc, COLUMN_MASK]) >> (x & 31)) & 1) == 0:
        raw_y = _table_entry(t, noc, Y_TABLE, y & 31)
    return raw_y << 6 | raw_x


@kernel
def is_own(t, noc, coordinate):
    return translate(t, noc, coordinate) == np.int64(t.niu_place[noc, 0]) & _COORDINATE_BITS


@kernel
def is_register(address):
    return address >= MMIO_FIRST


@kernel
def _check_place(t, address, high, size):
    """DONE when `size` bytes at a 64-bit address are in L1, or are one word of registers."""
    if high != 0 or (not is_register(address) and address + size > L1_SIZE):
        return refuse(t, NOWHERE, high << 32 | address, size, L1_SIZE, MMIO_FIRST)
    if is_register(address) and (size != WORD or address & (WORD - 1)):
        return refuse(t, REGISTER_WIDTH, address, size)
    return DONE


@kernel
def _check_atomic(t, noc, initiator):
    target, back = word_of(t, noc, initiator, r.TARGET_LO), word_of(t, noc, initiator, r.RETURN_LO)
    answers = (word_of(t, noc, initiator, r.CTRL) & RESPONSE) != 0
    if target & 3 or target >= L1_SIZE or (answers and (back & 3 or back >= L1_SIZE)):
        return refuse(t, ATOMIC_TO_REGISTER, target, back)
    return DONE


@kernel
def length_of(t, noc, initiator):
    """Bytes that a read or write may touch, from its first address on."""
    if word_of(t, noc, initiator, r.CTRL) & WRITE_BIT and word_of(t, noc, initiator, r.CTRL) & BYTE_ENABLES:
        return np.int64(WORD if is_register(word_of(t, noc, initiator, r.RETURN_LO)) else ENABLED_BYTES)
    return word_of(t, noc, initiator, r.LENGTH_HIGH) << 32 | word_of(t, noc, initiator, r.LENGTH)


@kernel
def _check_copy(t, noc, initiator, kind):
    """Both places, length and alignment of a read or write (N17 to N19)."""
    source, destination = word_of(t, noc, initiator, r.TARGET_LO), word_of(t, noc, initiator, r.RETURN_LO)
    size = length_of(t, noc, initiator)
    if size == 0:
        return refuse(t, LENGTH)
    if size > LONGEST_PACKET:
        return refuse(t, TOO_LONG, size, LONGEST_PACKET)
    if kind == WRITE and word_of(t, noc, initiator, r.CTRL) & BYTE_ENABLES and not is_register(destination):
        source, destination = source & ~(BLOCK - 1), destination & ~(BLOCK - 1)
    if _check_place(t, source, word_of(t, noc, initiator, r.TARGET_MID), size) != DONE:
        return REFUSED
    if _check_place(t, destination, word_of(t, noc, initiator, r.RETURN_MID), size) != DONE:
        return REFUSED
    modulus = WORD if is_register(source) or is_register(destination) else BLOCK
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
    target = word_of(t, noc, initiator, r.TARGET_LO)
    if _check_place(t, target, word_of(t, noc, initiator, r.TARGET_MID), WORD if is_register(target) else 1) != DONE:
        return REFUSED
    if not is_register(target) and not open_choice(t, INLINE_TO_L1, target):
        return REFUSED
    return _check_not_a_start(t, target)


@kernel
def check_kind(t, noc, initiator):
    """DONE when a request is of a kind that there is, whatever its ends are; nothing is changed."""
    control, tag = word_of(t, noc, initiator, r.CTRL), word_of(t, noc, initiator, r.PACKET_TAG)
    if control & _RESERVED or (control & ATOMIC_BIT and control & WRITE_BIT):
        return refuse(t, BAD_CONTROL, control)
    if control & _ACCUMULATE:
        return refuse(t, L1_ACCUMULATE, control)
    if tag & (_HEADER_STORE | _TO_OVERLAY):
        return refuse(t, TAG, tag)
    if control & ATOMIC_BIT and not is_known_atomic(t, word_of(t, noc, initiator, r.LENGTH)):
        return REFUSED
    return DONE


@kernel
def check(t, noc, initiator):
    """DONE when a request that `check_kind` has passed is sound, should both its ends be Tensix tiles."""
    kind = kind_of(t, noc, initiator)
    if kind == ATOMIC:
        return _check_atomic(t, noc, initiator)
    if kind == INLINE:
        return _check_inline(t, noc, initiator)
    return _check_copy(t, noc, initiator, kind)


@kernel
def _write_down(t, noc, initiator, word, value):
    t.niu_initiator[noc, initiator, word] = np.uint32(value & 0xFFFFFFFF)


@kernel
def ask_host(t, noc, initiator, there):
    """Ask the host to carry a request out; the store that starts it is made again afterwards.

    Args:
        there: the coordinate field of the other end, as software wrote it: with two corners if it is a multicast.
    """
    _write_down(t, noc, initiator, END, translate(t, noc, there))
    _write_down(t, noc, initiator, START, translate(t, noc, there >> _CORNER_LSB))
    _write_down(t, noc, initiator, ASKED_ROUND, np.int64(t.now_round))
    _write_down(t, noc, initiator, ASKED_AGENT, np.int64(t.now_agent) + 1)
    _write_down(t, noc, initiator, ANSWER, 0)
    t.needs_place = NOC_AWAY + INITIATORS * noc + initiator
    return NOT_COMPILED


@kernel
def take_answer(t, noc, initiator):
    """Status with which the host has ended the request that is in progress, or NO_ANSWER.

    An answer that nobody took, because the request has put its own core into reset, belongs to another round or agent.
    The coprocessor always comes back, but may begin its turn in a later round.
    """
    answer = word_of(t, noc, initiator, ANSWER * WORD)
    agent = np.int64(t.now_agent)
    if answer == 0 or word_of(t, noc, initiator, ASKED_AGENT * WORD) != agent + 1:
        return NO_ANSWER
    if agent < CORES and word_of(t, noc, initiator, ASKED_ROUND * WORD) != np.int64(t.now_round) & 0xFFFFFFFF:
        return NO_ANSWER
    _write_down(t, noc, initiator, ANSWER, 0)
    return answer - 1
