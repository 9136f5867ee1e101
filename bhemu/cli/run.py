"""`bhemu run`: a Python program, or compiled programs, on one tile; `.npy` files in and out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bhemu.cli.memory import READ, READ_BYTES, WRITE
from bhemu.cli.report import refuse_usage
from bhemu.cli.run_elf import ElfOptions, is_elf_argument, run_elf

ELF_PANEL = "Options for ELF files"


def run(
    programs: Annotated[
        list[str] | None,
        typer.Argument(metavar="PROGRAM", help="Python file that declares a bhemu.Program; or ELF files, see above."),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--in", metavar="NAME=FILE.npy", help="An input tensor; those not given are generated."),
    ] = None,
    outputs: Annotated[
        list[str] | None,
        typer.Option(
            "--out",
            metavar="NAME=FILE.npy",
            help="Save an output tensor, floats as float32, integers as they are. Written only after the whole run.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the program or the size of a dimension."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of generated inputs.")] = 0,
    max_cycles: Annotated[int | None, typer.Option(min=1, help="Give up after so many cycles.")] = None,
    allow_open: Annotated[
        bool, typer.Option("--allow-open", help="Use the recommended choice where no source settles the behaviour.")
    ] = False,
    show_timing: Annotated[
        bool,
        typer.Option("--timing", help="Report modelled cycles: units, threads, and what they wait for; cores' rounds."),
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Report instructions that use something too early; exit status 1 then.")
    ] = False,
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace",
            metavar="FILE.json",
            help="Write a trace for Perfetto: modelled time; of ELF files rounds, also when the run fails. FILE.txt: a "
            "line for each instruction of the cores.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No report and no progress; errors are shown.")] = False,
    core: Annotated[
        str | None,
        typer.Option(
            metavar="CORE", help="Core of one ELF file: B, T0, T1, T2 or NC; else guessed.", rich_help_panel=ELF_PANEL
        ),
    ] = None,
    writes: Annotated[
        list[str] | None,
        typer.Option(
            "--write",
            metavar=WRITE,
            help="Put a file into memory before the run. ADDR: number or symbol, CORE.symbol. A .npy file is encoded "
            "to FORMAT (bf16, ... in tiles of 32x32; u32, f32, ... as C has them), other files are bytes.",
            rich_help_panel=ELF_PANEL,
        ),
    ] = None,
    reads: Annotated[
        list[str] | None,
        typer.Option(
            "--read",
            metavar=READ,
            help=f"Save memory after the run as a .npy file; or {READ_BYTES} as bytes. Written only after a whole run.",
            rich_help_panel=ELF_PANEL,
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="SYMBOL", help="End when a core reaches a function or address.", rich_help_panel=ELF_PANEL
        ),
    ] = None,
    until_word: Annotated[
        str | None,
        typer.Option(
            metavar="ADDR=VALUE",
            help="End when a word of L1 has this value; it is looked at every 32 clocks, in long runs every 4,096.",
            rich_help_panel=ELF_PANEL,
        ),
    ] = None,
    max_clocks: Annotated[
        int | None, typer.Option(min=1, help="Give up after so many clocks (10,000,000).", rich_help_panel=ELF_PANEL)
    ] = None,
    dump: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.npz",
            help="Write the whole state of the tile, also when the run fails.",
            rich_help_panel=ELF_PANEL,
        ),
    ] = None,
    show_profile: Annotated[
        bool,
        typer.Option(
            "--profile",
            help="Report functions and source lines of the cores, what they waited for and where they polled.",
            rich_help_panel=ELF_PANEL,
        ),
    ] = False,
    semihosting: Annotated[
        bool,
        typer.Option(
            "--semihosting", help="Serve ecall of core B: write, exit, brk, fstat, close.", rich_help_panel=ELF_PANEL
        ),
    ] = False,
    firmware: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Boot tt-metal firmware: brisc/brisc.elf, ncrisc/..., trisc0..2/...",
            rich_help_panel=ELF_PANEL,
        ),
    ] = None,
    kernels: Annotated[
        list[str] | None,
        typer.Option(
            "--kernel",
            metavar="CORE=FILE",
            help="A kernel that the firmware runs: ELF file, or .bin.",
            rich_help_panel=ELF_PANEL,
        ),
    ] = None,
    layout: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml", help="Where another build of the firmware keeps things.", rich_help_panel=ELF_PANEL
        ),
    ] = None,
) -> None:
    """Run a program and report what it did.

    `bhemu run program.py` runs the three threads of a Python program. The report counts the instructions of each unit,
    tiles and time, and gives the largest difference of each output from the program's float64 NumPy reference.

    `bhemu run kernel.elf`, or `bhemu run B=brisc.elf T0=unpack.elf T1=math.elf T2=pack.elf`, runs compiled programs on
    the RISC-V cores of a tile until all have halted (ebreak) or stand in an endless loop.
    """
    elf = ElfOptions(
        programs=programs or [],
        core=core,
        writes=writes or [],
        reads=reads or [],
        until=until,
        until_word=until_word,
        max_clocks=max_clocks,
        dump=dump,
        trace=trace,
        show_profile=show_profile,
        show_timing=show_timing,
        semihosting=semihosting,
        firmware=firmware,
        kernels=kernels or [],
        layout=layout,
        allow_open=allow_open,
        as_json=as_json,
        quiet=quiet,
    )
    if firmware is not None or not elf.programs or any(is_elf_argument(text) for text in elf.programs):
        for given, option in (
            (inputs, "--in"),
            (outputs, "--out"),
            (settings, "--set"),
            (seed, "--seed"),
            (max_cycles, "--max-cycles"),
            (check, "--check"),
        ):
            if given:
                refuse_usage(f"{option} is for Python programs", "ELF files take --write, --read, --max-clocks")
        run_elf(elf)
        return
    if len(elf.programs) > 1:
        refuse_usage("several Python programs are given", "run one at a time")
    for value, option in (
        (core, "--core"),
        (writes, "--write"),
        (reads, "--read"),
        (until, "--until"),
        (until_word, "--until-word"),
        (max_clocks, "--max-clocks"),
        (dump, "--dump"),
        (show_profile, "--profile"),
        (semihosting, "--semihosting"),
        (kernels, "--kernel"),
        (layout, "--layout"),
    ):
        if value:
            refuse_usage(f"{option} is for ELF files", "Python programs take --in, --out, --set, --max-cycles")
    if trace is not None and trace.suffix == ".txt":
        refuse_usage("a trace as text is for ELF files", "name a .json file")
    from bhemu.cli.run_program import run_program_file

    run_program_file(
        Path(elf.programs[0]),
        inputs,
        outputs,
        settings,
        seed=seed,
        max_cycles=max_cycles,
        allow_open=allow_open,
        show_timing=show_timing,
        check=check,
        trace=trace,
        as_json=as_json,
        quiet=quiet,
    )
