"""A comparison from beginning to end: both sides run, and a difference is followed back to where it begins.

Example:
    subject = Subject("sum.elf", session=elf.session(placements), placements=placements)
    comparison = compare(subject, Path("libttsim_bh.so"))
    print(comparison.is_same, comparison.played.difference)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from bhemu.checks import checked
from bhemu.chip.coordinates import NODES
from bhemu.compare.calls import CLOCK, READ, WRITE, Call, Ended
from bhemu.compare.chip_side import ChipSide
from bhemu.compare.history import History, history
from bhemu.compare.library import TIMEOUT, LibrarySide
from bhemu.compare.locate import FirstDifference, locate, locate_end
from bhemu.compare.lockstep import OtherSide, Played, RecordedSide, play
from bhemu.compare.places import Place, Windows
from bhemu.compare.session import Session
from bhemu.compare.trace import TraceError, TraceWriter
from bhemu.loader.boot import Placement
from bhemu.loader.loaded import Loaded


@dataclass
class Subject:
    """What is compared.

    Attributes:
        name: as the user gave it.
        session: of a program; None for a trace.
        trace: calls of a trace.
        placements: ELF files, for symbols.
    """

    name: str
    session: Session | None = None
    trace: list[Call] = field(default_factory=list)
    placements: list[Placement] = field(default_factory=list)


@dataclass
class Comparison:
    """A comparison and what is known about it.

    Attributes:
        ours: bhemu's side, as the calls have left it.
        other: what the other side is called: `library` or `trace`.
        first_difference: when memory begins to differ.
        past: what the tile did before.
        notes: what else is to be said.
    """

    subject: Subject
    ours: ChipSide
    other: str
    played: Played
    loaded: Loaded
    first_difference: FirstDifference | None = None
    past: History | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def is_same(self) -> bool:
        """No difference was found."""
        return self.played.difference is None and not self.played.host_differs

    @cached_property
    def places(self) -> dict[int, Place]:
        """Where calls lead, by the calls' numbers."""
        windows, found = Windows(), {}
        for number, call in enumerate(self.played.calls):
            windows.follow(call)
            place = windows.place(call.a) if call.name in (READ, WRITE) else None
            if place is not None:
                found[number] = place
        return found


@checked
def compare(
    subject: Subject,
    library: Path | None,
    *,
    record: Path | None = None,
    allow_open: bool = False,
    timeout: float = TIMEOUT,
    progress: Callable[[int], None] | None = None,
    found: Callable[[], None] | None = None,
) -> Comparison:
    """Make the same calls on bhemu and on another library.

    Args:
        library: None takes the answers of the trace; a program is then only run, to be recorded.
        record: file that gets the calls and bhemu's answers.
        allow_open: use the recommended choice where no source settles what silicon does.
        timeout: seconds that the library may take for a call.
        progress: called now and then with the clocks that have passed.
        found: called when there is a difference, before it is followed back.

    Raises:
        LibraryError: the library cannot be used.
        TraceError: nothing was compared, or the trace cannot be written.
    """

    def sides() -> tuple[ChipSide, OtherSide]:
        other = RecordedSide() if library is None else LibrarySide(library, timeout)
        return ChipSide(allow_open=allow_open), other

    played, ours = _play(subject, sides, record, progress)
    difference = played.difference
    is_unknown = difference is not None and isinstance(difference.theirs, Ended) and difference.theirs.how == "unknown"
    if difference is not None and is_unknown and difference.index + 1 < len(subject.trace):
        played.difference = replace(difference, theirs=b"")  # there are more calls, so it went on
    loaded = Loaded()
    loaded.placements = subject.placements
    comparison = Comparison(subject, ours, "trace" if library is None else "library", played, loaded)
    if library is not None or subject.session is None:
        _check_compared(comparison)
    if played.difference is not None:
        if found is not None:
            found()
        _explain(comparison, sides, allow_open=allow_open)
    return comparison


def _play(
    subject: Subject, sides: Callable[[], tuple[ChipSide, OtherSide]], record: Path | None, progress: Any
) -> tuple[Played, ChipSide]:
    ours, theirs = sides()
    try:
        writer = TraceWriter(record) if record is not None else None
        script = subject.trace if subject.session is None else subject.session.calls(ours)
        try:
            played = play(script, ours, theirs, progress=progress, keep=writer.call if writer is not None else None)
        finally:
            if writer is not None:
                writer.close()
    finally:
        theirs.close()
    return played, ours


def _check_compared(comparison: Comparison) -> None:
    """A comparison that compared nothing is refused."""
    played = comparison.played
    if played.compared == 0 and played.difference is None and played.agreed_end is None:
        raise TraceError(
            f"{comparison.subject.name} has {len(played.calls):,} calls and nothing to compare: "
            + ("no answer is recorded" if comparison.other == "trace" else "it reads nothing"),
            remedy="record a client that reads what it computes, with `bhemu library DIR --record LIBRARY`",
        )


def _explain(comparison: Comparison, sides: Any, *, allow_open: bool) -> None:
    """Find when it begins, and what happened before."""
    difference = comparison.played.difference
    assert difference is not None
    place = difference.place
    until = difference.clock
    tile = place.tile if place is not None else None
    word = None
    calls = comparison.played.calls
    if isinstance(difference.ours, Ended) or isinstance(difference.theirs, Ended):
        ended = difference.ours if isinstance(difference.ours, Ended) else difference.theirs
        assert isinstance(ended, Ended)
        last = ended.clock
        if difference.call.name == CLOCK and ended is difference.theirs and ended.how in ("killed", "ended"):
            last = locate_end(calls, difference, sides)
            if last is not None:
                comparison.notes.append(f"it ends in the clock after {last:,}")
        if difference.call.name == CLOCK and last is not None:
            until = min(max(last, until) + 1, until + difference.call.a)
        tile = _tile_at_fault(comparison)
    elif comparison.other == "library":
        comparison.first_difference = locate(calls, difference, sides)
        if comparison.first_difference is not None:
            until, word = comparison.first_difference.clock, comparison.first_difference.place.address
            calls = calls[: comparison.first_difference.index + 1]
        elif place is not None and place.is_memory:
            comparison.notes.append("made again with a look after each call, the calls do not differ there")
    if tile is not None:
        comparison.past = history(
            calls, until, tile, word=word, executables=comparison.loaded.holding, allow_open=allow_open
        )


def _tile_at_fault(comparison: Comparison) -> int | None:
    """The tile whose instruction bhemu refuses, or else the last one that a window was pointed at."""
    error = comparison.ours.error
    if error is not None and error.tile is not None:
        return NODES[error.tile].index
    tiles = [place.tile for place in comparison.places.values() if place.tile is not None]
    return tiles[-1] if tiles else None
