"""`bhemu compare`: both sides run, a difference is followed back, and the report says what was found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bhemu.cli.report import print_json, shown_path

if TYPE_CHECKING:
    from bhemu.cli.compare import Subject
    from bhemu.cli.progress import Progress
    from bhemu.debug.history import History
    from bhemu.host.loaded import Loaded
    from bhemu.proof.compare.chip_side import ChipSide
    from bhemu.proof.compare.locate import Moment
    from bhemu.proof.compare.lockstep import Difference, OtherSide, Played
    from bhemu.proof.compare.places import Place

LAST_CALLS = 6
_SHOWN_BYTES = 16


@dataclass
class Comparison:
    """A comparison and what is known about it.

    Attributes:
        ours: bhemu's side, as the calls have left it.
        other: what the other side is called.
        recorded: the other side is what a trace says.
        moment: when memory begins to differ.
        past: what the tile did before.
    """

    subject: Subject
    ours: ChipSide
    other: str
    recorded: bool
    played: Played
    loaded: Loaded
    moment: Moment | None = None
    past: History | None = None
    notes: list[str] = field(default_factory=list)

    @cached_property
    def places(self) -> dict[int, Place]:
        """Where calls lead, by the calls' numbers."""
        from bhemu.proof.compare.calls import READ, WRITE
        from bhemu.proof.compare.places import Windows

        windows, found = Windows(), {}
        for number, call in enumerate(self.played.calls):
            windows.follow(call)
            place = windows.place(call.a) if call.name in (READ, WRITE) else None
            if place is not None:
                found[number] = place
        return found


def run(
    subject: Subject,
    library: Path | None,
    record: Path | None,
    *,
    allow_open: bool,
    timeout: float,
    as_json: bool,
    quiet: bool,
    progress: Progress,
) -> bool:
    """Compare and report; True when the sides are the same.

    Raises:
        BhemuError: no comparison could be made.
    """
    from bhemu.host.loaded import Loaded
    from bhemu.proof.compare.chip_side import ChipSide
    from bhemu.proof.compare.library import LibrarySide
    from bhemu.proof.compare.lockstep import RecordedSide

    def sides() -> tuple[ChipSide, OtherSide]:
        other = RecordedSide() if library is None else LibrarySide(library, timeout)
        return ChipSide(allow_open=allow_open), other

    played, ours = _play(subject, sides, record, progress.clocks)
    loaded = Loaded()
    loaded.placements = subject.placements
    comparison = Comparison(subject, ours, "trace" if library is None else "library", library is None, played, loaded)
    compares = library is not None or subject.session is None
    if compares:
        _check_compared(comparison)
    if played.difference is not None:
        progress.show("looking for the clock in which they begin to differ")
        _explain(comparison, sides, allow_open=allow_open)
    if as_json:
        print_json(_as_json(comparison, library, record))
    elif not quiet:
        _print(comparison, record, compares=compares)
    return played.difference is None and not played.host_differs


def _play(
    subject: Subject, sides: Callable[[], tuple[ChipSide, OtherSide]], record: Path | None, progress: Any
) -> tuple[Played, ChipSide]:
    from bhemu.proof.compare.lockstep import play
    from bhemu.proof.compare.trace import TraceWriter

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
    """A comparison of nothing is none."""
    played = comparison.played
    if played.compared == 0 and played.difference is None and played.agreed_end is None:
        from bhemu.proof.compare.trace import TraceError

        raise TraceError(
            f"{comparison.subject.name} has {len(played.calls):,} calls and nothing to compare: "
            + ("no answer is recorded" if comparison.recorded else "it reads nothing"),
            remedy="record a client that reads what it computes, with `bhemu library DIR --record LIBRARY`",
        )


# --- a difference -----------------------------------------------------------------------------------------------------


def _explain(comparison: Comparison, sides: Any, *, allow_open: bool) -> None:
    """Find when it begins, and what happened before."""
    from bhemu.debug.history import history
    from bhemu.proof.compare.calls import CLOCK, Ended
    from bhemu.proof.compare.locate import locate

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
        if difference.call.name == CLOCK and ended.clock is not None:
            until = min(max(ended.clock, until) + 1, until + difference.call.a)
        tile = _tile_at_fault(comparison)
    elif not comparison.recorded:
        comparison.moment = locate(calls, difference, sides)
        if comparison.moment is not None:
            until, word = comparison.moment.clock, comparison.moment.place.address
            calls = calls[: comparison.moment.index + 1]
        elif place is not None and place.is_memory:
            comparison.notes.append("made again with a look after each call, the calls do not differ there")
    if tile is not None:
        comparison.past = history(
            calls, until, tile, word=word, executables=comparison.loaded.holding, allow_open=allow_open
        )


def _tile_at_fault(comparison: Comparison) -> int | None:
    """The tile whose instruction bhemu refuses, or else the last one that a window was pointed at."""
    from bhemu.chip.coordinates import NODES

    error = comparison.ours.error
    if error is not None and error.tile is not None:
        return NODES[error.tile].index
    tiles = [place.tile for place in comparison.places.values() if place.tile is not None]
    return tiles[-1] if tiles else None


# --- the report -------------------------------------------------------------------------------------------------------


def _counts(played: Played) -> str:
    answers = "1 answer" if played.compared == 1 else f"{played.compared:,} answers"
    calls = "1 call" if len(played.calls) == 1 else f"{len(played.calls):,} calls"
    return f"{calls}, {answers} of {played.bytes:,} bytes compared, {played.clocks:,} clocks"


def _print(comparison: Comparison, record: Path | None, *, compares: bool) -> None:
    played, session = comparison.played, comparison.subject.session
    if record is not None:
        typer.echo(f"wrote {shown_path(record)}: {len(played.calls):,} calls")
    if played.difference is not None:
        for line in _difference_lines(comparison, played.difference):
            typer.echo(line)
        return
    if played.host_differs:
        typer.echo(f"different: what the chip wrote to the host's memory ({_counts(played)})")
        return
    if not compares:
        return
    typer.echo(f"the same: {_counts(played)}")
    if played.agreed_end is not None:
        ours, theirs = played.agreed_end
        typer.echo(f"both end it at {played.calls[-1]}")
        typer.echo(f"  {'bhemu':<8} {ours}")
        typer.echo(f"  {comparison.other:<8} {theirs}")
    elif session is not None and session.finished == "limit":
        typer.echo(f"not done after {session.max_clocks:,} clocks (--max-clocks)")
    elif session is not None and session.finished == "stuck":
        typer.echo("nothing can move any more, and somebody waits:")
        typer.echo(_explain_stuck(comparison))


def _explain_stuck(comparison: Comparison) -> str:
    from bhemu.host.stuck import explain_all

    session, loaded, chip = comparison.subject.session, comparison.loaded, comparison.ours.chip
    assert session is not None
    record = chip.cores(chip.node(session.tile).index).record
    return explain_all(record, loaded.describe, loaded.name_of_word, loaded.pusher)


def _difference_lines(comparison: Comparison, difference: Difference) -> list[str]:
    from bhemu.proof.compare.calls import Ended

    lines = []
    moment = comparison.moment
    if isinstance(difference.ours, Ended) or isinstance(difference.theirs, Ended):
        lines.append(f"different: call {difference.index:,} after {difference.clock:,} clocks, {difference.call}")
        for name, outcome in (("bhemu", difference.ours), (comparison.other, difference.theirs)):
            lines.append(f"  {name:<8} {outcome if isinstance(outcome, Ended) else 'goes on'}")
    elif moment is not None:
        lines.append(f"different: {moment.place}{_symbol(comparison, moment.place.address)}")
        lines += [f"  {'bhemu':<8} {moment.ours:#010x}", f"  {comparison.other:<8} {moment.theirs:#010x}"]
        if moment.before is None:
            lines.append("  it differs from the beginning")
        else:
            lines.append(f"  {'before':<8} {moment.before:#010x}")
        lines.append(f"  since clock {moment.clock:,}, in call {moment.index:,}: {_call(comparison, moment.index)}")
        lines.append(f"  seen by call {difference.index:,}: {difference.call}, {_bytes(difference)}")
    else:
        lines.append(f"different: call {difference.index:,} after {difference.clock:,} clocks, {difference.call}")
        if difference.place is not None:
            lines.append(f"  at {difference.place}{_symbol(comparison, difference.place.address)}")
        lines += [f"  {name:<8} {_hex(difference, out)}" for name, out in _answers(comparison, difference)]
        if difference.call.size > 1:
            lines.append(f"  {_bytes(difference)}, from byte {difference.offset:,} on")
    lines += [f"  {note}" for note in comparison.notes]
    last = difference.index if moment is None else moment.index
    first = max(0, last - LAST_CALLS)
    lines.append("last calls")
    lines += [f"  {n:>6,}  {_call(comparison, n)}" for n in range(first, last + 1)]
    return lines + _past_lines(comparison)


def _answers(comparison: Comparison, difference: Difference) -> list[tuple[str, Any]]:
    return [("bhemu", difference.ours), (comparison.other, difference.theirs)]


def _hex(difference: Difference, answer: bytes) -> str:
    part = answer[difference.offset : difference.offset + _SHOWN_BYTES]
    return part.hex(" ") + (" ..." if len(answer) > difference.offset + _SHOWN_BYTES else "")


def _bytes(difference: Difference) -> str:
    return f"{difference.count:,} of {difference.call.size or 4:,} bytes differ"


def _symbol(comparison: Comparison, address: int) -> str:
    name = comparison.loaded.name_of_word(address)
    return f" ({name})" if name else ""


def _call(comparison: Comparison, number: int) -> str:
    """A call, with the place that it reaches."""
    place = comparison.places.get(number)
    call = comparison.played.calls[number]
    return f"{call}" + (f": {place}{_symbol(comparison, place.address)}" if place is not None else "")


def _past_lines(comparison: Comparison) -> list[str]:
    past = comparison.past
    if past is None:
        return []
    lines = []
    if past.lines:
        lines += ["what the tile did before, on bhemu", *past.lines]
    if past.note:
        lines.append(past.note)
    if past.cores:
        lines.append("cores: " + ", ".join(f"{name} {state}" for name, state in past.cores.items()))
    return lines


def _as_json(comparison: Comparison, library: Path | None, record: Path | None) -> dict[str, Any]:
    played = comparison.played
    report: dict[str, Any] = {
        "what": comparison.subject.name,
        "library": None if library is None else str(library),
        "recorded": None if record is None else str(record),
        "same": played.difference is None and not played.host_differs,
        "calls": len(played.calls),
        "answers": played.compared,
        "bytes": played.bytes,
        "clocks": played.clocks,
        "host_memory_differs": played.host_differs,
    }
    if comparison.subject.session is not None:
        report["finished"] = comparison.subject.session.finished
    if played.agreed_end is not None:
        report["both_end"] = [_outcome(end) for end in played.agreed_end]
    if played.difference is not None:
        report["difference"] = _difference_json(comparison, played.difference)
    return report


def _outcome(outcome: Any) -> Any:
    from bhemu.proof.compare.calls import Ended

    if isinstance(outcome, Ended):
        return {"how": outcome.how, "category": outcome.category, "text": outcome.text, "clock": outcome.clock}
    return None


def _difference_json(comparison: Comparison, difference: Difference) -> dict[str, Any]:
    moment, past = comparison.moment, comparison.past
    found: dict[str, Any] = {
        "call": difference.index,
        "what": str(difference.call),
        "clock": difference.clock,
        "place": None if difference.place is None else str(difference.place),
        "offset": difference.offset,
        "bytes": difference.count,
        "ends": {name: _outcome(outcome) for name, outcome in _answers(comparison, difference)},
    }
    if moment is not None:
        found["begins"] = {
            "call": moment.index,
            "clock": moment.clock,
            "address": moment.place.address,
            "tile": list(moment.place.coordinates),
            "symbol": comparison.loaded.name_of_word(moment.place.address) or None,
            "before": moment.before,
            "bhemu": moment.ours,
            comparison.other: moment.theirs,
        }
    if past is not None:
        found["history"] = {"lines": past.lines, "cores": past.cores, "note": past.note}
    return found
