"""Scalar float codecs against slow models written from the rules, exhaustively where the domain is small."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from bhemu.errors import FormatError
from bhemu.formats import DataFormat, floats

ALL_16 = np.arange(1 << 16, dtype=np.uint16)
ALL_8 = np.arange(1 << 8, dtype=np.uint8)
SCALARS = [f for f in DataFormat if f.kind == "float"]


def fp32_samples(count: int = 20_000) -> NDArray[np.uint32]:
    """Random FP32 bits, close to the limits of FP16 and FP8, ties, and specials."""
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 1 << 32, count, dtype=np.uint32)
    near = (bits & 0x807FFFFF) | (rng.integers(100, 150, count, dtype=np.uint32) << 23)
    ties = near & ~np.uint32(0xFFF) | rng.choice(
        np.array([0, 0x1000, 0x8000, 0x18000, 0x800, 0x10000], np.uint32), count
    )
    edge = [
        0,
        1,
        0x7FFFFF,
        0x800000,
        0x7F7FFFFF,
        0x7F800000,
        0x7F800001,
        0x7FC00000,
        0x7FFFFFFF,
        0x7F7F8000,
        0x7F7F7FFF,
    ]
    edge += [
        (e << 23) | m for e in (0, 1, 111, 112, 113, 120, 121, 135, 136, 142, 143, 144, 254) for m in (0, 1, 0x7FFFFF)
    ]
    specials = np.array(edge, np.uint32)
    return np.concatenate([bits, near, ties, specials, specials | np.uint32(0x80000000)])


# What P6 and P9 say, one value at a time ----------------------------------------------------------


def slow_early(value: int, intermediate: str) -> int:
    if intermediate == "FP32":
        return value
    sign, magnitude = value & 0x80000000, value & 0x7FFFFFFF
    if magnitude > 0x7F800000:
        magnitude = 0x7F800000
    v = sign | magnitude
    if intermediate == "BF16":
        rounded, place = (v + 0x8000) >> 16, 16
    elif intermediate == "BFP8":
        rounded, place = ((v >> 16) + 1) & ~1, 16
    else:  # TF32, and FP16 by way of it
        rounded, place = (v + 0x1000) >> 13, 13
    result = rounded << place & 0xFFFFFFFF
    if result & 0x7F800000 == 0:
        result = 0
    return slow_fp16(result) if intermediate == "FP16" else result


def slow_fp16(value: int) -> int:
    sign, exponent, mantissa = (value >> 31) << 15, (value >> 23 & 0xFF) - 112, value >> 13 & 0x3FF
    if exponent < 0:
        return sign
    return sign | (0x7FFF if exponent > 31 else exponent << 10 | mantissa)


def slow_e4m3(half: int) -> int:
    sign, exponent, mantissa = (half >> 15) << 7, half >> 10 & 0x1F, half & 0x3FF
    if exponent <= 8:
        return sign
    return sign | (0x7F if exponent >= 24 else (exponent - 8) << 3 | mantissa >> 7)


def slow_hardware(value: int, data_format: DataFormat, intermediate: str) -> int:
    early = slow_early(value, intermediate)
    if data_format.name in ("FP32", "TF32"):
        return early
    if data_format.name == "BF16":
        return 0 if early & 0x7F800000 == 0 else early >> 16
    half = early if intermediate == "FP16" else slow_fp16(early)
    if data_format.name == "FP16":
        return half
    if data_format.name == "FP8_E4M3":
        return slow_e4m3(half)
    return half >> 15 << 7 if half & 0x7C00 == 0 else half >> 8


@pytest.mark.parametrize(
    ("data_format", "intermediate"), [(f, i) for f in SCALARS for i in floats.INTERMEDIATES[f]], ids=lambda f: f.name
)
def test_hardware_encoding_follows_early_and_late_conversion(data_format: DataFormat, intermediate: DataFormat) -> None:
    bits = fp32_samples(4_000)
    fast = floats.encode_hardware(bits, data_format, intermediate)
    assert fast.dtype == data_format.bits_dtype
    assert fast.tolist() == [slow_hardware(v, data_format, intermediate.name) for v in bits.tolist()]


@pytest.mark.parametrize(
    ("name", "default"), [("BF16", "BF16"), ("FP16", "FP16"), ("FP8_E4M3", "FP16"), ("BFP4", "FP32")]
)
def test_default_intermediates(name: str, default: str) -> None:
    assert floats.choose_intermediate(DataFormat[name], None).name == default


def test_paths_that_the_packer_lacks_are_refused() -> None:
    with pytest.raises(FormatError, match="FP32 in Dst through TF32 to BF16"):
        floats.choose_intermediate(DataFormat.BF16, "tf32")


def test_fp16_truncation_keeps_exponent_31_and_exponent_0() -> None:
    bits = fp32_samples()
    assert floats.fp32_to_fp16_truncate(bits).tolist() == [slow_fp16(v) for v in bits.tolist()]


def test_every_half_survives_the_way_through_float32() -> None:
    normal = ALL_16[(ALL_16 & 0x7C00) != 0]
    values = floats.fp16_to_float32(normal)
    assert np.array_equal(floats.fp32_to_fp16_truncate(values.view(np.uint32)), normal)
    assert np.array_equal(floats.encode_hardware(values.view(np.uint32), DataFormat.FP16), normal)


def test_unpacker_conversions_of_fp32() -> None:
    bits = fp32_samples()
    flushed = [v >> 16 & 0x8000 if v & 0x7F800000 == 0 else v >> 16 for v in bits.tolist()]
    assert floats.fp32_to_bf16_truncate(bits).tolist() == flushed
    assert floats.fp32_to_tf32_truncate(bits).tolist() == [v & ~0x1FFF for v in bits.tolist()]


# Nearest: every host value, and the midpoints between neighbours ----------------------------------


@pytest.mark.parametrize("data_format", [f for f in SCALARS if f.bits <= 16], ids=lambda f: f.name)
def test_nearest_rounds_every_midpoint_to_even_and_what_is_beyond_it_away(data_format: DataFormat) -> None:
    codes = np.arange(1 << data_format.bits - 1).astype(data_format.bits_dtype)
    with np.errstate(invalid="ignore"):
        values = codes.view(data_format.dtype).astype(np.float64)
    finite = np.isfinite(values)
    low, high = codes[finite][:-1], codes[finite][1:]
    middle = (values[finite][:-1] + values[finite][1:]) / 2  # exact: 12 bits at most
    even = np.where(low % 2 == 0, low, high)
    assert np.array_equal(floats.encode_nearest(middle, data_format), even)
    # Next to a tie by far less than float32 can tell: rounding to float32 first would get these wrong.
    assert np.array_equal(floats.encode_nearest(np.nextafter(middle, np.inf), data_format), high)
    assert np.array_equal(floats.encode_nearest(np.nextafter(middle, 0), data_format), low)
    sign = 1 << data_format.bits - 1
    assert np.array_equal(floats.encode_nearest(-np.nextafter(middle, np.inf), data_format), high | sign)


@pytest.mark.parametrize("data_format", [f for f in SCALARS if f.bits <= 16], ids=lambda f: f.name)
def test_nearest_from_float32_is_the_host_cast(data_format: DataFormat) -> None:
    values = fp32_samples().view(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = values.astype(data_format.dtype).view(data_format.bits_dtype)
    assert np.array_equal(floats.encode_nearest(values, data_format), expected)


def test_nearest_tf32_against_exact_arithmetic() -> None:
    bits = fp32_samples(3_000)
    for value, got in zip(
        bits.tolist(), floats.encode_nearest(bits.view(np.float32), DataFormat.TF32).tolist(), strict=True
    ):
        if value & 0x7F800000 == 0x7F800000:
            assert (got & 0x7FFFFFFF > 0x7F800000) == (value & 0x7FFFFFFF > 0x7F800000)
            continue
        quotient, rest = divmod(value & 0x7FFFFFFF, 1 << 13)
        up = rest > 1 << 12 or (rest == 1 << 12 and quotient & 1)
        assert got == (value & 0x80000000) | (quotient + up) << 13


def test_rounding_to_odd_stays_finite() -> None:
    largest = float(np.finfo(np.float32).max)
    assert floats.to_float32_odd(np.array([1e300, -1e300, np.inf])).tolist() == [largest, -largest, np.inf]


def test_rounding_to_odd_marks_every_inexact_value() -> None:
    rng = np.random.default_rng(2)
    values = np.concatenate([rng.standard_normal(2000) * 10.0 ** rng.integers(-50, 38, 2000), [1e-300, 0.5]])
    for value, got in zip(values.tolist(), floats.to_float32_odd(values), strict=True):
        exact = Fraction(value)
        assert math.isfinite(got)
        if Fraction(float(got)) == exact:
            continue
        assert got.view(np.uint32) & 1
        assert abs(Fraction(float(got)) - exact) < Fraction(float(np.spacing(np.abs(got))))


# Decoding -----------------------------------------------------------------------------------------


def ordinary(bits: int, exponent_bits: int, mantissa_bits: int) -> float:
    """A number with a hidden bit and no special exponent but 0."""
    bias = (1 << exponent_bits - 1) - 1
    sign = -1.0 if bits >> exponent_bits + mantissa_bits else 1.0
    exponent = bits >> mantissa_bits & (1 << exponent_bits) - 1
    mantissa = bits & (1 << mantissa_bits) - 1
    return sign * (1 + mantissa / (1 << mantissa_bits)) * 2.0 ** (exponent - bias) if exponent else sign * 0.0


def same(left: NDArray[Any], right: NDArray[Any]) -> bool:
    return np.array_equal(left, right) and np.array_equal(np.signbit(left), np.signbit(right))


def test_tensix_reading_of_every_half() -> None:
    expected = np.array([ordinary(b, 5, 10) for b in range(1 << 16)], np.float32)
    assert same(floats.decode_tensix(ALL_16, DataFormat.FP16), expected)


@pytest.mark.parametrize("name", ["FP8_E5M2", "FP8_E4M3"])
def test_tensix_reading_of_every_fp8(name: str) -> None:
    def half(x: int) -> int:
        if name == "FP8_E5M2":
            return x << 8 | (0xFF if x & 0x7F == 0x7F else 0)
        sign, exponent, mantissa = x >> 7, x >> 3 & 15, x & 7
        wide = mantissa << 7 | (0x7F if exponent == 15 and mantissa == 7 else 0)
        return sign << 15 | (exponent + 8 if exponent else 0) << 10 | wide

    convert = floats.e5m2_to_fp16 if name == "FP8_E5M2" else floats.e4m3_to_fp16
    halves = convert(ALL_8)
    assert halves.tolist() == [half(x) for x in range(256)]
    assert same(floats.decode_tensix(ALL_8, DataFormat[name]), floats.fp16_to_float32(halves))


def test_tensix_reading_of_every_bf16_flushes_denormals() -> None:
    values = ALL_16.view(ml_dtypes.bfloat16).astype(np.float32)
    tiny = np.abs(values) < 2.0**-126
    expected = np.where(tiny, np.copysign(np.float32(0), values), values)
    got = floats.decode_tensix(ALL_16, DataFormat.BF16)
    assert np.array_equal(got, expected, equal_nan=True)
    assert np.array_equal(np.signbit(got), np.signbit(values))


@pytest.mark.parametrize("data_format", [f for f in SCALARS if f.bits <= 16], ids=lambda f: f.name)
def test_ieee_reading_keeps_every_bit(data_format: DataFormat) -> None:
    codes = np.arange(1 << data_format.bits).astype(data_format.bits_dtype)
    assert np.array_equal(floats.decode_ieee(codes, data_format).view(data_format.bits_dtype), codes)


def test_tf32_reading_ignores_13_low_bits() -> None:
    bits = np.array([0x3F801FFF, 0xC0000001], np.uint32)
    assert floats.decode_ieee(bits, DataFormat.TF32).tolist() == [1.0, -2.0]
    assert floats.decode_tensix(bits, DataFormat.TF32).tolist() == [1.0, -2.0]
