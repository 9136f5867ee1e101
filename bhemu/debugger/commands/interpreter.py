"""Executes lines of commands: which command a name means, help, and what an empty line repeats."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from bhemu.debugger.breakpoints import DebugError
from bhemu.debugger.chip_session import ChipDebug
from bhemu.debugger.commands.chip import ChipCommands
from bhemu.debugger.commands.inspect import Commands
from bhemu.debugger.reports import REPORTS, report
from bhemu.debugger.session import DebugSession
from bhemu.errors import BhemuError

_NAME = re.compile(r"(x(?=/)|p(?:rint)?(?=/)|(?:reverse|last)-[a-z]+|[A-Za-z]+|\?)(.*)")


class Interpreter:
    """Executes lines of commands.

    Args:
        target: what is debugged: a tile, or tiles of a chip.
        output: takes a text of one or more lines.
        refuse: takes the error of a command that was refused.
        poll: asked now and then while the machine runs; True interrupts the run.
        more: further commands, by name.

    Attributes:
        commands: that there are.
        session: of the chosen tile.
    """

    def __init__(
        self,
        target: DebugSession | ChipDebug,
        output: Callable[[str], None],
        refuse: Callable[[BhemuError], None],
        poll: Callable[[], bool],
        more: Mapping[str, Callable[[str], Any]] | None = None,
    ) -> None:
        self._print = output
        self._refuse = refuse
        self._poll = poll
        self._more = more or {}
        if isinstance(target, ChipDebug):
            self.commands: Commands = ChipCommands(target, output, self._take)
        else:
            self.commands = Commands(target, output)
        self._take(self.commands.session)

    def _take(self, session: DebugSession) -> None:
        """Commands are for this tile from now on."""
        self.session = session
        session.poll = self._poll

    @property
    def running(self) -> bool:
        """The machine runs."""
        return self.commands.running

    def interrupt(self) -> None:
        """Nothing: `poll` is asked."""

    def where(self) -> str:
        """The chosen core's place."""
        return self.commands.where()

    @property
    def names(self) -> list[str]:
        """Of all commands and reports."""
        return sorted({*self.commands.table, *REPORTS, *self._more, "help"})

    def execute(self, line: str) -> bool:
        """Execute a line; True when the session ends. An empty line repeats a command that steps."""
        text = line.strip()
        if text.startswith("#"):
            return False
        if not text:
            text = self.commands.repeated or ""
            if not text:
                return False
        match = _NAME.match(text)
        try:
            if match is None:
                raise DebugError(f"{text!r} is not a command", remedy="`help` lists the commands")
            name, rest = match[1], match[2].strip()
            if name in ("help", "h", "?"):
                self._print_help(rest)
                return False
            if name in self._more:
                return self._more[name](rest) is True
            function = self._find(name)
            self.commands.repeated = text if getattr(function, "repeats", False) else None
            return function(rest) is True
        except BhemuError as error:
            self.commands.repeated = None
            self._refuse(error)
            return False

    def _find(self, name: str) -> Callable[[str], Any]:
        """The function of a command, by name, alias or the beginning of a name that no other has."""
        table = self.commands.table
        if name in table:
            return table[name]
        if name in self._more:
            return self._more[name]
        if name == "help":
            return self._print_help
        if name in REPORTS:
            return lambda rest: self._print(report(self.session, f"{name} {rest}"))
        known = self.names
        fitting = [each for each in known if each.startswith(name) and len(each) > 2]
        functions = {id(getattr(table.get(each), "__func__", each)) for each in fitting}
        if len(functions) == 1:
            return self._find(fitting[0])
        if fitting:
            raise DebugError(f"{name!r} may be {', '.join(fitting)}", remedy="type more of the name")
        close = get_close_matches(name, known, n=3)
        raise DebugError(
            f"there is no command {name!r}",
            remedy=f"did you mean {' or '.join(close)}?" if close else "`help` lists the commands",
        )

    def _print_help(self, name: str) -> None:
        """List the commands, or say more about one."""
        self._print(self._help(name))

    def _help(self, name: str) -> str:
        table = self.commands.table
        if name:
            if name in REPORTS:
                return f"{REPORTS[name].usage}\n  {REPORTS[name].help}"
            function: Any = self._find(name)
            aliases = sorted(each for each, other in table.items() if other == function) or [name]
            text = "\n".join(line.strip() for line in (function.__doc__ or "").strip().splitlines())
            return f"{', '.join(aliases)}: {text}"
        lines = ["Commands (help COMMAND says more; a unique beginning is enough):"]
        shown: set[Any] = set()
        for each, function in table.items():
            if function not in shown:
                shown.add(function)
                first = (function.__doc__ or "").strip().splitlines()[0]
                lines.append(f"  {each:12} {first}")
        lines.append("What can be looked at, with or without `info`:")
        lines += [f"  {item.usage:56} {item.help}" for item in REPORTS.values()]
        return "\n".join(lines)

    def symbols(self, text: str) -> list[str]:
        """Symbols that begin so."""
        found = {s.display for each in self.session.executables() for s in each.symbols if s.display.startswith(text)}
        return sorted(found)[:100]
