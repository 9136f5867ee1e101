"""Recording a client: what the environment says, and a recording of the chip behind the library.

A client waits for what is imported here: what only some settings need is imported where it is used.

`BHEMU_RECORD=DIR` turns it on. Without that variable this module does nothing.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bhemu.chip.coordinates import Kind, Place
from bhemu.chip.device import Device
from bhemu.errors import BhemuError, ConfigurationError
from bhemu.recording.chip_recording import ChipRecording
from bhemu.recording.parts import SUFFIX, Writer

if TYPE_CHECKING:
    from bhemu.timed import ChipTime
    from bhemu.timed.recording import TimedRecording

RECORD: Final = "BHEMU_RECORD"
"""Environment variable: the directory that gets the recording."""
TILES: Final = "BHEMU_TILES"
"""Environment variable: translated coordinates of the tiles, such as `1-2,3-4`; all without it."""
DETAIL: Final = "BHEMU_DETAIL"
"""Environment variable: `instructions` (a row for each), or `profile` (counts, waits, words of the coprocessor)."""
START: Final = "BHEMU_START"
STOP: Final = "BHEMU_STOP"
"""Environment variables: clocks of the chip between which it is recorded."""
LIMIT: Final = "BHEMU_RECORD_LIMIT"
"""Environment variable: MiB of a file from which on single instructions are left out."""
STATES: Final = "BHEMU_STATES"
"""Environment variable: 1 keeps register files and tiles of L1 at the end of each program, for pictures."""
CHECK: Final = "BHEMU_CHECK"
"""Environment variable: kinds of hazards that the report lists, such as `order,noc`; all without it."""
SUPPRESSIONS: Final = "BHEMU_SUPPRESSIONS"
"""Environment variable: a TOML file with hazards that it leaves out."""

_DETAILS: Final = ("instructions", "profile")
_DEFAULT_LIMIT: Final = 1024
_MIB: Final = 1 << 20
_FEW: Final = 4
"""Tiles of which the states are kept without being asked for."""

Say = Callable[[str], Any]


def _number(name: str) -> int | None:
    text = os.environ.get(name, "")
    if not text:
        return None
    if not text.isdecimal():
        raise ConfigurationError(f"{name} is {text!r}", remedy="set it to a number, or not at all")
    return int(text)


def _place(text: str) -> Place:
    x, minus, y = text.strip().partition("-")
    if not (minus and x.isdecimal() and y.isdecimal()):
        raise ConfigurationError(f"{text.strip()!r} is not a tile", remedy="name tiles as x-y, such as 1-2,3-4")
    return int(x), int(y)


def parse_tiles(text: str) -> list[Place]:
    """The coordinates in `1-2,3-4`.

    Raises:
        ConfigurationError: it does not have this form.
    """
    return list(dict.fromkeys(_place(part) for part in text.split(",") if part.strip()))


def chosen_tiles(device: Device, places: list[Place]) -> dict[Place, int]:
    """Indices of Tensix tiles by translated coordinates; all of the chip where none is named.

    Raises:
        ConfigurationError: the chip has no such tile.
    """
    known = {place: device.node(place) for place in device.translation}
    tensix = {place: node.index for place, node in known.items() if node.kind is Kind.TENSIX}
    for place in places:
        if place not in tensix:
            what = f"which is a {known[place].kind.value} tile" if place in known else "which this chip does not have"
            raise ConfigurationError(
                f"tile {place[0]}-{place[1]} is to be recorded, {what}",
                remedy="Tensix tiles have x 1 to 7 and 10 to 16, y 2 to 11",
            )
    return {place: tensix[place] for place in places or sorted(tensix, key=lambda place: (place[1], place[0]))}


def about_client() -> dict[str, Any]:
    """What the report must know of the client, to find its programs and their names."""
    names = ("TT_METAL_CACHE", "TT_METAL_RUNTIME_ROOT", "TT_METAL_HOME", "BHEMU_ELF", "TT_METAL_LOGS_PATH")
    return {
        "chip": "the C library",
        "command": list(getattr(sys, "orig_argv", [])),
        "pid": os.getpid(),
        "directory": os.environ.get("BHEMU_CLIENT_DIRECTORY") or str(Path.cwd()),
        "time": time.strftime("%Y-%m-%d %H:%M:%S"),
        "environment": {name: os.environ[name] for name in names if name in os.environ},
        "elf": [],
    }


def _writer(path: Path, about: dict[str, Any], limit: int, say: Say) -> Writer | None:
    try:
        return Writer(path, about, limit)
    except OSError as error:
        say(f"nothing is recorded: {path}: {error.strerror}")
        return None


def attach_timed(device: Device, clock: ChipTime, say: Say) -> TimedRecording | None:
    """Record the programs of a timed chip as the environment says; see `attach`.

    Raises:
        ConfigurationError: a variable is set that says something of single instructions.
    """
    from bhemu.timed.recording import TimedRecording

    directory = os.environ.get(RECORD, "")
    if not directory:
        return None
    for name in (TILES, DETAIL, START, STOP, STATES, CHECK, SUPPRESSIONS):
        if os.environ.get(name):
            raise ConfigurationError(
                f"{name} is set, and a recording in timed mode has programs, not their instructions",
                remedy=f"unset {name}, or BHEMU_TIME",
            )
    tiles = chosen_tiles(device, [])
    about = about_client() | {"timed": True, "tiles": [list(place) for place in tiles]}
    writer = _writer(_file(directory), about, _DEFAULT_LIMIT * _MIB, say)
    return None if writer is None else TimedRecording(device, clock, tiles, writer, say)


def _file(directory: str) -> Path:
    return Path(directory) / f"{os.getpid()}-{time.time_ns()}{SUFFIX}"


def attach(device: Device, say: Say) -> ChipRecording | None:
    """Record a new chip as the environment says; None: it does not ask for it.

    Args:
        device: the chip.
        say: tells the user a sentence.

    Raises:
        ConfigurationError: a variable has a value that means nothing, or names a tile that the chip does not have.
    """
    directory = os.environ.get(RECORD, "")
    if not directory:
        return None
    detail = os.environ.get(DETAIL, "") or _DETAILS[0]
    if detail not in _DETAILS:
        raise ConfigurationError(f"{DETAIL} is {detail!r}", remedy=f"set it to {' or '.join(_DETAILS)}")
    states = os.environ.get(STATES, "")
    if states not in ("", "0", "1"):
        raise ConfigurationError(f"{STATES} is {states!r}", remedy="set it to 0 or 1, or not at all")
    tiles = chosen_tiles(device, parse_tiles(os.environ.get(TILES, "")))
    checks: dict[str, Any] = {}
    kinds, suppressions = os.environ.get(CHECK, ""), os.environ.get(SUPPRESSIONS, "")
    if kinds:
        from bhemu.analysis.check_tile import parse_kinds

        checks["check"] = list(parse_kinds(kinds))
    if suppressions:
        from bhemu.analysis.suppressions import Suppressions

        Suppressions.read(Path(suppressions))
        checks["suppressions"] = str(Path(suppressions).resolve())
    limit = _number(LIMIT)
    path = _file(directory)
    about = about_client() | {"tiles": [list(place) for place in tiles], "detail": detail} | checks
    writer = _writer(path, about, (_DEFAULT_LIMIT if limit is None else limit) * _MIB, say)
    if writer is None:
        return None
    try:
        return ChipRecording(
            device,
            tiles,
            start=_number(START),
            stop=_number(STOP),
            instructions=detail == _DETAILS[0],
            states=states == "1" or (not states and len(tiles) <= _FEW),
            writer=writer,
            report=say,
        )
    except BhemuError:
        writer.close()
        path.unlink(missing_ok=True)
        raise
