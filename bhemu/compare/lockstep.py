"""The same calls on two sides, and the first answer that differs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from bhemu.compare.calls import CLOCK, CONFIG_READ, READ, Call, Ended, Outcome
from bhemu.compare.chip_side import ChipSide
from bhemu.compare.places import Place, Windows

AHEAD: Final = 512
"""Calls that bhemu may be ahead of the other side."""
AHEAD_BYTES: Final = 8 << 20


class OtherSide(Protocol):
    """What answers beside bhemu."""

    def submit(self, call: Call) -> None:
        """Give it a call."""

    def result(self) -> Outcome | None:
        """The outcome of the oldest call without one; None when it is not known."""

    def host_log(self) -> bytes | None:
        """What the chip has written to the host's memory, in order; None when it is not known."""

    def close(self) -> None:
        """It is not needed any more."""


class RecordedSide:
    """The answers that a trace has."""

    def __init__(self) -> None:
        self._answers: deque[Outcome | None] = deque()

    def submit(self, call: Call) -> None:
        """Remember the answer of a call."""
        self._answers.append(call.answer)

    def result(self) -> Outcome | None:
        """The recorded answer."""
        return self._answers.popleft()

    def host_log(self) -> bytes | None:
        """Not known."""
        return None

    def close(self) -> None:
        """Nothing to do."""


@dataclass(frozen=True)
class Difference:
    """Where the sides differ first.

    Attributes:
        index: number of the call, from 0.
        call: the call.
        ours, theirs: outcomes.
        clock: clocks that had passed before the call.
        offset: of the first byte that differs, when both have answered.
        count: bytes that differ.
        place: where that byte lies on the chip, if it is behind a window.
    """

    index: int
    call: Call
    ours: Outcome
    theirs: Outcome
    clock: int
    offset: int = 0
    count: int = 0
    place: Place | None = None


@dataclass
class Played:
    """What a comparison did.

    Attributes:
        calls: all that were made on both sides, the one with the difference included.
        compared: answers that were compared.
        bytes: their bytes.
        clocks: that passed.
        difference: the first one.
        agreed_end: both sides have refused the last call, in the same category.
    """

    calls: list[Call]
    compared: int = 0
    bytes: int = 0
    clocks: int = 0
    difference: Difference | None = None
    agreed_end: tuple[Ended, Ended] | None = None
    host_differs: bool = False


class _Comparison:
    def __init__(self, ours: ChipSide, theirs: OtherSide) -> None:
        self.ours, self.theirs = ours, theirs
        self.played = Played([])
        self._windows = Windows()
        self._clock = 0
        self._under_way: deque[tuple[Call, Outcome]] = deque()
        self._bytes_ahead = 0

    def make(self, call: Call) -> Outcome:
        """Make a call on both sides; the other's answer is awaited later."""
        self.theirs.submit(call)
        outcome = self.ours.call(call)
        self._under_way.append((call, outcome))
        self._bytes_ahead += len(call.content) + call.size
        return outcome

    @property
    def far_ahead(self) -> bool:
        return len(self._under_way) > AHEAD or self._bytes_ahead > AHEAD_BYTES

    def settle(self, *, all_of_them: bool) -> bool:
        """Compare answers; False when a side has ended or they differ."""
        while self._under_way and (all_of_them or self.far_ahead):
            call, ours = self._under_way.popleft()
            self._bytes_ahead -= len(call.content) + call.size
            theirs = self.theirs.result()
            self.played.calls.append(call)
            if not self._check(call, ours, theirs):
                return False
            self._windows.follow(call)
            if call.name == CLOCK:
                self._clock += call.a
            self.played.clocks = self._clock
        return True

    def _check(self, call: Call, ours: Outcome, theirs: Outcome | None) -> bool:
        if isinstance(ours, Ended) and isinstance(theirs, Ended) and ours.category == theirs.category:
            self.played.agreed_end = ours, theirs
            return False
        if isinstance(ours, Ended) or isinstance(theirs, Ended):
            other = Ended("unknown", text="says nothing about this call") if theirs is None else theirs
            self._differ(call, ours, other)
            return False
        if theirs is None:
            return True
        if call.name in (READ, CONFIG_READ):
            self.played.compared += 1
            self.played.bytes += len(ours)
            if ours != theirs:
                self._differ(call, ours, theirs)
                return False
        return True

    def _differ(self, call: Call, ours: Outcome, theirs: Outcome) -> None:
        offset = count = 0
        if isinstance(ours, bytes) and isinstance(theirs, bytes) and call.name in (READ, CONFIG_READ):
            different = [i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b]
            offset, count = different[0], len(different)
        place = self._windows.place(call.a + offset) if call.name == READ else None
        index = len(self.played.calls) - 1
        self.played.difference = Difference(index, call, ours, theirs, self._clock, offset, count, place)


def play(
    script: Iterable[Call],
    ours: ChipSide,
    theirs: OtherSide,
    *,
    progress: Callable[[int], None] | None = None,
    keep: Callable[[Call, Outcome], None] | None = None,
) -> Played:
    """Make calls on both sides until they end or differ.

    Args:
        script: the calls; it may read `ours`, which has made all calls that it has given.
        ours: bhemu.
        theirs: the other side.
        progress: called now and then with the clocks that have passed.
        keep: called with each call and what bhemu says to it.
    """
    comparison = _Comparison(ours, theirs)
    for call in script:
        outcome = comparison.make(call)
        if keep is not None:
            keep(call, outcome)
        if comparison.far_ahead:
            if not comparison.settle(all_of_them=False):
                return comparison.played
            if progress is not None:
                progress(ours.time)
        if isinstance(outcome, Ended):
            break
    if comparison.settle(all_of_them=True):
        log = theirs.host_log()
        comparison.played.host_differs = log is not None and log != ours.host_log()
    return comparison.played
