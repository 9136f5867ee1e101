"""Messages between the leader and its workers: a length, and plain values (bhemu/api/plain_file.py). No pickle."""

from __future__ import annotations

import os
from typing import Any, Final

from bhemu import errors
from bhemu.api.plain_file import pack, unpack
from bhemu.errors import BhemuError

LENGTH: Final = 8
"""Bytes in front of a message."""
_ATTRIBUTES: Final = ("thread", "word", "line", "core", "pc", "tile")


class Ended(Exception):
    """The other end of a pipe is closed."""


def write_message(file: int, content: bytes) -> None:
    """Write a message to a file descriptor.

    Raises:
        Ended: no process reads it.
    """
    left = memoryview(len(content).to_bytes(LENGTH, "little") + content)
    try:
        while left:
            left = left[os.write(file, left) :]
    except BrokenPipeError:
        raise Ended from None


def read_message(file: int) -> bytes:
    """Read a message from a file descriptor.

    Raises:
        Ended: there comes no other.
    """
    return _read(file, int.from_bytes(_read(file, LENGTH), "little"))


def _read(file: int, size: int) -> bytes:
    parts = []
    while size:
        part = os.read(file, min(size, 1 << 20))
        if not part:
            raise Ended
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


# --- what workers answer ----------------------------------------------------------------------------------------------


def answer(value: Any) -> bytes:
    """A result, as a message."""
    return pack(("done", value))


def refusal(error: BhemuError, chip: int | None = None) -> bytes:
    """What a worker, or one of its chips, has refused, as a message."""
    attributes = {name: getattr(error, name) for name in _ATTRIBUTES}
    notes = tuple(getattr(error, "__notes__", ()))
    return pack(("refused", type(error).__name__, error.message, error.remedy, attributes, notes, chip))


def failure(text: str) -> bytes:
    """An error that should not be, as a message."""
    return pack(("failed", text))


class Refused(Exception):
    """A worker's answer is a refusal.

    Attributes:
        error: what was refused.
        chip: number of the chip that has refused it; None: none has.
    """

    def __init__(self, error: BhemuError, chip: int | None) -> None:
        super().__init__(str(error))
        self.error = error
        self.chip = chip


def result(message: bytes) -> Any:
    """The value of an answer.

    Raises:
        Refused: it is a refusal.
        RuntimeError: the worker has an error that should not be.
    """
    kind, *rest = unpack(message)
    if kind == "done":
        return rest[0]
    if kind == "failed":
        raise RuntimeError(f"a worker has failed:\n{rest[0]}")
    name, text, remedy, attributes, notes, chip = rest
    known = getattr(errors, name, BhemuError)
    error: BhemuError = (known if isinstance(known, type) and issubclass(known, BhemuError) else BhemuError)(
        text, remedy=remedy
    )
    for attribute in _ATTRIBUTES:
        setattr(error, attribute, attributes[attribute])
    for note in notes:
        error.add_note(note)
    raise Refused(error, chip)
