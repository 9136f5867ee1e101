"""A tile for a module's tests, reset before each; a matrix unit for a module's tests, a vector unit for each test."""

from __future__ import annotations

import pytest

from bhemu import Tile
from tests.tensix.matrix_unit import Matrix
from tests.tensix.sfpu import Sfpu


@pytest.fixture(scope="module")
def shared_tile() -> Tile:
    return Tile()


@pytest.fixture
def tile(shared_tile: Tile) -> Tile:
    shared_tile.reset()
    shared_tile.record.allow_open = 0
    return shared_tile


@pytest.fixture(scope="module")
def unit() -> Matrix:
    return Matrix()


@pytest.fixture
def sfpu() -> Sfpu:
    return Sfpu()
