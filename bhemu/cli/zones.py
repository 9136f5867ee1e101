"""`bhemu zones`: what tt-metal's device profiler has written in a client's run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bhemu.cli.options import AsJson, ElfFiles, TimedRecording
from bhemu.cli.report import output, plain_table, print_json, refuse_usage, shown_path


def zones(
    record: TimedRecording,
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write all markers, as tt-metal's profile_log_device.csv.")
    ] = None,
    ops: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write operations, as tt-metal's ops_perf_results.csv.")
    ] = None,
    logs: Annotated[
        list[Path] | None,
        typer.Option("--names", metavar="DIR", help="Directory of compiled kernels, whose logs name zones."),
    ] = None,
    elf: ElfFiles = None,
    mhz: Annotated[float, typer.Option(min=1, help="The clock.")] = 1350.0,
    as_json: AsJson = False,
) -> None:
    """Show zones of tt-metal's device profiler (DeviceZoneScopedN), and write the CSV files that its tools read.

    Kernels have zones when they are compiled so: `bhemu cc --metal-root DIR --profiled`. Their times are estimates of
    cycles of silicon: record with `bhemu run-client --timed --record DIR`. `--ops` needs no zones.
    """
    from dataclasses import asdict

    from bhemu.files import write_whole
    from bhemu.report.operations import read_timed_run
    from bhemu.report.zones import ZoneNames, count_zones, device_log, operations_csv

    run = read_timed_run(record, elf=elf or [])
    if not run.operations and not run.runs:
        refuse_usage(f"{shown_path(record)} has no programs in timed mode", "record with run-client --timed")
    names = ZoneNames(run.about, logs or [])
    counts = count_zones(run.runs, names)
    if as_json:
        print_json([asdict(one) for one in counts])
    elif counts:
        table = plain_table(
            "zone", "core", "visits", "least", "mean", "most", right=("visits", "least", "mean", "most")
        )
        for one in counts:
            cycles = (f"{value:,.0f}" for value in (one.count, one.least, one.total / one.count, one.most))
            table.add_row(one.name, one.core, *cycles)
        output().print(table)
    else:
        typer.echo("no kernel has written zones: compile them with `bhemu cc --metal-root DIR --profiled`")
    if log is not None:
        write_whole(log, device_log(run.runs, names, mhz=mhz).encode())
    if ops is not None:
        write_whole(ops, operations_csv(run.operations, names, mhz=mhz).encode())
    for path in (log, ops):
        if path is not None and not as_json:
            typer.echo(f"wrote {shown_path(path)}")
