"""The memory map of a tile: `data/memory_map.tsv`, where each region lies, who may access it and how (tile T24 to T28).

What surrounds it follows from the table: sizes of memories, decoders, names of addresses in messages and reports. The
registers inside the regions are in `bhemu.isa.tile_registers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, cast

from bhemu.isa.tables import rows

Agent = Literal["B", "T", "NC", "NoC", "E", "ENoC"]
Rights = Literal["rw", "r", "w", "-"]

AGENTS: Final[tuple[Agent, ...]] = ("B", "T", "NC", "NoC")
"""Who sees the map of a Tensix tile differently: core B, the T cores, core NC, and accesses over the NoC."""
ETHERNET_AGENTS: Final[tuple[Agent, ...]] = ("E", "ENoC")
"""The same of an Ethernet tile: its cores, and accesses over the NoC."""
_ALL: Final = (*AGENTS, *ETHERNET_AGENTS)
_COLUMNS: Final = ("name", "base", "size", *_ALL, "loads", "stores", "block", "step", "title", "description")


@dataclass(frozen=True, slots=True)
class Region:
    """A range of addresses.

    Attributes:
        name: by which the source knows it.
        base: first byte address.
        size: bytes.
        access: what each of `AGENTS` and `ETHERNET_AGENTS` may do.
        loads, stores: bytes that one access may have; empty where there is none.
        block: whose registers lie here (`bhemu.isa.tile_registers`); None for a memory or a window onto one.
        step: bytes from one part, or one copy of the block, to the next; 0 where it has no parts.
        title: how reports call it.
        description: what is there.
    """

    name: str
    base: int
    size: int
    access: Mapping[Agent, Rights]
    loads: tuple[int, ...]
    stores: tuple[int, ...]
    block: str | None
    step: int
    title: str
    description: str

    @property
    def end(self) -> int:
        """The first address after it."""
        return self.base + self.size

    @property
    def addresses(self) -> range:
        """All its byte addresses."""
        return range(self.base, self.end)

    def __contains__(self, address: int) -> bool:
        return self.base <= address < self.end

    def is_seen_by(self, agent: Agent) -> bool:
        """The agent may load or store here."""
        return self.access[agent] != "-"


def _widths(text: str) -> tuple[int, ...]:
    return () if text == "-" else tuple(int(width) for width in text.split(","))


def _load() -> Mapping[str, Region]:
    header, *lines = rows("memory_map.tsv")
    if tuple(header) != _COLUMNS:
        raise ValueError(f"memory_map.tsv has columns {header}")
    table = {}
    for name, base, size, *rights, loads, stores, block, step, title, description in lines:
        table[name] = Region(
            name,
            int(base, 0),
            int(size, 0),
            MappingProxyType(dict(zip(_ALL, cast(list[Rights], rights), strict=True))),
            _widths(loads),
            _widths(stores),
            None if block == "-" else block,
            int(step, 0),
            title,
            description,
        )
    return MappingProxyType(table)


REGIONS: Final[Mapping[str, Region]] = _load()
"""The regions by name, in the order of their addresses."""


def region(name: str) -> Region:
    """The region of that name; KeyError when there is none."""
    return REGIONS[name]


def region_at(address: int, agent: Agent) -> Region | None:
    """The region that an agent sees at an address; None where nothing is mapped for it."""
    for found in REGIONS.values():
        if address in found and found.is_seen_by(agent):
            return found
    return None


def bounds(name: str) -> tuple[int, int]:
    """(first address, first address after it) of a region, as plain ints for compiled code."""
    found = REGIONS[name]
    return found.base, found.end


L1_SIZE: Final = region("l1").size
"""Bytes of a Tensix tile's L1, which begins at 0 (T19)."""
ETHERNET_L1: Final = region("ethernet_l1").size
"""Bytes of an Ethernet tile's (ethernet 1)."""
LOCAL_RAM_BASE: Final = region("local_ram").base
"""Where each core sees its own local RAM."""


def local_ram_bytes(core: str) -> int:
    """Bytes of the local RAM of core `B`, `T0`, `T1`, `T2` or `NC` (T19)."""
    agent = cast(Agent, core.rstrip("012"))
    return sum(part.size for part in (region("local_ram"), region("local_ram_upper")) if part.is_seen_by(agent))
