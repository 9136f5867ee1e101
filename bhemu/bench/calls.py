"""What `bhemu bench --client` times of single calls: the same plan for every library."""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.bench.cores import PROGRAMS
from bhemu.bench.plan import Plan
from bhemu.chip.coordinates import TENSIX_TILES, tensix_place
from bhemu.compare.calls import EXIT, INIT, Call, clock, read, write
from bhemu.compare.places import aim
from bhemu.loader.boot import ALL_HELD, SOFT_RESET
from bhemu.machine.agents import CORE_NAMES
from bhemu.tile.reset import CORE_BIT, DEFAULT_PC

_TILE: Final = tensix_place(0)
_DRAM: Final = (17, 12)
_PLACE: Final = 0x1000
_L1, _REGISTERS, _OF_DRAM = 1, 2, 3  # windows
FIGURES: Final = (
    ("write 4 bytes of L1", 200_000),
    ("read 4 bytes of L1", 200_000),
    ("write 4 bytes of DRAM", 200_000),
    ("read 4 bytes of DRAM", 200_000),
    ("write a register", 50_000),
    ("read a register", 50_000),
    ("aim a window, read 4 bytes", 50_000),
    ("libttsim_clock(1), idle", 3_000),
    ("libttsim_clock(1), 140 x 5 cores", 2_000),
    ("libttsim_clock(1000), 140 x 5 cores", 20),
)
"""Name and number of calls of each section."""


def microbench() -> Plan:
    """The plan; its sections are FIGURES."""
    plan = Plan()
    to_l1, l1 = aim(_L1, _TILE, _PLACE)
    to_registers, register = aim(_REGISTERS, _TILE, SOFT_RESET)
    to_dram, dram = aim(_OF_DRAM, _DRAM, _PLACE)
    for call in (Call(INIT), *to_l1, *to_registers, *to_dram):
        plan.call(0, call)
    held = ALL_HELD.to_bytes(4, "little")
    for number, calls in enumerate(
        (
            (write(l1, 0x1234),),
            (read(l1),),
            (write(dram, 0x5678),),
            (read(dram),),
            (write(register, held),),
            (read(register),),
            (*to_l1, read(l1)),
            (clock(1),),
        )
    ):
        _section(plan, number, calls)
    for tile in range(TENSIX_TILES):
        for call in _busy(tile):
            plan.call(0, call)
    plan.call(0, clock(5_000))
    _section(plan, 8, (clock(1),))
    _section(plan, 9, (clock(1_000),))
    plan.call(0, Call(EXIT))
    return plan


def _section(plan: Plan, number: int, calls: tuple[Call, ...]) -> None:
    plan.section(number)
    plan.repeat(FIGURES[number][1], *calls)
    plan.section(None)


def _busy(tile: int) -> list[Call]:
    """Five cores of a tile in a loop of arithmetic."""
    to_memory, memory = aim(_L1, tensix_place(tile), 0)
    to_registers, register = aim(_REGISTERS, tensix_place(tile), SOFT_RESET)
    content = np.array(PROGRAMS["alu"], np.uint32).tobytes()
    running = ALL_HELD & ~sum(1 << int(CORE_BIT[core]) for core in range(len(CORE_NAMES)))
    programs = [write(memory + int(DEFAULT_PC[core]), content) for core in range(len(CORE_NAMES))]
    return [*to_memory, *to_registers, *programs, write(register, running.to_bytes(4, "little"))]
