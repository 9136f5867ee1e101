"""Packer: conversions that the vectors leave out, and what is refused.

What the reference executes is covered by the vectors.
"""

from __future__ import annotations

import pytest

from bhemu.errors import MissingSpecification, UndefinedBehavior
from tests.tensix.packer_bench import (
    BF16,
    BFP2A,
    BFP4A,
    BFP8A,
    FP8,
    FP16,
    FP32,
    INT8,
    INT16,
    TF32,
    Bench,
)


@pytest.mark.rule("002.5.2e")
@pytest.mark.parametrize(
    ("amount", "unsigned", "word", "byte"),
    [
        (0, 0, 200, 127),
        (1, 0, 0x80000003, 0x82),
        (4, 0, 0x18, 2),
        (4, 0, 0x17, 1),
        (31, 0, 0x7FFFFFFF, 1),
        (2, 1, 1023, 255),
        (2, 1, 0x80000008, 0),
    ],
)
def test_int_descale_shifts_rounds_and_saturates(amount: int, unsigned: int, word: int, byte: int) -> None:
    bench = Bench(INT8, INT8, read_32b=1)
    bench.set(
        INT_DESCALE_Enable=1, INT_DESCALE_VALUES_SEC0_Value=amount | 0xE0, PCK_DEST_RD_CTRL_Read_unsigned=unsigned
    )
    bench.word_row(0, [word] * 16)
    bench.pacr()
    assert bench.l1("u1", 16) == [byte] * 16


@pytest.mark.rule("002.5.2e")
def test_int_descale_by_z_is_open() -> None:
    bench = Bench(INT8, INT8, read_32b=1)
    bench.set(INT_DESCALE_Enable=1, INT_DESCALE_Mode=1, INT_DESCALE_VALUES_SEC0_Value=0x0201)
    bench.set(PACK_COUNTERS_SEC0_pack_reads_per_xy_plane=1)
    with pytest.raises(MissingSpecification, match="which Z"):
        bench.pacr()
    bench.tile.allow_open = 1
    bench.word_row(0, [64] * 16)
    bench.word_row(1, [64] * 16)
    bench.pacr(ReadIntfSel=3)
    assert bench.l1("u1", 32)[::16] == [32, 16]


@pytest.mark.rule("002.5.2f")
@pytest.mark.parametrize("unsigned", [0, 1])
def test_read_raw_takes_the_low_bits_of_integers(unsigned: int) -> None:
    bench = Bench(INT8, INT8, read_32b=1)
    bench.set(PCK_DEST_RD_CTRL_Read_int8=1, PCK_DEST_RD_CTRL_Read_unsigned=unsigned)
    bench.word_row(0, [0x800001FE] * 16)
    bench.pacr()
    assert bench.l1("u1", 1) == [0xFE]


@pytest.mark.rule("002.5.2b")
def test_tf32_is_fp32_rounded_half_away_to_ten_bits() -> None:
    words = [0x3F801000, 0x3F800FFF, 0xBF801000, 0x7FFFFFFF, 0xFF800001, 0x807FEFFF, 0x80000000, 0x007FFFFF] * 2
    want = [
        0x3F802000,
        0x3F800000,
        0xBF802000,
        0x7F800000,
        0xFF800000,
        0,
        0,
        0x00800000,
    ]  # the last: flushed only after
    for in_format, out_format, round_10b in ((TF32, TF32, 0), (TF32, FP32, 0), (FP32, FP32, 1)):
        bench = Bench(in_format, out_format, read_32b=1)
        bench.set(PCK_DEST_RD_CTRL_Round_10b_mant=round_10b)
        bench.word_row(0, words)
        bench.pacr()
        assert bench.l1("<u4", 8) == want


@pytest.mark.rule("P6")
def test_bf16_may_be_rounded_to_tf32_on_the_way_to_fp16() -> None:
    bench = Bench(BF16, FP16, read_32b=1)
    bench.packer(In_data_format=TF32)
    bench.set(PCK_DEST_RD_CTRL_Round_10b_mant=1)
    bench.word_row(0, [0x3F801000] * 16)
    bench.pacr()
    assert bench.l1("<u2", 1) == [0x3C01]


@pytest.mark.rule("P6")
def test_a_format_mismatch_names_both_codes() -> None:
    bench = Bench()
    bench.packer(In_data_format=FP16)
    with pytest.raises(UndefinedBehavior, match=r"format 5 .* In_data_format 1"):
        bench.pacr()


@pytest.mark.rule("P6")
def test_the_override_replaces_the_intermediate_format() -> None:
    bench = Bench(FP16, FP16)
    bench.set(
        ALU_FORMAT_SPEC_REG2_Dstacc=BF16, ALU_FORMAT_SPEC_REG_Dstacc_override=1, ALU_FORMAT_SPEC_REG_Dstacc_val=FP16
    )
    bench.fp16_row(0, [0x3C00] * 16)
    bench.pacr()
    assert bench.l1("<u2", 1) == [0x3C00]


@pytest.mark.parametrize(
    ("in_format", "out_format", "read_32b"),
    [(BF16, INT16, 0), (INT16, BF16, 0), (FP32, TF32, 1), (FP16, FP16, 1), (FP8, FP8, 0), (BFP2A, BF16, 0), (12, 5, 0)],
)
def test_conversions_that_do_not_exist_are_refused(in_format: int, out_format: int, read_32b: int) -> None:
    with pytest.raises(UndefinedBehavior):
        Bench(in_format, out_format, read_32b=read_32b).pacr()


@pytest.mark.rule("002.6.2h")
def test_a_family_groups_share_a_five_bit_exponent() -> None:
    bench = Bench(FP16, BFP8A)
    bench.packer(Exp_section_size=1)
    bench.fp16_row(0, [0x3C00, 0x3BFF, 0xB800, 0x0200] * 4)
    bench.pacr()
    assert bench.l1("u1", 1) == [15]
    assert bench.l1("u1", 4, 16) == [0x40, 0x40, 0xA0, 0]  # 0.9995 is cut to 7 bits, then rounded up
    narrow = Bench(FP16, BFP4A)
    narrow.packer(Exp_section_size=1)
    narrow.fp16_row(0, [0x3C00, 0x3BFF, 0xB800, 0x0200] * 4)
    narrow.pacr()
    assert narrow.l1("u1", 2, 16) == [0x44, 0x0A]


@pytest.mark.rule("002.6.4d")
@pytest.mark.parametrize(
    ("value", "byte"), [(0x3C00, 0x3C), (0xBDFF, 0xBD), (0x7FFF, 0x7F), (0x83FF, 0x80), (0x0400, 4)]
)
def test_e5m2_output_truncates(value: int, byte: int) -> None:
    bench = Bench(FP16, FP8)
    bench.set(PCK_DEST_RD_CTRL_Read_int8=1)
    bench.fp16_row(0, [value] * 16)
    bench.pacr()
    assert bench.l1("u1", 16) == [byte] * 16


@pytest.mark.rule("000.1.1h")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("Dis_shared_exp_assembler", 1),
        ("Enable_out_fifo", 1),
        ("pack_start_intf_pos", 2),
        ("pack_dis_y_pos_start_offset", 1),
    ],
)
def test_controls_without_a_rule_are_refused_by_name(field: str, value: int) -> None:
    bench = Bench()
    bench.packer(**{field: value})
    bench.tile.allow_open = 1
    with pytest.raises(MissingSpecification, match=field):
        bench.pacr()


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"THCON_SEC0_REG1_Downsample_rate": 3}, "Downsample_rate"),
        ({"THCON_SEC0_REG1_Auto_set_last_pacr_intf_sel": 1}, "Auto_set_last_pacr_intf_sel"),
        ({"PACK_COUNTERS_SEC0_pack_xys_per_tile": 3}, "pack_xys_per_tile"),
        ({"ALU_ROUNDING_MODE_Packer_srnd_en": 1}, "stochastic"),
        ({"THCON_SEC0_REG1_Source_interface_selection": 1}, "Source_interface_selection"),
    ],
)
def test_open_controls_work_only_when_asked_for(fields: dict[str, int], text: str) -> None:
    bench = Bench()
    bench.set(**fields)
    with pytest.raises(MissingSpecification, match=text):
        bench.pacr()
    bench.tile.allow_open = 1
    bench.pacr()
    assert bench.tile.open_used[0] != 0


@pytest.mark.rule("000.1.4")
def test_a_packer_count_that_sets_last_by_itself_is_refused() -> None:
    bench = Bench()
    bench.set(PACK_COUNTERS_SEC0_pack_per_xy_plane=4)
    with pytest.raises(MissingSpecification, match="pack_per_xy_plane"):
        bench.pacr()
