"""The ARC tile: what management firmware shows its host, telemetry and message queues (tile H14 to H16, E32)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.chip.coordinates import DRAM_CHANNELS, SIMULATOR, TENSIX_COLUMNS, Harvesting
from bhemu.chip.faults import refuse
from bhemu.chip.nodes.identity import is_word, read_identity, refuse_identity_write
from bhemu.chip.nodes.state import ARC_TILE, CSM_BYTES, SCRATCH_RAMS, SCRATCHES
from bhemu.chip.state import CHIP
from bhemu.errors import MemoryError_, UndefinedBehavior, Unimplemented
from bhemu.ethernet.boot import Identity
from bhemu.machine.bytes import move_bytes
from bhemu.machine.faults import DONE, REFUSED, fault
from bhemu.machine.kernel import kernel
from bhemu.machine.process_memory import load_u32, store_u32
from bhemu.machine.state import offset_of
from bhemu.machine.types import ChipRecord, Int

CSM: Final = 0x10000000
APB: Final = 0x80000000
APB_BYTES: Final = 0x100000
_INTERFACE_BYTES: Final = 0x8000

# In the APB
RESET_UNIT: Final = 0x30000
INTERFACES: Final = (0x50000, 0x58000)
DOORBELL: Final = 0xB0000
# In the reset unit
SCRATCH: Final = 0x60
MISC_CONTROL: Final = 0x100
SCRATCH_RAM: Final = 0x400
_RINGS: Final = 1 << 16

BOOT_STATUS: Final = 2
_READY: Final = 0b101
QUEUE_CONTROL: Final = 11
TELEMETRY_VALUES: Final = 12
TELEMETRY_TABLE: Final = 13
"""Numbers of words of the scratch RAM."""

# In the CSM
_TABLE: Final = 0x100
_VALUES: Final = 0x200
_CONTROL: Final = 0x300
_QUEUES: Final = 0x400
QUEUES: Final = 4
ENTRIES: Final = 8
ENTRY_BYTES: Final = 32
HEADER_BYTES: Final = 32
QUEUE_BYTES: Final = HEADER_BYTES + 2 * ENTRIES * ENTRY_BYTES
_ENTRY_WORDS: Final = ENTRY_BYTES // 4
_POSITIONS: Final = 2 * ENTRIES
"""Pointers count modulo this."""
# Words of a queue's header
_REQUEST_WRITE: Final = 0x00 // 4
_REQUEST_READ: Final = 0x10 // 4
_RESPONSE_WRITE: Final = 0x14 // 4

# Telemetry tags
ENABLED_COLUMNS: Final = 34
ENABLED_ETHERNET: Final = 35
ENABLED_DRAM: Final = 36
HEARTBEAT: Final = 32
_HEARTBEAT_CLOCKS: Final = 100_000_000
"""Ten beats a second at the clock of 1000 MHz that telemetry reports."""
_ALL_ETHERNET: Final = 0x0FFF

RESULTS: Final = dict.fromkeys(
    (0x11, 0x21, *range(0x51, 0x55), 0x56, 0x57, 0x90, 0xA0, 0xA3, 0xB6, 0xB7, 0xBA, 0xBC, 0xC1, 0xC7), 0
) | {0x58: 1}
"""First word of the response by message code; no message has an effect (H16, E54)."""
_UNKNOWN: Final = -1
_RESULT: Final = np.array([RESULTS.get(code, _UNKNOWN) for code in range(256)], np.int64)

_MEMORY: Final = offset_of(CHIP, "arc") + offset_of(ARC_TILE, "memory")

OUTSIDE: Final = fault(
    "arc.memory",
    MemoryError_,
    "{0:node}: {1} bytes at {2:#x}, which is unmapped",
    remedy="memory is 0x10000000 to 0x1007ffff, registers 0x80000000 to 0x800fffff",
    rule="tile N28",
)
NOT_BUILT: Final = fault(
    "arc.register",
    Unimplemented,
    "{0:node}: register {1:#x} is not built",
    remedy="scratch registers, ARC_MISC_CNTL, the doorbell and the network interfaces are",
    rule="tile H14",
)
BAD_POINTERS: Final = fault(
    "arc.queue",
    UndefinedBehavior,
    "message queue {0} has pointers {1} and {2}",
    remedy=f"pointers count modulo {_POSITIONS}; at most {ENTRIES} requests wait",
    rule="tile H16",
)
NO_MESSAGE: Final = fault(
    "arc.message",
    Unimplemented,
    "message {0:#x} to the management firmware is not built",
    remedy=f"known: {', '.join(f'{known:#x}' for known in sorted(RESULTS))}",
    rule="tile H16",
)


def telemetry(harvesting: Harvesting, identity: Identity) -> dict[int, int]:
    """Values by tag (H15).

    The official simulator reports a card where nothing is off, whatever its coordinate table says; for any other
    description the values say what is off.
    """
    ethernet = _ALL_ETHERNET
    values = {
        1: identity.board_id[0],
        2: identity.board_id[1],
        3: identity.asic_id,
        4: 0,  # harvesting state
        11: 40 << 16,  # degrees
        13: 35 << 16,
        14: 1000,  # MHz
        15: 900,
        16: 540,
        21: ethernet,
        22: 0x5555,  # DRAM is trained
        28: 0x12050000,  # firmware 18.5
        HEARTBEAT: 1,
        ENABLED_ETHERNET: ethernet,
        38: identity.pcie_usage,
        52: identity.asic_location,
        61: 0,  # high half of the asic id
        62: identity.asic_id,
    }
    if harvesting != SIMULATOR:
        if harvesting.ethernet:
            ethernet = sum(1 << n for n in range(14) if n not in harvesting.ethernet)
            values |= {21: ethernet, ENABLED_ETHERNET: ethernet}
        values[ENABLED_COLUMNS] = sum(1 << n for n in range(len(TENSIX_COLUMNS)) if n not in harvesting.columns)
        values[ENABLED_DRAM] = sum(1 << n for n in range(DRAM_CHANNELS) if n != harvesting.dram)
    return values


def boot(arc: Any, harvesting: Harvesting, identity: Identity) -> None:
    """Leave in the tile's record what firmware does when it has booted."""
    words = arc.memory_u32
    values = telemetry(harvesting, identity)
    words[_TABLE // 4 : _TABLE // 4 + 2] = (1, len(values))  # version, entries
    for place, (tag, value) in enumerate(values.items()):
        words[_TABLE // 4 + 2 + place] = tag | place << 16
        words[_VALUES // 4 + place] = value
    arc.heartbeat = _VALUES // 4 + list(values).index(HEARTBEAT)
    words[_CONTROL // 4 : _CONTROL // 4 + 2] = (CSM + _QUEUES, ENTRIES | QUEUES << 8)
    for number, value in (
        (BOOT_STATUS, _READY),
        (QUEUE_CONTROL, CSM + _CONTROL),
        (TELEMETRY_VALUES, CSM + _VALUES),
        (TELEMETRY_TABLE, CSM + _TABLE),
    ):
        arc.scratch_ram[number] = value


@kernel
def _memory_offset(address: Int, size: Int) -> Int:
    """Offset in the memory, -1 when the range is not in it."""
    if address >= CSM and address + size <= CSM + CSM_BYTES:
        return address - CSM
    return -1


@kernel
def _is_register(chip: ChipRecord, place: Int, address: Int, size: Int) -> bool:
    """True for a word of the registers; refuses everything else that is not in the memory."""
    if address < APB or address >= APB + APB_BYTES:
        refuse(chip, OUTSIDE, place, size, address)
        return False
    return is_word(chip, place, address, size)


@kernel
def _serve(chip: ChipRecord) -> Int:
    """Answer everything that waits in the queues (H16); status."""
    words = chip.arc.memory_u32
    for queue in range(QUEUES):
        header = (_QUEUES + queue * QUEUE_BYTES) // 4
        body = header + HEADER_BYTES // 4
        while words[header + _REQUEST_READ] != words[header + _REQUEST_WRITE]:
            at, end = np.int64(words[header + _REQUEST_READ]), np.int64(words[header + _REQUEST_WRITE])
            if (end - at) % _POSITIONS > ENTRIES or end >= _POSITIONS:
                return refuse(chip, BAD_POINTERS, queue, at, end)
            code = np.int64(words[body + at % ENTRIES * _ENTRY_WORDS]) & 0xFF
            result = np.int64(_RESULT[code])
            if result == _UNKNOWN:
                return refuse(chip, NO_MESSAGE, code)
            place = np.int64(words[header + _RESPONSE_WRITE])
            start = body + (ENTRIES + place % ENTRIES) * _ENTRY_WORDS
            for i in range(_ENTRY_WORDS):
                words[start + i] = np.uint32(0)
            words[start] = np.uint32(result)
            words[header + _RESPONSE_WRITE] = np.uint32((place + 1) % _POSITIONS)
            words[header + _REQUEST_READ] = np.uint32((at + 1) % _POSITIONS)
    return DONE


@kernel
def read_arc(chip: ChipRecord, place: Int, address: Int, to: Int, size: Int) -> Any:
    """Status of a read from the memory, or of a register, to an address in this process."""
    arc = chip.arc
    offset = _memory_offset(address, size)
    if offset >= 0:
        arc.memory_u32[arc.heartbeat] = np.uint32(1 + chip.time // _HEARTBEAT_CLOCKS)
        move_bytes(to, chip.address + _MEMORY + offset, size)
        return DONE
    if not _is_register(chip, place, address, size):
        return REFUSED
    offset = address - APB - RESET_UNIT
    if offset >= SCRATCH and offset < SCRATCH + 4 * SCRATCHES:
        store_u32(to, np.int64(arc.scratch[(offset - SCRATCH) >> 2]))
        return DONE
    if offset >= SCRATCH_RAM and offset < SCRATCH_RAM + 4 * SCRATCH_RAMS:
        store_u32(to, np.int64(arc.scratch_ram[(offset - SCRATCH_RAM) >> 2]))
        return DONE
    if offset == MISC_CONTROL:
        store_u32(to, np.int64(arc.misc_control))
        return DONE
    for noc in range(2):
        page = APB + INTERFACES[noc]
        if page <= address and address < page + _INTERFACE_BYTES:
            return read_identity(chip, place, noc, address - page, to)
    return refuse(chip, NOT_BUILT, place, address)


@kernel
def write_arc(chip: ChipRecord, place: Int, address: Int, source: Int, size: Int) -> Any:
    """Status of a write into the memory, or into a register, from an address in this process."""
    arc = chip.arc
    offset = _memory_offset(address, size)
    if offset >= 0:
        move_bytes(chip.address + _MEMORY + offset, source, size)
        return DONE
    if not _is_register(chip, place, address, size):
        return REFUSED
    value = load_u32(source)
    if address == APB + DOORBELL:
        return _serve(chip)
    offset = address - APB - RESET_UNIT
    if offset >= SCRATCH and offset < SCRATCH + 4 * SCRATCHES:
        arc.scratch[(offset - SCRATCH) >> 2] = np.uint32(value)
        return DONE
    if offset >= SCRATCH_RAM and offset < SCRATCH_RAM + 4 * SCRATCH_RAMS:
        arc.scratch_ram[(offset - SCRATCH_RAM) >> 2] = np.uint32(value)
        return DONE
    if offset == MISC_CONTROL:
        if value & _RINGS and _serve(chip) != DONE:
            return REFUSED
        arc.misc_control = np.uint32(value & ~_RINGS)
        return DONE
    for noc in range(2):
        page = APB + INTERFACES[noc]
        if page <= address and address < page + _INTERFACE_BYTES:
            return refuse_identity_write(chip, place, noc, address - page)
    return refuse(chip, NOT_BUILT, place, address)
