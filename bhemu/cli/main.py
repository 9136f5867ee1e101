"""The `bhemu` command: every subcommand in a module of its own.

Nothing of the emulator is imported here; the commands import what they call, so `bhemu --help` is quick.
"""

from __future__ import annotations

import sys
import warnings
from typing import Annotated

import typer

from bhemu.cli import (
    bench,
    cc,
    compare,
    conformance,
    debug,
    doctor,
    fuzz,
    isa,
    library,
    looking,
    predict,
    registers,
    run,
    support,
    sweep,
    tile,
    warm,
    zones,
)
from bhemu.cli.report import REFUSED, Commands, WithCheck, report_os_error, show_warning

app = typer.Typer(
    name="bhemu",
    cls=Commands,
    help="Bit-exact emulator of the Tenstorrent Blackhole Tensix core.",
    epilog="Exit status: 0 done, 1 refused or failed, 2 wrong use of the command line, 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",  # paragraphs of docstrings are filled to the terminal's width
    pretty_exceptions_enable=False,
)
app.command("run", cls=WithCheck)(run.run)
app.command("conformance")(conformance.conformance)
app.command("support")(support.support)
app.command("asm")(isa.asm)
app.command("disasm")(isa.disasm)
app.command("regs")(registers.regs)
app.add_typer(tile.app, name="tile")
app.command("cc", context_settings=cc.CONTEXT)(cc.cc)
app.command("debug")(debug.debug)
app.command("library")(library.library)
app.command("run-client", cls=WithCheck, context_settings=looking.CONTEXT)(looking.run_client)
app.command("report", cls=WithCheck)(looking.report)
app.command("compare")(compare.compare)
app.command("fuzz")(fuzz.fuzz)
app.command("sweep")(sweep.sweep)
app.command("bench")(bench.bench)
app.add_typer(predict.app, name="predict")
app.command("zones")(zones.zones)
app.command("warm")(warm.warm)
app.command("doctor")(doctor.doctor)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"bhemu {version('bhemu')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="Show Python's traceback of an error, to report a bug in bhemu.")
    ] = False,
) -> None:
    """Bit-exact emulator of the Tenstorrent Blackhole Tensix core."""


def main() -> None:
    """The console script."""
    warnings.showwarning = show_warning  # type: ignore[assignment]
    try:
        try:
            app()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # a full disk must be seen here, not while Python ends
    except OSError as error:
        if "--traceback" in sys.argv:
            raise
        report_os_error(error)
        sys.exit(REFUSED)


if __name__ == "__main__":
    main()
