"""Rows of Dst as the matrix unit reads, accumulates and writes them (math F6, F12; rules I.2, I.3)."""

from __future__ import annotations

from typing import Final

from bhemu.machine.dst import LOW_HALF, cell_of_bf16_magnitude, cell_of_fp16_magnitude, high_row
from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import (
    leading_zeros,
    load16,
    maximum,
    minimum,
    narrow,
    shift_right_logical,
    splat16,
    store16,
    to_floats,
    where,
    widen,
)
from bhemu.machine.types import Int, Lanes, TileRecord
from bhemu.tensix.matrix.operands import VIEW_32, VIEW_BF16, VIEW_FP16

# A Dst value in arithmetic: exponent field, and a 24-bit magnitude in which 1.0 is 2^23 at its own exponent (F12).
_IMPLICIT: Final = 1 << 23
_FAR: Final = 30
"""Shifting by this much leaves nothing of any term; F12 says 31, and 30 gives the same with the magnitudes at hand."""
_ROUND_16: Final = 1 << 12
_CLEAR_16: Final = -(1 << 13)
_FP32_INFINITE: Final = 255
_FIELD_OF_SUM: Final = 127 + 23 + 2
"""The exponent field of a binary32 number of four times 2^23."""
_INT32_MAX: Final = 0x7FFFFFFF


@kernel(forceinline=True)
def load_value(t: TileRecord, view: Int, row: Int) -> tuple[Lanes, Lanes, Lanes]:
    """(sign bit 15, exponent field, magnitude) of a Dst row; zeros when the row is not valid (F6, F12)."""
    physical = high_row(row) if view == VIEW_32 else row
    zero = splat16(0)
    if t.dst_valid[physical] == 0:
        return zero, zero, zero
    cell = load16(t.dst, physical)
    sign = cell & 0x8000
    if view == VIEW_FP16:
        exponent = cell & 0x1F
        mantissa = (cell & 0x7FE0) << 8
    else:
        exponent = cell & 0xFF
        mantissa = (cell & 0x7F00) << 8
        if view == VIEW_32:
            mantissa = mantissa | load16(t.dst, physical + LOW_HALF)
    return sign, exponent, where(exponent > 0, mantissa | _IMPLICIT, zero)


@kernel(forceinline=True)
def _align(value: Lanes, exponent: Lanes, greatest: Lanes) -> Lanes:
    """Signed `value` at the greatest exponent: shifted right, half toward plus infinity (F12 step 2)."""
    distance = minimum(greatest - exponent, _FAR)
    return (((value << 1) >> distance) + 1) >> 1


@kernel(forceinline=True)
def _finish(t: TileRecord, view: Int, row: Int, total: Lanes, greatest: Lanes) -> None:
    """Normalise, round and store a signed sum (F12 steps 4 to 7)."""
    zeros = leading_zeros(where(total < 0, -total, total))
    left = where(total < 0, -total, total) << (zeros - 1)  # the leading one is now bit 30
    exponent = greatest + 8 - zeros  # E + L - 24
    if view == VIEW_32:
        # Adding half of the last kept place may carry into bit 31, hence the logical shift.
        rounded = shift_right_logical(left + (1 << 6), 7)
        bits = ((exponent - 1) << 23) + rounded  # the leading one adds the 1 back, a carry adds one more
        least, most = 1 << 23, _FP32_INFINITE << 23
        bits = where(exponent >= _FP32_INFINITE, most, minimum(bits, most))
    elif view == VIEW_BF16:
        rounded = shift_right_logical(left + (1 << 22), 23)
        bits = ((exponent - 1) << 7) + rounded
        least, most = 1 << 7, _FP32_INFINITE << 7
        bits = minimum(bits, most)
    else:
        rounded = shift_right_logical(left + (1 << 19), 20)
        bits = ((exponent - 1) << 10) + rounded
        least, most = 1 << 10, 0x7FFF
        bits = minimum(bits, most)
    kept = (total != 0) & (greatest > 0) & (bits >= least)
    bits = where(kept, bits, 0)
    sign = where(kept & (total < 0), 0x8000, 0)
    store_value(t, view, row, sign, bits)


@kernel(forceinline=True)
def _finish_small(t: TileRecord, view: Int, row: Int, total: Lanes, greatest: Lanes) -> None:
    """`_finish` of a sum of at most 29 bits, which two groups and a Dst value never exceed.

    For the 32-bit view, binary32 normalises and rounds it. A little more than sums of more than 24 bits leaves no ties,
    so that they are rounded half up on the magnitude.
    """
    if view != VIEW_32:
        _finish(t, view, row, total, greatest)
        return
    magnitude = where(total < 0, -total, total)
    floats = to_floats((magnitude << 2) + where(magnitude >= 1 << 24, 1, 0))
    exponent = (floats >> 23) + (greatest - _FIELD_OF_SUM)
    bits = floats + ((greatest - _FIELD_OF_SUM) << 23)
    bits = where(exponent >= _FP32_INFINITE, _FP32_INFINITE << 23, bits)
    kept = (total != 0) & (greatest > 0) & (exponent > 0)
    store_value(t, view, row, where(kept & (total < 0), 0x8000, 0), where(kept, bits, 0))


@kernel(forceinline=True)
def store_value(t: TileRecord, view: Int, row: Int, sign: Lanes, bits: Lanes) -> None:
    """Write exponent and mantissa `bits` (FP32, BF16 or FP16 order) under `sign` (bit 15); makes the row valid."""
    if view == VIEW_32:
        physical = high_row(row)
        store16(t.dst, physical, sign | cell_of_bf16_magnitude(bits >> 16))
        store16(t.dst, physical + LOW_HALF, bits & 0xFFFF)
        t.dst_valid[physical] = 1
        return
    if view == VIEW_BF16:
        store16(t.dst, row, sign | cell_of_bf16_magnitude(bits))
    else:
        store16(t.dst, row, sign | cell_of_fp16_magnitude(bits))
    t.dst_valid[row] = 1


@kernel(forceinline=True)
def _align_dst(view: Int, sign: Lanes, magnitude: Lanes, exponent: Lanes, greatest: Lanes) -> Lanes:
    """The signed Dst value at the greatest exponent: shifted right, half up on the magnitude (F12 steps 2 and 3)."""
    aligned = _align(magnitude, exponent, greatest)
    if view != VIEW_32:
        aligned = (aligned + _ROUND_16) & _CLEAR_16
    return where(sign != 0, -aligned, aligned)


@kernel(forceinline=True)
def _align_term(view: Int, value: Lanes, exponent: Lanes, greatest: Lanes) -> Lanes:
    aligned = _align(value, exponent, greatest)
    if view != VIEW_32:
        aligned = (aligned + _ROUND_16) & _CLEAR_16
    return aligned


@kernel(forceinline=True)
def accumulate_one(t: TileRecord, view: Int, row: Int, value: Lanes, exponent: Lanes, unsigned: Lanes) -> None:
    """Dst row += one signed term per column, where 2^23 at its exponent is 1.0 (F12).

    Columns of the mask `unsigned` are shifted as unsigned numbers, which only the corner of F11 needs.
    """
    sign, dst_exponent, magnitude = load_value(t, view, row)
    greatest = maximum(exponent, dst_exponent)
    distance = minimum(greatest - exponent, _FAR)
    half = (splat16(1) << distance) >> 1
    aligned = where(unsigned, shift_right_logical(value + half, distance), (value + half) >> distance)
    if view != VIEW_32:
        aligned = (aligned + _ROUND_16) & _CLEAR_16
    total = aligned
    total = total + _align_dst(view, sign, magnitude, dst_exponent, greatest)
    _finish(t, view, row, total, greatest)


@kernel(forceinline=True)
def accumulate_two(
    t: TileRecord, view: Int, row: Int, value0: Lanes, exponent0: Lanes, value1: Lanes, exponent1: Lanes
) -> None:
    """Dst row += two signed terms per column, combined in one step (F12, F13)."""
    sign, dst_exponent, magnitude = load_value(t, view, row)
    greatest = maximum(maximum(exponent0, exponent1), dst_exponent)
    total = _align_term(view, value0, exponent0, greatest) + _align_term(view, value1, exponent1, greatest)
    total = total + _align_dst(view, sign, magnitude, dst_exponent, greatest)
    _finish_small(t, view, row, total, greatest)


@kernel(forceinline=True)
def replace(t: TileRecord, view: Int, row: Int, value: Lanes, exponent: Lanes) -> None:
    """Dst row = one signed term per column: F12 with Dst +0, whose exponent 0 takes part."""
    greatest = maximum(exponent, 0)
    _finish_small(t, view, row, _align_term(view, value, exponent, greatest), greatest)


@kernel(forceinline=True)
def load_int32(t: TileRecord, row: Int) -> Lanes:
    """Signed 64-bit lanes of a sign-magnitude INT32 row; -0 reads as 0, an invalid row as zeros (F15)."""
    physical = high_row(row)
    if t.dst_valid[physical] == 0:
        return widen(splat16(0))
    cell = load16(t.dst, physical)
    magnitude = ((cell & 0xFF) << 23) | ((cell & 0x7F00) << 8) | load16(t.dst, physical + LOW_HALF)
    return widen(where((cell & 0x8000) != 0, -magnitude, magnitude))


@kernel(forceinline=True)
def store_int32(t: TileRecord, row: Int, value: Lanes) -> None:
    """Write signed 64-bit lanes as sign-magnitude INT32, saturated at 2^31 - 1; zero is +0 (F15)."""
    clamped = narrow(maximum(minimum(value, _INT32_MAX), -_INT32_MAX))
    negative = clamped < 0
    store_value(t, VIEW_32, row, where(negative, 0x8000, 0), where(negative, -clamped, clamped))
