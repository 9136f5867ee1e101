"""`bhemu support`: what is built, and how far it can be trusted."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from bhemu.cli.report import output, plain_table, print_json, refuse_usage


def support(
    unit: Annotated[list[str] | None, typer.Option("--unit", help="Only instructions of this unit.")] = None,
    fidelity: Annotated[
        list[str] | None, typer.Option("--fidelity", help="Only modes that are verified, documented, open or missing.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List instructions and modes with their fidelity.

    verified: bit-exact against conformance vectors. documented: the documents alone speak. open: no source settles
    it; refused unless --allow-open. missing: not built.
    """
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
