"""Register files and tiles of L1 as numbers, for pictures."""

from __future__ import annotations

from typing import Any

import numpy as np

from bhemu.api.views import DstView, SrcView
from bhemu.errors import BhemuError
from bhemu.formats.tensor import decode
from bhemu.recording.parts import Part
from bhemu.recording.states import L1_TILE

Array = np.ndarray[Any, Any]


def pictures_of(part: Part) -> list[tuple[str, str, Array]]:
    """(title, what, float32 values) of each file that holds something, at the end of a part."""
    x, y = part.place
    title = f"tile {x}-{y}, clock {part.end:,}"
    found: list[tuple[str, Array]] = []
    if part.state["dst_valid"].any():
        found.append(("Dst", np.asarray(DstView(part.state))))
    for file, name in enumerate(("SrcA", "SrcB")):
        view = SrcView(part.state, file)
        found += [(f"{name} bank {bank}", view.bank(bank)) for bank in range(2) if view.cells[bank].any()]
    for name, content in part.state.items():
        if name.startswith(L1_TILE):
            try:
                values = decode(content.tobytes(), name.rpartition(" ")[2], (32, 32), interpretation="tensix")
            except BhemuError:
                continue
            found.append((name, np.asarray(values, np.float32)))
    return [(title, what, np.asarray(values, np.float32)) for what, values in found if np.any(values)]
