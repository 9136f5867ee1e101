"""The options of `bhemu run`: each is declared once; its help panel says which kind of program takes it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

from bhemu.cli.memory import READ, READ_BYTES, WRITE
from bhemu.cli.options import AllowOpen, Quiet, ReportAsJson, default_of
from bhemu.cli.report import refuse_usage

ELF_PANEL = "Options for ELF files"
PROGRAM_PANEL = "Options for Python programs"
_REMEDIES = {
    ELF_PANEL: "Python programs take --in, --out, --set, --max-cycles",
    PROGRAM_PANEL: "ELF files take --write, --read, --max-clocks",
}


@dataclass
class RunOptions:
    """What the command line says about a run."""

    programs: Annotated[
        list[str],
        typer.Argument(metavar="PROGRAM", help="Python file that declares a bhemu.Program; or ELF files, see above."),
    ] = field(default_factory=list)
    inputs: Annotated[
        list[str],
        typer.Option(
            "--in",
            metavar="NAME=FILE.npy",
            help="An input tensor; those not given are generated.",
            rich_help_panel=PROGRAM_PANEL,
        ),
    ] = field(default_factory=list)
    outputs: Annotated[
        list[str],
        typer.Option(
            "--out",
            metavar="NAME=FILE.npy",
            help="Save an output tensor, floats as float32, integers as they are. Written only after the whole run.",
            rich_help_panel=PROGRAM_PANEL,
        ),
    ] = field(default_factory=list)
    settings: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A parameter of the program or the size of a dimension.",
            rich_help_panel=PROGRAM_PANEL,
        ),
    ] = field(default_factory=list)
    seed: Annotated[int, typer.Option(min=0, help="Seed of generated inputs.", rich_help_panel=PROGRAM_PANEL)] = 0
    max_cycles: Annotated[
        int | None, typer.Option(min=1, help="Stop after this many cycles.", rich_help_panel=PROGRAM_PANEL)
    ] = None
    allow_open: AllowOpen = False
    show_timing: Annotated[
        bool,
        typer.Option("--timing", help="Report modelled cycles: units, threads, and what they wait for; cores' rounds."),
    ] = False
    timed: Annotated[
        bool,
        typer.Option(
            "--timed",
            help="Clocks are estimates of cycles of silicon, on a chip the NoC's too; the same results.",
            rich_help_panel=ELF_PANEL,
        ),
    ] = False
    check: Annotated[
        str | None,
        typer.Option(
            "--check",
            metavar="[=KIND,...]",
            help="Report what uses something too early: of order, l1, noc, cb, or all; exit status 1 then.",
        ),
    ] = None
    suppressions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TOML file with hazards that --check leaves out.")
    ] = None
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace",
            metavar="FILE.json",
            help="Write a trace for Perfetto: modelled time; of ELF files rounds, also when the run fails. FILE.txt: a "
            "line for each instruction of the cores.",
        ),
    ] = None
    as_json: ReportAsJson = False
    quiet: Quiet = False
    tiles: Annotated[
        list[str],
        typer.Option(
            "--tile",
            metavar="X,Y",
            help="Run on a chip: tiles that FILEs without X,Y/ are for; X,Y-X,Y is a rectangle, `all` all tiles. "
            "Places of --write, --read and --until-word begin with X,Y/ or dramN/ then, where several are there.",
            rich_help_panel=ELF_PANEL,
        ),
    ] = field(default_factory=list)
    board: Annotated[
        str | None,
        typer.Option(metavar="BOARD", help="The chip: p150 or p100.", rich_help_panel=ELF_PANEL),
    ] = None
    core: Annotated[
        str | None,
        typer.Option(
            metavar="CORE", help="Core of one ELF file: B, T0, T1, T2 or NC; else guessed.", rich_help_panel=ELF_PANEL
        ),
    ] = None
    writes: Annotated[
        list[str],
        typer.Option(
            "--write",
            metavar=WRITE,
            help="Put a file into memory before the run. ADDR: number or symbol, CORE.symbol. A .npy file is encoded "
            "to FORMAT (bf16, ... in tiles of 32x32; u32, f32, ... as C has them), other files are bytes.",
            rich_help_panel=ELF_PANEL,
        ),
    ] = field(default_factory=list)
    reads: Annotated[
        list[str],
        typer.Option(
            "--read",
            metavar=READ,
            help=f"Save memory after the run as a .npy file; or {READ_BYTES} as bytes. Written only after a whole run.",
            rich_help_panel=ELF_PANEL,
        ),
    ] = field(default_factory=list)
    until: Annotated[
        str | None,
        typer.Option(
            metavar="SYMBOL", help="End when a core reaches a function or address.", rich_help_panel=ELF_PANEL
        ),
    ] = None
    until_word: Annotated[
        str | None,
        typer.Option(
            metavar="ADDR=VALUE",
            help="End when a word of L1 has this value; it is read every 32 clocks, in long runs every 4,096.",
            rich_help_panel=ELF_PANEL,
        ),
    ] = None
    max_clocks: Annotated[
        int | None, typer.Option(min=1, help="Stop after this many clocks (10,000,000).", rich_help_panel=ELF_PANEL)
    ] = None
    dump: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.npz",
            help="Write the whole state of the tile, also when the run fails.",
            rich_help_panel=ELF_PANEL,
        ),
    ] = None
    show_profile: Annotated[
        bool,
        typer.Option(
            "--profile",
            help="Report functions and source lines of the cores, what they waited for and where they polled.",
            rich_help_panel=ELF_PANEL,
        ),
    ] = False
    semihosting: Annotated[
        bool,
        typer.Option(
            "--semihosting", help="Serve ecall of core B: write, exit, brk, fstat, close.", rich_help_panel=ELF_PANEL
        ),
    ] = False
    firmware: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Boot tt-metal firmware: brisc/brisc.elf, ncrisc/..., trisc0..2/...",
            rich_help_panel=ELF_PANEL,
        ),
    ] = None
    kernels: Annotated[
        list[str],
        typer.Option(
            "--kernel",
            metavar="CORE=FILE",
            help="A kernel that the firmware runs: ELF file, or .bin.",
            rich_help_panel=ELF_PANEL,
        ),
    ] = field(default_factory=list)
    layout: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml", help="Where another build of the firmware keeps things.", rich_help_panel=ELF_PANEL
        ),
    ] = None

    def refuse_panel(self, panel: str) -> None:
        """Refuse options of a help panel, when one of them is given.

        Raises:
            UsageError: one is.
        """
        kind = panel.removeprefix("Options for ")
        for option in fields(self):
            declared = _declared(option.name)
            if declared.rich_help_panel == panel and getattr(self, option.name) != default_of(option):
                # In an annotation, Typer has the first name of an option in the place of its default.
                named = isinstance(declared.default, str) and declared.default.startswith("--")
                name = declared.default if named else "--" + option.name.replace("_", "-")
                refuse_usage(f"{name} is for {kind}", _REMEDIES[panel])


def _declared(name: str) -> Any:
    """Typer's declaration of an option or argument."""
    return get_args(get_type_hints(RunOptions, include_extras=True)[name])[1]
