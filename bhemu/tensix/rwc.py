"""Row counters of the matrix and vector units, and the address modifiers that move them (math R1..R7)."""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.errors import MissingSpecification
from bhemu.isa.registers import thread as thread_register
from bhemu.machine.counters import (
    RWC_A,
    RWC_A_CR,
    RWC_B,
    RWC_B_CR,
    RWC_BIAS,
    RWC_DST,
    RWC_DST_CR,
    RWC_FIDELITY,
)
from bhemu.machine.faults import DONE, REFUSED, fault, open_choice
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Int, TileRecord
from bhemu.tensix.banks import can_hand_back, hand_back
from bhemu.tensix.instruction import DOCUMENTED, VERIFIED, Mode, instruction

SRC_ROW_MASK: Final = 0x3F
"""SrcA and SrcB counters have 6 bits (R1)."""
DST_ROW_MASK: Final = 0x3FF
"""Dst counters have 10 bits (R1)."""
FIDELITY_MASK: Final = 3

# Fields of address modifier 0; those of modifier i are i entries later (R3).
_A_INCR: Final = thread_register("ADDR_MOD_AB_SEC0_SrcAIncr")
_A_CR: Final = thread_register("ADDR_MOD_AB_SEC0_SrcACR")
_A_CLEAR: Final = thread_register("ADDR_MOD_AB_SEC0_SrcAClear")
_B_INCR: Final = thread_register("ADDR_MOD_AB_SEC0_SrcBIncr")
_B_CR: Final = thread_register("ADDR_MOD_AB_SEC0_SrcBCR")
_B_CLEAR: Final = thread_register("ADDR_MOD_AB_SEC0_SrcBClear")
_AB2: Final = thread_register("ADDR_MOD_AB2_SEC0_SrcAIncr")
_DST_INCR: Final = thread_register("ADDR_MOD_DST_SEC0_DestIncr")
_DST_CR: Final = thread_register("ADDR_MOD_DST_SEC0_DestCR")
_DST_CLEAR: Final = thread_register("ADDR_MOD_DST_SEC0_DestClear")
_DST_TO_CR: Final = thread_register("ADDR_MOD_DST_SEC0_DestCToCR")
_FIDELITY_INCR: Final = thread_register("ADDR_MOD_DST_SEC0_FidelityIncr")
_FIDELITY_CLEAR: Final = thread_register("ADDR_MOD_DST_SEC0_FidelityClear")
_BIAS_INCR: Final = thread_register("ADDR_MOD_BIAS_SEC0_BiasIncr")
_BIAS_CLEAR: Final = thread_register("ADDR_MOD_BIAS_SEC0_BiasClear")
_BIAS_INCR_USED: Final = 3
"""Only the low two bits of BiasIncr count (R4)."""

AB2_SET = fault(
    "rwc.ab2",
    MissingSpecification,
    "address modifier {0} has ADDR_MOD_AB2 = {1:#x}, whose effect is undocumented",
    remedy="leave ADDR_MOD_AB2 at 0, or allow open choices to have it ignored",
    rule="math R3",
)


@kernel
def _bits(word: Int, field: tuple[Int, Int, Int]) -> Int:
    """A field of a ThreadConfig entry that has been read already."""
    return (word >> field[1]) & field[2]


@kernel
def _step_source(
    t: TileRecord, thread: Int, counter: Int, carry: Int, increment: Int, to_carry: Int, clear: Int
) -> None:
    """R4 for SrcA or SrcB."""
    if clear:
        t.rwc[thread, counter] = 0
        t.rwc[thread, carry] = 0
    elif to_carry:
        value = (np.int64(t.rwc[thread, carry]) + increment) & SRC_ROW_MASK
        t.rwc[thread, carry] = value
        t.rwc[thread, counter] = value
    else:
        t.rwc[thread, counter] = (np.int64(t.rwc[thread, counter]) + increment) & SRC_ROW_MASK


@kernel
def _apply(t: TileRecord, thread: Int, index: Int, with_fidelity: bool) -> Int:
    ab = np.int64(t.thread_config[thread, _A_INCR[0] + index])
    dst = np.int64(t.thread_config[thread, _DST_INCR[0] + index])
    bias = np.int64(t.thread_config[thread, _BIAS_INCR[0] + index])
    ab2 = np.int64(t.thread_config[thread, _AB2[0] + index])
    if ab2 != 0 and not open_choice(t, AB2_SET, index, ab2):
        return REFUSED
    if ab != 0:
        _step_source(t, thread, RWC_A, RWC_A_CR, _bits(ab, _A_INCR), _bits(ab, _A_CR), _bits(ab, _A_CLEAR))
        _step_source(t, thread, RWC_B, RWC_B_CR, _bits(ab, _B_INCR), _bits(ab, _B_CR), _bits(ab, _B_CLEAR))
    increment = _bits(dst, _DST_INCR)
    if _bits(dst, _DST_CLEAR):
        t.rwc[thread, RWC_DST] = 0
        t.rwc[thread, RWC_DST_CR] = 0
    elif _bits(dst, _DST_TO_CR):
        value = (np.int64(t.rwc[thread, RWC_DST]) + increment) & DST_ROW_MASK
        t.rwc[thread, RWC_DST] = value
        t.rwc[thread, RWC_DST_CR] = value
    elif _bits(dst, _DST_CR):
        value = (np.int64(t.rwc[thread, RWC_DST_CR]) + increment) & DST_ROW_MASK
        t.rwc[thread, RWC_DST_CR] = value
        t.rwc[thread, RWC_DST] = value
    else:
        t.rwc[thread, RWC_DST] = (np.int64(t.rwc[thread, RWC_DST]) + increment) & DST_ROW_MASK
    if with_fidelity:
        if _bits(dst, _FIDELITY_CLEAR):
            t.rwc[thread, RWC_FIDELITY] = 0
        else:
            step = _bits(dst, _FIDELITY_INCR)
            t.rwc[thread, RWC_FIDELITY] = (np.int64(t.rwc[thread, RWC_FIDELITY]) + step) & FIDELITY_MASK
    if bias != 0:
        if _bits(bias, _BIAS_CLEAR):
            t.rwc[thread, RWC_BIAS] = 0
        elif _bits(bias, _BIAS_INCR) & _BIAS_INCR_USED:
            t.rwc[thread, RWC_BIAS] = np.int64(t.rwc[thread, RWC_BIAS]) ^ 1
    return DONE


@kernel
def apply_address_modifier(t: TileRecord, thread: Int, index: Int) -> Int:
    """Apply the thread's address modifier `index` (0..7) to its row counters (R4).

    The instruction addresses with the old values, so call it last. Returns DONE, or REFUSED with nothing changed.
    """
    return _apply(t, thread, index, True)


@kernel
def apply_address_modifier_keep_fidelity(t: TileRecord, thread: Int, index: Int) -> Int:
    """The same without the fidelity phase, for SFPLOAD, SFPSTORE and SFPLOADMACRO (R4)."""
    return _apply(t, thread, index, False)


# SETRWC's BitMask and the bits of rwc_cr (R5, R6)
_SELECT_A: Final = 1
_SELECT_B: Final = 2
_SELECT_DST: Final = 4
_CLEAR_FIDELITY: Final = 8
_SET_STACK_POINTER: Final = 16
_C_TO_CR: Final = 8


@kernel
def _set_counter(
    t: TileRecord, thread: Int, counter: Int, carry: Int, value: Int, add_to_carry: Int, mask: Int
) -> None:
    if add_to_carry:
        value = (np.int64(t.rwc[thread, carry]) + value) & mask
    t.rwc[thread, carry] = value
    t.rwc[thread, counter] = value


@instruction(
    Mode("load or add to the carry copies", VERIFIED, vectors="adc_rwc:SETRWC", rule="math R5"),
    Mode("stack pointer of the vector unit (BitMask bit 4)", DOCUMENTED, rule="math R5, V7"),
    Mode("CToCR; rwc_cr of a counter that BitMask does not select", DOCUMENTED, rule="math R5"),
)
def SETRWC(
    t: TileRecord, thread: Int, clear_ab_vld: Int, rwc_cr: Int, rwc_d: Int, rwc_b: Int, rwc_a: Int, BitMask: Int
) -> Int:
    if not can_hand_back(t, thread, clear_ab_vld):
        return REFUSED
    if BitMask & _SELECT_A:
        _set_counter(t, thread, RWC_A, RWC_A_CR, rwc_a, rwc_cr & _SELECT_A, SRC_ROW_MASK)
    if BitMask & _SELECT_B:
        _set_counter(t, thread, RWC_B, RWC_B_CR, rwc_b, rwc_cr & _SELECT_B, SRC_ROW_MASK)
    if rwc_cr & _C_TO_CR:
        value = (np.int64(t.rwc[thread, RWC_DST]) + rwc_d) & DST_ROW_MASK
        t.rwc[thread, RWC_DST] = value
        t.rwc[thread, RWC_DST_CR] = value
    elif BitMask & _SELECT_DST:
        _set_counter(t, thread, RWC_DST, RWC_DST_CR, rwc_d, rwc_cr & _SELECT_DST, DST_ROW_MASK)
    if BitMask & _CLEAR_FIDELITY:
        t.rwc[thread, RWC_FIDELITY] = 0
    if BitMask & _SET_STACK_POINTER:
        t.vector.dst_stack_pointer[thread] = (rwc_a | (rwc_b << 4) | (rwc_d << 8)) & DST_ROW_MASK
    return hand_back(t, thread, clear_ab_vld)


@kernel
def _increment_counter(
    t: TileRecord, thread: Int, counter: Int, carry: Int, value: Int, add_to_carry: Int, mask: Int
) -> None:
    if add_to_carry:
        value = (np.int64(t.rwc[thread, carry]) + value) & mask
        t.rwc[thread, carry] = value
    else:
        value = (np.int64(t.rwc[thread, counter]) + value) & mask
    t.rwc[thread, counter] = value


@instruction(
    Mode("counters, or the Dst carry copy", VERIFIED, vectors="adc_rwc:INCRWC", rule="math R6"),
    Mode("SrcA and SrcB carry copies", DOCUMENTED, rule="math R6"),
)
def INCRWC(t: TileRecord, thread: Int, rwc_cr: Int, rwc_d: Int, rwc_b: Int, rwc_a: Int) -> Int:
    _increment_counter(t, thread, RWC_A, RWC_A_CR, rwc_a, rwc_cr & _SELECT_A, SRC_ROW_MASK)
    _increment_counter(t, thread, RWC_B, RWC_B_CR, rwc_b, rwc_cr & _SELECT_B, SRC_ROW_MASK)
    _increment_counter(t, thread, RWC_DST, RWC_DST_CR, rwc_d, rwc_cr & _SELECT_DST, DST_ROW_MASK)
    return DONE
