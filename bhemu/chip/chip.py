"""A Blackhole chip as its host sees it: PCI accesses and clocks in, bytes and exceptions out (tile H)."""

from __future__ import annotations

import struct
from typing import Any, Final

import numpy as np

from bhemu.chip.arc import ArcTile
from bhemu.chip.bars import Bars
from bhemu.chip.clocks import QUANTUM, Clocks, in_tile
from bhemu.chip.coordinates import (
    NODES,
    RAW_ROWS,
    SIMULATOR,
    TENSIX_COLUMNS,
    TENSIX_TILES,
    WIDTH,
    Harvesting,
    Kind,
    Node,
    translation,
)
from bhemu.chip.dma import HostMemory
from bhemu.chip.ethernet import EthernetTile
from bhemu.chip.iatu import Iatu
from bhemu.chip.identity import PAGE, Identity, InterfaceNode, check_word, describe
from bhemu.chip.memory import CHANNEL_BYTES, CHANNELS, Dram
from bhemu.chip.niu_tables import program_tables
from bhemu.chip.noc import Noc
from bhemu.chip.nodes import Nodes
from bhemu.chip.pci import ConfigSpace
from bhemu.chip.pcie_tile import PcieTile
from bhemu.chip.snapshot import LAYOUT, CardState, copy_pages, put_pages
from bhemu.chip.state import new_chip
from bhemu.errors import BhemuError, MemoryError_, UndefinedBehavior
from bhemu.isa.memory_map import region
from bhemu.machine.state import L1_SIZE, new_tiles
from bhemu.tile.cores import Cores
from bhemu.tile.noc.request import MMIO_FIRST

DRAM_INTERFACES: Final = tuple((1 << 40) + region(f"niu{noc}").base for noc in range(2))
"""Network interfaces of a DRAM node, above its memory."""
Endpoint = ArcTile | EthernetTile | PcieTile | InterfaceNode


class Chip:
    """One card.

    Args:
        harvesting: what it does not have; by default the coordinate table of the official simulator (N8).
        simulator_order: queue the coprocessors' words as the official simulator does, so that runs take the same number
            of clocks (E43), and translate the coordinates of NoC requests by its fixed table (N8).
        host: memory of the host, for accesses of the chip to it.
        allow_open: use the recommended choice where no source settles what silicon does, instead of refusing.
        quantum: clocks that tiles may run ahead of each other, at most (chip/run.py); 1: none.
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
        self._endpoints: dict[Node, Endpoint] = {}
        self.iatu = Iatu()
        self.host = host or HostMemory()
        self.bars = Bars(self, self.host, self.iatu, self.record["window_words"][0], self.record["window_kind"][0])
        nodes = Nodes(self.tiles, self)
        self._noc = Noc(nodes, self.node if simulator_order else None)
        self.clocks = nodes.clocks = Clocks(
            self.record, self.tiles, self._noc.carry_out, quantum=quantum, threads=threads
        )

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

    def _endpoint(self, node: Node) -> Endpoint:
        """What answers in a node that is neither Tensix nor DRAM."""
        if node not in self._endpoints:
            identity = self._identity(node)
            if node.kind is Kind.ARC:
                self._endpoints[node] = ArcTile(identity, self._harvesting, lambda: self.time)
            elif node.kind is Kind.ETHERNET:
                self._endpoints[node] = EthernetTile(identity)
            elif node.kind is Kind.PCIE and node.index == 0:
                self._endpoints[node] = PcieTile(identity, self.host, self.iatu)
            else:
                self._endpoints[node] = InterfaceNode(identity)
        return self._endpoints[node]

    def read_node(self, node: Node, address: int, size: int, noc: int = 0) -> bytes:
        """Bytes of a tile's memory, or one of its registers.

        Args:
            noc: through which the access comes.
        """
        if node.kind is Kind.DRAM:
            if address < CHANNEL_BYTES:
                return self.dram[node.index].read(address, size)
            interface = _dram_interface(node, address, size)
            return struct.pack("<I", self._identity(node).read(interface, address - DRAM_INTERFACES[interface]))
        if node.kind is not Kind.TENSIX:
            return self._endpoint(node).read(address, size, noc)
        if address + size <= L1_SIZE:
            return self.tiles[node.index].l1[address : address + size].tobytes()  # type: ignore[no-any-return]
        _check_register(node, address, size)
        cores = self.clocks.touch(node.index)
        try:
            return struct.pack("<I", cores.load(address))
        except BhemuError as error:
            raise in_tile(node.index, error) from None

    def write_node(self, node: Node, address: int, content: bytes, noc: int = 0) -> None:
        """Bytes into a tile's memory, or into one of its registers; see `read_node`."""
        if node.kind is Kind.DRAM:
            if address >= CHANNEL_BYTES:
                interface = _dram_interface(node, address, len(content))
                self._identity(node).write(interface, address - DRAM_INTERFACES[interface])
            self.dram[node.index].write(address, content)
            return
        if node.kind is not Kind.TENSIX:
            self._endpoint(node).write(address, content, noc)
            return
        cores = self.clocks.touch(node.index)
        if address + len(content) <= L1_SIZE:
            self.tiles[node.index].l1[address : address + len(content)] = np.frombuffer(content, np.uint8)
            return
        _check_register(node, address, len(content))
        try:
            cores.store(address, struct.unpack("<I", content)[0])
        except BhemuError as error:
            raise in_tile(node.index, error) from None

    # --- copies -------------------------------------------------------------------------------------------------------

    def snapshot(self) -> CardState:
        """A copy of everything that the chip holds; memory of the host is not part of it."""
        return CardState(
            layout=LAYOUT,
            harvesting=self._harvesting,
            simulator_order=self._simulator_order,
            tiles=copy_pages(self.tiles),
            clocks=self.clocks.snapshot(),
            dram=tuple(channel.snapshot() for channel in self.dram),
            endpoints={node.place: endpoint.snapshot() for node, endpoint in self._endpoints.items()},
            pci=self.pci.snapshot(),
            iatu=self.iatu.snapshot(),
            bars=self.bars.snapshot(),
        )

    def restore(self, state: CardState) -> None:
        """Put the chip back into the state of a copy.

        Raises:
            ConfigurationError: the copy is of a chip with other harvesting or order of words, or of another version of
                bhemu.
        """
        state.check(self._harvesting, self._simulator_order)
        put_pages(self.tiles, state.tiles)
        for channel, pages in zip(self.dram, state.dram, strict=True):
            channel.restore(pages)
        self._endpoints.clear()
        for place, content in state.endpoints.items():
            self._endpoint(NODES[place]).restore(content)
        self.pci.restore(state.pci)
        self.iatu.restore(state.iatu)
        self.bars.restore(state.bars)
        self.clocks.restore(state.clocks)

    def __getstate__(self) -> tuple[dict[str, Any], CardState]:
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

    def __setstate__(self, state: tuple[dict[str, Any], CardState]) -> None:
        settings, content = state
        Chip.__init__(self, **settings)
        self.restore(content)

    # --- PCI memory ---------------------------------------------------------------------------------------------------

    def read(self, paddr: int, size: int) -> bytes:
        """Bytes at a physical address inside a BAR (H5)."""
        return self.bars.read(paddr, size)

    def write(self, paddr: int, content: bytes) -> None:
        """Bytes to a physical address inside a BAR (H5)."""
        self.bars.write(paddr, content)


def _dram_interface(node: Node, address: int, size: int) -> int:
    """Which network interface of a DRAM node an address above its memory belongs to."""
    for noc, page in enumerate(DRAM_INTERFACES):
        if page <= address < page + PAGE:
            check_word(node, address, size)
            return noc
    raise MemoryError_(
        f"{describe(node)}: {size} bytes at {address:#x}, a channel has 4 GiB", remedy="use addresses 0 to 0xffffffff"
    )


def _check_register(node: Node, address: int, size: int) -> None:
    if address < MMIO_FIRST:
        raise MemoryError_(
            f"{describe(node)}: {size} bytes at {address:#x}, L1 ends at {L1_SIZE:#x}",
            remedy=f"stay inside L1, or use registers from {region('tdma').base:#x} on",
        )
    check_word(node, address, size)
