"""Whose turn it is: the client, whose calls change the chip, or a debugger, which lets the chip's clocks pass.

A debugger does not move the chip by itself. The client's `libttsim_clock` gives it clocks, which it spends, or holds
back while it is stopped; every other call of the client waits meanwhile. So the client gets what it would get without a
debugger. While one is attached, calls and what the chip reads of the client's memory are kept, to repeat them.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from bhemu.chip.device import Device
from bhemu.chip.pcie.host_memory import HostMemory
from bhemu.errors import BhemuError

LOG_LIMIT: Final = 128 << 20
"""Bytes of calls that are kept."""
_OF_CALL: Final = 120
"""Bytes that a call takes besides its contents, about."""
_LOOK: Final = 0.1
"""Seconds after which a wait looks whether the other side is still there."""
_FAREWELL: Final = 5.0
"""Seconds that the end of the client waits for its debugger."""

Call = tuple[int, str, tuple[Any, ...]]
"""Clock of the chip, function, arguments."""
Cursors = tuple[int, int, int]


class ClientEnded(Exception):
    """There is no client any more."""


class Gate:
    """Lets the client and a debugger take turns.

    Args:
        client_lives: asked now and then.

    Attributes:
        attached: a debugger is there.
        clocks: that the client has asked for, and that have not passed.
        calls: how many calls other than clocks there were.
        error: what the machine has refused, for the client.
        over: why there is no client any more.
        on_overflow: called when too many calls were kept, and they are forgotten.
    """

    def __init__(self, client_lives: Callable[[], bool]) -> None:
        self.attached = False
        self.clocks = 0
        self.calls = 0
        self.error: BhemuError | None = None
        self.over = ""
        self.on_overflow: Callable[[], None] = lambda: None
        self._client_lives = client_lives
        self._turn = threading.Condition()
        self._stopped = self._was_debugged = False
        self._log: list[Call] = []
        self._base = self._cursor = 0
        self._size = 0
        self._reads: list[bytes] = []
        self._read_cursor = self._writes = self._write_cursor = 0

    # --- the client's side ------------------------------------------------------------------------------------------

    def call(self, device: Device | None, name: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Carry out a call of the client, when it is its turn."""
        if name == "exit":
            self._end()
            return function(*arguments)
        with self._turn:
            self._wait(lambda: not self._stopped)
            if name == "clock" and self.attached:
                self._give_clocks(function, *arguments)
                return None
            if self.attached and device is not None and name != "clock":
                self._keep(device.time, name, arguments)
            result = function(*arguments)
            self.calls += 1
            self._turn.notify_all()
            return result

    def _give_clocks(self, function: Callable[[int], None], clocks: int) -> None:
        self.clocks = clocks
        self._turn.notify_all()
        self._wait(lambda: not self.clocks or not self.attached or (self.error is not None and not self._stopped))
        left, self.clocks = self.clocks, 0
        error, self.error = self.error, None
        if error is not None:
            raise error
        if left:
            function(left)

    def _wait(self, until: Callable[[], bool]) -> None:
        """The client waits for its turn; when it was killed meanwhile, the debugger is told, and the process ends."""
        while not until():
            self._turn.wait(_LOOK)
            if not self._client_lives():
                self.over = "the client's process has ended"
                self._turn.notify_all()
                self._wait_for_farewell()
                raise KeyboardInterrupt  # ends this process

    def _end(self) -> None:
        """The client ends its chip, or has ended itself."""
        with self._turn:
            if self._client_lives():
                self._wait(lambda: not self._stopped)
            self.over = "the client has ended its chip" if self._client_lives() else "the client's process has ended"
            self._turn.notify_all()
            self._wait_for_farewell()

    def _wait_for_farewell(self) -> None:
        end = time.monotonic() + _FAREWELL
        while self.attached and time.monotonic() < end:
            self._turn.wait(_LOOK)

    def wait_for_debugger(self) -> None:
        """The client waits until a debugger has attached itself, and was not refused."""
        with self._turn:
            self._wait(lambda: self._was_debugged)

    # --- the debugger's side ----------------------------------------------------------------------------------------

    def attach(self) -> None:
        """A debugger has the chip from now on."""
        with self._turn:
            self.attached = self._stopped = True
            self._turn.notify_all()

    def begin(self) -> None:
        """The debugger has what it asked for: a client that has waited for one goes on."""
        with self._turn:
            self._was_debugged = True
            self._turn.notify_all()

    def detach(self) -> None:
        """The client continues without a debugger."""
        with self._turn:
            self.attached = self._stopped = False
            self._forget()
            self._turn.notify_all()

    def take(self, interrupted: Callable[[], bool] | None) -> int | None:
        """Wait for clocks, or for another call of the client.

        Args:
            interrupted: asked now and then.

        Returns:
            How many clocks may pass; 0: calls were carried out; None: it was interrupted.

        Raises:
            ClientEnded: there will be none.
        """
        with self._turn:
            before = self.calls
            while not self.clocks or self.error is not None:
                self._stopped = False
                self._turn.notify_all()
                self._turn.wait(_LOOK)
                self._stopped = True
                if self.over:
                    raise ClientEnded(self.over)
                if interrupted is not None and interrupted():
                    return None
                if self.calls != before:
                    return 0
            return self.clocks

    def check_client(self) -> None:
        """Look, while the debugger is stopped, whether the client is still there.

        Raises:
            ClientEnded: it is not.
        """
        if self.over or not self._client_lives():
            raise ClientEnded(self.over or "the client's process has ended")

    def passed(self, clocks: int, now: int) -> None:
        """Clocks have passed; it is so late now."""
        with self._turn:
            self.clocks -= clocks
            self._turn.notify_all()

    # --- repeating --------------------------------------------------------------------------------------------------

    def _keep(self, now: int, name: str, arguments: tuple[Any, ...]) -> None:
        if name == "memory_write":
            paddr, pointer, size = arguments
            call: Call = (now, name, (paddr, ctypes.string_at(pointer, size) if size else b""))
            self._size += size
        elif name == "memory_read":
            call = (now, name, (arguments[0], arguments[2]))
            if self._log and self._log[-1] == call:  # a client that polls
                return
        elif name in ("config_read", "config_write"):
            call = (now, name, arguments)
        else:
            return
        self._size += _OF_CALL
        if self._size > LOG_LIMIT:
            self._forget()
            self.on_overflow()
        self._log.append(call)
        self._cursor = self._base + len(self._log)

    def _forget(self) -> None:
        self._base += len(self._log)
        self._log, self._reads, self._size = [], [], 0
        self._cursor = self._base
        self._read_cursor = self._writes = self._write_cursor = 0

    @property
    def cursors(self) -> Cursors:
        """How many calls, reads and writes of the client's memory there were up to the chip's present state."""
        return self._cursor, self._read_cursor, self._write_cursor

    @cursors.setter
    def cursors(self, cursors: Cursors) -> None:
        self._cursor, self._read_cursor, self._write_cursor = cursors

    def repeat(self, device: Device) -> bool:
        """Repeat the next call that the client made in this clock; False: there is none."""
        at = self._cursor - self._base
        if at >= len(self._log) or self._log[at][0] > device.time:
            return False
        _, name, arguments = self._log[at]
        self._cursor += 1
        functions: dict[str, Callable[..., Any]] = {
            "memory_read": device.read,
            "memory_write": device.write,
            "config_read": device.read_config,
            "config_write": device.write_config,
        }
        functions[name](*arguments)
        return True

    def host(self, host: HostMemory, playing: Callable[[], bool]) -> HostMemory:
        """The client's memory, as the chip reaches it now and when its calls are repeated.

        Args:
            host: the client's memory.
            playing: the chip repeats what it has done, and what it writes in the client's memory has no effect.
        """

        def read(address: int, size: int) -> bytes:
            if not self.attached:
                return host.read(address, size)
            if self._read_cursor == len(self._reads):
                if playing():  # beyond the present: nothing of this state is kept
                    return bytes(size)
                self._reads.append(host.read(address, size))
                self._size += size + _OF_CALL
            self._read_cursor += 1
            return self._reads[self._read_cursor - 1]

        def write(address: int, content: bytes) -> None:
            if not self.attached:
                host.write(address, content)
            elif self._write_cursor < self._writes:
                self._write_cursor += 1
            elif not playing():
                host.write(address, content)
                self._writes += 1
                self._write_cursor += 1

        return HostMemory(read if host.reads else None, write if host.writes else None)
