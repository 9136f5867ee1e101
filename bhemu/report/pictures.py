"""Register files and tiles of L1 as numbers, for pictures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from bhemu.api.views import DstView, SrcView
from bhemu.chip.coordinates import Place
from bhemu.errors import BhemuError
from bhemu.formats.tensor import decode
from bhemu.recording.parts import Reader
from bhemu.recording.samples import Sample
from bhemu.recording.states import L1_TILE
from bhemu.report.figures import Picture

Array = np.ndarray[Any, Any]

STATES: Final = 256
"""States of tiles that a report draws at most."""
_NOTHING: Final = np.zeros((0, 0), np.float32)


def _shown(state: Mapping[str, Array]) -> dict[str, tuple[str, Array]]:
    """(detail, float32 values) of each file and tile of L1 that holds something, by what it is."""
    found: dict[str, tuple[str, Any]] = {}
    if state["dst_valid"].any():
        found["Dst"] = "", np.asarray(DstView(state))
    for file, name in enumerate(("SrcA", "SrcB")):
        view = SrcView(state, file)
        found |= {f"{name} bank {bank}": ("", view.bank(bank)) for bank in range(2) if view.cells[bank].any()}
    for name, content in state.items():
        if name.startswith(L1_TILE):
            what, address, kind = name.rsplit(" ", 2)
            try:
                values = decode(content.tobytes(), kind, (32, 32), interpretation="tensix")
            except BhemuError:
                continue
            found[what] = f"{address} {kind}", values
    arrays = {what: (detail, np.asarray(values, np.float32)) for what, (detail, values) in found.items()}
    return {what: (detail, values) for what, (detail, values) in arrays.items() if np.any(values)}


def _changes(place: Place, states: Iterable[Sample]) -> Iterator[Picture]:
    """Pictures of a tile, each from the clock on in which it has changed."""
    before: dict[str, tuple[str, Array]] = {}
    for sample in states:
        now = _shown(sample.state)
        for what in before.keys() | now.keys():
            detail, values = now.get(what, ("", _NOTHING))
            known = before.get(what)
            if known is None or known[0] != detail or not np.array_equal(known[1], values, equal_nan=True):
                yield Picture(place, sample.clock, what, detail, values)
        before = now


def pictures_of(reader: Reader, ends: Iterable[Sample]) -> tuple[list[Picture], str]:
    """Pictures of all tiles, and a note where there are too many states for all of them.

    Args:
        reader: of the recording.
        ends: states at the ends of programs.
    """
    ends = list(ends)
    between = sum(1 for _ in reader.samples())
    states = ends[:STATES]
    if between:  # else the recording need not be read again
        chosen = {round(number) for number in np.linspace(0, between - 1, max(STATES - len(ends), 0))}
        states += [sample for number, sample in enumerate(reader.samples()) if number in chosen]
    by_tile: dict[Place, list[Sample]] = {}
    for sample in sorted(states, key=lambda sample: (sample.place, sample.clock)):
        by_tile.setdefault(sample.place, []).append(sample)
    found = [picture for place, own in by_tile.items() for picture in _changes(place, own)]
    found.sort(key=lambda picture: (picture.place, picture.what, picture.clock))
    note = f"pictures: {len(states)} of {len(ends) + between} states" if len(states) < len(ends) + between else ""
    return found, note
