"""`bhemu fuzz`: random and mutated input, compared."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bhemu.cli.options import NoProgress, ResultsAsJson, Scheduler, Workers, takes_options
from bhemu.cli.report import REFUSED, output, plain_table, print_json, refuse_usage


@dataclass(frozen=True)
class FuzzOptions:
    """What the command line says about a campaign."""

    kinds: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KIND]...", help="tensix, library, riscv, tile, parsers; none: all that can be run."),
    ] = None
    count: Annotated[int | None, typer.Option(min=1, help="Instructions or inputs of each kind, in all.")] = None
    seed: Annotated[int, typer.Option(min=0, help="Seed of the campaign.")] = 0
    size: Annotated[int, typer.Option(min=0, help="Of a batch; 0: what is usual.")] = 0
    state: Annotated[
        Path, typer.Option(metavar="FILE", help="What was done so far; the same file goes on from there.")
    ] = Path("fuzz.sqlite")
    keep: Annotated[Path, typer.Option(metavar="DIR", help="Where what differs is kept.")] = Path("fuzz-found")
    library: Annotated[
        Path | None, typer.Option(metavar="FILE.so", help="The other simulator, for the kind `library`.")
    ] = None
    workers: Workers = 1
    scheduler: Scheduler = None
    replay: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Run what was kept again, on the library too when one is named.")
    ] = None
    as_json: ResultsAsJson = False
    report: Annotated[bool, typer.Option("--report", help="Do nothing: print what the state file holds.")] = False
    quiet: NoProgress = False


@takes_options(FuzzOptions)
def fuzz(o: FuzzOptions) -> None:
    """Run random and mutated input, compare what comes of it, and keep the smallest input that shows a difference.

    Exit status: 0 nothing was found, 1 something was.
    """
    from bhemu.cli.progress import Progress
    from bhemu.compare.library import check_library
    from bhemu.fuzz.campaign import KINDS, Campaign
    from bhemu.fuzz.replay import replayed
    from bhemu.fuzz.report import as_data, plain_report
    from bhemu.fuzz.state import State

    if o.replay is not None:
        found = replayed(o.replay, o.library)
        output().print("\n".join(found) or "no difference", markup=False, soft_wrap=True)
        if found:
            raise typer.Exit(REFUSED)
        return
    for name in o.kinds or []:
        if name not in KINDS:
            refuse_usage(f"there is no kind {name!r}", f"use {', '.join(KINDS)}")
    if o.library is None and "library" in (o.kinds or []):
        refuse_usage("the kind `library` compares with another simulator", "name it: --library FILE.so")
    if o.library is not None:
        check_library(o.library)
    chosen = o.kinds or [name for name in KINDS if name != "library" or o.library is not None]
    with closing(State(o.state)) as store:
        with Progress(silent=o.quiet or o.report) as progress:
            for name in () if o.report else chosen:
                kind = KINDS[name]
                campaign = Campaign(store, name, o.count or kind.goal, o.seed, o.size, o.library, o.keep)
                campaign.progress = lambda s: progress.state(
                    f"{s.kind}: {s.done:,} {KINDS[s.kind].unit}, {s.features:,} features, {len(s.findings)} findings"
                )
                campaign.run(o.workers, o.scheduler)
        summaries = [s for s in store.summaries() if o.report or s.kind in chosen]
    if o.as_json:
        print_json(as_data(summaries))
    else:
        table = plain_table("kind", "unit", "done", "features", "refusals", "findings", right=("done",))
        for s in summaries:
            refusals = str(sum(s.refusals.values()))
            table.add_row(s.kind, KINDS[s.kind].unit, f"{s.done:,}", str(s.features), refusals, str(len(s.findings)))
        output().print(table)
        output().print(plain_report(summaries), markup=False, soft_wrap=True)
    if any(s.findings for s in summaries):
        raise typer.Exit(REFUSED)
