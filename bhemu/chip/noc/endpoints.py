"""What NoC requests read and change at their ends: L1 and registers of Tensix tiles, bytes of others (tile N18)."""

from __future__ import annotations

import struct
from typing import Any, Final, Protocol

import numpy as np

from bhemu.chip.clock.clocks import Clocks
from bhemu.chip.coordinates import Kind, Node
from bhemu.errors import BhemuError
from bhemu.machine.agents import NOC
from bhemu.machine.dispatch import DEVICE_LOAD, DEVICE_STORE
from bhemu.machine.faults import DONE
from bhemu.machine.state import new_tiles
from bhemu.tensix.coprocessor import Coprocessor
from bhemu.tile.cores import Cores
from bhemu.tile.noc.request import MMIO_FIRST

_BLOCK: Final = 16


class OtherNodes(Protocol):
    """The chip, whose other nodes hold bytes."""

    def read_node(self, node: Node, address: int, size: int, noc: int = 0) -> bytes:
        """Bytes of a node."""

    def write_node(self, node: Node, address: int, content: bytes, noc: int = 0) -> None:
        """Bytes to a node."""


class Nodes:
    """The ends of NoC requests.

    Args:
        tiles: records of the Tensix tiles.
        others: all other nodes.

    Attributes:
        clocks: moves the tiles; set by the chip.
    """

    clocks: Clocks

    def __init__(self, tiles: np.ndarray[Any, Any], others: OtherNodes) -> None:
        self.tiles = tiles
        self._others = others
        self._l1 = tiles["l1"]
        self._scratch: Cores | None = None

    def read(self, node: Node, address: int, size: int, by: int, noc: int) -> bytes | None:
        """Bytes of a node, or one of a Tensix tile's registers; None when that has to wait.

        Args:
            by: number of the Tensix tile whose core is executing the store that has led here.
            noc: through which the request comes.
        """
        if node.kind is not Kind.TENSIX:
            return self._others.read_node(node, address, size, noc)
        if address < MMIO_FIRST:
            return self._l1[node.index, address : address + size].tobytes()
        if not self._register(node, DEVICE_LOAD, address, by):
            return None
        return struct.pack("<I", int(self.clocks.cores(node.index).record.device_value))

    def write(self, node: Node, address: int, content: bytes, by: int, noc: int) -> bool:
        """Bytes into a node, or into one of a Tensix tile's registers; False when that has to wait."""
        if node.kind is not Kind.TENSIX:
            self._others.write_node(node, address, content, noc)
        elif address < MMIO_FIRST:
            self._before_l1(node.index, by)
            self._l1[node.index, address : address + len(content)] = np.frombuffer(content, np.uint8)
        else:
            return self._register(node, DEVICE_STORE, address, by, struct.unpack("<I", content)[0])
        return True

    def atomic(self, node: Node, address: int, code: int, data: int, by: int, noc: int) -> int:
        """Perform a NoC atomic in the L1 of a Tensix or Ethernet tile; returns the word that was there."""
        if node.kind is Kind.TENSIX:
            self._before_l1(node.index, by)
            return self.clocks.cores(node.index).noc_atomic(address, code, data)
        if self._scratch is None:
            self._scratch = Cores(Coprocessor(new_tiles(1)))
        block = self._scratch.record.l1[:_BLOCK]
        block[:] = np.frombuffer(self._others.read_node(node, address & -_BLOCK, _BLOCK, noc), np.uint8)
        old = self._scratch.noc_atomic(address % _BLOCK, code, data)
        self._others.write_node(node, address & -_BLOCK, block.tobytes(), noc)
        return old

    def open_choice(self, index: int, code: int) -> bool:
        """True when a tile may use the recommended choice where no source settles what silicon does; it is noted."""
        tile = self.tiles[index]
        if tile["allow_open"] == 0:
            return False
        used = tile["open_used"].tolist()
        if code not in used and 0 in used:
            tile["open_used"][used.index(0)] = code
        return True

    def _register(self, node: Node, place: int, address: int, by: int, value: int = 0) -> bool:
        """Access a register; False when it has to wait."""
        cores = self.clocks.touch(node.index)
        cores.record.device_value = value
        try:
            return cores.attempt(place, NOC, address, now=node.index != by) == DONE
        except BhemuError as error:
            x, y = node.place
            error.message = f"at tile {x}-{y}: {error.message}"
            raise

    def _before_l1(self, index: int, by: int) -> None:
        """L1 of a tile is about to change; cores that poll it shall see that."""
        if index != by and self.clocks.can_react(index):
            self.clocks.touch(index)
