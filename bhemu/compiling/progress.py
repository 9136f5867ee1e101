"""How far compilation is: function n of m, and the seconds that are left.

Functions are compiled when they are first needed, so m is what the loaded programs are known to need: `expect` says so.
Where nothing is expected, m is not known. A library user is told on standard error when compiling takes longer than
two seconds; `BHEMU_PROGRESS=0` in the environment silences that.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

PATIENCE: Final = 1.8
"""Seconds of compiling that pass in silence."""
REPEAT: Final = 1.8
"""Seconds between two lines, where standard error is not a terminal: it is never silent for two seconds."""
REDRAW: Final = 1.0
"""The same on a terminal, where a line replaces the one before."""

_expected: set[str] = set()
_seen: set[str] = set()
_seconds: list[float] = []
_lock = threading.Lock()


def expect(names: Iterable[str]) -> None:
    """Say which functions will be needed."""
    _expected.update(names)


def left() -> int:
    """Functions that are expected and not there yet."""
    return len(_expected - _seen)


def describe(name: str) -> str:
    """`compiling function 3 of 25, MVMUL (first use only), about 40 s left`, while a function is being compiled."""
    number, more = len(_seconds) + 1, len(_expected - _seen - {name})
    total = f" of {number + more}" if more or name in _expected else ""
    rest = ""
    if _seconds and total:
        rest = f", about {round(sum(_seconds) / len(_seconds) * (more + 1))} s left"
    return f"compiling function {number}{total}, {name} (first use only){rest}"


class _Teller:
    """Tells standard error about a compilation that takes long; runs in a thread of its own."""

    def __init__(self) -> None:
        self._said = 0.0
        self._width = 0
        self._thread: threading.Thread | None = None
        self._name = ""
        self._spent = 0.0
        self._since = 0.0
        self._wake = threading.Event()

    def begin(self, name: str) -> None:
        with _lock:
            self._name, self._since = name, time.monotonic()
            if self._thread is None:
                self._wake.clear()
                self._thread = threading.Thread(target=self._watch, daemon=True, name="bhemu compile progress")
                self._thread.start()

    def end(self) -> None:
        with _lock:
            if self._name:
                self._spent += time.monotonic() - self._since
            self._name = ""
            thread = self._thread if self._thread is not None and not left() else None
            if thread is not None:
                self._thread = None
                self._wake.set()
        if thread is not None:
            thread.join()
            self._erase()

    def _erase(self) -> None:
        if self._width and sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
            self._width = 0

    def _watch(self) -> None:
        while not self._wake.wait(0.1):
            with _lock:
                name, now = self._name, time.monotonic()
                spent = self._spent + (now - self._since if name else 0.0)
            stream = sys.stderr
            if not name or spent < PATIENCE or stream is None:
                continue
            terminal = stream.isatty()
            if self._said and now - self._said < (REDRAW if terminal else REPEAT):
                continue
            self._said = now
            text = f"bhemu: {describe(name)}"
            try:
                stream.write(f"\r{text:{self._width}}" if terminal else text + "\n")
                stream.flush()
            except (OSError, ValueError):  # closed: the reader has gone
                return
            self._width = len(text)


_teller = _Teller()


@contextmanager
def getting(name: str) -> Iterator[None]:
    """A function is fetched from the cache in this context, or compiled, which the compiler then says (`tell`)."""
    begun = time.monotonic()
    before = _told[0]
    try:
        yield
    finally:
        _seen.add(name)
        if _told[0] != before:
            _seconds.append(time.monotonic() - begun)
            _teller.end()


_told: Final = [0]
"""How many compilations the compiler has told of."""


def counted(name: str) -> None:
    """A compilation begins, and another listener of the compiler's says so to the user."""
    _told[0] += 1


def tell(name: str) -> None:
    """A compilation begins: say so on standard error when it takes long. The compiler's listener by default."""
    counted(name)
    if os.environ.get("BHEMU_PROGRESS") != "0":
        _teller.begin(name)
