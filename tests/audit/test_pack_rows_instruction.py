"""Audit rows 002.0, 002.1, 002.2, 002.15, 002.18.1, 002.18.2a: the word of PACR, and the one packer that it drives."""

from __future__ import annotations

import pytest

from bhemu.errors import UndefinedBehavior
from bhemu.isa.instructions import decode
from bhemu.isa.registers import CONFIG_FIELDS
from tests.audit.pack_words import GROUP, PACR_FIELDS, ROW, STATE_ID, Words, pacr_word
from tests.tensix.packer_bench import BF16, BFP8, FP16, FP32, L1_BASE


@pytest.mark.rule("002.0", "002.2a", "002.2b", "002.18.4.7")
@pytest.mark.parametrize("name", PACR_FIELDS)
def test_each_field_stands_at_its_bits(name: str) -> None:
    """The seed's list of fields, not its table, and Concat of one bit."""
    top = (1 << PACR_FIELDS[name][1]) - 1
    decoded = decode(pacr_word(**{name: top}))
    assert decoded.instruction.mnemonic == "PACR"
    assert {field: value for field, value in decoded.operands.items() if value} == {name: top}
    assert list(decoded.operands) == list(PACR_FIELDS)  # the order of TT_OP_PACR's arguments (002.18.4.7)


@pytest.mark.rule("002.2a", "002.2b", "002.2i")
def test_bit_0_is_last_and_bit_23_belongs_to_no_field() -> None:
    """The table has Last at 23, where it would close the tile."""
    bench = Words()
    with pytest.raises(UndefinedBehavior, match="0x00800000"):
        bench.word(pacr_word() | 1 << 23)
    bench.word(pacr_word())
    assert bench.tile.pack.open
    bench.word(pacr_word() | 1)
    assert not bench.tile.pack.open


@pytest.mark.rule("002.2a", "002.2i")
def test_bit_1_is_flush_and_bit_20_pads_to_the_end_of_the_output() -> None:
    """The table has Flush at 20."""
    bench = Words()
    bench.word(pacr_word(ReadIntfSel=1) | 1 << 20 | 1 << 18)  # RowPadZero 5
    assert bench.tile.pack.open
    assert bench.rows(1) == [0]
    bench.word(pacr_word() | 1 << 1)
    assert not bench.tile.pack.open
    assert bench.untouched(32)


@pytest.mark.rule("002.2i")
def test_flush_forces_zero_datums_and_last_packs_its_own() -> None:
    """Flush leaves no datum of its own PACR behind; Last does."""
    for fields, packed in (({"Flush": 1}, 0), ({"Flush": 1, "Last": 1}, 0), ({"Last": 1}, 4)):
        bench = Words()
        bench.send(**fields)
        assert bench.untouched(32 * packed)
        assert bench.rows(packed) == list(range(packed))
        assert not bench.tile.pack.open


@pytest.mark.rule("002.2c")
def test_concat_is_bit_4_only() -> None:
    """Bits 6:5 belong to no field; bit 4 lets the next PACR continue the compression row."""
    for bits, ends in ((0, [0, 16, 32]), (1 << 4, [0, 32, 0])):
        bench = Words()
        bench.packer(Disable_zero_compress=0, Row_start_section_size=1)
        bench.word(pacr_word(ReadIntfSel=1) | bits)
        bench.word(pacr_word(ReadIntfSel=1, Last=1))
        assert bench.l1("<u2", 3) == ends
    for bit in (5, 6):
        with pytest.raises(UndefinedBehavior, match="belong to no operand"):
            bench.word(pacr_word() | 1 << bit)


def two_groups(bench: Words, bank: int, first: int) -> None:
    """Contexts 0 and 1 of a bank write to `first` and 0x100 bytes further."""
    for context in (0, 1):
        bench.bits(GROUP[context] + 1, 0, 32, (L1_BASE + first + 0x100 * context) // 16 - 1, bank)
        bench.bits(GROUP[context] + 2, 0, 12, BF16 << 8 | BF16 << 4 | 1, bank)


@pytest.mark.rule("002.2d", "002.15b")
@pytest.mark.parametrize("context", [0, 1])
@pytest.mark.parametrize("bank", [0, 1])
def test_the_bank_comes_from_the_state_id_and_the_group_from_cfg_context(bank: int, context: int) -> None:
    """Two independent selections."""
    bench = Words()
    two_groups(bench, 0, 0)
    bench.tile["config"][1] = bench.tile["config"][0]
    bench.setc16(STATE_ID, 1)
    two_groups(bench, 1, 0x1000)
    bench.setc16(STATE_ID, bank)
    bench.send(CfgContext=context, Last=1)
    for place in (0, 0x100, 0x1000, 0x1100):
        if place == 0x1000 * bank + 0x100 * context:
            assert bench.rows(4, place) == [0, 1, 2, 3]
        else:
            assert bench.untouched(place)


@pytest.mark.rule("002.15a", "002.6.1b", "000.1.1k")
@pytest.mark.parametrize("context", range(4))
def test_the_four_groups_are_contexts_of_one_packer(context: int) -> None:
    """Words 68, 96, 116, 144; a PACR uses one of them for all its interfaces."""
    bench = Words()
    for other, first in enumerate(GROUP):
        bench.bits(first + 1, 0, 32, (L1_BASE + 0x400 * other) // 16 - 1)
        bench.bits(first + 2, 0, 12, BF16 << 8 | (FP32 if other % 2 else BF16) << 4 | 1)
    bench.send(CfgContext=context, ReadIntfSel=15, Last=1)
    for other in range(4):
        place = 0x400 * other
        if other != context:
            assert bench.untouched(place, 0x400)
        elif other % 2:
            assert bench.l1("<u4", 64, place)[::16] == [ROW[r] << 16 for r in range(4)]
            assert bench.untouched(place + 256)
        else:
            assert bench.rows(4, place) == [0, 1, 2, 3]
            assert bench.untouched(place + 128)


@pytest.mark.rule("002.1a", "002.1b", "002.2k", "002.2l", "002.17.2", "002.18.1", "002.18.2a", "000.5b")
@pytest.mark.parametrize(
    ("mask", "rows"),
    [(0, [0, 1, 2, 3]), (1, [0]), (3, [0, 1]), (7, [0, 1, 2]), (15, [0, 1, 2, 3]), (5, [0, 2]), (10, [1, 3])],
)
def test_interfaces_read_adjacent_rows_into_one_stream(mask: int, rows: list[int]) -> None:
    """Rows, not faces; 0 means all four."""
    bench = Words()
    bench.tile["adc"][2, 2, 1] = 8
    bench.send(ReadIntfSel=mask, Last=1)
    assert bench.rows(len(rows)) == [8 + r for r in rows]
    assert bench.untouched(32 * len(rows))
    assert not bench.tile.pack.open


@pytest.mark.rule("002.2e")
@pytest.mark.parametrize(
    ("mode", "fields", "row", "output"),
    [
        (0, {"Last": 0}, 5, 10),
        (1, {"Last": 0}, 16, 32),
        (2, {"Concat": 0}, 16, 32),
        (2, {"Concat": 1}, 5, 10),
        (3, {"Last": 0}, 5, 10),
        (5, {"Last": 0}, 5, 16),
        (6, {"Concat": 1}, 5, 10),
    ],
)
def test_row_pad_zero_says_when_and_what(mode: int, fields: dict[str, int], row: int, output: int) -> None:
    """[19:18] when (never, always, without Concat, with Last), [20] rows or the whole output."""
    bench = Words()
    bench.tile["adc"][2, 2, 4] = 4
    bench.send(ReadIntfSel=3, RowPadZero=mode, **fields)
    values = bench.l1("<u2", 34)
    assert values[:5] == [ROW[0]] * 5
    assert values[row : row + 5] == [ROW[1]] * 5
    assert values[5:row] == [0] * (row - 5)
    assert values[row + 5 : output] == [0] * (output - row - 5)
    assert values[output:] == [0xEEEE] * (34 - output)


@pytest.mark.rule("002.2f", "002.2g", "002.3.1a", "002.15c")
@pytest.mark.parametrize(
    ("fields", "adc"),
    [
        ({}, 2),
        ({"AddrCntContext": 1}, 2),
        ({"OvrdThreadId": 1}, 0),
        ({"OvrdThreadId": 1, "AddrCntContext": 1}, 1),
        ({"OvrdThreadId": 1, "AddrCntContext": 2}, 2),
        ({"OvrdThreadId": 1, "AddrCntContext": 3}, 0),
    ],
)
def test_the_adc_is_that_of_the_thread_or_of_the_instruction(fields: dict[str, int], adc: int) -> None:
    """No register field has an ADC number on Blackhole."""
    bench = Words()
    bench.tile["adc"][:, 2, 1] = (4, 8, 12)
    bench.tile["adc"][:, 2, 4] = (15, 7, 3)
    bench.send(ReadIntfSel=1, Last=1, **fields)
    assert bench.l1("<u2", 16)[0] == ROW[(4, 8, 12)[adc]]
    assert [v == ROW[(4, 8, 12)[adc]] for v in bench.l1("<u2", 16)].count(True) == (16, 8, 4)[adc]
    assert not any("Addr_cnt_context" in name for name in CONFIG_FIELDS)


@pytest.mark.rule("002.2h")
def test_zero_write_skips_the_stages_of_dst_and_keeps_the_late_conversion() -> None:
    """Zeros in spite of an edge mask of minus infinity; as BFP8 they have exponent 0."""
    bench = Words(BF16, BFP8)
    bench.bits(24, 0, 17, 1 << 16)  # mask 0: every datum would be minus infinity
    bench.bits(68, 16, 16, 1)
    bench.send(ReadIntfSel=3, Last=1)
    assert bench.l1("u1", 2) == [255, 255]
    bench.send(ReadIntfSel=3, ZeroWrite=1, Last=1)
    assert bench.l1("u1", 48) == [0] * 48
    assert bench.untouched(48)


@pytest.mark.rule("002.2h")
def test_zero_write_without_a_mask_counts_datums_not_rows() -> None:
    """X end + 1 datums in all, a multiple of 16."""
    bench = Words()
    bench.tile["adc"][2, 2, 4] = 79
    bench.send(ZeroWrite=1, Last=1)
    assert bench.l1("u1", 160) == [0] * 160
    assert bench.untouched(160)


@pytest.mark.rule("002.2j", "002.18.1")
@pytest.mark.parametrize(("control", "used"), [(0, [1, 1, 1]), (1, [0, 1, 2]), (2, [])])
def test_context_control_uses_the_flop_advances_it_with_last_and_resets_it(control: int, used: list[int]) -> None:
    """0 the instruction's context, 1 the flop, 2 reset it and pack nothing."""
    bench = Words()
    for context, first in enumerate(GROUP):
        bench.bits(first + 1, 0, 32, (L1_BASE + 0x100 * context) // 16 - 1)
        bench.bits(first + 2, 0, 12, BF16 << 8 | BF16 << 4 | 1)
    found = []
    for _ in range(3):
        bench.mark()
        bench.send(CfgContext=1, CtxtCtrl=control, Last=1)
        found += [c for c in range(4) if not bench.untouched(0x100 * c)]
    assert found == used
    assert bench.tile.pack.context == (3 if control == 1 else 0)


@pytest.mark.rule("002.1c")
def test_a_row_is_masked_at_the_edge_then_rectified_then_downsampled_then_assembled() -> None:
    """The order shows where stages do not commute.

    Masked datums are not minus infinity to the histogram after the ReLU; datums that the ReLU or the mask of columns
    drops do not raise the shared exponent.
    """
    bench = Words(BF16, BFP8)
    bench.bf16_row(0, [0x3F80, 0x7F00, 0xC700, 0x4000] + [0x3F80] * 12)
    bench.bits(68, 16, 16, 1)
    bench.bits(24, 0, 16, 0xFFFD)  # column 1 is masked
    bench.bits(2, 2, 2, 1)  # ReLU
    bench.bits(71, 0, 16, 0xFFF7)  # column 3 is dropped
    bench.modifier(0, YsrcIncr=1)
    bench.send(ReadIntfSel=1)
    bench.bf16_row(1, [0x3F80] * 16)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1("u1", 2) == [127, 127]
    assert bench.l1("u1", 15, 16) == [0x40, 0, 0] + [0x40] * 12
    assert bench.tile.pack.histogram_max == 128  # the dropped 2.0 has been seen, the masked and the negative datum not


@pytest.mark.rule("002.1c")
def test_compression_looks_at_the_intermediate_datum() -> None:
    """2^-30 becomes zero in FP16, but only behind the test for zero."""
    bench = Words(BF16, FP16)
    bench.bf16_row(0, [0x3F80] + [0x3080] * 7 + [0] * 8)
    bench.packer(Disable_zero_compress=0, Row_start_section_size=1)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1("<u2", 2) == [0, 9]
    assert bench.l1("<u2", 9, 16) == [0x3C00] + [0] * 8
    assert bench.l1("u1", 16, 80) == [0, 0, 0, 0x70, 0, *[0] * 11]  # the eighth carries seven zeros


@pytest.mark.rule("002.1d", "002.5.1")
@pytest.mark.parametrize(("intermediate", "accepted"), [(BF16, True), (FP16, False), (FP32, False)])
def test_the_intermediate_format_is_word_1_bits_28_25_and_equals_in_data_format(
    intermediate: int, accepted: bool
) -> None:
    """ALU_FORMAT_SPEC_REG2_Dstacc."""
    bench = Words()
    bench.bits(1, 25, 4, intermediate)
    if accepted:
        bench.send(Last=1)
        assert bench.rows(4) == [0, 1, 2, 3]
    else:
        with pytest.raises(UndefinedBehavior, match="In_data_format 5"):
            bench.send(Last=1)
        assert bench.untouched(0)
