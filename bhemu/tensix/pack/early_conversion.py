"""Early conversion: Dst cells to the intermediate format (P6). Sixteen datums at a time.

Roundings are half away from zero on the magnitude, by adding half a unit to the bit pattern; they flush denormals and
-0 to +0 and make Inf of NaN where the exponent has 8 bits. Truncations and identities (Read_raw) keep all of these.
"""

from __future__ import annotations

from typing import Any, Final

from bhemu.machine.dst import BF16_SIGN, DST_ROWS, LOW_HALF, bf16_of_cell, fp16_of_cell, high_row
from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import load16, minimum, shift_right_logical, splat16, where
from bhemu.machine.types import AnyInt, Int, Lanes, TileRecord

# Rules on the 32-bit view of Dst
KEEP_32: Final = 0
TF32_FROM_32: Final = 1
BF16_FROM_32: Final = 2
BF16_CUT_FROM_32: Final = 3
E8M6_FROM_32: Final = 4
INT8_FROM_32: Final = 5
UINT8_FROM_32: Final = 6
INT8_LOW_BITS: Final = 7
UINT8_LOW_BITS: Final = 8
INT16_FROM_32: Final = 9
# Rules on BF16 cells
FIRST_BF16_RULE: Final = 16
BF16_FLUSH: Final = 16
BF16_KEEP: Final = 17
E8M6_FROM_BF16: Final = 18
TF32_FROM_BF16: Final = 19
FP16_FROM_BF16: Final = 20
# Rules on FP16 cells
FIRST_FP16_RULE: Final = 24
FP16_FLUSH: Final = 24
FP16_KEEP: Final = 25
E5M6_FROM_FP16: Final = 26
E5M7_FROM_FP16: Final = 27
FP8_FROM_FP16: Final = 28
# Rules on any 16-bit cell
FIRST_RAW_RULE: Final = 32
INT16_KEEP: Final = 32
SIGN_ONLY: Final = 33


@kernel
def bf16_without_specials(value: Lanes) -> Lanes:
    """NaN becomes Inf; a value with exponent 0 becomes +0. In lanes of 16 or 32 bits."""
    magnitude = value & 0x7FFF
    value = where(magnitude > 0x7F80, (value & BF16_SIGN) | 0x7F80, value)
    return where(magnitude < 0x80, 0, value)


@kernel
def rebias_to_fp16(sign: Lanes, exponent: Lanes, mantissa: Lanes) -> Lanes:
    """FP16 of a sign bit (at 15), an 8-bit exponent and 10 mantissa bits: saturating, with exponent 0 kept (P6, P9)."""
    rebiased = exponent - 112
    value = (rebiased << 10) | mantissa
    value = where(rebiased > 31, 0x7FFF, value)
    return sign | where(rebiased < 0, 0, value)


@kernel
def _nan_to_inf(value: Int) -> AnyInt:
    return where((value & 0x7FFFFFFF) > 0x7F800000, (value & -0x80000000) | 0x7F800000, value)


@kernel
def _shift_and_round(magnitude: Int, amount: Int) -> Any:
    """Right shift of an integer magnitude, rounded half up with the bits that fall out."""
    if amount == 0:
        return magnitude
    half = shift_right_logical(magnitude, splat16(amount - 1)) & 1
    return shift_right_logical(magnitude, splat16(amount)) + half


@kernel
def _convert_32(rule: Int, amount: Int, high: Int, low: Int) -> Any:
    """Intermediate datums of a row of the 32-bit view, given as its two halves."""
    if rule == INT16_FROM_32:
        return high
    value = (bf16_of_cell(high) << 16) | low
    if rule == KEEP_32:
        return value
    if rule == BF16_CUT_FROM_32:
        return shift_right_logical(value, 16)
    if rule <= E8M6_FROM_32:
        value = _nan_to_inf(value)
        if rule == TF32_FROM_32:
            value = (value + 0x1000) & -0x2000
            return where((value & 0x7FFFFFFF) < 0x800000, 0, value)
        if rule == BF16_FROM_32:
            value = shift_right_logical(value + 0x8000, 16)
        else:
            value = (shift_right_logical(value, 16) + 1) & ~1
        return where((value & 0x7FFF) < 0x80, 0, value)
    if rule == INT8_LOW_BITS:
        return (shift_right_logical(value, 24) & 0x80) | (value & 0x7F)
    if rule == UINT8_LOW_BITS:
        return value & 0xFF
    magnitude = _shift_and_round(value & 0x7FFFFFFF, amount)
    if rule == UINT8_FROM_32:
        return where(value < 0, 0, minimum(magnitude, 255))
    return (shift_right_logical(value, 24) & 0x80) | minimum(magnitude, 127)


@kernel
def _convert_bf16(rule: Int, cells: Lanes) -> Lanes:
    value = bf16_of_cell(cells)
    if rule == BF16_KEEP:
        return value
    if rule == FP16_FROM_BF16:
        return rebias_to_fp16(value & 0x8000, (value >> 7) & 0xFF, (value & 0x7F) << 3)
    value = bf16_without_specials(value)
    if rule == E8M6_FROM_BF16:
        return (value + 1) & ~1
    if rule == TF32_FROM_BF16:
        return value << 16
    return value


@kernel
def _convert_fp16(rule: Int, cells: Lanes) -> Lanes:
    value = fp16_of_cell(cells)
    if rule == FP16_KEEP:
        return value
    if rule == E5M7_FROM_FP16:
        return value & ~0x7
    if rule == FP8_FROM_FP16:
        return value & ~0xFF
    if rule == E5M6_FROM_FP16:
        value = where((value & 0x7FFF) > 0x7FF7, (value & 0x8000) | 0x7FF0, value)
        value = (value + 8) & ~0xF
    return where((value & 0x7FFF) < 0x400, 0, value)


@kernel
def early_conversion(t: TileRecord, rule: Int, amount: Int, row: Int) -> Lanes:
    """Sixteen intermediate datums from logical row `row` of Dst (I.3); a row that is not valid reads as zeros.

    Args:
        t: state record.
        rule: one of the rules above.
        amount: right shift of integer magnitudes (INT_DESCALE).
        row: in rows of the view that the rule reads.
    """
    if rule < FIRST_BF16_RULE:
        physical = high_row(row)
        if t.dst_valid[physical] == 0:
            return splat16(0)
        return _convert_32(rule, amount, load16(t.dst, physical), load16(t.dst, physical + LOW_HALF))
    row &= DST_ROWS - 1
    if t.dst_valid[row] == 0:
        return splat16(0)
    cells = load16(t.dst, row)
    if rule < FIRST_FP16_RULE:
        return _convert_bf16(rule, cells)
    if rule < FIRST_RAW_RULE:
        return _convert_fp16(rule, cells)
    if rule == SIGN_ONLY:
        return (cells >> 8) & 0x80
    return cells
