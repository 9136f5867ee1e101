"""Links of a multicast in a timed chip: which ones, and who waits for them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from bhemu.chip.coordinates import HEIGHT, WIDTH, Place
from bhemu.timed import ChipTime, net_layout
from bhemu.timed.ways import Link, links_between, links_of_multicast
from tests.chip.noc_programs import DATA, MULTICAST, RESPONSE, WRITE, Board, at, rectangle, request
from tests.chip.test_noc_order import note_time
from tests.timed.test_timed_chip import COPY, TIMES, timed_board, write
from tests.timed.test_ways import raw_link

BY_COLUMN, LINKED = 1 << 16, 1 << 6
CORNERS = (2, 3), (4, 5)


def multicast(own: Place, corners: tuple[Place, Place], size: int, *, noc: int = 0, flags: int = 0) -> str:
    """A multicast to a rectangle, answered."""
    ends = {"target": DATA, "target_hi": at(*own), "back": COPY, "back_hi": rectangle(*corners)}
    return request(noc=noc, ctrl=WRITE | MULTICAST | RESPONSE | flags, length=size, **ends)


def busy_links(time: ChipTime) -> dict[int, int]:
    """64ths of a cycle for which links were busy, by their numbers in the buffer."""
    busy = time.busy()[: net_layout.OUT - net_layout.LINK]
    return {int(link): int(busy[link]) for link in np.flatnonzero(busy)}


def numbers(noc: int, links: list[Link]) -> set[int]:
    return {raw_link(noc, link) for link in links}


def line(noc: int, *places: Place) -> list[Link]:
    """Links from place to place."""
    return [link for a, b in pairwise(places) for link in links_between(noc, a, b)]


ROWS = [*line(0, (1, 2), (2, 2), (2, 5)), *(link for y in (3, 4, 5) for link in line(0, (2, y), (4, y)))]
COLUMNS = [*line(0, (1, 2), (1, 3), (4, 3)), *(link for x in (2, 3, 4) for link in line(0, (x, 3), (x, 5)))]


@pytest.mark.parametrize(("flags", "links"), [(0, ROWS), (BY_COLUMN, COLUMNS)])
def test_a_multicast_passes_each_link_of_its_branches_once(flags: int, links: list[Link]) -> None:
    board, time = timed_board({(1, 2): multicast((1, 2), CORNERS, 4096, flags=flags)})
    board.chip.clock(2000)
    assert set(busy_links(time)) == numbers(0, links)
    assert set(busy_links(time).values()) == {64 * 66}


@pytest.mark.parametrize("seed", range(12))
def test_the_host_knows_the_links_of_a_multicast(seed: int) -> None:
    random = np.random.default_rng(seed)
    noc, by_column = seed & 1, bool(seed & 2)
    columns, rows = [*range(1, 8), *range(10, 17)], range(2, 12)
    own = int(random.choice(columns)), int(random.choice(rows))
    (left, right), (top, bottom) = (sorted(random.choice(one, 2).tolist()) for one in (columns, rows))
    corners = ((right, bottom), (left, top)) if noc else ((left, top), (right, bottom))
    board, time = timed_board({own: multicast(own, corners, 64, noc=noc, flags=BY_COLUMN * by_column)})
    board.chip.clock(2000)
    links = links_of_multicast(noc, own, *corners, by_column)
    assert len(set(links)) == len(links)
    assert set(busy_links(time)) == numbers(noc, list(links))


def test_a_multicast_over_noc_1_goes_the_other_way() -> None:
    own, corners = (5, 6), ((4, 5), (3, 4))
    board, time = timed_board({own: multicast(own, corners, 64, noc=1)})
    board.chip.clock(2000)
    links = [*line(1, own, (5, 5)), *line(1, (5, 5), (5, 4))]
    assert not set(busy_links(time)) & numbers(1, links)  # along the row first
    links = [*line(1, own, (4, 6)), *line(1, (4, 6), (4, 4)), *line(1, (4, 5), (3, 5)), *line(1, (4, 4), (3, 4))]
    assert set(busy_links(time)) == numbers(1, links)


def test_a_sender_within_its_rectangle_reaches_all_of_it_over_the_edges() -> None:
    board, time = timed_board({(3, 4): multicast((3, 4), CORNERS, 64)})
    board.chip.clock(2000)
    assert len(busy_links(time)) == (HEIGHT - 1) + 3 * (WIDTH - 1)


ANSWERED = 0xFFB20204
"""Counts answers to writes over NoC 0."""


def times_of(programs: dict[Place, tuple[str, int]], threads: int = 1) -> list[int]:
    """Clocks until each program's requests have their number of answers."""
    texts = {}
    for place, (text, answers) in programs.items():
        end = f"li a1, {ANSWERED:#x}\nli a3, {answers}\nend_: lw a2, 0(a1)\nbne a2, a3, end_\n"
        texts[place] = note_time(TIMES) + text + end + note_time(TIMES + 4)
    board = Board(texts, threads=threads)
    ChipTime(board.chip)
    board.start(*programs)
    board.chip.clock(9000)
    assert all(board.word(place, TIMES + 4) for place in programs)
    return [board.word(place, TIMES + 4) - board.word(place, TIMES) for place in programs]


FIRST, ROW = (1, 2), ((1, 2), (7, 2))


def test_multicasts_that_use_the_same_links_wait_for_each_other() -> None:
    own = {FIRST: (multicast(FIRST, ROW, 8192), 6)}
    (alone,) = times_of(own)
    together = times_of({**own, (2, 2): (multicast((2, 2), ROW, 8192), 6)})
    assert together[0] == alone
    assert together[1] > alone + 128
    below = {(1, 3): (multicast((1, 3), ((1, 3), (7, 3)), 8192), 6)}
    assert times_of({**own, **below}) == [alone] * 2


def test_a_write_waits_on_a_branch_for_the_data_of_a_multicast() -> None:
    sender, corners = (1, 3), ((2, 3), (7, 4))
    pause = "li a4, 60\npause: addi a4, a4, -1\nbnez a4, pause\n"
    # It goes over links of the lower branch, and not where the multicast comes from.
    beside = {(5, 4): (pause + write((10, 4), (5, 4), 64), 1)}
    (alone,) = times_of(beside)
    together = times_of({**beside, sender: (multicast(sender, corners, 16384), 12)})
    assert together[0] > alone + 64


def test_a_linked_multicast_is_followed_at_once() -> None:
    corners = ((2, 2), (7, 2))
    free, linked = (
        times_of({FIRST: (multicast(FIRST, corners, 2048, flags=flags) + multicast(FIRST, corners, 2048), 12)})[0]
        for flags in (0, LINKED)
    )
    assert linked + 200 < free


def test_a_linked_transaction_keeps_its_path_from_another_multicast() -> None:
    linked = (multicast(FIRST, ROW, 4096, flags=LINKED) * 4 + multicast(FIRST, ROW, 4096), 30)
    other = (multicast((2, 2), ROW, 64), 6)
    (alone,), (lone,) = times_of({FIRST: linked}), times_of({(2, 2): other})
    first, second = times_of({FIRST: linked, (2, 2): other})
    assert first < alone + 64
    assert second > lone + 64


def test_a_row_that_multicasts_takes_as_long_on_any_number_of_threads() -> None:
    corners = ((1, 2), (16, 2))
    programs = {(x, 2): (multicast((x, 2), corners, 64) * 3, 3 * 13) for x in (1, 2, 3, 5, 7, 10, 12, 16)}
    one, two = times_of(programs), times_of(programs, threads=2)
    assert one == two
    assert len(set(one)) > 4
