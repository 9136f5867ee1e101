"""A Blackhole chip as its host sees it: PCI accesses and clocks in, bytes and exceptions out (tile H)."""

from __future__ import annotations

from typing import Any

from bhemu.chip.clock.clocks import QUANTUM, Clocks
from bhemu.chip.coordinates import (
    NODES,
    RAW_ROWS,
    SIMULATOR,
    TENSIX_COLUMNS,
    TENSIX_TILES,
    WIDTH,
    Harvesting,
    Node,
    Place,
    translation,
)
from bhemu.chip.noc.network import Network
from bhemu.chip.noc.translation_tables import program_tables
from bhemu.chip.nodes.dram import CHANNELS, Dram
from bhemu.chip.nodes.identity import Identity
from bhemu.chip.nodes.kinds import NodeModel
from bhemu.chip.nodes.models import Parts, model_of
from bhemu.chip.pcie.bars import Bars
from bhemu.chip.pcie.dma import HostMemory
from bhemu.chip.pcie.iatu import Iatu
from bhemu.chip.pcie.pci import ConfigSpace
from bhemu.chip.snapshot import LAYOUT, DeviceState, copy_pages, put_pages
from bhemu.chip.state import new_chip
from bhemu.errors import UndefinedBehavior
from bhemu.machine.state import new_tiles
from bhemu.tile.cores import Cores


class Device:
    """The chip as its host drives it: the device behind PCI.

    Args:
        harvesting: what it does not have; by default the coordinate table of the official simulator (N8).
        simulator_order: queue the coprocessors' words as the official simulator does, so that runs take the same number
            of clocks (E43), and translate the coordinates of NoC requests by its fixed table (N8).
        host: memory of the host, for accesses of the chip to it.
        allow_open: use the recommended choice where no source settles what silicon does, instead of refusing.
        quantum: clocks that tiles may run ahead of each other, at most (chip/clock/run.py); 1: none.
        threads: of the host, that tiles run on. Results are the same for any number.
    """

    def __init__(
        self,
        harvesting: Harvesting = SIMULATOR,
        *,
        simulator_order: bool = False,
        allow_open: bool = False,
        host: HostMemory | None = None,
        quantum: int = QUANTUM,
        threads: int = 1,
    ) -> None:
        self.translation = translation(harvesting)
        self.tiles = new_tiles(TENSIX_TILES)
        program_tables(self.tiles, self.translation, tuple(TENSIX_COLUMNS[n] for n in harvesting.columns))
        self.tiles["simulator_order"] = int(simulator_order)
        self.tiles["allow_open"] = int(allow_open)
        self.pci = ConfigSpace()
        self.record: Any = new_chip(self.tiles, self.translation, named=simulator_order)
        self.dram = [Dram(channel, self.record["page"][0, channel]) for channel in range(CHANNELS)]
        self._harvesting = harvesting
        self._simulator_order = simulator_order
        self._logical = {physical: place for place, physical in sorted(self.translation.items(), key=lambda p: p[0][1])}
        self._models: dict[Place, NodeModel] = {}
        self.iatu = Iatu()
        self.host = host or HostMemory()
        self.bars = Bars(self, self.host, self.iatu, self.record["window_words"][0], self.record["window_kind"][0])
        self.clocks = Clocks(self.record, self.tiles, self._carry_out, quantum=quantum, threads=threads)
        self._parts = Parts(harvesting, self.tiles, self.clocks, self.dram, self.host, self.iatu)
        self._network = Network(
            self.record[0],
            self.tiles,
            self.dram,
            self._model,
            self.clocks.cores,
            self.clocks.transfer,
            self.node if simulator_order else None,
        )

    def _carry_out(self, index: int, number: int, in_turn: bool) -> None:
        """Carry out a NoC request of a tile that compiled code has left."""
        self._network.carry_out(index, number, in_turn)

    @property
    def open_choices(self) -> list[int]:
        """Fault codes of the open cases in which a tile used the recommended choice."""
        return sorted({int(code) for code in self.tiles["open_used"].flat if code})

    # --- time ---------------------------------------------------------------------------------------------------------

    @property
    def time(self) -> int:
        """Clocks that have passed."""
        return self.clocks.time

    def clock(self, clocks: int) -> None:
        """Let clocks pass.

        Raises:
            BhemuError: an instruction was refused.
        """
        self.clocks.advance(clocks)

    def cores(self, index: int) -> Cores:
        """The cores of a Tensix tile as they are now; the host may change them."""
        return self.clocks.touch(index)

    def touch(self, index: int) -> Cores:
        """Before a Tensix tile is changed: bring it to the chip's time; it moves from then on."""
        return self.clocks.touch(index)

    # --- nodes --------------------------------------------------------------------------------------------------------

    def node(self, place: tuple[int, int], noc: int = 0) -> Node:
        """The node at translated coordinates (N7).

        They are the same on both NoCs, except that x of the top two rows is that of the NoC itself.

        Raises:
            UndefinedBehavior: nothing is there.
        """
        if place not in self.translation:
            raise UndefinedBehavior(
                f"coordinates {place[0]}-{place[1]} name no tile",
                remedy="Tensix tiles are x 1 to 7 and 10 to 16, y 2 to 11; DRAM x 17 and 18, y 12 to 23",
            )
        x, y = self.translation[place]
        return NODES[(WIDTH - 1 - x, y) if noc and place[1] < RAW_ROWS else (x, y)]

    def _identity(self, node: Node) -> Identity:
        return Identity(node, self._logical.get(node.place, node.place))

    def _model(self, node: Node) -> NodeModel:
        """What answers in a node."""
        model = self._models.get(node.place)
        if model is None:
            model = self._models[node.place] = model_of(node, self._identity(node), self._parts)
        return model

    def read_node(self, node: Node, address: int, size: int, noc: int = 0) -> bytes:
        """Bytes of a node's memory, or one of its registers.

        Args:
            noc: through which the access comes.
        """
        return self._model(node).read(address, size, noc)

    def write_node(self, node: Node, address: int, content: bytes, noc: int = 0) -> None:
        """Bytes into a node's memory, or into one of its registers; see `read_node`."""
        self._model(node).write(address, content, noc)

    # --- copies -------------------------------------------------------------------------------------------------------

    def snapshot(self) -> DeviceState:
        """A copy of everything that the chip holds; memory of the host is not part of it."""
        states = {place: model.snapshot() for place, model in self._models.items()}
        return DeviceState(
            layout=LAYOUT,
            harvesting=self._harvesting,
            simulator_order=self._simulator_order,
            tiles=copy_pages(self.tiles),
            clocks=self.clocks.snapshot(),
            dram=tuple(channel.snapshot() for channel in self.dram),
            nodes={place: state for place, state in states.items() if state is not None},
            pci=self.pci.snapshot(),
            iatu=self.iatu.snapshot(),
            bars=self.bars.snapshot(),
        )

    def restore(self, state: DeviceState) -> None:
        """Put the chip back into the state of a copy.

        Raises:
            ConfigurationError: the copy is of a chip with other harvesting or order of words, or of another version of
                bhemu.
        """
        state.check(self._harvesting, self._simulator_order)
        put_pages(self.tiles, state.tiles)
        for channel, pages in zip(self.dram, state.dram, strict=True):
            channel.restore(pages)
        self._models.clear()
        for place, content in state.nodes.items():
            self._model(NODES[place]).restore(content)
        self.pci.restore(state.pci)
        self.iatu.restore(state.iatu)
        self.bars.restore(state.bars)
        self.clocks.restore(state.clocks)

    def __getstate__(self) -> tuple[dict[str, Any], DeviceState]:
        """What `copy` and `pickle` take: how the card was made, and its state."""
        settings = {
            "harvesting": self._harvesting,
            "simulator_order": self._simulator_order,
            "allow_open": bool(self.tiles["allow_open"][0]),
            "host": self.host,
            "quantum": int(self.record["quantum"][0]),
            "threads": self.clocks.threads,
        }
        return settings, self.snapshot()

    def __setstate__(self, state: tuple[dict[str, Any], DeviceState]) -> None:
        settings, content = state
        Device.__init__(self, **settings)
        self.restore(content)

    # --- PCI memory ---------------------------------------------------------------------------------------------------

    def read(self, paddr: int, size: int) -> bytes:
        """Bytes at a physical address inside a BAR (H5)."""
        return self.bars.read(paddr, size)

    def write(self, paddr: int, content: bytes) -> None:
        """Bytes to a physical address inside a BAR (H5)."""
        self.bars.write(paddr, content)
