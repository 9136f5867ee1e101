"""The record of a system of chips for compiled code; each chip has a record of its own."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
from numba.np.numpy_support import from_dtype

from bhemu.machine.share import SHARE_FIELDS

MOST_CHIPS: Final = 32

CLUSTER: Final[np.dtype[Any]] = np.dtype(
    [
        ("address", "i8"),  # of this record
        ("count", "i8"),  # chips
        ("chip", "i8", (MOST_CHIPS,)),  # addresses of their records
        ("time", "i8", (MOST_CHIPS,)),  # addresses of their buffers in timed mode (timed/cluster_clock.py)
        ("status", "i8", (MOST_CHIPS,)),  # what a chip needs from the host; GOES_ON; 0: nothing
        ("span", "i8"),  # clocks in which no chip can see what another one does in them
        ("goal", "i8"),  # end of the span
        ("end", "i8"),  # of the clocks that were asked for
        *SHARE_FIELDS,
    ],
    align=True,
)
CLUSTER_TYPE: Final = from_dtype(CLUSTER)
ClusterRecord: TypeAlias = Any
"""Such a record, for compiled functions."""


def new_cluster() -> np.ndarray[Any, Any]:
    """The record of a system, as an array of one."""
    memory = np.zeros(1, CLUSTER).view(np.recarray)
    memory["address"] = memory.ctypes.data
    memory["threads"] = 1
    return memory
