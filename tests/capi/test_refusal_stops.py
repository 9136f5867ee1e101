"""BHEMU_REFUSAL=stop: a refusal stops the chip, and the client's process lives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.capi.library_client import Ended, run_client
from tests.riscv.rv_asm import assemble

STORE = "li a0, 0x100\nli a1, {value}\nsw a1, 0(a0)\n"
"""Leaves a number at 0x100 of L1."""
NO_INSTRUCTION = 0xFFFFFFFF


def words(text: str) -> list[int]:
    """A program as words."""
    return [int(word) for word in np.frombuffer(assemble(text), np.uint32)]


REFUSED = [*words(STORE.format(value=77)), NO_INSTRUCTION]
WORKS = words(STORE.format(value=78) + "end: j end")
MESSAGE = "ERROR: UndefinedBehavior: libttsim_clock: "


@pytest.fixture(params=["client", "own"])
def process(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def run(library: Path, process: str, script: str, **environment: str) -> Ended:
    ended = run_client(library, script, BHEMU_REFUSAL="stop", BHEMU_PROCESS=process, **environment)
    assert ended.status == 0, ended.out + ended.errors
    return ended


def test_the_state_can_be_read_behind_a_refusal(library: Path, process: str) -> None:
    out = run(library, process, f"init(); release_b({REFUSED}); clock(50); print(peek(1, 2, 0x100)); exit_()").out
    assert out.count("ERROR") == 1
    assert MESSAGE in out
    assert "at: tile 1-2, core B, pc 0xc" in out
    assert r"b'M\x00\x00\x00'" in out


def test_no_more_clocks_pass_and_the_end_names_the_clock_of_the_refusal(library: Path, process: str) -> None:
    """Another core counts: it stays where it was."""
    count = words("li a0, 0x200\nmore: addi a1, a1, 1\nsw a1, 0(a0)\nj more")
    script = f"""
init(); release_b({count}, 2, 2); release_b({REFUSED})
for _ in range(30): clock(1)
before = peek(2, 2, 0x200)
clock(1000)
print(before == peek(2, 2, 0x200), before != bytes(4))
exit_()
"""
    lines = run(library, process, script).out.splitlines()
    refused, end = (next(line for line in lines if part in line) for part in (MESSAGE, "seconds"))
    assert refused.partition("]")[0] == end.partition("]")[0]
    assert "True True" in lines


def test_a_read_that_is_refused_gives_ones(library: Path, process: str) -> None:
    script = "init(); print(read(1 << 60, 6) == bytes([255] * 6), hex(config_read(0x100, 0))); exit_()"
    out = run(library, process, script).out
    assert "True 0xffffffff" in out
    assert out.count("ERROR") == 2


def test_every_refusal_is_told_with_its_own_place(library: Path) -> None:
    for settings in ({}, {"BHEMU_PYTHON": "/no/python"}):
        script = f"init(); release_b({REFUSED}, 3, 4); clock(50); peek(1, 2, 0x200000); peek(2, 2, 0xFFB12FFE); exit_()"
        out = run(library, "client", script, **settings).out
        messages = [line for line in out.splitlines() if "ERROR" in line]
        assert len(messages) == 3
        assert "Tensix tile 1-2: 4 bytes at 0x200000, L1 ends at 0x180000" in messages[1]
        assert "Tensix tile 2-2: 4 bytes at 0xffb12ffe, where there are registers of 4 bytes" in messages[2]


def test_the_next_chip_is_a_new_one(library: Path, process: str) -> None:
    script = f"""
for program in ({REFUSED}, {WORKS}, {REFUSED}, {WORKS}):
    init()
    before = peek(1, 2, 0x100)[0]
    release_b(program)
    clock(50)
    print(before, peek(1, 2, 0x100)[0])
    exit_()
"""
    lines = run(library, process, script).out.splitlines()
    assert [line for line in lines if line[0] == "0"] == ["0 77", "0 78", "0 77", "0 78"]
    assert sum(MESSAGE in line for line in lines) == 2
    assert sum(line.startswith("[50] bhemu: ") for line in lines) == 2


def test_a_refusal_on_many_tiles_and_threads_stops_them_all(library: Path) -> None:
    tiles = [(x, y) for x in range(1, 8) for y in range(2, 8)]
    script = f"""
for turn in range(2):
    init()
    for x, y in {tiles}:
        release_b({WORKS} if turn or (x, y) != (3, 3) else [{NO_INSTRUCTION}], x, y)
    clock(5000)
    print(sum(peek(x, y, 0x100)[0] == 78 for x, y in {tiles}))
    exit_()
"""
    out = run(library, "client", script, BHEMU_THREADS="4").out
    assert out.count("ERROR") == 1
    assert str(len(tiles)) in out.splitlines()


FORKED = """
import os
init()
{before}
for _ in range(2):
    child = os.fork()
    if child == 0:
        {child}
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
release_b({works}); clock(50); print("parent", peek(1, 2, 0x100)[0])
exit_()
"""


def test_forked_workers_have_chips_of_their_own(library: Path, process: str) -> None:
    child = f"exit_(); init(); release_b({REFUSED}); clock(50); print('child', peek(1, 2, 0x100)[0]); exit_()"
    out = run(library, process, FORKED.format(before="clock(1)", child=child, works=WORKS)).out
    assert out.count("child 77") == 2
    assert "parent 78" in out


def test_a_forked_worker_goes_on_with_a_copy_of_the_chip(library: Path) -> None:
    child = f"release_b({REFUSED}); clock(50); print('child', peek(1, 2, 0x100)[0])"
    out = run(library, "client", FORKED.format(before="clock(1)", child=child, works=WORKS)).out
    assert out.count("child 77") == 2
    assert "parent 78" in out


def test_a_worker_that_is_forked_while_another_thread_calls_can_call(library: Path) -> None:
    script = """
import os, threading
init()
ends = threading.Event()
def work():
    while not ends.is_set():
        clock(20000)
release_b([0x0000006F])
thread = threading.Thread(target=work); thread.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        clock(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
ends.set(); thread.join()
exit_()
"""
    run(library, "client", script)


def test_calls_that_may_not_be_made_are_refused_and_the_process_lives(library: Path, process: str) -> None:
    script = "init(); exit_(); clock(1); print(read(1 << 32, 2)); init(); init(); exit_()"
    out = run(library, process, script).out
    assert out.count("the simulator is not running") == 2
    assert out.count("the simulator is running already") == 1
    assert r"b'\xff\xff'" in out


def test_functions_of_the_older_interface_stop_the_chip(library: Path) -> None:
    script = """
init()
buffer = ctypes.create_string_buffer(4)
lib.libttsim_tile_rd_bytes(1, 2, 0, buffer, 4)
print(buffer.raw)
clock(7)
exit_()
"""
    out = run(library, "client", script).out
    assert "this function belongs to an older interface" in out
    assert r"b'\xff\xff\xff\xff'" in out
    assert "[0] bhemu: " in out


TOLD = f"""
import os, tempfile
file, out = tempfile.TemporaryFile(), os.dup(1)
os.dup2(file.fileno(), 1)
init()
at = aim(1, 1, 2, 0x100)
release_b({REFUSED})
def wait():
    for _ in range(1000):
        clock(1); word(at)
while b"still polls" not in os.pread(file.fileno(), 1 << 16, 0):
    wait()
wait()
os.dup2(out, 1)
print(os.pread(file.fileno(), 1 << 16, 0).decode())
exit_()
"""


def test_a_client_that_polls_a_stopped_chip_is_told_once(library: Path, process: str) -> None:
    out = run(library, process, TOLD, BHEMU_PATIENCE="1").out
    assert out.count("a refusal has stopped the chip, and the host still polls") == 1


def test_the_state_is_dumped_as_without_it(library: Path, process: str, tmp_path: Path) -> None:
    dump = tmp_path / "state.npz"
    run(library, process, f"init(); release_b({REFUSED}); clock(50); exit_()", BHEMU_DUMP=str(dump))
    with np.load(dump) as state:
        assert state["l1"][0x100] == 77


def test_what_is_refused_before_there_is_a_chip_ends_the_process(library: Path) -> None:
    for settings in ({"BHEMU_REFUSAL": "ignore"}, {"BHEMU_REFUSAL": "stop", "BHEMU_REFUSALS": "stop"}):
        ended = run_client(library, "init(); print('lives')", **settings)
        assert ended.status == 1
        assert "ERROR: ConfigurationError: libttsim_init: BHEMU_REFUSAL" in ended.out
        assert "lives" not in ended.out
