"""Chips that a worker has, as the leader reaches them: programs, and memory of their nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from bhemu import checks
from bhemu.api.chip import File
from bhemu.api.chip_memory import DramBank, InterleavedDram, dram_places
from bhemu.api.ethernet_tile import EthernetCores
from bhemu.api.node_memory import NodeMemory, TensixMemory
from bhemu.checks import checked
from bhemu.chip.coordinates import ETHERNET_PLACES, NODES, TENSIX_COLUMNS, TENSIX_ROWS, Node, Place, translation
from bhemu.cluster.topology import ChipOf
from bhemu.errors import UndefinedBehavior
from bhemu.loader.elf import Executable, load_elf

Ask = Callable[..., Any]
"""Asks the owner of a chip: the name of a command (bhemu/hosts/commands.py), and what follows the chip's number."""


class RemoteDevice:
    """What memory of a chip is reached through."""

    def __init__(self, ask: Ask, described: ChipOf) -> None:
        self.ask = ask
        self.translation = translation(described.harvesting)
        self._places = {node: place for place, node in self.translation.items()}

    def node(self, place: Place) -> Node:
        """The node at translated coordinates."""
        return NODES[self.translation[place]]

    def read_node(self, node: Node, address: int, size: int) -> bytes:
        """Bytes of a node's memory, or one of its registers."""
        content: bytes = self.ask("read", self._places[node.place], address, size)
        return content

    def write_node(self, node: Node, address: int, content: bytes) -> None:
        """Bytes into a node's memory, or into one of its registers."""
        self.ask("write", self._places[node.place], address, bytes(content))


class _RemoteNode(NodeMemory):
    """A tile at translated coordinates."""

    _device: RemoteDevice
    _whole = "cluster"

    def __init__(self, device: RemoteDevice, place: Place) -> None:
        self._device = device
        self.place = place
        self.node = device.node(place)

    def __repr__(self) -> str:
        text: str = self._device.ask("cores", self.place)
        return text


@checked
class RemoteTile(_RemoteNode, TensixMemory):
    """A Tensix tile of a chip that a worker has: memory and registers as the NoC reaches them, and tensors in L1."""


@checked
class RemoteEthernetTile(_RemoteNode, EthernetCores):
    """An Ethernet tile of a chip that a worker has: its memory and registers, and its cores' start.

    Attributes:
        channel: its number among those that the product has.
    """

    def __init__(self, device: RemoteDevice, place: Place, channel: int) -> None:
        _RemoteNode.__init__(self, device, place)
        self.channel = channel


@checked
class RemoteChip:
    """A chip of a cluster that a worker has. What it does not offer, a snapshot does, restored in one process.

    Attributes:
        number: of the chip.
        tensix: the Tensix tiles that the product has, row by row.
        ethernet: the Ethernet tiles that it has, by channel.
        dram: the DRAM banks that it has.
        interleaved: all of them as one memory, page by page.
    """

    def __init__(self, number: int, described: ChipOf, ask: Ask) -> None:
        self.number = number
        self._ask = ask
        device = RemoteDevice(ask, described)
        off = described.harvesting
        columns = TENSIX_COLUMNS[: len(TENSIX_COLUMNS) - len(set(off.columns))]
        self.tensix = tuple(RemoteTile(device, (x, y)) for y in TENSIX_ROWS for x in columns)
        self._by_place = {tile.place: tile for tile in self.tensix}
        self.ethernet = tuple(
            RemoteEthernetTile(device, place, channel)
            for channel, place in enumerate(ETHERNET_PLACES)
            if place in device.translation
        )
        banks = (DramBank(device, place) for place in dram_places())
        self.dram = tuple(bank for bank in banks if bank.node.index != off.dram)
        self.interleaved = InterleavedDram(self.dram)

    def __getitem__(self, place: Place) -> RemoteTile:
        """The Tensix tile at translated coordinates (x, y).

        Raises:
            UndefinedBehavior: there is none.
        """
        place = checks.place(place)
        if place not in self._by_place:
            raise UndefinedBehavior(f"{place[0]}-{place[1]} is not a Tensix tile of this chip", remedy="see its tensix")
        return self._by_place[place]

    def load(
        self,
        programs: File | Mapping[str, File],
        core: str | None = None,
        *,
        tiles: RemoteTile | Place | Iterable[RemoteTile | Place] | None = None,
    ) -> tuple[str, ...]:
        """Put programs into memory of tiles; see `Chip.load`. Files are read here."""
        named = programs.items() if isinstance(programs, Mapping) else [(core, programs)]
        files = tuple((name, *_content(file)) for name, file in named)
        loaded: tuple[str, ...] = self._ask("load", files, _places(tiles))
        return loaded

    def start(self, *cores: str, tiles: RemoteTile | Place | Iterable[RemoteTile | Place] | None = None) -> None:
        """Release cores from reset; see `Chip.start`."""
        self._ask("start", cores, _places(tiles))

    def hold(self, *cores: str, tiles: RemoteTile | Place | Iterable[RemoteTile | Place] | None = None) -> None:
        """Put cores into reset; see `Chip.hold`."""
        self._ask("hold", cores, _places(tiles))

    @property
    def time(self) -> int:
        """Clocks that have passed on its worker."""
        passed: int = self._ask("chip_time")
        return passed

    def __repr__(self) -> str:
        return f"<chip {self.number} of a cluster: {len(self.tensix)} Tensix tiles>"


def _content(file: File) -> tuple[str, bytes]:
    """Name and bytes of an ELF file."""
    if isinstance(file, Executable):
        return str(file.path), file.content
    known = load_elf(file)
    return str(known.path), known.content


def _places(tiles: Any) -> tuple[Place, ...] | None:
    """Coordinates of the tiles that an argument `tiles` names."""
    if tiles is None:
        return None
    if isinstance(tiles, RemoteTile):
        return (tiles.place,)
    found = checks.items(tiles, "tiles")
    if len(found) == 2 and all(isinstance(item, (int, np.integer)) for item in found):
        return (checks.place(found),)
    return tuple(item.place if isinstance(item, RemoteTile) else checks.place(item, "a tile") for item in found)
