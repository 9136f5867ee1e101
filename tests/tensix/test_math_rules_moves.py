"""Moves, waits and shifts of the matrix unit, rule by rule (math F19 to F31), and address modifier indices (R2)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bhemu.errors import MissingSpecification, UndefinedBehavior
from bhemu.isa.instructions import INSTRUCTIONS, encode
from bhemu.machine.counters import RWC_A, RWC_BIAS, RWC_DST, RWC_FIDELITY
from tests.tensix.matrix_unit import BF16, FP16, FP32, INT8, INT32, TF32, THREAD, Matrix, cell

pytestmark = pytest.mark.plain

ONE = cell(0x1FC00)
BFP8A, BFP4A, BFP8, BFP4, INT16, BFP2A, BFP2 = 2, 3, 6, 7, 9, 11, 15
FIVE_BIT = (FP16, BFP8A, BFP4A, BFP2A, INT8)
"""Codes 1, 10 and, by documents, 2, 3, 11, 14; FP8 has code 10."""
FP8 = 10
TO_BF16 = (FP32, BF16, BFP8, BFP4, INT32, INT16, BFP2)
CODES = (TF32, FP8, *FIVE_BIT, *TO_BF16)


def random_cells(seed: int, five_bit: bool = False) -> np.ndarray[Any, Any]:
    """64 x 16 Src cells; a fifth of them have exponent field 0."""
    rng = np.random.default_rng(seed)
    exponents = rng.integers(0, 32 if five_bit else 256, (64, 16))
    exponents = np.where(rng.random((64, 16)) < 0.2, 0, exponents)
    return (rng.integers(0, 1 << 11, (64, 16)) << 8 | exponents).astype(np.uint32)


def parts(src_cell: int) -> tuple[int, int, int]:
    """(s, e, m) of a Src cell."""
    return src_cell >> 18, src_cell & 0xFF, src_cell >> 8 & 0x3FF


def flushed(src_cell: int, keep: int) -> int:
    """ "FZ": a cell with exponent field 0 becomes zero."""
    return src_cell if keep or src_cell & 0xFF else 0


def to_dst(src_cell: int, code: int) -> tuple[int, int | None]:
    """F19: (upper or only Dst cell, low half cell of TF32) in the layouts {s, m7, e8} and {s, m10, e5}."""
    s, e, m = parts(src_cell)
    if code == TF32:
        return s << 15 | (m >> 3) << 8 | e, (m & 7) << 13
    if code in (FP8, *FIVE_BIT):
        return s << 15 | m << 5 | e & 0x1F, None
    return s << 15 | (m >> 3) << 8 | e, None


def to_src(high: int, low: int, code: int, wide: bool) -> int:
    """F21: a Src cell from Dst cells."""
    if code in (FP8, *FIVE_BIT):
        return (high >> 15) << 18 | (high >> 5 & 0x3FF) << 8 | high & 0x1F
    s, e, m7 = high >> 15, high & 0xFF, high >> 8 & 0x7F
    return s << 18 | (m7 << 3 | (low >> 13 if code == TF32 and wide else 0)) << 8 | e


def physical(row: int) -> int:
    """Row of the high halves of a 32-bit row (rules I.3)."""
    return (row & 0x1F8) << 1 | row & 0x207


@pytest.mark.rule("math F19")
@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("code", CODES)
def test_mova2d_writes_each_format_in_its_form(unit: Matrix, code: int, keep: int) -> None:
    t = unit.start(code).t
    unit.configure("ALU_ACC_CTRL_Zero_Flag_disabled_src", keep)
    t.srca[0] = random_cells(code)
    t.dst[...] = 0x1234
    unit.rows(a=8, dst=16)
    unit.do("MOVA2D", src=16, dst=32, instr_mod=2)
    expected = np.full((1024, 16), 0x1234)
    for i in range(8):
        for c in range(16):
            upper, low = to_dst(flushed(int(t.srca[0, 24 + i, c]), keep), code)
            row = physical(48 + i) if code == TF32 else 48 + i
            expected[row, c] = upper
            if low is not None:
                expected[row + 8, c] = low
    np.testing.assert_array_equal(t.dst, expected)


@pytest.mark.rule("math F19", "math F20")
@pytest.mark.parametrize("code", TO_BF16)
def test_low_halves_take_the_bf16_cell_and_high_halves_stay(unit: Matrix, code: int) -> None:
    for mnemonic, operands in (("MOVA2D", {"instr_mod": 2}), ("MOVB2D", {"movb2d_instr_mod": 4})):
        t = unit.start(code, code).t
        t.srca[0] = t.srcb[0] = random_cells(code) & ~np.uint32(7 << 8)
        t.dst[...] = 0x1234
        unit.do(mnemonic, dest_32b_lo=1, **operands)
        for i in range(8 if mnemonic == "MOVA2D" else 4):
            assert (t.dst[physical(i)] == 0x1234).all()
            assert t.dst[physical(i) + 8].tolist() == [to_dst(flushed(int(x), 0), code)[0] for x in t.srca[0, i]]


@pytest.mark.rule("math F20")
@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("mode", range(6))
@pytest.mark.parametrize("code", [FP32, FP16, TF32, BF16, BFP8, INT32])
def test_movb2d_flushes_trims_and_spreads(unit: Matrix, code: int, mode: int, keep: int) -> None:
    t = unit.start(BF16, code).t
    unit.configure("ALU_ACC_CTRL_Zero_Flag_disabled_src", keep)
    t.srcb[0] = random_cells(mode, five_bit=code == FP16)
    t.dst[...] = 0x1234
    unit.do("MOVB2D", src=24, dst=40, movb2d_instr_mod=mode)
    expected = np.full((1024, 16), 0x1234)
    for i in range(8 if mode & 2 else 4 if mode & 4 else 1):
        for c in range(16):
            value = flushed(int(t.srcb[0, 24 if mode & 2 else 24 + i, 0 if mode & 1 else c]), keep)
            value &= 0x7FF1F if code == FP16 else 0x7FFFF if code == TF32 else 0x7F8FF
            upper, low = to_dst(value, code)
            row = physical(40 + i) if code == TF32 else 40 + i
            expected[row, c] = upper
            if low is not None:
                expected[row + 8, c] = low
    np.testing.assert_array_equal(t.dst, expected)


@pytest.mark.rule("math F21")
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize(("mnemonic", "file"), [("MOVD2A", "srca"), ("MOVD2B", "srcb")])
def test_moves_from_dst_truncate_to_the_format_and_never_flush(
    unit: Matrix, mnemonic: str, file: str, code: int, wide: bool
) -> None:
    rng = np.random.default_rng(code)
    t = unit.start(code, code, fp32=wide).t
    t.src_owner[...] = 0  # no bank wait
    t.dst[...] = np.where(rng.random((1024, 16)) < 0.2, 0xFF00, 0xFFFF) & rng.integers(0, 1 << 16, (1024, 16))
    unit.do(mnemonic, src=12, dst=20, instr_mod=2)
    expected = np.zeros((64, 16))
    for i in range(4):
        row = physical(20 + i) if wide else 20 + i
        high, low = t.dst[row].tolist(), t.dst[row + 8].tolist()
        expected[12 + i] = [to_src(high[c], low[c], code, wide) for c in range(16)]
    np.testing.assert_array_equal(t[file][0], expected)


@pytest.mark.rule("math F22")
@pytest.mark.parametrize("keep", [0, 1])
def test_movb2a_copies_cells_but_for_zeros(unit: Matrix, keep: int) -> None:
    t = unit.start(BF16, BF16).t
    t.src_owner[0] = 0  # it waits for SrcB alone
    unit.configure("ALU_ACC_CTRL_Zero_Flag_disabled_src", keep)
    t.srcb[0] = random_cells(22)
    unit.rows(a=4, b=8)
    unit.do("MOVB2A", srca=20, srcb=32, instr_mod=2)
    expected = np.zeros((64, 16))
    expected[24:28] = [[flushed(int(x), keep) for x in row] for row in t.srcb[0, 40:44]]
    np.testing.assert_array_equal(t.srca[0], expected)  # no trim by a format: all ten mantissa bits


@pytest.mark.rule("math F23")
@pytest.mark.parametrize("mnemonic", ["MOVDBGA2D", "MOVDBGB2D"])
def test_debug_moves_write_what_the_moves_write(unit: Matrix, mnemonic: str) -> None:
    operands = {"instr_mod": 2} if "A2D" in mnemonic else {"movb2d_instr_mod": 3}
    results = []
    for name in (mnemonic, mnemonic.replace("DBG", "")):
        t = unit.start(TF32, TF32).t
        t.src_owner[...] = int(name != mnemonic)
        t.srca[0] = t.srcb[0] = random_cells(23)
        assert unit.do(name, src=8, dst=24, **operands)
        results.append(t.dst.copy())
    assert (results[0] == results[1]).all()
    assert results[0].any()
    with pytest.raises(UndefinedBehavior, match="1024"):
        unit.do(mnemonic, dst=1024, **operands)


MOVES = [
    ("MOVA2D", {"instr_mod": 2}, "dst", 8),
    ("MOVB2D", {"movb2d_instr_mod": 4}, "dst", 4),
    ("MOVD2A", {"instr_mod": 2}, "srca", 4),
    ("MOVD2B", {"instr_mod": 2}, "srcb", 4),
    ("MOVB2A", {"instr_mod": 2}, "srca", 4),
]


@pytest.mark.rule("math F25")
@pytest.mark.parametrize("blocked", range(4))
@pytest.mark.parametrize(("mnemonic", "operands", "target", "rows"), MOVES)
def test_block_dest_mov_takes_even_or_odd_columns_out_of_every_move(
    unit: Matrix, mnemonic: str, operands: dict[str, int], target: str, rows: int, blocked: int
) -> None:
    """Bit 9 of LaneConfig blocks even columns, bit 10 odd ones."""
    t = unit.start().t
    t.srca[...] = t.srcb[...] = ONE
    t.dst[...] = 0x4080
    before = t[target].copy()
    before[...] = 0x0101
    t[target][...] = before
    t.vector.lane_config = blocked << 9
    assert unit.do(mnemonic, **operands)
    t.vector.lane_config = 0
    changed = (t[target] != 0x0101).reshape(-1, 16)[:rows]
    assert changed.tolist() == [[not blocked >> (c & 1) & 1 for c in range(16)]] * rows


@pytest.mark.rule("math F27")
def test_zerosrc_needs_no_bank_and_hands_none_over(unit: Matrix) -> None:
    t = unit.start().t
    t.src_owner[...] = [[0, 1], [0, 0]]
    t.srca[...] = t.srcb[...] = 7
    assert unit.do("ZEROSRC", src_mask=3, bank_mask=1)
    assert not t.srca.any()
    assert not t.srcb.any()
    assert t.src_owner.tolist() == [[0, 1], [0, 0]]
    assert t.matrix.bank.tolist() == t.unpack.bank.tolist() == [0, 0]


# Which banks an instruction waits for (F30)
BOTH = ("MVMUL", "DOTPV", "GAPOOL", "GMPOOL", "ELWADD", "ELWSUB", "ELWMUL")
NONE = ("MOVD2A", "MOVD2B", "ZEROACC", "ZEROSRC", "SETRWC", "INCRWC", "CLEARDVALID", "GATESRCRST", "MOVDBGA2D",
        "MOVDBGB2D")  # fmt: skip
WAITS = (
    dict.fromkeys(("MOVA2D", "SHIFTXA"), (True, False))
    | dict.fromkeys(("MOVB2D", "MOVB2A", "TRNSPSRCB", "SHIFTXB"), (False, True))
    | dict.fromkeys(BOTH, (True, True))
    | dict.fromkeys(NONE, (False, False))
)
OPERANDS = {"GAPOOL": {"instr_mod19": 1}, "GMPOOL": {"instr_mod19": 1}, "SHIFTXA": {"shift_mode": 2}}


@pytest.mark.rule("math F30")
@pytest.mark.parametrize("mnemonic", WAITS)
def test_instructions_wait_for_the_banks_that_they_read(unit: Matrix, mnemonic: str) -> None:
    for owns_a in (0, 1):
        for owns_b in (0, 1):
            t = unit.start().t
            unit.do("MOVD2A")  # gives SHIFTXA a row
            t.matrix.bank[...] = [1, 0]
            t.src_owner[0] = [1 - owns_a, owns_a]  # the other bank does not matter
            t.src_owner[1] = [owns_b, 1 - owns_b]
            needs_a, needs_b = WAITS[mnemonic]
            goes = (owns_a or not needs_a) and (owns_b or not needs_b)
            assert unit.do(mnemonic, **OPERANDS.get(mnemonic, {})) is bool(goes), (owns_a, owns_b)


@pytest.mark.rule("math F31")
def test_shiftxa_knows_two_directions_and_one_column(unit: Matrix) -> None:
    for operands in ({"shift_mode": 0}, {"shift_mode": 1}, {"shift_mode": 2, "log2_amount2": 1}):
        unit.start()
        unit.do("MOVD2A")
        with pytest.raises(UndefinedBehavior, match="shift_mode 2"):
            unit.do("SHIFTXA", **operands)


@pytest.mark.rule("math F31")
def test_shiftxa_reads_the_rows_of_the_latest_srca_row_however_stale(unit: Matrix) -> None:
    t = unit.start().t
    t.srca[0] = np.arange(1024).reshape(64, 16)
    unit.rows(a=37)
    unit.do("MVMUL")
    unit.rows(a=0)  # the counter has moved on since
    unit.do("SHIFTXA", shift_mode=3)
    assert t.srca[0, 0].tolist() == [*range(32 * 16 + 1, 32 * 16 + 16), 0]
    unit.do("MOVB2D", movb2d_instr_mod=4)  # computes no SrcA row that a source would name
    with pytest.raises(MissingSpecification):
        unit.do("SHIFTXA", shift_mode=3)


@pytest.mark.rule("math F31")
def test_shiftxb_applies_its_address_modifier(unit: Matrix) -> None:
    t = unit.start().t
    unit.thread_configure("ADDR_MOD_AB_SEC5_SrcBIncr", 3)
    unit.do("SHIFTXB", shift_row=1, addr_mode=5)
    assert t.rwc[THREAD, 2] == 3


# --- R2 ---------------------------------------------------------------------------------------------------------------

INDEX_AT_14 = ("MVMUL", "ELWADD", "ELWSUB", "ELWMUL", "MOVA2D", "MOVB2D", "MOVD2A", "MOVD2B", "MOVB2A", "ZEROACC")
INDEX_LSB = dict.fromkeys(INDEX_AT_14, 14) | {"GAPOOL": 15, "GMPOOL": 15, "SFPLOAD": 13, "SFPSTORE": 13}


@pytest.mark.rule("math R2")
@pytest.mark.parametrize("extra_bit", [0, 1])
@pytest.mark.parametrize(("mnemonic", "lsb"), INDEX_LSB.items())
def test_three_bits_of_the_word_choose_one_of_eight_address_modifiers(
    unit: Matrix, mnemonic: str, lsb: int, extra_bit: int
) -> None:
    """At the bit positions of the rule, and whatever Wormhole's extra bit and ADDR_MOD_SET say."""
    for index in range(8):
        t = unit.start().t
        t.rwc[THREAD, RWC_BIAS] = extra_bit
        for i in range(8):
            unit.thread_configure(f"ADDR_MOD_DST_SEC{i}_DestIncr", 8 * (i + 1))
            unit.thread_configure(f"ADDR_MOD_AB_SEC{i}_SrcAIncr", i + 1)
        operands = {"instr_mod19": 1} if lsb == 15 else {"instr_mod0": 4} if lsb == 13 else {}
        assert unit.coprocessor.push(THREAD, encode(mnemonic, **operands) | index << lsb)
        assert unit.coprocessor.drain(THREAD)
        assert t.rwc[THREAD, RWC_DST] == 8 * (index + 1)
        assert t.rwc[THREAD, RWC_A] == index + 1
        assert t.rwc[THREAD, RWC_FIDELITY] == 0


@pytest.mark.rule("math R2")
def test_the_instruction_table_has_three_index_bits_everywhere() -> None:
    names = {"addr_mode", "pool_addr_mode", "sfpu_addr_mode"}
    for mnemonic, lsb in (INDEX_LSB | {"SFPLOADMACRO": 13}).items():
        (field,) = [f for f in INSTRUCTIONS[mnemonic].fields if f.name in names]
        assert (field.lsb, field.max) == (lsb, 7), mnemonic
