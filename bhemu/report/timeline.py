"""Events of a recording by time: cores, threads, units and NoC requests of each tile, down to single instructions.

Time is the clock of the chip. Rounds of a tile that share a clock, because the coprocessor executed something in them
(rule T34), lie side by side within it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from bhemu.analysis.access import access
from bhemu.analysis.hazard import short_text
from bhemu.chip.coordinates import Place
from bhemu.isa.riscv import disassemble_riscv
from bhemu.machine.agents import CORE_NAMES
from bhemu.machine.origin import pc_of_line
from bhemu.recording import core_columns as column
from bhemu.recording import log as tensix_column
from bhemu.recording.core_log import CoreLog, device_name, wait_name
from bhemu.recording.noc_requests import Request
from bhemu.recording.parts import Part
from bhemu.report.levels import Level, Step
from bhemu.report.names import PartNames
from bhemu.tensix.coprocessor import THREAD_NAMES

Array = np.ndarray[Any, Any]

RUNS, BLOCKED, POLLS, WORD, REQUEST, LEVEL = range(6)
"""Kinds of events."""
KIND_NAMES: Final = (
    "executes",
    "blocked",
    "polls",
    "word of the coprocessor",
    "NoC request",
    "level of a buffer or semaphore",
)
MOST_EVENTS: Final = 2_000_000
_LONGEST: Final = 1 << 23
"""Rounds of a part whose clocks are looked up one by one."""


class _Clock:
    """Clock of the rounds of a log, with a fraction within a clock."""

    def __init__(self, log: CoreLog) -> None:
        first, last = log.rounds
        self._first = first
        rounds = np.arange(first, min(last, first + _LONGEST) + 2)
        clocks = log.clock_of(np.minimum(rounds, last)) + np.maximum(rounds - last, 0)
        _, begins, counts = np.unique(clocks, return_index=True, return_counts=True)
        within = np.arange(len(rounds)) - np.repeat(begins, counts)
        self._times = clocks + within / np.repeat(counts, counts)

    def at(self, rounds: Array) -> Array:
        """float64 [n]."""
        return np.asarray(self._times[np.clip(rounds - self._first, 0, len(self._times) - 1)])


class Timeline:
    """Events in columns.

    Where there are more than `MOST_EVENTS`, single instructions and words of the coprocessor are left out, those of the
    last parts first: what cores did, line by line, and what they waited for is there for all tiles as long as there is
    room.

    Args:
        chips: that share the room.

    Attributes:
        tracks: (tile, name) of each.
        texts: what events say.
        left_out: events for which there was no room.
        levels: what lanes of levels held, by (tile, name of the track).
    """

    def __init__(self, chips: int = 1) -> None:
        self._most = MOST_EVENTS // chips
        self.tracks: list[tuple[Place, str]] = []
        self.texts: list[str] = []
        self.left_out = 0
        self.levels: dict[tuple[Place, str], Level] = {}
        self._track_numbers: dict[tuple[Place, str], int] = {}
        self._text_numbers: dict[str, int] = {}
        self._chunks: list[tuple[Array, Array, Array, Array, Array]] = []
        self._single: list[tuple[Array, Array, Array, Array, Array]] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def columns(self) -> tuple[Array, Array, Array, Array, Array]:
        """(begin float64, length float32, track, kind, text) of all events, by track and begin."""
        chunks = self._chunks + self._single
        if not chunks:
            empty = np.zeros(0, np.int64)
            return empty.astype(np.float64), empty.astype(np.float32), empty, empty, empty
        begin, length, track, kind, text = (np.concatenate(column) for column in zip(*chunks, strict=True))
        order = np.lexsort((begin, track))
        return begin[order], length[order], track[order], kind[order], text[order]

    def add(self, part: Part, names: PartNames, requests: Iterable[Request]) -> None:
        """The events of a part."""
        clock = _Clock(part.log)
        self._cores(part, names, clock)
        self._words(part, names, clock)
        found = list(requests)
        for noc in range(2):
            chosen = [request for request in found if request.noc == noc]
            if chosen:
                begin = clock.at(np.array([request.round for request in chosen]))
                texts = [
                    self._text(
                        f"{request.kind} of {request.size:,} bytes, other end {request.other[0]}-{request.other[1]} "
                        f"{request.address:#x} | {CORE_NAMES[request.core]} at {names.place(request.pc)}"
                    )
                    for request in chosen
                ]
                self._put(part.place, f"NoC {noc}", begin, np.ones(len(chosen)), REQUEST, np.array(texts))

    def add_levels(self, part: Part, steps: Mapping[str, Sequence[Step]], most: Mapping[str, int]) -> None:
        """Levels of a part's tile, as steps that end with the next one, and with the part.

        Args:
            part: whose `add` has been called.
            steps: by the name of the track.
            most: the highest level of each track.
        """
        if not steps:
            return
        clock = _Clock(part.log)
        for name, found in steps.items():
            begin = np.maximum.accumulate(clock.at(np.array([step.round for step in found])))
            length = np.append(begin[1:], clock.at(np.array([part.log.rounds[1]]))) - begin
            levels = np.array([step.level for step in found])
            known = (levels >= 0) & (length > 0)
            if not known.any():
                continue
            level = self.levels.setdefault((part.place, name), Level())
            level.most = max(most.get(name, 1), level.most)
            level.add(levels[known], length[known])
            texts = np.array([self._text(step.text) for step in found])
            self._put(part.place, name, begin[known], length[known], LEVEL, texts[known])

    def _cores(self, part: Part, names: PartNames, clock: _Clock) -> None:
        rows = part.log.rows
        kinds = rows[:, column.WHO] >> 4 & 0xF
        rows = rows[(kinds != column.MOVED) & (kinds != column.RESTARTED)]
        for core in np.unique(rows[:, column.WHO] & 7).tolist():
            own = rows[rows[:, column.WHO] & 7 == core]
            self._core(part.place, core, own, names, clock)

    def _core(self, place: Place, core: int, rows: Array, names: PartNames, clock: _Clock) -> None:
        kinds = rows[:, column.WHO] >> 4 & 0xF
        rounds, at = rows[:, column.ROUNDS], rows[:, column.ROUND]
        executed = (kinds == column.INSTRUCTION) | (kinds == column.DEVICE) | (kinds == column.PUSHES)
        codes, which = np.unique(rows[:, column.CODE], return_inverse=True)
        pcs, words = (codes & 0xFFFFFFFF).tolist(), (codes >> 32 & 0xFFFFFFFF).tolist()
        places = [names.place(pc) for pc in pcs]
        kernels = [names.kernel(pc) for pc in pcs]
        told = [
            self._text(f"{disassemble_riscv(word, pc)} | {place} of {kernel}, pc {pc:#x}")
            for pc, word, place, kernel in zip(pcs, words, places, kernels, strict=True)
        ]
        name = CORE_NAMES[core]
        texts = np.array(told, np.int64)[which]
        begin, end = clock.at(at), clock.at(at + 1)
        lengths = (end - begin)[executed]
        self._put(place, f"{name} instructions", begin[executed], lengths, RUNS, texts[executed], single=True)
        # Runs of one source line are one event of the core's own track.
        lines = np.array([self._text(f"{p} of {kernel}") for p, kernel in zip(places, kernels, strict=True)])[which]
        lines, starts, ends = lines[executed], begin[executed], end[executed]
        if len(lines):
            breaks = np.flatnonzero((np.diff(lines) != 0) | (starts[1:] - ends[:-1] > 1)) + 1
            first, last = np.r_[0, breaks], np.r_[breaks, len(lines)] - 1
            self._put(place, name, starts[first], ends[last] - starts[first], RUNS, lines[first])
        for kind, chosen in ((BLOCKED, (rounds > 0) & (kinds != column.POLL)), (POLLS, kinds == column.POLL)):
            some = rows[chosen]
            if not len(some):
                continue
            later = some[:, column.ROUNDS]
            waits = (some[:, column.WHO] >> 4 & 0xF == column.GAVE_UP) | (kind == POLLS)
            starts = np.where(waits, some[:, column.ROUND], some[:, column.ROUND] - later)
            what = np.array(
                [
                    self._text(f"{self._wait(kind, core, address)} | {places[i]} of {kernels[i]}")
                    for address, i in zip(some[:, column.ADDRESS].tolist(), which[chosen].tolist(), strict=True)
                ]
            )
            begin_wait, end_wait = clock.at(starts), clock.at(starts + later)
            self._put(place, name, begin_wait, end_wait - begin_wait, kind, what)

    @staticmethod
    def _wait(kind: int, core: int, address: int) -> str:
        if kind == BLOCKED:
            return f"blocked: {wait_name(core, address, pushes=address < 0)}"
        return f"polls {device_name(core, address)} {address:#x}" if address >= 0 else "idle in an endless loop"

    def _words(self, part: Part, names: PartNames, clock: _Clock) -> None:
        rows = part.log.tensix.rows
        if not len(rows):
            return
        begin, end = clock.at(rows[:, tensix_column.CLOCK]), clock.at(rows[:, tensix_column.CLOCK] + 1)
        pairs, which = np.unique(rows[:, [tensix_column.WORD, tensix_column.LINE]], axis=0, return_inverse=True)
        texts, units = [], []
        for word, line in pairs.tolist():
            found, pc = access(word), pc_of_line(line)
            units.append(found.unit_name)
            texts.append(self._text(short_text(word) + ("" if pc is None else f" | pushed at {names.place(pc)}")))
        which = which.reshape(-1)
        text = np.array(texts)[which]
        tracks = [
            (f"thread {thread} ({name})", rows[:, tensix_column.THREAD] == thread)
            for thread, name in enumerate(THREAD_NAMES)
        ]
        tracks += [
            (f"unit: {unit}", np.array([unit == other for other in units])[which]) for unit in dict.fromkeys(units)
        ]
        for name, chosen in tracks:
            self._put(part.place, name, begin[chosen], (end - begin)[chosen], WORD, text[chosen], single=True)

    def _text(self, text: str) -> int:
        number = self._text_numbers.get(text)
        if number is None:
            number = self._text_numbers[text] = len(self.texts)
            self.texts.append(text)
        return number

    def _put(
        self, place: Place, name: str, begin: Array, length: Array, kind: int, texts: Array, *, single: bool = False
    ) -> None:
        if not len(begin):
            return
        if single and self.left_out:
            self.left_out += len(begin)
            return
        if not single:
            self._make_room(len(begin))
        room = max(self._most - self._count, 0)
        self.left_out += max(len(begin) - room, 0)
        begin, length, texts = begin[:room], length[:room], texts[:room]
        if not len(begin):
            return
        key = place, name
        if key not in self._track_numbers:
            self._track_numbers[key] = len(self.tracks)
            self.tracks.append(key)
        track = np.full(len(begin), self._track_numbers[key], np.int32)
        kinds = np.full(len(begin), kind, np.uint8)
        chunks = self._single if single else self._chunks
        chunks.append((begin, np.asarray(length, np.float32), track, kinds, np.asarray(texts, np.int32)))
        self._count += len(begin)

    def _make_room(self, wanted: int) -> None:
        """Leave out single instructions and words until there is room."""
        while self._single and self._count + wanted > self._most:
            gone = len(self._single.pop()[0])
            self._count -= gone
            self.left_out += gone
