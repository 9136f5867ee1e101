"""`bhemu bench`: how fast instructions and kernels run, and how fast recorded clients do on this library and others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bhemu.cli.options import AsJson, takes_options
from bhemu.cli.report import REFUSED, messages, output, plain_table, print_json, refuse_usage, shown_path

if TYPE_CHECKING:
    from bhemu.bench.client import Figures


@dataclass(frozen=True)
class BenchOptions:
    """What the command line says about a measurement."""

    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME", help="Only figures or streams whose name starts so.")
    ] = None
    as_json: AsJson = False
    client: Annotated[
        bool, typer.Option("--client", help="Replay recorded sessions of client programs on C libraries.")
    ] = False
    streams: Annotated[
        list[Path] | None,
        typer.Option("--stream", metavar="PATH", help="A call trace, or a directory of them. Repeatable."),
    ] = None
    libraries: Annotated[
        list[Path] | None,
        typer.Option(
            "--library",
            metavar="PATH",
            help="A library with the simulator's C interface; ratios are of the first. Repeatable. With none bhemu's "
            "own is measured alone, with one it is the second.",
        ),
    ] = None
    rounds: Annotated[int, typer.Option(min=1, help="Replays of each stream on each library.")] = 3
    exact: Annotated[
        bool, typer.Option("--exact", help="Make the recorded calls, and do not wait for what the client waited for.")
    ] = False
    timed: Annotated[bool, typer.Option("--timed", help="Replay on bhemu's own library in timed mode, too.")] = False
    busy: Annotated[int, typer.Option(min=0, metavar="N", help="Number of other busy processes.")] = 0
    silicon: Annotated[
        bool, typer.Option("--silicon", help="Hold estimates of time against figures measured on cards.")
    ] = False
    data: Annotated[Path | None, typer.Option("--data", metavar="DIR", help="The measured figures, for --silicon.")] = (
        None
    )
    goals: Annotated[bool, typer.Option("--goals", help="Exit status 1 when a goal of --silicon is not met.")] = False
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw estimates of --silicon over measured figures.")
    ] = None
    each: Annotated[bool, typer.Option("--each", help="Print every figure of --silicon with its estimate.")] = False
    make_streams: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Record the streams of ttnn into DIR, on the first library.")
    ] = None
    python: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Python of an environment with ttnn, for --make-streams.")
    ] = None


@takes_options(BenchOptions)
def bench(o: BenchOptions) -> None:
    """Time instructions and whole kernels: medians, with the range of repeated runs.

    With `--client`, recorded sessions of client programs are replayed instead, each in a fresh process, on one or more
    libraries alternately, and single calls are timed.

    With `--silicon`, estimates of time are compared with measured figures, group by group.
    """
    for wanted, name in (
        (o.data is not None, "--data"),
        (o.goals, "--goals"),
        (o.each, "--each"),
        (o.plot is not None, "--plot"),
    ):
        if wanted and not o.silicon:
            refuse_usage(f"{name} is for figures of silicon", "add --silicon")
    if o.silicon:
        from bhemu.cli.bench_silicon import bench_silicon

        if o.client:
            refuse_usage("--silicon and --client are two measurements", "ask for one at a time")
        bench_silicon(o.data, o.only or [], goals=o.goals, each=o.each, as_json=o.as_json, plot=o.plot)
        return
    if o.client:
        if o.make_streams is not None:
            _make(o, o.make_streams)
        else:
            _client(o)
        return
    for name, given in (
        ("--stream", o.streams),
        ("--library", o.libraries),
        ("--exact", o.exact),
        ("--timed", o.timed),
        ("--busy", o.busy),
        ("--make-streams", o.make_streams),
        ("--python", o.python),
    ):
        if given:
            refuse_usage(f"{name} is for recorded clients", "add --client")
    from bhemu.bench import run as measure

    with messages().status("measuring") as status:
        measurements = measure.run(o.only or [], progress=lambda name: status.update(f"measuring {name}"))
    if o.as_json:
        print_json([vars(m) for m in measurements])
        return
    table = plain_table("what", "median", "range", "", right=("median", "range"))
    for m in measurements:
        spread = f"{_time(m.low_ns)} .. {_time(m.high_ns)}"
        table.add_row(m.name, _time(m.median_ns), spread, m.note)
    output().print(table)


def _time(nanoseconds: float) -> str:
    if math.isnan(nanoseconds):
        return "-"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.3g} ns"


def _ratio(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}x"


# --- recorded clients -------------------------------------------------------------------------------------------------


def _make(o: BenchOptions, directory: Path) -> None:
    import tempfile

    from bhemu.bench.ttnn_streams import make_streams
    from bhemu.capi import build
    from bhemu.compare.library import check_library

    libraries = o.libraries or []
    if len(libraries) > 1:
        refuse_usage("--make-streams records on one library", "name one library, or none for bhemu's own")
    for path in libraries:
        check_library(path)
    skipped = 0
    with tempfile.TemporaryDirectory(prefix="bhemu-library-") as folder, messages().status("recording") as status:
        library = libraries[0] if libraries else build(Path(folder))
        python = o.python and o.python.absolute()
        for made in make_streams(directory, library, python=python, only=o.only or []):
            skipped += bool(made.skipped)
            text = f"SKIPPED, {made.skipped}" if made.skipped else f"{made.calls:,} calls"
            typer.echo(f"{made.name}: {text}")
            status.update(f"recorded {made.name}")
    if skipped:
        typer.echo(f"{skipped} streams were NOT recorded", err=True)
        raise typer.Exit(REFUSED)


def _client(o: BenchOptions) -> None:
    from bhemu.bench.client import Bench, busy_processes, find_streams, stream_name
    from bhemu.compare.trace import read_trace

    files = find_streams(o.streams, o.only or []) if o.streams else []
    with (
        Bench(o.libraries or [], timed=o.timed) as bench,
        messages().status("measuring") as status,
        busy_processes(bench.replayer, o.busy),
    ):
        names = [library.name for library in bench.libraries]
        calls = bench.measure_calls(rounds=o.rounds, progress=status.update) if not o.only else None
        found = []
        for file in files:
            status.update(f"reading {shown_path(file)}")
            stream = read_trace(file)
            measured = bench.measure(stream_name(file), stream, rounds=o.rounds, exact=o.exact, progress=status.update)
            found.append(measured)
    if o.as_json:
        print_json(_plain(found, calls, names))
    else:
        if found:
            _print_streams(found, names)
        if calls is not None:
            _print_calls(calls, names)
    refused = [(one.stream, name, one.refused(name)) for one in found for name in names if one.refused(name)]
    for stream_text, name, why in refused:
        typer.echo(f"{stream_text} on {name}: {why}", err=True)
    if refused:
        raise typer.Exit(REFUSED)


def _print_streams(found: list[Figures], names: list[str]) -> None:
    from bhemu.bench.client import geometric_mean

    base, others = names[0], names[1:]
    ratios = [f"{name} faster" for name in others]
    processor = [f"{name}, processor" for name in others]
    differs = [f"{name} differs" for name in names]
    right = (*names, *ratios, *processor, *differs, "calls")
    table = plain_table("stream", "calls", *names, *ratios, *processor, *differs, right=right)
    for one in found:
        table.add_row(
            one.stream,
            f"{one.calls:,}",
            *(_time(one.seconds(name) * 1e9) for name in names),
            *(_ratio(one.ratio(name, base)) for name in others),
            *(_ratio(one.processor_ratio(name, base)) for name in others),
            *(f"{max((replay.differences for replay in one.replays[name]), default=0):,}" for name in names),
        )
    means = [_ratio(geometric_mean([one.ratio(name, base) for one in found])) for name in others]
    means += [_ratio(geometric_mean([one.processor_ratio(name, base) for one in found])) for name in others]
    if others:
        table.add_row("geometric mean", "", *("" for _ in names), *means)
    output().print(table)
    _print_functions(found, names)
    _print_notes(found, names)


def _print_functions(found: list[Figures], names: list[str]) -> None:
    """Where the time of all streams goes."""
    table = plain_table(
        "\nin all streams", *(f"\n{name}" for name in names), right=tuple(f"\n{name}" for name in names)
    )
    for function in ("load", "init", "config", "read", "write", "clock", "host", "exit", "replayer"):
        cells = []
        for name in names:
            whole, calls = 0.0, 0.0
            for one in (figures for figures in found if not figures.refused(name)):
                whole += one.seconds(name, lambda replay: replay.functions[function]["ns"])  # noqa: B023  called here
                calls += one.replays[name][-1].functions[function]["calls"]
            each = f" ({_time(whole * 1e9 / calls)} x {calls:,.0f})" if calls else ""
            cells.append(_time(whole * 1e9) + each)
        table.add_row(function, *cells)
    sums = [
        [one.seconds(name, lambda replay: replay.cpu_ns) for one in found if not one.refused(name)] for name in names
    ]
    table.add_row("processor time", *(_time(sum(part) * 1e9) for part in sums))
    output().print(table)


def _print_notes(found: list[Figures], names: list[str]) -> None:
    """The first differences, once for each text."""
    told: dict[str, str] = {}
    for one in found:
        for name in names:
            for replay in one.replays[name][-1:]:
                if replay.note:
                    told.setdefault(f"{name}: {replay.note}", one.stream)
    for text, stream in list(told.items())[:10]:
        output().print(f"differs first in {stream} on {text}", soft_wrap=True)


def _print_calls(calls: Figures, names: list[str]) -> None:
    from bhemu.bench.client import of_one_call

    base, others = names[0], names[1:]
    table = plain_table("\none call", *(f"\n{name}" for name in names), *(f"\n{name} faster" for name in others))
    found = {name: of_one_call(calls, name) for name in names if not calls.refused(name)}
    for what in next(iter(found.values()), {}):
        times = {name: found.get(name, {}).get(what, math.nan) for name in names}
        table.add_row(
            what, *(_time(times[name]) for name in names), *(_ratio(times[base] / times[name]) for name in others)
        )
    output().print(table)
    for name in names:
        if calls.refused(name):
            output().print(f"single calls on {name}: {calls.refused(name)}")


def _plain(found: list[Figures], calls: Figures | None, names: list[str]) -> dict[str, Any]:
    """Everything, for scripts."""
    from bhemu.bench.client import geometric_mean, of_one_call

    result: dict[str, Any] = {
        "libraries": names,
        "streams": [
            {
                "name": one.stream,
                "calls": one.calls,
                "libraries": {
                    name: {
                        "seconds": one.seconds(name),
                        "faster": one.ratio(name, names[0]),
                        "faster_processor": one.processor_ratio(name, names[0]),
                        "refused": one.refused(name),
                        "replays": [_fields(replay) for replay in one.replays[name]],
                    }
                    for name in names
                },
            }
            for one in found
        ],
        "geometric_mean": {name: geometric_mean([one.ratio(name, names[0]) for one in found]) for name in names[1:]},
    }
    if calls is not None:
        result["calls_ns"] = {name: of_one_call(calls, name) for name in names if not calls.refused(name)}
        result["calls_refused"] = {name: calls.refused(name) for name in names if calls.refused(name)}
    return result


def _fields(replay: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return {name: value for name, value in asdict(replay).items() if name != "sections"}
