"""`bhemu compare`: the report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bhemu.cli.report import print_json, shown_path

if TYPE_CHECKING:
    from bhemu.compare.comparison import Comparison
    from bhemu.compare.lockstep import Difference, Played

LAST_CALLS = 6
_SHOWN_BYTES = 16


def report(comparison: Comparison, library: Path | None, record: Path | None, *, as_json: bool) -> None:
    """Print what was found."""
    if as_json:
        print_json(_as_json(comparison, library, record))
    else:
        _print(comparison, record, compares=library is not None or comparison.subject.session is None)


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
        typer.echo("no core or thread can proceed, and at least one waits:")
        typer.echo(_explain_stuck(comparison))


def _explain_stuck(comparison: Comparison) -> str:
    from bhemu.api.blocked import explain_all

    session, loaded, chip = comparison.subject.session, comparison.loaded, comparison.ours.chip
    assert session is not None
    record = chip.cores(chip.node(session.tile).index).record
    return explain_all(record, loaded.describe, loaded.name_of_word, loaded.pusher)


def _difference_lines(comparison: Comparison, difference: Difference) -> list[str]:
    from bhemu.compare.calls import Ended

    lines = []
    begin = comparison.first_difference
    if isinstance(difference.ours, Ended) or isinstance(difference.theirs, Ended):
        lines.append(f"different: call {difference.index:,} after {difference.clock:,} clocks, {difference.call}")
        for name, outcome in (("bhemu", difference.ours), (comparison.other, difference.theirs)):
            lines.append(f"  {name:<8} {outcome if isinstance(outcome, Ended) else 'goes on'}")
    elif begin is not None:
        lines.append(f"different: {begin.place}{_symbol(comparison, begin.place.address)}")
        lines += [f"  {'bhemu':<8} {begin.ours:#010x}", f"  {comparison.other:<8} {begin.theirs:#010x}"]
        if begin.before is None:
            lines.append("  it differs from the beginning")
        else:
            lines.append(f"  {'before':<8} {begin.before:#010x}")
        lines.append(f"  since clock {begin.clock:,}, in call {begin.index:,}: {_call(comparison, begin.index)}")
        lines.append(f"  seen by call {difference.index:,}: {difference.call}, {_bytes(difference)}")
    else:
        lines.append(f"different: call {difference.index:,} after {difference.clock:,} clocks, {difference.call}")
        if difference.place is not None:
            lines.append(f"  at {difference.place}{_symbol(comparison, difference.place.address)}")
        lines += [f"  {name:<8} {_hex(difference, out)}" for name, out in _answers(comparison, difference)]
        if difference.call.size > 1:
            lines.append(f"  {_bytes(difference)}, from byte {difference.offset:,} on")
    lines += [f"  {note}" for note in comparison.notes]
    last = difference.index if begin is None else begin.index
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
        "same": comparison.is_same,
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
    from bhemu.compare.calls import Ended

    if isinstance(outcome, Ended):
        return {"how": outcome.how, "category": outcome.category, "text": outcome.text, "clock": outcome.clock}
    return None


def _difference_json(comparison: Comparison, difference: Difference) -> dict[str, Any]:
    begin, past = comparison.first_difference, comparison.past
    found: dict[str, Any] = {
        "call": difference.index,
        "what": str(difference.call),
        "clock": difference.clock,
        "place": None if difference.place is None else str(difference.place),
        "offset": difference.offset,
        "bytes": difference.count,
        "ends": {name: _outcome(outcome) for name, outcome in _answers(comparison, difference)},
    }
    if begin is not None:
        found["begins"] = {
            "call": begin.index,
            "clock": begin.clock,
            "address": begin.place.address,
            "tile": list(begin.place.coordinates),
            "symbol": comparison.loaded.name_of_word(begin.place.address) or None,
            "before": begin.before,
            "bhemu": begin.ours,
            comparison.other: begin.theirs,
        }
    if past is not None:
        found["history"] = {"lines": past.lines, "cores": past.cores, "note": past.note}
    return found
