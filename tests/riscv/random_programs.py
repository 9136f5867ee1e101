"""Random programs of RV32IMA that end in a loop of one instruction."""

from __future__ import annotations

import numpy as np

from bhemu.isa.riscv import RISCV

DATA = 0x20000
DATA_BYTES = 0x800
LENGTH = 330
CORNERS = (0, 1, 2, 31, 32, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF)
# x8 points to the data, x9 to the word of an AMO, x18 counts turns; nothing else writes to them.
FREE = [i for i in range(32) if i not in (8, 9, 18)]
OPCODES = [row for row in RISCV if row.extension in ("I", "M", "Zaamo", "Zifencei") and row.layout != "none"]
LAYOUTS = {row.name: row.layout for row in OPCODES}


class Generator:
    """Random programs that end: jumps go forwards, except for loops that count."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.lines: list[str] = []
        self.labels = 0

    def number(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high))

    def reg(self) -> str:
        return f"x{FREE[self.number(0, len(FREE))]}"

    def value(self) -> int:
        return CORNERS[self.number(0, len(CORNERS))] if self.number(0, 2) else self.number(0, 1 << 32)

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def one(self, name: str) -> list[str]:
        """Instruction lines that execute `name` with random operands."""
        layout = LAYOUTS[name]
        if layout == "R":
            return [f"{name} {self.reg()}, {self.reg()}, {self.reg()}"]
        if layout == "I":
            return [f"{name} {self.reg()}, {self.reg()}, {self.number(-2048, 2048)}"]
        if layout == "shift":
            return [f"{name} {self.reg()}, {self.reg()}, {self.number(0, 32)}"]
        if layout == "U":
            return [f"{name} {self.reg()}, {self.number(0, 1 << 20)}"]
        if layout in ("load", "S"):
            size = {"w": 4, "h": 2, "b": 1}[name.rstrip("u")[-1]]
            return [f"{name} {self.reg()}, {self.number(-1024 // size, 1024 // size) * size}(x8)"]
        if layout == "amo":
            return [f"addi x9, x8, {self.number(-256, 256) * 4}", f"{name} {self.reg()}, {self.reg()}, (x9)"]
        if layout == "fence":
            return [f"{name} 0xff" if name == "fence" else name]
        skipped = [self.plain() for _ in range(self.number(0, 4))]
        body = [line for lines in skipped for line in lines]
        target = self.label()
        if layout == "B":
            return [f"{name} {self.reg()}, {self.reg()}, {target}", *body, f"{target}:"]
        if layout == "J":
            return [f"{name} {self.reg()}, {target}", *body, f"{target}:"]
        assert layout == "jalr"
        rd, base = self.reg(), f"x{FREE[self.number(1, len(FREE))]}"
        here = self.label()
        return [f"{here}: auipc {base}, 0", f"{name} {rd}, {target} - {here}({base})", *body, f"{target}:"]

    def plain(self) -> list[str]:
        """A random instruction without a jump, or a value for a register."""
        if self.number(0, 6) == 0:
            return [f"li {self.reg()}, {self.value():#x}"]
        names = [name for name, layout in LAYOUTS.items() if layout not in ("B", "J", "jalr")]
        return self.one(names[self.number(0, len(names))])

    def program(self) -> str:
        names = list(LAYOUTS)
        lines = [f"li x{i}, {self.value():#x}" for i in FREE] + [f"li x8, {DATA + DATA_BYTES // 2}"]
        while len(lines) < LENGTH:
            if self.number(0, 20) == 0:
                top = self.label()
                lines += [f"li x18, {self.number(1, 5)}", f"{top}:"]
                for _ in range(self.number(1, 8)):
                    lines += self.one(names[self.number(0, len(names))])
                lines += ["addi x18, x18, -1", f"bnez x18, {top}"]
            else:
                lines += self.one(names[self.number(0, len(names))])
        return "\n".join([*lines, "end: j end"])
