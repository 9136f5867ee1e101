"""Threads that share the clocks of many tiles (bhemu/capi/helpers.c)."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from bhemu.tile.reset import DEFAULT_PC
from tests.capi.library_client import run_client

BUSY = f"""
import os, subprocess, time
# addi x1, x1, 1; sw x1, 0x400(x0); jal x0, -8
COUNT = struct.pack("<3I", 0x00108093, 0x40102023, 0xFF9FF06F)
threads = lambda: len(os.listdir("/proc/self/task"))
helped = lambda: sum(int(open("/proc/self/task/" + thread + "/schedstat").read().split()[0])
                     for thread in os.listdir("/proc/self/task") if thread != str(os.getpid()))
running = lambda: int(open("/proc/loadavg").read().split()[3].partition("/")[0])
init()
for y in range(2, 12):
    for x in (*range(1, 8), *range(10, 17)):
        for at in {DEFAULT_PC.tolist()}:
            poke(x, y, at, COUNT)
        poke(x, y, 0xFFB121B0, bytes(4))
"""
"""700 busy cores."""
SCRIPT = f"""
{BUSY}
others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count())]
try:
    while running() <= len(others):
        time.sleep(0.01)
    before = helped()
    for _ in range(300):
        clock(140)
    short = helped()
    clock(12000)
    print("helped", short - before, helped() - short)
finally:
    for other in others:
        other.kill()
        other.wait()
exit_()
"""
"""Other processes on all processors, too; calls of some hundred microseconds, and a long one."""


@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="the system does not say what runs")
def test_processors_of_other_processes_are_left_to_them_in_short_calls(library: Path) -> None:
    ended = run_client(library, SCRIPT, BHEMU_THREADS="2", BHEMU_PACE="exact")
    assert ended.status == 0, ended.out + ended.errors
    short, long = map(int, re.findall(r"helped (\d+) (\d+)", ended.out)[0])
    assert short < long / 10, (short, long)


def test_more_threads_than_there_can_be(library: Path) -> None:
    ended = run_client(library, BUSY + "clock(12000)\nprint('threads', threads())\nexit_()\n", BHEMU_THREADS="1000")
    assert ended.status == 0, ended.out + ended.errors
    assert "threads 9" in ended.out
