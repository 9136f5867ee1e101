"""The kinds of nodes: what the chip knows of each, and the interface that each has.

The NoC, the host's windows and the clock ask this table, and know no kind by name where a column answers. A kind with
cores of its own needs a row here, its places in chip/coordinates.py, a module of this room and its lines in
nodes/access.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from bhemu.chip.coordinates import NODES, Kind, Node
from bhemu.chip.coordinates import PCIE as PCIE_PLACES
from bhemu.isa.memory_map import ETHERNET_L1, region
from bhemu.machine.agents import CORE_NAMES, ETHERNET_CORES
from bhemu.machine.state import L1_SIZE
from bhemu.tile.noc.soundness import CHECKS_ITSELF

# Numbers by which compiled code knows what a node holds (nodes/access.py)
TENSIX: Final = 1
DRAM: Final = 2
ETHERNET: Final = 3
PCIE: Final = 4
ARC: Final = 5
INTERFACES: Final = 6
"""Nothing but the registers of its network interfaces."""

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
        holds: number by which compiled code knows what it holds.
    """

    endpoint_type: int
    interfaces: tuple[int, int] = (INTERFACE, INTERFACE)
    memory: int | None = None
    tile: bool = False
    read_alignment: int = 16
    cores: tuple[str, ...] = ()
    coprocessor: bool = False
    holds: int = INTERFACES


KINDS: Final[dict[Kind, NodeKind]] = {
    Kind.TENSIX: NodeKind(
        0x0100,
        interfaces=TILE_INTERFACES,
        memory=L1_SIZE,
        tile=True,
        cores=tuple(CORE_NAMES),
        coprocessor=True,
        holds=TENSIX,
    ),
    Kind.DRAM: NodeKind(
        0x0800,
        interfaces=DRAM_INTERFACES,
        memory=DRAM_CHANNEL,
        read_alignment=DRAM_READ_ALIGNMENT,
        holds=DRAM,
    ),
    Kind.ETHERNET: NodeKind(
        0x0200,
        interfaces=TILE_INTERFACES,
        memory=ETHERNET_L1,
        tile=True,
        cores=tuple(ETHERNET_CORES.values()),
        holds=ETHERNET,
    ),
    Kind.PCIE: NodeKind(0x0300, read_alignment=1, holds=PCIE),  # of the host: one source says 64, another ignores it
    Kind.ARC: NodeKind(0x0500, read_alignment=4, holds=ARC),
    Kind.L2CPU: NodeKind(0x0901),
    Kind.SECURITY: NodeKind(0x0A00),
    Kind.ROUTER: NodeKind(0, interfaces=(ROUTER_INTERFACE, ROUTER_INTERFACE)),
}

MEMORY: Final = np.full(1 + INTERFACES, CHECKS_ITSELF, np.int64)
READ_ALIGNMENT: Final = np.zeros(1 + INTERFACES, np.int64)
IS_TILE: Final = np.zeros(1 + INTERFACES, np.bool_)
"""`memory`, `read_alignment` and `tile` by what a node holds, for compiled code."""
for _kind in KINDS.values():
    READ_ALIGNMENT[_kind.holds] = _kind.read_alignment
    IS_TILE[_kind.holds] = _kind.tile
    MEMORY[_kind.holds] = CHECKS_ITSELF if _kind.memory is None else _kind.memory

CLOCKED: Final[tuple[Node, ...]] = tuple(
    sorted((node for node in NODES.values() if KINDS[node.kind].cores), key=lambda node: node.tile)
)
"""The nodes that the clock advances, in that order: that of their records."""


def holds(node: Node) -> int:
    """What a node holds, as compiled code knows it; the second PCIe tile is not connected."""
    unconnected = node.kind is Kind.PCIE and node.place != PCIE_PLACES[0]
    return INTERFACES if unconnected else KINDS[node.kind].holds
