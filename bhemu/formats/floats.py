"""Scalar floating-point formats: FP32, TF32, BF16, FP16, FP8 E5M2 and E4M3, to and from raw bits.

Two roundings lead into a format:

* `nearest`: IEEE 754 nearest-even, one rounding from the exact source value; overflow, Inf and NaN as NumPy and
  ml_dtypes do (Inf; for E4M3, which has no Inf, NaN).
* `hardware`: the packer, from an FP32 value in the 32-bit Dst view with `Read_raw` = 0: an early conversion to an
  intermediate format (`P6`, rounds half away from zero, NaN to Inf, exponent 0 to +0) and a late one to the L1 format
  (`P9`, truncates and saturates).

Two interpretations lead out: `ieee` is the host's reading of the bits; `tensix` is the Matrix Unit's, where 5-bit and
4-bit exponents have neither Inf nor NaN and exponent 0 means zero.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from bhemu.errors import FormatError
from bhemu.formats.data_format import DataFormat

U8 = NDArray[np.uint8]
U16 = NDArray[np.uint16]
U32 = NDArray[np.uint32]
F32 = NDArray[np.float32]

_SIGN32 = np.uint32(0x8000_0000)
_MAGNITUDE32 = np.uint32(0x7FFF_FFFF)
_INFINITY32 = np.uint32(0x7F80_0000)

INTERMEDIATES: dict[DataFormat, tuple[DataFormat, ...]] = {
    DataFormat.FP32: (DataFormat.FP32, DataFormat.BF16, DataFormat.BFP8),
    DataFormat.TF32: (DataFormat.TF32,),
    DataFormat.BF16: (DataFormat.BF16, DataFormat.FP32, DataFormat.BFP8),
    DataFormat.FP16: (DataFormat.FP16, DataFormat.FP32),
    DataFormat.FP8_E5M2: (DataFormat.FP16, DataFormat.FP32),
    DataFormat.FP8_E4M3: (DataFormat.FP16, DataFormat.FP32),
    DataFormat.BFP8: (DataFormat.BFP8, DataFormat.FP32, DataFormat.BF16),
    DataFormat.BFP4: (DataFormat.FP32, DataFormat.BFP8, DataFormat.BF16),
    DataFormat.BFP2: (DataFormat.FP32, DataFormat.BFP8, DataFormat.BF16),
    DataFormat.BFP8A: (DataFormat.FP32, DataFormat.FP16),
    DataFormat.BFP4A: (DataFormat.FP32, DataFormat.FP16),
    DataFormat.BFP2A: (DataFormat.FP32, DataFormat.FP16),
}
"""Intermediate formats that lead from FP32 Dst to each L1 format; the first is the default, the one that LLK programs.

`BFP8` as an intermediate is e8m6, one exponent a datum. `FP16` is reached with `Round_10b_mant` = 1.
"""


def choose_intermediate(data_format: DataFormat, intermediate: DataFormat | str | None) -> DataFormat:
    """The intermediate format of a packer path from FP32 Dst; the default of `INTERMEDIATES` for None.

    Raises:
        FormatError: the packer has no such path, or bhemu.formats does not model it.
    """
    known = INTERMEDIATES[data_format]
    if intermediate is None:
        return known[0]
    chosen = DataFormat.parse(intermediate)
    if chosen not in known:
        raise FormatError(
            f"the packer does not go from FP32 in Dst through {chosen.name} to {data_format.name}",
            remedy=f"intermediate may be {', '.join(f.name for f in known)}",
        )
    return chosen


# The packer's early conversion: FP32 in Dst to the intermediate format (P6) -----------------------


def pack_early(fp32_bits: U32, intermediate: DataFormat) -> U32:
    """FP32 Dst values to an intermediate format (`P6`, 32-bit view, `Read_raw` = 0).

    Args:
        fp32_bits: IEEE bits, any shape.
        intermediate: FP32, TF32, BF16, BFP8 (e8m6) or FP16 (by way of TF32, `Round_10b_mant` = 1).

    Returns:
        Bits of the intermediate value, spelt as FP32 with the low mantissa bits 0; for FP16, FP16 bits.
    """
    if intermediate is DataFormat.FP32:
        return fp32_bits
    if intermediate is DataFormat.FP16:
        return fp32_to_fp16_truncate(_round_half_away(fp32_bits, 13))
    if intermediate is DataFormat.BFP8:
        # Rounding starts from the truncated BF16, not from all 23 mantissa bits.
        return _round_half_away(fp32_bits, 17, ignored_bits=16)
    return _round_half_away(fp32_bits, {DataFormat.TF32: 13, DataFormat.BF16: 16}[intermediate])


def _round_half_away(fp32_bits: U32, dropped_bits: int, ignored_bits: int = 0) -> U32:
    """Drop low mantissa bits with half-away rounding; NaN to Inf, exponent 0 to +0 (`P6`)."""
    magnitude = fp32_bits & _MAGNITUDE32
    sign = fp32_bits & _SIGN32
    magnitude = np.minimum(magnitude, _INFINITY32)  # NaN becomes Inf
    half = np.uint32(1 << (dropped_bits - 1))
    if ignored_bits:
        magnitude = magnitude & np.uint32(~((1 << ignored_bits) - 1) & 0xFFFF_FFFF)
    rounded = (magnitude + half) & np.uint32(~((1 << dropped_bits) - 1) & 0xFFFF_FFFF)
    return np.where(rounded >> np.uint32(23) == 0, np.uint32(0), sign | rounded)


# The late conversion: intermediate to L1 (P9) -----------------------------------------------------


def fp32_to_fp16_truncate(fp32_bits: U32) -> U32:
    """FP32 to FP16 as the unpackers and the packer's late conversion do (`I.5`, `P9`).

    Exponent 31 is an ordinary result and exponent 0 keeps its mantissa; only above does it saturate, to 0x7FFF. Inf and
    NaN saturate too. Below exponent 0 the result is a signed zero.

    Example:
        >>> bits = np.array([65536.0, 1e9, -1e-9], np.float32).view(np.uint32)
        >>> [hex(b) for b in fp32_to_fp16_truncate(bits)]
        ['0x7c00', '0x7fff', '0x8000']
    """
    sign = (fp32_bits >> np.uint32(16)) & np.uint32(0x8000)
    # Exponent and 10 mantissa bits, the exponent rebiased by 127 - 15.
    shifted = (fp32_bits & _MAGNITUDE32) >> np.uint32(13)
    bias = np.uint32(112 << 10)
    magnitude = np.where(shifted < bias, np.uint32(0), np.minimum(shifted - bias, np.uint32(0x7FFF)))
    return sign | magnitude


def fp32_to_bf16_truncate(fp32_bits: U32) -> U32:
    """FP32 to BF16 as the unpackers do: exponent 0 becomes a signed zero, then the low 16 bits are dropped (`I.5`)."""
    top = fp32_bits >> np.uint32(16)
    return np.where(fp32_bits & _INFINITY32 == 0, top & np.uint32(0x8000), top)


def fp32_to_tf32_truncate(fp32_bits: U32) -> U32:
    """FP32 to TF32 as the unpackers do: 13 low bits dropped, nothing else (`I.5`). Spelt as FP32."""
    return fp32_bits & np.uint32(0xFFFF_E000)


def fp16_to_e4m3_truncate(fp16_bits: U32) -> U32:
    """FP16 to FP8 E4M3 (`P9`): below 2**-6 a signed zero, from 512 up 0x7F with the sign, else truncated."""
    sign = (fp16_bits >> np.uint32(8)) & np.uint32(0x80)
    magnitude = fp16_bits & np.uint32(0x7FFF)
    rebiased = (magnitude - np.uint32(8 << 10)) >> np.uint32(7)
    result = np.where(magnitude >= 24 << 10, np.uint32(0x7F), rebiased)
    return sign | np.where(magnitude < 9 << 10, np.uint32(0), result)


def fp16_to_e5m2_truncate(fp16_bits: U32) -> U32:
    """FP16 to FP8 E5M2: exponent 0 becomes a signed zero, else truncated. From the documents alone (`P9`)."""
    top = fp16_bits >> np.uint32(8)
    return np.where(fp16_bits & np.uint32(0x7C00) == 0, top & np.uint32(0x80), top)


def pack_late(bits: U32, intermediate: DataFormat, data_format: DataFormat) -> U32:
    """Intermediate values of `pack_early` to the bits of a scalar L1 format (`P9`)."""
    from_fp16 = intermediate is DataFormat.FP16
    if data_format is DataFormat.FP32 or data_format is DataFormat.TF32:
        return bits
    if data_format is DataFormat.BF16:
        if intermediate is DataFormat.FP32:  # a late conversion that narrows flushes to +0, as FP32 -> BFP does
            return np.where(bits & _INFINITY32 == 0, np.uint32(0), bits >> np.uint32(16))
        return bits >> np.uint32(16)
    fp16_bits = bits if from_fp16 else fp32_to_fp16_truncate(bits)
    if data_format is DataFormat.FP16:
        return fp16_bits
    if data_format is DataFormat.FP8_E4M3:
        return fp16_to_e4m3_truncate(fp16_bits)
    return fp16_to_e5m2_truncate(fp16_bits)


def encode_hardware(
    fp32_bits: U32, data_format: DataFormat, intermediate: DataFormat | str | None = None
) -> NDArray[Any]:
    """FP32 values to the raw bits that the packer writes for a scalar float format.

    Args:
        fp32_bits: IEEE bits in Dst, any shape.
        data_format: a format of kind "float".
        intermediate: see `INTERMEDIATES`; None for its default.

    Returns:
        Array of `data_format.bits_dtype`, same shape.

    Example:
        >>> encode_hardware(np.array([1.00390625], np.float32).view(np.uint32), DataFormat.BF16)  # a tie goes away
        array([16257], dtype=uint16)
    """
    chosen = choose_intermediate(data_format, intermediate)
    return pack_late(pack_early(fp32_bits, chosen), chosen, data_format).astype(data_format.bits_dtype, copy=False)


# Nearest-even -------------------------------------------------------------------------------------


def to_float32_odd(values: NDArray[Any]) -> F32:
    """float64 to float32, rounding inexact values to the neighbour with an odd last bit.

    A later nearest-even rounding to 11 or fewer significant bits then gives what one rounding of the float64 would:
    the odd bit remembers that something was cut off.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        near = values.astype(np.float32)
    back = near.astype(np.float64)
    inexact = (back != values) & ~np.isnan(values)
    if not inexact.any():
        return near
    bits = near.view(np.uint32)
    toward_zero = bits - (np.abs(back) > np.abs(values)).astype(np.uint32)
    return np.where(inexact, toward_zero | np.uint32(1), bits).view(np.float32)


def encode_nearest(values: NDArray[Any], data_format: DataFormat) -> NDArray[Any]:
    """float32 or float64 values to the raw bits of a scalar float format, nearest-even.

    Returns:
        Array of `data_format.bits_dtype`, same shape. A float32 input for FP32 is a view, not a copy.

    Example:
        >>> encode_nearest(np.array([1.00390625, 1e9]), DataFormat.BF16)  # a tie goes to even
        array([16256, 20078], dtype=uint16)
    """
    bits_dtype = data_format.bits_dtype
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if data_format is DataFormat.FP32:
            return values.astype(np.float32, copy=False).view(bits_dtype)
        single = to_float32_odd(values) if values.dtype == np.float64 else values.astype(np.float32, copy=False)
        if data_format is DataFormat.TF32:
            return _nearest_tf32(single.view(np.uint32))
        return single.astype(data_format.dtype).view(bits_dtype)


def _nearest_tf32(fp32_bits: U32) -> U32:
    """Nearest-even to 10 mantissa bits, spelt as FP32; a NaN stays a NaN."""
    is_nan = (fp32_bits & _MAGNITUDE32) > _INFINITY32
    odd = (fp32_bits >> np.uint32(13)) & np.uint32(1)
    safe = np.where(is_nan, np.uint32(0), fp32_bits)  # adding to a NaN could wrap
    rounded = safe + np.uint32(0xFFF) + odd
    return np.where(is_nan, fp32_bits | np.uint32(0x40_0000), rounded) & np.uint32(0xFFFF_E000)


# Bits to values -----------------------------------------------------------------------------------


def e4m3_to_fp16(bits: U8) -> U16:
    """FP8 E4M3 to FP16 bits as the unpackers do (`I.5`): denormals keep exponent 0, 0x7F fills the mantissa."""
    wide = bits.astype(np.uint16)
    sign = (wide & 0x80) << 8
    magnitude = wide & 0x7F
    result = (magnitude << 7) + np.where(magnitude >= 8, np.uint16(8 << 10), np.uint16(0))
    return (sign | result | np.where(magnitude == 0x7F, np.uint16(0x7F), np.uint16(0))).astype(np.uint16)


def e5m2_to_fp16(bits: U8) -> U16:
    """FP8 E5M2 to FP16 bits as the unpackers do (`I.5`): shifted left by 8, except that 0x7F becomes 0x7FFF."""
    wide = bits.astype(np.uint16)
    return ((wide << 8) | np.where(wide & 0x7F == 0x7F, np.uint16(0xFF), np.uint16(0))).astype(np.uint16)


def fp16_to_float32(fp16_bits: U16) -> F32:
    """FP16 bits as the Matrix Unit reads them: exponent 31 ordinary, exponent 0 a signed zero.

    Example:
        >>> fp16_to_float32(np.array([0x7C00, 0x7FFF, 0x8001], np.uint16))
        array([ 65536., 131008.,     -0.], dtype=float32)
    """
    wide = fp16_bits.astype(np.uint32)
    sign = (wide & np.uint32(0x8000)) << np.uint32(16)
    magnitude = wide & np.uint32(0x7FFF)
    value = (magnitude << np.uint32(13)) + np.uint32(112 << 23)
    return (sign | np.where(magnitude < 0x400, np.uint32(0), value)).view(np.float32)


def decode_ieee(bits: NDArray[Any], data_format: DataFormat) -> NDArray[Any]:
    """Raw bits of a scalar float format as the host's dtype; a view, except for TF32, whose 13 low bits are ignored."""
    if data_format is DataFormat.TF32:
        return (bits & np.uint32(0xFFFF_E000)).view(np.float32)
    return bits.view(data_format.dtype)


def decode_tensix(bits: NDArray[Any], data_format: DataFormat) -> F32:
    """Raw bits of a scalar float format as float32 numbers in the Matrix Unit's reading.

    Exponent 0 is a signed zero. 5-bit exponents reach 31, FP8 passes through the unpacker's FP16. 8-bit exponent 255
    stays Inf or NaN as the Vector Unit reads it, since float32 holds no such finite number.
    """
    if data_format is DataFormat.FP16:
        return fp16_to_float32(bits)
    if data_format is DataFormat.FP8_E5M2:
        return fp16_to_float32(e5m2_to_fp16(bits))
    if data_format is DataFormat.FP8_E4M3:
        return fp16_to_float32(e4m3_to_fp16(bits))
    wide: U32 = bits.astype(np.uint32)
    if data_format is DataFormat.BF16:
        wide = wide << np.uint32(16)
    elif data_format is DataFormat.TF32:
        wide = fp32_to_tf32_truncate(wide)
    return np.where(wide & _INFINITY32 == 0, wide & _SIGN32, wide).view(np.float32)


def is_host_float(dtype: np.dtype[Any]) -> bool:
    """True for the float dtypes of NumPy (to 64 bits) and ml_dtypes."""
    if dtype.kind == "c" or (dtype.kind == "f" and dtype.itemsize > 8):  # finfo takes complex dtypes too
        return False
    try:
        ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    except (ValueError, TypeError):
        return False
    return True
