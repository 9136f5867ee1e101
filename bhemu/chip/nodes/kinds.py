"""The kinds of nodes: what the chip knows of each, and the interface that each has.

The NoC, the host's windows and the clock use this table; they name a kind only where no column answers. A kind with
cores of its own needs a row here, its places in chip/coordinates.py, and a model in a module of this room.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol

from bhemu.chip.coordinates import NODES, Kind, Node
from bhemu.isa.memory_map import region
from bhemu.machine.agents import CORE_NAMES
from bhemu.machine.state import L1_SIZE

# Numbers of the kinds that compiled code serves; 0: Python does
TENSIX: Final = 1
DRAM: Final = 2

ETHERNET_L1: Final = 512 * 1024
DRAM_CHANNEL: Final = 1 << 32
DRAM_READ_ALIGNMENT: Final = 64
TILE_INTERFACES: Final = (region("niu0").base, region("niu1").base)
DRAM_INTERFACES: Final = ((1 << 40) + TILE_INTERFACES[0], (1 << 40) + TILE_INTERFACES[1])
"""Above the memory."""
INTERFACE: Final = 0xFFFFFFFF_FF000000
"""Registers of a node that has 64-bit addresses; the interface of the NoC that the access comes through."""
ROUTER_INTERFACE: Final = 0xFF000000
"""The same for nodes that are routers only."""


@dataclass(frozen=True)
class NodeKind:
    """What all nodes of a kind have in common.

    Attributes:
        endpoint_type: bits 23:8 of ENDPOINT_ID (N12).
        interfaces: addresses of the registers of the interfaces to NoC 0 and 1.
        memory: bytes from address 0 on, where the NoC checks them; None: the node does so itself.
        tile: has registers at MMIO_FIRST and above, and an L1 in which atomics work.
        read_alignment: what both addresses of a read from it must agree modulo (N19).
        cores: that run programs; the clock advances nodes that have some.
        coprocessor: has a Tensix coprocessor.
        compiled: number by which compiled code serves its NoC requests and windows, or 0.
        model: `module.Class` of this room that holds what its nodes hold (models.py).
    """

    endpoint_type: int
    interfaces: tuple[int, int] = (INTERFACE, INTERFACE)
    memory: int | None = None
    tile: bool = False
    read_alignment: int = 16
    cores: tuple[str, ...] = ()
    coprocessor: bool = False
    compiled: int = 0
    model: str = "identity.InterfaceNode"


KINDS: Final[dict[Kind, NodeKind]] = {
    Kind.TENSIX: NodeKind(
        0x0100,
        interfaces=TILE_INTERFACES,
        memory=L1_SIZE,
        tile=True,
        cores=tuple(CORE_NAMES),
        coprocessor=True,
        compiled=TENSIX,
        model="tensix.TensixNode",
    ),
    Kind.DRAM: NodeKind(
        0x0800,
        interfaces=DRAM_INTERFACES,
        memory=DRAM_CHANNEL,
        read_alignment=DRAM_READ_ALIGNMENT,
        compiled=DRAM,
        model="dram.DramNode",
    ),
    Kind.ETHERNET: NodeKind(  # its cores: not built
        0x0200, interfaces=TILE_INTERFACES, memory=ETHERNET_L1, tile=True, model="ethernet.EthernetTile"
    ),
    # read_alignment of the host: one source says 64, another ignores it
    Kind.PCIE: NodeKind(0x0300, read_alignment=1, model="pcie.PcieTile"),
    Kind.ARC: NodeKind(0x0500, read_alignment=4, model="arc.ArcTile"),
    Kind.L2CPU: NodeKind(0x0901),
    Kind.SECURITY: NodeKind(0x0A00),
    Kind.ROUTER: NodeKind(0, interfaces=(ROUTER_INTERFACE, ROUTER_INTERFACE)),
}

CLOCKED: Final[tuple[Node, ...]] = tuple(
    node
    for kind in KINDS
    if KINDS[kind].cores
    for node in sorted((node for node in NODES.values() if node.kind is kind), key=lambda node: node.index)
)
"""The nodes that the clock advances, in that order; the first are the Tensix tiles by number."""


class NodeModel(Protocol):
    """What a node holds, as the NoC and the host reach it."""

    def read(self, address: int, size: int, noc: int = 0) -> bytes:
        """Bytes of memory, or a register.

        Args:
            noc: through which the access comes.
        """

    def write(self, address: int, content: bytes, noc: int = 0) -> None:
        """Bytes into memory, or into a register."""

    def snapshot(self) -> Any:
        """What can change, unless another part of the chip keeps it (tiles, DRAM): then None."""

    def restore(self, state: Any) -> None:
        """Put it back."""
