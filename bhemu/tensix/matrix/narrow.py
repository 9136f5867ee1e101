"""Element-wise arithmetic into the 16-bit views of Dst, as binary32, two rows at a time (math F8, F9, F11, F12).

A term has at most 12 bits in units of 2^-10 at its exponent, and so has a Dst value. F12 aligns terms in units of 2^-23
and then rounds them to 2^-10. Aligned by up to 13 places the first step is exact, and by more than that both ways give
0, so that one rounding to units of 2^-10 is the same (matrix/binary32.py). Denormals must not be kept (F5).
"""

from __future__ import annotations

from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import add_floats, mask_bits, maximum, multiply_add_floats, where
from bhemu.machine.types import Bool, Int, Lanes, TileRecord
from bhemu.tensix.matrix.binary32 import (
    EXPONENT,
    EXPONENT_LSB,
    HEADROOM,
    LARGE,
    MOST,
    QUARTER,
    load_bf16_pair,
    load_fp16,
    rounder,
    slice_of_a,
    slice_of_b,
    src_exponent,
    src_mantissa,
    src_sign,
    store_bf16_pair,
    store_fp16,
    subtract,
)
from bhemu.tensix.matrix.operands import SRC_MANTISSA, VIEW_BF16


@kernel(forceinline=True)
def _are_above(limit: Int, a: Lanes, b: Lanes, c: Lanes, d: Lanes) -> Bool:
    """True when an exponent field, in place, is above a limit."""
    return mask_bits(maximum(maximum(a, b), maximum(c, d)) > (limit << EXPONENT_LSB)) != 0


@kernel(forceinline=True)
def _operand(cell: Lanes, exponent: Lanes) -> Lanes:
    """A Src row, a little larger than it is: it is to be rounded half up on the magnitude (F11)."""
    bits = (exponent | src_sign(cell) | src_mantissa(cell, SRC_MANTISSA) | 1) + (HEADROOM << EXPONENT_LSB)
    return where(exponent != 0, bits, 0)


@kernel(forceinline=True)
def _sum(a: Lanes, e_a: Lanes, b: Lanes, e_b: Lanes) -> tuple[Lanes, Lanes]:
    """(sum in units of 2^-10 at the greater exponent, that exponent) of two rows of operands (F11)."""
    exponent = maximum(e_a, e_b) + (HEADROOM << EXPONENT_LSB)
    base = rounder(exponent)
    return subtract(add_floats(add_floats(base, _operand(a, e_a)), _operand(b, e_b)), base), exponent


@kernel(forceinline=True)
def _accumulate(term: Lanes, exponent: Lanes, number: Lanes) -> Lanes:
    """A term that is a quarter of a unit larger, and a Dst row, added at the greater exponent (F12 steps 1 to 4)."""
    base = rounder(maximum(exponent, number & EXPONENT))
    return subtract(add_floats(add_floats(base, term), number), base)


@kernel(forceinline=True)
def _accumulate_pair(t: TileRecord, view: Int, row: Int, t0: Lanes, e0: Lanes, t1: Lanes, e1: Lanes) -> Bool:
    """Two Dst rows += one term per column; False, with nothing written, when exponents of Dst are too large."""
    if view == VIEW_BF16:
        number0, number1, small = load_bf16_pair(t, row)
        if not small:
            return False
        store_bf16_pair(t, row, _accumulate(t0, e0, number0), _accumulate(t1, e1, number1))
    else:
        store_fp16(t, row, _accumulate(t0, e0, load_fp16(t, row)))
        store_fp16(t, row + 1, _accumulate(t1, e1, load_fp16(t, row + 1)))
    return True


@kernel(forceinline=True)
def add_pair(t: TileRecord, view: Int, a0: Lanes, b0: Lanes, a1: Lanes, b1: Lanes, accumulate: Int, row: Int) -> Bool:
    """Two Dst rows = SrcA + SrcB, or += (F11), in fidelity phase 0.

    False, with nothing written, when exponents are too large for binary32.
    """
    e_a0, e_b0, e_a1, e_b1 = src_exponent(a0), src_exponent(b0), src_exponent(a1), src_exponent(b1)
    if _are_above(MOST, e_a0, e_b0, e_a1, e_b1):
        return False
    total0, e0 = _sum(a0, e_a0, b0, e_b0)
    total1, e1 = _sum(a1, e_a1, b1, e_b1)
    if accumulate:
        term0, term1 = add_floats(total0, e0 - QUARTER), add_floats(total1, e1 - QUARTER)
        return _accumulate_pair(t, view, row, term0, e0, term1, e1)
    if view == VIEW_BF16:
        store_bf16_pair(t, row, total0, total1)
    else:
        store_fp16(t, row, total0)
        store_fp16(t, row + 1, total1)
    return True


@kernel(forceinline=True)
def _product(a: Lanes, e_a: Lanes, b: Lanes, e_b: Lanes, phase: Int, scale: Int, bias: Int) -> tuple[Lanes, Lanes]:
    """(product and a quarter of a unit, exponent) of two rows of operands (F8, F9)."""
    least = HEADROOM << EXPONENT_LSB
    exponent = e_a + e_b + ((bias + HEADROOM) << EXPONENT_LSB)
    alive = (e_a != 0) & (e_b != 0) & (exponent > least)
    exponent = where(alive, exponent, (max(bias, 0) + HEADROOM) << EXPONENT_LSB)
    product = multiply_add_floats(slice_of_a(a, phase, scale, 0), slice_of_b(b, phase, scale), exponent - QUARTER)
    return where(alive, product, 0), exponent


@kernel(forceinline=True)
def multiply_pair(
    t: TileRecord,
    view: Int,
    a0: Lanes,
    b0: Lanes,
    a1: Lanes,
    b1: Lanes,
    phase: Int,
    scale: Int,
    bias: Int,
    row: Int,
) -> Bool:
    """Two Dst rows += SrcA * SrcB (F8, F9, F11); False, with nothing written, when exponents are too large."""
    e_a0, e_b0, e_a1, e_b1 = src_exponent(a0), src_exponent(b0), src_exponent(a1), src_exponent(b1)
    if _are_above(LARGE, e_a0, e_b0, e_a1, e_b1):
        return False
    term0, e0 = _product(a0, e_a0, b0, e_b0, phase, scale, bias)
    term1, e1 = _product(a1, e_a1, b1, e_b1, phase, scale, bias)
    return _accumulate_pair(t, view, row, term0, e0, term1, e1)
