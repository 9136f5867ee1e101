"""`bhemu bench --silicon`: estimates of time beside figures that were measured on cards."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bhemu.cli.report import REFUSED, messages, output, plain_table, print_json, refuse_usage

if TYPE_CHECKING:
    from bhemu.bench.silicon import Outcome


def bench_silicon(
    folder: Path | None, only: list[str], *, goals: bool, each: bool, as_json: bool, plot: Path | None
) -> None:
    """Compare, print, and with `goals` end with status 1 when one is not met."""
    if folder is None:
        refuse_usage("--silicon compares with figures that bhemu does not contain", "name their folder with --data DIR")
    from bhemu.bench.silicon import compare

    with messages().status("estimating") as status:
        outcomes = compare(folder, only, lambda text: status.update(f"estimating {text}"))
    if plot is not None:
        from bhemu.bench import silicon_plot

        silicon_plot.plot(outcomes, plot)
    if as_json:
        print_json([_as_json(outcome) for outcome in outcomes])
    else:
        if each:
            _print_each(outcomes)
        _print(outcomes)
    missed = [outcome.group.name for outcome in outcomes if not outcome.holds]
    if goals and missed:
        typer.echo(f"goals not met: {'; '.join(missed)}", err=True)
        raise typer.Exit(REFUSED)


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.1%}"


def _goal(outcome: Outcome) -> str:
    group = outcome.group
    if math.isnan(group.median):
        return "none"
    text = f"{group.median:.0%}" + ("" if math.isnan(group.worst) else f", {group.worst:.0%}")
    return f"{text}: {'met' if outcome.holds else 'NOT MET'}"


def _print(outcomes: list[Outcome]) -> None:
    table = plain_table(
        "figures of silicon", "estimates", "of", "median error", "90th", "goal", right=("of", "median error", "90th")
    )
    for outcome in outcomes:
        count = f"{len(outcome.compared):,} of {len(outcome.figures):,}"
        row = (outcome.group.name, outcome.group.how, count, _share(outcome.median), _share(outcome.worst))
        table.add_row(*row, _goal(outcome))
    output().print(table)
    for outcome in outcomes:
        for reason, times in outcome.why_not.most_common():
            output().print(f"{outcome.group.name}: {times:,} not estimated: {reason}", markup=False)


def _print_each(outcomes: list[Outcome]) -> None:
    """One line for each figure: what no table could hold."""
    for outcome in outcomes:
        output().print(f"\n{outcome.group.name} ({outcome.group.how})", markup=False)
        for one in outcome.figures:
            estimate = f"{one.predicted:,.6g} ({_share(one.error)})" if not one.why_not else one.why_not
            text = f"  {one.name}: measured {one.measured:,.6g}, estimated {estimate}"
            output().print(text, markup=False, highlight=False, soft_wrap=True)
    output().print()


def _as_json(outcome: Outcome) -> dict[str, Any]:
    return {
        "group": outcome.group.name,
        "estimates": outcome.group.how,
        "median_error": outcome.median,
        "worst_error": outcome.worst,
        "holds": outcome.holds,
        "figures": [
            {"name": one.name, "measured": one.measured, "predicted": one.predicted, "why_not": one.why_not}
            for one in outcome.figures
        ],
    }
