"""Packer: fields of PACR (Flush, Last, interface masks, ZeroWrite, RowPadZero, contexts, thread); PACR_SETREG.

What the reference executes is covered by the vectors.
"""

from __future__ import annotations

import pytest

from bhemu.errors import MissingSpecification, UndefinedBehavior
from tests.tensix.packer_bench import (
    BF16,
    FP32,
    L1_BASE,
    Bench,
)

ONES = [0x3F80] * 16
COUNTING = [0x4000 + i for i in range(16)]


@pytest.mark.rule("P11")
def test_flush_packs_nothing_and_closes_the_streams() -> None:
    bench = Bench()
    bench.bf16_row(0, COUNTING)
    bench.tile["adc"][2, 2, 4] = 4  # five datums
    bench.pacr(Last=0)
    assert bench.tile.pack.open
    bench.tile["l1"][L1_BASE + 10 : L1_BASE + 32] = 0xEE
    bench.pacr(Flush=1, Last=0)
    assert not bench.tile.pack.open
    assert bench.l1("<u2", 16) == [*COUNTING[:5], 0, 0, 0, *[0xEEEE] * 8]


@pytest.mark.rule("P11")
def test_streams_continue_until_last() -> None:
    bench = Bench()
    bench.bf16_row(0, COUNTING)
    bench.bf16_row(1, ONES)
    bench.modifier(0, YsrcIncr=1)
    bench.pacr(Last=0)
    bench.pacr(Last=1)
    assert bench.l1("<u2", 32) == COUNTING + ONES


@pytest.mark.rule("P2")
def test_a_mask_is_relative_to_the_first_row() -> None:
    bench = Bench()
    for row in range(8):
        bench.bf16_row(row, [0x4000 + row] * 16)
    bench.tile["adc"][2, 2, 1] = 1
    bench.pacr(ReadIntfSel=0b0101)
    assert bench.l1("<u2", 32)[::16] == [0x4001, 0x4003]
    bench.tile["adc"][2, 2, 1] = 0
    bench.pacr(ReadIntfSel=0b1110)
    assert bench.l1("<u2", 48)[::16] == [0x4001, 0x4002, 0x4003]


@pytest.mark.rule("P2")
def test_a_mask_that_spills_over_the_fourth_interface_is_refused() -> None:
    bench = Bench()
    bench.tile["adc"][2, 2, 1] = 2
    with pytest.raises(UndefinedBehavior, match="beyond its four interfaces"):
        bench.pacr(ReadIntfSel=0b0111)


@pytest.mark.rule("002.2h")
def test_zero_write_reads_nothing_and_may_be_long() -> None:
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


@pytest.mark.rule("P3")
def test_row_pad_zero_fills_rows_or_the_whole_output() -> None:
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


@pytest.mark.rule("P3")
def test_row_pad_zero_can_wait_for_last_or_for_no_concat() -> None:
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


@pytest.mark.rule("P3")
def test_contexts_have_register_groups_of_their_own() -> None:
    bench = Bench()
    bench.bf16_row(0, ONES)
    for context in (1, 2, 3):
        address = L1_BASE + 0x1000 * context
        bench.context(context, In_data_format=BF16, Out_data_format=FP32, L1_Dest_addr=address // 16 - 1)
        bench.pacr(CfgContext=context)
        assert bench.l1("<u4", 16, 0x1000 * context) == [0x3F800000] * 16


@pytest.mark.rule("P3")
def test_the_hardware_context_advances_on_last_and_resets() -> None:
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


@pytest.mark.rule("P3")
def test_the_hardware_context_can_count_planes() -> None:
    bench = Bench()
    bench.set(PACK_COUNTERS_SEC0_auto_ctxt_inc_xys_cnt=2, PACK_COUNTERS_SEC0_pack_reads_per_xy_plane=4)
    bench.pacr(CtxtCtrl=1, ReadIntfSel=0, Last=0)
    assert bench.tile.pack.context == 0
    bench.pacr(CtxtCtrl=1, ReadIntfSel=0, Last=0)
    assert bench.tile.pack.context == 1


@pytest.mark.rule("P3")
def test_ovrd_thread_id_takes_the_adc_of_the_instruction() -> None:
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


@pytest.mark.rule("P2")
def test_datums_beyond_the_row_or_of_no_count_are_refused() -> None:
    bench = Bench()
    bench.tile["adc"][2, 2, 0] = 2
    bench.tile["adc"][2, 2, 4] = 16
    with pytest.raises(UndefinedBehavior, match="end of the Dst row"):
        bench.pacr()
    bench.tile["adc"][2, 2, 4] = 1
    with pytest.raises(UndefinedBehavior, match="outside 1 to 16"):
        bench.pacr()


@pytest.mark.rule("P5")
def test_strided_mode_without_remapping_is_open() -> None:
    bench = Bench()
    for row in range(32):
        bench.bf16_row(row, [0x4000 + row] * 16)
    with pytest.raises(MissingSpecification, match="remap_addrs"):
        bench.pacr(DstAccessMode=1, ReadIntfSel=0)
    bench.tile.allow_open = 1
    bench.pacr(DstAccessMode=1, ReadIntfSel=0)
    assert bench.l1("<u2", 64)[::16] == [0x4000, 0x4008, 0x4010, 0x4018]
