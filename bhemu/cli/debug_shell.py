"""The debugger's command line: commands have gdb's names where gdb has the command."""

from __future__ import annotations

import cmd
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import IO, Any, Final

from bhemu.cli.report import show_error
from bhemu.debugger.chip_session import ChipDebug
from bhemu.debugger.commands.chip import ChipCommands
from bhemu.debugger.commands.inspect import Commands
from bhemu.debugger.reports import REPORTS, report
from bhemu.debugger.session import DebugSession
from bhemu.errors import BhemuError

PROMPT: Final = "(bhemu) "
HISTORY: Final = ".bhemu_history"
HISTORY_LINES: Final = 1000
DEEPEST_SOURCE: Final = 16


class Shell(cmd.Cmd):
    """Reads commands and executes them.

    Args:
        target: what is debugged: a tile, or tiles of a chip.
        output: where results go; standard output by default.
    """

    def __init__(self, target: DebugSession | ChipDebug, output: IO[str] | None = None) -> None:
        super().__init__(stdout=output)
        self.use_rawinput = False
        if isinstance(target, ChipDebug):
            self._commands: Commands = ChipCommands(target, self._print, self._take)
        else:
            self._commands = Commands(target, self._print)
        self._take(self._commands.session)
        self._interrupted = False
        self._refused = False
        self._sources = 0

    def _take(self, session: DebugSession) -> None:
        """Commands are for this tile from now on."""
        self._session = session
        session.poll = self._poll

    # --- reading ----------------------------------------------------------------------------------------------------

    def run(self, commands: list[str], script: Path | None, *, interactive: bool) -> bool:
        """Execute commands, then a script, then those that are typed (or piped in); False when one was refused."""
        ended = False
        with self._interruptible():
            if script is not None:
                ended = self._execute_file(str(script))
            for line in commands:
                ended = ended or bool(self.onecmd(line))
            if interactive and not ended:
                self._read()
        return not self._refused

    def _read(self) -> None:
        if sys.stdin.isatty():
            self._refused = False
            with self._history():
                self._print(self._commands.where())
                self._prompted()
            self._refused = False
            return
        for line in sys.stdin:
            if self.onecmd(line.rstrip("\n")):
                return

    def _prompted(self) -> None:
        while True:
            try:
                line = input(PROMPT)
            except EOFError:
                self._print("")
                return
            except KeyboardInterrupt:
                self._print("^C")
                continue
            if self.onecmd(line):
                return

    @contextmanager
    def _history(self) -> Iterator[None]:
        """Line editing and the history of earlier sessions, where Python has readline."""
        try:
            import readline
        except ImportError:
            yield
            return
        path = Path.home() / HISTORY
        readline.set_completer(self.complete)  # type: ignore[arg-type]
        readline.set_completer_delims(" \t\n")
        readline.parse_and_bind("tab: complete")
        with suppress(OSError):
            readline.read_history_file(path)
        try:
            yield
        finally:
            readline.set_history_length(HISTORY_LINES)
            with suppress(OSError):
                readline.write_history_file(path)

    def _execute_file(self, name: str) -> bool:
        """Execute the commands in a file; True when one of them ends the session."""
        from bhemu.debugger.breakpoints import DebugError

        try:
            if self._sources >= DEEPEST_SOURCE:
                raise DebugError(
                    f"{name}: scripts that read scripts, {DEEPEST_SOURCE} deep", remedy="does it read itself?"
                )
            try:
                lines = Path(name).read_text().splitlines()
            except (OSError, UnicodeDecodeError) as error:
                reason = getattr(error, "strerror", None) or "it is not text"
                raise DebugError(f"{name} cannot be read: {reason}", remedy="name a file of commands") from None
        except BhemuError as error:
            self._refuse(error)
            return False
        self._sources += 1
        try:
            return any(self.onecmd(line) for line in lines)
        finally:
            self._sources -= 1

    # --- interrupting -----------------------------------------------------------------------------------------------

    def _poll(self) -> bool:
        interrupted, self._interrupted = self._interrupted, False
        return interrupted

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Ctrl-C ends a run between two rounds; at the prompt it ends the line."""

        def interrupt(_signal: int, _frame: Any) -> None:
            if not self._commands.running:
                raise KeyboardInterrupt
            self._interrupted = True

        try:
            previous = signal.signal(signal.SIGINT, interrupt)
        except ValueError:  # not in the main thread
            yield
            return
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, previous)

    # --- executing --------------------------------------------------------------------------------------------------

    def _print(self, text: str) -> None:
        print(text, file=self.stdout, flush=True)

    def _refuse(self, error: BhemuError) -> None:
        self._refused = True
        self.stdout.flush()
        show_error(error)

    def onecmd(self, line: str) -> bool:
        """Execute a line; True when the session ends. An empty line repeats a command that steps."""
        from bhemu.debugger.breakpoints import DebugError

        text = line.strip()
        if text.startswith("#"):
            return False
        if not text:
            text = self._commands.repeated or ""
            if not text:
                return False
        match = re.match(r"(x(?=/)|p(?:rint)?(?=/)|(?:reverse|last)-[a-z]+|[A-Za-z]+|\?)(.*)", text)
        try:
            if match is None:
                raise DebugError(f"{text!r} is not a command", remedy="`help` lists the commands")
            name, rest = match[1], match[2].strip()
            if name in ("help", "h", "?"):
                self._print(self._help(rest))
                return False
            if name == "source":
                return self._execute_file(rest)
            function = self._find(name)
            self._interrupted = False
            self._commands.repeated = text if getattr(function, "repeats", False) else None
            return function(rest) is True
        except BhemuError as error:
            self._commands.repeated = None
            self._refuse(error)
            return False

    def _find(self, name: str) -> Callable[[str], Any]:
        """The function of a command, by name, alias or the beginning of a name that no other has."""
        from bhemu.debugger.breakpoints import DebugError

        table = self._commands.table
        if name in table:
            return table[name]
        if name in REPORTS:
            return lambda rest: self._print(report(self._session, f"{name} {rest}"))
        known = sorted({*table, *REPORTS, "help", "source"})
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

    def _help(self, name: str) -> str:
        table = self._commands.table
        if name:
            if name in REPORTS:
                return f"{REPORTS[name].usage}\n  {REPORTS[name].help}"
            function: Any = self._find(name)
            aliases = sorted(each for each, other in table.items() if other == function)
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

    def completenames(self, text: str, *_: Any) -> list[str]:
        """Commands that begin so, for the Tab key."""
        return sorted(each for each in {*self._commands.table, *REPORTS, "help", "source"} if each.startswith(text))

    def completedefault(self, *arguments: Any) -> list[str]:
        """Symbols that begin so, for the Tab key."""
        text = str(arguments[0])
        return sorted(
            {s.display for each in self._session.executables() for s in each.symbols if s.display.startswith(text)}
        )[:100]
