"""A recorded run as a picture: what each thread, unit and core did when."""

from __future__ import annotations

import json
from typing import Any

import bhemu.checks as checks
from bhemu.analysis.core_trace import core_trace_json
from bhemu.analysis.modelled_time import Timing, timing
from bhemu.analysis.trace import trace_json
from bhemu.checks import checked
from bhemu.errors import ConfigurationError
from bhemu.pictures import plot
from bhemu.recording.core_log import CoreLog
from bhemu.recording.log import Log

Span = tuple[float, float, str]


def tracks(log: Log | CoreLog, timed: Timing | None = None) -> list[tuple[str, list[Span]]]:
    """The tracks of a run's trace, and (start, length, text) of what is on each.

    Args:
        log: a recorded run; of the coprocessor in modelled cycles, of cores in rounds.
        timed: the `timing` of the coprocessor's log, when there is one already.
    """
    if isinstance(log, CoreLog):
        events = json.loads(core_trace_json(log))["traceEvents"]
    else:
        events = json.loads(trace_json(log, timed or timing(log)))["traceEvents"]
    names: dict[tuple[int, int], str] = {}
    spans: dict[tuple[int, int], list[Span]] = {}
    for event in events:
        place = event.get("pid"), event.get("tid")
        if event["ph"] == "M" and event["name"] == "thread_name":
            names[place] = event["args"]["name"]
        elif event["ph"] == "X":
            spans.setdefault(place, []).append((event["ts"], event["dur"], event["name"]))
    return [(names.get(place, ""), spans[place]) for place in sorted(spans)]


@checked
def plot_timeline(
    log: Log | CoreLog, timed: Timing | None = None, *, between: tuple[int, int] | None = None, ax: Any = None
) -> Any:
    """Draw a recorded run with matplotlib: a track for each thread, unit and core.

    Args:
        log: from `Recorder.log` or `CoreRecorder.log`; the time is modelled cycles, or rounds of the tile.
        timed: the `timing` of the coprocessor's log, when there is one already.
        between: first and last cycle or round that is shown; the whole run by default.
        ax: matplotlib's axes; new ones by default.

    Returns:
        The axes.

    Raises:
        ConfigurationError: matplotlib is not installed, or the log is empty.
    """
    if not isinstance(log, CoreLog):
        checks.instance(log, "log", Log)
    found = tracks(log, timed)
    if between is not None:
        first, last = between
        found = [(n, [s for s in spans if s[0] + s[1] >= first and s[0] <= last]) for n, spans in found]
    found = [(name, spans) for name, spans in found if spans]
    if not found:
        raise ConfigurationError("the recording is empty there", remedy="record a run, or show all of it")
    cores = isinstance(log, CoreLog)
    axes = plot.timeline(found, "cores" if cores else "modelled time", "rounds" if cores else "cycles", ax=ax)
    if between is not None:
        axes.set_xlim(*between)
    return axes
