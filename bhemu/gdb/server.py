"""GDB's remote stub: a tile's cores as the threads B, T0, T1, T2 and NC of one process.

All cores move in one schedule, so a stop is a stop of the whole tile, and while one thread is stepped the others move
on, as they do in gdb with `set scheduler-locking off`.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Callable
from typing import Final

from bhemu.debugger.breakpoints import DebugError
from bhemu.debugger.session import DebugSession
from bhemu.gdb.packets import INTERRUPT, PacketReader, frame
from bhemu.gdb.stub import Stub

RECEIVE: Final = 0x10000


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of `:PORT`, `PORT` or `HOST:PORT`.

    Raises:
        DebugError: it is none of these.
    """
    host, _, port = text.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not port.isdigit() or not int(port) <= 0xFFFF:
        raise DebugError(
            f"{text!r} is not a port", remedy="give --gdb :3333 or --gdb HOST:PORT, with a port up to 65535"
        )
    return host, int(port)


def listen_on(address: tuple[str, int]) -> socket.socket:
    """A socket to which GDB can connect.

    Raises:
        DebugError: the port cannot be taken.
    """
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(1)
    except OSError as error:
        listener.close()
        raise DebugError(
            f"cannot listen on {address[0]}:{address[1]}: {error.strerror or error}",
            remedy="choose another port, or stop the process that uses this one",
        ) from None
    return listener


class GdbServer:
    """Waits for GDB and serves one connection after the other.

    Args:
        session: what is debugged.
        address: host and port; port 0 takes a free one.
        cores: numbers of the cores that GDB is to see; all by default.

    Attributes:
        port: the port that was taken.

    Raises:
        DebugError: the port cannot be taken.
    """

    def __init__(self, session: DebugSession, address: tuple[str, int], cores: tuple[int, ...] | None = None) -> None:
        self._session = session
        self._cores = cores
        self._listener = listen_on(address)
        self.port = int(self._listener.getsockname()[1])

    def serve(self, *, forever: bool = False) -> None:
        """Serve GDB until it kills the program, or detaches (with `forever`: until it kills it).

        Args:
            forever: wait for the next connection when GDB has detached or ended.
        """
        while True:
            connection, _ = self._listener.accept()
            with connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                killed = _Connection(connection, self._session, self._cores).serve()
            if killed or not forever:
                return

    def close(self) -> None:
        """Give the port back."""
        self._listener.close()


class _Connection:
    """One connection: bytes in, packets to the stub, packets out."""

    def __init__(self, connection: socket.socket, session: DebugSession, cores: tuple[int, ...] | None) -> None:
        self._socket = connection
        self._reader = PacketReader()
        self._pending: list[bytes] = []
        self._open = True
        self._stub = Stub(session, cores, console=self._send)
        self._session = session

    def serve(self) -> bool:
        """Serve until the connection ends; True when GDB has killed the program."""
        previous: Callable[[], bool] | None = self._session.poll
        self._session.poll = self._interrupted
        try:
            while self._open and not self._stub.finished:
                if not self._pending:
                    self._receive()
                    continue
                packet = self._pending.pop(0)
                if packet == INTERRUPT:
                    continue  # nothing runs
                reply = self._stub.answer(packet)
                if reply is not None:
                    self._send(reply)
                if packet == b"QStartNoAckMode":
                    self._reader.acknowledges = False
        except OSError:  # GDB has ended
            pass
        finally:
            self._session.poll = previous
            self._stub.close()
        return self._stub.killed

    def _receive(self) -> None:
        content = self._socket.recv(RECEIVE)
        if not content:
            self._open = False
            return
        packets, replies = self._reader.feed(content)
        if replies:
            self._socket.sendall(replies)
        self._pending += packets

    def _interrupted(self) -> bool:
        """While the tile runs: has Ctrl-C been pressed in GDB, or has GDB ended?"""
        if select.select([self._socket], [], [], 0)[0]:
            try:
                self._receive()
            except OSError:
                self._open = False
        if INTERRUPT in self._pending:
            self._pending.remove(INTERRUPT)
            return True
        return not self._open

    def _send(self, content: bytes) -> None:
        self._socket.sendall(frame(content))


def serve_connection(connection: socket.socket, session: DebugSession, cores: tuple[int, ...] | None) -> bool:
    """Serve a GDB that is connected already; True when it has killed the program.

    Args:
        connection: to it.
        session: what is debugged.
        cores: numbers of the cores that it is to see; None for all.
    """
    return _Connection(connection, session, cores).serve()
