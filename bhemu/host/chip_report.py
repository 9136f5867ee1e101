"""What a run of a chip has come to, tile by tile, and who waits for what when nothing can move."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from bhemu.chip.coordinates import Place
from bhemu.host.chip_tile import ChipTile
from bhemu.host.summary import CoreSummary

_WAYS: Final = 6
"""So many different ways of waiting are explained."""
_NAMED: Final = 8
"""So many tiles that wait in the same way are named."""


@dataclass(frozen=True)
class TileResult:
    """A tile at the end of a run.

    Attributes:
        clocks: from the begin of the run until its last core moved.
        cores: those out of reset.
    """

    clocks: int
    cores: tuple[CoreSummary, ...]


@dataclass(frozen=True)
class ChipResult:
    """How a run of a chip ended.

    Attributes:
        reason: `done` (all cores of the named tiles halted or idle for ever) or `until` (the condition came true).
        clocks: of the chip; of `done` until the last core of those tiles moved.
        tiles: the named tiles by their translated coordinates.
    """

    reason: str
    clocks: int
    tiles: dict[Place, TileResult]

    def __getitem__(self, place: Place) -> TileResult:
        """A tile by its translated coordinates."""
        return self.tiles[place]


def result_of(tile: ChipTile, clocks: int) -> TileResult:
    """A tile as it stands, whose last core moved after so many clocks of the run."""
    return TileResult(clocks, tile.programs.summary())


def explain_tiles(tiles: Iterable[ChipTile]) -> str:
    """Who does what or waits for what, in a few lines: tiles that do the same are explained once."""
    ways: dict[str, list[ChipTile]] = {}
    for tile in tiles:
        ways.setdefault(tile.programs.explain(), []).append(tile)
    lines = []
    for text, alike in list(ways.items())[:_WAYS]:
        first, others = alike[0], alike[1:]
        lines += [f"  tile {_name(first)}", *(f"  {line}" for line in text.splitlines())]
        if others:
            named = ", ".join(_name(tile) for tile in others[:_NAMED])
            more = f" and {len(others) - _NAMED} others" if len(others) > _NAMED else ""
            lines.append(f"  {len(others)} more tile{'s' if len(others) > 1 else ''} the same: {named}{more}")
    rest = [tile for alike in list(ways.values())[_WAYS:] for tile in alike]
    if rest:
        lines.append(f"  {len(rest)} more tile{'s' if len(rest) > 1 else ''} in {len(ways) - _WAYS} other ways")
    return "\n".join(lines)


def _name(tile: ChipTile) -> str:
    return f"{tile.place[0]}-{tile.place[1]}"
