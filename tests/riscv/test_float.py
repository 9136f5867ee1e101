"""The cores' part of F (tile T6): arithmetic equals the vector unit's, the rest follows its rules in integers."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

import numpy as np
import pytest

from bhemu import Tile
from bhemu.errors import MissingSpecification, NonContractualBehavior, UndefinedBehavior, Unimplemented
from bhemu.machine.compiler import JIT
from tests.riscv.rv_asm import assemble_with_labels
from tests.riscv.rv_machine import SCRATCH, machine, put, word, words

pytestmark = pytest.mark.plain

SIGN = 0x80000000
NAN = 0x7FC00000
ONE = 0x3F800000
CORNERS = (
    *(0x00000000, 0x00000001, 0x007FFFFF, 0x00800000, 0x00800001, 0x3F000000, 0x3F800000, 0x3F800001, 0x3FC00000),
    *(0x4B000000, 0x4EFFFFFF, 0x4F000000, 0x4F7FFFFF, 0x4F800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC12345),
)
BOTH_SIGNS = tuple(x | sign for x in CORNERS for sign in (0, SIGN))


def _inputs(count: int, arity: int, seed: int) -> list[tuple[int, ...]]:
    """Corners, random bits, and numbers of similar size, whose sums cancel."""
    random = np.random.default_rng(seed)
    rows = []
    for i in range(count):
        if i % 3 == 0:
            row = [BOTH_SIGNS[int(j)] for j in random.integers(0, len(BOTH_SIGNS), arity)]
        elif i % 3 == 1:
            row = [int(x) for x in random.integers(0, 1 << 32, arity)]
        else:
            row = [int(x) for x in random.integers(0x3E000000, 0x41000000, arity) | random.integers(0, 2, arity) << 31]
        rows.append(tuple(row))
    return rows


def _on_core(operations: list[str], rows: list[tuple[int, ...]], *, core: str = "B") -> list[list[int]]:
    """Result of each operation on each row: operands come in fa1, fa2, fa3 and a1, the result goes out in a0 or fa0.

    An operation ends in `, x` when its result is an integer.
    """
    arity = len(rows[0])
    lines = [f"li s1, {SCRATCH}"]
    for i, operation in enumerate(operations):
        store = "sw a0, 0(s1)" if operation.split()[1].startswith("a0") else "fsw fa0, 0(s1)"
        lines += ["la s0, table", f"li s2, {len(rows)}", f"op{i}: lw a1, 0(s0)"]
        lines += [f"flw fa{j + 1}, {4 * j}(s0)" for j in range(arity)]
        lines += [operation, store, f"addi s0, s0, {4 * arity}", "addi s1, s1, 4", "addi s2, s2, -1", f"bnez s2, op{i}"]
    lines += ["ebreak", "table:"] + [f".word {', '.join(map(str, row))}" for row in rows]
    tile = machine({core: assemble_with_labels("\n".join(lines), 0 if core == "B" else 0x6000)[0]})
    tile.clock(12 * len(rows) * len(operations) + 1000)
    assert tile.cores[core].halt_reason == "ebreak", tile.cores[core]
    results = words(tile, len(rows) * len(operations))
    return [results[i : i + len(rows)] for i in range(0, len(results), len(rows))]


def _on_vector_unit(rows: list[tuple[int, int, int]]) -> list[int]:
    """a * b + c of the vector unit, 32 rows at a time."""
    tile = Tile()
    results: list[int] = []
    for start in range(0, len(rows), 32):
        some = rows[start : start + 32]
        for register in range(3):
            tile.lregs[register, : len(some)] = [row[register] for row in some]
        tile.execute(0, "SFPMAD 0, 1, 2, 3, 0")
        results += [int(x) for x in tile.lregs[3, : len(some)]]
    return results


FMA_FORMS: dict[str, Callable[[int, int, int], tuple[int, int, int]]] = {
    "fmadd.s fa0, fa1, fa2, fa3": lambda a, b, c: (a, b, c),
    "fmsub.s fa0, fa1, fa2, fa3": lambda a, b, c: (a, b, c ^ SIGN),
    "fnmsub.s fa0, fa1, fa2, fa3": lambda a, b, c: (a ^ SIGN, b, c),
    "fnmadd.s fa0, fa1, fa2, fa3": lambda a, b, c: (a ^ SIGN, b, c ^ SIGN),
    "fadd.s fa0, fa1, fa2": lambda a, b, c: (a, ONE, b),
    "fsub.s fa0, fa1, fa2": lambda a, b, c: (a, ONE, b ^ SIGN),
    "fmul.s fa0, fa1, fa2": lambda a, b, c: (a, b, (a ^ b) & SIGN),
}


def test_arithmetic_is_the_vector_units_multiply_add() -> None:
    rows = [(a, b, c) for a, b, c in _inputs(1500 if JIT else 300, 3, 1)]
    ours = _on_core(list(FMA_FORMS), rows)
    for operation, form, results in zip(FMA_FORMS, FMA_FORMS.values(), ours, strict=True):
        assert results == _on_vector_unit([form(*row) for row in rows]), operation


def test_arithmetic_flushes_and_does_not_round_as_ieee_does() -> None:
    rows = [(0x00400000, ONE, 0), (0x3F800001, 0x3F800001, 0xBF800002), (0x00800000, ONE, 0x80C00000)]
    ours = _on_core(["fadd.s fa0, fa1, fa1", "fmadd.s fa0, fa1, fa2, fa3"], rows)
    assert ours[0][0] == 0
    assert ours[1][1:] == [0x32800000, 0x80000000]


def test_products_of_zero_have_the_sign_of_the_product() -> None:
    rows = [(0, SIGN | ONE), (SIGN, SIGN | ONE), (SIGN, ONE), (0, 0)]
    assert _on_core(["fmul.s fa0, fa1, fa2"], rows) == [[SIGN, 0, SIGN, 0]]


# --- the rest, in Python's numbers -----------------------------------------------------------------------------------


def _number(x: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", x))[0])


def _is_nan(x: int) -> bool:
    return math.isnan(_number(x))


def _to_integer(x: int, low: int, high: int) -> int:
    if _is_nan(x):
        return high & 0xFFFFFFFF
    number = _number(x)
    if math.isinf(number):
        return (low if number < 0 else high) & 0xFFFFFFFF
    return min(max(round(number), low), high) & 0xFFFFFFFF  # round() is to nearest even


def _smaller(a: int, b: int) -> int:
    if _is_nan(a) or _is_nan(b):
        return NAN if _is_nan(a) and _is_nan(b) else (b if _is_nan(a) else a)
    if _number(a) == _number(b):
        return a if a >> 31 else b
    return a if _number(a) < _number(b) else b


def _larger(a: int, b: int) -> int:
    if _is_nan(a) or _is_nan(b):
        return _smaller(a, b)
    return b if _smaller(a, b) == a else a


def _class(x: int) -> int:
    number = _number(x)
    if math.isnan(number):
        return 1 << (9 if x >> 22 & 1 else 8)
    order = [math.isinf(number), abs(number) >= 2.0**-126, number != 0, True].index(True)
    return 1 << (order if x >> 31 else 7 - order)


BINARY: dict[str, Callable[[int, int], int]] = {
    "fsgnj.s fa0, fa1, fa2": lambda a, b: a & ~SIGN | b & SIGN,
    "fsgnjn.s fa0, fa1, fa2": lambda a, b: a & ~SIGN | ~b & SIGN,
    "fsgnjx.s fa0, fa1, fa2": lambda a, b: a ^ (b & SIGN),
    "fmin.s fa0, fa1, fa2": _smaller,
    "fmax.s fa0, fa1, fa2": _larger,
    "feq.s a0, fa1, fa2": lambda a, b: int(_number(a) == _number(b)),
    "flt.s a0, fa1, fa2": lambda a, b: int(_number(a) < _number(b)),
    "fle.s a0, fa1, fa2": lambda a, b: int(_number(a) <= _number(b)),
}
UNARY: dict[str, Callable[[int], int]] = {
    "fcvt.w.s a0, fa1": lambda a: _to_integer(a, -(1 << 31), (1 << 31) - 1),
    "fcvt.wu.s a0, fa1": lambda a: _to_integer(a, 0, (1 << 32) - 1),
    "fcvt.w.s a0, fa1, 0": lambda a: _to_integer(a, -(1 << 31), (1 << 31) - 1),
    "fclass.s a0, fa1": _class,
    "fmv.x.w a0, fa1": lambda a: a,
    "fmv.w.x fa0, a1": lambda a: a,
}


def test_signs_minima_and_comparisons() -> None:
    rows = [(a, b) for a in BOTH_SIGNS for b in BOTH_SIGNS[::3]] + [(a, b) for a, b in _inputs(90, 2, 2)]
    for operation, results in zip(BINARY, _on_core(list(BINARY), rows), strict=True):
        assert results == [BINARY[operation](a, b) for a, b in rows], operation


def test_conversions_to_integers_classes_and_moves() -> None:
    halves = [struct.unpack("<I", struct.pack("<f", x))[0] for n in range(-4, 5) for x in (n + 0.5, n + 0.25, n)]
    large = [base + i for base in (0x4AFFFFF0, 0x4B7FFFFE, 0x4EFFFFFE, 0x4F7FFFFE) for i in range(4)]
    rows = [(x,) for x in (*BOTH_SIGNS, *halves, *large, *(x | SIGN for x in large))] + _inputs(100, 1, 4)
    for operation, results in zip(UNARY, _on_core(list(UNARY), rows), strict=True):
        assert results == [UNARY[operation](row[0]) for row in rows], operation


def test_conversions_from_integers_round_to_nearest_even() -> None:
    edges = [(1 << bits) + delta for bits in range(24, 33) for delta in (-3, -2, -1, 0, 1, 2, 3, 1 << bits - 24)]
    rows = [(x & 0xFFFFFFFF,) for x in (0, 1, *edges)] + _inputs(200, 1, 5)
    signed = [np.float32(np.int32(x - (1 << 32) if x >> 31 else x)).view(np.uint32) for (x,) in rows]
    unsigned = [np.float32(np.uint32(x)).view(np.uint32) for (x,) in rows]
    ours = _on_core(["fcvt.s.w fa0, a1", "fcvt.s.wu fa0, a1"], rows, core="T0")
    assert ours == [[int(x) for x in signed], [int(x) for x in unsigned]]


# --- accesses --------------------------------------------------------------------------------------------------------


def test_flw_and_fsw_reach_l1_local_ram_and_devices() -> None:
    tile = machine(
        {
            "T1": f"""
            li s0, {SCRATCH}
            li s1, 0xffb00100
            li s2, 0xffe00000       # GPR window
            flw fa0, 0(s0)
            fsw fa0, -4(s1)
            flw f0, -4(s1)          # f0 is a register like any other
            fsw f0, 8(s2)
            flw fa2, 8(s2)
            fsw fa2, 4(s0)
            ebreak
            """
        }
    )
    put(tile, SCRATCH, bytes.fromhex("00008040"))
    tile.clock(100)
    assert tile.cores["T1"].halt_reason == "ebreak"
    assert word(tile, SCRATCH + 4) == 0x40800000
    assert int(tile.gpr[1, 2]) == 0x40800000
    assert int(tile.cores["T1"].f[0]) == 0x40800000


def test_misaligned_accesses_are_refused() -> None:
    for instruction in ("flw fa0, 2(a0)", "fsw fa0, 2(a0)"):
        with pytest.raises(NonContractualBehavior, match="misaligned f"):
            machine(f"li a0, {SCRATCH}\n{instruction}", 10)


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.rule("tile T6")
@pytest.mark.parametrize("mode", range(8))
def test_rounding_is_to_nearest_even_whatever_an_instruction_asks_for(mode: int) -> None:
    """Truncation, mode 1, is what C asks for in a cast: 2.5 and 3.5 still become 2 and 4."""
    operations = [f"fcvt.w.s a0, fa1, {mode}", f"fcvt.wu.s a0, fa1, {mode}", f"fadd.s fa0, fa1, fa1, {mode}"]
    rows = [(0x40200000,), (0x40600000,)]
    assert _on_core(operations, rows) == [[2, 4], [2, 4], [0x40A00000, 0x40E00000]]
    assert _on_core([f"fcvt.s.w fa0, a1, {mode}"], [(0x01000001,), (0x01000003,)]) == [[0x4B800000, 0x4B800002]]


@pytest.mark.parametrize(
    ("code", "message", "error"),
    [
        (0x18C5F553, "fdiv", UndefinedBehavior),
        (0x5805F553, "fsqrt", UndefinedBehavior),
        (0x02C5F553, "D extension", UndefinedBehavior),  # fadd.d
        (0x04C5F553, "Zfh", Unimplemented),  # fadd.h
        (0x06C5F553, "Q extension", UndefinedBehavior),  # fadd.q
        (0x00051507, "Zfh", Unimplemented),  # flh
        (0x00A53027, "D extension", UndefinedBehavior),  # fsd
        (0x6AC5F543, "D extension", UndefinedBehavior),  # fmadd.d
        (0x40257553, "Zfh", Unimplemented),  # fcvt.s.h
        (0x02050507, "V extension", UndefinedBehavior),  # vle8.v
        (0x0C0572D7, "V extension", UndefinedBehavior),  # vsetvli
    ],
)
def test_other_floating_point_is_refused_by_extension(code: int, message: str, error: type[Exception]) -> None:
    with pytest.raises(error, match=message):
        machine(f".word {code:#x}", 10)


def test_flags_after_arithmetic_are_unknown() -> None:
    program = f"""
    li s0, {SCRATCH}
    li a0, 0x1f5
    csrrw zero, 0x003, a0
    csrrs a1, 0x003, zero
    sw a1, 0(s0)
    fadd.s fa0, fa1, fa2
    csrrs a1, 0x003, zero
    sw a1, 4(s0)
    ebreak
    """
    with pytest.raises(MissingSpecification, match="fcsr"):
        machine(program, 20)
    tile = machine(program, 20, tile=Tile(allow_open=True))
    assert words(tile, 2) == [0xF5, 0xF5]


def test_writing_fcsr_does_not_read_it_and_makes_it_known_again() -> None:
    tile = machine("li a0, 0x21\nfadd.s fa0, fa1, fa2\ncsrrw zero, 0x003, a0\ncsrrs a1, 0x003, zero\nebreak", 10)
    assert int(tile.cores["B"].x[11]) == 0x21
    with pytest.raises(MissingSpecification, match="fcsr"):
        machine("fadd.s fa0, fa1, fa2\ncsrrw a1, 0x003, a0", 10)
