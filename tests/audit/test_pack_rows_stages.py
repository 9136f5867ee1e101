"""Audit rows 002.7 to 002.10, 000.1.3, 000.1.5, 000.1.1l: ReLU, edge masks, exponent threshold, downsampling."""

from __future__ import annotations

import pytest

from bhemu.errors import MissingSpecification, UndefinedBehavior
from tests.audit.pack_words import ROW, Words, bf16
from tests.tensix.packer_bench import BF16, BFP8, BFP8A, FP8, FP16, FP32, INT8, INT32, TF32

RELU_WORD = 2


def relu(bench: Words, mode: int, threshold: int = 0) -> None:
    """ApplyRelu [5:2] and ReluThreshold [21:6] of word 2."""
    bench.bits(RELU_WORD, 2, 20, threshold << 4 | mode)


def columns(values: list[int]) -> int:
    """Bit mask of the columns that are not zero."""
    return sum(1 << c for c, value in enumerate(values) if value)


# --- ReLU -------------------------------------------------------------------------------------------------------------

PLAIN = [0x8000, 0x0000, 0xBF80, 0xC000, 0xFF80, 0x3F80, 0x4000, 0x7F80] * 2
"""-0, +0, -1, -2, -Inf, 1, 2, Inf in BF16."""


@pytest.mark.rule("002.8a", "002.8c", "000.1.3a", "000.1.3b")
@pytest.mark.parametrize("upper", [0, 4, 8, 12])
@pytest.mark.parametrize("mode", range(4))
def test_two_bits_choose_the_relu_mode(mode: int, upper: int) -> None:
    """Off; negatives and -0 to +0; then x <= t to 0; or x > t to t."""
    bench = Words()
    bench.bits(18, 2, 1, 1)  # raw, so that -0 comes this far
    relu(bench, upper | mode, 0x3F80)
    bench.bf16_row(0, PLAIN)
    bench.send(ReadIntfSel=1, Last=1)
    positive = [0 if v & 0x8000 else v for v in PLAIN]
    assert (
        bench.l1("<u2", 16)
        == {
            0: PLAIN,
            1: positive,
            2: [v if v > 0x3F80 else 0 for v in positive],
            3: [min(v, 0x3F80) for v in positive],
        }[mode]
    )


@pytest.mark.rule("000.1.3a", "000.1.3c")
def test_the_bits_around_the_relu_fields_do_nothing_to_the_packer_and_are_kept() -> None:
    """Zero flags [1:0]; [31:22] belong to the cores, so that writers must keep them."""
    bench = Words()
    bench.wrcfg(RELU_WORD, 0xFFC00003 | 1 << 2)
    assert bench.tile["config"][0, RELU_WORD] == 0xFFC00007
    bench.bf16_row(0, PLAIN)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1("<u2", 16) == [0 if v & 0x8000 else v for v in PLAIN]


@pytest.mark.rule("002.8b", "000.1.3b")
@pytest.mark.parametrize(
    ("in_format", "read_32b", "two"),
    [(BF16, 0, 0x4000), (BFP8, 0, 0x4000), (FP32, 1, 0x4000), (TF32, 1, 0x4000), (FP16, 0, 0x4000), (BFP8A, 0, 0x4000)],
)
def test_the_threshold_is_bf16_or_fp16_by_the_exponent_of_the_intermediate(
    in_format: int, read_32b: int, two: int
) -> None:
    """0x3C00 is 1.0 in FP16 and 0.0078 in BF16, so that only the former stops 0.5."""
    five_bits = in_format in (FP16, BFP8A)
    bench = Words(in_format, FP16 if five_bits else FP32, read_32b=read_32b)
    relu(bench, 2, 0x3C00)
    if read_32b:
        bench.word_row(0, [0x3F000000, two << 16] * 8)
    elif five_bits:
        bench.fp16_row(0, [0x3800, two] * 8)
    else:
        bench.bf16_row(0, [0x3F00, two] * 8)
    bench.send(ReadIntfSel=1, Last=1)
    got = bench.l1("<u2", 2) if five_bits else bench.l1("<u4", 2)
    assert [v != 0 for v in got] == [not five_bits, True]


@pytest.mark.rule("002.8b")
def test_fp16_from_32_bit_dst_takes_a_bf16_threshold() -> None:
    """The value is still wide when it is compared."""
    bench = Words(FP16, FP16, read_32b=1)
    bench.bits(18, 3, 1, 1)
    relu(bench, 2, 0x3C00)
    bench.word_row(0, [0x3F000000, 0x3BF00000] * 8)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1("<u2", 2) == [0x3800, 0]


@pytest.mark.rule("002.8d")
@pytest.mark.parametrize(
    ("word", "expected"), [(0x40001FFF, 0x40001FFF), (0x40002000, 0x40000000), (0x3FFFFFFF, 0x3FFFFFFF)]
)
def test_mode_3_compares_19_bits_of_fp32(word: int, expected: int) -> None:
    """Bits 12:0 do not count; the datum then stays as it is."""
    bench = Words(FP32, FP32, read_32b=1)
    relu(bench, 3, 0x4000)
    bench.word_row(0, [word] * 16)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1("<u4", 16) == [expected] * 16


@pytest.mark.rule("002.8e")
def test_integers_take_modes_0_and_1() -> None:
    bench = Words(INT32, INT32, read_32b=1)
    bench.word_row(0, [0x80000005, 7] * 8)
    for mode, expected in ((0, [0x80000005, 7]), (1, [0, 7])):
        relu(bench, mode)
        bench.send(ReadIntfSel=1, Last=1)
        assert bench.l1("<u4", 2) == expected
    for mode in (2, 3):
        relu(bench, mode)
        with pytest.raises(UndefinedBehavior, match="integer"):
            bench.send(ReadIntfSel=1, Last=1)


# --- exponent threshold -----------------------------------------------------------------------------------------------


def threshold(bench: Words, value: int) -> None:
    """Exp_threshold_en bit 20 and Exp_threshold [31:24] of word 71."""
    bench.bits(71, 20, 12, value << 4 | 1)


@pytest.mark.rule("002.7a")
def test_the_threshold_looks_at_what_the_relu_leaves() -> None:
    """8.0 is first cut to 2.0, whose exponent 128 is below 129."""
    bench = Words()
    bench.bf16_row(0, bf16([8, 2, 4, 1] * 4))
    threshold(bench, 129)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1("<u2", 4) == [*bf16([8, 0, 4, 0])]
    relu(bench, 3, 0x4000)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1("<u2", 4) == [0, 0, 0, 0]


@pytest.mark.rule("002.7b")
@pytest.mark.parametrize("in_format", [FP32, TF32, BF16, BFP8, FP16, FP8, BFP8A, INT8, INT32])
def test_the_threshold_compares_raw_exponents_of_8_or_5_bits(in_format: int) -> None:
    """The value with the threshold's exponent stays, the one below goes; integers have no exponents."""
    five_bits = in_format in (FP16, FP8, BFP8A)
    wide = in_format in (FP32, TF32, INT8, INT32)
    out_format = FP16 if five_bits else in_format if wide else FP32
    bench = Words(in_format, out_format, read_32b=int(wide))
    bench.bits(18, 2, 1, int(in_format == FP8))
    threshold(bench, 20 if five_bits else 130)
    if wide:
        bench.word_row(0, [130 << 23, 129 << 23] * 8)
    elif five_bits:
        bench.fp16_row(0, [20 << 10, 19 << 10] * 8)
    else:
        bench.bf16_row(0, [130 << 7, 129 << 7] * 8)
    bench.send(ReadIntfSel=1, Last=1)
    dtype = ("<u4", "<u2", "u1")[min(out_format & 3, 2)]
    assert [v != 0 for v in bench.l1(dtype, 2)] == [True, in_format in (INT8, INT32)]


@pytest.mark.rule("002.7c", "000.1.1l")
def test_113_is_the_smallest_exponent_that_bfp_a_can_hold() -> None:
    """FP32 to BFP8a as LLK programs it; the smallest normal of bias 15 has exponent 1."""
    bench = Words(FP32, BFP8A, read_32b=1)
    bench.bits(68, 16, 16, 1)
    threshold(bench, 113)
    bench.word_row(0, [113 << 23, 1 << 31 | 112 << 23 | 0x7FFFFF] * 8)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1("u1", 1) == [1]
    assert bench.l1("u1", 16, 16) == [0x40, 0] * 8


# --- edge masks -------------------------------------------------------------------------------------------------------

MASKS = (0xFFFF, 0x00FF, 0xF00F, 0x0001)


def masked(reads: int = 16) -> Words:
    """Four masks; row map 1 gives rows 0 to 3 the masks 0 to 3 (over and over), map 2 mask 3 to all, map 3 mask 1."""
    bench = Words()
    for i, mask in enumerate(MASKS):
        bench.bits(24 + i, 0, 16, mask)
    bench.wrcfg(21, 0b11100100 * 0x01010101)
    bench.wrcfg(22, 0xFFFFFFFF)
    bench.wrcfg(23, 0x55555555)
    bench.bits(28, 8, 8, reads)
    return bench


def masks_of(bench: Words, rows: int, **fields: int) -> list[int]:
    """Masks seen in `rows` rows of one PACR."""
    bench.send(ReadIntfSel=(1 << rows) - 1, **fields)
    return [columns(bench.l1("<u2", 16, 32 * row)) for row in range(rows)]


def row_map(bench: Words, select: int) -> None:
    """PCK_EDGE_TILE_ROW_SET_SELECT, word 24 [24:17]."""
    bench.bits(24, 17, 8, select)


@pytest.mark.rule("002.9.1a", "002.9.1b", "002.9.1d", "000.1.5a")
@pytest.mark.parametrize(
    ("select", "expected"),
    [
        (0b00, [0xFFFF] * 4),
        (0b01, list(MASKS)),
        (0b10, [0x0001] * 4),
        (0b11, [0x00FF] * 4),
        (0b11_10_01_00, [0xFFFF] * 4),
    ],
)
def test_the_row_map_is_chosen_by_the_two_lowest_bits_of_an_8_bit_field(select: int, expected: list[int]) -> None:
    """Word 24 [24:17]; the other six bits were for packers 1 to 3."""
    bench = masked()
    row_map(bench, select)
    assert masks_of(bench, 4, Last=1) == expected


@pytest.mark.rule("002.9.1a", "002.9.1c", "000.1.5c")
@pytest.mark.parametrize(("select", "expected"), [(0, 0x00FF), (2, 0x0001), (0b1100, 0x00FF)])
@pytest.mark.parametrize("z_offset", [0, 5])
def test_the_face_map_is_chosen_by_word_19_and_read_at_the_z_position(
    select: int, expected: int, z_offset: int
) -> None:
    """Bit 8 enables, bits 1:0 choose; Z is that of the position plus ZOffset."""
    bench = masked()
    row_map(bench, 1)  # is not looked at
    bench.wrcfg(36, 3 << 2 * z_offset)  # face map 0: row map 3
    bench.wrcfg(38, 2 << 2 * z_offset)  # face map 2: row map 2
    bench.wrcfg(180, z_offset << 12)
    bench.wrcfg(19, 1 << 8 | select)
    assert masks_of(bench, 4, Last=1) == [expected] * 4
    bench.wrcfg(19, select)
    assert masks_of(bench, 4, Last=1) == list(MASKS)


@pytest.mark.rule("002.9.1d")
def test_a_row_map_has_two_bits_for_each_of_16_rows() -> None:
    """Y counts on from PACR to PACR, and modulo 16 where more reads make a plane."""
    bench = masked(reads=40)
    bench.wrcfg(21, 0x00000003 | 2 << 30)
    row_map(bench, 1)
    got = [mask for _ in range(5) for mask in masks_of_next(bench)]
    assert got == [0x0001, *[0xFFFF] * 14, 0xF00F, 0x0001, *[0xFFFF] * 3]


def masks_of_next(bench: Words) -> list[int]:
    """Masks of four rows more; L1 is read where the open tile has got to."""
    start = int(bench.tile.pack.data_address) - 0x10000 if bench.tile.pack.open else 0
    bench.send()
    return [columns(bench.l1("<u2", 16, start + 32 * row)) for row in range(4)]


@pytest.mark.rule("002.9.1e", "000.1.5b")
@pytest.mark.parametrize(("mode", "fill"), [(0, 0x0000), (1, 0xFF80)])
def test_masked_datums_are_zero_or_minus_infinity(mode: int, fill: int) -> None:
    """Word 24 bit 16. What is masked is not converted: a NaN there does not become Inf."""
    bench = Words()
    bench.bf16_row(0, [0x7FC1] * 16)
    bench.bits(24, 0, 17, mode << 16 | 0x0F0F)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1("<u2", 16) == ([0x7F80] * 4 + [fill] * 4) * 2


@pytest.mark.rule("002.9.1e")
def test_minus_infinity_of_integers_and_of_5_bit_exponents_is_refused() -> None:
    """The latter is open: all exponent bits, where the choice is accepted."""
    integers = Words(INT8, INT8, read_32b=1)
    integers.bits(24, 0, 17, 1 << 16)
    with pytest.raises(UndefinedBehavior, match="minus infinity"):
        integers.send(Last=1)
    bench = Words(FP16, FP16)
    bench.bits(24, 0, 17, 1 << 16)
    with pytest.raises(MissingSpecification):
        bench.send(ReadIntfSel=1, Last=1)
    bench.tile.allow_open = 1
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1("<u2", 16) == [0xFC00] * 16


@pytest.mark.rule("002.9.2b")
@pytest.mark.parametrize(
    ("transposed", "expected"),
    [
        (0, [0, 1, 0, 1, 2, 3, 2, 3]),  # Y 0 1, then Z 1: map 1 again, ...
        (1, [0, 0, 1, 1, 2, 2, 3, 3]),
    ],
)
def test_transposed_planes_move_z_before_y(transposed: int, expected: list[int]) -> None:
    """Word 28 bit 23; two reads make a plane here, and Z chooses between two row maps."""
    bench = masked(reads=2)
    bench.wrcfg(20, 0b11100100)  # row map 0: rows 0 to 3 take masks 0 to 3
    bench.wrcfg(21, 0b1110)  # row map 1: rows 0, 1 take masks 2, 3
    bench.wrcfg(19, 1 << 8)
    bench.wrcfg(36, 0b01010000)  # Z 0, 1: row map 0; Z 2, 3: row map 1
    bench.bits(28, 23, 1, transposed)
    got = masks_of_next(bench) + masks_of_next(bench)
    assert got == [MASKS[i] for i in expected]


@pytest.mark.rule("002.9.2c", "000.1.4")
@pytest.mark.parametrize(
    ("reads", "expected"),
    [
        (16, [0, 1, 2, 3] * 2),
        (2, [0, 1] * 4),
        (1, [0] * 8),
        (3, [0, 1, 2, 0, 1, 2, 0, 1]),
        (0, [0, 1, 2, 3] * 2),  # Y is beyond it from the first row on; only landing on it wraps
    ],
)
def test_reads_per_plane_says_where_y_wraps(reads: int, expected: list[int]) -> None:
    """With 1, software's default, every row uses the first entry of the map.

    Words 29 to 31 have the layout of word 28 and no effect.
    """
    bench = masked(reads=reads)
    for word in (29, 30, 31):
        bench.wrcfg(word, 0xFFFFFFFF)
    row_map(bench, 1)
    assert masks_of_next(bench) + masks_of_next(bench) == [MASKS[i] for i in expected]


@pytest.mark.rule("002.9.2d")
@pytest.mark.parametrize("closing", [{"Last": 1}, {"Flush": 1}])
def test_the_position_returns_to_zero_with_last_and_flush(closing: dict[str, int]) -> None:
    bench = masked()
    row_map(bench, 1)
    bench.send(ReadIntfSel=3)
    bench.send(ReadIntfSel=1, **closing)
    assert masks_of(bench, 4) == list(MASKS)


@pytest.mark.rule("002.9.3")
def test_default_masks_let_everything_pass() -> None:
    """Mask 0xFFFF for section 0 and map 0 of zeros, whatever the other masks."""
    bench = Words()
    for i in (1, 2, 3):
        bench.bits(24 + i, 0, 16, 0)
    bench.bits(24, 0, 25, 0xFFFF)
    bench.wrcfg(20, 0)
    bench.send(Last=1)
    assert bench.rows(4) == [0, 1, 2, 3]


# --- downsampling -----------------------------------------------------------------------------------------------------


@pytest.mark.rule("002.10a", "002.10c", "000.1.1j")
@pytest.mark.parametrize("mask", [0, 0xFFFF, 0x0001, 0x8421, 0xAAAA, 0x00F0])
def test_the_downsample_mask_takes_columns_and_cannot_skip_rows(mask: int) -> None:
    """Word 71 [15:0]; bit n keeps datum n of each 16; 0 keeps all."""
    bench = Words()
    for row in range(4):
        bench.bf16_row(row, [0x4000 + 16 * row + c for c in range(16)])
    bench.bits(71, 0, 16, mask)
    bench.send(Last=1)
    kept = [0x4000 + 16 * row + c for row in range(4) for c in range(16) if mask == 0 or mask >> c & 1]
    assert bench.l1("<u2", len(kept)) == kept
    assert bench.untouched((2 * len(kept) + 15) // 16 * 16)


@pytest.mark.rule("002.10a")
def test_the_mask_rotates_over_the_datums_of_a_pacr_and_starts_anew_with_the_next() -> None:
    """5 datums of 4 interfaces are 20; the second PACR begins at bit 0 again."""
    bench = Words()
    bench.tile["adc"][2, 2, 4] = 4
    mask = 0b1001_0000_0110_0011
    bench.bits(71, 0, 16, mask)
    for closes in (0, 1):
        bench.send(Last=closes)
    one = [ROW[n // 5] for n in range(20) if mask >> n % 16 & 1]
    assert bench.l1("<u2", 2 * len(one)) == one + one
