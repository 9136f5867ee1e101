"""Which tile is where: physical coordinates, harvesting, the translated coordinates of clients (tile N1 to N9, E30).

Physical coordinates are (x, y), 0 <= x < 17 and 0 <= y < 12; translated ones reach up to (31, 30).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

import bhemu.checks as checks
from bhemu.checks import checked
from bhemu.errors import ConfigurationError

Place = tuple[int, int]

WIDTH: Final = 17
HEIGHT: Final = 12
X_LSB: Final = 4
"""Compiled code has a physical place as x << X_LSB | y."""
Y_MASK: Final = (1 << X_LSB) - 1
TENSIX_COLUMNS: Final = (*range(1, 8), *range(10, 17))
TENSIX_ROWS: Final = tuple(range(2, 12))
RAW_ROWS: Final = 2
"""Number of top rows whose coordinates are not translated (N7)."""
TENSIX_TILES: Final = len(TENSIX_COLUMNS) * len(TENSIX_ROWS)
ETHERNET_TILES: Final = 14
TILES: Final = TENSIX_TILES + ETHERNET_TILES
"""Tiles with cores: first the Tensix tiles, then the Ethernet tiles."""
DRAM_CHANNELS: Final = 8
_DRAM_ROWS: Final = ((0, 1, 11), (2, 3, 10), (4, 8, 9), (5, 6, 7))
"""Rows of the three ports of channels 0 to 3, and at x = 9 of channels 4 to 7 (N2)."""
_DRAM_GROUPS: Final = ((0, 1, 11), (2, 10, 3), (9, 4, 8), (5, 7, 6))
"""The same rows in the order of translated coordinates (N7)."""
ETHERNET_ROW: Final = 1
_ETHERNET_COLUMNS: Final = (1, 16, 2, 15, 3, 14, 4, 13, 5, 12, 6, 11, 7, 10)
PCIE: Final = ((2, 0), (11, 0))
ARC: Final = (8, 0)
_L2CPU: Final = ((8, 3), (8, 9), (8, 5), (8, 7))
SECURITY: Final = (8, 2)


class Kind(Enum):
    """What a node of the grid is."""

    TENSIX = "Tensix"
    DRAM = "DRAM"
    PCIE = "PCIe"
    ARC = "ARC"
    ETHERNET = "Ethernet"
    L2CPU = "L2CPU"
    SECURITY = "security"
    ROUTER = "router only"


@dataclass(frozen=True)
class Node:
    """A node of the grid.

    Attributes:
        kind: what it is.
        index: number of the tile among its kind; of DRAM, the channel.
        place: physical coordinates.
    """

    kind: Kind
    index: int
    place: Place

    @property
    def tile(self) -> int:
        """Number of the record of a tile with cores.

        Raises:
            ValueError: the node has no cores.
        """
        if self.kind is Kind.ETHERNET:
            return TENSIX_TILES + self.index
        if self.kind is not Kind.TENSIX:
            raise ValueError(f"a {self.kind.value} node has no cores")
        return self.index


ETHERNET_PLACES: Final = tuple((20 + n, 25) for n in range(12))
"""Translated coordinates of the Ethernet tiles that a product has (N7)."""


def tensix_index(place: Place) -> int:
    """Number of the Tensix tile at physical coordinates, row by row (N2)."""
    return TENSIX_COLUMNS.index(place[0]) + len(TENSIX_COLUMNS) * (place[1] - TENSIX_ROWS[0])


def tensix_place(index: int) -> Place:
    """Physical coordinates of a Tensix tile."""
    row, column = divmod(index, len(TENSIX_COLUMNS))
    return TENSIX_COLUMNS[column], TENSIX_ROWS[row]


def tile_place(tile: int) -> Place:
    """Physical coordinates of a tile with cores, by the number of its record."""
    return tensix_place(tile) if tile < TENSIX_TILES else (_ETHERNET_COLUMNS[tile - TENSIX_TILES], ETHERNET_ROW)


def _nodes() -> dict[Place, Node]:
    nodes = {(x, y): Node(Kind.ROUTER, 0, (x, y)) for x in range(WIDTH) for y in range(HEIGHT)}

    def put(kind: Kind, index: int, place: Place) -> None:
        nodes[place] = Node(kind, index, place)

    for y in TENSIX_ROWS:
        for x in TENSIX_COLUMNS:
            put(Kind.TENSIX, tensix_index((x, y)), (x, y))
    for channel in range(DRAM_CHANNELS):
        for y in _DRAM_ROWS[channel % 4]:
            put(Kind.DRAM, channel, (9 if channel >= 4 else 0, y))
    for index, place in enumerate(PCIE):
        put(Kind.PCIE, index, place)
    put(Kind.ARC, 0, ARC)
    for index, x in enumerate(_ETHERNET_COLUMNS):
        put(Kind.ETHERNET, index, (x, ETHERNET_ROW))
    for index, place in enumerate(_L2CPU):
        put(Kind.L2CPU, index, place)
    put(Kind.SECURITY, 0, SECURITY)
    return nodes


NODES: Final = _nodes()
"""Every node by its physical coordinates."""


@checked
@dataclass(frozen=True)
class Harvesting:
    """What of the full part a product does not have.

    Attributes:
        columns: numbers (0 to 13, from the left) of Tensix columns that are off.
        dram: the DRAM channel that is off, or None.
        ethernet: the two Ethernet tiles that are off: one of 4 to 6, one of 7 to 9 of the order of N2.
    """

    columns: tuple[int, ...] = ()
    dram: int | None = None
    ethernet: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for what, numbers, known in (
            ("Tensix columns", self.columns, TENSIX_COLUMNS),
            ("Ethernet tiles", self.ethernet, _ETHERNET_COLUMNS),
        ):
            off = [checks.integer(number, f"one of the {what}") for number in checks.items(numbers, what)]
            if len(set(off)) < len(off) or any(not 0 <= number < len(known) for number in off):
                raise ConfigurationError(
                    f"{what} {numbers} are off", remedy=f"name each once; they are numbered 0 to {len(known) - 1}"
                )
        if self.dram is not None and not 0 <= checks.integer(self.dram, "dram") < DRAM_CHANNELS:
            raise ConfigurationError(f"DRAM channel {self.dram}", remedy="channels are numbered 0 to 7")


def translation(harvesting: Harvesting) -> dict[Place, Place]:
    """Physical coordinates by translated ones, as the firmware of a card programs the tables (N7).

    Rows 0 and 1 are not translated; both NoCs have the same table.
    """
    table = {(x, y): (x, y) for x in range(WIDTH) for y in range(2)}
    good = [x for n, x in enumerate(TENSIX_COLUMNS) if n not in harvesting.columns]
    off = [TENSIX_COLUMNS[n] for n in sorted(harvesting.columns)]
    physical = dict(zip(TENSIX_COLUMNS, [*good, *reversed(off)], strict=True))
    table |= {(x, y): (physical.get(x, x), y) for x in range(WIDTH) for y in TENSIX_ROWS}
    bad = harvesting.dram
    west, east = (0, 9) if bad is None or bad >= 4 else (9, 0)
    groups = list(_DRAM_GROUPS)
    if bad is not None:
        groups.append(groups.pop(bad % 4))  # in both columns: the channel that is off and its mirror come last
    rows = [row for group in groups for row in group]
    table |= {(17, 12 + n): (west, row) for n, row in enumerate(rows)}
    table |= {(18, 12 + n): (east, row) for n, row in enumerate(rows)}
    table[19, 24] = PCIE[0]
    ethernet = [n for n in range(len(_ETHERNET_COLUMNS)) if n not in harvesting.ethernet]
    places = zip(ETHERNET_PLACES, ethernet, strict=False)  # the full part has two more
    table |= {place: (_ETHERNET_COLUMNS[e], ETHERNET_ROW) for place, e in places}
    table |= {(8, 26 + n): place for n, place in enumerate(_L2CPU)}
    table[8, 30] = SECURITY
    return table


SIMULATOR: Final = Harvesting(dram=2)
"""The official simulator's table is that of such a card, although it reports that nothing is off (N8, E49, E56)."""
