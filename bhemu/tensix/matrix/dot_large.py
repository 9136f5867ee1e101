"""Dot products of any exponents, as integers: what matrix/dot.py leaves (math F8..F10, F12, F13).

Everything but the last accumulation fits 16 bits, so both groups are computed at once: each 32-bit lane is a column,
its low half group 0 and its high half group 1. A product is at most 31 * 127, a group at most eight of them, 31496.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import as_halves, as_words, iota16, load16, maximum, minimum, shuffle, splat16, store16, where
from bhemu.machine.types import Int, Lanes, TileRecord
from bhemu.tensix.matrix.dst import accumulate_two
from bhemu.tensix.matrix.fidelity import slice_a, slice_b
from bhemu.tensix.matrix.operands import SRC_EXPONENT

GROUP: Final = 8
"""Products of one group."""

# Rows of `t.matrix.scratch`
_A_SLICES: Final = 0
_A_EXPONENTS: Final = GROUP
_B: Final = 2 * GROUP  # one row for each SrcB row: eight slices, then eight exponents

NO_EXPONENT: Final = -4096
"""Exponent of a zero operand: below that of any product, so that it never is the largest of its group."""
TERM_SHIFT: Final = 13
"""A group's sum in units of 2^-10 becomes one of 2^-23 (F10 step 3)."""
SWAP: Final = (8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7)


@kernel(forceinline=True)
def pair_of(low: Lanes, high: Lanes) -> Lanes:
    """Two rows of 16-bit values in one."""
    return (low & 0xFFFF) | (high << 16)


@kernel(forceinline=True)
def _exponents(cell: Lanes) -> Lanes:
    exponent = cell & SRC_EXPONENT
    return where(exponent != 0, exponent, NO_EXPONENT)


@kernel(forceinline=True)
def _prepare_a(t: TileRecord, row: Int, trim: Int, phase: Int) -> None:
    """Decode sixteen SrcA rows, for all SrcB rows at once."""
    for k in range(GROUP):
        low = load16(t.srca, row + k) & trim
        high = load16(t.srca, row + k + GROUP) & trim
        store16(t.matrix.scratch, _A_SLICES + k, pair_of(slice_a(low, phase), slice_a(high, phase)))
        store16(t.matrix.scratch, _A_EXPONENTS + k, pair_of(_exponents(low), _exponents(high)))


@kernel(forceinline=True)
def _prepare_b(t: TileRecord, index: Int, row: Int, trim: Int, phase: Int, bias: Int) -> None:
    """Decode one SrcB row. Slices are doubled: the sums are rounded at the place below the last one."""
    cell = load16(t.srcb, row) & trim
    slices = slice_b(cell, phase, False) << 1
    exponents = _exponents(cell) + bias
    first = iota16() < GROUP
    low = where(first, slices, shuffle(exponents, SWAP))
    high = where(first, shuffle(slices, SWAP), exponents)
    store16(t.matrix.scratch, _B + index, pair_of(low, high))


@kernel(forceinline=True)
def _both(t: TileRecord, index: Int, k: Int) -> Lanes:
    """A pair of SrcB values in all columns."""
    return as_halves(splat16(np.int64(t.matrix.scratch[_B + index, k])))


@kernel(forceinline=True)
def _groups(t: TileRecord, index: Int, zero_exponent: Int) -> tuple[Lanes, Lanes]:
    """(sums, exponents) of both groups for one SrcB row, as pairs (F10).

    `zero_exponent` is the exponent of zero products (F9). Where it is above zero it is below that of any other product,
    so taking it into the maximum without looking for zero products changes nothing.
    """
    greatest = as_halves(splat16(zero_exponent | (zero_exponent << 16)))
    for k in range(GROUP):
        exponent = as_halves(load16(t.matrix.scratch, _A_EXPONENTS + k)) + _both(t, index, GROUP + k)
        greatest = maximum(greatest, exponent)
    total = as_halves(splat16(0))
    for k in range(GROUP):
        exponent = as_halves(load16(t.matrix.scratch, _A_EXPONENTS + k)) + _both(t, index, GROUP + k)
        twice = as_halves(load16(t.matrix.scratch, _A_SLICES + k)) * _both(t, index, k)
        # Half up on the magnitude: of a negative product one less is shifted, so that a tie goes down.
        twice = twice + (twice >> 15)
        total = total + (((twice >> minimum(greatest - exponent, 15)) + 1) >> 1)
    return where(greatest > 0, total, 0), greatest


@kernel(forceinline=True)
def _low(pairs: Lanes) -> Lanes:
    return (as_words(pairs) << 16) >> 16


@kernel(forceinline=True)
def _high(pairs: Lanes) -> Lanes:
    return as_words(pairs) >> 16


@kernel
def dot_rows_of_large(
    t: TileRecord,
    view: Int,
    phase: Int,
    bias: Int,
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
        count: products, at most eight.
    """
    _prepare_a(t, a_row, a_trim, phase)
    for i in range(count):
        _prepare_b(t, i, b_row + i * b_step, b_trim, phase, bias)
    zero_exponent = max(bias, 0)
    for i in range(count):
        total, exponent = _groups(t, i, zero_exponent)
        accumulate_two(
            t,
            view,
            dst_row + i * dst_step,
            _low(total) << TERM_SHIFT,
            _low(exponent),
            _high(total) << TERM_SHIFT,
            _high(exponent),
        )
