"""How `bhemu run` shows time and hazards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from bhemu.cli.report import output, plain_table

if TYPE_CHECKING:
    from bhemu.analysis import Hazard, Timing
    from bhemu.analysis.found import FoundHazard


def print_timing(timed: Timing) -> None:
    """Modelled cycles by thread and unit, stalls by cause, and what the documents leave open."""
    from bhemu.tensix.coprocessor import THREAD_NAMES

    console = output()
    console.print()
    console.print(f"modelled time: {timed.cycles:,} cycles; the RISC-V cores take no time")
    threads = plain_table("thread", "issued", "stalled", "", right=("issued", "stalled"))
    for name, thread in zip(THREAD_NAMES, timed.threads, strict=True):
        causes = ", ".join(f"{cause} {cycles:,}" for cause, cycles in thread.stalls.most_common())
        threads.add_row(name, f"{thread.issued:,}", f"{thread.stalls.total():,}", causes)
    console.print(threads)
    console.print()
    units = plain_table("unit", "instructions", "busy", "", right=("instructions", "busy"))
    for unit, time in timed.units.items():
        if time.instructions:
            parts = [(time.at_least, "at least"), (time.unknown, "unknown, counted as one cycle each")]
            doubt = "; ".join(f"{count:,} {what}" for count, what in parts if count)
            share = time.busy / timed.cycles if timed.cycles else 0.0
            units.add_row(unit, f"{time.instructions:,}", f"{time.busy:,} ({share:.0%})", doubt)
    console.print(units)
    for text, counts in (
        ("only a lower bound is documented", timed.at_least),
        ("no figure is documented", timed.unknown),
    ):
        if counts:
            names = ", ".join(f"{name} {count:,}" for name, count in counts.most_common())
            console.print(f"{text}: {names}", markup=False)
    if timed.forced:
        console.print(f"{timed.forced} words were taken in the recorded order: the threads race", style="yellow")


def print_hazards(found: list[Hazard], *, error: bool = False) -> None:
    """Each hazard with its two instructions and what is missing."""
    from bhemu.analysis.hazard import HAZARD, count_line

    for hazard in found:
        typer.echo(str(hazard), err=error)
    typer.echo(count_line(sum(hazard.severity == HAZARD for hazard in found), len(found)), err=error)


def print_found(found: list[FoundHazard], *, error: bool = False) -> None:
    """The same for hazards with functions and source lines."""
    from bhemu.analysis.hazard import count_line

    for one in found:
        typer.echo("\n".join(one.lines()), err=error)
    typer.echo(count_line(sum(one.is_certain for one in found), len(found)), err=error)


def timing_as_json(timed: Timing) -> dict[str, Any]:
    """The same as plain data."""
    return {
        "cycles": timed.cycles,
        "threads": [
            {"issued": thread.issued, "stalls": dict(thread.stalls.most_common()), "last": thread.last}
            for thread in timed.threads
        ],
        "units": {unit: vars(time) for unit, time in timed.units.items()},
        "at_least": dict(timed.at_least),
        "unknown": dict(timed.unknown),
        "forced": timed.forced,
    }


def hazards_as_json(found: list[Hazard]) -> list[dict[str, Any]]:
    """The same as plain data."""
    return [vars(h) | {"producer": vars(h.producer), "consumer": vars(h.consumer)} for h in found]
