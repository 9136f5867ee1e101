"""`bhemu library`: the C library behind which Tenstorrent's clients find bhemu."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from bhemu.cli.report import refuse_usage, shown_path


def library(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Directory for the files; made when not there.")],
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="LIBRARY",
            help="Put a library there that passes calls on to this one, and writes them into the file BHEMU_TRACE.",
        ),
    ] = None,
    ethernet: Annotated[
        bool,
        typer.Option("--ethernet/--no-ethernet", help="Describe Ethernet tiles; tt-metal would start their cores."),
    ] = True,
) -> None:
    """Put `libttsim_bh.so` and `soc_descriptor.yaml` into DIR, ready for `TT_METAL_SIMULATOR`.

    Clients of the official simulator, such as tt-exalens and tt-umd, then run on bhemu. `BHEMU_DUMP=FILE.npz` keeps
    the state of a tile at fault, `BHEMU_ELF=FILE:...` gives messages symbols and source lines, `BHEMU_ALLOW_OPEN=1`
    allows open choices, `BHEMU_ORDER=hardware` takes queues of Blackhole's size in place of the official simulator's,
    `BHEMU_THREADS=N` and `BHEMU_QUANTUM=N` say on how many threads tiles run and how far ahead of each other,
    `BHEMU_PROCESS=own` gives the simulator a process of its own.

    With `--record LIBRARY`, bhemu's own or another, clients run on that one, and `BHEMU_TRACE=FILE` gets a call trace
    for `bhemu compare`.
    """
    from bhemu.capi import build, build_recorder, shared_python
    from bhemu.capi.soc_descriptor import write_soc_descriptor

    if directory.exists() and not directory.is_dir():
        refuse_usage(f"{shown_path(directory)} is not a directory", "name a directory")
    if record is not None:
        from bhemu.compare.library import check_library

        check_library(record)
    made = build(directory.resolve()) if record is None else build_recorder(directory.resolve(), record)
    described = write_soc_descriptor(made.parent, ethernet=ethernet)
    typer.echo(f"wrote {shown_path(made)} and {shown_path(described)}")
    typer.echo(f"export TT_METAL_SIMULATOR={shlex.quote(str(made))}")
    if record is None and not shared_python():
        typer.echo(
            "this Python has no shared library: for clients that are no Python programs it gets a process", err=True
        )
