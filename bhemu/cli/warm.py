"""`bhemu warm`: compile everything now, on all processors, so that no first run waits."""

from __future__ import annotations

import os
import time
from typing import Annotated

import typer

from bhemu.cli.report import REFUSED, messages, output

CLOCK = -1
"""Entry for what is compiled beside the handlers: FIFO, expanders, the clock and the recorder's clock."""
RECORDED = -3
"""Entry for the schedule that records what cores do."""
CHIP = -4
"""Entry for the clock of a chip and what the C library calls."""
SCHEDULE = -2
"""Entry for what else the cores of a tile need; other negative numbers for places of the tile: -RUN_CORE."""


def warm(
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes; as many as there are processors by default.")
    ] = None,
) -> None:
    """Compile every instruction into the cache, in parallel."""
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    from rich.progress import Progress

    from bhemu.isa import BY_OPCODE
    from bhemu.machine.cache import cache_directory
    from bhemu.machine.compiler import JIT
    from bhemu.machine.dispatch import (
        ADVANCE_TILE,
        DEVICE_LOAD,
        DEVICE_STORE,
        NOC_START,
        RUN_CORE,
        RUN_TURNS,
        SLOW_CORE,
    )
    from bhemu.tensix import units
    from bhemu.tensix.instruction import HANDLERS

    assert units
    if not JIT:
        output().print("nothing to compile: Numba is disabled")
        return
    places = {
        -DEVICE_STORE: "the registers that cores store to",
        -DEVICE_LOAD: "the registers that cores load",
        -RUN_TURNS: "the cores' turns",
        -NOC_START: "the network interfaces",
        -RUN_CORE: "the RISC-V cores",
        -SLOW_CORE: "their other instructions",
        RECORDED: "the recorder of cores",
        CHIP: "the chip's clock",
        -ADVANCE_TILE: "the schedule of a tile",
        SCHEDULE: "the schedule",
        CLOCK: "the clock",
    }
    todo = [*places, *sorted(HANDLERS)]  # the longest first
    compiled, failed, start = 0, [], time.perf_counter()
    _know_imports()
    with (
        Progress(console=messages(), transient=True) as progress,
        ProcessPoolExecutor(min(jobs or os.cpu_count() or 1, len(todo)), get_context("spawn")) as pool,
    ):
        bar = progress.add_task("compiling", total=len(todo))
        waiting = {pool.submit(compile_one, opcode): opcode for opcode in todo}
        for done in as_completed(waiting):
            opcode = waiting[done]
            row = BY_OPCODE[opcode] if opcode >= 0 else None
            name = row.mnemonic if row else places[opcode]
            progress.update(bar, advance=1, description=f"compiled {name}")
            error = done.exception()
            if error is not None:
                failed.append(f"{name}: {type(error).__name__}: {error}")
            else:
                compiled += done.result()
    seconds = time.perf_counter() - start
    known = len(todo) - compiled - len(failed)
    output().print(f"{compiled} compiled in {seconds:.1f} s, {known} were in {cache_directory()}", markup=False)
    for line in failed:
        typer.echo(f"bhemu: {line}", err=True)
    if failed:
        raise typer.Exit(REFUSED)


def _know_imports() -> None:
    """Find out which module imports which, here: processes of the pool do not live to keep it."""
    from pathlib import Path

    import bhemu
    from bhemu.machine.compiler import module_stamp

    rooms = Path(bhemu.__file__).parent
    for part in ("tensix/units.py", "chip/clock/clocks.py", "recording/core_recorder.py", "recording/recorder.py"):
        module_stamp(rooms / part)


def compile_one(opcode: int) -> int:
    """Compile the handler of an opcode, or what a negative number selects; 1 when the cache did not have it."""
    from bhemu.api.tile import Tile
    from bhemu.chip.entries import ensure_chip_entries
    from bhemu.machine.compiler import on_compile
    from bhemu.recording import Recorder
    from bhemu.recording.core_recorder import CoreRecorder
    from bhemu.tensix.coprocessor import ensure_handlers, ensure_place
    from bhemu.tile.cores import ensure_entries

    compiled = 0

    def count(name: str) -> None:
        nonlocal compiled
        compiled = 1

    on_compile(count)
    if opcode == CLOCK:
        Recorder().attach(Tile())  # compiles the plain clock too
    elif opcode == RECORDED:
        CoreRecorder().attach(Tile(), {})
    elif opcode == SCHEDULE:
        ensure_entries()
    elif opcode == CHIP:
        ensure_chip_entries()
    elif opcode < 0:
        ensure_place(-opcode)
    else:
        ensure_handlers([opcode])
    return compiled
