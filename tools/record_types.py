"""Writes `bhemu/machine/record_types.pyi`: the fields of the state records, so that mypy knows a name that is not there.

python tools/record_types.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bhemu.chip.state import CHIP
from bhemu.machine.state import TILE

TARGET = Path(__file__).resolve().parents[1] / "bhemu" / "machine" / "record_types.pyi"


def _class(name: str, record: np.dtype[np.void], made: list[str]) -> None:
    """Append the class of a record, after those of the records inside it."""
    lines = [f"class {name}:"]
    for field in record.names or ():
        inside = record[field]
        kind = "Any"
        if inside.base.names:
            part = name.removesuffix("Record") + field.title().replace("_", "")
            _class(part + "Record", inside.base, made)
            kind = "Any" if inside.shape else part + "Record"
        lines.append(f"    {field}: {kind}")
    made.append("\n".join(lines))


def text() -> str:
    """The stub file."""
    made: list[str] = []
    _class("TileRecord", TILE, made)
    _class("ChipRecord", CHIP, made)
    head = "# Made by tools/record_types.py from the dtypes of the records. Numbers and arrays are Any: Numba types them.\n"
    return head + "from typing import Any\n\n" + "\n\n".join(made) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text())
