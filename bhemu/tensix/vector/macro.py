"""SFPLOADMACRO: a load, and up to four instructions scheduled for later cycles (math V.7)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import UndefinedBehavior
from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.machine.faults import DONE, SCHEDULED, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import gather, load32, mask_bits, shift_right_logical, splat32, store32, where
from bhemu.machine.types import Int, Lanes, TileRecord
from bhemu.tensix.instruction import DOCUMENTED, Mode, instruction
from bhemu.tensix.lane_settings import ALL_LANES, MISC, SEQUENCE, TEMPLATE, setting
from bhemu.tensix.vector.load_store import load, load_address
from bhemu.tensix.vector_queue import (
    ADDRESS_LSB,
    COUNTED,
    DELAYS,
    LOAD_MODE_LSB,
    STORE,
    SUB_UNIT_OF,
    SUB_UNITS,
    TO_MACRO_REGISTER,
    VALUE_IS_B,
    slot_bit,
)

NOP_WORD: Final = (INSTRUCTIONS["SFPNOP"].opcode << 24) - (1 << 32)
"""As a 32-bit lane holds it."""
STORE_WORD: Final = INSTRUCTIONS["SFPSTORE"].opcode << 24

# Fields of a sequence byte
WHAT: Final = 7
DELAY_LSB: Final = 3
NO_INSTRUCTION: Final = 0
UNDEFINED: Final = 1
PLAIN_STORE: Final = 3
FIRST_TEMPLATE: Final = 4

# Misc
LOAD_MODE_FOR_STORE_LSB: Final = 4
COUNT_INSTRUCTIONS_LSB: Final = 8

UNDEFINED_CHOICE = fault(
    "vector.macro-choice",
    UndefinedBehavior,
    "sequence {0} chooses instruction 1 for sub-unit {1} (0 simple, 1 MAD, 2 round, 3 store), which does not exist",
    remedy="choose 0 (nothing), 2 (SFPNOP), 3 (SFPSTORE) or 4 to 7 (a template)",
    rule="math V.7",
)
NO_STORE = fault(
    "vector.macro-store",
    UndefinedBehavior,
    "sequence {0} gives the store sub-unit an instruction that is not an SFPSTORE",
    remedy="choose 3 (SFPSTORE), a template that is an SFPSTORE, or 0 (nothing)",
    rule="math V.7",
)
PARTIAL_STORE = fault(
    "vector.macro-partial-store",
    UndefinedBehavior,
    "sequence {0} stores in the lanes {1:#010x} only: all lanes must store, or none",
    remedy="write sequences with all lane columns enabled",
    rule="math V.7",
)


def _able() -> np.ndarray[Any, np.dtype[np.int32]]:
    """1 where a sub-unit can execute an opcode, at position 256 * sub-unit + opcode (V.7)."""
    able = np.zeros((SUB_UNITS, 256), np.int32)
    for mnemonic, unit in SUB_UNIT_OF.items():
        if unit is not None:
            able[unit, INSTRUCTIONS[mnemonic].opcode] = 1
    able[:STORE, INSTRUCTIONS["SFPNOP"].opcode] = 1
    return able.reshape(-1)


ABLE: Final = _able()


@kernel
def _chosen(t: TileRecord, unit: Int, what: Lanes) -> Lanes:
    """Instruction of each lane for a sub-unit, 0 for none; what the sub-unit cannot execute becomes SFPNOP."""
    word = where(what == PLAIN_STORE, STORE_WORD, splat32(NOP_WORD))
    for template in range(4):
        word = where(what == FIRST_TEMPLATE + template, setting(t, TEMPLATE + template), word)
    able = gather(ABLE, (shift_right_logical(word, 24) & 0xFF) + 256 * unit) != 0
    return where(what == NO_INSTRUCTION, 0, where(able, word, NOP_WORD))


@kernel
def _check(t: TileRecord, macro: Int, sequence: Lanes) -> Int:
    """DONE when every lane's sequence has a meaning."""
    for unit in range(SUB_UNITS):
        what = shift_right_logical(sequence, 8 * unit) & WHAT
        if mask_bits(what == UNDEFINED) != 0:
            return refuse(t, UNDEFINED_CHOICE, macro, unit)
    stored = _chosen(t, STORE, what)
    if mask_bits(stored == NOP_WORD) != 0:
        return refuse(t, NO_STORE, macro)
    stores = mask_bits(stored != 0)
    if stores != 0 and stores != ALL_LANES:
        return refuse(t, PARTIAL_STORE, macro, stores)
    return DONE


@kernel
def _enqueue(t: TileRecord, thread: Int, unit: Int, delay: Lanes, word: Lanes, operands: Lanes) -> None:
    """Schedule each lane's instruction for the lanes with this delay; `delay` holds every lane's own.

    What a lane had for the same cycle is dropped. A lane that schedules nothing drops nothing: the LLK's mul_int32
    issues a macro without a store in the cycle before the store of an earlier one, which it needs.
    """
    for slots_on in range(DELAYS):
        here = (delay == slots_on) & (word != 0)
        if mask_bits(here) != 0:
            slot = (t.macro.head + slots_on) % DELAYS
            row = 9 * unit + slot
            queued = where(here, word, load32(t.macro.word, row))
            queued_operands = where(here, operands, load32(t.macro.operands, row))
            store32(t.macro.word, row, queued)
            store32(t.macro.operands, row, queued_operands)
            t.macro.thread[unit, slot] = thread
            bit = slot_bit(unit, slot)
            t.macro.pending &= ~bit
            t.macro.counted &= ~bit
            if mask_bits(queued != 0) != 0:
                t.macro.pending |= bit
            if mask_bits((queued != 0) & ((queued_operands & COUNTED) != 0)) != 0:
                t.macro.counted |= bit


@instruction(
    Mode("load and scheduled instructions", DOCUMENTED, rule="math V.7"),
    Mode("SFPSWAP with the loaded LReg and another one", DOCUMENTED, rule="math V.7"),
    Mode("delays that count instructions (Misc bits 11:8)", DOCUMENTED, rule="math V.7"),
    Mode("sequences and templates that differ by lane, flag control among them", DOCUMENTED, rule="math V.7"),
    Mode("template capture while LaneConfig bit 1 differs by lane", DOCUMENTED, rule="math V1"),
)
def SFPLOADMACRO(
    t: TileRecord, thread: Int, lreg_ind: Int, instr_mod0: Int, sfpu_addr_mode: Int, dest_reg_addr: Int
) -> Int:
    macro = lreg_ind >> 2
    register = (lreg_ind & 3) | ((dest_reg_addr & 1) << 2)
    offset = dest_reg_addr & ~1
    sequence = setting(t, SEQUENCE + macro)
    status = _check(t, macro, sequence)
    if status != DONE:
        return status
    address = load_address(t, thread, instr_mod0, offset)
    status = load(t, thread, register, instr_mod0, sfpu_addr_mode, offset)
    if status != DONE:
        return status
    misc = setting(t, MISC)
    own_mode = (misc >> (LOAD_MODE_FOR_STORE_LSB + macro)) & 1
    mode = where(own_mode != 0, instr_mod0, misc & 15)
    common = (mode << LOAD_MODE_LSB) | (register | (address << ADDRESS_LSB))
    for unit in range(SUB_UNITS):
        byte = shift_right_logical(sequence, 8 * unit) & 0xFF
        operands = common
        operands = where((byte & 0x40) != 0, operands | TO_MACRO_REGISTER, operands)
        operands = where((byte & 0x80) != 0, operands | VALUE_IS_B, operands)
        operands = where(((misc >> (COUNT_INSTRUCTIONS_LSB + unit)) & 1) != 0, operands | COUNTED, operands)
        _enqueue(t, thread, unit, (byte >> DELAY_LSB) & 7, _chosen(t, unit, byte & WHAT), operands)
    return SCHEDULED if t.macro.pending != 0 else DONE
