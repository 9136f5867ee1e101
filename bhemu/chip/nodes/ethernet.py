"""Ethernet tiles: memory with the results of a boot without links; no core runs (tile N29, E33; ethernet 3)."""

from __future__ import annotations

import struct
from typing import Final

import numpy as np

from bhemu.chip.nodes.identity import PAGE, Identity, check_word, describe
from bhemu.chip.nodes.kinds import ETHERNET_L1 as L1_BYTES
from bhemu.chip.nodes.kinds import TILE_INTERFACES as INTERFACES
from bhemu.errors import MemoryError_, Unimplemented
from bhemu.isa.tile_registers import address_of
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


class EthernetTile:
    """One Ethernet tile without a partner at the other end.

    Args:
        identity: of the node.
    """

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self.l1 = np.zeros(L1_BYTES, np.uint8)
        words = self.l1.view(np.uint32)
        words[POST_CODE // 4] = _BOOTED
        words[PORT_STATUS // 4] = _PORT_DOWN
        words[FIRMWARE_VERSION // 4] = _VERSION_1_6_0
        self._soft_reset = IN_RESET

    def snapshot(self) -> tuple[bytes, int]:
        """L1 and the soft-reset register."""
        return self.l1.tobytes(), self._soft_reset

    def restore(self, state: tuple[bytes, int]) -> None:
        """Put both back."""
        self.l1[:] = np.frombuffer(state[0], np.uint8)
        self._soft_reset = state[1]

    def read(self, address: int, size: int, noc: int = 0) -> bytes:
        """Bytes of L1, or a register."""
        if address + size <= L1_BYTES:
            if address <= HEARTBEAT < address + size:  # firmware counts; so does this memory when it is read
                self.l1[HEARTBEAT : HEARTBEAT + 4].view(np.uint32)[0] += 1
            return self.l1[address : address + size].tobytes()
        self._check_register(address, size)
        if address == SOFT_RESET:
            return struct.pack("<I", self._soft_reset)
        for number, page in enumerate(INTERFACES):
            if page <= address < page + PAGE:
                return struct.pack("<I", self._identity.read(number, address - page))
        raise self._not_built(address)

    def write(self, address: int, content: bytes, noc: int = 0) -> None:
        """Bytes into L1, or into a register."""
        if address + len(content) <= L1_BYTES:
            self.l1[address : address + len(content)] = np.frombuffer(content, np.uint8)
            return
        self._check_register(address, len(content))
        value = struct.unpack("<I", content)[0]
        if address == SOFT_RESET:
            if value & IN_RESET != IN_RESET:
                raise Unimplemented(
                    f"{describe(self._identity.node)}: a core is released from reset ({value:#x})",
                    remedy="the cores of Ethernet tiles are not built; keep bits 11 and 12 set",
                )
            self._soft_reset = value
            return
        for number, page in enumerate(INTERFACES):
            if page <= address < page + PAGE:
                self._identity.write(number, address - page)
        raise self._not_built(address)

    def _check_register(self, address: int, size: int) -> None:
        if address < MMIO_FIRST:
            raise MemoryError_(
                f"{describe(self._identity.node)}: {size} bytes at {address:#x}, L1 ends at {L1_BYTES:#x}",
                remedy="stay inside L1",
            )
        check_word(self._identity.node, address, size)

    def _not_built(self, address: int) -> Unimplemented:
        return Unimplemented(
            f"{describe(self._identity.node)}: register {address:#x} is not built",
            remedy="an Ethernet tile has memory, soft reset and the identity of its network interfaces",
        )
