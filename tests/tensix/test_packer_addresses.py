"""Packer: where the packer reads and writes: input and output address, FIFO wrap, counters, packing from L1.

What the reference executes is covered by the vectors.
"""

from __future__ import annotations

import numpy as np
import pytest

from bhemu.errors import MemoryError_
from tests.tensix.packer_bench import (
    BF16,
    BFP8,
    FP32,
    L1_BASE,
    Bench,
)

ONES = [0x3F80] * 16
COUNTING = [0x4000 + i for i in range(16)]


@pytest.mark.rule("P4")
def test_all_four_counters_and_the_base_enter_the_input_address() -> None:
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


@pytest.mark.rule("I.3")
def test_the_wide_view_of_the_upper_half_begins_at_row_512() -> None:
    bench = Bench(FP32, FP32, read_32b=1)
    bench.set(DEST_TARGET_REG_CFG_PACK_SEC0_Offset=512)
    bench.bf16_row(512, [0x3F80] * 16)
    bench.tile["dst"][520] = 0x1234
    bench.pacr()
    assert bench.l1("<u4", 16) == [0x3F801234] * 16


@pytest.mark.rule("I.3")
def test_an_invalid_row_reads_as_zero() -> None:
    bench = Bench()
    bench.bf16_row(0, ONES)
    bench.tile["dst_valid"][0] = 0
    bench.pacr()
    assert bench.l1("<u2", 16) == [0] * 16


@pytest.mark.rule("002.12.3")
def test_output_address_wraps_in_its_fifo() -> None:
    bench = Bench()
    bench.bf16_row(0, ONES)
    unit = L1_BASE // 16
    bench.set(THCON_SEC0_REG9_Pack_0_2_limit_address=unit // 2 + 7, THCON_SEC0_REG9_Pack_0_2_fifo_size=8)
    for first, written in ((unit + 15, 15), (unit + 16, 0)):
        bench.packer(L1_Dest_addr=first - 1)
        bench.tile["l1"][L1_BASE : L1_BASE + 512] = 0
        bench.pacr()
        assert bench.l1("<u2", 1, 16 * written) == [0x3F80]


@pytest.mark.rule("P11")
def test_output_address_adds_base_counters_and_offset() -> None:
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


@pytest.mark.rule("P11")
def test_sub_header_takes_the_unit_back_and_bit_31_does_nothing() -> None:
    bench = Bench()
    bench.bf16_row(0, ONES)
    bench.packer(L1_Dest_addr=L1_BASE // 16 | 1 << 31, Sub_l1_tile_header_size=1)
    bench.pacr()
    assert bench.l1("<u2", 16) == ONES


@pytest.mark.rule("P12")
def test_ydst_carry_moves_the_copy_and_the_counter() -> None:
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


@pytest.mark.rule("002.3.4")
def test_packing_from_l1_skips_the_stages_of_dst() -> None:
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
