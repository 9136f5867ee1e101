"""Making the models of nodes: a model gets the parts of the chip that its constructor names."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from bhemu.chip.clock.clocks import Clocks
from bhemu.chip.coordinates import PCIE, Harvesting, Kind, Node
from bhemu.chip.nodes.dram import Dram
from bhemu.chip.nodes.identity import Identity, InterfaceNode
from bhemu.chip.nodes.kinds import KINDS, NodeModel
from bhemu.chip.pcie.dma import HostMemory
from bhemu.chip.pcie.iatu import Iatu


@dataclass(frozen=True)
class Parts:
    """What models are made of, by the names of their constructors' arguments; `identity` is the node's own.

    Attributes:
        harvesting: what the chip does not have.
        tiles: records of the Tensix tiles.
        clocks: advances them.
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

    def time(self) -> int:
        """The chip's clock."""
        return self.clocks.time


def model_of(node: Node, identity: Identity, parts: Parts) -> NodeModel:
    """A new model of a node; the second PCIe tile is not connected."""
    if node.kind is Kind.PCIE and node.place != PCIE[0]:
        return InterfaceNode(identity)
    module, name = KINDS[node.kind].model.split(".")
    model = getattr(import_module(f"bhemu.chip.nodes.{module}"), name)
    wanted = [part for part in inspect.signature(model).parameters if part != "identity"]
    made: NodeModel = model(identity, **{part: getattr(parts, part) for part in wanted})
    return made
