"""Ethernet tiles: memory with the results of a boot without links; no core runs (tile N29, E33; ethernet 3)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.chip.faults import refuse
from bhemu.chip.nodes.identity import PAGE, is_word, read_identity, refuse_identity_write
from bhemu.chip.nodes.kinds import ETHERNET_L1, TILE_INTERFACES
from bhemu.chip.nodes.state import ETHERNET_TILE
from bhemu.chip.process_memory import load_u32, store_u32
from bhemu.chip.state import CHIP
from bhemu.errors import MemoryError_, Unimplemented
from bhemu.isa.tile_registers import address_of
from bhemu.machine.bytes import move_bytes
from bhemu.machine.faults import DONE, REFUSED, fault
from bhemu.machine.kernel import kernel
from bhemu.machine.state import offset_of
from bhemu.machine.types import ChipRecord, Int
from bhemu.tile.noc.request import MMIO_FIRST

SOFT_RESET: Final = address_of("control", "SOFT_RESET_0")
IN_RESET: Final = 0x1800
"""Both cores."""

POST_CODE: Final = 0x7CC00
PORT_STATUS: Final = 0x7CC04
HEARTBEAT: Final = 0x7CC70
FIRMWARE_VERSION: Final = 0x7CFBC
_BOOTED: Final = 0xC0DEA000
_PORT_DOWN: Final = 2
_VERSION_1_6_0: Final = 1 << 16 | 6 << 8

_TILES: Final = offset_of(CHIP, "ethernet")
_TILE_BYTES: Final = ETHERNET_TILE.itemsize
_L1: Final = offset_of(ETHERNET_TILE, "l1")

OUTSIDE: Final = fault(
    "ethernet.memory",
    MemoryError_,
    "{0:node}: {1} bytes at {2:#x}, L1 ends at {3:#x}",
    remedy="stay inside L1",
    rule="tile N18, N29",
)
RELEASED: Final = fault(
    "ethernet.reset",
    Unimplemented,
    "{0:node}: a core is released from reset ({1:#x})",
    remedy="the cores of Ethernet tiles are not built; keep bits 11 and 12 set",
    rule="tile N29",
)
NOT_BUILT: Final = fault(
    "ethernet.register",
    Unimplemented,
    "{0:node}: register {1:#x} is not built",
    remedy="an Ethernet tile has memory, soft reset and the identity of its network interfaces",
    rule="tile N29",
)


def boot(tile: Any) -> None:
    """Leave in a tile's record what firmware does that found no partner."""
    tile.l1_u32[POST_CODE // 4] = _BOOTED
    tile.l1_u32[PORT_STATUS // 4] = _PORT_DOWN
    tile.l1_u32[FIRMWARE_VERSION // 4] = _VERSION_1_6_0
    tile.soft_reset = IN_RESET


@kernel
def ethernet_l1(chip: ChipRecord, index: Int) -> Any:
    """Where an Ethernet tile's L1 is in this process."""
    return chip.address + _TILES + index * _TILE_BYTES + _L1


@kernel
def _is_register(chip: ChipRecord, place: Int, address: Int, size: Int) -> bool:
    """True for a word of the registers; refuses everything else that is not in L1."""
    if address < MMIO_FIRST:
        refuse(chip, OUTSIDE, place, size, address, ETHERNET_L1)
        return False
    return is_word(chip, place, address, size)


@kernel
def read_ethernet(chip: ChipRecord, place: Int, address: Int, to: Int, size: Int) -> Any:
    """Status of a read from L1, or of a register, to an address in this process."""
    index = np.int64(chip.place_index[place])
    tile = chip.ethernet[index]
    if address >= 0 and address + size <= ETHERNET_L1:
        if address <= HEARTBEAT and address + size > HEARTBEAT:  # firmware counts; so does this memory when it is read
            tile.l1_u32[HEARTBEAT >> 2] += np.uint32(1)
        move_bytes(to, ethernet_l1(chip, index) + address, size)
        return DONE
    if not _is_register(chip, place, address, size):
        return REFUSED
    if address == SOFT_RESET:
        store_u32(to, np.int64(tile.soft_reset))
        return DONE
    for noc in range(2):
        page = TILE_INTERFACES[noc]
        if page <= address and address < page + PAGE:
            return read_identity(chip, place, noc, address - page, to)
    return refuse(chip, NOT_BUILT, place, address)


@kernel
def write_ethernet(chip: ChipRecord, place: Int, address: Int, source: Int, size: Int) -> Any:
    """Status of a write into L1, or into a register, from an address in this process."""
    index = np.int64(chip.place_index[place])
    if address >= 0 and address + size <= ETHERNET_L1:
        move_bytes(ethernet_l1(chip, index) + address, source, size)
        return DONE
    if not _is_register(chip, place, address, size):
        return REFUSED
    if address == SOFT_RESET:
        value = load_u32(source)
        if value & IN_RESET != IN_RESET:
            return refuse(chip, RELEASED, place, value)
        chip.ethernet[index].soft_reset = np.uint32(value)
        return DONE
    for noc in range(2):
        page = TILE_INTERFACES[noc]
        if page <= address and address < page + PAGE:
            return refuse_identity_write(chip, place, noc, address - page)
    return refuse(chip, NOT_BUILT, place, address)
