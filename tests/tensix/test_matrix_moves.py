"""Moves and shifts of the matrix unit (math F19 to F25, F30, F31)."""

from __future__ import annotations

import numpy as np
import pytest

from bhemu.errors import MissingSpecification, UndefinedBehavior
from tests.tensix.matrix_unit import BF16, FP16, FP32, TF32, THREAD, Matrix, cell, dst_cell, fp16_cell, refused

pytestmark = pytest.mark.plain

ONE = cell(0x1FC00)


# --- moves ------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("math F19")
def test_mova2d_moves_one_row(unit: Matrix) -> None:
    t = unit.start().t
    t.srca[0, 13] = ONE
    unit.rows(a=4, dst=3)
    unit.do("MOVA2D", src=9, dst=4, instr_mod=0)
    assert (unit.get16(7) == 0x3F80).all()
    assert not t.dst[[6, 8]].any()


@pytest.mark.rule("math F19")
def test_mova2d_writes_tf32_to_the_32_bit_view_and_bf16_to_the_16_bit_view(unit: Matrix) -> None:
    t = unit.start(TF32).t
    t.srca[0] = cell(0x5FC07)
    unit.do("MOVA2D", instr_mod=2)
    assert hex(unit.get32(7)[15]) == "0xbf80e000"
    unit.start(BF16).t.srca[0] = cell(0x5FC38)
    unit.do("MOVA2D", instr_mod=2)
    assert hex(unit.get16(7)[15]) == "0xbf87"
    assert not t.dst[8:].any()


@pytest.mark.rule("math F19")
def test_mova2d_flushes_denormals_unless_they_are_kept(unit: Matrix) -> None:
    for keep in (0, 1):
        t = unit.start().t
        t.srca[0] = cell(0x40008)
        unit.configure("ALU_ACC_CTRL_Zero_Flag_disabled_src", keep)
        unit.do("MOVA2D", instr_mod=2)
        assert (t.dst[0] == (dst_cell(0x8001) if keep else 0)).all()


@pytest.mark.rule("math F19")
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


@pytest.mark.rule("math F19")
def test_tf32_into_low_halves_is_refused(unit: Matrix) -> None:
    unit.start(TF32)
    assert isinstance(refused(unit, "MOVA2D", instr_mod=2, dest_32b_lo=1), UndefinedBehavior)


@pytest.mark.rule("math F19")
def test_fp16_into_low_halves_keeps_its_five_bit_form(unit: Matrix) -> None:
    unit.start(FP16).t.srca[0] = cell(0x03C01)
    unit.do("MOVA2D", instr_mod=2, dest_32b_lo=1)
    assert unit.t.dst[8, 0] == fp16_cell(0x3C01)


@pytest.mark.rule("math F20")
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


@pytest.mark.rule("math F1", "math F20")
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


@pytest.mark.rule("math F21")
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


@pytest.mark.rule("math F21")
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


@pytest.mark.rule("math F21")
def test_low_halves_of_the_16_bit_view_are_refused(unit: Matrix) -> None:
    unit.start()
    assert isinstance(refused(unit, "MOVD2A", instr_mod=2, dest_32b_lo=1), UndefinedBehavior)


@pytest.mark.rule("math F19", "math F21", "math F22")
@pytest.mark.parametrize("mnemonic", ["MOVA2D", "MOVD2A", "MOVD2B", "MOVB2A"])
def test_other_move_modes_are_refused(unit: Matrix, mnemonic: str) -> None:
    unit.start()
    assert isinstance(refused(unit, mnemonic, instr_mod=1), UndefinedBehavior)


@pytest.mark.rule("math F22")
def test_movb2a_moves_one_row_anywhere_and_four_only_when_aligned(unit: Matrix) -> None:
    t = unit.start().t
    t.srcb[0, 7] = ONE
    unit.do("MOVB2A", srca=9, srcb=7, instr_mod=0)
    assert (t.srca[0, 9] == ONE).all()
    assert not t.srca[0, [8, 10]].any()
    assert isinstance(refused(unit, "MOVB2A", srca=9, srcb=8, instr_mod=2), MissingSpecification)


@pytest.mark.rule("math F25")
def test_blocked_columns_are_skipped_by_moves(unit: Matrix) -> None:
    t = unit.start().t
    t.srca[0] = ONE
    t.vector.lane_config = 1 << 10
    unit.do("MOVA2D", instr_mod=2)
    assert (unit.get16(3) == np.tile([0x3F80, 0], 8)).all()
    t.vector.lane_config = 0


@pytest.mark.rule("math F23")
def test_debug_moves_do_not_wait(unit: Matrix) -> None:
    t = unit.start().t
    t.src_owner[...] = 0
    t.srca[0], t.srcb[0] = ONE, ONE
    assert not unit.do("MOVA2D", instr_mod=2)
    unit.t.frontend.gate_full[THREAD] = 0
    assert unit.do("MOVDBGA2D", instr_mod=2)
    assert unit.do("MOVDBGB2D", movb2d_instr_mod=4, dst=16)
    assert (unit.get16(0) == 0x3F80).all()
    assert (unit.get16(16) == 0x3F80).all()


# --- shifts -----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("math F24")
def test_trnspsrcb_transposes_rows_16_to_31_only(unit: Matrix) -> None:
    t = unit.start().t
    before = np.arange(1024, dtype=np.uint32).reshape(64, 16)
    t.srcb[0] = before
    unit.do("TRNSPSRCB")
    assert (t.srcb[0, 16:32] == before[16:32].T).all()
    assert (t.srcb[0, :16] == before[:16]).all()
    assert (t.srcb[0, 32:] == before[32:]).all()


@pytest.mark.rule("math F31")
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


@pytest.mark.rule("math F31")
@pytest.mark.parametrize("shift", [0, 1])
def test_shiftxb_rotates_or_shifts_one_row_left(unit: Matrix, shift: int) -> None:
    t = unit.start().t
    t.srcb[0, 2] = np.arange(16) + 50
    unit.rows(b=60)
    unit.do("SHIFTXB", shift_row=6, rot_shift=shift)
    assert t.srcb[0, 2].tolist() == [*range(51, 66), 0 if shift else 50]
