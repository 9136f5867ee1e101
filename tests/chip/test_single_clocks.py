"""Clocks that pass one by one change what many at once do, instruction for instruction (bhemu/riscv/step.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bhemu.chip.coordinates import tensix_index
from bhemu.chip.device import Device
from bhemu.machine.agents import CORE_NAMES
from tests.chip.noc_programs import NODES
from tests.riscv.random_programs import DATA, DATA_BYTES, Generator
from tests.riscv.rv_asm import assemble
from tests.riscv.rv_machine import ALL_HELD, RESET_BIT, SOFT_RESET, START

CLOCKS = 700
STATE = ("core_x", "core_pc", "core_state", "core_loops", "core_ram_u32")
"""Not how often a core that has fallen asleep went round its loop before."""
FIRST, SECOND = (2, 3), (10, 5)


def chip_of(programs: dict[tuple[int, int], dict[str, str]], seed: int) -> Device:
    """A chip whose cores have been released; `programs` by tile and core. All cores of a tile share their data."""
    chip = Device(quantum=1)
    for place, of_cores in programs.items():
        released = ALL_HELD
        for core, text in of_cores.items():
            chip.write_node(NODES[place], START[core], assemble(text, START[core]))
            released &= ~(1 << RESET_BIT[core])
        chip.write_node(NODES[place], DATA, np.random.default_rng(seed).bytes(DATA_BYTES))
        chip.write_node(NODES[place], SOFT_RESET, released.to_bytes(4, "little"))
    return chip


def state_of(chip: Device, place: tuple[int, int]) -> dict[str, Any]:
    """What cores of a tile can have changed."""
    tile = chip.tiles[tensix_index(place)]
    found = {name: np.array(tile[name]).tolist() for name in STATE}
    return found | {"data": tile["l1"][DATA : DATA + DATA_BYTES].tobytes()}


def compare(programs: dict[tuple[int, int], dict[str, str]], seed: int) -> None:
    one_by_one, at_once = chip_of(programs, seed), chip_of(programs, seed)
    for _ in range(CLOCKS):
        one_by_one.clock(1)
    at_once.clock(CLOCKS)
    for place in programs:
        assert state_of(one_by_one, place) == state_of(at_once, place)


@pytest.mark.plain
@pytest.mark.parametrize("seed", range(8))
def test_of_a_core_alone(seed: int) -> None:
    compare({FIRST: {"B": Generator(seed).program()}}, seed)


@pytest.mark.plain
@pytest.mark.parametrize("seed", range(8))
def test_of_all_cores_of_two_tiles_that_race_for_their_data(seed: int) -> None:
    programs = {
        place: {core: Generator(100 * seed + 10 * n + k).program() for k, core in enumerate(CORE_NAMES)}
        for n, place in enumerate((FIRST, SECOND))
    }
    compare(programs, seed)


@pytest.mark.parametrize(
    "program",
    [
        "li a0, 3\njr a0",  # not aligned
        "li a0, 0x200000\njr a0",  # behind L1
        "li a0, 0x20001\nlw a1, 0(a0)",
        "li a0, 0x20002\nsw a1, 0(a0)",
        "li a0, 0xFFB00000\nsw a0, 0(a0)\nlw a1, 0(a0)\nebreak",  # its own RAM
        "li a0, 0xFFB121F0\nlw a1, 0(a0)\nlw a2, 8(a0)",  # the wall clock
        "wait: lw a1, 0x100(x0)\nbeqz a1, wait",
    ],
)
def test_of_what_is_not_simple(program: str) -> None:
    """Refusals, devices, and loops that only poll: the same state, and the same refusal."""
    chips = [chip_of({FIRST: {"B": program + "\nend: j end"}}, 0) for _ in range(2)]
    said = []
    for chip, step in zip(chips, (1, 64), strict=True):
        try:
            for _ in range(640 // step):
                chip.clock(step)
            said.append("")
        except Exception as error:
            said.append(f"{type(error).__name__}: {error}".partition("it came from")[0])
    assert said[0] == said[1]
    assert state_of(chips[0], FIRST) == state_of(chips[1], FIRST)
