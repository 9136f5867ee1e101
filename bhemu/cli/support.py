"""`bhemu support`: what is built, and how far it can be trusted."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Annotated

import typer

from bhemu.cli.options import AsJson
from bhemu.cli.report import output, plain_table, print_json, refuse_usage


def support(
    unit: Annotated[list[str] | None, typer.Option("--unit", help="Only instructions of this unit.")] = None,
    fidelity: Annotated[
        list[str] | None, typer.Option("--fidelity", help="Only modes that are verified, documented, open or missing.")
    ] = None,
    timing: Annotated[
        bool, typer.Option("--timing", help="List the figures of time instead, with their kinds and sources.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List instructions and modes with their fidelity.

    verified: bit-exact against conformance vectors. documented: the documents alone speak. open: no source settles
    it; refused unless --allow-open. missing: not built.
    """
    if timing:
        if unit or fidelity:
            refuse_usage("--unit and --fidelity choose instructions", "omit them with --timing")
        _timing(as_json)
        return
    from bhemu.conformance.support import FIDELITIES, table
    from bhemu.isa import UNITS

    for given, known, what in ((unit, UNITS, "unit"), (fidelity, FIDELITIES, "fidelity")):
        for name in given or ():
            if name not in known:
                refuse_usage(f"no {what} is called {name!r}", f"known: {', '.join(known)}")
    rows = [row for row in table() if (not unit or row.unit in unit) and (not fidelity or row.fidelity in fidelity)]
    if as_json:
        print_json([vars(row) for row in rows])
        return
    colours = {"verified": "green", "documented": "", "open": "yellow", "missing": "red"}
    shown = plain_table("instruction", "unit", "mode", "fidelity", "vectors", "rule")
    previous = ""
    for row in rows:
        name = row.mnemonic if row.mnemonic != previous else ""
        shown.add_row(
            name,
            row.unit,
            row.mode,
            f"[{colours[row.fidelity]}]{row.fidelity}[/]" if colours[row.fidelity] else row.fidelity,
            row.vectors,
            row.rule,
        )
        previous = row.mnemonic
    out = output()
    out.print(shown)
    counts = Counter(row.fidelity for row in rows)
    out.print(
        f"\n{len({row.mnemonic for row in rows})} instructions; modes: "
        + ", ".join(f"{counts[name]} {name}" for name in FIDELITIES)
    )


def _timing(as_json: bool) -> None:
    """The figures of time (`isa/silicon.py`)."""
    from bhemu.isa.silicon import FIGURES, INSTRUCTION_TIMES, KINDS

    if as_json:
        print_json([asdict(one) for one in FIGURES.values()] + [asdict(one) for one in INSTRUCTION_TIMES.values()])
        return
    colours = {"measured": "green", "fitted": "yellow", "guessed": "red"}
    shown = plain_table("figure", "value", "unit", "kind", "source", "what", right=("value",))
    for one in FIGURES.values():
        kind = f"[{colours[one.kind]}]{one.kind}[/]" if one.kind in colours else one.kind
        shown.add_row(one.name, f"{one.value:g}", one.unit, kind, one.source, one.note)
    out = output()
    out.print(shown)
    shown = plain_table("instruction", "latency", "every", "kind", "source", right=("latency", "every"))
    for time in INSTRUCTION_TIMES.values():
        kind = f"[{colours[time.kind]}]{time.kind}[/]" if time.kind in colours else time.kind
        shown.add_row(time.mnemonic, str(time.latency), str(time.occupancy), kind, time.source)
    out.print()
    out.print(shown)
    counts = Counter(one.kind for one in FIGURES.values())
    counts.update(time.kind for time in INSTRUCTION_TIMES.values())
    out.print(f"\n{sum(counts.values())} figures: " + ", ".join(f"{counts[kind]} {kind}" for kind in KINDS))
