"""What all the debugger's commands need."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any, Final, TypeVar

from bhemu.debugger import show
from bhemu.debugger.breakpoints import DebugError
from bhemu.debugger.reports import REPORTS, report
from bhemu.debugger.session import DebugSession
from bhemu.debugger.stops import Stop
from bhemu.errors import BhemuError

LARGEST_COUNT: Final = 1024
Function = TypeVar("Function", bound=Callable[..., Any])


def repeats(function: Function) -> Function:
    """An empty line executes the command again."""
    function.repeats = True  # type: ignore[attr-defined]
    return function


class CommandBase:
    """The state that commands share.

    Args:
        session: what is debugged.
        output: takes a text of one or more lines.

    Attributes:
        repeated: the command that an empty line repeats.
        running: the tile is running.
        displayed: what is shown at every stop.
    """

    def __init__(self, session: DebugSession, output: Callable[[str], None]) -> None:
        self.session = session
        self._print = output
        self.repeated: str | None = None
        self.running = False
        self.displayed: list[str] = []

    def where(self) -> str:
        """The chosen core's place."""
        return show.around(self.session, self.session.core)

    # --- helpers ----------------------------------------------------------------------------------------------------

    def _number(self, text: str, what: str = "count") -> int:
        try:
            return self.session.value(text)
        except DebugError as error:
            raise DebugError(f"{what}: {error.message}", remedy=error.remedy) from None

    def _count(self, text: str) -> int:
        return self._number(text) if text else 1

    def _go(self, move: Callable[[], Stop]) -> Stop:
        self.running = True
        try:
            stop = move()
        finally:
            self.running = False
        self._show(stop)
        return stop

    def _show(self, stop: Stop) -> None:
        self._choose(stop)
        session = self.session
        if stop.core is not None:
            session.core = stop.core
        if stop.text:
            where = "" if stop.place is None else f"tile {stop.place[0]},{stop.place[1]}: "
            self._print(f"clock {stop.clock:,}: {where}{stop.text}")
        self._print(self.where())
        for text in self.displayed:
            self._print(f"{text}: {self._shown(text)}")

    def _choose(self, stop: Stop) -> None:
        """On a chip, the tile that a stop concerns becomes the chosen one."""

    def _shown(self, text: str) -> str:
        try:
            words = text.split()
            if words and words[0] in REPORTS:
                return report(self.session, text)
            value = self.session.value(text)
        except BhemuError as error:
            return error.message
        return f"{value} ({value & 0xFFFFFFFF:#x})"

    def _words(self, text: str) -> list[str]:
        try:
            return shlex.split(text)
        except ValueError as error:
            raise DebugError(f"{text!r}: {error}", remedy="close the quotes") from None

    def _need(self, text: str, usage: str) -> str:
        if not text.strip():
            raise DebugError("an argument is missing", remedy=f"say: {usage}")
        return text.strip()
