"""Commands whose options are the fields of a dataclass: declared once, and passed on as one value."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from typing import Any, TypeVar, get_type_hints

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
