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
from bhemu.machine.lanes import add_floats, load16, maximum, multiply_add_floats, splat16, subtract_floats, where
from bhemu.machine.types import Int, Lanes, TileRecord
from bhemu.tensix.matrix.binary32 import (
    EXPONENT,
    EXPONENT_LSB,
    HEADROOM,
    QUARTER,
    load_bf16_pair,
    load_fp16,
    rounder,
    scale_of,
    store_bf16_pair,
    store_fp16,
)
from bhemu.tensix.matrix.dot_large import GROUP, TERM_SHIFT, dot_rows_of_large
from bhemu.tensix.matrix.dst import accumulate_two
from bhemu.tensix.matrix.fidelity import exponent_bias
from bhemu.tensix.matrix.operands import VIEW_BF16, VIEW_FP16
from bhemu.tensix.matrix.prepared import A_ROWS, are_large, greatest_of, prepare_a, prepare_b, prepare_exponents

_ROWS_AT_ONCE: Final = 4
"""Rows whose sums are formed side by side: a sum of eight products takes as long as eight of them."""
_TWICE_ROUNDED: Final = (24 << EXPONENT_LSB) - (1 << 21)


@kernel(forceinline=True)
def _b(t: TileRecord, block: Int, row: Int, k: Int) -> Lanes:
    """A number of a SrcB row in all columns."""
    return splat16(np.int64(t.prepared.b_numbers[block, row, k]))


@kernel(forceinline=True)
def _total(sums: Lanes, exponent: Lanes) -> Lanes:
    """What products added to a group's rounder; nothing where no product's exponent is above zero (F9)."""
    return where(exponent > (HEADROOM << EXPONENT_LSB), subtract_floats(sums, rounder(exponent)), 0)


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
    return subtract_floats(add_floats(total, number), base)


@kernel(forceinline=True)
def _add_integers(
    t: TileRecord, view: Int, row: Int, sums0: Lanes, exponent0: Lanes, sums1: Lanes, exponent1: Lanes
) -> None:
    """Dst row += two group sums (F12), in units of 2^-23 or at any exponent."""
    field0, field1 = (exponent0 >> EXPONENT_LSB) - HEADROOM, (exponent1 >> EXPONENT_LSB) - HEADROOM
    accumulate_two(t, view, row, _units(sums0, exponent0), field0, _units(sums1, exponent1), field1)


@kernel(forceinline=True)
def _exponent0(pairs: Lanes) -> Lanes:
    """The exponent of group 0, in place in a binary32 number."""
    return pairs << EXPONENT_LSB


@kernel(forceinline=True)
def _exponent1(pairs: Lanes) -> Lanes:
    return (pairs >> 16) << EXPONENT_LSB


@kernel(forceinline=True)
def _sums(
    t: TileRecord, a: Int, b: Int, i: Int, pairs0: Lanes, pairs1: Lanes, pairs2: Lanes, pairs3: Lanes
) -> tuple[Lanes, Lanes, Lanes, Lanes, Lanes, Lanes, Lanes, Lanes]:
    """Products of four SrcB rows from the block's row `i` on, added to both groups' rounders."""
    s00, s01 = rounder(_exponent0(pairs0)), rounder(_exponent1(pairs0))
    s10, s11 = rounder(_exponent0(pairs1)), rounder(_exponent1(pairs1))
    s20, s21 = rounder(_exponent0(pairs2)), rounder(_exponent1(pairs2))
    s30, s31 = rounder(_exponent0(pairs3)), rounder(_exponent1(pairs3))
    for k in range(GROUP):
        factors = load16(t.prepared.a_numbers, a * A_ROWS + k)
        s00 = multiply_add_floats(factors, _b(t, b, i, k), s00)
        s10 = multiply_add_floats(factors, _b(t, b, i + 1, k), s10)
        s20 = multiply_add_floats(factors, _b(t, b, i + 2, k), s20)
        s30 = multiply_add_floats(factors, _b(t, b, i + 3, k), s30)
        factors = load16(t.prepared.a_numbers, a * A_ROWS + GROUP + k)
        s01 = multiply_add_floats(factors, _b(t, b, i, GROUP + k), s01)
        s11 = multiply_add_floats(factors, _b(t, b, i + 1, GROUP + k), s11)
        s21 = multiply_add_floats(factors, _b(t, b, i + 2, GROUP + k), s21)
        s31 = multiply_add_floats(factors, _b(t, b, i + 3, GROUP + k), s31)
    return s00, s01, s10, s11, s20, s21, s30, s31


@kernel
def _bf16_rows(t: TileRecord, a: Int, b: Int, bias: Int, zero_exponent: Int, dst_row: Int, count: Int) -> Int:
    """Rows in the BF16 view; how many there are before some whose exponents are too large for binary32.

    A function of its own, with one path: constants of others would take registers in its loop.
    """
    for i in range(0, count, _ROWS_AT_ONCE):
        number0, number1, small0 = load_bf16_pair(t, dst_row + i)
        number2, number3, small2 = load_bf16_pair(t, dst_row + i + 2)
        if not small0 or not small2:
            return i
        pairs0 = greatest_of(t, a, b, i, bias, zero_exponent)
        pairs1 = greatest_of(t, a, b, i + 1, bias, zero_exponent)
        pairs2 = greatest_of(t, a, b, i + 2, bias, zero_exponent)
        pairs3 = greatest_of(t, a, b, i + 3, bias, zero_exponent)
        s00, s01, s10, s11, s20, s21, s30, s31 = _sums(t, a, b, i, pairs0, pairs1, pairs2, pairs3)
        total0 = _sum(number0, s00, _exponent0(pairs0), s01, _exponent1(pairs0))
        total1 = _sum(number1, s10, _exponent0(pairs1), s11, _exponent1(pairs1))
        store_bf16_pair(t, dst_row + i, total0, total1)
        total2 = _sum(number2, s20, _exponent0(pairs2), s21, _exponent1(pairs2))
        total3 = _sum(number3, s30, _exponent0(pairs3), s31, _exponent1(pairs3))
        store_bf16_pair(t, dst_row + i + 2, total2, total3)
    return count


@kernel(forceinline=True)
def _add_row(t: TileRecord, view: Int, row: Int, pairs: Lanes, sums0: Lanes, sums1: Lanes) -> None:
    """Dst row += two group sums, in any view."""
    exponent0, exponent1 = _exponent0(pairs), _exponent1(pairs)
    if view == VIEW_FP16:
        store_fp16(t, row, _sum(load_fp16(t, row), sums0, exponent0, sums1, exponent1))
    else:
        _add_integers(t, view, row, sums0, exponent0, sums1, exponent1)


@kernel
def _other_rows(
    t: TileRecord, view: Int, a: Int, b: Int, bias: Int, zero_exponent: Int, dst_row: Int, first: Int, count: Int
) -> None:
    """Rows from the block's row `first` on, in any view and with any exponents."""
    for i in range(first, count, _ROWS_AT_ONCE):
        pairs0 = greatest_of(t, a, b, i, bias, zero_exponent)
        pairs1 = greatest_of(t, a, b, i + 1, bias, zero_exponent)
        pairs2 = greatest_of(t, a, b, i + 2, bias, zero_exponent)
        pairs3 = greatest_of(t, a, b, i + 3, bias, zero_exponent)
        s00, s01, s10, s11, s20, s21, s30, s31 = _sums(t, a, b, i, pairs0, pairs1, pairs2, pairs3)
        _add_row(t, view, dst_row + i, pairs0, s00, s01)
        _add_row(t, view, dst_row + i + 1, pairs1, s10, s11)
        _add_row(t, view, dst_row + i + 2, pairs2, s20, s21)
        _add_row(t, view, dst_row + i + 3, pairs3, s30, s31)


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
        count: products, four or eight.
    """
    bias = exponent_bias(style, view, phase)
    scale = scale_of(exponent_bias(style, view, 0))
    a: Int = np.int64(0)
    b: Int = np.int64(0)
    as_floats = dst_step == 1  # rows are accumulated in pairs that follow each other
    if as_floats:
        a = prepare_a(t, a_row, a_trim, phase, scale)
        b = prepare_b(t, b_row, b_step, b_trim, count, phase, scale)
        as_floats = not are_large(t, a, b)
    if not as_floats:
        dot_rows_of_large(t, view, phase, bias, a_row, a_trim, b_row, b_step, b_trim, dst_row, dst_step, count)
        return
    prepare_exponents(t, a, b, count)
    zero_exponent = max(bias, 0) + HEADROOM
    done: Int = np.int64(0)
    if view == VIEW_BF16:
        done = _bf16_rows(t, a, b, bias + HEADROOM, zero_exponent, dst_row, count)
    if done < count:
        _other_rows(t, view, a, b, bias + HEADROOM, zero_exponent, dst_row, done, count)
