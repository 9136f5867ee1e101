"""`bhemu conformance`: the golden vectors, and what differs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from bhemu.cli.report import REFUSED, messages, output, plain_table, print_json
from bhemu.errors import FormatError

REDRAW_SECONDS = 0.1


def conformance(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PATH]...", help="Vector files or folders of them; none means those that come with bhemu."
        ),
    ] = None,
    label: Annotated[str | None, typer.Option(help="Run only the cases with this label.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Run at most this many cases of each file.")] = None,
    show: Annotated[int, typer.Option(min=0, help="Describe at most this many differences of each file.")] = 3,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print everything as JSON, every difference included.")
    ] = False,
) -> None:
    """Run conformance vectors; the exit status is 0 only when every case passed."""
    from bhemu.conformance import run as proof
    from bhemu.conformance.vector_file import VectorFile
    from bhemu.isa.instruction_table import suggestion
    from bhemu.machine.compiler import on_compile

    console = messages()
    status = console.status("reading vectors")
    drawn = 0.0

    def progress(family: str, done: int, total: int) -> None:
        nonlocal drawn
        now = time.monotonic()
        if now - drawn >= REDRAW_SECONDS:
            drawn = now
            status.update(f"{family}: {done} of {total} cases")

    on_compile(lambda name: status.update(f"compiling {name} (first run only)"))
    try:
        with status:
            reports = proof.conformance(paths or [], label=label, limit=limit, progress=progress)
    finally:
        on_compile(None)
    if not any(vars(report.total)[kind] for report in reports for kind in vars(report.total)):
        known = [name for report in reports for name in VectorFile(report.path).labels]
        what = f"no case has the label {label!r}" if label else "the files hold no cases"
        raise FormatError(what, remedy=suggestion(label or "", known, "label"))
    clean = all(report.clean for report in reports)
    if as_json:
        print_json({"clean": clean, "files": proof.as_json(reports)})
    else:
        table = plain_table("family", "label", "passed", "failed", "refused", right=("passed", "failed", "refused"))
        for report in reports:
            for name, tally in sorted(report.labels.items()):
                table.add_row(report.family, name, *_counts(tally))
            table.add_row(f"{report.family}", "in all", *_counts(report.total), style="bold")
        out = output()
        out.print(table)
        for report in reports:
            for difference in report.differences[:show]:
                out.print()
                out.print(proof.describe(difference), markup=False, soft_wrap=True)
            hidden = len(report.differences) - show
            if show and hidden > 0:
                out.print(
                    f"\n{report.family}: {hidden} more differences (--show {len(report.differences)} describes them)"
                )
    if not clean:
        raise typer.Exit(REFUSED)


def _counts(tally: object) -> list[str]:
    return [str(vars(tally)[kind]) for kind in ("passed", "failed", "refused")]
