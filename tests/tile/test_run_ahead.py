"""Cores that are ahead of their tile's other agents at L1 and in pushes (bhemu/chip/clock/run.py)."""

from __future__ import annotations

import random

import pytest

from bhemu import Tile
from bhemu.isa.assembler import assemble as tensix
from tests.riscv.rv_machine import SCRATCH, machine, words

TURNS = 6
FLAGS, SUMS = SCRATCH, SCRATCH + 0x100
COPROCESSOR_DONE = 0xFFE80004
GPRS = 0xFFE00000
CORES = ("T0", "T1", "T2")


def _program(core: int, chance: random.Random) -> str:
    """A core that has its turn after the core before it: it adds up what its thread computes, and passes the sum on."""
    before, after = FLAGS + 4 * ((core + 2) % 3), FLAGS + 4 * core
    text = f"li a0, {before}\nli a1, {after}\nli a2, {SUMS}\nli a3, {COPROCESSOR_DONE:#x}\nli a4, {GPRS:#x}\nli s0, 0\n"
    for turn in range(TURNS):
        wanted = turn + (1 if core else 0)
        text += f"li t1, {wanted}\nwait{turn}: lw t0, 0(a0)\nbne t0, t1, wait{turn}\n"
        text += f"li t2, {chance.randrange(1, 40)}\nbusy{turn}: sw t2, {0x40 + 4 * core}(a2)\naddi t2, t2, -1\n"
        text += f"bnez t2, busy{turn}\n"
        for _ in range(chance.randrange(1, 60)):
            text += f".ttinsn {tensix(f'ADDDMAREG 1, 4, {chance.randrange(1, 9)}, 4'):#x}\n"
        text += "sw zero, 0(a3)\nlw t0, 0(a3)\n"
        text += f"lw t0, 16(a4)\nlw t1, 0(a2)\nadd t0, t0, t1\nsw t0, 0(a2)\nli t1, {turn + 1}\nsw t1, 0(a1)\n"
    return text + "end: j end\n"


def _results(seed: int, ahead: int, *, simulator_order: bool) -> tuple[list[int], list[int]]:
    chance = random.Random(seed)
    programs = {name: _program(number, chance) for number, name in enumerate(CORES)}
    tile = Tile()
    tile.record.simulator_order = simulator_order
    tile.record.run_ahead = ahead
    machine(programs, tile=tile)
    for clocks in (1, 7, 500, 1, 20_000):
        tile.clock(clocks)
    return words(tile, 3, FLAGS), words(tile, 1, SUMS)


@pytest.mark.parametrize("simulator_order", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_a_program_without_races_computes_the_same(seed: int, simulator_order: bool) -> None:
    exact = _results(seed, 0, simulator_order=simulator_order)
    assert exact[0] == [TURNS] * 3
    assert exact[1] != [0]
    for ahead in (1, 16, 300):
        assert _results(seed, ahead, simulator_order=simulator_order) == exact
