"""Element-wise arithmetic into the 16-bit views of Dst, as binary32, two rows or four at once (math F8, F9, F11, F12).

A term has at most 12 bits in units of 2^-10 at its exponent, and so has a Dst value. F12 aligns terms in units of 2^-23
and then rounds them to 2^-10. Aligned by up to 13 places the first step is exact, and by more than that both ways give
0, so that one rounding to units of 2^-10 is the same (matrix/binary32.py). Denormals must not be kept (F5).
"""

from __future__ import annotations

from typing import Any, Final

from bhemu.machine.dst import BF16_SIGN
from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import (
    add_floats,
    first_row_words,
    mask_bits,
    maximum,
    multiply_add_floats,
    opaque,
    pack_high_quads,
    pack_quads,
    second_row_words,
    shift_right_logical,
    subtract_floats,
    where,
)
from bhemu.machine.types import Bool, Int, Lanes, TileRecord
from bhemu.tensix.matrix.binary32 import (
    BF16_EXPONENT_LSB,
    EXPONENT,
    EXPONENT_LSB,
    HEADROOM,
    LARGE,
    MOST,
    QUARTER,
    ROUNDER,
    SIGN,
    bf16_exponents,
    larger_words,
    load_bf16_numbers,
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
)
from bhemu.tensix.matrix.operands import SRC_MANTISSA, VIEW_BF16

_TOP_LSB: Final = 11  # of the upper seven bits of a Src cell's mantissa
# What slices keep of them (F8)
_HIGH_A: Final = 0x3C0 >> 3
_LOW_A: Final = 0x03E >> 3
_HIGH_B: Final = 0x3F0 >> 3
_LOW_B: Final = 0x00F >> 3


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
    return subtract_floats(add_floats(add_floats(base, _operand(a, e_a)), _operand(b, e_b)), base), exponent


@kernel(forceinline=True)
def _accumulate(term: Lanes, exponent: Lanes, number: Lanes) -> Lanes:
    """A term that is a quarter of a unit larger, and a Dst row, added at the greater exponent (F12 steps 1 to 4)."""
    base = rounder(maximum(exponent, number & EXPONENT))
    return subtract_floats(add_floats(add_floats(base, term), number), base)


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


@kernel(forceinline=True)
def _top(low: Lanes, high: Lanes) -> Lanes:
    """Of two rows of Src cells, as low and high halves: sign (bit 7) and the upper seven bits of the mantissa."""
    return shift_right_logical(low, _TOP_LSB) | (high << (16 - _TOP_LSB))


@kernel(forceinline=True)
def _fields(cells0: Lanes, cells1: Lanes) -> tuple[Lanes, Lanes]:
    """(exponent fields, in place in BF16 numbers; sign and upper mantissa) of two rows of Src, in quads."""
    low = pack_quads(cells0, cells1)
    return bf16_exponents(low), _top(low, pack_high_quads(cells0, cells1))


@kernel(forceinline=True)
def _factors(
    e_a: Lanes, top_a: Lanes, e_b: Lanes, top_b: Lanes, phase: Int, scale: Int, alive: Lanes
) -> tuple[Lanes, Lanes]:
    """Slices as BF16 numbers (F8), their implicit ones in place; the sign of the product is that of the first."""
    kept_a, kept_b = (_LOW_A if phase & 1 else _HIGH_A), (_LOW_B if phase & 2 else _HIGH_B)
    # The first has the scale of both. `opaque`: see `load_bf16_numbers`.
    number_a = opaque(e_a | (top_a & kept_a) | ((top_a ^ top_b) << 8) & BF16_SIGN)
    return where(alive, number_a + (scale << (BF16_EXPONENT_LSB + 1)), 0), e_b | (top_b & kept_b)


@kernel(forceinline=True)
def _less(number: Lanes, ones: Int) -> Lanes:
    """A number less what it has in the bits `ones`: of a lower slice, the implicit one, else nothing (F8)."""
    return subtract_floats(number, number & ones)


@kernel(forceinline=True)
def _totals(
    number_a: Lanes, number_b: Lanes, ones_a: Int, ones_b: Int, quarter: Lanes, base: Lanes, numbers: Lanes
) -> tuple[Lanes, Lanes]:
    """Products and Dst rows, added at the exponents of `base` (F12 steps 1 to 4)."""
    a0, a1 = _less(first_row_words(0, number_a), ones_a), _less(second_row_words(0, number_a), ones_a)
    b0, b1 = _less(first_row_words(0, number_b), ones_b), _less(second_row_words(0, number_b), ones_b)
    term0 = multiply_add_floats(a0, b0, first_row_words(0, quarter))
    term1 = multiply_add_floats(a1, b1, second_row_words(0, quarter))
    base0, base1 = first_row_words(0, base), second_row_words(0, base)
    number0, number1 = larger_words(numbers)
    total0 = add_floats(add_floats(base0, term0), number0)
    total1 = add_floats(add_floats(base1, term1), number1)
    return subtract_floats(total0, base0), subtract_floats(total1, base1)


@kernel(forceinline=True)
def multiply_bf16_pairs(t: TileRecord, a: Any, b: Any, phase: Int, scale: Int, bias: Int, row: Int) -> Bool:
    """Four Dst rows of the BF16 view += SrcA * SrcB, as `multiply_pair` does two.

    Of operands whose slices have only the upper seven bits of mantissas. Fields of two rows are handled at once, as
    halves; what is multiplied and added are words. Two pairs go side by side: one alone is a chain in which each step
    waits for the one before.

    Args:
        a, b: four rows of cells each.
    """
    e_a0, top_a0 = _fields(a[0], a[1])
    e_a1, top_a1 = _fields(a[2], a[3])
    e_b0, top_b0 = _fields(b[0], b[1])
    e_b1, top_b1 = _fields(b[2], b[3])
    numbers0, e_dst0, field0 = load_bf16_numbers(t, row)
    numbers1, e_dst1, field1 = load_bf16_numbers(t, row + 2)
    large = maximum(maximum(maximum(e_a0, e_b0), field0), maximum(maximum(e_a1, e_b1), field1))
    if mask_bits(large > (LARGE << BF16_EXPONENT_LSB)) != 0:
        return False
    shift = (bias + HEADROOM) << BF16_EXPONENT_LSB
    least = HEADROOM << BF16_EXPONENT_LSB
    exponent0, exponent1 = e_a0 + e_b0 + shift, e_a1 + e_b1 + shift
    alive0 = (e_a0 != 0) & (e_b0 != 0) & (exponent0 > least)
    alive1 = (e_a1 != 0) & (e_b1 != 0) & (exponent1 > least)
    quarter0 = where(alive0, exponent0 - (QUARTER >> 16), 0)
    quarter1 = where(alive1, exponent1 - (QUARTER >> 16), 0)
    base0 = where(alive0, maximum(exponent0, e_dst0), e_dst0) + (ROUNDER >> 16)
    base1 = where(alive1, maximum(exponent1, e_dst1), e_dst1) + (ROUNDER >> 16)
    number_a0, number_b0 = _factors(e_a0, top_a0, e_b0, top_b0, phase, scale, alive0)
    number_a1, number_b1 = _factors(e_a1, top_a1, e_b1, top_b1, phase, scale, alive1)
    ones_a, ones_b = (SIGN | EXPONENT if phase & 1 else 0), (SIGN | EXPONENT if phase & 2 else 0)
    total0, total1 = _totals(number_a0, number_b0, ones_a, ones_b, quarter0, base0, numbers0)
    total2, total3 = _totals(number_a1, number_b1, ones_a, ones_b, quarter1, base1, numbers1)
    store_bf16_pair(t, row, total0, total1)
    store_bf16_pair(t, row + 2, total2, total3)
    return True
