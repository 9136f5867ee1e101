"""The watchdog counts down (tile K56)."""

from __future__ import annotations

import pytest

from bhemu import Tile
from bhemu.errors import MissingSpecification

pytestmark = [pytest.mark.plain, pytest.mark.rule("tile K56")]

TIMER, CONTROL, STATUS = 0xFFB121E0, 0xFFB121E4, 0xFFB121E8


@pytest.fixture
def tile() -> Tile:
    return Tile(allow_open=True)


def test_it_counts_a_clock_at_a_time_down_to_zero(tile: Tile) -> None:
    tile.cores.store(TIMER, 100)
    tile.cores.store(CONTROL, 3)
    tile.clock(30)
    assert (tile.cores.load(TIMER), tile.cores.load(CONTROL), tile.cores.load(STATUS)) == (70, 3, 0)
    tile.clock(69)
    assert (tile.cores.load(TIMER), tile.cores.load(STATUS)) == (1, 0)
    tile.clock(1)
    assert (tile.cores.load(TIMER), tile.cores.load(STATUS)) == (0, 1)
    tile.clock(1000)
    assert (tile.cores.load(TIMER), tile.cores.load(STATUS)) == (0, 1)


def test_it_stops_where_it_is_and_goes_on_from_there(tile: Tile) -> None:
    tile.cores.store(TIMER, 100)
    tile.cores.store(CONTROL, 1)
    tile.clock(40)
    tile.cores.store(CONTROL, 0)
    tile.clock(500)
    assert (tile.cores.load(TIMER), tile.cores.load(STATUS)) == (60, 0)
    tile.cores.store(CONTROL, 1)
    tile.clock(60)
    assert (tile.cores.load(TIMER), tile.cores.load(STATUS)) == (0, 1)
    tile.cores.store(CONTROL, 0)
    assert tile.cores.load(STATUS) == 0


def test_a_new_value_counts_from_its_store_on(tile: Tile) -> None:
    tile.cores.store(CONTROL, 1)
    tile.clock(10)
    assert tile.cores.load(STATUS) == 1
    tile.cores.store(TIMER, 50)
    tile.cores.store(STATUS, 7)
    tile.clock(20)
    assert (tile.cores.load(TIMER), tile.cores.load(STATUS)) == (30, 0)


def test_a_start_is_an_open_choice() -> None:
    tile = Tile()
    tile.cores.store(TIMER, 1000)
    tile.cores.store(CONTROL, 0)
    with pytest.raises(MissingSpecification, match="WDT_CNTL = 0x1 starts the watchdog"):
        tile.cores.store(CONTROL, 1)
    tile.clock(10)
    assert (tile.cores.load(TIMER), tile.cores.load(CONTROL)) == (1000, 0)
