"""Arguments of public functions, checked once, where they come in.

Each function takes the argument and its name, and gives it back as the type that the machine works with.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from bhemu.errors import BhemuError

_T = TypeVar("_T")

MAX_CLOCKS: Final = 1 << 56
"""More clocks than any run takes; the machine's counters have 63 bits."""


class ArgumentError(BhemuError):
    """An argument of a Python function that is of the wrong type, or out of range."""


def _wrong(value: object, name: str, wanted: str) -> ArgumentError:
    text = repr(value)
    shown = text if len(text) <= 60 else text[:57] + "..."
    return ArgumentError(f"{name} = {shown} is of type {type(value).__name__}", remedy=f"give {wanted}")


def integer(
    value: Any, name: str, low: int | None = None, high: int | None = None, *, error: type[BhemuError] = ArgumentError
) -> int:
    """An integer, Python's or NumPy's, from `low` to `high`; True and False are refused.

    Raises:
        ArgumentError: it is not an integer.
        BhemuError: of class `error`: it is out of range.
    """
    if type(value) is not int:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise _wrong(value, name, "an integer")
        value = int(value)
    if (low is not None and value < low) or (high is not None and value > high):
        if low is None:
            wanted = f"at most {high}"
        else:
            wanted = f"{low} or more" if high is None else f"{low} to {high if high < 1 << 16 else hex(high)}"
        raise error(f"{name} = {value} is out of range", remedy=f"use {wanted}")
    return value  # type: ignore[no-any-return]


def flag(value: Any, name: str) -> bool:
    """True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise _wrong(value, name, "True or False")
    return bool(value)


def text(value: Any, name: str) -> str:
    """A text."""
    if not isinstance(value, str):
        raise _wrong(value, name, "a text")
    return value


def path(value: Any, name: str = "path") -> Path:
    """The name of a file."""
    if not isinstance(value, (str, os.PathLike)):
        raise _wrong(value, name, "the name of a file")
    found = os.fspath(value)
    if not isinstance(found, str) or "\0" in found:
        raise ArgumentError(f"{name} = {value!r} is not a name of a file", remedy="give a text, or a pathlib.Path")
    return Path(found)


def content(value: Any, name: str = "content") -> bytes:
    """`bytes`, `bytearray`, `memoryview`, or an array of uint8; not an integer, of which `bytes` would make zeros."""
    if isinstance(value, np.ndarray):
        if value.dtype != np.uint8:
            raise ArgumentError(f"{name} is an array of {value.dtype}", remedy="give bytes: array.view(numpy.uint8)")
        return value.tobytes()
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise _wrong(value, name, "bytes")
    return bytes(value)


def instance(value: Any, name: str, kind: type[_T] | tuple[type[_T], ...]) -> _T:
    """An object of a class."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        raise _wrong(value, name, " or ".join(f"an object of class {known.__name__}" for known in kinds))
    return value


def optional(value: Any, check: Callable[..., _T], *arguments: Any, **named: Any) -> _T | None:
    """None, or what another check accepts: `optional(value, integer, "limit", 1)`."""
    return None if value is None else check(value, *arguments, **named)


def function(value: Any, name: str) -> Callable[..., Any]:
    """Something that can be called."""
    if not callable(value):
        raise _wrong(value, name, "a function")
    return value  # type: ignore[no-any-return]


def mapping(value: Any, name: str) -> Mapping[str, Any]:
    """A dict, or what is like one, with texts as keys."""
    if not isinstance(value, Mapping):
        raise _wrong(value, name, "a dict")
    for key in value:
        text(key, f"a key of {name}")
    return value


def place(value: Any, name: str = "place") -> tuple[int, int]:
    """Coordinates (x, y)."""
    if not isinstance(value, (tuple, list, np.ndarray)) or len(value) != 2:
        raise _wrong(value, name, "two integers, (x, y)")
    return integer(value[0], f"x of {name}"), integer(value[1], f"y of {name}")


def shape(value: Any, name: str = "shape", *, error: type[BhemuError] = ArgumentError) -> tuple[int, ...]:
    """A tensor's shape: an integer or several, none negative."""
    if isinstance(value, (int, np.integer)):
        return (integer(value, name, 0, error=error),)
    return tuple(integer(size, f"a dimension of {name}", 0, error=error) for size in items(value, name))


def items(value: Any, name: str) -> list[Any]:
    """The items of a list, a tuple, or anything else that can be gone through; not the letters of a text."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise _wrong(value, name, "a list")
    return list(value)
