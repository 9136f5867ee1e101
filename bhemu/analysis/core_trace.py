"""A trace of a tile with RISC-V cores in the Chrome trace format, which Perfetto and chrome://tracing open.

One microsecond of the viewer is a round of the tile (rule T34): a core executes at most one instruction in it, a thread
of the coprocessor at most one word. This is the order of execution, not time on silicon; each slice has the tile's
clock as an argument. `analysis/trace.py` writes the coprocessor's modelled time.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from bhemu.analysis.access import access
from bhemu.analysis.chrome_trace import Event, group_name, span, trace_file, track_name
from bhemu.analysis.hazard import short_text
from bhemu.analysis.modelled_time import UNITS
from bhemu.isa.assembler import disassemble
from bhemu.isa.riscv_words import is_call, is_return
from bhemu.machine.agents import CORE_NAMES, CORES
from bhemu.machine.origin import pc_of_line
from bhemu.machine.state import THREADS
from bhemu.recording import core_columns as column
from bhemu.recording import log as tensix_column
from bhemu.recording.core_log import CoreLog, Step, device_name, steps, wait_name
from bhemu.recording.core_text import describe, effect, text_lines
from bhemu.tensix.coprocessor import THREAD_NAMES

CORE_TRACKS: Final = 1
"""Process number of the tracks of the cores: functions, and in them what blocked, polls, accesses, pushes."""
LINE_TRACKS: Final = 2
THREAD_TRACKS: Final = 3
UNIT_TRACKS: Final = 4
_PROCESSES: Final = {
    CORE_TRACKS: "RISC-V cores",
    LINE_TRACKS: "source lines",
    THREAD_TRACKS: "threads",
    UNIT_TRACKS: "units",
}


class _Frame:
    def __init__(self, name: str, start: int, begin: int, pc: int) -> None:
        self.name, self.start, self.begin, self.pc = name, start, begin, pc


class _Core:
    """Follows one core: slices of its functions and source lines.

    Args:
        number: of the core.
        log: for names.
        clock: of a round.
        events: where slices go.
    """

    def __init__(self, number: int, log: CoreLog, clock: Callable[[int], int], events: list[Event]) -> None:
        self._number = number
        self._names = log.names
        self._clock = clock
        self._events = events
        self._stack: list[_Frame] = []
        self._before = 0
        self._end = 0
        self._line: tuple[str, int] | None = None
        self._line_begin = 0

    def take(self, step: Step) -> None:
        """The core's next row."""
        if step.kind == column.RESTARTED:
            self.finish()
            return
        self._follow(step)
        self._follow_line(step)
        self._before, self._end = step.word, step.end
        if step.kind in (column.POLL, column.GAVE_UP):
            self._before = 0
        self._details(step)

    def finish(self) -> None:
        """Close what is open."""
        while self._stack:
            self._close(self._end)
        self._close_line(self._end)
        self._before = 0

    def _open(self, name: str, start: int, step: Step) -> None:
        self._stack.append(_Frame(name, start, step.begin, step.pc))

    def _close(self, end: int) -> None:
        frame = self._stack.pop()
        arguments: dict[str, Any] = {"clock": self._clock(frame.begin), "pc": f"{frame.pc:#x}"}
        line = self._names.line(self._number, frame.start)
        if line is not None:
            arguments["source"] = f"{line.file}:{line.line}"
        length = max(end - frame.begin, 1)
        self._events.append(span(frame.name, "function", (CORE_TRACKS, self._number), frame.begin, length, arguments))

    def _follow(self, step: Step) -> None:
        name, start = self._names.function(self._number, step.pc)
        if name == "?":
            name, start = f"{CORE_NAMES[self._number]} (no symbol)", -1
        if is_call(self._before):
            self._open(name, start, step)
            return
        if is_return(self._before) and self._stack:
            self._close(step.begin)
            while self._stack and self._stack[-1].start != start and any(f.start == start for f in self._stack):
                self._close(step.begin)
        if not self._stack:
            self._open(name, start, step)
        elif self._stack[-1].start != start:  # a jump to another function in the place of a call and a return
            self._close(step.begin)
            self._open(name, start, step)

    def _follow_line(self, step: Step) -> None:
        found = self._names.line(self._number, step.pc)
        line = None if found is None else (found.file, found.line)
        if line != self._line:
            self._close_line(step.begin)
            self._line, self._line_begin = line, step.begin

    def _close_line(self, end: int) -> None:
        if self._line is not None:
            file, number = self._line
            name = f"{file.rpartition('/')[2]}:{number}"
            length = max(end - self._line_begin, 1)
            arguments = {"source": f"{file}:{number}", "clock": self._clock(self._line_begin)}
            event = span(name, "line", (LINE_TRACKS, self._number), self._line_begin, length, arguments)
            self._events.append(event)
        self._line = None

    def _details(self, step: Step) -> None:
        """What the core did besides executing: it was blocked, polled, accessed a device, pushed."""
        core = self._number
        text, what = describe(step)
        arguments: dict[str, Any] = {"clock": self._clock(step.begin), "pc": f"{step.pc:#x}", "text": text}
        place = self._names.place(core, step.pc)
        if place:
            arguments["place"] = place
        if step.kind == column.POLL:
            reads = "nothing: idle" if step.address is None else f"{device_name(core, step.address)} {step.address:#x}"
            arguments["effect"] = what
            self._events.append(
                span(f"polls {reads}", "poll", (CORE_TRACKS, core), step.begin, max(step.rounds, 1), arguments)
            )
            return
        if step.rounds:
            name = wait_name(core, step.address or 0, pushes=step.address is None)
            self._events.append(
                span(f"blocked: {name}", "blocked", (CORE_TRACKS, core), step.begin, step.rounds, arguments)
            )
        if step.kind == column.GAVE_UP:
            return
        if step.kind == column.PUSHES:
            pushed = step.value or 0
            name = f"push {access(pushed).mnemonic}"
            self._events.append(
                span(name, "push", (CORE_TRACKS, core), step.round, 1, arguments | {"text": disassemble(pushed)})
            )
        elif step.kind == column.DEVICE:
            store = step.word & 0x7F in (0x23, 0x27)
            name = f"{'store' if store else 'load'} {device_name(core, step.address or 0)}"
            self._events.append(
                span(name, "device", (CORE_TRACKS, core), step.round, 1, arguments | {"effect": effect(step)})
            )


def _join_pushes(events: list[Event]) -> None:
    """Pushes of one core in one round share it: fused `.ttinsn` lie side by side."""
    by_round: dict[tuple[int, float], list[Event]] = {}
    for event in events:
        if event["cat"] == "push":
            by_round.setdefault((event["tid"], event["ts"]), []).append(event)
    for group in by_round.values():
        for index, event in enumerate(group):
            event["ts"] += index / len(group)
            event["dur"] = 1 / len(group)


def _tensix_events(log: CoreLog, clock: Callable[[int], int]) -> list[Event]:
    events = []
    for row in log.tensix.rows.tolist():
        word, thread, at = row[tensix_column.WORD], row[tensix_column.THREAD], row[tensix_column.CLOCK]
        found = access(word)
        line = row[tensix_column.LINE]
        arguments: dict[str, Any] = {"text": short_text(word), "clock": clock(at)}
        pc = pc_of_line(line)
        if pc is not None:
            core = log.names.pusher(thread, pc)
            arguments["pushed at"] = f"{CORE_NAMES[core]} {pc:#x} {log.names.place(core, pc)}".strip()
        events.append(span(found.mnemonic, found.unit, (THREAD_TRACKS, thread), at, 1, arguments))
        # Threads have their turns one after the other in a round.
        start = at + thread / THREADS
        track = (UNIT_TRACKS, UNITS.index(found.unit_name))
        arguments = arguments | {"thread": thread}
        events.append(span(found.mnemonic, found.unit, track, start, 1 / THREADS, arguments))
    return events


def trace_events(log: CoreLog) -> list[Event]:
    """The events of a trace, ordered by round; names of tracks first.

    Args:
        log: of a recorder with `instructions=True`.
    """
    names = [group_name(pid, text) for pid, text in _PROCESSES.items()]
    for pid in (CORE_TRACKS, LINE_TRACKS):
        names += [track_name(pid, i, name) for i, name in enumerate(CORE_NAMES)]
    names += [track_name(THREAD_TRACKS, t, f"thread {t} ({name})") for t, name in enumerate(THREAD_NAMES)]
    names += [track_name(UNIT_TRACKS, i, unit) for i, unit in enumerate(UNITS)]
    rounds = np.arange(log.rounds[0], log.rounds[1] + 1) if log.rounds[1] - log.rounds[0] < 1 << 22 else None
    clocks = None if rounds is None else log.clock_of(rounds)

    def clock(at: int) -> int:
        if clocks is not None and log.rounds[0] <= at <= log.rounds[1]:
            return int(clocks[at - log.rounds[0]])
        return int(log.clock_of(np.array([at]))[0])

    events: list[Event] = []
    cores = [_Core(number, log, clock, events) for number in range(CORES)]
    for step in steps(log):
        cores[step.core].take(step)
    for core in cores:
        core.finish()
    _join_pushes(events)
    events += _tensix_events(log, clock)
    events.sort(key=lambda event: (event["ts"], -event["dur"]))
    return names + events


def core_trace_json(log: CoreLog) -> bytes:
    """A whole trace in the Chrome format as a file's content."""
    about = {
        "time": "one microsecond is one round of the tile: at most one instruction of each core",
        "rows left out at the beginning": log.dropped,
        "words of the coprocessor left out at the beginning": log.tensix_dropped,
    }
    return trace_file(trace_events(log), about)


def core_trace(log: CoreLog, path: str | Path) -> bytes:
    """A trace as a file's content: text for a name that ends in .txt, else JSON for Perfetto."""
    if Path(path).suffix == ".txt":
        return "".join(f"{line}\n" for line in text_lines(log)).encode()
    return core_trace_json(log)
