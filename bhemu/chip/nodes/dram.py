"""DRAM: each channel holds 4 GiB, of which pages are allocated when they are written (tile N4, E31)."""

from __future__ import annotations

import ctypes
from typing import Any, Final

import numpy as np

from bhemu.chip.faults import refuse
from bhemu.chip.nodes.identity import PAGE as INTERFACE_PAGE
from bhemu.chip.nodes.identity import is_word, read_identity, refuse_identity_write
from bhemu.chip.nodes.kinds import DRAM_CHANNEL, DRAM_INTERFACES
from bhemu.chip.nodes.state import PAGE, PAGE_BITS
from bhemu.errors import MemoryError_
from bhemu.machine.bytes import move_bytes
from bhemu.machine.faults import DONE, REFUSED, fault
from bhemu.machine.kernel import kernel
from bhemu.machine.process_memory import allocate, allocate_from_python, free
from bhemu.machine.types import ChipRecord, Int

OUTSIDE: Final = fault(
    "dram.memory",
    MemoryError_,
    "{0:node}: {1} bytes at {2:#x}, a channel has 4 GiB",
    remedy="use addresses 0 to 0xffffffff",
    rule="tile N4",
)
NO_MEMORY: Final = fault(
    "dram.host-memory",
    MemoryError_,
    "the host has no memory left for a page of DRAM channel {0}",
    remedy="free some memory, or raise the limit of this process",
    rule="tile E31",
)


@kernel
def dram_page(chip: ChipRecord, channel: Int, address: Int) -> Any:
    """Address in this process of the page around an address of a channel, to be written; 0, refused: no memory."""
    number = address >> PAGE_BITS
    page = np.int64(chip.page[channel, number])
    if page == 0:
        page = np.int64(allocate(PAGE))
        chip.page[channel, number] = page
        if page == 0:
            refuse(chip, NO_MEMORY, channel)
    return page


@kernel
def dram_ready(chip: ChipRecord, channel: Int, address: Int, size: Int) -> bool:
    """True when all pages of a range exist, or could be allocated."""
    at = address & ~(PAGE - 1)
    while at < address + size:
        if dram_page(chip, channel, at) == 0:
            return False
        at += PAGE
    return True


@kernel
def copy_dram(chip: ChipRecord, channel: Int, address: Int, local: Int, size: Int, writes: Int) -> None:
    """Bytes between DRAM and an address in this process; pages that are written exist."""
    while size > 0:
        start = address & (PAGE - 1)
        count = min(size, PAGE - start)
        page = np.int64(chip.page[channel, address >> PAGE_BITS])
        if writes:
            move_bytes(page + start, local, count)
        else:
            move_bytes(local, (page if page != 0 else np.int64(chip.zeros)) + start, count)
        address += count
        local += count
        size -= count


@kernel
def access_dram(chip: ChipRecord, place: Int, address: Int, pointer: Int, size: Int, writes: Int) -> Any:
    """Status of an access to a port of a channel, or to the registers of its network interfaces above the memory."""
    channel = np.int64(chip.place_index[place])
    if address >= 0 and address < DRAM_CHANNEL and address + size <= DRAM_CHANNEL:
        if writes and not dram_ready(chip, channel, address, size):
            return REFUSED
        copy_dram(chip, channel, address, pointer, size, writes)
        return DONE
    for noc in range(2):
        page = DRAM_INTERFACES[noc]
        if page <= address and address < page + INTERFACE_PAGE:
            if not is_word(chip, place, address, size):
                return REFUSED
            if writes:
                return refuse_identity_write(chip, place, noc, address - page)
            return read_identity(chip, place, noc, address - page, pointer)
    return refuse(chip, OUTSIDE, place, size, address)


# --- for the host -----------------------------------------------------------------------------------------------------

Pages = dict[int, bytes]


def _view(address: int) -> Any:
    memory: Any = (ctypes.c_uint8 * PAGE).from_address(address)
    return np.frombuffer(memory, np.uint8)


def copy_pages(addresses: np.ndarray[Any, Any]) -> Pages:
    """Contents of a channel's pages that are not zero, by number.

    Args:
        addresses: int64 [PAGES]: where they are in this process (chip/state.py).
    """
    pages = {number: _view(int(addresses[number])) for number in np.flatnonzero(addresses).tolist()}
    return {number: page.tobytes() for number, page in pages.items() if page.any()}


def put_pages(addresses: np.ndarray[Any, Any], pages: Pages) -> None:
    """Put a channel back into the state of a copy."""
    free_pages(addresses, [number for number in np.flatnonzero(addresses).tolist() if number not in pages])
    for number, content in pages.items():
        if addresses[number] == 0:
            addresses[number] = _new_page()
        _view(int(addresses[number]))[:] = np.frombuffer(content, np.uint8)


def _new_page() -> int:
    """Address of a new page of zeros."""
    address = allocate_from_python(PAGE)
    if not address:
        raise MemoryError("no memory for a page of DRAM")
    return address


def free_pages(addresses: np.ndarray[Any, Any], numbers: list[int] | None = None) -> None:
    """Give pages back, all or those of some numbers."""
    for number in np.flatnonzero(addresses).tolist() if numbers is None else numbers:
        free(int(addresses[number]))
        addresses[number] = 0
