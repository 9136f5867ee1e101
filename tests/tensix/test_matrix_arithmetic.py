"""Matrix unit arithmetic: the table of section T, a scalar model of F8 to F15, and what documents alone describe."""

from __future__ import annotations

import numpy as np
import pytest

from bhemu.errors import BhemuError, ConfigurationError, MissingSpecification, NonContractualBehavior, UndefinedBehavior
from bhemu.tensix.matrix.operands import STOCHASTIC
from tests.tensix.matrix_unit import (
    BF16,
    FP16,
    INT8,
    TF32,
    Matrix,
    add_element,
    cell,
    dot_element,
    dst_cell,
    fields,
    fp16_cell,
    multiply_element,
)

pytestmark = pytest.mark.plain

ONE = cell(0x1FC00)


# instruction, accumulate, format, Dst, phase, A, B, old Dst, new Dst (section T)
TABLE = [
    ("ELWMUL", 0, BF16, "bf16", 0, 0x1FE00, 0x1FD00, 0x3F80, 0x4038),
    ("ELWMUL", 0, TF32, "fp32", 0, 0x1FE2B, 0x1FDB9, 0x00000000, 0x40088000),
    ("ELWMUL", 0, TF32, "fp32", 1, 0x1FE2B, 0x1FDB9, 0x00000000, 0x3D6EE000),
    ("ELWMUL", 0, TF32, "fp32", 2, 0x1FE2B, 0x1FDB9, 0x00000000, 0x3C580000),
    ("ELWMUL", 0, TF32, "fp32", 3, 0x1FE2B, 0x1FDB9, 0x00000000, 0x39BD0000),
    ("ELWMUL", 0, TF32, "fp32", 0, 0x20200, 0x1F800, 0xBFC00000, 0x00000000),
    ("ELWMUL", 0, TF32, "fp32", 0, 0x1FC00, 0x1FC00, 0x4B800000, 0x4B800001),
    ("ELWMUL", 0, TF32, "fp32", 0, 0x5FC00, 0x1FC00, 0x4B800000, 0x4B800000),
    ("ELWMUL", 0, BF16, "fp32", 0, 0x3F800, 0x20000, 0x00000000, 0x7F800000),
    ("ELWMUL", 0, BF16, "fp32", 0, 0x10000, 0x0FC00, 0x3F800000, 0x3F800000),
    ("ELWMUL", 0, FP16, "fp32", 0, 0x00000, 0x03C00, 0x21800000, 0x00000000),
    ("ELWMUL", 0, FP16, "fp32", 0, 0x00000, 0x03C00, 0x25600000, 0x25800000),
    ("ELWMUL", 0, FP16, "fp16", 0, 0x07BFF, 0x07BFF, 0x7BFF, 0x7FFF),
    ("ELWMUL", 0, FP16, "fp32", 0, 0x07FFF, 0x03C00, 0x00000000, 0x47F80000),
    ("ELWMUL", 0, BF16, "bf16", 0, 0x3FC00, 0x1FC00, 0xFF80, 0x0000),
    ("ELWADD", 0, TF32, "fp32", 0, 0x1FC00, 0x1D000, 0x00000000, 0x3F802000),
    ("ELWADD", 0, TF32, "fp32", 0, 0x1FC00, 0x1CC00, 0x00000000, 0x3F800000),
    ("ELWSUB", 0, TF32, "fp32", 0, 0x1FC00, 0x1D000, 0x00000000, 0x3F7FC000),
    ("ELWADD", 0, BF16, "bf16", 0, 0x1FC00, 0x1DC00, 0x0000, 0x3F81),
    ("ELWADD", 0, BF16, "bf16", 0, 0x5FC00, 0x5DC00, 0x0000, 0xBF81),
    ("ELWADD", 1, BF16, "bf16", 0, 0x40000, 0x40000, 0x8000, 0x0000),
    ("ELWADD", 1, FP16, "fp32", 0, 0x00000, 0x00000, 0x21800000, 0x00000000),
    ("ELWSUB", 0, BF16, "bf16", 0, 0x00400, 0x00600, 0x0000, 0x0000),
]


@pytest.mark.parametrize("row", range(len(TABLE)))
def test_section_t_table_row(unit: Matrix, row: int) -> None:
    mnemonic, accumulate, code, view, phase, a, b, old, new = TABLE[row]
    t = unit.start(code, code, fp32=view == "fp32").t
    unit.rows(phase=phase)
    t.srca[0], t.srcb[0] = cell(a), cell(b)
    for i in range(8):
        if view == "fp32":
            unit.set32(i, old)
        else:
            t.dst[i] = dst_cell(old) if view == "bf16" else fp16_cell(old)
    unit.do(mnemonic, dest_accum_en=accumulate)
    for i in range(8):
        got = unit.get32(i) if view == "fp32" else unit.get16(i, fp16=view == "fp16")
        assert [hex(x) for x in got] == [hex(new)] * 16


def random_cells(rng: np.random.Generator, code: int, center: int) -> np.ndarray:
    """64 x 16 Src cells of a format whose exponents crowd at `center`, with zeros and extremes among them."""
    cells = rng.integers(0, 1 << 11, (64, 16)) << 8
    top = 31 if code == FP16 else 255
    exponents = np.clip(center + rng.integers(-16, 17, cells.shape), 0, top)
    spread = rng.random(cells.shape)
    exponents = np.where(spread < 0.1, rng.integers(0, top + 1, cells.shape), exponents)
    exponents = np.where(spread > 0.95, 0, exponents)
    if code == BF16:
        cells &= ~(7 << 8)
    return (cells | exponents).astype(np.uint32)


def random_old(rng: np.random.Generator, view: str, center: int) -> np.ndarray:
    bits, top = {"fp32": (23, 255), "bf16": (7, 255), "fp16": (10, 31)}[view]
    exponents = np.clip(center + rng.integers(-20, 21, (8, 16)), 0, top)
    return (
        rng.integers(0, 2, (8, 16)) << (bits + top.bit_length())
        | exponents << bits
        | rng.integers(0, 1 << bits, (8, 16))
    )


CASES = [
    (mnemonic, code, view)
    for mnemonic in ("MVMUL", "GAPOOL", "ELWMUL", "ELWADD", "ELWSUB")
    for code, view in ((BF16, "bf16"), (BF16, "fp32"), (TF32, "bf16"), (TF32, "fp32"), (FP16, "fp16"), (FP16, "fp32"))
]


@pytest.mark.rule("math F8", "math F9", "math F10", "math F11", "math F12", "math F13")
@pytest.mark.parametrize(("mnemonic", "code", "view"), CASES)
def test_arithmetic_equals_the_scalar_model(unit: Matrix, mnemonic: str, code: int, view: str) -> None:
    rng = np.random.default_rng(list(f"{mnemonic}{code}{view}".encode()))
    bias = (97 if view == "fp32" else -15) if code == FP16 else -127
    for turn in range(6):
        phase = 0 if mnemonic in ("ELWADD", "ELWSUB") else turn % 4
        low, high = (4, 20) if code == FP16 else (40, 200)
        center_a, center_b = (int(rng.integers(low, high)) for _ in range(2))
        if mnemonic in ("ELWADD", "ELWSUB"):
            center_b = center_a
        t = unit.start(code, code, fp32=view == "fp32").t
        unit.rows(phase=phase)
        t.srca[0], t.srcb[0] = random_cells(rng, code, center_a), random_cells(rng, code, center_b)
        center = center_a if mnemonic in ("ELWADD", "ELWSUB") else center_a + center_b + bias
        if mnemonic in ("ELWADD", "ELWSUB") and code == FP16 and view == "fp32":
            center += 112
        old = random_old(rng, view, center)
        for i in range(8):
            if view == "fp32":
                unit.set32(i, old[i])
            else:
                t.dst[i] = [(dst_cell if view == "bf16" else fp16_cell)(int(x)) for x in old[i]]
        a = [[fields(int(x), code == BF16) for x in row] for row in t.srca[0]]
        b = [[fields(int(x), code == BF16) for x in row] for row in t.srcb[0]]
        accumulate = turn & 1
        count = 4 if mnemonic == "GAPOOL" else 8
        operands = {"GAPOOL": {"instr_mod19": 1}, "ELWADD": {"dest_accum_en": accumulate}}
        operands["ELWSUB"] = operands["ELWADD"]
        unit.do(mnemonic, **operands.get(mnemonic, {}))
        for r in range(count):
            got = unit.get32(r) if view == "fp32" else unit.get16(r, fp16=view == "fp16")
            for c in range(16):
                was = int(old[r, c])
                if mnemonic in ("MVMUL", "GAPOOL"):
                    expected = dot_element([(a[k][c], b[r][k]) for k in range(16)], was, phase, bias, view)
                elif mnemonic == "ELWMUL":
                    expected = multiply_element(a[r][c], b[r][c], was, phase, bias, view)
                else:
                    kept = was if accumulate else 0
                    expected = add_element(a[r][c], b[r][c], kept, mnemonic == "ELWSUB", code == FP16, view)
                assert hex(got[c]) == hex(expected), (turn, r, c)


@pytest.mark.rule("math F15")
def test_integer_product_saturates_and_minus_zero_reads_as_zero(unit: Matrix) -> None:
    t = unit.start(INT8, INT8, int8=True).t
    t.srca[0], t.srcb[0] = 0xE0 << 8 | 16, 0x3F0 << 8 | 16
    unit.set32(0, 0x7FFFFFF0)
    unit.set32(1, 0x80000000)
    unit.set32(2, 0xFFFFFFFF)
    unit.do("MVMUL")
    assert unit.get32(0)[0] == 0x7FFFFFFF
    assert unit.get32(1)[0] == 16 * 0xE0 * 0x3F0
    assert unit.get32(2)[0] == 0x80000000 | 0x7FFFFFFF - 16 * 0xE0 * 0x3F0


@pytest.mark.rule("math F15")
def test_integer_sum_of_opposite_numbers_is_plus_zero(unit: Matrix) -> None:
    t = unit.start(INT8, INT8, int8=True).t
    t.srca[0], t.srcb[0] = 77 << 8 | 16, 1 << 18 | 77 << 8 | 16
    unit.set32(0, 0x80000005)
    unit.do("ELWADD")
    assert not unit.get32(0).any()


@pytest.mark.rule("math F6")
def test_an_invalid_row_reads_as_zero_and_becomes_valid(unit: Matrix) -> None:
    t = unit.start().t
    t.srca[0], t.srcb[0] = ONE, ONE
    t.dst[...] = dst_cell(0x4000)
    t.dst_valid[:8] = [0, 1, 1, 0, 0, 0, 1, 1]
    unit.do("ELWMUL")
    assert [int(unit.get16(i)[3]) for i in range(8)] == [0x3F80, 0x4040, 0x4040, 0x3F80, 0x3F80, 0x3F80, 0x4040, 0x4040]
    assert t.dst_valid.all()


@pytest.mark.rule("math F7")
def test_low_bits_of_rows_are_ignored(unit: Matrix) -> None:
    t = unit.start().t
    t.srca[0, 16:32] = ONE
    t.srcb[0, 8:16] = ONE
    unit.rows(a=16 + 5, b=8 + 3, dst=64 + 7)
    unit.do("MVMUL")
    assert (unit.get16(64) == 0x4180).all()
    assert (unit.get16(71) == 0x4180).all()
    assert not t.dst[72].any()


@pytest.mark.rule("math F7")
def test_mvmul_takes_srca_rows_at_multiples_of_eight(unit: Matrix) -> None:
    t = unit.start().t
    t.srca[0, 24:40] = ONE
    t.srcb[0, :8] = ONE
    unit.rows(a=24)
    unit.do("MVMUL")
    assert (unit.get16(0) == 0x4180).all()


@pytest.mark.rule("math F7")
def test_mvmul_broadcast_writes_every_other_row_of_seven(unit: Matrix) -> None:
    t = unit.start().t
    t.srca[0, :16] = ONE
    t.srcb[0, 5] = ONE
    unit.rows(b=5, dst=16 + 6)
    unit.do("MVMUL", instr_mod19=1)
    assert [bool(t.dst[i].any()) for i in range(14, 26)] == [False, False, *[True, False] * 4, False, False]


@pytest.mark.rule("math F7", "math F11")
def test_elementwise_broadcasts_any_srcb_row_and_its_first_column(unit: Matrix) -> None:
    t = unit.start().t
    t.srcb[0, 13, 0] = ONE
    unit.rows(b=13)
    unit.do("ELWADD", instr_mod19=3)
    assert all((unit.get16(i) == 0x3F80).all() for i in range(8))


@pytest.mark.rule("math F11")
@pytest.mark.parametrize(("phase", "expected"), [(1, 0x3D80), (2, 0x3C80), (3, 0x3A00)])
def test_elwadd_in_later_phases_divides_the_sum(unit: Matrix, phase: int, expected: int) -> None:
    t = unit.start().t
    t.srca[0], t.srcb[0] = ONE, ONE
    unit.rows(phase=phase)
    unit.do("ELWADD")
    assert (unit.get16(0) == expected).all()


@pytest.mark.rule("math F8")
def test_fidelity_base_adds_to_the_phase(unit: Matrix) -> None:
    t = unit.start(TF32, TF32, fp32=True).t
    t.srca[0], t.srcb[0] = cell(0x1FE2B), cell(0x1FDB9)
    unit.rows(phase=2)
    unit.thread_configure("FIDELITY_BASE_Phase", 3)
    unit.do("ELWMUL")
    assert hex(unit.get32(0)[0]) == "0x3d6ee000"


@pytest.mark.rule("math F32")
def test_dotpv_computes_as_mvmul(unit: Matrix) -> None:
    t = unit.start().t
    t.srca[0], t.srcb[0] = ONE, ONE
    unit.do("DOTPV", dest_accum_en=1)
    assert (unit.get16(7) == 0x4180).all()


@pytest.mark.rule("math F1")
def test_a_configured_format_may_be_overridden(unit: Matrix) -> None:
    t = unit.start(TF32, TF32).t
    t.srca[0], t.srcb[0] = cell(0x1FC07), 0
    unit.thread_configure("DISABLE_IMPLIED_SRCA_FMT_Base", 1)
    unit.configure("ALU_ACC_CTRL_Fp32_enabled", 1)
    unit.configure("ALU_FORMAT_SPEC_REG0_SrcA", TF32)
    unit.do("ELWADD")
    assert hex(unit.get32(0)[0]) == "0x3f80e000"
    unit.configure("ALU_FORMAT_SPEC_REG_SrcA_override", 1)
    unit.configure("ALU_FORMAT_SPEC_REG_SrcA_val", BF16)
    unit.do("ELWADD")
    assert hex(unit.get32(0)[0]) == "0x3f800000"


@pytest.mark.rule("math F30")
def test_arithmetic_waits_for_both_banks(unit: Matrix) -> None:
    for file in range(2):
        t = unit.start().t
        t.src_owner[file, 0] = 0
        before = t.copy()
        assert not unit.do("MVMUL")
        assert (t.dst == before.dst).all()
        assert (t.rwc == before.rwc).all()
        t.src_owner[file, 0] = 1
        assert unit.coprocessor.drain(1)


@pytest.mark.rule("math F28")
def test_clear_dvalid_gives_banks_back_after_the_operation(unit: Matrix) -> None:
    t = unit.start().t
    unit.thread_configure("CLR_DVALID_SrcB_Disable", 1)
    unit.do("ELWADD", clear_dvalid=3)
    assert t.src_owner.tolist() == [[0, 1], [1, 1]]
    assert t.matrix.bank.tolist() == [1, 1]


def refusal(unit: Matrix, mnemonic: str, **operands: int) -> BhemuError:
    before = unit.t.copy()
    with pytest.raises(BhemuError) as caught:
        unit.do(mnemonic, **operands)
    for name in ("dst", "dst_valid", "srca", "srcb", "rwc", "src_owner"):
        assert (unit.t[name] == before[name]).all(), name
    assert (unit.t["matrix"]["bank"] == before["matrix"]["bank"]).all()
    return caught.value


@pytest.mark.rule("math F2")
def test_operands_of_different_exponent_width_are_refused(unit: Matrix) -> None:
    unit.start(BF16, FP16)
    assert isinstance(refusal(unit, "MVMUL"), ConfigurationError)


@pytest.mark.rule("math F2")
def test_a_code_that_is_no_format_is_refused(unit: Matrix) -> None:
    unit.start(13, BF16)
    assert isinstance(refusal(unit, "ELWMUL"), UndefinedBehavior)


@pytest.mark.rule("math F4")
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("mnemonic", ["MVMUL", "ELWADD", "ELWMUL", "GMPOOL"])
def test_five_bit_formats_do_not_see_the_upper_exponent_bits(unit: Matrix, mnemonic: str, wide: bool) -> None:
    results = []
    for garbage in (0, 0xE0):
        t = unit.start(FP16, FP16, fp32=wide).t
        t.allow_open = 1
        t.srca[...] = cell(15 << 10 | 0x200) | garbage
        t.srcb[...] = cell(16 << 10 | 0x100) | garbage
        t.dst[...] = 0
        t.dst_valid[...] = 0
        assert unit.do(mnemonic, instr_mod19=int(mnemonic == "GMPOOL"))
        results.append(t.dst.copy())
    t.allow_open, t.open_used[...] = 0, 0
    assert results[0].any()
    assert (results[0] == results[1]).all()


@pytest.mark.rule("math F14")
@pytest.mark.parametrize("mnemonic", ["MVMUL", "ELWMUL"])
def test_float_data_in_integer_mode_is_refused(unit: Matrix, mnemonic: str) -> None:
    unit.start(INT8, INT8, int8=True).t.srca[0, 2, 2] = ONE
    assert "SrcA" in str(refusal(unit, mnemonic))


@pytest.mark.rule("math F11")
def test_columns_that_a_broadcast_does_not_read_may_hold_anything(unit: Matrix) -> None:
    t = unit.start(FP16, FP16).t
    t.srcb[0, 0, 1:] = 0xFF
    assert unit.do("ELWADD", instr_mod19=3)


@pytest.mark.rule("math F5")
@pytest.mark.parametrize("mnemonic", ["MVMUL", "DOTPV", "GAPOOL"])
def test_a_matrix_product_with_kept_denormals_is_refused(unit: Matrix, mnemonic: str) -> None:
    unit.start()
    unit.configure("ALU_ACC_CTRL_Zero_Flag_disabled_src", 1)
    operands = {"instr_mod19": 1} if mnemonic == "GAPOOL" else {}
    assert isinstance(refusal(unit, mnemonic, **operands), MissingSpecification)


@pytest.mark.rule("math F7")
def test_srca_rows_past_the_end_are_refused(unit: Matrix) -> None:
    unit.start()
    unit.rows(a=56)
    assert isinstance(refusal(unit, "MVMUL"), UndefinedBehavior)


@pytest.mark.rule("math F1", "math F6")
@pytest.mark.parametrize(
    ("field", "error"),
    [
        ("ALU_ROUNDING_MODE_Fpu_srnd_en", MissingSpecification),
        ("DEST_REGW_BASE_Base", NonContractualBehavior),
    ],
)
def test_settings_that_silicon_does_not_have_are_refused(unit: Matrix, field: str, error: type[BhemuError]) -> None:
    unit.start()
    unit.configure(field, 1)
    assert isinstance(refusal(unit, "ELWMUL"), error)


@pytest.mark.rule("math O13")
def test_stochastic_rounding_is_to_nearest_when_open_choices_are_allowed(unit: Matrix) -> None:
    t = unit.start().t
    t.srca[...] = cell(0x1FC00)
    t.srcb[...] = cell(0x1DC00)  # half a unit in the last place of the BF16 sum
    unit.configure("ALU_ROUNDING_MODE_Fpu_srnd_en", 1)
    t.allow_open = 1
    assert unit.do("ELWADD")
    assert (unit.get16(0) == 0x3F81).all()
    assert t.open_used[0] == STOCHASTIC
    t.allow_open, t.open_used[...] = 0, 0


@pytest.mark.rule("math F11")
def test_kept_minus_zero_onto_nothing_gives_plus_zero(unit: Matrix) -> None:
    t = unit.start().t
    t.srcb[0] = 1 << 18
    unit.configure("ALU_ACC_CTRL_Zero_Flag_disabled_src", 1)
    unit.do("ELWADD")
    assert not t.dst[:8].any()


@pytest.mark.rule("math F32")
def test_legacy_opcodes_are_refused_unless_open_choices_are_allowed(unit: Matrix) -> None:
    t = unit.start().t
    t.dst[...] = dst_cell(0x4000)
    t.dst[1] = 0xFF00  # a denormal, which `+= 0` flushes
    assert isinstance(refusal(unit, "CONV3S1"), MissingSpecification)
    t.allow_open = 1
    assert unit.do("CONV3S1")
    assert (unit.get16(0) == 0x4000).all()
    assert not t.dst[1].any()
    t.allow_open = 0


@pytest.mark.rule("math F32")
@pytest.mark.parametrize("mnemonic", ["TRNSPSRCA", "RAREB", "SETASHRMH", "SETASHRMV", "SETPKEDGOF", "SETIBRWC"])
def test_opcodes_that_nobody_defines_are_refused(unit: Matrix, mnemonic: str) -> None:
    unit.start()
    assert isinstance(refusal(unit, mnemonic), MissingSpecification)
