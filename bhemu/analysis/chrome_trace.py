"""Events of the Chrome trace format, which Perfetto and chrome://tracing open.

A process is a group of tracks, a thread of it a track; times are in microseconds of the viewer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Event = dict[str, Any]


def group_name(pid: int, text: str) -> Event:
    """What a group of tracks is called."""
    return {"name": "process_name", "ph": "M", "ts": 0, "pid": pid, "tid": 0, "args": {"name": text}}


def track_name(pid: int, tid: int, text: str) -> Event:
    """What a track is called."""
    return {"name": "thread_name", "ph": "M", "ts": 0, "pid": pid, "tid": tid, "args": {"name": text}}


def span(
    name: str, category: str, track: tuple[int, int], start: float, length: float, arguments: Mapping[str, Any]
) -> Event:
    """Something that lasts, on the track (pid, tid)."""
    event: Event = {"name": name, "cat": category, "ph": "X", "ts": start, "dur": length}
    return event | {"pid": track[0], "tid": track[1], "args": arguments}


def level(name: str, track: tuple[int, int], start: float, values: Mapping[str, int]) -> Event:
    """What a counter holds from a time on."""
    return {"name": name, "ph": "C", "ts": start, "pid": track[0], "tid": track[1], "args": values}


def trace_file(events: list[Event], about: Mapping[str, Any], unit: str = "ms") -> bytes:
    """A trace as a file's content.

    Args:
        events: in the order of their times.
        about: further facts, by name.
        unit: in which the viewer shows times, `ms` or `ns`.
    """
    return json.dumps({"traceEvents": events, "displayTimeUnit": unit, "otherData": about}).encode()
