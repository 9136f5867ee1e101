"""A client of the C library that waits for a chip in which nothing can proceed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.capi.library_client import run_client
from tests.riscv.rv_asm import assemble

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


POLLS = "li a0, 0x20000\nagain: lw a1, 0(a0)\naddi a2, a2, 1\nbeqz a1, again\nend: j end\n"
"""It counts, so it never comes back to the same registers, and does not sleep."""
WALKS = """
li a2, 0x1FFFF
again: addi a0, a0, 4
and a0, a0, a2
lw a1, 4(a0)
addi a1, a1, 1
sw a1, 1024(a0)
j again
"""
SPINS = "again: addi t0, t0, 1\nj again\n"
POLLED = """
import os, tempfile, time
file = tempfile.TemporaryFile()
os.dup2(file.fileno(), 2)
init()
{begin}
at = aim(1, 1, 2, 0x8000)
def told():
    return os.pread(file.fileno(), 1 << 16, 0).decode()
def wait(seconds, also=lambda: None, pause=0, stop=told, clocks=50_000):
    end, passed = time.monotonic() + seconds, 0
    while not stop() and (time.monotonic() < end or passed < 2_500_000):
        for _ in range(20):
            clock(clocks); word(at); also()
            passed += clocks
        time.sleep(pause)
{waits}
print(told())
exit_()
"""
LONG = 600
"""Seconds: no client that is told waits so long."""
SHORT = 3
FEW = 100
"""Clocks of a call that is so short that it does not ask for the time."""


def polled(library: Path, program: str, waits: str, **environment: str) -> str:
    """What a client was told on standard errors that waits."""
    begin = f"release_b({np.frombuffer(assemble(program, 0), np.uint32).tolist()})\n"
    ended = run_client(library, POLLED.format(begin=begin, waits=waits), **{"BHEMU_POLLING": "1"} | environment)
    assert ended.status == 0, ended.out + ended.errors
    return ended.out


@pytest.mark.parametrize(("process", "clocks"), [("client", 50_000), ("client", FEW), ("own", 50_000)])
def test_a_client_that_polls_while_cores_only_poll_is_told_once_what(library: Path, process: str, clocks: int) -> None:
    waits = f"wait({LONG}, clocks={clocks})\nfirst = told()\nwait({SHORT}, stop=lambda: False)\nassert told() == first"
    out = polled(library, POLLS, waits, BHEMU_PROCESS=process)
    assert out.count("bhemu: the host only polls, and so do the cores, for 1 seconds") == 1
    assert "tile 1-2" in out
    assert "core B at 0x0" in out
    assert "polls 0x20000, which holds 0x0" in out


def test_it_is_told_without_python_too(library: Path) -> None:
    out = polled(library, POLLS, f"wait({LONG})", BHEMU_PYTHON="/nowhere/python")
    assert "the host only polls, and so do the cores" in out
    assert "set BHEMU_PYTHON" in out


@pytest.mark.parametrize(
    ("program", "waits"),
    [
        (WALKS, f"wait({SHORT})"),
        (SPINS, f"wait({SHORT})"),
        (POLLS, f"wait({SHORT}, also=lambda: put(at, 1))"),
        (POLLS, f"wait({SHORT}, pause=0.6)"),
        (POLLS, "wait(0.1)\ntime.sleep(2)\nwait(0.1)"),
        (POLLS, f"wait({SHORT}, also=lambda: put(at, 1), clocks={FEW})"),
        (POLLS, f"wait(0.1, clocks={FEW})\ntime.sleep(2)\nwait(0.1, clocks={FEW})"),
    ],
    ids=[
        "goes through memory",
        "computes",
        "the client writes",
        "the client sleeps",
        "the client does something else",
        "the client writes between short calls",
        "the client does something else between short calls",
    ],
)
def test_nothing_is_said_of_polling_where_a_core_or_the_client_does_more(
    library: Path, program: str, waits: str
) -> None:
    assert "polls" not in polled(library, program, waits)


def test_what_is_said_of_polling_can_be_turned_off(library: Path) -> None:
    assert "polls" not in polled(library, POLLS, f"wait({SHORT})", BHEMU_POLLING="0")


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
        ("BHEMU_PATIENCE", "0"),
        ("BHEMU_POLLING", "-1"),
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
