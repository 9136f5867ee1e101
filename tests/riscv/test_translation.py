"""Translated code against the interpreter: the same program on two tiles, cut into turns of any length, all state equal
after each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from bhemu.errors import ConfigurationError
from bhemu.machine.compiler import compile_entry
from bhemu.machine.core_state import ASLEEP
from bhemu.machine.state import new_tiles
from bhemu.riscv.decode import new_code_cache
from bhemu.riscv.execute import ACCESS, FAULTED, LIMIT, LOOPS, SLOW, run_core_entry
from bhemu.riscv.translation_state import (
    CLIENT_FIRST_ROUND,
    CLIENT_HOT,
    CLIENT_LEAST_ROUNDS,
    ENTER_PLACE,
    LOOP_HOT,
    RANGE,
)
from bhemu.riscv.translator import VARIABLE, attach, is_available, why_not
from bhemu.tile.cores import CODE
from tests.riscv.random_programs import DATA, DATA_BYTES, FREE, Generator
from tests.riscv.rv_asm import assemble
from tests.riscv.rv_machine import machine, word, words

pytestmark = pytest.mark.skipif(not is_available(), reason="nothing is translated here")

LOCAL = 0xFFB00000
TURNS = 800


class Pair:
    """A tile whose core's code is translated, and one whose core is interpreted."""

    def __init__(self, program: bytes, core: int = 0) -> None:
        self.core = core
        self.tiles = [new_tiles(1) for _ in range(2)]
        self.caches = [new_code_cache() for _ in range(2)]
        attach(self.caches[0], hot=32)
        self.run_core = compile_entry("run_core", run_core_entry)
        self.set("core_loops_limit", 1 << 30)
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

    def turn(self, rounds: int, horizon: int, ahead: int = 0) -> int:
        """Let the core run so many rounds, shared memory `horizon` rounds; returns why it stopped.

        Args:
            ahead: rounds behind the horizon in which it may access L1.
        """
        reasons = []
        for tiles, cache in zip(self.tiles, self.caches, strict=True):
            tile = tiles[0]
            tile.round_goal = tile.core_round[self.core] + rounds
            tile.round_horizon = tile.core_round[self.core] + horizon
            tile.run_ahead = ahead
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
ZBB = ["sh1add", "sh2add", "sh3add", "andn", "orn", "xnor", "min", "minu", "max", "maxu", "rol", "ror", "pack"]
UNARY = ["clz", "ctz", "cpop", "sext.b", "sext.h", "orc.b", "rev8", "brev8"]


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


@pytest.mark.parametrize("seed", range(9))
def test_translated_code_computes_what_the_interpreter_does(seed: int) -> None:
    generator = Generator(seed)
    program = assemble(hot_program(generator))
    pair = Pair(program, core=(0, 1, 4)[seed % 3])
    pair.write(DATA, generator.random.bytes(DATA_BYTES))
    lengths = (1, 5, 40, 400, 3000)
    for _ in range(TURNS):
        rounds = generator.number(1, lengths[generator.number(0, len(lengths))] + 1)
        horizon = rounds if generator.number(0, 2) else generator.number(0, rounds + 1)
        reason = pair.turn(rounds, horizon, ahead=generator.number(0, 130) if generator.number(0, 3) == 0 else 0)
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


LOOP = """
    li t1, {data:#x}
top:
    addi t0, t0, 1
    add t2, t2, t0
    sw t2, 0(t1)
    lw t3, 0(t1)
    xor t4, t4, t3
    j top
"""


def _words(pair: Pair) -> np.ndarray[Any, Any]:
    """The words of the cache that are translated."""
    code = pair.caches[0][0]
    return code.entry[1 : int(code.entry_count)]  # type: ignore[no-any-return]


def _hot_loop() -> Pair:
    pair = Pair(assemble(LOOP.format(data=DATA)))
    pair.turn(1000, 1000)
    assert pair.translated
    return pair


@pytest.mark.parametrize("name", ["addi t0, t0, 3", "j end", "ebreak", "csrrs t0, 0xb00, x0", ".word 0x12345678"])
@pytest.mark.parametrize("at", range(2, 8))
def test_a_store_of_another_agent_into_translated_code_is_seen_at_once(name: str, at: int) -> None:
    pair = _hot_loop()
    address = 4 * at
    code = assemble(f"{name}\nend: nop", address)[:4]
    pair.write(address, code)
    for _ in range(3):
        pair.turn(100, 100)


def test_code_that_stores_into_itself_computes_what_the_interpreter_does() -> None:
    """Each turn of the loop changes the immediate of its own addi, and now and then of one in another loop."""
    program = """
        li t1, itself
        lw t2, 0(t1)
        li t3, 0x00100000
    top:
        add t2, t2, t3
        sw t2, 0(t1)
    itself:
        addi a5, a5, 1
        addi t4, t4, 7
        andi t5, t4, 63
        bnez t5, top
        li a0, other
        lw t6, 0(a0)
        add t6, t6, t3
        sw t6, 0(a0)
        li a1, 50
    inner:
        addi a1, a1, -1
        addi a2, a2, 3
        xor a3, a3, a2
    other:
        addi a4, a4, 1
        bnez a1, inner
        li t4, 0
        j top
    """
    pair = Pair(assemble(program))
    generator = Generator(7)
    for _ in range(500):
        rounds = generator.number(1, 600)
        if pair.turn(rounds, rounds) == LOOPS:
            pair.set("core_loops", 0)
    assert pair.translated


def test_programs_that_take_turns_at_one_place_are_translated_once_each() -> None:
    pair = _hot_loop()
    one, other = (assemble(LOOP.format(data=DATA).replace("addi t0, t0, 1", f"addi t0, t0, {n}")) for n in (1, 5))
    for turn in range(60):
        pair.write(0, other if turn % 2 else one)
        pair.turn(1500, 1500)
        pair.set("core_loops", 0)
    assert len(_words(pair)) <= 2 * 6  # entries of one loop and the other: turns begin at each of its instructions


def test_a_core_leaves_translated_code_at_the_horizon_and_where_its_loops_are_counted() -> None:
    pair = _hot_loop()
    for horizon in range(12):
        first = int(pair.tiles[0][0].core_round[0])
        pair.turn(40, horizon)
        at_horizon = int(pair.tiles[0][0].core_round[0]) - first
        pair.turn(40, horizon, ahead=20)
        assert int(pair.tiles[0][0].core_round[0]) - first >= at_horizon + 20
    for limit in range(1, 12):
        pair.set("core_loops", 0)
        pair.set("core_loops_limit", limit)
        assert pair.turn(500, 500) == LOOPS


def test_a_watched_word_of_l1_is_stored_by_the_schedule() -> None:
    """One that only shares its bit of the hash with a watched word is stored at once."""
    for watched, reason in ((DATA, ACCESS), (DATA + 4 * 64, LIMIT)):
        pair = _hot_loop()
        for tiles in pair.tiles:
            tiles[0].core_state[1] = ASLEEP
            tiles[0].watch_count[1] = 1
            tiles[0].watch_address[1, 0] = watched
            tiles[0].watch_hash = 1 << ((watched >> 2) & 63)
        assert pair.turn(100, 100) == reason


def test_a_jump_to_no_instruction_is_refused_where_the_interpreter_does() -> None:
    for target in ("0x180000", "0x26", "0xfffffffc"):
        pair = Pair(assemble(f"li a0, top\nli a1, 60\ntop: addi a1, a1, -1\nbgez a1, go\nli a0, {target}\ngo: jr a0"))
        reasons = {pair.turn(300, 300) for _ in range(4)}
        assert pair.translated
        assert FAULTED in reasons


def test_a_full_memory_for_machine_code_is_used_again() -> None:
    pair = Pair(b"")
    code = pair.caches[0][0]
    code.memory_bytes = 64 << 10
    for place in range(0, 0x8000, 0x200):
        pair.write(place, assemble(LOOP.format(data=DATA), place))
        pair.set("core_pc", place)
        pair.turn(800, 800)
        pair.set("core_loops", 0)
    assert 1 < code.entry_count < 40


@pytest.fixture
def as_in_clients() -> Iterator[Any]:
    """The code cache of tiles, where arrivals are counted as in the C library."""
    code = CODE[0]
    attach(CODE)
    names = ("hot", "least_rounds", "first_round")
    kept = {name: code[name] for name in names}
    for name, value in zip(names, (CLIENT_HOT, CLIENT_LEAST_ROUNDS, CLIENT_FIRST_ROUND), strict=True):
        code[name] = value
    yield code
    for name, value in kept.items():
        code[name] = value


DONE = 0x30000
"""Where a program leaves how often its loop has iterated."""


@pytest.mark.parametrize(
    ("address", "body", "length"),
    [
        (0x40000, "sw t0, 0(a0)\n addi a0, a0, 4", 4),
        (LOCAL + 0x100, "sb t0, 3(a0)\n lw t1, 0(a0)", 4),
        (0, "slli t1, t0, 3", 3),
        (0xFFE00010, "sw t0, 0(a0)", 0),  # a GPR
        (0xFFB12100, "lw t1, 0(a0)", 0),  # a register of the tile
    ],
    ids=["L1", "local RAM", "registers", "a store to a device", "a load from a device"],
)
def test_clients_have_loops_translated_that_iterate_often_and_access_memory_only(
    as_in_clients: Any, address: int, body: str, length: int
) -> None:
    """With their own words and no other, of which the last parameter has the number."""
    for iterations, ahead, often in ((LOOP_HOT // 8, 128, False), (4 * LOOP_HOT, 0, False), (4 * LOOP_HOT, 128, True)):
        head = f"li a0, {address}\n li a1, {iterations}\n li t0, 0\n j loop"
        loop = f"loop: {body}\n addi t0, t0, 1\n bne t0, a1, loop\n li a2, {DONE}\n sw t0, 0(a2)\nend: j end"
        before = int(as_in_clients.entry_count)
        tile = machine(f"{head}\n{loop}")
        tile.record.run_ahead = ahead
        tile.clock(8 * iterations)
        assert word(tile, DONE) == iterations
        assert (as_in_clients.entry_count > before) == (often and length > 0)
        if as_in_clients.entry_count > before:
            first, end = divmod(int(as_in_clients.entry[before, RANGE]), 1 << 32)
            assert end - first == 4 * length


def test_a_translated_loop_whose_rare_path_is_far_away_computes_the_same(as_in_clients: Any) -> None:
    before = int(as_in_clients.entry_count)
    count = 4 * LOOP_HOT
    tile = machine(
        f"li a1, {count}\n loop: andi t1, t0, 63\n beqz t1, rare\n add t2, t2, t0\n back: addi t0, t0, 1\n"
        f"bne t0, a1, loop\n li a2, {DONE}\n sw t2, 0(a2)\n sw t3, 4(a2)\n end: j end\n"
        + "nop\n" * 60
        + "rare: add t3, t3, t0\n j back"
    )
    tile.record.run_ahead = 128
    tile.clock(8 * count)
    assert as_in_clients.entry_count > before
    often = sum(i for i in range(count) if i % 64)
    assert words(tile, 2, DONE) == [often, sum(range(count)) - often]


def test_without_a_translator_the_interpreter_executes_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "0")
    pair = Pair(assemble(LOOP.format(data=DATA)))
    pair.turn(1000, 1000)
    assert not pair.translated


def test_a_value_of_the_variable_that_means_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "no")
    with pytest.raises(ConfigurationError, match="BHEMU_TRANSLATE is 'no'"):
        why_not()
