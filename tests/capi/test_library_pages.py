"""Memory of tiles (bhemu/capi/pages.c): taken together and by two threads, it holds what it held."""

from __future__ import annotations

import mmap
import os
import subprocess
from pathlib import Path

import pytest

from bhemu.machine.state import FIRMWARE_PAGES, PAGE, TILE, offset_of
from tests.c_programs import compiler_or_skip
from tests.capi.library_client import run_client, run_forked

PLACES = "PLACES = [(x, y) for y in range(2, 12) for x in (*range(1, 8), *range(10, 17))]\n"
"""Of all 140 Tensix tiles."""


def _takes_pages() -> bool:
    """The system takes pages of a process together (Linux 5.14), and they have 4 KiB."""
    memory = mmap.mmap(-1, PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    try:
        memory.madvise(23)  # MADV_POPULATE_WRITE
    except OSError:
        return False
    return mmap.PAGESIZE == PAGE


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
# A multicast writes into tiles that the client has not named yet: L1 inside and outside of what the first tiles have.
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


LOOK = f"""
import os, time
libc = ctypes.CDLL(None)
libc.mincore.argtypes = [ptr, ctypes.c_size_t, ptr]
lib.bhemu_record.restype = ptr
PAGES, L1, FIRMWARE = {TILE.itemsize // PAGE}, {offset_of(TILE, "l1") // PAGE}, set({FIRMWARE_PAGES})

def pages(n):
    # those of the tile's record that have memory
    has = (ctypes.c_ubyte * PAGES)()
    assert libc.mincore(lib.bhemu_record(1) + n * PAGES * {PAGE}, PAGES * {PAGE}, has) == 0
    return {{page for page in range(PAGES) if has[page] & 1}}

def l1(n):  # which firmware does not use
    return {{page - L1 for page in pages(n) - FIRMWARE if page >= L1}}

def reach(n, *touched):
    for page in touched:
        poke(*PLACES[n], page * {PAGE} + 16, bytes([n, page]))

def helper_sleeps():
    states = [open("/proc/self/task/" + thread + "/stat").read().rpartition(")")[2].split()[0]
              for thread in os.listdir("/proc/self/task") if thread != str(os.getpid())]
    return set(states) == {{"S"}}

init()
"""


def check_pages(library: Path, script: str) -> None:
    """What has memory, where a helper may take some of it; the script begins with a new chip."""
    check(library, LOOK + script, BHEMU_THREADS="2")


together = pytest.mark.skipif(not _takes_pages(), reason="the system takes single pages, or others than of 4 KiB")


@together
def test_a_tile_gets_what_the_first_ones_have_in_common(library: Path) -> None:
    check_pages(
        library,
        """
for n in range(4):
    reach(n, 1, 8, 9, 20 + n)
assert [l1(n) for n in range(4)] == [{1, 8, 9, 20 + n} for n in range(4)]
assert not FIRMWARE <= pages(3)
reach(30, 200)
assert l1(30) == {1, 8, 9, 200} and FIRMWARE <= pages(30)
assert all(not l1(n) for n in range(140) if n not in (0, 1, 2, 3, 30))
""",
    )


@together
def test_much_that_the_first_tiles_hold_is_not_expected_of_others(library: Path) -> None:
    check_pages(
        library,
        """
for n in range(4):
    reach(n, *range(130))
reach(30, 8)
assert l1(30) == {8} and FIRMWARE <= pages(30)
""",
    )


@together
def test_a_helper_takes_as_many_tiles_ahead_as_were_reached_in_a_row(library: Path) -> None:
    check_pages(
        library,
        """
for n in range(140):
    reach(n, 1, 14)
    until = time.monotonic() + 100
    furthest = min(2 * n, 139)
    while n >= 4 and furthest >= n + 3 and time.monotonic() < until:
        if l1(furthest) == {1, 14} and helper_sleeps():  # it may be called again
            break
        time.sleep(0.001)
    assert all((l1(ahead) == {1, 14}) == (4 <= n and ahead <= 2 * n) for ahead in range(n + 3, 140)), n
assert all(FIRMWARE <= pages(n) for n in range(4, 140))
assert all(peek(*PLACES[n], page * 4096 + 16, 3) == bytes([n, page, 0]) for n in range(140) for page in (1, 14))
exit_()
init()
assert all(not l1(n) for n in range(140))
assert {peek(*place, 16) for place in PLACES} == {bytes(4)}
exit_()
""",
    )


@together
@pytest.mark.parametrize("step", [2, -1])
def test_it_takes_none_where_tiles_are_not_reached_in_a_row(library: Path, step: int) -> None:
    check_pages(
        library,
        f"""
order = list(range(140))[::{step}][:60]
for n in order:
    reach(n, 1, 14)
time.sleep(0.05)
assert all(not l1(n) for n in range(140) if n not in order)
""",
    )


# Linux may be told not to have userfaultfd, and containers often are.
WITHOUT = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/syscall.h>
long syscall(long number, long a, long b, long c, long d, long e, long f)
{
    long (*next)(long, long, long, long, long, long, long);
    *(void **)&next = dlsym(RTLD_NEXT, "syscall");
    if (number != SYS_userfaultfd)
        return next(number, a, b, c, d, e, f);
    errno = EPERM;
    return -1;
}
"""
FILLED = """
def filled():
    # the tiles' memory is registered with userfaultfd
    at, lines = lib.bhemu_record(1), open("/proc/self/smaps").read().splitlines()
    for line in lines:
        first, _, last = line.split()[0].partition("-")
        if last:
            here = int(first, 16) <= at < int(last, 16)
        elif here and line.startswith("VmFlags:"):
            return "uw" in line.split()
"""


def _preloaded(tmp_path: Path, text: str) -> str:
    """LD_PRELOAD for a library that takes the place of functions of the C library."""
    (tmp_path / "instead.c").write_text(text)
    compiler = compiler_or_skip("NO OTHER FUNCTIONS OF THE C LIBRARY ARE TRIED")
    built = tmp_path / "instead.so"
    command = [*compiler, "-shared", "-fPIC", "-o", str(built), str(tmp_path / "instead.c"), "-ldl"]
    subprocess.run(command, check=True, timeout=60)
    return ":".join(filter(None, [os.environ.get("LD_PRELOAD"), str(built)]))  # a sanitizer's runtime comes first


@together
@pytest.mark.parametrize("may", [True, False])
def test_pages_are_taken_with_and_without_userfaultfd(library: Path, tmp_path: Path, may: bool) -> None:
    script = (
        FILLED
        + f"""
for n in range(4):
    reach(n, 1, 8)
    assert not filled()
write(aim(1, 16, 11, 0x8010, start=(1, 2)), b"many")
reach(30, 200)
assert {{1, 8, 200}} <= l1(30) and FIRMWARE <= pages(30)
assert peek(*PLACES[30], 0x8010) == b"many" and peek(*PLACES[30], 0x1000, 16) == bytes(16)
assert filled() or not {may}
print("filled" if filled() else "not filled")
exit_()
"""
    )
    preload = {} if may else {"LD_PRELOAD": _preloaded(tmp_path, WITHOUT)}
    out = check(library, LOOK + script, BHEMU_THREADS="1", **preload)
    assert may or out.startswith("not filled\n")


@together
def test_a_forked_child_takes_no_pages_in_its_parent(library: Path) -> None:
    check_pages(
        library,
        """
for n in range(10):
    reach(n, 1)
before = [pages(n) for n in range(140)]
child = os.fork()
if not child:
    for n in range(20, 140):
        reach(n, 1)
    os._exit(0 if FIRMWARE <= pages(100) else 1)
assert os.waitpid(child, 0)[1] == 0
assert [pages(n) for n in range(20, 140)] == before[20:]
""",
    )


@together
def test_many_tiles_cost_few_page_faults(library: Path) -> None:
    check(
        library,
        FILLED
        + """
import resource
faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def faults_of(places):
    before = faults()
    for x, y in places:
        for page in range(10):
            poke(x, y, page << 12, b"1")
    return (faults() - before) / len(places)

init()
few, many = faults_of(PLACES[:4]), faults_of(PLACES[5:])
assert few >= 10, few
assert many < few / 3 or not filled(), (few, many)
exit_()
""",
        BHEMU_THREADS="1",
    )
