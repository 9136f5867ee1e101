"""A small writer of PNG pictures (8-bit RGB), and the colours of numbers."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

CELL = 12
"""Pixels along the side of a datum."""
GAP = 4
"""Pixels between faces."""
FACE = 16

NEGATIVE = np.array((33, 102, 172))
ZERO = np.array((247, 247, 247))
POSITIVE = np.array((178, 24, 43))
NOT_A_NUMBER = (255, 200, 0)
BACKGROUND = 60


def png(pixels: NDArray[np.uint8]) -> bytes:
    """A PNG file of `pixels`, shape [height, width, 3]."""
    height, width, _ = pixels.shape
    rows = np.zeros((height, 1 + 3 * width), np.uint8)  # each row starts with its filter, 0 = none
    rows[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def colours(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Blue below zero, white at zero, red above, in proportion to the largest finite magnitude; NaN is yellow."""
    numbers = np.asarray(values).astype(np.float64)
    finite = np.abs(numbers[np.isfinite(numbers)])
    largest = float(finite.max()) if finite.size and finite.max() > 0 else 1.0
    share = np.clip(np.nan_to_num(numbers, nan=0.0, posinf=largest, neginf=-largest) / largest, -1.0, 1.0)[..., None]
    mixed = np.where(share < 0, ZERO + (NEGATIVE - ZERO) * -share, ZERO + (POSITIVE - ZERO) * share)
    picture: NDArray[np.uint8] = np.rint(mixed).astype(np.uint8)
    picture[np.isnan(numbers)] = NOT_A_NUMBER
    return picture


def tile_picture(values: NDArray[Any]) -> bytes:
    """A PNG of a tile's values, shape [rows, columns], with its 16x16 faces set apart."""
    rows, columns = (_positions(n) for n in values.shape)
    pixels = np.full((rows[-1] + CELL, columns[-1] + CELL, 3), BACKGROUND, np.uint8)
    for y, line in zip(rows, colours(values), strict=True):
        for x, colour in zip(columns, line, strict=True):
            pixels[y : y + CELL, x : x + CELL] = colour
    return png(pixels)


def _positions(count: int) -> list[int]:
    return [i * CELL + i // FACE * GAP for i in range(count)]
