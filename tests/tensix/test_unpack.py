"""UNPACR: contexts, addresses, placement, hand-over (U1-U12). The conversions are in test_unpack_formats.py."""

from __future__ import annotations

import numpy as np
import pytest

from bhemu.errors import MissingSpecification, NonContractualBehavior, UndefinedBehavior
from bhemu.formats import bfp
from bhemu.machine.state import L1_SIZE
from tests.tensix.unpacker import (
    BF16,
    BFP4,
    BFP8,
    COUNTING,
    FP32,
    INT8,
    TF32,
    TILE,
    Unpacker,
    counting,
    src_cells,
    unpacr,
)

"""Datums that tell where they come from: datum n is n + 1."""


# --- U1: waiting ----------------------------------------------------------------------------------------------------


@pytest.mark.rule("U1")
@pytest.mark.parametrize("unpacker", [0, 1])
def test_unpacr_waits_while_the_matrix_unit_owns_the_bank_and_writes_nothing(unpacker: int) -> None:
    u = counting(unpacker)
    u.t["src_owner"][unpacker, 0] = 1
    assert not u.unpack(SetDatValid=1)
    assert not u.src().any()
    assert u.t["unpack"]["bank"][unpacker] == 0
    u.t["src_owner"][unpacker, 0] = 0
    assert u.coprocessor.drain(0)
    assert u.values()[0, 0] == 1
    assert u.t["src_owner"][unpacker, 0] == 1


@pytest.mark.rule("U1", "001.7.5")
def test_unpack_to_dst_waits_for_the_srca_bank_too() -> None:
    u = counting(0)
    u.to_dst()
    u.t["src_owner"][0, 0] = 1
    assert not u.unpack()
    assert not u.t["dst"].any()


# --- U2, U3: contexts -----------------------------------------------------------------------------------------------


@pytest.mark.rule("U3", "000.2.3", "000.2.4", "000.2.5")
def test_each_of_8_contexts_has_its_base_and_shares_offset_dimension_and_destination_with_one_of_4() -> None:
    """Words 76-83, 86-87, 92-95, 84-85."""
    for context in range(8):
        u = Unpacker(0)
        low = context % 4
        middle = "" if low == 0 else f"cntx{low}_"
        u.base(TILE + 0x1000 * context, context)
        u.set(f"THCON_SEC0_REG7_Offset_{middle}address", low)
        u.set(f"THCON_SEC0_REG5_Tile_x_dim_cntx{low}", 16 * (low + 1))
        u.set(f"THCON_SEC0_REG5_Dest_cntx{low}_address", 64 + 16 * low)
        u.l1(COUNTING, address=TILE + 0x1000 * context)
        u.adc(y=1)
        assert u.unpack(CfgContextId=context)
        first = 8 * low + 16 * (low + 1) + 1  # offsets are 16 bytes, 8 datums; one Y step is the X dimension
        np.testing.assert_array_equal(u.values()[low], np.arange(first, first + 16))


@pytest.mark.rule("U2", "001.2.2a", "001.9.3")
def test_the_context_is_the_number_in_the_instruction_plus_the_threads_offset() -> None:
    u = Unpacker(0)
    u.set("UNPACK_MISC_CFG_CfgContextOffset_0", 3)
    u.base(0x8000, 5)
    u.l1(COUNTING, address=0x8000)
    assert u.unpack(CfgContextId=2)
    assert u.values()[0, 0] == 1


@pytest.mark.rule("U3", "001.2.2f")
def test_context_formats_count_only_under_the_override_bit() -> None:
    """Context 4's formats are in word 92."""
    u = Unpacker(0)
    u.set("THCON_SEC0_REG7_Unpack_data_format_cntx4", BF16)
    u.set("THCON_SEC0_REG7_Unpack_out_data_format_cntx4", BF16)
    u.base(TILE, 4)
    u.l1([0x3F80] * 16)
    assert u.unpack(CfgContextId=4)
    assert u.values()[0, 0] == 0x3F80
    u.set("THCON_SEC0_REG2_Ovrd_data_format", 1)
    assert u.unpack(CfgContextId=4, SetDatValid=1)
    assert int(u.src()[0, 0]) == 127
    assert u.t["src_format"][0, 0] == BF16


@pytest.mark.rule("U2", "001.2.2b")
def test_the_single_context_form_takes_descriptor_and_context_0() -> None:
    """X dimension, compression flag and destination select come from the descriptor and word 72."""
    u = counting(0)
    u.set("THCON_SEC0_REG2_Disable_zero_compress_cntx0", 0)
    u.set("THCON_SEC0_REG5_Tile_x_dim_cntx0", 16)
    u.set("THCON_SEC0_REG0_TileDescriptor_x_dim", 32)
    u.set("UNP0_ADDR_BASE_REG_1_Base", 2 * 80)
    u.adc(y=2)
    assert u.unpack(OvrdThreadId=0, CfgContextId=7)
    np.testing.assert_array_equal(u.values()[1], np.arange(65, 81))  # 2 * 32 datums on; output 80 - 64 datums


@pytest.mark.rule("U10", "001.7.2")
def test_the_single_context_form_reaches_dst_by_unpack_if_sel() -> None:
    """Word 72 bit 11."""
    u = counting(0)
    u.set("THCON_SEC0_REG2_Unpack_If_Sel", 1)
    u.set("SRCA_SET_SetOvrdWithAddr", 0)
    u.set("UNP0_ADDR_BASE_REG_1_Base", 2 * (64 + 32))
    assert u.unpack(OvrdThreadId=0)
    np.testing.assert_array_equal(u.t["dst"][2], np.arange(1, 17))


@pytest.mark.rule("U2", "U11", "001.2.7a", "000.2.2c")
@pytest.mark.parametrize(
    ("setup", "visited"),
    [
        ({"Context_count": 2}, [0, 1, 2, 3, 0, 1]),
        ({"Context_count": 0}, [0, 0, 0]),
        ({"Context_count": 3}, [0, 1, 2, 3, 4, 5, 6, 7, 0]),
        ({"Context_count_non_log2": 3, "Context_count_non_log2_en": 1}, [0, 1, 2, 0, 1]),
    ],
)
def test_the_context_counter_advances_and_returns_to_0_at_the_configured_count(
    setup: dict[str, int], visited: list[int]
) -> None:
    """U2, U11, 001.2.7a, 000.2.2c, e."""
    u = Unpacker(0)
    for name, value in setup.items():
        u.set(f"THCON_SEC0_REG2_{name}", value)
    for context in range(8):
        u.base(TILE + 0x100 * context, context)
        u.l1([context + 1] * 16, address=TILE + 0x100 * context)
    for context in visited:
        assert u.unpack(AutoIncContextID=1)
        assert u.values()[0, 0] == context + 1


@pytest.mark.rule("001.10b")
def test_the_increment_form_moves_only_the_context_counter() -> None:
    u = counting(0)
    u.set("THCON_SEC0_REG2_Context_count", 1)
    for expected in (1, 0, 1):
        assert u.unpack(OvrdThreadId=0, Last=0, CfgContextCntInc=1)
        assert u.t["unpack"]["context_counter"][0, 0] == expected
    assert not u.src().any()


@pytest.mark.rule("U2")
def test_the_cache_flush_form_changes_nothing() -> None:
    """U2, III.8: the cache holds nothing that L1 does not."""
    u = counting(0)
    assert u.unpack(SearchCacheFlush=1)
    assert not u.src().any()
    assert u.counter("z") == 0


@pytest.mark.parametrize("operands", [{"SetDatValid": 1}, {"ZeroWrite2": 1}, {"z": 1}])
def test_the_forms_without_data_refuse_operands_of_a_transfer(operands: dict[str, int]) -> None:
    with pytest.raises(MissingSpecification, match="CfgContextCntInc or SearchCacheFlush"):
        Unpacker(0).unpack(CfgContextCntInc=1, OvrdThreadId=0, **operands)


@pytest.mark.rule("U2", "U11", "001.2.7b")
def test_another_threads_adc_gives_x_and_y_and_both_threads_counters_advance_once() -> None:
    u = counting(1)
    u.adc(thread=2, x=16, x1=31, y=1)
    u.adc(z=1)
    assert u.unpack(AddrCntContextId=2, y=1, z=2, z1=3)
    np.testing.assert_array_equal(u.values()[0], np.arange(256 + 256 + 17, 256 + 256 + 33))
    assert (u.counter("y"), u.counter("z"), u.counter("z1")) == (1, 3, 3)
    assert (u.counter("y", thread=2), u.counter("z", thread=2), u.counter("z1", thread=2)) == (2, 2, 3)


@pytest.mark.rule("U2", "001.2.2c")
def test_adc_3_and_contexts_of_2_and_more_on_unpacker_1_are_refused() -> None:
    """U2, 001.2.2c, d."""
    with pytest.raises(UndefinedBehavior, match="AddrCntContextId is 3"):
        counting(1).unpack(AddrCntContextId=3)
    u = counting(1)
    u.set("UNPACK_MISC_CFG_CfgContextOffset_1", 1)
    with pytest.raises(UndefinedBehavior, match=r"context 2 on unpacker 1.*ThreadConfig entry 41 bits 11:8"):
        u.unpack(CfgContextId=1)


def test_a_configuration_write_between_two_unpacks_counts() -> None:
    """The decoded configuration follows every word that it depends on."""
    u = counting(1)
    assert u.unpack()
    u.set("UNP1_ADDR_BASE_REG_1_Base", 32)
    u.base(TILE + 32)
    assert u.unpack()
    assert u.values()[1, 0] == 17


# --- U5: input address ----------------------------------------------------------------------------------------------


@pytest.mark.rule("U5", "001.2.3c")
def test_the_first_datum_follows_from_all_four_counters_and_dimensions() -> None:
    """((W * ZDim + Z) * YDim + Y) * XDim + X."""
    u = counting(1)
    u.set("THCON_SEC1_REG0_TileDescriptor_x_dim", 20)
    u.set("THCON_SEC1_REG0_TileDescriptor_y_dim", 3)
    u.set("THCON_SEC1_REG0_TileDescriptor_z_dim", 4)
    u.adc(w=2, z=3, y=1, x=5, x1=20)
    assert u.unpack()
    first = ((2 * 4 + 3) * 3 + 1) * 20 + 5
    np.testing.assert_array_equal(u.values()[0], np.arange(first + 1, first + 17))


@pytest.mark.rule("U4", "U5", "000.2.1d")
def test_the_digest_and_the_exponent_section_are_skipped() -> None:
    u = Unpacker(1)
    u.formats(BFP8)
    u.set("THCON_SEC1_REG0_TileDescriptor_digest_size", 2)
    u.l1([130] * 16, "<u1", TILE + 32)
    u.l1([0x40] * 16, "<u1", TILE + 32 + 64)  # 1024 datums have 64 exponents
    assert u.unpack()
    assert set(u.src()[0]) == {130}


@pytest.mark.rule("U5", "001.1.2c")
@pytest.mark.parametrize(("kind", "bits", "skips"), [(BFP4, 4, False), (BFP8, 8, True)])
def test_no_bfp_exp_section_drops_the_skip_but_exponents_are_still_read(kind: int, bits: int, skips: bool) -> None:
    """For 4- and 2-bit formats only."""
    u = Unpacker(1)
    u.formats(kind)
    u.set("THCON_SEC1_REG0_TileDescriptor_no_bfp_exp_section", 1)
    u.l1(np.arange(64, 192), "<u1")
    assert u.unpack()
    raw = np.arange(64, 192, dtype=np.uint8)[64 if skips else 0 :]
    datums = bfp.unpack_datums(raw, bits).reshape(-1)[:16].reshape(1, 16)
    expected = src_cells(bfp.to_bf16_bits(np.array([64], np.uint8), datums, bits), BF16)
    np.testing.assert_array_equal(u.src()[0], expected[0])


@pytest.mark.rule("U5")
def test_a_negative_range_is_refused_with_both_counters() -> None:
    u = counting(1)
    u.adc(x=9, x1=8)
    with pytest.raises(UndefinedBehavior, match=r"channel-1 X \(8\) is below channel-0 X \(9\)"):
        u.unpack()


@pytest.mark.rule("U5")
@pytest.mark.parametrize("base", [L1_SIZE - 16, 0x0FFFFFF0])
def test_a_transfer_that_leaves_l1_is_refused_before_anything_is_written(base: int) -> None:
    u = Unpacker(1)
    u.base(base)
    u.count(256)
    with pytest.raises(UndefinedBehavior, match="outside L1"):
        u.unpack()
    assert not u.src().any()


@pytest.mark.rule("U5")
def test_row_search_reads_from_x_0_and_leaves_out_the_last_x() -> None:
    """Without blobs Xend is channel-1 X without the + 1."""
    u = counting(1)
    u.adc(x=7, x1=5, y=1)
    assert u.unpack(RowSearch=1)
    np.testing.assert_array_equal(u.values()[0, :6], [257, 258, 259, 260, 261, 0])


@pytest.mark.rule("U5")
def test_row_search_with_blobs_takes_start_and_end_from_the_list() -> None:
    """4-bit starts in units of 16 datums, context 2 uses word 52."""
    u = counting(0)
    u.base(TILE, 2)
    u.set("THCON_SEC0_REG0_TileDescriptor_blobs_per_xy_plane", 3)
    u.set("UNP0_BLOBS_Y_START_CNTX_23_blobs_y_start", 0x0000_0420)
    u.adc(y=1, x=1)
    assert u.unpack(RowSearch=1, CfgContextId=2)
    np.testing.assert_array_equal(u.values()[:2].reshape(-1), np.arange(33, 65))
    assert not u.values()[2].any()
    u.adc(y=2, x=2)  # the last blob ends with the X dimension
    assert u.unpack(RowSearch=1, CfgContextId=2)
    np.testing.assert_array_equal(u.values()[:12].reshape(-1), np.arange(65, 257))


# --- U6: FIFO -------------------------------------------------------------------------------------------------------


@pytest.mark.rule("U6", "001.2.3f")
def test_an_address_beyond_the_limit_wraps_at_the_next_unpack_row() -> None:
    """BH unpack rows of INT16 hold 32 datums, 64 bytes."""
    u = counting(1)
    u.set("THCON_SEC1_REG2_Unpack_limit_address", (TILE + 64) // 16)
    u.set("THCON_SEC1_REG2_Unpack_fifo_size", 128 // 16)
    u.count(128)
    assert u.unpack()
    # Rows at TILE and TILE + 64, which is not above the limit; TILE + 128 is, and comes down to TILE.
    expected = np.concatenate([np.arange(1, 65), np.arange(1, 65)])
    np.testing.assert_array_equal(u.values()[:8].reshape(-1), expected)


@pytest.mark.rule("U6")
def test_the_start_address_wraps_and_a_size_of_0_is_no_fifo() -> None:
    """Limit 0, size 0 is what LLK leaves."""
    u = counting(1)
    u.base(TILE + 0x800)
    u.set("THCON_SEC1_REG2_Unpack_limit_address", (TILE + 0x400) // 16)
    assert u.unpack()
    assert u.values()[0, 0] == 0x400 + 1
    u.set("THCON_SEC1_REG2_Unpack_fifo_size", 0x800 // 16)
    assert u.unpack()
    assert u.values()[0, 0] == 1


@pytest.mark.rule("U6")
def test_context_1_has_a_fifo_of_its_own_when_enabled() -> None:
    """Words 152, 153 on Blackhole."""
    u = counting(1)
    u.base(TILE + 0x800, 1)
    u.set("THCON_SEC1_REG10_Unpack_limit_address", (TILE + 0x400) // 16)
    u.set("THCON_SEC1_REG10_Unpack_fifo_size", 0x800 // 16)
    assert u.unpack(CfgContextId=1)
    assert u.values()[0, 0] == 0x400 + 1
    u.set("THCON_SEC1_REG10_Unpack_limit_address_en", 1)
    assert u.unpack(CfgContextId=1)
    assert u.values()[0, 0] == 1


@pytest.mark.rule("U6", "001.2.6b")
def test_the_exponent_pointer_wraps_per_16_byte_block() -> None:
    u = Unpacker(1)
    u.formats(BFP8)
    u.l1(
        np.arange(1, 33), "<u1"
    )  # exponents; datums lie 64 bytes on, behind the limit, and wrap to where these 0x40 are
    u.l1([0x40] * 1024, "<u1", TILE + 64 - 16)
    u.set("THCON_SEC1_REG2_Unpack_limit_address", (TILE + 15) // 16)
    u.set("THCON_SEC1_REG2_Unpack_fifo_size", 1)
    u.count(512)
    assert u.unpack()
    got = u.src()[:32, 0]
    np.testing.assert_array_equal(got[:16], np.arange(1, 17))
    np.testing.assert_array_equal(got[16:], np.arange(1, 17))  # block 2 is at TILE + 16 > limit, down to block 1


# --- U7: tilize -----------------------------------------------------------------------------------------------------


@pytest.mark.rule("U7", "001.5.1")
@pytest.mark.parametrize("unpacker", [0, 1])
def test_tilize_of_16_bit_data_takes_32_datums_from_each_row(unpacker: int) -> None:
    """Left and right halves alternate in consecutive Src rows."""
    u = counting(unpacker)
    u.set("THCON_SEC{}_REG2_Tileize_mode", 1)
    u.set("THCON_SEC{}_REG2_Shift_amount_cntx0", 8)  # 128 bytes: rows of 64 datums
    u.set("THCON_SEC{}_REG2_Shift_amount_cntx1", 1)  # and 256 more
    u.count(128)
    assert u.unpack()
    for row in range(8):
        start = (row // 2) * 192 + (row % 2) * 16 + 1
        np.testing.assert_array_equal(u.values()[row], np.arange(start, start + 16))


@pytest.mark.rule("U7", "001.5.2b")
def test_tilize_of_8_bit_data_takes_16_datums_from_each_row() -> None:
    u = Unpacker(0)
    u.formats(INT8)
    u.set("ALU_FORMAT_SPEC_REG0_SrcAUnsigned", 1)
    u.l1(np.arange(256), "<u1")
    u.set("THCON_SEC0_REG2_Tileize_mode", 1)
    u.set("THCON_SEC0_REG2_Shift_amount_cntx0", 2)  # 32 bytes
    u.count(64)
    assert u.unpack()
    for row in range(4):
        np.testing.assert_array_equal((u.src()[row] >> 8) & 0x3FF, np.arange(32 * row, 32 * row + 16))


@pytest.mark.rule("U5", "U7")
def test_tilize_refuses_small_datums_compression_upsampling_and_unaligned_starts() -> None:
    for change, message in (
        (("THCON_SEC0_REG0_TileDescriptor_in_data_format", BFP4), "smaller than a byte"),
        (("THCON_SEC0_REG2_Disable_zero_compress_cntx0", 0), "compressed"),
        (("THCON_SEC0_REG2_Upsample_rate", 1), "upsampling"),
    ):
        u = counting(0)
        u.set("THCON_SEC0_REG2_Tileize_mode", 1)
        u.set(*change)
        if change[1] == BFP4:
            u.set("THCON_SEC0_REG2_Out_data_format", BFP4)
        with pytest.raises(UndefinedBehavior, match=message):
            u.unpack()
    u = counting(0)
    u.set("THCON_SEC0_REG2_Tileize_mode", 1)
    u.count(16, first=4)
    with pytest.raises(UndefinedBehavior, match=f"{TILE + 8:#x}"):
        u.unpack()


# --- U8: output address ---------------------------------------------------------------------------------------------


@pytest.mark.rule("U8", "001.2.4a")
def test_the_output_address_sums_base_and_strided_counters_in_bytes() -> None:
    """U8, 001.2.4a, b: Y, Z and W strides of REG_1."""
    u = counting(1)
    u.set("UNP1_ADDR_BASE_REG_1_Base", 32)
    u.set("UNP1_ADDR_CTRL_XY_REG_1_Ystride", 64)
    u.set("UNP1_ADDR_CTRL_ZW_REG_1_Zstride", 128)
    u.set("UNP1_ADDR_CTRL_ZW_REG_1_Wstride", 512)
    u.adc(y1=1, z1=2, w1=1)
    assert u.unpack()
    np.testing.assert_array_equal(np.flatnonzero(u.values().any(axis=1)), [1 + 2 + 8 + 16])


@pytest.mark.rule("U8")
def test_an_output_address_inside_a_row_continues_in_the_next() -> None:
    """row = address / 16, column = address mod 16."""
    u = counting(1)
    u.set("UNP1_ADDR_BASE_REG_1_Base", 2 * 21)
    u.count(40)
    assert u.unpack()
    flat = u.values().reshape(-1)
    np.testing.assert_array_equal(flat[21:61], np.arange(1, 41))
    assert not flat[:21].any()
    assert not flat[61:].any()


@pytest.mark.rule("U8")
def test_an_output_address_that_splits_a_datum_is_refused() -> None:
    u = counting(1)
    u.set("UNP1_ADDR_BASE_REG_1_Base", 33)
    with pytest.raises(UndefinedBehavior, match="33 bytes"):
        u.unpack()


# --- U9: placement in Src -------------------------------------------------------------------------------------------


@pytest.mark.rule("U9", "001.2.6e")
def test_srca_rows_in_front_of_row_0_are_dropped() -> None:
    """The four bias rows."""
    u = counting(0)
    u.set("THCON_SEC0_REG5_Dest_cntx0_address", 0)
    u.count(96)
    assert u.unpack()
    np.testing.assert_array_equal(u.values()[:2].reshape(-1), np.arange(65, 97))
    assert not u.values()[2:].any()


@pytest.mark.rule("U9", "001.2.6e", "001.14.2c")
def test_the_column_shift_drops_columns_and_moves_the_rest_left() -> None:
    """Shift amount of the context, SrcA only."""
    u = counting(0)
    u.set("THCON_SEC0_REG2_Shift_amount_cntx1", 5)
    u.base(TILE, 1)
    u.count(32)
    assert u.unpack(CfgContextId=1)
    for row in range(2):
        expected = [*range(16 * row + 6, 16 * row + 17), 0, 0, 0, 0, 0]
        np.testing.assert_array_equal(u.values()[row], expected)
    u = counting(1)
    u.set("THCON_SEC1_REG2_Shift_amount_cntx0", 5)
    assert u.unpack()
    np.testing.assert_array_equal(u.values()[0], np.arange(1, 17))


@pytest.mark.rule("U9", "U11", "001.2.6f", "001.2.7d")
def test_without_set_ovrd_with_addr_the_running_row_is_added_and_advances() -> None:
    """SrcRow += 16 + 16 * base, reset to 16 * base by the hand-over."""
    u = counting(0)
    u.set("SRCA_SET_SetOvrdWithAddr", 0)
    u.set("THCON_SEC0_REG2_Unpack_Src_Reg_Set_Upd", 1)
    for row in (0, 16, 32):
        assert u.unpack()
        assert u.values()[row, 0] == 1
    assert u.t["unpack"]["src_row"][0, 0] == 48
    u.set("SRCA_SET_Base", 2)
    assert u.unpack(SetDatValid=1)
    assert u.t["unpack"]["src_row"][0, 0] == 32
    assert u.unpack()
    np.testing.assert_array_equal(np.flatnonzero(u.values(1).any(axis=1)), [32])
    assert u.t["unpack"]["src_row"][0, 0] == 32 + 16 + 32


@pytest.mark.rule("U9")
def test_without_set_ovrd_with_addr_rows_above_15_and_sums_above_63_are_refused() -> None:
    u = counting(0)
    u.set("SRCA_SET_SetOvrdWithAddr", 0)
    u.set("THCON_SEC0_REG5_Dest_cntx0_address", 64 + 16 * 16)
    with pytest.raises(
        UndefinedBehavior, match=r"row 16 with SRCA_SET_SetOvrdWithAddr \(ThreadConfig entry 5 bit 2\) = 0"
    ):
        u.unpack()
    u = counting(0)
    u.set("SRCA_SET_SetOvrdWithAddr", 0)
    u.t["unpack"]["src_row"][0, 0] = 64
    with pytest.raises(UndefinedBehavior, match="SrcA row 64"):
        u.unpack()


@pytest.mark.rule("U9")
def test_srca_rows_count_modulo_64() -> None:
    """As the reference does with SetOvrdWithAddr = 1."""
    u = counting(0)
    u.set("THCON_SEC0_REG5_Dest_cntx0_address", 64 + 16 * 70)
    assert u.unpack()
    np.testing.assert_array_equal(np.flatnonzero(u.values().any(axis=1)), [6])


@pytest.mark.rule("U9", "001.2.6c")
def test_srcb_adds_its_running_row_modulo_64() -> None:
    """U9, 001.2.6c; LLK's custom matrix multiplication relies on the wrap."""
    u = counting(1)
    u.set("SRCB_SET_Base", 3)
    assert u.unpack(SetDatValid=1)
    assert u.unpack()
    np.testing.assert_array_equal(np.flatnonzero(u.values(1).any(axis=1)), [48])
    u.count(272)
    assert u.unpack()
    np.testing.assert_array_equal(np.flatnonzero(u.values(1).any(axis=1)), [0, *range(48, 64)])


@pytest.mark.rule("U9", "001.2.6g")
@pytest.mark.parametrize("count", [256, 250, 40])
def test_transpose_swaps_column_and_low_row_bits(count: int) -> None:
    u = counting(0)
    u.set("THCON_SEC0_REG2_Haloize_mode", 1)
    u.count(count)
    assert u.unpack()
    expected = np.zeros(256, np.int64)
    expected[:count] = np.arange(1, count + 1)
    np.testing.assert_array_equal(u.values()[:16], expected.reshape(16, 16).T)


@pytest.mark.rule("U9", "U10")
def test_transpose_is_refused_on_unpacker_1_and_on_the_way_to_dst() -> None:
    u = counting(1)
    u.set("THCON_SEC1_REG2_Haloize_mode", 1)
    with pytest.raises(NonContractualBehavior, match="word 120 bit 8"):
        u.unpack()
    u = counting(0)
    u.to_dst()
    u.set("THCON_SEC0_REG2_Haloize_mode", 1)
    with pytest.raises(UndefinedBehavior, match="word 72 bit 8"):
        u.unpack()


# --- U10: Dst -------------------------------------------------------------------------------------------------------


@pytest.mark.rule("U10", "001.2.6h")
def test_dst_rows_count_modulo_1024_from_four_rows_in_front() -> None:
    u = counting(0)
    u.to_dst()
    u.set("THCON_SEC0_REG5_Dest_cntx0_address", 32)
    u.count(64)
    assert u.unpack()
    np.testing.assert_array_equal(np.flatnonzero(u.t["dst"].any(axis=1)), [0, 1, 1022, 1023])
    np.testing.assert_array_equal(u.t["dst"][1022], np.arange(1, 17))


@pytest.mark.rule("I.3")
def test_a_partial_row_of_dst_makes_the_row_valid_and_keeps_its_other_cells() -> None:
    """Writes set the row-valid bit."""
    u = counting(0)
    u.to_dst()
    u.t["dst"][0] = 0x7777
    u.t["dst_valid"][:] = 0
    u.count(3)
    assert u.unpack()
    np.testing.assert_array_equal(u.t["dst"][0], [1, 2, 3] + [0x7777] * 13)
    assert list(np.flatnonzero(u.t["dst_valid"])) == [0]


@pytest.mark.rule("U10", "001.2.4e")
def test_unpack_to_dst_refuses_set_ovrd_with_addr_and_column_shift() -> None:
    u = counting(0)
    u.to_dst()
    u.set("SRCA_SET_SetOvrdWithAddr", 1)
    with pytest.raises(UndefinedBehavior, match="while unpacking to Dst"):
        u.unpack()
    u.set("SRCA_SET_SetOvrdWithAddr", 0)
    u.set("THCON_SEC0_REG2_Shift_amount_cntx0", 1)
    with pytest.raises(UndefinedBehavior, match="column shift"):
        u.unpack()


# --- U11: afterwards ------------------------------------------------------------------------------------------------


@pytest.mark.rule("U11", "001.2.7c")
@pytest.mark.parametrize("unpacker", [0, 1])
def test_the_hand_over_gives_the_bank_with_its_format_and_changes_banks(unpacker: int) -> None:
    u = counting(unpacker)
    u.formats(FP32, TF32)
    assert u.unpack(SetDatValid=1)
    assert list(u.t["src_owner"][unpacker]) == [1, 0]
    assert u.t["src_format"][unpacker, 0] == TF32
    assert u.t["unpack"]["bank"][unpacker] == 1
    assert list(u.t["src_owner"][1 - unpacker]) == [0, 0]
    assert u.unpack(SetDatValid=1)
    assert not u.unpack()  # both banks are the matrix unit's


@pytest.mark.rule("U11", "I.8")
def test_counters_wrap_at_their_width_and_carry_copies_stay() -> None:
    """Y has 13 bits, Z 8."""
    u = counting(1)
    u.adc(y1=0x1FFF, z1=0xFF)
    assert u.unpack(y1=2, z1=3)
    assert (u.counter("y1"), u.counter("z1")) == (1, 2)
    assert not u.t["adc"][0, 1, 8:].any()


# --- upsampling, zeros, broadcast, bursts ---------------------------------------------------------------------------


@pytest.mark.rule("001.12a")
@pytest.mark.parametrize("rate", [1, 2, 3])
def test_upsampling_writes_zeros_behind_each_datum(rate: int) -> None:
    """001.12a, b: (1 << rate) - 1 of them."""
    u = counting(1)
    u.t["srcb"][0] = 0x7FFFF
    u.set("THCON_SEC1_REG2_Upsample_rate", rate)
    assert u.unpack()
    step = 1 << rate
    expected = np.zeros(16 * step)
    expected[::step] = np.arange(1, 17)
    np.testing.assert_array_equal(u.values().reshape(-1)[: 16 * step], expected)
    assert set(u.src().reshape(-1)[16 * step :]) == {0x7FFFF}


@pytest.mark.rule("001.12c")
def test_interleaved_upsampling_leaves_the_places_between_as_they_are() -> None:
    u = counting(1)
    u.t["srcb"][0] = 0x7FFFF
    u.set("THCON_SEC1_REG2_Upsample_rate", 1)
    u.set("THCON_SEC1_REG2_Upsample_and_interleave", 1)
    u.count(20)
    assert u.unpack()
    np.testing.assert_array_equal(u.values().reshape(-1)[0:40:2], np.arange(1, 21))
    assert set(u.src().reshape(-1)[1:40:2]) == {0x7FFFF}


@pytest.mark.rule("001.2.6d")
@pytest.mark.parametrize("count", [256, 21])
def test_zero_write_writes_zeros_and_does_not_read_l1(count: int) -> None:
    """The base address is far outside L1."""
    u = Unpacker(1)
    u.t["srcb"][0] = 0x7FFFF
    u.base(0x7FFFFFF0)
    u.count(count)
    assert u.unpack(ZeroWrite2=1)
    flat = u.src().reshape(-1)
    assert not flat[:count].any()
    assert set(flat[count:]) == {0x7FFFF}


@pytest.mark.rule("001.2.1b")
def test_the_row_broadcast_is_refused_unless_the_user_accepts_8_rows() -> None:
    """001.2.1b, III.8."""
    with pytest.raises(MissingSpecification, match="first row 0"):
        counting(1).unpack(srcb_bcast=1)
    u = counting(1, allow_open=True)
    u.set("UNP1_ADDR_BASE_REG_1_Base", 32)
    assert u.unpack(srcb_bcast=1)
    np.testing.assert_array_equal(u.values()[1:9], np.tile(np.arange(1, 17), (8, 1)))
    assert not u.values()[9:].any()
    assert not u.values()[0].any()
    with pytest.raises(UndefinedBehavior, match="unpacker 0"):
        counting(0).unpack(srcb_bcast=1)
    u.count(17)
    with pytest.raises(MissingSpecification, match="17 output datums"):
        u.unpack(srcb_bcast=1)


@pytest.mark.rule("U12")
def test_a_srca_transfer_that_starts_inside_a_burst_is_refused_unless_the_user_accepts_it() -> None:
    """16-bit data at the default speed comes 4 rows at a time."""
    u = counting(0)
    u.set("THCON_SEC0_REG5_Dest_cntx0_address", 64 + 2 * 16)
    u.count(32)
    with pytest.raises(MissingSpecification, match="first SrcA row 2 is not a multiple of the 4 rows"):
        u.unpack()
    u.t["allow_open"] = 1
    assert u.unpack()
    np.testing.assert_array_equal(u.values()[2:4].reshape(-1), np.arange(1, 33))
    u.t["allow_open"] = 0
    u.set("THCON_SEC0_REG1_ovrd_default_throttle_mode", 1)  # 32 bytes a cycle: one row
    u.set("THCON_SEC0_REG2_Throttle_mode", 1)
    assert u.unpack()


@pytest.mark.rule("001.0c")
def test_any_thread_may_unpack_with_its_own_counters() -> None:
    """001.0c; AddrCntContextId 0 is the issuing thread (U2)."""
    u = Unpacker(1, thread=2)
    u.l1(COUNTING)
    u.count(16, first=32)
    assert u.unpack(z=1)
    assert u.values()[0, 0] == 33
    assert u.counter("z") == 1
    assert u.counter("z", thread=0) == 0


def test_bit_14_belongs_to_no_operand() -> None:
    u = counting(1)
    with pytest.raises(UndefinedBehavior, match="0x00004000"):
        u.issue(unpacr(1) | 1 << 14)


@pytest.mark.parametrize(("unpacker", "mode"), [(1, ""), (0, ""), (0, "Haloize_mode"), (0, "Tileize_mode"), (0, "dst")])
def test_whole_rows_and_single_datums_agree(unpacker: int, mode: str) -> None:
    """The same datums by rows and, with a FIFO limit inside the last row (so that none wraps), one at a time."""
    cells = []
    for careful in (False, True):
        u = counting(unpacker)
        if mode == "dst":
            u.to_dst()
        elif mode:
            u.set(f"THCON_SEC0_REG2_{mode}", 1)
            u.set("THCON_SEC0_REG2_Shift_amount_cntx0", 4 if mode == "Tileize_mode" else 0)
        u.count(1000)
        if careful:
            u.set("THCON_SEC{}_REG2_Unpack_limit_address", (TILE + 31 * 64) // 16)
            u.set("THCON_SEC{}_REG2_Unpack_fifo_size", 0x100)
        assert u.unpack()
        cells.append((u.src(), np.array(u.t["dst"])))
    np.testing.assert_array_equal(cells[0][0], cells[1][0])
    np.testing.assert_array_equal(cells[0][1], cells[1][1])
    assert cells[0][0].any() or cells[0][1].any()
