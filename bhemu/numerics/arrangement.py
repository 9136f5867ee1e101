"""What formats and fidelity mean to the matrix unit: configuration, phases, and how Dst is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike

import bhemu.checks as checks
from bhemu.errors import ConfigurationError, FormatError
from bhemu.formats import DataFormat
from bhemu.numerics import loops
from bhemu.numerics.conversion import src_cells
from bhemu.numerics.loops import MATH_THREAD
from bhemu.numerics.operands import (
    U32,
    Array,
    bits_of_src,
    float_bits,
    float_of_bits,
    from_sign_magnitude,
    int32_values,
    raw_bits,
    sign_magnitude,
)
from bhemu.numerics.unit import Unit

_D = DataFormat

Fidelity = Literal["LoFi", "HiFi2", "HiFi3", "HiFi4"] | Sequence[int]
SourceFormat = DataFormat | str | tuple[DataFormat | str, DataFormat | str]

_PHASES: Final = {"lofi": (0,), "hifi2": (0, 1), "hifi3": (0, 1, 2), "hifi4": (0, 1, 2, 3)}
_EIGHT_BIT: Final = (_D.BF16, _D.TF32)
_SOURCES: Final = (*_EIGHT_BIT, _D.FP16, _D.INT8, _D.UINT8)
_ORDERS: Final = {
    _D.FP32: loops.ORDER_32,
    _D.INT32: loops.ORDER_32,
    _D.BF16: loops.ORDER_BF16,
    _D.FP16: loops.ORDER_FP16,
}


def phases_of(fidelity: Fidelity) -> tuple[int, ...]:
    """Fidelity phases by name, or as they are given (math F8).

    Raises:
        ConfigurationError: an unknown name, or phases that are not 0..3.
    """
    if isinstance(fidelity, str):
        found = _PHASES.get(fidelity.lower())
        if found is None:
            raise ConfigurationError(
                f"unknown fidelity {fidelity!r}", remedy="say LoFi, HiFi2, HiFi3 or HiFi4, or a sequence of phases 0..3"
            )
        return found
    phases = tuple(checks.integer(phase, "a fidelity phase") for phase in checks.items(fidelity, "fidelity"))
    if not 1 <= len(phases) <= 4 or any(phase not in (0, 1, 2, 3) for phase in phases):
        raise ConfigurationError(f"phases {phases}", remedy="pass one to four phases, each 0..3")
    return phases


def phase_plan(phases: tuple[int, ...]) -> dict[int, int]:
    """The phases in the plan of a loop."""
    plan = {loops.P_PHASES: len(phases)}
    return plan | {loops.P_FIRST_PHASE + i: phase for i, phase in enumerate(phases)}


@dataclass(frozen=True)
class Arrangement:
    """A valid choice of formats.

    Attributes:
        a, b: formats of SrcA and SrcB.
        dst: format of Dst.
    """

    a: DataFormat
    b: DataFormat
    dst: DataFormat

    @property
    def order(self) -> int:
        """How Dst rows are read and written."""
        return _ORDERS[self.dst]

    def configure(self, u: Unit, *, keep_denormals: bool = False) -> None:
        """Set up the matrix unit."""
        u.configure(
            MATH_THREAD,
            {
                "ALU_ACC_CTRL_Fp32_enabled": int(self.dst is _D.FP32),
                "ALU_ACC_CTRL_INT8_math_enabled": int(self.dst is _D.INT32),
                "ALU_ACC_CTRL_Zero_Flag_disabled_src": int(keep_denormals),
            },
        )
        u.record["src_owner"][...] = 1  # the matrix unit
        u.record["src_format"][0] = self.a.code
        u.record["src_format"][1] = self.b.code

    def dst_bits(self, values: ArrayLike) -> U32:
        """Bits of Dst values given as numbers, brought to the format as UNPACR does (rules I.5)."""
        if self.dst is _D.INT32:
            return sign_magnitude(int32_values(values, "dst"))
        if self.dst is _D.FP32:
            return float_bits(values, "dst")
        return bits_of_src(src_cells(values, self.dst, "dst"), self.dst)

    def raw_dst(self, bits: ArrayLike) -> U32:
        """Bits of Dst values as they are given."""
        return raw_bits(bits, "dst", self.dst.bits)

    def bits_result(self, bits: U32) -> Array:
        """Bits in the narrowest unsigned type."""
        return bits.astype(self.dst.bits_dtype)

    def values_result(self, bits: U32) -> Array:
        """float32 or int32 of Dst bits."""
        return from_sign_magnitude(bits) if self.dst is _D.INT32 else float_of_bits(bits, self.dst)


def arrange(
    source_format: SourceFormat, dst_format: DataFormat | str | None, *, left_is_b: bool = False
) -> Arrangement:
    """Check formats (math F2, F3).

    Args:
        source_format: of both operands, or a pair in the order of the arguments.
        dst_format: None means INT32 with integers and FP32 otherwise.
        left_is_b: the first operand is SrcB.

    Raises:
        ConfigurationError: formats that the matrix unit does not work on together.
    """
    pair = source_format if isinstance(source_format, tuple) else (source_format, source_format)
    if len(pair) != 2:
        raise ConfigurationError(f"{len(pair)} source formats", remedy="pass one format, or one for each operand")
    first, second = (DataFormat.parse(f) for f in pair)
    for f in (first, second):
        if f not in _SOURCES:
            raise ConfigurationError(
                f"{f.name} is not a format of SrcA and SrcB",
                remedy="say bf16, tf32, fp16, int8 or uint8; BFP arrives as BF16 and FP8 as FP16 (unpack_convert)",
            )
    if len({_family(first), _family(second)}) != 1:
        raise ConfigurationError(
            f"{first.name} and {second.name} do not multiply", remedy="give both operands the same exponent width"
        )
    family = _family(first)
    default = _D.INT32 if family == "integer" else _D.FP32
    dst = default if dst_format is None else DataFormat.parse(dst_format)
    allowed = {"integer": (_D.INT32,), "five": (_D.FP32, _D.FP16), "eight": (_D.FP32, _D.BF16)}[family]
    if dst not in allowed:
        raise ConfigurationError(
            f"{first.name} operands do not accumulate into {dst.name}",
            remedy=f"use dst_format {' or '.join(f.name.lower() for f in allowed)}",
        )
    return Arrangement(second, first, dst) if left_is_b else Arrangement(first, second, dst)


def _family(data_format: DataFormat) -> str:
    if data_format.is_integer:
        return "integer"
    return "eight" if data_format in _EIGHT_BIT else "five"


def matrix_shape(array: Array, name: str) -> tuple[int, int]:
    """Rows and columns of a matrix.

    Raises:
        FormatError: the array does not have two dimensions.
    """
    if array.ndim != 2:
        raise FormatError(f"{name} has shape {array.shape}", remedy="pass an array with two dimensions")
    return array.shape[0], array.shape[1]


def same_shape(dst: U32, shape: tuple[int, ...]) -> U32:
    """Dst values of the result's shape, broadcast.

    Raises:
        FormatError: they do not broadcast to it.
    """
    try:
        return np.array(np.broadcast_to(dst, shape))
    except ValueError:
        raise FormatError(
            f"dst has shape {dst.shape}, the result {shape}", remedy="pass a dst that broadcasts to the result"
        ) from None
