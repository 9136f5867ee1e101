"""Arguments of public functions, checked once, where they come in.

Each function takes the argument and its name, and gives it back as the type that the machine works with.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import os
from collections import abc
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Literal, SupportsIndex, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from bhemu.errors import BhemuError, ConfigurationError

_T = TypeVar("_T")
F = TypeVar("F", bound=Callable[..., Any])

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


def number(value: Any, name: str) -> float:
    """A number, Python's or NumPy's; True and False are refused."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise _wrong(value, name, "a number")
    return float(value)


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


# --- checks made from a function's annotations ------------------------------------------------------------------------


class _ByName(type):
    """A class that an annotation names and its module imports for type checkers alone: known by its name."""

    def __instancecheck__(cls, value: object) -> bool:
        return any(known.__name__ == cls.__name__ for known in type(value).__mro__)

    def __getitem__(cls, _: Any) -> _ByName:
        return cls


class _Names(dict[str, Any]):
    """Names of a module, and classes for those that it does not have."""

    def __missing__(self, name: str) -> Any:
        known = getattr(builtins, name, None)
        return _ByName(name, (), {}) if known is None else known


def _check_items(hint: Any, *, mappings: bool) -> Callable[[Any, str], Any]:
    inner = [kind for kind in get_args(hint) if kind is not ...]
    check = _check_of(inner[0]) if len(inner) == 1 else None

    def check_list(value: Any, name: str) -> Any:
        if isinstance(value, abc.Mapping) and not mappings:
            raise _wrong(value, name, "a list")
        found = items(value, name)
        if check is not None and isinstance(value, (list, tuple)):  # others may be used up
            for number, item in enumerate(found):
                check(item, f"{name}[{number}]")
        return value if isinstance(value, (list, tuple, Collection)) else found

    return check_list


_OF_TYPE: Final[dict[Any, Callable[[Any, str], Any]]] = {int: integer, SupportsIndex: integer, bool: flag, str: text}


def _check_of(hint: Any) -> Callable[[Any, str], Any] | None:
    """The check of one type; None: a type for which the function itself looks."""
    origin = get_origin(hint) or hint
    if origin in (Any, object):
        return None
    if origin in _OF_TYPE:
        return _OF_TYPE[origin]
    if origin is float:
        return number
    if origin is Path:
        return path
    if origin is abc.Callable:
        return function
    if origin is Literal:
        return lambda value, name: choice(value, name, get_args(hint))
    if origin in (Union, UnionType):
        return _check_union(get_args(hint))
    if origin in (abc.Sequence, abc.Iterable, list, tuple):
        return _check_items(hint, mappings=origin is abc.Iterable)
    if origin in (abc.Mapping, dict):
        return mapping if str in get_args(hint)[:1] else lambda value, name: instance(value, name, abc.Mapping)
    if isinstance(origin, type) and (origin.__module__.startswith("bhemu") or not hasattr(origin, "_is_protocol")):
        return lambda value, name: instance(value, name, origin)
    return None


def _check_union(hints: tuple[Any, ...]) -> Callable[[Any, str], Any] | None:
    checks = [_check_of(hint) for hint in hints if hint is not NoneType]
    if None in checks:
        return None

    def check_any(value: Any, name: str) -> Any:
        if value is None and NoneType in hints:
            return None
        refused: BhemuError = ArgumentError("", remedy="")
        for check in checks:
            try:
                return check(value, name) if check not in (None, path) else (path(value, name) and value)
            except (ArgumentError, ConfigurationError) as error:
                refused = refused if isinstance(refused, ConfigurationError) else error
        raise refused

    return check_any


def choice(value: Any, name: str, known: tuple[Any, ...]) -> Any:
    """One of a few values."""
    if not any(value is one or (type(value) is type(one) and value == one) for one in known):
        kind = ConfigurationError if isinstance(value, str) else ArgumentError  # a word that does not exist, or no word
        raise kind(f"{name} is {value!r}", remedy=f"use one of {', '.join(map(str, known))}")
    return value


def _checks_of(function_: Callable[..., Any]) -> dict[str, Callable[[Any, str], Any]]:
    hints = get_type_hints(function_, localns=_Names(function_.__globals__))
    found = {}
    for name, hint in hints.items():
        check = _check_of(hint)
        if check is not None:
            found[name] = check
    return found


def checked(function_: F) -> F:
    """Check a function's arguments by the types that it declares, or those of all public methods of a class.

    Ranges, and types such as arrays, are the function's own to check.
    """
    if isinstance(function_, type):
        for name, member in list(vars(function_).items()):
            if inspect.isfunction(member) and (name == "__init__" or not name.startswith("_")):
                setattr(function_, name, checked(member))
        return function_
    signature = inspect.signature(function_)
    checks: dict[str, Callable[[Any, str], Any]] = {}

    @functools.wraps(function_)
    def call(*arguments: Any, **named: Any) -> Any:
        if not checks:
            checks.update(_checks_of(function_))
        bound = signature.bind(*arguments, **named)
        for name, value in bound.arguments.items():
            check = checks.get(name)
            if check is None or value is signature.parameters[name].default:
                continue
            kind = signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                bound.arguments[name] = tuple(check(one, name) for one in value)
            elif kind is inspect.Parameter.VAR_KEYWORD:
                bound.arguments[name] = {key: check(one, key) for key, one in value.items()}
            else:
                bound.arguments[name] = check(value, name)
        return function_(*bound.args, **bound.kwargs)

    return call  # type: ignore[return-value]
