"""Executing what SFPLOADMACRO has scheduled (math V.7).

All instructions of a cycle - the scheduled ones of up to four sub-units and the regular one - read what the LRegs held
when the cycle began. So each executes on a copy of that state, and what it wrote is collected for the next cycle. A
scheduled MAD, SFPSWAP or lane shift takes two cycles, and nothing waits for it: the next cycle still sees the old
LRegs (Y12).

Operands are registers that the word cannot always name: LReg 16, and a second operand that is not the destination. The
copy can put any value into a register that the word can name.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import MissingSpecification
from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.machine.dispatch import call_handler
from bhemu.machine.faults import DONE, REFUSED, fault, open_choice, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import load32, mask32, mask_bits, splat32, store32, where
from bhemu.machine.types import AnyInt, Bool, Int, Lanes, Table, TileRecord
from bhemu.tensix.lane_settings import ALL_LANES, lanes_with
from bhemu.tensix.vector.cross_lane import (
    ROTATE_AND_COPY4,
    SHIFT_BY_IMMEDIATE,
    SHIFT_LANES,
    swapped_lanes,
)
from bhemu.tensix.vector.integer import ALL_LANES_COPY
from bhemu.tensix.vector.load_store import STACK, format_mode, store_lanes
from bhemu.tensix.vector.registers import (
    BLOCK_DEST_WR,
    ENABLE_DEST_INDEX,
    FIRST_CONSTANT,
    INDEX_REGISTER,
    MACRO_ONLY,
)
from bhemu.tensix.vector_queue import (
    ADDRESS_LSB,
    DUE,
    LOAD_MODE_LSB,
    ROUND,
    SIMPLE,
    STORE,
    TO_MACRO_REGISTER,
    VALUE_IS_B,
)

REGISTERS: Final = 17
DUE_ROWS: Final = 9
"""Rows of `macro_word` for each sub-unit."""

NOP: Final = INSTRUCTIONS["SFPNOP"].opcode
SWAP: Final = INSTRUCTIONS["SFPSWAP"].opcode
SHFT2: Final = INSTRUCTIONS["SFPSHFT2"].opcode
CONFIG: Final = INSTRUCTIONS["SFPCONFIG"].opcode
TRANSP: Final = INSTRUCTIONS["SFPTRANSP"].opcode
LUT: Final = INSTRUCTIONS["SFPLUT"].opcode
LUTFP32: Final = INSTRUCTIONS["SFPLUTFP32"].opcode
AND: Final = INSTRUCTIONS["SFPAND"].opcode
OR: Final = INSTRUCTIONS["SFPOR"].opcode
LE: Final = INSTRUCTIONS["SFPLE"].opcode
GT: Final = INSTRUCTIONS["SFPGT"].opcode
MOV: Final = INSTRUCTIONS["SFPMOV"].opcode

# How an instruction uses the operands of V.7 (`scheduled` of the instruction table)
HAS_B: Final = 1
HAS_C: Final = 2
OLD_IS_B: Final = 4
OLD_IS_C: Final = 8
RESULT: Final = 16
FLAGS: Final = 32
INDIRECT: Final = 64
_USE: Final = {
    **{"B": HAS_B, "C": HAS_C, "old is B": OLD_IS_B, "old is C": OLD_IS_C},
    **{"result": RESULT, "flags": FLAGS, "indirect": INDIRECT},
}


def _uses() -> np.ndarray[Any, np.dtype[np.int64]]:
    uses = np.zeros(256, np.int64)
    for row in INSTRUCTIONS.values():
        uses[row.opcode] = sum(_USE[use] for use in row.scheduled)
    return uses


USES: Final = _uses()
"""How an opcode uses its operands."""

SWAPPED_INDEX = fault(
    "vector.macro-swap-index",
    MissingSpecification,
    "a scheduled SFPSWAP of LReg {0} and {1} with ENABLE_DEST_INDEX: no source says which indices follow",
    remedy="use bit 7 of the sequence byte without bit 6, or plain SFPSWAP",
    rule="math V.7, V18",
)
STACK_STORE = fault(
    "vector.macro-stack-store",
    MissingSpecification,
    "a scheduled SFPSTORE with Mod0 10: no source says whether the stack pointer moves",
    remedy="use Mod0 4, or allow open choices to have the pointer stay",
    rule="math V.7",
)


# --- LRegs of a cycle ------------------------------------------------------------------------------------------------


@kernel
def copy_registers(target: Lanes, source: Lanes) -> None:
    for register in range(REGISTERS):
        store32(target, register, load32(source, register))


@kernel
def _give(t: TileRecord, late: Bool, register: Int, value: Lanes, bits: Int) -> None:
    """A result in the lanes `bits`, for the next cycle, or for the one after it."""
    if register >= FIRST_CONSTANT and register != MACRO_ONLY:
        return
    lanes = mask32(bits)
    if late:
        store32(t.macro.late, register, where(lanes, value, load32(t.macro.late, register)))
        t.macro.late_lanes[register] = np.uint32(np.int64(t.macro.late_lanes[register]) | bits)
    else:
        store32(t.macro.after, register, where(lanes, value, load32(t.macro.after, register)))


@kernel
def _give_changes(t: TileRecord, late: Bool, lanes: Int, substitute: Int, old: Int) -> None:
    """What an instruction with several destinations has changed; the LReg `substitute` held the value of `old`."""
    for register in range(FIRST_CONSTANT):
        value = load32(t.lregs, register)
        changed = mask_bits(value != load32(t.macro.before, old if register == substitute else register))
        _give(t, late, register, value, changed & lanes)


# --- one instruction -------------------------------------------------------------------------------------------------


@kernel
def _swap(t: TileRecord, old: Int, c: Int, destination: Int, mode: Int, lanes: Int) -> Int:
    """SFPSWAP whose first register is read as operand B and written as the destination.

    Where destination and C are one LReg it gets what C gets: the kernels that clamp against a constant need it so.
    """
    if lanes_with(t, ENABLE_DEST_INDEX) != 0:
        return refuse(t, SWAPPED_INDEX, old, c)
    value_b, value_c = load32(t.macro.before, old), load32(t.macro.before, c)
    bits = swapped_lanes(t, value_b, value_c, mode) & lanes
    _give(t, True, destination, value_c, bits)
    _give(t, True, c, value_b, bits)
    return DONE


@kernel
def _named(old: Int, c: Int, destination: Int) -> Int:
    """Register that the word names as destination while `old` is its old value; it must not be operand C.

    It is in the same half of LReg 0..7 as the true destination, since LaneConfig bit 2 distinguishes them (V5).
    """
    upper = 4 if destination >= 4 and destination < FIRST_CONSTANT else 0
    if old < FIRST_CONSTANT and (old & 4) == upper:
        return old
    return upper + 1 if c == upper else upper


@kernel
def _execute(t: TileRecord, table: Table, thread: Int, word: Int, operands: Int, lanes: Int) -> AnyInt:
    """Execute a simple, MAD or round instruction in some lanes. LRegs are those of the cycle's beginning."""
    opcode = word >> 24
    if opcode == NOP:
        return DONE
    is_lut = opcode == LUT
    at = 20 if is_lut else 4
    mode = (word >> (16 if is_lut else 0)) & 15
    use = USES[opcode]
    value_is_b = (operands & VALUE_IS_B) != 0
    loaded = operands & 7
    destination = MACRO_ONLY if operands & TO_MACRO_REGISTER else loaded
    displaced = (word >> at) & 15
    compares = opcode in (LE, GT)

    # Operands B and C
    takes_b = (use & HAS_B) != 0 and not (opcode in (AND, OR) and not mode & 1)
    if value_is_b:
        if opcode == SHFT2 and mode == SHIFT_BY_IMMEDIATE:  # bits 15:12 belong to the amount: B is its substitute
            store32(t.lregs, (word >> 12) & 15, load32(t.macro.before, loaded))
        elif takes_b:
            word = (word & ~0xF000) | (loaded << 12)
    elif use & HAS_C:
        word = (word & ~0xF00) | (loaded << 8)
    c = (word >> 8) & 15
    old: Int = -1
    if use & OLD_IS_B:
        old = loaded if value_is_b else displaced
    elif use & OLD_IS_C:
        old = displaced if value_is_b else loaded
    elif (use & HAS_B) != 0 and not takes_b:
        old = destination
    shifts_lanes = opcode == SHFT2 and mode >= ROTATE_AND_COPY4 and mode <= SHIFT_LANES
    if opcode == SWAP:
        t.macro.rest_next |= (1 << SIMPLE) | (1 << ROUND)
        if old != destination:
            return _swap(t, old, c, destination, mode, lanes)
    elif shifts_lanes:
        t.macro.rest_next |= 1 << ROUND

    # Destination
    several = opcode in (TRANSP, SWAP) or (opcode == SHFT2 and mode <= ROTATE_AND_COPY4)
    named: Int
    substitute: Int
    named, substitute = 0, -1
    if opcode == CONFIG:
        if destination == MACRO_ONLY:  # no place of the configuration has this number
            return DONE
        named = destination
    elif old >= 0:
        named = _named(old, c, destination)
        if named != old:
            store32(t.lregs, named, load32(t.macro.before, old))
            substitute = named
    elif destination != MACRO_ONLY:
        named = destination
    if use & INDIRECT and mode & 8:
        several = destination != MACRO_ONLY
        if not several and opcode == LUTFP32:  # the bit also chooses a table
            store32(t.lregs, INDEX_REGISTER, splat32(named))
        elif not several:
            word &= ~(8 << (16 if is_lut else 0))
    word = (word & ~(15 << at)) | (named << at)

    flags = t.vector.lane_flags
    bits: Int = np.int64(t.macro.enabled) & lanes
    t.vector.acting_lanes = np.uint32(lanes)
    status = call_handler(table, opcode, t, thread, word)
    t.vector.acting_lanes = np.uint32(ALL_LANES)
    if use & FLAGS and destination == MACRO_ONLY:
        t.vector.lane_flags = flags
    if status == DONE:
        late = (use & INDIRECT) != 0 or opcode == SWAP or shifts_lanes  # all MAD instructions know mode bit 3
        if several:
            _give_changes(t, late, lanes, substitute, old)
        elif use & RESULT and not (compares and not mode & 8):
            if opcode == MOV and mode == ALL_LANES_COPY:
                bits = lanes
            _give(t, late, destination, load32(t.lregs, named), bits)
    copy_registers(t.lregs, t.macro.before)
    return status


@kernel
def _store(t: TileRecord, thread: Int, word: Int, operands: Int, lanes: Int) -> Int:
    """Execute an SFPSTORE in some lanes: at the address of its macro, without address modifier."""
    register = (word >> 20) & 15
    if operands & TO_MACRO_REGISTER:
        register = MACRO_ONLY
    elif not operands & VALUE_IS_B:
        register = operands & 7
    mode = format_mode(t, thread, (operands >> LOAD_MODE_LSB) & 15)
    bits = np.int64(t.macro.enabled)
    if mode == STACK:
        if not open_choice(t, STACK_STORE):
            return REFUSED
        bits = np.int64(ALL_LANES)
    bits &= lanes & ~lanes_with(t, BLOCK_DEST_WR)
    store_lanes(t, mode, (operands >> ADDRESS_LSB) & 0x3FF, load32(t.macro.before, register), bits)
    return DONE


@kernel
def blame(t: TileRecord, unit: Int, word: Int) -> None:
    """Name the scheduled instruction that was refused."""
    t.fault_thread = t.macro.thread[unit, DUE]
    t.fault_word = np.uint32(word)
    t.fault_line = 0
    t.fault_scheduled = 1


@kernel
def run_due(t: TileRecord, table: Table, unit: Int) -> Int:
    """Execute what is due for a sub-unit, once for all lanes that have the same."""
    row = DUE_ROWS * unit + DUE
    thread = np.int64(t.macro.thread[unit, DUE])
    words, operands = load32(t.macro.word, row), load32(t.macro.operands, row)
    left = mask_bits(words != 0)
    lane = 0
    while left != 0:
        while not (left >> lane) & 1:
            lane += 1
        word, operand = np.int64(t.macro.word[unit, DUE, lane]), np.int64(t.macro.operands[unit, DUE, lane])
        lanes = left & mask_bits((words == splat32(word)) & (operands == splat32(operand)))
        left &= ~lanes
        if unit == STORE:
            status = _store(t, thread, word, operand, lanes)
        else:
            status = _execute(t, table, thread, word, operand, lanes)
        if status != DONE:
            blame(t, unit, word)
            return status
    return DONE
