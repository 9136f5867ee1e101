"""What a thread of the coprocessor still has to do, as the cores' synchronisation sees it (tile K16, K18)."""

from __future__ import annotations

import numpy as np

from bhemu.machine.frontend_state import FIFO_SLOTS
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Int, TileRecord
from bhemu.tensix.frontend.fetch import MOP, is_drained
from bhemu.tensix.frontend.gate import wait_is_over


@kernel
def thread_is_done(t: TileRecord, thread: Int) -> bool:
    """True when the coprocessor has no instruction of the thread in flight (K18).

    A latched wait with no word after it is in flight until its condition holds: the gate lifts it only when a word
    comes. What SFPLOADMACRO has scheduled counts for every thread, since its thread is not known (V.7).
    """
    return (
        is_drained(t, thread)
        and (t.frontend.wait_word[thread] == 0 or (t.simulator_order == 0 and wait_is_over(t, thread)))
        and t.macro.pending == 0
    )


@kernel
def mop_is_done(t: TileRecord, thread: Int) -> bool:
    """True when no MOP of the thread is queued or being expanded (K18)."""
    if t.frontend.mop_active[thread] != 0:
        return False
    head = np.int64(t.frontend.fifo_head[thread])
    for i in range(t.frontend.fifo_count[thread]):
        if (np.int64(t.frontend.fifo_word[thread, (head + i) % FIFO_SLOTS]) >> 24) == MOP:
            return False
    return True
