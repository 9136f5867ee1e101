"""Zba, Zbb, pack and brev8 against formulas, and against QEMU's user-mode emulator (tile T3)."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bhemu.isa.riscv import RISCV
from tests.riscv.rv_asm import assemble_with_labels
from tests.riscv.rv_machine import machine, words

pytestmark = pytest.mark.plain

MASK = 0xFFFFFFFF
QEMU = shutil.which("qemu-riscv32")
CORNERS = (0, 1, 2, 0x80, 0xFF, 0x8000, 0xFFFF, 0x00FF00FF, 0x7FFFFFFF, 0x80000000, 0x80000001, MASK)


def _signed(x: int) -> int:
    return x - (1 << 32) if x >> 31 else x


def _rotated(x: int, amount: int) -> int:
    amount &= 31
    return (x >> amount | x << (32 - amount)) & MASK


def _bytes(x: int, each: Callable[[int], int]) -> int:
    return int.from_bytes(bytes(each(byte) for byte in x.to_bytes(4, "little")), "little")


FORMULAS: dict[str, Callable[[int, int], int]] = {
    "sh1add": lambda a, b: 2 * a + b,
    "sh2add": lambda a, b: 4 * a + b,
    "sh3add": lambda a, b: 8 * a + b,
    "andn": lambda a, b: a & ~b,
    "orn": lambda a, b: a | ~b,
    "xnor": lambda a, b: ~(a ^ b),
    "min": lambda a, b: min(_signed(a), _signed(b)),
    "max": lambda a, b: max(_signed(a), _signed(b)),
    "minu": min,
    "maxu": max,
    "rol": lambda a, b: _rotated(a, 32 - (b & 31)),
    "ror": _rotated,
    "pack": lambda a, b: a & 0xFFFF | b << 16,
    "clz": lambda a, _: 32 - a.bit_length(),
    "ctz": lambda a, _: 32 if a == 0 else f"{a:032b}"[::-1].index("1"),
    "cpop": lambda a, _: a.bit_count(),
    "sext.b": lambda a, _: (a & 0xFF) - ((a & 0x80) << 1),
    "sext.h": lambda a, _: (a & 0xFFFF) - ((a & 0x8000) << 1),
    "orc.b": lambda a, _: _bytes(a, lambda byte: 0xFF if byte else 0),
    "rev8": lambda a, _: int.from_bytes(a.to_bytes(4, "big"), "little"),
    "brev8": lambda a, _: _bytes(a, lambda byte: int(f"{byte:08b}"[::-1], 2)),
}
ROTATIONS = (0, 1, 7, 16, 31)
UNARY = {row.name for row in RISCV if row.layout == "unary"}


def _pairs() -> list[tuple[int, int]]:
    random = np.random.default_rng(3)
    pairs = [(a, b) for a in CORNERS for b in CORNERS]
    return pairs + [(int(a), int(b)) for a, b in random.integers(0, 1 << 32, (112, 2))]


PAIRS = _pairs()


def _program(ending: str) -> str:
    """Each operation over all pairs; results go to `results`, operation by operation."""
    lines = ["la s1, results"]
    operations = [(name, "a0, a1" if name in UNARY else "a0, a1, a2") for name in FORMULAS]
    operations += [("rori", f"a0, a1, {amount}") for amount in ROTATIONS]
    for i, (name, operands) in enumerate(operations):
        lines += ["la s0, table", f"li s2, {len(PAIRS)}"]
        lines += [f"op{i}: lw a1, 0(s0)", "lw a2, 4(s0)", f"{name} {operands}", "sw a0, 0(s1)"]
        lines += ["addi s0, s0, 8", "addi s1, s1, 4", "addi s2, s2, -1", f"bnez s2, op{i}"]
    lines += [ending, "table:"] + [f".word {a:#x}, {b:#x}" for a, b in PAIRS]
    return "\n".join([*lines, "results:"])


def _expected() -> list[int]:
    values = [formula(a, b) & MASK for formula in FORMULAS.values() for a, b in PAIRS]
    return values + [_rotated(a, amount) for amount in ROTATIONS for a, _ in PAIRS]


def test_every_instruction_has_a_formula() -> None:
    named = {row.name for row in RISCV if row.extension in ("Zba", "Zbb", "Zbkb")}
    assert named == set(FORMULAS) | {"rori"}


def _on_core() -> list[int]:
    content, labels = assemble_with_labels(_program("ebreak"))
    tile = machine(content, 100_000)
    assert tile.cores["B"].halt_reason == "ebreak"
    return words(tile, len(_expected()), labels["results"])


def test_results_follow_the_formulas() -> None:
    assert _on_core() == _expected()


def _elf(code: bytes, base: int, space: int) -> bytes:
    """A static executable: one segment that is read, written and executed, with `space` bytes behind the code."""
    offset = 0x1000
    header = b"\x7fELF" + bytes([1, 1, 1, 0]) + bytes(8)
    header += struct.pack("<HHIIIIIHHHHHH", 2, 243, 1, base, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    header += struct.pack("<IIIIIIII", 1, offset, base, base, len(code), len(code) + space, 7, 0x1000)
    return header.ljust(offset, b"\0") + code


@pytest.mark.skipif(QEMU is None, reason="qemu-riscv32 (package qemu-user) is not installed")
def test_results_follow_qemu(tmp_path: Path) -> None:
    size = 4 * len(_expected())
    base = 0x100000
    ending = f"li a0, 1\nla a1, results\nli a2, {size}\nli a7, 64\necall\nli a0, 0\nli a7, 93\necall"
    code, _ = assemble_with_labels(_program(ending), base)
    program = tmp_path / "program"
    program.write_bytes(_elf(code, base, size))
    program.chmod(0o755)
    command = [str(QEMU), "-cpu", "rv32,zba=true,zbb=true,zbkb=true", str(program)]
    done = subprocess.run(command, capture_output=True, check=True)
    assert len(done.stdout) == size
    assert _on_core() == list(struct.unpack(f"<{size // 4}I", done.stdout))
