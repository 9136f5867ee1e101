"""HTML for notebooks: tables, small pictures of arrays, the grid of a chip. Needs nothing but NumPy."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bhemu.pictures.png import colours, png

Place = tuple[int, int]

LARGEST_SIDE: Final = 512
"""Pixels along a side of a picture, at most: larger arrays show every n-th datum."""
LARGEST_CELL: Final = 8
"""Pixels along the side of a datum, at most."""
_COLUMNS: Final = range(1, 17)
_ROWS: Final = range(2, 12)
_SIDE: Final = 22
"""Pixels from one tile of the grid to the next."""


def heading(text: str) -> str:
    """A line above what follows."""
    return f"<div><b>{escape(text)}</b></div>"


def paragraph(text: str) -> str:
    """A line of text."""
    return f"<div>{escape(text)}</div>"


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; numbers have separators and are right-aligned."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return f'<td style="text-align:right">{int(value):,}</td>'
    return f'<td style="text-align:left">{escape(str(value))}</td>'


def as_plane(values: NDArray[Any]) -> NDArray[Any]:
    """Any array as rows and columns: the last dimension across, all others down."""
    array = np.asarray(values)
    if array.ndim == 2:
        return array
    return array.reshape(1, -1) if array.ndim < 2 else array.reshape(-1, array.shape[-1])


def picture(values: NDArray[Any], *, title: str = "") -> str:
    """An array as a picture: blue below zero, white at zero, red above, NaN yellow."""
    plane = as_plane(values)
    if plane.size == 0:
        return paragraph(f"{title}: empty")
    down, across = (-(-size // LARGEST_SIDE) for size in plane.shape)
    shown = colours(plane[::down, ::across])
    cell = max(1, min(LARGEST_CELL, LARGEST_SIDE // max(shown.shape[:2])))
    pixels = shown.repeat(cell, axis=0).repeat(cell, axis=1)
    data = base64.b64encode(png(pixels)).decode()
    text = title or " x ".join(map(str, np.asarray(values).shape))
    return f'<img alt="{escape(text)}" title="{escape(text)}" src="data:image/png;base64,{data}">'


def grid(tiles: Mapping[Place, tuple[str, str]], legend: Mapping[str, str]) -> str:
    """The Tensix tiles of a chip as squares, at their translated coordinates.

    Args:
        tiles: by coordinates (x, y) the colour, and the text that the pointer shows.
        legend: colours and what they mean.
    """
    squares = []
    for (x, y), (colour, text) in tiles.items():
        at_x, at_y = (x - _COLUMNS.start + 1) * _SIDE, (y - _ROWS.start + 1) * _SIDE
        squares.append(
            f'<rect x="{at_x}" y="{at_y}" width="{_SIDE - 2}" height="{_SIDE - 2}" fill="{escape(colour)}">'
            f"<title>{escape(f'{x}-{y}: {text}')}</title></rect>"
        )
    label = '<text x="{}" y="{}" font-size="10" fill="currentColor" text-anchor="middle">{}</text>'
    names = [label.format((x - _COLUMNS.start + 1) * _SIDE + 10, 14, x) for x in _COLUMNS]
    names += [label.format(10, (y - _ROWS.start + 1) * _SIDE + 14, y) for y in _ROWS]
    size = f'width="{(len(_COLUMNS) + 1) * _SIDE}" height="{(len(_ROWS) + 1) * _SIDE}"'
    meanings = " ".join(f'<span style="color:{escape(c)}">&#9632;</span> {escape(text)}' for c, text in legend.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(names)}{"".join(squares)}</svg><div>{meanings}</div>'
    )
