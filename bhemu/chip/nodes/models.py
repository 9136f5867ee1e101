"""Which model a node has: one line for each kind that has more than its network interfaces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bhemu.chip.clock.clocks import Clocks
from bhemu.chip.coordinates import PCIE, Harvesting, Kind, Node
from bhemu.chip.nodes.arc import ArcTile
from bhemu.chip.nodes.dram import Dram, DramNode
from bhemu.chip.nodes.ethernet import EthernetTile
from bhemu.chip.nodes.identity import Identity, InterfaceNode
from bhemu.chip.nodes.kinds import NodeModel
from bhemu.chip.nodes.pcie import PcieTile
from bhemu.chip.nodes.tensix import TensixNode
from bhemu.chip.pcie.dma import HostMemory
from bhemu.chip.pcie.iatu import Iatu


@dataclass(frozen=True)
class Parts:
    """What models are made of.

    Attributes:
        harvesting: what the chip does not have.
        tiles: records of the Tensix tiles.
        clocks: moves them.
        dram: its channels.
        host: memory of the host.
        iatu: translates the chip's accesses to it.
    """

    harvesting: Harvesting
    tiles: np.ndarray[Any, Any]
    clocks: Clocks
    dram: list[Dram]
    host: HostMemory
    iatu: Iatu


_MODELS: Final[dict[Kind, Callable[[Identity, Parts], NodeModel]]] = {
    Kind.TENSIX: lambda identity, parts: TensixNode(identity.node, parts.tiles, parts.clocks),
    Kind.DRAM: lambda identity, parts: DramNode(identity, parts.dram[identity.node.index]),
    Kind.ETHERNET: lambda identity, parts: EthernetTile(identity),
    Kind.ARC: lambda identity, parts: ArcTile(identity, parts.harvesting, lambda: parts.clocks.time),
    Kind.PCIE: lambda identity, parts: PcieTile(identity, parts.host, parts.iatu),
}


def model_of(node: Node, identity: Identity, parts: Parts) -> NodeModel:
    """A new model of a node; the second PCIe tile is not connected."""
    unconnected = node.kind is Kind.PCIE and node.place != PCIE[0]
    if node.kind not in _MODELS or unconnected:
        return InterfaceNode(identity)
    return _MODELS[node.kind](identity, parts)
