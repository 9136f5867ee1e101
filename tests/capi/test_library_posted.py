"""Single clocks in a row, which the library carries out many at a time: a client cannot tell by its calls."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from bhemu.chip.state import CHIP
from bhemu.machine.state import offset_of
from tests.capi.library_client import run_client
from tests.riscv.rv_asm import assemble

COUNTS = """
    li t1, 0x8000
again:
    addi t0, t0, 1
    sw t0, 0(t1)
    j again
"""
ENDS_AT_40 = """
    li t1, 40
again:
    addi t0, t0, 1
    blt t0, t1, again
    .word 0xFFFFFFFF
"""


def words(text: str) -> list[int]:
    code = assemble(text)
    return list(struct.unpack(f"<{len(code) // 4}I", code))


@pytest.mark.parametrize("between", ["pass", "word(at)", "put(at + 4, 1)", "config_read(0, 0)", "clock(3)"])
def test_a_client_sees_each_clock_that_it_has_let_pass(library: Path, between: str) -> None:
    script = f"""
init()
at = aim(1, 1, 2, 0x8000)
release_b({words(COUNTS)})
for calls in [*range(14, 22), 63, 64, 65, 79, 80, 81, 82, 145, 300]:
    for _ in range(calls): clock(1)
    {between}
    print(calls, word(at))
exit_()
"""
    posted, exact = run_client(library, script), run_client(library, script, BHEMU_PACE="exact")
    assert posted.status == exact.status == 0, posted.out
    assert [line for line in posted.out.splitlines() if line[0] != "["] == exact.out.splitlines()[:-1]
    assert re.findall(r"^\[\d+\]", posted.out, re.MULTILINE) == re.findall(r"^\[\d+\]", exact.out, re.MULTILINE)


def test_a_refusal_in_such_clocks_is_told_at_the_next_call_of_another_kind(library: Path) -> None:
    script = f"""
init()
release_b({words(ENDS_AT_40)})
for calls in range(100): clock(1)
print("in between")
word(aim(1, 1, 2, 0x8000))
print("after it")
"""
    posted, exact = run_client(library, script), run_client(library, script, BHEMU_PACE="exact")
    assert posted.status == exact.status == 1
    assert "in between" in posted.out
    assert "in between" not in exact.out
    assert "after it" not in posted.out
    assert "ERROR: " in exact.out
    assert posted.out.replace("in between\n", "") == exact.out


def test_a_client_that_only_lets_clocks_pass_meets_a_refusal(library: Path) -> None:
    script = f"init()\nrelease_b({words(ENDS_AT_40)})\nfor calls in range(10_000): clock(1)\n"
    assert run_client(library, script).status == 1


def test_clocks_that_are_left_at_the_end_of_the_process_are_carried_out(library: Path) -> None:
    """A client that never calls libttsim_exit."""
    script = f"init()\nrelease_b({words(ENDS_AT_40)})\nfor calls in range(90): clock(1)\n"
    assert "ERROR: " in run_client(library, script).out


def test_who_measures_sees_the_records_as_they_are_now(library: Path) -> None:
    """The chip's clock in its record, without another call of the interface."""
    script = f"""
init()
release_b({words(COUNTS)})
lib.bhemu_record.restype = ctypes.c_void_p
for calls in range(100): clock(1)
chip = lib.bhemu_record(0)
print(ctypes.c_int64.from_address(chip + {offset_of(CHIP, "time")}).value)
exit_()
"""
    assert run_client(library, script).out.startswith("100\n")


def test_the_longest_step_follows_single_clocks(library: Path) -> None:
    """The sum of both has more than 32 bits; the core does nothing more after some of them."""
    ends = ENDS_AT_40.replace(".word 0xFFFFFFFF", "rest: j rest")
    script = f"init()\nrelease_b({words(ends)})\nfor calls in range(50): clock(1)\nclock(0xFFFFFFFF)\nexit_()\n"
    assert run_client(library, script).out.startswith(f"[{50 + 0xFFFFFFFF}] bhemu")


POLLS = f"""
init()
at = aim(1, 1, 2, 0x8000)
release_b({words(COUNTS)})
lib.bhemu_record.restype = ctypes.c_void_p
chip = lib.bhemu_record(0)
time = lambda: ctypes.c_int64.from_address(chip + {offset_of(CHIP, "time")}).value  # which is no call of the library
for _ in range(20):  # it polls; from now on 251 clocks pass in a call
    word(at)
    clock(1)
word(at)
begun = time()
held, wall_clock, data = aim(2, 3, 4, 0xFFB121B0), aim(3, 3, 4, 0xFFB121F0), aim(4, 3, 4, 0x100)
"""
"""Core B of tile 1-2 counts; no core of tile 3-4 has been started."""


def lines(library: Path, script: str, **environment: str) -> list[str]:
    """What a script prints that begins with POLLS and ends well."""
    ended = run_client(library, POLLS + script, **environment)
    assert ended.status == 0, ended.out + ended.errors
    return [line for line in ended.out.splitlines() if line[0] != "["]


def test_clocks_wait_while_a_client_accesses_tiles_in_reset(library: Path) -> None:
    script = """
for call in range(17):
    word(held)
    clock(1)
    put(data, call)
    print((time() - begun) / 251)
"""
    assert lines(library, script) == [*(["0.0"] * 16), "17.0"]


@pytest.mark.parametrize(
    "look",
    ["word(at)", "put(at + 4, 1)", "word(wall_clock)", "word(aim(5, 17, 12, 0))", "config_read(0, 0)", "clock(2)"],
)
def test_they_are_carried_out_before_anything_else(library: Path, look: str) -> None:
    script = f"""
for call in range(3):
    word(held)
    clock(1)
print(time() - begun)
{look}
print(time() - begun)
"""
    after = 3 * 251 + (2 if look.startswith("clock") else 0)
    assert lines(library, script) == ["0", str(after)]


def test_a_tile_that_is_started_meanwhile_moves_with_the_others(library: Path) -> None:
    """By the first look at it all clocks have passed; they have begun for it when they had for the others."""
    script = f"""
word(held)
clock(1)
put(aim(6, 3, 4, 0x8000), 0)
release_b({words(COUNTS)}, 3, 4)
first = word(at)
word(held)
clock(1)
print(time() - begun, word(at) > first, word(aim(6, 3, 4, 0x8000)) > 0)
"""
    assert lines(library, script) == [f"{2 * 251} True True"]


@pytest.mark.parametrize("setting", [{"BHEMU_PACE": "exact"}, {"BHEMU_TIME": "silicon"}])
def test_they_do_not_wait_where_clocks_are_counted(library: Path, setting: dict[str, str]) -> None:
    script = """
for call in range(3):
    word(held)
    before = time()
    clock(1)
    print(time() > before)
"""
    assert lines(library, script, **setting) == ["True"] * 3


def test_they_are_carried_out_before_an_access_that_is_refused(library: Path) -> None:
    """A chip that a refusal has stopped does not move any more."""
    script = """
for call in range(3):
    word(held)
    clock(1)
read(held, 2)
print("passed", time() - begun)
word(at)
clock(1)
print("passed", time() - begun)
"""
    shown = lines(library, script, BHEMU_REFUSAL="stop")
    assert [line for line in shown if line.startswith("passed")] == [f"passed {3 * 251}"] * 2
