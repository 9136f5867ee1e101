"""Cycles in which something is scheduled: what is due, what cannot be together, when results are seen (math V.7).

A cycle begins with MAD and round, then come the regular instructions of the threads, and it ends with simple and store:
only simple instructions change flags, so that all of them see the flags of the cycle's beginning, and a load
does not see the store of its own cycle.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.errors import UndefinedBehavior
from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.machine.dispatch import NOT_COMPILED, has_handler
from bhemu.machine.faults import DONE, WAIT, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import load32, mask32, mask_bits, shift_right_logical, splat32, store32, where
from bhemu.machine.types import Bool, Int, Table, TileRecord
from bhemu.tensix.vector.registers import enabled_bits
from bhemu.tensix.vector.scheduled import DUE_ROWS, REGISTERS, SWAP, blame, copy_registers, run_due
from bhemu.tensix.vector_queue import (
    DELAYS,
    DUE,
    IN_PROGRESS,
    LATE,
    MAD,
    NOT_RESTED,
    ROUND,
    SIMPLE,
    STORE,
    SUB_UNITS,
    TO_MACRO_REGISTER,
    WRITE_PORT,
    slot_bit,
)

NOP_LANE: Final = (INSTRUCTIONS["SFPNOP"].opcode << 24) - (1 << 32)
"""The word of SFPNOP as a 32-bit lane holds it."""

SWAP_WITH_MAD = fault(
    "vector.macro-swap-with-mad",
    UndefinedBehavior,
    "SFPSWAP is scheduled for the same cycle as a MAD instruction, whose write port it needs",
    remedy="schedule nothing, or SFPNOP, for the MAD sub-unit in that cycle",
    rule="math V.7",
)


@kernel
def _lacks_handler(t: TileRecord, table: Table) -> bool:
    """True when something due needs a handler that is not compiled yet; its word goes to `fault_word`."""
    for unit in range(STORE):
        if t.macro.pending & slot_bit(unit, t.macro.head):
            before = np.int64(0)
            for lane in range(32):
                word = np.int64(t.macro.word[unit, t.macro.head, lane])
                if word != before and word != 0 and not has_handler(table, word >> 24):
                    t.fault_word = np.uint32(word)
                    return True
                before = word
    return False


@kernel
def _take_due(t: TileRecord) -> Bool:
    """Move what is due into the cycle and count down; True when something is due or came nearer."""
    head = t.macro.head
    t.macro.taken = 0
    for unit in range(SUB_UNITS):
        row, due = DUE_ROWS * unit + head, DUE_ROWS * unit + DUE
        bit = slot_bit(unit, head)
        store32(t.macro.word, due, splat32(0))
        if t.macro.pending & bit:
            t.macro.taken |= 1 << unit
            store32(t.macro.word, due, load32(t.macro.word, row))
            store32(t.macro.operands, due, load32(t.macro.operands, row))
            t.macro.thread[unit, DUE] = t.macro.thread[unit, head]
            store32(t.macro.word, row, splat32(0))
            t.macro.pending &= ~bit
            t.macro.counted &= ~bit
    t.macro.counts = 1
    if t.macro.counted == 0:
        t.macro.counts = 0
        t.macro.head = (head + 1) % DELAYS
    return t.macro.taken != 0 or (t.macro.pending != 0 and t.macro.counted == 0)


@kernel
def _conflicts(t: TileRecord) -> Int:
    """Refuse what the sub-units cannot do together; remember what a regular instruction must not join."""
    simple, rounding = load32(t.macro.word, DUE_ROWS * SIMPLE + DUE), load32(t.macro.word, DUE_ROWS * ROUND + DUE)
    mad = load32(t.macro.word, DUE_ROWS * MAD + DUE)
    simple_works = (simple != 0) & (simple != NOP_LANE)
    round_works = (rounding != 0) & (rounding != NOP_LANE)
    simple_to_macro = (load32(t.macro.operands, DUE_ROWS * SIMPLE + DUE) & TO_MACRO_REGISTER) != 0
    round_to_macro = (load32(t.macro.operands, DUE_ROWS * ROUND + DUE) & TO_MACRO_REGISTER) != 0
    alike = (simple_to_macro & round_to_macro) | (~simple_to_macro & ~round_to_macro)
    if mask_bits(simple_works & round_works & alike) != 0:
        return refuse(t, WRITE_PORT)
    if (t.macro.resting >> SIMPLE) & 1 and mask_bits(simple_works) != 0:
        return refuse(t, NOT_RESTED, SIMPLE)
    if (t.macro.resting >> ROUND) & 1 and mask_bits(round_works) != 0:
        return refuse(t, NOT_RESTED, ROUND)
    swaps = (shift_right_logical(simple, 24) & 0xFF) == SWAP
    if mask_bits(swaps & (mad != 0) & (mad != NOP_LANE)) != 0:
        return refuse(t, SWAP_WITH_MAD)
    t.macro.excluded = 0
    if mask_bits(simple_works & ~simple_to_macro) != 0:
        t.macro.excluded |= 1 << ROUND
    if mask_bits(round_works & ~round_to_macro) != 0:
        t.macro.excluded |= 1 << SIMPLE
    return DONE


@kernel
def _finish(t: TileRecord) -> None:
    """Results become visible to the next cycle; those that take two cycles stay in flight."""
    copy_registers(t.lregs, t.macro.after)
    t.macro.cycle = 0
    t.macro.pending &= ~(IN_PROGRESS | LATE)
    if t.macro.rest_next != 0:  # the second cycle of an instruction, even if it writes nothing
        t.macro.pending |= LATE
    for register in range(REGISTERS):
        if t.macro.late_lanes[register] != 0:
            t.macro.pending |= LATE


@kernel
def _abandon(t: TileRecord) -> None:
    """A scheduled instruction was refused: what its macros had scheduled is dropped, the machine can continue."""
    _finish(t)
    t.macro.pending &= LATE
    t.macro.counted = 0
    for row in range(SUB_UNITS * DUE_ROWS):
        store32(t.macro.word, row, splat32(0))


@kernel
def begin(t: TileRecord, table: Table) -> Int:
    """Begin a cycle in which something is scheduled.

    Returns:
        DONE; WAIT when time alone moves nothing, since all delays count instructions; REFUSED; or NOT_COMPILED
        with nothing changed.
    """
    if t.macro.pending & IN_PROGRESS:  # the host had to interrupt this cycle
        return DONE
    if _lacks_handler(t, table):
        return NOT_COMPILED
    t.macro.resting = t.macro.rest_next
    t.macro.rest_next = 0
    arrived = (t.macro.pending & LATE) != 0
    t.macro.pending &= ~LATE
    copy_registers(t.macro.before, t.lregs)
    copy_registers(t.macro.after, t.lregs)
    for register in range(REGISTERS):
        bits = np.int64(t.macro.late_lanes[register])
        if bits != 0:
            late = where(mask32(bits), load32(t.macro.late, register), load32(t.lregs, register))
            store32(t.macro.after, register, late)
            t.macro.late_lanes[register] = np.uint32(0)
    moved = _take_due(t)
    t.macro.enabled = np.uint32(enabled_bits(t))
    t.macro.pending |= IN_PROGRESS
    status = _conflicts(t)
    if status != DONE:
        unit = SIMPLE if t.macro.taken & (1 << SIMPLE) else ROUND
        blame(t, unit, np.int64(t.macro.word[unit, DUE, 0]))
    else:
        status = run_due(t, table, MAD)
        if status == DONE:
            status = run_due(t, table, ROUND)
    if status != DONE:
        _abandon(t)
        return status
    t.macro.cycle = 1
    return DONE if moved or arrived else WAIT


@kernel
def end(t: TileRecord, table: Table) -> Int:
    """End the cycle: collect what a regular instruction wrote, execute simple and store, make results visible."""
    for register in range(REGISTERS):
        value, old = load32(t.lregs, register), load32(t.macro.before, register)
        store32(t.macro.after, register, where(value != old, value, load32(t.macro.after, register)))
    copy_registers(t.lregs, t.macro.before)
    t.macro.cycle = 0  # the handlers called from here on are not regular instructions
    status = run_due(t, table, SIMPLE)
    if status == DONE:
        status = run_due(t, table, STORE)
    if status != DONE:
        _abandon(t)
        return status
    _finish(t)
    return DONE
