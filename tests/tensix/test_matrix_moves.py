"""Moves, shifts, pooling and clears of the matrix unit (math F17 to F32)."""

from __future__ import annotations

import numpy as np
import pytest
from matrix_unit import BF16, FP16, FP32, INT8, TF32, THREAD, Matrix, cell, dst_cell, fp16_cell

from bhemu.errors import BhemuError, MissingSpecification, NonContractualBehavior, UndefinedBehavior

pytestmark = pytest.mark.plain

ONE = cell(0x1FC00)
ALL_ONES = 0x7FFFF


@pytest.fixture(scope="module")
def unit() -> Matrix:
    return Matrix()


def refused(unit: Matrix, mnemonic: str, **operands: int) -> BhemuError:
    with pytest.raises(BhemuError) as caught:
        unit.do(mnemonic, **operands)
    return caught.value


# --- moves ------------------------------------------------------------------------------------------------------------


def test_mova2d_moves_one_row(unit: Matrix) -> None:
    t = unit.start().t
    t.srca[0, 13] = ONE
    unit.rows(a=4, dst=3)
    unit.do("MOVA2D", src=9, dst=4, instr_mod=0)
    assert (unit.get16(7) == 0x3F80).all()
    assert not t.dst[[6, 8]].any()


def test_mova2d_writes_tf32_to_the_32_bit_view_and_bf16_to_the_16_bit_view(unit: Matrix) -> None:
    t = unit.start(TF32).t
    t.srca[0] = cell(0x5FC07)
    unit.do("MOVA2D", instr_mod=2)
    assert hex(unit.get32(7)[15]) == "0xbf80e000"
    unit.start(BF16).t.srca[0] = cell(0x5FC38)
    unit.do("MOVA2D", instr_mod=2)
    assert hex(unit.get16(7)[15]) == "0xbf87"
    assert not t.dst[8:].any()


def test_mova2d_flushes_denormals_unless_they_are_kept(unit: Matrix) -> None:
    for keep in (0, 1):
        t = unit.start().t
        t.srca[0] = cell(0x40008)
        unit.configure("ALU_ACC_CTRL_Zero_Flag_disabled_src", keep)
        unit.do("MOVA2D", instr_mod=2)
        assert (t.dst[0] == (dst_cell(0x8001) if keep else 0)).all()


def test_a_low_half_written_to_an_invalid_row_clears_the_high_half(unit: Matrix) -> None:
    for valid in (0, 1):
        t = unit.start().t
        t.srca[0] = ONE
        unit.set32(0, 0xC0000000)
        t.dst_valid[0] = valid
        unit.do("MOVA2D", instr_mod=2, dest_32b_lo=1)
        assert unit.get32(0)[0] >> 16 == (0xC000 if valid else 0)
        assert t.dst[8, 0] == dst_cell(0x3F80)
        assert t.dst_valid[0] == 1


def test_tf32_into_low_halves_is_refused(unit: Matrix) -> None:
    unit.start(TF32)
    assert isinstance(refused(unit, "MOVA2D", instr_mod=2, dest_32b_lo=1), UndefinedBehavior)


def test_fp16_into_low_halves_keeps_its_five_bit_form(unit: Matrix) -> None:
    unit.start(FP16).t.srca[0] = cell(0x03C01)
    unit.do("MOVA2D", instr_mod=2, dest_32b_lo=1)
    assert unit.t.dst[8, 0] == fp16_cell(0x3C01)


@pytest.mark.parametrize(
    ("mode", "rows"),
    [
        (0, {13: 5}),
        (1, {13: 5}),
        (2, dict.fromkeys(range(8, 16), 5)),
        (3, dict.fromkeys(range(8, 16), 5)),
        (4, {12: 4, 13: 5, 14: 6, 15: 7}),
        (5, {12: 4, 13: 5, 14: 6, 15: 7}),
        (6, dict.fromkeys(range(8, 16), 5)),
        (7, dict.fromkeys(range(8, 16), 5)),
    ],
)
def test_movb2d_spreads_rows_and_columns(unit: Matrix, mode: int, rows: dict[int, int]) -> None:
    t = unit.start().t
    t.srcb[0] = (np.arange(64)[:, None] * 16 + np.arange(16)) << 11 | 100
    unit.do("MOVB2D", src=5, dst=13, movb2d_instr_mod=mode)
    for row in range(20):
        if row in rows:
            column = np.zeros(16, int) if mode & 1 else np.arange(16)
            expected = (rows[row] * 16 + column) << 8 & 0xFF00 | 100
            assert (t.dst[row] == expected).all(), row
        else:
            assert not t.dst[row].any(), row


def test_movb2d_takes_its_form_from_srcb_format_and_trims(unit: Matrix) -> None:
    t = unit.start(FP16, TF32).t
    t.srcb[0] = cell(0x1FC07)
    unit.do("MOVB2D", movb2d_instr_mod=4)
    assert hex(unit.get32(0)[0]) == "0x3f80e000"
    unit.start(FP16, FP32).t.srcb[0] = cell(0x1FC07)
    unit.thread_configure("DISABLE_IMPLIED_SRCA_FMT_Base", 1)
    unit.configure("ALU_FORMAT_SPEC_REG0_SrcA", TF32)
    unit.do("MOVB2D", movb2d_instr_mod=4)
    assert hex(unit.get32(0)[0]) == "0x3f800000"


@pytest.mark.parametrize(("mnemonic", "file"), [("MOVD2A", "srca"), ("MOVD2B", "srcb")])
def test_moves_from_dst_need_no_bank_and_move_one_or_four_rows(unit: Matrix, mnemonic: str, file: str) -> None:
    for mode, moved in ((0, [6]), (2, [4, 5, 6, 7])):
        t = unit.start().t
        t.src_owner[...] = 0
        t.dst[:8] = dst_cell(0x3F85)
        t.dst_valid[6] = 0
        unit.do(mnemonic, src=6, dst=6, instr_mod=mode)
        for row in range(16):
            expected = 0 if row == 6 or row not in moved else cell(0x1FC28)
            assert (t[file][0, row] == expected).all(), (mode, row)


@pytest.mark.parametrize(
    ("code", "low", "expected"),
    [
        (TF32, 0, cell(0x5FD5D)),
        (BF16, 0, cell(0x5FD58)),
        (TF32, 1, 0x0DEF),
        (BF16, 1, (0xADEF & 0xFF00) << 3 | 0xEF),
        (FP16, 1, (0xADEF & 0xFFE0) << 3 | 0x0F),
    ],
)
def test_movd2b_truncates_32_bit_values(unit: Matrix, code: int, low: int, expected: int) -> None:
    unit.start(BF16, code, fp32=True)
    unit.set32(0, 0xBFABADEF)
    unit.do("MOVD2B", instr_mod=2, dest_32b_lo=low)
    assert hex(unit.t.srcb[0, 0, 0]) == hex(expected)


def test_low_halves_of_the_16_bit_view_are_refused(unit: Matrix) -> None:
    unit.start()
    assert isinstance(refused(unit, "MOVD2A", instr_mod=2, dest_32b_lo=1), UndefinedBehavior)


@pytest.mark.parametrize("mnemonic", ["MOVA2D", "MOVD2A", "MOVD2B", "MOVB2A"])
def test_other_move_modes_are_refused(unit: Matrix, mnemonic: str) -> None:
    unit.start()
    assert isinstance(refused(unit, mnemonic, instr_mod=1), UndefinedBehavior)


def test_movb2a_moves_one_row_anywhere_and_four_only_when_aligned(unit: Matrix) -> None:
    t = unit.start().t
    t.srcb[0, 7] = ONE
    unit.do("MOVB2A", srca=9, srcb=7, instr_mod=0)
    assert (t.srca[0, 9] == ONE).all()
    assert not t.srca[0, [8, 10]].any()
    assert isinstance(refused(unit, "MOVB2A", srca=9, srcb=8, instr_mod=2), MissingSpecification)


def test_blocked_columns_are_skipped_by_moves(unit: Matrix) -> None:
    t = unit.start().t
    t.srca[0] = ONE
    t.lane_config = 1 << 10
    unit.do("MOVA2D", instr_mod=2)
    assert (unit.get16(3) == np.tile([0x3F80, 0], 8)).all()
    t.lane_config = 0


def test_debug_moves_do_not_wait(unit: Matrix) -> None:
    t = unit.start().t
    t.src_owner[...] = 0
    t.srca[0], t.srcb[0] = ONE, ONE
    assert not unit.do("MOVA2D", instr_mod=2)
    unit.t.gate_full[THREAD] = 0
    assert unit.do("MOVDBGA2D", instr_mod=2)
    assert unit.do("MOVDBGB2D", movb2d_instr_mod=4, dst=16)
    assert (unit.get16(0) == 0x3F80).all()
    assert (unit.get16(16) == 0x3F80).all()


# --- shifts -----------------------------------------------------------------------------------------------------------


def test_trnspsrcb_transposes_rows_16_to_31_only(unit: Matrix) -> None:
    t = unit.start().t
    before = np.arange(1024, dtype=np.uint32).reshape(64, 16)
    t.srcb[0] = before
    unit.do("TRNSPSRCB")
    assert (t.srcb[0, 16:32] == before[16:32].T).all()
    assert (t.srcb[0, :16] == before[:16]).all()
    assert (t.srcb[0, 32:] == before[32:]).all()


@pytest.mark.parametrize("mode", [2, 3])
def test_shiftxa_shifts_the_rows_of_the_latest_instruction(unit: Matrix, mode: int) -> None:
    t = unit.start().t
    cells = (np.arange(1024, dtype=np.uint32).reshape(64, 16) << 11) | 100
    t.srca[0] = cells
    assert isinstance(refused(unit, "SHIFTXA", shift_mode=mode), MissingSpecification)
    unit.rows(a=24)
    unit.do("ELWADD")
    unit.do("SHIFTXA", shift_mode=mode)
    zeros = np.zeros((16, 1), np.uint32)
    if mode == 2:
        expected = np.hstack([zeros, cells[16:32, :15]])
    else:
        expected = np.hstack([cells[16:32, 1:], zeros])
    assert (t.srca[0, :16] == expected).all()
    assert (t.srca[0, 16:] == cells[16:]).all()


@pytest.mark.parametrize("shift", [0, 1])
def test_shiftxb_rotates_or_shifts_one_row_left(unit: Matrix, shift: int) -> None:
    t = unit.start().t
    t.srcb[0, 2] = np.arange(16) + 50
    unit.rows(b=60)
    unit.do("SHIFTXB", shift_row=6, rot_shift=shift)
    assert t.srcb[0, 2].tolist() == [*range(51, 66), 0 if shift else 50]


# --- pooling ----------------------------------------------------------------------------------------------------------


def test_gmpool_takes_the_maximum_and_clears_three_rows(unit: Matrix) -> None:
    t = unit.start().t
    t.srcb[0, 0] = ONE
    t.srca[0, :16] = cell(0x5FC00)
    t.srca[0, 11, 4] = cell(0x20000)
    t.dst[...] = dst_cell(0xC000)
    t.dst[0, 5] = dst_cell(0x3E00)
    unit.do("GMPOOL", instr_mod19=1)
    expected = np.full(16, 0xBF80)
    expected[[4, 5]] = 0x4000, 0x3E00
    assert (unit.get16(0) == expected).all()
    assert not t.dst[1:4].any()
    assert (unit.get16(4) == 0xC000).all()


def test_gmpool_scales_rows_by_srcb_exponents(unit: Matrix) -> None:
    t = unit.start().t
    t.srcb[0, 0] = ONE
    t.srcb[0, 0, 3] = cell(0x20400)  # 4.0: only the exponent counts
    t.srcb[0, 0, 5] = 0  # leaves row 5 out
    t.srca[0, :16] = ONE
    t.srca[0, 5] = cell(0x25800)
    t.dst_valid[0] = 0
    unit.do("GMPOOL", instr_mod19=1)
    # The bias that is taken off belongs to a scale of 1.0, so a scale of 4.0 stays in the exponent.
    assert (unit.get16(0) == 0x4080).all()


def test_gmpool_of_fp16_in_the_16_bit_view(unit: Matrix) -> None:
    t = unit.start(FP16, FP16).t
    t.srcb[0, 0] = cell(0x03C00)
    t.srca[0, :16] = cell(0x43C00)
    t.srca[0, 7] = cell(0x04155)
    t.dst_valid[0] = 0
    unit.do("GMPOOL", instr_mod19=1)
    assert (unit.get16(0, fp16=True) == 0x4155).all()


def test_gmpool_of_integers_keeps_thirteen_bits(unit: Matrix) -> None:
    t = unit.start(INT8, INT8, int8=True).t
    t.srcb[0, 0] = 16
    t.srca[0, :16] = 1 << 18 | 5 << 8 | 16
    t.srca[0, 2] = 200 << 8 | 16
    unit.set32(0, [0x80000001, 100, 300, 0x12345] * 4)
    unit.do("GMPOOL", instr_mod19=1)
    assert unit.get32(0).tolist() == [200, 200, 300, 0x12345 & 0x1FFF] * 4


def test_gmpool_index_names_the_row_of_the_maximum(unit: Matrix) -> None:
    t = unit.start(fp32=True).t
    t.srcb[0, 0] = ONE
    t.srca[0, :16] = ONE
    for row, column in ((0, 0), (1, 1), (4, 2), (7, 3), (12, 4)):
        t.srca[0, row, column] = cell(0x20000)
    t.dst_valid[:4] = 0
    unit.do("GMPOOL", instr_mod19=1, max_pool_index_en=1)
    values = unit.get32(0)
    assert [hex(x) for x in values[:6]] == [
        "0x40000000",  # row 0 has index 0
        "0x40000003",
        "0x40000004",
        "0x40000005",
        "0x40000001",  # row 12 changes the value alone; row 3 was the latest of the equal ones before
        "0x3f800001",
    ]


def test_gmpool_index_counts_phases_on(unit: Matrix) -> None:
    t = unit.start(fp32=True).t
    t.srcb[0, 0] = ONE
    t.srca[0, :16] = ONE
    for row in range(4):
        unit.set32(row, 0x00000200)
    unit.do("GMPOOL", instr_mod19=1, max_pool_index_en=1)
    assert hex(unit.get32(0)[0]) == hex(0x3F800000 | 0x300 | 0x30 + 1)
    assert hex(unit.get32(3)[0]) == "0x300"


def test_gmpool_index_without_low_halves_is_refused(unit: Matrix) -> None:
    unit.start()
    assert isinstance(refused(unit, "GMPOOL", instr_mod19=1, max_pool_index_en=1), NonContractualBehavior)


def test_pooling_of_fp16_into_32_bits_is_an_open_choice(unit: Matrix) -> None:
    t = unit.start(FP16, FP16, fp32=True).t
    assert isinstance(refused(unit, "GMPOOL", instr_mod19=1), MissingSpecification)
    t.allow_open = 1
    assert unit.do("GMPOOL", instr_mod19=1)
    t.allow_open = 0


@pytest.mark.parametrize("mnemonic", ["GMPOOL", "GAPOOL"])
def test_pooling_of_one_row_is_refused(unit: Matrix, mnemonic: str) -> None:
    unit.start()
    assert isinstance(refused(unit, mnemonic), MissingSpecification)


# --- clears and banks -------------------------------------------------------------------------------------------------


def invalid(unit: Matrix) -> list[int]:
    return np.flatnonzero(unit.t.dst_valid == 0).tolist()


def test_zeroacc_of_one_row_follows_the_view_and_wraps(unit: Matrix) -> None:
    unit.start()
    unit.rows(dst=1020)
    unit.do("ZEROACC", where=7)
    assert invalid(unit) == [3]
    for integer in (False, True):
        unit.start(fp32=not integer, int8=integer)
        unit.do("ZEROACC", where=9)
        assert invalid(unit) == [17]


def test_zeroacc_of_a_tile_that_is_not_there_applies_the_address_modifier_alone(unit: Matrix) -> None:
    unit.start()
    unit.thread_configure("ADDR_MOD_DST_SEC2_DestIncr", 8)
    unit.do("ZEROACC", clear_mode=1, where=0xFF, addr_mode=2)
    assert invalid(unit) == []
    assert unit.t.rwc[THREAD, 4] == 8


def test_zeroacc_tiles_of_both_views(unit: Matrix) -> None:
    unit.start()
    unit.do("ZEROACC", clear_mode=1, where=3)
    assert invalid(unit) == list(range(48, 64))
    unit.start()
    unit.do("ZEROACC", clear_mode=1, where=1, use_32_bit_mode=1)
    assert invalid(unit) == [*range(32, 40), *range(48, 56)]
    unit.do("ZEROACC", clear_mode=1, where=1, use_32_bit_mode=1, clear_zero_flags=1)
    assert invalid(unit) == []
    unit.rows(dst=512)
    unit.do("ZEROACC", clear_mode=1, where=0)
    assert invalid(unit) == list(range(512, 528))


@pytest.mark.parametrize(
    "operands",
    [
        {"clear_mode": 0, "use_32_bit_mode": 1},
        {"clear_mode": 1, "clear_zero_flags": 1},
        {"clear_mode": 2, "where": 2},
        {"clear_mode": 3, "where": 1},
    ],
)
def test_undefined_zeroacc_is_refused(unit: Matrix, operands: dict[str, int]) -> None:
    unit.start()
    assert isinstance(refused(unit, "ZEROACC", **operands), UndefinedBehavior)
    assert invalid(unit) == []


def test_zerosrc_picks_file_bank_and_value(unit: Matrix) -> None:
    t = unit.start().t
    for operands, zero_a, zero_b, value in (
        ({"src_mask": 1, "write_mode": 1}, [1], [], 0),
        ({"src_mask": 2, "write_mode": 0}, [], [0], 0),
        ({"src_mask": 3, "bank_mask": 1, "zero_val": 1}, [0, 1], [0, 1], ALL_ONES),
    ):
        t.srca[...], t.srcb[...] = 5, 5
        t.math_bank[...] = 1
        t.unpack_bank[...] = 0
        unit.do("ZEROSRC", **operands)
        for bank in range(2):
            assert (t.srca[bank] == (value if bank in zero_a else 5)).all()
            assert (t.srcb[bank] == (0 if bank in zero_b else 5)).all()


def test_cleardvalid_may_stay_on_the_bank(unit: Matrix) -> None:
    t = unit.start().t
    unit.do("CLEARDVALID", cleardvalid=1, reset=2)
    assert t.src_owner.tolist() == [[0, 1], [1, 1]]
    assert t.math_bank.tolist() == [0, 0]
    assert isinstance(refused(unit, "CLEARDVALID", cleardvalid=1, reset=2), NonContractualBehavior)


def test_cleardvalid_resets_all_banks(unit: Matrix) -> None:
    t = unit.start().t
    t.math_bank[...] = 1
    t.unpack_bank[...] = 1
    unit.do("CLEARDVALID", reset=1)
    assert not t.src_owner.any()
    assert not t.src_format.any()
    assert not t.math_bank.any()
    assert not t.unpack_bank.any()


def test_clrexphist_clears_histogram_and_maximum(unit: Matrix) -> None:
    t = unit.start().t
    t["pack"]["histogram"][...] = 9
    t["pack"]["histogram_max"] = 77
    unit.do("CLREXPHIST")
    assert not t["pack"]["histogram"].any()
    assert t["pack"]["histogram_max"] == 0


def test_gatesrcrst_changes_nothing(unit: Matrix) -> None:
    t = unit.start().t
    before = t.copy()
    unit.do("GATESRCRST", reset_srca_gate_control=1, reset_srcb_gate_control=1)
    for name in ("dst", "dst_valid", "srca", "srcb", "src_owner", "math_bank", "rwc"):
        assert (t[name] == before[name]).all()
