"""Which place of the chip a PCI address leads to: the windows as the calls have set them (tile H5, H9, H10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bhemu.chip.coordinates import NODES, SIMULATOR, Kind, Node, translation
from bhemu.chip.pcie.pci import BAR0
from bhemu.chip.pcie.windows import (
    ENTRY_BYTES,
    SMALL_BITS,
    WINDOW_CONFIG,
    WINDOW_CONFIG_END,
    WINDOWS,
    decode,
    encode,
    window_at,
)
from bhemu.compare.calls import WRITE, Call, write
from bhemu.machine.state import L1_SIZE

_LAST_FREE: Final = 200
"""Windows above are the kernel driver's, or large (H5)."""
_DRAM_END: Final = 1 << 32


@dataclass(frozen=True)
class Place:
    """A place behind a window.

    Attributes:
        node: the tile.
        coordinates: of the tile as the client gives them.
        address: in the tile.
    """

    node: Node
    coordinates: tuple[int, int]
    address: int

    @property
    def is_memory(self) -> bool:
        """Reading it has no side effects: L1 or DRAM."""
        if self.node.kind is Kind.TENSIX:
            return self.address < L1_SIZE
        return self.node.kind is Kind.DRAM and self.address < _DRAM_END

    @property
    def tile(self) -> int | None:
        """Number of the Tensix tile."""
        return self.node.index if self.node.kind is Kind.TENSIX else None

    def __str__(self) -> str:
        x, y = self.coordinates
        if self.node.kind is Kind.TENSIX:
            what = "L1" if self.is_memory else "register"
            return f"{what} {self.address:#x} of tile {x}-{y}"
        return f"{self.address:#x} of {self.node.kind.value} {x}-{y}"


class Windows:
    """The window entries, followed through calls."""

    def __init__(self) -> None:
        self._table = translation(SIMULATOR)
        self._words = [0] * (WINDOWS * ENTRY_BYTES // 4)

    def follow(self, call: Call) -> None:
        """Follow a call: it may set an entry."""
        if call.name == WRITE and len(call.content) == 4 and WINDOW_CONFIG <= call.a < WINDOW_CONFIG_END:
            self._words[(call.a - WINDOW_CONFIG) // 4] = int.from_bytes(call.content, "little")

    def place(self, paddr: int) -> Place | None:
        """Resolves a PCI address; None when it is in no window, in a multicast one, or in one that leads nowhere."""
        found = window_at(paddr)
        if found is None:
            return None
        number, offset, _ = found
        words = self._words[3 * number : 3 * number + 3]
        window = decode(number, (words[0], words[1], words[2]))
        physical = self._table.get(window.end)
        if window.multicast or physical is None:
            return None
        return Place(NODES[physical], window.end, window.base + offset)


def entry_of(call: Call) -> int | None:
    """The window whose entry a call writes."""
    if call.name == WRITE and WINDOW_CONFIG <= call.a < WINDOW_CONFIG_END:
        return (call.a - WINDOW_CONFIG) // ENTRY_BYTES
    return None


def aim(window: int, coordinates: tuple[int, int], address: int) -> tuple[list[Call], int]:
    """Calls that point a 2 MiB window at an address of a tile, and the PCI address that leads there."""
    base = WINDOW_CONFIG + ENTRY_BYTES * window
    calls = [write(base + 4 * i, word) for i, word in enumerate(encode(address, coordinates))]
    return calls, BAR0 + (window << SMALL_BITS) + address % (1 << SMALL_BITS)


def free_window(calls: list[Call]) -> int:
    """A 2 MiB window that the calls do not use: the one to look with."""
    used = {entry_of(call) for call in calls}
    return next(number for number in range(_LAST_FREE, -1, -1) if number not in used)
