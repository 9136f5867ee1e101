"""Audit rows 002.3, 000.1.6, 000.1.7, 000.5c: which datums of Dst, or of L1, a PACR reads."""

from __future__ import annotations

import numpy as np
import pytest

from bhemu.errors import MissingSpecification, UndefinedBehavior
from bhemu.isa.registers import CONFIG_FIELDS
from tests.audit.pack_words import ROW, Words
from tests.tensix.packer_bench import BF16, BFP4, BFP8, BFP8A, FP8, FP16, FP32, INT8, INT16, INT32, TF32

BASE, XY, ZW = 16, 12, 13
"""Words of PCK0_ADDR_BASE_REG_0 and of the strides of channel 0."""
OFFSETS = (180, 181, 182, 183)


def numbered(in_format: int, out_format: int) -> Words:
    """A bench whose 16-bit Dst cells hold row * 16 + column."""
    bench = Words(in_format, out_format)
    bench.tile["dst"][...] = np.arange(0x4000).reshape(1024, 16)
    return bench


def numbered_32() -> Words:
    """A bench whose 32-bit Dst datums of rows 0 to 511 hold row * 16 + column (their upper halves are 0)."""
    bench = Words(INT32, INT32, read_32b=1)
    for row in range(512):
        physical = (row & 0x1F8) << 1 | row & 7
        bench.tile["dst"][physical] = 0
        bench.tile["dst"][physical + 8] = 16 * row + np.arange(16)
    return bench


def one_datum(bench: Words, counters: tuple[int, ...], dtype: str) -> int:
    """Pack one datum of one interface with the given X, Y, Z, W."""
    bench.tile["adc"][2, 2, :4] = counters
    bench.tile["adc"][2, 2, 4] = counters[0]
    bench.send(ReadIntfSel=1, Last=1)
    return int(bench.l1(dtype, 1)[0])


@pytest.mark.rule("002.3.1b", "002.3.2b", "000.1.6a", "000.1.6b")
def test_the_address_is_a_sum_in_bytes_of_base_and_four_counters_of_which_x_has_a_4_bit_stride() -> None:
    """Random settings against the formula of P4, 16-bit datums."""
    rng = np.random.default_rng(7)
    bench = numbered(INT16, INT16)
    for _ in range(300):
        x, y, z, w = (int(v) for v in rng.integers(0, (40, 64, 16, 16)))
        base, offset = int(rng.integers(0, 0x4000)) * 2, int(rng.integers(0, 1024))
        x_stride, y_stride, z_stride, w_stride = (int(v) * 2 for v in rng.integers(0, (0x8000, 0x40, 0x400, 0x400)))
        bench.wrcfg(BASE, base)
        bench.wrcfg(XY, y_stride << 16 | x_stride)
        bench.wrcfg(ZW, w_stride << 16 | z_stride)
        bench.wrcfg(OFFSETS[0], offset)
        address = base + x * (x_stride % 16) + y * y_stride + z * z_stride + w * w_stride
        datum = address // 2 // 8 * 8 + x % 8 + 16 * offset
        assert one_datum(bench, (x, y, z, w), "<u2") == datum % 0x4000


@pytest.mark.rule("002.3.2a", "002.3.2b")
@pytest.mark.parametrize("x", [0, 1, 3, 4, 5, 9, 15])
def test_x_counts_modulo_4_for_words_and_modulo_16_for_bytes(x: int) -> None:
    """Xstride 4 or 1 makes X the column; with Xstride 0 only X modulo 4 or 16 is left."""
    wide = numbered_32()
    wide.wrcfg(XY, 64 << 16 | 4)
    assert one_datum(wide, (x, 3, 0, 0), "<u4") == 48 + x
    wide.wrcfg(XY, 64 << 16)
    assert one_datum(wide, (x, 3, 0, 0), "<u4") == 48 + x % 4
    narrow = Words(INT8, INT8, read_32b=1)
    narrow.word_row(3, range(16))
    for stride in (0, 1):
        narrow.wrcfg(XY, 16 << 16 | stride)
        assert one_datum(narrow, (x, 3, 0, 0), "u1") == x


SIZES = {FP32: 4, TF32: 4, INT32: 4, FP16: 2, BF16: 2, INT16: 2, BFP8A: 1, BFP8: 1, FP8: 1, INT8: 1}
READS = {INT8: 1, INT32: 1, FP32: 1, TF32: 1}
"""Formats that are read from the 32-bit view here."""


@pytest.mark.rule("002.3.2a", "002.3.5a")
@pytest.mark.parametrize("in_format", SIZES)
def test_bytes_per_datum_come_from_in_data_format(in_format: int) -> None:
    """Strides are bytes: y 16, z 256, w 1024 datums, whatever the view of Dst."""
    size = SIZES[in_format]
    out_format = {BFP8A: BF16, BFP8: BF16, FP8: FP16}.get(in_format, in_format)
    bench = Words(in_format, out_format, read_32b=READS.get(in_format, 0))
    bench.bits(18, 2, 1, int(in_format == FP8))
    bench.wrcfg(XY, 16 * size << 16)
    bench.wrcfg(ZW, 1024 * size << 16 | 256 * size)
    row = 64 * 3 + 16 * 2 + 5
    physical = (row & 0x1F8) << 1 | row & 7 if READS.get(in_format) else row
    bench.tile["dst"][...] = 0x017F  # exponent 127 or 31
    bench.tile["dst_valid"][...] = 0  # all other rows read as zero
    bench.tile["dst_valid"][physical] = 1
    for y, is_there in ((4, False), (5, True), (6, False)):
        bench.tile["adc"][2, 2, 1:4] = (y, 2, 3)
        bench.send(ReadIntfSel=1, Last=1)
        assert any(bench.l1("u1", 16)) is is_there


@pytest.mark.rule("002.3.1c", "002.18.4.6", "000.5c")
@pytest.mark.parametrize("count", [1, 5, 8, 16])
def test_the_number_of_datums_is_x_end_minus_x_start_plus_1_for_each_interface(count: int) -> None:
    """0 with Flush."""
    bench = Words()
    bench.tile["adc"][2, 2, 4] = count - 1
    bench.send(ReadIntfSel=3, Last=1)
    padded = (2 * count + 7) // 8 * 8
    assert bench.l1("<u2", padded) == [ROW[0]] * count + [ROW[1]] * count + [0] * (padded - 2 * count)
    assert bench.untouched(2 * padded)
    bench.mark()
    bench.send(ReadIntfSel=3, Flush=1)
    assert bench.untouched(0)


@pytest.mark.rule("002.3.1d")
def test_counters_move_after_the_address_is_taken() -> None:
    """The first PACR reads where the counters were."""
    bench = Words()
    bench.setc16(37, 4)
    for first in (0, 4, 8):
        assert bench.counter(0, "Y") == first
        bench.send()
    assert bench.rows(12) == list(range(12))
    assert bench.counter(0, "Y") == 12


@pytest.mark.rule("002.3.2c", "000.1.7")
def test_one_dst_offset_serves_all_interfaces() -> None:
    """Word 180; 181 to 183 are kept and do nothing."""
    bench = Words()
    for word, value in zip(OFFSETS, (16, 32, 48, 8), strict=True):
        bench.wrcfg(word, value)
    bench.send(Last=1)
    assert bench.rows(4) == [16, 17, 18, 19]
    assert [int(bench.tile["config"][0, word]) for word in OFFSETS] == [16, 32, 48, 8]


@pytest.mark.rule("000.1.7")
def test_dest_target_is_a_12_bit_offset_and_a_6_bit_z_offset() -> None:
    """Bits [11:0] and [17:12]; Z reaches the edge mask's choice and not the address."""
    bench = Words()
    bench.wrcfg(180, 3 << 12 | 4)
    bench.wrcfg(19, 1 << 8)
    bench.wrcfg(36, 1 << 6)  # face map 0: Z 3 takes row map 1
    bench.wrcfg(21, 0b01)  # row map 1: Y 0 takes mask 1
    bench.bits(25, 0, 16, 0)
    bench.send(Last=1)
    assert bench.l1("<u2", 16) == [0] * 16
    assert bench.l1("<u2", 32, 32)[::16] == [ROW[5], ROW[6]]


@pytest.mark.rule("002.3.2d")
def test_the_wide_view_has_512_rows_of_16() -> None:
    """Datums 0 to 8191 are 512 rows, each with a place of its own."""
    bench = numbered_32()
    bench.setc16(37, 4)
    for index in range(128):
        bench.send(Last=int(index == 127))
    assert bench.l1("<u4", 8192) == list(range(8192))


@pytest.mark.rule("002.3.2e", "000.5c")
def test_fetching_continues_only_inside_a_row() -> None:
    """Interfaces add rows; nothing runs on from one row into the next."""
    bench = numbered(INT16, INT16)
    bench.wrcfg(XY, 32 << 16 | 2)
    bench.tile["adc"][2, 2, 0] = 9
    bench.tile["adc"][2, 2, 4] = 13
    bench.send(ReadIntfSel=3, Last=1)
    assert bench.l1("<u2", 10) == [9, 10, 11, 12, 13, 25, 26, 27, 28, 29]
    bench.tile["adc"][2, 2, 4] = 16
    with pytest.raises(UndefinedBehavior, match="end of the Dst row"):
        bench.send(ReadIntfSel=3, Last=1)


@pytest.mark.rule("002.3.3a", "000.1.2a")
def test_bits_0_1_and_3_of_word_18() -> None:
    """Read_32b_data, Read_unsigned, Round_10b_mant."""
    bench = Words(FP32, FP32)
    bench.word_row(0, [0x3F801FFF] * 16)
    bench.wrcfg(18, 1 << 0)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1("<u4", 1) == [0x3F801FFF]
    bench.wrcfg(18, 1 << 0 | 1 << 3)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1("<u4", 1) == [0x3F802000]
    bench.wrcfg(18, 0)
    with pytest.raises(UndefinedBehavior):  # 16-bit cells are not FP32
        bench.send(ReadIntfSel=1, Last=1)
    integers = Words(INT8, INT8)
    integers.word_row(0, [200, 0x80000005] * 8)
    for control, expected in ((1, [127, 0x85]), (1 | 1 << 1, [200, 0])):
        integers.wrcfg(18, control)
        integers.send(ReadIntfSel=1, Last=1)
        assert integers.l1("u1", 2) == expected


@pytest.mark.rule("002.3.3b", "000.1.2b")
@pytest.mark.parametrize(
    ("in_format", "cell_bits", "rounded", "raw"),
    [
        (BF16, 0x8001, 0x0000, 0x8001),  # denormal
        (BF16, 0xFFC1, 0xFF80, 0xFFC1),  # NaN
        (FP16, 0x83FF, 0x0000, 0x83FF),
    ],
)
def test_bit_2_is_read_raw(in_format: int, cell_bits: int, rounded: int, raw: int) -> None:
    """No rounding and no flush of denormals; it is not an integer switch."""
    bench = Words(in_format, in_format)
    (bench.bf16_row if in_format == BF16 else bench.fp16_row)(0, [cell_bits] * 16)
    for control, expected in ((0, rounded), (1 << 2, raw)):
        bench.wrcfg(18, control)
        bench.send(ReadIntfSel=1, Last=1)
        assert bench.l1("<u2", 16) == [expected] * 16


@pytest.mark.rule("002.3.3b", "000.1.2b", "002.5.2c")
def test_read_raw_of_32_bit_dst_truncates_and_takes_the_low_bits_of_integers() -> None:
    for in_format, word, expected in ((BF16, 0xBF80FFFF, 0xBF80), (INT8, 0x80000185, 0x85)):
        bench = Words(in_format, in_format, read_32b=1)
        bench.bits(18, 2, 1, 1)
        bench.word_row(0, [word] * 16)
        bench.send(ReadIntfSel=1, Last=1)
        assert bench.l1("<u2" if in_format == BF16 else "u1", 16) == [expected] * 16


@pytest.mark.rule("002.3.3d", "002.3.3c", "000.1.2c")
@pytest.mark.parametrize(
    ("source", "target", "wide_dst", "control", "pattern", "expected"),
    [
        (FP32, FP32, 1, 0b0001, 0x3F801FFF, 0x3F801FFF),
        (INT32, INT32, 0, 0b0001, 0x80000007, 0x80000007),
        (BF16, BF16, 1, 0b0001, 0x3F808000, 0x3F81),
        (BF16, BF16, 0, 0b0000, 0x3F81, 0x3F81),
        (FP16, FP16, 1, 0b1001, 0x3F801000, 0x3C01),  # FP32 in Dst, rounded to ten bits
        (BF16, FP8, 0, 0b1000, 0x3F90, 0x39),  # E4M3: 1.125
        (FP16, FP8, 0, 0b0000, 0x3C80, 0x39),
        (FP32, FP8, 1, 0b1001, 0x3F8FF000, 0x39),  # rounded to ten bits: 1.125
        (INT8, 30, 1, 0b0011, 200, 200),  # UInt8
        (INT8, INT8, 1, 0b0001, 200, 127),
    ],
)
def test_formulas_of_llk_choose_the_conversion_that_they_mean(
    source: int, target: int, wide_dst: int, control: int, pattern: int, expected: int
) -> None:
    """Word 18 by the formulas of set_packer_config, and what the packer then makes."""
    is_a_format = source in (FP16, BFP8A, FP8)
    formula = int(source in (FP32, INT32) or wide_dst)
    formula |= 2 * (target == 30)
    formula |= 4 * int(not (wide_dst or source in (FP32, INT32)) and source in (INT8, 30))
    formula |= 8 * int((wide_dst and source == FP16) or (not is_a_format and target == FP8))
    assert formula == control
    bench = Words(source, target & 15)
    bench.wrcfg(18, control)
    bench.bits(71, 23, 1, int(target == FP8))
    if control & 1:
        bench.word_row(0, [pattern] * 16)
    elif source == FP16:
        bench.fp16_row(0, [pattern] * 16)
    else:
        bench.bf16_row(0, [pattern] * 16)
    bench.send(ReadIntfSel=1, Last=1)
    dtype = ("<u4", "<u2", "u1", "u1")[target & 3]
    assert bench.l1(dtype, 16) == [expected] * 16


@pytest.mark.rule("002.3.4a", "000.1.1d")
@pytest.mark.parametrize(("field", "byte"), [(1, 0x40100), (2, 0x80100), (5, 0x140100)])
def test_l1_source_addr_stands_above_18_bits_when_the_open_choice_is_taken(field: int, byte: int) -> None:
    """Word 70 bit 16 chooses L1 instead of Dst, refused until open choices are accepted."""
    bench = Words()
    bench.bits(70, 16, 1, 1)
    bench.bits(70, 24, 8, field)
    bench.wrcfg(BASE, 0x100)
    bench.tile["l1"][byte : byte + 32].view("<u2")[:] = np.arange(0x8001, 0x8011)
    with pytest.raises(MissingSpecification, match="L1_source_addr"):
        bench.send(ReadIntfSel=1, Last=1)
    bench.tile.allow_open = 1
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1("<u2", 16) == list(range(0x8001, 0x8011))  # denormals stay: there is no early conversion
    bench.bits(70, 16, 1, 0)
    bench.wrcfg(BASE, 0)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.rows(1) == [0]


@pytest.mark.rule("002.3.4b")
def test_bfp_from_l1_has_exponent_zero() -> None:
    """Bytes are sign and magnitude of values with exponent 0."""
    bench = Words(BFP8, FP32)
    bench.bits(70, 16, 1, 1)
    bench.tile.allow_open = 1
    bench.tile["l1"][:16] = [0x81] * 8 + [0x7F] * 8
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1("<u4", 16) == [0x80010000] * 8 + [0x007F0000] * 8


@pytest.mark.rule("002.3.5b")
def test_with_x_stride_0_x_is_the_column_inside_its_group_of_8() -> None:
    """Software writes Xstride 0; X 9 of 16-bit datums is then column 1."""
    bench = numbered(INT16, INT16)
    bench.wrcfg(XY, 32 << 16)
    assert one_datum(bench, (5, 2, 0, 0), "<u2") == 37
    assert one_datum(bench, (9, 2, 0, 0), "<u2") == 33


@pytest.mark.rule("002.3.5c")
def test_untilize_doubles_z_and_sets_the_output_strides_to_0() -> None:
    """With two interfaces a Z step of 1 skips two faces; channel-1 counters do not move the output."""
    bench = Words()
    bench.wrcfg(XY, 32 << 16)
    bench.wrcfg(ZW, 2048 << 16 | 1024)
    bench.wrcfg(14, 0)
    bench.wrcfg(15, 0)
    bench.setc16(37, 1 << 12 | 1 << 14)  # Z of both channels
    for first in (0, 32):
        bench.send(ReadIntfSel=3, Last=1)
        assert bench.rows(2) == [first, first + 1]
    assert (bench.counter(0, "Z"), bench.counter(1, "Z")) == (2, 2)


@pytest.mark.rule("000.1.6a", "000.1.6b")
def test_strides_stand_in_words_12_to_15_and_bases_have_18_bits() -> None:
    """X and Y in 12 and 14, Z and W in 13 and 15; bases in 16 and 17."""
    bench = numbered(INT16, INT16)
    bench.wrcfg(BASE, 0x3FFFE)  # beyond the last datum: the row number is cut
    bench.wrcfg(XY, 0)
    assert one_datum(bench, (0, 0, 0, 0), "<u2") == (0x3FFFE // 2 & ~7) % 0x4000
    for channel in (0, 1):
        base = CONFIG_FIELDS[f"PCK0_ADDR_BASE_REG_{channel}_Base"]
        assert (base.word, base.lsb, base.width) == (16 + channel, 0, 18)


@pytest.mark.rule("002.3.2a")
def test_four_bit_formats_are_no_intermediate() -> None:
    """1 byte a datum is for 8-bit formats; nothing converts Dst to BFP4."""
    with pytest.raises(UndefinedBehavior, match="no conversion to format 7"):
        Words(BFP4, BFP4).send(Last=1)
