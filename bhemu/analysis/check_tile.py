"""The checks of a tile: order of the coprocessor's words, accesses to L1, NoC requests, circular buffers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from bhemu.analysis.check import hazards
from bhemu.analysis.check_buffers import BufferCheck
from bhemu.analysis.check_l1 import RaceCheck
from bhemu.analysis.check_noc import NocCheck
from bhemu.analysis.hazard import BUFFERS, KINDS, L1, NOC, ORDER, Hazard, Reports
from bhemu.analysis.joined import join_words
from bhemu.analysis.loops import polled_words
from bhemu.analysis.tile_events import (
    NIU,
    CounterRead,
    Gap,
    Halted,
    Pages,
    Started,
    Sync,
    TileEvents,
    Touch,
    unbroken,
)
from bhemu.errors import ConfigurationError
from bhemu.machine.agents import B
from bhemu.recording.core_log import Array
from bhemu.recording.noc_requests import READ
from bhemu.recording.parts import Part


def parse_kinds(text: str) -> tuple[str, ...]:
    """The kinds in `order,noc`; all for an empty text or `all`.

    Raises:
        ConfigurationError: a name is not a kind of check.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names or names == ["all"]:
        return KINDS
    wrong = [name for name in names if name not in KINDS]
    if wrong:
        raise ConfigurationError(f"{wrong[0]!r} is not a kind of check", remedy=f"kinds are {', '.join(KINDS)}")
    return tuple(kind for kind in KINDS if kind in names)


class TileCheck:
    """Checks a tile, program by program.

    Args:
        kinds: of checks; some of KINDS.

    Attributes:
        pages: what the last program did with counters of circular buffers, by part; without L1, NOC and BUFFERS none.
    """

    def __init__(self, kinds: Iterable[str] = KINDS) -> None:
        self._kinds = frozenset(kinds)
        self._reports = Reports()
        self._events = TileEvents()
        self._noc = NocCheck(self._reports)
        self._buffers = BufferCheck(self._reports, self._noc)
        self._races = RaceCheck(self._reports)
        self._seen = 0
        self.pages: list[list[Pages]] = []

    def program(self, parts: list[Part], *, order: bool = True) -> list[Hazard]:
        """Hazards of the next program; of all checks but that of the order, a pair is told once for a tile.

        Args:
            parts: of the program, in order.
            order: check the order of the coprocessor's words, too.
        """
        found: list[Hazard] = []
        if order and self._kinds & {ORDER, BUFFERS}:
            for some in unbroken(parts, lambda part: part.log.tensix_dropped):
                found += hazards(join_words(some))
        found = [hazard for hazard in found if hazard.kind in self._kinds and not _is_boot(parts, hazard)]
        self.pages = [[] for _ in parts]
        if self._kinds & {L1, NOC, BUFFERS}:
            self._follow(parts)
        other = [hazard for hazard in self._reports.all() if hazard.kind in self._kinds]
        fresh = other[self._seen :]
        self._seen = len(other)
        return found + fresh

    def _follow(self, parts: list[Part]) -> None:
        read = [(part, list(self._events.events(part))) for part in parts]
        self.pages = [[event for event in events if isinstance(event, Pages)] for _, events in read]
        pages = [event for events in self.pages for event in events]
        self._buffers.begin(parts[-1].buffers or parts[0].buffers, pages)
        flags = polled_words(np.concatenate([part.log.rows for part in parts]))
        self._races.begin(flags, parts[-1].firmware_end)
        spans = unbroken(parts, lambda part: part.log.dropped)
        places = ((rows, first) for span in spans for rows, first in _joined_rows(span))
        for (_, events), (rows, first) in zip(read, places, strict=True):
            self._buffers.rows(rows, first)
            for event in events:
                if isinstance(event, Touch):
                    self._noc.touched(event)
                    self._buffers.touched(event)
                    self._races.touched(event)
                elif isinstance(event, Sync):
                    self._races.synchronised(event)
                elif isinstance(event, Started):
                    self._requested(event)
                elif isinstance(event, CounterRead):
                    self._noc.counted(event)
                elif isinstance(event, Halted):
                    self._noc.ended(event.core)
                elif isinstance(event, Gap):
                    self._noc.forget()
                    self._buffers.forget()
                    self._races.forget()
                else:
                    self._buffers.counted(event)
                    self._races.counted(event)
        if parts[-1].launch:
            self._noc.ended()

    def _requested(self, event: Started) -> None:
        self._noc.started(event)
        self._races.started(event, event.push)
        request = event.request
        if request.local >= 0 and request.size:
            end = request.local + request.size
            writes = request.kind == READ
            self._buffers.touched(Touch(NIU, request.core, request.local, end, writes, -1, event.place, event.push))


def _joined_rows(parts: list[Part]) -> Iterator[tuple[Array, int]]:
    """For each part the rows of the cores of all of them, and with which of these it begins."""
    rows = np.concatenate([part.log.rows for part in parts])
    first = 0
    for part in parts:
        yield rows, first
        first += len(part.log.rows)


def _is_boot(parts: list[Part], hazard: Hazard) -> bool:
    """Core B has pushed the first word, and a T core the second: B lets them run when it is done (tile B6)."""
    first, then = hazard.producer.code, hazard.consumer.code
    if first is None or then is None:
        return False
    return _pushed_by(parts, first) == {B} and B not in _pushed_by(parts, then)


def _pushed_by(parts: list[Part], pc: int) -> set[int]:
    """Cores that have executed the instruction at a pc."""
    found = set()
    for part in parts:
        counts = part.log.counts
        found |= set(counts[counts[:, 1] == pc >> 2, 0].tolist())
    return found
