"""`bhemu doctor`: what is installed, what is missing, what it is for, and how to get it."""

from __future__ import annotations

from typing import Annotated

import typer

from bhemu.cli.report import REFUSED, output, plain_table, print_json


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    compiles: Annotated[
        bool, typer.Option("--compile/--no-compile", help="Execute an instruction, which may compile it first.")
    ] = True,
) -> None:
    """Say what is installed, what is missing, what it is for, and how to get it.

    Exit status 1 when something is missing that bhemu itself needs.
    """
    from bhemu.installation import find

    findings = find(compiles=compiles)
    if as_json:
        print_json([vars(finding) for finding in findings])
    else:
        console = output()
        table = plain_table("", "", "", "for")
        for finding in findings:
            mark = "ok" if finding.found is not None else "MISSING" if finding.needed else "-"
            table.add_row(mark, finding.name, finding.found or finding.remedy, finding.use)
        console.print(table, markup=False)
        missing = [finding for finding in findings if finding.found is None]
        if not any(finding.needed for finding in missing):
            console.print("\nbhemu works here." + (" What is marked with - is optional." if missing else ""))
    if any(finding.needed and finding.found is None for finding in findings):
        raise typer.Exit(REFUSED)
