"""State of the sync unit: `t.sync`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.machine.section import section

SYNC: Final[np.dtype[Any]] = section(
    [
        ("semaphore", "i4", (8,)),
        ("semaphore_max", "i4", (8,)),
        ("mutex_owner", "i4", (8,)),  # 0 free, else thread + 1; ids 0, 2, 3, 4 exist (Y11b)
        ("mutex_last", "i4", (8,)),  # thread that released it last: decides who is next (Y11b)
    ]
)
"""dtype of `t.sync`."""
