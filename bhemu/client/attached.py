"""The other end of the socket: what `bhemu debug --attach` and Python use of a running client's debugger."""

from __future__ import annotations

import base64
import errno
import os
import socket
import threading
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np

from bhemu.api.tile import Snapshot, Tile
from bhemu.checks import checked
from bhemu.chip.coordinates import Place
from bhemu.client.messages import Channel, Ended, Message
from bhemu.debugger.breakpoints import DebugError
from bhemu.machine.state import TILE

PROTOCOL: Final = 1
FIRST_TILE: Final[Place] = (1, 2)
"""The tile of tt-metal's logical core 0-0."""
_PIECE: Final = 1 << 16


@checked
class Attached:
    """A debugger that is attached to a running client.

    The client waits whenever the debugger is stopped, as it is from the beginning.

    Attributes:
        clock: of the chip when it was attached.
    """

    def __init__(self, channel: Channel, hello: Message) -> None:
        self._channel = channel
        self.clock = int(hello["clock"])

    def command(self, line: str) -> str:
        """Execute a command of `bhemu debug`; returns what it prints.

        Args:
            line: such as `break kernel_main core T1`, `continue`, `dst 0 4`, `quit`.

        Raises:
            DebugError: the command was refused, or the client has ended.
        """
        lines: list[str] = []
        refused: list[DebugError] = []
        self.execute(line, lines.append, refused.append)
        if refused:
            raise refused[0]
        return "\n".join(lines)

    def execute(self, line: str, output: Callable[[str], Any], refuse: Callable[[DebugError], Any]) -> bool:
        """Execute a command; True when it ends the session.

        Args:
            line: the command.
            output: takes what it prints, as it comes.
            refuse: takes the error of a command that was refused.

        Raises:
            DebugError: the client has ended.
        """
        self._send(run=line)
        while True:
            message = self._receive()
            if "done" in message:
                return bool(message["over"])
            if "refused" in message:
                refuse(DebugError(str(message["refused"]), remedy=message["remedy"]))
            else:
                output(str(message["text"]))

    def interrupt(self) -> None:
        """Stop the chip while a command runs; from another thread or a signal handler."""
        with suppress(Ended):
            self._channel.send(interrupt=True)

    def ask(self, what: str, text: Any = "") -> Any:
        """The names of commands, or the symbols that begin with a text."""
        self._send(**{what: text})
        return self._receive()[what]

    def tile(self, x: int, y: int) -> Tile:
        """A copy of a tile's state as it is now, to look at with everything that a `bhemu.Tile` has.

        Args:
            x, y: translated coordinates.

        Raises:
            DebugError: the chip has no such tile.
        """
        self._send(tile=[x, y])
        content = zlib.decompress(base64.b64decode(self._receive()["record"]))
        copy = Tile()
        record = np.frombuffer(content, TILE)[0].copy()
        record["handlers"] = copy.record.handlers
        copy.restore(Snapshot(np.frombuffer(record.tobytes(), np.uint8)))
        return copy

    def close(self) -> None:
        """Detach; the client goes on."""
        self._channel.socket.close()

    def __enter__(self) -> Attached:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, **message: Any) -> None:
        try:
            self._channel.send(**message)
        except Ended:
            self._receive()  # why

    def _receive(self) -> Message:
        try:
            message = self._channel.receive()
        except Ended:
            raise DebugError("the client has ended", remedy="start it again; its output says why") from None
        if "over" in message and "done" not in message:
            raise DebugError(str(message["over"]), remedy="start it again")
        if "error" in message:
            raise DebugError(str(message["error"]), remedy=message["remedy"])
        return message

    # --- GDB --------------------------------------------------------------------------------------------------------

    def relay(self, listener: socket.socket, core: str | None) -> None:
        """Let a GDB that connects to a listening socket debug the chosen tile, until it ends; then detach.

        Args:
            listener: bound to an address of this machine.
            core: the only one that GDB is to see; None: all.

        Raises:
            DebugError: there is no such core, or the client has ended.
        """
        connection, _ = listener.accept()
        with connection, self._channel.socket:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._send(gdb=core)
            self._receive()
            back = threading.Thread(target=_copy, args=(self._channel.socket, connection), daemon=True)
            back.start()
            _copy(connection, self._channel.socket)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Bytes of one connection to another, until it ends."""
    with suppress(OSError):
        while content := source.recv(_PIECE):
            target.sendall(content)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@checked
def attach(path: str | os.PathLike[str], *, tiles: Iterable[Place] = (FIRST_TILE,)) -> Attached:
    """Attach a debugger to a running client, which was started with `BHEMU_DEBUG=path` or `bhemu run-client --debug`.

    Example:
        with bhemu.attach("/tmp/model.sock") as client:
            client.command("break kernel_main core T1")
            print(client.command("continue"))
            print(client.tile(1, 2).dst)

    Args:
        path: of the socket.
        tiles: translated coordinates of the tiles that are debugged; the first one is chosen.

    Raises:
        DebugError: no client can be attached to there, another debugger is attached, or the chip has no such tile.
    """
    name = Path(path)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(name))
    except OSError as error:
        connection.close()
        reasons = {
            errno.ENOENT: "there is no such socket",
            errno.ECONNREFUSED: "its client has ended",
            errno.EACCES: "it is another user's",
        }
        raise DebugError(
            f"{name}: no client can be debugged there: {reasons.get(error.errno or 0, error.strerror or str(error))}",
            remedy="start one: bhemu run-client --debug SOCKET -- COMMAND",
        ) from None
    channel = Channel(connection)
    attached = Attached(channel, {"clock": 0})
    try:
        attached._send(protocol=PROTOCOL, tiles=[list(place) for place in tiles])
        attached.clock = int(attached._receive()["clock"])
    except BaseException:
        connection.close()
        raise
    return attached
