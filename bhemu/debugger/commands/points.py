"""The debugger's commands for breakpoints and watchpoints."""

from __future__ import annotations

import re
from typing import Any

from bhemu.debugger.breakpoints import Breakpoint, DebugError
from bhemu.debugger.commands.base import CommandBase
from bhemu.debugger.watchpoints import register_number
from bhemu.isa.registers import CONFIG_FIELDS, THREAD_FIELDS


class PointCommands(CommandBase):
    """Breakpoints and watchpoints."""

    def _place_and_more(self, text: str) -> tuple[str, list[str] | None, str | None]:
        """`PLACE [core NAMES] [if CONDITION]`, parsed."""
        match = re.match(r"(.*?)(?:^|\s)if\s+(.*)$", text, re.S)
        place, condition = (match[1], match[2].strip()) if match is not None else (text, None)
        where, named, names = place.partition(" core ")
        cores = re.split(r"[,\s]+", names.strip()) if named else None
        return where.strip(), cores, condition

    def _break(self, text: str, temporary: bool) -> None:
        session = self.session
        place, cores, condition = self._place_and_more(text)
        if not place:
            place = f"*{session.runner.state(session.core).pc}"
        item = session.break_at(place, cores=cores, condition=condition, temporary=temporary)
        self._print(f"breakpoint {item.describe().rpartition('; ')[0]}")

    def break_(self, text: str) -> None:
        """break PLACE [core NAME...] [if CONDITION]: stop before an instruction.
        PLACE is a function (main, T1.main), FILE:LINE, LINE, *ADDRESS or 0x...; without one, where the core is.
        """
        self._break(text, False)

    def tbreak(self, text: str) -> None:
        """tbreak PLACE [core NAME...] [if CONDITION]: the same, for one time."""
        self._break(text, True)

    def catch(self, text: str) -> None:
        """catch MNEMONIC [core NAME... | thread N...]: stop before a RISC-V instruction, or after a Tensix one.
        RISC-V mnemonics (mul, .ttinsn) stop a core that is about to execute them; Tensix mnemonics (MVMUL) stop the
        tile when a thread of the coprocessor has executed one.
        """
        words = self._words(self._need(text, "catch MNEMONIC"))
        cores = threads = None
        if len(words) > 1:
            if words[1] not in ("core", "thread") or len(words) == 2:
                raise DebugError(
                    f"{words[1]!r} is not understood", remedy="say: catch MVMUL thread 1, catch mul core T1"
                )
            if words[1] == "core":
                cores = words[2:]
            else:
                threads = [self._number(word, "thread") for word in words[2:]]
        item = self.session.break_on(words[0], cores=cores, threads=threads)
        if (cores and item.opcode is not None) or (threads and item.opcode is None):
            self.session.delete(item.number)
            raise DebugError(
                f"{words[0]} is executed by {'threads' if cores else 'cores'}",
                remedy="Tensix instructions take `thread N`, those of RISC-V `core NAME`",
            )
        self._print(f"breakpoint {item.describe().rpartition('; ')[0]}")

    def watch(self, text: str) -> None:
        """watch WHAT: stop when it has changed.
        WHAT is a variable, *ADDRESS or ADDRESS,BYTES (memory), $REGISTER, a configuration field by name [bank or
        thread], semaphore N, dst, srca, srcb, or any expression. Compared after every round: the run is slower.
        """
        self._watch(self._need(text, "watch WHAT"), "write")

    def rwatch(self, text: str) -> None:
        """rwatch WHAT: stop when a core has loaded from memory (a variable, *ADDRESS or ADDRESS,BYTES)."""
        self._watch(self._need(text, "rwatch WHAT"), "read")

    def awatch(self, text: str) -> None:
        """awatch WHAT: stop when a core has loaded from or stored to memory."""
        self._watch(self._need(text, "awatch WHAT"), "access")

    def _watch(self, text: str, kind: str) -> None:
        item = self._watched(text, kind)
        self._print(f"watchpoint {item.describe().rpartition('; ')[0]}")

    def _watched(self, text: str, kind: str) -> Any:
        session, words = self.session, text.split()
        if kind == "write":
            if words[0] in ("semaphore", "sem") and len(words) == 2:
                return session.watch_semaphore(self._number(words[1], "semaphore"))
            if text.lower() in ("dst", "srca", "srcb"):
                return session.watch_file(text)
            name = words[1] if words[0] == "config" and len(words) > 1 else words[0]
            if name in CONFIG_FIELDS or name in THREAD_FIELDS or words[0] == "config":
                behind = words[words.index(name) + 1 :]
                return session.watch_config(name, self._number(behind[0], "bank") if behind else 0)
            if text.startswith("$") and register_number(text[1:]) is not None:
                return session.watch_register(text)
        if text.startswith("*"):
            return session.watch_memory(self._number(text[1:], "address") & 0xFFFFFFFF, 4, kind=kind, text=text)
        if "," in text:
            address, _, size = text.partition(",")
            return session.watch_memory(self._number(address, "address"), self._number(size, "bytes"), kind=kind)
        symbol = session.object_named(text)
        if symbol is not None:
            return session.watch_memory(symbol.address, max(symbol.size, 1), kind=kind, text=text)
        if kind != "write":
            return session.watch_memory(self._number(text, "address"), 4, kind=kind, text=text)
        return session.watch_expression(text)

    def last_write(self, text: str) -> None:
        """last-write WHAT: who has written it last, since the history of the session begins; nothing moves.
        WHAT is what `watch` takes, or a row of a register file: dst 5, srca 3, srcb 0.
        """
        words = self._need(text, "last-write WHAT").split()
        session, numbers = self.session, {item.number for item in self.session.points()}
        if len(words) == 2 and words[0].lower() in ("dst", "srca", "srcb"):
            watch = session.watch_row(words[0], self._number(words[1], "row"))
        else:
            watch = self._watched(text, "write")
        for item in session.points():
            if item.number not in numbers:
                session.delete(item.number)
        self.running = True
        try:
            stop = session.last_write(watch)
        finally:
            self.running = False
        if stop is None:
            self._print(f"{watch.text}: not written since clock {session.runner.history.checkpoints[0].clock:,}")
        else:
            self._print(f"clock {stop.clock:,}: {stop.text.partition(': ')[2]}")

    def condition(self, text: str) -> None:
        """condition NUMBER [EXPRESSION]: give a breakpoint a condition, or remove it."""
        number, _, expression = self._need(text, "condition NUMBER EXPRESSION").partition(" ")
        item = self.session.point(self._number(number, "breakpoint"))
        if not isinstance(item, Breakpoint) or item.opcode is not None:
            raise DebugError(f"{item.number} takes no condition", remedy="breakpoints of cores do")
        self.session.set_condition(item, expression.strip() or None)

    def ignore(self, text: str) -> None:
        """ignore NUMBER TIMES: skip a breakpoint this many times."""
        words = self._need(text, "ignore NUMBER TIMES").split()
        if len(words) != 2:
            raise DebugError("two numbers are needed", remedy="say: ignore 1 10")
        item = self.session.point(self._number(words[0], "breakpoint"))
        if not isinstance(item, Breakpoint):
            raise DebugError(f"{item.number} is a watchpoint", remedy="give a breakpoint's number")
        item.ignore = max(0, self._number(words[1], "times"))

    def _enable(self, text: str, enabled: bool) -> None:
        words = text.split()
        chosen = [self.session.point(self._number(word, "breakpoint")) for word in words]
        for item in chosen or self.session.points():
            item.enabled = enabled

    def enable(self, text: str) -> None:
        """enable [NUMBER...]: let breakpoints and watchpoints stop the tile; all without a number."""
        self._enable(text, True)

    def disable(self, text: str) -> None:
        """disable [NUMBER...]: keep them, but do not stop at them; all without a number."""
        self._enable(text, False)

    def delete(self, text: str) -> None:
        """delete [NUMBER...]: delete breakpoints and watchpoints; all without a number."""
        numbers = [self._number(word, "breakpoint") for word in text.split()]
        for number in numbers:
            self.session.point(number)
        if not numbers:
            self.session.delete()
        for number in numbers:
            self.session.delete(number)
