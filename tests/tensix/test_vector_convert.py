"""Rounding, casts, tables and approximations (math V12 to V17): section T, closed forms, document-only modes."""

from __future__ import annotations

from decimal import Decimal, getcontext

import numpy as np
import pytest

from bhemu.errors import MissingSpecification, NonContractualBehavior, UndefinedBehavior
from tests.tensix.sfpu import Sfpu

# mode, input, output with rounding to nearest (section T)
ROUND_NEAREST = [
    (1, 0x3F808000, 0x3F810000),
    (1, 0x3F807FFF, 0x3F800000),
    (1, 0x807FFFFF, 0x00000000),
    (1, 0xFF800001, 0xFF800000),
    (1, 0x7F7FFFFF, 0x7F800000),
    (3, 0x3F000000, 0x00000001),
    (3, 0x3EFFFFFF, 0x00000000),
    (3, 0xBF000000, 0x80000001),
    (3, 0x40200000, 0x00000003),
    (3, 0xC2FF0000, 0x8000007F),
    (3, 0x7FC00000, 0x0000007F),
    (2, 0xC0200000, 0x00000003),
    (2, 0x437F8000, 0x000000FF),
]

# Mantissas of the approximate reciprocal by the top 7 mantissa bits (V14)
RECIPROCAL = """
127 125 123 121 119 117 116 114 112 110 109 107 105 104 102 100 99 97 96 94 93 91 90 88 87 85 84 83 81 80 79 77
76 75 74 72 71 70 69 68 66 65 64 63 62 61 60 59 58 57 56 55 54 53 52 51 50 49 48 47 46 45 44 43
42 41 40 40 39 38 37 36 35 35 34 33 32 31 31 30 29 28 28 27 26 25 25 24 23 23 22 21 21 20 19 19
18 17 17 16 15 15 14 14 13 12 12 11 11 10 9 9 8 8 7 7 6 5 5 4 4 3 3 2 2 1 1 0
"""


@pytest.mark.rule("math V17")
@pytest.mark.parametrize("mode_bit_3", [0, 8])  # set by LLK's exponential, in mode 6
@pytest.mark.parametrize(("mode", "bits", "want"), ROUND_NEAREST)
def test_rounding_to_nearest_gives_the_published_values(
    sfpu: Sfpu, mode: int, bits: int, want: int, mode_bit_3: int
) -> None:
    sfpu.set(1, bits)
    sfpu.do("SFP_STOCH_RND", lreg_src_c=1, lreg_dest=2, instr_mod1=mode | mode_bit_3)
    assert sfpu.get(2) == [want] * 32


def _threshold(rounding: int, random: int) -> int:
    return (0x400000, random & 0x7FFFFF, 0x7FFFFF)[rounding]


def _rounded(mode: int, bits: int, threshold: int, shift: int) -> int:
    """V17 with Python integers."""
    sign, exponent, mantissa = bits & 0x80000000, (bits >> 23) & 255, bits & 0x7FFFFF
    if mode in (0, 1):
        drop = 13 if mode == 0 else 16
        if exponent == 0:
            return 0
        if exponent == 255:
            return sign | 0x7F800000
        up = (bits & ((1 << drop) - 1)) >= threshold >> (23 - drop)
        return ((bits >> drop) + up) << drop
    top = {2: 255, 3: 127, 4: 255, 5: 127, 6: 65535, 7: 32767}[mode]
    if mode in (4, 5):
        wide = (bits & 0x7FFFFFFF) << 23 >> shift
    elif exponent - 127 < -1:
        wide = 0
        threshold = 1 << 23
    elif exponent - 127 >= 16:
        wide = top << 23
        threshold = 1 << 23
    else:
        wide = (1 << 23 | mantissa) << (exponent - 127) if exponent >= 127 else (1 << 23 | mantissa) >> 1
    value = min((wide >> 23) + ((wide & 0x7FFFFF) >= threshold), top)
    return value | (sign if mode in (3, 5, 7) and value else 0)


@pytest.mark.rule("math V17")
@pytest.mark.parametrize("rounding", [0, 1, 2])
@pytest.mark.parametrize("mode", range(8))
def test_rounding_agrees_with_exact_integers(sfpu: Sfpu, mode: int, rounding: int) -> None:
    rng = np.random.default_rng(mode * 3 + rounding)
    for _ in range(20):
        bits = rng.integers(0, 1 << 32, 32)
        if mode not in (4, 5):
            bits = np.where(rng.random(32) < 0.8, (bits & 0x807FFFFF) | rng.integers(124, 145, 32) << 23, bits)
        shift = rng.integers(0, 32, 32)
        random = rng.integers(0, 1 << 32, 32)
        sfpu.set(1, *map(int, bits))
        sfpu.set(2, *map(int, shift))
        sfpu.t["prng"][:] = random
        sfpu.do("SFP_STOCH_RND", lreg_src_b=2, lreg_src_c=1, lreg_dest=3, instr_mod1=mode, rnd_mode=rounding)
        lanes = zip(map(int, bits), map(int, shift), map(int, random), strict=True)
        assert sfpu.get(3) == [_rounded(mode, b, _threshold(rounding, r), s) for b, s, r in lanes]


@pytest.mark.rule("math V17")
def test_rounding_steps_the_generators_of_enabled_lanes_even_when_unused(sfpu: Sfpu) -> None:
    sfpu.t["prng"][:] = 0x12345678
    sfpu.flags(0xFFFF0000)
    sfpu.do("SFP_STOCH_RND", lreg_src_c=1, lreg_dest=2, instr_mod1=1)
    assert [int(x) for x in sfpu.t["prng"][[0, 31]]] == [0x12345678, 0x12345678 >> 1]


@pytest.mark.rule("math V17")
def test_an_integer_shift_may_be_immediate(sfpu: Sfpu) -> None:
    sfpu.set(1, 0x80000018)
    sfpu.do("SFP_STOCH_RND", lreg_src_c=1, lreg_dest=2, instr_mod1=5 + 8, imm8_math=4)
    assert sfpu.get(2)[0] == 0x80000002


@pytest.mark.rule("math V16")
def test_integers_to_fp32_round_to_nearest_even(sfpu: Sfpu) -> None:
    values = [0, 1, 0x80000001, 0x80000000, 0x1000001, 0x1000003, 0x7FFFFFFF, 0x00FFFFFF]
    sfpu.set(1, *values)
    sfpu.do("SFPCAST", lreg_src_c=1, lreg_dest=2)
    want = [np.float32(v & 0x7FFFFFFF).view(np.uint32) | v & 0x80000000 for v in values]
    assert sfpu.get(2)[: len(values)] == want


@pytest.mark.rule("math V16")
def test_stochastic_cast_compares_seven_bits_of_the_generator(sfpu: Sfpu) -> None:
    sfpu.set(1, 0x7FFFFF81 >> 0, 0x01000003)
    sfpu.t["prng"][:] = 0x40 << 10  # bits 16:10 are compared
    sfpu.do("SFPCAST", lreg_src_c=1, lreg_dest=2, instr_mod1=1)
    # 0x7FFFFF81 is normalised to ...FF02: the dropped 1 of 128 does not exceed 0x40; 0x01000003 drops 0x80 of 256
    assert sfpu.get(2)[:2] == [0x4EFFFFFF, 0x4B800001]
    sfpu.t["prng"][:] = 0
    sfpu.do("SFPCAST", lreg_src_c=1, lreg_dest=2, instr_mod1=1)
    assert sfpu.get(2)[:2] == [0x4F000000, 0x4B800002]


@pytest.mark.rule("math V16")
def test_casts_convert_between_sign_magnitude_and_twos_complement(sfpu: Sfpu) -> None:
    sfpu.set(1, 5, 0x80000005, 0xFFFFFFFB, 0x80000000)
    sfpu.do("SFPCAST", lreg_src_c=1, lreg_dest=2, instr_mod1=3)
    assert sfpu.get(2)[:4] == [5, 0xFFFFFFFB, 0x80000005, 0x80000000]
    sfpu.do("SFPCAST", lreg_src_c=1, lreg_dest=2, instr_mod1=2)
    assert sfpu.get(2)[:4] == [5, 0x7FFFFFFB, 5, 0x80000000]


@pytest.mark.rule("math V14")
def test_reciprocal_mantissas_are_the_published_table(sfpu: Sfpu) -> None:
    """The printed table is the closed form, which never meets a tie, and the unit's results are the table."""
    table = [int(x) for x in RECIPROCAL.split()]
    assert table == [(2 * 65536 + 257 + 2 * i) // (2 * (257 + 2 * i)) - 128 for i in range(128)]
    assert all((2 * 65536) % (257 + 2 * i) for i in range(128))
    for first in range(0, 128, 32):
        sfpu.set(1, *[0x3F800000 | (first + lane) << 16 for lane in range(32)])
        sfpu.do("SFPARECIP", lreg_c=1, lreg_dest=2)
        assert sfpu.get(2) == [126 << 23 | table[first + lane] << 16 for lane in range(32)]


@pytest.mark.rule("math V14")
def test_reciprocal_exchanges_zero_and_infinity_and_reverses_exponents(sfpu: Sfpu) -> None:
    sfpu.set(1, 0x80000000, 0x007FFFFF, 0xFF800000, 253 << 23, 252 << 23, 1 << 23)
    sfpu.do("SFPARECIP", lreg_c=1, lreg_dest=2)
    assert sfpu.get(2)[:6] == [0xFF800000, 0x7F800000, 0x80000000, 0, 0x00FF0000, 0x7E7F0000]


@pytest.mark.rule("math V14")
def test_reciprocal_only_where_another_register_is_negative(sfpu: Sfpu) -> None:
    sfpu.set(1, 0xC0000000)
    sfpu.set(3, 0x80000000, 0)
    sfpu.do("SFPARECIP", imm12_math=3, lreg_c=1, lreg_dest=2, instr_mod1=1)
    assert sfpu.get(2)[:2] == [125 << 23 | 127 << 16, 0xC0000000]


@pytest.mark.rule("math V14")
def test_exponential_truncates_e_to_the_x(sfpu: Sfpu) -> None:
    getcontext().prec = 40
    tops = list(range(0x3C80, 0x4000))
    for first in range(0, len(tops), 32):
        part = tops[first : first + 32]
        sfpu.set(1, *[top << 16 | 0xABCD for top in part])
        sfpu.do("SFPARECIP", lreg_c=1, lreg_dest=2, instr_mod1=2)
        for top, got in zip(part, sfpu.get(2), strict=True):
            value = Decimal(float(np.uint32(top << 16).view(np.float32))).exp()
            exponent = 0 if value < 2 else 1 if value < 4 else 2
            mantissa = int((value / 2**exponent - 1) * 128)
            assert got == (127 + exponent) << 23 | mantissa << 16 | 0xABCD


@pytest.mark.rule("math V14")
def test_exponential_outside_of_its_table_has_an_exponent_of_its_own(sfpu: Sfpu) -> None:
    sfpu.set(1, 0x007FFFFF, 0x80800000, 0x3C7FABCD, 0x40001234, 0xFF800000)
    sfpu.do("SFPARECIP", lreg_c=1, lreg_dest=2, instr_mod1=5)
    assert sfpu.get(2)[:5] == [0x3F800000, 0xBF810000, 0x3F81ABCD, 0x40801234, 0xC0800000]


@pytest.mark.rule("math V15")
def test_mul24_gives_the_low_or_high_23_bits_of_a_product(sfpu: Sfpu) -> None:
    rng = np.random.default_rng(1)
    a, b = ([*map(int, rng.integers(0, 1 << 32, 31)), 0xFFFFFFFF] for _ in range(2))
    sfpu.set(0, *a)
    sfpu.set(1, *b)
    for mode in (0, 1):
        sfpu.do("SFPMUL24", lreg_src_a=0, lreg_src_b=1, lreg_src_c=9, lreg_dest=2, instr_mod1=mode)
        products = [(x & 0x7FFFFF) * (y & 0x7FFFFF) for x, y in zip(a, b, strict=True)]
        assert sfpu.get(2) == [(p >> 23 * mode) & 0x7FFFFF for p in products]
    with pytest.raises(NonContractualBehavior, match="register c 3"):
        sfpu.do("SFPMUL24", lreg_src_a=0, lreg_src_b=1, lreg_src_c=3, lreg_dest=2)


@pytest.mark.rule("math V12")
def test_sfplut_applies_slope_and_offset_and_may_keep_the_sign(sfpu: Sfpu) -> None:
    sfpu.set(0, 0x00FF)  # slope 1.0, offset 0
    sfpu.set(1, 0x10FF)  # slope 0.5
    sfpu.set(2, 0xFF80)  # slope 0, offset -1.0
    sfpu.set(3, 0xBF000000, 0xBFC00000, 0xC0000000)
    sfpu.do("SFPLUT", lreg_ind=4, instr_mod0=4)
    assert sfpu.get(4)[:3] == [0xBF000000, 0xBF400000, 0xBF800000]
    sfpu.do("SFPLUT", lreg_ind=4, instr_mod0=0)
    assert sfpu.get(4)[:3] == [0x3F000000, 0x3F400000, 0xBF800000]


@pytest.mark.rule("math V13")
def test_sfplutfp32_takes_one_of_three_entries_by_magnitude(sfpu: Sfpu) -> None:
    for entry, slope in enumerate((0x3F800000, 0x40000000, 0x40800000)):
        sfpu.set(entry, slope)
        sfpu.set(4 + entry, 0x3F800000)
    sfpu.set(3, 0x3F000000, 0xBF800000, 0x40000000)
    sfpu.do("SFPLUTFP32", lreg_dest=7)
    assert sfpu.t["lregs"][7].view(np.float32)[:3].tolist() == [1.5, 3.0, 9.0]
    sfpu.do("SFPLUTFP32", lreg_dest=7, instr_mod1=4)
    assert sfpu.t["lregs"][7].view(np.float32)[:3].tolist() == [1.5, -3.0, 9.0]


@pytest.mark.rule("math V13")
def test_the_last_break_of_six_entries_is_3_or_4(sfpu: Sfpu) -> None:
    for entry in range(3):
        sfpu.set(entry, 0)
        sfpu.set(4 + entry, 0x4000_3C00)  # offsets 1.0 below, 2.0 from the break on; slope 2^-15
    sfpu.set(3, 0x40600000)  # 3.5
    for mode, offset in ((2, 2.0), (3, 1.0)):
        sfpu.do("SFPLUTFP32", lreg_dest=7, instr_mod1=mode)
        assert sfpu.t["lregs"][7].view(np.float32)[0] == np.float32(offset + 3.5 * 2**-15)


@pytest.mark.parametrize(
    ("mnemonic", "operands", "error", "text"),
    [
        ("SFPCAST", {"instr_mod1": 4}, NonContractualBehavior, "mode 4 of SFPCAST"),
        ("SFPABS", {"instr_mod1": 2}, UndefinedBehavior, "mode 2 of SFPABS"),
        ("SFPMOV", {"instr_mod1": 4}, UndefinedBehavior, "mode 4 of SFPMOV"),
        ("SFPSHFT", {"instr_mod1": 4}, UndefinedBehavior, "mode 4 of SFPSHFT"),
        ("SFPIADD", {"instr_mod1": 3}, UndefinedBehavior, "mode 3 of SFPIADD"),
        ("SFP_STOCH_RND", {"rnd_mode": 3}, UndefinedBehavior, "mode 3 of SFP_STOCH_RND rnd_mode"),
        ("SFP_STOCH_RND", {"instr_mod1": 9, "imm8_math": 1}, MissingSpecification, "mode 9 of SFP_STOCH_RND"),
        ("SFPLUT", {"instr_mod0": 1}, UndefinedBehavior, "mode 1 of SFPLUT"),
        ("SFPLUTFP32", {"instr_mod1": 1}, UndefinedBehavior, "mode 1 of SFPLUTFP32"),
        ("SFPSHFT2", {"instr_mod1": 7}, UndefinedBehavior, "mode 7 of SFPSHFT2"),
        ("SFPSETEXP", {"instr_mod1": 3}, UndefinedBehavior, "mode 3 of SFPSETEXP"),
    ],
)
def test_reserved_modes_are_refused_with_a_remedy(
    sfpu: Sfpu, mnemonic: str, operands: dict[str, int], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text) as refusal:
        sfpu.do(mnemonic, **operands)
    assert "remedy: use" in str(refusal.value)
