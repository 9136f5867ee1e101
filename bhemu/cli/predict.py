"""`bhemu predict`: how long a matmul, a NoC transfer or each operation of a client's run takes on silicon."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from bhemu.cli.options import AsJson, ElfFiles, TimedRecording
from bhemu.cli.report import output, plain_table, print_json, refuse_usage, shown_path

app = typer.Typer(
    help="Estimate the time of a matmul or of NoC transfers on silicon, by formulas; or of a client's recorded run.",
    no_args_is_help=True,
)
CLOCK_MHZ = 1350.0


def _pair(text: str, what: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)x(\d+)", text)
    if match is None or "0" in match.groups():
        refuse_usage(f"{what} {text!r} is not of the form COLUMNSxROWS", "for example 11x10")
    return int(match[1]), int(match[2])


def _show(rows: dict[str, str]) -> None:
    table = plain_table("estimate", "", right=("",))
    for name, value in rows.items():
        table.add_row(name, value)
    output().print(table)


@app.command("matmul")
def matmul(
    m: Annotated[int, typer.Argument(min=32, metavar="M")],
    k: Annotated[int, typer.Argument(min=32, metavar="K")],
    n: Annotated[int, typer.Argument(min=32, metavar="N")],
    grid: Annotated[str, typer.Option(metavar="COLUMNSxROWS", help="Grid of cores.")] = "11x10",
    dtype: Annotated[str, typer.Option(metavar="TYPE", help="BFLOAT16, BFLOAT8_B or BFLOAT4_B.")] = "BFLOAT16",
    fidelity: Annotated[str, typer.Option(help="LoFi, HiFi2, HiFi3 or HiFi4.")] = "HiFi2",
    divisor: Annotated[int, typer.Option(min=1, help="Parts of each core's share of K.")] = 1,
    blocks: Annotated[str, typer.Option(metavar="WIDExHIGH", help="Parts of each core's output.")] = "1x1",
    mhz: Annotated[float, typer.Option(min=1, help="The clock.")] = CLOCK_MHZ,
    as_json: AsJson = False,
) -> None:
    """Estimate ttnn's matmul with multicast in two dimensions, operands in L1 or DRAM."""
    from bhemu.predict.matmul import Matmul, predict

    columns, rows = _pair(grid, "--grid")
    wide, high = _pair(blocks, "--blocks")
    found = predict(Matmul(m, k, n, columns, rows, dtype, fidelity, divisor, high, wide))
    if as_json:
        print_json({"cycles": found.cycles, "ideal": found.ideal, "bound": found.bound, "us": found.cycles / mhz})
        return
    _show(
        {
            "cycles of the math cores": f"{found.cycles:,.0f}",
            f"microseconds at {mhz:g} MHz": f"{found.cycles / mhz:,.2f}",
            "multiplications alone": f"{found.ideal:,.0f} ({found.ideal / found.cycles:.1%})",
            "a step is bound by": found.bound,
        }
    )


KINDS = ("write", "read", "multicast")
MEMORIES = ("l1", "sharded", "interleaved")


@app.command("noc")
def noc(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="write, read or multicast.")],
    size: Annotated[int, typer.Option(min=1, help="Bytes of a transaction.")] = 2048,
    count: Annotated[int, typer.Option(min=1, help="Transactions of a core before its barrier.")] = 16,
    memory: Annotated[str, typer.Option(help="l1; DRAM: sharded (one bank) or interleaved.")] = "l1",
    grid: Annotated[
        str | None, typer.Option(metavar="COLUMNSxROWS", help="Cores that are addressed; one by default.")
    ] = None,
    same_column: Annotated[bool, typer.Option("--same-column", help="The one core is in the same column.")] = False,
    linked: Annotated[bool, typer.Option("--linked", help="Multicasts keep their path.")] = False,
    outside: Annotated[bool, typer.Option("--outside", help="The sender is outside of the multicast's grid.")] = False,
    everybody: Annotated[bool, typer.Option("--everybody", help="Every core does it at once.")] = False,
    number: Annotated[int, typer.Option("--noc", min=0, max=1, help="Which NoC.")] = 0,
    mhz: Annotated[float, typer.Option(min=1, help="The clock.")] = CLOCK_MHZ,
    as_json: AsJson = False,
) -> None:
    """Estimate a loop of transfers and the barrier after it."""
    from bhemu.predict.noc import Traffic, cycles

    for value, known, what in ((kind, KINDS, "kind of transfer"), (memory, MEMORIES, "memory")):
        if value not in known:
            refuse_usage(f"no {what} is called {value!r}", f"known: {', '.join(known)}")
    multicast = kind == "multicast"
    for given, option, wanted in (
        (linked and not multicast, "--linked", "a multicast"),
        (outside and not multicast, "--outside", "a multicast"),
        (multicast and grid is None, "multicast", "a grid of receivers: give --grid"),
        (multicast and memory != "l1", "--memory", "reads and writes"),
    ):
        if given:
            refuse_usage(f"{option} is for {wanted}", "see `bhemu predict noc --help`")
    columns, rows = _pair(grid, "--grid") if grid is not None else (1, 1)
    if multicast and everybody and min(columns, rows) > 1:
        refuse_usage(
            f"all cores of a grid of {columns}x{rows} multicast: only those of a row or column are modelled",
            "give a grid with one row or one column",
        )
    traffic = Traffic(
        reads=kind == "read",
        count=count,
        size=size,
        destinations=columns * rows,
        columns=columns,
        rows=rows,
        same_axis=same_column,
        memory=memory,
        multicast=multicast,
        linked=linked,
        outside=outside,
        everybody=everybody,
        noc=number,
    )
    found = cycles(traffic)
    rate = count * size / found
    if as_json:
        print_json({"cycles": found, "us": found / mhz, "bytes_per_cycle": rate})
        return
    _show(
        {
            "cycles": f"{found:,.0f}",
            f"microseconds at {mhz:g} MHz": f"{found / mhz:,.3f}",
            "bytes a cycle of each core": f"{rate:.1f}",
        }
    )


@app.command("run")
def run(
    record: TimedRecording,
    elf: ElfFiles = None,
    as_json: AsJson = False,
) -> None:
    """Say for each operation of a client's run how long it takes, what bounds it, and how close to that bound it is.

    Record the run first: `bhemu run-client --timed --record DIR -- COMMAND`.
    """
    from bhemu.report.operations import operation_as_json, operation_lines, read_timed_run

    found = read_timed_run(record, elf=elf or [])
    if not found.operations:
        refuse_usage(f"{shown_path(record)} has no programs in timed mode", "record with run-client --timed")
    if as_json:
        print_json([operation_as_json(operation) for operation in found.operations])
        return
    for line in operation_lines(found.operations):
        typer.echo(line)
