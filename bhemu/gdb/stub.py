"""Answers to GDB's packets (GDB manual, "Remote Protocol"): threads, registers, memory, breakpoints, running.

A packet that is malformed gets an error, one that is unknown the empty answer; none may end the connection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from bhemu.api.blocked import explain_core
from bhemu.debugger.breakpoints import Breakpoint, DebugError
from bhemu.debugger.core_view import ADDRESS_SPACE
from bhemu.debugger.reports import report
from bhemu.debugger.session import DebugSession
from bhemu.debugger.stops import Stop
from bhemu.debugger.watchpoints import Watch
from bhemu.errors import BhemuError
from bhemu.gdb import packets, target
from bhemu.machine.agents import CORES
from bhemu.machine.core_state import HALTED, IN_RESET

OK: Final = b"OK"
BAD: Final = b"E01"
"""What was asked for is malformed or cannot be done."""
SIGINT: Final = 2
SIGILL: Final = 4
SIGTRAP: Final = 5
LARGEST_READ: Final = packets.LARGEST // 2
WATCH_KINDS: Final = {"2": "write", "3": "read", "4": "access"}
STOP_NAMES: Final = {"write": "watch", "read": "rwatch", "access": "awatch"}
NUDGE_CLOCKS: Final = 1


class _Malformed(Exception):
    """The packet cannot be understood."""


class Stub:
    """The state of one connection.

    Args:
        session: what is debugged.
        cores: numbers of the cores that are shown as threads; None for all.
        console: sends a packet while the tile runs or before an answer.

    Attributes:
        finished: GDB has detached or killed the program.
        killed: GDB has killed it.
    """

    def __init__(self, session: DebugSession, cores: tuple[int, ...] | None, console: Callable[[bytes], None]) -> None:
        self._session = session
        self._cores = tuple(range(CORES)) if cores is None else cores
        self._console = console
        self._core = session.core if session.core in self._cores else self._cores[0]
        self._continue_core: int | None = None
        self._points: dict[tuple[str, int, int], Breakpoint | Watch] = {}
        self._last = f"T{SIGTRAP:02x}thread:{target.thread_of(self._core):x};".encode()
        self.finished = False
        self.killed = False

    def close(self) -> None:
        """Remove GDB's breakpoints."""
        for item in self._points.values():
            if item in self._session.points():
                self._session.delete(item.number)
        self._points = {}

    def answer(self, packet: bytes) -> bytes | None:
        """The answer to a packet, or None for none."""
        try:
            return self._answer(packet)
        except (_Malformed, BhemuError):
            return BAD

    def _answer(self, packet: bytes) -> bytes | None:
        letter = chr(packet[0]) if packet else ""
        if letter in ("X",):
            return self._write_binary(packet[1:])
        text = packet.decode("latin-1")
        if text.startswith("v"):
            return self._long(text)
        simple: dict[str, Callable[[str], bytes | None]] = {
            "?": lambda _: self._last,
            "g": lambda _: self._read_all(),
            "G": self._write_all,
            "p": self._read_one,
            "P": self._write_one,
            "m": self._read_memory,
            "M": self._write_memory,
            "Z": self._insert,
            "z": self._remove,
            "c": self._continue,
            "C": lambda rest: self._continue(rest.partition(";")[2]),
            "s": self._step,
            "S": lambda rest: self._step(rest.partition(";")[2]),
            "H": self._choose,
            "T": lambda rest: OK if self._core_of(rest) is not None else BAD,
            "D": self._detach,
            "k": self._kill,
            "q": self._query,
            "b": self._backwards,
            "Q": lambda rest: OK if rest == "StartNoAckMode" else b"",
        }
        handler = simple.get(letter)
        return b"" if handler is None else handler(text[1:])

    # --- numbers ----------------------------------------------------------------------------------------------------

    @staticmethod
    def _hex(text: str) -> int:
        if not text or len(text) > 16 or not all(c in "0123456789abcdefABCDEF" for c in text):
            raise _Malformed
        return int(text, 16)

    @classmethod
    def _pair(cls, text: str) -> tuple[int, int]:
        first, comma, second = text.partition(",")
        if not comma:
            raise _Malformed
        return cls._hex(first), cls._hex(second)

    @staticmethod
    def _bytes(text: str) -> bytes:
        try:
            return bytes.fromhex(text)
        except ValueError:
            raise _Malformed from None

    def _core_of(self, text: str) -> int | None:
        """The core of a thread id; -1 and 0 (any) give the chosen one; None when there is no such thread."""
        if text in ("-1", "0", ""):
            return self._core
        core = self._hex(text) - 1
        return core if core in self._cores else None

    # --- registers --------------------------------------------------------------------------------------------------

    def _register(self, number: int) -> int:
        session, record = self._session, self._session.record
        now = session.runner.state(self._core)
        if number < target.PC:
            return int(now.x[number])
        if number == target.PC:
            return now.pc
        if number == target.CFG0:
            return int(record.core_cfg0[self._core])
        if number == target.FCSR:
            return int(record.core_fcsr[self._core])
        raise _Malformed

    def _set_register(self, number: int, content: bytes) -> None:
        if len(content) != 4:
            raise _Malformed
        value, runner, record = int.from_bytes(content, "little"), self._session.runner, self._session.record
        if number < target.PC:
            runner.set_register(self._core, number, value)
        elif number == target.PC:
            runner.set_pc(self._core, value)
        elif number == target.CFG0:
            runner.history.changed()
            record.core_cfg0[self._core] = value
        elif number == target.FCSR:
            runner.history.changed()
            record.core_fcsr[self._core] = value & 0xFF
        else:
            raise _Malformed

    def _read_all(self) -> bytes:
        words = (self._register(number) for number in range(target.REGISTERS))
        return b"".join(word.to_bytes(4, "little").hex().encode() for word in words)

    def _write_all(self, text: str) -> bytes:
        content = self._bytes(text)
        if len(content) % 4 or len(content) > 4 * target.REGISTERS:
            raise _Malformed
        for number in range(len(content) // 4):
            word = content[4 * number : 4 * number + 4]
            if int.from_bytes(word, "little") != self._register(number):
                self._set_register(number, word)
        return OK

    def _read_one(self, text: str) -> bytes:
        return self._register(self._hex(text)).to_bytes(4, "little").hex().encode()

    def _write_one(self, text: str) -> bytes:
        number, equals, value = text.partition("=")
        if not equals:
            raise _Malformed
        self._set_register(self._hex(number), self._bytes(value))
        return OK

    # --- memory -----------------------------------------------------------------------------------------------------

    def _read_memory(self, text: str) -> bytes:
        address, size = self._pair(text)
        return self._session.read_memory(address, min(size, LARGEST_READ), self._core).hex().encode()

    def _write_memory(self, text: str) -> bytes:
        head, colon, content = text.partition(":")
        address, size = self._pair(head)
        data = self._bytes(content)
        if not colon or len(data) != size:
            raise _Malformed
        self._session.write_memory(address, data, self._core)
        return OK

    def _write_binary(self, packet: bytes) -> bytes:
        head, colon, content = packet.partition(b":")
        address, size = self._pair(head.decode("latin-1"))
        data = packets.unescape(content)
        if not colon or len(data) != size:
            raise _Malformed
        self._session.write_memory(address, data, self._core)
        return OK

    # --- breakpoints ------------------------------------------------------------------------------------------------

    def _point(self, text: str) -> tuple[str, int, int]:
        kind, comma, rest = text.partition(",")
        if not comma:
            raise _Malformed
        address, size = self._pair(rest.partition(";")[0])
        return kind, address, size

    def _insert(self, text: str) -> bytes:
        key = kind, address, size = self._point(text)
        if key in self._points:
            return OK
        if kind in ("0", "1"):
            self._points[key] = self._session.break_at(address, cores=self._cores)
        elif kind in WATCH_KINDS:
            self._points[key] = self._session.watch_memory(address, size, self._core, WATCH_KINDS[kind])
        else:
            return b""
        return OK

    def _remove(self, text: str) -> bytes:
        key = self._point(text)
        if key[0] not in ("0", "1", *WATCH_KINDS):
            return b""
        item = self._points.pop(key, None)
        if item is not None and item in self._session.points():
            self._session.delete(item.number)
        return OK

    # --- running ----------------------------------------------------------------------------------------------------

    def _resume_at(self, text: str) -> int:
        core = self._core if self._continue_core is None else self._continue_core
        if text:
            pc = self._hex(text)
            if pc >= ADDRESS_SPACE:
                raise _Malformed
            self._session.runner.set_pc(core, pc)
        return core

    def _continue(self, text: str) -> bytes:
        self._session.core = self._resume_at(text)
        return self._stopped(self._session.continue_())

    def _step(self, text: str) -> bytes:
        return self._step_core(self._resume_at(text))

    def _step_core(self, core: int) -> bytes:
        """One instruction; a core that cannot execute any (reset, halted) lets a clock of the tile pass instead."""
        session = self._session
        if session.record.core_state[core] in (IN_RESET, HALTED):
            return self._stopped(session.until(NUDGE_CLOCKS), core)
        return self._stopped(session.step(core, clocks=None), core)

    def _backwards(self, text: str) -> bytes:
        """`bs` and `bc`: a step backwards of the chosen thread, and back to the last stop."""
        session, core = self._session, self._resume_at("")
        if text not in ("s", "c"):
            raise _Malformed
        session.core = core
        try:
            return self._stopped(session.reverse_step(core) if text == "s" else session.reverse_continue(), core)
        except DebugError as error:
            self._say(f"bhemu: {error}\n")
            raise

    def _stopped(self, stop: Stop, stepped: int | None = None) -> bytes:
        """The stop reply, after words for the user where GDB has none of its own."""
        core = stop.core if stop.core in self._cores else stepped if stepped is not None else self._core
        assert core is not None
        signal = {"interrupted": SIGINT, "fault": SIGILL, "idle": SIGINT}.get(stop.reason, SIGTRAP)
        if stop.reason in ("fault", "idle", "halt", "exit", "present") or (
            stop.reason == "breakpoint" and self._is_own(stop)
        ):
            self._say(f"bhemu: clock {stop.clock}: {stop.text}\n")
        reason = ""
        if stop.watch is not None and stop.watch.address is not None:
            reason = f"{STOP_NAMES[stop.watch.kind]}:{stop.watch.address:x};"
        elif stop.reason == "beginning":
            reason = "replaylog:begin;"
        elif stop.breakpoint is not None and stop.pc in stop.breakpoint.addresses and not self._is_own(stop):
            reason = "swbreak:;"
        self._core = self._session.core = core
        self._last = f"T{signal:02x}thread:{target.thread_of(core):x};{reason}".encode()
        return self._last

    def _is_own(self, stop: Stop) -> bool:
        """The breakpoint is not one of GDB's, or the core is somewhat before it: GDB would be silent."""
        item = stop.breakpoint
        return item is not None and (item not in self._points.values() or stop.pc not in item.addresses)

    def _long(self, text: str) -> bytes | None:
        if text == "vCont?":
            return b"vCont;c;C;s;S"
        if text.startswith("vCont;"):
            return self._vcont(text[6:])
        if text.startswith("vKill"):
            self._kill("")
            return OK
        return b""

    def _vcont(self, text: str) -> bytes:
        """The first action that fits a thread counts for it; one step decides what the whole tile does."""
        stepped: int | None = None
        seen = False
        for action in text.split(";"):
            what, _, thread = action.partition(":")
            core = self._core_of(thread) if thread else self._core
            if core is None or what[:1] not in ("c", "C", "s", "S"):
                raise _Malformed
            seen = True
            if what[:1] in ("s", "S") and stepped is None:
                stepped = core
        if not seen:
            raise _Malformed
        if stepped is not None:
            return self._step_core(stepped)
        return self._continue("")

    def _choose(self, text: str) -> bytes:
        core = self._core_of(text[1:])
        if text[:1] not in ("g", "c") or core is None:
            raise _Malformed
        if text[0] == "g":
            self._core = self._session.core = core
        else:
            self._continue_core = None if text[1:] in ("-1", "0") else core
        return OK

    def _detach(self, _text: str) -> bytes:
        self.finished = True
        return OK

    def _kill(self, _text: str) -> None:
        self.finished = self.killed = True

    # --- questions --------------------------------------------------------------------------------------------------

    def _query(self, text: str) -> bytes:
        name, colon, rest = text.partition(":")
        if name == "Supported":
            features = "qXfer:features:read+;qXfer:threads:read+;QStartNoAckMode+;vContSupported+;swbreak+;hwbreak-"
            features += ";ReverseStep+;ReverseContinue+"
            return f"PacketSize={packets.LARGEST:x};{features}".encode()
        if name == "Xfer" and colon:
            return self._transfer(rest)
        head, comma, argument = text.partition(",")
        if head == "Rcmd" and comma:
            return self._monitor(argument)
        if head == "ThreadExtraInfo" and comma:
            core = self._core_of(argument)
            if core is None:
                raise _Malformed
            return self._doing(core).encode().hex().encode()
        answers: dict[str, bytes] = {
            "fThreadInfo": b"m" + ",".join(f"{target.thread_of(core):x}" for core in self._cores).encode(),
            "sThreadInfo": b"l",
            "C": f"QC{target.thread_of(self._core):x}".encode(),
            "Attached": b"1",
            "Symbol": OK,
            "Offsets": b"",
        }
        return answers.get(name, b"")

    def _doing(self, core: int) -> str:
        session = self._session
        text = explain_core(session.record, core, lambda c, _pc: session.where(c), session.name_of_word)
        return text.rpartition(": ")[2] if session.record.core_state[core] == IN_RESET else text.partition(": ")[2]

    def _transfer(self, text: str) -> bytes:
        parts = text.split(":")
        if len(parts) != 4 or parts[1] != "read":
            return b""
        offset, size = self._pair(parts[3])
        if parts[0] == "features":
            if parts[2] != "target.xml":
                return b"E00"
            document = target.target_xml()
        elif parts[0] == "threads":
            document = target.threads_xml((core, self._doing(core)) for core in self._cores)
        else:
            return b""
        return packets.escape(target.part(document, offset, min(size, LARGEST_READ)))

    def _monitor(self, argument: str) -> bytes:
        line = self._bytes(argument).decode("utf-8", "replace")
        self._session.core = self._core
        try:
            text = self._resume(line) if line.split()[:1] == ["resume"] else report(self._session, line)
        except BhemuError as error:
            text = str(error)
        self._say(f"{text}\n")
        return OK

    def _resume(self, line: str) -> str:
        """`monitor resume [CORE]`: GDB has no word for a thread that has halted by itself and is to go on."""
        core = self._session.number_of_core(line.split()[1] if len(line.split()) > 1 else self._core)
        self._session.runner.resume(core)
        return self._doing(core)

    def _say(self, text: str) -> None:
        """Text on GDB's console, in pieces that fit a packet."""
        content: Any = text.encode()
        for at in range(0, len(content), packets.LARGEST // 4):
            self._console(b"O" + content[at : at + packets.LARGEST // 4].hex().encode())
