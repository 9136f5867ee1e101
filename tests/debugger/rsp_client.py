"""A client of the GDB remote protocol for tests, and a server in a thread."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from bhemu.debugger.session import DebugSession
from bhemu.gdb.packets import PacketReader, escape, frame
from bhemu.gdb.server import GdbServer
from tests.processes import HANG


class Client:
    """Sends packets and takes answers."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=HANG)
        self._reader = PacketReader()
        self._packets: list[bytes] = []
        self.console = ""

    def send(self, content: bytes | str) -> None:
        self.socket.sendall(frame(content.encode() if isinstance(content, str) else content))

    def receive(self) -> bytes:
        """The next answer; console output before it goes to `console`."""
        while True:
            while not self._packets:
                content = self.socket.recv(4096)
                if not content:
                    raise EOFError
                packets, replies = self._reader.feed(content)
                self.socket.sendall(replies)
                self._packets += packets
            packet = self._packets.pop(0)
            if packet[:1] != b"O" or packet == b"OK":
                return packet
            self.console += bytes.fromhex(packet[1:].decode()).decode()

    def ask(self, content: bytes | str) -> str:
        """Send a packet; returns the answer."""
        self.send(content)
        return self.receive().decode("latin-1")

    def monitor(self, line: str) -> str:
        """What a monitor command prints."""
        self.console = ""
        assert self.ask(f"qRcmd,{line.encode().hex()}") == "OK"
        return self.console

    def registers(self) -> list[int]:
        """x0 to x31, pc, cfg0, fcsr."""
        content = bytes.fromhex(self.ask("g"))
        return [int.from_bytes(content[at : at + 4], "little") for at in range(0, len(content), 4)]

    def write_binary(self, address: int, content: bytes) -> str:
        return self.ask(f"X{address:x},{len(content):x}:".encode() + escape(content))


@contextmanager
def serving(session: DebugSession, cores: tuple[int, ...] | None = None) -> Iterator[Client]:
    """A client connected to a server for the session; the server has ended when the context has."""
    server = GdbServer(session, ("127.0.0.1", 0), cores)
    thread = threading.Thread(target=server.serve)
    thread.start()
    client = Client(server.port)
    try:
        yield client
    finally:
        client.socket.close()
        thread.join(HANG)
        server.close()
        assert not thread.is_alive()
