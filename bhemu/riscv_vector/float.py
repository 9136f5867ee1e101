"""Floating-point vector instructions of core T2: FP32 elements, and the arithmetic of F (tile T6, T7)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import MissingSpecification
from bhemu.machine.faults import DONE, REFUSED, fault, open_choice, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.types import AnyInt, Int, TileRecord
from bhemu.riscv.csr import FLAGS_UNKNOWN
from bhemu.riscv.float import (
    MAGNITUDE,
    ONE,
    SIGN,
    classify,
    from_magnitude,
    is_nan,
    magnitude_of,
    minimum_maximum,
    number_of,
    scalar_fma,
)
from bhemu.riscv_vector.elements import (
    HALF_FLOATS,
    NOT_THERE,
    WORD,
    bad_overlap,
    clobbers_mask,
    element,
    element_bytes,
    flags_of,
    group_eighths,
    is_active,
    is_group,
    mask_bit,
    overlap,
    reserved,
    set_element,
    set_mask_bit,
    signed_of,
)
from bhemu.riscv_vector.permute import move_to_first, slide_one

# funct6
ADD, REDUCE_UNORDERED, SUB, REDUCE_ORDERED = 0x00, 0x01, 0x02, 0x03
MIN, REDUCE_MIN, MAX, REDUCE_MAX = 0x04, 0x05, 0x06, 0x07
SGNJ, SGNJN, SGNJX, SLIDE_UP, SLIDE_DOWN = 0x08, 0x09, 0x0A, 0x0E, 0x0F
SCALARS, CONVERT, UNARY, MERGE = 0x10, 0x12, 0x13, 0x17
EQ, LE, LT, NE, GT, GE = 0x18, 0x19, 0x1B, 0x1C, 0x1D, 0x1F
DIV, RDIV, MUL, RSUB = 0x20, 0x21, 0x24, 0x27
MADD, NMADD, MSUB, NMSUB, MACC, NMACC, MSAC, NMSAC = 0x28, 0x29, 0x2A, 0x2B, 0x2C, 0x2D, 0x2E, 0x2F
_CLASSIFY: Final = 0x10
_VECTOR_FORM: Final = 1


_IS_THERE: Final = flags_of(
    *(ADD, SUB, MIN, MAX, SGNJ, SGNJN, SGNJX, MERGE, EQ, LE, LT, NE, GT, GE, MUL, RSUB),
    *(MADD, NMADD, MSUB, NMSUB, MACC, NMACC, MSAC, NMSAC),
)
_SCALAR_ONLY: Final = flags_of(MERGE, GT, GE, RSUB)
_COMPARES: Final = flags_of(EQ, LE, LT, NE, GT, GE)

TOWARDS_ZERO: Final = fault(
    "riscv.vector-towards-zero",
    MissingSpecification,
    "{0:#010x} converts with truncation: the documents say that hardware ignores rounding modes, and not whether that "
    "holds for conversions that are named after one",
    remedy="use the conversion without rtz, which rounds to nearest even, or allow open choices to have it truncate",
    rule="tile T7",
)
ORDER: Final = fault(
    "riscv.vector-order",
    MissingSpecification,
    "{0:#010x} (vfredusum) adds in an order that each implementation chooses, and no source says which T2 has",
    remedy="use vfredosum, or allow open choices to have the elements added one after the other",
    rule="tile T7",
)


@kernel
def _arithmetic(f: Int, a: Int, b: Int, old: Int) -> Int:
    """Sums, products and multiply-adds; `a` is vs2, `b` vs1 or the scalar."""
    if f == ADD:
        return scalar_fma(a, np.int64(ONE), b)
    if f == SUB:
        return scalar_fma(a, np.int64(ONE), b ^ SIGN)
    if f == RSUB:
        return scalar_fma(b, np.int64(ONE), a ^ SIGN)
    if f == MUL:
        return scalar_fma(a, b, (a ^ b) & SIGN)
    x, z = a, old
    if f <= NMSUB:  # the destination is a factor
        x, z = old, a
    if f in (NMADD, NMSUB, NMACC, NMSAC):
        x = x ^ SIGN
    if f in (NMADD, MSUB, NMACC, MSAC):
        z = z ^ SIGN
    return scalar_fma(x, b, z)


@kernel
def _element(f: Int, a: Int, b: Int, old: Int) -> AnyInt:
    if f in (MIN, MAX):
        return minimum_maximum(a, b, f == MAX)
    if f == SGNJ:
        return (a & MAGNITUDE) | (b & SIGN)
    if f == SGNJN:
        return (a & MAGNITUDE) | ((b & SIGN) ^ SIGN)
    if f == SGNJX:
        return a ^ (b & SIGN)
    return _arithmetic(f, a, b, old)


@kernel
def _compared(f: Int, a: Int, b: Int) -> Int:
    if is_nan(a) or is_nan(b):
        return np.int64(1) if f == NE else np.int64(0)
    x, y = number_of(a), number_of(b)
    holds = x == y
    if f == NE:
        holds = x != y
    elif f == LE:
        holds = x <= y
    elif f == LT:
        holds = x < y
    elif f == GT:
        holds = x > y
    elif f == GE:
        holds = x >= y
    return np.int64(1) if holds else np.int64(0)


@kernel
def _reduce(t: TileRecord, word: Int, f: Int) -> Any:
    to, first, second = (word >> 7) & 31, (word >> 20) & 31, (word >> 15) & 31
    if not is_group(first, group_eighths(t), np.int64(4)):
        return reserved(t, word)
    if f == REDUCE_UNORDERED and not open_choice(t, ORDER, word):
        return REFUSED
    length = np.int64(t.vector_core.vl)
    if length == 0:
        return DONE
    result = element(t, second, np.int64(0), np.int64(4))
    for i in range(length):
        if is_active(t, word, i):
            value = element(t, first, i, np.int64(4))
            if f in (REDUCE_MIN, REDUCE_MAX):
                result = minimum_maximum(result, value, f == REDUCE_MAX)
            else:
                result = scalar_fma(result, np.int64(ONE), value)
    set_element(t, to, np.int64(0), np.int64(4), result)
    return DONE


@kernel
def _integer(x: Int, size: Int, as_signed: Int, truncates: Int) -> Int:
    """FP32 bits as an integer of `size` bytes that saturates; NaN is the largest (T6)."""
    bits = 8 * size
    high = (np.int64(1) << (bits - as_signed)) - 1
    low = -(high + 1) if as_signed else np.int64(0)
    if is_nan(x):
        return high
    magnitude = magnitude_of(x)
    exponent = (x >> 23) & 0xFF
    if truncates and exponent < 150:
        magnitude = ((x & 0x7FFFFF) | 0x800000) >> (150 - exponent) if exponent >= 127 else np.int64(0)
    value = -magnitude if x & SIGN else magnitude
    return min(max(value, low), high)


@kernel
def _convert(t: TileRecord, word: Int) -> Any:
    """vfcvt, vfwcvt from integers, vfncvt to integers."""
    kind, to, first = (word >> 15) & 31, (word >> 7) & 31, (word >> 20) & 31
    size, eighths = element_bytes(t), group_eighths(t)
    what, shape = kind & 7, kind >> 3  # shape 0 one width, 1 widens, 2 narrows
    to_float = what in (2, 3)
    if what in (4, 5) or shape == 3:
        return refuse(t, HALF_FLOATS, word, np.int64(t.vector_core.vtype)) if what < 6 else reserved(t, word)
    to_size, from_size = size, size
    if shape == 1:
        to_size = 2 * size
    elif shape == 2:
        from_size = 2 * size
    if (to_size if to_float else from_size) != 4:
        return refuse(t, HALF_FLOATS, word, np.int64(t.vector_core.vtype))
    to_eighths, from_eighths = eighths * to_size // size, eighths * from_size // size
    if not is_group(to, to_eighths, to_size) or not is_group(first, from_eighths, from_size):
        return reserved(t, word)
    if clobbers_mask(word, to) or bad_overlap(to, to_eighths, to_size, first, from_eighths, from_size):
        return reserved(t, word)
    if what >= 6 and not open_choice(t, TOWARDS_ZERO, word):
        return REFUSED
    for i in range(np.int64(t.vector_core.vl)):
        if not is_active(t, word, i):
            continue
        value = element(t, first, i, from_size)
        if not to_float:
            result = _integer(value, to_size, what & 1, 1 if what >= 6 else 0)
        elif what == 3:
            number = signed_of(value, from_size)
            result = from_magnitude(-number, np.int64(SIGN)) if number < 0 else from_magnitude(number, np.int64(0))
        else:
            result = from_magnitude(value, np.int64(0))
        set_element(t, to, i, to_size, result)
    return DONE


@kernel
def _classes(t: TileRecord, word: Int) -> Any:
    to, first = (word >> 7) & 31, (word >> 20) & 31
    if (word >> 15) & 31 != _CLASSIFY:
        return refuse(t, NOT_THERE, word)
    eighths = group_eighths(t)
    if not is_group(to, eighths, np.int64(4)) or not is_group(first, eighths, np.int64(4)) or clobbers_mask(word, to):
        return reserved(t, word)
    for i in range(np.int64(t.vector_core.vl)):
        if is_active(t, word, i):
            set_element(t, to, i, np.int64(4), classify(element(t, first, i, np.int64(4))))
    return DONE


@kernel
def _each(t: TileRecord, core: Int, word: Int, f: Int) -> Any:
    """Instructions that work on each element by itself."""
    to, first, second = (word >> 7) & 31, (word >> 20) & 31, (word >> 15) & 31
    vectors = (word >> 12) & 7 == _VECTOR_FORM
    masked = (word >> 25) & 1 == 0
    size, eighths = np.int64(4), group_eighths(t)
    if not _IS_THERE[f] or (vectors and _SCALAR_ONLY[f]) or (f == MERGE and not masked and first != 0):
        return reserved(t, word)
    if not is_group(first, eighths, size) or (vectors and not is_group(second, eighths, size)):
        return reserved(t, word)
    if _COMPARES[f]:
        if to != first and overlap(to, np.int64(8), first, eighths):
            return reserved(t, word)
        if vectors and to != second and overlap(to, np.int64(8), second, eighths):
            return reserved(t, word)
    elif not is_group(to, eighths, size) or clobbers_mask(word, to):
        return reserved(t, word)
    scalar = np.int64(t.core_f[core, second])
    for i in range(np.int64(t.vector_core.vl)):
        a = element(t, first, i, size)
        if f == MERGE:
            set_element(t, to, i, size, a if masked and not mask_bit(t, np.int64(0), i) else scalar)
        elif is_active(t, word, i):
            b = element(t, second, i, size) if vectors else scalar
            if _COMPARES[f]:
                set_mask_bit(t, to, i, _compared(f, a, b))
            else:
                set_element(t, to, i, size, _element(f, a, b, element(t, to, i, size)))
    return DONE


@kernel
def execute_float_vector(t: TileRecord, core: Int, word: Int) -> Any:
    """Execute an OPF instruction; returns a status."""
    f, number = word >> 26, (word >> 15) & 31
    vectors = (word >> 12) & 7 == _VECTOR_FORM
    if f in (DIV, RDIV):
        return refuse(t, NOT_THERE, word)
    if f == CONVERT and vectors:
        t.core_fcsr[core] |= np.uint32(FLAGS_UNKNOWN)
        return _convert(t, word)
    if element_bytes(t) != 4:
        return refuse(t, HALF_FLOATS, word, np.int64(t.vector_core.vtype))
    if f >= 0x30:
        return reserved(t, word)  # results of 64 bits
    scalar = np.int64(t.core_f[core, number])
    if f == SCALARS:
        if not vectors:
            return move_to_first(t, word, scalar)
        if number != 0 or (word >> 25) & 1 == 0:
            return reserved(t, word)
        t.core_f[core, (word >> 7) & 31] = np.uint32(element(t, (word >> 20) & 31, np.int64(0), np.int64(4)) & WORD)
        return DONE
    if f in (SLIDE_UP, SLIDE_DOWN):
        return slide_one(t, word, f == SLIDE_UP, scalar) if not vectors else reserved(t, word)
    if f == UNARY and vectors:
        return _classes(t, word)
    t.core_fcsr[core] |= np.uint32(FLAGS_UNKNOWN)
    if f in (REDUCE_UNORDERED, REDUCE_ORDERED, REDUCE_MIN, REDUCE_MAX):
        return _reduce(t, word, f) if vectors else reserved(t, word)
    return _each(t, core, word, f)
