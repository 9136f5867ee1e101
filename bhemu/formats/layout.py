"""Tile order: matrices to tiles of 16x16 faces and back (rule `I.4`).

A tile is a row-major grid of faces (top-left, top-right, bottom-left, bottom-right), a face is 16 rows of 16 datums. A
tensor is cut along its last two axes; its tiles follow each other row by row, leading axes outermost.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import bhemu.checks as checks
from bhemu.checks import checked
from bhemu.errors import FormatError
from bhemu.formats.data_format import TILE_SHAPES, TileShape

FACE_DIM = 16
"""Rows and columns of a face."""

FACE_NAMES = {
    (32, 32): ("top-left", "top-right", "bottom-left", "bottom-right"),
    (16, 32): ("left", "right"),
    (32, 16): ("top", "bottom"),
    (16, 16): ("whole",),
}
"""Position of each face of a tile, in storage order."""


def check_tile_shape(tile_shape: TileShape) -> TileShape:
    """The tile shape as a tuple of ints.

    Raises:
        FormatError: not one of `TILE_SHAPES`.
    """
    try:
        shape = checks.shape(tile_shape)
    except checks.ArgumentError:
        shape = ()
    for known in TILE_SHAPES:
        if shape == known:
            return known
    listed = ", ".join(f"{r}x{c}" for r, c in TILE_SHAPES)
    raise FormatError(f"tile shape {tile_shape!r} does not exist", remedy=f"use {listed}, or None for row-major order")


@checked
def padded_shape(shape: tuple[int, ...], tile_shape: TileShape = (32, 32)) -> tuple[int, ...]:
    """`shape` with the last two dimensions rounded up to whole tiles; missing dimensions become 1 first.

    Example:
        >>> padded_shape((3, 40, 64))
        (3, 64, 64)
    """
    height, width = check_tile_shape(tile_shape)
    full = (1,) * max(0, 2 - len(shape)) + tuple(shape)
    return (*full[:-2], -(-full[-2] // height) * height, -(-full[-1] // width) * width)


def check_whole_tiles(shape: tuple[int, ...], tile_shape: TileShape) -> None:
    """Refuse shapes whose last two dimensions are not whole tiles.

    Raises:
        FormatError: with the padded shape as remedy.
    """
    height, width = check_tile_shape(tile_shape)
    if len(shape) < 2 or shape[-2] % height or shape[-1] % width:
        raise FormatError(
            f"shape {tuple(shape)} is not a whole number of {height}x{width} tiles",
            remedy=f"pad it to {padded_shape(shape, tile_shape)} (bhemu.formats.pad_to_tiles does), "
            f"or pass tile_shape=None for row-major order",
        )


@checked
def pad_to_tiles(array: NDArray[Any], tile_shape: TileShape = (32, 32), value: Any = 0) -> NDArray[Any]:
    """`array` with `value` appended below and to the right until the last two dimensions are whole tiles.

    Example:
        >>> pad_to_tiles(np.ones((30, 70), np.float32)).shape
        (32, 96)
    """
    array = np.asarray(array)
    wanted = padded_shape(array.shape, tile_shape)
    array = array.reshape((1,) * (len(wanted) - array.ndim) + array.shape)
    if array.shape == wanted:
        return array
    padded = np.full(wanted, value, array.dtype)
    padded[tuple(slice(0, n) for n in array.shape)] = array
    return padded


@checked
def tilize(array: NDArray[Any], tile_shape: TileShape = (32, 32)) -> NDArray[Any]:
    """A tensor in tile order.

    Args:
        array: shape [..., rows, columns], both whole tiles.
        tile_shape: rows and columns of a tile.

    Returns:
        Shape [tiles, datums of a tile], contiguous, same dtype.

    Raises:
        FormatError: unknown tile shape, or not whole tiles.

    Example:
        >>> tilize(np.arange(1024).reshape(32, 32))[0, 256]  # face 1 starts at row 0, column 16
        np.int64(16)
    """
    check_whole_tiles(array.shape, tile_shape)
    height, width = tile_shape
    if not array.size:
        return np.empty((0, height * width), array.dtype)
    rows, columns = array.shape[-2:]
    split = array.reshape(
        -1, rows // height, height // FACE_DIM, FACE_DIM, columns // width, width // FACE_DIM, FACE_DIM
    )
    return np.ascontiguousarray(split.transpose(0, 1, 4, 2, 5, 3, 6)).reshape(-1, height * width)


@checked
def untilize(tiles: NDArray[Any], shape: tuple[int, ...], tile_shape: TileShape = (32, 32)) -> NDArray[Any]:
    """Inverse of `tilize`: datums in tile order back to a tensor of `shape`.

    Args:
        tiles: as many datums as `shape` has, in tile order, of any shape.
        shape: shape [..., rows, columns] of the result, both whole tiles.
        tile_shape: rows and columns of a tile.

    Raises:
        FormatError: unknown tile shape, not whole tiles, or another number of datums.

    Example:
        >>> a = np.arange(2048).reshape(32, 64)
        >>> bool((untilize(tilize(a), a.shape) == a).all())
        True
    """
    check_whole_tiles(shape, tile_shape)
    wanted = int(np.prod(shape, dtype=np.int64))
    if tiles.size != wanted:
        raise FormatError(
            f"{tiles.size} datums do not make a tensor of shape {tuple(shape)}", remedy=f"pass {wanted} datums"
        )
    if not wanted:
        return np.empty(shape, tiles.dtype)
    height, width = tile_shape
    rows, columns = shape[-2:]
    split = tiles.reshape(
        -1, rows // height, columns // width, height // FACE_DIM, width // FACE_DIM, FACE_DIM, FACE_DIM
    )
    return np.ascontiguousarray(split.transpose(0, 1, 3, 5, 2, 4, 6)).reshape(shape)


def datum_index(row: int, column: int, tile_shape: TileShape = (32, 32)) -> int:
    """Place of (row, column) of a tile in its storage order.

    Example:
        >>> datum_index(17, 3)  # bottom-left face, its row 1
        531
    """
    height, width = check_tile_shape(tile_shape)
    row, column = checks.integer(row, "row"), checks.integer(column, "column")
    if not (0 <= row < height and 0 <= column < width):
        raise FormatError(
            f"datum ({row}, {column}) is outside a {height}x{width} tile",
            remedy=f"rows are 0..{height - 1}, columns 0..{width - 1}",
        )
    face = (row // FACE_DIM) * (width // FACE_DIM) + column // FACE_DIM
    return (face * FACE_DIM + row % FACE_DIM) * FACE_DIM + column % FACE_DIM
