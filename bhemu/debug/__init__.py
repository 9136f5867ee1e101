"""Time and hazards: record a run, then ask how long the documents say it takes and whether its order is safe.

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

from bhemu.debug.check import hazards
from bhemu.debug.clock import Timing, timing
from bhemu.debug.hazard import HAZARD, NOTE, Hazard, Place
from bhemu.debug.log import Log
from bhemu.debug.record import record
from bhemu.debug.recorder import Recorder
from bhemu.debug.trace import trace_json, write_trace

__all__ = [
    "HAZARD",
    "NOTE",
    "Hazard",
    "Log",
    "Place",
    "Recorder",
    "Timing",
    "hazards",
    "record",
    "timing",
    "trace_json",
    "write_trace",
]
