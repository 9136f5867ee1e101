"""What the host reaches through the BARs: windows into the NoC, their entries, DMA, translation (tile H5 to H12).

Addresses in a BAR that are L1 or DRAM, the C library finds by itself (direct.py); everything goes this way, too.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.chip.clock.tiles import make, tile_of, touch
from bhemu.chip.coordinates import PCIE, RAW_ROWS, WIDTH, X_LSB, Y_MASK
from bhemu.chip.faults import refuse
from bhemu.chip.noc.transfer import LEFT, access_own_l1, carry_out
from bhemu.chip.nodes.access import access_node
from bhemu.chip.nodes.identity import NIU_CFG_0, NODE_ID, NOT_A_WORD, TRANSLATES, node_id
from bhemu.chip.nodes.kinds import ETHERNET, TENSIX
from bhemu.chip.pcie.direct import changes_tile
from bhemu.chip.pcie.dma import CHUNK, DOORBELL, dma_copy, end_dma, read_dma, write_dma
from bhemu.chip.pcie.dma import END as DMA_END
from bhemu.chip.pcie.dma import FIRST as DMA_FIRST
from bhemu.chip.pcie.host_memory import access_host
from bhemu.chip.pcie.iatu import SIZE as IATU_SIZE
from bhemu.chip.pcie.iatu import read_iatu, write_iatu
from bhemu.chip.pcie.pci import BAR0, BAR0_SIZE, BAR2, BAR2_SIZE
from bhemu.chip.pcie.windows import (
    COORDINATE,
    ENTRY_BYTES,
    FIRST_LARGE,
    LINKED_LSB,
    MULTICAST_LSB,
    NO_WINDOW,
    NOC_LSB,
    ORDERING_LSB,
    ORDERINGS,
    OTHERS_LSB,
    SMALL_WINDOWS_END,
    START_X_LSB,
    START_Y_LSB,
    WINDOW_CONFIG,
    WINDOW_CONFIG_END,
    base_of,
    end_of,
    fields_of,
    window_bytes,
    window_of,
)
from bhemu.chip.state import CHIP, PLACES
from bhemu.errors import ConfigurationError, MemoryError_, NonContractualBehavior, UndefinedBehavior, Unimplemented
from bhemu.ethernet.boot import count_heartbeat
from bhemu.ethernet.mailbox import calls_firmware, serve
from bhemu.isa.memory_map import region
from bhemu.machine.agents import NOC
from bhemu.machine.bytes import move_bytes
from bhemu.machine.dispatch import DEVICE_LOAD, DEVICE_STORE, NOT_COMPILED, access_device, handlers_of
from bhemu.machine.ethernet_state import TENSIX_TILE
from bhemu.machine.faults import DONE, REFUSED, REQUEST_PENDING, WAIT, fault
from bhemu.machine.kernel import kernel
from bhemu.machine.process_memory import load_u32, store_u32
from bhemu.machine.state import offset_of
from bhemu.machine.types import ChipRecord, Int
from bhemu.tile.noc.request import MMIO_FIRST, WORD

PCIE_NIU: Final = (BAR0 + 0x1FD04000, BAR0 + 0x1FD14000)
DMA: Final = BAR2 + DMA_FIRST
IATU: Final = BAR2 + 0x1000
_NODE_IDS: Final = (node_id(PCIE[0], 0), node_id(PCIE[0], 1))
_WORDS: Final = offset_of(CHIP, "window_words")
_BUFFER: Final = offset_of(CHIP, "buffer")
_NOWHERE: Final = -1

NO_BYTES: Final = fault(
    "host.size",
    UndefinedBehavior,
    "an access of {0} bytes",
    remedy="read or write at least one byte",
    rule="tile H5",
)
PAST_WINDOW: Final = fault(
    "window.end",
    NonContractualBehavior,
    "{0} bytes at {1:#x} reach past the end of window {2}",
    remedy="split the access",
    rule="tile H9",
)
BAD_WINDOW: Final = fault(
    "window.fields",
    Unimplemented,
    "window {0} asks for linked, static-channel, strided or counted accesses",
    remedy="use ordering 0 to 2 and clear the bits above",
    rule="tile H9",
)
LARGE_MULTICAST: Final = fault(
    "window.large-multicast",
    Unimplemented,
    "4 GiB window {0} is a multicast",
    remedy="use a 2 MiB window",
    rule="tile H11",
)
STRAY_START: Final = fault(
    "window.start",
    UndefinedBehavior,
    "window {0} has a start corner {1}-{2} but is not a multicast",
    remedy="clear the start corner, or set the multicast bit",
    rule="tile H9",
)
MULTICAST_READ: Final = fault(
    "window.multicast-read",
    UndefinedBehavior,
    "a read through multicast window {0}",
    remedy="read from one tile",
    rule="tile H11",
)
NO_TILE: Final = fault(
    "window.place",
    UndefinedBehavior,
    "coordinates {0}-{1} name no tile",
    remedy="Tensix tiles are x 1 to 7 and 10 to 16, y 2 to 11; DRAM x 17 and 18, y 12 to 23",
    rule="tile N7, N8",
)
BAD_CORNER: Final = fault(
    "window.corner",
    UndefinedBehavior,
    "a multicast over tiles that are not Tensix",
    remedy="choose Tensix corners",
    rule="tile H11",
)
BAD_ORDER: Final = fault(
    "window.order",
    UndefinedBehavior,
    "a multicast from {0}-{1} to {2}-{3}",
    remedy="start at the upper left corner",
    rule="tile H11",
)
NOT_REGISTERS: Final = fault(
    "host.word",
    UndefinedBehavior,
    "an access of {0} bytes at {1:#x}, where there are registers of 4 bytes",
    remedy="access registers as aligned words",
    rule="tile H5",
)
NOTHING_IN_BAR: Final = fault(
    "host.bar",
    ConfigurationError,
    "nothing is built at PCI address {0:#x}",
    remedy="see the map of the BARs",
    rule="tile H5",
)
NOTHING: Final = fault(
    "host.address",
    UndefinedBehavior,
    "nothing is built at PCI address {0:#x}",
    remedy="see the map of the BARs",
    rule="tile H5",
)
OUTSIDE_SMALL: Final = fault(
    "dma.window",
    UndefinedBehavior,
    "a DMA to {0:#x} is outside of the 2 MiB windows",
    remedy="the device address is an offset in the first 202 windows of BAR0",
    rule="tile H6",
)
OUTSIDE_L1: Final = fault(
    "tensix.memory",
    MemoryError_,
    "{0:node}: {1} bytes at {2:#x}, L1 ends at {3:#x}",
    remedy=f"stay inside L1, or use registers from {region('tdma').base:#x} on",
    rule="tile N18",
)
BLOCKS: Final = fault(
    "host.blocks",
    UndefinedBehavior,
    "{0:node}: the access to {1:#x} would block; host accesses cannot block",
    remedy="let the tile's clock run first",
    rule="tile H5",
)


# --- nodes ------------------------------------------------------------------------------------------------------------


@kernel
def _attempt(chip: ChipRecord, index: Int, place: Int, address: Int, value: Int) -> Any:
    """(status, value) of an access to a register of a tile between two clocks.

    LEFT: tile `noc_end` has to be given something first, or has to refuse its NoC request.
    """
    t = tile_of(chip, index)
    chip.noc_end = index
    if t.handlers == 0:
        t.needs_place = place
        return np.int64(LEFT), np.int64(0)
    while True:
        t.now_round = t.round_goal
        t.now_agent = -1
        status, found = access_device(t, handlers_of(t), place, NOC, address, value, WORD)
        if status == NOT_COMPILED or (status == REQUEST_PENDING and not carry_out(chip, index, 0)):
            return np.int64(LEFT), np.int64(0)
        if status != REQUEST_PENDING:
            return status, found


@kernel
def access_tile(chip: ChipRecord, place: Int, address: Int, pointer: Int, size: Int, writes: Int) -> Any:
    """Status of an access to L1 or a register of a tile with cores between two clocks; the host cannot wait."""
    index = np.int64(chip.place_index[place])
    make(chip, index)
    t = tile_of(chip, index)
    if address >= 0 and address + size <= t.l1_end:
        if writes and changes_tile(chip, index):
            touch(chip, index, chip.time)
        access_own_l1(chip, index, address, pointer, size, writes)
        if t.tile_kind != TENSIX_TILE and not writes:
            count_heartbeat(t, address, size)
        elif t.tile_kind != TENSIX_TILE and calls_firmware(t, address, size):
            touch(chip, index, chip.time)
            chip.noc_end = index
            t.now_round = t.round_goal
            t.now_agent = -1
            return serve(t)
        return np.int64(DONE)
    if address < MMIO_FIRST:
        return refuse(chip, OUTSIDE_L1, place, size, address, t.l1_end)
    if size != WORD or address & 3:
        return refuse(chip, NOT_A_WORD, place, size, address)
    touch(chip, index, chip.time)
    value = load_u32(pointer) if writes else np.int64(0)
    status, value = _attempt(chip, index, DEVICE_STORE if writes else DEVICE_LOAD, address, value)
    if status == WAIT:
        return refuse(chip, BLOCKS, place, address)
    if status == DONE and not writes:
        store_u32(pointer, value)
    return status


@kernel
def access_place(chip: ChipRecord, place: Int, noc: Int, address: Int, pointer: Int, size: Int, writes: Int) -> Any:
    """Status of an access of the host to any node; see `access_node`."""
    if chip.place_kind[place] == TENSIX or chip.place_kind[place] == ETHERNET:
        return access_tile(chip, place, address, pointer, size, writes)
    return access_node(chip, place, noc, address, pointer, size, writes)


@kernel
def _place(chip: ChipRecord, x: Int, y: Int, noc: Int) -> Int:
    """Physical place of translated coordinates (N7); refuses where nothing is.

    They are the same on both NoCs, except that x of the top two rows is that of the NoC itself.
    """
    place = np.int64(_NOWHERE)
    if x < PLACES and y < PLACES:
        place = np.int64(chip.place[x, y])
    if place == _NOWHERE:
        refuse(chip, NO_TILE, x, y)
    elif noc and y < RAW_ROWS:
        place = ((WIDTH - 1 - (place >> X_LSB)) << X_LSB) | (place & Y_MASK)
    return place


# --- windows ----------------------------------------------------------------------------------------------------------


@kernel
def _check_window(chip: ChipRecord, number: Int, fields: Int) -> Any:
    """Status of a window's entry, which is checked as it is used (H9)."""
    multicast = (fields >> MULTICAST_LSB) & 1
    if fields >> OTHERS_LSB or (fields >> LINKED_LSB) & 1 or (fields >> ORDERING_LSB) & 3 >= ORDERINGS:
        return refuse(chip, BAD_WINDOW, number)
    if multicast and number >= FIRST_LARGE:
        return refuse(chip, LARGE_MULTICAST, number)
    x, y = (fields >> START_X_LSB) & COORDINATE, (fields >> START_Y_LSB) & COORDINATE
    if not multicast and (x or y):
        return refuse(chip, STRAY_START, number, x, y)
    return DONE


@kernel
def _write_rectangle(chip: ChipRecord, fields: Int, address: Int, pointer: Int, size: Int) -> Any:
    """Status of a write to the Tensix tiles of a multicast window (H11); on NoC 1, which runs the other way, corners
    are swapped."""
    noc = (fields >> NOC_LSB) & 1
    x, y = (fields >> START_X_LSB) & COORDINATE, (fields >> START_Y_LSB) & COORDINATE
    end_x, end_y = end_of(fields)
    start, end = _place(chip, x, y, noc), _place(chip, end_x, end_y, noc)
    if start == _NOWHERE or end == _NOWHERE:
        return np.int64(REFUSED)
    first, last = (end, start) if noc else (start, end)
    if chip.place_kind[first] != TENSIX or chip.place_kind[last] != TENSIX:
        return np.int64(refuse(chip, BAD_CORNER))
    x0, y0, x1, y1 = first >> X_LSB, first & Y_MASK, last >> X_LSB, last & Y_MASK
    if x0 > x1 or y0 > y1:
        return np.int64(refuse(chip, BAD_ORDER, x0, y0, x1, y1))
    for y in range(y0, y1 + 1):
        for x in range(x0, x1 + 1):
            place = (x << X_LSB) | y
            if chip.place_kind[place] == TENSIX:
                status = access_tile(chip, place, address, pointer, size, 1)
                if status != DONE:
                    return status
    return np.int64(DONE)


@kernel
def _access_window(chip: ChipRecord, number: Int, paddr: Int, pointer: Int, size: Int, writes: Int) -> Any:
    """Status of an access through a window."""
    offset = paddr & (window_bytes(number) - 1)
    if offset + size > window_bytes(number):
        return refuse(chip, PAST_WINDOW, size, paddr, number)
    low = np.int64(chip.window_words[number, 0])
    middle = np.int64(chip.window_words[number, 1])
    high = np.int64(chip.window_words[number, 2])
    fields, address = fields_of(number, middle, high), base_of(number, low, middle) + offset
    if _check_window(chip, number, fields) != DONE:
        return np.int64(REFUSED)
    noc = (fields >> NOC_LSB) & 1
    if (fields >> MULTICAST_LSB) & 1:
        if not writes:
            return refuse(chip, MULTICAST_READ, number)
        return _write_rectangle(chip, fields, address, pointer, size)
    x, y = end_of(fields)
    place = _place(chip, x, y, noc)
    if place == _NOWHERE:
        return np.int64(REFUSED)
    return access_place(chip, place, noc, address, pointer, size, writes)


# --- the BARs ---------------------------------------------------------------------------------------------------------


@kernel
def _nothing_at(chip: ChipRecord, paddr: Int) -> Int:
    inside = (paddr >= BAR0 and paddr < BAR0 + BAR0_SIZE) or (paddr >= BAR2 and paddr < BAR2 + BAR2_SIZE)
    return refuse(chip, NOTHING_IN_BAR if inside else NOTHING, paddr)


@kernel
def _copy_from_host(chip: ChipRecord) -> Any:
    """Status of the copy that the DMA registers describe."""
    source, device, count = dma_copy(chip)
    buffer = chip.address + _BUFFER
    done = np.int64(0)
    while done < count:
        size = min(np.int64(CHUNK), count - done)
        status = access_host(chip, source + done, buffer, size, 0)
        if status != DONE:
            return status
        paddr = BAR0 + device + done
        if paddr >= SMALL_WINDOWS_END:
            return refuse(chip, OUTSIDE_SMALL, device + done)
        status = _access_window(chip, window_of(paddr), paddr, buffer, size, 1)
        if status != DONE:
            return status
        done += size
    end_dma(chip)
    return np.int64(DONE)


@kernel
def _read_word(chip: ChipRecord, paddr: Int, to: Int) -> Any:
    """Status of a read of a register of the card itself."""
    if paddr >= WINDOW_CONFIG and paddr < WINDOW_CONFIG_END:
        move_bytes(to, chip.address + _WORDS + paddr - WINDOW_CONFIG, WORD)
        return DONE
    for noc in range(2):
        if paddr == PCIE_NIU[noc] + NIU_CFG_0:
            store_u32(to, np.int64(TRANSLATES))
            return DONE
        if paddr == PCIE_NIU[noc] + NODE_ID:
            store_u32(to, np.int64(_NODE_IDS[noc]))
            return DONE
    if paddr >= DMA and paddr < BAR2 + DMA_END:
        return read_dma(chip, paddr - BAR2, to)
    if paddr >= IATU and paddr < IATU + IATU_SIZE:
        return read_iatu(chip, paddr - IATU, to)
    return _nothing_at(chip, paddr)


@kernel
def _write_word(chip: ChipRecord, paddr: Int, source: Int) -> Any:
    """Status of a write to a register of the card itself."""
    if paddr >= WINDOW_CONFIG and paddr < WINDOW_CONFIG_END:
        move_bytes(chip.address + _WORDS + paddr - WINDOW_CONFIG, source, WORD)
        chip.window_kind[(paddr - WINDOW_CONFIG) // ENTRY_BYTES] = np.uint8(0)
        return DONE
    if paddr >= DMA and paddr < BAR2 + DMA_END:
        status = write_dma(chip, paddr - BAR2, source)
        if status == DONE and paddr - BAR2 == DOORBELL:
            return _copy_from_host(chip)
        return status
    if paddr >= IATU and paddr < IATU + IATU_SIZE:
        return write_iatu(chip, paddr - IATU, source)
    return _nothing_at(chip, paddr)


@kernel
def _access(chip: ChipRecord, paddr: Int, pointer: Int, size: Int, writes: Int) -> Any:
    """Status of an access at a physical address inside a BAR (H5)."""
    if size <= 0:
        return refuse(chip, NO_BYTES, size)
    number = window_of(paddr)
    if number != NO_WINDOW:
        return _access_window(chip, number, paddr, pointer, size, writes)
    if size != WORD or paddr & 3:
        return refuse(chip, NOT_REGISTERS, size, paddr)
    if writes:
        return _write_word(chip, paddr, pointer)
    return _read_word(chip, paddr, pointer)


def host_read_entry(chip: ChipRecord, paddr: Int, pointer: Int, size: Int) -> Any:
    """Status of a read at a physical address inside a BAR, to an address in this process.

    DONE; REFUSED, the chip's record says why, or that of tile `noc_end`; LEFT, tile `noc_end` needs something.
    """
    return _access(chip, paddr, pointer, size, 0)


def host_write_entry(chip: ChipRecord, paddr: Int, pointer: Int, size: Int) -> Any:
    """Status of a write at a physical address inside a BAR, from an address in this process; see `host_read_entry`."""
    return _access(chip, paddr, pointer, size, 1)


def node_entry(chip: ChipRecord, what: Int, address: Int, pointer: Int) -> Any:
    """Status of an access of the host to a node, whatever windows show; see `host_read_entry`.

    Args:
        what: physical place, bit 16: NoC, bit 17: a write, from bit 18 on the number of bytes.
    """
    return access_place(chip, what & 0xFFFF, (what >> 16) & 1, address, pointer, what >> 18, (what >> 17) & 1)
