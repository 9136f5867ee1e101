"""Commands for a running client's debugger, as `bhemu.debugger.commands.interpreter` takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bhemu.client.attached import Attached
from bhemu.errors import BhemuError


class RemoteInterpreter:
    """Sends lines of commands to a running client's debugger.

    Args:
        attached: to it.
        output: takes a text of one or more lines.
        refuse: takes the error of a command that was refused.
        poll: True once after an interrupt that came too late for a command.
        more: commands that are executed here, by name.

    Attributes:
        running: a command is being executed.
    """

    def __init__(
        self,
        attached: Attached,
        output: Callable[[str], None],
        refuse: Callable[[BhemuError], None],
        poll: Callable[[], bool],
        more: Mapping[str, Callable[[str], Any]],
    ) -> None:
        self._attached = attached
        self._print = output
        self._refuse = refuse
        self._poll = poll
        self._more = more
        self.running = False

    def execute(self, line: str) -> bool:
        """Execute a line; True when the session ends, also because the client has ended."""
        name, _, rest = line.strip().partition(" ")
        if name in self._more:
            return self._more[name](rest.strip()) is True
        self._poll()
        self.running = True
        try:
            return self._attached.execute(line, self._print, self._refuse)
        except BhemuError as error:
            self._refuse(error)
            return True
        finally:
            self.running = False

    def interrupt(self) -> None:
        """Stop the chip while a command is being executed."""
        self._attached.interrupt()

    def where(self) -> str:
        """The chosen core's place."""
        return self._attached.command("info line")

    @property
    def names(self) -> list[str]:
        """Of all commands and reports."""
        return [*self._attached.ask("names"), *self._more]

    def symbols(self, text: str) -> list[str]:
        """Symbols that begin so."""
        return list(self._attached.ask("symbols", text))
