"""Arrays in, arrays out: checks, and the bits that numbers have in each format."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bhemu.errors import FormatError
from bhemu.formats import DataFormat
from bhemu.formats import floats as float_formats
from bhemu.formats import integers as integer_formats
from bhemu.formats.floats import is_host_float
from bhemu.formats.integers import is_host_integer

Array = NDArray[Any]
U32 = NDArray[np.uint32]
F32 = NDArray[np.float32]

SRC_BITS: Final = 19


def as_array(value: ArrayLike, name: str) -> Array:
    """The argument as an array of numbers.

    Raises:
        FormatError: it holds no real numbers, or is ragged.
    """
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise FormatError(f"{name} is not an array: {error}", remedy="pass a regular array of numbers") from None
    if array.dtype == np.bool_ or not (is_host_float(array.dtype) or is_host_integer(array.dtype)):
        raise FormatError(f"{name} has dtype {array.dtype}", remedy="pass floating-point numbers or integers")
    return array


def float_bits(value: ArrayLike, name: str) -> U32:
    """FP32 bits; numbers of other types become float32 first, to nearest even, as NumPy does it."""
    array = as_array(value, name)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.ascontiguousarray(array, np.float32).reshape(array.shape).view(np.uint32)


def raw_bits(value: ArrayLike, name: str, bits: int = 32) -> U32:
    """An array of raw bits as uint32.

    Raises:
        FormatError: the array does not hold integers of at most `bits` bits.
    """
    array = as_array(value, name)
    if array.dtype.kind not in "iu":
        raise FormatError(f"{name} has dtype {array.dtype}, not raw bits", remedy="pass unsigned integers")
    if array.size and (int(array.min()) < 0 or int(array.max()) >> bits):
        raise FormatError(f"{name} holds values outside of {bits} bits", remedy=f"pass values of 0 to 2**{bits} - 1")
    return np.ascontiguousarray(array, np.uint32).reshape(array.shape)


def int32_values(value: ArrayLike, name: str) -> NDArray[np.int32]:
    """Whole numbers as int32.

    Raises:
        FormatError: not integers, or outside of -(2**31 - 1) .. 2**31 - 1.
    """
    array = as_array(value, name)
    if array.dtype.kind not in "iu":
        raise FormatError(f"{name} has dtype {array.dtype}, not integers", remedy="pass int32")
    top = 2**31 - 1
    if array.size and (int(array.min()) < -top or int(array.max()) > top):
        raise FormatError(f"{name} does not fit sign-magnitude INT32", remedy="stay within -(2**31 - 1) .. 2**31 - 1")
    return np.ascontiguousarray(array, np.int32).reshape(array.shape)


def sign_magnitude(values: NDArray[np.int32]) -> U32:
    """Two's complement to sign-magnitude bits."""
    bits: U32 = integer_formats.to_sign_magnitude(values.astype(np.int64), 32)
    return bits


def from_sign_magnitude(bits: U32) -> NDArray[np.int32]:
    """Sign-magnitude bits to two's complement; -0 becomes 0."""
    values: NDArray[np.int32] = integer_formats.from_sign_magnitude(bits, np.dtype(np.int32))
    return values


def shown(array: Array) -> Any:
    """A result as the caller gets it: NumPy scalars instead of arrays without dimensions."""
    return array[()] if array.ndim == 0 else array


# --- Src cells (rules I.2) ------------------------------------------------------------------------------------------


def fields_of_src(cells: U32) -> tuple[U32, U32, U32]:
    """(sign, exponent field, mantissa) of 19-bit Src cells {sign, mantissa[10], exponent[8]}."""
    return cells >> np.uint32(18), cells & np.uint32(0xFF), cells >> np.uint32(8) & np.uint32(0x3FF)


def bits_of_src(cells: U32, data_format: DataFormat) -> U32:
    """Src cells of TF32, BF16 or FP16 as FP32, BF16 or FP16 bits in the usual order."""
    sign, exponent, mantissa = fields_of_src(cells)
    bits: U32
    if data_format is DataFormat.TF32:
        bits = sign << np.uint32(31) | exponent << np.uint32(23) | mantissa << np.uint32(13)
    elif data_format is DataFormat.BF16:
        bits = sign << np.uint32(15) | exponent << np.uint32(7) | mantissa >> np.uint32(3)
    else:
        bits = sign << np.uint32(15) | exponent << np.uint32(10) | mantissa
    return bits


def float_of_bits(bits: U32, data_format: DataFormat) -> F32:
    """FP32, TF32, BF16 or FP16 bits as float32 without loss; exponent 31 of FP16 is an ordinary exponent."""
    if data_format is DataFormat.BF16:
        return (bits << np.uint32(16)).view(np.float32)
    if data_format is not DataFormat.FP16:
        return bits.view(np.float32)
    half = bits.astype(np.uint16)
    small = (half & 0x7C00) == 0
    denormal = np.where(small, half, 0).astype(np.uint16).view(np.float16).astype(np.float32)
    return np.where(small, denormal, float_formats.fp16_to_float32(half))
