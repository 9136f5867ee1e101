"""Types of what compiled functions take and return, for readers and for mypy. Numba finds types by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from bhemu.machine.record_types import (
        ChipRecord,
        FrontendRecord,
        MatrixDecodedRecord,
        NocRequestRecord,
        PackRecord,
        PreparedRecord,
        TileRecord,
        UnpackDecodedRecord,
        UnpackWalkRecord,
    )
else:
    ChipRecord = FrontendRecord = TileRecord = MatrixDecodedRecord = NocRequestRecord = PackRecord = Any
    PreparedRecord = UnpackDecodedRecord = UnpackWalkRecord = Any

__all__ = [
    "AnyInt",
    "Bool",
    "ChipRecord",
    "Float",
    "FrontendRecord",
    "Int",
    "Lanes",
    "LogAddress",
    "MatrixDecodedRecord",
    "NocRequestRecord",
    "PackRecord",
    "PreparedRecord",
    "Record",
    "Table",
    "TileRecord",
    "UnpackDecodedRecord",
    "UnpackWalkRecord",
]

Int: TypeAlias = "int | np.integer[Any]"
"""An integer. Compiled code computes in 64 bits; in plain Python it may be NumPy's."""
Bool: TypeAlias = Any
"""True or False, Python's or NumPy's; what is compared is often a field of a record, which is Any."""
AnyInt: TypeAlias = Any
"""An integer of a type that mypy cannot know: out of a record, say, whose fields only Numba has types for."""
Float: TypeAlias = "float | np.floating[Any]"
Lanes: TypeAlias = Any
"""A value for each lane (machine/lanes.py); in plain Python an array."""
Table: TypeAlias = Any
"""The table of handlers (machine/dispatch.py): its address; in plain Python the functions themselves."""
LogAddress: TypeAlias = Any
"""The buffer of an observer: its address, or NO_LOG; in plain Python an array."""
Record: TypeAlias = Any
"""A record inside of another one, or a view of several."""
