"""A tile for a module's tests, reset before each."""

from __future__ import annotations

import pytest

from bhemu import Tile


@pytest.fixture(scope="module")
def shared_tile() -> Tile:
    return Tile()


@pytest.fixture
def tile(shared_tile: Tile) -> Tile:
    shared_tile.reset()
    shared_tile.record.allow_open = 0
    return shared_tile
