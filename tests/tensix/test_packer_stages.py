"""Packer: edge masks, ReLU, histogram, exponent threshold, downsampling, BFP groups, other L1 accumulation.

What the reference executes is covered by the vectors.
"""

from __future__ import annotations

import pytest

from bhemu.errors import MissingSpecification, UndefinedBehavior
from bhemu.isa.instructions import encode
from tests.tensix.packer_bench import (
    BF16,
    BFP8,
    BFP8A,
    FP16,
    FP32,
    INT32,
    L1_BASE,
    Bench,
)

ONES = [0x3F80] * 16
COUNTING = [0x4000 + i for i in range(16)]


@pytest.mark.rule("002.9")
@pytest.mark.parametrize("transposed", [0, 1])
def test_edge_masks_follow_the_tile_position(transposed: int) -> None:
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


@pytest.mark.rule("P7")
@pytest.mark.parametrize("relu_mode", [0, 1, 2, 3])
@pytest.mark.parametrize(
    ("in_format", "out_format", "read_32b"),
    [(BF16, BF16, 0), (FP16, BFP8A, 0), (FP16, FP32, 0), (FP32, FP16, 1), (FP32, FP32, 1), (BF16, BFP8, 0)],
)
def test_a_masked_datum_is_zero_whatever_the_stages_behind_make_of_others(
    in_format: int, out_format: int, read_32b: int, relu_mode: int
) -> None:
    """Raw 0, also for NaN patterns and with ReLU thresholds; the other datums are as without a mask."""
    outputs = []
    for mask in (0xFFFF, 0x5A0F):
        bench = Bench(in_format, out_format, read_32b=read_32b)
        threshold = 0x3800 if in_format == FP16 else 0x3F00  # 0.5
        bench.set(PCK_EDGE_OFFSET_SEC0_mask=mask, STACC_RELU_ApplyRelu=relu_mode, STACC_RELU_ReluThreshold=threshold)
        shared = out_format in (BFP8, BFP8A)  # a larger exponent in a masked column would change its neighbours
        if shared:
            bench.packer(Exp_section_size=1)
        patterns = [0x3F80 + column for column in range(14)] + ([0x3FC1, 0x3FFF] if shared else [0x7FC1, 0x40FF])
        if read_32b:
            bench.word_row(0, [p << 16 | 0xFFFF for p in patterns])
        elif in_format == FP16:
            bench.fp16_row(0, [0x3C00 + column for column in range(14)] + [0x3E01 if shared else 0x7E01, 0x3FFF])
        else:
            bench.bf16_row(0, patterns)
        bench.pacr()
        sizes = {BF16: "<u2", FP16: "<u2", FP32: "<u4", BFP8: "u1", BFP8A: "u1"}
        outputs.append(bench.l1(sizes[out_format], 16, 16 if shared else 0))
    whole, masked = outputs
    assert all(whole)
    assert masked == [value if 0x5A0F >> column & 1 else 0 for column, value in enumerate(whole)]


@pytest.mark.rule("002.9.2")
def test_a_position_inside_a_row_splits_the_mask() -> None:
    bench = Bench()
    bench.set(
        PCK_EDGE_OFFSET_SEC1_mask=0, TILE_ROW_SET_MAPPING_0_row_set_mapping_1=1, PCK_EDGE_TILE_ROW_SET_SELECT_select=0
    )
    bench.bf16_row(0, ONES)
    bench.tile["adc"][2, 2, 4] = 9
    bench.pacr(Last=0)
    bench.pacr(Last=0)
    assert [v != 0 for v in bench.l1("<u2", 18)] == [True] * 16 + [False] * 2


@pytest.mark.rule("002.9.1e")
def test_edge_mode_1_fills_with_minus_infinity() -> None:
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


@pytest.mark.rule("002.8e")
def test_relu_of_integers_zeroes_negatives() -> None:
    words = [5, 0x80000005, 0x7FFFFFFF, 0x80000000] * 4
    bench = Bench(INT32, INT32, read_32b=1)
    bench.set(STACC_RELU_ApplyRelu=1)
    bench.word_row(0, words)
    bench.pacr()
    assert bench.l1("<u4", 4) == [5, 0, 0x7FFFFFFF, 0]
    bench.set(STACC_RELU_ApplyRelu=2)
    with pytest.raises(UndefinedBehavior, match="integer"):
        bench.pacr()


@pytest.mark.rule("P8")
def test_a_negative_relu_threshold_is_refused() -> None:
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


@pytest.mark.rule("002.7")
def test_exponent_threshold_zeroes_small_values() -> None:
    bench = Bench(FP32, BFP8A, read_32b=1)
    bench.packer(Exp_threshold_en=1, Exp_threshold=113, Exp_section_size=1)
    bench.word_row(0, [0x38800000, 0xB87FFFFF] * 8)  # exponents 113 and 112
    bench.pacr()
    assert bench.l1("u1", 1) == [1]
    assert bench.l1("u1", 4, 16) == [0x40, 0, 0x40, 0]


@pytest.mark.rule("002.10")
def test_downsampling_keeps_the_columns_of_the_mask() -> None:
    bench = Bench()
    bench.bf16_row(0, COUNTING)
    bench.bf16_row(1, ONES)
    bench.packer(Downsample_mask=0x8421)
    bench.pacr(ReadIntfSel=3)
    assert bench.l1("<u2", 8) == [COUNTING[c] for c in (0, 5, 10, 15)] + [0x3F80] * 4


@pytest.mark.rule("002.18.4.4")
def test_bfp_groups_are_of_output_datums_and_span_pacrs() -> None:
    bench = Bench(BF16, BFP8)
    bench.packer(Downsample_mask=0x00FF, Exp_section_size=1)
    bench.bf16_row(0, ONES)
    bench.bf16_row(1, [0x4080] * 16)
    bench.modifier(0, YsrcIncr=1)
    bench.pacr(Last=0)
    bench.pacr(Last=1)
    assert bench.l1("u1", 16) == [129] + [0] * 15
    assert bench.l1("u1", 17, 16) == [0x10] * 8 + [0x40] * 8 + [0]


@pytest.mark.rule("P2", "P10")
def test_partial_bfp_rows_are_open() -> None:
    bench = Bench(BF16, BFP8)
    bench.tile["adc"][2, 2, 4] = 7
    with pytest.raises(MissingSpecification, match="shared exponent begins"):
        bench.pacr()


@pytest.mark.rule("002.13b")
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
def test_int32_accumulation_saturates_when_asked_for(old: int, new: int, total: int) -> None:
    bench = Bench(INT32, INT32, read_32b=1)
    bench.packer(Pack_L1_Acc=1)
    with pytest.raises(MissingSpecification, match="INT32"):
        bench.pacr()
    bench.tile.allow_open = 1
    bench.word_row(0, [new] * 16)
    bench.tile["l1"][L1_BASE : L1_BASE + 64].view("<u4")[:] = old
    bench.pacr()
    assert bench.l1("<u4", 16) == [total] * 16


@pytest.mark.rule("I.9")
def test_accumulation_without_a_rule_is_refused() -> None:
    bench = Bench(BF16, BFP8)
    bench.packer(Pack_L1_Acc=1)
    with pytest.raises(MissingSpecification, match="no source defines the sum"):
        bench.pacr()
