"""Plots with matplotlib, which is installed by `pip install 'bhemu[plot]'`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bhemu.errors import ConfigurationError
from bhemu.pictures.html import as_plane

Place = tuple[int, int]

FACE: Final = 16
LARGEST_LINES: Final = 256
"""Rows or columns up to which faces are set apart by lines."""


def axes(ax: Any = None, *, size: tuple[float, float] | None = None) -> Any:
    """The given axes, or those of a new figure.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ConfigurationError("matplotlib is not installed", remedy="pip install 'bhemu[plot]'") from None
    return pyplot.subplots(figsize=size, layout="constrained")[1]


def matrix(values: NDArray[Any], title: str = "", *, ax: Any = None) -> Any:
    """An array as an image: blue below zero, white at zero, red above, NaN yellow; faces of 16 are set apart.

    Args:
        values: shown as rows and columns; of more than two dimensions all but the last go down.
        title: above the picture.
        ax: matplotlib's axes to draw on; new ones by default.

    Returns:
        The axes.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    ax = axes(ax)
    plane = as_plane(values).astype(np.float64)
    finite = np.abs(plane[np.isfinite(plane)])
    largest = float(finite.max()) if finite.size and finite.max() > 0 else 1.0
    from matplotlib import colormaps

    image = ax.imshow(
        np.clip(plane, -largest, largest),
        cmap=colormaps["RdBu_r"].with_extremes(bad="gold"),
        vmin=-largest,
        vmax=largest,
        aspect="equal" if max(plane.shape) <= 8 * max(1, min(plane.shape)) else "auto",
        interpolation="nearest",
    )
    rows, columns = plane.shape
    if rows <= LARGEST_LINES and columns <= LARGEST_LINES:
        for at in range(FACE, rows, FACE):
            ax.axhline(at - 0.5, color="grey", linewidth=0.5)
        for at in range(FACE, columns, FACE):
            ax.axvline(at - 0.5, color="grey", linewidth=0.5)
    ax.set_title(title)
    ax.figure.colorbar(image, ax=ax)
    return ax


def grid(values: Mapping[Place, float], title: str = "", *, ax: Any = None) -> Any:
    """A number of each Tensix tile as a colour, at the tile's translated coordinates; see `matrix`."""
    ax = axes(ax, size=(8, 5))
    plane = np.full((10, 16), np.nan)
    for (x, y), value in values.items():
        plane[y - 2, x - 1] = value
    image = ax.imshow(plane, extent=(0.5, 16.5, 11.5, 1.5), interpolation="nearest")
    ax.set(title=title, xlabel="x", ylabel="y", xticks=range(1, 17), yticks=range(2, 12))
    ax.figure.colorbar(image, ax=ax)
    return ax


def timeline(
    tracks: Sequence[tuple[str, Sequence[tuple[float, float, str]]]], title: str = "", unit: str = "", *, ax: Any = None
) -> Any:
    """Spans of time on tracks, one below the other; each text has a colour of its own.

    Args:
        tracks: name and (start, length, text) of each span.
        title: above the picture.
        unit: of time.
        ax: matplotlib's axes; new ones by default.

    Returns:
        The axes.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    ax = axes(ax, size=(12, 0.6 + 0.4 * max(1, len(tracks))))
    texts = sorted({text for _, spans in tracks for _, _, text in spans})
    colour = {text: f"C{number % 10}" for number, text in enumerate(texts)}
    for row, (_, spans) in enumerate(tracks):
        ax.broken_barh(
            [(start, length) for start, length, _ in spans],
            (row - 0.4, 0.8),
            facecolors=[colour[text] for *_, text in spans],
        )
    ax.set(title=title, xlabel=unit, yticks=range(len(tracks)), yticklabels=[name for name, _ in tracks])
    ax.set_ylim(max(1, len(tracks)) - 0.5, -0.5)
    if texts and len(texts) <= 20:
        handles = [ax.barh(0, 0, color=colour[text], label=text) for text in texts]
        ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
    return ax
