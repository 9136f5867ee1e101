"""Tensix tiles as the host's windows reach them: L1 and registers (tile H5, N18)."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from bhemu.chip.clock.clocks import Clocks, in_tile
from bhemu.chip.nodes.identity import Identity, check_word, describe
from bhemu.errors import BhemuError, MemoryError_
from bhemu.isa.memory_map import region
from bhemu.machine.state import L1_SIZE
from bhemu.tile.noc.request import MMIO_FIRST


class TensixNode:
    """One Tensix tile.

    Args:
        identity: of the node.
        tiles: records of all.
        clocks: advances them.
    """

    def __init__(self, identity: Identity, tiles: np.ndarray[Any, Any], clocks: Clocks) -> None:
        self._node = identity.node
        self._l1 = tiles["l1"][self._node.index]
        self._clocks = clocks

    def snapshot(self) -> None:
        """Its state is in the tile's record."""

    def restore(self, state: None) -> None:
        """Nothing to put back."""

    def read(self, address: int, size: int, noc: int = 0) -> bytes:
        """Bytes of L1, or a register; the host cannot wait for one."""
        if address + size <= L1_SIZE:
            return self._l1[address : address + size].tobytes()  # type: ignore[no-any-return]
        self._check_register(address, size)
        cores = self._clocks.touch(self._node.index)
        try:
            return struct.pack("<I", cores.load(address))
        except BhemuError as error:
            raise in_tile(self._node.index, error) from None

    def write(self, address: int, content: bytes, noc: int = 0) -> None:
        """Bytes into L1, or into a register; see `read`."""
        cores = self._clocks.touch(self._node.index)
        if address + len(content) <= L1_SIZE:
            self._l1[address : address + len(content)] = np.frombuffer(content, np.uint8)
            return
        self._check_register(address, len(content))
        try:
            cores.store(address, struct.unpack("<I", content)[0])
        except BhemuError as error:
            raise in_tile(self._node.index, error) from None

    def _check_register(self, address: int, size: int) -> None:
        if address < MMIO_FIRST:
            raise MemoryError_(
                f"{describe(self._node)}: {size} bytes at {address:#x}, L1 ends at {L1_SIZE:#x}",
                remedy=f"stay inside L1, or use registers from {region('tdma').base:#x} on",
            )
        check_word(self._node, address, size)
