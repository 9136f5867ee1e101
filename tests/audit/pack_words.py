"""A packer bench whose instructions and configuration are literal words: no table of bhemu between test and machine."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.tensix.packer_bench import BF16, L1_BASE, Bench

PACR_FIELDS = {
    "CfgContext": (21, 2),
    "RowPadZero": (18, 3),
    "DstAccessMode": (17, 1),
    "AddrMode": (15, 2),
    "AddrCntContext": (13, 2),
    "ZeroWrite": (12, 1),
    "ReadIntfSel": (8, 4),
    "OvrdThreadId": (7, 1),
    "Concat": (4, 1),
    "CtxtCtrl": (2, 2),
    "Flush": (1, 1),
    "Last": (0, 1),
}
"""Lowest bit and width of each field (P1)."""

STATE_ID = 0
"""ThreadConfig entry of CFG_STATE_ID (I.10)."""
GROUP = (68, 96, 116, 144)
"""First word of the register group of each context (P3)."""
ALL_ROWS = range(64)


def pacr_word(**fields: int) -> int:
    """PACR from the bit positions of P1."""
    word = 0x41 << 24
    for name, value in fields.items():
        lsb, width = PACR_FIELDS[name]
        assert 0 <= value < 1 << width, name
        word |= value << lsb
    return word


class Words(Bench):
    """Thread 2 with BF16 rows 0 to 63, row r of r + 1 in every column; L1 behind the output is filled with 0xEE."""

    def __init__(self, in_format: int = BF16, out_format: int = BF16, *, read_32b: int = 0) -> None:
        super().__init__(in_format, out_format, read_32b=read_32b)
        for row in ALL_ROWS:
            self.bf16_row(row, [ROW[row]] * 16)
        self.mark()

    def mark(self, count: int = 0x4000) -> None:
        """Fill L1 from L1_BASE with 0xEE."""
        self.tile["l1"][L1_BASE : L1_BASE + count] = 0xEE

    def wrcfg(self, word: int, value: int) -> None:
        """Write a whole Config word of the thread's bank (opcode 0xB0, GPR 63)."""
        self.tile["gpr"][2, 63] = value
        self.word(0xB0 << 24 | 63 << 16 | word)

    def bits(self, word: int, lsb: int, width: int, value: int, bank: int = 0) -> None:
        """Change some bits of a Config word of bank 0 or 1, which the thread must use."""
        old = int(self.tile["config"][0 if word >= 180 else bank, word])
        self.wrcfg(word, old & ~(((1 << width) - 1) << lsb) | value << lsb)

    def setc16(self, entry: int, value: int) -> None:
        """Write a ThreadConfig entry (opcode 0xB2)."""
        self.word(0xB2 << 24 | entry << 16 | value)

    def send(self, **fields: int) -> None:
        """Execute a PACR; fields not named are 0, so that it has all four interfaces and no Last."""
        self.word(pacr_word(**fields))

    def counter(self, channel: int, dimension: str, thread: int = 2) -> int:
        """A counter of the packer's ADC."""
        return int(self.tile["adc"][thread, 2, 4 * channel + "XYZW".index(dimension)])

    def rows(self, count: int, offset: int = 0) -> list[int]:
        """Numbers of the Dst rows whose 16 equal datums are in L1 one after the other."""
        values = self.l1("<u2", 16 * count, offset)
        found = []
        for i in range(count):
            (value,) = set(values[16 * i : 16 * i + 16])
            found.append(ROW.index(value))
        return found

    def untouched(self, offset: int, count: int = 16) -> bool:
        """Nothing was written to `count` bytes from L1_BASE + `offset`."""
        return self.l1("u1", count, offset) == [0xEE] * count


def bf16(value: Any) -> Any:
    """Upper 16 bits of float32 values that BF16 holds exactly."""
    bits = np.asarray(value, np.float32).view(np.uint32)
    assert not np.any(bits & 0xFFFF)
    return (bits >> 16).tolist()


ROW = [int(v) for v in bf16(np.arange(1, 65))]
"""BF16 patterns of 1 to 64, one for each Dst row."""
