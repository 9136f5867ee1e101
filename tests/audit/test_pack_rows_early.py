"""Audit rows 002.5, 002.18.2b, 002.18.3a: from Dst to the intermediate format (P6), by models of numbers."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import floor

import numpy as np
import pytest

from bhemu.errors import UndefinedBehavior
from tests.audit.pack_words import Words
from tests.tensix.packer_bench import BF16, BFP8, BFP8A, FP8, FP16, FP32, INT8, INT16, INT32

PATTERNS_32 = np.concatenate(
    [
        np.random.default_rng(5).integers(0, 1 << 32, 4000),
        [
            s | v
            for s in (0, 1 << 31)
            for v in (0, 1, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FFFFFFF)
        ],
        [
            s | e << 23 | m
            for s in (0, 1 << 31)
            for e in (0, 1, 111, 112, 143, 144, 254)
            for m in (0xFFF, 0x1000, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FF000, 0x7F8000)
        ],
    ]
).astype(np.uint32)
"""Words for 32-bit Dst: random ones, specials, and neighbours of every rounding boundary."""


def through(bench: Words, patterns: np.ndarray, dtype: str, place: str) -> list[int]:
    """Each pattern packed; `place` names the method that puts a row into Dst."""
    values = np.concatenate([patterns, np.zeros(-len(patterns) % 64, patterns.dtype)])
    got: list[int] = []
    for group in values.reshape(-1, 4, 16):
        for row in range(4):
            getattr(bench, place)(row, group[row])
        bench.send(Last=1)
        got += bench.l1(dtype, 64)
    return got[: len(patterns)]


def steps(pattern: int, dropped: int) -> int:
    """Magnitude of an FP32 pattern in units of bit `dropped`, rounded half away from zero; NaN counts as Inf."""
    magnitude = min(pattern & 0x7FFFFFFF, 0x7F800000)
    return floor(Fraction(magnitude, 1 << dropped) + Fraction(1, 2))


def bf16_of(pattern: int) -> int:
    magnitude = steps(pattern, 16)
    return pattern >> 31 << 15 | magnitude if magnitude >= 1 << 7 else 0


def e8m6_of(pattern: int) -> int:
    """Rounded from the truncated BF16: bits below its last are cut before."""
    magnitude = min(pattern & 0x7FFFFFFF, 0x7F800000) >> 16
    magnitude = (magnitude + 1) // 2 * 2
    return pattern >> 31 << 15 | magnitude if magnitude >= 1 << 7 else 0


def fp16_of(pattern: int) -> int:
    magnitude = steps(pattern, 13)
    exponent, mantissa = magnitude >> 10, magnitude & 1023
    sign = pattern >> 31 << 15
    if exponent == 0:
        return 0
    if exponent < 112:
        return sign
    return sign | (0x7FFF if exponent > 143 else exponent - 112 << 10 | mantissa)


def int8_of(pattern: int) -> int:
    return pattern >> 31 << 7 | min(pattern & 0x7FFFFFFF, 127)


def uint8_of(pattern: int) -> int:
    return 0 if pattern >> 31 else min(pattern, 255)


@pytest.mark.rule("002.5.2a", "002.5.2c", "002.5.2d", "002.5.2e", "002.5.3")
@pytest.mark.parametrize(
    ("in_format", "control", "dtype", "model"),
    [
        (FP32, 0, "<u4", lambda v: v),  # 002.5.2a
        (FP32, 1 << 2, "<u4", lambda v: v),
        (INT32, 0, "<u4", lambda v: v),
        (BF16, 0, "<u2", bf16_of),  # 002.5.2c
        (BF16, 1 << 2, "<u2", lambda v: v >> 16),
        (FP16, 1 << 3, "<u2", fp16_of),  # 002.5.2d, 002.3.3c, 000.1.2c
        (INT8, 0, "u1", int8_of),  # 002.5.2e, 002.5.1b
        (INT8, 1 << 1, "u1", uint8_of),
        (INT8, 1 << 2, "u1", lambda v: v >> 31 << 7 | v & 127),
    ],
)
def test_conversions_of_32_bit_dst(in_format: int, control: int, dtype: str, model: Callable[[int], int]) -> None:
    """FP32 and INT32 keep denormals, NaN and -0; roundings do not."""
    bench = Words(in_format, in_format)
    bench.wrcfg(12, (64, 32, 16)[in_format & 3] << 16)
    bench.wrcfg(18, 1 | control)
    assert through(bench, PATTERNS_32, dtype, "word_row") == [model(int(v)) for v in PATTERNS_32]


@pytest.mark.rule("002.5.1d", "002.5.2g")
def test_bfp8_intermediate_of_32_bit_dst_is_e8m6() -> None:
    """Seen through FP32 output."""
    bench = Words(BFP8, FP32, read_32b=1)
    bench.wrcfg(12, 16 << 16)
    assert through(bench, PATTERNS_32, "<u4", "word_row") == [e8m6_of(int(v)) << 16 for v in PATTERNS_32]


@pytest.mark.rule("002.5.2d")
def test_fp16_of_32_bit_dst_needs_the_blackhole_bit() -> None:
    """Without Round_10b_mant there is no such conversion, as on Wormhole."""
    bench = Words(FP16, FP16, read_32b=1)
    with pytest.raises(UndefinedBehavior, match="format 1"):
        bench.send(Last=1)


@pytest.mark.rule("002.5.2d", "P8")
def test_relu_of_fp16_from_32_bit_dst_sees_the_wide_value() -> None:
    """The threshold is BF16 here and compares before the exponent is narrowed."""
    bench = Words(FP16, FP16, read_32b=1)
    bench.bits(18, 3, 1, 1)
    bench.bits(2, 2, 20, 0x4000 << 4 | 3)  # at most 2.0
    bench.word_row(0, [0x40490FDB, 0x3FC00000, 0xBFC00000, 0x47FF0000] * 4)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1("<u2", 4) == [0x4000, 0x3E00, 0, 0x4000]


@pytest.mark.rule("002.5.1b", "000.0d")
@pytest.mark.parametrize("code", [12, 13])
def test_codes_12_and_13_are_no_format_and_uint8_is_14_with_read_unsigned(code: int) -> None:
    with pytest.raises(UndefinedBehavior):
        Words(code, code, read_32b=1).send(Last=1)
    bench = Words(30 & 15, 30 & 15, read_32b=1)
    bench.bits(18, 1, 1, 1)
    bench.word_row(0, [255, 128, 300, 0x80000001] * 4)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1("u1", 4) == [255, 128, 255, 0]


@pytest.mark.rule("002.5.2e")
@pytest.mark.parametrize(
    ("amount", "word", "signed", "unsigned"),
    [
        (0, 300, 127, 255),
        (1, 301, 127, 151),  # 150.5
        (2, 0x80000006, 0x82, 0),  # -1.5
        (4, 0x7F7, 127, 127),  # 127.4
        (4, 0x7F8, 127, 128),  # 127.5
        (31, 0x40000000, 1, 1),  # 0.5
    ],
)
def test_int_descale_divides_rounds_with_the_bits_shifted_out_and_saturates(
    amount: int, word: int, signed: int, unsigned: int
) -> None:
    """Word 8 bit 0 enables, word 187 [4:0] is the amount; 0 when disabled."""
    for control, expected in ((1, signed), (3, unsigned)):
        bench = Words(INT8, INT8)
        bench.wrcfg(18, control)
        bench.wrcfg(187, 0xE0 | amount)  # the upper bits of the byte do not count
        bench.word_row(0, [word] * 16)
        bench.wrcfg(8, 1)
        bench.send(ReadIntfSel=1, Last=1)
        assert bench.l1("u1", 16) == [expected] * 16
        bench.wrcfg(8, 0)
        bench.send(ReadIntfSel=1, Last=1)
        magnitude = word & 0x7FFFFFFF
        plain = min(magnitude, 255) * (word < 1 << 31) if control == 3 else word >> 31 << 7 | min(magnitude, 127)
        assert bench.l1("u1", 16) == [plain] * 16


CELLS = np.concatenate([np.arange(0, 0x10000, 7), [0, 0x8000, 0x7F80, 0xFFFF, 0x7C00, 0x007F, 0x8001]]).astype(
    np.uint32
)


def fields(pattern: int, exponent_bits: int) -> tuple[int, int, int]:
    width = 15 - exponent_bits
    return pattern >> 15, pattern >> width & (1 << exponent_bits) - 1, pattern & (1 << width) - 1


def bf16_flushed(pattern: int) -> int:
    sign, exponent, mantissa = fields(pattern, 8)
    if exponent == 0:
        return 0
    return sign << 15 | exponent << 7 | (0 if exponent == 255 else mantissa)


def e8m6_cell(pattern: int) -> int:
    flushed = bf16_flushed(pattern)
    return flushed & 0x8000 | ((flushed & 0x7FFF) + 1) // 2 * 2


def e5m6_cell(pattern: int) -> int:
    sign, exponent, mantissa = fields(pattern, 5)
    units = min(floor(Fraction(exponent << 10 | mantissa, 16) + Fraction(1, 2)), 0x7FF)
    return sign << 15 | units << 4 if units >= 64 else 0


def fp16_of_bf16_cell(pattern: int) -> int:
    sign, exponent, mantissa = fields(pattern, 8)
    if exponent < 112:
        return sign << 15
    return sign << 15 | (0x7FFF if exponent > 143 else exponent - 112 << 10 | mantissa << 3)


@pytest.mark.rule("002.5.1d", "002.5.1e", "002.5.2g", "002.5.2h", "002.5.3", "002.18.3a")
@pytest.mark.parametrize(
    ("in_format", "control", "place", "out_format", "dtype", "model"),
    [
        (BF16, 0, "bf16_row", BF16, "<u2", bf16_flushed),
        (BF16, 1 << 2, "bf16_row", BF16, "<u2", lambda v: v),
        (BFP8, 0, "bf16_row", FP32, "<u4", lambda v: e8m6_cell(v) << 16),
        (FP16, 0, "fp16_row", FP16, "<u2", lambda v: v if v & 0x7C00 else 0),
        (FP16, 1 << 2, "fp16_row", FP16, "<u2", lambda v: v),
        (BFP8A, 0, "fp16_row", FP16, "<u2", e5m6_cell),
        (BFP8A, 1 << 2, "fp16_row", FP16, "<u2", lambda v: v & 0xFFF8),
        (FP8, 1 << 2, "fp16_row", FP16, "<u2", lambda v: v & 0xFF00),
        (FP16, 1 << 3, "bf16_row", FP16, "<u2", fp16_of_bf16_cell),
    ],
)
def test_conversions_of_16_bit_dst(
    in_format: int, control: int, place: str, out_format: int, dtype: str, model: Callable[[int], int]
) -> None:
    """E8M6; E5M6 rounded, E5M7 and FP8 cut; FP16 of BF16.

    Rounding flushes denormals to +0 (the sign is lost) and makes Inf of NaN; 5-bit exponents have no NaN; raw keeps.
    """
    bench = Words(in_format, out_format)
    bench.wrcfg(18, control)
    assert through(bench, CELLS, dtype, place) == [model(int(v)) for v in CELLS]


@pytest.mark.rule("002.5.1c", "002.5.2g", "002.14.9", "000.0f")
@pytest.mark.parametrize("read_32b", [0, 1])
def test_int16_is_moved_and_never_interpreted(read_32b: int) -> None:
    """The raw cell; of a 32-bit datum the raw upper cell."""
    bench = Words(INT16, INT16, read_32b=read_32b)
    for first in range(0, 0x10000, 0x1000):
        cells = np.arange(first, first + 64, dtype=np.uint16).reshape(4, 16)
        bench.tile["dst"][:4] = cells
        bench.tile["dst"][8:12] = 0x5555
        bench.send(Last=1)
        assert bench.l1("<u2", 64) == cells.reshape(-1).tolist()


@pytest.mark.rule("002.18.2b")
def test_early_conversion_goes_by_the_intermediate_format_and_the_read_bits() -> None:
    """In_data_format does not choose it; where the two differ the packer refuses."""
    bench = Words(BF16, BF16)
    bench.bf16_row(0, [0x8001] * 16)
    for control, expected in ((0, 0), (1 << 2, 0x8001)):
        bench.wrcfg(18, control)
        bench.send(ReadIntfSel=1, Last=1)
        assert bench.l1("<u2", 16) == [expected] * 16
    bench.bits(1, 25, 4, FP16)
    with pytest.raises(UndefinedBehavior, match="In_data_format 5"):
        bench.send(ReadIntfSel=1, Last=1)
    bench.bits(70, 8, 4, FP16)
    bench.bits(70, 4, 4, FP16)
    bench.wrcfg(18, 1 << 2)
    bench.fp16_row(0, [0x8001] * 16)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1("<u2", 16) == [0x8001] * 16
