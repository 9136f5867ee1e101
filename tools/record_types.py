"""Writes `bhemu/machine/record_types.pyi`: the fields of the state records, so that mypy knows which names there are.

python tools/record_types.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bhemu.chip.state import CHIP
from bhemu.machine.state import TILE

TARGET = Path(__file__).resolve().parents[1] / "bhemu" / "machine" / "record_types.pyi"

_HEAD = """\
# Made by tools/record_types.py from the dtypes of the records.
# Numbers and arrays are Any: Numba knows their types.
from typing import Any

"""


def _classes(name: str, record: np.dtype[np.void], prefix: str = "") -> list[str]:
    """The class of a record, after those of the records inside it, whose names start with `prefix`."""
    made = []
    lines = [f"class {name}Record:"]
    for field in record.names or ():
        inside = record[field]
        kind = "Any"
        if inside.base.names:
            part = prefix + field.title().replace("_", "")
            made += _classes(part, inside.base, part)
            kind = "Any" if inside.shape else part + "Record"
        lines.append(f"    {field}: {kind}")
    return [*made, "\n".join(lines)]


def text() -> str:
    """The stub file."""
    return _HEAD + "\n\n".join(_classes("Tile", TILE) + _classes("Chip", CHIP)) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text())
