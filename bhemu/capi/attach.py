"""Recording a client: what the environment says, and a recording of the chip behind the library.

A client waits for what is imported here: what only some settings need is imported where it is used.

`BHEMU_RECORD=DIR` turns it on. Without that variable this module does nothing.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bhemu.chip.coordinates import Kind, Place
from bhemu.chip.device import Device
from bhemu.cluster.topology import Topology
from bhemu.errors import BhemuError, ConfigurationError
from bhemu.recording.chip_recording import ChipRecording, about_chip
from bhemu.recording.link_recording import LinkRecording, links_writer
from bhemu.recording.parts import COUNTERS, INSTRUCTIONS, PROFILE, SUFFIX, Writer

if TYPE_CHECKING:
    from bhemu.timed import ChipTime
    from bhemu.timed.recording import TimedRecording

RECORD: Final = "BHEMU_RECORD"
"""Environment variable: the directory that gets the recording."""
TILES: Final = "BHEMU_TILES"
"""Environment variable: translated coordinates of the tiles, such as `1-2,3-4`; all without it. Of several chips those
of each, or with a chip's number: `0:1-2,1:3-4`."""
DETAIL: Final = "BHEMU_DETAIL"
"""Environment variable: `instructions` (a row for each), `profile` (counts, waits, words of the coprocessor), or
`counters` (counts and waits alone)."""
START: Final = "BHEMU_START"
STOP: Final = "BHEMU_STOP"
"""Environment variables: clocks of the chip between which it is recorded."""
LIMIT: Final = "BHEMU_RECORD_LIMIT"
"""Environment variable: MiB of a file from which on single instructions are left out."""
STATES: Final = "BHEMU_STATES"
"""Environment variable: 1 keeps register files and tiles of L1 at the end of each program, for pictures."""
STATES_EVERY: Final = "BHEMU_STATES_EVERY"
"""Environment variable: clocks after which they are kept again, also while a program runs."""
CHECK: Final = "BHEMU_CHECK"
"""Environment variable: kinds of hazards that the report lists, such as `order,noc`; all without it."""
SUPPRESSIONS: Final = "BHEMU_SUPPRESSIONS"
"""Environment variable: a TOML file with hazards that it leaves out."""

DETAILS: Final = (INSTRUCTIONS, PROFILE, COUNTERS)
_DEFAULT_LIMIT: Final = 1024
_MIB: Final = 1 << 20
_FEW: Final = 4
"""Tiles of which the states are kept without being asked for."""

NAMING: Final = ("TT_METAL_CACHE", "TT_METAL_RUNTIME_ROOT", "TT_METAL_HOME", "BHEMU_ELF", "TT_METAL_LOGS_PATH")
"""Environment variables by which a report finds the client's programs and their names."""

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


def parse_tiles(text: str) -> list[tuple[int | None, Place]]:
    """(number of the chip, None: any; coordinates) of each in `1-2,0:3-4`.

    Raises:
        ConfigurationError: it does not have this form.
    """
    found = []
    for part in filter(None, map(str.strip, text.split(","))):
        chip, colon, place = part.rpartition(":")
        if colon and not chip.isdecimal():
            raise ConfigurationError(f"{part!r} is not a tile of a chip", remedy="name it as chip:x-y, such as 1:3-4")
        found.append((int(chip) if colon else None, _place(place)))
    return list(dict.fromkeys(found))


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
    return {
        "chip": "the C library",
        "command": list(getattr(sys, "orig_argv", [])),
        "pid": os.getpid(),
        "directory": os.environ.get("BHEMU_CLIENT_DIRECTORY") or str(Path.cwd()),
        "time": time.strftime("%Y-%m-%d %H:%M:%S"),
        "environment": {name: os.environ[name] for name in NAMING if name in os.environ},
        "elf": [],
    }


def _writer(path: Path, about: dict[str, Any], limit: int, say: Say) -> Writer | None:
    try:
        return Writer(path, about, limit, behind=True)
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
    for name in (TILES, DETAIL, START, STOP, STATES, STATES_EVERY, CHECK, SUPPRESSIONS):
        if os.environ.get(name):
            raise ConfigurationError(
                f"{name} is set, and a recording in timed mode has programs, not their instructions",
                remedy=f"unset {name}, or BHEMU_TIME",
            )
    tiles = chosen_tiles(device, [])
    about = about_client() | {"timed": True, "tiles": [list(place) for place in tiles]}
    writer = _writer(_file(directory), about, _DEFAULT_LIMIT * _MIB, say)
    return None if writer is None else TimedRecording(device, clock, tiles, writer, say)


def _file(directory: str, of: str = "") -> Path:
    return Path(directory) / f"{os.getpid()}-{time.time_ns()}{of}{SUFFIX}"


class Recording:
    """Of the chips behind the library, and of their links.

    Args:
        chips: recordings of chips.
        links: of what goes over links, None where there are none.
        latency: clocks of a span, at whose end frames are noted.
    """

    def __init__(self, chips: Sequence[ChipRecording], links: LinkRecording | None, latency: int) -> None:
        self._chips = chips
        self._links = links
        self._latency = latency

    @property
    def alone(self) -> ChipRecording | None:
        """The recording of the only chip; None: there are more, or links."""
        return self._chips[0] if len(self._chips) == 1 and self._links is None else None

    def next_step(self, clocks: int) -> int:
        """How many of `clocks` may pass before `arrive` must be called."""
        if self._links is not None:
            self._links.note()  # what the host has sent, before it is on its way
            clocks = min(clocks, self._latency)
        return min((chip.next_step(clocks) for chip in self._chips), default=clocks)

    def arrive(self) -> None:
        """Time has passed."""
        if self._links is not None:
            self._links.note()
        for chip in self._chips:
            chip.arrive()

    def stop(self) -> None:
        """End, and write what is left."""
        for one in (*self._chips, self._links):
            if one is not None:
                with contextlib.suppress(Exception):  # the others are written in any case
                    one.stop()


def attach(devices: Sequence[Device], topology: Topology, say: Say) -> Recording | None:
    """Record new chips as the environment says; None: it does not ask for it.

    Args:
        devices: the chips.
        topology: of them.
        say: tells the user a sentence.

    Raises:
        ConfigurationError: a variable has a value that means nothing, or names a tile that the chip does not have.
    """
    directory = os.environ.get(RECORD, "")
    if not directory:
        return None
    detail = os.environ.get(DETAIL, "") or INSTRUCTIONS
    if detail not in DETAILS:
        raise ConfigurationError(f"{DETAIL} is {detail!r}", remedy=f"set it to {' or '.join(DETAILS)}")
    states = os.environ.get(STATES, "")
    if states not in ("", "0", "1"):
        raise ConfigurationError(f"{STATES} is {states!r}", remedy="set it to 0 or 1, or not at all")
    every = _number(STATES_EVERY)
    if every == 0:
        raise ConfigurationError(f"{STATES_EVERY} is 0", remedy="set it to a number of clocks, or not at all")
    if detail == COUNTERS and (states == "1" or every is not None):
        raise ConfigurationError(
            f"{STATES if every is None else STATES_EVERY} is set, and with {DETAIL}={COUNTERS} there are only counts",
            remedy="unset one of them",
        )
    wanted = parse_tiles(os.environ.get(TILES, ""))
    for number, _ in wanted:
        if number is not None and number >= len(devices):
            raise ConfigurationError(
                f"tiles of chip {number} are to be recorded, which does not exist",
                remedy=f"chips are numbered 0 to {len(devices) - 1}",
            )
    tiles = {
        device: chosen_tiles(device, [place for chip, place in wanted if chip in (None, number)])
        for number, device in enumerate(devices)
        if not wanted or any(chip in (None, number) for chip, _ in wanted)
    }
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
    writers: list[Writer] = []
    chips: list[ChipRecording] = []
    try:
        for device, places in tiles.items():
            told = about_chip(device)
            about = about_client() | {"tiles": [list(place) for place in places], "detail": detail} | checks | told
            path = _file(directory, "".join(f"-chip{number}" for number in told.values()))
            writer = _writer(path, about, (_DEFAULT_LIMIT if limit is None else limit) * _MIB, say)
            if writer is None:
                continue
            writers.append(writer)
            chips.append(
                ChipRecording(
                    device,
                    places,
                    start=_number(START),
                    stop=_number(STOP),
                    instructions=detail == INSTRUCTIONS,
                    counters=detail == COUNTERS,
                    states=states == "1"
                    or (not states and detail != COUNTERS and sum(map(len, tiles.values())) <= _FEW),
                    states_every=every,
                    writer=writer,
                    report=say,
                )
            )
    except BhemuError:
        for writer in writers:
            writer.close()
            writer.path.unlink(missing_ok=True)
        raise
    links = _links(directory, devices, topology, say)
    return Recording(chips, links, topology.latency) if chips or links is not None else None


def _links(directory: str, devices: Sequence[Device], topology: Topology, say: Say) -> LinkRecording | None:
    """A recording of the links, where there are some."""
    if not topology.links:
        return None
    path = _file(directory, "-links")
    try:
        return LinkRecording(devices, topology, links_writer(path, topology, about_client()))
    except OSError as error:
        say(f"links are not recorded: {path}: {error.strerror}")
        return None
