"""RISC-V programs on a core of a tile and on Unicorn, which has QEMU's: registers and memory after every program must
be the same; a program that differs is run again instruction by instruction."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from bhemu.api.tile import Tile
from bhemu.errors import BhemuError, ConfigurationError
from bhemu.fuzz import riscv_programs
from bhemu.fuzz.batch import Finding, Result, Task
from bhemu.fuzz.riscv_programs import DATA, DATA_BYTES
from bhemu.isa.riscv import disassemble_riscv, find
from bhemu.isa.riscv_words import PARKED
from bhemu.loader.boot import start_stores
from bhemu.machine.agents import B

LENGTH: Final = 400
MEMORY: Final = 0x40000
STEPS: Final = 1_000_000
_CHUNK: Final = 4096
_MOST_FINDINGS: Final = 10


def _unicorn() -> Any:
    try:
        import unicorn
        import unicorn.riscv_const
    except ImportError:
        raise ConfigurationError(
            "the kind `riscv` compares with Unicorn, which is not installed", remedy="pip install unicorn"
        ) from None
    return unicorn


class Unicorn:
    """Unicorn's core with a program in its memory."""

    def __init__(self, words: Sequence[int], data: bytes) -> None:
        unicorn = _unicorn()
        self.core: Any = unicorn.Uc(unicorn.UC_ARCH_RISCV, unicorn.UC_MODE_RISCV32)
        self.core.mem_map(0, MEMORY)
        self.core.mem_write(0, np.array(words, "<u4").tobytes())
        self.core.mem_write(DATA - len(data) // 2, data)
        self._x = [unicorn.riscv_const.UC_RISCV_REG_X0 + number for number in range(32)]
        self._pc = unicorn.riscv_const.UC_RISCV_REG_PC
        self.pc = 0

    def run(self, end: int) -> None:
        """Execute up to an address."""
        self.core.emu_start(self.pc, end, count=STEPS)
        self.pc = self.core.reg_read(self._pc)

    def step(self) -> None:
        """Execute one instruction."""
        self.core.emu_start(self.pc, MEMORY, count=1)
        self.pc = self.core.reg_read(self._pc)

    def state(self) -> tuple[list[int], bytes]:
        """Registers, and the memory that programs reach."""
        x = [int(value) & 0xFFFFFFFF for value in self.core.reg_read_batch(self._x)]
        return x, bytes(self.core.mem_read(DATA - DATA_BYTES, 2 * DATA_BYTES))


class Core:
    """Core B of a tile with the same program."""

    def __init__(self, words: Sequence[int], data: bytes) -> None:
        self.tile = Tile()
        self.tile.record.l1_u32[: len(words)] = words
        first = DATA - len(data) // 2
        self.tile.l1[first : first + len(data)] = np.frombuffer(data, np.uint8)
        for address, value in start_stores({B: 0}):
            self.tile.cores.store(address, value)

    def run(self, end: int) -> None:
        """Let clocks pass until the core is at an address."""
        view = self.tile.cores["B"]
        for _ in range(STEPS // _CHUNK):
            self.tile.clock(_CHUNK)
            if view.pc == end:
                return

    def state(self) -> tuple[list[int], bytes]:
        """Registers, and the memory that programs reach."""
        x = [int(value) for value in self.tile.cores["B"].x]
        return x, self.tile.l1[DATA - DATA_BYTES : DATA + DATA_BYTES].tobytes()


def compared(words: Sequence[int], data: bytes) -> tuple[int, str | None]:
    """Instructions that a program executes, and how the two differ after it, if they do."""
    whole = [*words, PARKED]
    end = 4 * len(words)
    core, other = Core(whole, data), Unicorn(whole, data)
    other.run(end)
    try:
        core.run(end)
    except BhemuError as error:
        return 0, f"bhemu refuses: {error.message}"
    executed = int(core.tile.record.core_retired[B])
    if core.state() == other.state() and other.pc == core.tile.cores["B"].pc == end:
        return executed, None
    return executed, _where(whole, data, end)


def _where(words: Sequence[int], data: bytes, end: int) -> str:
    """The first instruction after which they differ."""
    core, other = Core(words, data), Unicorn(words, data)
    view = core.tile.cores["B"]
    while other.pc != end:
        word = int(core.tile.record.l1_u32[other.pc >> 2])
        at = other.pc
        other.step()
        core.tile.clock(1)
        ours, theirs = core.state(), other.state()
        if ours != theirs or view.pc != other.pc:
            text = f"{disassemble_riscv(word)} at {at:#x}: pc {view.pc:#x}, Unicorn {other.pc:#x}"
            different = [i for i in range(32) if ours[0][i] != theirs[0][i]]
            return text + "".join(f"; x{i} {ours[0][i]:#x}, Unicorn {theirs[0][i]:#x}" for i in different)
    return "they differ when the program runs at once, and not in single steps"


def run(task: Task) -> Result:
    """Execute `task.size` instructions on both."""
    chance = random.Random(task.seed)
    result = Result()
    while result.done < task.size:
        seed = chance.getrandbits(63)
        of_program = random.Random(seed)
        words = riscv_programs.program(of_program, LENGTH)
        executed, difference = compared(words, of_program.randbytes(2 * DATA_BYTES))
        result.done += executed
        result.counts["programs"] += 1
        result.features |= {row.name for row in map(find, words) if row is not None}
        if difference is not None and len(result.findings) < _MOST_FINDINGS:
            title = f"riscv: {difference.split(' at ')[0].split()[0]}"
            result.findings.append(Finding(title, f"program of seed {seed}\n{difference}"))
    return result
