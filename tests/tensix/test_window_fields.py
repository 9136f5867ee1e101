"""Words and configuration fields whose effect a core's store or load shows (rows 003.7b, 000.3, 000.5)."""

from __future__ import annotations

import pytest

from bhemu.api.tile import Tile
from bhemu.errors import BhemuError
from bhemu.isa.instructions import encode
from bhemu.isa.registers import decode_word
from bhemu.machine.agents import B
from bhemu.tensix.coprocessor import Coprocessor
from tests.tensix.packer_bench import BF16, FP8, FP16, L1_BASE, Bench
from tests.tensix.unpacker import Unpacker

pytestmark = pytest.mark.plain

GPRS = 0xFFE00000
BANK_0 = 0xFFEF0000
THREADS = 0xFFEF0A80
BANKED = 12  # 32 writable bits, below 180


@pytest.fixture
def tile() -> Tile:
    return Tile()


@pytest.mark.rule("003.7b")
def test_encodings_of_the_configuration_instructions(tile: Tile) -> None:
    """Words spelt out from the quick reference; what they do is read through the window."""
    tile.store_word(GPRS + 4 * 33, 0x89ABCDEF, "T1")
    tile.execute(1, 0xB0 << 24 | 33 << 16 | BANKED)  # WRCFG: GPR [21:16], width [15], word [10:0]
    assert tile.load_word(BANK_0 + 4 * BANKED) == 0x89ABCDEF
    tile.execute(1, 0xB1 << 24 | 34 << 16 | BANKED)  # RDCFG: GPR [21:16], word [10:0]
    assert tile.load_word(GPRS + 4 * 34, "T1") == 0x89ABCDEF
    tile.execute(1, 0xB2 << 24 | 7 << 16 | 0x0104)  # SETC16: entry [23:16], value [15:0]
    assert tile.load_word(THREADS + (68 + 7) * 4) == 0x0104
    for byte, expected in enumerate((0x89ABCD3F, 0x89AB3D3F, 0x893B3D3F, 0x393B3D3F)):
        # RMWCIB: byte in the opcode, mask [23:16], data [15:8], word [7:0]
        tile.execute(1, (0xB3 + byte) << 24 | 0xF0 << 16 | 0x36 << 8 | BANKED)
        assert tile.load_word(BANK_0 + 4 * BANKED) == expected
    tile.record.gpr[1, 36:40] = [1, 2, 3, 4]
    tile.execute(1, 0xB0 << 24 | 36 << 16 | 1 << 15 | BANKED)
    assert [tile.load_word(BANK_0 + 4 * BANKED + 4 * i) for i in range(4)] == [1, 2, 3, 4]


def fields_of(word: int) -> dict[str, tuple[int, int]]:
    """Name: (lowest bit, width) of a Config word's fields."""
    return {f.name: (f.lsb, f.width) for f, _ in decode_word("config", word, 0)}


@pytest.mark.rule("000.3a")
def test_word_0_has_three_formats_that_count_with_their_override_only() -> None:
    prefix = "ALU_FORMAT_SPEC_REG_"
    assert fields_of(0) == {
        f"{prefix}{name}": place
        for name, place in {
            "SrcA_val": (0, 4),
            "SrcA_override": (4, 1),
            "SrcB_val": (5, 4),
            "SrcB_override": (9, 1),
            "Dstacc_val": (10, 4),
            "Dstacc_override": (14, 1),
        }.items()
    }


@pytest.mark.rule("000.3a")
@pytest.mark.parametrize(
    ("configured", "override", "instead", "counts"),
    [(BF16, 0, FP16, BF16), (BF16, 1, FP16, FP16), (FP16, 0, BF16, FP16), (FP16, 1, BF16, BF16)],
)
def test_the_dstacc_format_of_word_0_counts_with_its_override_only(
    configured: int, override: int, instead: int, counts: int
) -> None:
    """The packer refuses an input format (word 70) other than the one that counts."""
    for in_format in (BF16, FP16):
        bench = Bench()
        bench.set(ALU_FORMAT_SPEC_REG2_Dstacc=configured)
        bench.context(0, In_data_format=in_format, Out_data_format=in_format)
        bench.bf16_row(0, [0x3F80] * 16) if in_format == BF16 else bench.fp16_row(0, [0x3C00] * 16)
        Coprocessor(bench._tiles).store(B, BANK_0, instead << 10 | override << 14)
        if in_format == counts:
            bench.pacr()
            assert bench.l1("<u2", 16) == [0x3F80 if in_format == BF16 else 0x3C00] * 16
        else:
            with pytest.raises(BhemuError, match="format"):
                bench.pacr()


def eltwise_sum(word_0: int, word_1: int, implied: int, not_implied: int) -> int:
    """The FP32 result of ELWADD of a SrcA cell with more mantissa than BF16 has, and zero."""
    tile = Tile()
    t = tile.record
    t.src_owner[...] = 1
    t.src_format[...] = implied
    t.srca[...] = 0x7 << 8 | 0x7F  # 1 and the three lowest bits of TF32's mantissa
    tile.store_word(BANK_0, word_0, "T1")
    tile.store_word(BANK_0 + 4, word_1 | 1 << 29, "T1")
    tile.execute(1, [encode("SETC16", 2, not_implied), encode("SETC16", 3, not_implied)])
    tile.execute(1, encode("ELWADD"))
    cell, low = int(t.dst[0, 0]), int(t.dst[8, 0])
    return ((cell & 0x8000) | (cell & 0xFF) << 7 | cell >> 8 & 0x7F) << 16 | low


TF32_FORMAT = 4
TRIMMED, WHOLE = 0x3F800000, 0x3F80E000


@pytest.mark.rule("000.3a")
def test_the_srca_format_of_word_0_counts_with_its_override_only() -> None:
    configured = BF16 << 17 | BF16 << 21
    for override, expected in ((0, TRIMMED), (1, WHOLE)):
        assert hex(eltwise_sum(TF32_FORMAT | override << 4, configured, BF16, 1)) == hex(expected)


@pytest.mark.rule("000.3b")
def test_srca_takes_the_format_of_its_bank_unless_threadconfig_disables_it() -> None:
    tf32 = TF32_FORMAT << 17 | TF32_FORMAT << 21
    assert hex(eltwise_sum(0, tf32, BF16, 0)) == hex(TRIMMED)
    assert hex(eltwise_sum(0, tf32, BF16, 1)) == hex(WHOLE)
    assert hex(eltwise_sum(0, 0, TF32_FORMAT, 0)) == hex(WHOLE)


@pytest.mark.rule("000.3b")
@pytest.mark.parametrize("unpacker", [0, 1])
def test_both_src_files_record_the_format_of_each_bank(unpacker: int) -> None:
    u = Unpacker(unpacker)
    for kind in (FP16, BF16):
        u.formats(kind)
        assert u.unpack(SetDatValid=1)
    assert u.t["src_format"][unpacker].tolist() == [FP16, BF16]


@pytest.mark.rule("000.3c")
def test_word_1_has_each_field_at_its_bits(tile: Tile) -> None:
    expected = {
        "ALU_ROUNDING_MODE_Fpu_srnd_en": (0, 1),
        "ALU_ROUNDING_MODE_Gasket_srnd_en": (1, 1),
        "ALU_ROUNDING_MODE_Packer_srnd_en": (2, 1),
        "ALU_ROUNDING_MODE_Padding": (3, 10),
        "ALU_ROUNDING_MODE_GS_LF": (13, 1),
        "ALU_ROUNDING_MODE_Bfp8_HF": (14, 1),
        "ALU_FORMAT_SPEC_REG0_SrcAUnsigned": (15, 1),
        "ALU_FORMAT_SPEC_REG0_SrcBUnsigned": (16, 1),
        "ALU_FORMAT_SPEC_REG0_SrcA": (17, 4),
        "ALU_FORMAT_SPEC_REG1_SrcB": (21, 4),
        "ALU_FORMAT_SPEC_REG2_Dstacc": (25, 4),
        "ALU_ACC_CTRL_Fp32_enabled": (29, 1),
        "ALU_ACC_CTRL_SFPU_Fp32_enabled": (30, 1),
        "ALU_ACC_CTRL_INT8_math_enabled": (31, 1),
    }
    assert fields_of(1) == expected
    for name, (lsb, width) in expected.items():
        tile.store_word(BANK_0 + 4, ((1 << width) - 1) << lsb)
        assert {other for other in expected if tile.config[other]} == {name}


@pytest.mark.rule("000.5a")
def test_word_71_has_blackholes_layout(tile: Tile) -> None:
    tile.store_word(BANK_0 + 4 * 71, 0xA5 << 24 | 1 << 20 | 5 << 16 | 0x1234)
    group = "THCON_SEC0_REG1_"
    values = {f.name.removeprefix(group): value for f, value in decode_word("config", 71, tile.load_word(BANK_0 + 284))}
    assert values == {
        "Downsample_mask": 0x1234,
        "Downsample_rate": 5,
        "Pack_L1_Acc": 0,
        "Exp_threshold_en": 1,
        "Unp_LF8_4b_exp": 0,
        "Pac_LF8_4b_exp": 0,
        "Exp_threshold": 0xA5,
    }


@pytest.mark.rule("000.5a")
@pytest.mark.parametrize(("word_71", "expected"), [(0, 0x4000), (1 << 19, 0x4040)])
def test_bit_19_of_word_71_accumulates_in_l1(word_71: int, expected: int) -> None:
    bench = Bench()
    bench.bf16_row(0, [0x4000] * 16)
    bench.tile["l1"][L1_BASE : L1_BASE + 32].view("<u2")[...] = 0x3F80
    Coprocessor(bench._tiles).store(B, BANK_0 + 4 * 71, word_71)
    bench.pacr()
    assert [hex(v) for v in bench.l1("<u2", 16)] == [hex(expected)] * 16


@pytest.mark.rule("000.5d")
@pytest.mark.parametrize(("unpacker", "word"), [(0, 71), (1, 119)])
@pytest.mark.parametrize(("bit", "exponent"), [(None, 14), (22, 15), (23, 14)])
def test_bit_22_makes_an_unpacker_read_e4m3(unpacker: int, word: int, bit: int | None, exponent: int) -> None:
    """0x38 is 1.0 as E4M3 and 0.5 as E5M2; each unpacker has a bit of its own."""
    u = Unpacker(unpacker)
    u.formats(FP8)
    u.coprocessor.store(B, BANK_0 + 4 * word, 0 if bit is None else 1 << bit)
    u.coprocessor.store(B, BANK_0 + 4 * (71 + 119 - word), 0)
    u.l1([0x38] * 16, "<u1")
    assert u.unpack()
    assert set(u.src()[0].tolist()) == {exponent}


@pytest.mark.rule("000.5d")
@pytest.mark.parametrize(("bit", "byte"), [(None, 0x3C), (23, 0x38), (22, 0x3C)])
def test_bit_23_of_word_71_makes_the_packer_write_e4m3(bit: int | None, byte: int) -> None:
    bench = Bench(BF16, FP8)
    bench.bf16_row(0, [0x3F80] * 16)
    Coprocessor(bench._tiles).store(B, BANK_0 + 4 * 71, 0 if bit is None else 1 << bit)
    bench.pacr()
    assert bench.l1("u1", 16) == [byte] * 16
