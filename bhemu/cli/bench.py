"""`bhemu bench`: how fast instructions and kernels run."""

from __future__ import annotations

from typing import Annotated

import typer

from bhemu.cli.report import messages, output, plain_table, print_json


def bench(
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME", help="Only figures whose name starts so.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Time instructions and whole kernels: medians, with the range of repeated runs."""
    from bhemu.bench import run as measure

    with messages().status("measuring") as status:
        measurements = measure.run(only or [], progress=lambda name: status.update(f"measuring {name}"))
    if as_json:
        print_json([vars(m) for m in measurements])
        return
    table = plain_table("what", "median", "range", "", right=("median", "range"))
    for m in measurements:
        spread = f"{_time(m.low_ns)} .. {_time(m.high_ns)}"
        table.add_row(m.name, _time(m.median_ns), spread, m.note)
    output().print(table)


def _time(nanoseconds: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.3g} ns"
