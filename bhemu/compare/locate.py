"""When memory begins to differ: the calls again on fresh sides, with a read of one word after each of them.

Both sides are deterministic, and reading memory through a window changes nothing, so the first read that differs is
the first difference. Clocks of one call are divided until a single one is left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bhemu.compare.calls import CLOCK, CONFIG_READ, CONFIG_WRITE, INIT, READ, WRITE, Call, Ended, clock, read
from bhemu.compare.chip_side import ChipSide
from bhemu.compare.lockstep import Difference, OtherSide, play
from bhemu.compare.places import Place, Windows, aim, entry_of, free_window

PARTS: Final = 64
"""Number of parts into which the clocks are divided each time."""
Sides = Callable[[], tuple[ChipSide, OtherSide]]
_WORD: Final = 4


@dataclass(frozen=True)
class FirstDifference:
    """When a word begins to differ.

    Attributes:
        index: number of the call in which it happens.
        clock: clocks that have passed when it has happened.
        place: the word.
        before: its value before that on both sides; None when it differs from the beginning.
        ours, theirs: its values then.
    """

    index: int
    clock: int
    place: Place
    before: int | None
    ours: int
    theirs: int


def locate(calls: list[Call], difference: Difference, sides: Sides) -> FirstDifference | None:
    """Find the clock in which the word of a difference begins to differ.

    Args:
        calls: those up to the difference.
        difference: between answers.
        sides: makes two fresh sides.

    Returns:
        None when the difference is not in memory, or does not appear again.
    """
    place = difference.place
    if place is None or not place.is_memory:
        return None
    word = Place(place.node, place.coordinates, place.address & ~(_WORD - 1))
    return _Search(calls[: difference.index + 1], word, sides).find()


def locate_end(calls: list[Call], difference: Difference, sides: Sides) -> int | None:
    """The clock in which the other side ends without saying when, in a call that lets clocks pass.

    Args:
        calls, sides: as for `locate`.
        difference: that end.

    Returns:
        Clocks that have passed before; None when it does not end there again.
    """
    skipped, length = 0, difference.call.a
    prefix = calls[: difference.index]
    while True:
        part = -(-length // PARTS)
        script = [*prefix, *([clock(skipped)] if skipped else [])]
        begin = len(script)
        script += [clock(min(part, length - passed)) for passed in range(0, length, part)]
        ours, theirs = sides()
        try:
            found = play(script, ours, theirs).difference
        finally:
            theirs.close()
        if found is None or found.index < begin or not isinstance(found.theirs, Ended):
            return None
        if part == 1:
            return found.clock
        number = found.index - begin
        skipped, length = skipped + number * part, min(part, length - number * part)


def _has_effect(call: Call) -> bool:
    return call.name not in (READ, CONFIG_READ) and entry_of(call) is None


class _Search:
    def __init__(self, calls: list[Call], word: Place, sides: Sides) -> None:
        self._word = word
        self._sides = sides
        windows, kept = Windows(), []
        for index, call in enumerate(calls[:-1]):
            windows.follow(call)
            place = windows.place(call.a) if call.name == READ else None
            if place is None or not place.is_memory:  # reads of memory change nothing
                kept.append((index, call))
        self._calls: list[tuple[int, Call]] = kept
        self._aim, self._address = aim(free_window(calls), word.coordinates, word.address)

    def find(self) -> FirstDifference | None:
        script: list[Call] = []
        origin: list[int] = []
        """For each call of the script, its place in `_calls`."""
        reads = set()
        for at, (_, call) in enumerate(self._calls):
            script.append(call)
            origin.append(at)
            extra = [*self._aim, read(self._address)] if call.name == INIT else []
            if call.name in (CLOCK, WRITE, CONFIG_WRITE) and _has_effect(call):
                extra = [read(self._address)]
            if extra:
                script += extra
                origin += [at] * len(extra)
                reads.add(len(script) - 1)
        found = self._first_differing(script, reads)
        if found is None:
            return None
        step, before, ours, theirs = found
        at = origin[step]
        index, call = self._calls[at]
        first = sum(c.a for _, c in self._calls[:at] if c.name == CLOCK)
        if call.name != CLOCK or call.a <= 1:
            return FirstDifference(
                index, first + (call.a if call.name == CLOCK else 0), self._word, before, ours, theirs
            )
        return self._divide(at, first)

    def _divide(self, at: int, first: int) -> FirstDifference | None:
        """Find the clock within the clocks of one call."""
        skipped, length = 0, self._calls[at][1].a
        prefix = [call for _, call in self._calls[:at]]
        while True:
            part = -(-length // PARTS)
            script, reads = self._aimed(prefix), set()
            if skipped:
                script.append(clock(skipped))
            script.append(read(self._address))
            reads.add(len(script) - 1)
            begin = len(script)
            for passed in range(0, length, part):
                script += [clock(min(part, length - passed)), read(self._address)]
                reads.add(len(script) - 1)
            found = self._first_differing(script, reads)
            if found is None or found[0] < begin:
                return None
            step, before, ours, theirs = found
            number = (step - begin) // 2
            if part == 1:
                when = first + skipped + number + 1
                return FirstDifference(self._calls[at][0], when, self._word, before, ours, theirs)
            skipped, length = skipped + number * part, min(part, length - number * part)

    def _aimed(self, prefix: list[Call]) -> list[Call]:
        """The calls, with the window for reading the word set after `init`."""
        script: list[Call] = []
        for call in prefix:
            script.append(call)
            if call.name == INIT:
                script += self._aim
        return script

    def _first_differing(self, script: list[Call], reads: set[int]) -> tuple[int, int | None, int, int] | None:
        """(number of the first call of `reads` that differs, the word before, the word on both sides)."""
        ours, theirs = self._sides()
        seen: list[bytes] = []
        try:
            played = play(
                script, ours, theirs, keep=lambda call, out: seen.append(out if isinstance(out, bytes) else b"")
            )
        finally:
            theirs.close()
        found = played.difference
        if found is None or found.index not in reads or not isinstance(found.theirs, bytes):
            return None
        earlier = [index for index in reads if index < found.index]
        before = int.from_bytes(seen[max(earlier)], "little") if earlier else None
        values = (int.from_bytes(value, "little") for value in (found.ours, found.theirs) if isinstance(value, bytes))
        ours_value, theirs_value = values
        return found.index, before, ours_value, theirs_value
