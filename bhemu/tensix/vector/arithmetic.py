"""Tables, approximate reciprocal and exponential, 23-bit multiplication (math V12 to V15)."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from bhemu.errors import NonContractualBehavior
from bhemu.machine.faults import DONE, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import gather, load32, maximum, minimum, shift_right_logical, splat32, where
from bhemu.machine.types import AnyInt, Int, Lanes, TileRecord
from bhemu.tensix.instruction import DOCUMENTED, VERIFIED, Mode, instruction
from bhemu.tensix.vector.fma import INDIRECT_A, INDIRECT_D, INFINITY, MAGNITUDE, fma
from bhemu.tensix.vector.registers import (
    ONE_FP32,
    SIGN,
    ZERO,
    deliver,
    destination,
    read_indirect,
    reserved_mode,
    write,
)
from bhemu.tensix.vector_queue import EXECUTE

TWO_FP32: Final = 0x40000000
KEEP_SIGN: Final = 4
"""Mode bit 2 of the tables: the result takes the sign of LReg 3 (V12, V13)."""
ARGUMENT: Final = 3
"""LReg of the tables' argument."""


@kernel
def _finish(t: TileRecord, d: Int, mode: Int, result: Lanes) -> Int:
    """Sign and destination of a table's result."""
    if mode & KEEP_SIGN:
        result = (result & MAGNITUDE) | (load32(t.lregs, ARGUMENT) & SIGN)
    return deliver(t, d, mode & INDIRECT_D, result)


@kernel
def _entry(b: Lanes, first: Lanes, second: Lanes, third: Lanes) -> Lanes:
    """Entry 0 below 1.0, 1 below 2.0, else 2; compared as integers, so a NaN takes entry 2 (V12)."""
    return where(b < ONE_FP32, first, where(b < TWO_FP32, second, third))


# --- SFPLUT -------------------------------------------------------------------------------------------------------

LUT_MODE = reserved_mode("SFPLUT", "bit 2 to keep the sign, bit 3 for the destination index from LReg 7", "math V12")


@kernel
def _lut8(code: Lanes) -> Lanes:
    """8-bit coefficient {sign, 3-bit negated exponent, 4-bit mantissa} as FP32; 0xFF is +0 (V12)."""
    bits = ((code & 0x80) << 24) | ((127 - (shift_right_logical(code, 4) & 7)) << 23) | ((code & 0xF) << 19)
    return where(code == 0xFF, 0, bits)


@instruction(
    Mode("sign kept (mode 4)", VERIFIED, vectors="sfpu:SFPLUT", rule="math V12"),
    Mode("sign of the sum; destination index from LReg 7", DOCUMENTED, rule="math V12"),
)
def SFPLUT(t: TileRecord, thread: Int, lreg_ind: Int, instr_mod0: Int, word: Int) -> Int:
    status = destination(t, lreg_ind, word)
    if status != EXECUTE:
        return status
    if instr_mod0 & 3:
        return refuse(t, LUT_MODE, instr_mod0)
    b = load32(t.lregs, ARGUMENT) & MAGNITUDE
    entry = _entry(b, load32(t.lregs, 0), load32(t.lregs, 1), load32(t.lregs, 2))
    result = fma(_lut8(shift_right_logical(entry, 8) & 0xFF), b, _lut8(entry & 0xFF))
    return _finish(t, lreg_ind, instr_mod0, result)


# --- SFPLUTFP32 ---------------------------------------------------------------------------------------------------

LUTFP32_MODE = reserved_mode(
    "SFPLUTFP32", "tables 0 and 8 (FP32), 2 and 3 (six FP16 entries), 10 (three), plus 4 to keep the sign", "math V13"
)
_FP32_TABLES: Final = (0, 8)
_SIX_ENTRIES: Final = 2
_SIX_ENTRIES_TO_4: Final = 3
_THREE_ENTRIES: Final = 10
_BREAK_HALF: Final = 0x3F000000
_BREAK_1_5: Final = 0x3FC00000
_BREAK_3: Final = 0x40400000
_BREAK_4: Final = 0x40800000


@kernel
def _lut16(code: Lanes) -> Lanes:
    """FP16 coefficient as FP32: exponent 31 gives a zero, exponent 0 is a normal number (V13)."""
    exponent = shift_right_logical(code, 10) & 0x1F
    wide = where(exponent == 31, 0, exponent + 112)
    return ((code & 0x8000) << 16) | (wide << 23) | ((code & 0x3FF) << 13)


@instruction(
    Mode("six FP16 entries, last break 3 (mode 2)", VERIFIED, vectors="sfpu:SFPLUTFP32", rule="math V13"),
    Mode("last break 4, three FP32 or FP16 entries, sign kept, destination index", DOCUMENTED, rule="math V13"),
)
def SFPLUTFP32(t: TileRecord, thread: Int, lreg_dest: Int, instr_mod1: Int, word: Int) -> Int:
    status = destination(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    table = instr_mod1 & ~KEEP_SIGN
    b = load32(t.lregs, ARGUMENT) & MAGNITUDE
    slope = _entry(b, load32(t.lregs, 0), load32(t.lregs, 1), load32(t.lregs, 2))
    offset = _entry(b, load32(t.lregs, 4), load32(t.lregs, 5), load32(t.lregs, 6))
    if table == _THREE_ENTRIES:
        offset = _lut16(slope & 0xFFFF)
        slope = _lut16(shift_right_logical(slope, 16))
    elif table in (_SIX_ENTRIES, _SIX_ENTRIES_TO_4):
        last = _BREAK_3 if table == _SIX_ENTRIES else _BREAK_4
        # Each entry register holds two intervals: below the break in the low half, from it on in the high half.
        middle = _entry(b, splat32(_BREAK_HALF), splat32(_BREAK_1_5), splat32(last))
        upper = b >= middle
        slope = _lut16(where(upper, shift_right_logical(slope, 16), slope & 0xFFFF))
        offset = _lut16(where(upper, shift_right_logical(offset, 16), offset & 0xFFFF))
    elif table not in _FP32_TABLES:
        return refuse(t, LUTFP32_MODE, instr_mod1)
    return _finish(t, lreg_dest, instr_mod1, fma(slope, b, offset))


# --- SFPARECIP ----------------------------------------------------------------------------------------------------

RECIPROCAL: Final = 0
RECIPROCAL_IF_NEGATIVE: Final = 1

_SMALLEST_NORMAL: Final = 0x00800000
_EXP_FIRST: Final = 0x3C800000
"""2 ** -6: from here up to 2.0 the exponential has a table (V14)."""
_FOUR_FP32: Final = 0x40800000


@kernel
def _reciprocal_mantissa(index: Lanes) -> Lanes:
    """round(65536 / (257 + 2 * index)) - 128 by long division: the quotient has 8 bits, the top one set (V14)."""
    divisor = (index << 1) + 257
    # floor((2 * 65536 + divisor) / (2 * divisor)) rounds to nearest; the divisor is odd, so there is no tie
    rest = 131072 + divisor - (divisor << 8)
    quotient = splat32(0)
    for bit in range(6, -1, -1):
        step = rest - (divisor << (bit + 1))
        fits = step >= 0
        rest = where(fits, step, rest)
        quotient = where(fits, quotient | (1 << bit), quotient)
    return quotient


@kernel
def approximate_reciprocal(v: Lanes) -> Lanes:
    """1 / v with 7 mantissa bits, sign kept (V14)."""
    exponent = shift_right_logical(v, 23) & 0xFF
    bits = ((253 - exponent) << 23) | (_reciprocal_mantissa(shift_right_logical(v, 16) & 0x7F) << 16)
    bits = where(exponent >= 253, 0, bits)
    return (v & SIGN) | where(exponent == 0, INFINITY, bits)


def _exponential_table() -> np.ndarray[Any, np.dtype[np.int32]]:
    """Top half of e^X, truncated, for each top half X of an FP32 number from 2^-6 up to 2.0 (V14)."""
    top = np.arange(_EXP_FIRST >> 16, TWO_FP32 >> 16, dtype=np.uint32)
    values = np.array([math.exp(x) for x in (top << 16).view(np.float32)])
    rounded = values.astype(np.float32)
    bits = rounded.view(np.uint32) - (rounded > values)  # the largest FP32 number that is not above e^X
    return (bits >> 16).astype(np.int32)


EXPONENTIAL: Final = _exponential_table()


@kernel
def approximate_exponential(v: Int) -> AnyInt:
    """e^|v| with the sign of v put back (V14)."""
    u = v & MAGNITUDE
    low = u & 0xFFFF
    index = minimum(maximum(shift_right_logical(u, 16) - (_EXP_FIRST >> 16), 0), len(EXPONENTIAL) - 1)
    result = where(u < TWO_FP32, (gather(EXPONENTIAL, index) << 16) | low, _FOUR_FP32 | low)
    result = where(u < _EXP_FIRST, 0x3F810000 | low, result)
    result = where(u < _SMALLEST_NORMAL, ONE_FP32, result)
    return (v & SIGN) | result


@instruction(
    Mode("reciprocal", VERIFIED, vectors="sfpu:SFPARECIP:0", rule="math V14"),
    Mode("reciprocal where another register is negative (mode 1)", DOCUMENTED, rule="math V14"),
    Mode("exponential (modes 2 to 15)", DOCUMENTED, rule="math V14"),
)
def SFPARECIP(
    t: TileRecord, thread: Int, imm12_math: Int, lreg_c: Int, lreg_dest: Int, instr_mod1: Int, word: Int
) -> Int:
    status = destination(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    c = load32(t.lregs, lreg_c)
    if instr_mod1 == RECIPROCAL:
        write(t, lreg_dest, approximate_reciprocal(c))
    elif instr_mod1 == RECIPROCAL_IF_NEGATIVE:
        write(t, lreg_dest, where(load32(t.lregs, imm12_math) < 0, approximate_reciprocal(c & MAGNITUDE), c))
    else:
        write(t, lreg_dest, approximate_exponential(c))
    return DONE


# --- SFPMUL24 -----------------------------------------------------------------------------------------------------

MUL24_ADDEND = fault(
    "vector.mul24-addend",
    NonContractualBehavior,
    "SFPMUL24 with register c {0}: what is added is a by-product of the floating-point path",
    remedy="use LReg 9 (zero) as register c, and SFPIADD to add",
    rule="math V15",
)
MUL24_MODE = reserved_mode("SFPMUL24", "bit 0 for the high part, bits 2 and 3 for indices from LReg 7", "math V15")

_LOW23: Final = 0x7FFFFF


@kernel
def _high23(x: Lanes, y: Lanes) -> Lanes:
    """Bits 45:23 of a product of 23-bit numbers; 12-bit halves fit 32-bit lanes."""
    xh, xl = shift_right_logical(x, 12), x & 0xFFF
    yh, yl = shift_right_logical(y, 12), y & 0xFFF
    middle = xh * yl + xl * yh
    low = xl * yl + ((middle & 0xFFF) << 12)
    high = xh * yh + shift_right_logical(middle, 12)
    return ((high << 1) + shift_right_logical(low, 23)) & _LOW23


@instruction(
    Mode("low part", VERIFIED, vectors="sfpu:SFPMUL24:0", rule="math V15"),
    Mode("high part", VERIFIED, vectors="sfpu:SFPMUL24:1", rule="math V15"),
    Mode("register indices from LReg 7 (mode bits 2, 3)", DOCUMENTED, rule="math V11, V15"),
)
def SFPMUL24(
    t: TileRecord,
    thread: Int,
    lreg_src_a: Int,
    lreg_src_b: Int,
    lreg_src_c: Int,
    lreg_dest: Int,
    instr_mod1: Int,
    word: Int,
) -> Int:
    status = destination(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    if instr_mod1 & 2:
        return refuse(t, MUL24_MODE, instr_mod1)
    if lreg_src_c != ZERO:
        return refuse(t, MUL24_ADDEND, lreg_src_c)
    a = read_indirect(t) if instr_mod1 & INDIRECT_A else load32(t.lregs, lreg_src_a)
    b = load32(t.lregs, lreg_src_b)
    result = _high23(a & _LOW23, b & _LOW23) if instr_mod1 & 1 else (a * b) & _LOW23
    return deliver(t, lreg_dest, instr_mod1 & INDIRECT_D, result)
