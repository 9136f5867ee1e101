"""Configuration registers of Blackhole's Tensix core: where each field lives, how wide it is, and what it means.

The table is `data/config_registers.tsv`. Two index spaces overlap numerically and never mix (rules I.10): `config`, two
banks of 224 words of 32 bits written by WRCFG, RMWCIB, CFGSHIFTMASK and cores, and `thread`, 68 entries of 16 bits a
thread written by SETC16 alone. Field names are those of the vendor's register header, without their _ADDR32, _SHAMT and
_MASK endings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, cast

import numpy as np
import numpy.typing as npt

from bhemu.checks import checked
from bhemu.errors import AssemblyError
from bhemu.isa.tables import rows

Space = Literal["config", "thread"]
Access = Literal["rw", "pulse", "alias"]

CONFIG_WORDS: Final = 224
"""32-bit words in one Config bank."""
THREAD_WORDS: Final = 68
"""16-bit ThreadConfig entries of one thread."""
FIRST_SHARED_WORD: Final = 180
"""Config words from here on exist once: a write to either bank changes both (rules I.10)."""


@dataclass(frozen=True, slots=True)
class RegisterField:
    """One bit field of one configuration word.

    Attributes:
        space: index space of `word`, `config` or `thread`.
        word: ADDR32, the 32-bit word in a Config bank or the 16-bit entry of a thread.
        lsb: position of the lowest bit in the word.
        width: number of bits.
        name: official name.
        description: meaning, unit and values; empty where no source explains the field.
        access: `rw` holds what was written; `pulse` acts at the write and holds nothing; `alias` is a whole word whose
            parts are fields of their own.
    """

    space: Space
    word: int
    lsb: int
    width: int
    name: str
    description: str
    access: Access = "rw"

    @property
    def mask(self) -> int:
        """The field's bits in place in the word."""
        return ((1 << self.width) - 1) << self.lsb

    @property
    def msb(self) -> int:
        """Position of the highest bit in the word."""
        return self.lsb + self.width - 1


def _load() -> tuple[RegisterField, ...]:
    return tuple(
        RegisterField(cast(Space, space), int(word), int(lsb), int(width), name, description, cast(Access, access))
        for space, word, lsb, width, name, access, description in rows("config_registers.tsv")[1:]
    )


def _by_name(space: Space) -> Mapping[str, RegisterField]:
    return MappingProxyType({row.name: row for row in _ROWS if row.space == space})


def _by_word(space: Space, words: int) -> tuple[tuple[RegisterField, ...], ...]:
    table: list[list[RegisterField]] = [[] for _ in range(words)]
    for row in _ROWS:
        if row.space == space and row.access != "alias":
            table[row.word].append(row)
    return tuple(tuple(sorted(fields, key=lambda row: row.lsb)) for fields in table)


def _held_bits(space: Space, words: int) -> list[int]:
    held = [0] * words
    for row in _ROWS:
        if row.space == space and row.access != "pulse":
            held[row.word] |= row.mask
    return held


_ROWS: Final = _load()

CONFIG_FIELDS: Final[Mapping[str, RegisterField]] = _by_name("config")
"""Fields of the Config banks by name, whole-word aliases included."""
THREAD_FIELDS: Final[Mapping[str, RegisterField]] = _by_name("thread")
"""Fields of ThreadConfig by name."""

_FIELDS_OF_WORD: Final = {"config": _by_word("config", CONFIG_WORDS), "thread": _by_word("thread", THREAD_WORDS)}

WRITABLE_MASK: Final[npt.NDArray[np.uint32]] = np.array(_held_bits("config", CONFIG_WORDS), dtype=np.uint32)
"""uint32[224]: bits of each Config word that hold a value. Others read as 0, words 185 and 186 as a whole."""
THREAD_WRITABLE_MASK: Final[npt.NDArray[np.uint16]] = np.array(_held_bits("thread", THREAD_WORDS), dtype=np.uint16)
"""uint16[68]: bits of each ThreadConfig entry that hold a value."""
WRITABLE_MASK.setflags(write=False)
THREAD_WRITABLE_MASK.setflags(write=False)


def _look_up(name: str, *tables: Mapping[str, RegisterField]) -> RegisterField:
    for table in tables:
        if name in table:
            return table[name]
    from difflib import get_close_matches  # only a refusal pays for the import

    folded = {known.lower(): known for table in tables for known in table}
    close = [folded[match] for match in get_close_matches(name.lower(), folded, n=3)]
    remedy = f"did you mean {' or '.join(close)}?" if close else "bhemu.isa.search lists the fields that contain a text"
    raise AssemblyError(f"no configuration field is named {name!r}", remedy=remedy)


@checked
def field(name: str) -> RegisterField:
    """Return the field of that official name from either space.

    Raises:
        AssemblyError: no such field; the remedy names the closest ones.
    """
    return _look_up(name, CONFIG_FIELDS, THREAD_FIELDS)


@checked
def config(name: str) -> tuple[int, int, int]:
    """Return (word, lsb, value mask) of a Config field as plain ints, fit to be constants in compiled code.

    The value of the field is `(bank[word] >> lsb) & mask`.

    Raises:
        AssemblyError: no such Config field.
    """
    found = _look_up(name, CONFIG_FIELDS)
    return found.word, found.lsb, (1 << found.width) - 1


@checked
def thread(name: str) -> tuple[int, int, int]:
    """Return (entry, lsb, value mask) of a ThreadConfig field as plain ints; see `config`.

    Raises:
        AssemblyError: no such ThreadConfig field.
    """
    found = _look_up(name, THREAD_FIELDS)
    return found.word, found.lsb, (1 << found.width) - 1


@checked
def fields_of_word(space: Space, word: int) -> tuple[RegisterField, ...]:
    """Return the fields of one word from bit 0 up, without whole-word aliases; empty where the map has none.

    Raises:
        AssemblyError: the space has no such word.
    """
    table = _FIELDS_OF_WORD[space]
    if not 0 <= word < len(table):
        raise AssemblyError(f"{space} space has no word {word}", remedy=f"words are 0 to {len(table) - 1}")
    return table[word]


@checked
def decode_word(space: Space, word: int, value: int) -> list[tuple[RegisterField, int]]:
    """Split the value of one word into (field, field value) pairs, lowest bit first."""
    return [(row, (value & row.mask) >> row.lsb) for row in fields_of_word(space, word)]


@checked
def search(text: str) -> list[RegisterField]:
    """Return the fields whose name or description contains `text`, in any case; Config words first, in order."""
    wanted = text.casefold()
    return [row for row in _ROWS if wanted in row.name.casefold() or wanted in row.description.casefold()]
