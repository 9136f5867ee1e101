"""How long things take on silicon: `data/silicon.toml`, given types, joined to the timing of Tensix instructions.

>>> figure("core.load.l1.miss").value, figure("core.load.l1.miss").kind
(8, 'measured')
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from bhemu.checks import checked
from bhemu.isa import timing
from bhemu.isa.instruction_table import INSTRUCTIONS
from bhemu.isa.tables import content

MEASURED: Final = "measured"
DOCUMENTED: Final = "documented"
FITTED: Final = "fitted"
GUESSED: Final = "guessed"
KINDS: Final = (MEASURED, DOCUMENTED, FITTED, GUESSED)


@dataclass(frozen=True, slots=True)
class SiliconFigure:
    """A number about silicon.

    Attributes:
        name: as code asks for it.
        value: in `unit`.
        kind: one of `KINDS`.
        source: where it is from.
        note: what it means.
        unit: cycles of the AI clock, or as it says.
    """

    name: str
    value: float
    kind: str
    source: str
    note: str
    unit: str = "cycles"


@dataclass(frozen=True, slots=True)
class InstructionTime:
    """How long a Tensix instruction takes.

    Attributes:
        mnemonic: of the instruction table.
        latency: cycles until its work counts as done.
        occupancy: cycles until the unit takes the next one.
        kind: one of `KINDS`; a lower bound of the documents counts as documented, what no source has as guessed.
        source: where it is from.
        note: what the source says beyond it.
    """

    mnemonic: str
    latency: int
    occupancy: int
    kind: str
    source: str
    note: str


_CONTENT: Final = content("silicon.toml")

FIGURES: Final[Mapping[str, SiliconFigure]] = MappingProxyType(
    {entry["name"]: SiliconFigure(**entry) for entry in _CONTENT["figure"]}
)
"""Every figure by name."""


@checked
def figure(name: str) -> SiliconFigure:
    """A figure of the table."""
    return FIGURES[name]


_KIND_OF_GRADE: Final = {
    timing.DOCUMENTED: DOCUMENTED,
    timing.IMPLIED: DOCUMENTED,
    timing.AT_LEAST: DOCUMENTED,
    timing.UNKNOWN: GUESSED,
}


def _instructions() -> Mapping[str, InstructionTime]:
    found = {}
    for mnemonic in INSTRUCTIONS:
        if mnemonic in timing.TIMINGS:
            entry = timing.TIMINGS[mnemonic][-1]  # the general one; what operands change is left out
            kind = _KIND_OF_GRADE[entry.grade]
            if entry.latency is None and not entry.by:
                kind = GUESSED
            times = (entry.latency or 1, entry.occupancy or 1)
            found[mnemonic] = InstructionTime(mnemonic, *times, kind, entry.source, entry.note)
        else:
            found[mnemonic] = InstructionTime(mnemonic, 1, 1, GUESSED, "none", "")
    entries: list[dict[str, Any]] = _CONTENT["instruction"]
    for row in entries:
        for mnemonic in row["of"].split():
            times = (row["latency"], row["occupancy"])
            found[mnemonic] = InstructionTime(mnemonic, *times, row["kind"], row["source"], row["note"])
    return MappingProxyType(found)


INSTRUCTION_TIMES: Final = _instructions()
"""Every Tensix instruction by mnemonic."""
