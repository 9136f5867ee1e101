"""A vector unit for tests: LRegs in, one instruction at a time, LRegs out."""

from __future__ import annotations

from typing import Any

import numpy as np

from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.machine.state import new_tiles
from bhemu.tensix.coprocessor import Coprocessor

ALL = 0xFFFFFFFF
FMA = [
    (0x3F800001, 0x3F800001, 0xBF800002, 0x32800000),
    (0x3F800001, 0x3F800001, 0x4B800000, 0x4B800001),
    (0x3F800000, 0x33800000, 0x3F800000, 0x3F800000),
    (0x3F800000, 0x33800000, 0x3F800001, 0x3F800002),
    (0x3F800000, 0x33800001, 0x3F800000, 0x3F800001),
    (0x7F7FFFFF, 0x40000000, 0xFF7FFFFF, 0x7F800000),
    (0x7F7FFFFF, 0x3F800000, 0x7F7FFFFF, 0x7F800000),
    (0x7F7FFFFF, 0x7F7FFFFF, 0xFF800000, 0xFF800000),
    (0x7F800000, 0x007FFFFF, 0x3F800000, 0x7FC00000),
    (0x00800000, 0x3F000000, 0x00000001, 0x00000000),
    (0x20000000, 0x1F800000, 0x81000000, 0x80C00000),
    (0x20000000, 0x1F000000, 0x81000000, 0x81000000),
    (0x80000000, 0x3F800000, 0x80000000, 0x80000000),
    (0x36EF7EAB, 0x09FC8CE5, 0x814C4480, 0x00800000),
    (0x7FC12345, 0x3F800000, 0x00000000, 0x7FC00000),
    (0x00800000, 0x3F800000, 0x80C00000, 0x80000000),
]
"""x, y, z, x * y + z, as bits of FP32 (section T)."""


def word(mnemonic: str, **operands: int) -> int:
    """An instruction word from operands by name; those not given are 0."""
    row = INSTRUCTIONS[mnemonic]
    fields = {field.name: field for field in row.fields}
    value = row.base
    for name, operand in operands.items():
        assert 0 <= operand <= fields[name].max, name
        value |= operand << fields[name].lsb
    return value


class Sfpu:
    """One tile after reset, driven through the math thread."""

    def __init__(self) -> None:
        self.tiles = new_tiles(1)
        self.coprocessor = Coprocessor(self.tiles)
        self.t: Any = self.tiles[0]

    def do(self, mnemonic: str, **operands: int) -> None:
        assert self.coprocessor.push(1, word(mnemonic, **operands))
        assert self.coprocessor.drain(1)

    def set(self, register: int, *values: int) -> None:
        """Give lanes of an LReg their values; the last one goes on to lane 31."""
        filled = list(values) + [values[-1]] * (32 - len(values))
        self.t["lregs"][register] = np.array(filled, np.uint64).astype(np.uint32)

    def get(self, register: int) -> list[int]:
        return [int(x) for x in self.t["lregs"][register]]

    def flags(self, flags: int) -> None:
        """Put the lane flags in force."""
        self.t["vector"]["lane_flags"] = flags
        self.t["vector"]["use_flags"] = ALL
