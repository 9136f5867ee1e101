"""`bhemu library`: the C library behind which Tenstorrent's clients find bhemu."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bhemu.cli.report import refuse_usage, shown_path


def library(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Directory for the files; made when not there.")],
) -> None:
    """Put `libttsim_bh.so` and `soc_descriptor.yaml` into DIR, ready for `TT_METAL_SIMULATOR`.

    Clients of the official simulator, such as tt-exalens and tt-umd, then run on bhemu. `BHEMU_DUMP=FILE.npz` keeps
    the state of a tile at fault, `BHEMU_ELF=FILE:...` gives messages symbols and source lines, `BHEMU_ALLOW_OPEN=1`
    allows open choices.
    """
    from bhemu.host.library import build
    from bhemu.host.library.soc_descriptor import write_soc_descriptor

    if directory.exists() and not directory.is_dir():
        refuse_usage(f"{shown_path(directory)} is no directory", "name a directory")
    made = build(directory.resolve())
    described = write_soc_descriptor(made.parent)
    typer.echo(f"wrote {shown_path(made)} and {shown_path(described)}")
    typer.echo(f"export TT_METAL_SIMULATOR={made}")
