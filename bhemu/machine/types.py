"""Types of what compiled functions take and return, for readers and for mypy. Numba finds types by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from bhemu.machine.record_types import ChipRecord, TileRecord
else:
    TileRecord = ChipRecord = Any

__all__ = ["ChipRecord", "Float", "Int", "Lanes", "Record", "TileRecord"]

Int: TypeAlias = "int | np.integer[Any]"
"""An integer. Compiled code computes in 64 bits; in plain Python it may be NumPy's."""
Float: TypeAlias = "float | np.floating[Any]"
Lanes: TypeAlias = Any
"""A value for each lane (machine/lanes.py); in plain Python an array."""
Record: TypeAlias = Any
"""A record inside of another one, or a view of several."""
