"""Audit rows 002.11, 002.12, 002.13, 002.14.10, 002.18.2d, 002.18.4: streams, addresses and sums in L1."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from bhemu.errors import MissingSpecification
from bhemu.isa.registers import CONFIG_FIELDS
from tests.audit.pack_words import ROW, STATE_ID, Words, bf16
from tests.tensix.packer_bench import BF16, BFP8, FP8, FP16, FP32, INT8, INT32, L1_BASE

UNIT = L1_BASE // 16


# --- compression ------------------------------------------------------------------------------------------------------


def compressed(rows: int, out_format: int = BF16) -> Words:
    """Two 16-byte units of row starts, one of exponents."""
    bench = Words(BF16, out_format)
    bench.bits(70, 0, 1, 0)
    bench.wrcfg(68, 1 << 16 | 2)
    bench.setc16(37, 1)
    for row in range(rows):
        bench.bf16_row(row, [0] * 16)
    return bench


@pytest.mark.rule("002.11.1c", "002.11.3", "000.1.1f")
@pytest.mark.parametrize("disable", [0, 1])
@pytest.mark.parametrize("override", [0, 1])
def test_word_70_bit_0_alone_disables_compression(disable: int, override: int) -> None:
    """Software always sets it; bit 21, Wormhole's override, has no effect."""
    bench = Words()
    bench.wrcfg(68, 2)
    bench.bits(70, 0, 1, disable)
    bench.bits(70, 21, 1, override)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.rows(1, 0 if disable else 32) == [0]
    if not disable:
        assert bench.l1("<u2", 2) == [0, 16]


@pytest.mark.rule("002.11.2")
def test_the_layout_is_row_starts_exponents_and_groups_of_32_with_their_counts() -> None:
    """Hand-built bytes of three rows. Counts are nibbles, the first in the low half of its byte."""
    bench = compressed(3)
    bench.bf16_row(0, [ROW[0], 0, 0, 0, ROW[1], *[0] * 11])
    bench.bf16_row(1, ROW[:16])
    bench.bf16_row(2, [0] * 15 + [ROW[2]])
    for row in range(3):
        bench.send(ReadIntfSel=1, Last=int(row == 2))
    datums = [ROW[0], ROW[1], 0, *ROW[:16], 0, ROW[2]]
    counts = [3, 10, *[0] * 17, 14, 0]
    assert bench.l1("<u2", 8) == [0, 3, 19, 21, *[0] * 4]
    assert bench.untouched(16)  # the rest of the section
    assert bench.l1("<u2", 32, 32) == datums + [0] * 11
    assert bench.l1("u1", 16, 96) == [10 << 4 | 3, *[0] * 8, 14 << 4, *[0] * 6]
    assert [counts[1] << 4 | counts[0], counts[19] << 4 | counts[18]] == [0xA3, 14 << 4]
    assert bench.untouched(112)


@pytest.mark.rule("002.11.2")
def test_exponents_stand_between_row_starts_and_datums_one_for_16_stored_datums() -> None:
    """17 datums are stored, so that the second exponent is that of the last one alone."""
    bench = compressed(2, BFP8)
    bench.bf16_row(0, bf16([1.0] * 16))
    bench.bf16_row(1, bf16([0.5] + [0] * 15))
    bench.send(ReadIntfSel=1)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1("<u2", 3) == [0, 16, 18]
    assert bench.l1("u1", 16, 32) == [127, 126, *[0] * 14]
    assert bench.l1("u1", 32, 48) == [0x40] * 17 + [0] * 15
    assert bench.l1("u1", 16, 80) == [0] * 8 + [14] + [0] * 7
    assert bench.untouched(96)


@pytest.mark.rule("002.11.4", "000.1.1f")
def test_the_zero_flags_switch_changes_no_byte() -> None:
    """Word 70 bit 2 only keeps flags from being recorded."""
    outputs = []
    for switch in (0, 1):
        bench = compressed(4)
        bench.bits(70, 2, 1, switch)
        for row in range(4):
            bench.send(ReadIntfSel=1, Last=int(row == 3))
        outputs.append((bench.l1("u1", 256), int(bench.tile.pack.all_zero_flags)))
    assert outputs[0][0] == outputs[1][0]
    assert [flags for _, flags in outputs] == [0b1111, 0]


# --- addresses --------------------------------------------------------------------------------------------------------


@pytest.mark.rule("002.12.1a", "002.14.10a", "002.14.10c", "000.1.1c")
@pytest.mark.parametrize("subtract", [0, 1])
def test_one_unit_of_16_bytes_is_added_unless_the_header_is_subtracted(subtract: int) -> None:
    """Word 69 counts 16 bytes, and so does the addition.

    Software writes Sub_l1_tile_header_size (word 70 bit 15) as 0 and the address minus one unit.
    """
    bench = Words()
    bench.bits(70, 15, 1, subtract)
    bench.wrcfg(69, UNIT + 3)
    bench.send(Last=1)
    first = 16 * (4 - subtract)
    assert bench.untouched(0, first)
    assert bench.rows(4, first) == [0, 1, 2, 3]
    assert bench.untouched(first + 128)


@pytest.mark.rule("002.12.1b", "002.12.6b", "002.18.4.5")
@pytest.mark.parametrize("group", [1, 2, 3])
def test_bit_31_and_other_groups_do_not_make_an_address_relative(group: int) -> None:
    """The bit is shifted out; there are no packers 1 to 3."""
    bench = Words()
    bench.wrcfg((0, 96, 116, 144)[group] + 1, 0x123)
    bench.wrcfg(69, 1 << 31 | UNIT - 1)
    bench.send(Last=1)
    assert bench.rows(4) == [0, 1, 2, 3]
    bench.mark()
    bench.wrcfg((0, 96, 116, 144)[group] + 1, 1 << 31 | UNIT + 15)
    bench.wrcfg((0, 96, 116, 144)[group] + 2, BF16 << 8 | BF16 << 4 | 1)
    bench.send(CfgContext=group, Last=1)
    assert bench.untouched(0, 256)
    assert bench.rows(4, 256) == [0, 1, 2, 3]


@pytest.mark.rule("002.12.1c", "002.12.1d")
@pytest.mark.parametrize("total", [0, 15, 16, 17, 31, 0x7F0])
def test_counters_move_the_output_by_bytes_in_steps_of_16(total: int) -> None:
    """base1 (word 17) plus the channel-1 sum is cut to 16 bytes, not to 256."""
    bench = Words()
    bench.wrcfg(17, total - total // 2)
    bench.wrcfg(14, 1 << 16)
    bench.tile["adc"][2, 2, 5] = total // 2
    bench.send(Last=1)
    start = total // 16 * 16
    assert bench.untouched(0, start)
    assert bench.rows(4, start) == [0, 1, 2, 3]


@pytest.mark.rule("002.12.1c", "000.1.6a")
def test_each_output_counter_has_its_stride() -> None:
    """Y word 14 [31:16], Z word 15 [15:0], W word 15 [31:16]."""
    for place, word, lsb in ((5, 14, 16), (6, 15, 0), (7, 15, 16)):
        bench = Words()
        bench.bits(word, lsb, 16, 0x210)
        bench.tile["adc"][2, 2, place] = 3
        bench.send(Last=1)
        assert bench.untouched(0, 0x630)
        assert bench.rows(4, 0x630) == [0, 1, 2, 3]


@pytest.mark.rule("002.12.2", "000.1.1f")
@pytest.mark.parametrize("enable", [0, 1])
def test_the_offset_of_tdma_risc_is_added_when_asked_for(enable: int) -> None:
    """Word 70 bit 1; 16 bits of 16-byte units."""
    bench = Words()
    bench.tile.pack.l1_dest_addr_offset = 5
    bench.bits(70, 1, 1, enable)
    bench.send(Last=1)
    assert bench.rows(4, 80 * enable) == [0, 1, 2, 3]
    assert bench.untouched(0, 80 * enable)


@pytest.mark.rule("002.12.3")
@pytest.mark.parametrize(("first", "written"), [(20, 20), (21, 21), (22, 2), (30, 10)])
def test_the_output_wraps_beyond_twice_the_limit_plus_1_by_twice_the_size(first: int, written: int) -> None:
    """Words 100 and 101; a limit and a size of 0 wrap nothing."""
    bench = Words()
    bench.wrcfg(100, UNIT // 2 + 10)
    bench.wrcfg(101, 10)
    bench.wrcfg(69, UNIT + first - 1)
    bench.send(Last=1)
    assert bench.rows(4, 16 * written) == [0, 1, 2, 3]
    bench.mark()
    bench.wrcfg(100, 0)
    bench.wrcfg(101, 0)
    bench.send(Last=1)
    assert bench.rows(4, 16 * first) == [0, 1, 2, 3]


@pytest.mark.rule("002.12.4a", "002.18.4.1", "002.18.4.2", "002.18.4.3")
@pytest.mark.parametrize("closing", [{"Last": 1}, {"Flush": 1}])
def test_streams_take_an_address_only_when_they_need_one(closing: dict[str, int]) -> None:
    """After reset, Last and Flush; between PACRs nothing in the registers moves them."""
    bench = Words(BF16, BFP8)
    bench.wrcfg(68, 1 << 16)
    bench.send(ReadIntfSel=1)
    bench.wrcfg(69, UNIT + 63)
    bench.wrcfg(17, 0x400)
    bench.tile["adc"][2, 2, 5] = 1
    bench.bf16_row(0, bf16([2.0] * 16))
    bench.send(ReadIntfSel=1, **closing)
    own = "Last" in closing
    assert bench.l1("u1", 16) == [127, 128 if own else 0, *[0] * 14]
    assert bench.l1("u1", 16, 16) == [0x40] * 16
    assert bench.untouched(32) is not own
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1("u1", 1, 64 * 16 + 0x400) == [128]


@pytest.mark.rule("002.12.4a")
def test_new_addresses_begin_with_row_starts_then_exponents_then_datums() -> None:
    """Each section moves the next stream by its size in 16-byte units."""
    bench = compressed(0, BFP8)
    bench.wrcfg(68, 3 << 16 | 2)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1("<u2", 2) == [0, 16]
    assert bench.l1("u1", 1, 32) == [127]
    assert bench.l1("u1", 16, 80) == [0x40] * 16
    assert bench.untouched(48, 32)


@pytest.mark.rule("002.12.4b", "002.18.4.3")
@pytest.mark.parametrize(("in_format", "out_format", "read_32b"), [(FP16, FP8, 0), (INT8, INT8, 1)])
@pytest.mark.parametrize("section", [0, 2])
def test_fp8_and_int8_reserve_the_section_but_write_no_exponents(
    in_format: int, out_format: int, read_32b: int, section: int
) -> None:
    """002.12.4b, 002.18.4.3: software makes the section empty for them."""
    bench = Words(in_format, out_format, read_32b=read_32b)
    bench.wrcfg(68, section << 16)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.untouched(0, 16 * section)
    assert not bench.untouched(16 * section)
    assert bench.untouched(16 * section + 16)


@pytest.mark.rule("002.12.5", "002.18.2d", "002.18.4.1")
@pytest.mark.parametrize("count", range(1, 17))
def test_output_is_completed_with_zeros_to_16_bytes(count: int) -> None:
    """002.12.5, 002.18.2d, 002.18.4.1: one set of streams, padded by Last or Flush."""
    for closing in ({"Last": 1}, {}):
        bench = Words()
        bench.tile["adc"][2, 2, 4] = count - 1
        bench.send(ReadIntfSel=1, **closing)
        if not closing:
            bench.send(Flush=1)
        padded = (count + 7) // 8 * 8
        assert bench.l1("<u2", padded) == [ROW[0]] * count + [0] * (padded - count)
        assert bench.untouched(2 * padded)


@pytest.mark.rule("002.12.5")
def test_exponents_are_completed_with_zeros_too() -> None:
    bench = Words(BF16, BFP8)
    bench.wrcfg(68, 2 << 16)
    bench.send(Last=1)
    assert bench.l1("u1", 16) == [v >> 7 for v in ROW[:4]] + [0] * 12
    assert bench.untouched(16)


@pytest.mark.rule("002.14.10b", "000.1.1g")
def test_the_added_header_is_no_bytes_but_a_unit_of_tile_size() -> None:
    """Word 70 bit 22."""
    for header in (0, 1):
        bench = Words()
        bench.bits(70, 22, 1, header)
        bench.send(Last=1)
        assert bench.rows(4) == [0, 1, 2, 3]
        assert bench.untouched(128)
        assert bench.tile.pack.acc_tile_size.tolist() == [0, 0, 8 + header]


@pytest.mark.rule("000.0a")
def test_packing_in_the_other_bank_uses_its_words() -> None:
    """Two banks of 56 * 16 bytes, 224 words, each with an address of its own."""
    bench = Words()
    assert bench.tile["config"].shape == (2, 56 * 16 // 4)
    bench.tile["config"][1] = bench.tile["config"][0]
    bench.setc16(STATE_ID, 1)
    bench.wrcfg(69, UNIT + 7)
    bench.send(Last=1)
    assert bench.untouched(0, 128)
    assert bench.rows(4, 128) == [0, 1, 2, 3]
    bench.setc16(STATE_ID, 0)
    bench.send(Last=1)
    assert bench.rows(4) == [0, 1, 2, 3]
    position = CONFIG_FIELDS["THCON_SEC0_REG1_L1_Dest_addr"]
    assert (position.word, position.width) == (69, 32)


# --- L1 accumulation --------------------------------------------------------------------------------------------------

SUMS = [(1.0, 2.0), (1.5, -1.5), (-3.0, 0.5), (0.0, 5.0), (100.0, 0.5), (7.0, -8.0), (0.25, 0.25), (-1.0, -1.0)]


@pytest.mark.rule("002.13a", "002.13d", "000.1.1i")
@pytest.mark.parametrize(("code", "dtype"), [(FP32, "<u4"), (BF16, "<u2"), (FP16, "<u2")])
@pytest.mark.parametrize("zero_flags_off", [0, 1])
def test_the_packer_adds_to_what_l1_holds(code: int, dtype: str, zero_flags_off: int) -> None:
    """Word 71 bit 19; bit 2 of word 70 plays no part."""

    def patterns(values: list[float]) -> list[int]:
        if code == FP16:
            return [int(v) for v in np.array(values, np.float16).view(np.uint16)]
        return [int(v) >> (16 if code == BF16 else 0) for v in np.array(values, np.float32).view(np.uint32)]

    old, new = ([a for a, _ in SUMS] * 2, [b for _, b in SUMS] * 2)
    bench = Words(code, code, read_32b=int(code == FP32))
    {FP32: bench.word_row, BF16: bench.bf16_row, FP16: bench.fp16_row}[code](0, patterns(new))
    bench.bits(71, 19, 1, 1)
    bench.bits(70, 2, 1, zero_flags_off)
    size = np.dtype(dtype).itemsize
    bench.tile["l1"][L1_BASE : L1_BASE + 16 * size].view(dtype)[:] = patterns(old)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1(dtype, 16) == patterns([float(Fraction(a) + Fraction(b)) for a, b in zip(old, new, strict=True)])
    bench.bits(71, 19, 1, 0)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1(dtype, 16) == patterns(new)


@pytest.mark.rule("002.13c")
@pytest.mark.parametrize(
    ("code", "old", "new", "total"),
    [
        (FP32, 0x3F800000, 0x33800000, 0x3F800000),  # a tie goes to even
        (FP32, 0x3F800001, 0x33800000, 0x3F800002),
        (FP32, 0x00000001, 0x00800000, 0x00800000),  # denormals are zeros
        (FP32, 0x80800000, 0x00800001, 0x00000000),  # and so is a sum of 2^-149
        (FP32, 0xFF800000, 0x7F800000, 0x7FC00000),
        (FP32, 0xFFFFFFFF, 0x3F800000, 0x7FC00000),
        (BF16, 0x3F80, 0x3B80, 0x3F80),  # 1 + 2^-8: a tie
        (BF16, 0x3F81, 0x3B80, 0x3F82),
        (BF16, 0x0001, 0x8001, 0x0000),
        (BF16, 0x7F7F, 0x7F7F, 0x7F80),
        (BF16, 0x7F80, 0xFF80, 0x7FC0),
        (FP16, 0x3C00, 0x1000, 0x3C00),  # 1 + 2^-11: a tie
        (FP16, 0x3C01, 0x1000, 0x3C02),
        (FP16, 0x7BFF, 0x7BFF, 0x7FFF),  # 2 * 65504 = 131008: exponent 31 is ordinary, this is its last value
        (FP16, 0x7FFF, 0x7FFF, 0x7FFF),  # saturates
        (FP16, 0x7800, 0xF800, 0x7FFF),  # an exact zero of an old exponent of 30
        (FP16, 0x7400, 0xF400, 0x0000),
        (FP16, 0x0401, 0x8400, 0x7FFF),  # below the smallest exponent
        (FP16, 0x03FF, 0x0400, 0x0400),
    ],
)
def test_corners_of_the_sums(code: int, old: int, new: int, total: int) -> None:
    """The three rules of I.9, L1 accumulation. Raw reads bring the specials of 16-bit formats this far."""
    bench = Words(code, code, read_32b=int(code == FP32))
    bench.bits(18, 2, 1, 1)
    {FP32: bench.word_row, BF16: bench.bf16_row, FP16: bench.fp16_row}[code](0, [new] * 16)
    bench.bits(71, 19, 1, 1)
    dtype = "<u4" if code == FP32 else "<u2"
    bench.tile["l1"][L1_BASE : L1_BASE + 16 * np.dtype(dtype).itemsize].view(dtype)[:] = old
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1(dtype, 16) == [total] * 16


@pytest.mark.rule("002.13c")
@pytest.mark.parametrize(("in_format", "out_format"), [(INT32, INT32), (INT8, INT8), (BF16, BFP8), (FP16, FP8)])
def test_other_formats_are_not_summed(in_format: int, out_format: int) -> None:
    """The reference knows FP32, FP16 and BF16."""
    bench = Words(in_format, out_format, read_32b=int(in_format in (INT32, INT8)))
    bench.bits(71, 19, 1, 1)
    with pytest.raises(MissingSpecification, match="Pack_L1_Acc"):
        bench.send(Last=1)
