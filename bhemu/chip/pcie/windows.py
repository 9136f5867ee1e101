"""The host's windows into the NoC: 202 of 2 MiB and 8 of 4 GiB, each with a 96-bit entry (tile H5, H9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bhemu.chip.pcie.pci import BAR0

WINDOWS: Final = 210
FIRST_LARGE: Final = 202
SMALL_BITS: Final = 21
LARGE_BITS: Final = 32
ENTRY_BYTES: Final = 12
ORDERINGS: Final = 3
"""Orderings of accesses that are built: default, strict, posted."""

WINDOW_CONFIG: Final = BAR0 + 0x1FC00000
WINDOW_CONFIG_END: Final = WINDOW_CONFIG + WINDOWS * ENTRY_BYTES
SMALL_WINDOWS_END: Final = BAR0 + (FIRST_LARGE << SMALL_BITS)


@dataclass(frozen=True)
class Window:
    """What an entry says.

    Attributes:
        base: address in the tile of the window's first byte.
        end: (x, y) of the tile; the lower right corner of a multicast.
        start: (x, y) of the upper left corner; (0, 0) unless multicast.
        noc: 0 or 1.
        multicast: every Tensix tile of the rectangle.
        ordering: 0 default, 1 strict, 2 posted, 3 counted.
        others: the entry's remaining bits: linked, static VC, stream header, buddy, class.
    """

    base: int
    end: tuple[int, int]
    start: tuple[int, int]
    noc: int
    multicast: bool
    ordering: int
    others: int


def decode(words: tuple[int, int, int], large: bool) -> Window:
    """Decode an entry's three words."""
    bits = words[0] | words[1] << 32 | words[2] << 64
    size_bits, address_bits = (LARGE_BITS, 32) if large else (SMALL_BITS, 43)

    def field(lsb: int, width: int) -> int:
        return bits >> (address_bits + lsb) & ((1 << width) - 1)

    return Window(
        base=(bits & ((1 << address_bits) - 1)) << size_bits & ((1 << 64) - 1),
        end=(field(0, 6), field(6, 6)),
        start=(field(12, 6), field(18, 6)),
        noc=field(24, 1),
        multicast=bool(field(26, 1)),
        ordering=field(27, 2),
        others=field(29, 96 - address_bits - 29) | field(25, 1) << 40,
    )
