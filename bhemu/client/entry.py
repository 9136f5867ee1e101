"""A simulator under Python that can be debugged while its client runs: `BHEMU_DEBUG` names the socket."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bhemu.capi import entry
from bhemu.capi.attach import RECORD, about_client
from bhemu.capi.refusals import say
from bhemu.capi.settings import SEMIHOSTING
from bhemu.chip.device import Device
from bhemu.chip.pcie.host_memory import HostMemory
from bhemu.errors import ConfigurationError

if TYPE_CHECKING:
    from bhemu.client.gate import Gate
    from bhemu.client.server import Server

DEBUG: Final = "BHEMU_DEBUG"
"""Environment variable: name of the socket at which the simulator waits for a debugger; `%p` is the client's number."""
WAIT: Final = "BHEMU_DEBUG_WAIT"
"""Environment variable: 1 lets the client wait with its first clock until a debugger has attached itself."""


class Overseer:
    """Lets calls of the client pass through a gate, where a debugger may stop them."""

    def __init__(self) -> None:
        self._client = os.getppid()
        self._gate: Gate | None = None
        self._server: Server | None = None
        self._waits = False

    def host(self, host: HostMemory) -> HostMemory:
        """A new chip is made: the client's memory for it."""
        from bhemu.client.gate import Gate
        from bhemu.client.server import Server

        for name in (RECORD, SEMIHOSTING):
            if os.environ.get(name):
                raise ConfigurationError(f"{DEBUG} and {name} are both set", remedy="unset one of them")
        if os.environ.get(WAIT, "") not in ("", "0", "1"):
            raise ConfigurationError(f"{WAIT} is {os.environ[WAIT]!r}", remedy="set it to 0 or 1, or not at all")
        if self._server is None:
            path = Path(os.environ[DEBUG].replace("%p", str(self._client))).absolute()
            self._server = Server(path, about_client(), lambda text: say(f"[{entry.clock_now()}] bhemu: {text}\n"))
        self._gate = Gate(lambda: os.getppid() == self._client)
        return self._gate.host(host, self._server.is_playing)

    def begin(self, device: Device) -> None:
        """The chip is there."""
        self._waits = os.environ.get(WAIT) == "1"
        if not self._waits:
            self._serve(device)

    def _serve(self, device: Device) -> None:
        assert self._gate is not None
        assert self._server is not None
        self._server.serve(device, self._gate)

    def _wait(self, device: Device) -> None:
        """The first clock is about to pass. (tt-umd makes a chip to look at it, in which none does.)"""
        assert self._gate is not None
        assert self._server is not None
        self._waits = False
        self._serve(device)
        say(f"[0] bhemu: waiting for a debugger: bhemu debug --attach {self._server.path}\n")
        self._gate.wait_for_debugger()

    def call(self, device: Device | None, name: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Carry out a call of the client."""
        if self._gate is None or name == "init":
            return function(*arguments)
        if name == "clock" and self._waits and device is not None:
            self._wait(device)
        result = self._gate.call(device, name, function, arguments)
        if name == "exit" and not (self._waits and os.getppid() == self._client):
            self.close()
        return result

    def close(self) -> None:
        """There is nothing to debug any more."""
        server, self._server, self._gate = self._server, None, None
        if server is not None:
            server.close()


def serve(library: str, memory: int) -> None:
    """Serve the client that has started this process; see `bhemu.capi.entry.serve`."""
    if os.environ.get(DEBUG):
        entry.oversee(Overseer())
    entry.serve(library, memory)
