"""The ARC tile: what management firmware shows its host, telemetry and message queues (tile H14 to H16, E32)."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

import numpy as np

from bhemu.chip.coordinates import DRAM_CHANNELS, SIMULATOR, TENSIX_COLUMNS, Harvesting
from bhemu.chip.nodes.identity import Identity, check_word, describe
from bhemu.errors import MemoryError_, UndefinedBehavior, Unimplemented

CSM: Final = 0x10000000
CSM_BYTES: Final = 0x80000
APB: Final = 0x80000000
APB_BYTES: Final = 0x100000
_INTERFACE_BYTES: Final = 0x8000

# In the APB
RESET_UNIT: Final = 0x30000
INTERFACES: Final = (0x50000, 0x58000)
DOORBELL: Final = 0xB0000
# In the reset unit
SCRATCH: Final = 0x60
SCRATCHES: Final = 8
MISC_CONTROL: Final = 0x100
SCRATCH_RAM: Final = 0x400
SCRATCH_RAMS: Final = 16
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
_REQUEST_WRITE: Final = 0x00
_REQUEST_READ: Final = 0x10
_RESPONSE_WRITE: Final = 0x14

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


def telemetry(harvesting: Harvesting) -> dict[int, int]:
    """Values by tag (H15).

    The official simulator reports a card where nothing is off, whatever its coordinate table says; for any other
    description the values say what is off.
    """
    ethernet = _ALL_ETHERNET
    values = {
        1: 0x400,
        2: 1,  # board id
        3: 1,  # asic id
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
        38: 1,  # PCIe
        52: 0,
        61: 0,
        62: 1,
    }
    if harvesting != SIMULATOR:
        if harvesting.ethernet:
            ethernet = sum(1 << n for n in range(14) if n not in harvesting.ethernet)
            values |= {21: ethernet, ENABLED_ETHERNET: ethernet}
        values[ENABLED_COLUMNS] = sum(1 << n for n in range(len(TENSIX_COLUMNS)) if n not in harvesting.columns)
        values[ENABLED_DRAM] = sum(1 << n for n in range(DRAM_CHANNELS) if n != harvesting.dram)
    return values


class ArcTile:
    """Memory, reset unit and message queues.

    Args:
        identity: of the node.
        harvesting: what the chip does not have.
        time: the chip's clock.
    """

    def __init__(self, identity: Identity, harvesting: Harvesting, time: Callable[[], int]) -> None:
        self._identity = identity
        self._time = time
        self._csm = np.zeros(CSM_BYTES, np.uint8)
        self._words = self._csm.view(np.uint32)
        values = telemetry(harvesting)
        self._words[_TABLE // 4 : _TABLE // 4 + 2] = (1, len(values))  # version, entries
        for place, (tag, value) in enumerate(values.items()):
            self._words[_TABLE // 4 + 2 + place] = tag | place << 16
            self._words[_VALUES // 4 + place] = value
        self._heartbeat = _VALUES // 4 + list(values).index(HEARTBEAT)
        self._words[_CONTROL // 4 : _CONTROL // 4 + 2] = (CSM + _QUEUES, ENTRIES | QUEUES << 8)
        self._registers = dict.fromkeys((SCRATCH + 4 * i for i in range(SCRATCHES)), 0)
        self._registers |= dict.fromkeys((SCRATCH_RAM + 4 * i for i in range(SCRATCH_RAMS)), 0)
        self._registers[MISC_CONTROL] = 0
        for number, value in (
            (BOOT_STATUS, _READY),
            (QUEUE_CONTROL, CSM + _CONTROL),
            (TELEMETRY_VALUES, CSM + _VALUES),
            (TELEMETRY_TABLE, CSM + _TABLE),
        ):
            self._registers[SCRATCH_RAM + 4 * number] = value

    def snapshot(self) -> tuple[bytes, dict[int, int]]:
        """Memory and registers."""
        return self._csm.tobytes(), dict(self._registers)

    def restore(self, state: tuple[bytes, dict[int, int]]) -> None:
        """Put both back."""
        self._csm[:] = np.frombuffer(state[0], np.uint8)
        self._registers = dict(state[1])

    def read(self, address: int, size: int, noc: int = 0) -> bytes:
        """Bytes of the memory, or a register."""
        offset = self._memory(address, size)
        if offset is not None:
            self._words[self._heartbeat] = 1 + self._time() // _HEARTBEAT_CLOCKS
            return self._csm[offset : offset + size].tobytes()
        return struct.pack("<I", self._read_register(self._register(address, size)))

    def write(self, address: int, content: bytes, noc: int = 0) -> None:
        """Bytes to the memory, or to a register."""
        size = len(content)
        offset = self._memory(address, size)
        if offset is not None:
            self._csm[offset : offset + size] = np.frombuffer(content, np.uint8)
            return
        self._write_register(self._register(address, size), struct.unpack("<I", content)[0])

    @staticmethod
    def _memory(address: int, size: int) -> int | None:
        """Offset in the memory, None when the range is not in it."""
        return address - CSM if address >= CSM and address + size <= CSM + CSM_BYTES else None

    def _register(self, address: int, size: int) -> int:
        if not APB <= address < APB + APB_BYTES:
            raise MemoryError_(
                f"{describe(self._identity.node)}: {size} bytes at {address:#x}, which is unmapped",
                remedy="memory is 0x10000000 to 0x1007ffff, registers 0x80000000 to 0x800fffff (tile N28)",
            )
        check_word(self._identity.node, address, size)
        return address - APB

    def _not_built(self, offset: int) -> Unimplemented:
        return Unimplemented(
            f"{describe(self._identity.node)}: register {APB + offset:#x} is not built",
            remedy="scratch registers, ARC_MISC_CNTL, the doorbell and the network interfaces are (tile H14)",
        )

    def _read_register(self, offset: int) -> int:
        inside = offset - RESET_UNIT
        if inside in self._registers:
            return self._registers[inside]
        for noc, page in enumerate(INTERFACES):
            if page <= offset < page + _INTERFACE_BYTES:
                return self._identity.read(noc, offset - page)
        raise self._not_built(offset)

    def _write_register(self, offset: int, value: int) -> None:
        inside = offset - RESET_UNIT
        if offset == DOORBELL:
            self._serve()
        elif inside == MISC_CONTROL:
            if value & _RINGS:
                self._serve()
            self._registers[inside] = value & ~_RINGS
        elif inside in self._registers:
            self._registers[inside] = value
        else:
            for noc, page in enumerate(INTERFACES):
                if page <= offset < page + _INTERFACE_BYTES:
                    self._identity.write(noc, offset - page)
            raise self._not_built(offset)

    def _serve(self) -> None:
        """Answer everything that waits in the queues (H16)."""
        for queue in range(QUEUES):
            base = (_QUEUES + queue * QUEUE_BYTES) // 4
            header, body = self._words[base:], self._words[base + HEADER_BYTES // 4 :]
            while header[_REQUEST_READ // 4] != header[_REQUEST_WRITE // 4]:
                at, end = int(header[_REQUEST_READ // 4]), int(header[_REQUEST_WRITE // 4])
                if (end - at) % (2 * ENTRIES) > ENTRIES or end >= 2 * ENTRIES:
                    raise UndefinedBehavior(
                        f"message queue {queue} has pointers {at} and {end}",
                        remedy=f"pointers count modulo {2 * ENTRIES}; at most {ENTRIES} requests wait",
                    )
                words = ENTRY_BYTES // 4
                request = body[at % ENTRIES * words :]
                code = int(request[0]) & 0xFF
                if code not in RESULTS:
                    raise Unimplemented(
                        f"message {code:#x} to the management firmware is not built",
                        remedy=f"known: {', '.join(f'{known:#x}' for known in sorted(RESULTS))}",
                    )
                place = int(header[_RESPONSE_WRITE // 4])
                start = (ENTRIES + place % ENTRIES) * words
                body[start : start + words] = 0
                body[start] = RESULTS[code]
                header[_RESPONSE_WRITE // 4] = (place + 1) % (2 * ENTRIES)
                header[_REQUEST_READ // 4] = (at + 1) % (2 * ENTRIES)
