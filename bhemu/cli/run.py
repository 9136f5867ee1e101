"""`bhemu run`: a Python program, or compiled programs, on one tile; `.npy` files in and out."""

from __future__ import annotations

from bhemu.cli.options import takes_options
from bhemu.cli.report import refuse_usage
from bhemu.cli.run_chip import names_tiles, run_on_chip
from bhemu.cli.run_elf import is_elf_argument, run_elf
from bhemu.cli.run_options import ELF_PANEL, PROGRAM_PANEL, RunOptions


@takes_options(RunOptions)
def run(options: RunOptions) -> None:
    """Run a program and report what it did.

    `bhemu run program.py` runs the three threads of a Python program. The report counts the instructions of each unit,
    tiles and time, and gives the largest difference of each output from the program's float64 NumPy reference.

    `bhemu run kernel.elf`, or `bhemu run B=brisc.elf T0=unpack.elf T1=math.elf T2=pack.elf`, runs compiled programs on
    the RISC-V cores of a tile until all have halted (ebreak) or spin in an endless loop.

    With `--tile 1,2`, or for programs like `1,2/B=reader.elf`, the tiles are those of a whole chip.
    """
    programs = options.programs
    if names_tiles(options):
        options.refuse_panel(PROGRAM_PANEL)
        run_on_chip(options)
        return
    if options.firmware is not None or not programs or any(is_elf_argument(text) for text in programs):
        options.refuse_panel(PROGRAM_PANEL)
        run_elf(options)
        return
    if len(programs) > 1:
        refuse_usage("several Python programs are given", "run one at a time")
    options.refuse_panel(ELF_PANEL)
    if options.trace is not None and options.trace.suffix == ".txt":
        refuse_usage("a trace as text is for ELF files", "name a .json file")
    from bhemu.cli.run_program import run_program_file

    run_program_file(options)
