"""`bhemu compare`: the same calls on bhemu and on another library of the simulator's interface."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bhemu.cli.options import AllowOpen, Quiet, ReportAsJson, takes_options
from bhemu.cli.report import USAGE, number, refuse_usage, show_error

if TYPE_CHECKING:
    from bhemu.compare.comparison import Subject
    from bhemu.loader.boot import Placement

DIFFERENT = 1
"""Exit status: the sides differ."""
COULD_NOT_RUN = USAGE
"""Exit status: no comparison was made."""
PROGRAM_PANEL = "Options for programs"


@dataclass(frozen=True)
class CompareOptions:
    """What the command line says about a comparison."""

    what: Annotated[
        list[str],
        typer.Argument(metavar="WHAT", help="A Python program, ELF files (CORE=FILE for several), or a call trace."),
    ]
    library: Annotated[
        Path | None,
        typer.Option(metavar="FILE.so", help="The other simulator. Without it a trace's own answers count."),
    ] = None
    record: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the calls and bhemu's answers as a trace; .gz compresses."),
    ] = None
    allow_open: AllowOpen = False
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds that the library may take for one call.")] = 60.0
    as_json: ReportAsJson = False
    quiet: Quiet = False
    names: Annotated[
        list[str] | None,
        typer.Option("--elf", metavar="CORE=FILE", help="ELF file that names the code of a core in a trace."),
    ] = None
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--in", metavar="NAME=FILE.npy", help="An input of a Python program.", rich_help_panel=PROGRAM_PANEL
        ),
    ] = None
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A parameter of a Python program.", rich_help_panel=PROGRAM_PANEL
        ),
    ] = None
    seed: Annotated[int, typer.Option(min=0, help="Seed of generated inputs.", rich_help_panel=PROGRAM_PANEL)] = 0
    core: Annotated[
        str | None,
        typer.Option(metavar="CORE", help="Core of one ELF file; else guessed.", rich_help_panel=PROGRAM_PANEL),
    ] = None
    writes: Annotated[
        list[str] | None,
        typer.Option(
            "--write",
            metavar="ADDR=FILE",
            help="Put the bytes of a file, or of a .npy file, into L1 before the cores start. ADDR: number or symbol.",
            rich_help_panel=PROGRAM_PANEL,
        ),
    ] = None
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            metavar="ADDR:BYTES",
            help="Compare these bytes of L1; by default all of it.",
            rich_help_panel=PROGRAM_PANEL,
        ),
    ] = None
    tile: Annotated[str, typer.Option(metavar="X-Y", help="The tile that runs it.", rich_help_panel=PROGRAM_PANEL)] = (
        "1-2"
    )
    others: Annotated[
        list[str] | None,
        typer.Option(
            "--also",
            metavar="X-Y",
            help="Compare L1 of this tile, too, which the program reaches over the NoC.",
            rich_help_panel=PROGRAM_PANEL,
        ),
    ] = None
    every: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Clocks between two comparisons of L1. Default: 1,000, in long runs 1/8 of the clocks so far.",
            rich_help_panel=PROGRAM_PANEL,
        ),
    ] = None
    at_end: Annotated[
        bool,
        typer.Option(
            "--at-end",
            help="Compare only when nothing can proceed any more: results, not times.",
            rich_help_panel=PROGRAM_PANEL,
        ),
    ] = False
    max_clocks: Annotated[
        int, typer.Option(min=1, help="Stop after this many clocks.", rich_help_panel=PROGRAM_PANEL)
    ] = 10_000_000


@takes_options(CompareOptions)
def compare(o: CompareOptions) -> None:
    """Run something on bhemu and on a libttsim-compatible library, and report the first difference.

    Both get the same calls of the simulator's C interface; the library runs in a process of its own. A difference in
    memory is followed back to the clock in which it begins, and shown with what the tile did before.

    Exit status: 0 the same, 1 different, 2 no comparison could be made.
    """
    from bhemu.cli.progress import Progress
    from bhemu.errors import BhemuError

    try:
        _check_usage(o)
        with Progress(silent=o.quiet) as progress:
            subject = _subject(o)
            _prepare(o, subject)
            from bhemu.compare.comparison import compare as make

            comparison = make(
                subject,
                o.library,
                record=o.record,
                allow_open=o.allow_open,
                timeout=o.timeout,
                progress=progress.clocks,
                found=lambda: progress.show("looking for the clock in which they begin to differ"),
            )
        if o.as_json or not o.quiet:
            from bhemu.cli.compare_report import report

            report(comparison, o.library, o.record, as_json=o.as_json)
    except BhemuError as error:
        show_error(error)
        raise typer.Exit(COULD_NOT_RUN) from None
    if not comparison.is_same:
        raise typer.Exit(DIFFERENT)


# --- the command line -------------------------------------------------------------------------------------------------


def _is_python(texts: list[str]) -> bool:
    return Path(texts[0]).suffix == ".py"


def _is_elf(texts: list[str]) -> bool:
    from bhemu.cli.run_elf import is_elf_argument

    return all(is_elf_argument(text) for text in texts)


def _check_usage(o: CompareOptions) -> None:
    python, elf = _is_python(o.what), _is_elf(o.what)
    if len(o.what) > 1 and not elf:
        refuse_usage("several things are given", "compare one at a time; of ELF files give one for each core")
    for option, value, good in (
        ("--in", o.inputs, python),
        ("--set", o.settings, python),
        ("--core", o.core, elf),
        ("--write", o.writes, elf),
        ("--elf", o.names, not python and not elf),
    ):
        if value and not good:
            refuse_usage(f"{option} is not for {o.what[0]}", "see `bhemu compare --help`")
    if o.record is not None and o.library is not None and o.record.resolve() == o.library.resolve():
        refuse_usage("--record would write over the library", "give the trace a name of its own")


def _subject(o: CompareOptions) -> Subject:
    from bhemu.compare.comparison import Subject

    name = " ".join(o.what)
    if _is_python(o.what):
        from bhemu.cli.report import assignments
        from bhemu.compare.capture import capture
        from bhemu.formats.files import load as load_array
        from bhemu.programs.load import load_program

        files = assignments(o.inputs, "--in", "a=a.npy")
        arrays = {tensor: load_array(Path(file)) for tensor, file in files.items()}
        chosen = assignments(o.settings, "--set", "M=64")
        program = load_program(o.what[0])
        return Subject(name, capture(program, arrays, settings=chosen, seed=o.seed, allow_open=o.allow_open))
    if _is_elf(o.what):
        from bhemu.compare.elf import load, session

        placements = load(_programs(o.what, o.core))
        return Subject(name, session(placements), placements=placements)
    from bhemu.compare.trace import read_trace

    return Subject(name, trace=read_trace(Path(o.what[0])), placements=_named(o.names or []))


def _prepare(o: CompareOptions, subject: Subject) -> None:
    """Give the session of a program what is to be compared; a trace says that itself."""
    session = subject.session
    if session is None:
        for given, option in ((o.ranges, "--range"), (o.others, "--also"), (o.at_end, "--at-end")):
            if given:
                refuse_usage(f"{option} is for programs", "a trace says itself what is read and when")
    else:
        if o.library is None and o.record is None:
            refuse_usage("there is nothing to compare with", "name the other simulator: --library FILE.so")
        session.tile = _tile(o.tile, "--tile")
        session.others = [_tile(text, "--also") for text in dict.fromkeys(o.others or [])]
        if session.tile in session.others:
            refuse_usage(f"--also {o.tile} is the tile that runs it", "name other tiles")
        session.every, session.at_end, session.max_clocks = o.every, o.at_end, o.max_clocks
        for text in o.writes or []:
            session.pieces.append(_write(text, subject))
        if o.ranges:
            session.spans = [_span(text, subject) for text in o.ranges]


def _named(texts: list[str]) -> list[Placement]:
    """ELF files that are in memory by other means."""
    from bhemu.loader import boot
    from bhemu.loader.elf import load_elf

    placements = []
    for text in texts:
        core, equals, path = text.partition("=")
        if not equals or not path:
            refuse_usage(f"--elf {text!r} is not of the form CORE=FILE", "for example --elf T1=math.elf")
        placements.append(boot.Placement(boot.core_number(core), load_elf(path), ()))
    return placements


def _programs(what: list[str], core: str | None) -> dict[str | None, str | Path]:
    if len(what) == 1 and ("=" not in what[0] or Path(what[0]).is_file()):
        return {core: what[0]}
    if core is not None:
        refuse_usage("--core is for one program without a name", "say CORE=FILE for each, and omit --core")
    found: dict[str | None, str | Path] = {}
    for text in what:
        name, equals, path = text.partition("=")
        if not equals or not path:
            refuse_usage(f"{text!r} is not of the form CORE=FILE", "for example B=brisc.elf T0=unpack.elf")
        if name.upper() in found:
            refuse_usage(f"core {name.upper()} is named twice", "give each core one file")
        found[name.upper()] = path
    return found


def _tile(text: str, option: str) -> tuple[int, int]:
    from bhemu.chip.coordinates import NODES, SIMULATOR, Kind, translation

    x, dash, y = text.partition("-")
    place = (int(x), int(y)) if dash and x.isdigit() and y.isdigit() else (-1, -1)
    physical = translation(SIMULATOR).get(place)
    if physical is None or NODES[physical].kind is not Kind.TENSIX:
        refuse_usage(f"{option} {text} is not a Tensix tile", "x is 1 to 7 or 10 to 16, y is 2 to 11: for example 1-2")
    return place


def _address(text: str, subject: Subject) -> int:
    from bhemu.errors import MemoryError_
    from bhemu.machine.state import L1_SIZE

    if text[:1].isdigit():
        address = number(text, "address")
    else:
        from bhemu.loader.loaded import Loaded

        loaded = Loaded()
        loaded.placements = subject.placements
        address = loaded.address_of(text)
    if not 0 <= address < L1_SIZE:
        raise MemoryError_(f"{text} is {address:#x}, outside of L1", remedy=f"use an address below {L1_SIZE:#x}")
    return address


def _write(text: str, subject: Subject) -> tuple[int, bytes]:
    from bhemu.errors import MemoryError_, ProgramError
    from bhemu.machine.state import L1_SIZE

    place, equals, file = text.partition("=")
    if not equals or not file:
        refuse_usage(f"--write {text!r} is not of the form ADDR=FILE", "for example --write 0x21000=a.npy")
    path = Path(file)
    if path.suffix == ".npy":
        from bhemu.formats.files import load as load_array

        content = load_array(path).tobytes()
    else:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ProgramError(f"{path}: {error.strerror}", remedy="name a file of bytes, or a .npy file") from None
    address = _address(place, subject)
    if address + len(content) > L1_SIZE:
        raise MemoryError_(
            f"--write {text}: {len(content):,} bytes from {address:#x} do not fit into L1", remedy="use a lower address"
        )
    for placement in subject.placements:
        for piece in placement.pieces:
            if piece.content and not piece.is_local and address < piece.end and piece.address < address + len(content):
                segment = placement.executable.segments[piece.segment]
                if segment.executable:
                    raise MemoryError_(
                        f"--write {text} overlaps the code of {placement.executable.path}",
                        remedy="choose another address",
                    )
    return address, content


def _span(text: str, subject: Subject) -> Any:
    from bhemu.compare.session import Span
    from bhemu.errors import MemoryError_
    from bhemu.machine.state import L1_SIZE

    place, colon, size = text.partition(":")
    if not colon or not place or not size:
        refuse_usage(f"--range {text!r} is not of the form ADDR:BYTES", "for example --range 0x20000:4096")
    span = Span(_address(place, subject), number(size, "bytes"))
    if span.size <= 0 or span.address + span.size > L1_SIZE:
        raise MemoryError_(f"--range {text} does not lie in L1", remedy=f"L1 ends at {L1_SIZE:#x}")
    return span
