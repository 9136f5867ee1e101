"""Late conversion: intermediate format to L1 format, or to what the BFP assembly takes (P9). Sixteen datums at a time.

A conversion is up to three steps: widen BF16 to FP32, narrow FP32 to FP16, and a last one. Nothing is rounded here.
"""

from __future__ import annotations

from typing import Final

from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import shift_right_logical, where
from bhemu.machine.types import Int, Lanes, PackRecord
from bhemu.tensix.pack.early_conversion import rebias_to_fp16

# Last step
AS_IS: Final = 0
FP32_FROM_FP16: Final = 1
BF16_FROM_FP16: Final = 2
E4M3_FROM_FP16: Final = 3
E5M2_FROM_FP16: Final = 4
E5M2_FROM_E5M2: Final = 5
BF16_FROM_FP32: Final = 6
E5M7_FROM_FP16: Final = 7


@kernel
def fp16_from_fp32(value: Lanes) -> Lanes:
    """FP32 or TF32 to FP16: truncates, exponent 0 kept, above 31 saturates (P9)."""
    sign = shift_right_logical(value, 16) & 0x8000
    return rebias_to_fp16(sign, shift_right_logical(value, 23) & 0xFF, shift_right_logical(value, 13) & 0x3FF)


@kernel
def _last_step(step: Int, value: Lanes) -> Lanes:
    if step == BF16_FROM_FP32:
        value = shift_right_logical(value, 16)
        return where((value & 0x7FFF) < 0x80, 0, value)
    sign = value & 0x8000
    magnitude = value & 0x7FFF
    if step == FP32_FROM_FP16:  # exponent 0 only widens the mantissa
        return (sign << 16) | (where(magnitude >= 0x400, magnitude + (112 << 10), magnitude) << 13)
    if step == BF16_FROM_FP16:
        return where(magnitude < 0x400, 0, sign | ((magnitude >> 3) + (112 << 7)))
    if step == E4M3_FROM_FP16:
        exponent = magnitude >> 10
        value = (magnitude >> 7) - (8 << 3)
        value = where(exponent >= 24, 0x7F, value)
        return (sign >> 8) | where(exponent <= 8, 0, value)
    if step == E5M2_FROM_FP16:
        return (sign >> 8) | where(magnitude < 0x400, 0, magnitude >> 8)
    if step == E5M2_FROM_E5M2:
        return value >> 8
    return sign | where(magnitude < 0x400, 0, magnitude & ~0x7)


@kernel
def late_conversion(pack: PackRecord, value: Lanes) -> Lanes:
    """Sixteen datums in the L1 format; for BFP output BF16 (family B) or E5M7 (family A) patterns."""
    if pack.late_widen != 0:
        value = value << 16
    if pack.late_narrow != 0:
        value = fp16_from_fp32(value)
    if pack.late_final != AS_IS:
        value = _last_step(pack.late_final, value)
    return value
