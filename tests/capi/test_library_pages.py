"""Memory of tiles in pages of 2 MiB (bhemu/capi/pages.c): tiles keep what they hold, and cost the system less."""

from __future__ import annotations

import ctypes
import mmap
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.capi.library_client import run_client, run_forked

LARGE = 1 << 21
PLACES = "PLACES = [(x, y) for y in range(2, 12) for x in (*range(1, 8), *range(10, 17))]\n"
"""Of all 140 Tensix tiles."""


def _large_pages_exist() -> bool:
    """The system gives a process a page of 2 MiB when it asks for one."""
    memory = mmap.mmap(-1, 2 * LARGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    try:
        memory.madvise(mmap.MADV_HUGEPAGE)
    except (AttributeError, OSError):
        return False
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    first = -start % LARGE
    memory[first] = 1
    there = (ctypes.c_ubyte * 2)()
    libc = ctypes.CDLL(None, use_errno=True)
    failed = libc.mincore(ctypes.c_void_p(start + first), ctypes.c_size_t(2 * mmap.PAGESIZE), there)
    return not failed and there[1] == 1


def check(library: Path, script: str, **environment: str) -> str:
    """Standard output of a script that must end well."""
    ended = run_client(library, PLACES + script, **environment)
    assert ended.status == 0, ended.out + ended.errors
    return ended.out


def test_tiles_keep_what_was_written_before_they_were_reached(library: Path) -> None:
    check(
        library,
        """
init()
# A multicast writes into tiles that the client has not named yet: L1 inside and outside of the piece that moves.
for address in (0x10, 0x8FFE, 0x100000):
    write(aim(1, 16, 11, address, start=(1, 2)), b"many")
for n, (x, y) in enumerate(PLACES):
    poke(x, y, 0x2000, struct.pack("<I", n))
    assert peek(x, y, 0xFFB121B0) == struct.pack("<I", 0x47800), "cores are in reset"
for n, (x, y) in enumerate(PLACES):
    assert peek(x, y, 0x2000) == struct.pack("<I", n)
    assert [peek(x, y, address) for address in (0x10, 0x8FFE, 0x100000)] == 3 * [b"many"]
    assert peek(x, y, 0x14, 64) == bytes(64)
exit_()
""",
    )


@pytest.mark.parametrize("pace", ["exact", "adaptive"])
def test_cores_run_on_while_other_tiles_are_reached(library: Path, pace: str) -> None:
    """A core of each tile counts in L1, from the call on in which the client has reached the tile."""
    check(
        library,
        """
# addi x1, x1, 1; sw x1, 0x400(x0); jal x0, -8
COUNT = [0x00108093, 0x40102023, 0xFF9FF06F]
init()
for x, y in PLACES:
    release_b(COUNT, x, y)
    clock(3)
counts = [struct.unpack("<I", peek(x, y, 0x400))[0] for x, y in PLACES]
assert counts == sorted(counts, reverse=True) and counts[0] > counts[-1] > 0, counts
clock(30)
later = [struct.unpack("<I", peek(x, y, 0x400))[0] for x, y in PLACES]
assert {b - a for a, b in zip(counts, later)} == {10}, (counts, later)
exit_()
init()  # a new chip holds nothing of the old one
assert {peek(x, y, 0x400) for x, y in PLACES} == {bytes(4)}
exit_()
""",
        BHEMU_PACE=pace,
    )


def test_child_after_a_fork_keeps_what_tiles_hold(library: Path) -> None:
    before = (
        PLACES
        + """
init()
for n, (x, y) in enumerate(PLACES[:70]):
    poke(x, y, 0x3000, bytes([n]))
write(aim(1, 16, 11, 0x3100, start=(1, 2)), b"many")
"""
    )
    case = """
for n, (x, y) in enumerate(PLACES):
    poke(x, y, 0x3001, bytes([255 - n]))
same = all(peek(x, y, 0x3000, 2) == bytes([n if n < 70 else 0, 255 - n]) for n, (x, y) in enumerate(PLACES))
print("same" if same and {peek(x, y, 0x3100) for x, y in PLACES} == {b"many"} else "different")
sys.stdout.flush()
os._exit(0)
"""
    for status, out in run_forked(library, before, {"first": case, "second": case}).values():
        assert (status, out) == (0, "same\n")


def test_end_of_a_chip_takes_no_memory_of_the_client(library: Path) -> None:
    """Mappings that the client makes while tiles get other memory may lie where that was before."""
    check(
        library,
        """
import mmap
init()
mine = []
for n, (x, y) in enumerate(PLACES):
    poke(x, y, 0, b"here")
    mine += [mmap.mmap(-1, size) for size in (1 << 12, 1 << 16, 1 << 21)]
for memory in mine:
    memory[0] = memory[-1] = 7
exit_()
assert {(memory[0], memory[-1]) for memory in mine} == {(7, 7)}
""",
    )


FAULTS = """
import resource
faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def faults_of(places):
    before = faults()
    for x, y in places:
        for page in range(10):
            poke(x, y, page << 12, b"1")
    return (faults() - before) / len(places)
"""


@pytest.mark.skipif(not _large_pages_exist(), reason="the system has no pages of 2 MiB")
def test_many_tiles_cost_few_page_faults(library: Path) -> None:
    """Where large pages take long at first, a chip takes one of them, and the next one gets it back at once."""
    check(
        library,
        FAULTS
        + """
found = []
for chips in range(24):
    init()
    few, many = faults_of(PLACES[:4]), faults_of(PLACES[4:])
    exit_()
    assert few >= 10, few  # a client of few tiles takes no large page for them
    found.append((few, many))
    if many < few / 3:
        break
else:
    raise AssertionError(found)
""",
    )


@pytest.mark.skipif(not _large_pages_exist(), reason="the system has no pages of 2 MiB")
def test_large_pages_that_take_long_are_left(library: Path, tmp_path: Path) -> None:
    """Between two looks at the time of a thread, here always a second passes."""
    text = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *time)
{
    static long seconds;
    int (*next)(clockid_t, struct timespec *);
    *(void **)&next = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = next(clock, time);
    if (clock == CLOCK_THREAD_CPUTIME_ID)
        time->tv_sec += ++seconds;
    return failed;
}
"""
    (tmp_path / "slow.c").write_text(text)
    compiler = next(path for name in ("cc", "gcc", "clang") if (path := shutil.which(name)))
    slow = tmp_path / "slow.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", str(slow), str(tmp_path / "slow.c"), "-ldl"], check=True, timeout=60
    )
    check(
        library,
        FAULTS
        + """
init()
few, some, rest = faults_of(PLACES[:4]), faults_of(PLACES[4:12]), faults_of(PLACES[40:])
assert few >= 10 and rest >= 10, (few, some, rest)
for n, (x, y) in enumerate(PLACES):
    poke(x, y, 0x2000, struct.pack("<I", n))
assert [struct.unpack("<I", peek(x, y, 0x2000))[0] for x, y in PLACES] == list(range(140))
assert some < few / 2, (few, some)  # the first one was taken
exit_()
""",
        LD_PRELOAD=str(slow),
    )
