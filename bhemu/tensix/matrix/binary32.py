"""Numbers of Src and Dst as binary32 lanes: sums that round as the matrix unit does (math F8 to F12).

The matrix unit adds numbers at their greatest exponent, rounded to multiples of a unit U that depends on it. A binary32
number between 2^23 U and 2^24 U has just that precision: whatever is added to 1.5 * 2^23 U is rounded to a multiple of
U, to the nearest, and subtracting 1.5 * 2^23 U again is exact. A tie goes to the even neighbour, so where a rule says
otherwise a little is added first, which is too little to change anything but ties: the rules round products and Dst
half up on the magnitude (a bit far below their last one does it), and terms half up.

Exponents are the fields of Src and Dst plus `HEADROOM`, so that nothing becomes denormal. Numbers with exponents above
`MOST` could become infinite: they need integer arithmetic. Formats with 5 exponent bits keep their own bias.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.machine.dst import DST_ROWS, bf16_of_exponent_halves, cell_of_bf16_halves
from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import (
    first_row_words,
    less_unsigned,
    load16,
    load_row_pair,
    mask_bits,
    minimum,
    opaque,
    pack_high_rows,
    pack_quads,
    quads_of_rows,
    second_row_words,
    shift_right_logical,
    splat16,
    store16,
    store_row_pair,
    subtract_floats,
    where,
)
from bhemu.machine.types import Bool, Int, Lanes, TileRecord
from bhemu.tensix.matrix.operands import SRC_EXPONENT, SRC_MANTISSA_LSB

HEADROOM: Final = 24
MOST: Final = 200
"""Exponent fields of Dst and of terms, without headroom, up to here never become infinite."""
LARGE: Final = 160
"""Products of operands with exponent fields up to here have exponents up to `MOST`."""

SIGN: Final = -(1 << 31)
EXPONENT: Final = 0xFF << 23
EXPONENT_LSB: Final = 23
_SRC_MANTISSA_LEFT: Final = 13
"""From the mantissa of a Src cell in its low bits to that of a binary32 number."""
_SRC_SIGN_LEFT: Final = 13
ROUNDER: Final = (13 << EXPONENT_LSB) | (1 << 22)
"""From an exponent in place to 1.5 * 2^23 units of 2^-10."""
LITTLE: Final = 1 << 5
"""2^-18 of the power of two: less than 1 / 127 of the last place of any slice (F8)."""
QUARTER: Final = 12 << EXPONENT_LSB
"""From the place of an exponent to that of a quarter of its unit of 2^-10."""
_FIRST_VALID: Final = 1
"""Flag of the first of two rows among those of both."""
_SECOND_VALID: Final = 1 << 8
BF16_EXPONENT_LSB: Final = 7
BF16_EXPONENT: Final = 0xFF << BF16_EXPONENT_LSB


@kernel(forceinline=True)
def src_exponent(cell: Lanes) -> Lanes:
    """The exponent field of a Src cell, in place in a binary32 number."""
    return (cell & SRC_EXPONENT) << EXPONENT_LSB


@kernel(forceinline=True)
def src_sign(cell: Lanes) -> Lanes:
    return (cell << _SRC_SIGN_LEFT) & SIGN


@kernel(forceinline=True)
def src_mantissa(cell: Lanes, kept: Int) -> Lanes:
    """The bits `kept` of the mantissa of a Src cell, in place in a binary32 number."""
    return (cell << (_SRC_MANTISSA_LEFT - SRC_MANTISSA_LSB)) & (kept << _SRC_MANTISSA_LEFT)


@kernel(forceinline=True)
def scale_of(bias: Int) -> Int:
    """What is added to the exponents of both factors, so that a product's exponent has its field and the headroom.

    Args:
        bias: `exponent_bias` of fidelity phase 0.
    """
    return (bias + HEADROOM + 127) >> 1


@kernel(forceinline=True)
def slice_of_a(cell: Lanes, phase: Int, scale: Int, more: Int) -> Lanes:
    """The slice of a row of SrcA with its weight in the number, and `more` in the last places (F8).

    Where the exponent field is 0, the operand is zero, and the result means nothing.
    """
    one = (src_exponent(cell) | src_sign(cell)) + (scale << EXPONENT_LSB)
    if phase & 1:
        return subtract_floats(one | src_mantissa(cell, 0x03E) | more, one)
    return one | src_mantissa(cell, 0x3C0) | more


@kernel(forceinline=True)
def slice_of_b(cell: Lanes, phase: Int, scale: Int) -> Lanes:
    """The slice of a row of SrcB, as `slice_of_a` does it."""
    one = (src_exponent(cell) | src_sign(cell)) + (scale << EXPONENT_LSB)
    return subtract_floats(one | src_mantissa(cell, 0x00F), one) if phase & 2 else one | src_mantissa(cell, 0x3F0)


@kernel(forceinline=True)
def alive(cell: Lanes, number: Lanes) -> Lanes:
    """The number of a Src row, zero where its exponent field is (F5)."""
    return where((cell & SRC_EXPONENT) != 0, number, 0)


@kernel(forceinline=True)
def rounder(exponent: Lanes) -> Lanes:
    """1.5 * 2^23 units of 2^-10 at an exponent (its field in place): what makes a sum round to them."""
    return exponent + ROUNDER


@kernel(forceinline=True)
def _pair_of(row: Int) -> Int:
    """Where the flags of rows `row`, which is even, and `row + 1` are."""
    return (row & (DST_ROWS - 1)) >> 1


@kernel(forceinline=True)
def _valid_quads(t: TileRecord, row: Int) -> Lanes:
    """Mask of the quads of rows `row`, which is even, and `row + 1` that are valid (F6)."""
    valid = np.int64(t.dst_valid_u16[_pair_of(row)])  # a byte each, 0 or 1
    return (pack_quads(splat16(_FIRST_VALID), splat16(_SECOND_VALID)) & valid) != 0


@kernel(forceinline=True)
def bf16_exponents(cells: Lanes) -> Lanes:
    """The exponent fields of halves whose low bytes they are, in place in BF16 numbers."""
    return (cells << BF16_EXPONENT_LSB) & BF16_EXPONENT


@kernel(forceinline=True)
def load_bf16_numbers(t: TileRecord, row: Int) -> tuple[Lanes, Lanes, Lanes]:
    """Two rows of the BF16 view, in quads: numbers, exponents of numbers, exponent fields without headroom (F6, F12).

    A row that is not valid is zero, but for its fields: what it held may be called too large, which changes no result.
    """
    cells = quads_of_rows(load_row_pair(t.dst, row))
    field = bf16_exponents(cells)
    kept = _valid_quads(t, row) & (field != 0)
    # Without `opaque` LLVM makes each `|` an addition, as that is what follows; one instruction does two `|`.
    number = opaque(bf16_of_exponent_halves(field, cells))
    headroom = HEADROOM << BF16_EXPONENT_LSB
    return where(kept, number + headroom, 0), where(kept, field + headroom, 0), field


@kernel(forceinline=True)
def larger_words(numbers: Lanes) -> tuple[Lanes, Lanes]:
    """Two rows of BF16 numbers as binary32, a little larger: they are to be rounded half up on the magnitude (F12)."""
    return first_row_words(1, numbers), second_row_words(1, numbers)


@kernel(forceinline=True)
def load_bf16_pair(t: TileRecord, row: Int) -> tuple[Lanes, Lanes, Bool]:
    """Two rows of the BF16 view as `larger_words`, and whether their exponents are small enough (F6, F12)."""
    numbers, _, field = load_bf16_numbers(t, row)
    number0, number1 = larger_words(numbers)
    return number0, number1, mask_bits(field > (MOST << BF16_EXPONENT_LSB)) == 0


@kernel(forceinline=True)
def store_bf16_pair(t: TileRecord, row: Int, total0: Lanes, total1: Lanes) -> None:
    """Round two rows of sums half up on the magnitude and write them; the rows become valid (F12 steps 5 to 7)."""
    half = 1 << (EXPONENT_LSB - BF16_EXPONENT_LSB - 1)
    bits = pack_high_rows(total0 + half, total1 + half)
    double = bits + bits
    kept = less_unsigned(((HEADROOM + 1) << (BF16_EXPONENT_LSB + 1)) - 1, double)
    number = opaque(where(kept, bits - (HEADROOM << BF16_EXPONENT_LSB), 0))
    double = opaque(where(kept, double - (HEADROOM << (BF16_EXPONENT_LSB + 1)), 0))
    store_row_pair(t.dst, row, cell_of_bf16_halves(number, double))
    t.dst_valid_u16[_pair_of(row)] = 0x0101


@kernel(forceinline=True)
def load_fp16(t: TileRecord, row: Int) -> Lanes:
    """A row of the FP16 view, as `load_bf16_pair` does it."""
    if t.dst_valid[row] == 0:
        return splat16(0)
    cells = load16(t.dst, row)
    exponent = (cells & 0x1F) << EXPONENT_LSB
    bits = (exponent | ((cells & 0x7FE0) << 8) | ((cells << 16) & SIGN) | 1) + (HEADROOM << EXPONENT_LSB)
    return where(exponent != 0, bits, 0)


@kernel(forceinline=True)
def store_fp16(t: TileRecord, row: Int, total: Lanes) -> None:
    """Round a row of sums half up on the magnitude and write it, clamped; the row becomes valid (F12 steps 5 to 7)."""
    magnitude = (total + (1 << 12)) & ~SIGN
    bits = minimum(magnitude - (HEADROOM << EXPONENT_LSB), (32 << EXPONENT_LSB) - 1)
    cells = ((bits >> 8) & 0x7FE0) | (bits >> EXPONENT_LSB) | (shift_right_logical(total, 16) & 0x8000)
    store16(t.dst, row, where(magnitude >= ((HEADROOM + 1) << EXPONENT_LSB), cells, 0))
    t.dst_valid[row] = 1
