"""A trace of the modelled time in the Chrome trace format, which Perfetto and chrome://tracing open.

Threads and units are tracks of slices, one microsecond of the viewer a cycle; semaphores are counters.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bhemu.analysis.access import access
from bhemu.analysis.chrome_trace import Event, group_name, level, span, trace_file, track_name
from bhemu.analysis.figures import figure
from bhemu.analysis.hazard import short_text
from bhemu.analysis.modelled_time import UNITS, Timing, timing
from bhemu.checks import checked
from bhemu.files import write_whole
from bhemu.isa.names import Semaphore
from bhemu.recording import log as column
from bhemu.recording.log import Log
from bhemu.tensix.coprocessor import THREAD_NAMES

THREAD_TRACKS: Final = 1
"""Process number of the threads' tracks."""
UNIT_TRACKS: Final = 2
SEMAPHORE_TRACKS: Final = 3


def trace_events(log: Log, timed: Timing) -> list[Event]:
    """The events of a trace, ordered by time; names of tracks first.

    Args:
        log: a recorded run.
        timed: its `timing`.
    """
    names = [group_name(pid, text) for pid, text in _PROCESSES.items()]
    names += [track_name(THREAD_TRACKS, t, f"thread {t} ({name})") for t, name in enumerate(THREAD_NAMES)]
    names += [track_name(UNIT_TRACKS, i, unit) for i, unit in enumerate(UNITS)]
    events: list[Event] = []
    free = [0] * len(UNITS)
    for index in sorted(range(len(log)), key=lambda i: timed.issue[i]):
        row = log.rows[index]
        word = int(row[column.WORD])
        found = access(word)
        thread, issue = int(row[column.THREAD]), timed.issue[index]
        cost = figure(found, row)
        arguments = {
            "text": short_text(word),
            "line": int(row[column.LINE]),
            "cycles": cost.latency,
            "certainty": cost.certainty,
        }
        waited = issue - timed.gate[index]
        track = (THREAD_TRACKS, thread)
        if waited > 0:
            events.append(span(f"wait for {found.mnemonic}", "stall", track, timed.gate[index], waited, arguments))
        events.append(span(found.mnemonic, found.unit, track, issue, 1, arguments))
        unit = UNITS.index(found.unit_name)
        # Pipelined units take the next instruction before the last is done; a slice lasts until then.
        start = max(issue, free[unit])
        length = max(cost.occupancy, 1)
        free[unit] = start + length
        arguments = arguments | {"thread": thread}
        events.append(span(found.mnemonic, found.unit, (UNIT_TRACKS, unit), start, length, arguments))
    for cycle, number, value in timed.semaphores:
        name = f"{number} {Semaphore(number).name}"
        events.append(level(name, (SEMAPHORE_TRACKS, 0), cycle, {"value": value}))
    events.sort(key=lambda event: event["ts"])
    return names + events


_PROCESSES: Final = {THREAD_TRACKS: "threads", UNIT_TRACKS: "units", SEMAPHORE_TRACKS: "semaphores"}


@checked
def trace_json(log: Log, timed: Timing) -> bytes:
    """The whole trace as a file's content; see `write_trace`."""
    about = {"time": "one microsecond is one modelled cycle", "program": str(log.file or "")}
    return trace_file(trace_events(log, timed), about)


@checked
def write_trace(log: Log, path: str | Path, timed: Timing | None = None) -> None:
    """Write a trace that Perfetto opens.

    Args:
        log: a recorded run.
        path: JSON file to write.
        timed: its `timing`, when there is one already.
    """
    write_whole(Path(path), trace_json(log, timed or timing(log)))
