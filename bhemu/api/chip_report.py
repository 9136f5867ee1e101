"""The result of a run of a chip, tile by tile, and what waits for what when nothing can proceed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bhemu.api.blocked import can_move, explain_all, is_stuck, waiting_threads
from bhemu.api.chip_tile import ChipTile
from bhemu.api.ethernet_tile import EthernetTile
from bhemu.api.summary import CoreSummary
from bhemu.checks import checked
from bhemu.chip.coordinates import Place, tile_place
from bhemu.chip.device import Device
from bhemu.machine.agents import CORES, T0

_WAYS: Final = 6
"""At most this many different ways of waiting are explained."""
_NAMED: Final = 8
"""At most this many tiles that wait in the same way are named."""


_ROWS: Final = 20
"""At most this many cores are in the table that a notebook shows."""


@dataclass(frozen=True)
class TileResult:
    """A tile at the end of a run.

    Attributes:
        clocks: from the start of the run until its last core proceeded.
        status: exit status of a program that called `exit` through semihosting, else None.
        cores: those out of reset.
    """

    clocks: int
    status: int | None
    cores: tuple[CoreSummary, ...]


@checked
@dataclass(frozen=True)
class ChipResult:
    """How a run of a chip ended.

    Attributes:
        reason: `done` (all cores of the named tiles halted or idle forever) or `until` (the condition came true).
        clocks: of the chip; of `done` until the last core of those tiles moved.
        tiles: the named tiles by their translated coordinates.
    """

    reason: str
    clocks: int
    tiles: dict[Place, TileResult]

    def plot(self, *, ax: Any = None) -> Any:
        """Draw the tiles with matplotlib, each in the colour of its clocks; returns the axes.

        Raises:
            ConfigurationError: matplotlib is not installed.
        """
        from bhemu.pictures.plot import grid

        return grid({place: tile.clocks for place, tile in self.tiles.items()}, "clocks until a tile was done", ax=ax)

    def _repr_html_(self) -> str:
        from bhemu.pictures import html

        rows = [
            (f"{x}-{y}", core.name, core.state, core.retired, core.place, tile.clocks)
            for (x, y), tile in self.tiles.items()
            for core in tile.cores
        ]
        shown = rows[:_ROWS]
        more = html.paragraph(f"and {len(rows) - len(shown)} more cores") if len(rows) > len(shown) else ""
        head = html.heading(f"{self.reason} after {self.clocks:,} clocks, {len(self.tiles)} tiles")
        return head + html.table(("tile", "core", "state", "instructions", "at", "clocks"), shown) + more

    def __getitem__(self, place: Place) -> TileResult:
        """A tile by its translated coordinates."""
        return self.tiles[place]


def explain_tiles(
    tiles: Iterable[ChipTile],
    polled: Mapping[Place, Mapping[int, dict[int, int]]] | None = None,
    ethernet: Iterable[EthernetTile] = (),
) -> str:
    """Who does what or waits for what, in a few lines: tiles that do the same are explained once.

    Args:
        tiles: Tensix tiles that are explained.
        polled: by Tensix tile, words that its running cores poll, by core; see `bhemu.api.polling`.
        ethernet: Ethernet tiles that are.
    """
    known = polled or {}
    texts = [(tile.place, tile.programs.explain(known.get(tile.place))) for tile in tiles]
    return alike(texts + [(tile.place, tile.explain()) for tile in ethernet])


def explain_device(device: Device, *, moving: bool = False) -> str:
    """What waits for what on a chip where nothing can proceed, without names of programs; empty when something can
    proceed, or nothing waits.

    Tiles are named by physical coordinates.

    Args:
        moving: say what all tiles do, also where something can proceed.
    """
    texts = []
    for index in range(len(device.tiles)):
        record = device.tiles[index]
        if can_move(record) and not moving:
            return ""
        if can_move(record) or waiting_threads(record) or any(is_stuck(record, core) for core in range(CORES)):
            text = explain_all(record, lambda _, pc: f"{pc:#07x}", lambda _: "", lambda thread, _: T0 + thread)
            texts.append((tile_place(index), text))
    return alike(texts)


def alike(explained: Iterable[tuple[Place, str]], most: int = _WAYS) -> str:
    """Lines for tiles and what each does; tiles that do the same are explained once.

    Args:
        explained: tiles and their texts.
        most: so many ways are explained.
    """
    ways: dict[str, list[str]] = {}
    for place, text in explained:
        ways.setdefault(text, []).append(f"{place[0]}-{place[1]}")
    lines = []
    for text, (first, *others) in list(ways.items())[:most]:
        lines += [f"  tile {first}", *(f"  {line}" for line in text.splitlines())]
        if others:
            more = f" and {len(others) - _NAMED} others" if len(others) > _NAMED else ""
            lines.append(f"  {len(others)} more {_tiles(others)} the same: {', '.join(others[:_NAMED])}{more}")
    rest = [name for names in list(ways.values())[most:] for name in names]
    if rest:
        lines.append(f"  {len(rest)} more {_tiles(rest)} in {len(ways) - most} other ways")
    return "\n".join(lines)


def _tiles(names: list[str]) -> str:
    return "tile" if len(names) == 1 else "tiles"
