"""Memory and registers of a tile of a chip as an access over the NoC finds them."""

from __future__ import annotations

from typing import NoReturn, Protocol

import numpy as np

import bhemu.checks as checks
from bhemu.api.tensor_memory import TensorMemory
from bhemu.api.tile_view import Array, check_range
from bhemu.chip.coordinates import Node, Place
from bhemu.errors import MemoryError_


class Nodes(Protocol):
    """Nodes of a chip: `bhemu.chip.device.Device`, or a chip that another process has."""

    def node(self, place: Place) -> Node:
        """The node at translated coordinates."""

    def read_node(self, node: Node, address: int, size: int) -> bytes:
        """Bytes of a node's memory, or one of its registers."""

    def write_node(self, node: Node, address: int, content: bytes) -> None:
        """Bytes into a node's memory, or into one of its registers."""


class NodeMemory:
    """Reading and writing a tile at a place of a chip.

    Attributes:
        place: translated coordinates (x, y).
        node: the same place in physical coordinates, and the tile's number among its kind.
    """

    _device: Nodes
    _whole = "chip"
    place: Place
    node: Node

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a tile of a chip cannot be copied or pickled alone: copy the {self._whole}")

    def read(self, address: int, size: int) -> bytes:
        """Bytes of L1; or one register, 4 bytes, as an access over the NoC reads it.

        Raises:
            BhemuError: nothing is there, or the access is refused.
        """
        address, size = self._range(address, size)
        return self._device.read_node(self.node, address, size)

    def write(self, address: int, content: bytes) -> None:
        """Bytes into L1, or 4 bytes into a register; see `read`."""
        content = checks.content(content)
        self._device.write_node(self.node, self._range(address, len(content))[0], content)

    def _range(self, address: int, size: int) -> tuple[int, int]:
        address = checks.integer(address, "address", None, 0xFFFFFFFF, error=MemoryError_)
        size = checks.integer(size, "size")
        if address < 0 or size <= 0:
            raise MemoryError_(
                f"{size} bytes at {address:#x} of tile {self.place[0]}-{self.place[1]}",
                remedy="access at least one byte, at an address from 0 on",
            )
        return address, size

    def read_word(self, address: int) -> int:
        """A word of L1 or a register, little-endian."""
        return int.from_bytes(self.read(address, 4), "little")

    def write_word(self, address: int, value: int) -> None:
        """Write a word of L1 or a register."""
        self.write(address, checks.integer(value, "value", 0, 0xFFFFFFFF).to_bytes(4, "little"))


class TensixMemory(NodeMemory, TensorMemory):
    """The same of a Tensix tile, whose L1 holds tensors."""

    def _put(self, address: int, content: Array) -> None:
        check_range(address, len(content))
        self.write(address, content.tobytes())

    def _get(self, address: int, size: int) -> Array:
        check_range(address, size)
        return np.frombuffer(bytearray(self.read(address, size)), np.uint8)
