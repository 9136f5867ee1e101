"""Cores of a tile in translated code against cores that are interpreted: the same programs on two tiles, clocked by any
numbers of clocks, all of the state equal after each (tile T34)."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from bhemu.api.tile import Tile
from bhemu.loader.boot import ALL_HELD, SOFT_RESET
from bhemu.machine.agents import CORE_NAMES
from bhemu.riscv.translation_state import ENTER_PLACE, SWITCHES, TRANSLATOR_PLACE
from bhemu.riscv.translator import attach, is_available
from bhemu.tile.cores import CODE
from bhemu.tile.reset import CORE_BIT, DEFAULT_PC
from tests.riscv.random_programs import DATA, FREE, Generator
from tests.riscv.rv_asm import assemble
from tests.riscv.test_translation import _some

pytestmark = pytest.mark.skipif(not is_available(), reason="nothing is translated here")

LOCAL = 0xFFB00000
CLOCK = 0xFFB12000
PATCHED = 4
"""Where each program has an instruction that others change, behind its first one."""
TURNS = 120


@pytest.fixture(autouse=True)
def soon() -> Iterator[None]:
    """Code is translated sooner than otherwise."""
    attach(CODE)
    before = int(CODE[0].hot)
    CODE[0].hot = 32
    yield
    CODE[0].hot = before


@contextmanager
def interpreted() -> Iterator[None]:
    """Nothing is translated, and no translated code entered, as long as the context lasts."""
    native = CODE[0].native
    before = int(native[TRANSLATOR_PLACE])
    native[TRANSLATOR_PLACE] = 0
    try:
        yield
    finally:
        native[TRANSLATOR_PLACE] = before


def program(generator: Generator, core: int) -> str:
    """Loops over memory of its own and of all, that look at the clock, and change instructions of other cores."""
    start = int(DEFAULT_PC[core])
    lines = ["j start", "F: addi x7, x7, 1", *_some(generator, 3), "ret", "start:"]
    lines += [f"li x{i}, {generator.value():#x}" for i in FREE]
    own, shared = DATA + 0x1000 * (core + 1), DATA + 0x400
    for _ in range(4):
        outer, inner = generator.label(), generator.label()
        base = (own, shared, own, LOCAL + 0x800)[generator.number(0, 4)]
        lines += [f"li x18, {generator.number(2, 30)}", f"{outer}:", f"li x8, {base:#x}", *_some(generator, 4)]
        lines += [f"li x9, {generator.number(2, 60)}", f"{inner}:", *_some(generator, generator.number(1, 12))]
        if generator.number(0, 2):
            lines += ["call F"]
        lines += ["addi x9, x9, -1", f"bnez x9, {inner}", *_some(generator, 2)]
        if generator.number(0, 3) == 0:
            lines += [f"li x31, {CLOCK:#x}", "lw x5, 0x1f0(x31)", f"li x8, {shared:#x}", "sw x5, 16(x8)"]
        if generator.number(0, 3) == 0:
            other = int(DEFAULT_PC[generator.number(0, len(CORE_NAMES))]) + PATCHED
            lines += [f"li x31, {other:#x}", "lw x30, 0(x31)", "li x29, 0x00100000", "add x30, x30, x29"]
            lines += ["sw x30, 0(x31)"]
        lines += ["addi x18, x18, -1", f"bnez x18, {outer}"]
    assert start % 4 == 0
    return "\n".join([*lines, "j start"])


def two_tiles(programs: dict[int, bytes]) -> list[Tile]:
    """Two tiles whose cores execute these programs."""
    tiles = [Tile(), Tile()]
    data = np.random.default_rng(1).integers(0, 256, 0x8000, np.uint8)
    for tile in tiles:
        held = ALL_HELD
        tile.record.l1[DATA : DATA + len(data)] = data
        for core, words in programs.items():
            first = int(DEFAULT_PC[core])
            tile.record.l1[first : first + len(words)] = np.frombuffer(words, np.uint8)
            held &= ~(1 << int(CORE_BIT[core]))
        tile.cores.store(SOFT_RESET, held)
    return tiles


def advance(tiles: list[Tile], clocks: int) -> None:
    """Let clocks pass on both, the second one interpreted, and compare all state."""
    tiles[0].clock(clocks)
    with interpreted():
        tiles[1].clock(clocks)
    ours, theirs = (tile.record for tile in tiles)
    if ours.tobytes() != theirs.tobytes():
        for name in ours.dtype.names:
            assert np.array_equal(ours[name], theirs[name]), (name, clocks, ours[name], theirs[name])


@pytest.mark.parametrize("seed", range(12))
def test_cores_that_share_memory_compute_what_interpreted_ones_do(seed: int) -> None:
    generator = Generator(seed)
    cores = sorted(generator.random.permutation(5)[: generator.number(2, 6)].tolist())
    tiles = two_tiles({core: assemble(program(generator, core), int(DEFAULT_PC[core])) for core in cores})
    for _ in range(TURNS):
        advance(tiles, (1, 3, 20, 200, 2000)[generator.number(0, 5)] + generator.number(0, 10))
    assert CODE[0].native[ENTER_PLACE]


@pytest.mark.parametrize("distance", [0, 0x1000])
def test_cores_that_access_l1_in_turns_stay_in_translated_code(distance: int) -> None:
    """Their accesses interleave as the rounds say, whether they touch the same words or not."""
    loop = "li t1, {data:#x}\ntop: addi t0, t0, 1\nlw t2, 0(t1)\nadd t2, t2, t0\nsw t2, 0(t1)\nxor t4, t4, t2\nj top"
    starts = {core: int(DEFAULT_PC[core]) for core in range(5)}
    texts = {core: loop.format(data=DATA + core * distance) for core in starts}
    tiles = two_tiles({core: assemble(texts[core], start) for core, start in starts.items()})
    switches = ctypes.c_int64.from_address(int(CODE[0].memory) + 8 * SWITCHES)
    most = 0  # of one team
    for clocks in itertools.chain(range(1, 40), 20 * (500,)):
        advance(tiles, clocks)
        most = max(most, switches.value)
    assert most > 100
