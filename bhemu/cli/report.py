"""How the commands speak: results on standard output, errors and progress on standard error."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from bhemu.errors import BhemuError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

REFUSED = 1
"""Exit status: the program or the vectors failed or were refused."""
USAGE = 2
"""Exit status: the command line itself is wrong."""
INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells count it (128 + SIGINT)."""


class UsageError(BhemuError):
    """Arguments that cannot be meant."""


class Commands(TyperGroup):
    """The command group: turns every exception of a command into one message and an exit status."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BhemuError as error:
            if ctx.params.get("traceback"):
                raise
            show_error(error)
            raise typer.Exit(USAGE if isinstance(error, UsageError) else REFUSED) from None
        except KeyboardInterrupt:
            typer.echo("bhemu: interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:  # the reader of a pipe, such as `head`, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            raise typer.Exit(REFUSED) from None


class WithCheck(TyperCommand):
    """A command with `--check`, which may be given alone or with kinds, `--check=order,noc`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        plain = ["--check=all" if text == "--check" else text for text in args[:end]]
        return super().parse_args(ctx, plain + args[end:])


def report_os_error(error: OSError) -> None:
    """One line for what the system refused: a full disk behind the output, a file that cannot be read."""
    if error.filename is None:  # the output: what it still holds would fail again when Python ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    what = "the output cannot be written" if error.filename is None else str(error.filename)
    typer.echo(f"bhemu: {what}: {error.strerror or error}", err=True)


def show_warning(message: Warning | str, *_: object) -> None:
    """In the place of `warnings.showwarning`: one line, without a place in bhemu's own code."""
    typer.echo(f"bhemu: {message}", err=True)


def show_error(error: BhemuError) -> None:
    """Print category, message, place and remedy of a refusal on standard error."""
    name = typer.style("bhemu", bold=True)
    category = typer.style(error.category, fg=typer.colors.RED, bold=True)
    lines = [f"{name}: {category}: {error.message}"]
    place = _place(error)
    if place:
        lines.append(f"  at: {place}")
    if error.remedy:
        lines.append(f"  remedy: {error.remedy}")
    typer.echo("\n".join(lines), err=True)


def _place(error: BhemuError) -> str:
    """`file:line, thread n (name)`, as far as the error knows them."""
    parts = []
    if error.file is not None:
        parts.append(f"{shown_path(error.file)}:{error.line}" if error.line else shown_path(error.file))
    elif error.line:
        parts.append(f"line {error.line}")
    if error.thread is not None:
        from bhemu.tensix.coprocessor import THREAD_NAMES  # loaded already by the caller that knew the thread

        parts.append(f"thread {error.thread} ({THREAD_NAMES[error.thread]})")
    return ", ".join(parts)


def shown_path(path: Path) -> str:
    """The path as the user would write it: relative when it lies below the working directory."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def output() -> Console:
    """Console for results; tables are not squeezed when the output is not a terminal."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 200
    return console


def messages() -> Console:
    """Console for progress."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def plain_table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """An empty table without a frame."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", no_wrap=column in right)
    return table


def print_units(console: Console, units: Mapping[str, Mapping[str, int]]) -> None:
    """Print how many instructions each unit has executed, the most frequent first.

    Args:
        console: standard output.
        units: counts by mnemonic, by unit.
    """
    table = plain_table("unit", "instructions", "", right=("instructions",))
    for unit, counts in units.items():
        often = sorted(counts.items(), key=lambda item: -item[1])
        table.add_row(unit, f"{sum(counts.values()):,}", ", ".join(f"{name} {count:,}" for name, count in often))
    console.print(table)
    console.print()


def print_json(content: Any) -> None:
    """Print plain data as JSON; numbers that JSON lacks (NaN, infinities) are given as text."""
    typer.echo(json.dumps(_plain(content), indent=2, allow_nan=False, default=str))


def _plain(content: Any) -> Any:
    if isinstance(content, dict):
        return {str(key): _plain(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_plain(value) for value in content]
    if isinstance(content, float) and content - content != 0.0:
        return str(content)
    return content


def refuse_usage(message: str, remedy: str) -> NoReturn:
    """Refuse the command line."""
    raise UsageError(message, remedy=remedy)


def number(text: str, what: str) -> int:
    """An integer as the command line takes it: decimal, 0x, 0b or 0o."""
    try:
        return int(text, 0)
    except ValueError:
        refuse_usage(f"{what} {text!r} is not a number", "numbers are decimal, 0x.., 0b.. or 0o..")


def assignments(texts: list[str] | None, option: str, example: str) -> dict[str, str]:
    """`name=value` options by name; each name once."""
    found: dict[str, str] = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            refuse_usage(f"{option} {text!r} is not of the form name=value", f"for example {option} {example}")
        if name in found:
            refuse_usage(f"{option} names {name!r} twice", "give each name once")
        found[name] = value
    return found


def print_issued(console: Console, issued: Any) -> None:
    """The same of a run's counts by thread and opcode; nothing when no instruction was executed."""
    from bhemu.programs.run import instructions_by_unit

    if units := instructions_by_unit(issued):
        print_units(console, units)


def open_choices(codes: Iterable[int]) -> list[str]:
    """Open cases that were executed, with their rules."""
    from bhemu.machine.faults import FAULTS

    return [f"{FAULTS[int(code)].name} [{FAULTS[int(code)].rule}]" for code in codes if code]
