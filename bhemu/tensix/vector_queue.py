"""What SFPLOADMACRO has scheduled, and its interaction with regular vector instructions (math V.7).

Nothing here executes an instruction: `tensix/vector/macro.py` fills the queue, `tensix/vector/cycle.py` runs
what is due. This module is below the vector unit, because the wrapper of every vector instruction and the wait
gate ask it.

Each of the sub-units simple, MAD, round and store has a ring of eight slots, one a delay, and each lane of a slot has
its own template, since templates and sequences may differ by lane. A word of 0 means no instruction.
"""

from __future__ import annotations

from typing import Final

from bhemu.errors import UndefinedBehavior
from bhemu.isa.instruction_table import INSTRUCTIONS
from bhemu.isa.instruction_table import SUB_UNITS as SUB_UNIT_NAMES
from bhemu.machine.faults import DONE, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Bool, Int, TileRecord

EXECUTE: Final = -1
"""The instruction must execute; other values are its status."""

SIMPLE: Final = SUB_UNIT_NAMES.index("simple")
MAD: Final = SUB_UNIT_NAMES.index("mad")
ROUND: Final = SUB_UNIT_NAMES.index("round")
STORE: Final = SUB_UNIT_NAMES.index("store")
SUB_UNITS: Final = 4

DELAYS: Final = 8
DUE: Final = 8
"""Slot of the instructions that execute in the cycle in progress."""
SLOTS: Final = 0xFFFFFFFF
"""Bits of `macro_pending` for slots: bit 8 * sub-unit + slot."""
LATE: Final = 1 << 32
"""Bit of `macro_pending`: results are in flight."""
IN_PROGRESS: Final = 1 << 33
"""Bit of `macro_pending`: a cycle has begun and not ended."""

# What a lane keeps in addition to the word: bits 2:0 the loaded LReg, and
TO_MACRO_REGISTER: Final = 1 << 3
VALUE_IS_B: Final = 1 << 4
COUNTED: Final = 1 << 5
LOAD_MODE_LSB: Final = 8
ADDRESS_LSB: Final = 16

# Steps, instead of the thread, when the function for scheduled instructions is called: 0..2 are a cycle of a thread
ALL_THREADS: Final = 3
NO_THREAD: Final = 4
BEGIN: Final = 5
END: Final = 6

SUB_UNIT_OF: Final = {
    name: None if row.sub_unit == "load" else SUB_UNIT_NAMES.index(row.sub_unit)
    for name, row in INSTRUCTIONS.items()
    if row.sub_unit
}
"""Sub-unit by mnemonic; None for the load sub-unit, which no scheduled instruction uses."""

WRITE_PORT = fault(
    "vector.macro-write-port",
    UndefinedBehavior,
    "a simple and a round instruction execute in one cycle: exactly one of them must have LReg 16 as destination",
    remedy="give one of the two LReg 16 (bit 6 of its sequence byte), or change a delay",
    rule="math V.7",
)
NOT_RESTED = fault(
    "vector.macro-not-rested",
    UndefinedBehavior,
    "sub-unit {0} (0 simple, 2 round) gets an instruction in the cycle after a scheduled two-cycle SFPSWAP or SFPSHFT2",
    remedy="leave it idle for one cycle, or give it SFPNOP",
    rule="math V.7, Y12",
)


@kernel
def slot_bit(unit: Int, slot: Int) -> Int:
    """Bit of a slot in `macro_pending` and `macro_counted`."""
    return 1 << (DELAYS * unit + slot)


@kernel
def is_busy(t: TileRecord) -> Bool:
    """True while scheduled instructions complete by themselves: the SFPU has work (Y10, C11).

    What waits for further vector instructions is not work in flight: it does not advance by itself.
    """
    if t.macro.pending == 0:
        return False
    if t.macro.pending & LATE or (t.macro.cycle != 0 and t.macro.taken != 0):
        return True
    if t.macro.counted == 0:
        return (t.macro.pending & SLOTS) != 0
    due: Int = 0
    for unit in range(SUB_UNITS):
        due |= slot_bit(unit, t.macro.head)
    return (t.macro.pending & due) != 0


@kernel
def count_instruction(t: TileRecord) -> None:
    """A vector instruction is issued: where delays count instructions they count down, once a cycle."""
    if t.macro.counts != 0:
        t.macro.counts = 0
        t.macro.head = (t.macro.head + 1) % DELAYS


@kernel
def issue_regular(t: TileRecord, unit: Int) -> Int:
    """Interaction of a regular vector instruction with the scheduled ones of its cycle.

    Args:
        t: the tile.
        unit: its sub-unit, -1 for the load sub-unit.

    Returns:
        EXECUTE; DONE when it is lost, because a scheduled instruction has its sub-unit; or REFUSED.
    """
    count_instruction(t)
    if unit < 0:
        return EXECUTE
    if (t.macro.taken >> unit) & 1:
        return DONE
    if (t.macro.resting >> unit) & 1:
        return refuse(t, NOT_RESTED, unit)
    if (t.macro.excluded >> unit) & 1:
        return refuse(t, WRITE_PORT)
    return EXECUTE
