"""The schedule keeps the order of rounds exactly (tile T34): against a clock that visits every agent in each round."""

from __future__ import annotations

import functools
import random
from typing import Any

import numpy as np
import pytest

from bhemu import Tile
from bhemu.errors import BhemuError
from bhemu.isa.instructions import encode
from bhemu.machine.agents import CORE_NAMES, CORES
from bhemu.machine.compiler import Entry, compile_entry
from bhemu.machine.core_state import BLOCKED, POLL_STEPS, RUNNING
from bhemu.tensix.frontend import run as clock
from bhemu.tensix.frontend.observer import NO_LOG
from bhemu.tile import schedule, turn_ends
from tests.riscv.rv_machine import SCRATCH, machine, word

pytestmark = pytest.mark.plain

FOREVER = 1 << 60
NO_FUSING = 1 << 18


@functools.cache
def entry_of(function: Any) -> Entry:
    """A function of the package as an entry: compiled once, and kept in the cache."""
    plain = getattr(function, "py_func", function)
    return compile_entry(plain.__name__, plain, arguments=3)


def visit_every_agent(tile: Tile, clocks: int) -> int:
    """T34 word for word. Returns what `schedule.advance` returns; a handler that is missing ends the round early."""
    t, at, table = tile.record, tile.coprocessor.target, tile.coprocessor.table
    for _ in range(clocks):
        while True:
            for core in range(CORES):
                if t.core_state[core] in (RUNNING, BLOCKED):
                    t.core_state[core] = RUNNING
                    t.core_loops[core] = 0
                    t.core_round[core] = t.tensix_round
                    t.round_goal = t.tensix_round + 1
                    t.round_horizon = FOREVER
                    status = entry_of(schedule.turn_of_core).call(at, table, core, NO_LOG)
                    if status != turn_ends.ADVANCED:
                        return status
            before = int(t.clock)
            status = entry_of(clock.run).call(at, table, 1, NO_LOG)
            moved = int(t.clock) - before
            t.clock = before
            t.tensix_round += 1
            if status == clock.NEEDS_HANDLER:
                return int(turn_ends.NEEDS_HANDLER)
            if moved == 0:
                break
            t.free_rounds += 1
        t.clock += 1
    t.round_goal = t.tensix_round
    return int(turn_ends.ADVANCED)


# Fields in which the two schedules may differ: what they remember for themselves.
OWN = ("core_round", "core_loops", "core_loops_limit", "poll_", "watch_", "sleepers", "round_", "tensix_", "access_")
OWN_TOO = ("turn_core", "core_state", "now_", "device_", "needs_place", "fault_", "cycle_", "core_x")


def state(tile: Tile) -> dict[str, np.ndarray]:
    """All that software could observe, by field; `core_x` without the place for writes to x0."""
    tile.cores.settle()
    record = tile.record
    seen = {
        name: np.array(record[name])
        for name in record.dtype.names
        if not name.startswith(OWN) and not name.startswith(OWN_TOO)
    }
    seen["x"] = np.array(record["core_x"][:, :32])
    return seen


def assert_same(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray]) -> None:
    different = [name for name in ours if not np.array_equal(ours[name], theirs[name])]
    assert not different, {name: (ours[name], theirs[name]) for name in different if ours[name].size < 64}


WORDS = [
    encode("NOP"),
    encode("SEMPOST", sem_sel=1),
    encode("SEMGET", sem_sel=1),
    encode("SEMPOST", sem_sel=2),
    encode("SEMGET", sem_sel=2),
    encode("SEMINIT", max_value=2, init_value=0, sem_sel=1),
    encode("SEMWAIT", stall_res=1, wait_sem_cond=1, sem_sel=1),
    encode("SEMWAIT", stall_res=2, wait_sem_cond=2, sem_sel=2),
    encode("SETDMAREG", 0, 5, 0, 3),
    encode("ADDDMAREG", 0, 3, 2, 1),
    encode("ATGETM", 0),
    encode("ATRELM", 0),
]
LABELS = iter(range(1_000_000))


def random_step(rng: random.Random, core: str) -> list[str]:
    """A few instructions; a0 = shared words in L1, a1 = local RAM, a2 = control, a3 = synchronisation."""
    registers = ["t0", "t1", "t2", "t3", "t4"]
    a, b, c = (rng.choice(registers) for _ in range(3))
    offset = 4 * rng.randrange(8)
    kind = rng.randrange(12)
    if kind <= 1:
        return [f"{rng.choice(['add', 'sub', 'xor', 'mul', 'sltu', 'sh1add'])} {a}, {b}, {c}"]
    if kind == 2:
        return [f"lw {a}, {offset}(a0)"]
    if kind == 3:
        return [f"s{rng.choice('bhw')} {a}, {offset}(a0)"]
    if kind == 4:
        return [f"sw {a}, {offset}(a1)", f"lw {b}, {4 * rng.randrange(8)}(a1)"]
    if kind == 5:
        return [f"lw {a}, 0x1f0(a2)"]
    if kind == 6:  # wait for a word to become what another agent might store
        label = f"wait{next(LABELS)}"
        return [f"{label}: lw {a}, {offset}(a0)", "fence", f"beqz {a}, {label}"]
    if kind == 7 and core != "NC":
        return [f".ttinsn {rng.choice(WORDS):#x}" for _ in range(rng.randrange(1, 7))]
    if kind == 8 and core in ("T0", "T1", "T2"):  # semaphores, as stores that get or post
        where = f"{0x20 + 4 * rng.randrange(2)}(a3)"
        return [f"li t5, {rng.randrange(2)}", f"sw t5, {where}", f"lw {a}, {where}"]
    if kind == 9 and core in ("T0", "T1", "T2"):  # until the own thread is done
        return ["sw zero, 4(a3)", f"lw {a}, {rng.choice((4, 8))}(a3)"]
    if kind == 10 and core != "NC":  # mailboxes: a push, or a pop that waits
        partner = f"li t5, {0xFFEC0000 + 0x1000 * rng.randrange(4):#x}"
        return [partner, rng.choice([f"sw {a}, 0(t5)", f"lw {a}, 0(t5)", f"lw {a}, 4(t5)"])]
    label = f"turn{next(LABELS)}"
    return [f"li t5, {rng.randrange(1, 40)}", f"{label}: addi t5, t5, -1", f"bnez t5, {label}"]


def random_program(rng: random.Random, core: str) -> str:
    body = [line for _ in range(rng.randrange(4, 14)) for line in random_step(rng, core)]
    start = [f"li a0, {SCRATCH:#x}", f"li a1, {SCRATCH if core == 'B' else 0xFFB00000:#x}"]
    start += ["li a2, 0xffb12000", "li a3, 0xffe80000"]
    start += [f"li t{i}, {rng.randrange(1 << 32):#x}" for i in range(5)]
    return "\n".join([*start, "begin:", *body, "j begin"])


def new_machine(seed: int) -> Tile:
    rng = random.Random(seed)
    cores = rng.sample(CORE_NAMES, rng.randrange(1, 6))
    tile = machine({core: random_program(rng, core) for core in cores})
    tile.record.sync.semaphore_max[:] = 3
    for core in range(CORES):
        tile.record.core_cfg0[core] |= rng.choice((0, NO_FUSING))
    return tile


@pytest.mark.slow
@pytest.mark.rule("tile T34")
@pytest.mark.parametrize("seed", range(60))
def test_rounds_are_those_of_a_clock_that_visits_every_agent(seed: int) -> None:
    clocks = 700
    ours, theirs, split = new_machine(seed), new_machine(seed), new_machine(seed)
    ours.clock(clocks)
    left = clocks
    rng = random.Random(seed)
    while left:
        part = min(left, rng.choice((1, 1, 2, 3, 17, 100)))
        split.clock(part)
        left -= part
    record = theirs.record
    record.core_loops_limit[:] = FOREVER
    # Handlers that are missing would end a round in the middle: `ours` has compiled them all.
    assert visit_every_agent(theirs, clocks) == turn_ends.ADVANCED
    assert_same(state(ours), state(theirs))
    assert_same(state(ours), state(split))
    assert ours.record.clock == clocks


@pytest.mark.rule("tile T34")
@pytest.mark.parametrize("receiver", range(4))
@pytest.mark.parametrize("sender", range(4))
def test_a_core_that_waits_for_a_mailbox_goes_on_in_its_next_turn(sender: int, receiver: int) -> None:
    """That is in the round of the push where the receiver comes after the sender, else in the next one."""
    if sender == receiver:
        return
    send = f"""
        li t0, 100
        turn: addi t0, t0, -1
        bnez t0, turn
        li t1, {0xFFEC0000 + 0x1000 * receiver:#x}
        li t2, 0xffb121f0
        li t3, {SCRATCH:#x}
        sw t0, 0(t1)
        lw t4, 0(t2)
        sw t4, 0(t3)
        end: j end
    """
    receive = f"""
        li t1, {0xFFEC0000 + 0x1000 * sender:#x}
        li t2, 0xffb121f0
        li t3, {SCRATCH:#x}
        lw t0, 0(t1)
        lw t4, 0(t2)
        sw t4, 4(t3)
        end: j end
    """
    tile = machine({CORE_NAMES[sender]: send, CORE_NAMES[receiver]: receive}, 600)
    after_push, after_pop = word(tile), word(tile, SCRATCH + 4)
    assert after_pop - after_push == (0 if receiver > sender else 1)


def test_a_polling_core_sleeps_and_wakes_where_it_would_stand() -> None:
    source = """
        li t6, 0x20000
        li t0, 0
        again: lw a0, 0(t6)
        fence
        addi t1, a0, 5
        beqz a0, again
        sw t1, 4(t6)
        end: j end
    """
    for phase in range(5):
        tile = machine(source, 400 + phase)
        assert tile.cores["B"].state == "polling"
        assert tile.record.sleepers == 1
        retired = tile.cores["B"].retired  # looking wakes it
        assert retired == 400 + phase
        tile.clock(300)
        assert tile.cores["B"].state == "polling"
        tile.record.l1_u32[SCRATCH >> 2] = 7
        tile.clock(12)
        assert word(tile, SCRATCH + 4) == 12
        assert tile.cores["B"].retired == 712 + phase


def test_a_core_wakes_the_core_that_polls_in_the_round_of_its_store() -> None:
    poll = """
        li t6, 0x20000
        again: lw a0, 0(t6)
        beqz a0, again
        li t1, 0xffb121f0
        lw t2, 0(t1)
        sw t2, 4(t6)
        end: j end
    """
    post = "li t6, 0x20000\n li t0, 500\nturn: addi t0, t0, -1\n bnez t0, turn\n sw t6, 0(t6)\nend: j end"
    seen = set()
    for first, second in (("B", "T1"), ("T1", "B"), ("NC", "T2"), ("T0", "NC")):
        tile = machine({first: poll, second: post}, 9000)
        seen.add(word(tile, SCRATCH + 4))
        assert tile.record.sleepers == 2  # both are in their endless loops
    assert all(1000 < when < 1020 for when in seen), seen


STREAM_REGISTER = 0xFFB40000 + 4 * 8
"""A plain register of stream 0."""


@pytest.mark.rule("tile T34")
@pytest.mark.parametrize(("polled", "value"), [(0xFFE80024, 0), (STREAM_REGISTER, 7)], ids=["semaphore", "stream"])
@pytest.mark.parametrize(("waits", "posts"), [("T1", "T2"), ("T2", "T1")])
def test_a_store_to_a_register_wakes_who_polls_it_in_its_round(polled: int, value: int, waits: str, posts: str) -> None:
    """Also where the core that stores goes on in the same turn."""
    poll = f"""
        li t6, {polled:#x}
        li t3, {SCRATCH:#x}
        li t1, 0xffb121f0
        again: lw a0, 0(t6)
        beqz a0, again
        lw t2, 0(t1)
        sw t2, 0(t3)
        end: j end
    """
    post = f"""
        li t6, {polled:#x}
        li t3, {SCRATCH:#x}
        li t1, 0xffb121f0
        li t4, {value}
        li t0, 200
        turn: addi t0, t0, -1
        bnez t0, turn
        sw t4, 0(t6)
        lw t2, 0(t1)
        sw t2, 4(t3)
        end: j end
    """
    tile = machine({waits: poll, posts: post}, 600)
    seen, stored = word(tile), word(tile, SCRATCH + 4)
    assert tile.record.sleepers == 2
    # The load of the clock follows the store; the poll's is two rounds after the load that sees it, of a loop of two.
    assert 0 < seen - stored <= 3


def test_a_loop_that_changes_something_in_a_later_turn_is_not_slept_over() -> None:
    """A loop with a counter, one that stores, and one longer than what is followed."""
    bodies = {
        "counter": "addi a1, a1, 1",
        "store": "sw a0, 8(t6)",
        "long": "\n".join(["nop"] * POLL_STEPS),
    }
    for body in bodies.values():
        tile = machine(f"li t6, 0x20000\n again: lw a0, 0(t6)\n{body}\n beqz a0, again\nend: j end", 3000)
        assert tile.cores["B"].state == "running"
        assert tile.record.sleepers == 0


@pytest.mark.parametrize("steps", [2, POLL_STEPS])
def test_the_longest_loop_that_is_followed_sleeps(steps: int) -> None:
    body = "\n".join(["nop"] * (steps - 2))
    tile = machine(f"li t6, 0x20000\n again: lw a0, 0(t6)\n{body}\n beqz a0, again\nend: j end", 3000)
    assert tile.cores["B"].state == "polling"


def test_a_tile_in_which_nothing_moves_costs_nothing_per_clock() -> None:
    tile = machine(dict.fromkeys(CORE_NAMES, "end: j end"), 1000)
    assert tile.record.sleepers == CORES
    tile.clock(10**12)
    assert tile.record.clock == 10**12 + 1000
    assert tile.cores["T2"].retired == 10**12 + 1000


def test_a_full_fifo_holds_its_core_back_and_nothing_is_lost() -> None:
    waits = encode("SEMWAIT", stall_res=0x1FF, wait_sem_cond=1, sem_sel=1)
    pushes = "\n".join([f".ttinsn {waits:#x}", *[f".ttinsn {encode('SEMPOST', sem_sel=2):#x}"] * 45, "end: j end"])
    tile = machine({"T0": pushes})
    tile.record.core_cfg0[1] = NO_FUSING
    tile.clock(200)
    assert tile.cores["T0"].state == "blocked"
    tile.record.sync.semaphore_max[:2] = 15
    blocked_at = tile.cores["T0"].pc
    tile.clock(1000)
    assert tile.cores["T0"].pc == blocked_at
    tile.record.sync.semaphore[0] = 1
    tile.clock(100)
    assert tile.record.issued[0, 0xA4] == 45  # SEMPOST
    assert tile.cores["T0"].state == "polling"


@pytest.mark.parametrize("piece", [1, 7, 2000])
@pytest.mark.parametrize("refused", ["lw a0, 1(zero)", "sw a0, 2(zero)", "jr a0"])
def test_the_refusal_of_the_first_round_is_reported_however_the_clocks_are_cut(piece: int, refused: str) -> None:
    """B runs ahead to its refusal in round 41; that of T0 is in round 21."""
    programs = {core: count * "nop\n" + "li a0, 0x180000\n" + refused for core, count in (("B", 40), ("T0", 20))}
    tile = machine(programs)

    def cut() -> None:
        for _ in range(2000 // piece):
            tile.clock(piece)

    with pytest.raises(BhemuError) as caught:
        cut()
    assert caught.value.core == CORE_NAMES.index("T0")


ENDLESS = {
    "mop": """
        li t0, 0xffb80000
        li t1, 127
        sw t1, 0(t0)
        sw t1, 4(t0)
        li t1, {word}
        sw t1, 8(t0)
        sw t1, 12(t0)
        sw t1, 16(t0)
        sw t1, 20(t0)
        sw t1, 24(t0)
        sw t1, 28(t0)
        sw t1, 32(t0)
        again: .ttinsn {mop}
        j again
    """,
    "replay": """
        .ttinsn {load}
        .ttinsn {word}
        .ttinsn {word}
        .ttinsn {word}
        .ttinsn {word}
        again: .ttinsn {play}
        j again
    """,
}
"""A core pushes MOP or REPLAY words faster than their instructions are executed."""


@pytest.mark.rule("tile T34")
@pytest.mark.parametrize("piece", [1, 3, 30])
@pytest.mark.parametrize("stream", ENDLESS)
def test_clocks_of_an_endless_stream_pass(stream: str, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the clocks are cut. Compiled, a clock has room for more rounds than a test can see."""
    monkeypatch.setattr(schedule, "MOST_FREE", 40)
    text = ENDLESS[stream].format(
        word=encode("SETADCXX", 1, 15, 3),
        mop=encode("MOP", 1, 0, 0),
        load=encode("REPLAY", 0, 4, 0, 1),
        play=encode("REPLAY", 0, 4, 0, 0),
    )
    tile = machine({"T0": text})
    for _ in range(0, 60, piece):
        tile.clock(piece)
    assert tile.record.clock == 60
    whole = machine({"T0": text})
    whole.clock(60)
    assert tile.record.free_rounds == whole.record.free_rounds
    assert tile.record.free_rounds > 40
