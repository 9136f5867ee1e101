"""The part of the hazard check for NoC requests: data, sources and semaphores that are used before a request is over.

A request is over for the core that has started it once that core has loaded a counter that says so (N20): responses
of reads, acknowledgements of writes, writes that have left, requests outstanding of a transaction id.
The machine answers requests at once (N26), so a loaded counter always says that all are over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from bhemu.analysis.hazard import NOC, Place, Reports
from bhemu.analysis.tile_events import CounterRead, Started, Touch, core_name
from bhemu.isa import niu
from bhemu.recording.noc_requests import ATOMIC, READ, WRITE, Request

_OUTGOING: Final = niu.OUTSTANDING + niu.TRANSACTION_IDS
"""Number of the first counter of writes that have not left, by transaction id."""
_SMALL: Final = 16
"""Bytes of a write up to which it may be a semaphore or a flag."""


@dataclass(slots=True)
class Pending:
    """A request that its core does not know to be over.

    Attributes:
        request: the request.
        place: where it was started.
        begin, end: bytes of the own L1 that it reads or writes.
        leaving: of a write: its source may still be read.
    """

    request: Request
    place: Place
    begin: int
    end: int
    leaving: bool = False


@dataclass
class NocCheck:
    """NoC requests of one tile (N20, N25).

    Args:
        reports: where hazards go.

    Attributes:
        reads: whose data may not have arrived.
        writes: that may not have been acknowledged.
    """

    reports: Reports
    reads: list[Pending] = field(default_factory=list)
    writes: list[Pending] = field(default_factory=list)

    # --- L1 -----------------------------------------------------------------------------------------------------------

    def touched(self, touch: Touch) -> None:
        """An agent of the tile accesses L1."""
        if self.reads:
            self._reads_into(touch.begin, touch.end, touch.place, writes=touch.writes)
        if touch.writes and self.writes:
            self._leaves_from(touch.begin, touch.end, touch.place)

    def _reads_into(self, begin: int, end: int, place: Place, *, writes: bool) -> None:
        for pending in self.reads:
            if pending.begin < end and begin < pending.end:
                verb = "overwrites bytes that a NoC read" if writes else "uses bytes that a NoC read"
                self.reports.add(
                    NOC,
                    "tile N20, N25",
                    f"{verb} still brings: {core_name(pending.request.core)} has not waited for its end",
                    pending.place,
                    place,
                    f"noc_async_read_barrier on NoC {pending.request.noc} by {core_name(pending.request.core)}",
                )

    def _leaves_from(self, begin: int, end: int, place: Place) -> None:
        for pending in self.writes:
            if pending.leaving and pending.begin < end and begin < pending.end:
                self.reports.add(
                    NOC,
                    "tile N20, N25",
                    "overwrites the source of a NoC write that may not have left: "
                    f"{core_name(pending.request.core)} has not waited for that",
                    pending.place,
                    place,
                    f"noc_async_writes_flushed or noc_async_write_barrier on NoC {pending.request.noc} by "
                    f"{core_name(pending.request.core)}",
                )

    # --- requests -----------------------------------------------------------------------------------------------------

    def started(self, event: Started) -> None:
        """A core has started a request."""
        request, place = event.request, event.place
        begin, end = request.local, request.local + request.size
        if request.kind == READ and begin >= 0:
            self._leaves_from(begin, end, place)
            self._crosses(request, place)
            self.reads.append(Pending(request, place, begin, end))
        elif request.kind == WRITE:
            if begin >= 0:
                self._reads_into(begin, end, place, writes=False)
            if request.size <= _SMALL:
                self._overtakes(request, place)
            self.writes.append(Pending(request, place, begin, end, leaving=begin >= 0))
        elif request.kind == ATOMIC:
            self._overtakes(request, place)

    def _crosses(self, request: Request, place: Place) -> None:
        """Two reads that bring different data to the same bytes."""
        for pending in self.reads:
            other = pending.request
            same = (other.other, other.address - other.local) == (request.other, request.address - request.local)
            overlap = pending.begin < request.local + request.size and request.local < pending.end
            if overlap and not same:
                self.reports.add(
                    NOC,
                    "tile N20, N25",
                    "brings other data to bytes that a NoC read still brings: either may arrive last",
                    pending.place,
                    place,
                    f"noc_async_read_barrier on NoC {other.noc} between them",
                )

    def _overtakes(self, request: Request, place: Place) -> None:
        """A semaphore or flag may arrive before the data that it announces (N25)."""
        for pending in self.writes:
            data = pending.request
            if data.core != request.core or data.size <= _SMALL or not _same_end(data, request):
                continue
            ordered = data.noc == request.noc and data.channel == request.channel and data.channel >= 0
            if not ordered:
                way = f"NoC {request.noc}" if data.noc != request.noc else "another virtual channel"
                self.reports.add(
                    NOC,
                    "tile N25",
                    f"announces data to a tile over {way} before their write is acknowledged, and may overtake it",
                    pending.place,
                    place,
                    f"noc_async_write_barrier on NoC {data.noc} between them",
                )

    # --- ends ---------------------------------------------------------------------------------------------------------

    def counted(self, event: CounterRead) -> None:
        """A core has loaded a counter."""
        core, noc, index = event.core, event.noc, event.index
        if index == niu.READ_RESPONSES:
            self.reads = [one for one in self.reads if not _is_of(one, core, noc)]
        elif index == niu.WRITE_ACKNOWLEDGEMENTS:
            self.writes = [one for one in self.writes if not (_is_of(one, core, noc) and one.request.answered)]
        elif index in (niu.WRITES_SENT, niu.POSTED_WRITES_SENT):
            answered = index == niu.WRITES_SENT
            self._left(core, noc, lambda one: one.request.answered == answered)
        elif niu.OUTSTANDING <= index < _OUTGOING:
            tag = index - niu.OUTSTANDING
            ended = [
                one
                for one in (*self.reads, *self.writes)
                if _is_of(one, core, noc)
                and one.request.tag == tag
                and one.request.answered
                and (event.value & 0xFF == 0 or one.request.multicast)
            ]
            self.reads = [one for one in self.reads if one not in ended]
            self.writes = [one for one in self.writes if one not in ended]
        elif index < _OUTGOING + niu.TRANSACTION_IDS and index >= _OUTGOING and event.value & 0xFF == 0:
            self._left(core, noc, lambda one: one.request.tag == index - _OUTGOING)

    def _left(self, core: int, noc: int, which: Callable[[Pending], bool]) -> None:
        for one in self.writes:
            if _is_of(one, core, noc) and which(one):
                one.leaving = False
        # What is posted is never acknowledged: nothing more can be known of it.
        self.writes = [one for one in self.writes if one.leaving or one.request.answered]

    def ended(self, core: int | None = None) -> None:
        """The program of a core has ended, or None: that of the tile."""
        for pending in (*self.reads, *self.writes):
            request = pending.request
            if core not in (None, request.core) or not (request.kind == READ or pending.leaving):
                continue
            what = "the data of its NoC read have arrived" if request.kind == READ else "its NoC write has left"
            barrier = "noc_async_read_barrier" if request.kind == READ else "noc_async_write_barrier"
            self.reports.add(
                NOC,
                "tile N20",
                f"a kernel ends before {what}",
                pending.place,
                pending.place,
                f"{barrier} on NoC {request.noc} before the end",
            )
        self.reads = [one for one in self.reads if core not in (None, one.request.core)]
        self.writes = [one for one in self.writes if core not in (None, one.request.core)]

    def forget(self) -> None:
        """What follows belongs to another program, or something was left out."""
        self.reads, self.writes = [], []


def _is_of(pending: Pending, core: int, noc: int) -> bool:
    return pending.request.core == core and pending.request.noc == noc


def _same_end(data: Request, signal: Request) -> bool:
    """Both go to one tile."""
    return data.reaches(signal.other) or signal.reaches(data.other)
