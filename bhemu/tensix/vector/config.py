"""SFPCONFIG: macro templates and sequences, constant LRegs, LaneConfig (math V5, V6)."""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.machine.faults import DONE
from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import load32, mask32, shuffle, splat32, store32, where
from bhemu.machine.types import Int, Lanes, TileRecord
from bhemu.tensix.instruction import DOCUMENTED, VERIFIED, Mode, instruction
from bhemu.tensix.lane_settings import LANE_CONFIG as LANE_CONFIG_ROW
from bhemu.tensix.lane_settings import MISC as MISC_ROW
from bhemu.tensix.lane_settings import setting, write_setting

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


@kernel
def _combine(old: Lanes, value: Lanes, mode: Int) -> Lanes:
    """Mode bits 2:1 of Misc and LaneConfig (V6)."""
    operation = mode & OPERATION
    if operation == OR:
        return old | value
    if operation == AND:
        return old & value
    if operation == XOR:
        return old ^ value
    return value


@kernel
def _columns(t: TileRecord, mode: Int, immediate: Int) -> Int:
    """Columns that are written: by the flags of lane row 0, and the immediate where it is a lane mask (V6).

    ROW_MASK does not count here, or a configuration that masks row 0 could not be taken back.
    """
    columns = (np.int64(t.vector.lane_flags) | ~np.int64(t.vector.use_flags)) & ALL_COLUMNS
    if mode & IMMEDIATE_IS_LANE_MASK:
        for column in range(COLUMNS):
            if not (immediate >> (2 * column)) & 1:
                columns &= ~(1 << column)
    return columns


@instruction(
    Mode("macro template", VERIFIED, vectors="sfpu:SFPCONFIG:0", rule="math V6"),
    Mode("macro sequence", VERIFIED, vectors="sfpu:SFPCONFIG:4", rule="math V6"),
    Mode("Misc", VERIFIED, vectors="sfpu:SFPCONFIG:8", rule="math V6"),
    Mode("LReg 11", VERIFIED, vectors="sfpu:SFPCONFIG:11", rule="math V6"),
    Mode("LReg 12", VERIFIED, vectors="sfpu:SFPCONFIG:12", rule="math V6"),
    Mode("LReg 13", VERIFIED, vectors="sfpu:SFPCONFIG:13", rule="math V6"),
    Mode("LReg 14", VERIFIED, vectors="sfpu:SFPCONFIG:14", rule="math V6"),
    Mode("LaneConfig", VERIFIED, vectors="sfpu:SFPCONFIG:15", rule="math V5, V6"),
    Mode("or, and, xor; lane masks; defaults of LReg 12..14; columns that differ", DOCUMENTED, rule="math V6"),
)
def SFPCONFIG(t: TileRecord, thread: Int, imm16_math: Int, config_dest: Int, instr_mod1: Int) -> Int:
    bits = (_columns(t, instr_mod1, imm16_math) * 0x01010101) & np.int64(t.vector.acting_lanes)
    if bits == 0 or config_dest in (9, 10):
        return DONE
    value = shuffle(load32(t.lregs, 0), _FIRST_ROW)
    if instr_mod1 & IMMEDIATE and config_dest >= FIRST_CONSTANT_DEST and config_dest < LANE_CONFIG:
        value = splat32(_DEFAULTS[config_dest - FIRST_CONSTANT_DEST])
    elif instr_mod1 & IMMEDIATE and config_dest >= FIRST_SEQUENCE:
        value = splat32(imm16_math)
    if config_dest < MISC:  # templates and sequences are rows in the order of their destinations
        write_setting(t, config_dest, value, bits)
    elif config_dest == MISC:
        write_setting(t, MISC_ROW, _combine(setting(t, MISC_ROW), value, instr_mod1) & MISC_BITS, bits)
    elif config_dest < LANE_CONFIG:
        store32(t.lregs, config_dest, where(mask32(bits), value, load32(t.lregs, config_dest)))
    else:
        old = setting(t, LANE_CONFIG_ROW)
        new = _combine(old, value, instr_mod1) & LANE_CONFIG_BITS
        if instr_mod1 & IMMEDIATE:  # an immediate cannot reach the high bits, which stay
            new = (new & _IMMEDIATE_BITS) | (old & ~_IMMEDIATE_BITS)
        write_setting(t, LANE_CONFIG_ROW, new, bits)
    return DONE
