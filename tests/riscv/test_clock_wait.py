"""A core that waits for the clock passes turns of its loop at once, and nothing else changes (riscv/clock_wait.py)."""

from __future__ import annotations

import random

import pytest

from bhemu import Tile
from bhemu.machine.core_state import FIRST_POLL_ATTEMPT
from tests.riscv.rv_machine import SCRATCH, machine, words

CLOCK = 0xFFB121F0
RESULTS = SCRATCH + 0x1000
LOOPS = {
    # as tt-metal waits
    "both halves": """
        lw a0, 0(s0)
        lw a1, 8(s0)
        add a2, a0, s1
        sltu a3, a2, a0
        add a3, a3, a1
    loop{n}:
        lw t0, 0(s0)
        lw t1, 8(s0)
        bltu t1, a3, loop{n}
        bne a3, t1, out{n}
        bltu t0, a2, loop{n}
    out{n}:
    """,
    "from below": """
        lw a0, 0(s0)
        add a2, a0, s1
    loop{n}:
        lw t0, 0(s0)
        addi t2, s1, 5
        bgeu t0, a2, out{n}
        j loop{n}
    out{n}:
    """,
    "up to": """
        lw a0, 0(s0)
        add a2, a0, s1
    loop{n}:
        lw t0, 0(s0)
        nop
        bgeu a2, t0, loop{n}
    """,
    # not such loops: what a turn gets depends on the turn before, the clock is calculated with, or it has a sign
    "counts": """
        lw a0, 0(s0)
        add a2, a0, s1
    loop{n}:
        lw t0, 0(s0)
        addi s5, s5, 1
        bltu t0, a2, loop{n}
    """,
    "last turn's": """
        lw a0, 0(s0)
        add a2, a0, s1
        mv t0, a0
    loop{n}:
        mv t1, t0
        lw t0, 0(s0)
        bltu t1, a2, loop{n}
    """,
    "difference": """
        lw a0, 0(s0)
    loop{n}:
        lw t0, 0(s0)
        sub t1, t0, a0
        bltu t1, s1, loop{n}
    """,
    "calculated": """
        lw a0, 0(s0)
        add a2, a0, s1
    loop{n}:
        lw t0, 0(s0)
        andi t0, t0, -4
        bltu t0, a2, loop{n}
    """,
    "equal": """
        lw a0, 0(s0)
        add a2, a0, s1
        addi a4, a2, -9
    loop{n}:
        lw t0, 0(s0)
        beq t0, a4, out{n}
        bltu t0, a2, loop{n}
    out{n}:
    """,
}


def _program(kind: str, waits: list[int], place: int) -> str:
    """A core that waits again and again, and keeps what its registers hold after each wait."""
    text = f"li s0, {CLOCK:#x}\nli s2, {place}\nli s5, 0\n"
    for n, wait in enumerate(waits):
        text += f"li s1, {wait}\n{LOOPS[kind].format(n=n)}\n"
        text += "csrr s6, 0xB02\n"
        text += "".join(f"sw {register}, {4 * i}(s2)\n" for i, register in enumerate(("t0", "t1", "a0", "s5", "s6")))
        text += "addi s2, s2, 20\n"
    return text + "end: j end\n"


def _state(kind: str, seed: int, steps: list[int], *, start: int, others: bool) -> tuple[list[int], list[int]]:
    chance = random.Random(seed)
    waits = [chance.choice((0, 1, 3, 17, 120, 600)) for _ in range(5)]
    programs = {"T1": _program(kind, waits, RESULTS)}
    if others:
        waits = [chance.choice((0, 2, 50, 333)) for _ in range(4)]
        programs |= {"B": _program("both halves", waits, RESULTS + 0x400), "T2": "end: j end\n"}
    tile = Tile()
    tile.record.clock = tile.record.round_goal = start
    machine(programs, tile=tile)
    for clocks in steps:
        tile.clock(clocks)
    record = tile.record
    return words(tile, 0x200, RESULTS), [
        int(record.wall_clock_latch),
        *map(int, record.clock_read),
        *map(int, record.core_pc),
    ]


@pytest.mark.rule("tile K32")
@pytest.mark.parametrize("others", [False, True])
@pytest.mark.parametrize("start", [0, (1 << 32) - 700])
@pytest.mark.parametrize("kind", LOOPS)
def test_a_core_that_waits_for_the_clock_goes_on_when_it_would(kind: str, start: int, others: bool) -> None:
    for seed in range(2):
        one_by_one = _state(kind, seed, [1] * 3000, start=start, others=others)
        assert any(one_by_one[0])
        for steps in ([3000], [7] * 428 + [4], [67] * 44 + [52]):
            assert _state(kind, seed, steps, start=start, others=others) == one_by_one


@pytest.mark.parametrize(("kind", "passes"), [("both halves", True), ("from below", True), ("counts", False)])
def test_turns_of_such_a_loop_pass_at_once(kind: str, passes: bool) -> None:
    """An attempt that fails is followed by a longer pause, and there is none between those that succeed."""
    tile = machine({"T1": _program(kind, [9000], RESULTS)})
    tile.clock(8000)
    assert int(tile.record.core_round[2]) == 8000
    assert (int(tile.record.core_loops_limit[2]) == FIRST_POLL_ATTEMPT) == passes
