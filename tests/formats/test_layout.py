"""Tile order: faces, tiles, inverses, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bhemu.checks import ArgumentError
from bhemu.errors import FormatError
from bhemu.formats import TILE_SHAPES, datum_index, pad_to_tiles, padded_shape, tilize, untilize

tile_shapes = st.sampled_from(TILE_SHAPES)


@pytest.mark.parametrize("tile_shape", TILE_SHAPES)
def test_tiles_are_row_major_and_faces_go_left_to_right_then_down(tile_shape: tuple[int, int]) -> None:
    height, width = tile_shape
    rows, columns = 2 * height, 3 * width
    matrix = np.arange(rows * columns).reshape(rows, columns)
    tiles = tilize(matrix, tile_shape)
    expected = [
        [
            matrix[tile_row + face_row + row, tile_column + face_column + column]
            for face_row in range(0, height, 16)
            for face_column in range(0, width, 16)
            for row in range(16)
            for column in range(16)
        ]
        for tile_row in range(0, rows, height)
        for tile_column in range(0, columns, width)
    ]
    assert tiles.tolist() == expected


@pytest.mark.parametrize("tile_shape", TILE_SHAPES)
def test_datum_index_agrees_with_tilize(tile_shape: tuple[int, int]) -> None:
    height, width = tile_shape
    order = tilize(np.arange(height * width).reshape(height, width), tile_shape)[0]
    for row in range(height):
        for column in range(width):
            assert order[datum_index(row, column, tile_shape)] == row * width + column


@given(
    tile_shape=tile_shapes,
    rows=st.integers(1, 3),
    columns=st.integers(1, 3),
    leading=st.lists(st.integers(0, 3), max_size=2),
)
def test_untilize_inverts_tilize(tile_shape: tuple[int, int], rows: int, columns: int, leading: list[int]) -> None:
    shape = (*leading, rows * tile_shape[0], columns * tile_shape[1])
    tensor = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    tiles = tilize(tensor, tile_shape)
    assert tiles.shape == (tensor.size // (tile_shape[0] * tile_shape[1]), tile_shape[0] * tile_shape[1])
    assert np.array_equal(untilize(tiles, shape, tile_shape), tensor)


@given(tile_shape=tile_shapes, tiles=st.integers(1, 4))
def test_tilize_inverts_untilize(tile_shape: tuple[int, int], tiles: int) -> None:
    datums = np.arange(tiles * tile_shape[0] * tile_shape[1])
    shape = (tiles * tile_shape[0], tile_shape[1])
    assert np.array_equal(tilize(untilize(datums, shape, tile_shape), tile_shape).reshape(-1), datums)


def test_leading_axes_are_outermost() -> None:
    stack = np.stack([np.zeros((32, 64)), np.ones((32, 64))])
    assert tilize(stack)[:, 0].tolist() == [0, 0, 1, 1]


def test_a_transposed_view_tilizes_by_its_own_rows() -> None:
    matrix = np.arange(1024).reshape(32, 32).T
    assert np.array_equal(tilize(matrix), tilize(matrix.copy()))


@given(shape=st.lists(st.integers(1, 70), min_size=0, max_size=3).map(tuple), tile_shape=tile_shapes)
def test_padding_appends_and_keeps(shape: tuple[int, ...], tile_shape: tuple[int, int]) -> None:
    array = np.ones(shape, np.float32)
    padded = pad_to_tiles(array, tile_shape, value=7)
    assert padded.shape == padded_shape(shape, tile_shape)
    assert padded.shape[-2] % tile_shape[0] == padded.shape[-1] % tile_shape[1] == 0
    assert (padded == 1).sum() == array.size
    assert (padded == 7).sum() == padded.size - array.size
    full = (1,) * (2 - len(shape)) + shape
    assert (padded[tuple(slice(0, n) for n in full)] == 1).all()


@pytest.mark.parametrize(("shape", "padded"), [((31, 32), (32, 32)), ((2, 32, 40), (2, 32, 64)), ((10,), (32, 32))])
def test_shapes_that_are_no_whole_tiles_name_the_padded_shape(shape: tuple[int, ...], padded: tuple[int, ...]) -> None:
    with pytest.raises(FormatError) as refusal:
        tilize(np.zeros(shape))
    assert str(shape) in refusal.value.message
    assert f"pad it to {padded}" in str(refusal.value.remedy)


@pytest.mark.parametrize("tile_shape", [(32, 31), (8, 32), (32,)])
def test_unknown_tile_shapes_are_refused(tile_shape: object) -> None:
    with pytest.raises(FormatError, match=r"tile shape .* does not exist[\s\S]*16x32"):
        tilize(np.zeros((32, 32)), tile_shape)  # type: ignore[arg-type]


@pytest.mark.parametrize("tile_shape", ["32x32", None, 32])
def test_what_is_not_a_tile_shape_is_refused(tile_shape: object) -> None:
    with pytest.raises(ArgumentError, match="tile_shape"):
        tilize(np.zeros((32, 32)), tile_shape)  # type: ignore[arg-type]


def test_untilize_refuses_another_number_of_datums() -> None:
    with pytest.raises(FormatError, match="1023 datums"):
        untilize(np.zeros(1023), (32, 32))


@pytest.mark.parametrize("place", [(32, 0), (0, 32), (-1, 0)])
def test_datum_index_refuses_places_outside(place: tuple[int, int]) -> None:
    with pytest.raises(FormatError, match="outside"):
        datum_index(*place)
