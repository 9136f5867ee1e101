"""L1 accumulation: what L1 holds plus the new datums, in the output format (I.9). Sixteen datums at a time."""

from __future__ import annotations

from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import add_floats, minimum, narrow, shift_right_logical, splat16, where, widen_unsigned
from bhemu.machine.types import AnyInt, Int, Lanes
from bhemu.tensix.format_codes import BF16, FP16, FP32

_DOUBLE_LARGEST = (0x7FF << 52) - 1


@kernel
def _fp32_without_denormals(value: Int) -> AnyInt:
    return where((value & 0x7FFFFFFF) < 0x800000, value & -0x80000000, value)


@kernel
def _add_fp32(old: Int, new: Int) -> AnyInt:
    """IEEE sum; denormals are signed zeros on both sides, any NaN becomes 0x7FC00000."""
    total = add_floats(_fp32_without_denormals(old), _fp32_without_denormals(new))
    total = where((total & 0x7FFFFFFF) > 0x7F800000, 0x7FC00000, total)
    return _fp32_without_denormals(total)


@kernel
def _double_of_bf16(value: Lanes) -> Lanes:
    """binary64 pattern of a BF16 pattern; a NaN becomes (1 + m / 128) * 2**128, Inf stays Inf."""
    magnitude = value & 0x7FFF
    wide = widen_unsigned(where(magnitude < 0x80, 0, magnitude))
    wide = where(wide == 0, 0, (wide << 45) + (896 << 52))
    wide = where(widen_unsigned(magnitude) == 0x7F80, 0x7FF << 52, wide)
    return wide | (widen_unsigned(value & 0x8000) << 48)


@kernel
def _add_bf16(old: Lanes, new: Lanes) -> Lanes:
    """Sum in binary64, rounded to nearest even; an old NaN counts as the largest double, a new one as above 2**128."""
    opposite = ((old & 0x7FFF) == 0x7F80) & ((new & 0x7FFF) == 0x7F80) & (old != new)
    first = _double_of_bf16(old)
    huge = (widen_unsigned(old & 0x8000) << 48) | _DOUBLE_LARGEST
    first = where(widen_unsigned(old & 0x7FFF) > 0x7F80, huge, first)
    total = add_floats(first, _double_of_bf16(new))
    sign = narrow(shift_right_logical(total, 48)) & 0x8000
    magnitude = total & 0x7FFFFFFFFFFFFFFF
    exponent = narrow(magnitude >> 52) - 896
    magnitude = magnitude - (896 << 52)
    rounded = narrow((magnitude + ((1 << 44) - 1) + ((magnitude >> 45) & 1)) >> 45)
    result = sign | where(exponent <= 0, 0, where(exponent >= 255, 0x7F80, rounded))
    return where(opposite, 0x7FC0, result)


@kernel
def _fp32_of_fp16(value: Int) -> AnyInt:
    magnitude = value & 0x7FFF
    return ((value & 0x8000) << 16) | where(magnitude >= 0x400, (magnitude << 13) + (112 << 23), 0)


@kernel
def _add_fp16(old: Int, new: Int) -> AnyInt:
    """Sum in binary32, rounded to nearest even; exponent 31 is ordinary, and there are two odd corners.

    An exact zero becomes 0x7FFF when the old exponent is 30 or 31, and so does a sum below the smallest exponent.
    """
    total = add_floats(_fp32_of_fp16(old), _fp32_of_fp16(new))
    sign = shift_right_logical(total, 16) & 0x8000
    magnitude = total & 0x7FFFFFFF
    exponent = (magnitude >> 23) - 112
    rebiased = magnitude - (112 << 23)
    rounded = minimum((rebiased + 0xFFF + ((rebiased >> 13) & 1)) >> 13, 0x7FFF)
    result = where(exponent < 0, 0x7FFF, where(exponent == 0, 0, rounded))
    cancelled = where(((old >> 10) & 0x1F) >= 30, 0x7FFF, 0)
    return sign | where(magnitude == 0, cancelled, result)


@kernel
def _add_int32(old: Int, new: Int) -> AnyInt:
    """Saturating sum of sign-magnitude integers; a zero sum is +0."""
    a = where(old < 0, -(old & 0x7FFFFFFF), old)
    b = where(new < 0, -(new & 0x7FFFFFFF), new)
    total = a + b
    overflow = ((a ^ total) & (b ^ total)) < 0  # both terms have the other sign than the wrapped sum
    largest = splat16(0x7FFFFFFF)
    saturated = overflow | (total == -0x80000000)  # -2**31 fits two's complement and not the 31-bit magnitude
    magnitude = where(saturated, largest, where(total < 0, -total, total))
    negative = where(overflow, a, total) < 0
    return where(negative, magnitude | -0x80000000, magnitude)


@kernel
def accumulate(out_format: Int, old: Lanes, new: Lanes) -> Lanes:
    """Sum of what L1 holds and of the new datums."""
    if out_format == FP32:
        return _add_fp32(old, new)
    if out_format == BF16:
        return _add_bf16(old, new)
    if out_format == FP16:
        return _add_fp16(old, new)
    return _add_int32(old, new)
