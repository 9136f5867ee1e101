"""What the C library cannot say by itself: it starts this in another process, with a copy of the chip's records."""

from __future__ import annotations

import mmap
import os
import struct
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bhemu.api.chip_report import explain_device
from bhemu.capi.image import CHIP_POINTERS, TILE_POINTERS, chip_memory, layout
from bhemu.capi.only_polls import explain_polling
from bhemu.capi.refusals import refusal_text, say, waiting_text
from bhemu.chip.device import Device
from bhemu.chip.state import CHIP
from bhemu.errors import BhemuError
from bhemu.machine.state import TILE

_HEAD: Final = struct.Struct("64s5q64s")  # `struct state` of explain.h
_HEAD_BYTES: Final = 4096
_CLOCK: Final = "libttsim_clock"
REFUSAL: Final = 0
STILLNESS: Final = 1
LINK_FAILS: Final = 2
POLLS: Final = 3
CANNOT: Final = 3
"""Exit status: the records are of another version of bhemu."""
COMPUTES: Final = 4
"""Exit status: a core does more than poll."""


@dataclass(frozen=True)
class State:
    """A copy of a chip's records.

    Attributes:
        what: REFUSAL, STILLNESS, LINK_FAILS or POLLS.
        function: of the interface, in which it was refused.
        chip: record of the chip.
        tiles: those of its tiles.
    """

    what: int
    function: str
    chip: np.ndarray[Any, Any]
    tiles: np.ndarray[Any, Any]


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode()


def read_state(file: int) -> State | None:
    """What the library has copied into a file; None when its records are not those of this version of bhemu."""
    memory = mmap.mmap(file, 0, prot=mmap.PROT_READ)
    made_for, what, chip_bytes, tile_bytes, tiles, _, function = _HEAD.unpack_from(memory)
    if _text(made_for) != layout() or (chip_bytes, tile_bytes) != (CHIP.itemsize, TILE.itemsize):
        return None
    chip = np.frombuffer(memory, CHIP, 1, _HEAD_BYTES)
    return State(what, _text(function), chip, np.frombuffer(memory, TILE, tiles, _HEAD_BYTES + chip_bytes))


def _put(target: np.ndarray[Any, Any], content: np.ndarray[Any, Any], pointers: tuple[str, ...]) -> None:
    """Copy records, but for their fields that hold addresses."""
    kept = {name: np.array(target[name]) for name in pointers}
    to, source = (records.view(np.ndarray).view(np.uint8).reshape(-1) for records in (target, content))
    for start in range(0, len(to), mmap.PAGESIZE):  # so pages that hold zeros take no memory
        page = source[start : start + mmap.PAGESIZE]
        if page.any():
            to[start : start + mmap.PAGESIZE] = page
    for name, value in kept.items():
        target[name] = value


def device_of(state: State) -> Device:
    """A chip in that state; what DRAM holds is not part of it."""
    device = Device(simulator_order=bool(state.chip["named"][0]))
    _put(chip_memory(device), state.chip, CHIP_POINTERS)
    _put(device.tiles, state.tiles, TILE_POINTERS)
    return device


def _refusal(device: Device, function: str) -> BaseException | None:
    """What stands in the records; None when it cannot be found out."""
    if function != _CLOCK:
        return device.refusal()
    try:
        device.clocks.finish()
    except BhemuError as error:
        return error
    return None


def main(file: int) -> None:
    """Explain what is in a file, on standard output, and end the process."""
    state = read_state(file)
    if state is None:
        os._exit(CANNOT)
    device = device_of(state)
    if state.what == POLLS:
        polling = explain_polling(device)
        if polling is None:
            os._exit(COMPUTES)
        say(polling)
        os._exit(0)
    if state.what != REFUSAL:
        who = explain_device(device, moving=state.what == LINK_FAILS)
        if who:
            say(waiting_text(device.time, who, link_fails=state.what == LINK_FAILS))
        os._exit(0)
    error = _refusal(device, state.function)
    if error is None:
        os._exit(CANNOT)
    say(refusal_text(state.function, error, device))
    os._exit(0)
