"""Integer formats: sign-magnitude, ranges, clamps and refusals."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from bhemu.errors import FormatError
from bhemu.formats import DataFormat, decode, encode, integers

INTEGERS = [f for f in DataFormat if f.is_integer]


def flat(values: object, data_format: str, **options: object) -> list[int]:
    """Raw datums of a row-major encoding."""
    chosen = DataFormat.parse(data_format)
    return encode(values, chosen, tile_shape=None, **options).view(chosen.bits_dtype).tolist()  # type: ignore[arg-type]


def test_every_int8_pattern_reads_as_sign_and_magnitude() -> None:
    bits = np.arange(256, dtype=np.uint8)
    expected = [-(b & 127) if b & 128 else b for b in range(256)]
    assert decode(bits, "int8", 256, tile_shape=None).tolist() == expected


def test_every_int8_value_has_its_sign_and_magnitude_bits() -> None:
    values = np.arange(-127, 128)
    assert flat(values, "int8") == [128 | -v if v < 0 else v for v in values.tolist()]


def test_int32_is_sign_magnitude() -> None:
    values = [0, 1, -1, 2**31 - 1, -(2**31 - 1), 12345]
    bits = [0, 1, 0x80000001, 0x7FFFFFFF, 0xFFFFFFFF, 12345]
    assert flat(np.array(values), "int32") == bits
    assert decode(np.array(bits, np.uint32).view(np.uint8), "int32", 6, tile_shape=None).tolist() == values
    assert decode(bytes([0, 0, 0, 0x80]), "int32", 1, tile_shape=None).tolist() == [0]


@pytest.mark.parametrize(("name", "dtype"), [("INT32_RAW", "i4"), ("UINT32", "u4"), ("INT16", "i2"), ("UINT16", "u2")])
def test_carriers_keep_every_bit_without_a_copy(name: str, dtype: str) -> None:
    info = np.iinfo(dtype)
    values = np.array([info.min, info.max, 0, 1], dtype)
    data = encode(values, name, tile_shape=None)
    assert np.shares_memory(data, values)
    back = decode(data, name, 4, tile_shape=None)
    assert np.shares_memory(back, values)
    assert np.array_equal(back, values)


def test_opaque_16_bits_walk_unchanged() -> None:
    values = np.arange(1 << 16, dtype=np.uint16)
    assert np.array_equal(decode(encode(values, "uint16", tile_shape=None), "uint16", 1 << 16, tile_shape=None), values)


@pytest.mark.parametrize("data_format", INTEGERS, ids=lambda f: f.name)
@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.float64])
def test_limits_are_held_and_what_lies_beyond_is_refused(data_format: DataFormat, dtype: type) -> None:
    low, high = integers.value_range(data_format)
    limits = [0 if dtype is np.uint64 else low, high]
    data = encode(np.array(limits, dtype), data_format, tile_shape=None)
    assert decode(data, data_format, 2, tile_shape=None).tolist() == limits
    beyond = [high + 1] if dtype is np.uint64 else [low - 1, high + 1]
    for value in beyond:
        with pytest.raises(FormatError) as refusal:
            encode(np.array([[0, value]], dtype), data_format, tile_shape=None)
        message = refusal.value.message
        assert f"1 of 2 {np.dtype(dtype).name} values are outside the range of {data_format.name}" in message
        assert f"{low}..{high}" in message
        assert "(0, 1)" in message
        assert refusal.value.remedy


def test_int8_minimum_of_twos_complement_is_refused() -> None:
    with pytest.raises(FormatError, match=r"range of INT8, -127\.\.127; the first is -128 at index 1"):
        encode(np.array([5, -128], np.int8), "int8", tile_shape=None)


def test_the_packer_clamps_8_bit_integers() -> None:
    values = np.array([-(2**31) + 1, -128, -127, -1, 0, 127, 128, 255, 256, 2**31 - 1])
    signed = [0xFF, 0xFF, 0xFF, 0x81, 0, 127, 127, 127, 127, 127]
    assert flat(values, "int8", rounding="hardware") == signed
    assert flat(values, "uint8", rounding="hardware") == [0, 0, 0, 0, 0, 127, 128, 255, 255, 255]
    assert flat(np.array([-5, 7], np.int8), "uint8", rounding="hardware") == [0, 7]
    assert flat(np.array([200], np.uint64), "int8", rounding="hardware") == [127]


def test_the_packer_reads_no_more_than_31_bits() -> None:
    with pytest.raises(FormatError, match="INT32"):
        encode(np.array([-(2**31)]), "int8", tile_shape=None, rounding="hardware")
    with pytest.raises(FormatError, match="UINT16"):
        encode(np.array([70000]), "uint16", tile_shape=None, rounding="hardware")


def test_floats_round_to_the_nearest_even_integer() -> None:
    assert flat(np.array([0.5, 1.5, 2.5, 254.5]), "uint8") == [0, 2, 2, 254]
    assert flat(np.array([-1.5, 126.5], ml_dtypes.bfloat16), "int8") == [0x82, 126]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_are_refused(bad: float) -> None:
    with pytest.raises(
        FormatError, match=r"float32 value -?(nan|inf) at index \(1, 0\) cannot be held by INT8[\s\S]*nan_to_num"
    ):
        encode(np.array([[1.0], [bad]], np.float32), "int8", tile_shape=None)


def test_the_packer_turns_no_float_into_an_integer() -> None:
    with pytest.raises(FormatError, match="packer converts no float"):
        encode(np.ones((1, 4)), "int8", tile_shape=None, rounding="hardware")


def test_booleans_and_narrow_host_integers_count_as_integers() -> None:
    assert flat(np.array([True, False]), "uint8") == [1, 0]
    assert flat(np.array([True, False]), "int32") == [1, 0]
    assert flat(np.array([-8, 7], ml_dtypes.int4), "int8") == [0x88, 7]


def test_wide_integers_round_once_to_float() -> None:
    values = np.array([2**62 + 2**38, 2**62 + 2**38 + 1, -(2**62) - 2**38 - 1, 2**53 + 1, 3], np.int64)
    expected = [2**62, 2**62 + 2**39, -(2**62) - 2**39, 2**53, 3]
    assert decode(encode(values, "fp32", tile_shape=None), "fp32", 5, tile_shape=None).tolist() == expected
    tie = np.array([2**63 + 2**55, 2**63 + 2**55 + 1], np.uint64)  # bfloat16: even stays, just above goes up
    assert decode(encode(tie, "bf16", tile_shape=None), "bf16", 2, tile_shape=None).tolist() == [
        2.0**63,
        2.0**63 + 2.0**56,
    ]
