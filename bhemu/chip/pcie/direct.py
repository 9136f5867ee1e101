"""The host's accesses to L1 and DRAM in compiled code: from an address in a BAR to one in this process (tile H5, H9).

What is not decided here - registers, multicasts, whatever is refused - is left to bars.py.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.chip.clock.tiles import can_react, l1_address, make, tile_of, touch
from bhemu.chip.coordinates import RAW_ROWS
from bhemu.chip.nodes.dram import dram_page
from bhemu.chip.nodes.kinds import DRAM, DRAM_CHANNEL, TENSIX
from bhemu.chip.nodes.state import PAGE, PAGE_BITS
from bhemu.chip.pcie.windows import (
    ENTRY_BYTES,
    NO_WINDOW,
    NOT_UNICAST,
    ORDERING_LSB,
    ORDERINGS,
    WINDOW_CONFIG,
    WINDOW_CONFIG_END,
    base_of,
    end_of,
    fields_of,
    window_bytes,
    window_of,
)
from bhemu.chip.state import CHIP, PLACES
from bhemu.machine.kernel import kernel
from bhemu.machine.state import L1_SIZE, offset_of
from bhemu.machine.types import AnyInt, ChipRecord, Int

# What a window shows
UNKNOWN: Final = 0
"""Its entry has not been decoded since it was written."""
OTHER: Final = 255
"""Neither TENSIX nor DRAM: something that bars.py decides."""

_WORDS_OFFSET: Final = offset_of(CHIP, "window_words")


@kernel
def _decode(chip: ChipRecord, number: Int) -> None:
    """Look at a window's entry."""
    low = np.int64(chip.window_words[number, 0])
    middle = np.int64(chip.window_words[number, 1])
    high = np.int64(chip.window_words[number, 2])
    base, fields = base_of(number, low, middle), fields_of(number, middle, high)
    x, y = end_of(fields)
    plain = fields & NOT_UNICAST == 0 and (fields >> ORDERING_LSB) & 3 < ORDERINGS
    kind = np.int64(OTHER)
    if plain and x < PLACES and y < PLACES and y >= RAW_ROWS and base >= 0 and chip.place[x, y] >= 0:
        place = np.int64(chip.place[x, y])
        if chip.place_kind[place] == TENSIX or chip.place_kind[place] == DRAM:
            kind = np.int64(chip.place_kind[place])
            chip.window_index[number] = chip.place_index[place]
            chip.window_base[number] = base
    chip.window_kind[number] = np.uint8(kind)


@kernel
def changes_tile(chip: ChipRecord, index: Int) -> Any:
    """True when a write to a tile's L1 can make a difference to its agents: it then has to be touched first."""
    return chip.active[index] != 0 or can_react(tile_of(chip, index))


@kernel
def find(chip: ChipRecord, paddr: Int, size: Int, writes: Int) -> AnyInt:
    """Address in this process of `size` bytes at a physical address in a BAR; 0 where bars.py resolves it.

    Args:
        writes: 1 when they are about to be written.
    """
    if paddr >= WINDOW_CONFIG and paddr < WINDOW_CONFIG_END:
        if size != 4 or paddr & 3:
            return np.int64(0)
        if writes:
            chip.window_kind[(paddr - WINDOW_CONFIG) // ENTRY_BYTES] = UNKNOWN
        return chip.address + _WORDS_OFFSET + paddr - WINDOW_CONFIG
    number = window_of(paddr)
    if number == NO_WINDOW:
        return np.int64(0)
    offset = paddr & (window_bytes(number) - 1)
    room = window_bytes(number) - offset
    if size <= 0 or size > room:
        return np.int64(0)
    if chip.window_kind[number] == UNKNOWN:
        _decode(chip, number)
    kind = chip.window_kind[number]
    index = np.int64(chip.window_index[number])
    address = np.int64(chip.window_base[number]) + offset
    if kind == TENSIX:
        if address + size > L1_SIZE:
            return np.int64(0)
        make(chip, index)
        if writes and changes_tile(chip, index):
            touch(chip, index, chip.time)
        return l1_address(chip, index) + address
    if kind == DRAM:
        start = address & (PAGE - 1)
        if start + size > PAGE or address >= DRAM_CHANNEL:
            return np.int64(0)
        if writes:
            page = dram_page(chip, index, address)
            return page + start if page != 0 else np.int64(0)
        page = np.int64(chip.page[index, address >> PAGE_BITS])
        return (page if page != 0 else np.int64(chip.zeros)) + start
    return np.int64(0)


def find_entry(chip: ChipRecord, paddr: Int, size: Int, writes: Int) -> AnyInt:
    """`find` for the C library."""
    return find(chip, paddr, size, writes)
