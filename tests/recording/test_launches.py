"""When programs begin and end on tiles: the words that say so are named, for those who wait for a change."""

from __future__ import annotations

import ctypes

import pytest

from bhemu.counting.launches import Launches
from bhemu.loader.firmware_layout import GO
from bhemu.machine.state import POWER_ON_RESET, new_tiles

pytestmark = pytest.mark.plain


def values(launches: Launches) -> list[int]:
    return [ctypes.c_uint32.from_address(address).value for address in launches.words().tolist()]


def test_without_a_known_firmware_the_reset_of_each_tile_is_a_word_to_watch() -> None:
    tiles = new_tiles(3)
    launches = Launches(tiles, [0, 2])
    assert launches.look() == ([], [])
    before = values(launches)
    tiles["soft_reset"][1] = 0
    assert values(launches) == before
    tiles["soft_reset"][2] = 0
    assert values(launches) != before
    assert launches.look() == ([2], [])
    before = values(launches)
    tiles["soft_reset"][2] = POWER_ON_RESET
    assert values(launches) != before
    assert launches.look() == ([], [2])


def test_the_jump_of_a_firmware_its_go_signals_and_pointers_are_words_to_watch() -> None:
    tiles = new_tiles(2)
    launches = Launches(tiles, [0, 1])
    launches.look()
    known = next(iter(launches._layouts.values()))
    before = values(launches)
    entry = known.entry["B"]
    tiles["l1_u32"][:, 0] = 0x6F | (entry >> 12 & 0xFF) << 12 | (entry >> 11 & 1) << 20 | (entry >> 1 & 0x3FF) << 21
    assert values(launches) != before
    launches.look()
    assert launches.layout is known
    for which in (0, 3):
        tiles["l1_u32"][1, known.go_index >> 2] = which
        launches.look()
        before = values(launches)
        tiles["l1"][1, known.go_messages + known.go_signal + 4 * which] = GO
        assert values(launches) != before
        assert launches.look() == ([1], [])
        before = values(launches)
        tiles["l1_u32"][1, known.launch_read_pointer >> 2] += 1
        assert values(launches) != before
        assert launches.look() == ([1], [1])
        tiles["l1"][1, known.go_messages + known.go_signal + 4 * which] = 0
        assert launches.look() == ([], [1])
