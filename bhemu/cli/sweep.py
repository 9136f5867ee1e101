"""`bhemu sweep`: one run for each file of a directory and each combination of parameters."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from bhemu.cli.options import NoProgress, ResultsAsJson, Scheduler, Workers
from bhemu.cli.report import REFUSED, assignments, output, plain_table, print_json


def sweep(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Python programs, ELF files and call traces (.jsonl, .gz, .xz).")
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=A,B,C", help="Values of a parameter of Python programs; repeatable."),
    ] = None,
    seeds: Annotated[str, typer.Option(metavar="A,B,C", help="Seeds of generated inputs.")] = "0",
    results: Annotated[
        Path, typer.Option(metavar="FILE", help="SQLite file of the results; runs that it has are not made again.")
    ] = Path("sweep.sqlite"),
    max_clocks: Annotated[int, typer.Option(min=1, help="Most clocks that a run may take.")] = 10_000_000,
    workers: Workers = 1,
    scheduler: Scheduler = None,
    as_json: ResultsAsJson = False,
    quiet: NoProgress = False,
) -> None:
    """Run all programs, kernels and recorded clients of a directory, and keep a row for each run.

    Exit status: 0 all are done, 1 one was refused or differs.
    """
    from bhemu.cli.progress import Progress
    from bhemu.fuzz.sweep import Results, jobs
    from bhemu.fuzz.sweep import sweep as make

    grid = {name: text.split(",") for name, text in assignments(settings, "--set", "M=32,64").items()}
    todo = jobs(directory, {**grid, "seed": seeds.split(",")})
    with closing(Results(results)) as store:
        with Progress(silent=quiet) as progress:
            make(
                todo, store, max_clocks=max_clocks, workers=workers, scheduler=scheduler,
                progress=lambda done, total: progress.state(f"run {done} of {total}"),
            )  # fmt: skip
        rows = store.outcomes()
    if as_json:
        names = ("file", "parameters", "outcome", "message", "clocks", "instructions", "seconds")
        print_json([{**dict(zip(names, row, strict=True)), "parameters": json.loads(row[1])} for row in rows])
    else:
        table = plain_table("file", "parameters", "outcome", "clocks", "instructions", right=("clocks", "instructions"))
        for file, parameters, outcome, _, clocks, instructions, _ in rows:
            shown = " ".join(f"{name}={value}" for name, value in json.loads(parameters).items())
            table.add_row(file, shown, outcome, f"{clocks:,}", f"{instructions:,}")
        output().print(table)
        for file, _, outcome, message, *_ in rows:
            if outcome != "done":
                output().print(f"{file}: {outcome}: {message}", markup=False, soft_wrap=True)
    if any(row[2] != "done" for row in rows):
        raise typer.Exit(REFUSED)
