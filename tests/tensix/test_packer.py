"""The packer's documented behaviour, a rule at a time. What the reference executes is covered by the vectors."""

from __future__ import annotations

import numpy as np
import pytest
from packer_bench import (
    BF16,
    BFP2A,
    BFP4A,
    BFP8,
    BFP8A,
    FP8,
    FP16,
    FP32,
    INT8,
    INT16,
    INT32,
    L1_BASE,
    TF32,
    Bench,
)

from bhemu.errors import MemoryError_, MissingSpecification, UndefinedBehavior, Unimplemented
from bhemu.isa.instructions import encode

ONES = [0x3F80] * 16
COUNTING = [0x4000 + i for i in range(16)]


def test_flush_packs_nothing_and_closes_the_streams_p11() -> None:
    bench = Bench()
    bench.bf16_row(0, COUNTING)
    bench.tile["adc"][2, 2, 4] = 4  # five datums
    bench.pacr(Last=0)
    assert bench.tile.pack.open
    bench.tile["l1"][L1_BASE + 10 : L1_BASE + 32] = 0xEE
    bench.pacr(Flush=1, Last=0)
    assert not bench.tile.pack.open
    assert bench.l1("<u2", 16) == [*COUNTING[:5], 0, 0, 0, *[0xEEEE] * 8]


def test_streams_continue_until_last_p11() -> None:
    bench = Bench()
    bench.bf16_row(0, COUNTING)
    bench.bf16_row(1, ONES)
    bench.modifier(0, YsrcIncr=1)
    bench.pacr(Last=0)
    bench.pacr(Last=1)
    assert bench.l1("<u2", 32) == COUNTING + ONES


def test_a_mask_is_relative_to_the_first_row_p2() -> None:
    bench = Bench()
    for row in range(8):
        bench.bf16_row(row, [0x4000 + row] * 16)
    bench.tile["adc"][2, 2, 1] = 1
    bench.pacr(ReadIntfSel=0b0101)
    assert bench.l1("<u2", 32)[::16] == [0x4001, 0x4003]
    bench.tile["adc"][2, 2, 1] = 0
    bench.pacr(ReadIntfSel=0b1110)
    assert bench.l1("<u2", 48)[::16] == [0x4001, 0x4002, 0x4003]


def test_a_mask_that_spills_over_the_fourth_interface_is_refused_p2() -> None:
    bench = Bench()
    bench.tile["adc"][2, 2, 1] = 2
    with pytest.raises(UndefinedBehavior, match="beyond its four interfaces"):
        bench.pacr(ReadIntfSel=0b0111)


def test_zero_write_reads_nothing_and_may_be_long_002_2h() -> None:
    bench = Bench()
    bench.bf16_row(0, ONES)
    bench.tile["l1"][L1_BASE : L1_BASE + 256] = 0xEE
    bench.pacr(ZeroWrite=1, ReadIntfSel=3)
    assert bench.l1("u1", 66) == [0] * 64 + [0xEE] * 2
    bench.tile["adc"][2, 2, 4] = 47
    bench.pacr(ZeroWrite=1, ReadIntfSel=0)
    assert bench.l1("u1", 98) == [0] * 96 + [0xEE] * 2
    bench.tile["adc"][2, 2, 4] = 40
    with pytest.raises(UndefinedBehavior, match="multiple of 16"):
        bench.pacr(ZeroWrite=1, ReadIntfSel=0)


def test_row_pad_zero_fills_rows_or_the_whole_output_p3() -> None:
    for mode, length in ((0, 10), (1, 32), (5, 16), (2, 32), (6, 16), (3, 10), (7, 10), (4, 10)):
        bench = Bench()
        bench.bf16_row(0, COUNTING)
        bench.bf16_row(1, COUNTING)
        bench.tile["adc"][2, 2, 4] = 4
        bench.tile["l1"][L1_BASE : L1_BASE + 128] = 0xEE
        bench.pacr(ReadIntfSel=3, RowPadZero=mode, Last=0)
        row = COUNTING[:5]
        want = [*row, *[0] * 11, *row, *[0] * 11] if length == 32 else [*row, *row, *[0] * (length - 10)]
        assert bench.l1("<u2", length + 1) == [*want, 0xEEEE], mode


def test_row_pad_zero_can_wait_for_last_or_for_no_concat_p3() -> None:
    for mode, fields, padded in (
        (3, {"Last": 1}, 1),
        (2, {"Concat": 1, "Last": 0}, 0),
        (2, {"Concat": 0, "Last": 0}, 1),
    ):
        bench = Bench()
        bench.bf16_row(0, ONES)
        bench.tile["adc"][2, 2, 4] = 7
        bench.tile["l1"][L1_BASE : L1_BASE + 64] = 0xEE
        bench.pacr(RowPadZero=mode, **fields)
        assert bench.l1("<u2", 17)[8:] == ([0] * 8 if padded else [0xEEEE] * 8) + [0xEEEE]


def test_contexts_have_register_groups_of_their_own_p3() -> None:
    bench = Bench()
    bench.bf16_row(0, ONES)
    for context in (1, 2, 3):
        address = L1_BASE + 0x1000 * context
        bench.context(context, In_data_format=BF16, Out_data_format=FP32, L1_Dest_addr=address // 16 - 1)
        bench.pacr(CfgContext=context)
        assert bench.l1("<u4", 16, 0x1000 * context) == [0x3F800000] * 16


def test_the_hardware_context_advances_on_last_and_resets_p3() -> None:
    bench = Bench()
    for context in range(4):
        address = L1_BASE + 0x100 * context
        bench.context(context, In_data_format=BF16, Out_data_format=BF16, L1_Dest_addr=address // 16 - 1)
    bench.bf16_row(0, ONES)
    for used in (0, 1, 2, 3, 0):
        bench.tile["l1"][L1_BASE : L1_BASE + 0x400] = 0
        bench.pacr(CtxtCtrl=1, CfgContext=2)
        assert bench.l1("<u2", 1, 0x100 * used) == [0x3F80]
    bench.pacr(CtxtCtrl=2)
    assert bench.tile.pack.context == 0


def test_the_hardware_context_can_count_planes_p3() -> None:
    bench = Bench()
    bench.set(PACK_COUNTERS_SEC0_auto_ctxt_inc_xys_cnt=2, PACK_COUNTERS_SEC0_pack_reads_per_xy_plane=4)
    bench.pacr(CtxtCtrl=1, ReadIntfSel=0, Last=0)
    assert bench.tile.pack.context == 0
    bench.pacr(CtxtCtrl=1, ReadIntfSel=0, Last=0)
    assert bench.tile.pack.context == 1


def test_ovrd_thread_id_takes_the_adc_of_the_instruction_p3() -> None:
    bench = Bench()
    bench.bf16_row(3, COUNTING)
    bench.tile["adc"][1, 2, 1] = 3
    bench.modifier(0, YsrcIncr=2)
    bench.pacr(OvrdThreadId=1, AddrCntContext=1)
    assert bench.l1("<u2", 16) == COUNTING
    assert bench.tile["adc"][:, 2, 1].tolist() == [0, 5, 0]
    bench.tile["adc"][0, 2, 1] = 3
    bench.pacr(OvrdThreadId=1, AddrCntContext=3)
    assert bench.tile["adc"][:, 2, 1].tolist() == [5, 5, 0]


def test_all_four_counters_and_the_base_enter_the_input_address_p4() -> None:
    bench = Bench()
    bench.set(
        PCK0_ADDR_BASE_REG_0_Base=64,
        PCK0_ADDR_CTRL_XY_REG_0_Xstride=2,
        PCK0_ADDR_CTRL_ZW_REG_0_Zstride=512,
        PCK0_ADDR_CTRL_ZW_REG_0_Wstride=2048,
        DEST_TARGET_REG_CFG_PACK_SEC0_Offset=512,
    )
    bench.tile["adc"][2, 2, :4] = (3, 1, 2, 1)
    bench.bf16_row(512 + 2 + 1 + 2 * 16 + 64, COUNTING)
    bench.tile["adc"][2, 2, 4] = 6  # columns 3 to 6
    bench.pacr()
    assert bench.l1("<u2", 8) == [*COUNTING[3:7], 0, 0, 0, 0]


def test_the_wide_view_of_the_upper_half_begins_at_row_512_i_3() -> None:
    bench = Bench(FP32, FP32, read_32b=1)
    bench.set(DEST_TARGET_REG_CFG_PACK_SEC0_Offset=512)
    bench.bf16_row(512, [0x3F80] * 16)
    bench.tile["dst"][520] = 0x1234
    bench.pacr()
    assert bench.l1("<u4", 16) == [0x3F801234] * 16


def test_an_invalid_row_reads_as_zero_i_3() -> None:
    bench = Bench()
    bench.bf16_row(0, ONES)
    bench.tile["dst_valid"][0] = 0
    bench.pacr()
    assert bench.l1("<u2", 16) == [0] * 16


def test_datums_beyond_the_row_or_of_no_count_are_refused_p2() -> None:
    bench = Bench()
    bench.tile["adc"][2, 2, 0] = 2
    bench.tile["adc"][2, 2, 4] = 16
    with pytest.raises(UndefinedBehavior, match="end of the Dst row"):
        bench.pacr()
    bench.tile["adc"][2, 2, 4] = 1
    with pytest.raises(UndefinedBehavior, match="outside 1 to 16"):
        bench.pacr()


def test_output_address_wraps_in_its_fifo_002_12_3() -> None:
    bench = Bench()
    bench.bf16_row(0, ONES)
    unit = L1_BASE // 16
    bench.set(THCON_SEC0_REG9_Pack_0_2_limit_address=unit // 2 + 7, THCON_SEC0_REG9_Pack_0_2_fifo_size=8)
    for first, written in ((unit + 15, 15), (unit + 16, 0)):
        bench.packer(L1_Dest_addr=first - 1)
        bench.tile["l1"][L1_BASE : L1_BASE + 512] = 0
        bench.pacr()
        assert bench.l1("<u2", 1, 16 * written) == [0x3F80]


def test_output_address_adds_base_counters_and_offset_p11() -> None:
    bench = Bench()
    bench.bf16_row(0, ONES)
    bench.set(
        PCK0_ADDR_BASE_REG_1_Base=0x20,
        PCK0_ADDR_CTRL_XY_REG_1_Ystride=0x100,
        PCK0_ADDR_CTRL_ZW_REG_1_Zstride=0x400,
        PCK0_ADDR_CTRL_ZW_REG_1_Wstride=0x1008,
    )
    bench.tile["adc"][2, 2, 5:8] = (1, 2, 1)
    bench.packer(Add_l1_dest_addr_offset=1)
    bench.tile.pack.l1_dest_addr_offset = 3
    bench.pacr()
    assert bench.l1("<u2", 1, 0x20 + 0x100 + 0x800 + 0x1000 + 0x30) == [0x3F80]  # 0x1008 is cut to whole units


def test_sub_header_takes_the_unit_back_and_bit_31_does_nothing_p11() -> None:
    bench = Bench()
    bench.bf16_row(0, ONES)
    bench.packer(L1_Dest_addr=L1_BASE // 16 | 1 << 31, Sub_l1_tile_header_size=1)
    bench.pacr()
    assert bench.l1("<u2", 16) == ONES


def test_ydst_carry_moves_the_copy_and_the_counter_p12() -> None:
    bench = Bench()
    bench.modifier(1, YdstIncr=3, YdstCR=1)
    bench.tile["adc"][2, 2, 5] = 9
    bench.tile["adc"][2, 2, 13] = 4
    bench.pacr(AddrMode=1)
    assert bench.tile["adc"][2, 2, [5, 13]].tolist() == [7, 7]


def test_writing_beyond_l1_is_refused_and_changes_nothing() -> None:
    bench = Bench()
    bench.packer(L1_Dest_addr=0x180000 // 16 - 2)
    with pytest.raises(MemoryError_, match="L1 ends at"):
        bench.pacr()
    assert not bench.tile.pack.open


# --- stages ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transposed", [0, 1])
def test_edge_masks_follow_the_tile_position_002_9(transposed: int) -> None:
    bench = Bench()
    masks = (0xFFFF, 0x00FF, 0xF00F, 0x0001)
    bench.set(
        PCK_EDGE_TILE_FACE_SET_SELECT_enable=1,
        PCK_EDGE_TILE_FACE_SET_SELECT_select=2,
        DEST_TARGET_REG_CFG_PACK_SEC0_ZOffset=1,
        PACK_COUNTERS_SEC0_pack_reads_per_xy_plane=2,
        PACK_COUNTERS_SEC0_pack_yz_transposed=transposed,
        TILE_FACE_SET_MAPPING_2_face_set_mapping_1=3,
        TILE_FACE_SET_MAPPING_2_face_set_mapping_2=1,
        TILE_ROW_SET_MAPPING_3_row_set_mapping_0=1,
        TILE_ROW_SET_MAPPING_3_row_set_mapping_1=2,
        TILE_ROW_SET_MAPPING_1_row_set_mapping_0=3,
        **{f"PCK_EDGE_OFFSET_SEC{i}_mask": mask for i, mask in enumerate(masks)},
    )
    for row in range(4):
        bench.bf16_row(row, ONES)
    bench.pacr(ReadIntfSel=0)
    got = [sum((v != 0) << c for c, v in enumerate(bench.l1("<u2", 16, 32 * row))) for row in range(4)]
    # (Y, Z) are (0,0) (1,0) (0,1) (1,1), or with Z first (0,0) (0,1) (1,0) (1,1)
    assert got == [masks[c] for c in ((1, 3, 2, 0) if transposed else (1, 2, 3, 0))]


def test_a_position_inside_a_row_splits_the_mask_002_9_2() -> None:
    bench = Bench()
    bench.set(
        PCK_EDGE_OFFSET_SEC1_mask=0, TILE_ROW_SET_MAPPING_0_row_set_mapping_1=1, PCK_EDGE_TILE_ROW_SET_SELECT_select=0
    )
    bench.bf16_row(0, ONES)
    bench.tile["adc"][2, 2, 4] = 9
    bench.pacr(Last=0)
    bench.pacr(Last=0)
    assert [v != 0 for v in bench.l1("<u2", 18)] == [True] * 16 + [False] * 2


def test_edge_mode_1_fills_with_minus_infinity_002_9_1e() -> None:
    bench = Bench()
    bench.set(PCK_EDGE_OFFSET_SEC0_mask=0x00FF, PCK_EDGE_MODE_mode=1)
    bench.bf16_row(0, ONES)
    bench.pacr()
    assert bench.l1("<u2", 16) == [0x3F80] * 8 + [0xFF80] * 8
    half = Bench(FP16, FP16)
    half.set(PCK_EDGE_OFFSET_SEC0_mask=0x00FF, PCK_EDGE_MODE_mode=1)
    with pytest.raises(MissingSpecification, match="5-bit-exponent"):
        half.pacr()
    half.tile.allow_open = 1
    half.pacr()
    assert half.l1("<u2", 16)[8:] == [0xFC00] * 8


def test_relu_of_integers_zeroes_negatives_002_8e() -> None:
    words = [5, 0x80000005, 0x7FFFFFFF, 0x80000000] * 4
    bench = Bench(INT32, INT32, read_32b=1)
    bench.set(STACC_RELU_ApplyRelu=1)
    bench.word_row(0, words)
    bench.pacr()
    assert bench.l1("<u4", 4) == [5, 0, 0x7FFFFFFF, 0]
    bench.set(STACC_RELU_ApplyRelu=2)
    with pytest.raises(UndefinedBehavior, match="integer"):
        bench.pacr()


def test_a_negative_relu_threshold_is_refused_p8() -> None:
    bench = Bench()
    bench.set(STACC_RELU_ApplyRelu=3, STACC_RELU_ReluThreshold=0x8000)
    with pytest.raises(UndefinedBehavior, match="negative"):
        bench.pacr()


def test_exponent_histogram_counts_modulo_32_and_saturates() -> None:
    bench = Bench()
    bench.bf16_row(0, [0x3F80] * 15 + [0x4080])  # exponents 127 and 129
    bench.pacr()
    assert bench.tile.pack.histogram.sum() == 0
    assert bench.tile.pack.histogram_max == 129
    bench.tile["thread_config"][0, 45] = 1  # any thread enables
    for _ in range(20):
        bench.pacr()
    assert {i: int(v) for i, v in enumerate(bench.tile.pack.histogram) if v} == {127 % 32: 255, 129 % 32: 20}
    bench.word(int(encode("CLREXPHIST")))
    assert bench.tile.pack.histogram.sum() == 0
    assert bench.tile.pack.histogram_max == 0


def test_exponent_threshold_zeroes_small_values_002_7() -> None:
    bench = Bench(FP32, BFP8A, read_32b=1)
    bench.packer(Exp_threshold_en=1, Exp_threshold=113, Exp_section_size=1)
    bench.word_row(0, [0x38800000, 0xB87FFFFF] * 8)  # exponents 113 and 112
    bench.pacr()
    assert bench.l1("u1", 1) == [1]
    assert bench.l1("u1", 4, 16) == [0x40, 0, 0x40, 0]


def test_downsampling_keeps_the_columns_of_the_mask_002_10() -> None:
    bench = Bench()
    bench.bf16_row(0, COUNTING)
    bench.bf16_row(1, ONES)
    bench.packer(Downsample_mask=0x8421)
    bench.pacr(ReadIntfSel=3)
    assert bench.l1("<u2", 8) == [COUNTING[c] for c in (0, 5, 10, 15)] + [0x3F80] * 4


def test_bfp_groups_are_of_output_datums_and_span_pacrs_002_18_4_4() -> None:
    bench = Bench(BF16, BFP8)
    bench.packer(Downsample_mask=0x00FF, Exp_section_size=1)
    bench.bf16_row(0, ONES)
    bench.bf16_row(1, [0x4080] * 16)
    bench.modifier(0, YsrcIncr=1)
    bench.pacr(Last=0)
    bench.pacr(Last=1)
    assert bench.l1("u1", 16) == [129] + [0] * 15
    assert bench.l1("u1", 17, 16) == [0x10] * 8 + [0x40] * 8 + [0]


def test_partial_bfp_rows_are_open_p2_p10() -> None:
    bench = Bench(BF16, BFP8)
    bench.tile["adc"][2, 2, 4] = 7
    with pytest.raises(MissingSpecification, match="shared exponent begins"):
        bench.pacr()


def unpack_compressed(bench: Bench, rows: int, size: int, data: int) -> list[list[int]]:
    """Rows of datums from the compressed layout of I.4, read with nothing but its description."""
    starts = bench.l1("<u2", rows + 1)
    result = []
    for row in range(rows):
        datums = []
        for n in range(starts[row], starts[row + 1]):
            group = data + n // 32 * (32 * size + 16)
            (datum,) = bench.l1(f"<u{size}", 1, group + n % 32 * size)
            count = bench.l1("u1", 16, group + 32 * size)[n % 32 // 2] >> n % 2 * 4 & 15
            datums += [datum] + [0] * count
        result.append(datums)
    return result


@pytest.mark.parametrize("zeros", [0.0, 0.5, 0.9, 1.0])
def test_zero_compression_keeps_every_datum_002_11(zeros: float) -> None:
    rng = np.random.default_rng(int(zeros * 10))
    bench = Bench()
    rows = rng.integers(0x3F80, 0x4100, (8, 16)) * (rng.random((8, 16)) >= zeros)
    for row in range(8):
        bench.bf16_row(row, rows[row])
    bench.packer(Disable_zero_compress=0, Row_start_section_size=2)
    bench.modifier(0, YsrcIncr=1)
    for row in range(8):
        bench.pacr(Last=row == 7)
    assert unpack_compressed(bench, 8, 2, 32) == rows.tolist()
    stored = bench.tile.pack.augmented
    assert stored == 128 if zeros == 0 else stored <= 128
    if zeros == 1.0:
        assert stored == 16  # first and last datum of each row
        assert bench.tile.pack.all_zero_flags == 0xFF


def test_concat_continues_the_compression_row_in_the_next_pacr_002_11_1b() -> None:
    bench = Bench()
    bench.bf16_row(0, [0x3F80] + [0] * 15)
    bench.packer(Disable_zero_compress=0, Row_start_section_size=1)
    bench.pacr(Concat=1, Last=0)
    bench.pacr(Concat=0, Last=0)
    bench.pacr(Concat=0, Last=1)
    assert bench.tile.pack.rows == 2
    assert [len(row) for row in unpack_compressed(bench, 2, 2, 16)] == [32, 16]


def test_runs_longer_than_a_count_are_split_002_11_1a() -> None:
    bench = Bench()
    bench.bf16_row(0, [0x3F80] + [0] * 15)
    bench.bf16_row(1, [0] * 16)
    bench.packer(Disable_zero_compress=0, Row_start_section_size=1)
    bench.pacr(ReadIntfSel=3)
    assert unpack_compressed(bench, 1, 2, 16) == [[0x3F80] + [0] * 31]
    assert bench.l1("<u2", 2) == [0, 3]


def test_compressed_bfp_has_an_exponent_for_16_stored_datums_i_4() -> None:
    bench = Bench(BF16, BFP8)
    bench.packer(Disable_zero_compress=0, Row_start_section_size=1, Exp_section_size=1)
    bench.bf16_row(0, [0x3F80, 0, 0, 0, 0, 0, 0, 0x4080] + [0] * 8)
    bench.pacr()
    assert bench.l1("<u2", 2) == [0, 3]
    assert bench.l1("u1", 2, 16) == [129, 0]
    assert bench.l1("u1", 4, 32) == [0x10, 0x40, 0, 0]
    assert bench.l1("u1", 16, 64)[:2] == [0x76, 0]


def test_zero_flags_can_be_turned_off_002_11_4() -> None:
    bench = Bench()
    bench.packer(Disable_zero_compress=0, Row_start_section_size=1, Disable_pack_zero_flags=1)
    bench.pacr()
    assert bench.tile.pack.all_zero_flags == 0


def test_tile_sizes_add_up_per_thread_on_last() -> None:
    bench = Bench(BF16, BFP8)
    bench.packer(Exp_section_size=4, Add_tile_header_size=1)
    bench.pacr(ReadIntfSel=0, Last=0)
    assert bench.tile.pack.acc_tile_size[2] == 0
    bench.pacr(ReadIntfSel=0)
    assert bench.tile.pack.last_tile_size == 4 + 8
    assert bench.tile.pack.last_thread == 2
    bench.pacr(ReadIntfSel=0)
    assert bench.tile.pack.acc_tile_size.tolist() == [0, 0, (4 + 8 + 1) + (4 + 4 + 1)]


# --- formats ----------------------------------------------------------------------------------------------------


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
def test_int_descale_shifts_rounds_and_saturates_002_5_2e(amount: int, unsigned: int, word: int, byte: int) -> None:
    bench = Bench(INT8, INT8, read_32b=1)
    bench.set(
        INT_DESCALE_Enable=1, INT_DESCALE_VALUES_SEC0_Value=amount | 0xE0, PCK_DEST_RD_CTRL_Read_unsigned=unsigned
    )
    bench.word_row(0, [word] * 16)
    bench.pacr()
    assert bench.l1("u1", 16) == [byte] * 16


def test_int_descale_by_z_is_open_002_5_2e() -> None:
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


@pytest.mark.parametrize("unsigned", [0, 1])
def test_read_raw_takes_the_low_bits_of_integers_002_5_2f(unsigned: int) -> None:
    bench = Bench(INT8, INT8, read_32b=1)
    bench.set(PCK_DEST_RD_CTRL_Read_int8=1, PCK_DEST_RD_CTRL_Read_unsigned=unsigned)
    bench.word_row(0, [0x800001FE] * 16)
    bench.pacr()
    assert bench.l1("u1", 1) == [0xFE]


def test_tf32_is_fp32_rounded_half_away_to_ten_bits_002_5_2b() -> None:
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


def test_bf16_may_be_rounded_to_tf32_on_the_way_to_fp16_p6() -> None:
    bench = Bench(BF16, FP16, read_32b=1)
    bench.packer(In_data_format=TF32)
    bench.set(PCK_DEST_RD_CTRL_Round_10b_mant=1)
    bench.word_row(0, [0x3F801000] * 16)
    bench.pacr()
    assert bench.l1("<u2", 1) == [0x3C01]


def test_a_format_mismatch_names_both_codes_p6() -> None:
    bench = Bench()
    bench.packer(In_data_format=FP16)
    with pytest.raises(UndefinedBehavior, match=r"format 5 .* In_data_format 1"):
        bench.pacr()


def test_the_override_replaces_the_intermediate_format_p6() -> None:
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


def test_a_family_groups_share_a_five_bit_exponent_002_6_2h() -> None:
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


@pytest.mark.parametrize(
    ("value", "byte"), [(0x3C00, 0x3C), (0xBDFF, 0xBD), (0x7FFF, 0x7F), (0x83FF, 0x80), (0x0400, 4)]
)
def test_e5m2_truncates_002_6_4d(value: int, byte: int) -> None:
    bench = Bench(FP16, FP8)
    bench.set(PCK_DEST_RD_CTRL_Read_int8=1)
    bench.fp16_row(0, [value] * 16)
    bench.pacr()
    assert bench.l1("u1", 16) == [byte] * 16


# --- what no source settles -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("Dis_shared_exp_assembler", 1),
        ("Enable_out_fifo", 1),
        ("pack_start_intf_pos", 2),
        ("pack_dis_y_pos_start_offset", 1),
    ],
)
def test_controls_without_a_rule_are_refused_by_name_000_1_1h(field: str, value: int) -> None:
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


def test_automatic_last_is_refused_000_1_4() -> None:
    bench = Bench()
    bench.set(PACK_COUNTERS_SEC0_pack_per_xy_plane=4)
    with pytest.raises(MissingSpecification, match="pack_per_xy_plane"):
        bench.pacr()


def test_packing_from_l1_skips_the_stages_of_dst_002_3_4() -> None:
    for in_format, source, want in (
        (BF16, np.arange(0x8000, 0x8010, dtype="<u2"), list(range(0x8000, 0x8010))),
        (BFP8, np.arange(0xF8, 0x100, dtype="u1").repeat(2), [0x8000 | v for v in range(0x78, 0x80) for _ in (0, 1)]),
    ):
        bench = Bench(in_format, BF16)
        bench.tile.allow_open = 1
        bench.set(STACC_RELU_ApplyRelu=1, PCK_EDGE_OFFSET_SEC0_mask=0)
        bench.packer(Source_interface_selection=1, L1_source_addr=1)
        bench.set(PCK0_ADDR_BASE_REG_0_Base=0x100)
        raw = source.view("u1")
        bench.tile["l1"][0x40100 : 0x40100 + raw.size] = raw
        bench.pacr()
        assert bench.l1("<u2", 16) == want


def test_strided_mode_without_remapping_is_open_p5() -> None:
    bench = Bench()
    for row in range(32):
        bench.bf16_row(row, [0x4000 + row] * 16)
    with pytest.raises(MissingSpecification, match="remap_addrs"):
        bench.pacr(DstAccessMode=1, ReadIntfSel=0)
    bench.tile.allow_open = 1
    bench.pacr(DstAccessMode=1, ReadIntfSel=0)
    assert bench.l1("<u2", 64)[::16] == [0x4000, 0x4008, 0x4010, 0x4018]


@pytest.mark.parametrize(
    ("old", "new", "total"),
    [
        (5, 0x80000003, 2),
        (0x80000005, 3, 0x80000002),
        (0x7FFFFFFF, 1, 0x7FFFFFFF),
        (0xC0000000, 0xC0000000, 0xFFFFFFFF),
        (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF),
        (7, 0x80000007, 0),
    ],
)
def test_int32_accumulation_saturates_when_asked_for_002_13b(old: int, new: int, total: int) -> None:
    bench = Bench(INT32, INT32, read_32b=1)
    bench.packer(Pack_L1_Acc=1)
    with pytest.raises(MissingSpecification, match="INT32"):
        bench.pacr()
    bench.tile.allow_open = 1
    bench.word_row(0, [new] * 16)
    bench.tile["l1"][L1_BASE : L1_BASE + 64].view("<u4")[:] = old
    bench.pacr()
    assert bench.l1("<u4", 16) == [total] * 16


def test_accumulation_without_a_rule_is_refused_i_9() -> None:
    bench = Bench(BF16, BFP8)
    bench.packer(Pack_L1_Acc=1)
    with pytest.raises(MissingSpecification, match="no source defines the sum"):
        bench.pacr()


def test_pacr_setreg_flushes_and_refuses_what_it_cannot_reach() -> None:
    bench = Bench()
    bench.bf16_row(0, ONES)
    bench.tile["adc"][2, 2, 4] = 0
    bench.pacr(Last=0)
    bench.tile["l1"][L1_BASE + 2 : L1_BASE + 16] = 0xEE
    with pytest.raises(UndefinedBehavior, match="0xffb01000"):
        bench.word(int(encode("PACR_SETREG", Push=1, StreamId=1, Flush=1)))
    bench.tile.pack.setreg_base[1] = 1 << 18
    with pytest.raises(Unimplemented, match="0xffb41000"):
        bench.word(int(encode("PACR_SETREG", Push=1, AddrSel=1, StreamId=1, Flush=1)))
    assert bench.tile.pack.open
    bench.tile.pack.setreg_base[1] = 2 << 18
    bench.word(int(encode("PACR_SETREG", Push=1, AddrSel=1, StreamId=0, Flush=1)))
    assert bench.l1("<u2", 8) == [0x3F80] + [0] * 7
    assert not bench.tile.pack.open
