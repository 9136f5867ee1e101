"""Child processes of tests: they start with the signals that they need, and nothing of them is left behind."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

HANG = 900
"""Seconds after which a test gives up. A busy machine stays far below; only what hangs gets there."""


@contextmanager
def one_at_a_time(lock: Path) -> Iterator[None]:
    """One process at a time prepares what several tests need; `lock` is a file for this alone."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def interruptible() -> Iterator[None]:
    """SIGINT interrupts this process, and the children that it starts.

    A shell starts commands in the background with SIGINT ignored. Children inherit that; a handler they do not.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def started(command: Sequence[str | os.PathLike[str]], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process with text pipes, in a group of its own; when the context ends, the whole group has ended."""
    with subprocess.Popen(command, start_new_session=True, text=True, **options) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def finished(command: Sequence[str | os.PathLike[str]], **options: Any) -> subprocess.CompletedProcess[str]:
    """Like `subprocess.run` with captured text, but with an end for all children of what hangs."""
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options) as process:
        stdout, stderr = process.communicate(timeout=HANG)
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Wait for something that another thread or process does; fails after `HANG` seconds."""
    until = time.monotonic() + HANG
    while not condition():
        if time.monotonic() > until:
            pytest.fail(f"waited {HANG} seconds for {what}")
        time.sleep(0.01)
