"""Going back in time: snapshots of a run every so often, and deterministic runs forward from them.

A machine computes the same from the same state, so an earlier state is a snapshot before it and a run up to it.
Snapshots are thinned as they get older, so memory is bounded: the distance between two is about proportional to age.
What the user writes is not computed by the machine: there a new *segment* begins, with a snapshot.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import bhemu.checks as checks
from bhemu.debugger.breakpoints import Breakpoint, DebugError
from bhemu.debugger.stops import Stop
from bhemu.debugger.watchpoints import Watch

Position = tuple[int, ...]
"""Where a machine is; positions are ordered as time is."""

LIMIT: Final = 512 << 20
"""Bytes of snapshots, by default."""
LEAST: Final = 3
"""Snapshots that are kept whatever they take: the first one, the latest one, and one for the present."""
NEARBY: Final = 32
"""Instructions before the goal of a step backwards at which a snapshot is taken, for the next such step."""


class Timeline(ABC):
    """What a history needs of a machine: `Runner` for a tile, `ChipDebug` for a chip."""

    interval: int
    """Clocks from one snapshot to the next."""

    @property
    @abstractmethod
    def clock(self) -> int:
        """Clocks that have passed."""

    @abstractmethod
    def position(self) -> Position:
        """Where the machine is."""

    @abstractmethod
    def copy(self) -> tuple[Any, int]:
        """Its whole state, and how many bytes that takes."""

    @abstractmethod
    def put(self, state: Any) -> None:
        """Put it back into a state."""

    @abstractmethod
    def fingerprint(self) -> bytes:
        """A digest of what programs can observe."""

    @abstractmethod
    def play(self, goal: Callable[[], bool]) -> Stop:
        """Run until a goal is reached, or until something stops the run; semihosting is served without output."""

    @abstractmethod
    def points(self) -> tuple[list[list[Breakpoint]], list[list[Watch]]]:
        """The breakpoints and the watchpoints, by tile."""

    @abstractmethod
    def set_points(self, points: tuple[list[list[Breakpoint]], list[list[Watch]]]) -> None:
        """Put others in their place."""

    def check_past(self) -> None:  # noqa: B027  most machines can
        """Refuse to go back, where a machine cannot.

        Raises:
            DebugError: why not.
        """

    def check_change(self) -> None:  # noqa: B027  it begins a new run
        """Refuse that the user writes, where a machine cannot take that.

        Raises:
            DebugError: why not.
        """

    @property
    def only_repeats(self) -> bool:
        """What the machine runs forward is in its history already."""
        return False

    def left(self, present: Checkpoint) -> None:
        """The machine has gone back from a present: few have to know."""
        checks.instance(present, "present", Checkpoint)


@dataclass
class Checkpoint:
    """A snapshot of a run.

    Attributes:
        position: where it was taken.
        clock: clocks that had passed.
        state: for the machine.
        size: bytes.
        segment: number of the segment that it is of.
    """

    position: Position
    clock: int
    state: Any
    size: int
    segment: int

    @property
    def order(self) -> tuple[int, Position]:
        """Checkpoints are ordered by this."""
        return self.segment, self.position


class History:
    """The past of a machine.

    Args:
        machine: that runs.
        limit: bytes of snapshots.

    Attributes:
        checkpoints: by position.
        limit: bytes; the oldest snapshot and the two latest are kept in any case.
        enabled: snapshots are taken.
        playing: the machine repeats what it has done.
        poll: asked now and then while it does; True interrupts it.
    """

    def __init__(self, machine: Timeline, limit: int = LIMIT) -> None:
        self.machine = machine
        self.checkpoints: list[Checkpoint] = []
        self.limit = limit
        self.enabled = True
        self.playing = False
        self.poll: Callable[[], bool] | None = None
        self._segment = -1
        self._changed = True
        self._ends: dict[int, Position] = {}

    # --- taking snapshots -------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Bytes that the snapshots take."""
        return sum(item.size for item in self.checkpoints)

    def forget(self) -> None:
        """Nothing before the present is known any more."""
        self.checkpoints, self._ends = [], {}
        self._changed = True

    def changed(self) -> None:
        """The user has changed, or is about to change, the machine's state: the past goes up to here."""
        if not self.playing:
            self.machine.check_change()
            self._changed = True

    def begin(self) -> None:
        """The machine is about to run forward."""
        if self.playing or not self.enabled or self.machine.only_repeats:
            return
        now = self.machine.position()
        # What lies after a change that was made later than now does not come about by itself.
        self.checkpoints = [item for item in self.checkpoints if item.segment <= self._segment]
        if not self._changed and self.checkpoints:
            return
        if self.checkpoints:
            self._ends[self._segment] = now
            self.checkpoints = [item for item in self.checkpoints if item.position <= now]
        self._segment += 1
        self._changed = False
        self._take(now)

    def note(self) -> None:
        """Between two clocks of a run forward: take a snapshot when it is time."""
        if self.playing or not self.enabled or self.machine.only_repeats:
            return
        if self.machine.clock - self.checkpoints[-1].clock >= self.machine.interval:
            self._take(self.machine.position())

    def _take(self, now: Position) -> None:
        state, size = self.machine.copy()
        self._insert(Checkpoint(now, self.machine.clock, state, size, self._segment))

    def _insert(self, item: Checkpoint) -> None:
        items = self.checkpoints
        at = self._last_before(item) + 1
        if at < len(items) and items[at].order == item.order:
            items[at] = item
        else:
            items.insert(at, item)
        while len(items) > LEAST and self.size > self.limit:
            self._thin()

    def _thin(self) -> None:
        """Forget the snapshot that is missed least: which leaves the smallest gap, measured by its age."""
        items, now = self.checkpoints, self.checkpoints[-1].clock

        def cost(at: int) -> float:
            before, after = items[at - 1], items[at + 1]
            if items[at].segment != before.segment:  # the only way into its segment
                return float("inf")
            return (after.clock - before.clock) / (now - before.clock + 1)

        best = min(range(1, len(items) - 1), key=cost)
        if cost(best) == float("inf"):  # segments are forgotten from the oldest one on
            best = 0
        del items[best]

    def describe(self) -> str:
        """What `history` shows."""
        if not self.enabled:
            return "history is off: `history on` lets the session go back to what comes from here on"
        if not self.checkpoints:
            return f"nothing has run yet; snapshots take up to {self.limit >> 20:,} MiB"
        first, count = self.checkpoints[0].clock, len(self.checkpoints)
        return (
            f"clocks {first:,} to {self.machine.clock:,}, {count} snapshot{'s' * (count > 1)}, "
            f"{self.size / 2**20:,.1f} MiB of {self.limit >> 20:,}"
        )

    # --- going back -------------------------------------------------------------------------------------------------

    def back_to(self, executed: Callable[[], int], count: int, core: int) -> Stop:
        """Go back to the first state in which a core had executed `count` instructions fewer than now.

        That is the state that a step forward to it shows.

        Args:
            executed: how many instructions the core has executed.
            count: instructions.
            core: its number.
        """
        with self._looking_back() as present:
            self._disable_points()
            now = executed()
            target = now - count
            at = self._last_before(present)
            while at >= 0:
                self._go(at)
                if executed() < target:
                    break
                if executed() == target and self._begins_segment(at):  # what the user has seen and changed
                    return Stop("step", "", self.machine.clock, core)
                at -= 1
            if at < 0:
                self._go(0)
                if executed() >= now:
                    return self._at_beginning()
            elif not self._play(at, lambda: executed() >= target - NEARBY, present):
                self._go_behind(at, present)
            else:
                if self.machine.clock - self.checkpoints[at].clock > NEARBY:
                    self._take(self.machine.position())
                    at += 1
                if executed() < target and not self._play(None, lambda: executed() >= target, present, at):
                    self._go_behind(at, present)
            return Stop("step", "", self.machine.clock, core)

    def back_to_stop(self) -> Stop:
        """Go back to the last place at which a breakpoint or a watchpoint stops the machine."""
        with self._looking_back() as present:
            found = self._last_event(present)
            return self._at_beginning() if found is None else found

    def go_to(self, clock: int) -> None:
        """Go back to the end of a clock.

        Raises:
            DebugError: the history does not reach so far back, or the clock has not passed yet.
        """
        with self._looking_back() as present:
            self._disable_points()
            first = self.checkpoints[0].clock
            if not first <= clock <= present.clock:
                raise DebugError(
                    f"clock {clock:,} is not in the history of this session",
                    remedy=f"go to one of {first:,} to {present.clock:,}",
                )
            at = self._last_before(present)
            while at > 0 and self.checkpoints[at].clock > clock:
                at -= 1
            if at < 0:
                return
            if not self._play(at, lambda: self.machine.clock >= clock, present):
                self._go_behind(at, present)

    def last_event(self, tile: int, watches: list[Watch]) -> Stop | None:
        """The last change that one of some watchpoints has seen, or None; the machine stays where it is.

        Args:
            tile: number of the tile, in the order of `Timeline.points`.
            watches: which.
        """
        with self._looking_back() as present:
            self._disable_points()
            points = self.machine.points()
            points[1][tile] = watches
            self.machine.set_points(points)
            try:
                return self._last_event(present, with_present=True)
            finally:
                self.return_to(present)

    @contextmanager
    def _looking_back(self) -> Iterator[Checkpoint]:
        """The present as a checkpoint; points are as they were afterwards, and after an error so is the machine."""
        if not self.enabled:
            raise DebugError(
                "the history of this session is off", remedy="`history on`, before what is to be looked at"
            )
        self.machine.check_past()
        if self._changed and self.checkpoints:
            self.begin()
        if not self.checkpoints:
            raise DebugError("nothing has run in this session yet", remedy="let the program run first: `continue`")
        state, size = self.machine.copy()
        present = Checkpoint(self.machine.position(), self.machine.clock, state, size, self._segment)
        segment, points = self._segment, self.machine.points()
        kept = [[replace(item) for item in items] for items in points[0]]
        hits = [[watch.hits for watch in items] for items in points[1]]
        self.playing = True
        try:
            yield present
            if (self._segment, self.machine.position()) != present.order:
                self.machine.left(present)
        except BaseException:
            self._segment = segment
            self.machine.put(state)
            raise
        finally:
            self.playing = False
            for items, copies in zip(points[0], kept, strict=True):
                for item, copy in zip(items, copies, strict=True):
                    item.hits, item.ignore, item.enabled = copy.hits, copy.ignore, copy.enabled
                    item.temporary = copy.temporary
            for watches, counts in zip(points[1], hits, strict=True):
                for watch, count in zip(watches, counts, strict=True):
                    watch.hits = count
            self.machine.set_points(points)

    def _disable_points(self) -> None:
        breakpoints, watches = self.machine.points()
        self.machine.set_points(([[] for _ in breakpoints], [[] for _ in watches]))

    def return_to(self, present: Checkpoint) -> None:
        """Put the machine back into a present that it has left."""
        self._segment = present.segment
        self.machine.put(present.state)

    def _go(self, at: int) -> None:
        item = self.checkpoints[at]
        self._segment = item.segment
        self.machine.put(item.state)

    def _last_before(self, present: Checkpoint) -> int:
        """The number of the last checkpoint before the present; -1: none."""
        return sum(item.order < present.order for item in self.checkpoints) - 1

    def _begins_segment(self, at: int) -> bool:
        return at > 0 and self.checkpoints[at - 1].segment != self.checkpoints[at].segment

    def end_of_segment(self, present: Checkpoint) -> Position:
        """Where the run that can be repeated from the machine's state ends."""
        return present.position if self._segment == present.segment else self._ends[self._segment]

    def _end_of(self, at: int, present: Checkpoint) -> Position:
        """Where the piece of the run that begins with a checkpoint ends."""
        item = self.checkpoints[at]
        after = self.checkpoints[at + 1] if at + 1 < len(self.checkpoints) else present
        end = after.position if after.segment == item.segment else self._ends[item.segment]
        return min(end, present.position) if item.segment == present.segment else end

    def _go_behind(self, at: int, present: Checkpoint) -> None:
        """Go to the state with which the piece after that of a checkpoint begins."""
        if at + 1 < len(self.checkpoints):
            self._go(at + 1)
        else:
            self.return_to(present)

    def _play(self, start: int | None, goal: Callable[[], bool], present: Checkpoint, piece: int | None = None) -> bool:
        """Run from a checkpoint, or from here, to a goal; False when its piece of the run ends before.

        Args:
            start: number of the checkpoint; None: from here.
            goal: what ends it.
            present: how far the run has got.
            piece: number of the checkpoint with whose piece it ends, where `start` is None.
        """
        if start is not None:
            self._go(start)
        at = start if start is not None else piece
        assert at is not None
        end = self._end_of(at, present)
        while not goal():
            if self.machine.position() >= end:
                return False
            stop = self.machine.play(lambda: goal() or self.machine.position() >= end)
            if stop.reason == "interrupted":
                raise DebugError("interrupted", remedy="the session is where it was")
            if stop.reason == "fault":  # the present, at the end of the run
                return goal()
        return True

    def _events(
        self, at: int, present: Checkpoint, last: int | None = None, *, with_present: bool = False
    ) -> tuple[int, Stop | None]:
        """Run a piece of the past; how many stops there were, and the last one.

        Args:
            at: number of the checkpoint.
            present: how far the run has got.
            last: end at the stop of this number.
            with_present: a stop in the present counts.
        """
        self._go(at)
        end = self._end_of(at, present)
        is_last = at == self._last_before(present)
        count, found = 0, None
        points = self.machine.points()
        self.machine.set_points(([*map(list, points[0])], [*map(list, points[1])]))  # temporary ones go when reached
        for item in (item for items in points[0] for item in items):
            item.ignore, item.temporary = 0, False
        try:
            while (now := self.machine.position()) < end:
                stop = self.machine.play(lambda: self.machine.position() >= end)
                now = self.machine.position()
                if stop.reason == "interrupted":
                    raise DebugError("interrupted", remedy="the session is where it was")
                if stop.reason in ("breakpoint", "watch") and (
                    now < end or (now == end and (with_present or not is_last))
                ):
                    count, found = count + 1, stop
                    if count == last:
                        break
                elif stop.reason == "fault":
                    break
            if last is None and is_last and now == present.position:
                self._check(present)
        finally:
            self.machine.set_points(points)
        return count, found

    def _check(self, present: Checkpoint) -> None:
        """The run has reached the present again: it must be the same."""
        found = self.machine.fingerprint()
        self.machine.put(present.state)
        if found != self.machine.fingerprint():
            self.forget()
            raise DebugError(
                "the run does not reach its present state again: a program outside of the session has changed it",
                remedy="call `history.changed()` of the runner before Python code writes; the history begins anew here",
            )

    def _last_event(self, present: Checkpoint, *, with_present: bool = False) -> Stop | None:
        for at in range(self._last_before(present), -1, -1):
            count, found = self._events(at, present, with_present=with_present)
            if found is not None:
                return self._events(at, present, count, with_present=with_present)[1]
        return None

    def _at_beginning(self) -> Stop:
        self._go(0)
        return Stop("beginning", "the history of this session begins here", self.machine.clock)
