"""How a debugger drives cores through the control block, register by register (tile K42)."""

from __future__ import annotations

from bhemu import Tile

CONTROL = 0xFFB12000
CNTL_0, CNTL_1 = CONTROL + 0x80, CONTROL + 0x84
STATUS_0, STATUS_1 = CONTROL + 0x88, CONTROL + 0x8C
WHICH = {"B": 0, "T0": 1, "T1": 2, "T2": 3}

STATUS, COMMAND, ARGUMENT_0, ARGUMENT_1, RESULT, MODES, ADDRESS_0 = 0, 1, 2, 3, 4, 5, 10
HALT, STEP, CONTINUE, READ_GPR, WRITE_GPR, READ_MEMORY, WRITE_MEMORY, CLEAR, FLUSH = (1 << i for i in range(9))
DEBUG_MODE = 1 << 31
HALTED, PC_HIT, MEMORY_HIT, EBREAK_HIT = 1, 2, 4, 8


class DebugClient:
    """The debug interface of one core, over the NoC."""

    def __init__(self, tile: Tile, core: str) -> None:
        self._cores = tile.cores
        self._select = WHICH[core] << 17

    def write(self, register: int, value: int) -> None:
        """Write a debug register."""
        self._cores.store(CNTL_1, value)
        self._cores.store(CNTL_0, 0x80010000 + self._select + register)
        self._cores.store(CNTL_0, 0)

    def read(self, register: int) -> int:
        """Read a debug register."""
        self._cores.store(CNTL_0, 0x80000000 + self._select + register)
        self._cores.store(CNTL_0, 0)
        assert self._cores.load(STATUS_0) & 1 << 30
        return self._cores.load(STATUS_1)

    def command(self, bits: int) -> None:
        """A command in debug mode."""
        self.write(COMMAND, DEBUG_MODE | bits)

    @property
    def status(self) -> int:
        """DR 0."""
        return self.read(STATUS)

    def halt(self) -> None:
        self.command(HALT)

    def go_on(self) -> None:
        self.command(CONTINUE)

    def step(self) -> None:
        """One instruction: Blackhole needs the command twice."""
        self.command(STEP)
        self.command(STEP)

    def gpr(self, register: int) -> int:
        """A register; 32 is pc."""
        self.write(ARGUMENT_0, register)
        self.command(READ_GPR)
        return self.read(RESULT)

    def set_gpr(self, register: int, value: int) -> None:
        self.write(ARGUMENT_1, value)
        self.write(ARGUMENT_0, register)
        self.command(WRITE_GPR)

    def load(self, address: int) -> int:
        """A word as the core sees it."""
        self.write(ARGUMENT_0, address)
        self.command(READ_MEMORY)
        return self.read(RESULT)

    def store(self, address: int, value: int) -> None:
        self.write(ARGUMENT_1, value)
        self.write(ARGUMENT_0, address)
        self.command(WRITE_MEMORY)

    def watch(self, index: int, address: int, mode: int) -> None:
        """Set a watchpoint; mode 0 switches it off."""
        self.write(ADDRESS_0 + index, address)
        modes = self.read(MODES)
        self.write(MODES, modes & ~(0xF << 4 * index) | mode << 4 * index)
