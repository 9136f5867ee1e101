"""Cores of a new tile with programs, for tests: put code in L1, release a core, let clocks pass."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bhemu import Tile
from bhemu.machine.agents import CORE_NAMES
from tests.riscv.rv_asm import assemble

SOFT_RESET = 0xFFB121B0
START = {"B": 0x00000, "T0": 0x06000, "T1": 0x0A000, "T2": 0x0E000, "NC": 0x12000}
"""Where each core starts (T14)."""
RESET_BIT = {"B": 11, "T0": 12, "T1": 13, "T2": 14, "NC": 18}
ALL_HELD = 0x47800
SCRATCH = 0x20000
"""Somewhere in L1 behind all programs."""


def put(tile: Tile, address: int, content: bytes) -> None:
    """Bytes into L1."""
    tile.l1[address : address + len(content)] = np.frombuffer(content, np.uint8)


def release(tile: Tile, *cores: str) -> None:
    """Release cores from reset at once, as the host does."""
    word = tile.cores.load(SOFT_RESET)
    for core in cores:
        word &= ~(1 << RESET_BIT[core])
    tile.cores.store(SOFT_RESET, word)


def hold(tile: Tile, *cores: str) -> None:
    """Put cores into reset."""
    word = tile.cores.load(SOFT_RESET)
    for core in cores:
        word |= 1 << RESET_BIT[core]
    tile.cores.store(SOFT_RESET, word)


def machine(programs: str | bytes | Mapping[str, str | bytes], clocks: int = 0, *, tile: Tile | None = None) -> Tile:
    """A tile whose cores run programs.

    Args:
        programs: by core name, assembly text or bytes; one alone is core B's. They are placed where the core starts.
        clocks: of the tile to pass after the release.
        tile: to use instead of a new one.
    """
    if not isinstance(programs, Mapping):
        programs = {"B": programs}
    tile = Tile() if tile is None else tile
    for core, program in programs.items():
        put(tile, START[core], program if isinstance(program, bytes) else assemble(program, START[core]))
    release(tile, *(core for core in CORE_NAMES if core in programs))
    if clocks:
        tile.clock(clocks)
    return tile


def word(tile: Tile, address: int = SCRATCH) -> int:
    """A word of L1."""
    return int(tile.record.l1_u32[address >> 2])


def words(tile: Tile, count: int, address: int = SCRATCH) -> list[int]:
    """Words of L1."""
    return [word(tile, address + 4 * i) for i in range(count)]
