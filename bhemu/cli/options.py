"""Commands whose options are the fields of a dataclass: declared once, and passed on as one value."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

AllowOpen = Annotated[
    bool, typer.Option("--allow-open", help="Use the recommended choice where no source settles the behaviour.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ReportAsJson = Annotated[bool, typer.Option("--json", help="Print the report as JSON.")]
ResultsAsJson = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No report and no progress; errors are shown.")]
NoProgress = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
ElfFiles = Annotated[
    list[Path] | None,
    typer.Option("--elf", metavar="PATH", help="ELF file, or a directory of some, with programs that ran."),
]
TimedRecording = Annotated[Path, typer.Argument(metavar="DIR", help="Directory of a recording in timed mode.")]
HiddenHazards = Annotated[
    Path | None,
    typer.Option("--suppressions", metavar="FILE", help="TOML file with hazards that are left out."),
]
Workers = Annotated[int, typer.Option("--workers", min=1, help="Processes; more than one need Dask.")]
Scheduler = Annotated[str | None, typer.Option("--scheduler", metavar="ADDRESS", help="A Dask scheduler to work on.")]

Options = TypeVar("Options")


def default_of(option: Field[Any]) -> Any:
    """What an option is when it is not given; `inspect.Parameter.empty` where it must be."""
    if option.default_factory is not MISSING:
        return option.default_factory()
    return inspect.Parameter.empty if option.default is MISSING else option.default


def takes_options(kind: type[Options]) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Give a command the fields of a dataclass as its parameters, which Typer reads."""

    def decorate(command: Callable[[Options], None]) -> Callable[..., None]:
        hints = get_type_hints(kind, include_extras=True)

        def run(**values: Any) -> None:
            command(kind(**values))

        run.__doc__ = command.__doc__
        run.__annotations__ = dict(hints)
        run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                inspect.Parameter(
                    f.name, inspect.Parameter.KEYWORD_ONLY, default=default_of(f), annotation=hints[f.name]
                )
                for f in fields(kind)  # type: ignore[arg-type]
            ]
        )
        return run

    return decorate
