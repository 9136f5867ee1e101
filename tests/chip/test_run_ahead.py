"""Tiles that run ahead of each other, on one thread and on several (bhemu/chip/clock/run.py)."""

from __future__ import annotations

import random

import numpy as np
import pytest

from bhemu.chip.clock import clocks
from bhemu.chip.coordinates import TENSIX_COLUMNS, tensix_index
from bhemu.errors import ConfigurationError, UndefinedBehavior
from tests.chip.noc_programs import ATOMIC, DATA, INCREMENT, MULTICAST, READ, WRITE, Board, at, rectangle, request
from tests.chip.test_noc_order import BACK, FIRST, FLAG, LAST, MIDDLE, SUM, note_time, signal, wait_for

QUANTA = (1, 7, 1024)
AHEAD = (0, 16, 128, 1000)
"""Clocks that tiles may be ahead of each other at any time; with more than 0 requests are carried out in batches."""


def count_down(turns: int, label: str) -> str:
    """A loop of so many turns of three instructions, one of which stores to L1."""
    return f"li a4, {turns}\nli a5, {DATA + 0x800:#x}\n{label}: addi a4, a4, -1\nsw a4, 0(a5)\nbnez a4, {label}\n"


def board_of(programs: dict[tuple[int, int], str], ahead: int = 0, **options: object) -> Board:
    """A board whose programs have all been started."""
    board = Board(programs, **options)
    board.chip.record["run_ahead"] = ahead
    board.start(*programs)
    return board


@pytest.mark.parametrize("quantum", QUANTA)
def test_a_tile_that_polls_sees_a_signal_in_the_clock_in_which_it_is_sent(quantum: int) -> None:
    """Others are busy all the time, so that tiles run far ahead of each other."""
    programs = {place: count_down(5000, "on") for place in ((3, 3), (10, 5))}
    programs[FIRST] = count_down(2000, "first") + signal(FIRST, LAST, FLAG) + note_time(SUM)
    programs[LAST] = wait_for(FLAG, 1) + note_time(SUM)
    board = board_of(programs, quantum=quantum)
    board.chip.clock(20_000)
    sent, seen = board.word(FIRST, SUM), board.word(LAST, SUM)
    assert sent > 6000
    exact = board_of(programs, quantum=1)
    exact.chip.clock(20_000)
    assert (sent, seen) == (exact.word(FIRST, SUM), exact.word(LAST, SUM))


@pytest.mark.parametrize("ahead", AHEAD)
@pytest.mark.parametrize("quantum", QUANTA)
def test_a_program_without_races_computes_the_same(quantum: int, ahead: int) -> None:
    """Tiles add up in another, after different times, and are told when all have; twice."""
    collector = MIDDLE
    counters = [(x, y) for x in (2, 3, 10) for y in (3, 4)] + [(16, 11)]
    programs = {}
    for n, place in enumerate(counters):
        text = ""
        for turn in (1, 2):
            text += count_down(100 + 300 * n, f"count{turn}")
            text += signal(place, collector, SUM + 4) * 5
            text += wait_for(FLAG, turn)
        programs[place] = text
    text = ""
    for turn in (1, 2):
        text += wait_for(SUM + 4, 35 * turn) + f"li a4, {turn}\nli a5, {DATA:#x}\nsw a4, 0(a5)\n"
        ends = {"target": DATA, "target_hi": at(*collector), "back": FLAG, "back_hi": rectangle((1, 2), (16, 11))}
        text += request(ctrl=WRITE | MULTICAST, **ends, length=4)
    programs[collector] = text
    board = board_of(programs, ahead, quantum=quantum)
    board.chip.clock(30_000)
    assert board.word(collector, SUM + 4) == 70
    assert [board.word(place, FLAG) for place in counters] == [2] * 7


def racing_programs(seed: int) -> dict[tuple[int, int], str]:
    """Tiles that write into each other at odd times while all are busy, and note what they find."""
    source = random.Random(seed)
    places = [(source.choice(TENSIX_COLUMNS), y) for y in range(2, 12)]
    programs = {}
    for place in places:
        text = ""
        for turn in range(4):
            text += count_down(source.randrange(20, 900), f"busy{turn}")
            other = source.choice([p for p in places if p != place])
            ends = {"target": FLAG, "target_hi": at(*other), "back": BACK, "back_hi": at(*place)}
            text += request(ctrl=ATOMIC, **ends, length=INCREMENT, data=1)
            ends = {"target": DATA + 0x800, "target_hi": at(*other), "back": SUM + 16 * turn, "back_hi": at(*place)}
            text += request(ctrl=READ, **ends, length=16)
            ends = {"target": DATA + 0x800, "target_hi": at(*place), "back": SUM + 0x100, "back_hi": at(*other)}
            text += request(ctrl=WRITE, **ends, length=16)
            text += note_time(SUM + 0x200 + 4 * turn)
        programs[place] = text
    return programs


def everything(board: Board) -> list[bytes]:
    """All that the tiles hold, but where this process keeps its compiled functions."""
    tiles = board.chip.tiles.copy()
    tiles["handlers"] = 0
    return [tile.tobytes() for tile in tiles if tile["core_retired"].any()]


@pytest.mark.parametrize("ahead", AHEAD)
@pytest.mark.parametrize("seed", range(3))
def test_threads_make_no_difference_even_to_programs_that_race(
    seed: int, ahead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clocks, "WORTH_THREADS", 1)
    programs = racing_programs(seed)
    states = []
    for threads in (1, 2, 3):
        board = board_of(programs, ahead, quantum=300, threads=threads)
        for clocks_ in (5000, 1, 999, 14_000):
            board.chip.clock(clocks_)
        assert sum(board.word(place, FLAG) for place in programs) == 40
        states.append(everything(board))
    assert states[0] == states[1] == states[2]


@pytest.mark.parametrize("ahead", AHEAD)
@pytest.mark.parametrize("first_waits", [False, True])
def test_first_requests_in_a_quantum_come_in_the_order_of_their_clocks(ahead: int, first_waits: bool) -> None:
    """Both write the same word, one a few clocks after the other: what the later one has written stays."""
    programs = {}
    for place, value in ((FIRST, 1), (LAST, 2)):
        later = (place == FIRST) == first_waits
        ends = {"target": DATA, "target_hi": at(*place), "back": FLAG, "back_hi": at(*MIDDLE)}
        text = f"li a4, {value}\nli a5, {DATA:#x}\nsw a4, 0(a5)\n" + "addi x0, x0, 0\n" * (5 if later else 0)
        programs[place] = text + request(ctrl=WRITE, **ends, length=4)
    programs[MIDDLE] = count_down(200, "busy")
    board = board_of(programs, ahead)
    board.chip.clock(1000)
    assert board.word(MIDDLE, FLAG) == (1 if first_waits else 2)


@pytest.mark.parametrize("seed", range(2))
def test_single_clocks_are_exact_whatever_the_quantum(seed: int) -> None:
    """A client that lets clocks pass one by one sees the order of the official simulator."""
    programs = racing_programs(seed)
    states = []
    for quantum in (1, 1024):
        board = board_of(programs, quantum=quantum)
        for _ in range(6000):
            board.chip.clock(1)
        states.append(everything(board))
    assert states[0] == states[1]


@pytest.mark.parametrize("seed", range(2))
def test_single_clocks_change_what_many_at_once_do(seed: int) -> None:
    programs = racing_programs(seed)
    one_by_one, at_once = (board_of(programs, quantum=1) for _ in range(2))
    for _ in range(6000):
        one_by_one.chip.clock(1)
    at_once.chip.clock(6000)
    for place in programs:
        assert one_by_one.l1(place).tobytes() == at_once.l1(place).tobytes()
        assert one_by_one.counters(place) == at_once.counters(place)


@pytest.mark.parametrize("step", [1, 100])
def test_cores_that_begin_to_poll_are_soon_not_visited(step: int) -> None:
    """However long they have been in a loop that stored, and so did not poll."""
    text = count_down(3000, "busy") + "addi x0, x0, 0\n" * 64
    board = board_of({place: text + wait_for(FLAG, 1) for place in (FIRST, LAST)}, quantum=1)
    for _ in range(0, 10_000, step):
        board.chip.clock(step)
    assert board.chip.record["active_count"] == 0


def test_handlers_that_are_missing_are_found_while_threads_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles push instructions that no other has executed; the threads' own tables learn of them."""
    from bhemu.isa.assembler import assemble as tensix

    monkeypatch.setattr(clocks, "WORTH_THREADS", 1)
    word = tensix("ADDDMAREG 0, 3, 1, 2")
    store = f"li a0, 0xffe40000\nli a1, {word:#x}\nsw a1, 0(a0)\n"
    places = [(x, 2) for x in TENSIX_COLUMNS]
    board = board_of({place: count_down(50, "wait") + store for place in places}, threads=2)
    board.chip.clock(5000)
    for place in places:
        assert int(board.chip.tiles[tensix_index(place)]["issued"].sum()) == 1


@pytest.mark.parametrize("ahead", AHEAD)
def test_no_clock_is_lost_or_made_twice_when_a_tile_is_refused(ahead: int) -> None:
    bad = count_down(200, "wait") + request(
        ctrl=WRITE, target=DATA, target_hi=at(*MIDDLE), back=DATA, back_hi=at(*FIRST), length=0
    )
    count = f"li t1, {DATA:#x}\nmore: addi t2, t2, 1\nsw t2, 0(t1)\nj more\n"
    board = board_of({FIRST: count, MIDDLE: bad, LAST: count}, ahead)
    with pytest.raises(UndefinedBehavior, match="no bytes") as raised:
        board.chip.clock(3000)
    assert raised.value.tile == MIDDLE
    assert 600 < board.chip.time < 3000
    board.chip.clock(3000 - board.chip.time)
    retired = [int(board.chip.tiles[tensix_index(place)]["core_retired"][0]) for place in (FIRST, LAST)]
    assert retired == [3000, 3000]
    alone = board_of({LAST: count})
    alone.chip.clock(3000)
    assert np.array_equal(alone.l1(LAST), board.l1(LAST))


@pytest.mark.parametrize("wrong", [{"quantum": 0}, {"threads": 0}, {"quantum": -5}])
def test_there_is_at_least_one_clock_and_one_thread(wrong: dict[str, int]) -> None:
    with pytest.raises(ConfigurationError, match="1 or more"):
        Board({}, **wrong)
