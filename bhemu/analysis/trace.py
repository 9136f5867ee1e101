"""A trace of the modelled time in the Chrome trace format, which Perfetto and chrome://tracing open.

Threads and units are tracks of slices, one microsecond of the viewer a cycle; semaphores are counters.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from bhemu.analysis.access import access, unpacker_of
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


def trace_events(log: Log, timed: Timing) -> list[dict[str, Any]]:
    """The events of a trace, ordered by time; names of tracks first.

    Args:
        log: a recorded run.
        timed: its `timing`.
    """
    names = [_name("process_name", pid, 0, text) for pid, text in _PROCESSES.items()]
    names += [_name("thread_name", THREAD_TRACKS, t, f"thread {t} ({name})") for t, name in enumerate(THREAD_NAMES)]
    names += [_name("thread_name", UNIT_TRACKS, i, unit) for i, unit in enumerate(UNITS)]
    events: list[dict[str, Any]] = []
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
        if waited > 0:
            events.append(
                _slice(
                    f"wait for {found.mnemonic}", "stall", THREAD_TRACKS, thread, timed.gate[index], waited, arguments
                )
            )
        events.append(_slice(found.mnemonic, found.unit, THREAD_TRACKS, thread, issue, 1, arguments))
        unit = UNITS.index(_unit(found.unit, unpacker_of(found.operands)))
        # Pipelined units take the next instruction before the last is done; a slice lasts until then.
        start = max(issue, free[unit])
        length = max(cost.occupancy, 1)
        free[unit] = start + length
        events.append(
            _slice(found.mnemonic, found.unit, UNIT_TRACKS, unit, start, length, arguments | {"thread": thread})
        )
    for cycle, number, value in timed.semaphores:
        name = f"{number} {Semaphore(number).name}"
        events.append(
            {"name": name, "ph": "C", "ts": cycle, "pid": SEMAPHORE_TRACKS, "tid": 0, "args": {"value": value}}
        )
    events.sort(key=lambda event: event["ts"])
    return names + events


_PROCESSES: Final = {THREAD_TRACKS: "threads", UNIT_TRACKS: "units", SEMAPHORE_TRACKS: "semaphores"}


def _unit(unit: str, unpacker: int) -> str:
    return {"unpack": f"unpacker {unpacker}", "pack": "packer"}.get(unit, unit)


def _name(kind: str, pid: int, tid: int, text: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "ts": 0, "pid": pid, "tid": tid, "args": {"name": text}}


def _slice(name: str, category: str, pid: int, tid: int, start: int, length: int, arguments: Any) -> dict[str, Any]:
    return {
        "name": name,
        "cat": category,
        "ph": "X",
        "ts": start,
        "dur": length,
        "pid": pid,
        "tid": tid,
        "args": arguments,
    }


@checked
def trace_json(log: Log, timed: Timing) -> bytes:
    """The whole trace as a file's content; see `write_trace`."""
    content = {
        "traceEvents": trace_events(log, timed),
        "displayTimeUnit": "ms",
        "otherData": {"time": "one microsecond is one modelled cycle", "program": str(log.file or "")},
    }
    return json.dumps(content).encode()


@checked
def write_trace(log: Log, path: str | Path, timed: Timing | None = None) -> None:
    """Write a trace that Perfetto opens.

    Args:
        log: a recorded run.
        path: JSON file to write.
        timed: its `timing`, when there is one already.
    """
    write_whole(Path(path), trace_json(log, timed or timing(log)))
