"""What a Tensix tile of a chip did just before a clock: the calls are made again, and the tile is recorded at the end.

The last clocks are executed on a copy of the tile, which the recorder can follow; calls of the host that reach the tile
meanwhile are made on the copy. Requests to other tiles end the record, and the text says so.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bhemu.api.tile import Snapshot, Tile
from bhemu.compare.calls import CLOCK, READ, WRITE, Call, Ended, clock
from bhemu.compare.chip_side import ChipSide
from bhemu.compare.places import Windows
from bhemu.errors import BhemuError
from bhemu.machine.state import L1_SIZE
from bhemu.recording.core_recorder import CoreRecorder
from bhemu.recording.core_text import text_lines
from bhemu.tile.cores import STATES

if TYPE_CHECKING:
    from bhemu.recording.core_log import Executables

CLOCKS: Final = 256
"""How many clocks before that clock are executed again."""
LINES: Final = 8
"""How many instructions are shown of each core and each thread."""
_PLACE: Final = slice(38, 80)
"""Columns of a text trace that name symbol and line."""
_WHO: Final = slice(21, 28)
_MARK: Final = "  <- here"


@dataclass
class History:
    """What a tile did.

    Attributes:
        lines: of a text trace, the heading first; stores to the word asked for are marked.
        cores: where each core is, by name: `running at 0x00040`.
        note: why it ends early, if it does.
    """

    lines: list[str] = field(default_factory=list)
    cores: dict[str, str] = field(default_factory=dict)
    note: str = ""


def history(
    calls: Sequence[Call],
    until: int,
    tile: int,
    *,
    word: int | None = None,
    executables: Executables | None = None,
    allow_open: bool = False,
    lines: int = LINES,
) -> History:
    """Make calls again on a fresh chip and report what a tile did last.

    Args:
        calls: from `init` on.
        until: the clock at which it ends; later calls are not made.
        tile: number of the Tensix tile.
        word: address in L1 whose stores are marked.
        executables: what the cores run, for names and lines.
        allow_open: as for the chip.
        lines: how many instructions to give of each core and thread.
    """
    ours = ChipSide(allow_open=allow_open)
    windows = Windows()
    start = max(0, until - CLOCKS)
    rest: list[Call] = []
    for number, call in enumerate(calls):
        windows.follow(call)
        if call.name != CLOCK or ours.time + call.a <= start:
            if isinstance(ours.call(call), Ended):
                return History(note="the chip refuses a call before that")
            continue
        before = start - ours.time
        if before:
            ours.call(clock(before))
        rest = [clock(call.a - before), *calls[number + 1 :]]
        break
    return _Copy(ours, tile, windows, executables).run(rest, until, word, lines)


def _last_of_each(lines: list[str], count: int) -> list[str]:
    """The last lines of each core and thread, in order."""
    kept: list[str] = []
    seen: Counter[str] = Counter()
    for line in reversed(lines):
        seen[line[_WHO]] += 1
        if seen[line[_WHO]] <= count:
            kept.append(line)
    return kept[::-1]


def _without_places(lines: list[str]) -> list[str]:
    """The same without the column of symbols, when there are none."""
    if any(line[_PLACE].strip() for line in lines[1:]):
        return lines
    return [line[: _PLACE.start] + line[_PLACE.stop :] for line in lines]


class _Copy:
    """A copy of the present state of a tile of a chip."""

    def __init__(self, ours: ChipSide, index: int, windows: Windows, executables: Executables | None) -> None:
        ours.chip.cores(index)  # brings it to the chip's time
        content = ours.chip.tiles.view(np.ndarray)[index : index + 1].view(np.uint8)
        self._tile = Tile()
        self._tile.restore(Snapshot(content))
        self._time = ours.time
        self._index = index
        self._windows = windows
        self._recorder = CoreRecorder()
        self._recorder.attach(self._tile, executables)

    def run(self, calls: Sequence[Call], until: int, word: int | None, lines: int) -> History:
        """Let the copy do what the calls say."""
        found = History()
        try:
            for call in calls:
                if self._time >= until:
                    break
                self._windows.follow(call)
                self._make(call, until)
        except BhemuError as error:
            found.note = f"then: {error.message.splitlines()[0]}"
        text = list(text_lines(self._recorder.log()))
        heading = [line for line in text if line.startswith("#")]
        steps = _last_of_each([line for line in text if not line.startswith("#")], lines)
        if steps:
            places = () if word is None else tuple(f"[{word + byte:#x}] =" for byte in range(4))
            marked = [line + _MARK if any(place in line for place in places) else line for line in steps]
            found.lines = _without_places(heading[:1] + marked)
        for view in (self._tile.cores[number] for number in range(5)):
            if view.state != STATES[0]:
                found.cores[view.name] = f"{view.state} at {view.pc:#07x}"
        return found

    def _make(self, call: Call, until: int) -> None:
        if call.name == CLOCK:
            part = min(call.a, until - self._time)
            self._time += part
            self._tile.clock(part)
            return
        place = self._windows.place(call.a) if call.name in (READ, WRITE) else None
        if place is None or place.tile != self._index:
            return
        l1: Any = self._tile.l1
        if call.name == WRITE and place.address < L1_SIZE:
            l1[place.address : place.address + len(call.content)] = np.frombuffer(call.content, np.uint8)
        elif call.name == WRITE:
            self._tile.cores.store(place.address, struct.unpack("<I", call.content)[0])
        elif place.address >= L1_SIZE:
            self._tile.cores.load(place.address)
