"""How long Tensix instructions take: `data/behaviour.toml`, given types.

The head of the data file explains the columns. Handlers do not use this table: an edit of it compiles nothing again.

    >>> from bhemu.isa import encode
    >>> timing_of(encode("MVMUL")).latency, timing_of(encode("SFPSHFT2", instr_mod1=3)).latency
    (5, 2)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from bhemu.checks import integer
from bhemu.errors import AssemblyError
from bhemu.isa.instruction_table import BY_OPCODE, INSTRUCTIONS
from bhemu.isa.roles import BEHAVIOUR, Test, parse_test

DOCUMENTED: Final = "documented"
IMPLIED: Final = "implied"
AT_LEAST: Final = "at least"
UNKNOWN: Final = "unknown"
GRADES: Final = (DOCUMENTED, IMPLIED, AT_LEAST, UNKNOWN)


@dataclass(frozen=True, slots=True)
class Timing:
    """Figures of an instruction, or of one of its modes.

    Attributes:
        latency: cycles from issue until the result may be used; None where no source has a figure, or `by` computes it.
        occupancy: cycles until the unit takes the next instruction; None likewise.
        grade: one of `GRADES`.
        source: where the figure is stated.
        note: what the documents say beyond it.
        tests: on operands, all of which must hold.
        by: function that computes the figure (analysis/figures.py); "" none.
        then_only: what alone the unit accepts for `then_cycles` cycles after it.
        stage, blocks_stage: of the configuration unit's pipeline.
        delays_accumulation: cycles for which moves from Dst and accumulating instructions wait after it.
    """

    latency: int | None
    occupancy: int | None
    grade: str
    source: str
    note: str
    tests: tuple[Test, ...] = ()
    by: str = ""
    then_only: frozenset[str] = frozenset()
    then_cycles: int = 0
    stage: int = 0
    blocks_stage: int | None = None
    delays_accumulation: int = 0


@dataclass(frozen=True, slots=True)
class Fact:
    """A number that belongs to a unit.

    Attributes:
        value: cycles or instructions, as the note says.
        source: where it is stated.
        note: what it means.
    """

    value: int
    source: str
    note: str


def _timing(entry: Mapping[str, Any]) -> Timing:
    rest = {name: value for name, value in entry.items() if name not in ("of", "if", "latency", "occupancy")}
    if "then_only" in rest:
        rest["then_only"] = frozenset(rest["then_only"])
    tests = tuple(parse_test(test) for test in entry.get("if", "").split(" and ") if test)
    return Timing(entry.get("latency"), entry.get("occupancy"), tests=tests, **rest)


def _all() -> Mapping[str, tuple[Timing, ...]]:
    found: dict[str, tuple[Timing, ...]] = {}
    for entry in BEHAVIOUR["timing"]:
        timing = _timing(entry)
        for mnemonic in entry["of"].split():
            for test in timing.tests:
                INSTRUCTIONS[mnemonic].field(test.operand)
            found[mnemonic] = (*found.get(mnemonic, ()), timing)
    return MappingProxyType(found)


TIMINGS: Final[Mapping[str, tuple[Timing, ...]]] = _all()
"""Entries by mnemonic; the first whose tests hold counts."""

FACTS: Final[Mapping[str, Fact]] = MappingProxyType({name: Fact(**fact) for name, fact in BEHAVIOUR["facts"].items()})
"""Facts of units, by name."""


def timing_of(word: int) -> Timing:
    """The entry that counts for an instruction word."""
    row = BY_OPCODE[integer(word, "word", 0, 0xFFFFFFFF) >> 24]
    if row is None:
        raise AssemblyError(f"opcode {word >> 24:#x} is not an instruction")
    return next(t for t in TIMINGS[row.mnemonic] if all(test.holds(row, word) for test in t.tests))
