"""A tile of a chip as a debugger sees it."""

from __future__ import annotations

import numpy as np

from bhemu.api.chip import Chip
from bhemu.api.chip_tile import ChipTile
from bhemu.api.tile import Snapshot
from bhemu.api.tile_programs import TilePrograms
from bhemu.api.tile_view import TileView
from bhemu.chip.coordinates import Place


class DebuggedTile(TileView):
    """A tile of a chip; reading and writing do not bring it to another clock.

    Attributes:
        place: translated coordinates.
        index: number of the tile in the full grid.
        programs: of its cores.
    """

    def __init__(self, chip: Chip, tile: ChipTile) -> None:
        super().__init__(tile.untouched())
        self.place: Place = tile.place
        self.index: int = tile.node.index
        self.programs: TilePrograms = tile.programs
        self._bytes = chip.device.tiles[self.index : self.index + 1].view(np.ndarray).view(np.uint8)

    def snapshot(self) -> Snapshot:
        """A copy of the tile's whole state; it is good for this tile only."""
        return Snapshot(self._bytes.copy())

    def restore(self, snapshot: Snapshot) -> None:
        """Put the tile back into a snapshot's state."""
        self._bytes[...] = snapshot.content_for(self._bytes.size)
