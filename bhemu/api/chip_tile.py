"""A Tensix tile of a chip: memory, registers and cores as `bhemu.Tile` has them, and what the NoC reaches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from bhemu.api.node_memory import TensixMemory
from bhemu.api.tile_programs import TilePrograms
from bhemu.api.tile_view import TileView
from bhemu.chip.coordinates import Node, Place
from bhemu.chip.device import Device
from bhemu.tensix.coprocessor import Coprocessor
from bhemu.tile.cores import Cores


class ChipTile(TensixMemory, TileView):
    """A Tensix tile of a `bhemu.Chip`: `chip[1, 2]`.

    Arrays and registers that it gives stay those of the tile, whatever the chip does, and what is written to them takes
    effect with the next clock.

    Attributes:
        place: translated coordinates (x, y).
        node: the same place in physical coordinates, and the tile's number in the full grid.
    """

    _device: Device

    def __init__(self, device: Device, place: Place, expose: Callable[[int], None]) -> None:
        self._device = device
        self._expose = expose
        self._names: TilePrograms | None = None
        self.place = place
        self.node: Node = device.node(place)

    def touch(self) -> Cores:
        """The cores, before the host changes something in the tile: brings the tile to the chip's time."""
        return self._device.touch(self.node.index)

    def untouched(self) -> Cores:
        """The cores, when nothing in the tile is to change: the tile need not be brought to the chip's time."""
        return self._device.clocks.cores(self.node.index)

    @property
    def cores(self) -> Cores:
        """The cores: `tile.cores["T0"]` is a `CoreView`. The chip's clock moves them, `chip.clock` and `chip.run`."""
        self._expose(self.node.index)
        return self.touch()

    @property
    def record(self) -> Any:
        """Everything, as the machine keeps it."""
        return self.cores.record

    @property
    def coprocessor(self) -> Coprocessor:
        """The three threads."""
        return self.cores.coprocessor

    @property
    def state(self) -> Any:
        """The record, for reading only."""
        return self._device.tiles[self.node.index]

    @property
    def programs(self) -> TilePrograms:
        """The programs of the tile's cores; `Chip.load` and `Chip.start` serve many tiles at once."""
        if self._names is None:
            self._names = TilePrograms(self)
        return self._names

    @property
    def has_programs(self) -> bool:
        """True when programs of its cores are known."""
        return self._names is not None and bool(self._names.placements)

    def _repr_html_(self) -> str:
        from bhemu.api.html import tile_html

        self.touch()
        return tile_html(self.state, repr(self)[1:-1])

    def __repr__(self) -> str:
        states = ", ".join(f"{core.name} {core.state}" for core in map(self.touch().__getitem__, range(5)))
        return f"<tile {self.place[0]}-{self.place[1]}: {states}>"


Tiles = ChipTile | Place | Iterable[ChipTile | Place]
"""A tile, its translated coordinates, or several."""
