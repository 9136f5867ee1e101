"""The other side: a library with the simulator's C interface, in a process of its own."""

from __future__ import annotations

import contextlib
import os
import platform
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from pathlib import Path
from typing import IO, Any, Final

from bhemu.compare import child
from bhemu.compare.calls import (
    CLOCK,
    CONFIG_READ,
    CONFIG_WRITE,
    EXIT,
    INIT,
    PREFIX,
    READ,
    WRITE,
    Call,
    Ended,
    Outcome,
    parse_message,
)
from bhemu.errors import BhemuError

TIMEOUT: Final = 60.0
"""Seconds that a call may take by default."""
_LAST_WORDS: Final = 2.0
"""Seconds that a process gets to end once it has closed its pipe."""
_WHICH: Final = {
    INIT: child.INIT,
    EXIT: child.EXIT,
    CONFIG_READ: child.CONFIG_READ,
    CONFIG_WRITE: child.CONFIG_WRITE,
    READ: child.READ,
    WRITE: child.WRITE,
    CLOCK: child.CLOCK,
}
_NEEDED: Final = tuple(
    PREFIX + name for name in ("set_pci_dma_mem_callbacks", INIT, EXIT, CONFIG_READ, READ, WRITE, CLOCK)
)
_ELF_MACHINES: Final = {3: "i386", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64"}
_SHARED_OBJECT: Final = 3


class LibraryError(BhemuError):
    """A file that is not a simulator library, or one that does not load here."""


def check_library(path: Path) -> None:
    """Refuse what cannot be loaded, in words that say why; `dlopen` says little.

    Raises:
        LibraryError: there is no such file, or it is not a shared object of this machine.
    """
    remedy = "name the simulator's shared object, for example libttsim_bh.so"
    if not path.is_file():
        what = "is a directory" if path.is_dir() else "no such file"
        raise LibraryError(f"{path}: {what}", remedy=remedy)
    try:
        with path.open("rb") as stream:
            head = stream.read(20)
    except OSError as error:
        raise LibraryError(f"{path}: {error.strerror}", remedy="make it readable") from None
    if head[:4] != b"\x7fELF" or len(head) < 20:
        raise LibraryError(f"{path} is not a shared object", remedy=remedy)
    if head[4] != 2 or head[5] != 1 or int.from_bytes(head[16:18], "little") != _SHARED_OBJECT:
        raise LibraryError(f"{path} is not a 64-bit little-endian shared object", remedy=remedy)
    machine = _ELF_MACHINES.get(int.from_bytes(head[18:20], "little"), f"machine {head[18]}")
    if machine != platform.machine():
        raise LibraryError(
            f"{path} is built for {machine}, and this machine is {platform.machine()}",
            remedy=f"get or build the library for {platform.machine()}",
        )


class LibrarySide:
    """A library, loaded and not yet initialised.

    Calls are sent ahead: `submit` does not wait, `result` gives the outcome of the oldest call that has none yet.

    Args:
        path: of the shared object.
        timeout: seconds that a call may take.

    Raises:
        LibraryError: it cannot be loaded, or lacks a function.
    """

    def __init__(self, path: Path, timeout: float = TIMEOUT) -> None:
        check_library(path)
        self._path = path
        self._timeout = timeout
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  closed by `close`
        reading, writing = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(Path(child.__file__)), str(path.resolve()), str(writing), *_NEEDED],
            stdin=subprocess.PIPE,
            stdout=self._output,
            stderr=self._output,
            pass_fds=(writing,),
            env=os.environ | {"BHEMU_PACE": "exact"},  # one of bhemu's lets as many clocks pass as it is asked for
        )
        os.close(writing)
        self._requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._replies: queue.SimpleQueue[tuple[int, bytes] | None] = queue.SimpleQueue()
        self._counted: deque[bool] = deque()
        """For each request under way, whether it is a call whose result is asked for."""
        self._ended: Ended | None = None
        threading.Thread(target=self._write, daemon=True).start()
        threading.Thread(target=self._read, args=(reading,), daemon=True).start()
        try:
            self._check_loaded()
        except BaseException:
            self.close()
            raise

    def _check_loaded(self) -> None:
        first = self._reply()
        if isinstance(first, Ended):
            raise LibraryError(f"{self._path} cannot be loaded: {first}", remedy="see what it printed")
        status, content = first
        if status != child.GOOD:
            raise LibraryError(
                f"{self._path} cannot be used: {content.decode('utf-8', 'replace')}",
                remedy="it must be a shared object with the functions of libttsim (tile H1), and its own libraries",
            )

    def submit(self, call: Call) -> None:
        """Send a call."""
        for address, content in call.host:
            self._request(child.HOST_WRITE, address, 0, content, counted=False)
        self._request(_WHICH[call.name], call.a, call.size or call.b, call.content, counted=True)

    def result(self) -> Outcome:
        """The outcome of the oldest call without one; after an end, the end."""
        while True:
            counted = self._counted.popleft()
            reply = self._reply()
            if isinstance(reply, Ended):
                return reply
            if counted:
                return reply[1]

    def call(self, call: Call) -> Outcome:
        """Send a call and wait for it; none may be under way."""
        self.submit(call)
        return self.result()

    def host_log(self) -> bytes:
        """What the chip has written to the host's memory; no call may be under way."""
        self._request(child.HOST_LOG, 0, 0, b"", counted=True)
        outcome = self.result()
        return b"" if isinstance(outcome, Ended) else outcome

    def close(self) -> None:
        """End the process."""
        self._requests.put(None)
        with contextlib.suppress(OSError):
            self._process.kill()
        self._process.wait()
        self._output.close()

    def __enter__(self) -> LibrarySide:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    # --- the pipe -----------------------------------------------------------------------------------------------------

    def _request(self, which: int, a: int, b: int, content: bytes, *, counted: bool) -> None:
        self._counted.append(counted)
        self._requests.put(child.REQUEST.pack(which, a, b, len(content)) + content)

    def _write(self) -> None:
        stream = self._process.stdin
        assert stream is not None
        with contextlib.suppress(OSError, ValueError):
            while (request := self._requests.get()) is not None:
                stream.write(request)
                if self._requests.empty():
                    stream.flush()
        with contextlib.suppress(OSError, ValueError):
            stream.close()

    def _read(self, descriptor: int) -> None:
        with os.fdopen(descriptor, "rb", 1 << 20) as stream:
            while len(header := stream.read(child.REPLY.size)) == child.REPLY.size:
                status, size = child.REPLY.unpack(header)
                self._replies.put((status, stream.read(size)))
        self._replies.put(None)

    def _reply(self) -> tuple[int, bytes] | Ended:
        if self._ended is None:
            try:
                reply = self._replies.get(timeout=self._timeout)
            except queue.Empty:
                self._process.kill()
                self._ended = Ended("silent", text=f"does not answer within {self._timeout:g} s; it was ended")
                return self._ended
            if reply is not None:
                return reply
            self._ended = self._end()
        return self._ended

    def _end(self) -> Ended:
        """How the process has ended."""
        try:
            status = self._process.wait(_LAST_WORDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        output = self.output()
        message = parse_message(output)
        if message is not None:
            return message
        said = output.strip().splitlines()
        tail = f"; its last line: {said[-1]}" if said else "; it printed nothing"
        if status < 0:
            return Ended("killed", text=f"is killed by {signal.Signals(-status).name}{tail}")
        return Ended("ended", text=f"ends the process with status {status} and no message of the interface{tail}")

    def output(self) -> str:
        """What the library has printed so far."""
        self._output.seek(0)
        return self._output.read().decode("utf-8", "replace")
