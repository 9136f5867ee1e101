"""Multicasts that leave out a quadrant of their rectangle: BRCST_EXCLUDE (tile N21, E24)."""

from __future__ import annotations

import pytest

from bhemu.chip.coordinates import TENSIX_TILES, Harvesting, tensix_place
from bhemu.chip.device import Device
from bhemu.errors import Unimplemented
from tests.chip.noc_programs import (
    ATOMIC,
    DATA,
    INCLUDE_SOURCE,
    INCREMENT,
    MULTICAST,
    WRITE,
    Board,
    at,
    rectangle,
    request,
    run,
)

pytestmark = pytest.mark.plain

SENDER = (3, 3)
COLUMNS, ROWS = range(2, 6), range(3, 7)
FIRST, LAST = (2, 3), (5, 6)
"""The rectangle: sixteen tiles, the sender among them."""


def exclusion(corner: tuple[int, int], rightwards: int, downwards: int, noc: int) -> int:
    """The register's value for a quadrant in the coordinates of NoC 0, as kernels write it."""
    if noc:
        corner = 16 - corner[0], 11 - corner[1]
    return 1 << 22 | (downwards ^ noc) << 21 | (rightwards ^ noc) << 20 | corner[1] << 14 | corner[0] << 8


def multicast(noc: int, exclude: int, **fields: int) -> str:
    corners = (LAST, FIRST) if noc else (FIRST, LAST)
    write = {"ctrl": WRITE | MULTICAST, "target": DATA, "target_hi": at(*SENDER), "back": DATA + 16, "length": 4}
    return request(noc=noc, **(write | {"back_hi": rectangle(*corners), "exclude": exclude} | fields))


def receivers(chip: Device) -> set[tuple[int, int]]:
    values = chip.tiles["l1"][:, DATA + 16]
    return {tensix_place(index) for index in range(TENSIX_TILES) if values[index] == 55}


QUADRANTS = {
    "up, left": (0, 0, {(x, y) for x in (2, 3, 4) for y in (3, 4)}),
    "up, right": (1, 0, {(x, y) for x in (4, 5) for y in (3, 4)}),
    "down, left": (0, 1, {(x, y) for x in (2, 3, 4) for y in (4, 5, 6)}),
    "down, right": (1, 1, {(x, y) for x in (4, 5) for y in (4, 5, 6)}),
}


@pytest.mark.rule("tile N21")
@pytest.mark.parametrize("simulator_order", [False, True])
@pytest.mark.parametrize("noc", [0, 1])
@pytest.mark.parametrize("name", QUADRANTS)
def test_a_quadrant_is_left_out(name: str, noc: int, simulator_order: bool) -> None:
    """Its corner is 4-4, which is left out itself."""
    rightwards, downwards, left_out = QUADRANTS[name]
    board = Board(
        {SENDER: multicast(noc, exclusion((4, 4), rightwards, downwards, noc))}, simulator_order=simulator_order
    )
    board.l1(SENDER)[DATA] = 55
    board.start(SENDER)
    board.chip.clock(200)
    expected = {(x, y) for x in COLUMNS for y in ROWS} - left_out - {SENDER}
    assert receivers(board.chip) == expected
    assert board.counters(SENDER, noc)[1] == len(expected)  # acknowledgements: one of each


@pytest.mark.rule("tile N21")
def test_the_sender_can_be_included_and_left_out() -> None:
    for corner, reached in (((4, 4), True), ((3, 3), False)):
        word = exclusion(corner, 1, 1, 0)
        board = Board({SENDER: multicast(0, word, ctrl=WRITE | MULTICAST | INCLUDE_SOURCE)})
        board.l1(SENDER)[DATA] = 55
        board.start(SENDER)
        board.chip.clock(200)
        assert (SENDER in receivers(board.chip)) is reached


@pytest.mark.rule("tile N21")
def test_coordinates_of_an_exclusion_are_not_translated() -> None:
    """The third column is off: translated columns 2 to 5 are 2, 4, 5 and 6, and the quadrant begins at the true 6."""
    board = Board({(4, 3): multicast(0, exclusion((6, 2), 1, 1, 0))}, harvesting=Harvesting(columns=(2,)))
    board.l1((4, 3))[DATA] = 55
    board.start((4, 3))
    board.chip.clock(200)
    assert {x for x, _ in receivers(board.chip)} == {2, 4, 5}


@pytest.mark.rule("tile N23")
def test_a_multicast_atomic_leaves_the_exclusion_out_too() -> None:
    board = run(
        {
            SENDER: multicast(
                0,
                exclusion((4, 4), 1, 1, 0),
                ctrl=ATOMIC | MULTICAST,
                target=DATA + 16,
                target_hi=rectangle(FIRST, LAST),
                back=DATA,
                back_hi=at(*SENDER),
                length=INCREMENT,
                data=55,
            )
        }
    )
    assert receivers(board.chip) == {(x, y) for x in COLUMNS for y in ROWS} - QUADRANTS["down, right"][2] - {SENDER}


def test_exclusion_that_leaves_nobody_is_no_error() -> None:
    board = run({SENDER: multicast(0, exclusion((1, 1), 1, 1, 0))})
    assert receivers(board.chip) == set()
    assert board.counters(SENDER).get(1, 0) == 0


@pytest.mark.parametrize("word", [1 << 21 | 4 << 14 | 4 << 8, 1 << 23])
def test_exclusion_that_is_not_enabled_does_nothing(word: int) -> None:
    board = Board({SENDER: multicast(0, word)})
    board.l1(SENDER)[DATA] = 55
    board.start(SENDER)
    board.chip.clock(200)
    assert len(receivers(board.chip)) == 15


def test_a_request_to_one_tile_does_not_look_at_it() -> None:
    board = Board({SENDER: multicast(0, exclusion((1, 1), 1, 1, 0) | 0xFF, ctrl=WRITE, back_hi=at(7, 7))})
    board.l1(SENDER)[DATA] = 55
    board.start(SENDER)
    board.chip.clock(200)
    assert receivers(board.chip) == {(7, 7)}


@pytest.mark.parametrize("bits", [1, 0x80, 1 << 24, 1 << 31])
def test_fields_that_no_source_explains_are_refused(bits: int) -> None:
    with pytest.raises(Unimplemented, match=r"BRCST_EXCLUDE is .*no source"):
        run({SENDER: multicast(0, exclusion((4, 4), 1, 1, 0) | bits)})


def test_exclusion_of_a_rectangle_over_the_edge_is_refused() -> None:
    over_the_edge = rectangle((15, 3), (2, 4))
    with pytest.raises(Unimplemented, match="wraps around the edge"):
        run({SENDER: multicast(0, exclusion((16, 3), 1, 1, 0), back_hi=over_the_edge)})
