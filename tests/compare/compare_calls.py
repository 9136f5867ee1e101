"""Calls that the tests of `bhemu compare` make."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bhemu.compare.calls import INIT, Call, clock, read, write
from bhemu.compare.chip_side import ChipSide
from bhemu.compare.library import LibrarySide
from bhemu.compare.lockstep import OtherSide
from bhemu.compare.places import aim

TILE = (1, 2)
AT = 0x20000


def memory_calls(*clocks: int, size: int = 64, look_each_time: bool = False) -> list[Call]:
    """Write 64 bytes to L1, let clocks pass, and read them, at the end or after each of `clocks`."""
    setup, place = aim(0, TILE, AT)
    calls = [Call(INIT), *setup, write(place, bytes(range(64)))]
    for part in clocks:
        calls.append(clock(part))
        if look_each_time:
            calls.append(read(place, size))
    return calls if look_each_time else [*calls, read(place, size)]


def sides_with(library: Path, timeout: float = 60.0) -> Callable[[], tuple[ChipSide, OtherSide]]:
    """Makes fresh sides."""
    return lambda: (ChipSide(), LibrarySide(library, timeout))
