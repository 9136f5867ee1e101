"""Which chips there are, and which Ethernet tiles are joined: descriptions of systems as data (ethernet 5, 6).

A description is a YAML file; those that come with bhemu are in `topologies`:

    name: pair
    latency: 256            # clocks that a frame takes over a link; left out: 256
    chips:
      - board_id: [0x440, 1]    # high and low half
        asic_location: 0
        asic_id: 1          # left out: 1 + the chip's number
        pcie_usage: 1
        harvesting: {columns: [], dram: null, ethernet: []}     # left out: the official simulator's card
      - {board_id: [0x440, 1], asic_location: 1, pcie_usage: 4}
    links:
      - 0:2 - 1:9           # chip 0, channel 2 to chip 1, channel 9
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from bhemu import checks
from bhemu.chip.coordinates import ETHERNET_PLACES, SIMULATOR, Harvesting
from bhemu.errors import ConfigurationError, ProgramError
from bhemu.ethernet.boot import ALONE, Identity

LATENCY: Final = 256
"""Clocks of a link without another number. No source says what silicon takes; the official simulator takes none."""
MOST_CHIPS: Final = 32
_FOLDER: Final = Path(__file__).parent / "topologies"
KNOWN: Final = ("p150", "p300", "p300x2", "galaxy")
"""Descriptions that come with bhemu."""
_LINK: Final = re.compile(r"(\d+):(\d+) *- *(\d+):(\d+)")
_END: Final = "links are written as `chip:channel - chip:channel`, such as `0:2 - 1:9`"


@dataclass(frozen=True)
class ChipOf:
    """A chip of a system.

    Attributes:
        identity: what it says of itself.
        harvesting: what it does not have.
    """

    identity: Identity = ALONE
    harvesting: Harvesting = SIMULATOR


@dataclass(frozen=True)
class End:
    """An end of a link: the Ethernet tile of a channel of a chip."""

    chip: int
    channel: int

    def __str__(self) -> str:
        return f"{self.chip}:{self.channel}"


@dataclass(frozen=True)
class Topology:
    """A system of chips.

    Attributes:
        name: of the system.
        chips: by number.
        links: pairs of ends.
        latency: clocks that a frame takes over a link.

    Raises:
        ConfigurationError: a link leads to nowhere, or two links end at one channel.
    """

    name: str
    chips: tuple[ChipOf, ...]
    links: tuple[tuple[End, End], ...] = ()
    latency: int = LATENCY
    ends: dict[End, End] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 1 <= len(self.chips) <= MOST_CHIPS:
            raise ConfigurationError(f"{self.name}: {len(self.chips)} chips", remedy=f"use 1 to {MOST_CHIPS}")
        checks.integer(self.latency, "latency", 1, checks.MAX_CLOCKS, error=ConfigurationError)
        ends: dict[End, End] = {}
        for first, second in self.links:
            for end, other in ((first, second), (second, first)):
                self._check_end(end, f"link {first} - {second}")
                if end in ends:
                    raise ConfigurationError(
                        f"{self.name}: two links end at channel {end.channel} of chip {end.chip}: "
                        f"{end} - {ends[end]} and {end} - {other}",
                        remedy="give each link a channel of its own at both ends",
                    )
                ends[end] = other
        object.__setattr__(self, "ends", ends)

    def _check_end(self, end: End, link: str) -> None:
        if not 0 <= end.chip < len(self.chips):
            raise ConfigurationError(
                f"{self.name}: {link}: chip {end.chip} does not exist",
                remedy=f"the system has chips 0 to {len(self.chips) - 1}",
            )
        channels = channels_of(self.chips[end.chip].harvesting)
        if not 0 <= end.channel < channels:
            raise ConfigurationError(
                f"{self.name}: {link}: chip {end.chip} has no channel {end.channel}",
                remedy=f"it has channels 0 to {channels - 1}" if channels else "it has no Ethernet tiles",
            )


ALONE_TOPOLOGY: Final = Topology("p150", (ChipOf(),))
"""One chip without links."""


def channels_of(harvesting: Harvesting) -> int:
    """How many Ethernet tiles a chip has that clients can name."""
    return min(14 - len(harvesting.ethernet), len(ETHERNET_PLACES))


def load_topology(name: str | Path) -> Topology:
    """A system by its name (`p150`, `p300`, `p300x2`, `galaxy`), or from a YAML file.

    Raises:
        ProgramError: there is no such file, or it cannot be read.
        ConfigurationError: the description is wrong; the message says where.
    """
    text = str(checks.path(name, "topology"))
    path = _FOLDER / f"{text}.yaml" if text in KNOWN else Path(text)
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ProgramError(
            f"cannot read the system {text}: {reason}", remedy=f"use one of {', '.join(KNOWN)}, or a YAML file"
        ) from None
    yaml = import_module("yaml")
    try:
        table = yaml.safe_load(content)
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{text}: {error}", remedy="see docs/cluster.md for the form of the file") from None
    return _topology(table, text)


def _table(value: Any, where: str, keys: tuple[str, ...], needed: tuple[str, ...] = ()) -> Mapping[str, Any]:
    """A mapping with known keys."""
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{where} is {value!r}", remedy=f"give a table with {', '.join(keys)}")
    for key in value:
        if key not in keys:
            raise ConfigurationError(f"{where}: {key!r} is not known", remedy=f"use {', '.join(keys)}")
    for key in needed:
        if key not in value:
            raise ConfigurationError(f"{where}: {key} is missing", remedy=f"give {', '.join(needed)}")
    return value


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise ConfigurationError(f"{where} is {value!r}", remedy="give a list")
    return value


def _number(value: Any, where: str, most: int = 0xFFFFFFFF) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise ConfigurationError(f"{where} is {value!r}", remedy=f"give a number from 0 to {most:#x}")
    return value


def _topology(value: Any, where: str) -> Topology:
    table = _table(value, where, ("name", "latency", "chips", "links"), ("name", "chips"))
    if not isinstance(table["name"], str):
        raise ConfigurationError(f"{where}: name is {table['name']!r}", remedy="give a text")
    chips = tuple(
        _chip(n, chip, f"{where}: chip {n}") for n, chip in enumerate(_list(table["chips"], f"{where}: chips"))
    )
    links = tuple(_link(text, where) for text in _list(table.get("links", []), f"{where}: links"))
    latency = _number(table.get("latency", LATENCY), f"{where}: latency", checks.MAX_CLOCKS)
    return Topology(table["name"], chips, links, latency)


def _chip(number: int, value: Any, where: str) -> ChipOf:
    keys = ("board_id", "asic_location", "asic_id", "pcie_usage", "harvesting")
    table = _table(value, where, keys, ("board_id", "asic_location"))
    halves = _list(table["board_id"], f"{where}: board_id")
    if len(halves) != 2:
        raise ConfigurationError(f"{where}: board_id is {halves!r}", remedy="give its high and its low half")
    identity = Identity(
        (_number(halves[0], f"{where}: board_id"), _number(halves[1], f"{where}: board_id")),
        _number(table.get("asic_id", 1 + number), f"{where}: asic_id"),
        _number(table["asic_location"], f"{where}: asic_location", 0xFF),
        _number(table.get("pcie_usage", 1), f"{where}: pcie_usage", 0xFF),
    )
    if "harvesting" not in table:
        return ChipOf(identity)
    off = _table(table["harvesting"], f"{where}: harvesting", ("columns", "dram", "ethernet"))
    lists = {
        key: tuple(_number(n, f"{where}: {key}") for n in _list(off.get(key, []), f"{where}: {key}"))
        for key in ("columns", "ethernet")
    }
    dram = off.get("dram")
    bank = None if dram is None else _number(dram, f"{where}: dram")
    return ChipOf(identity, Harvesting(columns=lists["columns"], dram=bank, ethernet=lists["ethernet"]))


def _link(text: Any, where: str) -> tuple[End, End]:
    found = _LINK.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None:
        raise ConfigurationError(f"{where}: link {text!r}", remedy=_END)
    chip, channel, other, other_channel = (int(number) for number in found.groups())
    return End(chip, channel), End(other, other_channel)
