"""A picture of `bhemu bench --silicon`: each group's estimates over what was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bhemu.bench.silicon import Outcome
from bhemu.errors import ConfigurationError

_COLUMNS: Final = 3
_SIDE: Final = 3.4
"""Inches of a group's picture."""


def plot(outcomes: Sequence[Outcome], path: Path) -> None:
    """Draw every figure that has an estimate: both axes logarithmic, the diagonal is what was measured.

    Args:
        path: of the picture, in a format that its suffix names: `.png`, `.svg`, `.pdf`.

    Raises:
        ConfigurationError: matplotlib is not installed, cannot write such a file, or no figure has an estimate.
    """
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ConfigurationError("matplotlib is not installed", remedy="pip install 'bhemu[plot]'") from None
    drawn = [outcome for outcome in outcomes if outcome.compared]
    if not drawn:
        raise ConfigurationError("no figure has an estimate", remedy="choose other groups with --only")
    rows = math.ceil(len(drawn) / _COLUMNS)
    size = (_COLUMNS * _SIDE, rows * _SIDE)
    picture, places = pyplot.subplots(rows, _COLUMNS, figsize=size, layout="constrained", squeeze=False)
    for place, outcome in zip(places.flat, drawn, strict=False):
        measured = [one.measured for one in outcome.compared]
        predicted = [one.predicted for one in outcome.compared]
        ends = [min(*measured, *predicted), max(*measured, *predicted)]
        place.loglog(measured, predicted, ".", markersize=3)
        place.loglog(ends, ends, linewidth=0.8, color="black")
        place.set_title(f"{outcome.group.name}\n{len(measured):,} figures, median {outcome.median:.1%}", fontsize=7)
        place.tick_params(which="both", labelsize=6)
    for place in list(places.flat)[len(drawn) :]:
        place.set_axis_off()
    picture.supxlabel("measured", fontsize=8)
    picture.supylabel("estimated", fontsize=8)
    try:
        picture.savefig(path, dpi=110)
    except ValueError as error:
        raise ConfigurationError(f"{path}: {error}", remedy="name a file with the suffix .png, .svg or .pdf") from None
    finally:
        pyplot.close(picture)
