"""SFPCONFIG: macro templates and sequences, constant LRegs, LaneConfig (math V5, V6)."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit

from bhemu.errors import Unimplemented
from bhemu.machine.faults import DONE, fault, refuse
from bhemu.machine.lanes import load32, mask32, shuffle, splat32, store32, where
from bhemu.tensix.instruction import DOCUMENTED, VERIFIED, Mode, instruction
from bhemu.tensix.vector.registers import enabled_bits

COLUMNS: Final = 8
ALL_COLUMNS: Final = 0xFF

# config_dest
FIRST_SEQUENCE: Final = 4
MISC: Final = 8
FIRST_CONSTANT_DEST: Final = 11
LANE_CONFIG: Final = 15

# mode bits
IMMEDIATE: Final = 1
OPERATION: Final = 6
OR: Final = 2
AND: Final = 4
XOR: Final = 6
IMMEDIATE_IS_LANE_MASK: Final = 8

MISC_BITS: Final = 0xFFF
LANE_CONFIG_BITS: Final = 0x3FFFF
_IMMEDIATE_BITS: Final = 0xFFFF

_DEFAULTS: Final = (0xBF800000, 0x37800000, 0xBF2CC4C7, 0xBEB08FF9)
"""Constants 11..14 of the immediate form: -1.0, 2^-16, -0.67487759, -0.34484843 (V6, O3)."""

_FIRST_ROW: Final = tuple(lane & 7 for lane in range(32))

MIXED_COLUMNS = fault(
    "vector.mixed-columns",
    Unimplemented,
    "SFPCONFIG destination {0} would differ between lane columns (enabled columns: {1:#04x})",
    remedy="enable all columns and give lanes 0..7 of LReg 0 the same value",
    rule="math V6",
)


@njit
def _combine(old, value, mode):
    """Mode bits 2:1 of Misc and LaneConfig (V6)."""
    operation = mode & OPERATION
    if operation == OR:
        return old | value
    if operation == AND:
        return old & value
    if operation == XOR:
        return old ^ value
    return value


@njit
def _columns(t, mode, immediate):
    """Enabled lane columns: flags of lane row 0, and the immediate where it is a lane mask (V6)."""
    columns = enabled_bits(t) & ALL_COLUMNS
    if mode & IMMEDIATE_IS_LANE_MASK:
        for column in range(COLUMNS):
            if not (immediate >> (2 * column)) & 1:
                columns &= ~(1 << column)
    return columns


@njit
def _common_value(t):
    """The value of lanes 0..7 of LReg 0, or -1 when they differ."""
    value = np.int64(t.lregs[0, 0])
    for column in range(1, COLUMNS):
        if np.int64(t.lregs[0, column]) != value:
            return np.int64(-1)
    return value


@njit
def _write_constant(t, register, mode, columns):
    value = splat32(_DEFAULTS[register - FIRST_CONSTANT_DEST])
    if not mode & IMMEDIATE:
        value = shuffle(load32(t.lregs, 0), _FIRST_ROW)
    enabled = mask32(columns * 0x01010101)
    store32(t.lregs, register, where(enabled, value, load32(t.lregs, register)))


@instruction(
    Mode("macro template", VERIFIED, vectors="sfpu:SFPCONFIG:0", rule="math V6"),
    Mode("macro sequence", VERIFIED, vectors="sfpu:SFPCONFIG:4", rule="math V6"),
    Mode("Misc", VERIFIED, vectors="sfpu:SFPCONFIG:8", rule="math V6"),
    Mode("LReg 11", VERIFIED, vectors="sfpu:SFPCONFIG:11", rule="math V6"),
    Mode("LReg 12", VERIFIED, vectors="sfpu:SFPCONFIG:12", rule="math V6"),
    Mode("LReg 13", VERIFIED, vectors="sfpu:SFPCONFIG:13", rule="math V6"),
    Mode("LReg 14", VERIFIED, vectors="sfpu:SFPCONFIG:14", rule="math V6"),
    Mode("LaneConfig", VERIFIED, vectors="sfpu:SFPCONFIG:15", rule="math V5, V6"),
    Mode("or, and, xor; lane masks; defaults of LReg 12..14; constants by column", DOCUMENTED, rule="math V6"),
)
def SFPCONFIG(t, thread, imm16_math, config_dest, instr_mod1):
    columns = _columns(t, instr_mod1, imm16_math)
    if columns == 0 or config_dest in (9, 10):
        return DONE
    if config_dest >= FIRST_CONSTANT_DEST and config_dest < LANE_CONFIG:
        _write_constant(t, config_dest, instr_mod1, columns)
        return DONE
    immediate = (instr_mod1 & IMMEDIATE) != 0 and config_dest >= FIRST_SEQUENCE
    value = np.int64(imm16_math) if immediate else _common_value(t)
    if columns != ALL_COLUMNS or value < 0:
        return refuse(t, MIXED_COLUMNS, config_dest, columns)
    if config_dest < FIRST_SEQUENCE:
        t.macro_template[config_dest] = np.uint32(value)
    elif config_dest < MISC:
        t.macro_sequence[config_dest - FIRST_SEQUENCE] = np.uint32(value)
    elif config_dest == MISC:
        t.macro_misc = np.uint32(_combine(np.int64(t.macro_misc), value, instr_mod1) & MISC_BITS)
    else:
        old = np.int64(t.lane_config)
        new = _combine(old, value, instr_mod1) & LANE_CONFIG_BITS
        if immediate:  # an immediate cannot reach the high bits, which stay
            new = (new & _IMMEDIATE_BITS) | (old & ~_IMMEDIATE_BITS)
        t.lane_config = np.uint32(new)
    return DONE
