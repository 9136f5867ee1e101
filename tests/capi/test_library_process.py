"""The simulator behind the C library in a process of its own (BHEMU_PROCESS=own)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.c_programs import compiler_or_skip
from tests.capi.library_client import Ended, pythons, run_client
from tests.processes import HANG, finished, wait_until

# Clients read /proc to find the simulator's process.
CHILDREN = """
import os, signal, time
def children():
    return [int(pid) for pid in open(f"/proc/self/task/{os.getpid()}/children").read().split()]
"""


def run(library: Path, script: str, **environment: str) -> Ended:
    return run_client(library, CHILDREN + script, BHEMU_PROCESS="own", **environment)


def check(library: Path, script: str) -> str:
    ended = run(library, script)
    assert ended.status == 0, ended.out + ended.errors
    return ended.out


def test_nothing_of_bhemu_is_in_the_client(library: Path) -> None:
    check(library, "init(); clock(1); assert len(children()) == 1; assert 'numpy' not in sys.modules; exit_()")


def test_megabytes_go_through_in_pieces(library: Path) -> None:
    """40 MB, through a 4 GiB window, to an odd address: more than the shared memory holds."""
    check(
        library,
        """
init()
content = bytes(range(251)) * (40_000_000 // 251)
place = aim(205, 17, 12, 77)
write(place, content)
assert read(place, len(content)) == content
assert read(place - 1, 3) == b"\\0" + content[:2]
exit_()
""",
    )


def test_writes_and_clocks_that_are_not_answered_keep_their_order(library: Path) -> None:
    """More of them than the shared memory holds, clocks between them, and one that is too large for it."""
    out = check(
        library,
        """
init()
place = aim(205, 17, 12, 0)
for number in range(60_000):
    write(place + 32 * (number % 1000), struct.pack("<I", number) * 8)
    if number % 2000 == 0: clock(2)
write(place + 32_000, bytes(3_000_000)); write(place + 32_004, b"abc")
content = read(place, 32_008)
assert [struct.unpack_from("<I", content, 32 * at)[0] for at in range(1000)] == list(range(59_000, 60_000))
assert content[32_000:] == b"\\0\\0\\0\\0abc\\0"
exit_()
""",
    )
    assert out.startswith("[60] bhemu: ")


def test_a_refused_write_ends_the_client_at_the_next_call(library: Path) -> None:
    ended = run(library, "init(); write(1 << 60, b'word'); word(aim(0, 1, 2, 0)); print('not reached')")
    assert ended.status == 1
    assert ended.out.startswith("[0] ERROR: UndefinedBehavior: libttsim_pci_mem_wr_bytes: nothing is built at PCI")
    assert "not reached" not in ended.out


def test_threads_may_call_at_the_same_time(library: Path) -> None:
    out = check(
        library,
        """
import threading
init()
threads = [threading.Thread(target=lambda: [lib.libttsim_clock(1) for _ in range(200)]) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
exit_()
""",
    )
    assert out.startswith("[800] bhemu: ")


THREAD = """
#include <pthread.h>
#include <stdint.h>
static void (*called)(uint32_t);
static void *work(void *unused)
{
    called(3);
    return unused;
}
void clock_in_another_thread(void (*function)(uint32_t))
{
    pthread_t thread;
    called = function;
    pthread_create(&thread, 0, work, 0);
    pthread_join(thread, 0);
}
"""


KEEPS_THE_LOCK = """
init()
helper = ctypes.PyDLL({helper!r})  # its calls keep Python's lock
signal.signal(signal.SIGALRM, signal.SIG_DFL)
signal.alarm({seconds})
helper.clock_in_another_thread(ctypes.cast(lib.libttsim_{function}, ctypes.c_void_p))
signal.alarm(0)
exit_()
"""


@pytest.fixture
def helper(tmp_path: Path) -> str:
    (tmp_path / "thread.c").write_text(THREAD)
    compiler = compiler_or_skip("NO OTHER THREAD KEEPS THE LOCK")
    subprocess.run([*compiler, "-shared", "-fPIC", "-pthread", "thread.c", "-o", "thread.so"], cwd=tmp_path, check=True)
    return str(tmp_path / "thread.so")


def test_a_thread_may_call_while_another_keeps_pythons_lock(library: Path, helper: str) -> None:
    """As ttnn does: its main thread waits for others and keeps the lock."""
    out = check(library, KEEPS_THE_LOCK.format(helper=helper, seconds=HANG, function="clock"))
    assert out.startswith("[3] bhemu: ")


def test_nothing_in_the_clients_process_needs_its_pythons_lock(library: Path, helper: str) -> None:
    script = CHILDREN + KEEPS_THE_LOCK.format(helper=helper, seconds=HANG, function="clock")
    ended = run_client(library, script, BHEMU_PROCESS="client")
    assert ended.status == 0, ended.out + ended.errors
    assert ended.out.startswith("[3] bhemu: ")


def test_threads_wait_their_turn(library: Path) -> None:
    script = """
import threading
init()
def work():
    for _ in range(300):
        config_read(0, 0)
threads = [threading.Thread(target=work) for _ in range(3)]
[thread.start() for thread in threads]
until = time.monotonic() + 3
while time.monotonic() < until:
    pass
[thread.join() for thread in threads]
exit_()
"""
    ended = run_client(library, CHILDREN + script, BHEMU_PROCESS="client", BHEMU_PATIENCE="2")
    assert ended.status == 0, ended.out + ended.errors


@pytest.mark.parametrize("process", ["client", "own"])
def test_the_library_may_be_unloaded_and_loaded_again(library: Path, process: str) -> None:
    """As tt-umd does; another thread has called it, so one of its own threads is still waiting."""
    script = f"""
import _ctypes, threading
def work():
    init(); config_read(0, 0)
    thread = threading.Thread(target=config_read, args=(0, 0)); thread.start(); thread.join()
    clock(2); exit_()
work()
_ctypes.dlclose(lib._handle)
time.sleep(0.6)
lib = ctypes.CDLL({str(library)!r})
init, exit_, clock, config_read = (
    getattr(lib, "libttsim_" + name) for name in ("init", "exit", "clock", "pci_config_rd32"))
work()
"""
    ended = run_client(library, CHILDREN + script, BHEMU_PROCESS=process)
    assert ended.status == 0, ended.out + ended.errors
    assert [line.partition(":")[0] for line in ended.out.splitlines()] == ["[2] bhemu", "[2] bhemu"]


def test_refusals_end_the_client_with_the_message(library: Path) -> None:
    ended = run(library, "init(); clock(3); read(1 << 60, 4)")
    assert ended.status == 1
    assert ended.out.startswith("[3] ERROR: UndefinedBehavior: libttsim_pci_mem_rd_bytes: nothing is built at PCI")


def test_the_simulators_process_is_killed(library: Path) -> None:
    ended = run(library, "init(); os.kill(children()[0], signal.SIGKILL); time.sleep(0.1); clock(1)")
    assert ended.status == 1
    assert (
        "[0] ERROR: ConfigurationError: libttsim: the process of the simulator exited without an error message"
        in ended.out
    )


def test_files_of_the_client_are_its_own(library: Path) -> None:
    """Who reads from a pipe that the client closes gets to the end of it."""
    check(
        library,
        """
reading, writing = os.pipe()
for end in (reading, writing):
    os.set_inheritable(end, True)
init()
os.close(writing)
signal.alarm(300)
assert os.read(reading, 1) == b""
exit_()
""",
    )


def test_it_ends_with_the_client(library: Path) -> None:
    ended = run(library, "init(); print(children()[0], flush=True); os._exit(5)")
    assert ended.status == 5
    server = int(ended.out.split()[0])
    wait_until(lambda: not Path(f"/proc/{server}").exists(), "the end of the simulator's process")


def test_a_fork_of_the_client_is_refused(library: Path) -> None:
    out = check(
        library,
        """
init()
child = os.fork()
if child == 0:
    clock(1)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
clock(2)
exit_()
""",
    )
    assert "belongs to the process from which this one was forked" in out
    assert "[2] bhemu: " in out


def test_another_value_of_the_variable_is_refused(library: Path) -> None:
    ended = run_client(library, "init()", BHEMU_PROCESS="other")
    assert ended.status == 1
    assert "ERROR: ConfigurationError: libttsim_init: BHEMU_PROCESS is 'other'" in ended.out


def test_clients_of_another_python(library: Path) -> None:
    """The library asks nothing of it."""
    others = [path for minor in (9, 10, 12, 13, 14) if minor != sys.version_info.minor for path in pythons(minor)[:1]]
    if not others:
        pytest.skip("there is no other Python")
    script = (
        "import ctypes, sys; lib = ctypes.CDLL(sys.argv[1]); before = list(sys.path); lib.libttsim_init(); "
        "lib.libttsim_clock(4); lib.libttsim_exit(); assert sys.path == before, sys.path"
    )
    for python in others:
        done = finished([python, "-c", script, library])
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.startswith("[4] bhemu: ")
