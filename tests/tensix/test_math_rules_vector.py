"""Vector unit, rule by rule (math V13 to V16, V19): tables, reciprocal, products, casts and shifts between lanes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from bhemu.errors import NonContractualBehavior, UndefinedBehavior
from tests.tensix.sfpu import Sfpu

SIGN = 1 << 31
ZERO_CODE = 0x7C00
"""FP16 coefficient with exponent 31, which decodes to +0 (V13)."""
ONE_CODE = 0x3C00


@pytest.fixture(scope="module")
def shared() -> Sfpu:
    return Sfpu()


@pytest.fixture
def sfpu(shared: Sfpu) -> Sfpu:
    shared.t["vector"]["lane_flags"] = 0
    shared.t["vector"]["use_flags"] = 0
    shared.t["lregs"][:8] = 0
    return shared


def blocks(values: Any) -> np.ndarray[Any, Any]:
    """Values in groups of 32, the last of them filled up with the last value."""
    values = np.asarray(values, np.int64)
    return np.append(values, np.repeat(values[-1], -len(values) % 32)).reshape(-1, 32)


def lanes(sfpu: Sfpu, register: int) -> list[int]:
    return [int(x) for x in sfpu.t["lregs"][register]]


# --- V13 --------------------------------------------------------------------------------------------------------------


def float_of_code(code: int) -> int:
    """V13: FP16 decoding; 31 gives a zero, 0 is an ordinary exponent. The sign of a zero is lost in the sum."""
    s, e, m = code >> 15, code >> 10 & 31, code & 0x3FF
    return 0 if e == 31 else s << 31 | (e + 112) << 23 | m << 13


@pytest.mark.rule("math V13")
def test_every_fp16_coefficient_decodes_as_offset_and_as_slope(sfpu: Sfpu) -> None:
    for codes in blocks(range(1 << 16)):
        sfpu.t["lregs"][0], sfpu.t["lregs"][4] = ONE_CODE, codes  # 0 takes interval 0: 1.0 * 0 + offset
        sfpu.t["lregs"][1], sfpu.t["lregs"][5] = codes, ZERO_CODE  # 1.0 takes interval 2: slope * 1.0 + 0
        for argument in (0, 0x3F800000):
            sfpu.t["lregs"][3] = argument
            sfpu.do("SFPLUTFP32", lreg_dest=7, instr_mod1=2)
            assert lanes(sfpu, 7) == [float_of_code(int(c)) for c in codes]


@pytest.mark.rule("math V13")
@pytest.mark.plain
@pytest.mark.parametrize(("mode", "last"), [(2, 0x40400000), (3, 0x40800000)])
def test_six_entries_have_breaks_at_half_1_1_5_2_and_3_or_4(sfpu: Sfpu, mode: int, last: int) -> None:
    """Each break belongs to the interval above it; zero slopes let the offsets show the interval."""
    breaks = [0x3F000000, 0x3F800000, 0x3FC00000, 0x40000000, last]
    offsets = [0x3C00 + 0x400 * k for k in range(6)]  # 2^k
    for i in range(3):
        sfpu.t["lregs"][i] = ZERO_CODE << 16 | ZERO_CODE
        sfpu.t["lregs"][4 + i] = offsets[2 * i + 1] << 16 | offsets[2 * i]
    arguments = [b + step for b in (*breaks, 0x40400000, 0x40800000) for step in (-1, 0, 1)] + [0, 1, 0x7F7FFFFF]
    arguments += [SIGN | a for a in arguments[:8]]
    sfpu.set(3, *arguments)
    sfpu.do("SFPLUTFP32", lreg_dest=7, instr_mod1=mode)
    intervals = [sum(a & ~SIGN >= b for b in breaks) for a in arguments]
    assert lanes(sfpu, 7)[: len(arguments)] == [(127 + k) << 23 for k in intervals]
    sfpu.do("SFPLUTFP32", lreg_dest=7, instr_mod1=mode | 4)  # bit 2: the sign of LReg 3
    assert lanes(sfpu, 7)[: len(arguments)] == [
        a & SIGN | (127 + k) << 23 for a, k in zip(arguments, intervals, strict=True)
    ]


@pytest.mark.rule("math V13")
@pytest.mark.plain
@pytest.mark.parametrize("mode", [8, 10])
def test_tables_of_three_entries_write_the_register_that_lreg_7_names(sfpu: Sfpu, mode: int) -> None:
    """Mode 10 takes slope and offset from the halves of one register; both name the destination in LReg 7."""
    arguments = [0, 0x3F7FFFFF, 0x3F800000, 0x3FFFFFFF, 0x40000000, 0x40A00000]
    entry = [0, 0, 1, 1, 2, 2]
    for i in range(3):
        offset = 0x3C00 + 0x400 * i  # 2^i
        sfpu.set(i, ZERO_CODE << 16 | offset if mode == 10 else 0)
        sfpu.set(4 + i, 0 if mode == 10 else (127 + i) << 23)
    sfpu.set(3, *arguments)
    targets = [0, 1, 2, 4, 5, 6]
    sfpu.set(7, *(16 * lane + target for lane, target in enumerate(targets)))  # only bits 3:0 count
    before = sfpu.t["lregs"][:8].copy()
    sfpu.do("SFPLUTFP32", lreg_dest=2, instr_mod1=mode)
    for lane, target in enumerate(targets):
        for register in range(8):
            expected = (127 + entry[lane]) << 23 if register == target else int(before[register, lane])
            assert lanes(sfpu, register)[lane] == expected, (lane, register)


@pytest.mark.rule("math V13")
@pytest.mark.plain
@pytest.mark.parametrize("mode", [1, 5, 9, 11, 13, 15])
def test_other_tables_are_refused(sfpu: Sfpu, mode: int) -> None:
    with pytest.raises(UndefinedBehavior, match=f"mode {mode} of SFPLUTFP32"):
        sfpu.do("SFPLUTFP32", lreg_dest=7, instr_mod1=mode)


# --- V14 --------------------------------------------------------------------------------------------------------------


def reciprocal(bits: int) -> int:
    """V14, with the nearest integer to 256 / (1 + (i + 1/2) / 128) - 128 as the mantissa."""
    exponent, i = bits >> 23 & 0xFF, bits >> 16 & 0x7F
    if exponent == 0:
        return bits & SIGN | 0x7F800000
    if exponent >= 253:
        return bits & SIGN
    mantissa = round(256 / (1 + (Fraction(i) + Fraction(1, 2)) / 128) - 128)
    return bits & SIGN | (253 - exponent) << 23 | mantissa << 16


@pytest.mark.slow
@pytest.mark.rule("math V14")
def test_reciprocal_agrees_with_the_rule_for_every_sign_exponent_and_table_index(sfpu: Sfpu) -> None:
    """Low halves are ignored."""
    noise = np.random.default_rng(14).integers(0, 1 << 16, 1 << 16)
    for values in blocks(np.arange(1 << 16) << 16 | noise):
        sfpu.t["lregs"][1] = values
        sfpu.do("SFPARECIP", lreg_c=1, lreg_dest=2)
        assert lanes(sfpu, 2) == [reciprocal(int(v)) for v in values]


# --- V15 --------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("math V15")
@pytest.mark.plain
def test_mul24_is_exact_on_edge_values_and_indirect_registers(sfpu: Sfpu) -> None:
    edges = [0, 1, 2, 0x7FF, 0x800, 0xFFF, 0x1000, 0x3FFFFF, 0x400000, 0x7FFFFE, 0x7FFFFF, 0x800000, 0xFFFFFFFF]
    pairs = [(a, b) for a in edges for b in edges]
    for first, second in zip(blocks([a for a, _ in pairs]), blocks([b for _, b in pairs]), strict=True):
        products = [(int(a) & 0x7FFFFF) * (int(b) & 0x7FFFFF) for a, b in zip(first, second, strict=True)]
        sfpu.t["lregs"][0], sfpu.t["lregs"][1] = first, second
        for mode in (0, 1):
            wanted = [p >> 23 * mode & 0x7FFFFF for p in products]
            sfpu.do("SFPMUL24", lreg_src_a=0, lreg_src_b=1, lreg_src_c=9, lreg_dest=2, instr_mod1=mode)
            assert lanes(sfpu, 2) == wanted
            sfpu.set(7, 0x30)  # mode bit 2: register a is LReg 0
            sfpu.do("SFPMUL24", lreg_src_a=5, lreg_src_b=1, lreg_src_c=9, lreg_dest=3, instr_mod1=mode | 4)
            assert lanes(sfpu, 3) == wanted
            sfpu.set(7, 0x34)  # mode bit 3: the destination is LReg 4
            sfpu.do("SFPMUL24", lreg_src_a=0, lreg_src_b=1, lreg_src_c=9, lreg_dest=5, instr_mod1=mode | 8)
            assert lanes(sfpu, 4) == wanted


@pytest.mark.rule("math V15")
@pytest.mark.plain
def test_an_addend_and_reserved_modes_are_refused(sfpu: Sfpu) -> None:
    with pytest.raises(NonContractualBehavior, match="register c 0"):
        sfpu.do("SFPMUL24", lreg_src_c=0, lreg_dest=2)
    for mode in (2, 3, 6, 15):
        with pytest.raises(UndefinedBehavior, match=f"mode {mode} of SFPMUL24"):
            sfpu.do("SFPMUL24", lreg_src_c=9, lreg_dest=2, instr_mod1=mode)


# --- V16 --------------------------------------------------------------------------------------------------------------

MAGNITUDES = sorted(
    {
        (1 << k) + (step << max(k - 25, 0)) + rest
        for k in range(31)
        for step in (-4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7)
        for rest in (-1, 0, 1)
        if 0 <= (1 << k) + (step << max(k - 25, 0)) + rest < 1 << 31
    }
    | {(1 << 31) - 1 - n for n in range(200)}
)
"""Around the powers of two, ties and their neighbours in steps of a quarter of the last place."""


def cast_nearest_even(bits: int) -> int:
    """V16 mode 0: sign-magnitude to FP32; Python's integer division of exact halves."""
    sign, magnitude = bits & SIGN, bits & 0x7FFFFFFF
    if magnitude == 0:
        return sign
    drop = max(magnitude.bit_length() - 24, 0)
    significand = round(Fraction(magnitude, 1 << drop))  # rounds half to even
    exponent = drop
    while significand < 1 << 23:
        significand, exponent = significand * 2, exponent - 1
    if significand == 1 << 24:
        significand, exponent = 1 << 23, exponent + 1
    return sign | (exponent + 150) << 23 | significand - (1 << 23)


@pytest.mark.rule("math V16")
@pytest.mark.plain
def test_mode_0_rounds_ties_to_even_and_carries(sfpu: Sfpu) -> None:
    for values in blocks([s | m for m in MAGNITUDES for s in (0, SIGN)]):
        sfpu.t["lregs"][1] = values
        sfpu.do("SFPCAST", lreg_src_c=1, lreg_dest=2)
        assert lanes(sfpu, 2) == [cast_nearest_even(int(v)) for v in values]


@pytest.mark.rule("math V16")
@pytest.mark.plain
@pytest.mark.parametrize("random", [0, 0x40 << 10, 0x7F << 10, 0xFFFE03FF, 0xFFFFFFFF, 0x15555555])
def test_mode_1_adds_a_unit_where_the_dropped_bits_exceed_the_generator(sfpu: Sfpu, random: int) -> None:
    for values in blocks([s | m for m in MAGNITUDES for s in (0, SIGN)]):
        sfpu.t["lregs"][1] = values
        sfpu.t["prng"][:] = random
        sfpu.do("SFPCAST", lreg_src_c=1, lreg_dest=2, instr_mod1=1)
        for v, got in zip(values.tolist(), lanes(sfpu, 2), strict=True):
            magnitude = v & 0x7FFFFFFF
            expected = v & SIGN
            if magnitude:
                w = magnitude << (32 - magnitude.bit_length())
                unit = (w >> 1 & 0x7F) * 2 > random >> 9 & 0xFE
                # The exponent of bit 31 of w, and a carry out of 24 bits that runs into it.
                expected |= ((magnitude.bit_length() + 126) << 23) + (w >> 8) - (1 << 23) + unit
            assert hex(got) == hex(expected), hex(v)


@pytest.mark.rule("math V16")
@pytest.mark.plain
def test_cast_modes_2_and_3_follow_the_rule_on_edges_and_3_is_its_own_inverse(sfpu: Sfpu) -> None:
    edges = [0, 1, 2, 0x7FFFFFFE, 0x7FFFFFFF, SIGN, SIGN | 1, SIGN | 2, 0xFFFFFFFE, 0xFFFFFFFF, 0xC0000000, 0x40000000]
    sfpu.set(1, *edges)
    sfpu.do("SFPCAST", lreg_src_c=1, lreg_dest=2, instr_mod1=3)
    # -m in sign-magnitude is 2^32 - m in two's complement and the other way round; 0x80000000 has no partner.
    assert lanes(sfpu, 2)[:12] == [e if e <= SIGN else (SIGN - e) % 2**32 | SIGN for e in edges]
    sfpu.do("SFPCAST", lreg_src_c=2, lreg_dest=3, instr_mod1=3)
    assert lanes(sfpu, 3)[:12] == edges
    sfpu.do("SFPCAST", lreg_src_c=1, lreg_dest=2, instr_mod1=2)
    assert lanes(sfpu, 2)[:12] == [e if e <= SIGN else 2**32 - e for e in edges]


# --- V19 --------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("math V19")
@pytest.mark.plain
@pytest.mark.parametrize("mode", range(5))
def test_lanes_and_registers_move_in_enabled_lanes_from_values_sampled_before(sfpu: Sfpu, mode: int) -> None:
    rng = np.random.default_rng(mode)
    before = rng.integers(0, 1 << 32, (8, 32))
    for c in (0, 3, 5):
        sfpu.t["lregs"][:8] = before
        flags = 0x5AF0_13C7
        sfpu.flags(flags)
        sfpu.do("SFPSHFT2", lreg_src_c=c, lreg_dest=3, instr_mod1=mode)
        expected = before.copy()
        for lane in range(32):
            if not flags >> lane & 1:
                continue
            left = before[c, lane - 1] if lane % 8 else before[c, lane + 7]
            if mode < 3:
                expected[:3, lane] = before[1:4, lane]
            below = before[0, lane + 8] if lane < 24 else 0
            expected[3, lane] = [0, below, left, left, left if lane % 8 else 0][mode]
        np.testing.assert_array_equal(sfpu.t["lregs"][:8], expected)
