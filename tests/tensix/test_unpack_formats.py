"""Every conversion of the unpackers, over its whole domain where that is small (I.2, I.5), against the host codecs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bhemu.errors import MissingSpecification, UndefinedBehavior
from bhemu.formats import bfp, floats
from tests.tensix.unpacker import (
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
    TILE,
    Unpacker,
    dst_cells,
    src_cells,
)

HALVES = np.arange(1 << 16, dtype=np.uint16)
BYTES = np.arange(256, dtype=np.uint8)


def through_srcb(u: Unpacker, raw: Any, datums: int) -> NDArray[np.uint32]:
    """Cells of the datums of L1 image `raw`, one SrcB bank (1024 datums) at a time."""
    u.l1(raw, "<u1")
    cells = []
    for start in range(0, datums, 1024):
        n = min(1024, datums - start)
        u.adc(x=start, x1=start + n - 1)
        assert u.unpack()
        cells.append(u.src().reshape(-1)[:n])
    return np.concatenate(cells)


def bfp_image(exponents: NDArray[np.uint8], datums: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Exponent section, rounded up to 16 bytes, then datums."""
    section = np.zeros(-(-len(exponents) // 16) * 16, np.uint8)
    section[: len(exponents)] = exponents
    return np.concatenate([section, bfp.pack_datums(datums, bits).reshape(-1)])


def _int8_dst_cells(bytes_: NDArray[np.uint8]) -> NDArray[np.int64]:
    magnitude = bytes_.astype(np.int64) & 0x7F
    return np.asarray((bytes_.astype(np.int64) >> 7) << 15 | magnitude << 5 | np.where(magnitude != 0, 16, 0))


def fp32_samples() -> NDArray[np.uint32]:
    """Every sign and exponent with mantissas at the edges of what the conversions drop, and random ones."""
    edges = [
        0,
        1,
        0x0FFF,
        0x1000,
        0x1FFF,
        0x2000,
        0x7FFF,
        0x8000,
        0xFFFF,
        0x10000,
        0x3FFFFF,
        0x400000,
        0x7FE000,
        0x7FFFFF,
    ]
    rng = np.random.default_rng(5)
    mantissas = np.concatenate([np.array(edges), rng.integers(0, 1 << 23, 50)]).astype(np.uint32)
    return (np.arange(512, dtype=np.uint32)[:, None] << np.uint32(23) | mantissas).reshape(-1)


@pytest.mark.rule("I.5", "001.3.3a")
@pytest.mark.parametrize("kind", [BF16, FP16])
def test_every_half_keeps_its_bits_on_the_way_to_src(kind: int) -> None:
    """I.5, 001.3.3a, b: denormals, Inf and NaN pass."""
    u = Unpacker()
    u.formats(kind)
    np.testing.assert_array_equal(through_srcb(u, HALVES.view(np.uint8), 1 << 16), src_cells(HALVES, kind))


@pytest.mark.rule("I.2", "001.3.2j")
def test_every_int16_is_split_into_two_bytes_of_a_src_cell() -> None:
    u = Unpacker()
    wide = HALVES.astype(np.uint32)
    expected = (wide & 0xFF00) << 3 | wide & 0xFF
    np.testing.assert_array_equal(through_srcb(u, HALVES.view(np.uint8), 1 << 16), expected)


@pytest.mark.rule("I.5", "001.3.2d")
@pytest.mark.parametrize("e4m3", [0, 1])
def test_every_fp8_becomes_fp16(e4m3: int) -> None:
    """I.5, 001.3.2d, e: E5M2 with all ones below the sign is special, E4M3 denormals are not normalised."""
    u = Unpacker()
    u.formats(FP8)
    u.set("THCON_SEC{}_REG1_Unp_LF8_4b_exp", e4m3)
    halves = floats.e4m3_to_fp16(BYTES) if e4m3 else floats.e5m2_to_fp16(BYTES)
    np.testing.assert_array_equal(through_srcb(u, BYTES, 256), src_cells(halves, FP16))


@pytest.mark.rule("I.2", "001.3.2h")
@pytest.mark.parametrize("unpacker", [0, 1])
@pytest.mark.parametrize("unsigned", [0, 1])
def test_every_int8_becomes_a_magnitude_under_exponent_16(unsigned: int, unpacker: int) -> None:
    """Magnitude 0 keeps its sign and has exponent 0."""
    u = Unpacker(unpacker)
    u.formats(INT8)
    u.set(f"ALU_FORMAT_SPEC_REG0_Src{'AB'[unpacker]}Unsigned", unsigned)
    u.l1(BYTES, "<u1")
    u.count(256)
    assert u.unpack()
    for byte in range(256):
        sign, magnitude = (0, byte) if unsigned else (byte >> 7, byte & 0x7F)
        expected = sign << 18 | magnitude << 8 | (16 if magnitude else 0)
        assert int(u.src().reshape(-1)[byte]) == expected, byte


@pytest.mark.rule("I.5", "001.3.4a")
@pytest.mark.parametrize(("kind", "bits"), [(BFP8, 8), (BFP4, 4), (BFP2, 2)])
def test_every_bfp_datum_with_every_exponent_becomes_bf16(kind: int, bits: int) -> None:
    """I.5, 001.3.4a, b: the exponent wraps modulo 256, negative zero is minus infinity."""
    u = Unpacker()
    u.formats(kind)
    groups = 16 if bits == 8 else 1
    datums = np.resize(np.arange(1 << bits, dtype=np.uint8), (groups, 16))
    for high in range(0, 256, 16):
        exponents = np.arange(high, high + 16, dtype=np.uint8).repeat(groups)
        blocks = np.tile(datums, (16, 1))
        u.set("THCON_SEC1_REG0_TileDescriptor_z_dim", max(blocks.size // 256, 1))
        got = through_srcb(u, bfp_image(exponents, blocks, bits), blocks.size)
        np.testing.assert_array_equal(got.reshape(-1, 16), src_cells(bfp.to_bf16_bits(exponents, blocks, bits), BF16))


@pytest.mark.rule("I.5", "001.3.2g", "001.3.4c")
@pytest.mark.parametrize(("kind", "bits"), [(BFP8A, 8), (BFP4A, 4), (BFP2A, 2)])
def test_every_a_family_datum_whose_exponent_fits_becomes_fp16(kind: int, bits: int) -> None:
    u = Unpacker()
    u.formats(kind)
    groups = 16 if bits == 8 else 1
    datums = np.resize(np.arange(1 << bits, dtype=np.uint8), (groups, 16))
    u.set("THCON_SEC1_REG0_TileDescriptor_z_dim", 1)
    for exponent in range(7, 32):
        exponents = np.full(groups, exponent, np.uint8)
        got = through_srcb(u, bfp_image(exponents, datums, bits), datums.size)
        np.testing.assert_array_equal(got.reshape(-1, 16), src_cells(bfp.to_fp16_bits(exponents, datums, bits), FP16))


@pytest.mark.rule("I.5", "001.3.4c")
@pytest.mark.parametrize("exponent", [0, 5, 32, 255])
def test_an_a_family_exponent_outside_5_bits_is_refused_and_nothing_is_written(exponent: int) -> None:
    """The third row holds the datum at fault."""
    u = Unpacker()
    u.formats(BFP8A)
    u.set("THCON_SEC1_REG0_TileDescriptor_z_dim", 1)
    datums = np.full((16, 16), 0x40, np.uint8)
    exponents = np.full(16, 15, np.uint8)
    exponents[2] = exponent
    datums[2, 5] = 1
    u.l1(bfp_image(exponents, datums, 8), "<u1")
    u.count(256)
    with pytest.raises(UndefinedBehavior, match=rf"exponent {exponent}\b"):
        u.unpack()
    assert not u.src().any()


@pytest.mark.rule("I.5")
def test_zeros_of_the_a_family_do_not_look_at_the_exponent() -> None:
    """Negative zero is 0xFC00 whatever the shared exponent."""
    u = Unpacker()
    u.formats(BFP8A)
    u.set("THCON_SEC{}_REG0_TileDescriptor_z_dim", 1)
    u.l1(bfp_image(np.full(16, 255, np.uint8), np.tile(np.array([0, 0x80], np.uint8), (16, 8)), 8), "<u1")
    assert u.unpack()
    np.testing.assert_array_equal(u.src()[0, :2], src_cells(np.array([0, 0xFC00]), FP16))


@pytest.mark.rule("I.5", "001.3.2a")
def test_fp32_to_tf32_drops_13_bits_and_nothing_else() -> None:
    u = Unpacker()
    u.formats(FP32, TF32)
    samples = fp32_samples()
    expected = (samples >> 31) << 18 | ((samples >> 13) & 0x3FF) << 8 | (samples >> 23) & 0xFF
    np.testing.assert_array_equal(through_srcb(u, samples.view(np.uint8), len(samples)), expected)


@pytest.mark.rule("I.5", "001.3.2b")
@pytest.mark.parametrize("target", [BF16, FP16])
def test_fp32_is_truncated_to_16_bits(target: int) -> None:
    """I.5, 001.3.2b, c."""
    u = Unpacker()
    u.formats(FP32, target)
    samples = fp32_samples()
    truncate = floats.fp32_to_bf16_truncate if target == BF16 else floats.fp32_to_fp16_truncate
    got = through_srcb(u, samples.view(np.uint8), len(samples))
    np.testing.assert_array_equal(got, src_cells(truncate(samples), target))


@pytest.mark.rule("I.5")
@pytest.mark.parametrize(("source", "target"), [(FP32, FP32), (FP32, TF32), (TF32, TF32), (INT32, INT32)])
def test_32_bit_formats_keep_all_bits_on_the_way_to_dst(source: int, target: int) -> None:
    """High half permuted in row a, low half in row a + 8; the valid flag is that of row a (I.3)."""
    u = Unpacker(0)
    u.to_dst()
    u.formats(source, target)
    u.t["dst_valid"][:] = 0
    values = np.random.default_rng(1).integers(0, 1 << 32, 256, dtype=np.uint64).astype(np.uint32)
    u.l1(values, "<u4")
    u.count(256)
    assert u.unpack()
    for row in range(16):
        np.testing.assert_array_equal(u.dst32(row), values[16 * row : 16 * row + 16])
    assert list(np.flatnonzero(u.t["dst_valid"])) == [*range(8), *range(16, 24)]


@pytest.mark.rule("I.2", "001.3.2k", "001.3.5b")
@pytest.mark.parametrize(
    ("source", "target", "dtype", "cells"),
    [
        (BF16, BF16, "<u2", lambda v: dst_cells(v, BF16)),
        (FP16, FP16, "<u2", lambda v: dst_cells(v, FP16)),
        (INT16, INT16, "<u2", lambda v: v),
        (FP32, BF16, "<u4", lambda v: dst_cells(floats.fp32_to_bf16_truncate(v), BF16)),
        (FP32, FP16, "<u4", lambda v: dst_cells(floats.fp32_to_fp16_truncate(v), FP16)),
        (FP8, FP8, "<u1", lambda v: dst_cells(floats.e5m2_to_fp16(v), FP16)),
        (INT8, INT8, "<u1", _int8_dst_cells),
    ],
)
def test_8_and_16_bit_formats_take_the_16_bit_layout_of_dst(source: int, target: int, dtype: str, cells: Any) -> None:
    """Documents only."""
    u = Unpacker(0)
    u.to_dst()
    u.formats(source, target)
    values = np.random.default_rng(2).integers(0, 1 << (8 * int(dtype[2])), 256, dtype=np.uint64).astype(dtype)
    u.l1(values, dtype)
    u.count(256)
    assert u.unpack()
    np.testing.assert_array_equal(u.t["dst"][:16].reshape(-1), cells(values))


@pytest.mark.rule("I.5", "001.3.2k")
def test_bfp_to_dst_is_bf16_in_the_16_bit_layout() -> None:
    u = Unpacker(0)
    u.to_dst()
    u.formats(BFP8)
    u.set("THCON_SEC0_REG0_TileDescriptor_z_dim", 1)
    datums = np.arange(256, dtype=np.uint8).reshape(16, 16)
    exponents = np.arange(120, 136, dtype=np.uint8)
    u.l1(bfp_image(exponents, datums, 8), "<u1")
    u.count(256)
    assert u.unpack()
    np.testing.assert_array_equal(u.t["dst"][:16], dst_cells(bfp.to_bf16_bits(exponents, datums, 8), BF16))


@pytest.mark.parametrize(("kind", "bits"), [(BFP8, 8), (BFP4, 4), (BFP2, 2)])
@pytest.mark.parametrize("target", [BFP8, BFP4, BFP2])
def test_the_input_format_alone_gives_the_width_of_bfp_datums(kind: int, bits: int, target: int) -> None:
    u = Unpacker()
    u.formats(kind, target)
    u.set("THCON_SEC1_REG0_TileDescriptor_z_dim", 1)
    datums = np.resize(np.arange(1 << bits, dtype=np.uint8), (16, 16))
    exponents = np.arange(120, 136, dtype=np.uint8)
    got = through_srcb(u, bfp_image(exponents, datums, bits), datums.size)
    np.testing.assert_array_equal(got.reshape(16, 16), src_cells(bfp.to_bf16_bits(exponents, datums, bits), BF16))


@pytest.mark.rule("001.1.2d", "001.3.5d")
@pytest.mark.parametrize("unpacker", [0, 1])
def test_a_forced_exponent_replaces_the_exponent_section(unpacker: int) -> None:
    """8-bit integers declared BFP8 become BF16."""
    u = Unpacker(unpacker)
    u.formats(BFP8)
    u.set("THCON_SEC{}_REG2_Force_shared_exp", 1)
    u.set("UNP{}_FORCED_SHARED_EXP_shared_exp", 133)
    u.l1(BYTES, "<u1")
    u.count(256)
    assert u.unpack()
    exponents = np.full(16, 133, np.uint8)
    expected = src_cells(bfp.to_bf16_bits(exponents, BYTES.reshape(16, 16), 8), BF16)
    np.testing.assert_array_equal(u.src()[:16], expected)


@pytest.mark.rule("001.3.1a", "001.3.2l")
@pytest.mark.parametrize(
    ("source", "target"),
    [
        (12, 12),
        (13, 13),
        (FP32, INT32),
        (FP32, BFP8),
        (BFP8, BF16),
        (BFP8, BFP8A),
        (BF16, FP16),
        (FP8, FP16),
        (FP32, FP32),
        (INT32, INT32),
    ],
)
def test_pairs_of_formats_without_meaning_are_refused(source: int, target: int) -> None:
    """In must equal Out except for FP32; 32-bit data does not fit Src."""
    u = Unpacker()
    u.formats(source, target)
    with pytest.raises(
        UndefinedBehavior, match=r"THCON_SEC0_REG2_Out_data_format \(word 72 bits 3:0\)|format code 1[23]"
    ):
        u.unpack()


@pytest.mark.rule("001.3.2i")
def test_tf32_to_src_is_refused_unless_the_user_accepts_it_as_fp32() -> None:
    u = Unpacker()
    u.formats(TF32)
    with pytest.raises(MissingSpecification, match="TF32"):
        u.unpack()
    u = Unpacker(allow_open=True)
    u.formats(TF32)
    u.l1([0xC0490FDB], "<u4")
    u.count(1)
    assert u.unpack()
    assert int(u.src()[0, 0]) == 1 << 18 | (0x490FDB >> 13) << 8 | 0x80


@pytest.mark.rule("001.1.2f")
def test_a_bfp_row_may_start_in_the_middle_of_an_exponent_block() -> None:
    """Exponent index = (first + i) / 16."""
    u = Unpacker()
    u.formats(BFP4)
    u.set("THCON_SEC1_REG0_TileDescriptor_z_dim", 1)
    datums = np.random.default_rng(3).integers(0, 16, (16, 16)).astype(np.uint8)
    exponents = np.arange(100, 116, dtype=np.uint8)
    u.l1(bfp_image(exponents, datums, 4), "<u1", TILE)
    u.count(64, first=37)
    assert u.unpack()
    expected = src_cells(bfp.to_bf16_bits(exponents, datums, 4), BF16).reshape(-1)[37:101]
    np.testing.assert_array_equal(u.src().reshape(-1)[:64], expected)
