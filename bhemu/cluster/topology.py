"""Which chips there are, and which Ethernet tiles are joined: descriptions of systems as data (ethernet 5, 6).

A description is a YAML file; those that come with bhemu are in `topologies`:

    name: pair
    latency: 600            # clocks that a frame takes over a link; left out: 600
    chips:
      - board_id: [0x440, 1]    # high and low half
        asic_location: 0
        asic_id: 1          # left out: 1 + the chip's number
        pcie_usage: 1
        pci_bus: 0x41       # left out: none is known
        harvesting: {columns: [], dram: null, ethernet: []}     # left out: the official simulator's card
      - {board_id: [0x440, 1], asic_location: 1, pcie_usage: 4}
    links:
      - 0:2 - 1:9           # chip 0, channel 2 to chip 1, channel 9
    failures:               # left out: none
      - {link: 0:2 - 1:9, at: 5000, retrain: 2000}

A chip with `missing: true` is left out with its links, and those after it get smaller numbers, as a host's devices do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import bhemu.checks as checks
from bhemu.checks import checked
from bhemu.chip.coordinates import ETHERNET_PLACES, SIMULATOR, Harvesting
from bhemu.cluster.state import MOST_CHIPS
from bhemu.errors import ConfigurationError, ProgramError
from bhemu.ethernet.boot import ALONE, Identity
from bhemu.ethernet.failures import DOWN, LOSE, RETRAIN, UP

LATENCY: Final = 600
"""Clocks of a link without another number, so that a hop takes about what it does on silicon (ethernet 6)."""
_FOLDER: Final = Path(__file__).parent / "topologies"
KNOWN: Final = ("p150", "p300", "p300x2", "galaxy")
"""Descriptions that come with bhemu."""
_LINK: Final = re.compile(r"(\d+):(\d+) *- *(\d+):(\d+)")
_ONE_END: Final = re.compile(r"(\d+):(\d+)")
KINDS: Final = {"down": DOWN, "up": UP, "lose": LOSE, "retrain": RETRAIN}
"""What can happen to a link, as failures of a description name it."""
_END: Final = "links are written as `chip:channel - chip:channel`, such as `0:2 - 1:9`"


@dataclass(frozen=True)
class ChipOf:
    """A chip of a system.

    Attributes:
        identity: what it says about itself.
        harvesting: what it does not have.
        pci_bus: by which clients tell where in a Galaxy the chip is (ethernet 7.1); 0: nowhere.
    """

    identity: Identity = ALONE
    harvesting: Harvesting = SIMULATOR
    pci_bus: int = 0


@dataclass(frozen=True)
class End:
    """An end of a link: the Ethernet tile of a channel of a chip."""

    chip: int
    channel: int

    def __str__(self) -> str:
        return f"{self.chip}:{self.channel}"


@dataclass(frozen=True)
class Failure:
    """What happens to a link.

    Attributes:
        end: of the link; when frames are lost, the one that sends them.
        kind: DOWN, UP, LOSE or RETRAIN of bhemu/ethernet/failures.py.
        clock: before which it happens; 0: before the first.
        value: frames that are lost, or clocks that it retrains.
    """

    end: End
    kind: int
    clock: int = 0
    value: int = 0


@checked
@dataclass(frozen=True)
class Topology:
    """A system of chips.

    Attributes:
        name: of the system.
        chips: by number.
        links: pairs of ends.
        latency: clocks that a frame takes over a link.
        failures: what happens to links.

    Raises:
        ConfigurationError: a link leads to nowhere, or two links end at one channel.
    """

    name: str
    chips: tuple[ChipOf, ...]
    links: tuple[tuple[End, End], ...] = ()
    latency: int = LATENCY
    failures: tuple[Failure, ...] = ()
    ends: dict[End, End] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 1 <= len(self.chips) <= MOST_CHIPS:
            raise ConfigurationError(f"{self.name}: {len(self.chips)} chips", remedy=f"use 1 to {MOST_CHIPS}")
        checks.integer(self.latency, "latency", 1, checks.MAX_CLOCKS, error=ConfigurationError)
        ends: dict[End, End] = {}
        for first, second in self.links:
            if first == second:
                raise ConfigurationError(
                    f"{self.name}: link {first} - {second} joins a channel to itself", remedy="name two channels"
                )
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
        for failure in self.failures:
            self.link_at(failure.end)
        buses: dict[int, int] = {}
        for number, chip in enumerate(self.chips):
            bus = checks.integer(chip.pci_bus, f"pci_bus of chip {number}", 0, 0xFF, error=ConfigurationError)
            if bus and buses.setdefault(bus, number) != number:
                raise ConfigurationError(
                    f"{self.name}: chips {buses[bus]} and {number} both have PCI bus {bus:#x}",
                    remedy="give each a pci_bus of its own, or leave it out",
                )

    def link_at(self, end: End) -> tuple[End, End]:
        """The link that has an end, as it is described.

        Raises:
            ConfigurationError: there is none.
        """
        for link in self.links:
            if end in link:
                return link
        raise ConfigurationError(
            f"{self.name}: no link ends at {end}",
            remedy=f"its links are {', '.join(f'{a} - {b}' for a, b in self.links)}"
            if self.links
            else "it has no links",
        )

    def without(self, *chips: int) -> Topology:
        """The system without some chips and the links to them; chips after  them have smaller numbers.

        Raises:
            ConfigurationError: there is no such chip, or none is left.
        """
        for chip in chips:
            if not 0 <= chip < len(self.chips):
                raise ConfigurationError(
                    f"{self.name}: chip {chip} does not exist", remedy=f"it has chips 0 to {len(self.chips) - 1}"
                )
        left = [number for number in range(len(self.chips)) if number not in chips]
        new = {number: place for place, number in enumerate(left)}

        def moved(end: End) -> End:
            return End(new[end.chip], end.channel)

        links = tuple((moved(a), moved(b)) for a, b in self.links if a.chip in new and b.chip in new)
        kept = {end for end, other in self.ends.items() if end.chip in new and other.chip in new}
        failures = tuple(replace(f, end=moved(f.end)) for f in self.failures if f.end in kept)
        return replace(self, chips=tuple(self.chips[n] for n in left), links=links, failures=failures)

    def harvested(self, off: Mapping[int, Harvesting]) -> Topology:
        """The system with other harvesting of some chips, by number.

        Raises:
            ConfigurationError: there is no such chip, or a link needs what it no longer has.
        """
        for chip in off:
            if not 0 <= chip < len(self.chips):
                raise ConfigurationError(
                    f"{self.name}: chip {chip} does not exist", remedy=f"it has chips 0 to {len(self.chips) - 1}"
                )
        chips = tuple(replace(chip, harvesting=off.get(n, chip.harvesting)) for n, chip in enumerate(self.chips))
        return replace(self, chips=chips)

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
    return read_topology(table, text)


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


def _number(value: Any, where: str, most: int = 0xFFFFFFFF, least: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ConfigurationError(f"{where} is {value!r}", remedy=f"give a number from {least} to {most:#x}")
    return value


def _flag(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigurationError(f"{where} is {value!r}", remedy="give true or false")
    return value


def read_topology(value: Any, where: str) -> Topology:
    """The system that a description has, in the form of the files.

    Args:
        value: tables, lists, numbers and texts.
        where: it comes from.

    Raises:
        ConfigurationError: it is wrong; the message says where.
    """
    table = _table(value, where, ("name", "latency", "chips", "links", "failures"), ("name", "chips"))
    if not isinstance(table["name"], str):
        raise ConfigurationError(f"{where}: name is {table['name']!r}", remedy="give a text")
    rows = _list(table["chips"], f"{where}: chips")
    chips = tuple(_chip(n, chip, f"{where}: chip {n}") for n, chip in enumerate(rows))
    missing = [n for n, chip in enumerate(rows) if _flag(chip.get("missing", False), f"{where}: chip {n}: missing")]
    links = tuple(_link(text, where) for text in _list(table.get("links", []), f"{where}: links"))
    latency = _number(table.get("latency", LATENCY), f"{where}: latency", checks.MAX_CLOCKS, 1)
    failures = tuple(_failure(item, where, links) for item in _list(table.get("failures", []), f"{where}: failures"))
    if rows and len(missing) == len(rows):
        raise ConfigurationError(f"{where}: all chips are missing", remedy="leave one of them there")
    return Topology(table["name"], chips, links, latency, failures).without(*missing)


def topology_table(topology: Topology) -> dict[str, Any]:
    """The description of a system that `read_topology` reads."""
    kinds = {kind: name for name, kind in KINDS.items()}
    return {
        "name": topology.name,
        "latency": topology.latency,
        "chips": [_chip_table(chip) for chip in topology.chips],
        "links": [f"{a} - {b}" for a, b in topology.links],
        "failures": [
            {
                "link": f"{failure.end} - {topology.ends[failure.end]}",
                "at": failure.clock,
                kinds[failure.kind]: True if failure.kind in (DOWN, UP) else failure.value,
            }
            for failure in topology.failures
        ],
    }


def _chip_table(chip: ChipOf) -> dict[str, Any]:
    table: dict[str, Any] = {
        "board_id": list(chip.identity.board_id),
        "asic_location": chip.identity.asic_location,
        "asic_id": chip.identity.asic_id,
        "pcie_usage": chip.identity.pcie_usage,
        "pci_bus": chip.pci_bus,
    }
    if chip.harvesting != SIMULATOR:
        off = chip.harvesting
        table["harvesting"] = {"columns": list(off.columns), "dram": off.dram, "ethernet": list(off.ethernet)}
    return table


def _chip(number: int, value: Any, where: str) -> ChipOf:
    keys = ("board_id", "asic_location", "asic_id", "pcie_usage", "pci_bus", "harvesting", "missing")
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
    bus = _number(table.get("pci_bus", 0), f"{where}: pci_bus", 0xFF)
    if "harvesting" not in table:
        return ChipOf(identity, pci_bus=bus)
    off = _table(table["harvesting"], f"{where}: harvesting", ("columns", "dram", "ethernet"))
    lists = {
        key: tuple(_number(n, f"{where}: {key}") for n in _list(off.get(key, []), f"{where}: {key}"))
        for key in ("columns", "ethernet")
    }
    dram = off.get("dram")
    bank = None if dram is None else _number(dram, f"{where}: dram")
    try:
        return ChipOf(identity, Harvesting(columns=lists["columns"], dram=bank, ethernet=lists["ethernet"]), bus)
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error.message}", remedy=error.remedy) from None


def _link(text: Any, where: str) -> tuple[End, End]:
    found = _LINK.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None:
        raise ConfigurationError(f"{where}: link {text!r}", remedy=_END)
    chip, channel, other, other_channel = (int(number) for number in found.groups())
    return End(chip, channel), End(other, other_channel)


def link_end(text: Any, where: str) -> End:
    """An end of the link that a text names: `0:2`, or `0:2 - 1:9`, of which the first counts.

    Raises:
        ConfigurationError: it names none.
    """
    if isinstance(text, str) and (one := _ONE_END.fullmatch(text.strip())) is not None:
        return End(int(one[1]), int(one[2]))
    return _link(text, where)[0]


def _failure(value: Any, where: str, links: tuple[tuple[End, End], ...]) -> Failure:
    where = f"{where}: failure"
    table = _table(value, where, ("link", "at", *KINDS), ("link",))
    kinds = [kind for kind in KINDS if kind in table]
    if len(kinds) != 1:
        raise ConfigurationError(
            f"{where} of link {table['link']!r} has {', '.join(kinds) or 'nothing that happens'}",
            remedy="give one of down: true, up: true, lose: FRAMES, retrain: CLOCKS",
        )
    (kind,) = kinds
    clock = _number(table.get("at", 0), f"{where}: at", checks.MAX_CLOCKS)
    if kind in ("down", "up"):
        number = int(_flag(table[kind], f"{where}: {kind}"))
        if not number:
            raise ConfigurationError(f"{where}: {kind} is false", remedy=f"leave it out, or give {kind}: true")
    else:
        number = _number(table[kind], f"{where}: {kind}", checks.MAX_CLOCKS, 1)
    ends = _link(table["link"], where)
    if ends not in links and ends[::-1] not in links:
        raise ConfigurationError(
            f"{where}: there is no link {ends[0]} - {ends[1]}",
            remedy=f"the links are {', '.join(f'{a} - {b}' for a, b in links)}" if links else "there are no links",
        )
    return Failure(ends[0], KINDS[kind], clock, number)
