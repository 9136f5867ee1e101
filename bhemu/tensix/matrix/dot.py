"""Floating-point dot products: Dst rows += SrcB rows x SrcA (math F8..F10, F12, F13).

The sixteen products of a Dst element form two groups, k = 0..7 and k = 8..15, that are aligned and summed separately.
Products and sums are those of binary32 lanes (matrix/binary32.py), unless exponents are too large for them, or
Dst rows do not follow each other: then of integers (matrix/dot_large.py).

Exponents fit 16 bits: those of both groups are handled at once. Each 32-bit lane is a column, its low half group 0 and
its high half group 1.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import (
    add_floats,
    as_halves,
    as_words,
    load16,
    mask_bits,
    maximum,
    multiply_add_floats,
    shuffle,
    splat16,
    store16,
    where,
)
from bhemu.machine.types import Bool, Int, Lanes, TileRecord
from bhemu.tensix.matrix.binary32 import (
    EXPONENT,
    EXPONENT_LSB,
    HEADROOM,
    LARGE,
    LITTLE,
    QUARTER,
    alive,
    load_bf16_pair,
    load_fp16,
    rounder,
    scale_of,
    slice_of_a,
    slice_of_b,
    store_bf16_pair,
    store_fp16,
    subtract,
)
from bhemu.tensix.matrix.dot_large import GROUP, NO_EXPONENT, SWAP, TERM_SHIFT, dot_rows_of_large, pair_of
from bhemu.tensix.matrix.dst import accumulate_two
from bhemu.tensix.matrix.fidelity import exponent_bias
from bhemu.tensix.matrix.operands import SRC_EXPONENT, VIEW_BF16, VIEW_FP16

# Rows of `t.matrix.scratch`
_A: Final = 0
_A_EXPONENTS: Final = 2 * GROUP
_B: Final = 3 * GROUP
_B_EXPONENTS: Final = 4 * GROUP

_TWICE_ROUNDED: Final = (24 << EXPONENT_LSB) - (1 << 21)


@kernel(forceinline=True)
def _prepare_a(t: TileRecord, row: Int, trim: Int, phase: Int, scale: Int) -> Lanes:
    """Decode sixteen SrcA rows, for all SrcB rows at once; the greatest exponents."""
    greatest = as_halves(splat16(0))
    for k in range(GROUP):
        low, high = load16(t.srca, row + k) & trim, load16(t.srca, row + k + GROUP) & trim
        store16(t.matrix.scratch, _A + k, alive(low, slice_of_a(low, phase, scale, LITTLE)))
        store16(t.matrix.scratch, _A + GROUP + k, alive(high, slice_of_a(high, phase, scale, LITTLE)))
        pair = as_halves((low & SRC_EXPONENT) | ((high & SRC_EXPONENT) << 16))
        greatest = maximum(greatest, pair)
        store16(t.matrix.scratch, _A_EXPONENTS + k, as_words(where(pair != 0, pair, NO_EXPONENT)))
    return greatest


@kernel(forceinline=True)
def _prepare_b(t: TileRecord, index: Int, row: Int, trim: Int, phase: Int, scale: Int, bias: Int) -> Lanes:
    """Decode one SrcB row; its exponents."""
    cell = load16(t.srcb, row) & trim
    store16(t.matrix.scratch, _B + index, alive(cell, slice_of_b(cell, phase, scale)))
    field = cell & SRC_EXPONENT
    biased = where(field != 0, field + bias, NO_EXPONENT)
    store16(t.matrix.scratch, _B_EXPONENTS + index, pair_of(biased, shuffle(biased, SWAP)))
    return field


@kernel(forceinline=True)
def _prepare(
    t: TileRecord,
    phase: Int,
    scale: Int,
    bias: Int,
    a_row: Int,
    a_trim: Int,
    b_row: Int,
    b_step: Int,
    b_trim: Int,
    count: Int,
) -> Bool:
    """Decode the operands; False when exponents are too large for binary32."""
    # A slice of SrcA is a little larger than it is, so that ties of products are rounded up on the magnitude (F10).
    greatest_a = _prepare_a(t, a_row, a_trim, phase, scale)
    greatest_b = splat16(0)
    for i in range(count):
        greatest_b = maximum(greatest_b, _prepare_b(t, i, b_row + i * b_step, b_trim, phase, scale, bias + HEADROOM))
    return (mask_bits(greatest_a > LARGE) | mask_bits(greatest_b > LARGE)) == 0


@kernel(forceinline=True)
def _b(t: TileRecord, row: Int, k: Int) -> Lanes:
    """A number of a SrcB row, or a pair of exponents, in all columns."""
    return splat16(np.int64(t.matrix.scratch[row, k]))


@kernel(forceinline=True)
def _greatest(t: TileRecord, index: Int, zero_exponent: Int) -> Lanes:
    """The greatest exponent of each group for one SrcB row, as pairs (F10).

    `zero_exponent` is the exponent of zero products (F9). Where it is above zero it is below that of any other product,
    so taking it into the maximum without looking for zero products changes nothing.
    """
    greatest = as_halves(splat16(zero_exponent | (zero_exponent << 16)))
    for k in range(GROUP):
        exponent = as_halves(load16(t.matrix.scratch, _A_EXPONENTS + k)) + as_halves(_b(t, _B_EXPONENTS + index, k))
        greatest = maximum(greatest, exponent)
    return as_words(greatest)


@kernel(forceinline=True)
def _total(sums: Lanes, exponent: Lanes) -> Lanes:
    """What products added to a group's rounder; nothing where no product's exponent is above zero (F9)."""
    return where(exponent > (HEADROOM << EXPONENT_LSB), subtract(sums, rounder(exponent)), 0)


@kernel(forceinline=True)
def _units(sums: Lanes, exponent: Lanes) -> Lanes:
    """`_total` as an integer, in units of 2^-23 (F10 step 3)."""
    return where(exponent > (HEADROOM << EXPONENT_LSB), sums - rounder(exponent), 0) << TERM_SHIFT


@kernel(forceinline=True)
def _term(total: Lanes, exponent: Lanes, greatest: Lanes) -> Lanes:
    """A group's sum, ready to be rounded to units of 2^-10 at the greatest exponent (F12 steps 2 and 3).

    The rule rounds half up to units of 2^-23, and then half up to units of 2^-10. Both together are one rounding of
    what is 2^-14 units larger. That and a tie are covered by adding a quarter of the sum's own unit, or
    1.25 * 2^-14 units of the greatest exponent, whichever is more: neither takes any other number over a tie.
    """
    return add_floats(total, maximum(exponent - QUARTER, greatest - _TWICE_ROUNDED))


@kernel(forceinline=True)
def _sum(number: Lanes, sums0: Lanes, exponent0: Lanes, sums1: Lanes, exponent1: Lanes) -> Lanes:
    """A Dst row and two group sums, added at the greatest exponent (F12 steps 1 to 4)."""
    greatest = maximum(maximum(exponent0, exponent1), number & EXPONENT)
    base = rounder(greatest)
    total = add_floats(base, _term(_total(sums0, exponent0), exponent0, greatest))
    total = add_floats(total, _term(_total(sums1, exponent1), exponent1, greatest))
    return subtract(add_floats(total, number), base)


@kernel(forceinline=True)
def _add_integers(
    t: TileRecord, view: Int, row: Int, sums0: Lanes, exponent0: Lanes, sums1: Lanes, exponent1: Lanes
) -> None:
    """Dst row += two group sums (F12), in units of 2^-23 or at any exponent."""
    field0, field1 = (exponent0 >> EXPONENT_LSB) - HEADROOM, (exponent1 >> EXPONENT_LSB) - HEADROOM
    accumulate_two(t, view, row, _units(sums0, exponent0), field0, _units(sums1, exponent1), field1)


@kernel
def dot_rows(
    t: TileRecord,
    style: Int,
    view: Int,
    phase: Int,
    a_row: Int,
    a_trim: Int,
    b_row: Int,
    b_step: Int,
    b_trim: Int,
    dst_row: Int,
    dst_step: Int,
    count: Int,
) -> None:
    """Dst rows += SrcB rows x sixteen SrcA rows (F10).

    Args:
        a_row, b_row: positions for `load16`; dst_row: logical.
        b_step, dst_step: rows from one product to the next.
        count: products, an even number of at most eight.
    """
    bias = exponent_bias(style, view, phase)
    scale = scale_of(exponent_bias(style, view, 0))
    # Rows are accumulated in pairs that follow each other.
    if dst_step != 1 or not _prepare(t, phase, scale, bias, a_row, a_trim, b_row, b_step, b_trim, count):
        dot_rows_of_large(t, view, phase, bias, a_row, a_trim, b_row, b_step, b_trim, dst_row, dst_step, count)
        return
    zero_exponent = max(bias, 0) + HEADROOM
    for i in range(0, count, 2):
        pairs0, pairs1 = _greatest(t, i, zero_exponent), _greatest(t, i + 1, zero_exponent)
        e00, e01 = pairs0 << EXPONENT_LSB, (pairs0 >> 16) << EXPONENT_LSB
        e10, e11 = pairs1 << EXPONENT_LSB, (pairs1 >> 16) << EXPONENT_LSB
        s00, s01, s10, s11 = rounder(e00), rounder(e01), rounder(e10), rounder(e11)
        for k in range(GROUP):
            a = load16(t.matrix.scratch, _A + k)
            s00 = multiply_add_floats(a, _b(t, _B + i, k), s00)
            s10 = multiply_add_floats(a, _b(t, _B + i + 1, k), s10)
            a = load16(t.matrix.scratch, _A + GROUP + k)
            s01 = multiply_add_floats(a, _b(t, _B + i, GROUP + k), s01)
            s11 = multiply_add_floats(a, _b(t, _B + i + 1, GROUP + k), s11)
        row = dst_row + i
        if view == VIEW_BF16:
            number0, number1, small = load_bf16_pair(t, row)
            if small:
                total0 = _sum(number0, s00, e00, s01, e01)
                total1 = _sum(number1, s10, e10, s11, e11)
                store_bf16_pair(t, row, total0, total1)
                continue
        elif view == VIEW_FP16:
            store_fp16(t, row, _sum(load_fp16(t, row), s00, e00, s01, e01))
            store_fp16(t, row + 1, _sum(load_fp16(t, row + 1), s10, e10, s11, e11))
            continue
        _add_integers(t, view, row, s00, e00, s01, e01)
        _add_integers(t, view, row + 1, s10, e10, s11, e11)
