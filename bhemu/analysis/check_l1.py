"""The part of the hazard check for L1: accesses of cores, units and NoC requests that nothing orders.

Each core and each thread of the coprocessor has a clock of what it knows to be over. What hands work over carries the
clock along: words of L1 that a core polls, semaphores, mutexes, mailboxes, counters of circular buffers, source banks,
TTSync, the words that a core pushes to its thread, and a release from reset. Two accesses to the same bytes race when
one of them writes and the later agent does not know of the earlier access.

A wait is trusted: who has looked at a semaphore knows what all have done who had posted it by then. What other tiles
write is not followed, and neither is the time that a unit takes (check.py, check_noc.py).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from bhemu.analysis.hazard import L1, Place, Reports
from bhemu.analysis.tile_events import CORE, Pages, Started, Sync, Touch
from bhemu.machine.agents import CORES, T0
from bhemu.machine.state import THREADS
from bhemu.recording.core_log import is_t_core
from bhemu.recording.noc_requests import ATOMIC, READ, Request

_AGENTS: Final = CORES + THREADS
_UNIT: Final = 16
"""Bytes that are looked up together."""
Clock = list[int]


@dataclass(slots=True)
class _Access:
    """An access to L1: by whom, when on its own clock, which bytes, where."""

    agent: int
    when: int
    begin: int
    end: int
    place: Place


@dataclass(slots=True)
class _Bytes:
    """Latest accesses to 16 bytes: the writes and reads of each agent."""

    writes: dict[int, _Access] = field(default_factory=dict)
    reads: dict[int, _Access] = field(default_factory=dict)


@dataclass
class RaceCheck:
    """Accesses to L1 of one tile.

    Args:
        reports: where hazards go.
    """

    reports: Reports
    _clocks: list[Clock] = field(default_factory=lambda: [[0] * _AGENTS for _ in range(_AGENTS)])
    _shared: dict[object, Clock] = field(default_factory=dict)
    _bytes: dict[int, _Bytes] = field(default_factory=dict)
    _pushed: list[list[int]] = field(default_factory=lambda: [[] for _ in range(THREADS)])
    _at_push: list[list[Clock]] = field(default_factory=lambda: [[] for _ in range(THREADS)])
    _waits: list[set[object]] = field(default_factory=lambda: [set() for _ in range(THREADS)])
    _flags: set[int] = field(default_factory=set)
    _begin: int = 0

    def begin(self, flags: Iterable[int], first: int) -> None:
        """A program begins: what came before it is over.

        Args:
            flags: words of L1 that cores poll.
            first: bytes of L1 below are the firmware's own.
        """
        self._flags = set(flags)
        self._begin = first
        self._bytes.clear()
        for thread in range(THREADS):
            self._pushed[thread].clear()
            self._at_push[thread].clear()

    def forget(self) -> None:
        """Something was left out, and with it what may have ordered the accesses so far with later ones."""
        self._bytes.clear()

    # --- what orders --------------------------------------------------------------------------------------------------

    def _join(self, agent: int, other: Clock | None) -> None:
        if other is not None:
            self._clocks[agent] = [max(a, b) for a, b in zip(self._clocks[agent], other, strict=True)]

    def _release(self, agent: int, name: object) -> None:
        mine, known = self._clocks[agent], self._shared.get(name)
        self._shared[name] = list(mine) if known is None else [max(a, b) for a, b in zip(mine, known, strict=True)]

    def _arrive(self, thread: int, push: int) -> int:
        """The word of a thread knows what its core knew that pushed it; gives the thread's agent."""
        agent = CORES + thread
        at = bisect_right(self._pushed[thread], push - 1) - 1
        if at >= 0:
            self._join(agent, self._at_push[thread][at])
        for name in self._waits[thread]:
            self._join(agent, self._shared.get(name))
        self._waits[thread].clear()
        return agent

    def _keep(self, core: int, pushed: int) -> None:
        """Remember what a T core knows, for the words that it pushes from now on."""
        if is_t_core(core):
            self._pushed[core - T0].append(pushed)
            self._at_push[core - T0].append(list(self._clocks[core]))

    def synchronised(self, event: Sync) -> None:
        """Something was handed over."""
        agent = event.core
        if event.thread >= 0:
            if event.later:
                self._waits[event.thread].add(event.name)
                return
            agent = self._arrive(event.thread, event.push)
        if event.acquires:
            self._join(agent, self._shared.get(event.name))
        if event.of_thread >= 0:
            self._join(agent, self._clocks[CORES + event.of_thread])
        if event.releases:
            self._release(agent, event.name)
        if event.thread < 0:
            self._keep(event.core, event.push)

    def counted(self, event: Pages) -> None:
        """A counter of a circular buffer was loaded or stored."""
        self.synchronised(
            Sync(
                ("pages", event.stream, event.received),
                event.core,
                event.push,
                acquires=not event.stored,
                releases=event.stored,
                thread=event.thread,
            )
        )

    # --- accesses -----------------------------------------------------------------------------------------------------

    def touched(self, touch: Touch) -> None:
        """An agent accesses L1."""
        if touch.end <= self._begin:
            return
        word = touch.begin & ~3
        if touch.who == CORE and touch.end - touch.begin <= 4 and word in self._flags:
            self.synchronised(
                Sync(("word", word), touch.core, touch.push, acquires=not touch.writes, releases=touch.writes)
            )
            return
        agent = touch.core if touch.thread < 0 else self._arrive(touch.thread, touch.push)
        self._access(agent, touch.begin, touch.end, touch.place, writes=touch.writes)
        if touch.thread < 0:
            self._keep(touch.core, touch.push)

    def started(self, event: Started, push: int) -> None:
        """A core has started a NoC request, which accesses L1 for it."""
        request = event.request
        if request.kind == ATOMIC:
            self._flags.add(request.address & ~3)
        if request.local < 0 or request.size == 0 or request.local < self._begin:
            return
        end = request.local + request.size
        if not _is_flag(request, self._flags):
            self._access(request.core, request.local, end, event.place, writes=request.kind == READ)
            self._keep(request.core, push)

    def _access(self, agent: int, begin: int, end: int, place: Place, *, writes: bool) -> None:
        clock = self._clocks[agent]
        clock[agent] += 1
        mine = _Access(agent, clock[agent], begin, end, place)
        raced: dict[int, tuple[_Access, bool]] = {}
        for number in range(begin // _UNIT, (end + _UNIT - 1) // _UNIT):
            known = self._bytes.get(number)
            if known is None:
                known = self._bytes[number] = _Bytes()
            for other in known.writes.values():
                if other.agent != agent and clock[other.agent] < other.when and other.begin < end and begin < other.end:
                    raced[id(other)] = other, True
            if writes:
                for other in known.reads.values():
                    before = clock[other.agent] < other.when
                    if other.agent != agent and before and other.begin < end and begin < other.end:
                        raced[id(other)] = other, False
                known.writes[agent] = mine
            else:
                known.reads[agent] = mine
        for other, wrote in raced.values():
            verb = "writes" if writes else "reads"
            self.reports.add(
                L1,
                "tile T31, K20, K51",
                f"{verb} bytes of L1 that {other.place.agent} {'writes' if wrote else 'reads'}, and nothing orders the "
                "two",
                other.place,
                place,
                "a semaphore, a circular buffer, a mailbox or a flag that the later one waits for; or bytes of its own",
            )


def _is_flag(request: Request, flags: set[int]) -> bool:
    """The request moves a word that cores poll, not data."""
    return request.size <= _UNIT and any(
        word in flags for word in range(request.local & ~3, request.local + request.size, 4)
    )
