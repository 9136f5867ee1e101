"""Frames on their way between chips, as bytes: for copies, and for chips of other processes (chip/links/send.py)."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np

from bhemu.chip.links.send import FRAME, FRAME_BYTES
from bhemu.errors import MemoryError_
from bhemu.machine.process_memory import allocate_from_python, free

AFTER: Final = FRAME["after"].itemsize
"""Bytes of a frame's head that are an address of this process; the bytes of a frame begin after them."""


def _after(address: int) -> int:
    return int(ctypes.c_int64.from_address(address).value)


def chain(address: int) -> Iterator[bytes]:
    """Frames, from one of a list on."""
    while address:
        head = np.frombuffer(ctypes.string_at(address, FRAME_BYTES), FRAME)[0]
        yield ctypes.string_at(address + AFTER, FRAME_BYTES - AFTER + int(head["byte_count"]))
        address = int(head["after"])


def append(record: Any, channel: int, frames: Iterable[bytes]) -> None:
    """Put frames on their way to a tile of a chip, after those that are.

    Raises:
        MemoryError_: the host has no memory left for them.
    """
    for content in frames:
        address = allocate_from_python(AFTER + len(content))
        if not address:
            raise MemoryError_("the host has no memory left for frames on their way", remedy="free some memory")
        ctypes.memmove(address + AFTER, content, len(content))
        ctypes.c_int64.from_address(address).value = 0
        if record.frame_first[channel]:
            ctypes.c_int64.from_address(int(record.frame_last[channel])).value = address
        else:
            record.frame_first[channel] = address
        record.frame_last[channel] = address


def take(record: Any, channel: int) -> tuple[bytes, ...]:
    """Frames that a chip has sent over a channel and that are still with it; they are no longer then."""
    first = int(record.sent_first[channel])
    frames = tuple(chain(first))
    while first:
        after = _after(first)
        free(first)
        first = after
    record.sent_first[channel] = 0
    return frames
