"""Every 16-bit cell through every 16-bit conversion, and groups, sums and roundings, against slow obvious models."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numba import njit

from bhemu.isa.instructions import encode
from bhemu.machine.compiler import JIT
from bhemu.machine.lanes import load16, store16
from bhemu.tensix.pack.bfp_assembly import shared_exponent, signed_magnitudes
from tests.tensix.packer_bench import BF16, BFP4, BFP8, BFP8A, FP8, FP16, FP32, INT8, INT16, L1_BASE, TF32, Bench

CELLS = range(0, 0x10000, 1 if JIT else 331)
"""All 16-bit patterns; a sample of them where nothing is compiled."""

Datum = tuple[int, int, int]
"""Sign, exponent field, mantissa field."""


# --- models of the early conversion: (sign, exponent, mantissa) of the intermediate -----------------------------------


def flush(d: Datum, top: int | None) -> Datum:
    """Exponent 0 is +0; an exponent `top` with mantissa is Inf."""
    sign, exponent, _ = d
    if exponent == 0:
        return 0, 0, 0
    return (sign, exponent, 0) if exponent == top else d


def e8m6(d: Datum) -> Datum:
    sign, exponent, mantissa = flush(d, 255)
    if mantissa % 2:  # a tie, so away from zero
        mantissa += 1
    return (sign, exponent + 1, 0) if mantissa == 128 else (sign, exponent, mantissa)


def e5m6(d: Datum) -> Datum:
    sign, exponent, mantissa = d
    steps = math.floor(Fraction(exponent * 1024 + mantissa, 16) + Fraction(1, 2))
    exponent, steps = divmod(min(steps, 31 * 64 + 63), 64)
    return (sign, exponent, steps * 16) if exponent else (0, 0, 0)


def rebias(d: Datum) -> Datum:
    sign, exponent, mantissa = d
    if exponent < 112:
        return sign, 0, 0
    return (sign, 31, 1023) if exponent > 143 else (sign, exponent - 112, mantissa * 8)


def fields(pattern: int, exponent_bits: int) -> Datum:
    mantissa_bits = 15 - exponent_bits
    return pattern >> 15, pattern >> mantissa_bits & (1 << exponent_bits) - 1, pattern & (1 << mantissa_bits) - 1


# --- models of the late conversion: pattern in L1 ---------------------------------------------------------------------


def to_fp32(d: Datum, width: int) -> int:
    sign, exponent, mantissa = d
    if width == 5 and exponent:
        exponent += 112
    return sign << 31 | exponent << 23 | mantissa << (13 if width == 5 else 16)


def to_bf16(d: Datum, width: int) -> int:
    sign, exponent, mantissa = d
    if width == 8:
        return sign << 15 | exponent << 7 | mantissa
    return sign << 15 | exponent + 112 << 7 | mantissa // 8 if exponent else 0


def to_fp16(d: Datum, width: int) -> int:
    sign, exponent, mantissa = rebias(d) if width == 8 else d
    return sign << 15 | exponent << 10 | mantissa


def to_e4m3(d: Datum, width: int) -> int:
    sign, exponent, mantissa = rebias(d) if width == 8 else d
    if exponent <= 8:
        return sign << 7
    return sign << 7 | (127 if exponent >= 24 else (exponent - 8) * 8 + mantissa // 128)


def to_e5m2(d: Datum, width: int) -> int:
    sign, exponent, mantissa = rebias(d) if width == 8 else d
    return sign << 7 | (exponent * 4 + mantissa // 256 if exponent else 0)


EARLY: dict[str, tuple[int, dict[str, int], int, int, Callable[[Datum], Datum]]] = {
    "BF16": (BF16, {}, 8, 8, lambda d: flush(d, 255)),
    "BF16 raw": (BF16, {"Read_int8": 1}, 8, 8, lambda d: d),
    "E8M6": (BFP8, {}, 8, 8, e8m6),
    "BFP8 raw": (BFP8, {"Read_int8": 1}, 8, 8, lambda d: d),
    "FP16": (FP16, {}, 5, 5, lambda d: flush(d, None)),
    "FP16 raw": (FP16, {"Read_int8": 1}, 5, 5, lambda d: d),
    "FP16 of BF16": (FP16, {"Round_10b_mant": 1}, 8, 5, rebias),
    "E5M6": (BFP8A, {}, 5, 5, e5m6),
    "E5M7": (BFP8A, {"Read_int8": 1}, 5, 5, lambda d: (d[0], d[1], d[2] & ~7)),
    "FP8": (FP8, {"Read_int8": 1}, 5, 5, lambda d: (d[0], d[1], d[2] & ~255)),
    "TF32 of BF16": (TF32, {}, 8, 8, lambda d: flush(d, 255)),
}
"""In_data_format, PCK_DEST_RD_CTRL bits, exponent bits of the cell and of the intermediate, model."""

LATE: dict[str, tuple[int, int, str, Callable[[Datum, int], int]]] = {
    "FP32": (FP32, 0, "<u4", to_fp32),
    "TF32": (TF32, 0, "<u4", to_fp32),
    "BF16": (BF16, 0, "<u2", to_bf16),
    "FP16": (FP16, 0, "<u2", to_fp16),
    "E4M3": (FP8, 1, "u1", to_e4m3),
    "E5M2": (FP8, 0, "u1", to_e5m2),
}
"""Out_data_format, Pac_LF8_4b_exp, element type, model."""


@pytest.mark.rule("P6", "P9")
@pytest.mark.parametrize("late", LATE)
@pytest.mark.parametrize("early", EARLY)
def test_all_cells_pass_early_and_late_conversion_by_the_rules(early: str, late: str) -> None:
    in_format, reads, cell_width, width, model = EARLY[early]
    out_format, e4m3, dtype, last = LATE[late]
    if early == "FP8" and late == "E5M2":  # nothing is cut, so denormals stay
        last = lambda d, _: d[0] << 7 | d[1] << 2 | d[2] >> 8  # noqa: E731
    bench = Bench(in_format, out_format)
    bench.packer(Pac_LF8_4b_exp=e4m3)
    bench.set(**{f"PCK_DEST_RD_CTRL_{name}": value for name, value in reads.items()})
    bench.modifier(0, YsrcIncr=4)
    patterns = list(CELLS) + [0] * (-len(CELLS) % 64)
    expected = [last(model(fields(p, cell_width)), width) for p in patterns]
    cells = np.array(patterns, np.uint16).reshape(-1, 16)
    size = np.dtype(dtype).itemsize
    place = bench.bf16_row if cell_width == 8 else bench.fp16_row
    four_rows = int(encode("PACR"))
    got: list[int] = []
    for first in range(0, len(cells), 1024):
        part = cells[first : first + 1024]
        place(slice(0, len(part)), part)
        bench.tile["adc"][2, 2, 1] = 0
        for _ in range(len(part) // 4 - 1):
            bench.word(four_rows)
        bench.pacr(ReadIntfSel=0, Last=1)
        got += bench.tile["l1"][L1_BASE : L1_BASE + part.size * size].view(dtype).tolist()
    assert got == expected


@pytest.mark.rule("P6")
@pytest.mark.parametrize(("code", "raw", "dtype"), [(INT16, 0, "<u2"), (INT8, 1, "u1")])
def test_all_integer_cells_are_packed_by_the_rule(code: int, raw: int, dtype: str) -> None:
    """INT16 passes unchanged; of 16-bit Dst as INT8 only the sign is left (002.5)."""
    bench = Bench(code, code)
    bench.set(PCK_DEST_RD_CTRL_Read_int8=raw)
    bench.modifier(0, YsrcIncr=4)
    for quarter in range(4):
        cells = np.arange(quarter << 14, (quarter + 1) << 14)
        bench.tile["dst"][...] = cells.reshape(1024, 16)
        bench.tile["adc"][2, 2, 1] = 0
        for i in range(256):
            bench.pacr(ReadIntfSel=0, Last=i == 255)
        assert bench.l1(dtype, 0x4000) == (cells if code == INT16 else cells >> 15 << 7).tolist()


# --- BFP assembly -----------------------------------------------------------------------------------------------------


def assembled(exponent: np.ndarray, mantissa: np.ndarray, sign: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """P10 in floating point, which is exact here: shared exponents and codes of groups in rows."""
    shared = exponent.max(axis=1)
    full = mantissa + np.where(exponent > 0, 128.0, 0.0)
    distance = shared[:, None] - exponent
    magnitude = np.minimum(np.floor(full / 2.0 ** (distance + 1) + 0.5), 127)
    magnitude = np.where(distance >= 8, 0, magnitude).astype(int) >> (8 - bits)
    return shared, magnitude + np.where(magnitude > 0, sign << (bits - 1), 0)


@njit
def assemble_groups(family_a, bits, values, shared, codes):  # type: ignore[no-untyped-def]
    for i in range(values.shape[0]):
        value = load16(values, i)
        shared[i] = shared_exponent(family_a, value)
        store16(codes, i, signed_magnitudes(family_a, bits, shared[i], value))


@pytest.mark.rule("P10")
@pytest.mark.parametrize("bits", [8, 4, 2])
@pytest.mark.parametrize("family_a", [0, 1])
def test_bfp_assembly_of_random_groups_follows_the_rule(family_a: int, bits: int) -> None:
    groups = 170_000 if JIT else 300  # six times: a million in all
    rng = np.random.default_rng(100 * bits + family_a)
    top = 31 if family_a else 255
    around = rng.integers(0, top + 1, (groups, 1))
    spread = rng.integers(0, 12, (groups, 16)) * rng.integers(0, 2, (groups, 1))
    exponent = np.where(
        rng.random((groups, 1)) < 0.3, rng.integers(0, top + 1, (groups, 16)), np.maximum(around - spread, 0)
    )
    mantissa = np.where(rng.random((groups, 16)) < 0.2, 127, rng.integers(0, 128, (groups, 16)))
    sign = rng.integers(0, 2, (groups, 16))
    values = sign << 15 | (exponent << 10 | mantissa << 3 if family_a else exponent << 7 | mantissa)
    shared, codes = np.zeros(groups, np.int64), np.zeros((groups, 16), np.uint32)
    assemble_groups(family_a, bits, values.astype(np.uint32), shared, codes)
    want_shared, want_codes = assembled(exponent, mantissa, sign, bits)
    np.testing.assert_array_equal(shared, want_shared)
    np.testing.assert_array_equal(codes, want_codes)


@pytest.mark.rule("P10")
def test_the_packer_never_writes_minus_infinity_in_bfp() -> None:
    bench = Bench(BF16, BFP4)
    bench.packer(Exp_section_size=1)
    bench.bf16_row(0, [0x4000] + [0xBC00] * 15)
    bench.pacr()
    assert bench.l1("u1", 1) == [128]
    assert bench.l1("u1", 8, 16) == [4] + [0] * 7


# --- L1 accumulation --------------------------------------------------------------------------------------------------


def number(pattern: int, width: int) -> Fraction:
    """Value of a finite 16-bit pattern; exponent 0 is zero."""
    sign, exponent, mantissa = fields(pattern, width)
    bits, bias = 15 - width, (1 << width - 1) - 1
    scale = Fraction(2) ** (exponent - bias - bits)
    return (-1) ** sign * ((1 << bits) + mantissa) * scale if exponent else Fraction(0)


def rounded(value: Fraction, negative: bool, width: int, overflow: int, underflow: int) -> int:
    """Nearest even 16-bit pattern; `overflow` and `underflow` are magnitudes beyond the exponent range."""
    bits, bias = 15 - width, (1 << width - 1) - 1
    magnitude = abs(value)
    exponent = math.frexp(magnitude)[1] - 1 if magnitude else 0
    while magnitude and Fraction(2) ** exponent > magnitude:
        exponent -= 1
    steps = round(magnitude / Fraction(2) ** (exponent - bits))  # Python rounds to even
    code = exponent + bias
    if code < 0 or magnitude == 0:
        return negative << 15 | (underflow if magnitude else 0)
    if code == 0:
        return negative << 15
    return negative << 15 | min((code << bits) + steps - (1 << bits), overflow)


def accumulate_pairs(out_format: int, old: np.ndarray, new: np.ndarray) -> list[int]:
    bench = Bench(out_format, out_format)
    bench.packer(Pack_L1_Acc=1)
    bench.set(PCK_DEST_RD_CTRL_Read_int8=1)
    place = bench.bf16_row if out_format == BF16 else bench.fp16_row
    got: list[int] = []
    for a, b in zip(old.reshape(-1, 16), new.reshape(-1, 16), strict=True):
        bench.tile["l1"][L1_BASE : L1_BASE + 32].view("<u2")[:] = a
        place(0, b)
        bench.pacr()
        got += bench.l1("<u2", 16)
    return got


def pairs(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Random patterns, half of them of close exponents and mixed signs."""
    rng = np.random.default_rng(seed)
    old = rng.integers(0, 0x10000, count)
    near = (old & 0x7FFF) + rng.integers(-0x900, 0x900, count)
    new = np.where(
        rng.random(count) < 0.6,
        np.clip(near, 0, 0x7FFF) | rng.integers(0, 2, count) << 15,
        rng.integers(0, 0x10000, count),
    )
    return old.astype(np.uint16), new.astype(np.uint16)


@pytest.mark.rule("I.9")
def test_bf16_accumulation_rounds_to_even() -> None:
    old, new = pairs(1, 16_000 if JIT else 320)
    finite = ((old & 0x7F80) != 0x7F80) & ((new & 0x7F80) != 0x7F80)
    old, new = np.where(finite, old, 0x3F80), np.where(finite, new, 0x3F80)
    for a, b, got in zip(old.tolist(), new.tolist(), accumulate_pairs(BF16, old, new), strict=True):
        total = number(a, 8) + number(b, 8)
        negative = total < 0 if total else bool(a & b & 0x8000)
        want = rounded(total, negative, 8, 0x7F80, 0)
        assert got == want, f"{a:#x} + {b:#x}"


@pytest.mark.rule("I.9")
@pytest.mark.parametrize(
    ("old", "new", "total"),
    [
        (0x7F80, 0xFF80, 0x7FC0),
        (0x7F80, 0x3F80, 0x7F80),
        (0xFFC1, 0x7F80, 0x7F80),
        (0xFFC1, 0x3F80, 0xFF80),
        (0xFF7F, 0x7F81, 0x7C40),
        (0x3F80, 0x7FFF, 0x7F80),
    ],
)
def test_bf16_accumulation_treats_specials_as_the_rule(old: int, new: int, total: int) -> None:
    assert accumulate_pairs(BF16, np.full(16, old, np.uint16), np.full(16, new, np.uint16)) == [total] * 16


@pytest.mark.rule("I.9")
def test_fp16_accumulation_rounds_to_even_with_its_odd_corners() -> None:
    old, new = pairs(2, 16_000 if JIT else 320)
    for a, b, got in zip(old.tolist(), new.tolist(), accumulate_pairs(FP16, old, new), strict=True):
        total = number(a, 5) + number(b, 5)
        negative = total < 0 if total else bool(a & b & 0x8000)
        want = rounded(total, negative, 5, 0x7FFF, 0x7FFF)
        if total == 0 and a >> 10 & 31 >= 30:
            want = negative << 15 | 0x7FFF
        assert got == want, f"{a:#x} + {b:#x}"


@pytest.mark.rule("I.9")
def test_fp32_accumulation_flushes_and_has_one_nan() -> None:
    bench = Bench(FP32, FP32, read_32b=1)
    bench.packer(Pack_L1_Acc=1)
    old = [0x00000001, 0x80000001, 0x00800001, 0x7F800000, 0x7FABCDEF, 0x3F800000, 0x7F7FFFFF, 0x3F800000] * 2
    new = [0x00000001, 0x80000001, 0x80800000, 0xFF800000, 0x3F800000, 0x33800000, 0x7F7FFFFF, 0x33800001] * 2
    want = [0, 0x80000000, 0, 0x7FC00000, 0x7FC00000, 0x3F800000, 0x7F800000, 0x3F800001] * 2
    bench.tile["l1"][L1_BASE : L1_BASE + 64].view("<u4")[:] = old
    bench.word_row(0, new)
    bench.pacr()
    assert bench.l1("<u4", 16) == want
