"""A chip in timed mode: the NoC takes time, and programs without races compute the same (bhemu/timed/network.py)."""

from __future__ import annotations

import numpy as np
import pytest

import bhemu
from bhemu.chip.coordinates import NODES
from bhemu.errors import BhemuError, ConfigurationError
from bhemu.timed import ChipTime
from tests.chip.noc_programs import (
    ATOMIC,
    B_RUNS,
    DATA,
    INCREMENT,
    MULTICAST,
    READ,
    RESPONSE,
    SOFT_RESET,
    WRITE,
    Board,
    at,
    rectangle,
    request,
)
from tests.chip.noc_programs import fill as random_bytes
from tests.chip.test_noc_order import MIDDLE, note_time, wait_for
from tests.riscv.rv_asm import assemble

FIRST, BELOW, ACROSS, LAST = (1, 2), (1, 3), (3, 5), (16, 11)
FLAG, TIMES, COPY = 0x18000, 0x18100, 0x30000
OUTSTANDING = 0xFFB20240


def timed_board(programs: dict[tuple[int, int], str]) -> tuple[Board, ChipTime]:
    """A timed board whose programs have been started."""
    board = Board(programs)
    time = ChipTime(board.chip)
    board.start(*programs)
    return board, time


def barrier(label: str) -> str:
    """Wait until all requests with transaction id 0 on NoC 0 are answered."""
    return f"li a1, {OUTSTANDING:#x}\n{label}: lw a2, 0(a1)\nbnez a2, {label}\n"


def write(to: tuple[int, int], own: tuple[int, int], size: int, source: int = DATA, target: int = COPY) -> str:
    """A write from L1 to another tile's."""
    ends = {"target": source, "target_hi": at(*own), "back": target, "back_hi": at(*to)}
    return request(ctrl=WRITE | RESPONSE, length=size, **ends)


def add_one(to: tuple[int, int], address: int, own: tuple[int, int]) -> str:
    """An atomic that adds 1 to a word of another tile."""
    ends = {"target": address, "target_hi": at(*to), "back": DATA + 0x7F0, "back_hi": at(*own)}
    return request(ctrl=ATOMIC | RESPONSE, length=INCREMENT, data=1, **ends)


def clocks_of(to: tuple[int, int], size: int) -> int:
    """Clocks of a write and its barrier, by the wall clock."""
    text = note_time(TIMES) + write(to, FIRST, size) + barrier("on") + note_time(TIMES + 4)
    board, _ = timed_board({FIRST: text})
    board.chip.clock(3000)
    return board.word(FIRST, TIMES + 4) - board.word(FIRST, TIMES)


def test_a_write_takes_longer_the_further_and_the_larger_it_is() -> None:
    near, far, long = clocks_of(BELOW, 64), clocks_of(ACROSS, 64), clocks_of(BELOW, 8192)
    assert 12 * 9 < near < far < 600
    assert far - near == pytest.approx(17 * 9, abs=8)  # once round a row
    assert long - near == pytest.approx(127, abs=16)  # further flits


def test_data_and_the_flag_behind_them_arrive_in_order_and_later() -> None:
    content = random_bytes(1, 4096)
    sender = write(ACROSS, FIRST, 4096) + add_one(ACROSS, FLAG, FIRST) + note_time(TIMES) + barrier("on")
    receiver = wait_for(FLAG, 1) + note_time(TIMES)
    board, time = timed_board({FIRST: sender, ACROSS: receiver})
    board.l1(FIRST)[DATA : DATA + 4096] = content
    board.chip.clock(3000)
    assert np.array_equal(board.l1(ACROSS)[COPY : COPY + 4096], content)
    assert board.word(ACROSS, TIMES) > board.word(FIRST, TIMES) + 64
    assert (time.report().requests, time.report().at_once) == (2, 0)


def test_a_source_may_be_overwritten_once_the_request_has_been_sent() -> None:
    text = f"li a3, 7\nli a4, {DATA:#x}\nsw a3, 0(a4)\n" + write(ACROSS, FIRST, 16)
    text += f"li a3, 8\nli a4, {DATA:#x}\nsw a3, 0(a4)\n" + barrier("on")
    board, _ = timed_board({FIRST: text})
    board.chip.clock(2000)
    assert board.word(ACROSS, COPY) == 7


def test_a_read_moves_data_and_is_answered_later() -> None:
    ends = {"target": DATA, "target_hi": at(*ACROSS), "back": COPY, "back_hi": at(*FIRST)}
    text = note_time(TIMES) + request(ctrl=READ, length=256, **ends) + barrier("on") + note_time(TIMES + 4)
    board, _ = timed_board({FIRST: text})
    board.l1(ACROSS)[DATA : DATA + 256] = content = random_bytes(2, 256)
    board.chip.clock(2000)
    assert np.array_equal(board.l1(FIRST)[COPY : COPY + 256], content)
    assert board.word(FIRST, TIMES + 4) - board.word(FIRST, TIMES) > 29 * 9


def test_counters_agree_with_those_of_functional_mode() -> None:
    text = write(ACROSS, FIRST, 100) + add_one(ACROSS, FLAG, FIRST) + barrier("on")
    board, _ = timed_board({FIRST: text})
    board.chip.clock(2000)
    plain = Board({FIRST: text})
    plain.start(FIRST)
    plain.chip.clock(2000)
    assert board.counters(FIRST) == plain.counters(FIRST)
    assert board.counters(ACROSS) == plain.counters(ACROSS)
    assert board.word(ACROSS, FLAG) == plain.word(ACROSS, FLAG) == 1


def test_a_multicast_reaches_all_tiles_of_its_rectangle() -> None:
    ends = {"target": DATA, "target_hi": at(*FIRST), "back": COPY, "back_hi": at(2, 2) << 12 | at(4, 4)}
    board, _ = timed_board({FIRST: request(ctrl=WRITE | MULTICAST | RESPONSE, length=32, **ends)})
    board.l1(FIRST)[DATA : DATA + 32] = content = random_bytes(3, 32)
    board.chip.clock(40)
    assert not board.l1((2, 2))[COPY : COPY + 32].any()
    board.chip.clock(2000)
    for place in ((2, 2), (4, 4), (3, 2)):
        assert np.array_equal(board.l1(place)[COPY : COPY + 32], content)


def test_two_senders_to_one_tile_wait_for_each_other() -> None:
    texts = {place: write(LAST, place, 8192, target=COPY + 0x4000 * n) for n, place in enumerate((FIRST, BELOW))}
    together, time = timed_board(texts)
    together.chip.clock(4000)
    assert time.report().waited > 64
    alone, time = timed_board({FIRST: texts[FIRST]})
    alone.chip.clock(4000)
    assert time.report().waited == 0


def test_a_timed_chip_has_no_quantum_of_its_own() -> None:
    with pytest.raises(ConfigurationError, match="quantum of 1 clocks"):
        bhemu.Chip(timed=True, quantum=1)


def test_a_timed_chip_is_not_copied() -> None:
    chip = bhemu.Chip(timed=True)
    with pytest.raises(ConfigurationError, match="cannot be copied"):
        chip.snapshot()


def test_an_unsound_request_is_refused_by_the_store_that_starts_it() -> None:
    board, _ = timed_board({FIRST: write(ACROSS, FIRST, 64, target=COPY + 4)})
    with pytest.raises(BhemuError, match="modulo 16"):
        board.chip.clock(300)
    assert board.chip.time < 200


def test_the_number_of_threads_makes_no_difference() -> None:
    found = []
    for threads in (1, 2):
        programs = {(x, 4): write(LAST, (x, 4), 512, target=COPY + 512 * x) + barrier("on") for x in (1, 2, 3, 10)}
        board = Board({place: text + note_time(TIMES) for place, text in programs.items()}, threads=threads)
        ChipTime(board.chip)
        board.start(*programs)
        board.chip.clock(20_000)
        found.append([board.word(place, TIMES) for place in programs])
    assert found[0] == found[1]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_program_without_races_computes_the_same_as_in_functional_mode(threads: int) -> None:
    """Tiles count in another one, which tells all by a multicast when they have; twice."""
    counters = [(x, y) for x in (2, 3, 10) for y in (3, 4)] + [(16, 11)]
    total = DATA + 0x600
    programs = {}
    for n, place in enumerate(counters):
        text = ""
        for turn in (1, 2):
            text += f"li a4, {20 + 30 * n}\npause{turn}: addi a4, a4, -1\nbnez a4, pause{turn}\n"
            text += add_one(MIDDLE, total, place) * 5 + wait_for(FLAG, turn)
        programs[place] = text
    text = ""
    ends = {"target": DATA, "target_hi": at(*MIDDLE), "back": FLAG, "back_hi": rectangle((1, 2), (16, 11))}
    for turn in (1, 2):
        text += wait_for(total, 35 * turn) + f"li a4, {turn}\nli a5, {DATA:#x}\nsw a4, 0(a5)\n"
        text += request(ctrl=WRITE | MULTICAST, length=4, **ends)
    programs[MIDDLE] = text + note_time(TIMES)
    board = Board(programs, threads=threads)
    ChipTime(board.chip)
    board.start(*programs)
    board.chip.clock(30_000)
    assert board.word(MIDDLE, total) == 70
    assert [board.word(place, FLAG) for place in counters] == [2] * 7
    assert board.word(MIDDLE, TIMES) > 2 * 200


def test_a_run_goes_on_while_nothing_moves_but_what_is_on_its_way() -> None:
    chip = bhemu.Chip(timed=True)
    receiver = f"li a0, {COPY:#x}\nagain: lw a1, 0(a0)\nbeqz a1, again\nli a0, {TIMES:#x}\nsw a1, 0(a0)\nebreak\n"
    sender = f"li a3, 7\nli a4, {DATA:#x}\nsw a3, 0(a4)\n" + write(LAST, FIRST, 16384) + "ebreak\n"
    for place, text in ((FIRST, sender), (LAST, receiver)):
        chip.device.write_node(NODES[place], 0, assemble(text, 0))
        chip.device.write_node(NODES[place], SOFT_RESET, B_RUNS.to_bytes(4, "little"))
    result = chip.run(until=lambda: chip.device.read_node(NODES[LAST], TIMES, 4) == bytes([7, 0, 0, 0]))
    assert 300 < result.clocks < 900


def test_cores_that_poll_for_answers_are_not_stuck_while_requests_are_on_their_way() -> None:
    chip = bhemu.Chip(timed=True)
    start = "li a0, 0xffb20000\nli t0, 1\nli a3, 200\nnext: sw t0, 0x40(a0)\naddi a3, a3, -1\nbnez a3, next\n"
    sender = write(LAST, FIRST, 16384) + start + barrier("on") + "ebreak\n"
    chip.device.write_node(NODES[FIRST], 0, assemble(sender, 0))
    chip.device.write_node(NODES[FIRST], SOFT_RESET, B_RUNS.to_bytes(4, "little"))
    assert chip.run().clocks > 200 * 256
