"""The published test vectors of the arithmetic (math T) through `bhemu.numerics`."""

from __future__ import annotations

import numpy as np
import pytest

from bhemu import numerics
from tests.tensix.sfpu import FMA

FORMATS = {"BF16": "bf16", "TF32": "tf32", "FP16": "fp16", "FP32": "fp32"}


def cell(value: int) -> int:
    """A Src cell of 19 bits in the order sign, exponent, mantissa."""
    return (value >> 18) << 18 | (value & 0x3FF) << 8 | (value >> 10) & 0xFF


MULTIPLICATIONS = [
    ("BF16", "BF16", 0, 0x1FE00, 0x1FD00, 0x3F80, 0x4038),
    ("TF32", "FP32", 0, 0x1FE2B, 0x1FDB9, 0x00000000, 0x40088000),
    ("TF32", "FP32", 1, 0x1FE2B, 0x1FDB9, 0x00000000, 0x3D6EE000),
    ("TF32", "FP32", 2, 0x1FE2B, 0x1FDB9, 0x00000000, 0x3C580000),
    ("TF32", "FP32", 3, 0x1FE2B, 0x1FDB9, 0x00000000, 0x39BD0000),
    ("TF32", "FP32", 0, 0x20200, 0x1F800, 0xBFC00000, 0x00000000),
    ("TF32", "FP32", 0, 0x1FC00, 0x1FC00, 0x4B800000, 0x4B800001),
    ("TF32", "FP32", 0, 0x5FC00, 0x1FC00, 0x4B800000, 0x4B800000),
    ("BF16", "FP32", 0, 0x3F800, 0x20000, 0x00000000, 0x7F800000),
    ("BF16", "FP32", 0, 0x10000, 0x0FC00, 0x3F800000, 0x3F800000),
    ("FP16", "FP32", 0, 0x00000, 0x03C00, 0x21800000, 0x00000000),
    ("FP16", "FP32", 0, 0x00000, 0x03C00, 0x25600000, 0x25800000),
    ("FP16", "FP16", 0, 0x07BFF, 0x07BFF, 0x7BFF, 0x7FFF),
    ("FP16", "FP32", 0, 0x07FFF, 0x03C00, 0x00000000, 0x47F80000),
    ("BF16", "BF16", 0, 0x3FC00, 0x1FC00, 0xFF80, 0x0000),
]

SUMS = [
    ("ELWADD", False, "TF32", "FP32", 0x1FC00, 0x1D000, 0x00000000, 0x3F802000),
    ("ELWADD", False, "TF32", "FP32", 0x1FC00, 0x1CC00, 0x00000000, 0x3F800000),
    ("ELWSUB", False, "TF32", "FP32", 0x1FC00, 0x1D000, 0x00000000, 0x3F7FC000),
    ("ELWADD", False, "BF16", "BF16", 0x1FC00, 0x1DC00, 0x0000, 0x3F81),
    ("ELWADD", False, "BF16", "BF16", 0x5FC00, 0x5DC00, 0x0000, 0xBF81),
    ("ELWADD", True, "BF16", "BF16", 0x40000, 0x40000, 0x8000, 0x0000),
    ("ELWADD", True, "FP16", "FP32", 0x00000, 0x00000, 0x21800000, 0x00000000),
    ("ELWSUB", False, "BF16", "BF16", 0x00400, 0x00600, 0x0000, 0x0000),
]


ROUNDING = [
    ("bf16", 0x3F808000, 0x3F810000),
    ("bf16", 0x3F807FFF, 0x3F800000),
    ("bf16", 0x807FFFFF, 0x00000000),
    ("bf16", 0xFF800001, 0xFF800000),
    ("bf16", 0x7F7FFFFF, 0x7F800000),
    ("int8", 0x3F000000, 0x00000001),
    ("int8", 0x3EFFFFFF, 0x00000000),
    ("int8", 0xBF000000, 0x80000001),
    ("int8", 0x40200000, 0x00000003),
    ("int8", 0xC2FF0000, 0x8000007F),
    ("int8", 0x7FC00000, 0x0000007F),
    ("uint8", 0xC0200000, 0x00000003),
    ("uint8", 0x437F8000, 0x000000FF),
]


@pytest.mark.plain
@pytest.mark.parametrize(("source", "dst_format", "phase", "a", "b", "old", "new"), MULTIPLICATIONS)
def test_elwmul(source: str, dst_format: str, phase: int, a: int, b: int, old: int, new: int) -> None:
    got = numerics.elementwise_bits(
        "ELWMUL", cell(a), cell(b), old, [phase], FORMATS[dst_format], source_format=FORMATS[source]
    )
    assert hex(got) == hex(new)


@pytest.mark.plain
@pytest.mark.parametrize(("mnemonic", "accumulate", "source", "dst_format", "a", "b", "old", "new"), SUMS)
def test_elwadd_and_elwsub(
    mnemonic: str, accumulate: bool, source: str, dst_format: str, a: int, b: int, old: int, new: int
) -> None:
    dst = old if accumulate else None
    got = numerics.elementwise_bits(
        mnemonic, cell(a), cell(b), dst, "LoFi", FORMATS[dst_format], source_format=FORMATS[source]
    )
    assert hex(got) == hex(new)


@pytest.mark.plain
def test_fma() -> None:
    x, y, z, want = np.array(FMA, np.uint32).T
    assert [hex(v) for v in numerics.fma_bits(x, y, z)] == [hex(v) for v in want]


@pytest.mark.plain
@pytest.mark.parametrize(("target", "x", "want"), ROUNDING)
def test_stochastic_round_to_nearest(target: str, x: int, want: int) -> None:
    assert hex(numerics.stochastic_round_bits(x, target)) == hex(want)


def test_reciprocal_table_is_the_closed_form() -> None:
    index = np.arange(128, dtype=np.uint32)
    mantissas = np.round(65536 / (257 + 2 * index.astype(np.float64))).astype(np.uint32) - 128  # V14
    got = numerics.reciprocal_bits(np.uint32(0x3F800000) | index << np.uint32(16))
    np.testing.assert_array_equal(got, (126 << 23) | mantissas << 16)


def test_exponential_table_is_the_truncated_exponential() -> None:
    x = np.arange(0x3C80, 0x4000, dtype=np.uint32) << np.uint32(16)
    exact = np.exp(x.view(np.float32).astype(np.float64))
    top = (exact.astype(np.float32).view(np.uint32) - (exact.astype(np.float32) > exact)) >> 16  # V14
    np.testing.assert_array_equal(numerics.exponential_bits(x | np.uint32(0x1234)), top << 16 | 0x1234)
