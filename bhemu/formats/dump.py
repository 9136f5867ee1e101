"""One tile from L1, decoded: faces with exponents, raw datums and values, and a text view of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bhemu.checks import checked
from bhemu.errors import FormatError
from bhemu.formats.data_format import DataFormat, TileShape
from bhemu.formats.layout import FACE_DIM, FACE_NAMES, check_tile_shape, tilize
from bhemu.formats.tensor import Bytes, Interpretation, bfp_sections, decode, raw_bytes

View = Literal["values", "bits"]


@dataclass(frozen=True)
class Face:
    """A 16x16 face of a tile.

    Attributes:
        index: place in storage order, 0..3.
        name: place in the tile, for example `"top-left"`.
        datums: raw datum bits as unsigned integers, shape [16, 16]; for BFP sign and magnitude.
        values: numbers, shape [16, 16].
        exponents: for BFP the shared exponent bytes, shape [16], one a row; else None.
    """

    index: int
    name: str
    datums: NDArray[Any]
    values: NDArray[Any]
    exponents: NDArray[np.uint8] | None


@dataclass(frozen=True)
class TileView:
    """A tile decoded: its format, its shape in rows and columns, and its faces in storage order."""

    data_format: DataFormat
    tile_shape: TileShape
    faces: tuple[Face, ...]


@checked
def read_tile(
    data: Bytes,
    data_format: DataFormat | str,
    tile_shape: TileShape = (32, 32),
    *,
    interpretation: Interpretation = "ieee",
) -> TileView:
    """Take one tile apart.

    Args:
        data: exactly `DataFormat.tile_bytes(tile_shape)` bytes.
        data_format: format or its name.
        tile_shape: rows and columns of the tile.
        interpretation: as in `bhemu.formats.decode`.

    Raises:
        FormatError: wrong number of bytes, unknown names, undefined BFP exponents.

    Example:
        >>> from bhemu.formats import encode
        >>> tile = read_tile(encode(np.eye(32), "bfp8"), "bfp8")
        >>> tile.faces[3].name, int(tile.faces[3].exponents[0]), int(tile.faces[3].datums[0, 0])
        ('bottom-right', 127, 64)
    """
    chosen, shape = DataFormat.parse(data_format), check_tile_shape(tile_shape)
    raw = raw_bytes(data)
    decoded = decode(raw, chosen, shape, tile_shape=shape, interpretation=interpretation)
    values = tilize(decoded, shape).reshape(-1, FACE_DIM, FACE_DIM)
    exponents: NDArray[np.uint8] | None = None
    if chosen.is_bfp:
        exponents, datums = bfp_sections(raw, 1, shape[0] * shape[1], chosen)
        exponents = exponents.reshape(-1, FACE_DIM)
    else:
        datums = raw.view(chosen.bits_dtype)
    datums = datums.reshape(values.shape)
    faces = tuple(
        Face(index, name, datums[index], values[index], None if exponents is None else exponents[index])
        for index, name in enumerate(FACE_NAMES[shape])
    )
    return TileView(chosen, shape, faces)


@checked
def render_tile(tile: TileView, *, views: Iterable[View] = ("values",), faces: Iterable[int] | None = None) -> str:
    """A tile as text: a heading, then for each face and view 16 rows; BFP rows start with their exponent byte.

    Args:
        tile: from `read_tile`.
        views: `"values"` for numbers, `"bits"` for raw datums in hexadecimal.
        faces: indices of the faces to show; None for all.

    Raises:
        FormatError: unknown view, or a face that the tile does not have.
    """
    height, width = tile.tile_shape
    wanted = range(len(tile.faces)) if faces is None else list(faces)
    lines = [
        f"{tile.data_format.name} tile {height}x{width}, {tile.data_format.tile_bytes(tile.tile_shape)} bytes, "
        f"{len(tile.faces)} faces"
    ]
    for view in views:
        if view not in ("values", "bits"):
            raise FormatError(f"unknown view {view!r}", remedy="use 'values' or 'bits'")
        for index in wanted:
            if not 0 <= index < len(tile.faces):
                raise FormatError(f"the tile has no face {index}", remedy=f"faces are 0..{len(tile.faces) - 1}")
            lines += ["", *_face_lines(tile.faces[index], view, tile.data_format)]
    return "\n".join(lines)


def _face_lines(face: Face, view: View, data_format: DataFormat) -> list[str]:
    if view == "bits":
        digits = -(-data_format.bits // 4)
        cells = [[f"{int(datum):0{digits}x}" for datum in row] for row in face.datums]
    elif data_format.is_integer:
        cells = [[str(int(value)) for value in row] for row in face.values]
    else:
        cells = [[f"{float(value):.6g}" for value in row] for row in face.values]
    width = max(len(cell) for row in cells for cell in row)
    lines = [f"face {face.index} ({face.name}), {view}"]
    for number, row in enumerate(cells):
        exponent = "" if face.exponents is None else f"e={int(face.exponents[number]):3d}  "
        lines.append(f"{number:2d} | {exponent}" + " ".join(f"{cell:>{width}}" for cell in row))
    return lines


@checked
def show_tile(
    data: Bytes,
    data_format: DataFormat | str,
    tile_shape: TileShape = (32, 32),
    *,
    interpretation: Interpretation = "ieee",
    views: Iterable[View] = ("values",),
    faces: Iterable[int] | None = None,
) -> str:
    """`read_tile` and `render_tile` in one call.

    Example:
        >>> from bhemu.formats import encode
        >>> text = show_tile(encode(np.eye(16), "bfp4", tile_shape=(16, 16)), "bfp4", (16, 16), views=("bits",))
        >>> print(text.splitlines()[3])
         0 | e=127  4 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
    """
    tile = read_tile(data, data_format, tile_shape, interpretation=interpretation)
    return render_tile(tile, views=views, faces=faces)
