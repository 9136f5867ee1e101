"""The queues of an Ethernet tile's link, and what it shows of the link itself (ethernet 2.2).

A command of a transmit queue sends a frame to the tile at the other end of the link: bytes of L1, or one word for a
register. The store that gives the command leaves a request pending, as one that starts a NoC request does, and the chip
takes it over. Receive queues and the header table have no effect.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import MissingSpecification, UndefinedBehavior, Unimplemented
from bhemu.isa.memory_map import ETHERNET_L1
from bhemu.isa.tile_registers import bits_of, offset_of
from bhemu.machine.ethernet_state import HEADERS
from bhemu.machine.faults import DONE, REFUSED, fault, open_choice, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.noc_state import FRAMES
from bhemu.machine.types import Int, TileRecord
from bhemu.tile.noc.request import MMIO_FIRST, starts_another
from bhemu.tile.noc.transfer import ask_chip, end_request, has_ended

DATA_FRAME: Final = 4
"""Kind of a request, after those of tile/noc/request.py: bytes of L1."""
REGISTER_FRAME: Final = 5
"""One word, to L1 or to a register."""

CTRL: Final = offset_of("eth_txq", "CTRL")
CMD: Final = offset_of("eth_txq", "CMD")
STATUS: Final = offset_of("eth_txq", "STATUS")
START: Final = offset_of("eth_txq", "TRANSFER_START_ADDR")
SIZE: Final = offset_of("eth_txq", "TRANSFER_SIZE_BYTES")
DEST: Final = offset_of("eth_txq", "DEST_ADDR")
DATA: Final = offset_of("eth_txq", "REMOTE_REG_DATA")
AHEAD: Final = offset_of("eth_txq", "DATA_PACKET_ACCEPT_AHEAD")
SEL_SW: Final = offset_of("eth_txq", "TXPKT_CFG_SEL_SW")
SEL_HW: Final = offset_of("eth_txq", "TXPKT_CFG_SEL_HW")
RECEIVE_CTRL: Final = offset_of("eth_rxq", "CTRL")
PCS_STATUS: Final = offset_of("eth_ctrl", "PCS_STATUS")
MAC_RX_ROUTING: Final = offset_of("eth_ctrl", "MAC_RX_ROUTING")
ADDRESS_ROUTING: Final = offset_of("eth_ctrl", "MAC_RX_ADDR_ROUTING")
MAC_DA_LO: Final = offset_of("eth_header", "MAC_DA_LO")
MAC_DA_HI: Final = offset_of("eth_header", "MAC_DA_HI")

LINK_IS_DOWN: Final = 2
"""Value of `ethernet.linked`, which is 1 while the link is up, and 0 where the tile has none."""
SEND_DATA: Final = 2
SEND_REGISTER: Final = 4
ENABLED: Final = 1
RECEIVES: Final = 2
"""The only known values of CTRL of a transmit and of a receive queue."""
WITHOUT_REGISTERS: Final = 2
"""The transmit queue that sends no register writes."""
_LINE: Final = 16
_WORD: Final = 4
_ENTRY_BITS: Final = 4
_MAC_HIGH: Final = bits_of("eth_header", "MAC_DA_HI", "HIGH")[1]

NO_REGISTER: Final = fault(
    "ethernet.no-register",
    Unimplemented,
    "register {0:#x} of the link of an Ethernet tile is not built",
    remedy="the three transmit queues have CTRL, CMD, STATUS, START, SIZE, DEST, REMOTE_REG_DATA and "
    "header selections; receive queues CTRL; the rest of the registers is in ethernet 2",
    rule="ethernet 2.2",
)
VALUE: Final = fault(
    "ethernet.value",
    Unimplemented,
    "{1:#x} is stored to register {0:#x} of the link of an Ethernet tile",
    remedy="1 enables a transmit queue, 2 is the value of a receive queue, 0 that of MAC_RX_ROUTING",
    rule="ethernet 2.2",
)
HEADER_ENTRY: Final = fault(
    "ethernet.header",
    UndefinedBehavior,
    "{1:#x} is stored to register {0:#x}: the header table has entries 0 to 9, the upper half of a MAC address 16 bits",
    remedy="name entries below 10",
    rule="ethernet 2.2",
)
READ_ONLY: Final = fault(
    "ethernet.read-only",
    UndefinedBehavior,
    "a store to register {0:#x} of the link of an Ethernet tile, which can only be loaded",
    remedy="STATUS and PCS_STATUS report",
    rule="ethernet 2.2",
)
WRITE_ONLY: Final = fault(
    "ethernet.write-only",
    UndefinedBehavior,
    "a load from register {0:#x} of the link of an Ethernet tile, which can only be stored",
    remedy="it is 0",
    rule="ethernet 2",
)
LOADED: Final = fault(
    "ethernet.loaded",
    MissingSpecification,
    "a load from register {0:#x} of the link of an Ethernet tile: no source says what it gives",
    remedy="keep a copy of what was stored, or allow open choices to load that",
    rule="ethernet 2.2",
)
COMMAND: Final = fault(
    "ethernet.command",
    Unimplemented,
    "command {1:#x} of transmit queue {0}: raw packets and flushes are not built, and queue 2 sends no register writes",
    remedy="2 sends data, 4 writes a register (queues 0 and 1)",
    rule="ethernet 2.2",
)
NO_PARTNER: Final = fault(
    "ethernet.no-partner",
    Unimplemented,
    "command {1} of transmit queue {0}, and no tile is at the other end of the link",
    remedy="look at the port's status (0x7cc04 of L1: 1 is up); several chips with links are a cluster",
    rule="ethernet 2.2",
)
UNALIGNED: Final = fault(
    "ethernet.alignment",
    UndefinedBehavior,
    "transmit queue {0} sends {3} bytes from {1:#x} to {2:#x}",
    remedy="data: three multiples of 16, more than none; a register write: an address that is a multiple of 4",
    rule="ethernet 2.2",
)
OUTSIDE: Final = fault(
    "ethernet.frame-memory",
    UndefinedBehavior,
    "transmit queue {0} sends {3} bytes from {1:#x} to {2:#x}, which are not all in L1 or a register",
    remedy=f"L1 ends at {ETHERNET_L1:#x}; a register write may also name a register from {MMIO_FIRST:#x} on",
    rule="ethernet 2.2",
)


@kernel
def load_queue(t: TileRecord, queue: Int, offset: Int, address: Int) -> Any:
    """(status, value) of a load from a transmit queue."""
    if offset == CTRL:
        return DONE, np.int64(t.ethernet.transmit[queue, 0])
    if offset in (CMD, STATUS):
        return DONE, np.int64(0)  # a command is taken at once
    if offset in (START, SIZE, DEST, DATA, AHEAD, SEL_SW, SEL_HW):
        if not open_choice(t, LOADED, address):
            return REFUSED, np.int64(0)
        return DONE, np.int64(t.ethernet.transmit[queue, offset >> 2])
    return refuse(t, NO_REGISTER, address), np.int64(0)


@kernel
def _names_entries(value: Int, fields: Int) -> bool:
    """True when each field names an entry of the header table, and nothing lies above them."""
    for i in range(fields - 1):
        if (value >> (_ENTRY_BITS * i)) & ((1 << _ENTRY_BITS) - 1) >= HEADERS:
            return False
    return bool(value >> (_ENTRY_BITS * (fields - 1)) < HEADERS)


@kernel
def store_queue(t: TileRecord, queue: Int, offset: Int, address: Int, value: Int) -> Any:
    """Status of a store to a transmit queue; REQUEST_PENDING when it sends something."""
    if offset == CMD:
        return _start(t, queue, value)
    if offset == STATUS:
        return refuse(t, READ_ONLY, address)
    if offset == CTRL:
        if value != ENABLED:
            return refuse(t, VALUE, address, value)
    elif offset in (SEL_SW, SEL_HW):
        if not _names_entries(value, 3 if offset == SEL_SW else 1):
            return refuse(t, HEADER_ENTRY, address, value)
    elif offset not in (START, SIZE, DEST, DATA, AHEAD):
        return refuse(t, NO_REGISTER, address)
    t.ethernet.transmit[queue, offset >> 2] = np.uint32(value)
    return DONE


@kernel
def load_receive_queue(t: TileRecord, queue: Int, offset: Int, address: Int) -> Any:
    """(status, value) of a load from a receive queue."""
    if offset == RECEIVE_CTRL:
        return DONE, np.int64(t.ethernet.receive_control[queue])
    return refuse(t, NO_REGISTER, address), np.int64(0)


@kernel
def store_receive_queue(t: TileRecord, queue: Int, offset: Int, address: Int, value: Int) -> Any:
    """Status of a store to a receive queue."""
    if offset != RECEIVE_CTRL:
        return refuse(t, NO_REGISTER, address)
    if value != RECEIVES:
        return refuse(t, VALUE, address, value)
    t.ethernet.receive_control[queue] = np.uint32(value)
    return DONE


@kernel
def load_link(t: TileRecord, offset: Int, address: Int) -> Any:
    """(status, value) of a load from the link's control registers."""
    if offset == PCS_STATUS:
        return DONE, np.int64(0 if t.ethernet.linked == LINK_IS_DOWN else 1)
    if offset == ADDRESS_ROUTING:
        return DONE, np.int64(t.ethernet.address_routing)
    if offset == MAC_RX_ROUTING:
        return refuse(t, WRITE_ONLY, address), np.int64(0)
    return refuse(t, NO_REGISTER, address), np.int64(0)


@kernel
def store_link(t: TileRecord, offset: Int, address: Int, value: Int) -> Any:
    """Status of a store to the link's control registers."""
    if offset == PCS_STATUS:
        return refuse(t, READ_ONLY, address)
    if offset == ADDRESS_ROUTING:
        t.ethernet.address_routing = np.uint32(value)
        return DONE
    if offset != MAC_RX_ROUTING:
        return refuse(t, NO_REGISTER, address)
    return DONE if value == 0 else refuse(t, VALUE, address, value)


@kernel
def load_header(t: TileRecord, entry: Int, offset: Int, address: Int) -> Any:
    """(status, value) of a load from the header table."""
    if offset not in (MAC_DA_LO, MAC_DA_HI):
        return refuse(t, NO_REGISTER, address), np.int64(0)
    if not open_choice(t, LOADED, address):
        return REFUSED, np.int64(0)
    return DONE, np.int64(t.ethernet.header[entry, (offset - MAC_DA_LO) >> 2])


@kernel
def store_header(t: TileRecord, entry: Int, offset: Int, address: Int, value: Int) -> Any:
    """Status of a store to the header table."""
    if offset not in (MAC_DA_LO, MAC_DA_HI):
        return refuse(t, NO_REGISTER, address)
    if offset == MAC_DA_HI and value > _MAC_HIGH:
        return refuse(t, HEADER_ENTRY, address, value)
    t.ethernet.header[entry, (offset - MAC_DA_LO) >> 2] = np.uint32(value)
    return DONE


@kernel
def _check_frame(t: TileRecord, queue: Int, command: Int, source: Int, size: Int, target: Int) -> Any:
    """DONE when a frame can be sent."""
    if command == SEND_DATA:
        if size == 0 or (source | size | target) & (_LINE - 1):
            return refuse(t, UNALIGNED, queue, source, target, size)
        if source + size > ETHERNET_L1 or target + size > ETHERNET_L1:
            return refuse(t, OUTSIDE, queue, source, target, size)
        return DONE
    if target & (_WORD - 1):
        return refuse(t, UNALIGNED, queue, 0, target, _WORD)
    if (target >= ETHERNET_L1 and target < MMIO_FIRST) or starts_another(target):
        return refuse(t, OUTSIDE, queue, 0, target, _WORD)
    return DONE


@kernel
def _start(t: TileRecord, queue: Int, command: Int) -> Any:
    """Status of a store to CMD."""
    number = FRAMES + queue
    q = t.noc_request[number]
    if has_ended(t, q):
        return end_request(t, number)
    if command not in (SEND_DATA, SEND_REGISTER) or (command == SEND_REGISTER and queue == WITHOUT_REGISTERS):
        return refuse(t, COMMAND, queue, command)
    words = t.ethernet.transmit[queue]
    source, size, target = np.int64(words[START >> 2]), np.int64(words[SIZE >> 2]), np.int64(words[DEST >> 2])
    if _check_frame(t, queue, command, source, size, target) != DONE:
        return REFUSED
    if t.ethernet.linked == 0:
        return refuse(t, NO_PARTNER, queue, command)
    q.kind = DATA_FRAME if command == SEND_DATA else REGISTER_FRAME
    q.noc = 0
    q.control = 0
    q.source, q.target = source, target
    q.byte_count = size if command == SEND_DATA else np.int64(_WORD)
    q.word = words[DATA >> 2]
    return ask_chip(t, number)
