"""Time and hazards: record a run, then ask how long the documents say it takes and whether its order is safe. And
`DebugSession`: breakpoints, watchpoints and steps on a tile.

Example:
    >>> import bhemu
    >>> from bhemu.debug import Recorder, hazards
    >>> tile = bhemu.Tile()
    >>> recorder = Recorder()
    >>> recorder.attach(tile)
    >>> tile.execute(2, ["SETDMAREG 0x20, 24", "WRCFG 12, 0, 69"])
    >>> [hazard.missing for hazard in hazards(recorder.log())]
    ['STALLWAIT(STALL_CFG, THCON), or a DMANOP between them']
"""

from __future__ import annotations

from bhemu.debug.breakpoints import Breakpoint, DebugError
from bhemu.debug.check import hazards
from bhemu.debug.clock import Timing, timing
from bhemu.debug.core_log import CoreLog
from bhemu.debug.core_profile import Profile, core_lines, profile, profile_as_json, profile_lines
from bhemu.debug.core_recorder import CoreRecorder
from bhemu.debug.core_text import text_lines
from bhemu.debug.core_trace import core_trace, core_trace_json
from bhemu.debug.hazard import HAZARD, NOTE, Hazard, Place
from bhemu.debug.log import Log
from bhemu.debug.record import record
from bhemu.debug.recorder import Recorder
from bhemu.debug.runner import Stop
from bhemu.debug.session import DebugSession
from bhemu.debug.trace import trace_json, write_trace

__all__ = [
    "HAZARD",
    "NOTE",
    "Breakpoint",
    "CoreLog",
    "CoreRecorder",
    "DebugError",
    "DebugSession",
    "Hazard",
    "Log",
    "Place",
    "Profile",
    "Recorder",
    "Stop",
    "Timing",
    "core_lines",
    "core_trace",
    "core_trace_json",
    "hazards",
    "profile",
    "profile_as_json",
    "profile_lines",
    "record",
    "text_lines",
    "timing",
    "trace_json",
    "write_trace",
]
