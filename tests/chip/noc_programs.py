"""Programs of tiles of a chip that start NoC requests, for tests."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bhemu.chip.coordinates import NODES, Kind, tensix_index
from bhemu.chip.device import Device
from tests.riscv.rv_asm import assemble

SOFT_RESET = 0xFFB121B0
ALL_HELD = 0x47800
B_RUNS = ALL_HELD & ~(1 << 11)
READ, WRITE, INLINE, ATOMIC = 0x2090, 0x2092, 0x209A, 0x2091
RESPONSE = 0x10
MULTICAST = 0x120
INCLUDE_SOURCE = 1 << 17
INCREMENT = 0x107C
FIELDS = {
    "target": 0x00,
    "target_mid": 0x04,
    "target_hi": 0x08,
    "back": 0x0C,
    "back_mid": 0x10,
    "back_hi": 0x14,
    "tag": 0x18,
    "ctrl": 0x1C,
    "length": 0x20,
    "mask_high": 0x24,
    "data": 0x28,
    "exclude": 0x2C,
}
DATA = 0x20000
"""Somewhere in L1 after the programs."""


def at(x: int, y: int) -> int:
    """A coordinate as registers have it."""
    return y << 6 | x


def rectangle(start: tuple[int, int], end: tuple[int, int]) -> int:
    """Both corners of a multicast."""
    return at(*start) << 12 | at(*end)


def request(*, noc: int = 0, initiator: int = 0, **fields: int) -> str:
    """Assembly that fills an initiator's registers and starts it; what is not named is zero. Uses a0 and t0."""
    lines = [f"li a0, {0xFFB20000 + 0x10000 * noc + 0x800 * initiator:#x}"]
    for name, offset in FIELDS.items():
        lines += [f"li t0, {fields.get(name, 0):#x}", f"sw t0, {offset}(a0)"]
    return "\n".join([*lines, "li t0, 1", "sw t0, 0x40(a0)", ""])


def fill(seed: int, size: int) -> np.ndarray:
    """Bytes that no place has by itself."""
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8)


class Board:
    """A chip with programs for core B of some tiles.

    Args:
        programs: assembly by physical coordinates of the tile.
    """

    def __init__(self, programs: Mapping[tuple[int, int], str], **options: object) -> None:
        exact: dict[str, object] = {"quantum": 1}
        self.chip = Device(**(exact | options))  # type: ignore[arg-type]
        for place, text in programs.items():
            self.chip.write_node(NODES[place], 0, assemble(text + "\nend: j end\n", 0))

    def start(self, *places: tuple[int, int]) -> None:
        """Release core B of tiles."""
        for place in places:
            self.chip.write_node(NODES[place], SOFT_RESET, B_RUNS.to_bytes(4, "little"))

    def l1(self, place: tuple[int, int]) -> np.ndarray:
        """A tile's L1."""
        return self.chip.tiles["l1"][tensix_index(place)]

    def word(self, place: tuple[int, int], address: int) -> int:
        """A word of a tile's L1."""
        return int(self.l1(place)[address : address + 4].view(np.uint32)[0])

    def counters(self, place: tuple[int, int], noc: int = 0) -> dict[int, int]:
        """Counters that are not zero."""
        values = self.chip.tiles["niu_counter"][tensix_index(place), noc].tolist()
        return {i: value for i, value in enumerate(values) if value}


def run(programs: Mapping[tuple[int, int], str], clocks: int = 400, **options: object) -> Board:
    """A board whose programs have run."""
    board = Board(programs, **options)
    board.start(*programs)
    board.chip.clock(clocks)
    return board


class DramChannel:
    """A channel of DRAM as its host sees it, through the first of its ports."""

    def __init__(self, chip: Device, channel: int) -> None:
        self.channel = channel
        self._chip = chip
        self._node = next(node for node in NODES.values() if node.kind is Kind.DRAM and node.index == channel)

    def read(self, address: int, size: int) -> bytes:
        return self._chip.read_node(self._node, address, size)

    def write(self, address: int, content: bytes) -> None:
        self._chip.write_node(self._node, address, content)
