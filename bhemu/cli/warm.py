"""`bhemu warm`: compile everything now, on all processors, so that no first run waits."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from bhemu.cli.progress import parts_compiled
from bhemu.cli.report import REFUSED, messages, output


def warm(
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes; as many as there are processors by default.")
    ] = None,
) -> None:
    """Compile every instruction into the cache, in parallel, and link a library of all, which loads in milliseconds."""
    from bhemu.capi.compiler import c_compiler
    from bhemu.capi.linking import keep_linked
    from bhemu.capi.objects import compile_all
    from bhemu.errors import ProgramError
    from bhemu.machine.cache import cache_directory
    from bhemu.machine.codegen import JIT

    if not JIT:
        output().print("nothing to compile: Numba is disabled")
        return
    start, done = time.perf_counter(), 0
    with parts_compiled() as told:

        def count(name: str, total: int) -> None:
            nonlocal done
            done += 1
            told(name, total)

        parts = compile_all(jobs, count)
    seconds = time.perf_counter() - start
    known = done - parts.compiled - len(parts.failed)
    output().print(f"{parts.compiled} compiled in {seconds:.1f} s, {known} were in {cache_directory()}", markup=False)
    for line in parts.failed:
        typer.echo(f"bhemu: {line}", err=True)
    if parts.failed:
        raise typer.Exit(REFUSED)
    try:
        keep_linked(parts, c_compiler())
    except ProgramError as error:  # everything works without it, and is loaded piece by piece
        messages().print(f"no library of all was linked: {error.message}", markup=False)
