"""Compiling what a program is known to need on all processors, before it runs: first use alone pays for it.

Numba compiles one function at a time in a process, so other processes compile, too, and put into the cache what they
have made. Without a cache that can be written, or with one processor, nothing is done ahead.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterable
from typing import IO, Any, Final

from bhemu.compiling import progress as compile_progress
from bhemu.isa.instructions import BY_OPCODE
from bhemu.machine.cache import can_store
from bhemu.machine.codegen import makes_linkable_code
from bhemu.machine.compiler import JIT, package_path, tell
from bhemu.tensix.coprocessor import ensure_handlers, ensure_place, not_compiled
from bhemu.tile import cores

assert cores  # it provides the places

_looked_for: set[int] = set()
"""Parts that this process has looked for in the cache: each program of each tile comes here."""
WORTH: Final = 4
"""Functions to compile from which on other processes are started: each takes a second to start."""
_LONG: Final = frozenset(("pack", "unpack", "matrix", "vector"))
"""Units whose instructions take the longest to compile."""
_CHILD: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]); from bhemu.api.ahead import compile_for_parent as main; main()"
)


class Ahead:
    """A context in which other processes compile; at its end this one helps them, and waits for them.

    Args:
        opcodes: whose handlers will be needed.
        places: of functions in the table of handlers (machine/dispatch.py) that will be.
    """

    def __init__(self, opcodes: Iterable[int], places: Iterable[int] = ()) -> None:
        self._todo: deque[int] = deque()
        self._children: list[_Child] = []
        processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if not JIT or processors < 2 or not sys.executable or not makes_linkable_code():
            return
        new = {*opcodes, *(-place for place in places)} - _looked_for
        _looked_for.update(new)
        handlers, others = not_compiled([part for part in new if part >= 0], [-part for part in new if part < 0])
        parts = [-place for place in others] + sorted(handlers, key=lambda opcode: _unit(opcode) not in _LONG)
        if len(parts) < WORTH or not can_store():
            return
        self._todo.extend(parts)
        self._children = [_Child(self._todo) for _ in range(min(processors, len(parts) // 2) - 1)]

    def __enter__(self) -> None:
        """Nothing more: the others have been started."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Compile what is left, and wait for the others; after an error only end them."""
        try:
            while kind is None and self._todo:
                _compile(self._todo.popleft())
            for child in self._children if kind is None else ():
                child.wait()
        finally:
            self._todo.clear()
            for child in self._children:
                child.stop()


class _Child:
    """One of the processes, and the thread that gives it work."""

    def __init__(self, todo: deque[int]) -> None:
        command = [sys.executable, "-c", _CHILD, str(package_path().parent)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._todo = todo
        self._part: int | None = None
        self._thread = threading.Thread(target=self._serve, daemon=True, name="bhemu compiles ahead")
        self._thread.start()

    def _serve(self) -> None:
        requests, answers = self._process.stdin, self._process.stdout
        try:
            while self._todo and self._give(requests, self._todo.popleft()) and answers and answers.readline():
                self._part = None
        except (OSError, ValueError, IndexError):  # it has ended, or another took the last part
            return

    def _give(self, requests: IO[str] | None, part: int) -> bool:
        if requests is None:
            return False
        self._part = part
        requests.write(f"{part}\n")
        requests.flush()
        return True

    def wait(self) -> None:
        """Until it has compiled what it was given; what it could not is compiled when it is needed."""
        part = self._part
        if part is None or not self._thread.is_alive():
            return
        name = _name(part)
        with compile_progress.getting(name):
            tell(name)
            self._thread.join()

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._thread.join()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                _close(stream)


def _close(stream: IO[str]) -> None:
    try:
        stream.close()
    except OSError:  # what it could not be given any more
        return


def _row(opcode: int) -> Any:
    return BY_OPCODE[opcode]


def _unit(opcode: int) -> str:
    return str(_row(opcode).unit)


def _name(part: int) -> str:
    return _row(part).mnemonic if part >= 0 else "a part of the cores"


def _compile(part: int) -> None:
    if part < 0:
        ensure_place(-part)
    else:
        ensure_handlers([part])


def compile_for_parent() -> None:
    """In a child: compile what the parent names, line by line."""
    os.environ["BHEMU_PROGRESS"] = "0"
    for line in sys.stdin:
        _compile(int(line))
        print(line, end="", flush=True)
