"""The registers of a tile outside of its configuration: `data/tile_registers.tsv` (tile K, N13).

A register belongs to a block, and the memory map says where blocks are; compiled code takes offsets and bits from here
as plain ints, which become constants. Configuration registers are in `bhemu.isa.registers`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, cast

from bhemu.isa.memory_map import REGIONS, Region
from bhemu.isa.tables import rows

Kind = Literal["acts", "plain", "open", "result", "refused"]

KINDS: Final[tuple[Kind, ...]] = ("acts", "plain", "open", "result", "refused")
WORD_BYTES: Final = 4
_COLUMNS: Final = ("block", "offset", "name", "access", "kind", "repeat", "fields", "description")


@dataclass(frozen=True, slots=True)
class Bits:
    """A field of a register: bits [msb:lsb]."""

    name: str
    msb: int
    lsb: int

    @property
    def mask(self) -> int:
        """The field's bits, shifted down to bit 0."""
        return (1 << (self.msb - self.lsb + 1)) - 1

    @property
    def in_place(self) -> int:
        """The field's bits in the register."""
        return self.mask << self.lsb


@dataclass(frozen=True, slots=True)
class TileRegister:
    """A register, or several alike.

    Attributes:
        block: the part of the memory map that holds it.
        offset: of its word, or of the first one, in the block, in bytes.
        name: that of the vendor's header where it has one.
        access: `r`, `w` or `rw`: what has a meaning.
        kind: what becomes of an access: `acts`, `plain` (keeps what is stored), `open` (plain where open choices are
            allowed), `result` (0 forever) or `refused`.
        repeat: (count, step in bytes) for a register that is there several times, the outer repetition first.
        fields: its fields.
        description: meaning, unit and values.
    """

    block: str
    offset: int
    name: str
    access: str
    kind: Kind
    repeat: tuple[tuple[int, int], ...]
    fields: tuple[Bits, ...]
    description: str

    @property
    def offsets(self) -> tuple[int, ...]:
        """Offsets in the block of all its words."""
        steps = (range(0, count * step, step) for count, step in self.repeat)
        return tuple(self.offset + sum(places) for places in itertools.product(*steps))

    @property
    def regions(self) -> tuple[Region, ...]:
        """The regions that hold its block."""
        return tuple(region for region in REGIONS.values() if region.block == self.block)

    @property
    def address(self) -> int:
        """Byte address of its word, or of the first one."""
        return self.regions[0].base + self.offset

    @property
    def span(self) -> range:
        """Byte addresses from its first word to the end of the last one, in the first copy of the block."""
        return range(self.address, self.regions[0].base + self.offsets[-1] + WORD_BYTES)


def _bits(text: str) -> Bits:
    name, _, place = text.partition(" ")
    msb, _, lsb = place.partition(":")
    return Bits(name, int(msb), int(lsb or msb))


def _load() -> tuple[TileRegister, ...]:
    header, *lines = rows("tile_registers.tsv")
    if tuple(header) != _COLUMNS:
        raise ValueError(f"tile_registers.tsv has columns {header}")
    return tuple(
        TileRegister(
            block,
            int(offset, 0),
            name,
            access,
            cast(Kind, kind),
            tuple((int(count), int(step, 0)) for count, _, step in (item.partition("*") for item in _list(repeat))),
            tuple(_bits(item) for item in _list(fields)),
            description,
        )
        for block, offset, name, access, kind, repeat, fields, description in lines
    )


def _list(text: str) -> list[str]:
    return [] if text == "-" else [item.strip() for item in text.split(",")]


TILE_REGISTERS: Final[tuple[TileRegister, ...]] = _load()
"""All of them, by block and offset."""
_BY_NAME: Final[Mapping[tuple[str, str], TileRegister]] = MappingProxyType(
    {(row.block, row.name): row for row in TILE_REGISTERS}
)


def tile_register(block: str, name: str) -> TileRegister:
    """The register of that name; KeyError when the block has none."""
    return _BY_NAME[block, name]


def registers_of(block: str) -> tuple[TileRegister, ...]:
    """The registers of a block."""
    return tuple(row for row in TILE_REGISTERS if row.block == block)


def offset_of(block: str, name: str) -> int:
    """Offset of a register in its block, in bytes, as a plain int for compiled code."""
    return _BY_NAME[block, name].offset


def address_of(block: str, name: str) -> int:
    """Byte address of a register, as a plain int for compiled code."""
    return _BY_NAME[block, name].address


def bits_of(block: str, name: str, field: str) -> tuple[int, int]:
    """(lsb, mask) of a register's field as plain ints: its value is `(word >> lsb) & mask`.

    Raises:
        KeyError: the register, or its field, does not exist.
    """
    for bits in _BY_NAME[block, name].fields:
        if bits.name == field:
            return bits.lsb, bits.mask
    raise KeyError(f"{block} {name} has no field {field}")


def bit_of(block: str, name: str, field: str) -> int:
    """Number of a field's lowest bit, as a plain int for compiled code."""
    return bits_of(block, name, field)[0]


def registers_at(address: int) -> Iterator[tuple[TileRegister, int]]:
    """The registers at an address of the memory map, with the number of the word among theirs.

    Those of an Ethernet tile alone are found, too; streams that both kinds of tiles have are given once.
    """
    blocks = set()
    for region in REGIONS.values():
        if region.block is not None and address in region and region.block not in blocks:
            blocks.add(region.block)
            offset = address - region.base
            offset = offset % region.step if region.step else offset
            for row in registers_of(region.block):
                if offset in row.offsets:
                    yield row, row.offsets.index(offset)


def search_tile_registers(text: str) -> list[TileRegister]:
    """The registers whose name, description or fields' names contain `text`, in any case."""
    wanted = text.casefold()
    return [
        row
        for row in TILE_REGISTERS
        if any(wanted in part.casefold() for part in (row.name, row.description, *(bits.name for bits in row.fields)))
    ]
