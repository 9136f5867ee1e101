"""The registers that a core has at the beginning of its loop, while a turn of the loop is followed (poll.py)."""

from __future__ import annotations

import numpy as np

from bhemu.machine.core_state import REGISTERS
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Int, TileRecord


@kernel
def keep_registers(t: TileRecord, core: Int) -> None:
    """The core is at the beginning."""
    for i in range(REGISTERS):
        t.poll_x[core, i] = t.core_x[core, i]


@kernel
def restore_registers(t: TileRecord, core: Int) -> None:
    """Give the core the registers that it had there."""
    for i in range(REGISTERS):
        t.core_x[core, i] = t.poll_x[core, i]


@kernel
def changed_registers(t: TileRecord, core: Int, but: Int) -> Int:
    """Other than 0 when the core has other registers than there, apart from those whose bits are set in `but`."""
    changed = np.int64(0)
    for i in range(32):
        if (but >> i) & 1 == 0:
            changed |= np.int64(t.core_x[core, i]) ^ np.int64(t.poll_x[core, i])
    return changed
