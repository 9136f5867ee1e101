"""The debugger's command line: commands have gdb's names where gdb has the command."""

from __future__ import annotations

import cmd
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final

from bhemu.client.attached import Attached
from bhemu.client.remote_interpreter import RemoteInterpreter
from bhemu.debugger.chip_session import ChipDebug
from bhemu.debugger.commands.interpreter import Interpreter
from bhemu.debugger.session import DebugSession
from bhemu.errors import BhemuError

PROMPT: Final = "(bhemu) "
HISTORY: Final = ".bhemu_history"
HISTORY_LINES: Final = 1000
DEEPEST_SOURCE: Final = 16


class Shell(cmd.Cmd):
    """Reads commands and executes them.

    Args:
        target: what is debugged: a tile, tiles of a chip, or a running client.
        show_error: tells the user why a command was refused.
        output: where results go; standard output by default.
    """

    def __init__(
        self,
        target: DebugSession | ChipDebug | Attached,
        show_error: Callable[[BhemuError], Any],
        output: IO[str] | None = None,
    ) -> None:
        super().__init__(stdout=output)
        self._show_error = show_error
        self.use_rawinput = False
        self._interpreter: Interpreter | RemoteInterpreter
        more = {"source": self._execute_file}
        if isinstance(target, Attached):
            self._interpreter = RemoteInterpreter(target, self._print, self._refuse, self._poll, more)
        else:
            self._interpreter = Interpreter(target, self._print, self._refuse, self._poll, more)
        self._interrupted = False
        self._refused = False
        self._sources = 0

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
                self._print(self._interpreter.where())
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

    def show(self, error: BhemuError) -> None:
        """Print an error that ends the session."""
        self._refuse(error)

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Ctrl-C ends a run between two rounds; at the prompt it ends the line."""

        def interrupt(_signal: int, _frame: Any) -> None:
            if not self._interpreter.running:
                raise KeyboardInterrupt
            self._interrupted = True
            self._interpreter.interrupt()

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
        self._show_error(error)

    def onecmd(self, line: str) -> bool:
        """Execute a line; True when the session ends."""
        self._interrupted = False
        return self._interpreter.execute(line)

    def completenames(self, text: str, *_: Any) -> list[str]:
        """Commands that begin so, for the Tab key."""
        return [each for each in self._interpreter.names if each.startswith(text)]

    def completedefault(self, *arguments: Any) -> list[str]:
        """Symbols that begin so, for the Tab key."""
        return self._interpreter.symbols(str(arguments[0]))
