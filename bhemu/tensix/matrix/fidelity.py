"""Fidelity slices of Src operands (math F8, F9)."""

from __future__ import annotations

from typing import Final

from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import where
from bhemu.machine.types import Int, Lanes
from bhemu.tensix.matrix.operands import FP16_STYLE, SRC_EXPONENT, SRC_MANTISSA, SRC_MANTISSA_LSB, SRC_SIGN, VIEW_32

_IMPLICIT: Final = SRC_MANTISSA + 1
_SLICE_A: Final = 0x1F


@kernel(forceinline=True)
def exponent_bias(style: Int, view: Int, phase: Int) -> Int:
    """K: what is added to the sum of both exponent fields (F8)."""
    bias = -127
    if style == FP16_STYLE:
        bias = 97 if view == VIEW_32 else -15
    return bias - 5 * (phase & 1) - 7 * (phase >> 1)


@kernel(forceinline=True)
def slice_a(cell: Lanes, phase: Int) -> Lanes:
    """Signed 5-bit slice of SrcA cells' mantissas; 0 where the operand counts as zero (F5, F8)."""
    slice_ = (((cell >> SRC_MANTISSA_LSB) & SRC_MANTISSA | _IMPLICIT) >> (1 if phase & 1 else 6)) & _SLICE_A
    slice_ = where((cell & SRC_EXPONENT) != 0, slice_, 0)
    return where((cell & SRC_SIGN) != 0, -slice_, slice_)


@kernel(forceinline=True)
def slice_b(cell: Lanes, phase: Int, keep_denormals: bool) -> Lanes:
    """Signed 7-bit slice of SrcB cells' mantissas; 0 where the operand counts as zero (F5, F8)."""
    mantissa = (cell >> SRC_MANTISSA_LSB) & SRC_MANTISSA | _IMPLICIT
    slice_ = (mantissa & 0xF) << 3 if phase & 2 else mantissa >> 4
    if not keep_denormals:
        slice_ = where((cell & SRC_EXPONENT) != 0, slice_, 0)
    return where((cell & SRC_SIGN) != 0, -slice_, slice_)
