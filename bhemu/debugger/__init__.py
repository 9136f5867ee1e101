"""The debugger: breakpoints, watchpoints and steps on a tile, from Python (`DebugSession`) and from GDB."""

from __future__ import annotations

from bhemu.debugger.breakpoints import Breakpoint, DebugError
from bhemu.debugger.session import DebugSession
from bhemu.debugger.stops import Stop

__all__ = ["Breakpoint", "DebugError", "DebugSession", "Stop"]
