"""`bhemu debug --attach`: the debugger of a running client, at the terminal or for GDB."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from bhemu.cli.report import refuse_usage, show_error


def _place(text: str) -> tuple[int, int]:
    """Coordinates in `1,2`."""
    x, comma, y = text.partition(",")
    if not (comma and x.isdecimal() and y.isdecimal()):
        refuse_usage(f"{text!r} is not a tile", "name one as X,Y, such as --tile 1,2; `tile X,Y` chooses another one")
    return int(x), int(y)


def debug_client(
    path: Path,
    programs: list[str],
    tiles: list[str],
    core: str | None,
    gdb: str | None,
    commands: list[str],
    script: Path | None,
    *,
    batch: bool,
) -> None:
    """Attach to a client, execute commands, and read further ones from the terminal, or let GDB connect."""
    from bhemu.client.attached import FIRST_TILE, attach
    from bhemu.client.shell import Shell
    from bhemu.gdb.server import listen_on, parse_address

    if gdb is not None and (script or batch):
        refuse_usage("--gdb takes its commands from GDB", "leave --script and --batch out; --command runs before GDB")
    listener = None if gdb is None else listen_on(parse_address(gdb))
    with attach(path.absolute(), tiles=[_place(text) for text in tiles] or [FIRST_TILE]) as attached:
        shell = Shell(attached, show_error)
        first = [*([f"core {core}"] if core else []), *(f"file {Path(name).absolute()}" for name in programs)]
        if listener is None:
            if not shell.run([*first, *commands], script, interactive=not batch):
                raise typer.Exit(1)
            return
        with listener:
            if not shell.run([*first, *commands], None, interactive=False):
                raise typer.Exit(1)
            host, port = listener.getsockname()[:2]
            typer.echo(f"bhemu: waiting for GDB: gdb-multiarch -ex 'target remote {host}:{port}'", err=True)
            typer.echo("bhemu: with names, as GDB takes them before or after that:", err=True)
            typer.echo(attached.command("files"), err=True)
            sys.stderr.flush()
            attached.relay(listener, core)
