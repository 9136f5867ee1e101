"""Block floating point: 16 datums of sign and magnitude with one exponent byte (rules `I.4`, `I.5`, `P9`, `P10`).

A *group* is the 16 datums of one exponent. Arrays of groups have shape [groups, 16]; a datum is one uint8 with its sign
on top and its magnitude below: 8, 4 or 2 bits, not yet packed into bytes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bhemu.errors import FormatError
from bhemu.formats.data_format import DataFormat
from bhemu.formats.floats import (
    F32,
    U8,
    U16,
    U32,
    choose_intermediate,
    fp16_to_float32,
    fp32_to_fp16_truncate,
    pack_early,
)

I32 = NDArray[np.int32]


# Values to groups ---------------------------------------------------------------------------------


def assemble(sign: U32, exponent: U32, mantissa7: U32, datum_bits: int) -> tuple[U8, U8]:
    """The packer's shared-exponent assembly (`P10`).

    Args:
        sign, exponent, mantissa7: fields of e8m7 (or e5m7) values, shape [groups, 16]. Exponent 0 has no hidden bit,
            and the largest exponent is an ordinary one.
        datum_bits: 8, 4 or 2.

    Returns:
        Exponents [groups] and datums [groups, 16].

    Example:
        >>> one, zeros = np.full((1, 16), 127, np.uint32), np.zeros((1, 16), np.uint32)
        >>> exponents, datums = assemble(zeros, one, zeros, 8)
        >>> int(exponents[0]), int(datums[0, 0])
        (127, 64)
    """
    shared = exponent.max(axis=-1, keepdims=True)
    hidden = np.where(exponent != 0, mantissa7 | np.uint32(128), mantissa7)
    # A distance of 8 leaves (h + 256) >> 9 = 0, as any larger one must.
    shift = np.minimum(shared - exponent, np.uint32(8))
    rounded = (hidden + (np.uint32(1) << shift)) >> (shift + np.uint32(1))
    magnitude = np.minimum(rounded, np.uint32(127))
    magnitude >>= np.uint32(8 - datum_bits)
    # The sign goes with a zero magnitude, so that the minus-infinity code never appears.
    datums = np.where(magnitude != 0, (sign << np.uint32(datum_bits - 1)) | magnitude, np.uint32(0))
    return shared[..., 0].astype(np.uint8), datums.astype(np.uint8)


def encode_hardware(
    fp32_bits: U32, data_format: DataFormat, intermediate: DataFormat | str | None = None
) -> tuple[U8, U8]:
    """FP32 values in Dst to the exponents and datums that the packer writes.

    The early conversion (`P6`) leads to `intermediate`; the late one (`P9`) truncates to e8m7 with exponent 0 to +0, or
    to e5m7 for the A family, which only the documents describe; then `assemble`.

    Args:
        fp32_bits: IEEE bits, shape [groups, 16].
        data_format: a BFP format.
        intermediate: see `bhemu.formats.floats.INTERMEDIATES`; None for its default.

    Returns:
        Exponents [groups] and datums [groups, 16].
    """
    chosen = choose_intermediate(data_format, intermediate)
    early = pack_early(fp32_bits, chosen)
    if data_format.exponent_family == "B":
        bf16_bits = np.where(early & np.uint32(0x7F80_0000) == 0, np.uint32(0), early >> np.uint32(16))
        return assemble(
            bf16_bits >> np.uint32(15),
            (bf16_bits >> np.uint32(7)) & np.uint32(0xFF),
            bf16_bits & np.uint32(0x7F),
            data_format.bits,
        )
    fp16_bits = early if chosen is DataFormat.FP16 else fp32_to_fp16_truncate(early)
    exponent = (fp16_bits >> np.uint32(10)) & np.uint32(0x1F)
    # Mantissa bits are lost, so exponent 0 is flushed as P9 does wherever it narrows.
    mantissa7 = np.where(exponent != 0, (fp16_bits >> np.uint32(3)) & np.uint32(0x7F), np.uint32(0))
    return assemble(fp16_bits >> np.uint32(15), exponent, mantissa7, data_format.bits)


def encode_nearest(values: F32, data_format: DataFormat, shared_exponent: int | None = None) -> tuple[U8, U8]:
    """float32 values to groups whose shared exponent is that of the largest, each magnitude nearest-even.

    A magnitude that rounds up beyond its bits saturates. Values below the smallest normal (2**-126, 2**-14 for the A
    family) become 0, since the unpacker could not give them back. In the B family Inf and NaN take the exponent 255,
    which leaves nothing of finite neighbours in the group; BFP2 turns NaN into Inf. The A family has neither: both
    saturate, as does everything from 2**17 up.

    Args:
        values: shape [groups, 16].
        data_format: a BFP format.
        shared_exponent: the exponent byte to use for every group instead of the largest; larger values saturate.

    Returns:
        Exponents [groups] and datums [groups, 16].
    """
    bits = np.ascontiguousarray(values).view(np.uint32)
    sign = bits >> np.uint32(31)
    exponent = ((bits >> np.uint32(23)) & np.uint32(0xFF)).astype(np.int32)
    significand = (bits & np.uint32(0x7F_FFFF)) | np.uint32(0x80_0000)
    if data_format.exponent_family == "B":
        # A NaN whose payload lies low must not round to Inf.
        is_nan = (exponent == 255) & (significand != 0x80_0000)
        significand = np.where(is_nan, np.uint32(0xC0_0000), significand)
    else:
        exponent = np.maximum(exponent - 112, 0)
        significand = np.where(exponent > 31, np.uint32(0xFF_FFFF), significand)
        exponent = np.minimum(exponent, 31)
    significand = np.where(exponent == 0, np.uint32(0), significand)
    if shared_exponent is None:
        shared: I32 = exponent.max(axis=-1, keepdims=True)
    else:
        shared = np.full((len(values), 1), shared_exponent, np.int32)
    magnitude_bits = data_format.bits - 1
    largest = np.uint32((1 << magnitude_bits) - 1)
    # 24 significand bits, of which magnitude_bits stay at distance 0. Beyond 26 everything is below a half.
    distance = shared - exponent
    shift = np.clip(distance + 24 - magnitude_bits, 1, 26).astype(np.uint32)
    odd = (significand >> shift) & np.uint32(1)
    magnitude = (significand + (np.uint32(1) << (shift - np.uint32(1))) - np.uint32(1) + odd) >> shift
    magnitude = np.where((distance < 0) & (significand != 0), largest, np.minimum(magnitude, largest))
    datums = np.where(magnitude != 0, (sign << np.uint32(magnitude_bits)) | magnitude, np.uint32(0))
    return np.broadcast_to(shared, (len(values), 1))[:, 0].astype(np.uint8), datums.astype(np.uint8)


# Groups to values ---------------------------------------------------------------------------------


def _normalise(datums: U8, exponents: U8, datum_bits: int) -> tuple[U8, U8, U8]:
    """Sign, exponent modulo 256 and 8-bit magnitude with its leading one on top (0 for 0), as the unpacker does."""
    left = (datums << np.uint8(8 - datum_bits)).astype(np.uint8)
    magnitude = (left << np.uint8(1)).astype(np.uint8)
    leading_zeros = _LEADING_ZEROS[magnitude]
    return left >> np.uint8(7), exponents[..., None] - leading_zeros, magnitude << leading_zeros


_LEADING_ZEROS: U8 = np.array([8 - n.bit_length() for n in range(256)], np.uint8)
_LEADING_ZEROS[0] = 0


def to_bf16_bits(exponents: U8, datums: U8, datum_bits: int) -> U16:
    """What the unpacker makes of BFP8, BFP4 or BFP2 (`I.5`): BF16 bits, the exponent wrapping modulo 256.

    A negative zero is minus infinity.

    Args:
        exponents: shape [groups].
        datums: shape [groups, 16].
        datum_bits: 8, 4 or 2.

    Example:
        >>> [hex(b) for b in to_bf16_bits(np.array([127], np.uint8), np.array([[64, 0x80]], np.uint8), 8)[0]]
        ['0x3f80', '0xff80']
    """
    sign, exponent, magnitude = _normalise(datums, exponents, datum_bits)
    sign_bits = sign.astype(np.uint16) << np.uint16(15)
    value = (exponent.astype(np.uint16) << np.uint16(7)) | (magnitude & np.uint8(0x7E))
    zero = np.where(sign != 0, np.uint16(0x7F80), np.uint16(0))
    return sign_bits | np.where(magnitude == 0, zero, value)


def to_fp16_bits(exponents: U8, datums: U8, datum_bits: int) -> U16:
    """What the unpacker makes of BFP8A, BFP4A or BFP2A (`I.5`, from the documents alone): FP16 bits.

    A negative zero is 0xFC00.

    Raises:
        FormatError: an exponent outside 0..31 once the datum is normalised, which is undefined on hardware.
    """
    sign, exponent, magnitude = _normalise(datums, exponents, datum_bits)
    undefined = (exponent > 31) & (magnitude != 0)
    if undefined.any():
        group, datum = (int(n) for n in np.argwhere(undefined)[0])
        raise FormatError(
            f"group {group}: shared exponent {int(exponents[group])} with datum {datum} = "
            f"{int(datums[group, datum]):#x} leaves the 5-bit exponent range of the A family",
            remedy="check that the exponent section and the data format are right; this is undefined on hardware",
        )
    sign_bits = sign.astype(np.uint16) << np.uint16(15)
    value = (exponent.astype(np.uint16) << np.uint16(10)) | (
        (magnitude & np.uint8(0x7E)).astype(np.uint16) << np.uint16(3)
    )
    zero = np.where(sign != 0, np.uint16(0x7C00), np.uint16(0))
    return sign_bits | np.where(magnitude == 0, zero, value)


def decode(exponents: U8, datums: U8, data_format: DataFormat, *, tensix: bool = False) -> NDArray[np.generic]:
    """Groups as numbers, by way of the 16-bit value that the unpacker writes.

    Args:
        exponents: shape [groups].
        datums: shape [groups, 16].
        data_format: a BFP format.
        tensix: True for the Matrix Unit's reading as float32: exponent 0 is zero, negative zero of the A family is
            -65536. False for `data_format.dtype`: BF16 as the host reads it, negative zero is minus infinity in both
            families, exponent 31 of the A family is an ordinary exponent.

    Raises:
        FormatError: see `to_fp16_bits`.
    """
    if data_format.exponent_family == "B":
        bf16_bits = to_bf16_bits(exponents, datums, data_format.bits)
        if not tensix:
            return bf16_bits.view(data_format.dtype)
        flushed = np.where(bf16_bits & 0x7F80 == 0, bf16_bits & np.uint16(0x8000), bf16_bits)
        return (flushed.astype(np.uint32) << np.uint32(16)).view(np.float32)
    fp16_bits = to_fp16_bits(exponents, datums, data_format.bits)
    ordinary = fp16_to_float32(fp16_bits)
    if tensix:
        return ordinary
    # Exponent 0 has a host reading (FP16 denormal); 31 would be Inf or NaN there, but BFP has no such numbers.
    small = (fp16_bits & 0x7C00) == 0
    result = np.where(
        small, np.where(small, fp16_bits, 0).astype(np.uint16).view(np.float16).astype(np.float32), ordinary
    )
    minus_infinity = datums == np.uint8(1 << (data_format.bits - 1))
    return np.where(minus_infinity, np.float32(-np.inf), result)


# Datums to bytes ----------------------------------------------------------------------------------


def pack_datums(datums: U8, datum_bits: int) -> U8:
    """Datums of 8, 4 or 2 bits to bytes along the last axis, the first datum in the low bits (`I.4`).

    Example:
        >>> [hex(b) for b in pack_datums(np.array([1, 2, 3, 4], np.uint8), 4)]
        ['0x21', '0x43']
    """
    per_byte = 8 // datum_bits
    packed = datums[..., ::per_byte].copy()
    for place in range(1, per_byte):
        packed |= datums[..., place::per_byte] << np.uint8(place * datum_bits)
    return packed


def unpack_datums(data: U8, datum_bits: int) -> U8:
    """Inverse of `pack_datums`."""
    per_byte = 8 // datum_bits
    if per_byte == 1:
        return data
    mask = np.uint8((1 << datum_bits) - 1)
    datums = np.empty((*data.shape, per_byte), np.uint8)
    for place in range(per_byte):
        datums[..., place] = (data >> np.uint8(place * datum_bits)) & mask
    return datums.reshape(*data.shape[:-1], -1)
