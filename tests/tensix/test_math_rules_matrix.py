"""Matrix unit, rule by rule (math F3 to F18): views, rows, zeros, rounding, integers, pooling, against exact models."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from bhemu.errors import MissingSpecification, UndefinedBehavior
from tests.tensix.matrix_unit import BF16, FP16, INT8, TF32, Matrix, cell, dst_cell, fp16_cell

pytestmark = pytest.mark.plain

ONE = cell(0x1FC00)
FP16_ONE = cell(0x03C00)
INT_MAX = 2**31 - 1


# --- views and rows ---------------------------------------------------------------------------------------------------


@pytest.mark.rule("math F3")
@pytest.mark.parametrize("sfpu_fp32", [0, 1])
@pytest.mark.parametrize(("code", "fp32", "int8"), [(BF16, 0, 0), (FP16, 0, 0), (BF16, 1, 0), (FP16, 1, 0), (0, 0, 1)])
def test_the_view_of_dst_follows_fp32_integer_mode_and_style(
    unit: Matrix, code: int, fp32: int, int8: int, sfpu_fp32: int
) -> None:
    """SFPU_Fp32_enabled has no effect; a 32-bit result is told from a 16-bit one by rows 8..15, its low halves."""
    code = INT8 if int8 else code
    t = unit.start(code, code, fp32=bool(fp32), int8=bool(int8)).t
    unit.configure("ALU_ACC_CTRL_SFPU_Fp32_enabled", sfpu_fp32)
    t.dst[...] = 0x5555
    t.srca[0] = 1 << 8 | 16 if int8 else FP16_ONE if code == FP16 else ONE
    t.srcb[0] = 0
    unit.do("ELWADD")
    if int8:
        assert (unit.get32(0) == 1).all()
    elif fp32:
        assert (unit.get32(0) == 0x3F800000).all()
    else:
        assert (unit.get16(0, fp16=code == FP16) == (0x3C00 if code == FP16 else 0x3F80)).all()
    assert (t.dst[8:16] == (0x5555 if not (fp32 or int8) else t.dst[8, 0])).all()
    assert (t.dst[8, 0] == 0x5555) is not bool(fp32 or int8)


@pytest.mark.rule("math F6")
def test_a_32_bit_row_becomes_valid_through_its_high_half_alone(unit: Matrix) -> None:
    t = unit.start(fp32=True).t
    t.srca[0], t.srcb[0] = ONE, ONE
    t.dst_valid[...] = 0
    unit.do("ELWMUL")
    assert np.flatnonzero(t.dst_valid).tolist() == list(range(8))


@pytest.mark.rule("math F6")
def test_dst_rows_are_the_sum_of_immediate_counter_and_offset_modulo_1024(unit: Matrix) -> None:
    t = unit.start().t
    t.srca[0], t.srcb[0] = ONE, ONE
    unit.rows(dst=512)
    unit.thread_configure("DEST_TARGET_REG_CFG_MATH_Offset", 504)
    unit.do("ELWMUL", dst=16)
    assert np.flatnonzero(t.dst.any(axis=1)).tolist() == list(range(8, 16))


# instruction, operands, bits of the row counters of SrcA, SrcB, Dst that are ignored, Dst rows written (F7)
ALIGNMENT = [
    ("MVMUL", {}, 7, 7, 7, 8),
    ("DOTPV", {}, 7, 7, 7, 8),
    ("MVMUL", {"instr_mod19": 1}, 7, 0, 6, None),
    ("GAPOOL", {"instr_mod19": 1}, 7, 7, 3, 4),
    ("GMPOOL", {"instr_mod19": 1}, 15, 7, 3, 4),
    ("ELWADD", {}, 7, 7, 7, 8),
    ("ELWSUB", {}, 7, 7, 7, 8),
    ("ELWMUL", {}, 7, 7, 7, 8),
    ("ELWADD", {"instr_mod19": 2}, 7, 0, 7, 8),
    ("ELWMUL", {"instr_mod19": 3}, 7, 0, 7, 8),
]


@pytest.mark.rule("math F7")
@pytest.mark.parametrize(("mnemonic", "operands", "loose_a", "loose_b", "loose_dst", "count"), ALIGNMENT)
def test_low_bits_of_row_counters_are_ignored_and_the_block_has_its_size(
    unit: Matrix, mnemonic: str, operands: dict[str, int], loose_a: int, loose_b: int, loose_dst: int, count: int | None
) -> None:
    """Every combination of ignored bits gives what the aligned rows give; the next bit up does not."""
    rng = np.random.default_rng(7)
    a = (rng.integers(0, 128, (64, 16)) << 11 | rng.integers(120, 130, (64, 16))).astype(np.uint32)
    b = (rng.integers(0, 128, (64, 16)) << 11 | rng.integers(120, 130, (64, 16))).astype(np.uint32)

    def result(row_a: int, row_b: int, row_dst: int) -> np.ndarray[Any, Any]:
        t = unit.start().t
        t.srca[0], t.srcb[0] = a, b
        t.dst_valid[...] = 0
        unit.rows(a=row_a, b=row_b, dst=row_dst)
        unit.do(mnemonic, **operands)
        written = np.flatnonzero(t.dst_valid).tolist()
        base = row_dst & ~loose_dst
        assert written == (list(range(base, base + count)) if count else [base, base + 2, base + 4, base + 6])
        return t.dst.copy()

    aligned = result(16, 32, 64)
    assert aligned.any()
    for extra in (1, 2, 3, 4, 7, 8, 15):
        if extra <= loose_a:
            assert (result(16 + extra, 32, 64) == aligned).all()
        if extra <= loose_b:
            assert (result(16, 32 + extra, 64) == aligned).all()
        if extra & ~loose_dst == 0:
            assert (result(16, 32, 64 + extra) == aligned).all()
    for row_a, row_b in ((16 + loose_a + 1, 32), (16, 32 + loose_b + 1)):
        assert (result(row_a, row_b, 64) != aligned).any()


# --- zeros ------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("math F5")
@pytest.mark.parametrize("keep", [0, 1])
def test_zero_exponents_of_srca_always_count_as_zero_those_of_srcb_unless_denormals_are_kept(
    unit: Matrix, keep: int
) -> None:
    t = unit.start().t
    unit.configure("ALU_ACC_CTRL_Zero_Flag_disabled_src", keep)
    for i in range(8):
        t.dst[i] = dst_cell(0x4000)
    t.srca[0], t.srcb[0] = 0x3F8 << 8, cell(0x25800)  # a SrcA denormal times 2^23
    unit.do("ELWMUL")
    assert (unit.get16(0) == 0x4000).all()
    t.dst[...] = 0
    t.srca[0], t.srcb[0] = cell(0x20800), 0x200 << 8  # 8.0 times 1.5 with exponent 0: exponent 130 + 0 - 127
    unit.do("ELWMUL")
    assert (unit.get16(0) == (3 << 7 | 0x40 if keep else 0)).all()


@pytest.mark.rule("math F9", "math F12")
@pytest.mark.parametrize("mnemonic", ["ELWMUL", "MVMUL"])
@pytest.mark.parametrize(("phase", "carried"), [(0, 97), (1, 92), (2, 90), (3, 85)])
def test_a_zero_product_of_fp16_in_32_bit_dst_carries_an_exponent(
    unit: Matrix, mnemonic: str, phase: int, carried: int
) -> None:
    """Smaller Dst values are rounded, half up on the magnitude, to the last place of that exponent."""
    rng = np.random.default_rng(phase)
    t = unit.start(FP16, FP16, fp32=True).t
    t.srca[0], t.srcb[0] = 0, FP16_ONE
    unit.rows(phase=phase)
    exponents = carried - 27 + np.arange(8 * 16).reshape(8, 16) % 32
    mantissas = np.where(rng.random((8, 16)) < 0.5, rng.integers(0, 1 << 23, (8, 16)), 0)
    old = rng.integers(0, 2, (8, 16)) << 31 | exponents << 23 | mantissas
    for i in range(8):
        unit.set32(i, old[i])
    unit.do(mnemonic)
    for i in range(8):
        for got, was, e, m in zip(unit.get32(i), old[i], exponents[i], mantissas[i], strict=True):
            expected = int(was)
            if e < carried:
                units = int(Fraction((1 << 23) + int(m), 1 << int(carried - e)) + Fraction(1, 2))
                value = np.float32(units) * np.float32(2.0) ** np.float32(carried - 150)
                expected = int(value.view(np.uint32)) | (int(was) & 0x80000000 if units else 0)
            assert hex(got) == hex(expected), (e, m)


@pytest.mark.rule("math F9", "math F10")
@pytest.mark.parametrize("small", [0, -1, -3, -10])
def test_a_product_below_the_smallest_exponent_is_kept_by_mvmul_and_vanishes_in_elwmul(
    unit: Matrix, small: int
) -> None:
    """The exponents add up to 1 for k = 0 and to `small` for k = 1; alone, such a product leaves nothing (F10)."""
    factors = (64, 64, 64 - 1 + small)  # exponents of A for k = 0; of B; of A for k = 1
    for with_big in (True, False):
        t = unit.start(TF32, TF32, fp32=True).t
        t.srca[0, 0] = factors[0] if with_big else 0
        t.srca[0, 1] = factors[2]
        t.srcb[0, :8, :2] = factors[1]
        unit.do("MVMUL")
        mantissa = int(Fraction(1024, 1 << (1 - small)) + Fraction(1, 2)) << 13  # aligned half up, 1024 being 1.0
        assert (unit.get32(0) == (1 << 23 | mantissa if with_big else 0)).all()
    t = unit.start(TF32, TF32, fp32=True).t
    t.srca[0], t.srcb[0] = factors[2], factors[1]
    unit.do("ELWMUL")
    assert not unit.get32(0).any()


# --- F12 --------------------------------------------------------------------------------------------------------------


def rounded_sum(term: Fraction, x: int, dst: Fraction, e_dst: int, kept: int, bias: int) -> Fraction | None:
    """F12 on signed exact numbers; None for results outside the normal range."""
    greatest = max(x, e_dst)
    unit = Fraction(2) ** (greatest - bias - 23)
    half = Fraction(1, 2)
    a = (term / unit + half).__floor__() if greatest - x < 31 else 0
    d = (abs(dst) / unit + half).__floor__() if greatest - e_dst < 31 else 0
    d = d if dst >= 0 else -d
    if kept < 24:
        a = (Fraction(a, 1 << 13) + half).__floor__() << 13
        rounded = (Fraction(abs(d), 1 << 13) + half).__floor__() << 13
        d = rounded if d >= 0 else -rounded
    total = a + d
    drop = max(abs(total).bit_length() - kept, 0)
    magnitude = (Fraction(abs(total), 1 << drop) + half).__floor__() << drop
    exponent = greatest + abs(total).bit_length() - 24
    if total and not 2 <= exponent <= (250 if bias == 127 else 30):
        return None
    return (-1 if total < 0 else 1) * magnitude * unit


@pytest.mark.rule("math F12")
@pytest.mark.parametrize(("code", "view"), [(TF32, "fp32"), (BF16, "bf16"), (FP16, "fp16")])
@pytest.mark.parametrize("signs", range(4))
def test_terms_round_toward_plus_infinity_and_dst_and_results_away_from_zero(
    unit: Matrix, code: int, view: str, signs: int
) -> None:
    """At all distances of the exponents, with mantissas that make ties of each of the roundings."""
    bias, kept = (15, 11) if view == "fp16" else (127, {"fp32": 24, "bf16": 8}[view])
    spread = 15 if view == "fp16" else 36
    distances = np.resize(np.arange(-spread, spread + 1), (8, 16))
    e_dst = 15 if view == "fp16" else 100
    sign_a, sign_dst = signs & 1, signs >> 1
    checked = 0
    # The upper four mantissa bits of A and six of B take part in phase 0, so that the products are exact.
    for m_a, m_b, m_dst in ((0, 0, 0), (8, 0, 1), (15, 63, -1), (1, 1, -2), (15, 32, 1), (0, 63, -1), (8, 32, 0)):
        t = unit.start(code, code, fp32=view == "fp32").t
        x = np.clip(e_dst + distances, 1, 30 if view == "fp16" else 254)
        e_a = np.full((8, 16), bias)
        t.srca[0, :8] = sign_a << 18 | m_a << 14 | e_a
        t.srcb[0, :8] = m_b << 12 | x
        width = kept - 1
        mantissa = m_dst & ((1 << width) - 1)
        old = (sign_dst << (width + (5 if view == "fp16" else 8))) | e_dst << width | mantissa
        for i in range(8):
            if view == "fp32":
                unit.set32(i, old)
            else:
                t.dst[i] = (fp16_cell if view == "fp16" else dst_cell)(old)
        unit.do("ELWMUL")
        dst = Fraction((1 << width) + mantissa, 1 << width) * Fraction(2) ** (e_dst - bias) * (-1) ** sign_dst
        for i in range(8):
            got = unit.get32(i) if view == "fp32" else unit.get16(i, fp16=view == "fp16")
            for bits, own in zip(got.tolist(), x[i].tolist(), strict=True):
                term = Fraction((16 + m_a) * (64 + m_b), 1024) * Fraction(2) ** (own - bias) * (-1) ** sign_a
                expected = rounded_sum(term, own, dst, e_dst, kept, bias)
                if expected is None:
                    continue
                checked += 1
                e_bits = 5 if view == "fp16" else 8
                e_got = bits >> width & ((1 << e_bits) - 1)
                value = Fraction((1 << width) + (bits & ((1 << width) - 1)), 1 << width) if e_got else Fraction(0)
                value *= Fraction(2) ** (e_got - bias) * (-1) ** (bits >> (width + e_bits))
                assert value == expected, (m_a, m_b, m_dst, own - e_dst)
                assert value or bits == 0
    assert checked > 7 * 50


# --- integers ---------------------------------------------------------------------------------------------------------


def signed(cells: Any, mask: int, keep: bool) -> np.ndarray[Any, Any]:
    """F14: values of Src cells of integers, 0 where the exponent field is 0 unless `keep`."""
    cells = np.asarray(cells, np.int64)
    magnitude = np.where((cells & 0xFF != 0) | keep, cells >> 8 & 0x3FF & mask, 0)
    return np.where(cells >> 18 & 1, -magnitude, magnitude)


def stored(values: Any) -> list[str]:
    """F15: sign-magnitude with saturation, zero as +0."""
    values = np.clip(np.asarray(values, np.int64), -INT_MAX, INT_MAX)
    return [hex(int(v)) for v in np.where(values < 0, 1 << 31 | -values, values)]


@pytest.mark.rule("math F14", "math F15")
@pytest.mark.parametrize("phase", range(4))
@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("mnemonic", ["ELWMUL", "ELWADD", "ELWSUB", "MVMUL", "GAPOOL"])
def test_integer_mode_agrees_with_exact_sums(unit: Matrix, mnemonic: str, keep: int, phase: int) -> None:
    rng = np.random.default_rng(phase)
    t = unit.start(INT8, INT8, int8=True).t
    unit.configure("ALU_ACC_CTRL_Zero_Flag_disabled_src", keep)
    unit.rows(phase=phase)
    for file in (t.srca, t.srcb):
        exponents = np.where(rng.random((64, 16)) < 0.2, 0, 16)
        file[0] = rng.integers(0, 2, (64, 16)) << 18 | rng.integers(0, 1024, (64, 16)) << 8 | exponents
    old = rng.choice([0, 5, -5, INT_MAX, -INT_MAX, INT_MAX - 1000, 1000 - INT_MAX, 70000, -(1 << 24)], (8, 16))
    for i in range(8):
        unit.set32(i, [int(x, 16) for x in stored(old[i])])
    if mnemonic in ("MVMUL", "GAPOOL") and keep:
        with pytest.raises(MissingSpecification):
            unit.do(mnemonic, instr_mod19=int(mnemonic == "GAPOOL"))
        return
    accumulate = phase & 1
    operands = {"GAPOOL": {"instr_mod19": 1}, "ELWADD": {"dest_accum_en": accumulate}}
    operands["ELWSUB"] = operands["ELWADD"]
    unit.do(mnemonic, **operands.get(mnemonic, {}))
    if mnemonic in ("ELWADD", "ELWSUB"):
        a, b = signed(t.srca[0, :8], 0x3FF, False), signed(t.srcb[0, :8], 0x3FF, bool(keep))
        total = (a + b if mnemonic == "ELWADD" else a - b) + old * accumulate
    else:
        a = signed(t.srca[0, :16], 0x01F if phase & 1 else 0x0E0, False)
        b = signed(t.srcb[0, :8], 0x00F if phase & 2 else 0x3F0, bool(keep))
        total = old + (a[:8] * b if mnemonic == "ELWMUL" else b @ a)
    if mnemonic == "GAPOOL":
        total[4:] = old[4:]
    for i in range(8):
        assert [hex(x) for x in unit.get32(i)] == stored(total[i]), i


# --- pooling ----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("math F16")
def test_gapool_is_mvmul_of_four_rows_and_nothing_else(unit: Matrix) -> None:
    rng = np.random.default_rng(16)
    a, b = (rng.integers(0, 128, (64, 16)) << 11 | rng.integers(115, 135, (64, 16)) for _ in range(2))
    results = []
    for mnemonic, operands in (("MVMUL", {}), ("GAPOOL", {"instr_mod19": 1})):
        t = unit.start().t
        t.srca[0], t.srcb[0], t.dst[...] = a, b, dst_cell(0x4100)
        unit.do(mnemonic, **operands)
        results.append(t.dst.copy())
    assert (results[1][:4] == results[0][:4]).all()
    assert (results[1][4:] == dst_cell(0x4100)).all()
    for operands in ({"instr_mod19": 0}, {"instr_mod19": 1, "max_pool_index_en": 1}):
        with pytest.raises((MissingSpecification, UndefinedBehavior)):
            unit.do("GAPOOL", **operands)


def order(bits: int) -> int:
    """F17: rank of a 32-bit sign-magnitude number, -0 below +0."""
    return -(bits & 0x7FFFFFFF) - 1 if bits >> 31 else bits


@pytest.mark.rule("math F17")
@pytest.mark.parametrize(("code", "wide"), [(BF16, False), (BF16, True), (TF32, True)])
def test_gmpool_is_the_maximum_in_total_order(unit: Matrix, code: int, wide: bool) -> None:
    rng = np.random.default_rng([code, wide])
    extremes = np.array([0, 1 << 18, 0x7FFFF, 0x3FFFF, 0x400, 0x7FC00, 0x3FC00])
    for turn in range(6):
        t = unit.start(code, code, fp32=wide).t
        t.srcb[0, 0] = ONE
        values = rng.integers(0, 1 << 19, (16, 16)) | (turn & 1) << 18  # odd turns: negative numbers alone
        values = np.where(rng.random((16, 16)) < 0.2, rng.choice(extremes, (16, 16)) | (turn & 1) << 18, values)
        t.srca[0, :16] = [[cell(int(x)) for x in row] for row in values]
        old = rng.choice([0, 1 << 31, 0x7F800000, 0xFF800000, 0xFFFFFFFF, 0x00010000, 0x80010000, 0xC0481234], 16)
        if wide:
            unit.set32(0, old)
        else:
            t.dst[0] = [dst_cell(int(x) >> 16) for x in old]
        t.dst_valid[:4] = [turn % 3 != 0, 0, 1, 0]
        unit.do("GMPOOL", instr_mod19=1)
        for column in range(16):
            best = int(old[column]) & (0xFFFFE000 if wide else 0xFFFF0000)
            if turn % 3 == 0:
                best = 0xFFFFE000 if wide else 0xFFFF0000
            for row in range(16):
                value = int(values[row, column]) & (0x7FFFF if code == TF32 else 0x7FFF8)
                candidate = value << 13 if value >> 10 & 0xFF else 0
                best = candidate if order(candidate) > order(best) else best
            got = int(unit.get32(0)[column]) if wide else int(unit.get16(0)[column]) << 16
            assert hex(got) == hex(best), (turn, column)
        for i in range(1, 4):
            assert not (unit.get32(i) if wide else unit.get16(i)).any()
        assert t.dst_valid[:4].all()


@pytest.mark.rule("math F18")
def test_gmpool_index_mode_agrees_with_the_documents_scan(unit: Matrix) -> None:
    """Rows 4..7, 0..3, 8..15 in this order, >=, index and phase in the low half; with many equal values."""
    rng = np.random.default_rng(18)
    for _ in range(4):
        t = unit.start(fp32=True).t
        t.srcb[0, 0] = ONE
        values = rng.choice([0x3F80, 0x4000, 0xBF80, 0xC040], (16, 16))
        t.srca[0, :16] = [[cell(int(x) << 3) for x in row] for row in values]
        old_high = rng.choice([0x3F80, 0x4000, 0xC040, 0x4080], 16)
        old_low = rng.integers(0, 16, 16) << 8 | rng.integers(0, 256, 16)
        unit.set32(0, old_high << 16 | old_low)
        others = rng.integers(0, 16, 16) << 8
        for i in range(1, 4):
            unit.set32(i, others)
        unit.do("GMPOOL", instr_mod19=1, max_pool_index_en=1)
        for column in range(16):
            best, low = int(old_high[column]), int(old_low[column])
            phase, index = (low + 0x100) & 0xF00, low & 0xFF
            for row in (4, 5, 6, 7, 0, 1, 2, 3, *range(8, 16)):
                candidate = int(values[row, column])
                if order(candidate << 16) >= order(best << 16):
                    best = candidate
                    if row < 8:
                        index = phase // 16 + (0, 3, 6, 1, 4, 7, 2, 5)[row]
            assert hex(unit.get32(0)[column]) == hex(best << 16 | phase | index), column
            assert hex(unit.get32(2)[column]) == hex((int(others[column]) + 0x100) & 0xF00)
