"""LRegs: which lanes an instruction may change, writing results, and template capture (math V1, V3, V5).

An LReg row of the state record holds 32 lanes of 32 bits; lane l is row l div 8, column l mod 8 of the 4 x 8 grid (V2).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import BhemuError, UndefinedBehavior
from bhemu.machine.faults import DONE, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import horizontal_maximum, load32, mask32, mask_bits, splat32, store32, where
from bhemu.machine.types import Int, Lanes, TileRecord
from bhemu.tensix.lane_settings import ALL_LANES, TEMPLATE, lanes_with, write_setting
from bhemu.tensix.vector_queue import EXECUTE

FIRST_CONSTANT: Final = 8
"""LRegs 0..7 are writable; a result for 8..11 is dropped (V1)."""
FIRST_TEMPLATE: Final = 12
"""A destination of 12..15 records the instruction word as macro template (V1)."""
ZERO: Final = 9
ONE: Final = 10
MACRO_ONLY: Final = 16

ONE_FP32: Final = 0x3F800000
SIGN: Final = -0x80000000
"""Bit 31 as a 32-bit lane holds it."""

# LaneConfig bits (V5)
ENABLE_FP16A_INF: Final = 1 << 0
DISABLE_BACKDOOR_LOAD: Final = 1 << 1
ENABLE_DEST_INDEX: Final = 1 << 2
CAPTURE_DEFAULT_DEST_INDEX: Final = 1 << 3
BLOCK_DEST_WR: Final = 1 << 4
BLOCK_DEST_RD: Final = 1 << 5
DEST_RD_ODD: Final = 1 << 6
DEST_WR_ODD: Final = 1 << 7
EXCHANGE_SRCB_SRCC: Final = 1 << 8
ROW_MASK_LSB: Final = 12

INDEX_ERRATUM = fault(
    "vector.index-erratum",
    UndefinedBehavior,
    "LReg {0} is written while LaneConfig.ENABLE_DEST_INDEX is set: hardware writes garbage",
    remedy="write LReg 0..3, or clear bit 2 of LaneConfig first",
    rule="math V5",
)


def reserved_mode(mnemonic: str, modes: str, rule: str, error: type[BhemuError] = UndefinedBehavior) -> int:
    """Declare the fault of an instruction whose mode field holds a reserved value; value 0 is the mode."""
    return fault(
        f"vector.{mnemonic.lower().replace(' ', '-')}-mode",
        error,
        f"mode {{0}} of {mnemonic} is reserved",
        remedy=f"use {modes}",
        rule=rule,
    )


@kernel
def masked_rows(t: TileRecord) -> Int:
    """Lanes that LaneConfig.ROW_MASK switches off, as bits: one bit a row of eight lanes (V3)."""
    bits: Int = 0
    for row in range(4):
        bits |= lanes_with(t, 1 << (ROW_MASK_LSB + row)) & (0xFF << (8 * row))
    return bits


@kernel
def enabled_bits(t: TileRecord) -> Int:
    """Enabled lanes, bit n = lane n (V3)."""
    bits = (np.int64(t.vector.lane_flags) | ~np.int64(t.vector.use_flags)) & np.int64(t.vector.acting_lanes)
    if (np.int64(t.vector.lane_config) >> ROW_MASK_LSB) & 0xF:
        bits &= ~masked_rows(t)
    return bits


@kernel
def write(t: TileRecord, register: Int, value: Lanes) -> None:
    """Give `value` to the enabled lanes of an LReg; the constants 8..15 stay (V1)."""
    if register < FIRST_CONSTANT:
        bits = enabled_bits(t)
        if bits == ALL_LANES:
            store32(t.lregs, register, value)
        else:
            store32(t.lregs, register, where(mask32(bits), value, load32(t.lregs, register)))


@kernel
def capture(t: TileRecord, register: Int, word: Int) -> Int:
    """Record the word as macro template of the enabled lanes (V1).

    Lanes in which LaneConfig has switched that off execute the instruction instead: EXECUTE when there are any.
    """
    disabled = lanes_with(t, DISABLE_BACKDOOR_LOAD)
    if disabled == ALL_LANES:
        return EXECUTE
    write_setting(t, TEMPLATE + register - FIRST_TEMPLATE, splat32(word), enabled_bits(t) & ~disabled)
    if disabled == 0:
        return DONE
    t.vector.acting_lanes = np.uint32(disabled)  # until the instruction ends (tensix/instruction.py)
    return EXECUTE


@kernel
def destination(t: TileRecord, register: Int, word: Int) -> Int:
    """EXECUTE, or the status of an instruction that its destination keeps from executing (V1, V5)."""
    if register >= FIRST_TEMPLATE:
        return capture(t, register, word)
    if np.int64(t.vector.lane_config) & ENABLE_DEST_INDEX and register >= 4 and register < FIRST_CONSTANT:
        return refuse(t, INDEX_ERRATUM, register)
    return EXECUTE


@kernel
def set_flags(t: TileRecord, flags: Int) -> None:
    """Give the bits `flags` to the flags of the enabled lanes (V3)."""
    t.vector.lane_flags = np.uint32(chosen_bits(enabled_bits(t), flags, np.int64(t.vector.lane_flags)))


# --- stack of flags and use bits (V3) ---------------------------------------------------------------------------------

STACK_ENTRIES: Final = 8


@kernel
def stack_top(t: TileRecord, no_flags: Int, no_use: Int) -> Any:
    """(flags, use bits) of each lane's newest entry, or of the arguments in lanes without one."""
    flags, use = np.int64(no_flags), np.int64(no_use)
    for entry in range(STACK_ENTRIES):
        held = np.int64(t.vector.flag_stack_held[entry])
        flags = chosen_bits(held, np.int64(t.vector.flag_stack[entry]), flags)
        use = chosen_bits(held, np.int64(t.vector.use_stack[entry]), use)
    return flags, use


@kernel
def set_stack_entry(t: TileRecord, entry: Int, lanes: Int, flags: Int, use: Int) -> None:
    """Give `lanes` of flags and use bits to an entry."""
    t.vector.flag_stack[entry] = np.uint32(chosen_bits(lanes, flags, np.int64(t.vector.flag_stack[entry])))
    t.vector.use_stack[entry] = np.uint32(chosen_bits(lanes, use, np.int64(t.vector.use_stack[entry])))


@kernel
def set_stack_top(t: TileRecord, flags: Int, use: Int) -> None:
    """Replace the newest entry of the lanes that execute; lanes without one stay so."""
    newest = np.int64(t.vector.acting_lanes)
    for entry in range(STACK_ENTRIES - 1, -1, -1):
        here = newest & np.int64(t.vector.flag_stack_held[entry])
        newest &= ~here
        if here != 0:
            set_stack_entry(t, entry, here, flags, use)


@kernel
def chosen_bits(lanes: Int, new: Int, old: Int) -> Any:
    """The bits `lanes` of `new`, the others of `old`."""
    return ((new & lanes) | (old & ~lanes)) & ALL_LANES


# --- indices from LReg 7 (V11) ---------------------------------------------------------------------------------------

INDEX_REGISTER: Final = 7


@kernel
def read_indirect(t: TileRecord) -> Lanes:
    """Each lane of the LReg that the lane's own LReg 7 [3:0] names."""
    index = load32(t.lregs, INDEX_REGISTER) & 15
    value = load32(t.lregs, 0)
    for register in range(1, 16):
        value = where(index == register, load32(t.lregs, register), value)
    return value


@kernel
def write_indirect(t: TileRecord, value: Lanes) -> Int:
    """Give each enabled lane of `value` to the LReg that its own LReg 7 [3:0] names; 8..15 stay. Returns a status."""
    index = load32(t.lregs, INDEX_REGISTER) & 15
    enabled = mask32(enabled_bits(t))
    if np.int64(t.vector.lane_config) & ENABLE_DEST_INDEX and mask_bits(enabled & ((index & 12) == 4)) != 0:
        return refuse(t, INDEX_ERRATUM, horizontal_maximum(where(enabled & ((index & 12) == 4), index, 0)))
    for register in range(FIRST_CONSTANT):
        store32(t.lregs, register, where(enabled & (index == register), value, load32(t.lregs, register)))
    return DONE


@kernel
def deliver(t: TileRecord, d: Int, indirect: Int, value: Lanes) -> Int:
    """Write a result to LReg `d`, or to the LReg that each lane's LReg 7 names; returns a status."""
    if indirect:
        return write_indirect(t, value)
    write(t, d, value)
    return DONE
