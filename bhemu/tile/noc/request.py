"""NoC requests as an initiator's registers describe them (tile N13, N14, N16). Whether they are sound: soundness.py.

A request is a record of machine/noc_state.py. Nothing here depends on where tiles are, except `translate`.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.errors import NonContractualBehavior, UndefinedBehavior, Unimplemented
from bhemu.isa import niu as r
from bhemu.isa.memory_map import region
from bhemu.isa.tile_registers import bit_of
from bhemu.machine.device_state import COLUMN_MASK, NIU_CFG_0, ROW_MASK, X_TABLE, Y_TABLE
from bhemu.machine.faults import DONE, REFUSED, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Bool, Int, NocRequestRecord, TileRecord
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
_ADDRESSES_END: Final = 1 << 32
ADDRESS_BITS: Final = 0xFFFFFFFF
"""Of addresses in a Tensix tile."""
LONGEST_PACKET: Final = 16384
"""Bytes; longer requests are split (N17)."""
WORD: Final = 4
BLOCK: Final = 16
"""Source and destination in L1 must agree modulo this."""
ENABLED_BYTES: Final = 64
_NIU_FIRST: Final = region("niu0").base
_NIU_END: Final = region("niu1").end
CORNER_LSB: Final = bit_of("niu", "TARG_ADDR_HI", "START_X")
"""Where the coordinate of a multicast's first corner begins (N21)."""
COORDINATE_BITS: Final = (1 << CORNER_LSB) - 1
_TRANSLATE: Final = 1 << bit_of("niu", "NIU_CFG_0", "TRANSLATE")
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
NOT_OWN: Final = fault(
    "noc.own-side",
    Unimplemented,
    "the initiator's own side of a NoC request is at ({0}, {1}), which is another tile",
    remedy="a read and an atomic return to their own tile, a write takes its data from it: set RET_ADDR_HI or "
    "TARG_ADDR_HI to ID_LOGICAL",
    rule="tile N16",
)


@kernel
def translate(t: TileRecord, noc: Int, coordinate: Int) -> Int:
    """Raw coordinate on NoC `noc` (y << 6 | x) of one that software uses, by the tile's tables (N5, N6).

    The registers keep what software wrote. Documents say that the raw coordinate is written back to them; firmware
    writes its own coordinate once and uses it for every request, which only works when it is not. The official
    simulator translates always (E47).
    """
    x, y = coordinate & 0x3F, (coordinate >> 6) & 0x3F
    if (np.int64(t.niu_config[noc, NIU_CFG_0]) & _TRANSLATE) == 0 and t.simulator_order == 0:
        return coordinate & COORDINATE_BITS
    raw_x, raw_y = x, y
    if ((np.int64(t.niu_config[noc, ROW_MASK]) >> (y & 31)) & 1) == 0:
        raw_x = (np.int64(t.niu_config[noc, X_TABLE + (x & 31) // 6]) >> (5 * ((x & 31) % 6))) & 31
    if ((np.int64(t.niu_config[noc, COLUMN_MASK]) >> (x & 31)) & 1) == 0:
        raw_y = (np.int64(t.niu_config[noc, Y_TABLE + (y & 31) // 6]) >> (5 * ((y & 31) % 6))) & 31
    return raw_y << 6 | raw_x


@kernel
def is_register(address: Int) -> Bool:
    """True for a 64-bit address of a tile's memory-mapped registers."""
    return address >= MMIO_FIRST and address < _ADDRESSES_END


@kernel
def decode(t: TileRecord, q: NocRequestRecord, noc: Int, initiator: Int) -> None:
    """Fill the request `q` from an initiator's registers; its `kind` is valid once `check_request` has passed."""
    words = t.niu_initiator[noc, initiator]
    control = np.int64(words[r.CTRL // WORD])
    first = np.int64(words[r.TARGET_MID // WORD]) << 32 | np.int64(words[r.TARGET_LO // WORD])
    second = np.int64(words[r.RETURN_MID // WORD]) << 32 | np.int64(words[r.RETURN_LO // WORD])
    q.noc = noc
    q.control = control
    q.tag = words[r.PACKET_TAG // WORD]
    q.own, q.other = words[r.RETURN_HI // WORD], words[r.TARGET_HI // WORD]
    q.source = q.target = first
    q.result = second
    q.length = np.int64(words[r.LENGTH_HIGH // WORD]) << 32 | np.int64(words[r.LENGTH // WORD])
    q.byte_count = q.length
    q.operand = q.word = words[r.DATA // WORD]
    q.exclude = words[r.EXCLUDE // WORD]
    q.masked = 0
    if control & ATOMIC_BIT:
        q.kind = ATOMIC
    elif control & WRITE_BIT and control & INLINE_BIT:
        q.kind = INLINE
    elif control & WRITE_BIT:
        q.kind = WRITE
        q.target = second
        q.own, q.other = q.other, q.own
    else:
        q.kind = READ
        q.target = second
    q.from_register = 1 if is_register(q.source) else 0
    q.to_register = 1 if is_register(q.target) else 0
    if q.kind == WRITE and control & BYTE_ENABLES:
        q.masked = 1 - q.to_register
        q.byte_count = ENABLED_BYTES if q.masked != 0 else WORD
    q.answers = 1 if q.kind == READ or control & RESPONSE else 0
    q.packets = 1
    if q.kind in (READ, WRITE):
        whole, rest = q.byte_count // LONGEST_PACKET, q.byte_count % LONGEST_PACKET
        q.packets = max(whole + (1 if rest != 0 else 0), 1)
    q.end = translate(t, noc, q.other)
    if control & MULTICAST_BIT:
        q.start = translate(t, noc, q.other >> CORNER_LSB)


@kernel
def starts_another(address: Int) -> Bool:
    """True for CMD_CTRL of a network interface."""
    return address >= _NIU_FIRST and address < _NIU_END and (address & (r.INITIATOR_BYTES - 1)) == r.CMD_CTRL


@kernel
def check_request(t: TileRecord, q: NocRequestRecord, here: Int) -> Int:
    """DONE when a request is of a known kind, and its own side is the tile at the raw coordinate `here`.

    Whether the bytes at either end are sound: soundness.py. Nothing is changed.
    """
    if q.control & _RESERVED or (q.control & ATOMIC_BIT and q.control & WRITE_BIT):
        return refuse(t, BAD_CONTROL, q.control)
    if q.control & _ACCUMULATE:
        return refuse(t, L1_ACCUMULATE, q.control)
    if q.tag & (_HEADER_STORE | _TO_OVERLAY):
        return refuse(t, TAG, q.tag)
    if q.kind == ATOMIC and not is_known_atomic(t, q.length & ADDRESS_BITS):
        return REFUSED
    has_own_side = q.kind == WRITE or (q.answers != 0 and q.kind != INLINE)
    reads_many = q.kind == READ and (q.control & MULTICAST_BIT) != 0  # refused for that
    if has_own_side and not reads_many and translate(t, q.noc, q.own) != here:
        return refuse(t, NOT_OWN, q.own & 0x3F, (q.own >> 6) & 0x3F)
    return DONE
