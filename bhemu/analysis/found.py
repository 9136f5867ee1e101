"""Hazards of tiles with the places in their programs, as text and as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bhemu.analysis.check_tile import TileCheck
from bhemu.analysis.hazard import HAZARD, KINDS, Hazard
from bhemu.analysis.hazard import Place as CodePlace
from bhemu.analysis.suppressions import End, Suppressions
from bhemu.analysis.tile_events import parts_of_launches
from bhemu.chip.coordinates import Place
from bhemu.machine.agents import T0
from bhemu.machine.state import THREADS
from bhemu.recording.circular_buffers import CircularBuffer
from bhemu.recording.core_log import Array, CoreLog, Names
from bhemu.recording.parts import Part


@dataclass(frozen=True)
class FoundHazard:
    """A hazard of a tile.

    Attributes:
        place: translated coordinates of the tile; None: there is one.
        hazard: what is wrong.
        ends: functions and source lines of its two instructions.
    """

    place: Place | None
    hazard: Hazard
    ends: tuple[End, End]

    @property
    def is_certain(self) -> bool:
        """It is a hazard, and not a note."""
        return self.hazard.severity == HAZARD

    def lines(self) -> list[str]:
        """It in words: what, both places, the remedy."""
        hazard = self.hazard
        times = f", {hazard.count} times" if hazard.count > 1 else ""
        tile = "" if self.place is None else f"tile {self.place[0]}-{self.place[1]}: "
        lines = [f"{tile}{hazard.severity} ({hazard.kind}): {hazard.message} [{hazard.rule}]{times}"]
        both = zip(("first:  ", "then:   "), (hazard.producer, hazard.consumer), self.ends, strict=True)
        for what, place, end in both:
            inside = f" in {end.function}" if end.function else ""
            lines.append(f"  {what} {place.text} ({end.place or 'place unknown'}{inside}; {place.agent})")
        return [*lines, f"  missing: {hazard.missing}"]

    def as_json(self) -> dict[str, Any]:
        """It as plain data."""
        told = {name: value for name, value in vars(self.hazard).items() if name not in ("producer", "consumer")}
        for name, place, end in zip(
            ("first", "then"), (self.hazard.producer, self.hazard.consumer), self.ends, strict=True
        ):
            told[name] = {"text": place.text, "place": end.place, "function": end.function, "by": place.agent}
        return {"tile": list(self.place or ()), **told}


def core_of(place: CodePlace) -> int:
    """The core that executed an instruction, or whose thread did."""
    return place.core if place.core is not None else T0 + place.thread


def end_by_names(names: Names, place: CodePlace) -> End:
    """Function and source line of an instruction."""
    pc = place.code
    if pc is None:
        return End()
    function = names.function(core_of(place), pc)[0]
    line = names.line(core_of(place), pc)
    where = f"{line.file.rpartition('/')[2]}:{line.line}" if line is not None else f"{pc:#x}"
    return End("" if function == "?" else function, where)


def check_parts(
    parts: Iterable[Part], kinds: Sequence[str] = KINDS, suppressions: Suppressions | None = None
) -> list[FoundHazard]:
    """Hazards of recorded tiles, whose logs know names.

    Args:
        parts: of a recording, in order.
        kinds: of checks, some of KINDS.
        suppressions: hazards to leave out.
    """
    hidden = suppressions or Suppressions()
    by_tile: dict[Place, list[Part]] = {}
    for part in parts:
        by_tile.setdefault(part.place, []).append(part)
    found = []
    for place, some in by_tile.items():
        check = TileCheck(kinds)
        for launch in parts_of_launches(some):
            found += _named(place, check.program(launch), launch[-1].log.names, hidden)
    return found


def check_log(
    log: CoreLog,
    initiators: Array,
    kinds: Sequence[str] = KINDS,
    suppressions: Suppressions | None = None,
    buffers: Iterable[CircularBuffer] = (),
) -> list[FoundHazard]:
    """Hazards of the log of a tile of its own.

    Args:
        log: of `CoreRecorder.log`, with single instructions.
        initiators: uint32 [2, 4, 14]: registers of the network interfaces when the recording began.
        kinds: of checks, some of KINDS.
        suppressions: hazards to leave out.
        buffers: circular buffers of the programs.
    """
    part = Part(
        place=(0, 0),
        begin=0,
        end=log.clocks,
        launch=0,
        started=None,
        log=log,
        first_push=(0,) * THREADS,
        code=[],
        initiators=initiators,
        buffers=list(buffers),
    )
    return _named(None, TileCheck(kinds).program([part]), log.names, suppressions or Suppressions())


def _named(place: Place | None, some: Iterable[Hazard], names: Names, hidden: Suppressions) -> list[FoundHazard]:
    found = []
    for hazard in some:
        ends = end_by_names(names, hazard.producer), end_by_names(names, hazard.consumer)
        if not hidden.hides(hazard, ends):
            found.append(FoundHazard(place, hazard, ends))
    return found
