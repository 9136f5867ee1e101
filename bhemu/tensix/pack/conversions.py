"""Which early and late conversion a configuration asks for (P6, P9), and what it may not ask for."""

# ruff: noqa: SIM109  (compiled code: `in` on a tuple costs compile time)
from __future__ import annotations

from typing import Any, Final

from bhemu.machine.kernel import kernel
from bhemu.machine.types import AnyInt, Int
from bhemu.tensix.format_codes import (
    BF16,
    BFP2,
    BFP2A,
    BFP4,
    BFP4A,
    BFP8,
    BFP8A,
    FP8,
    FP16,
    FP32,
    INT8,
    INT16,
    INT32,
    TF32,
)
from bhemu.tensix.pack import early_conversion as early
from bhemu.tensix.pack import late_conversion as late
from bhemu.tensix.pack.formats import KIND_BF16, KIND_FP16, KIND_FP32, KIND_INT8, KIND_INT16, KIND_INT32

NONE: Final = -1
"""No such conversion exists."""

# As names of their own: compiled code takes plain globals as constants.
_KEEP_32: Final = early.KEEP_32
_TF32_FROM_32: Final = early.TF32_FROM_32
_BF16_FROM_32: Final = early.BF16_FROM_32
_BF16_CUT_FROM_32: Final = early.BF16_CUT_FROM_32
_E8M6_FROM_32: Final = early.E8M6_FROM_32
_INT8_FROM_32: Final = early.INT8_FROM_32
_UINT8_FROM_32: Final = early.UINT8_FROM_32
_INT8_LOW_BITS: Final = early.INT8_LOW_BITS
_UINT8_LOW_BITS: Final = early.UINT8_LOW_BITS
_INT16_FROM_32: Final = early.INT16_FROM_32
_BF16_FLUSH: Final = early.BF16_FLUSH
_BF16_KEEP: Final = early.BF16_KEEP
_E8M6_FROM_BF16: Final = early.E8M6_FROM_BF16
_TF32_FROM_BF16: Final = early.TF32_FROM_BF16
_FP16_FROM_BF16: Final = early.FP16_FROM_BF16
_FP16_FLUSH: Final = early.FP16_FLUSH
_FP16_KEEP: Final = early.FP16_KEEP
_E5M6_FROM_FP16: Final = early.E5M6_FROM_FP16
_E5M7_FROM_FP16: Final = early.E5M7_FROM_FP16
_FP8_FROM_FP16: Final = early.FP8_FROM_FP16
_INT16_KEEP: Final = early.INT16_KEEP
_SIGN_ONLY: Final = early.SIGN_ONLY


@kernel
def kind_of(format_code: Int) -> Int:
    """Layout of an intermediate datum of this format, or NONE."""
    if format_code == FP32 or format_code == TF32:
        return KIND_FP32
    if format_code == BF16 or format_code == BFP8:
        return KIND_BF16
    if format_code == FP16 or format_code == BFP8A or format_code == FP8:
        return KIND_FP16
    if format_code == INT32:
        return KIND_INT32
    if format_code == INT16:
        return KIND_INT16
    if format_code == INT8:
        return KIND_INT8
    return NONE


@kernel
def _early_from_32(intermediate: Int, raw: Int, unsigned: Int, round_10b: Int) -> Any:
    if intermediate == INT32:
        return _KEEP_32
    if intermediate == FP32:
        return _TF32_FROM_32 if round_10b and not raw else _KEEP_32
    if intermediate == TF32:
        return _KEEP_32 if raw else _TF32_FROM_32
    if intermediate == BF16 or intermediate == BFP8:
        if raw:
            return _BF16_CUT_FROM_32
        return _BF16_FROM_32 if intermediate == BF16 else _E8M6_FROM_32
    if intermediate == FP16:  # Blackhole; the second half follows after the ReLU
        return _TF32_FROM_32 if round_10b and not raw else NONE
    if intermediate == INT8:
        if raw:
            return _UINT8_LOW_BITS if unsigned else _INT8_LOW_BITS
        return _UINT8_FROM_32 if unsigned else _INT8_FROM_32
    if intermediate == INT16:
        return _INT16_FROM_32
    return NONE


@kernel
def _early_from_16(intermediate: Int, raw: Int, unsigned: Int, round_10b: Int) -> Int:
    if intermediate == FP32:
        return _TF32_FROM_BF16 if round_10b and not raw else NONE
    if intermediate == TF32:
        return NONE if raw else _TF32_FROM_BF16
    if intermediate == BF16:
        return _BF16_KEEP if raw else _BF16_FLUSH
    if intermediate == BFP8:
        return _BF16_KEEP if raw else _E8M6_FROM_BF16
    if intermediate == FP16:
        if round_10b:
            return NONE if raw else _FP16_FROM_BF16
        return _FP16_KEEP if raw else _FP16_FLUSH
    if intermediate == BFP8A:
        return _E5M7_FROM_FP16 if raw else _E5M6_FROM_FP16
    if intermediate == FP8:
        return _FP8_FROM_FP16 if raw else NONE
    if intermediate == INT16:
        return _INT16_KEEP
    if intermediate == INT8:
        return _SIGN_ONLY if raw and not unsigned else NONE
    return NONE


@kernel
def early_rule(read_32b: Int, intermediate: Int, raw: Int, unsigned: Int, round_10b: Int) -> AnyInt:
    """Rule of early_conversion.py for an intermediate format and the PCK_DEST_RD_CTRL bits, or NONE."""
    if read_32b:
        return _early_from_32(intermediate, raw, unsigned, round_10b)
    return _early_from_16(intermediate, raw, unsigned, round_10b)


_AS_IS: Final = late.AS_IS
_FP32_FROM_FP16: Final = late.FP32_FROM_FP16
_BF16_FROM_FP16: Final = late.BF16_FROM_FP16
_E4M3_FROM_FP16: Final = late.E4M3_FROM_FP16
_E5M2_FROM_FP16: Final = late.E5M2_FROM_FP16
_E5M2_FROM_E5M2: Final = late.E5M2_FROM_E5M2
_BF16_FROM_FP32: Final = late.BF16_FROM_FP32
_E5M7_LAST: Final = late.E5M7_FROM_FP16


@kernel
def family_a(out_format: Int) -> bool:
    """BFP output with a 5-bit shared exponent."""
    return out_format == BFP8A or out_format == BFP4A or out_format == BFP2A


@kernel
def family_b(out_format: Int) -> bool:
    """BFP output with an 8-bit shared exponent."""
    return out_format == BFP8 or out_format == BFP4 or out_format == BFP2


@kernel
def late_steps(in_format: Int, out_format: Int, e4m3: Int) -> tuple[Int, Int, Int]:
    """(widen BF16 to FP32, narrow FP32 to FP16, last step) for a pair of formats; NONE where there is no conversion."""
    kind = kind_of(in_format)
    if kind == NONE:
        return 0, 0, NONE
    if kind >= KIND_INT32:
        return 0, 0, _AS_IS if in_format == out_format else NONE
    if out_format == FP32 or out_format == TF32:
        if kind == KIND_FP16:
            return 0, 0, _FP32_FROM_FP16
        if kind == KIND_BF16:
            return 1, 0, _AS_IS
        return 0, 0, NONE if in_format == FP32 and out_format == TF32 else _AS_IS
    if out_format == BF16 or family_b(out_format):
        if kind == KIND_FP16:
            return 0, 0, _BF16_FROM_FP16
        return 0, 0, _AS_IS if kind == KIND_BF16 else _BF16_FROM_FP32
    widen = 1 if kind == KIND_BF16 else 0
    narrow = 1 if kind != KIND_FP16 else 0
    if out_format == FP16:
        return widen, narrow, _AS_IS
    if out_format == FP8:
        if e4m3:
            return widen, narrow, _E4M3_FROM_FP16
        return widen, narrow, _E5M2_FROM_E5M2 if in_format == FP8 else _E5M2_FROM_FP16
    if family_a(out_format):
        exact = in_format == BFP8A or in_format == FP8  # no mantissa bit is lost, so denormals stay
        return widen, narrow, _AS_IS if exact else _E5M7_LAST
    return 0, 0, NONE
