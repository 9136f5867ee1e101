"""`bhemu run-client` and `bhemu report`: record what a client's programs do on the chip, and look at it."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bhemu.cli.options import ElfFiles, HiddenHazards, takes_options
from bhemu.cli.report import REFUSED, UsageError, print_json, refuse_usage, shown_path
from bhemu.cli.run_elf import is_elf_file

CONTEXT = {"ignore_unknown_options": False, "allow_interspersed_args": False}
_SIGNALLED = 128
_NOT_FOUND = 127


@dataclass(frozen=True)
class ClientOptions:
    """What the command line says about a client to run."""

    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND...", help="The client and its arguments.")]
    record: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Directory for the recording: new, or without one.")
    ] = None
    debug: Annotated[
        Path | None,
        typer.Option("--debug", metavar="SOCKET", help="Let `bhemu debug --attach SOCKET` debug it, instead."),
    ] = None
    wait: Annotated[bool, typer.Option("--wait", help="With --debug: it waits for the debugger.")] = False
    tiles: Annotated[str, typer.Option(metavar="[N:]X-Y,...", help="Tiles to record, of all chips or of chip N.")] = ""
    detail: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="`instructions`; `profile`: counts, waits, words of the coprocessor; `counters`: counts and waits.",
        ),
    ] = "instructions"
    start: Annotated[int | None, typer.Option(min=0, help="Clock of the chip from which on to record.")] = None
    stop: Annotated[int | None, typer.Option(min=1, help="Clock in which the recording ends.")] = None
    limit: Annotated[
        int, typer.Option(metavar="MIB", min=1, help="Size of a file from which on single instructions are left out.")
    ] = 1024
    states: Annotated[
        bool | None,
        typer.Option(help="Keep register files for pictures; by default of up to four tiles."),
    ] = None
    states_every: Annotated[
        int | None,
        typer.Option(metavar="CLOCKS", min=1, help="Keep them every so many clocks, too, while programs run."),
    ] = None
    check: Annotated[
        str | None,
        typer.Option(
            "--check",
            metavar="[=KIND,...]",
            help="Report hazards at the end: of order, l1, noc, cb, or all; exit status 1 with some.",
        ),
    ] = None
    suppressions: HiddenHazards = None
    timed: Annotated[
        bool, typer.Option("--timed", help="Clocks are estimates of silicon's; records programs, not instructions.")
    ] = False
    library: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Directory of `bhemu library`, for TT_METAL_SIMULATOR.")
    ] = None


@takes_options(ClientOptions)
def run_client(o: ClientOptions) -> None:
    """Run a client on bhemu's library, and record what its programs do on tiles of the chip, or debug it.

    ELF files among its arguments give names to what it runs; those of tt-metal's kernels are found by themselves.

    The client is any program that loads the library of `bhemu library`. The same works without this command by
    variables of the environment: `BHEMU_RECORD=DIR`, `BHEMU_TILES`, `BHEMU_DETAIL`, `BHEMU_START`, `BHEMU_STOP`,
    `BHEMU_RECORD_LIMIT`, `BHEMU_STATES`, `BHEMU_STATES_EVERY`, `BHEMU_CHECK` and `BHEMU_SUPPRESSIONS`.

    With --timed (`BHEMU_TIME=silicon`) it runs in timed mode: `bhemu predict run DIR` tells what bounds each operation.

    With --debug (`BHEMU_DEBUG=SOCKET`, and `BHEMU_DEBUG_WAIT=1` for --wait) a debugger can attach itself.

    `bhemu report DIR` shows the recording. The exit status is that of the client.
    """
    from bhemu.recording.parts import directory_files

    if o.library is not None and not (o.library / "libttsim_bh.so").is_file():
        refuse_usage(f"{shown_path(o.library)} holds no library", f"make it with `bhemu library {o.library}`")
    simulator = {} if o.library is None else {"TT_METAL_SIMULATOR": str((o.library / "libttsim_bh.so").resolve())}
    if (o.record is None) == (o.debug is None):
        refuse_usage("either --record or --debug is needed", "say --record DIR to record, --debug SOCKET to debug")
    given: dict[str, object] = {
        "--tiles": o.tiles,
        "--start": o.start,
        "--stop": o.stop,
        "--states": o.states,
        "--states-every": o.states_every,
        "--check": o.check,
    }
    given |= {"--debug": o.debug, "--suppressions": o.suppressions, f"--detail {o.detail}": o.detail != "instructions"}
    wrong = next((name for name, value in given.items() if value not in (None, "", False)), None)
    if o.timed and wrong is not None:
        refuse_usage(f"{wrong} is not for --timed", "say one of them: in timed mode whole programs are recorded")
    if o.wait and o.debug is None:
        refuse_usage("--wait is for --debug", "name a socket: --debug SOCKET --wait")
    settings = simulator | _programs(o.command)
    if o.record is None:
        assert o.debug is not None
        settings |= {"BHEMU_DEBUG": str(o.debug.absolute()), "BHEMU_DEBUG_WAIT": str(int(o.wait))}
        typer.echo(f"bhemu: debug it with: bhemu debug --attach {shown_path(o.debug)}", err=True)
        raise typer.Exit(_run(o.command, os.environ | settings))
    settings |= _recording(o, o.record)
    status = _run(o.command, os.environ | settings)
    if not directory_files(o.record):
        typer.echo(f"bhemu: {o.command[0]} has started no chip, nothing was recorded", err=True)
    elif o.check is not None and _check(o.record):
        status = status or REFUSED
    raise typer.Exit(status)


def _recording(o: ClientOptions, record: Path) -> dict[str, str]:
    """Settings for a recording in a directory, which is made."""
    from bhemu.analysis.check_tile import parse_kinds
    from bhemu.analysis.suppressions import Suppressions
    from bhemu.capi import attach
    from bhemu.capi.attach import DETAIL, LIMIT, RECORD, START, STATES, STATES_EVERY, STOP, TILES, parse_tiles
    from bhemu.capi.settings import TIME
    from bhemu.errors import ConfigurationError
    from bhemu.recording.parts import COUNTERS, INSTRUCTIONS, directory_files
    from bhemu.report.tensors import SETTINGS

    if o.detail not in attach.DETAILS:
        refuse_usage(f"--detail is {o.detail!r}", f"say {' or '.join(attach.DETAILS)}")
    if o.detail == COUNTERS and (o.states or o.states_every is not None):
        named = "--states" if o.states_every is None else "--states-every"
        refuse_usage(f"{named} is not for --detail counters", "say one of them: counters are counts alone")
    try:
        parse_tiles(o.tiles)
        kinds = parse_kinds(o.check) if o.check is not None else ()
        if o.suppressions is not None:
            Suppressions.read(o.suppressions)
    except ConfigurationError as error:
        raise UsageError(error.message, remedy=error.remedy) from None
    if o.check is not None and o.detail == COUNTERS:
        refuse_usage("--check needs single instructions", f"omit --detail {o.detail}")
    if o.check is not None and o.detail != INSTRUCTIONS and kinds != ("order",):
        refuse_usage("--check of l1, noc and cb needs single instructions", f"omit --detail {o.detail}")
    if record.exists() and not record.is_dir():
        refuse_usage(f"{shown_path(record)} is not a directory", "name a directory")
    if record.is_dir() and directory_files(record):
        refuse_usage(f"{shown_path(record)} holds a recording already", "name another directory, or delete it")
    record.mkdir(parents=True, exist_ok=True)
    settings = {RECORD: str(record.resolve()), LIMIT: str(o.limit)}
    settings |= {TIME: "silicon"} | SETTINGS if o.timed else {TILES: o.tiles, DETAIL: o.detail}
    numbers = {START: o.start, STOP: o.stop, STATES_EVERY: o.states_every}
    settings |= {name: str(value) for name, value in numbers.items() if value is not None}
    if o.states is not None:
        settings[STATES] = str(int(o.states))
    if o.check is not None:
        settings[attach.CHECK] = ",".join(kinds)
    if o.suppressions is not None:
        settings[attach.SUPPRESSIONS] = str(o.suppressions.resolve())
    return settings


def _programs(command: list[str]) -> dict[str, str]:
    """Where the ELF files of a client may be: also among its arguments, for names in the report."""
    named = [str(path.resolve()) for path in map(Path, command) if is_elf_file(path)]
    programs = [os.environ.get("BHEMU_ELF", ""), *named]
    return {"BHEMU_ELF": os.pathsep.join(filter(None, programs)), "BHEMU_CLIENT_DIRECTORY": os.getcwd()}


def _run(command: list[str], environment: dict[str, str]) -> int:
    """Run the client; returns its exit status as shells count it."""
    try:
        client = subprocess.Popen(command, env=environment)
    except OSError as error:
        typer.echo(f"bhemu: {command[0]} cannot be started: {error.strerror}", err=True)
        return _NOT_FOUND
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to the client as well
    try:
        status = client.wait()
    finally:
        signal.signal(signal.SIGINT, before)
    if status < 0:
        typer.echo(f"bhemu: the client was ended by {signal.Signals(-status).name}", err=True)
        return _SIGNALLED - status
    return status


def _check(record: Path) -> bool:
    """Print the hazards of a recording; True when there are some."""
    from bhemu.recording.parts import Reader
    from bhemu.report.model import make_report
    from bhemu.report.text import hazard_lines

    severe = 0
    for chip in Reader(record).chips or [None]:
        found = make_report(record, chip=chip)
        for line in hazard_lines(found):
            typer.echo(line if chip is None else f"chip {chip}: {line}")
        for note in found.notes:
            typer.echo(f"note: {note}")
        severe += sum(one.is_certain for one in found.hazards)
    typer.echo(f"hazards: {severe or 'none'}")
    return severe > 0


def report(
    record: Annotated[Path, typer.Argument(metavar="DIR", help="Directory of a recording.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The page; without it DIR/report.html.")
    ] = None,
    elf: ElfFiles = None,
    perfetto: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the events for ui.perfetto.dev, and no page.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON, and write no page.")] = False,
    hazards: Annotated[bool, typer.Option("--hazards", help="Print each hazard with both source lines.")] = False,
    check: Annotated[
        str | None,
        typer.Option("--check", metavar="[=KIND,...]", help="Kinds of hazards: order, l1, noc, cb, or all."),
    ] = None,
    suppressions: HiddenHazards = None,
    chip: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Of several chips; without it the first. The page has all, and begins with it; --perfetto has it.",
        ),
    ] = None,
) -> None:
    """Show a recording: the slowest kernels, their hottest lines, what they wait for; and a page with all of it.

    The page is one HTML file that needs no server and no network: operations and kernels, a timeline of all tiles down
    to single instructions, the grid, NoC requests, links, hazards, register files. It needs the package `plotly`
    (`pip install 'bhemu[report]'`).
    """
    from bhemu.analysis.check_tile import parse_kinds
    from bhemu.analysis.suppressions import Suppressions
    from bhemu.files import write_whole
    from bhemu.report.model import make_report, make_reports
    from bhemu.report.text import hazard_lines, perfetto_json, report_as_json, summary_lines

    kinds = parse_kinds(check) if check is not None else None
    hidden = Suppressions.read(suppressions) if suppressions is not None else None
    if as_json or (perfetto is not None and chip is not None):
        reports = [make_report(record, elf=elf or [], kinds=kinds, suppressions=hidden, chip=chip)]
    else:  # the page has all chips, and so has the trace
        reports = make_reports(record, elf=elf or [], kinds=kinds, suppressions=hidden, chip=chip)
    made = next((one for one in reports if one.chip == chip), reports[0])
    if as_json:
        print_json(report_as_json(made))
    else:
        for line in summary_lines(made):
            typer.echo(line)
        for line in hazard_lines(made) if hazards else []:
            typer.echo(line)
    if perfetto is not None:
        write_whole(perfetto, perfetto_json(*reports))
    if as_json or perfetto is not None:
        return
    from bhemu.report.page import page

    path = output or record / "report.html"
    write_whole(path, page(reports, record.resolve().name, chip=chip).encode())
    typer.echo(f"wrote {shown_path(path)}")
