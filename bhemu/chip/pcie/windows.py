"""The host's windows into the NoC: 202 of 2 MiB and 8 of 4 GiB, each with a 96-bit entry (tile H5, H9, E34).

Which window an address lies in and what an entry's bits are is said here alone: compiled for `bhemu.chip.pcie.direct`,
and as plain Python for `window_at`, `decode` and `encode`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from bhemu.chip.pcie.pci import BAR0, BAR4, BAR4_SIZE
from bhemu.machine.kernel import kernel, plain
from bhemu.machine.types import Int

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
NO_WINDOW: Final = -1

_SMALL_ADDRESS_BITS: Final = 43
"""Bits of an entry that hold the address in the tile, in 2 MiB; for a large window its first word, in 4 GiB."""
# Bits of an entry above the address
COORDINATE: Final = 63
_END_Y: Final = 6
START_X_LSB: Final = 12
START_Y_LSB: Final = 18
NOC_LSB: Final = 24
LINKED_LSB: Final = 25
MULTICAST_LSB: Final = 26
ORDERING_LSB: Final = 27
OTHERS_LSB: Final = 29
NOT_UNICAST: Final = ~((1 << START_X_LSB) - 1 | 1 << NOC_LSB | 3 << ORDERING_LSB)
"""What must be 0 where one tile is meant and nothing is asked for that is not built, the ordering apart."""


@kernel
def window_of(paddr: Int) -> Any:
    """Number of the window that holds a physical address; NO_WINDOW where there is none."""
    if paddr >= BAR0 and paddr < SMALL_WINDOWS_END:
        return (paddr - BAR0) >> SMALL_BITS
    if paddr >= BAR4 and paddr < BAR4 + BAR4_SIZE:
        return FIRST_LARGE + ((paddr - BAR4) >> LARGE_BITS)
    return NO_WINDOW


@kernel
def window_bytes(number: Int) -> Int:
    """How much a window shows."""
    return 1 << (SMALL_BITS if number < FIRST_LARGE else LARGE_BITS)


@kernel
def base_of(number: Int, low: Int, middle: Int) -> Int:
    """Address in the tile of a window's first byte, of the first two words of its entry; from 2**63 on negative."""
    if number < FIRST_LARGE:
        return (low | ((middle & ((1 << (_SMALL_ADDRESS_BITS - 32)) - 1)) << 32)) << SMALL_BITS
    return low << LARGE_BITS


@kernel
def fields_of(number: Int, middle: Int, high: Int) -> Int:
    """The bits above the address, of the last two words of an entry."""
    if number < FIRST_LARGE:
        return (middle >> (_SMALL_ADDRESS_BITS - 32)) | (high << (64 - _SMALL_ADDRESS_BITS))
    return middle | (high << 32)


@kernel
def end_of(fields: Int) -> Any:
    """(x, y) of the tile, or of a multicast's second corner."""
    return fields & COORDINATE, (fields >> _END_Y) & COORDINATE


_window_of, _window_bytes, _base_of = plain(window_of), plain(window_bytes), plain(base_of)
_fields_of, _end_of = plain(fields_of), plain(end_of)


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


def window_at(paddr: int) -> tuple[int, int, int] | None:
    """(number of the window that holds a physical address, offset in it, its bytes); None where there is none."""
    number = _window_of(paddr)
    if number == NO_WINDOW:
        return None
    size = _window_bytes(number)
    return number, paddr % size, size


def decode(number: int, words: tuple[int, int, int]) -> Window:
    """Decode the three words of a window's entry."""
    low, middle, high = words
    fields = _fields_of(number, middle, high)
    return Window(
        base=_base_of(number, low, middle),
        end=_end_of(fields),
        start=(fields >> START_X_LSB & COORDINATE, fields >> START_Y_LSB & COORDINATE),
        noc=fields >> NOC_LSB & 1,
        multicast=bool(fields >> MULTICAST_LSB & 1),
        ordering=fields >> ORDERING_LSB & 3,
        others=fields >> OTHERS_LSB | (fields >> LINKED_LSB & 1) << 40,
    )


def encode(address: int, end: tuple[int, int]) -> tuple[int, int, int]:
    """The words of a 2 MiB window's entry that shows the 2 MiB around an address of one tile over NoC 0."""
    fields = end[0] | end[1] << _END_Y
    entry = address >> SMALL_BITS | fields << _SMALL_ADDRESS_BITS
    return entry & 0xFFFFFFFF, entry >> 32 & 0xFFFFFFFF, entry >> 64
