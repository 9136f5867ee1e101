"""Elements, register groups, masks and vtype of core T2's vector extension (tile T7)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import UndefinedBehavior, Unimplemented
from bhemu.machine.faults import DONE, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Bool, Int, TileRecord
from bhemu.machine.vector_core_state import VECTOR_REGISTERS, VLEN_BYTES

WORD: Final = 0xFFFFFFFF
REGISTERS: Final = VECTOR_REGISTERS
OPERATIONS: Final = 128
"""Numbers of operations: funct6, and 64 more for those of OPMVV and OPMVX."""
LONGEST: Final = 4
"""Bytes of the longest element (ELEN = 32)."""

RESERVED: Final = fault(
    "riscv.vector-reserved",
    UndefinedBehavior,
    "{0:#010x} is reserved with vtype {1:#x}: an element longer than 32 bits, a register that does not begin its "
    "group, or a destination that overlaps what it must not",
    remedy="see the V extension, version 1.0, with VLEN = 128 and ELEN = 32",
    rule="tile T7",
)
NOT_THERE: Final = fault(
    "riscv.vector-not-there",
    UndefinedBehavior,
    "{0:#010x} is a vector division, remainder, square root or estimate, which core T2 does not have",
    remedy="multiply by a reciprocal, or divide on the scalar side",
    rule="tile T7",
)
HALF_FLOATS: Final = fault(
    "riscv.vector-half",
    Unimplemented,
    "{0:#010x} with vtype {1:#x} computes on 16-bit floating-point elements, which bhemu does not have",
    remedy="compute on 32-bit elements",
    rule="tile T7",
)


def flags_of(*operations: int) -> np.ndarray[Any, Any]:
    """bool [OPERATIONS]: True for these operations."""
    flags = np.zeros(OPERATIONS, np.bool_)
    flags[list(operations)] = True
    return flags


@kernel
def element_bytes(t: TileRecord) -> Int:
    """SEW in bytes; 8 is not valid."""
    return np.int64(1) << ((np.int64(t.vector_core.vtype) >> 3) & 3)


@kernel
def group_eighths(t: TileRecord) -> Int:
    """LMUL in eighths of a register: 1 to 64."""
    code = np.int64(t.vector_core.vtype) & 7
    return np.int64(8) << code if code < 4 else np.int64(8) >> (8 - code)


@kernel
def longest_vector(eighths: Int, size: Int) -> Int:
    """VLMAX of a group of a number of eighths, for elements of `size` bytes."""
    return eighths * VLEN_BYTES // (8 * size)


@kernel
def registers_in(eighths: Int) -> Int:
    """Registers of a group."""
    return max(eighths >> 3, 1)


@kernel
def is_group(register: Int, eighths: Int, size: Int) -> Bool:
    """True when a group of elements of `size` bytes may begin with a register."""
    if size > LONGEST or size < 1 or eighths < 1 or eighths > 64:
        return False
    return register % registers_in(eighths) == 0


@kernel
def overlap(first: Int, first_eighths: Int, second: Int, second_eighths: Int) -> Bool:
    """True when two groups have a register in common."""
    return first < second + registers_in(second_eighths) and second < first + registers_in(first_eighths)


@kernel
def bad_overlap(to: Int, to_eighths: Int, to_size: Int, source: Int, eighths: Int, size: Int) -> Bool:
    """True when a destination overlaps a source of another element size where the extension forbids it."""
    if to_size == size or not overlap(to, to_eighths, source, eighths):
        return False
    if to_size < size:
        return to != source
    # A longer destination may overlap the last registers of its group, when the source fills whole registers.
    return eighths < 8 or source != to + registers_in(to_eighths) - registers_in(eighths)


@kernel
def element(t: TileRecord, register: Int, i: Int, size: Int) -> Int:
    """Element i of a group, unsigned."""
    if size == 4:
        return np.int64(t.vector_core.word[register * (VLEN_BYTES // 4) + i])
    if size == 2:
        return np.int64(t.vector_core.half[register * (VLEN_BYTES // 2) + i])
    return np.int64(t.vector_core.byte[register * VLEN_BYTES + i])


@kernel
def set_element(t: TileRecord, register: Int, i: Int, size: Int, value: Int) -> None:
    """Write the low bits of a value to element i of a group."""
    if size == 4:
        t.vector_core.word[register * (VLEN_BYTES // 4) + i] = np.uint32(value & WORD)
    elif size == 2:
        t.vector_core.half[register * (VLEN_BYTES // 2) + i] = np.uint16(value & 0xFFFF)
    else:
        t.vector_core.byte[register * VLEN_BYTES + i] = np.uint8(value & 0xFF)


@kernel
def signed_of(value: Int, size: Int) -> Int:
    """Elements of `size` bytes as two's complement."""
    sign = np.int64(1) << (8 * size - 1)
    return (value ^ sign) - sign


@kernel
def mask_bit(t: TileRecord, register: Int, i: Int) -> Int:
    """Bit i of a mask register."""
    return (np.int64(t.vector_core.byte[register * VLEN_BYTES + (i >> 3)]) >> (i & 7)) & 1


@kernel
def set_mask_bit(t: TileRecord, register: Int, i: Int, bit: Int) -> None:
    """Write bit i of a mask register."""
    at = register * VLEN_BYTES + (i >> 3)
    kept = np.int64(t.vector_core.byte[at]) & ~(1 << (i & 7))
    t.vector_core.byte[at] = np.uint8(kept | (bit << (i & 7)))


@kernel
def is_active(t: TileRecord, word: Int, i: Int) -> Bool:
    """True when element i takes part: vm is set, or its bit of v0 is."""
    return (word >> 25) & 1 != 0 or mask_bit(t, 0, i) != 0


@kernel
def clobbers_mask(word: Int, register: Int) -> Bool:
    """True for a masked instruction whose destination, no mask, would overwrite its mask."""
    return (word >> 25) & 1 == 0 and register == 0


@kernel
def reserved(t: TileRecord, word: Int) -> Int:
    """Refuse a word."""
    return refuse(t, RESERVED, word, np.int64(t.vector_core.vtype))


@kernel
def _is_type(kind: Int) -> Bool:
    """True for a vtype that T2 has: elements of up to 32 bits, and LMUL of at least SEW / ELEN."""
    size, code = np.int64(1) << ((kind >> 3) & 7), kind & 7
    eighths = np.int64(8) << code if code < 4 else np.int64(8) >> (8 - code)
    return kind >> 8 == 0 and size <= LONGEST and code != 4 and eighths * LONGEST >= 8 * size


@kernel
def is_configured(t: TileRecord) -> Bool:
    """True when vtype and vl fit together; CSR instructions can write what vset would not."""
    if not _is_type(np.int64(t.vector_core.vtype)):
        return False
    return np.int64(t.vector_core.vl) <= longest_vector(group_eighths(t), element_bytes(t))


@kernel
def set_vector_length(t: TileRecord, word: Int, available: Int, keeps: Bool, kind: Int) -> Any:
    """(status, vl) of vsetvli, vsetivli and vsetvl.

    Args:
        available: AVL; -1 asks for the longest.
        keeps: vl stays, as far as it fits.
        kind: the new vtype.
    """
    if not _is_type(kind):
        return refuse(t, RESERVED, word, kind), np.int64(0)
    t.vector_core.vtype = np.uint32(kind)
    most = longest_vector(group_eighths(t), element_bytes(t))
    length = most if available < 0 else min(available, most)
    if keeps:
        length = min(np.int64(t.vector_core.vl), most)
    t.vector_core.vl = np.uint32(length)
    return DONE, length


@kernel
def copy_registers(t: TileRecord, to: Int, source: Int, count: Int) -> None:
    """Whole registers; the groups are aligned, so they are the same or apart."""
    for i in range(count * (VLEN_BYTES // 4)):
        t.vector_core.word[to * (VLEN_BYTES // 4) + i] = t.vector_core.word[source * (VLEN_BYTES // 4) + i]
