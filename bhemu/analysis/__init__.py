"""Time and hazards of a recorded run: how long the documents say it takes, and whether its order is safe.

Example:
    >>> import bhemu
    >>> from bhemu.analysis import hazards
    >>> from bhemu.recording import Recorder
    >>> tile = bhemu.Tile()
    >>> recorder = Recorder()
    >>> recorder.attach(tile)
    >>> tile.execute(2, ["SETDMAREG 0x20, 24", "WRCFG 12, 0, 69"])
    >>> [hazard.missing for hazard in hazards(recorder.log())]
    ['STALLWAIT(STALL_CFG, THCON), or a DMANOP between them']
"""

from __future__ import annotations

from bhemu.analysis.check import hazards
from bhemu.analysis.core_trace import core_trace, core_trace_json
from bhemu.analysis.hazard import HAZARD, NOTE, Hazard, Place
from bhemu.analysis.modelled_time import Timing, timing
from bhemu.analysis.timeline import plot_timeline
from bhemu.analysis.trace import trace_json, write_trace

__all__ = [
    "HAZARD",
    "NOTE",
    "Hazard",
    "Place",
    "Timing",
    "core_trace",
    "core_trace_json",
    "hazards",
    "plot_timeline",
    "timing",
    "trace_json",
    "write_trace",
]
