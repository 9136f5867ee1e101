"""Programs of the RISC-V cores that `bhemu bench` times: a loop of eight or ten instructions, and a loop that polls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from bhemu.api.tile import Tile
from bhemu.isa.riscv_words import riscv_word
from bhemu.loader.boot import ALL_HELD, LOCAL_RAM, SOFT_RESET
from bhemu.machine.agents import CORE_NAMES
from bhemu.tile.reset import CORE_BIT, DEFAULT_PC

CLOCKS: Final = 1000

_ARITHMETIC: Final = (
    0x00128293,  # addi t0, t0, 1
    0x01D283B3,  # add t2, t0, t4
    0x0053CE33,  # xor t3, t2, t0
    0x003F1F93,  # slli t6, t5, 3
    0x21DFCEB3,  # sh2add t4, t6, t4
    0x0FFEF513,  # andi a0, t4, 255
    0x005535B3,  # sltu a1, a0, t0
)
_STORE_AND_LOAD: Final = (0x00732023, 0x00032F03)  # sw t2, 0(t1); lw t5, 0(t1)
_LOCAL: Final = (LOCAL_RAM | 0x337, 0x10030313)  # lui t1, LOCAL_RAM >> 12; addi t1, t1, 256
_L1: Final = (0x00020337,)  # lui t1, 0x20
_POLL: Final = (
    0x00030FB7,  # lui t6, 0x30
    0x000FA503,  # lw a0, 0(t6)
    0x0FF0000F,  # fence
    0xFE050CE3,  # beq a0, zero, -8
)


def _loop(start: tuple[int, ...], body: tuple[int, ...]) -> tuple[int, ...]:
    return (*start, *body, riscv_word("jal", imm=-4 * len(body)))


PROGRAMS: Final = {
    "alu": _loop((), _ARITHMETIC),
    "local": _loop(_LOCAL, _ARITHMETIC[:2] + _STORE_AND_LOAD + _ARITHMETIC[2:]),
    "l1": _loop(_L1, _ARITHMETIC[:2] + _STORE_AND_LOAD + _ARITHMETIC[2:]),
    "poll": _POLL,
}


def start(program: str, cores: tuple[str, ...]) -> Tile:
    """A tile whose cores run a program of `PROGRAMS`."""
    tile = Tile()
    words = np.array(PROGRAMS[program], np.uint32)
    held = ALL_HELD
    for name in cores:
        core = CORE_NAMES.index(name)
        first = int(DEFAULT_PC[core]) >> 2
        tile.record.l1_u32[first : first + len(words)] = words
        held &= ~(1 << int(CORE_BIT[core]))
    tile.cores.store(SOFT_RESET, held)
    tile.clock(20 * CLOCKS)
    return tile


def figure(program: str, cores: tuple[str, ...]) -> tuple[Callable[[int], None], Callable[[], None]]:
    """(let a number of instructions of all cores pass - of pollers, thousands of clocks -, check that they did)."""
    tile = start(program, cores)
    passed = 0
    before = tile.cores[cores[0]].retired
    tile.clock(20 * CLOCKS)
    polls = program == "poll"

    def execute(count: int) -> None:
        nonlocal passed
        # Any number of clocks takes pollers the same time, so each thousand is a call of its own.
        clocks = CLOCKS if polls else max(count // len(cores), 1)
        for _ in range(count if polls else 1):
            tile.clock(clocks)
            passed += clocks

    def check() -> None:
        retired = tile.cores[cores[0]].retired - before
        if retired != passed + 20 * CLOCKS:
            raise AssertionError(f"{retired} instructions in {passed + 20 * CLOCKS} clocks")

    return execute, check


FIGURES: Final = {
    "core.alu": ("alu", ("B",)),
    "core.local": ("local", ("B",)),
    "core.l1": ("l1", ("B",)),
    "cores.five.alu": ("alu", CORE_NAMES),
    "cores.five.local": ("local", CORE_NAMES),
    "cores.five.l1": ("l1", CORE_NAMES),
    "tile.poll.clock1000": ("poll", CORE_NAMES),
}
"""Nanoseconds for one instruction of one of the cores; of `tile.poll`, for a thousand clocks of five polling cores."""
