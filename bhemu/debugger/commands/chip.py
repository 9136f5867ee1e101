"""The debugger's commands on a chip: the same, and the choice of a tile."""

from __future__ import annotations

import re
from collections.abc import Callable

from bhemu.debugger.breakpoints import DebugError
from bhemu.debugger.chip_session import ChipDebug
from bhemu.debugger.commands.inspect import Commands
from bhemu.debugger.session import DebugSession
from bhemu.debugger.stops import Stop

_PLACE = re.compile(r"(\d+)\s*,\s*(\d+)")


class ChipCommands(Commands):
    """All commands, for one tile at a time.

    Args:
        debug: the tiles.
        output: takes a text of one or more lines.
        choose: called with the session of a tile that becomes the chosen one.
    """

    def __init__(self, debug: ChipDebug, output: Callable[[str], None], choose: Callable[[DebugSession], None]) -> None:
        super().__init__(next(iter(debug.sessions.values())), output)
        self._debug = debug
        self._chosen = choose
        self.table["tile"] = self.tile

    def tile(self, text: str) -> None:
        """tile [X,Y]: choose the tile that commands and new breakpoints are for; without X,Y, where all tiles are."""
        if not text:
            for (x, y), session in self._debug.sessions.items():
                mark = "=>" if session is self.session else "  "
                self._print(f"{mark} {x},{y} " + session.machine.explain().strip().replace("\n", "\n" + 9 * " "))
            return
        match = _PLACE.fullmatch(text)
        if match is None:
            raise DebugError(f"{text!r} is not a tile", remedy="say for example: tile 1,2")
        self._take(self._debug[int(match[1]), int(match[2])])
        self._print(self.where())

    def _take(self, session: DebugSession) -> None:
        self.session = session
        self._chosen(session)

    def _choose(self, stop: Stop) -> None:
        if stop.place is not None:
            self._take(self._debug[stop.place])
