"""`bhemu library`: the C library behind which Tenstorrent's clients find bhemu."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from bhemu.cli.progress import parts_compiled
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
        typer.Option("--ethernet/--no-ethernet", help="Describe Ethernet tiles, whose cores tt-metal starts."),
    ] = True,
    processor: Annotated[
        str | None,
        typer.Option("--for", metavar="BASELINE", help="Make it for other machines: x86-64, x86-64-v3 or x86-64-v4."),
    ] = None,
    chips: Annotated[
        str | None,
        typer.Option(metavar="SYSTEM", help="Several chips: p300, p300x2, galaxy, or a YAML file that describes them."),
    ] = None,
) -> None:
    """Put `libttsim_bh.so` and `soc_descriptor.yaml` into DIR, ready for `TT_METAL_SIMULATOR`.

    The library has all that runs a chip as machine code, for this machine's processor; what is not in the cache is
    compiled, which takes minutes the first time. `--for` makes it for other machines, which need nothing else of bhemu.

    Clients of the official simulator, such as tt-exalens and tt-umd, then run on bhemu. `BHEMU_DUMP=FILE.npz` keeps
    the state of a tile at fault, `BHEMU_ELF=FILE:...` gives messages symbols and source lines, `BHEMU_ALLOW_OPEN=1`
    allows open choices, `BHEMU_ORDER=hardware` takes queues of Blackhole's size in place of the official simulator's,
    `BHEMU_THREADS=N` and `BHEMU_QUANTUM=N` say on how many threads tiles run and how far ahead of each other,
    `BHEMU_PROCESS=own` gives the simulator a process of its own.

    With `--chips` it has several chips, whose Ethernet tiles are joined; `cluster_descriptor.yaml` is written too.

    With `--record LIBRARY`, bhemu's own or another, clients run on that one, and `BHEMU_TRACE=FILE` gets a call trace
    for `bhemu compare`.
    """
    from bhemu.capi import build, build_recorder
    from bhemu.capi.machine_text import BASELINES
    from bhemu.capi.soc_descriptor import NAME, write_soc_descriptor

    if directory.exists() and not directory.is_dir():
        refuse_usage(f"{shown_path(directory)} is not a directory", "name a directory")
    if processor is not None and processor not in BASELINES:
        refuse_usage(f"--for {processor} is not a baseline", f"use one of {', '.join(BASELINES)}")
    if record is not None and chips is not None:
        refuse_usage("--chips and --record LIBRARY", "a recorder has the chips of the library that it records")
    if record is not None:
        from bhemu.compare.library import check_library

        check_library(record)
        made = build_recorder(directory.resolve(), record)
        write_soc_descriptor(made.parent, ethernet=ethernet)
    else:
        with parts_compiled() as told:
            made = build(directory.resolve(), ethernet=ethernet, processor=processor, chips=chips, told=told)
    typer.echo(f"wrote {shown_path(made)} and {shown_path(made.parent / NAME)}")
    typer.echo(f"export TT_METAL_SIMULATOR={shlex.quote(str(made))}")
