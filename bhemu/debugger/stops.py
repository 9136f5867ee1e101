"""Why a machine under a debugger is stopped."""

from __future__ import annotations

from dataclasses import dataclass

from bhemu.debugger.breakpoints import Breakpoint
from bhemu.debugger.watchpoints import Watch
from bhemu.errors import BhemuError


@dataclass
class Stop:
    """Why the tile is stopped.

    Attributes:
        reason: `breakpoint`, `watch`, `step`, `halt`, `exit` (semihosting), `fault`, `limit`, `idle` (no core or
            thread can proceed), `interrupted`, or `beginning` (of what a run backwards can reach).
        text: for the user.
        clock: clocks of the tile that have passed completely.
        core: number of the core that it concerns, or None.
        pc: of that core.
        breakpoint: that was reached.
        watch: that has changed.
        error: the refusal, for `fault`.
        place: on a chip the tile that it concerns, by its translated coordinates.
    """

    reason: str
    text: str
    clock: int
    core: int | None = None
    pc: int | None = None
    breakpoint: Breakpoint | None = None
    watch: Watch | None = None
    error: BhemuError | None = None
    place: tuple[int, int] | None = None
