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
COUNTS = """
print("counts", hash(bytes().join(peek(x, y, 0x400, 4) for y in range(2, 12) for x in (*range(1, 8), *range(10, 17)))))
"""
BESIDE_OTHERS = f"""
{BUSY}
others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count())]
try:
    while running() <= len(others):
        time.sleep(0.01)
    clock(140)
    for thread in os.listdir("/proc/self/task"):
        if STARVED and thread != str(os.getpid()):
            os.sched_setscheduler(int(thread), os.SCHED_IDLE, os.sched_param(0))
    before = helped()
    for _ in range(300):
        clock(140)
    clock(12000)
    print("helped", helped() - before)
finally:
    for other in others:
        other.kill()
        other.wait()
{COUNTS}
exit_()
"""
"""Other processes on all processors, too; calls of some hundred microseconds, and a long one."""
ALONE = f"""
{BUSY}
for _ in range(301):
    clock(140)
clock(12000)
{COUNTS}
exit_()
"""


def _run(library: Path, script: str, threads: int) -> str:
    ended = run_client(library, script, BHEMU_THREADS=str(threads), BHEMU_PACE="exact", PYTHONHASHSEED="0")
    assert ended.status == 0, ended.out + ended.errors
    return ended.out


@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="the system does not say what runs")
@pytest.mark.parametrize("starved", [False, True], ids=["a share", "next to none"])
def test_threads_help_beside_other_processes_and_nothing_waits_for_them(library: Path, starved: bool) -> None:
    """Also with a helper that gets a processor only when nothing else wants one."""
    out = _run(library, f"STARVED = {starved}\n{BESIDE_OTHERS}", 2)
    helped = int(re.findall(r"helped (\d+)", out)[0])
    assert helped > 0 or starved
    assert re.findall("counts .*", out) == re.findall("counts .*", _run(library, ALONE, 1))


def test_more_threads_than_there_can_be(library: Path) -> None:
    ended = run_client(library, BUSY + "clock(12000)\nprint('threads', threads())\nexit_()\n", BHEMU_THREADS="1000")
    assert ended.status == 0, ended.out + ended.errors
    assert "threads 9" in ended.out


SLICES = f"""
import os
earlier = os.listdir("/proc/self/task")  # the client's, and those of a sanitizer
{BUSY}
def slice_of(thread):
    attributes = (ctypes.c_uint8 * 48)()  # struct sched_attr
    assert ctypes.CDLL(None).syscall({{"x86_64": 315}}.get(os.uname().machine, 275), thread, attributes, 48, 0) == 0
    return int.from_bytes(bytes(attributes[24:32]), "little")
before = slice_of(0)
clock(12000)
helpers = [int(thread) for thread in os.listdir("/proc/self/task") if thread not in earlier]
print("slices", before, slice_of(0), *map(slice_of, helpers))
exit_()
"""


def test_a_helper_has_short_slices_and_the_clients_thread_what_it_had(library: Path) -> None:
    out = _run(library, SLICES, 2)
    before, after, *helpers = map(int, re.findall("slices (.*)", out)[0].split())
    assert before == after
    if not before:
        pytest.skip("the system's threads have no slices of their own")
    assert helpers == [200_000]
