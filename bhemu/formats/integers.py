"""Integer formats to and from raw bits: sign-magnitude INT32 and INT8, unsigned, and opaque 16- and 32-bit carriers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from bhemu.errors import FormatError
from bhemu.formats.data_format import DataFormat

_RANGES: dict[DataFormat, tuple[int, int]] = {
    DataFormat.INT32: (-(2**31 - 1), 2**31 - 1),
    DataFormat.UINT32: (0, 2**32 - 1),
    DataFormat.INT32_RAW: (-(2**31), 2**31 - 1),
    DataFormat.INT16: (-(2**15), 2**15 - 1),
    DataFormat.UINT16: (0, 2**16 - 1),
    DataFormat.INT8: (-127, 127),
    DataFormat.UINT8: (0, 255),
}

_PACKER_CLAMPS = (DataFormat.INT8, DataFormat.UINT8)
"""Formats to which the packer saturates INT32 in Dst (`P6`)."""

_SIGN_MAGNITUDE = (DataFormat.INT32, DataFormat.INT8)


def value_range(data_format: DataFormat) -> tuple[int, int]:
    """Smallest and largest value of an integer format.

    Example:
        >>> value_range(DataFormat.INT8)
        (-127, 127)
    """
    return _RANGES[data_format]


def to_sign_magnitude(values: NDArray[np.signedinteger[Any]], bits: int) -> NDArray[Any]:
    """Two's complement values within +-(2**(bits - 1) - 1) to sign-magnitude bits, never the negative zero.

    Example:
        >>> [hex(b) for b in to_sign_magnitude(np.array([5, -5]), 8)]
        ['0x5', '0x85']
    """
    sign = (values < 0).astype(np.uint32) << np.uint32(bits - 1)
    raw_bits: NDArray[Any] = (np.abs(values).astype(np.uint32) | sign).astype(f"<u{bits // 8}")
    return raw_bits


def from_sign_magnitude(raw_bits: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Sign-magnitude bits to two's complement of the same width; the negative zero becomes 0.

    Example:
        >>> from_sign_magnitude(np.array([0x85, 0x80], np.uint8), np.dtype("i1")).tolist()
        [-5, 0]
    """
    top = raw_bits.dtype.type(1 << (8 * raw_bits.dtype.itemsize - 1))
    magnitude: NDArray[Any] = (raw_bits & ~top).astype(dtype)
    np.negative(magnitude, out=magnitude, where=raw_bits & top != 0)
    return magnitude


def encode(values: NDArray[Any], data_format: DataFormat, *, saturate: bool) -> NDArray[Any]:
    """Integers, or floats rounded to integers, to the raw bits of an integer format.

    Args:
        values: bool, integer, float32 or float64 array.
        data_format: an integer format.
        saturate: True for the packer's path from INT32 in Dst: INT8 and UINT8 clamp, floats are refused, since no
            conversion of the packer goes from a float to an integer. False: floats round to the nearest integer, ties
            to even.

    Returns:
        Array of `data_format.bits_dtype`, same shape; a view where the bits of an integer array already match.

    Raises:
        FormatError: NaN, Inf or a value out of range; a float with `saturate`.
    """
    if values.dtype.kind == "f":
        values = _whole_numbers(values, data_format, saturate)
    low, high = _RANGES[data_format]
    if saturate and data_format in _PACKER_CLAMPS:
        _check_range(values, DataFormat.INT32, "Dst holds sign-magnitude INT32; keep the values within it")
        values = np.clip(values.astype(np.int64), low, high)
    elif values.dtype != data_format.dtype or data_format in _SIGN_MAGNITUDE:
        _check_range(values, data_format, f"keep the values within {low}..{high}, or choose a wider format")
    if data_format in _SIGN_MAGNITUDE:
        return to_sign_magnitude(values.astype(np.int64), data_format.bits)
    return values.astype(data_format.dtype, copy=False).view(data_format.bits_dtype)


def _whole_numbers(values: NDArray[Any], data_format: DataFormat, saturate: bool) -> NDArray[Any]:
    if saturate:
        raise FormatError(
            f"{values.dtype} values cannot go to {data_format.name} as the hardware does: the packer converts no float "
            f"to an integer",
            remedy="cast the array to an integer dtype first, or use rounding='nearest'",
        )
    not_finite = ~np.isfinite(values)
    if not_finite.any():
        where = _first(not_finite)
        raise FormatError(
            f"{values.dtype} value {values[where]} at {_shown(where)} cannot be held by {data_format.name}",
            remedy="replace NaN and Inf first (numpy.nan_to_num), or choose a float format",
        )
    whole: NDArray[Any] = np.rint(values)
    return whole


def _check_range(values: NDArray[Any], data_format: DataFormat, remedy: str) -> None:
    """Refuse values outside the format's range, naming the first."""
    low, high = _RANGES[data_format]
    if not values.size or (int(values.min()) >= low and int(values.max()) <= high):
        return
    outside = (values < low) | (values > high)
    where = _first(outside)
    raise FormatError(
        f"{int(np.count_nonzero(outside))} of {values.size} {values.dtype} values are outside the range of "
        f"{data_format.name}, {low}..{high}; the first is {values[where]} at {_shown(where)}",
        remedy=remedy,
    )


def _first(mask: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(n) for n in np.unravel_index(int(mask.argmax()), mask.shape))


def _shown(where: tuple[int, ...]) -> str:
    return "index " + (str(where[0]) if len(where) == 1 else str(where))


def decode(raw_bits: NDArray[Any], data_format: DataFormat) -> NDArray[Any]:
    """Raw bits of an integer format to `data_format.dtype`; a view unless the format is sign-magnitude."""
    if data_format in _SIGN_MAGNITUDE:
        return from_sign_magnitude(raw_bits, data_format.dtype)
    return raw_bits.view(data_format.dtype)


def is_host_integer(dtype: np.dtype[Any]) -> bool:
    """True for the integer dtypes of NumPy and ml_dtypes (int4, uint2, ...)."""
    if dtype.kind in "iu":
        return True
    try:
        ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]
    except (ValueError, TypeError):
        return False
    return True


def to_float64_odd(values: NDArray[Any]) -> NDArray[np.float64]:
    """Integers to float64; those of 54 bits and more are rounded to odd, so that a later rounding is the only one."""
    if values.dtype.itemsize < 8:
        return values.astype(np.float64)
    low = values & values.dtype.type((1 << 11) - 1)
    sticky = (low != 0).astype(values.dtype) << values.dtype.type(11)
    cut = (values - low) | sticky
    wide = (values >= 1 << 53) | (values <= -(1 << 53))
    return np.where(wide, cut, values).astype(np.float64)
