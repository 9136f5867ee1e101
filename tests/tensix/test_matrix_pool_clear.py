"""Pooling, clears and bank control of the matrix unit (math F16 to F18, F26 to F32)."""

from __future__ import annotations

import numpy as np
import pytest

from bhemu.errors import MissingSpecification, NonContractualBehavior, UndefinedBehavior
from tests.tensix.matrix_unit import FP16, INT8, THREAD, Matrix, cell, dst_cell, refused

pytestmark = pytest.mark.plain

ONE = cell(0x1FC00)
ALL_ONES = 0x7FFFF


# --- pooling ----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("math F17")
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


@pytest.mark.rule("math F18")
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


@pytest.mark.rule("math F18")
def test_gmpool_takes_fp16_in_the_16_bit_view(unit: Matrix) -> None:
    t = unit.start(FP16, FP16).t
    t.srcb[0, 0] = cell(0x03C00)
    t.srca[0, :16] = cell(0x43C00)
    t.srca[0, 7] = cell(0x04155)
    t.dst_valid[0] = 0
    unit.do("GMPOOL", instr_mod19=1)
    assert (unit.get16(0, fp16=True) == 0x4155).all()


@pytest.mark.rule("math F18")
def test_gmpool_of_integers_keeps_thirteen_bits(unit: Matrix) -> None:
    t = unit.start(INT8, INT8, int8=True).t
    t.srcb[0, 0] = 16
    t.srca[0, :16] = 1 << 18 | 5 << 8 | 16
    t.srca[0, 2] = 200 << 8 | 16
    unit.set32(0, [0x80000001, 100, 300, 0x12345] * 4)
    unit.do("GMPOOL", instr_mod19=1)
    assert unit.get32(0).tolist() == [200, 200, 300, 0x12345 & 0x1FFF] * 4


@pytest.mark.rule("math F18")
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


@pytest.mark.rule("math F18")
def test_gmpool_index_counts_phases_on(unit: Matrix) -> None:
    t = unit.start(fp32=True).t
    t.srcb[0, 0] = ONE
    t.srca[0, :16] = ONE
    for row in range(4):
        unit.set32(row, 0x00000200)
    unit.do("GMPOOL", instr_mod19=1, max_pool_index_en=1)
    assert hex(unit.get32(0)[0]) == hex(0x3F800000 | 0x300 | 0x30 + 1)
    assert hex(unit.get32(3)[0]) == "0x300"


@pytest.mark.rule("math F18")
def test_gmpool_index_without_low_halves_is_refused(unit: Matrix) -> None:
    unit.start()
    assert isinstance(refused(unit, "GMPOOL", instr_mod19=1, max_pool_index_en=1), NonContractualBehavior)


@pytest.mark.rule("math F18")
def test_pooling_of_fp16_into_32_bits_is_an_open_choice(unit: Matrix) -> None:
    t = unit.start(FP16, FP16, fp32=True).t
    assert isinstance(refused(unit, "GMPOOL", instr_mod19=1), MissingSpecification)
    t.allow_open = 1
    assert unit.do("GMPOOL", instr_mod19=1)
    t.allow_open = 0


@pytest.mark.rule("math F16", "math F17")
@pytest.mark.parametrize("mnemonic", ["GMPOOL", "GAPOOL"])
def test_pooling_of_one_row_is_refused(unit: Matrix, mnemonic: str) -> None:
    unit.start()
    assert isinstance(refused(unit, mnemonic), MissingSpecification)


# --- clears and banks -------------------------------------------------------------------------------------------------


def invalid(unit: Matrix) -> list[int]:
    return np.flatnonzero(unit.t.dst_valid == 0).tolist()


@pytest.mark.rule("math F26")
def test_zeroacc_of_one_row_follows_the_view_and_wraps(unit: Matrix) -> None:
    unit.start()
    unit.rows(dst=1020)
    unit.do("ZEROACC", where=7)
    assert invalid(unit) == [3]
    for integer in (False, True):
        unit.start(fp32=not integer, int8=integer)
        unit.do("ZEROACC", where=9)
        assert invalid(unit) == [17]


@pytest.mark.rule("math F26")
def test_zeroacc_of_a_tile_that_is_not_there_applies_the_address_modifier_alone(unit: Matrix) -> None:
    unit.start()
    unit.thread_configure("ADDR_MOD_DST_SEC2_DestIncr", 8)
    unit.do("ZEROACC", clear_mode=1, where=0xFF, addr_mode=2)
    assert invalid(unit) == []
    assert unit.t.rwc[THREAD, 4] == 8


@pytest.mark.rule("math F26")
def test_zeroacc_clears_tiles_of_both_views(unit: Matrix) -> None:
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


@pytest.mark.rule("math F26")
@pytest.mark.parametrize(
    "operands",
    [
        {"clear_mode": 0, "use_32_bit_mode": 1},
        {"clear_mode": 1, "clear_zero_flags": 1},
        {"clear_mode": 2, "where": 2},
        {"clear_mode": 3, "where": 1},
    ],
)
def test_zeroacc_of_an_undefined_form_is_refused(unit: Matrix, operands: dict[str, int]) -> None:
    unit.start()
    assert isinstance(refused(unit, "ZEROACC", **operands), UndefinedBehavior)
    assert invalid(unit) == []


@pytest.mark.rule("math F27")
def test_zerosrc_picks_file_bank_and_value(unit: Matrix) -> None:
    t = unit.start().t
    for operands, zero_a, zero_b, value in (
        ({"src_mask": 1, "write_mode": 1}, [1], [], 0),
        ({"src_mask": 2, "write_mode": 0}, [], [0], 0),
        ({"src_mask": 3, "bank_mask": 1, "zero_val": 1}, [0, 1], [0, 1], ALL_ONES),
    ):
        t.srca[...], t.srcb[...] = 5, 5
        t.matrix.bank[...] = 1
        t.unpack.bank[...] = 0
        unit.do("ZEROSRC", **operands)
        for bank in range(2):
            assert (t.srca[bank] == (value if bank in zero_a else 5)).all()
            assert (t.srcb[bank] == (0 if bank in zero_b else 5)).all()


@pytest.mark.rule("math F29")
def test_cleardvalid_may_stay_on_the_bank(unit: Matrix) -> None:
    t = unit.start().t
    unit.do("CLEARDVALID", cleardvalid=1, reset=2)
    assert t.src_owner.tolist() == [[0, 1], [1, 1]]
    assert t.matrix.bank.tolist() == [0, 0]


@pytest.mark.rule("math F29")
def test_cleardvalid_moves_on_from_a_bank_that_the_unpackers_own(unit: Matrix) -> None:
    """As the debug functions of LLK use it, twice and with nothing unpacked."""
    t = unit.start().t
    t.src_owner[0] = 0
    for bank in (1, 0):
        unit.do("CLEARDVALID", cleardvalid=1)
        assert t.src_owner.tolist() == [[0, 0], [1, 1]]
        assert t.matrix.bank.tolist() == [bank, 0]


@pytest.mark.rule("math F29")
def test_cleardvalid_resets_all_banks(unit: Matrix) -> None:
    t = unit.start().t
    t.matrix.bank[...] = 1
    t.unpack.bank[...] = 1
    unit.do("CLEARDVALID", reset=1)
    assert not t.src_owner.any()
    assert not t.src_format.any()
    assert not t.matrix.bank.any()
    assert not t.unpack.bank.any()


@pytest.mark.rule("math F32")
def test_clrexphist_clears_histogram_and_maximum(unit: Matrix) -> None:
    t = unit.start().t
    t["pack"]["histogram"][...] = 9
    t["pack"]["histogram_max"] = 77
    unit.do("CLREXPHIST")
    assert not t["pack"]["histogram"].any()
    assert t["pack"]["histogram_max"] == 0


@pytest.mark.rule("math F32")
def test_gatesrcrst_changes_nothing(unit: Matrix) -> None:
    t = unit.start().t
    before = t.copy()
    unit.do("GATESRCRST", reset_srca_gate_control=1, reset_srcb_gate_control=1)
    for name in ("dst", "dst_valid", "srca", "srcb", "src_owner", "rwc"):
        assert (t[name] == before[name]).all()
    assert (t["matrix"]["bank"] == before["matrix"]["bank"]).all()
