"""Random programs of RV32IMA that end: jumps go forwards, except for loops that count."""

from __future__ import annotations

import random
from functools import cache
from typing import Final

from bhemu.isa.riscv import RISCV, RiscvInstruction
from bhemu.isa.riscv_words import riscv_word, set_register

DATA: Final = 0x20000
"""In the middle of what loads and stores reach."""
DATA_BYTES: Final = 0x800
LOOP_TURNS: Final = 60
_CORNERS: Final = (0, 1, 2, 31, 32, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF)
_DATA, _AMO, _COUNTER = 8, 9, 18
"""Registers that nothing else writes to: to the data, to the word of an AMO, turns of a loop."""
_FREE: Final = [number for number in range(32) if number not in (_DATA, _AMO, _COUNTER)]


@cache
def instructions() -> tuple[RiscvInstruction, ...]:
    """What programs are made of: what another simulator of the same instructions has, too."""
    return tuple(row for row in RISCV if row.extension in ("I", "M", "Zaamo", "Zifencei") and row.layout != "none")


def _offset_size(name: str) -> int:
    return {"w": 4, "h": 2, "b": 1}[name.rstrip("u")[-1]]


def one(chance: random.Random, row: RiscvInstruction) -> list[int]:
    """Words that execute an instruction with random operands, and what they jump over."""
    rd, rs1, rs2 = (chance.choice(_FREE) for _ in range(3))
    layout = row.layout
    if layout in ("load", "S"):
        size = _offset_size(row.name)
        offset = chance.randrange(-1024 // size, 1024 // size) * size
        return [riscv_word(row.name, rd=rd, rs1=_DATA, rs2=rs2, imm=offset)]
    if layout == "amo":
        offset = 4 * chance.randrange(-256, 256)
        return [riscv_word("addi", rd=_AMO, rs1=_DATA, imm=offset), riscv_word(row.name, rd=rd, rs1=_AMO, rs2=rs2)]
    if layout == "fence":
        return [row.match | 0x0FF00000 if row.name == "fence" else row.match]
    if layout in ("B", "J", "jalr"):
        body = [word for _ in range(chance.randrange(4)) for word in plain(chance)]
        if layout == "jalr":
            base = chance.choice(_FREE[1:])
            return [riscv_word("auipc", rd=base), riscv_word("jalr", rd=rd, rs1=base, imm=8 + 4 * len(body)), *body]
        return [riscv_word(row.name, rd=rd, rs1=rs1, rs2=rs2, imm=4 + 4 * len(body)), *body]
    number = chance.randrange(1 << 20) if layout == "U" else chance.randrange(-2048, 2048)
    return [riscv_word(row.name, rd=rd, rs1=rs1, rs2=rs2, imm=number & 31 if layout == "shift" else number)]


def plain(chance: random.Random) -> list[int]:
    """A random instruction without a jump, or a value for a register."""
    if chance.randrange(6) == 0:
        value = chance.choice(_CORNERS) if chance.randrange(2) else chance.randrange(1 << 32)
        return set_register(chance.choice(_FREE[1:]), value)
    rows = [row for row in instructions() if row.layout not in ("B", "J", "jalr")]
    return one(chance, chance.choice(rows))


def program(chance: random.Random, length: int, data: int = DATA) -> list[int]:
    """Words of a program that ends by running into what is after it."""
    words = [word for r in _FREE[1:] for word in set_register(r, chance.choice((*_CORNERS, chance.randrange(1 << 32))))]
    words += set_register(_DATA, data)
    while len(words) < length:
        if chance.randrange(8) == 0:
            body = [word for _ in range(chance.randrange(1, 24)) for word in one(chance, chance.choice(instructions()))]
            words += [riscv_word("addi", rd=_COUNTER, imm=chance.randrange(1, LOOP_TURNS)), *body]
            words += [riscv_word("addi", rd=_COUNTER, rs1=_COUNTER, imm=-1)]
            words += [riscv_word("bne", rs1=_COUNTER, imm=-4 * (len(body) + 1))]
        else:
            words += one(chance, chance.choice(instructions()))
    return words
