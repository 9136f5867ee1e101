"""Block floating point against slow models: P10 assembly, nearest groups, the unpacker's expansion."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bhemu.errors import FormatError
from bhemu.formats import DataFormat, bfp, floats

B_FAMILY = [DataFormat.BFP8, DataFormat.BFP4, DataFormat.BFP2]
A_FAMILY = [DataFormat.BFP8A, DataFormat.BFP4A, DataFormat.BFP2A]
ids = {"ids": lambda f: f.name}


def groups(count: int, seed: int = 3) -> NDArray[np.uint32]:
    """FP32 bits in groups of 16: close and far exponents, zeros, denormals, and some of any bits."""
    rng = np.random.default_rng(seed)
    any_bits = rng.integers(0, 1 << 32, (count, 16), dtype=np.uint32)
    centre = rng.integers(1, 250, (count, 1), dtype=np.uint32)
    spread = rng.integers(0, 12, (count, 16), dtype=np.uint32)
    exponent = np.where(centre > spread, centre - spread, 0).astype(np.uint32)
    close = (any_bits & np.uint32(0x807FFFFF)) | exponent << np.uint32(23)
    ties = close & np.uint32(0xFFFF0000)
    fp16_range = (close & np.uint32(0x807FFFFF)) | ((exponent % 40 + 108) << np.uint32(23))
    mixed = np.where(rng.random((count, 16)) < 0.2, 0, close).astype(np.uint32)
    return np.concatenate([any_bits, close, ties, fp16_range, mixed, np.zeros((1, 16), np.uint32)])


# The packer ----------------------------------------------------------------------------------------


def slow_assembly(fields: list[tuple[int, int, int]], bits: int) -> tuple[int, list[int]]:
    """P10 on (sign, exponent, 7-bit mantissa)."""
    shared = max(e for _, e, _ in fields)
    datums = []
    for sign, e, m in fields:
        h = (128 if e else 0) | m
        k = shared - e
        magnitude = 0 if k >= 8 else min(127, (h + (1 << k)) >> (k + 1))
        magnitude >>= 8 - bits
        datums.append(sign << (bits - 1) | magnitude if magnitude else 0)
    return shared, datums


@pytest.mark.rule("P10")
@pytest.mark.parametrize("bits", [8, 4, 2])
def test_bfp_assembly_follows_the_rule_for_random_groups(bits: int) -> None:
    rng = np.random.default_rng(bits)
    sign = rng.integers(0, 2, (3000, 16), dtype=np.uint32)
    exponent = rng.integers(0, 256, (3000, 16), dtype=np.uint32)
    exponent[1000:] = rng.integers(0, 250, (2000, 1), dtype=np.uint32) + rng.integers(0, 6, (2000, 16), dtype=np.uint32)
    mantissa = rng.integers(0, 128, (3000, 16), dtype=np.uint32)
    mantissa[2000:] |= 0x70  # where rounding reaches the clamp
    shared, datums = bfp.assemble(sign, exponent, mantissa, bits)
    for row in range(3000):
        fields = list(zip(sign[row].tolist(), exponent[row].tolist(), mantissa[row].tolist(), strict=True))
        assert (int(shared[row]), datums[row].tolist()) == slow_assembly(fields, bits)


def test_assembly_of_every_mantissa_at_every_distance() -> None:
    mantissa = np.repeat(np.arange(128, dtype=np.uint32), 12).reshape(-1, 1)
    distance = np.tile(np.arange(12, dtype=np.uint32), 128).reshape(-1, 1)
    exponent = np.where(np.arange(16) == 0, 100 - distance, 100).astype(np.uint32)
    all_mantissas = np.where(np.arange(16) == 0, mantissa, 0).astype(np.uint32)
    _, datums = bfp.assemble(np.ones_like(exponent), exponent, all_mantissas, 8)
    for m, k, got in zip(mantissa[:, 0].tolist(), distance[:, 0].tolist(), datums[:, 0].tolist(), strict=True):
        magnitude = 0 if k >= 8 else min(127, (128 + m + (1 << k)) >> (k + 1))
        assert got == (0x80 | magnitude if magnitude else 0)


@pytest.mark.parametrize(("data_format", "via"), [(f, i) for f in B_FAMILY for i in floats.INTERMEDIATES[f]], **ids)
def test_hardware_encoding_of_the_b_family(data_format: DataFormat, via: DataFormat) -> None:
    bits = groups(60)
    exponents, datums = bfp.encode_hardware(bits, data_format, via)
    early = floats.pack_early(bits, via)
    for row, values in enumerate(early.tolist()):
        fields = [(v >> 31, v >> 23 & 255, v >> 16 & 127) if v >> 23 & 255 else (0, 0, 0) for v in values]
        assert (int(exponents[row]), datums[row].tolist()) == slow_assembly(fields, data_format.bits)


@pytest.mark.parametrize(("data_format", "via"), [(f, i) for f in A_FAMILY for i in floats.INTERMEDIATES[f]], **ids)
def test_hardware_encoding_of_the_a_family(data_format: DataFormat, via: DataFormat) -> None:
    bits = groups(60)
    exponents, datums = bfp.encode_hardware(bits, data_format, via)
    early = floats.pack_early(bits, via)
    halves = early if via is DataFormat.FP16 else floats.fp32_to_fp16_truncate(early)
    for row, values in enumerate(halves.tolist()):
        fields = [(h >> 15, h >> 10 & 31, h >> 3 & 127) if h >> 10 & 31 else (0, 0, 0) for h in values]
        assert (int(exponents[row]), datums[row].tolist()) == slow_assembly(fields, data_format.bits)


@pytest.mark.parametrize("data_format", B_FAMILY + A_FAMILY, **ids)
@pytest.mark.parametrize("rounding", ["hardware", "nearest"])
def test_encoders_never_write_the_minus_infinity_code(data_format: DataFormat, rounding: str) -> None:
    bits = groups(200)
    if rounding == "hardware":
        _, datums = bfp.encode_hardware(bits, data_format)
    else:
        _, datums = bfp.encode_nearest(bits.view(np.float32), data_format)
    assert not (datums == 1 << data_format.bits - 1).any()


# Nearest --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data_format", B_FAMILY + A_FAMILY, **ids)
def test_nearest_magnitudes_in_exact_arithmetic(data_format: DataFormat) -> None:
    values = groups(40).view(np.float32)
    values = np.where(np.isfinite(values), values, np.float32(1)).astype(np.float32)
    exponents, datums = bfp.encode_nearest(values, data_format)
    bias, largest = data_format.exponent_bias, (1 << data_format.bits - 1) - 1
    smallest, top = Fraction(2) ** (1 - bias), 255 if data_format in B_FAMILY else 31
    for row, group in enumerate(values.tolist()):
        exact = [Fraction(v) if abs(v) >= smallest else Fraction(0) for v in group]
        peak = max(abs(v) for v in exact)
        shared = 0
        while peak and shared < top and peak >= Fraction(2) ** (shared + 1 - bias):
            shared += 1
        assert exponents[row] == shared
        unit = Fraction(2) ** (shared - bias) / (1 << data_format.bits - 2)
        expected = [min(round(abs(v) / unit), largest) for v in exact]  # round() is half to even
        signs = [(v < 0) << data_format.bits - 1 for v in exact]
        assert datums[row].tolist() == [s | m if m else 0 for s, m in zip(signs, expected, strict=True)]


def test_nearest_keeps_infinity_and_nan_in_the_b_family() -> None:
    values = np.zeros((3, 16), np.float32)
    values[:, 0] = np.inf, -np.inf, np.nan
    values[2, 1] = np.array(0xFF800001, np.uint32).view(np.float32)  # a NaN with a low payload
    for data_format in (DataFormat.BFP8, DataFormat.BFP4):
        got = bfp.decode(*bfp.encode_nearest(values, data_format), data_format).astype(np.float32)
        assert got[0, 0] == np.inf
        assert got[1, 0] == -np.inf
        assert np.isnan(got[2, :2]).all()


def test_nearest_saturates_beyond_the_a_family() -> None:
    values = np.zeros((1, 16), np.float32)
    values[0, :4] = 1e9, -np.inf, np.nan, 2.0**17 - 512
    exponents, datums = bfp.encode_nearest(values, DataFormat.BFP8A)
    assert exponents.tolist() == [31]
    assert datums[0, :5].tolist() == [127, 0xFF, 127, 127, 0]


def test_a_given_shared_exponent_saturates_larger_values() -> None:
    values = np.array([[1.0, 1.984375, 2.0, -1e30, 0.0078125, 0.0234375] + [0.0] * 10], np.float32)
    exponents, datums = bfp.encode_nearest(values, DataFormat.BFP8, 127)
    assert exponents.tolist() == [127]
    assert datums[0, :6].tolist() == [64, 127, 127, 0xFF, 0, 2]  # half a unit goes to even


# The unpacker ---------------------------------------------------------------------------------------


def slow_expansion(datum: int, shared: int, bits: int) -> tuple[int, int, int] | None:
    """I.5: (sign, exponent modulo 256, 6 mantissa bits), or None for magnitude 0."""
    left = datum << 8 - bits
    magnitude = left << 1 & 0xFF
    if magnitude == 0:
        return None
    while magnitude < 0x80:
        magnitude, shared = magnitude << 1, shared - 1
    return left >> 7, shared % 256, magnitude >> 1 & 0x3F


def every_pair(bits: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Every shared exponent with every datum, in groups."""
    datums = np.arange(1 << bits, dtype=np.uint8)
    cells = np.resize(datums, (-(-len(datums) // 16), 16))
    return np.repeat(np.arange(256, dtype=np.uint8), len(cells)), np.tile(cells, (256, 1))


@pytest.mark.parametrize("bits", [8, 4, 2])
def test_bf16_expansion_of_every_datum_and_exponent(bits: int) -> None:
    exponents, cells = every_pair(bits)
    got = bfp.to_bf16_bits(exponents, cells, bits)
    for shared, row, values in zip(exponents.tolist(), cells.tolist(), got.tolist(), strict=True):
        for datum, value in zip(row, values, strict=True):
            fields = slow_expansion(datum, shared, bits)
            expected = (0xFF80 if datum else 0) if fields is None else fields[0] << 15 | fields[1] << 7 | fields[2] << 1
            assert value == expected


@pytest.mark.parametrize("bits", [8, 4, 2])
def test_fp16_expansion_of_every_datum_and_defined_exponent(bits: int) -> None:
    exponents, cells = every_pair(bits)
    for shared, row in zip(exponents.tolist(), cells, strict=True):
        expected, defined = [], True
        for datum in row.tolist():
            fields = slow_expansion(datum, shared, bits)
            defined &= fields is None or fields[1] < 32
            expected.append(
                (0xFC00 if datum else 0) if fields is None else fields[0] << 15 | fields[1] << 10 | fields[2] << 4
            )
        one = np.array([shared], np.uint8), row[None]
        if defined:
            assert bfp.to_fp16_bits(*one, bits)[0].tolist() == expected
        else:
            with pytest.raises(FormatError, match=f"shared exponent {shared} "):
                bfp.to_fp16_bits(*one, bits)


@pytest.mark.parametrize("data_format", B_FAMILY, **ids)
def test_values_are_magnitude_times_unit(data_format: DataFormat) -> None:
    datums = np.resize(np.arange(1, 1 << data_format.bits - 1, dtype=np.uint8), (8, 16))
    exponents = np.array([10, 100, 126, 127, 128, 150, 200, 254], np.uint8)
    got = bfp.decode(exponents, datums, data_format).astype(np.float64)
    unit = 2.0 ** (exponents[:, None].astype(float) - 127) / (1 << data_format.bits - 2)
    assert np.array_equal(got, datums * unit)
    assert np.array_equal(bfp.decode(exponents, datums, data_format, tensix=True), got.astype(np.float32))


def test_values_of_the_a_family_reach_beyond_ieee_half() -> None:
    datums = np.zeros((1, 16), np.uint8)
    datums[0, :3] = 127, 64, 0x80
    exponents = np.array([31], np.uint8)
    assert bfp.decode(exponents, datums, DataFormat.BFP8A)[0, :3].tolist() == [130048.0, 65536.0, -np.inf]
    tensix = bfp.decode(exponents, datums, DataFormat.BFP8A, tensix=True)
    assert tensix[0, :3].tolist() == [130048.0, 65536.0, -65536.0]


def test_exponent_0_is_zero_for_the_matrix_unit() -> None:
    datums = np.full((1, 16), 0xC1, np.uint8)
    zero = np.array([0], np.uint8)
    # The host sees a denormal: magnitude 0x41 without its leading one, as the unpacker writes it.
    for data_format, host in ((DataFormat.BFP8, -(2.0**-126) / 64), (DataFormat.BFP8A, -(2.0**-14) / 64)):
        assert bfp.decode(zero, datums, data_format, tensix=True)[0, 0] == 0
        assert float(bfp.decode(zero, datums, data_format)[0, 0]) == host


@pytest.mark.parametrize("data_format", B_FAMILY + A_FAMILY, **ids)
def test_what_the_packer_wrote_survives_another_round(data_format: DataFormat) -> None:
    bits = groups(100, seed=5)
    first = bfp.encode_hardware(bits, data_format, DataFormat.FP32)
    values = bfp.decode(*first, data_format, tensix=True)
    usable = np.isfinite(values).all(axis=1) & (first[0] > 0)
    again = bfp.encode_hardware(values[usable].view(np.uint32), data_format, DataFormat.FP32)
    repeat = bfp.decode(*again, data_format, tensix=True)
    same_peak = again[0] == first[0][usable]
    assert same_peak.mean() > 0.5
    assert np.array_equal(repeat[same_peak], values[usable][same_peak])


@pytest.mark.parametrize("bits", [8, 4, 2])
@given(data=st.data())
def test_packing_datums_into_bytes_starts_with_the_low_bits(bits: int, data: st.DataObject) -> None:
    datums = data.draw(
        st.lists(st.integers(0, (1 << bits) - 1), min_size=16, max_size=48).filter(lambda d: len(d) % 16 == 0)
    )
    packed = bfp.pack_datums(np.array(datums, np.uint8), bits)
    as_number = int.from_bytes(packed.tobytes(), "little")
    assert [as_number >> place * bits & (1 << bits) - 1 for place in range(len(datums))] == datums
    assert bfp.unpack_datums(packed, bits).tolist() == datums
