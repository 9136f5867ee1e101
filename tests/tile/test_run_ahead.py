"""Cores that are ahead of their tile's other agents at L1 and in pushes (bhemu/chip/clock/run.py)."""

from __future__ import annotations

import random

import pytest

from bhemu import Tile
from bhemu.isa.assembler import assemble as tensix
from bhemu.tensix.overlay_words import SLOT
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


STREAM_WORD, STREAM_STEP = 0xFFB40028, 0x1000
NIU_WORD, INITIATOR_STEP = 0xFFB20000, 0x800
PUSH_WINDOW = 0xFFE40000


def _registers(core: int, chance: random.Random) -> str:
    """The same with registers: streams say whose turn it is, NIUs and GPRs hold numbers, stores push instructions."""
    before, after = STREAM_WORD + STREAM_STEP * ((core + 2) % 3), STREAM_WORD + STREAM_STEP * core
    text = f"li a0, {before:#x}\nli a1, {after:#x}\nli a2, {SUMS}\nli a3, {COPROCESSOR_DONE:#x}\nli a4, {GPRS:#x}\n"
    text += f"li a5, {NIU_WORD + INITIATOR_STEP * core:#x}\nli a6, {PUSH_WINDOW:#x}\n"
    for turn in range(TURNS):
        number, words = chance.randrange(1, 2000), chance.randrange(1, 20)
        text += f"li t1, {turn + (1 if core else 0)}\nwait{turn}: lw t0, 0(a0)\nbne t0, t1, wait{turn}\n"
        text += f"li t2, {chance.randrange(1, 40)}\nbusy{turn}: sw t2, 4(a5)\naddi t2, t2, -1\nbnez t2, busy{turn}\n"
        text += f"li t2, {number}\nsw t2, 0(a5)\nsw t2, 16(a4)\nli t3, {tensix('ADDDMAREG 1, 4, 3, 4'):#x}\n"
        text += "sw t3, 0(a6)\n" * words + "sw zero, 0(a3)\nlw t0, 0(a3)\n"
        text += "lw t0, 16(a4)\nlw t1, 0(a5)\nadd t0, t0, t1\nlw t1, 0(a2)\nadd t0, t0, t1\nsw t0, 0(a2)\n"
        text += f"li t1, {turn + 1}\nsw t1, 0(a1)\n"
    return text + "end: j end\n"


@pytest.mark.parametrize("simulator_order", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_a_program_without_races_that_works_with_registers_computes_the_same(seed: int, simulator_order: bool) -> None:
    def results(ahead: int) -> int:
        chance = random.Random(seed)
        tile = Tile()
        tile.record.simulator_order = simulator_order
        tile.record.run_ahead = ahead
        machine({name: _registers(number, chance) for number, name in enumerate(CORES)}, tile=tile)
        for clocks in (1, 7, 500, 1, 20_000):
            tile.clock(clocks)
        assert [int(tile.record.stream_word[SLOT[10], stream]) for stream in range(3)] == [TURNS] * 3
        return words(tile, 1, SUMS)[0]

    exact = results(0)
    assert exact != 0
    assert [results(ahead) for ahead in (1, 16, 300)] == [exact] * 3


@pytest.mark.rule("tile T34")
@pytest.mark.parametrize(
    ("address", "early"),
    [
        pytest.param(STREAM_WORD, True, id="stream"),
        pytest.param(NIU_WORD, True, id="NIU"),
        pytest.param(0xFFEF0000, False, id="configuration"),
    ],
)
def test_which_registers_a_core_may_store_to_early(address: int, early: bool) -> None:
    """T2 loads in a round before that in which T1 stores: what it gets is older unless T1 is ahead."""
    store = "nop\n" * 20 + f"li a0, {address:#x}\nli t0, 5\nsw t0, 0(a0)\nend: j end\n"
    load = f"li a0, {address:#x}\nlw t0, 0(a0)\nli a1, {SUMS}\nsw t0, 0(a1)\nend: j end\n"
    for ahead, got in ((0, 0), (300, 5 if early else 0)):
        tile = Tile()
        tile.record.run_ahead = ahead
        machine({"T1": store, "T2": load}, tile=tile)
        tile.clock(200)
        assert words(tile, 1, SUMS) == [got]


CLOCK_LOW, CLOCK_HIGH_LATCHED = 0xFFB121F0, 0xFFB121F8
READINGS = 40
PUSHES = 60


def _reader(results: int, pause: int) -> str:
    """A core that reads the clock again and again, both halves, and keeps what it got."""
    return f"""
        li a0, {CLOCK_LOW}
        li a1, {results}
        li a2, {results + 8 * READINGS}
    again:
        lw t0, 0(a0)
        lw t1, {CLOCK_HIGH_LATCHED - CLOCK_LOW}(a0)
        sw t0, 0(a1)
        sw t1, 4(a1)
        {"nop; " * pause}addi a1, a1, 8
        bne a1, a2, again
    end: j end
    """.replace("; ", "\n")


def _readings(
    ahead: int, steps: list[int], *, simulator_order: bool, start: int = 0, pushed: int = PUSHES
) -> list[list[int]]:
    """What two cores read of the clock while the third one's words, which take no time, are executed."""
    pushes = "".join(f".ttinsn {tensix(f'ADDDMAREG 1, 4, {n % 8 + 1}, 4'):#x}\n" for n in range(pushed))
    programs = {
        "T0": _reader(SCRATCH + 0x1000, 0),
        "T1": f"li t0, 9\nwait: addi t0, t0, -1\nbnez t0, wait\n{pushes}end: j end\n",
        "T2": _reader(SCRATCH + 0x2000, 3),
    }
    tile = Tile()
    tile.record.simulator_order = simulator_order
    tile.record.run_ahead = ahead
    tile.record.clock = tile.record.round_goal = start
    machine(programs, tile=tile)
    for clocks in steps:
        tile.clock(clocks)
    cores = (words(tile, 2 * READINGS, SCRATCH + base) for base in (0x1000, 0x2000))
    return [[low | high << 32 for low, high in zip(read[::2], read[1::2], strict=True)] for read in cores]


@pytest.mark.rule("tile K32")
@pytest.mark.parametrize("simulator_order", [True, False])
@pytest.mark.parametrize("start", [0, (1 << 32) - 60])
def test_cores_read_the_clock_of_the_round_in_which_they_load_it(start: int, simulator_order: bool) -> None:
    at_once = _readings(0, [900], simulator_order=simulator_order, start=start)
    assert at_once == _readings(0, [1] * 900, simulator_order=simulator_order, start=start)
    assert at_once != _readings(0, [900], simulator_order=simulator_order, start=start, pushed=0)


@pytest.mark.rule("tile K32")
@pytest.mark.parametrize("ahead", [0, 16])
@pytest.mark.parametrize("start", [0, (1 << 32) - 60])
def test_without_the_coprocessor_each_instruction_takes_a_clock(start: int, ahead: int) -> None:
    read = _readings(ahead, [900], simulator_order=True, start=start, pushed=0)
    assert read[0] == list(range(read[0][0], read[0][0] + 6 * READINGS, 6))
    assert read[1] == list(range(read[1][0], read[1][0] + 9 * READINGS, 9))
    assert start < read[0][0] < start + 10


@pytest.mark.rule("tile K32")
@pytest.mark.parametrize("simulator_order", [True, False])
@pytest.mark.parametrize("ahead", [1, 16, 300])
def test_the_clock_never_goes_back_for_a_core_that_is_ahead(ahead: int, simulator_order: bool) -> None:
    exact = _readings(0, [900], simulator_order=simulator_order)
    for steps in ([900], [1] * 900, [7] * 130):
        for read, right in zip(_readings(ahead, steps, simulator_order=simulator_order), exact, strict=True):
            assert read == sorted(read)
            assert max(abs(ours - true) for ours, true in zip(read, right, strict=True)) <= ahead + PUSHES
