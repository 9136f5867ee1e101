"""Between lanes and between LRegs: SFPSWAP, SFPSHFT2, SFPTRANSP, and the comparisons SFPLE, SFPGT (math V18 to V20)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.machine.faults import DONE, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import load32, mask32, mask_bits, shift_right_logical, shuffle, splat32, store32, where
from bhemu.machine.types import Int, Lanes, TileRecord
from bhemu.tensix.instruction import DOCUMENTED, VERIFIED, Mode, instruction
from bhemu.tensix.lane_settings import ALL_LANES, lanes_with
from bhemu.tensix.vector.integer import shift, signed12
from bhemu.tensix.vector.registers import (
    ENABLE_DEST_INDEX,
    EXCHANGE_SRCB_SRCC,
    FIRST_CONSTANT,
    FIRST_TEMPLATE,
    capture,
    destination,
    enabled_bits,
    reserved_mode,
    set_flags,
    set_stack_top,
    stack_top,
    write,
)
from bhemu.tensix.vector_queue import EXECUTE


@kernel
def order_key(v: Lanes) -> Lanes:
    """Signed numbers in the order of sign-magnitude or FP32 bits: -largest < ... < -0 < +0 < ... < +largest (F17)."""
    return v ^ shift_right_logical(v >> 31, 1)


# --- SFPSWAP ------------------------------------------------------------------------------------------------------

SWAP: Final = 0
_MINIMUM_LANES: Final = (
    *(0, 0xFFFFFFFF, 0x0000FFFF, 0x00FF00FF, 0xFF0000FF),
    *(0x000000FF, 0x0000FF00, 0x00FF0000, 0xFF000000),
    *(0, 0, 0, 0, 0, 0, 0),
)
"""Lanes whose destination gets the minimum, by mode; LLK's typecast kernels write 15 for the 9 of V18, maximum."""


@kernel
def _exchange(t: TileRecord, d: Int, c: Int, bits: Int, limit: Int) -> None:
    """Swap two LRegs in the lanes `bits`; those from `limit` on keep their value."""
    swapped = mask32(bits)
    old_d, old_c = load32(t.lregs, d), load32(t.lregs, c)
    if c < limit:
        store32(t.lregs, c, where(swapped, old_d, old_c))
    if d < limit:
        store32(t.lregs, d, where(swapped, old_c, old_d))


@kernel
def swapped_lanes(t: TileRecord, d: Lanes, c: Lanes, mode: Int) -> Int:
    """Enabled lanes, as bits, in which SFPSWAP exchanges the values `d` and `c` (V18)."""
    swaps = np.int64(ALL_LANES)
    if mode != SWAP:
        c_smaller = mask_bits(order_key(c) < order_key(d))
        swaps = ~(c_smaller ^ _MINIMUM_LANES[mode]) ^ lanes_with(t, EXCHANGE_SRCB_SRCC)
    return enabled_bits(t) & swaps


@instruction(
    Mode("swap", VERIFIED, vectors="sfpu:SFPSWAP:0", rule="math V18"),
    Mode("minimum and maximum", VERIFIED, vectors="sfpu:SFPSWAP:1", rule="math V18"),
    Mode("minimum in rows 0, 1", VERIFIED, vectors="sfpu:SFPSWAP:2", rule="math V18"),
    Mode("minimum in rows 0, 2", VERIFIED, vectors="sfpu:SFPSWAP:3", rule="math V18"),
    Mode("maximum and minimum", VERIFIED, vectors="sfpu:SFPSWAP:9", rule="math V18"),
    Mode("minimum in other rows (modes 4 to 8)", DOCUMENTED, rule="math V18"),
    Mode("maximum and minimum (modes 10 to 15)", DOCUMENTED, rule="math V18"),
    Mode("index pairs (LaneConfig bit 2)", VERIFIED, vectors="sfpu:lane_config0x4", rule="math V18"),
    Mode("comparison inverted (LaneConfig bit 8)", VERIFIED, vectors="sfpu:lane_config0x100", rule="math V18"),
    Mode("index pairs with LReg 4 and up", DOCUMENTED, rule="math V18"),
)
def SFPSWAP(t: TileRecord, thread: Int, lreg_src_c: Int, lreg_dest: Int, instr_mod1: Int, word: Int) -> Int:
    if lreg_dest >= FIRST_TEMPLATE:
        status = capture(t, lreg_dest, word)
        if status != EXECUTE:
            return status
    bits = swapped_lanes(t, load32(t.lregs, lreg_dest), load32(t.lregs, lreg_src_c), instr_mod1)
    indexed = lanes_with(t, ENABLE_DEST_INDEX)
    if indexed != 0:
        # Values live in LReg 0..3, their indices in 4..7; a value in any other register stays, its index still moves.
        _exchange(t, lreg_dest, lreg_src_c, bits & indexed, 4)
        _exchange(t, 4 + (lreg_dest & 3), 4 + (lreg_src_c & 3), bits & indexed, FIRST_CONSTANT)
        bits &= ~indexed
    if bits != 0:
        _exchange(t, lreg_dest, lreg_src_c, bits, FIRST_CONSTANT)
    return DONE


# --- SFPSHFT2 -----------------------------------------------------------------------------------------------------

SHFT2_MODE = reserved_mode("SFPSHFT2", "0 to 6", "math V19")

COPY4: Final = 0
CHAINED_COPY4: Final = 1
ROTATE_AND_COPY4: Final = 2
ROTATE: Final = 3
SHIFT_LANES: Final = 4
SHIFT_BY_REGISTER: Final = 5
SHIFT_BY_IMMEDIATE: Final = 6

_ROTATE_RIGHT: Final = tuple((lane & ~7) | ((lane - 1) & 7) for lane in range(32))
_NEXT_ROW: Final = tuple((lane + 8) & 31 for lane in range(32))
_COLUMN_0: Final = 0x01010101
_LAST_ROW: Final = 0xFF000000


@kernel
def _copy4(t: TileRecord, last: Lanes) -> None:
    """LReg 0, 1, 2 := 1, 2, 3; LReg 3 := `last` (V19)."""
    first, second, third = load32(t.lregs, 1), load32(t.lregs, 2), load32(t.lregs, 3)
    write(t, 0, first)
    write(t, 1, second)
    write(t, 2, third)
    write(t, 3, last)


@instruction(
    Mode("rotate lanes of a row", VERIFIED, vectors="sfpu:SFPSHFT2:3", rule="math V19"),
    Mode("shift lanes of a row", VERIFIED, vectors="sfpu:SFPSHFT2:4", rule="math V19"),
    Mode("shift bits by a register", VERIFIED, vectors="sfpu:SFPSHFT2:5", rule="math V.5"),
    Mode("LReg 0..3 moved down (modes 0, 1, 2); shift bits by an immediate", DOCUMENTED, rule="math V19"),
)
def SFPSHFT2(
    t: TileRecord, thread: Int, imm12_math: Int, lreg_src_c: Int, lreg_dest: Int, instr_mod1: Int, word: Int
) -> Int:
    status = destination(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    c = load32(t.lregs, lreg_src_c)
    if instr_mod1 == COPY4:
        _copy4(t, splat32(0))
    elif instr_mod1 == CHAINED_COPY4:
        _copy4(t, where(mask32(_LAST_ROW), 0, shuffle(load32(t.lregs, 0), _NEXT_ROW)))
    elif instr_mod1 == ROTATE_AND_COPY4:
        _copy4(t, shuffle(c, _ROTATE_RIGHT))
    elif instr_mod1 == ROTATE:
        write(t, lreg_dest, shuffle(c, _ROTATE_RIGHT))
    elif instr_mod1 == SHIFT_LANES:
        write(t, lreg_dest, where(mask32(_COLUMN_0), 0, shuffle(c, _ROTATE_RIGHT)))
    elif instr_mod1 == SHIFT_BY_REGISTER:
        write(t, lreg_dest, shift(load32(t.lregs, imm12_math & 15), c, False))
    elif instr_mod1 == SHIFT_BY_IMMEDIATE:
        write(t, lreg_dest, shift(load32(t.lregs, imm12_math & 15), splat32(signed12(imm12_math)), False))
    else:
        return refuse(t, SHFT2_MODE, instr_mod1)
    return DONE


# --- SFPTRANSP ----------------------------------------------------------------------------------------------------


def _row_everywhere(row: Int) -> Any:
    pattern = tuple(8 * row + (lane & 7) for lane in range(32))

    @kernel
    def spread(a: Lanes) -> Lanes:
        return shuffle(a, pattern)

    return spread


_row0, _row1, _row2, _row3 = (_row_everywhere(row) for row in range(4))


@kernel
def _by_rows(a: Lanes, b: Lanes, c: Lanes, d: Lanes) -> Lanes:
    """Lane row 0 of a, row 1 of b, row 2 of c, row 3 of d."""
    low = where(mask32(0x000000FF), a, b)
    high = where(mask32(0x00FF0000), c, d)
    return where(mask32(0x0000FFFF), low, high)


@kernel
def _transpose4(t: TileRecord, base: Int) -> None:
    r0, r1 = load32(t.lregs, base), load32(t.lregs, base + 1)
    r2, r3 = load32(t.lregs, base + 2), load32(t.lregs, base + 3)
    write(t, base, _by_rows(_row0(r0), _row0(r1), _row0(r2), _row0(r3)))
    write(t, base + 1, _by_rows(_row1(r0), _row1(r1), _row1(r2), _row1(r3)))
    write(t, base + 2, _by_rows(_row2(r0), _row2(r1), _row2(r2), _row2(r3)))
    write(t, base + 3, _by_rows(_row3(r0), _row3(r1), _row3(r2), _row3(r3)))


@instruction(Mode("LReg 0..3 and 4..7", VERIFIED, vectors="sfpu:SFPTRANSP", rule="math V20"))
def SFPTRANSP(t: TileRecord, thread: Int, lreg_dest: Int, word: Int) -> Int:
    if lreg_dest >= FIRST_TEMPLATE:
        status = capture(t, lreg_dest, word)
        if status != EXECUTE:
            return status
    _transpose4(t, 0)
    _transpose4(t, 4)
    return DONE


# --- SFPLE, SFPGT -------------------------------------------------------------------------------------------------

SET_FLAGS: Final = 1
AND_STACK: Final = 2
OR_STACK: Final = 4
SET_REGISTER: Final = 8


@kernel
def _compare(t: TileRecord, d: Int, mode: Int, test: Lanes) -> Int:
    """Deliver a comparison: to the flags, the top of the flag stack, the destination (V.5).

    An empty stack has no top and stays empty; mode bit 2 has a meaning together with bit 1 only.
    """
    bits = mask_bits(test)
    if mode & AND_STACK:
        top, use = stack_top(t, 0, 0)
        set_stack_top(t, top | bits if mode & OR_STACK else top & bits, use)
    if mode & SET_REGISTER:
        write(t, d, where(test, -1, 0))
    if mode & SET_FLAGS:
        set_flags(t, bits)
    return DONE


@instruction(
    Mode("flags", VERIFIED, vectors="sfpu:SFPLE:1", rule="math V.5"),
    Mode("all ones or zero", VERIFIED, vectors="sfpu:SFPLE:8", rule="math V.5"),
    Mode("into the flag stack, combinations, constants as second operand", DOCUMENTED, rule="math V.5"),
)
def SFPLE(t: TileRecord, thread: Int, lreg_c: Int, lreg_dest: Int, instr_mod1: Int, word: Int) -> Int:
    status = destination(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    test = order_key(load32(t.lregs, lreg_dest)) <= order_key(load32(t.lregs, lreg_c))
    return _compare(t, lreg_dest, instr_mod1, test)


@instruction(
    Mode("flags", VERIFIED, vectors="sfpu:SFPGT:1", rule="math V.5"),
    Mode("all ones or zero", VERIFIED, vectors="sfpu:SFPGT:8", rule="math V.5"),
    Mode("into the flag stack, combinations, constants as second operand", DOCUMENTED, rule="math V.5"),
)
def SFPGT(t: TileRecord, thread: Int, lreg_c: Int, lreg_dest: Int, instr_mod1: Int, word: Int) -> Int:
    status = destination(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    test = order_key(load32(t.lregs, lreg_dest)) > order_key(load32(t.lregs, lreg_c))
    return _compare(t, lreg_dest, instr_mod1, test)
