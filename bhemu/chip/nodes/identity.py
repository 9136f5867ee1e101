"""Where a node is and what it is: the registers of its network interfaces that clients ask for (tile N10 to N12).

These are the interfaces of nodes without emulated cores; those of Tensix tiles are bhemu/tile/noc/niu.py.
"""

from __future__ import annotations

import struct
from typing import Final

from bhemu.chip.coordinates import HEIGHT, WIDTH, Node, Place
from bhemu.chip.nodes.kinds import KINDS
from bhemu.errors import UndefinedBehavior, Unimplemented
from bhemu.isa.memory_map import region
from bhemu.isa.tile_registers import bit_of, offset_of

NODE_ID: Final = offset_of("niu", "NODE_ID")
ENDPOINT_ID: Final = offset_of("niu", "ENDPOINT_ID")
NIU_CFG_0: Final = offset_of("niu", "NIU_CFG_0")
ID_LOGICAL: Final = offset_of("niu", "ID_LOGICAL")
TRANSLATES: Final = 1 << bit_of("niu", "NIU_CFG_0", "TRANSLATE")
"""Bit of NIU_CFG_0: coordinates are translated (N5)."""
PAGE: Final = region("niu0").size


def node_id(place: Place, noc: int) -> int:
    """NODE_ID of a node: its coordinates as this NoC counts them, and the size of the grid (N10)."""
    x, y = place if noc == 0 else (WIDTH - 1 - place[0], HEIGHT - 1 - place[1])
    return x | y << 6 | WIDTH << 12 | HEIGHT << 19 | (1 - noc) << 28


def endpoint_id(node: Node, noc: int) -> int:
    """ENDPOINT_ID: number of the tile among its kind, kind, NoC (N12)."""
    return node.index | KINDS[node.kind].endpoint_type << 8 | noc << 24


class Identity:
    """The identity registers of one node.

    Args:
        node: whose.
        logical: the node's translated coordinates.
    """

    def __init__(self, node: Node, logical: Place) -> None:
        self.node = node
        self.logical = logical

    def read(self, noc: int, offset: int) -> int:
        """A word at an offset in the page of the interface of NoC 0 or 1.

        Raises:
            Unimplemented: the register is not one of those that identify the node.
        """
        if offset == NODE_ID:
            return node_id(self.node.place, noc)
        if offset == ENDPOINT_ID:
            return endpoint_id(self.node, noc)
        if offset == NIU_CFG_0:
            return TRANSLATES
        if offset == ID_LOGICAL:
            return self.logical[0] | self.logical[1] << 6
        raise Unimplemented(
            f"{describe(self.node)}: register {offset:#x} of the interface to NoC {noc} is not built",
            remedy="NODE_ID 0x44, ENDPOINT_ID 0x48, NIU_CFG_0 0x100 and ID_LOGICAL 0x148 are",
        )

    def write(self, noc: int, offset: int) -> None:
        """Refuse a write."""
        raise Unimplemented(
            f"{describe(self.node)}: a write to register {offset:#x} of the interface to NoC {noc}",
            remedy="network interfaces of nodes other than Tensix tiles can only be read",
        )


def describe(node: Node) -> str:
    """`ARC tile 8-0`."""
    x, y = node.place
    return f"{node.kind.value} tile {x}-{y}"


def check_word(node: Node, address: int, size: int) -> None:
    """Refuse what is not one aligned word.

    Raises:
        UndefinedBehavior: for any other access.
    """
    if size != 4 or address % 4:
        raise UndefinedBehavior(
            f"{describe(node)}: {size} bytes at {address:#x}, where there are registers of 4 bytes",
            remedy="access registers as aligned words",
        )


class InterfaceNode:
    """A node of which the network interfaces alone are built, at the addresses that tt-exalens reads.

    Args:
        identity: of the node.
    """

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._page = KINDS[identity.node.kind].interfaces[0]

    def snapshot(self) -> None:
        """It holds nothing that can change."""

    def restore(self, state: None) -> None:
        """Nothing to put back."""

    def _offset(self, address: int, size: int) -> int:
        if not self._page <= address < self._page + PAGE:
            raise Unimplemented(
                f"{describe(self._identity.node)}: an access to {address:#x}",
                remedy="Tensix, DRAM, Ethernet and ARC tiles and the first PCIe tile can be accessed",
            )
        check_word(self._identity.node, address, size)
        return address - self._page

    def read(self, address: int, size: int, noc: int = 0) -> bytes:
        """A register of the interface to the NoC of the access."""
        return struct.pack("<I", self._identity.read(noc, self._offset(address, size)))

    def write(self, address: int, content: bytes, noc: int = 0) -> None:
        """Refuse a write."""
        self._identity.write(noc, self._offset(address, len(content)))
