"""Pushing Tensix instructions through the debug port (tile K4).

INSTRN_BUF_CTRL0 bit i gives the debug port the FIFO in front of thread i's REPLAY expander, and a rising bit 4 + i
pushes INSTRN_BUF_CTRL1 to it. What cores push in that time is kept, too; silicon is likely to lose it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import UndefinedBehavior
from bhemu.isa.tile_registers import bit_of, offset_of
from bhemu.machine.faults import DONE, REFUSED, fault, refuse
from bhemu.machine.frontend_state import FIFO_PUSH_LIMIT
from bhemu.machine.kernel import kernel
from bhemu.machine.origin import DEBUG_PORT_LINE
from bhemu.machine.state import THREADS
from bhemu.machine.types import Int, TileRecord
from bhemu.tensix.frontend.fetch import MOP, side_push

CONTROL_0: Final = offset_of("control", "INSTRN_BUF_CTRL0")
CONTROL_1: Final = offset_of("control", "INSTRN_BUF_CTRL1")
PUSH_LSB: Final = bit_of("control", "INSTRN_BUF_CTRL0", "PUSH_0")

FULL: Final = fault(
    "injection.full",
    UndefinedBehavior,
    "the debug port pushes {1:#010x} to thread {0}, whose FIFO is full",
    remedy="wait until bit {0} of INSTRN_BUF_STATUS is set",
    rule="tile K4",
)
NOT_OWNED: Final = fault(
    "injection.not-owned",
    UndefinedBehavior,
    "INSTRN_BUF_CTRL0 pushes to thread {0} without owning its FIFO",
    remedy="set bit i together with, or before, bit 4 + i",
    rule="tile K4",
)
MOP_INJECTED: Final = fault(
    "injection.mop",
    UndefinedBehavior,
    "the debug port pushes MOP {1:#010x} to thread {0}: its words enter behind the MOP expander",
    remedy="inject the words that the MOP expands to",
    rule="tile K3, K4",
)


@kernel
def load_status(t: TileRecord) -> Any:
    """INSTRN_BUF_STATUS: bit i thread i can take a word, bit 4 + i nothing waits in front of its REPLAY expander."""
    f, value = t.frontend, np.int64(0)
    for thread in range(THREADS):
        if f.side_count[thread] <= FIFO_PUSH_LIMIT and f.fifo_count[thread] <= FIFO_PUSH_LIMIT:
            value |= 1 << thread
        if f.side_count[thread] == 0 and f.fifo_count[thread] == 0 and f.mop_active[thread] == 0:
            value |= 1 << (PUSH_LSB + thread)
    return value


@kernel
def _may_push(t: TileRecord, thread: Int, word: Int, control: Int) -> Any:
    if not (control >> thread) & 1:
        return refuse(t, NOT_OWNED, thread)
    if (word >> 24) == MOP:
        return refuse(t, MOP_INJECTED, thread, word)
    if t.frontend.side_count[thread] > FIFO_PUSH_LIMIT:
        return refuse(t, FULL, thread, word)
    return DONE


@kernel
def store_control(t: TileRecord, value: Int) -> Any:
    """INSTRN_BUF_CTRL0."""
    rising = (value & ~np.int64(t.control_word[CONTROL_0 >> 2])) >> PUSH_LSB
    word = np.int64(t.control_word[CONTROL_1 >> 2])
    for thread in range(THREADS):
        if (rising >> thread) & 1 and _may_push(t, thread, word, value) != DONE:
            return REFUSED
    for thread in range(THREADS):
        if (rising >> thread) & 1:
            side_push(t, thread, word, DEBUG_PORT_LINE)
    t.control_word[CONTROL_0 >> 2] = np.uint32(value)
    return DONE
