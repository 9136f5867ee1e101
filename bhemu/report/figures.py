"""What a report says of a chip: operations, kernels, tiles and what was found, as figures."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bhemu.analysis.found import FoundHazard
from bhemu.chip.coordinates import Place
from bhemu.recording.parts import INSTRUCTIONS
from bhemu.report.asserts import Failure
from bhemu.report.chips import ChipFigures, ChipOperation
from bhemu.report.links import Links
from bhemu.report.names import FIRMWARE, UNKNOWN
from bhemu.report.noc import LinkTraffic
from bhemu.report.operations import TimedOperation
from bhemu.report.timeline import Timeline
from bhemu.report.work import Work

Array = np.ndarray[Any, Any]
Launch = tuple[Place, int]
"""A tile, and the number of the program that runs on it, from 1 on."""


@dataclass
class Kernel:
    """What cores have done in the code of one kernel; rounds are summed over tiles (rule T34).

    Attributes:
        name: of the kernel; `firmware`, or `(no ELF file)`.
        core: that ran it.
        path: its ELF file.
        source: as tt-metal's logs have it.
        tiles: on which it ran.
        instructions: executed, polling included.
        blocked: rounds in which the core waited for an access.
        waits: rounds blocked or polling, by what for.
        lines: rounds, instructions included, by source line.
        line_waits: for each line, rounds blocked or polling by what for.
        units: words of the coprocessor that it pushed, by unit.
        stalls: modelled cycles that its thread stalled, by cause.
        longest: rounds on the tile and in the launch where it took longest.
        work: that it gave to the coprocessor and the NoC.
        clocks: of the launches in which it ran, summed.
    """

    name: str
    core: str
    path: str = ""
    source: str = ""
    tiles: set[Place] = field(default_factory=set)
    instructions: int = 0
    blocked: int = 0
    waits: Counter[str] = field(default_factory=Counter)
    lines: Counter[str] = field(default_factory=Counter)
    line_waits: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    units: Counter[str] = field(default_factory=Counter)
    stalls: Counter[str] = field(default_factory=Counter)
    longest: int = 0
    work: Work = field(default_factory=Counter)
    clocks: int = 0

    @property
    def rounds(self) -> int:
        """Rounds in its code."""
        return self.instructions + self.blocked

    @property
    def is_named(self) -> bool:
        """It is a kernel whose ELF file was found."""
        return self.name not in (FIRMWARE, UNKNOWN)

    @property
    def hottest(self) -> str:
        """The source line with most rounds."""
        return min(self.lines, key=lambda line: (-self.lines[line], line), default="")

    @property
    def waits_for(self) -> str:
        """What it waits for longest: a core for a device or a word, a thread of the coprocessor for a unit."""
        return min(self.waits, key=lambda what: (-self.waits[what], what), default="")


@dataclass
class Operation:
    """Programs that ran side by side on tiles.

    Attributes:
        name: by tt-metal's logs, or by its kernels.
        begin, end: clocks.
        launches: of which it consists.
        kernels: names.
        work: of all its tiles.
    """

    name: str
    begin: int
    end: int
    launches: list[Launch]
    kernels: list[str]
    work: Work = field(default_factory=Counter)

    @property
    def tiles(self) -> int:
        """On how many it ran."""
        return len({place for place, _ in self.launches})


@dataclass
class TileFigures:
    """Rounds of a tile's cores, and bytes of its NoC requests."""

    running: int = 0
    blocked: int = 0
    polling: int = 0
    rounds: int = 0
    words: int = 0
    read: int = 0
    written: int = 0
    waits: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Picture:
    """A register file, or a tile of L1, from a clock on.

    Attributes:
        place: translated coordinates of the tile.
        clock: of the chip.
        what: `Dst`, `SrcA bank 0`, `L1 packed`.
        detail: of a tile of L1, its address and format.
        values: float32 [rows, columns]; no rows: it holds nothing.
    """

    place: Place
    clock: int
    what: str
    detail: str
    values: Array


@dataclass
class Report:
    """All of it.

    Attributes:
        about: of the recordings.
        chip: number of the chip, of several; None: it is alone.
        operations, kernels: the longest first.
        tiles: by translated coordinates.
        hazards: found.
        failures: asserts that have failed, and what tt-metal's watcher found.
        traffic: bytes of NoC requests by (tile, kind, other end).
        link_traffic: bytes over each link of the NoCs.
        timeline: events.
        pictures: of register files and tiles of L1, those of a tile by what they show and by clock.
        suppressed: hazards that were left out.
        changes: of watched words, as sentences.
        notes: what the reader must know: what was left out, what was not found.
        timed: operations of a recording in timed mode.
        links: of several chips, and what went over them.
        chips: what each of several chips has done; this one too.
    """

    about: list[dict[str, Any]]
    chip: int | None = None
    operations: list[Operation] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    tiles: dict[Place, TileFigures] = field(default_factory=dict)
    hazards: list[FoundHazard] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    traffic: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    link_traffic: LinkTraffic = field(default_factory=LinkTraffic)
    timeline: Timeline = field(default_factory=Timeline)
    pictures: list[Picture] = field(default_factory=list)
    suppressed: int = 0
    changes: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    timed: list[TimedOperation] = field(default_factory=list)
    links: Links = field(default_factory=Links)
    chips: list[ChipFigures] = field(default_factory=list)

    def operation_of(self, launch: Launch) -> str:
        """Name of the operation that a launch belongs to; empty when it is not known."""
        return next((one.name for one in self.operations if launch in one.launches), "")

    def of_chip(self) -> ChipFigures:
        """The chip in the report of all."""
        counted = ("rounds", "running", "blocked", "polling", "words", "read", "written")
        return ChipFigures(
            self.chip or 0,
            {place: {what: getattr(figures, what) for what in counted} for place, figures in self.tiles.items()},
            tuple(
                ChipOperation(one.name, one.begin, one.end, one.tiles)
                for one in sorted(self.operations, key=lambda one: (one.begin, one.end))
            ),
            has_requests=all(told.get("detail", INSTRUCTIONS) == INSTRUCTIONS for told in self.about),
        )
