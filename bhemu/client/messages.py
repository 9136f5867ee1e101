"""What goes over the socket between a client's simulator and a debugger's front end: a line of JSON each."""

from __future__ import annotations

import json
import select
import socket
from typing import Any, Final

from bhemu.debugger.breakpoints import DebugError

LONGEST: Final = 64 << 20
"""Bytes of a message."""
_RECEIVE: Final = 1 << 16

Message = dict[str, Any]


class Ended(Exception):
    """The other end has closed the connection."""


class Channel:
    """Messages over a connected socket."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self._pending = b""

    def send(self, **message: Any) -> None:
        """Send a message.

        Raises:
            Ended: the other end is not there any more.
        """
        try:
            self.socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            raise Ended from None

    def receive(self) -> Message:
        """The next message.

        Raises:
            Ended: the other end is not there any more.
            DebugError: what it sends is not a message.
        """
        while b"\n" not in self._pending:
            self._fill()
        line, _, self._pending = self._pending.partition(b"\n")
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise DebugError("what came over the socket is not a message of bhemu", remedy="attach with bhemu debug")
        return message

    def _fill(self) -> None:
        try:
            content = self.socket.recv(_RECEIVE)
        except OSError:
            content = b""
        if not content or len(self._pending) > LONGEST:
            raise Ended
        self._pending += content

    def has_message(self) -> bool:
        """A message has come, or the end of the connection; looked up without waiting."""
        if b"\n" in self._pending:
            return True
        if not select.select([self.socket], [], [], 0)[0]:
            return False
        self._fill()
        return b"\n" in self._pending
