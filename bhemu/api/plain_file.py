"""A file of plain values: numbers, text, bytes, arrays, tuples and dicts. Reading one runs nothing that it contains.

First a magic line and a digest of the rest; then the length of a description, in JSON, and the bytes that it refers to.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

import bhemu.checks as checks
from bhemu.errors import ProgramError
from bhemu.files import array_type, write_whole

Made = TypeVar("Made")

_DIGEST_BYTES: Final = 32
_LENGTH_BYTES: Final = 8


def save(path: str | Path, magic: bytes, value: Any) -> None:
    """Write a value to a file, whole or not at all.

    Args:
        path: of the file; what is there is replaced.
        magic: the first bytes of all files of this kind.
        value: None, bool, int, str, bytes, arrays, and tuples and dicts of those.

    Raises:
        ProgramError: the file cannot be written.
    """
    rest = pack(value)
    target = checks.path(path)
    try:
        write_whole(target, magic + _digest(rest) + rest)
    except OSError as error:
        raise ProgramError(
            f"{target} cannot be written: {error.strerror or error}", remedy="write to another place"
        ) from None


def load(
    path: str | Path, magic: bytes, make: Callable[[Any], Made], *, what: str, earlier: bytes | None = None
) -> Made:
    """What is made of the value of a file that `save` has written.

    Args:
        path: of the file.
        magic: its first bytes.
        make: of the value; what it cannot use is of another version.
        what: it is, for messages.
        earlier: magic of an earlier version, which is refused as such.

    Raises:
        ProgramError: the file cannot be read, is of another kind or version, or is damaged.
    """
    try:
        whole = checks.path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ProgramError(f"{path} cannot be read: {reason}", remedy="check its name and permissions") from None
    if earlier is not None and whole.startswith(earlier):
        raise ProgramError(f"{path} is a {what} of an earlier version of bhemu", remedy="make it again")
    if not whole.startswith(magic):
        raise ProgramError(f"{path} is not a {what}", remedy=f"name a file that bhemu saved as a {what}")
    start = len(magic) + _DIGEST_BYTES
    rest = memoryview(whole)[start:]
    if whole[len(magic) : start] != _digest(rest):
        raise ProgramError(f"{path} is damaged", remedy="make it again, or copy it again")
    try:
        content = unpack(rest)
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise ProgramError(f"{path} is damaged: {error}", remedy="make it again, or copy it again") from None
    try:
        return make(content)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ProgramError(f"{path} is of another version of bhemu: {error}", remedy="make the copy again") from None


def pack(value: Any) -> bytes:
    """A plain value as bytes: the length of its description, the description, the bytes that it refers to.

    Raises:
        TypeError: it is not None, a bool, int, str, bytes or array, or a tuple or dict of those.
    """
    blobs: list[bytes] = []
    description = json.dumps(_described(value, blobs)).encode()
    return b"".join((len(description).to_bytes(_LENGTH_BYTES, "little"), description, *blobs))


def unpack(content: bytes | memoryview) -> Any:
    """The value that `pack` has made bytes of.

    Raises:
        LookupError, TypeError, ValueError, RecursionError: nothing that `pack` has made.
    """
    whole = memoryview(content)
    size = int.from_bytes(whole[:_LENGTH_BYTES], "little")
    description = json.loads(bytes(whole[_LENGTH_BYTES : _LENGTH_BYTES + size]))
    return _value(description, whole[_LENGTH_BYTES + size :])


def _digest(content: bytes | memoryview) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest()


def _described(value: Any, blobs: list[bytes]) -> Any:
    """The value as JSON has it: the first item of a list says what the list represents."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, bytes):
        blobs.append(value)
        return ["bytes", len(value)]
    if isinstance(value, np.ndarray):
        blobs.append(np.ascontiguousarray(value).tobytes())
        return ["array", value.dtype.str, list(value.shape), len(blobs[-1])]
    if isinstance(value, (tuple, list)):
        return ["tuple", *(_described(item, blobs) for item in value)]
    if isinstance(value, dict):
        return ["dict", *([_described(key, blobs), _described(item, blobs)] for key, item in value.items())]
    raise TypeError(f"{type(value).__name__} is not a plain value")


def _value(described: Any, content: memoryview) -> Any:
    """The value, whose bytes follow one another in `content`, as they were described."""
    position = 0

    def take(size: int) -> memoryview:
        nonlocal position
        part = content[position : position + size]
        if size < 0 or len(part) != size:
            raise ValueError("the content is too short")
        position += size
        return part

    def value(item: Any) -> Any:
        if not isinstance(item, list):
            return item
        kind, *rest = item
        if kind == "bytes":
            return bytes(take(rest[0]))
        if kind == "array":
            dtype, shape, size = rest
            return np.frombuffer(take(size), array_type(dtype)).reshape(shape)
        if kind == "tuple":
            return tuple(value(part) for part in rest)
        if kind == "dict":
            return {value(key): value(part) for key, part in rest}
        raise ValueError(f"{kind!r} is not a kind of value")

    return value(described)
