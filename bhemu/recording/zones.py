"""Buffers of tt-metal's device profiler in L1: markers that kernels write at the ends of their zones.

Control words come first, then a buffer of words for each core. A marker takes two words: the first has the valid bit,
the kind and number of the zone, and the time's upper bits, the second the lower 32 bits. In some kinds data follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bhemu.checks import checked
from bhemu.chip.coordinates import Place
from bhemu.errors import ProgramError
from bhemu.loader.firmware_layout import CORE_ORDER, FirmwareLayout

Array = np.ndarray[Any, Any]

CONTROL_WORDS: Final = 64
BUFFER_WORDS: Final = 512
"""Of each core."""
ALL_WORDS: Final = CONTROL_WORDS + BUFFER_WORDS * len(CORE_ORDER)
_END_INDEX: Final = 24
"""Control words: by core, how many words of its buffer are written;"""
_RUN_COUNTER: Final = 51
"""programs that have ended,"""
_DONE: Final = 57
"""1: the last one has ended."""
_IDENTITY: Final = 2
_HOST_ID: Final = 3
"""Words of a buffer; the upper half of the first counts replays of traces."""
_FIRST_MARKER: Final = 4
_OWN_MARKERS: Final = 12
"""From this word of a buffer on there are markers of the kernel's own zones; before, those of firmware and kernel."""
_VALID: Final = 1 << 31
KINDS: Final = ("start", "end", "total", "data", "event", "data 16")
_DATA_WORDS: Final = {3: 2, 5: 4}
"""Words of data after a marker, by kind."""
_TOTAL: Final = 2


@dataclass(frozen=True, slots=True)
class Marker:
    """What a core has written.

    Attributes:
        core: by name.
        zone: number of the zone, 0 to 65,535: a hash of its name, file and line (`zone_number`).
        kind: of `KINDS`. A `total` has no time: `data` are the cycles of all of its visits.
        time: of the wall clock, 44 bits.
        data: of `data` and `data 16`, and of `total`; else 0.
    """

    core: str
    zone: int
    kind: str
    time: int
    data: int = 0


@dataclass(frozen=True)
class ProfiledRun:
    """What the cores of a tile have written in one program.

    Attributes:
        place: translated coordinates of the tile.
        number: of the program on the tile, from 1 on.
        host_id: what the host calls the program.
        trace: how often traces had been replayed.
        markers: in the order of the buffers, core by core.
    """

    place: Place
    number: int
    host_id: int
    trace: int
    markers: tuple[Marker, ...]


def zone_number(text: str) -> int:
    """The number of a zone, by `name,file,line,KERNEL_PROFILER`, as tt-metal's compiler messages have it."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return (value & 0xFFFF) ^ value >> 16


def read_markers(core: str, words: Sequence[int]) -> list[Marker]:
    """The markers in a core's buffer.

    Args:
        core: by name.
        words: of the buffer that are written, of which there are `BUFFER_WORDS` at most.
    """
    found = []
    at = _FIRST_MARKER
    while at + 1 < len(words):
        high, low = int(words[at]), int(words[at + 1])
        at += 2
        kind, zone = high >> 28 & 7, high >> 12 & 0xFFFF
        if not high & _VALID or kind >= len(KINDS) or (high == _VALID and low in (0, _VALID)):
            continue  # padding, or nothing was written here
        count = _DATA_WORDS.get(kind, 0) if at > _OWN_MARKERS else 0
        data = 0
        for word in words[at : at + count]:
            data = data << 32 | int(word)
        at += count
        time = (high & 0xFFF) << 32 | low
        found.append(Marker(core, zone, KINDS[kind], *((0, low) if kind == _TOTAL else (time, data))))
    return found


@checked
def read_run(place: Place, words: Array, *, complete: bool = True) -> ProfiledRun:
    """The program whose markers the buffers of a tile hold.

    Args:
        place: translated coordinates of the tile.
        words: uint32 [2624]: control words and buffers, at `FirmwareLayout.profiler` in L1.
        complete: the program has told the host that it is done, and the firmware has ended its own zone, too. Without,
            core B has not said yet how much of its buffer it has written: older markers in it are left out.

    Raises:
        ProgramError: there are fewer words.
    """
    if words.shape != (ALL_WORDS,):
        raise ProgramError(f"{words.shape} words of a profiler", remedy=f"give control words and buffers: {ALL_WORDS}")
    buffers = words[CONTROL_WORDS:].reshape(len(CORE_ORDER), BUFFER_WORDS)
    markers: list[Marker] = []
    for number, core in enumerate(CORE_ORDER):
        end = max(min(int(words[_END_INDEX + number]), BUFFER_WORDS), _OWN_MARKERS)
        if number == 0 and not complete:
            end = BUFFER_WORDS
        found = read_markers(core, buffers[number, :end].tolist())
        if number == 0 and not complete:
            found = [marker for marker in found if marker.time >= found[0].time]
        markers += found
    counter = int(words[_RUN_COUNTER]) + (not complete)
    return ProfiledRun(place, counter, int(buffers[0, _HOST_ID]), int(buffers[0, _IDENTITY]) >> 16, tuple(markers))


class ProfilerBuffers:
    """Sees when programs end on tiles whose firmware has the device profiler.

    Args:
        tiles: records of the chip's tiles.
        places: translated coordinates of those that are followed, by index.
    """

    def __init__(self, tiles: Array, places: dict[int, Place]) -> None:
        self._words = tiles["l1_u32"]
        self._places = places
        self._indices = np.array(sorted(places), np.int64)
        self._seen = np.zeros(len(self._indices), np.int64)
        self._expected: set[int] = set()

    def expect(self, index: int) -> None:
        """A program has said on a tile that it is done; its firmware is about to end its zone."""
        self._expected.add(index)

    def rest(self, layout: FirmwareLayout | None) -> Iterable[tuple[Place, Array]]:
        """What was expected and has not come, when nothing comes any more: for `read_run` with `complete=False`."""
        if layout is not None and layout.profiler is not None:
            first = layout.profiler >> 2
            for index in sorted(self._expected):
                words = np.array(self._words[index, first : first + ALL_WORDS])
                if words[CONTROL_WORDS + _FIRST_MARKER :].any():
                    yield self._places[index], words
        self._expected.clear()

    def look(self, layout: FirmwareLayout | None) -> Iterable[tuple[Place, Array]]:
        """(place, words) of tiles on which a program has ended since the last look, for `read_run`."""
        if layout is None or layout.profiler is None:
            return
        first = layout.profiler >> 2
        control = self._words[self._indices[:, None], first + np.array([_RUN_COUNTER, _DONE])].astype(np.int64)
        ended = (control[:, 1] == 1) & (control[:, 0] != self._seen) & (control[:, 0] > 0)
        self._seen[ended] = control[ended, 0]
        for index in self._indices[ended].tolist():
            self._expected.discard(index)
            yield self._places[index], np.array(self._words[index, first : first + ALL_WORDS])
