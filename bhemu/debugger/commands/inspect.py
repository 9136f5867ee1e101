"""The debugger's commands by name, and those that look and write."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from bhemu.debugger import show
from bhemu.debugger.breakpoints import DebugError
from bhemu.debugger.commands.base import LARGEST_COUNT, repeats
from bhemu.debugger.commands.moves import MoveCommands
from bhemu.debugger.commands.points import PointCommands
from bhemu.debugger.names import CoreScope
from bhemu.debugger.reports import REPORTS, report
from bhemu.debugger.session import DebugSession
from bhemu.debugger.watchpoints import register_number
from bhemu.isa.registers import CONFIG_FIELDS, THREAD_FIELDS
from bhemu.machine.state import L1_SIZE

DISASSEMBLED: Final = 12
_UNITS: Final = {"b": 1, "h": 2, "w": 4}
_FORMAT: Final = re.compile(r"/(\d*)([xdutcfis]?)([bhw]?)([xdutcfis]?)(?:\s+|$)(.*)")


class Commands(PointCommands, MoveCommands):
    """All commands.

    Attributes:
        table: functions by name and alias.
    """

    def __init__(self, session: DebugSession, output: Callable[[str], None]) -> None:
        super().__init__(session, output)
        self._next_address: int | None = None
        self._last_format = (1, "x", 4)
        names: dict[str, Callable[[str], Any]] = {
            "break": self.break_, "b": self.break_, "tbreak": self.tbreak, "catch": self.catch,
            "watch": self.watch, "rwatch": self.rwatch, "awatch": self.awatch,
            "condition": self.condition, "ignore": self.ignore, "enable": self.enable, "disable": self.disable,
            "delete": self.delete, "d": self.delete,
            "continue": self.continue_, "c": self.continue_, "run": self.run, "r": self.run,
            "step": self.step, "s": self.step, "next": self.next, "n": self.next,
            "stepi": self.stepi, "si": self.stepi, "nexti": self.nexti, "ni": self.nexti,
            "reverse-step": self.reverse_step, "rs": self.reverse_step, "reverse-stepi": self.reverse_stepi,
            "rsi": self.reverse_stepi, "reverse-continue": self.reverse_continue, "rc": self.reverse_continue,
            "last-write": self.last_write, "history": self.history,
            "finish": self.finish, "fin": self.finish, "until": self.until, "u": self.until,
            "advance": self.advance, "resume": self.resume, "jump": self.jump,
            "core": self.core, "thread": self.core,
            "info": self.info, "i": self.info, "where": self.backtrace, "backtrace": self.backtrace,
            "bt": self.backtrace, "list": self.list_, "l": self.list_, "disassemble": self.disassemble,
            "disas": self.disassemble, "x": self.x, "print": self.print_, "p": self.print_, "set": self.set_,
            "display": self.display, "undisplay": self.undisplay, "echo": self.echo,
            "quit": self.quit, "q": self.quit, "exit": self.quit,
        }  # fmt: skip
        self.table = names

    def core(self, text: str) -> None:
        """core [NAME | NUMBER]: choose the core (B, T0, T1, T2, NC; numbers as `info threads` shows them)."""
        session = self.session
        if text:
            session.core = session.number_of_core(int(text) - 1 if text.isdigit() else text)
        self._print(self.where())

    def info(self, text: str) -> None:
        """info WHAT: breakpoints, registers [NAME...], line, symbol ADDRESS, functions [TEXT], or what help lists."""
        what, _, rest = self._need(text, "info breakpoints | registers | threads | ...").partition(" ")
        session, rest = self.session, rest.strip()
        if what in ("breakpoints", "break", "b", "watchpoints"):
            self._print("\n".join(item.describe() for item in session.points()) or "no breakpoints or watchpoints")
        elif what in ("registers", "r", "reg"):
            self._print(show.registers(session, session.core, rest.split()))
        elif what in ("line", "frame", "source"):
            self._print(self.where())
        elif what in ("symbol", "sym"):
            address = self._number(self._need(rest, "info symbol ADDRESS"), "address")
            name = session.name_of_word(address)
            self._print(f"{address:#x} {name}" if name else session.describe(session.core, address))
        elif what in ("functions", "fun"):
            self._functions(rest)
        else:
            self._print(report(session, text))

    def _functions(self, text: str) -> None:
        for core, executable in self.session.machine.executables:
            for symbol in executable.symbols:
                if symbol.kind == "function" and text.lower() in symbol.display.lower():
                    self._print(f"{core:2} {symbol.address:#07x} {symbol.display} ({symbol.size} bytes)")

    def backtrace(self, text: str) -> None:
        """backtrace: the functions of the chosen core that have not returned; guesses are called so."""
        self._print(show.stack(self.session, self.session.number_of_core(text or None)))

    def list_(self, text: str) -> None:
        """list [LINE | FILE:LINE | FUNCTION]: source lines, by default around the core's pc."""
        session = self.session
        if not text:
            self._print(show.listing(session, session.core))
            return
        file, colon, line = text.rpartition(":")
        now = session.line(session.core)
        if not (colon and line.isdigit()):
            if text.isdigit() and now is not None:
                self._print(show.listing(session, session.core, now.file, int(text)))
                return
            address = session.locate(text)
            executable = session.executable_at(session.core, address)
            found = None if executable is None else executable.line_at(address)
            if found is None:
                raise DebugError(f"{text} has no source line", remedy="compile with -g")
            file, line = found.file, str(found.line)
        else:
            file = session.source_file(file) or file
        self._print(show.listing(session, session.core, file, int(line)))

    def disassemble(self, text: str) -> None:
        """disassemble [PLACE [COUNT]]: instructions, by default those around the pc; => marks it, * a breakpoint."""
        session, words = self.session, text.split()
        if words:
            start = session.locate(words[0])
            count = self._number(words[1]) if len(words) > 1 else DISASSEMBLED
        else:
            pc = session.runner.state(session.core).pc
            start, count = max(0, pc - 4 * 4), DISASSEMBLED
        if not 0 < count <= LARGEST_COUNT:
            raise DebugError(f"{count} instructions", remedy=f"say 1 to {LARGEST_COUNT}")
        self._print(show.disassembly(session, session.core, start, count))

    @repeats
    def x(self, text: str) -> None:
        """x[/COUNT FORMAT UNIT] ADDRESS: memory as the chosen core finds it.
        FORMAT is x, d, u, t, c, f, i (instructions) or s (string); UNIT is b, h or w. Repeated: what follows.
        """
        session = self.session
        count, how, unit = self._last_format
        if text.startswith("/"):
            match = _FORMAT.match(text)
            if match is None:
                raise DebugError(f"{text.split()[0]!r} is not a format", remedy="for example x/4xw 0x20000, x/8i main")
            count = int(match[1] or 1)
            how = match[2] or match[4] or ("x" if how in "is" else how)
            unit = _UNITS.get(match[3], 4 if how != "c" else 1)
            text = match[5]
        if not 0 < count <= LARGEST_COUNT:
            raise DebugError(f"{count} units", remedy=f"say 1 to {LARGEST_COUNT}")
        if text:
            symbol = session.object_named(text.strip())
            address = symbol.address if symbol is not None else self._number(text, "address") & 0xFFFFFFFF
        elif self._next_address is not None:
            address = self._next_address
        else:
            raise DebugError("which address?", remedy="say: x/4xw 0x20000")
        self._last_format = (count, how, unit)
        self._print(show.memory(session, session.core, address, count, unit, how))
        self._next_address = address + count * (4 if how == "i" else unit)
        self.repeated = "x"

    def print_(self, text: str) -> None:
        """print[/FORMAT] EXPRESSION: its value; FORMAT is x, d, u or t.
        $a0 is a register, main an address, flag the value of a variable, &flag its address, *x the word at x; a
        configuration field by its name.
        """
        how = ""
        if text.startswith("/"):
            how, _, text = text[1:].partition(" ")
        value = self.session.value(self._need(text, "print EXPRESSION"))
        word = value & 0xFFFFFFFF
        shown = {"x": f"{word:#x}", "d": str(word - (word >> 31 << 32)), "u": str(word), "t": f"{word:#b}", "": ""}
        if how not in shown:
            raise DebugError(f"{how!r} is not a format", remedy="use /x, /d, /u or /t")
        if how:
            self._print(shown[how])
            return
        name = self.session.describe(self.session.core, value) if 0 <= value < L1_SIZE else ""
        place = name.partition(" ")[2]
        self._print(f"{value} ({word:#x})" + (f" {place}" if place else ""))

    def set_(self, text: str) -> None:
        """set $REGISTER = VALUE, set VARIABLE = VALUE, set *ADDRESS = VALUE, set FIELD = VALUE: write.
        Memory is written in words of 4 bytes, variables in their size.
        """
        session = self.session
        match = re.fullmatch(r"(?:var\s+)?([^=<>!]+?)\s*=(?!=)\s*(.+)", text)
        if match is None:
            raise DebugError(f"set {text}: an = is missing", remedy="say: set $a0 = 5")
        target, value = match[1].strip(), self._number(match[2], "value")
        word = value & 0xFFFFFFFF
        if target.startswith("$"):
            number = register_number(target[1:])
            if target == "$pc":
                session.runner.set_pc(session.core, word)
            elif number is None:
                raise DebugError(f"no register is named {target}", remedy="use $a0, $sp, $x5, ... or $pc")
            else:
                session.runner.set_register(session.core, number, word)
            return
        if target in CONFIG_FIELDS or target in THREAD_FIELDS:
            session.runner.history.changed()
            session.tile.config[target] = value
            return
        if target.startswith("*"):
            session.write_memory(self._number(target[1:], "address") & 0xFFFFFFFF, word.to_bytes(4, "little"))
            return
        symbol = session.object_named(target)
        if symbol is None:
            CoreScope(session, session.core).name_address(target)  # refuses what is not there
            raise DebugError(f"{target} is not a variable", remedy="say: set *ADDRESS = VALUE")
        size = symbol.size if symbol.size in (1, 2, 4) else 4
        session.write_memory(symbol.address, (value & ((1 << 8 * size) - 1)).to_bytes(size, "little"))

    def display(self, text: str) -> None:
        """display [EXPRESSION | NAME...]: show it at every stop; without one, show all now."""
        if text:
            words = text.split()
            if words[0] not in REPORTS:
                self.session.value(text)
            self.displayed.append(text)
        for each in [text] if text else self.displayed:
            self._print(f"{each}: {self._shown(each)}")

    def undisplay(self, text: str) -> None:
        """undisplay: no longer show anything at every stop."""
        if text:
            raise DebugError("undisplay takes nothing", remedy="it ends all displays")
        self.displayed = []

    def echo(self, text: str) -> None:
        """echo TEXT: print it, in scripts."""
        self._print(text)

    def quit(self, _text: str) -> bool:
        """quit: end the session."""
        return True
