"""`bhemu debug`: a debugger for compiled kernels, at the terminal or for GDB."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bhemu.cli.options import AllowOpen, takes_options
from bhemu.cli.report import refuse_usage, show_error

if TYPE_CHECKING:
    from bhemu.debugger.session import DebugSession

CORES = ("B", "T0", "T1", "T2", "NC")


@dataclass(frozen=True)
class DebugOptions:
    """What the command line says about a session of the debugger."""

    programs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[X,Y/][CORE=]FILE.elf...", help="Kernels, for example B=brisc.elf T0=unpack.elf 2,2/B=writer.elf."
        ),
    ] = None
    attach: Annotated[
        Path | None,
        typer.Option("--attach", metavar="SOCKET", help="Debug a client that runs: `bhemu run-client --debug SOCKET`."),
    ] = None
    tiles: Annotated[
        list[str] | None,
        typer.Option(
            "--tile",
            metavar="X,Y",
            help="Debug on a chip: tiles that FILEs without X,Y/ are for; X,Y-X,Y is a rectangle, `all` all tiles.",
        ),
    ] = None
    board: Annotated[str | None, typer.Option(metavar="BOARD", help="The chip: p150 or p100.")] = None
    commands: Annotated[
        list[str] | None, typer.Option("--command", "-c", metavar="COMMAND", help="Execute a command; may be repeated.")
    ] = None
    script: Annotated[
        Path | None, typer.Option("--script", "-x", metavar="FILE", help="Execute the commands in a file.")
    ] = None
    batch: Annotated[
        bool, typer.Option("--batch", help="End after the commands; exit status 1 when one was refused.")
    ] = False
    gdb: Annotated[
        str | None, typer.Option("--gdb", metavar="[HOST]:PORT", help="Wait for GDB there instead (port 0: any).")
    ] = None
    core: Annotated[
        str | None,
        typer.Option(
            "--core",
            help="The core that a FILE without CORE= is for, and that is chosen; with --gdb the only one shown.",
        ),
    ] = None
    allow_open: AllowOpen = False
    semihosting: Annotated[
        bool, typer.Option("--semihosting", help="Serve `ecall` of core B: write, exit, brk, fstat, close.")
    ] = False


@takes_options(DebugOptions)
def debug(o: DebugOptions) -> None:
    """Debug compiled kernels, or a running client: step, break, watch, and look at cores and coprocessor.

    The cores are released from reset and have not executed anything yet. `help` lists the commands. Without a terminal
    commands are read from standard input.

    With --tile, or programs like `2,2/B=writer.elf`, the tiles are those of a whole chip; the command `tile`
    chooses one.

    With --attach, the tiles are those of a running client's chip, and FILEs are programs that it has loaded; the client
    waits while the debugger is stopped. `quit` lets it go on.

    With --gdb, the cores are the threads of one process: `gdb-multiarch kernel.elf`, then
    `target remote :PORT`. `monitor help` lists what the coprocessor shows.
    """
    if o.core is not None and o.core.upper() not in CORES:
        refuse_usage(f"core {o.core!r} does not exist", f"use one of {', '.join(CORES)}")
    if o.attach is not None:
        from bhemu.cli.debug_attach import debug_client

        debug_client(
            o.attach, o.programs or [], o.tiles or [], o.core, o.gdb, o.commands or [], o.script, batch=o.batch
        )
        return
    if not o.programs:
        refuse_usage("no program is named", "name an ELF file, or attach to a running client: --attach SOCKET")
    if o.gdb is not None and (o.commands or o.script or o.batch):
        refuse_usage("--gdb takes its commands from GDB", "leave --command, --script and --batch out, or --gdb")
    from bhemu.cli.run_chip import is_on_tile

    if o.tiles or o.board is not None or any(map(is_on_tile, o.programs)):
        _debug_chip(o, o.programs)
        return
    named = _programs(o.programs, o.core)
    from bhemu.api.machine import Machine
    from bhemu.debugger.session import DebugSession

    _say_when_compiling()
    machine = Machine(allow_open=o.allow_open)
    for name, path in named:
        machine.load(path, name)
    machine.start()
    session = DebugSession(machine)
    if o.core is not None:
        session.core = session.number_of_core(o.core)
    if o.semihosting:
        from bhemu.api.semihosting import Semihosting

        session.runner.semihosting = Semihosting()
    if o.gdb is not None:
        _serve_gdb(session, o.gdb, o.core, named[0][1])
        return
    from bhemu.client.shell import Shell

    shell = Shell(session, show_error)
    if not shell.run(o.commands or [], o.script, interactive=not o.batch):
        raise typer.Exit(1)


def _debug_chip(o: DebugOptions, programs: list[str]) -> None:
    """Debug programs on tiles of a chip. GDB sees the first of them."""
    if o.core is not None and len(programs) > 1:
        refuse_usage("--core is for one program without a name", "say CORE=FILE for each, and omit --core")
    from bhemu.api.chip import Chip
    from bhemu.cli.run_chip import load_on_chip
    from bhemu.debugger.chip_session import ChipDebug

    _say_when_compiling()
    chip = Chip(o.board or "p150", allow_open=o.allow_open, quantum=1)
    loaded = load_on_chip(chip, programs, o.tiles or [], o.core)
    chip.start(tiles=list(loaded))
    debug = ChipDebug(chip, loaded)
    first = next(iter(loaded))
    if o.semihosting:
        from bhemu.api.semihosting import Semihosting

        debug.serve(Semihosting)
    if o.gdb is not None:
        _serve_gdb(debug[first], o.gdb, o.core, next(iter(loaded[first].values())))
        return
    from bhemu.client.shell import Shell

    if not Shell(debug, show_error).run(o.commands or [], o.script, interactive=not o.batch):
        raise typer.Exit(1)


def _say_when_compiling() -> None:
    """One line on standard error when the first use of something takes a while."""
    from bhemu.machine.compiler import on_compile

    def compiling(name: str) -> None:
        on_compile(None)
        typer.echo("compiling (first run only) ...", err=True)

    on_compile(compiling)


def _programs(texts: list[str], core: str | None) -> list[tuple[str | None, str]]:
    """(core or None, path) of each argument; every core once."""
    found: list[tuple[str | None, str]] = []
    for text in texts:
        name, equals, path = text.partition("=")
        if equals and name.upper() in CORES:
            if not path:
                refuse_usage(f"{text!r} names no file", f"say {name.upper()}=kernel.elf")
            found.append((name.upper(), path))
        elif equals and not Path(text).exists():
            refuse_usage(f"core {name!r} does not exist", f"use one of {', '.join(CORES)}: T0=kernel.elf")
        else:
            found.append((core.upper() if core is not None and len(texts) == 1 else None, text))
    for name in CORES:
        if sum(1 for each, _ in found if each == name) > 1:
            refuse_usage(f"core {name} has two programs", "give each core one file")
    return found


def _serve_gdb(session: DebugSession, address: str, core: str | None, file: str) -> None:
    """Serve GDB; `file` is a program that it can be given."""
    from bhemu.gdb.server import GdbServer, parse_address

    host, port = parse_address(address)
    cores = None if core is None else (session.number_of_core(core),)
    server = GdbServer(session, (host, port), cores)
    typer.echo(f"bhemu: waiting for GDB: gdb-multiarch {file} -ex 'target remote {host}:{server.port}'", err=True)
    sys.stderr.flush()
    try:
        server.serve()
    finally:
        server.close()
