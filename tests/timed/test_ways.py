"""The ways of packets for the host are those on which the timed chip lets them travel."""

from __future__ import annotations

import numpy as np
import pytest

from bhemu.chip.coordinates import HEIGHT, WIDTH
from bhemu.timed import net_layout
from bhemu.timed.ways import Link, links_between
from tests.chip.noc_programs import DATA, READ, WRITE, at, request
from tests.timed.test_timed_chip import timed_board

OWN, OTHER = (3, 9), (14, 4)


def test_noc_0_goes_right_then_down_and_noc_1_up_then_left() -> None:
    assert links_between(0, (1, 2), (2, 3)) == (((1, 2), (2, 2)), ((2, 2), (2, 3)))
    assert links_between(1, (2, 3), (1, 2)) == (((2, 3), (2, 2)), ((2, 2), (1, 2)))
    assert links_between(0, (16, 11), (0, 0)) == (((16, 11), (0, 11)), ((0, 11), (0, 0)))
    assert links_between(1, (0, 0), (16, 11)) == (((0, 0), (0, 11)), ((0, 11), (16, 11)))
    assert links_between(0, (5, 5), (5, 5)) == ()


def raw_link(noc: int, link: Link) -> int:
    """Number of a link in the buffer of the timed chip."""
    (x, y), (to_x, _) = link
    raw_x, raw_y = (WIDTH - 1 - x, HEIGHT - 1 - y) if noc else (x, y)
    return 2 * (noc * net_layout.NODES + raw_x + WIDTH * raw_y) + (x == to_x)


@pytest.mark.parametrize("noc", [0, 1])
@pytest.mark.parametrize("reads", [False, True])
def test_a_timed_chip_keeps_these_links_busy(noc: int, reads: bool) -> None:
    source, target = (OTHER, OWN) if reads else (OWN, OTHER)
    ends = {"target": DATA, "target_hi": at(*source), "back": 0x30000, "back_hi": at(*target)}
    text = request(noc=noc, ctrl=READ if reads else WRITE, length=4096, **ends)
    board, time = timed_board({OWN: text})
    board.chip.clock(1000)
    busy = np.flatnonzero(time.busy()[: net_layout.OUT - net_layout.LINK])
    expected = set(links_between(noc, OWN, OTHER)) | (set(links_between(noc, OTHER, OWN)) if reads else set())
    assert sorted(busy.tolist()) == sorted(raw_link(noc, link) for link in expected)
