"""Cores that run and only poll, in loops that never come back to the same registers (bhemu/capi/only_polls.py)."""

from __future__ import annotations

import pytest

from bhemu.api.polling import Words, snapshot_of
from bhemu.capi.only_polls import explain_polling, polled_by_loops
from bhemu.chip.coordinates import tensix_index
from bhemu.machine.agents import B
from tests.chip.noc_programs import READ, WRITE, at, request, run

pytestmark = pytest.mark.plain

TILE, OTHER = (1, 2), (3, 4)
FLAG, OWN = 0x20000, 0xFFB00040
COUNTS = f"li a0, {FLAG:#x}\nli a2, {OWN:#x}\nagain: lw a1, 0(a0)\naddi a3, a3, 1\nsw a3, 0(a2)\nlw a4, 0(a2)\n"
POLLS = COUNTS + "beqz a1, again\nend: j end\n"
"""It counts how often it has polled, in a register and in its local RAM."""
WALKS = f"li a0, {FLAG:#x}\nagain: lw a1, 0(a0)\naddi a1, a1, 1\nsw a1, 0(a0)\naddi a0, a0, 4\nj again\n"
SPINS = "again: addi a0, a0, 1\nj again\n"
SLEEPS = f"li a0, {FLAG:#x}\nagain: lw a1, 0(a0)\nbeqz a1, again\n"
ROUNDS = 400


def polled(text: str) -> dict[int, Words] | None:
    chip = run({TILE: text}, 200).chip
    return polled_by_loops(snapshot_of(chip.tiles, tensix_index(TILE)), rounds=ROUNDS)


def test_a_loop_that_counts_polls_the_words_that_are_not_its_own() -> None:
    assert polled(POLLS) == {B: {FLAG: 0}}


def test_a_core_polls_its_own_memory_where_it_loads_nothing_else() -> None:
    assert polled(f"li a2, {OWN:#x}\nagain: lw a4, 0(a2)\naddi a3, a3, 1\nj again\n") == {B: {OWN: 0}}


@pytest.mark.parametrize("text", [WALKS, SPINS], ids=["goes through memory", "loads nothing"])
def test_a_core_that_computes_does_not_poll(text: str) -> None:
    assert polled(text) is None


def test_what_is_loaded_before_the_loop_is_not_polled() -> None:
    before = "".join(f"li a0, {0x30000 + 4 * n:#x}\nlw a1, 0(a0)\n" for n in range(40))
    chip = run({TILE: before + POLLS}, 20).chip
    assert polled_by_loops(snapshot_of(chip.tiles, tensix_index(TILE)), rounds=ROUNDS) == {B: {FLAG: 0}}


@pytest.mark.parametrize("ctrl", [READ, WRITE], ids=["reads", "writes"])
def test_a_core_that_polls_over_the_noc_polls_and_one_that_writes_does_more(ctrl: int) -> None:
    here, there = (at(*OTHER), at(*TILE)) if ctrl == READ else (at(*TILE), at(*OTHER))
    asks = request(target=FLAG, target_hi=here, back=FLAG, back_hi=there, ctrl=ctrl, length=16)
    found = polled(f"again: li a4, {FLAG:#x}\nlw a1, 0(a4)\naddi a7, a7, 1\n{asks}j again\n")
    assert found == ({B: {FLAG: 0}} if ctrl == READ else None)


def test_the_lines_name_tiles_cores_and_words() -> None:
    chip = run({TILE: POLLS, OTHER: POLLS}, 200).chip
    told = explain_polling(chip)
    assert told is not None
    lines = told.splitlines()
    assert lines[0] == "  tile 1-2"
    assert lines[1].endswith("polls 0x20000, which holds 0x0")
    assert lines[1].startswith("    core B at 0x")
    assert "1 more tile the same: 3-4" in told or "  tile 3-4" in lines


def test_a_chip_on_which_one_core_computes_is_not_told() -> None:
    assert explain_polling(run({TILE: POLLS, OTHER: WALKS}, 200).chip) is None


def test_cores_that_sleep_are_among_those_that_poll() -> None:
    told = explain_polling(run({TILE: POLLS, OTHER: SLEEPS}, 200).chip)
    assert told is not None
    assert "  tile 3-4\n    core B at 0x00004: polls 0x20000, which holds 0x0\n" in told
