"""Element-wise floating-point arithmetic into the 16-bit views of Dst, two rows at a time (math F11, F12).

Here everything fits 16 bits: a term is a number of at most 12 bits in units of 2^-10 at its exponent, and so is a Dst
value. F12 aligns terms in units of 2^-23 and then rounds them to 2^-10 in the same way. Aligned by up to 13 places the
first step is exact, and by more than that both ways give 0, so that one step in units of 2^-10 is the same.

The lanes are two rows of 16 columns after one another. Denormals must not be kept (F5).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.machine.dst import cell_of_bf16_magnitude, cell_of_fp16_magnitude
from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import (
    leading_zeros,
    load_row_pair,
    mask32,
    maximum,
    minimum,
    pack_rows,
    shift_right_logical,
    store_row_pair,
    where,
)
from bhemu.machine.types import Int, Lanes, TileRecord
from bhemu.tensix.matrix.operands import SRC_EXPONENT, SRC_MANTISSA, SRC_MANTISSA_LSB, VIEW_BF16

_SIGN: Final = SRC_MANTISSA + 1
"""Sign of a Src cell without its exponent."""
_ONE: Final = SRC_MANTISSA + 1
"""1.0 in units of 2^-10: the implicit bit of a significand."""
_CELL_SIGN: Final = -0x8000
_FAR: Final = 15
_TOO_FAR: Final = 12  # F11


@kernel(forceinline=True)
def exponents(row0: Lanes, row1: Lanes) -> Lanes:
    """Exponent fields of two rows of Src cells."""
    return pack_rows(row0, row1) & SRC_EXPONENT


@kernel(forceinline=True)
def significands(row0: Lanes, row1: Lanes) -> Lanes:
    """Sign and mantissa of two rows of Src cells."""
    return pack_rows(row0 >> SRC_MANTISSA_LSB, row1 >> SRC_MANTISSA_LSB)


@kernel(forceinline=True)
def _load(t: TileRecord, view: Int, row: Int) -> tuple[Lanes, Lanes, Lanes]:
    """(cells, exponent field, magnitude) of two Dst rows; zeros where a row is not valid."""
    valid = np.int64(t.dst_valid[row]) * 0xFFFF | np.int64(t.dst_valid[row + 1]) * 0xFFFF0000
    cells = where(mask32(valid), load_row_pair(t.dst, row), 0)
    if view == VIEW_BF16:
        exponent = cells & 0xFF
        magnitude = (cells >> 5) & 0x3F8 | _ONE
    else:
        exponent = cells & 0x1F
        magnitude = (cells >> 5) & 0x3FF | _ONE
    return cells, exponent, where(exponent != 0, magnitude, 0)


@kernel(forceinline=True)
def _align(value: Lanes, exponent: Lanes, greatest: Lanes) -> Lanes:
    """Half toward plus infinity (F12 steps 2 and 3)."""
    distance = minimum(greatest - exponent, _FAR)
    return (((value << 1) >> distance) + 1) >> 1


@kernel(forceinline=True)
def _finish(t: TileRecord, view: Int, row: Int, total: Lanes, greatest: Lanes) -> None:
    """Normalise, round and store (F12 steps 4 to 7)."""
    magnitude = where(total < 0, -total, total)
    zeros = leading_zeros(magnitude)
    exponent = greatest + 5 - zeros  # E + L - 11
    left = magnitude << ((zeros - 1) & 15)  # the leading one is now bit 14
    # A carry may reach bit 15, hence the logical shift; the leading one adds the 1 back that the exponent lacks.
    if view == VIEW_BF16:
        bits = ((exponent - 1) << 7) + shift_right_logical(left + (1 << 6), 7)
        least, most = 1 << 7, 255 << 7
    else:
        bits = ((exponent - 1) << 10) + shift_right_logical(left + (1 << 3), 4)
        least, most = 1 << 10, 0x7FFF
    # An exponent past the top makes bit 15 of the sum.
    bits = where((bits < 0) & (exponent > 0), most, minimum(bits, most))
    kept = (total != 0) & (greatest > 0) & (bits >= least)
    if view == VIEW_BF16:
        cells = cell_of_bf16_magnitude(bits)
    else:
        cells = cell_of_fp16_magnitude(bits)
    store_row_pair(t.dst, row, where(kept, total & _CELL_SIGN | cells, 0))
    t.dst_valid[row] = 1
    t.dst_valid[row + 1] = 1


@kernel(forceinline=True)
def accumulate_pair(t: TileRecord, view: Int, row: Int, value: Lanes, exponent: Lanes) -> None:
    """Dst rows `row` and `row + 1` += one signed term per column in units of 2^-10."""
    cells, dst_exponent, magnitude = _load(t, view, row)
    greatest = maximum(exponent, dst_exponent)
    aligned = _align(magnitude, dst_exponent, greatest)
    total = _align(value, exponent, greatest) + where(cells < 0, -aligned, aligned)
    _finish(t, view, row, total, greatest)


@kernel(forceinline=True)
def replace_pair(t: TileRecord, view: Int, row: Int, value: Lanes, exponent: Lanes) -> None:
    """Dst rows = one signed term per column; Dst +0, whose exponent is 0, takes part (F11)."""
    greatest = maximum(exponent, 0)
    _finish(t, view, row, _align(value, exponent, greatest), greatest)


@kernel(forceinline=True)
def product_pair(e_a: Lanes, s_a: Lanes, e_b: Lanes, s_b: Lanes, phase: Int, bias: Int) -> tuple[Lanes, Lanes]:
    """(signed product, exponent) of two rows of operands (F8, F9)."""
    exponent = e_a + e_b + bias
    a = (s_a & SRC_MANTISSA | _ONE) >> (1 if phase & 1 else 6) & 0x1F
    mantissa_b = s_b & SRC_MANTISSA | _ONE
    b = (mantissa_b & 0xF) << 3 if phase & 2 else mantissa_b >> 4
    product = a * b
    product = where(((s_a ^ s_b) & _SIGN) != 0, -product, product)
    alive = (e_a != 0) & (e_b != 0) & (exponent > 0)
    return where(alive, product, 0), where(alive, exponent, max(bias, 0))


@kernel(forceinline=True)
def sum_pair(e_a: Lanes, s_a: Lanes, e_b: Lanes, s_b: Lanes) -> tuple[Lanes, Lanes]:
    """(signed sum, exponent of the larger operand) of two rows of operands (F11)."""
    s_a, s_b = where(e_a != 0, s_a, 0), where(e_b != 0, s_b, 0)  # zero operands become +0
    m_a, m_b = s_a & SRC_MANTISSA, s_b & SRC_MANTISSA
    a_is_big = (e_a > e_b) | ((e_a == e_b) & (m_a >= m_b))
    full_a, full_b = where(e_a != 0, m_a | _ONE, 0), where(e_b != 0, m_b | _ONE, 0)
    big, small = where(a_is_big, full_a, full_b), where(a_is_big, full_b, full_a)
    exponent = maximum(e_a, e_b)
    distance = minimum(exponent - minimum(e_a, e_b), _TOO_FAR)
    part = (((small << 1) >> distance) + 1) >> 1
    total = big + where(((s_a ^ s_b) & _SIGN) != 0, -part, part)
    return where(where(a_is_big, s_a, s_b) & _SIGN != 0, -total, total), exponent
