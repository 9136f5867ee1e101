"""Audit rows 002.6, 002.18.2c, 002.18.3b, 000.0e: late conversion (P9) and BFP assembly (P10)."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
import pytest

from bhemu.errors import MissingSpecification, UndefinedBehavior
from tests.audit.pack_words import Words, bf16
from tests.tensix.packer_bench import BF16, BFP2, BFP2A, BFP4, BFP8, BFP8A, FP8, FP16, FP32, INT8, INT16, INT32, TF32

ONE = 0x3F80
BITS = {BFP8: 8, BFP4: 4, BFP2: 2}


def assembler(in_format: int, out_format: int, *, read_32b: int = 0) -> Words:
    """A bench with one unit of exponents in front of the datums."""
    bench = Words(in_format, out_format, read_32b=read_32b)
    bench.wrcfg(68, 1 << 16)
    return bench


def codes(bench: Words, bits: int, count: int, offset: int = 16) -> list[int]:
    """The first `count` codes of `bits` bits, the first in the lowest bits."""
    raw = bytes(bench.l1("u1", (count * bits + 7) // 8, offset))
    whole = int.from_bytes(raw, "little")
    return [whole >> bits * i & (1 << bits) - 1 for i in range(count)]


@pytest.mark.rule("002.6.1a")
def test_late_formats_are_word_70() -> None:
    """In_data_format [11:8], Out_data_format [7:4]."""
    bench = Words()
    bench.wrcfg(70, BF16 << 8 | FP32 << 4 | 1)
    bench.bf16_row(0, [0xC0A0] * 16)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1("<u4", 16) == [0xC0A00000] * 16


@pytest.mark.rule("002.6.2a")
def test_datums_become_bf16_by_truncation_before_the_assembly() -> None:
    """1 + 255/256 + ... has mantissa 0x00 after the cut; rounded it would be 0x41. Denormals become +0."""
    bench = assembler(FP32, BFP8, read_32b=1)
    bench.word_row(0, [0x3F80FFFF, 0x80400000, 0x3FFFFFFF, 0xBF81FFFF] * 4)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1("u1", 1) == [127]
    assert codes(bench, 8, 4) == [0x40, 0, 0x7F, 0x80 | 0x41]  # 0x3F81: (129 + 1) / 2


@pytest.mark.rule("002.6.2b")
def test_the_shared_exponent_is_the_maximum_and_255_is_ordinary() -> None:
    bench = assembler(BF16, BFP8)
    bench.bf16_row(0, [ONE, 0x0080, 0x4700, 0xC100] * 4)
    bench.bf16_row(1, [0x7F80, 0x7F00] + [0] * 14)
    bench.send(ReadIntfSel=3, Last=1)
    assert bench.l1("u1", 3) == [0x4700 >> 7, 255, 0]
    assert codes(bench, 8, 2, 32) == [0x40, 0x20]


@pytest.mark.rule("002.6.2c", "002.6.2d", "002.6.2f", "002.6.2g", "002.18.3b")
@pytest.mark.parametrize(
    ("mantissa", "below", "magnitude"),
    [
        (0x00, 0, 64),
        (0x01, 0, 65),  # 64.5 goes up
        (0x7F, 0, 127),  # 127.5 would be 128
        (0x40, 1, 48),
        (0x41, 1, 48),  # 48.25
        (0x42, 1, 49),  # 48.5
        (0x7F, 1, 64),
        (0x00, 6, 1),
        (0x7F, 6, 2),
        (0x00, 7, 1),  # 0.5
        (0x7F, 7, 1),
        (0x00, 8, 0),
        (0x7F, 8, 0),  # 0.498; at a distance of 8 and more nothing is left
        (0x7F, 20, 0),
    ],
)
@pytest.mark.parametrize("sign", [0, 1])
def test_the_hidden_bit_is_part_of_the_magnitude_which_is_rounded_half_away(
    mantissa: int, below: int, magnitude: int, sign: int
) -> None:
    """7 bits with the hidden one; 4 and 2 bits cut them further.

    A zero magnitude has no sign, so that code 0x80 (0x8, 0x2), which would be minus infinity, is never written.
    """
    for out_format, bits in BITS.items():
        bench = assembler(BF16, out_format)
        datum = sign << 15 | 127 - below << 7 | mantissa
        bench.bf16_row(0, [ONE, datum] + [0] * 14)
        bench.send(ReadIntfSel=1, Last=1)
        cut = magnitude >> (8 - bits)
        assert bench.l1("u1", 1) == [127]
        assert codes(bench, bits, 16)[1] == (sign << (bits - 1) | cut if cut else 0)


@pytest.mark.parametrize("out_format", BITS)
def test_assembly_of_random_groups_by_exact_arithmetic(out_format: int) -> None:
    """002.6.2b to 002.6.2g (002.6.2e: 3 and 1 bits): round(|x| / 2^(E - 127) * 64) half away, at most 127, then cut."""
    rng = np.random.default_rng(out_format)
    bits = BITS[out_format]
    bench = assembler(BF16, out_format)
    for _ in range(100):
        exponents = rng.integers(1, 255) - rng.integers(0, 11, 16)
        values = [
            int(s) << 15 | max(int(e), 0) << 7 | int(m)
            for s, e, m in zip(rng.integers(0, 2, 16), exponents, rng.integers(0, 128, 16), strict=True)
        ]
        values = [v if v & 0x7F80 else 0 for v in values]
        bench.bf16_row(0, values)
        bench.send(ReadIntfSel=1, Last=1)
        shared = max(v >> 7 & 255 for v in values)
        expected = []
        for v in values:
            size = (
                (1 + Fraction(v & 127, 128)) * Fraction(2) ** ((v >> 7 & 255) - shared) if v & 0x7F80 else Fraction(0)
            )
            units = min(floor(size * 64 + Fraction(1, 2)), 127) if shared - (v >> 7 & 255) < 8 else 0
            cut = units >> (8 - bits)
            expected.append((v >> 15 << (bits - 1)) | cut if cut else 0)
        assert bench.l1("u1", 1) == [shared]
        assert codes(bench, bits, 16) == expected


@pytest.mark.rule("000.0e", "002.14.8")
def test_exponent_a_has_5_bits_of_bias_15_and_exponent_b_8_of_bias_127() -> None:
    """1.0 and its neighbours; grouping and magnitudes are the same."""
    values = np.array([1.0, 0.5, -1.75, 0.25] * 4, np.float32)
    for in_format, out_format, place, patterns, exponent in (
        (BF16, BFP8, "bf16_row", bf16(values), 127),
        (FP16, BFP8A, "fp16_row", values.astype(np.float16).view(np.uint16), 15),
    ):
        bench = assembler(in_format, out_format)
        getattr(bench, place)(0, patterns)
        getattr(bench, place)(1, patterns)
        bench.send(ReadIntfSel=3, Last=1)
        assert bench.l1("u1", 16) == [exponent, exponent, *[0] * 14]
        assert codes(bench, 8, 32) == [0x40, 0x20, 0x80 | 0x70, 0x10] * 8


@pytest.mark.rule("002.6.3b")
@pytest.mark.parametrize("out_format", [BF16, FP32, BFP8, FP8])
def test_dis_shared_exp_assembler_is_refused_for_every_output(out_format: int) -> None:
    """Software writes 0 for every format; word 70 bit 12."""
    bench = assembler(BF16, out_format)
    bench.send(ReadIntfSel=1, Last=1)
    bench.bits(70, 12, 1, 1)
    with pytest.raises(MissingSpecification, match="bit 12"):
        bench.send(ReadIntfSel=1, Last=1)


WORDS = [0x3F80FFFF, 0xBFFFFFFF, 0x00400000, 0x80400000, 0x47FFE000, 0x48000000, 0x38000000, 0x37FFFFFF, 0x7F800000]
WORDS += [0xFFC00001, 0x80000000, 0x38801FFF, 0xB8001FFF, 0x477FFFFF, 0x38FFFFFF, 0xFF7FFFFF]
"""Sixteen FP32 patterns: what a cut drops, denormals, both ends of the FP16 exponents, specials."""


def fp16_cut(word: int) -> int:
    """FP32 to FP16 by P9: truncated, exponent field 0 kept, above 31 the largest pattern, below 0 a signed zero."""
    sign, exponent, mantissa = word >> 31 << 15, (word >> 23 & 255) - 112, word >> 13 & 1023
    return sign | (0 if exponent < 0 else 0x7FFF if exponent > 31 else exponent << 10 | mantissa)


@pytest.mark.rule("002.6.4a")
def test_fp32_to_fp32_is_the_identity() -> None:
    bench = Words(FP32, FP32, read_32b=1)
    bench.word_row(0, WORDS)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1("<u4", 16) == WORDS


@pytest.mark.rule("002.6.4b")
def test_fp32_to_bf16_truncates() -> None:
    """The late conversion does not round; 1.99999 stays below 2. Exponent 0 becomes +0."""
    bench = Words(FP32, BF16, read_32b=1)
    bench.word_row(0, WORDS)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1("<u2", 16) == [w >> 16 if w & 0x7F800000 else 0 for w in WORDS]


@pytest.mark.rule("002.6.4c")
def test_any_float_to_fp16_saturates_and_truncates() -> None:
    """Exponent 0 is kept, above 31 is 0x7FFF with the sign, below 0 a signed zero."""
    bench = Words(FP32, FP16, read_32b=1)
    bench.word_row(0, WORDS)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1("<u2", 16) == [fp16_cut(w) for w in WORDS]
    assert fp16_cut(0x38000000 | 0x1000000 >> 1) == 0x0400  # 2^-14, the model's own anchor
    narrow = Words(BF16, FP16)
    uppers = [w >> 16 for w in WORDS if w & 0x7F800000 and w & 0x7FFFFFFF <= 0x7F800000] + [0] * 16
    narrow.bf16_row(0, uppers[:16])
    narrow.send(ReadIntfSel=1, Last=1)
    assert narrow.l1("<u2", 16) == [fp16_cut(u << 16) for u in uppers[:16]]


@pytest.mark.rule("002.6.4d")
@pytest.mark.parametrize(
    ("half", "byte"),
    [
        (0x3C00, 0x38),
        (0xBC80, 0xB9),
        (0x3CFF, 0x39),
        (0x2000, 0),
        (0xA3FF, 0x80),
        (0x2400, 0x08),
        (0x5FFF, 0x7F),
        (0xE000, 0xFF),
    ],
)
def test_fp8_e4m3_rebiases_by_8_truncates_and_saturates(half: int, byte: int) -> None:
    """Exponents up to 8 are a signed zero, from 24 on 0x7F; FP16 patterns in."""
    bench = Words(FP16, FP8)
    bench.bits(71, 23, 1, 1)
    bench.fp16_row(0, [half] * 16)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1("u1", 16) == [byte] * 16


@pytest.mark.rule("002.6.4e")
@pytest.mark.parametrize(
    ("in_format", "out_format", "pattern", "expected"),
    [
        (BF16, FP32, 0xC0A1, 0xC0A10000),
        (BFP8, FP32, 0xC0A2, 0xC0A20000),
        (FP16, FP32, 0x3E01, 0x3FC02000),
        (FP16, BF16, 0xBE0F, 0xBFC1),
        (FP16, BF16, 0x7FFF, 0x47FF),
    ],
)
def test_widening_and_crossing_pairs(in_format: int, out_format: int, pattern: int, expected: int) -> None:
    """Rows that the seed's table does not have."""
    bench = Words(in_format, out_format)
    (bench.fp16_row if in_format == FP16 else bench.bf16_row)(0, [pattern] * 16)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1("<u4" if out_format == FP32 else "<u2", 16) == [expected] * 16


@pytest.mark.rule("002.6.4e", "P9")
def test_fp16_with_exponent_0_is_not_rebiased_on_the_way_to_fp32_and_becomes_0_in_bf16() -> None:
    """Reached with Read_raw, which keeps denormals."""
    for out_format, dtype, expected in ((FP32, "<u4", 0x80FF << 16 & 1 << 31 | 0xFF << 13), (BF16, "<u2", 0)):
        bench = Words(FP16, out_format)
        bench.bits(18, 2, 1, 1)
        bench.fp16_row(0, [0x80FF] * 16)
        bench.send(ReadIntfSel=1, Last=1)
        assert bench.l1(dtype, 16) == [expected] * 16


@pytest.mark.rule("002.6.4f")
@pytest.mark.parametrize(("code", "dtype"), [(INT8, "u1"), (INT32, "<u4"), (INT16, "<u2")])
def test_integers_go_to_themselves_only(code: int, dtype: str) -> None:
    """Identity, and every other output is refused."""
    bench = Words(code, code, read_32b=int(code != INT16))
    if code == INT16:
        bench.tile["dst"][0] = 0x8001
    else:
        bench.word_row(0, [0x80000001] * 16)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1(dtype, 16) == [{INT8: 0x81, INT16: 0x8001, INT32: 0x80000001}[code]] * 16
    for other in (INT8, INT16, INT32, BF16, FP32, BFP8):
        if other != code:
            bench.bits(70, 4, 4, other)
            with pytest.raises(UndefinedBehavior, match="does not convert"):
                bench.send(ReadIntfSel=1, Last=1)


@pytest.mark.rule("002.6.4g")
def test_fp32_to_tf32_is_no_late_conversion() -> None:
    """Use the early one."""
    with pytest.raises(UndefinedBehavior, match="does not convert In_data_format 0 to Out_data_format 4"):
        Words(FP32, TF32, read_32b=1).send(ReadIntfSel=1, Last=1)


@pytest.mark.rule("002.6.5a", "002.6.5b", "000.1.1a", "000.1.1b")
@pytest.mark.parametrize(
    ("in_format", "out_format", "read_32b", "counted"),
    [
        (BF16, BF16, 0, False),
        (FP32, FP32, 1, False),
        (INT32, INT32, 1, False),
        (INT16, INT16, 0, False),
        (INT8, INT8, 1, True),
        (FP16, FP8, 0, True),
        (BF16, BFP8, 0, True),
        (BF16, BFP2, 0, True),
        (FP16, BFP2A, 0, True),
    ],
)
def test_exp_section_size_is_in_16_byte_units_and_counts_where_bit_1_of_the_format_is_set(
    in_format: int, out_format: int, read_32b: int, counted: bool
) -> None:
    """Software writes it for FP32 and BF16 too, where nothing reads it."""
    bench = Words(in_format, out_format, read_32b=read_32b)
    bench.wrcfg(68, 5 << 16)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.untouched(16, 64) is counted
    assert bench.untouched(80, 1) is not counted


@pytest.mark.rule("002.18.2c", "002.18.4.4")
def test_groups_go_on_over_pacrs_until_last() -> None:
    """Two halves of a group from two PACRs share one exponent; nothing is padded between."""
    bench = assembler(BF16, BFP8)
    bench.wrcfg(71, 0x00FF)  # columns 0 to 7 of each row
    bench.bf16_row(0, [ONE] * 16)
    bench.bf16_row(1, [0x4100] * 16)
    bench.modifier(0, YsrcIncr=1)
    bench.send(ReadIntfSel=1)
    bench.send(ReadIntfSel=1)
    bench.bf16_row(2, [ONE] * 16)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1("u1", 16) == [130, 127, *[0] * 14]
    assert codes(bench, 8, 32) == [0x08] * 8 + [0x40] * 8 + [0x40] * 8 + [0] * 8
    assert bench.untouched(48)
