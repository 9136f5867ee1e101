"""The memory map of an Ethernet tile above L1: which device answers (ethernet 2).

Network interfaces and streams are those of a Tensix tile.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import MissingSpecification, UndefinedBehavior, Unimplemented
from bhemu.ethernet.queues import (
    load_header,
    load_link,
    load_queue,
    load_receive_queue,
    store_header,
    store_link,
    store_queue,
    store_receive_queue,
)
from bhemu.ethernet.reset import store_soft_reset
from bhemu.isa.memory_map import ETHERNET_L1, bounds, region
from bhemu.isa.tile_registers import address_of, offset_of, tile_register
from bhemu.machine.agents import AGENT_NAMES, ETHERNET_CORES
from bhemu.machine.dispatch import ETHERNET_LOAD, ETHERNET_STORE
from bhemu.machine.ethernet_state import ERISC0, ERISC1
from bhemu.machine.faults import DONE, REFUSED, fault, open_choice, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.types import AnyInt, Int, TileRecord
from bhemu.machine.wall_clock import HALF, HALF_BITS, clock_now, latch_clock
from bhemu.tensix.coprocessor import provide
from bhemu.tensix.overlay import SPACE_UPDATE, load_stream_register, store_stream_register
from bhemu.tensix.overlay_words import SPACE, register_number
from bhemu.tile.control import SOFT_RESET, WALL_CLOCK_0, WALL_CLOCK_1, WALL_CLOCK_1_AT
from bhemu.tile.local_ram import OWN_RAM_FIRST, is_own_ram, own_ram_load, own_ram_store
from bhemu.tile.noc.niu import niu_load, niu_store

CONTROL_FIRST, CONTROL_END = bounds("control")
RISC_FIRST, RISC_END = bounds("eth_risc")
NIU_FIRST, NIU_END = region("niu0").base, region("niu1").end
NIU_BYTES: Final = region("niu0").size
OVERLAY_FIRST, OVERLAY_END = bounds("ethernet_overlay")
STREAM_BYTES: Final = region("ethernet_overlay").step
TRANSMIT_FIRST, TRANSMIT_END = bounds("eth_txq")
RECEIVE_FIRST, RECEIVE_END = bounds("eth_rxq")
QUEUE_BYTES: Final = region("eth_txq").step
LINK_FIRST, LINK_END = bounds("eth_ctrl")
HEADER_FIRST, HEADER_END = bounds("eth_header")
HEADER_BYTES: Final = region("eth_header").step
PTP_FIRST, PTP_END = bounds("eth_ptp")
PTP_LO: Final = address_of("eth_ptp", "CFR_TIMER_LO")
PTP_CLOCKS: Final = 20
"""Clocks of a step of the PTP timer at 1000 MHz."""
_WORD: Final = 4

RESET_PC_ERISC0: Final = offset_of("eth_risc", "IERISC_RESET_PC")
RESET_PC_ERISC1: Final = offset_of("eth_risc", "SUBORDINATE_IERISC_RESET_PC")
_MODES: Final = tile_register("eth_risc", "INTERRUPT_MODE").offsets
MODE_FIRST: Final = _MODES[0]
MODE_LAST: Final = _MODES[-1]
_REMOTE_SOURCE: Final = register_number("REMOTE_SRC")
_BUFFER_START: Final = register_number("REMOTE_DEST_BUF_START")
_BUFFER_SIZE: Final = register_number("REMOTE_DEST_BUF_SIZE")


def _fault_of_each_agent(reason: str, text: str, *, remedy: str) -> tuple[int, ...]:
    """Codes by agent; what a Tensix tile alone has never comes here, and counts as the host."""
    names = [ETHERNET_CORES.get(agent, "host") for agent in range(len(AGENT_NAMES))]
    return tuple(
        fault(
            f"ethernet.{reason}.{name.lower()}",
            UndefinedBehavior,
            f"{'the host' if name == 'host' else f'core {name}'} {text}",
            remedy=remedy,
            rule="ethernet 2",
        )
        for name in names
    )


UNMAPPED: Final = _fault_of_each_agent(
    "unmapped",
    "accesses {0:#x}, where an Ethernet tile has nothing",
    remedy=f"L1 is below {ETHERNET_L1:#x}, 8 KiB of local RAM from {OWN_RAM_FIRST:#x}; ethernet 2 lists the registers",
)
NARROW: Final = _fault_of_each_agent(
    "narrow",
    "accesses {1} bytes at {0:#x}, where only whole words of 4 bytes can be accessed",
    remedy="use a word access; narrow accesses are for L1 and local RAM",
)
NOT_BUILT: Final = fault(
    "ethernet.register",
    Unimplemented,
    "register {0:#x} of an Ethernet tile is not built",
    remedy="of the debug block, soft reset and wall clock are; ethernet 2 lists the others",
    rule="ethernet 2",
)
MODE: Final = fault(
    "ethernet.interrupt-mode",
    Unimplemented,
    "interrupt mode {1:#x} is stored to {0:#x} of an Ethernet tile, where interrupts are not built",
    remedy="0 leaves them off",
    rule="ethernet 2",
)
MODE_LOADED: Final = fault(
    "ethernet.interrupt-mode-loaded",
    UndefinedBehavior,
    "a load from {0:#x} of an Ethernet tile, an interrupt mode, which can only be stored",
    remedy="it is 0",
    rule="ethernet 2",
)
PTP: Final = fault(
    "ethernet.ptp",
    MissingSpecification,
    "a load from {0:#x}, the PTP timer of an Ethernet tile: no source says how it counts in clocks",
    remedy="use the wall clock; or allow open choices to have it count a step of 20 ns in 20 clocks",
    rule="ethernet 2",
)
PTP_STORED: Final = fault(
    "ethernet.ptp-stored",
    UndefinedBehavior,
    "a store to {0:#x}, the PTP timer of an Ethernet tile",
    remedy="load it",
    rule="ethernet 2",
)
STREAM: Final = fault(
    "ethernet.stream",
    MissingSpecification,
    "no source says what register {1} of stream {0} of an Ethernet tile does",
    remedy="use registers 4, 8, 10, 270 and 297; or allow open choices to have it do what it does on a Tensix tile",
    rule="ethernet 2.3",
)


@kernel
def _is_known(stream: Int, register: Int) -> Any:
    """True for registers of streams that sources describe on Ethernet tiles."""
    return register in (_REMOTE_SOURCE, _BUFFER_START, _BUFFER_SIZE, SPACE, SPACE_UPDATE)


@kernel
def _load_control(t: TileRecord, offset: Int, address: Int) -> Any:
    value: Int = np.int64(0)
    if offset == SOFT_RESET:
        value = np.int64(t.soft_reset)
    elif offset == WALL_CLOCK_0:
        value = latch_clock(t)
    elif offset == WALL_CLOCK_1:
        value = (clock_now(t) >> HALF) & HALF_BITS
    elif offset == WALL_CLOCK_1_AT:
        value = np.int64(t.wall_clock_latch)
    else:
        return refuse(t, NOT_BUILT, address), value
    return DONE, value


@kernel
def _store_control(t: TileRecord, offset: Int, address: Int, value: Int) -> Any:
    if offset == SOFT_RESET:
        return store_soft_reset(t, value)
    if offset == WALL_CLOCK_0:  # latches, as a load does
        latch_clock(t)
        return DONE
    return refuse(t, NOT_BUILT, address)


@kernel
def _load_risc(t: TileRecord, offset: Int, address: Int) -> Any:
    if offset == RESET_PC_ERISC0:
        return DONE, np.int64(t.reset_pc[ERISC0])
    if offset == RESET_PC_ERISC1:
        return DONE, np.int64(t.reset_pc[ERISC1])
    if offset >= MODE_FIRST and offset <= MODE_LAST:
        return refuse(t, MODE_LOADED, address), np.int64(0)
    return refuse(t, NOT_BUILT, address), np.int64(0)


@kernel
def _store_risc(t: TileRecord, offset: Int, address: Int, value: Int) -> Any:
    if offset == RESET_PC_ERISC0:
        t.reset_pc[ERISC0] = np.uint32(value)
    elif offset == RESET_PC_ERISC1:
        t.reset_pc[ERISC1] = np.uint32(value)
    elif offset < MODE_FIRST or offset > MODE_LAST:
        return refuse(t, NOT_BUILT, address)
    elif value != 0:
        return refuse(t, MODE, address, value)
    return DONE


@kernel
def _load_stream(t: TileRecord, stream: Int, register: Int) -> Any:
    if not _is_known(stream, register) and not open_choice(t, STREAM, stream, register):
        return REFUSED, np.int64(0)
    return load_stream_register(t, stream, register)


@kernel
def _store_stream(t: TileRecord, stream: Int, register: Int, value: Int) -> Any:
    if not _is_known(stream, register) and not open_choice(t, STREAM, stream, register):
        return REFUSED
    return store_stream_register(t, stream, register, value)


@kernel
def _load_ptp(t: TileRecord, address: Int) -> Any:
    if not open_choice(t, PTP, address):
        return REFUSED, np.int64(0)
    steps = clock_now(t) // PTP_CLOCKS
    return DONE, steps & HALF_BITS if address == PTP_LO else steps >> HALF


@kernel
def _load_queues(t: TileRecord, agent: Int, address: Int) -> Any:
    """(status, value) of a load from what belongs to the link."""
    if address >= TRANSMIT_FIRST and address < TRANSMIT_END:
        place = address - TRANSMIT_FIRST
        return load_queue(t, place // QUEUE_BYTES, place % QUEUE_BYTES, address)
    if address >= RECEIVE_FIRST and address < RECEIVE_END:
        place = address - RECEIVE_FIRST
        return load_receive_queue(t, place // QUEUE_BYTES, place % QUEUE_BYTES, address)
    if address >= LINK_FIRST and address < LINK_END:
        return load_link(t, address - LINK_FIRST, address)
    if address >= HEADER_FIRST and address < HEADER_END:
        place = address - HEADER_FIRST
        return load_header(t, place // HEADER_BYTES, place % HEADER_BYTES, address)
    if address >= PTP_FIRST and address < PTP_END:
        return _load_ptp(t, address)
    return refuse(t, UNMAPPED[agent], address), np.int64(0)


@kernel
def load(t: TileRecord, agent: Int, address: Int, size: Int) -> Any:
    """(status, value) of a load of `size` bytes, aligned, by core ERISC0, ERISC1 or over the NoC."""
    if is_own_ram(agent, address):
        return own_ram_load(t, agent, address - OWN_RAM_FIRST, size)
    if size != _WORD:
        return refuse(t, NARROW[agent], address, size), np.int64(0)
    if address >= NIU_FIRST and address < NIU_END:
        return niu_load(t, (address - NIU_FIRST) // NIU_BYTES, (address - NIU_FIRST) % NIU_BYTES)
    if address >= OVERLAY_FIRST and address < OVERLAY_END:
        place = address - OVERLAY_FIRST
        return _load_stream(t, place // STREAM_BYTES, (place % STREAM_BYTES) // _WORD)
    if address >= CONTROL_FIRST and address < CONTROL_END:
        return _load_control(t, address - CONTROL_FIRST, address)
    if address >= RISC_FIRST and address < RISC_END:
        return _load_risc(t, address - RISC_FIRST, address)
    return _load_queues(t, agent, address)


@kernel
def _store_queues(t: TileRecord, agent: Int, address: Int, value: Int) -> Any:
    if address >= TRANSMIT_FIRST and address < TRANSMIT_END:
        place = address - TRANSMIT_FIRST
        return store_queue(t, place // QUEUE_BYTES, place % QUEUE_BYTES, address, value)
    if address >= RECEIVE_FIRST and address < RECEIVE_END:
        place = address - RECEIVE_FIRST
        return store_receive_queue(t, place // QUEUE_BYTES, place % QUEUE_BYTES, address, value)
    if address >= LINK_FIRST and address < LINK_END:
        return store_link(t, address - LINK_FIRST, address, value)
    if address >= HEADER_FIRST and address < HEADER_END:
        place = address - HEADER_FIRST
        return store_header(t, place // HEADER_BYTES, place % HEADER_BYTES, address, value)
    if address >= PTP_FIRST and address < PTP_END:
        return refuse(t, PTP_STORED, address)
    return refuse(t, UNMAPPED[agent], address)


@kernel
def store(t: TileRecord, agent: Int, address: Int, value: Int, size: Int) -> Any:
    """Status of a store of the low `size` bytes of `value`, aligned; see `load`."""
    if is_own_ram(agent, address):
        return own_ram_store(t, agent, address - OWN_RAM_FIRST, value, size)
    if size != _WORD:
        return refuse(t, NARROW[agent], address, size)
    if address >= NIU_FIRST and address < NIU_END:
        return niu_store(t, (address - NIU_FIRST) // NIU_BYTES, (address - NIU_FIRST) % NIU_BYTES, value)
    if address >= OVERLAY_FIRST and address < OVERLAY_END:
        place = address - OVERLAY_FIRST
        return _store_stream(t, place // STREAM_BYTES, (place % STREAM_BYTES) // _WORD, value)
    if address >= CONTROL_FIRST and address < CONTROL_END:
        return _store_control(t, address - CONTROL_FIRST, address, value)
    if address >= RISC_FIRST and address < RISC_END:
        return _store_risc(t, address - RISC_FIRST, address, value)
    return _store_queues(t, agent, address, value)


# For the table of handlers: device_load and device_store of tile/memory_map.py call them.


def ethernet_load_entry(t: TileRecord, agent: Int, address: Int) -> AnyInt:
    """Load for `call_handler`; returns a status."""
    status, value = load(t, agent, address, np.int64(t.device_size))
    t.device_value = value
    return status


def ethernet_store_entry(t: TileRecord, agent: Int, address: Int) -> AnyInt:
    """Store for `call_handler`; returns a status."""
    return store(t, agent, address, np.int64(t.device_value), np.int64(t.device_size))


provide(ETHERNET_LOAD, "ethernet_load", ethernet_load_entry)
provide(ETHERNET_STORE, "ethernet_store", ethernet_store_entry)
