"""A client of the C library that waits for a chip in which nothing can proceed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.capi.library_client import run_client

BLOCKED = "release_b([0xFFEC2537, 0x00052583, 0x0000006F])\n"  # lui a0, 0xffec2; lw a1, 0(a0); j .
"""Core B waits for a word in its mailbox from T1."""
TOLD = """
import os, tempfile
file, out = tempfile.TemporaryFile(), os.dup(1)
os.dup2(file.fileno(), 1)
init()
{begin}
at = aim(1, 1, 2, 0x8000)
def wait():
    for _ in range(1000):
        clock(10); word(at)
while b"can proceed" not in os.pread(file.fileno(), 1 << 16, 0):
    wait()
for _ in range(100):
    wait()
os.write(out, os.pread(file.fileno(), 1 << 16, 0))
os.dup2(out, 1)
exit_()
"""
"""Waits until it is told, and then goes on waiting."""
WAIT = """
import time
at = aim(1, 1, 2, 0x8000)
end = time.monotonic() + 2.5
while time.monotonic() < end:
    clock(10); word(at)
    {also}
exit_()
"""


def test_it_is_told_once_who_waits(library: Path) -> None:
    ended = run_client(library, TOLD.format(begin=BLOCKED), BHEMU_PATIENCE="1")
    assert ended.status == 0
    assert ended.out.count("no core or thread on the chip can proceed") == 1
    assert "tile 1-2" in ended.out
    assert "core B at 0x00004: waits for a word in the mailbox from T1" in ended.out


def test_nothing_is_said_while_the_client_writes_or_a_core_runs_or_all_are_in_reset(library: Path) -> None:
    for begin, also in ((BLOCKED, "put(at, 1)"), ("release_b([0x00128293, 0xFFDFF06F])\n", ""), ("", "")):
        ended = run_client(library, "init()\n" + begin + WAIT.format(also=also), BHEMU_PATIENCE="1")
        assert ended.status == 0
        assert "can proceed" not in ended.out


def test_a_client_that_never_clocks_is_told_once(library: Path) -> None:
    read = "at = aim(1, 1, 2, 0x8000)\nfor _ in range(2_200_000): word(at)\nexit_()\n"
    ended = run_client(library, "init()\nrelease_b([0x00128293, 0xFFDFF06F])\nclock(1)\n" + read)
    assert ended.status == 0
    assert ended.out.count("a million reads since the last libttsim_clock") == 1
    assert "a million reads" not in run_client(library, "init()\n" + read).out


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BHEMU_PATIENCE", "soon"),
        ("BHEMU_THREADS", "0"),
        ("BHEMU_QUANTUM", "-1"),
        ("BHEMU_ORDER", "silicon"),
        ("BHEMU_ALLOW_OPEN", "maybe"),
        ("TTSIM_SEMIHOSTING", "yes"),
    ],
)
def test_variables_that_mean_nothing(name: str, value: str, library: Path) -> None:
    ended = run_client(library, "init()\n", **{name: value})
    assert ended.status == 1
    assert f"ERROR: ConfigurationError: libttsim_init: {name} is {value!r}" in ended.out
    assert "remedy: set it to" in ended.out
