"""Translated code against the interpreter: the same program on two tiles, cut into turns of any length, all state equal
after each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bhemu.machine.compiler import JIT, compile_entry
from bhemu.machine.state import new_tiles
from bhemu.riscv.decode import new_code_cache
from bhemu.riscv.execute import ACCESS, FAULTED, LIMIT, LOOPS, SLOW, run_core_entry
from bhemu.riscv.translation_state import ENTER_PLACE
from bhemu.riscv.translator import attach, is_available
from tests.riscv.rv_asm import assemble
from tests.riscv.test_lockstep import DATA, DATA_BYTES, FREE, Generator

pytestmark = pytest.mark.skipif(not is_available(), reason="nothing is translated here")

LOCAL = 0xFFB00000
TURNS = 3000


class Pair:
    """A tile whose core's code is translated, and one whose core is interpreted."""

    def __init__(self, program: bytes, core: int = 0) -> None:
        self.core = core
        self.tiles = [new_tiles(1) for _ in range(2)]
        self.caches = [new_code_cache() for _ in range(2)]
        attach(self.caches[0])
        self.run_core = compile_entry("run_core", run_core_entry)
        for tiles in self.tiles:
            tiles[0].l1[: len(program)] = np.frombuffer(program, np.uint8)

    @property
    def translated(self) -> bool:
        return bool(self.caches[0][0].native[ENTER_PLACE])

    def set(self, name: str, value: Any) -> None:
        for tiles in self.tiles:
            tiles[0][name][self.core] = value

    def write(self, address: int, content: bytes) -> None:
        for tiles in self.tiles:
            tiles[0].l1[address : address + len(content)] = np.frombuffer(content, np.uint8)

    def turn(self, rounds: int, horizon: int) -> int:
        """Let the core run so many rounds, shared memory `horizon` rounds; returns why it stopped."""
        reasons = []
        for tiles, cache in zip(self.tiles, self.caches, strict=True):
            tile = tiles[0]
            tile.round_goal = tile.core_round[self.core] + rounds
            tile.round_horizon = tile.core_round[self.core] + horizon
            reasons.append(self.run_core.call(tiles.ctypes.data, self.core, cache.ctypes.data))
        ours, theirs = (tiles[0] for tiles in self.tiles)
        if reasons[0] != reasons[1] or ours.tobytes() != theirs.tobytes():
            for name in ours.dtype.names:
                assert np.array_equal(ours[name], theirs[name]), (name, rounds, horizon, hex(theirs.core_pc[self.core]))
        assert reasons[0] == reasons[1]
        return int(reasons[0])

    def skip(self) -> None:
        """Let the instruction at pc pass, as the schedule does with what leaves the loop."""
        for tiles in self.tiles:
            tiles[0].core_pc[self.core] += 4
            tiles[0].core_round[self.core] += 1


def hot_program(generator: Generator) -> str:
    """Loops in loops and calls, over L1, local RAM and addresses that are neither."""
    lines = [f"li x{i}, {generator.value():#x}" for i in FREE]
    bases = (DATA + DATA_BYTES // 2, LOCAL + 0x800, DATA + DATA_BYTES // 2, 0xFFB12000)
    lines += ["j start"]
    for function in range(3):
        lines += [f"F{function}:", *_some(generator, 5), "ret"]
    lines.append("start:")
    for _ in range(4):
        outer, inner = generator.label(), generator.label()
        lines += [f"li x18, {generator.number(2, 40)}", f"{outer}:"]
        lines += [f"li x8, {bases[generator.number(0, len(bases))]:#x}", *_some(generator, 4)]
        lines += [f"li x9, {generator.number(2, 30)}", f"{inner}:", *_some(generator, generator.number(1, 12))]
        if generator.number(0, 2):
            lines += [f"call F{generator.number(0, 3)}"]
        lines += ["addi x9, x9, -1", f"bnez x9, {inner}", *_some(generator, 3)]
        lines += ["addi x18, x18, -1", f"bnez x18, {outer}"]
    return "\n".join([*lines, "end: j start"])


NAMES = ["lw", "lh", "lb", "lbu", "lhu", "sw", "sh", "sb", "beq", "bne", "blt", "bge", "bltu", "bgeu"]
ZBB = "sh1add sh2add sh3add andn orn xnor min minu max maxu rol ror pack".split()
UNARY = "clz ctz cpop sext.b sext.h orc.b rev8 brev8".split()


def _some(generator: Generator, count: int) -> list[str]:
    """Random instructions that keep x8, x9 and x18, and x1 at the end of functions."""
    lines: list[str] = []
    for _ in range(count):
        kind = generator.number(0, 10)
        rd, a, b = ("x5" if r == "x1" else r for r in (generator.reg(), generator.reg(), generator.reg()))
        if kind < 3:
            part = generator.one(NAMES[generator.number(0, len(NAMES))])
        elif kind == 3:
            part = [f"{ZBB[generator.number(0, len(ZBB))]} {rd}, {a}, {b}"]
        elif kind == 4:
            part = [f"{UNARY[generator.number(0, len(UNARY))]} {rd}, {a}"]
        elif kind == 5:
            part = [f"rori {rd}, {a}, {generator.number(0, 32)}"]
        else:
            part = generator.plain()
        lines += [line for line in part if " x1," not in line and " x9," not in line and "(x9)" not in line]
    return lines


@pytest.mark.parametrize("seed", range(12))
def test_translated_code_computes_what_the_interpreter_does(seed: int) -> None:
    generator = Generator(seed)
    program = assemble(hot_program(generator))
    pair = Pair(program, core=(0, 1, 4)[seed % 3])
    pair.write(DATA, generator.random.bytes(DATA_BYTES))
    lengths = (1, 5, 40, 400, 3000)
    for _ in range(TURNS):
        rounds = generator.number(1, lengths[generator.number(0, len(lengths))] + 1)
        horizon = rounds if generator.number(0, 2) else generator.number(0, rounds + 1)
        reason = pair.turn(rounds, horizon)
        if reason in (ACCESS, SLOW):
            pair.skip()
        elif reason == LOOPS:
            pair.set("core_loops", 0)
            pair.set("core_loops_limit", generator.number(1, 200))
        elif reason == FAULTED:
            pair.set("core_pc", 0)
            pair.set("core_round", int(pair.tiles[0][0].core_round[pair.core]) + 1)
        else:
            assert reason == LIMIT
        if generator.number(0, 50) == 0:
            pair.set("core_x", np.array([0] + [generator.value() for _ in range(31)] + [0], np.uint32))
            pair.set("core_pc", 0)
    assert pair.translated
