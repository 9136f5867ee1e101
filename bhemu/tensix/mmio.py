"""The memory-mapped registers that the coprocessor shares with the cores (tile T24, K30, K50).

`mmio_load` and `mmio_store` serve LOADREG, STOREREG, STOREIND and PACR_SETREG, and with another agent the cores and the
NoC. Accesses are 32 bits and aligned. What is not built is refused by name, what is not mapped as undefined.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.errors import UndefinedBehavior
from bhemu.isa.memory_map import LOCAL_RAM_BASE, bounds, region
from bhemu.machine.dispatch import DEVICE_LOAD, DEVICE_STORE, NOT_COMPILED, access_device, handlers_of
from bhemu.machine.faults import REQUEST_PENDING, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.types import AnyInt, Int, TileRecord
from bhemu.tensix.overlay import load_stream_register, store_stream_register
from bhemu.tensix.tdma import load_tdma, store_tdma

MMIO_BASE: Final = LOCAL_RAM_BASE
"""The coprocessor's instructions count addresses from here."""
TDMA_FIRST, TDMA_END = bounds("tdma")
MMIO_FIRST: Final = TDMA_FIRST
"""Lower addresses are private to a core (I.11)."""
OVERLAY_FIRST, OVERLAY_END = bounds("overlay")
STREAM_BYTES: Final = region("overlay").step

BELOW_MMIO = fault(
    "mmio.below",
    UndefinedBehavior,
    "address {0:#x} is below {1:#x}, where nothing is mapped for the coprocessor",
    remedy=f"the scalar unit reaches MMIO from {MMIO_FIRST:#x} up; use LOADIND and STOREIND for L1",
    rule="I.11",
)
UNALIGNED = fault(
    "mmio.unaligned",
    UndefinedBehavior,
    "MMIO address {0:#x} is not a multiple of 4",
    remedy="MMIO registers are accessed as aligned 32-bit words",
    rule="tile T26",
)


@kernel
def _device(t: TileRecord, agent: Int, address: Int, place: Int, value: Int) -> tuple[Int, Int]:
    """(status, value) of an access to what surrounds the coprocessor (tile/memory_map.py)."""
    if address < MMIO_FIRST:
        return refuse(t, BELOW_MMIO, address, MMIO_FIRST), np.int64(0)
    status, loaded = access_device(t, handlers_of(t), place, agent, address, value, 4)
    if status == REQUEST_PENDING:
        status = np.int64(NOT_COMPILED)  # the word stays at its gate, and is issued again when the request has ended
    return status, loaded


@kernel
def mmio_load(t: TileRecord, agent: Int, address: Int) -> tuple[Int, Int]:
    """(status, value) of a 32-bit load.

    Args:
        agent: that loads; see machine/agents.py.
        address: byte address.
    """
    if address & 3:
        return refuse(t, UNALIGNED, address), np.int64(0)
    if address >= OVERLAY_FIRST and address < OVERLAY_END:
        place = address - OVERLAY_FIRST
        return load_stream_register(t, place // STREAM_BYTES, (place % STREAM_BYTES) // 4)
    if address >= TDMA_FIRST and address < TDMA_END:
        return load_tdma(t, agent, address - TDMA_FIRST)
    return _device(t, agent, address, DEVICE_LOAD, np.int64(0))


@kernel
def store_to_overlay(t: TileRecord, offset: Int, value: Int) -> AnyInt:
    """Status of an aligned 32-bit store to the overlay's registers, `offset` bytes from the first one."""
    return store_stream_register(t, offset // STREAM_BYTES, (offset % STREAM_BYTES) // 4, value)


@kernel
def mmio_store(t: TileRecord, agent: Int, address: Int, value: Int) -> AnyInt:
    """Status of a 32-bit store of `value`, 0 to 2**32 - 1; for the rest see `mmio_load`."""
    if address & 3:
        return refuse(t, UNALIGNED, address)
    if address >= OVERLAY_FIRST and address < OVERLAY_END:
        return store_to_overlay(t, address - OVERLAY_FIRST, value)
    if address >= TDMA_FIRST and address < TDMA_END:
        return store_tdma(t, agent, address - TDMA_FIRST, value)
    return _device(t, agent, address, DEVICE_STORE, value)[0]
