"""Words of RISC-V instructions: from their operands, and which of them call and return."""

from __future__ import annotations

from typing import Final

from bhemu.isa.riscv import RISCV_BY_NAME

EBREAK: Final = RISCV_BY_NAME["ebreak"].match
PARKED: Final = RISCV_BY_NAME["jal"].match
"""`j .`: the core stays there."""
_JAL, _JALR = RISCV_BY_NAME["jal"], RISCV_BY_NAME["jalr"]
_LINKS: Final = (1, 5)
"""ra and t0: a jump that writes one is a call, one to its value a return (RISC-V calling convention)."""


def riscv_word(name: str, rd: int = 0, rs1: int = 0, rs2: int = 0, imm: int = 0) -> int:
    """The word of an integer instruction.

    Args:
        name: of a row of `data/riscv.tsv` with integer operands.
        rd, rs1, rs2: numbers of registers; those that the layout does not have are to be left out.
        imm: bytes of a jump, a signed number, or for `lui` and `auipc` the upper 20 bits as a number; bits that the
            layout has no place for are dropped.
    """
    row = RISCV_BY_NAME[name]
    word = row.match
    if row.layout == "B":
        bits = (imm >> 12 & 1) << 31 | (imm >> 5 & 0x3F) << 25 | (imm >> 1 & 0xF) << 8 | (imm >> 11 & 1) << 7
        return word | rs1 << 15 | rs2 << 20 | bits
    if row.layout == "J":
        bits = (imm >> 20 & 1) << 31 | (imm >> 1 & 0x3FF) << 21 | (imm >> 11 & 1) << 20 | (imm >> 12 & 0xFF) << 12
        return word | rd << 7 | bits
    if row.layout == "U":
        return word | rd << 7 | (imm & 0xFFFFF) << 12
    if row.layout == "S":
        return word | rs1 << 15 | rs2 << 20 | (imm >> 5 & 0x7F) << 25 | (imm & 0x1F) << 7
    if row.layout in ("R", "amo"):
        return word | rd << 7 | rs1 << 15 | rs2 << 20
    return word | rd << 7 | rs1 << 15 | (imm & 0xFFF) << 20


def upper(value: int) -> int:
    """The operand of the `lui` to whose result a signed immediate, the lower 12 bits of the value, is added."""
    return (value + 0x800) >> 12 & 0xFFFFF


def set_register(rd: int, value: int) -> list[int]:
    """Two words that give a register a 32-bit value."""
    return [riscv_word("lui", rd, imm=upper(value)), riscv_word("addi", rd, rd, imm=value)]


def is_call(word: int) -> bool:
    """The instruction is a call."""
    return any(word & row.mask == row.match for row in (_JAL, _JALR)) and word >> 7 & 31 in _LINKS


def is_return(word: int) -> bool:
    """The instruction is a return."""
    return word & _JALR.mask == _JALR.match and word >> 7 & 31 not in _LINKS and word >> 15 & 31 in _LINKS
