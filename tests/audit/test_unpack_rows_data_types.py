"""Audit rows 004: data types and conversions, across unpacker, matrix unit, vector unit, packer and host codecs."""

from __future__ import annotations

import numpy as np
import pytest

from bhemu.api.tile import Tile
from bhemu.errors import AssemblyError
from bhemu.formats import DataFormat, decode, encode
from bhemu.formats.integers import from_sign_magnitude, to_sign_magnitude
from bhemu.isa.registers import field
from tests.tensix.matrix_unit import Matrix
from tests.tensix.packer_bench import Bench
from tests.tensix.sfpu import Sfpu
from tests.tensix.unpacker import (
    BF16,
    BFP8,
    BFP8A,
    FP8,
    FP16,
    FP32,
    INT8,
    INT16,
    INT32,
    TF32,
    Unpacker,
)


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return Matrix()


def src_cell(source: int, target: int, raw: int, dtype: str) -> int:
    """SrcB cell of one datum."""
    u = Unpacker(1)
    u.formats(source, target)
    u.l1([raw], dtype)
    u.count(1)
    assert u.unpack()
    return int(u.src()[0, 0])


# --- 004.1: cells ---------------------------------------------------------------------------------------------------


@pytest.mark.rule("004.1a")
@pytest.mark.parametrize(
    ("bits", "cell"), [(1 << 31, 1 << 18), (0x3FF << 13, 0x3FF << 8), (0xFF << 23, 0xFF), (1 << 13, 1 << 8)]
)
def test_a_src_cell_has_sign_18_mantissa_17_to_8_exponent_7_to_0(bits: int, cell: int) -> None:
    assert src_cell(FP32, TF32, bits, "<u4") == cell


@pytest.mark.rule("004.1b")
def test_the_format_of_the_bank_decides_what_a_cell_means(matrix: Matrix) -> None:
    """Cell with mantissa field 0x100 and exponent field 16, as FP16, BF16 and INT8."""
    tile = Tile()
    tile.record.srca[0] = 0x100 << 8 | 16
    for code, value in ((FP16, 1.25 * 2), (BF16, 1.25 * 2.0 ** (16 - 127)), (INT8, 256)):
        tile.record.src_format[0, 0] = code
        assert set(tile.srca.bank(0).reshape(-1).tolist()) == {value}
    for code, dst in ((FP16, 0x100 << 5 | 16), (BF16, 0x20 << 8 | 16)):
        t = matrix.start(code, code).t
        t.srca[0] = 0x100 << 8 | 16
        assert matrix.do("MOVA2D")
        assert set(t.dst[0].tolist()) == {dst}


@pytest.mark.rule("004.1c")
@pytest.mark.parametrize(
    ("source", "target", "dtype", "raw", "cell"),
    [
        (FP32, TF32, "<u4", 0b1_10000001_1010010110_1111111111111, 0b1_1010010110_10000001),
        (BF16, BF16, "<u2", 0b1_10000001_1010011, 0b1_1010011000_10000001),
        (FP16, FP16, "<u2", 0b1_10001_1010010110, 0b1_1010010110_00010001),
        (INT8, INT8, "<u1", 0b1_1010011, 0b1_0001010011_00010000),
        (INT8, INT8, "<u1", 0b1_0000000, 0b1_0000000000_00000000),
        (INT8, INT8, "<u1", 0, 0),
    ],
)
def test_each_format_unpacks_to_its_cell(source: int, target: int, dtype: str, raw: int, cell: int) -> None:
    assert src_cell(source, target, raw, dtype) == cell


@pytest.mark.rule("004.1d")
@pytest.mark.parametrize("raw", [0xFF00, 0x00FF, 0x8001, 0x1234])
def test_int16_has_its_high_byte_in_18_to_11_and_its_low_byte_in_7_to_0(raw: int) -> None:
    assert src_cell(INT16, INT16, raw, "<u2") == raw >> 8 << 11 | raw & 0xFF


# --- 004.2 to 004.4: floating point -----------------------------------------------------------------------------------


@pytest.mark.rule("004.2a")
@pytest.mark.parametrize("top", [0x3F80, 0xC049, 0x0080, 0x7F7F, 0x7F80, 0xFFC1])
def test_bf16_is_the_top_half_of_fp32(top: int) -> None:
    assert src_cell(BF16, BF16, top, "<u2") == src_cell(FP32, BF16, top << 16, "<u4")
    fp32 = np.array([top << 16], np.uint32).view(np.float32)
    host = decode(top.to_bytes(2, "little"), "bf16", 1, tile_shape=None)
    np.testing.assert_array_equal(host.astype(np.float32), fp32)


@pytest.mark.rule("004.2b")
def test_there_is_no_nearest_even_switch() -> None:
    """Unpacking truncates, packing rounds half away; 1 + 2^-8 is a tie that nearest-even takes down."""
    with pytest.raises(AssemblyError):
        field("EnBFloatRTNE")
    assert src_cell(FP32, BF16, 0x3F80FFFF, "<u4") == 127
    bench = Bench(BF16, BF16, read_32b=1)
    bench.word_row(0, [0x3F808000, 0xBF808000, 0x3F807FFF, 0x3F818000] * 4)
    bench.pacr()
    assert bench.l1("<u2", 4) == [0x3F81, 0xBF81, 0x3F80, 0x3F82]


@pytest.mark.rule("004.2c")
def test_unpacking_and_packing_flush_denormals_and_packing_turns_nan_into_infinity() -> None:
    """Unpacking flushes to signed zero, packing to +0 and turns NaN into Inf."""
    assert src_cell(FP32, BF16, 0x807FFFFF, "<u4") == 1 << 18
    assert src_cell(FP32, BF16, 0x007FFFFF, "<u4") == 0
    bench = Bench(BF16, BF16, read_32b=1)
    bench.word_row(0, [0x80400000, 0x00400000, 0x7F800001, 0xFFC00000] * 4)
    bench.pacr()
    assert bench.l1("<u2", 4) == [0, 0, 0x7F80, 0xFF80]


@pytest.mark.rule("004.3")
@pytest.mark.parametrize("bits", [0x00002000, 0x80001FFF, 0x3F801FFF, 0x7F801FFF, 0x7FC00000, 0xFFFFFFFF])
def test_tf32_clears_13_bits_and_flushes_nothing(bits: int) -> None:
    """A NaN with its payload in the low bits alone becomes Inf."""
    assert src_cell(FP32, TF32, bits, "<u4") == bits >> 31 << 18 | (bits >> 13 & 0x3FF) << 8 | bits >> 23 & 0xFF


@pytest.mark.rule("004.4a")
@pytest.mark.parametrize("exponent", [112, 113, 127, 142, 143])
def test_exponents_move_by_112_from_fp32_to_fp16(exponent: int) -> None:
    """004.4a; 004.4c: 31 is an ordinary exponent."""
    assert src_cell(FP32, FP16, exponent << 23 | 0x155 << 13, "<u4") == 0x155 << 8 | exponent - 112


@pytest.mark.rule("004.4b", "004.4c", "004.4e")
@pytest.mark.parametrize("sign", [0, 1])
def test_fp16_keeps_denormal_mantissas_and_saturates_above_exponent_31(sign: int) -> None:
    """004.4b: E < 0 signed zero, E = 0 keeps its mantissa; 004.4c: E > 31 all ones; 004.4e: so does NaN."""
    for exponent, mantissa, cell in (
        (111, 0x7FFFFF, 0),
        (1, 1, 0),
        (112, 0x7FFFFF, 0x3FF << 8),
        (112, 0, 0),
        (143, 0x7FFFFF, 0x3FF << 8 | 31),
        (144, 0, 0x3FF << 8 | 31),
        (255, 0, 0x3FF << 8 | 31),
        (255, 0x400000, 0x3FF << 8 | 31),
    ):
        assert src_cell(FP32, FP16, sign << 31 | exponent << 23 | mantissa, "<u4") == sign << 18 | cell


@pytest.mark.rule("004.4c")
def test_all_ones_is_131008_in_the_matrix_units_reading() -> None:
    """1.999 * 2^16."""
    raw = np.array([0x7FFF, 0x7C00, 0xFC00], "<u2")
    values = decode(raw.tobytes(), "fp16", 3, tile_shape=None, interpretation="tensix")
    assert values.tolist() == [(2 - 2**-10) * 2**16, 2.0**16, -(2.0**16)]


@pytest.mark.rule("004.4d")
def test_fp16_to_fp32_in_the_packer_normalises_nothing() -> None:
    """Exponent 0 becomes mantissa << 13 under exponent 0; exponent 31 becomes 143."""
    bench = Bench(FP16, FP32)
    bench.fp16_row(0, [0x7C00, 0xFFFF, 0x3C00, 0x0400] * 4)
    bench.pacr()
    assert bench.l1("<u4", 4) == [143 << 23, 1 << 31 | 143 << 23 | 0x3FF << 13, 127 << 23, 113 << 23]
    bench = Bench(FP16, FP32, read_32b=1)
    bench.set(PCK_DEST_RD_CTRL_Round_10b_mant=1)
    bench.word_row(0, [112 << 23 | 0x155 << 13, 113 << 23] * 8)
    bench.pacr()
    assert bench.l1("<u4", 2) == [0x155 << 13, 113 << 23]


# --- 004.5: integers ------------------------------------------------------------------------------------------------


@pytest.mark.rule("004.5a")
@pytest.mark.parametrize(
    ("value", "raw"), [(5, 5), (-5, 0x80000005), (0, 0), (-(2**31 - 1), 0xFFFFFFFF), (2**31 - 1, 0x7FFFFFFF)]
)
def test_integers_are_sign_and_magnitude_and_minus_zero_is_zero(value: int, raw: int) -> None:
    assert int(to_sign_magnitude(np.array([value], np.int64), 32)[0]) == raw
    assert int(from_sign_magnitude(np.array([raw], np.uint32), np.dtype(np.int32))[0]) == value
    assert int(from_sign_magnitude(np.array([0x80000000], np.uint32), np.dtype(np.int32))[0]) == 0


@pytest.mark.rule("004.5b")
def test_the_vector_units_integer_add_is_twos_complement() -> None:
    """-5 + 3; the format conversion alone is sign-magnitude."""
    sfpu = Sfpu()
    sfpu.set(1, 0xFFFFFFFB)
    sfpu.set(2, 3)
    sfpu.do("SFPIADD", lreg_c=1, lreg_dest=2, instr_mod1=4)
    assert sfpu.get(2)[0] == 0xFFFFFFFE
    sfpu.do("SFPCAST", lreg_src_c=2, lreg_dest=3, instr_mod1=3)
    assert sfpu.get(3)[0] == 0x80000002


@pytest.mark.rule("004.5c")
def test_cast_mode_2_is_an_absolute_value_and_mode_3_converts_both_ways() -> None:
    sfpu = Sfpu()
    sfpu.set(1, 7, 0xFFFFFFF9, 0x80000000, 0x80000007)
    sfpu.do("SFPCAST", lreg_src_c=1, lreg_dest=2, instr_mod1=2)
    assert sfpu.get(2)[:4] == [7, 7, 0x80000000, 2**32 - 0x80000007]
    sfpu.do("SFPCAST", lreg_src_c=1, lreg_dest=2, instr_mod1=3)
    assert sfpu.get(2)[:4] == [7, 0x80000007, 0x80000000, 0xFFFFFFF9]
    sfpu.do("SFPCAST", lreg_src_c=2, lreg_dest=3, instr_mod1=3)
    assert sfpu.get(3)[:4] == sfpu.get(1)[:4]


# --- 004.6 to 004.8: formats and tiles --------------------------------------------------------------------------------

CODES = ["FP32", "FP16", "BFP8A", "BFP4A", "TF32", "BF16", "BFP8", "BFP4", "INT32", "INT16", "FP8_E5M2", "BFP2A"]


@pytest.mark.rule("004.6a")
@pytest.mark.parametrize(("code", "name"), [*enumerate(CODES), (14, "INT8"), (15, "BFP2")])
def test_each_format_has_its_code(code: int, name: str) -> None:
    assert DataFormat.from_code(code).name == name
    assert DataFormat[name].code == code


@pytest.mark.rule("004.6b")
def test_code_9_carries_16_bits_untouched() -> None:
    """L1 to Dst to L1, and through a Src cell; the host may read them signed or unsigned."""
    raw = np.array([0, 1, 0x7FFF, 0x8000, 0xFFFF, 0x1234, 0x8001, 0xABCD] * 2, np.uint16)
    u = Unpacker(0)
    u.to_dst()
    u.l1(raw)
    assert u.unpack()
    bench = Bench(INT16, INT16)
    bench.tile["dst"][0] = u.t["dst"][0]
    bench.pacr()
    assert bench.l1("<u2", 16) == raw.tolist()
    u = Unpacker(1)
    u.l1(raw)
    assert u.unpack()
    np.testing.assert_array_equal(u.values()[0], raw)
    assert DataFormat.UINT16.code == DataFormat.INT16.code == INT16


@pytest.mark.rule("004.6c")
def test_the_families_differ_in_the_exponents_width_and_bias_only() -> None:
    """The same datums with exponents 112 apart are the same numbers; 16 consecutive datums share one."""
    datums = np.arange(1, 33, dtype=np.uint8)
    numbers = []
    for kind, bias in ((BFP8A, 15), (BFP8, 127)):
        u = Unpacker(1)
        u.formats(kind)
        u.set("THCON_SEC1_REG0_TileDescriptor_z_dim", 1)
        u.l1([bias, bias + 4] + [0] * 14, "<u1")
        u.l1(datums, "<u1", address=0x4010)
        u.count(32)
        assert u.unpack()
        cells = u.src()[:2].reshape(-1).astype(np.int64)
        numbers.append((1 + (cells >> 8) / 1024) * 2.0 ** ((cells & 0xFF) - bias))
    np.testing.assert_array_equal(numbers[0], numbers[1])
    np.testing.assert_array_equal(numbers[0], datums / 64 * np.repeat([1, 16], 16))


@pytest.mark.rule("004.6d")
@pytest.mark.parametrize(("unpacker", "word"), [(0, 71), (1, 119)])
def test_each_unpacker_has_a_mode_bit_for_e4m3(unpacker: int, word: int) -> None:
    """Bit 22; 0x38 is 1.0 as E4M3 (FP16 exponent 15) and 0.5 as E5M2 (exponent 14)."""
    for bit, exponent in ((0, 14), (1, 15)):
        u = Unpacker(unpacker)
        u.formats(FP8)
        u.t["config"][0, word] = bit << 22
        u.l1([0x38] * 16, "<u1")
        assert u.unpack()
        assert set(u.src()[0].tolist()) == {exponent}


@pytest.mark.rule("004.7a", "004.8a", "004.8b")
@pytest.mark.parametrize(
    ("name", "size"),
    [
        *[(name, 4096) for name in ("FP32", "TF32", "INT32")],
        *[(name, 2048) for name in ("FP16", "BF16", "INT16")],
        *[(name, 1024) for name in ("INT8", "FP8_E5M2")],
        *[("BFP8", 1088), ("BFP4", 576), ("BFP2", 320), ("BFP8A", 1088), ("BFP4A", 576), ("BFP2A", 320)],
    ],
)
def test_a_tile_takes_the_bytes_of_its_format_without_a_header(name: str, size: int) -> None:
    """Without a header."""
    assert DataFormat[name].tile_bytes() == size
    kind = np.int8 if name.startswith("INT") else np.float32
    assert len(encode(np.ones((32, 32), kind), name)) == size


@pytest.mark.rule("004.7b")
@pytest.mark.parametrize(("name", "one"), [("BFP8", 0x40), ("BFP4", 0x44), ("BFP2", 0x55)])
def test_exponents_come_before_the_datums(name: str, one: int) -> None:
    content = encode(np.ones((32, 32), np.float32), name)
    assert set(content[:64].tolist()) == {127}
    assert set(content[64:].tolist()) == {one}


@pytest.mark.rule("004.7c")
def test_each_16_consecutive_datums_share_their_largest_exponent() -> None:
    """One row of a face, in the packer and in the host codec, for both families."""
    rows = np.ones((16, 16), np.float32)
    rows[np.arange(16), np.arange(16)] = 2.0 ** np.arange(16)
    for kind, bias in ((BFP8, 127), (BFP8A, 15)):
        content = encode(rows, DataFormat.from_code(kind), tile_shape=(16, 16))
        assert content[:16].tolist() == [bias + n for n in range(16)]
    bench = Bench(BF16, BFP8)
    bench.packer(Exp_section_size=1)
    bench.modifier(0, YsrcIncr=1)
    for row in range(16):
        bench.bf16_row(row, rows[row].view(np.uint32) >> 16)
        bench.pacr(Last=row == 15)
    assert bench.l1("u1", 16) == [127 + n for n in range(16)]


@pytest.mark.rule("004.7d")
@pytest.mark.parametrize(("name", "unit"), [("BFP8", 64), ("BFP4", 4), ("BFP2", 1)])
def test_the_point_lies_behind_the_first_magnitude_bit(name: str, unit: int) -> None:
    """Magnitude / 2^6, 2^2 or 1, times 2^(E - 127); the sign alone is minus infinity."""
    bits = DataFormat[name].bits
    datums = [1, 2 * unit - 1, 1 << bits - 1 | 1, 1 << bits - 1] + [0] * 12
    packed = sum(d << bits * n for n, d in enumerate(datums)).to_bytes(2 * bits, "little")
    values = decode(bytes([130]) + bytes(15) + packed, name, 16, tile_shape=None).astype(np.float64)
    assert values[:5].tolist() == [8 / unit, 8 * (2 * unit - 1) / unit, -8 / unit, -np.inf, 0]


# --- 004.9: Dst -----------------------------------------------------------------------------------------------------


@pytest.mark.rule("004.9b")
def test_each_access_chooses_its_own_view_of_dst() -> None:
    """Fp32_enabled changes neither what the unpacker writes nor what the packer reads."""
    for enabled in (0, 1):
        u = Unpacker(0)
        u.to_dst()
        u.set("ALU_ACC_CTRL_Fp32_enabled", enabled)
        u.formats(INT32)
        u.l1([0x0001_0002] * 16, "<u4")
        assert u.unpack()
        assert list(np.flatnonzero(u.t["dst"].any(axis=1))) == [0, 8]
        u.formats(BF16)
        u.l1([0x3F80] * 16)
        u.set("THCON_SEC0_REG5_Dest_cntx0_address", 16 * (4 + 20))
        assert u.unpack()
        assert set(u.t["dst"][20]) == {0x7F}
        for read_32b, kind, dtype, packed in ((0, BF16, "<u2", 0x3F80), (1, FP32, "<u4", 0x3F80_4000)):
            bench = Bench(kind, kind, read_32b=read_32b)
            bench.set(ALU_ACC_CTRL_Fp32_enabled=enabled)
            bench.word_row(0, [0x3F80_4000] * 16)
            bench.pacr()
            assert bench.l1(dtype, 1) == [packed]


@pytest.mark.rule("004.9e")
@pytest.mark.parametrize(
    ("kind", "rows"), [(BF16, 1), (FP16, 1), (INT16, 1), (INT8, 1), (FP8, 1), (FP32, 2), (TF32, 2), (INT32, 2)]
)
def test_8_and_16_bit_formats_including_int8_use_the_16_bit_view(kind: int, rows: int) -> None:
    u = Unpacker(0)
    u.to_dst()
    u.formats(kind)
    u.l1([0x55] * 64, "<u1")
    u.t["dst_valid"][:] = 0
    assert u.unpack()
    assert list(np.flatnonzero(u.t["dst"].any(axis=1))) == [0, 8][:rows]
    assert list(np.flatnonzero(u.t["dst_valid"])) == [0]


@pytest.mark.rule("004.9f")
def test_remapping_shows_in_strided_packs_of_logical_rows() -> None:
    """Word 220 bits 1 and 0; the k-th interface then reads row 16 k."""
    bench = Bench()
    for row in range(64):
        bench.bf16_row(row, [0x4000 + row] * 16)
    bench.tile["config"][0, 220] = 0b11
    bench.tile["config_dirty"] = 0xFFFFFFFF
    bench.pacr(DstAccessMode=1, ReadIntfSel=0)
    assert bench.l1("<u2", 64)[::16] == [0x4000, 0x4010, 0x4020, 0x4030]
    bench.pacr(DstAccessMode=0, ReadIntfSel=0)
    assert bench.l1("<u2", 64)[::16] == [0x4000, 0x4001, 0x4002, 0x4003]


@pytest.mark.rule("004.9g")
def test_an_invalid_row_reads_as_zero_until_it_is_written() -> None:
    bench = Bench()
    bench.bf16_row(0, [0x3F80] * 16)
    bench.tile["dst_valid"][0] = 0
    bench.pacr()
    assert bench.l1("<u2", 16) == [0] * 16
    u = Unpacker(0)
    u.to_dst()
    u.formats(BF16)
    u.t["dst_valid"][:] = 0
    u.l1([0x4000] * 16)
    assert u.unpack()
    bench.tile["dst"][:] = u.t["dst"]
    bench.tile["dst_valid"][:] = u.t["dst_valid"]
    bench.pacr()
    assert bench.l1("<u2", 16) == [0x4000] * 16
