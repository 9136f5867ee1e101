"""The RISC-V instructions of the baby cores: `data/riscv.tsv`, loaded once and given types (tile T1 to T11).

RV32I with M, Zicsr, Zaamo, Zba, Zbb, four operations of Zbkb, and part of F; core T2's part of V is in riscv_vector.py.
Every other word whose low bits are 01, 10
or 00 is a Tensix instruction, rotated left by two (`.ttinsn`, T10).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from bhemu.isa.assembler import disassemble as disassemble_tensix
from bhemu.isa.assembler import from_ttinsn
from bhemu.isa.riscv_vector import disassemble_vector, is_vector_word
from bhemu.isa.tables import rows


@dataclass(frozen=True, slots=True)
class RiscvInstruction:
    """One row of the table.

    Attributes:
        name: as in the assembler.
        extension: the part of the ISA that defines it.
        layout: of the operands, see `_OPERANDS`.
        match, mask: a word is this instruction when `word & mask == match`; no word is two of them.
        number: by which compiled code knows the instruction; see `FIRST`.
    """

    name: str
    extension: str
    layout: str
    match: int
    mask: int
    number: int


_PARTS: Final = ("loop", "atomic", "csr", "environment", "float")
_PART_OF: Final = MappingProxyType({"Zaamo": "atomic", "Zicsr": "csr", "F": "float"})


def _part(extension: str, layout: str) -> str:
    """Which module executes an instruction, by the names of `FIRST`."""
    return "environment" if layout == "none" else _PART_OF.get(extension, "loop")


def _load() -> tuple[RiscvInstruction, ...]:
    lines = sorted(rows("riscv.tsv")[1:], key=lambda line: _PARTS.index(_part(line[1], line[2])))
    return tuple(
        RiscvInstruction(name, extension, layout, int(match, 16), int(mask, 16), number)
        for number, (name, extension, layout, match, mask) in enumerate(lines)
    )


RISCV: Final = _load()
"""Every instruction, by number."""
FIRST: Final = MappingProxyType(
    {part: next(row.number for row in RISCV if _part(row.extension, row.layout) == part) for part in _PARTS}
)
"""First number of the instructions that a module of riscv/ executes: `loop` is the inner loop (execute.py and
arithmetic.py); outside of it are `atomic` (atomics.py), `csr` (csr.py), `environment` (ecall, ebreak, mret: slow.py)
and `float` (float.py)."""
RISCV_BY_NAME: Final = MappingProxyType({row.name: row for row in RISCV})
NUMBER: Final = MappingProxyType({row.name: row.number for row in RISCV})
"""Number of each instruction by name."""

REGISTER_NAMES: Final = (
    *("zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4", "a5"),
    *("a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6"),
)
FLOAT_NAMES: Final = (
    *(f"ft{i}" for i in range(8)),
    *("fs0", "fs1"),
    *(f"fa{i}" for i in range(8)),
    *(f"fs{i}" for i in range(2, 12)),
    *(f"ft{i}" for i in range(8, 12)),
)


def is_ttinsn(word: int) -> bool:
    """True when the 32-bit word in a RISC-V stream is a Tensix instruction (T10)."""
    return word & 3 != 3


def find(word: int) -> RiscvInstruction | None:
    """The row of a word, or None when the cores do not have it (.ttinsn included)."""
    return next((row for row in RISCV if word & row.mask == row.match), None)


def signed(value: int, bits: int) -> int:
    """The low `bits` of a number as two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def immediate(word: int, layout: str) -> int:
    """The immediate operand of a word, signed where the layout says so; 0 for layouts without one.

    U gives the value that is loaded (low 12 bits 0); csr layouts give the register's number, shifts the amount.
    """
    if layout == "U":
        return signed(word & 0xFFFFF000, 32)
    if layout == "J":
        bits = (word >> 31 & 1) << 20 | (word >> 12 & 0xFF) << 12 | (word >> 20 & 1) << 11 | (word >> 21 & 0x3FF) << 1
        return signed(bits, 21)
    if layout == "B":
        bits = (word >> 31 & 1) << 12 | (word >> 7 & 1) << 11 | (word >> 25 & 0x3F) << 5 | (word >> 8 & 0xF) << 1
        return signed(bits, 13)
    if layout in ("S", "fstore"):
        return signed((word >> 25) << 5 | (word >> 7 & 0x1F), 12)
    if layout in ("I", "jalr", "load", "fload"):
        return signed(word >> 20, 12)
    if layout == "shift":
        return word >> 20 & 0x1F
    if layout in ("csr", "csri"):
        return word >> 20
    return 0


_OPERANDS: Final = MappingProxyType(
    {
        "U": "{rd}, {upper:#x}",
        "J": "{rd}, {target}",
        "jalr": "{rd}, {imm}({rs1})",
        "B": "{rs1}, {rs2}, {target}",
        "load": "{rd}, {imm}({rs1})",
        "S": "{rs2}, {imm}({rs1})",
        "I": "{rd}, {rs1}, {imm}",
        "shift": "{rd}, {rs1}, {imm}",
        "R": "{rd}, {rs1}, {rs2}",
        "unary": "{rd}, {rs1}",
        "fence": "",
        "amo": "{rd}, {rs2}, ({rs1})",
        "csr": "{rd}, {imm:#x}, {rs1}",
        "csri": "{rd}, {imm:#x}, {field}",
        "none": "",
        "fload": "{fd}, {imm}({rs1})",
        "fstore": "{f2}, {imm}({rs1})",
        "R4": "{fd}, {f1}, {f2}, {f3}",
        "FR": "{fd}, {f1}, {f2}",
        "FR3": "{fd}, {f1}, {f2}",
        "Fcmp": "{rd}, {f1}, {f2}",
        "F2X": "{rd}, {f1}",
        "F2Xm": "{rd}, {f1}",
        "X2F": "{fd}, {rs1}",
        "X2Fm": "{fd}, {rs1}",
    }
)


def disassemble_riscv(word: int, pc: int = 0) -> str:
    """A word of a core's program as text; `.ttinsn` shows the Tensix instruction.

    Args:
        word: 32 bits as they lie in memory.
        pc: where, for the targets of jumps.
    """
    if is_ttinsn(word):
        return f".ttinsn {disassemble_tensix(from_ttinsn(word))}"
    row = find(word)
    if row is None:
        vector = disassemble_vector(word, REGISTER_NAMES, FLOAT_NAMES) if is_vector_word(word) else None
        return f".word {word:#010x}" if vector is None else vector
    imm = immediate(word, row.layout)
    rd, rs1, rs2 = word >> 7 & 31, word >> 15 & 31, word >> 20 & 31
    operands = _OPERANDS[row.layout].format(
        rd=REGISTER_NAMES[rd],
        rs1=REGISTER_NAMES[rs1],
        rs2=REGISTER_NAMES[rs2],
        field=rs1,
        fd=FLOAT_NAMES[rd],
        f1=FLOAT_NAMES[rs1],
        f2=FLOAT_NAMES[rs2],
        f3=FLOAT_NAMES[word >> 27],
        imm=imm,
        upper=word >> 12,
        target=f"{pc + imm & 0xFFFFFFFF:#x}",
    )
    return f"{row.name} {operands}".rstrip()
