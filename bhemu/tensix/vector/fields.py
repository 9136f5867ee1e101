"""Extracting and combining the fields of FP32 values: exponent, mantissa, sign (math V.5)."""

from __future__ import annotations

from typing import Final

from bhemu.machine.faults import DONE, refuse
from bhemu.machine.lanes import load32, shift_right_logical, where
from bhemu.machine.types import Int, TileRecord
from bhemu.tensix.instruction import DOCUMENTED, VERIFIED, Mode, instruction
from bhemu.tensix.vector.integer import INVERT_FLAGS, MAGNITUDE, SET_FLAGS, condition
from bhemu.tensix.vector.registers import SIGN, destination, reserved_mode, write
from bhemu.tensix.vector_queue import EXECUTE

MANTISSA: Final = 0x7FFFFF
EXPONENT: Final = 0x7F800000

EXEXP_MODE = reserved_mode("SFPEXEXP", "bit 0 for the raw exponent, bit 1 to set flags, bit 3 to invert", "math V.5")
EXMAN_MODE = reserved_mode("SFPEXMAN", "0 (with the hidden bit) or 1 (without)", "math V.5")
DIVP2_MODE = reserved_mode("SFPDIVP2", "0 (set the exponent) or 1 (add to it)", "math V.5")
SETEXP_MODE = reserved_mode("SFPSETEXP", "0 (old value), 1 (immediate) or 2 (exponent of the old value)", "math V.5")
SETMAN_MODE = reserved_mode("SFPSETMAN", "0 (old mantissa) or 1 (immediate)", "math V.5")
SETSGN_MODE = reserved_mode("SFPSETSGN", "0 (old sign) or 1 (immediate)", "math V.5")


@instruction(
    Mode("without bias", VERIFIED, vectors="sfpu:SFPEXEXP:0", rule="math V.5"),
    Mode("raw", VERIFIED, vectors="sfpu:SFPEXEXP:1", rule="math V.5"),
    Mode("flags < 0", VERIFIED, vectors="sfpu:SFPEXEXP:2", rule="math V.5"),
    Mode("flags >= 0", VERIFIED, vectors="sfpu:SFPEXEXP:10", rule="math V.5"),
    Mode("other combinations", DOCUMENTED, rule="math V.5"),
)
def SFPEXEXP(t: TileRecord, thread: Int, lreg_c: Int, lreg_dest: Int, instr_mod1: Int, word: Int) -> Int:
    status = destination(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    if instr_mod1 & 4:
        return refuse(t, EXEXP_MODE, instr_mod1)
    result = (shift_right_logical(load32(t.lregs, lreg_c), 23) & 0xFF) - (0 if instr_mod1 & 1 else 127)
    write(t, lreg_dest, result)
    condition(t, lreg_dest, result < 0, (instr_mod1 & SET_FLAGS) != 0, (instr_mod1 & INVERT_FLAGS) != 0)
    return DONE


@instruction(
    Mode("with the hidden bit", VERIFIED, vectors="sfpu:SFPEXMAN:0", rule="math V.5"),
    Mode("without", VERIFIED, vectors="sfpu:SFPEXMAN:1", rule="math V.5"),
)
def SFPEXMAN(t: TileRecord, thread: Int, lreg_c: Int, lreg_dest: Int, instr_mod1: Int, word: Int) -> Int:
    status = destination(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    if instr_mod1 > 1:
        return refuse(t, EXMAN_MODE, instr_mod1)
    hidden = 0 if instr_mod1 else 0x800000
    write(t, lreg_dest, (load32(t.lregs, lreg_c) & MANTISSA) | hidden)
    return DONE


@instruction(
    Mode("set the exponent", VERIFIED, vectors="sfpu:SFPDIVP2:0", rule="math V.5"),
    Mode("add to the exponent", VERIFIED, vectors="sfpu:SFPDIVP2:1", rule="math V.5"),
)
def SFPDIVP2(
    t: TileRecord, thread: Int, imm12_math: Int, lreg_c: Int, lreg_dest: Int, instr_mod1: Int, word: Int
) -> Int:
    status = destination(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    if instr_mod1 > 1:
        return refuse(t, DIVP2_MODE, instr_mod1)
    c = load32(t.lregs, lreg_c)
    if instr_mod1 == 0:
        write(t, lreg_dest, (c & ~EXPONENT) | ((imm12_math & 0xFF) << 23))
    else:
        moved = (c & ~EXPONENT) | ((c + ((imm12_math & 0xFF) << 23)) & EXPONENT)
        write(t, lreg_dest, where((c & EXPONENT) == EXPONENT, c, moved))
    return DONE


@instruction(
    Mode("from the low bits of the old value", VERIFIED, vectors="sfpu:SFPSETEXP:0", rule="math V.5"),
    Mode("immediate", VERIFIED, vectors="sfpu:SFPSETEXP:1", rule="math V.5"),
    Mode("exponent of the old value", VERIFIED, vectors="sfpu:SFPSETEXP:2", rule="math V.5"),
)
def SFPSETEXP(
    t: TileRecord, thread: Int, imm12_math: Int, lreg_c: Int, lreg_dest: Int, instr_mod1: Int, word: Int
) -> Int:
    status = destination(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    if instr_mod1 > 2:
        return refuse(t, SETEXP_MODE, instr_mod1)
    rest = load32(t.lregs, lreg_c) & ~EXPONENT
    old = load32(t.lregs, lreg_dest)
    if instr_mod1 == 0:
        write(t, lreg_dest, rest | ((old & 0xFF) << 23))
    elif instr_mod1 == 1:
        write(t, lreg_dest, rest | (imm12_math << 23))
    else:
        write(t, lreg_dest, rest | (old & EXPONENT))
    return DONE


@instruction(
    Mode("of the old value", VERIFIED, vectors="sfpu:SFPSETMAN:0", rule="math V.5"),
    Mode("immediate 0", VERIFIED, vectors="sfpu:SFPSETMAN:1", rule="math V.5"),
    Mode("other immediates", DOCUMENTED, rule="math V.5"),
)
def SFPSETMAN(
    t: TileRecord, thread: Int, imm12_math: Int, lreg_c: Int, lreg_dest: Int, instr_mod1: Int, word: Int
) -> Int:
    status = destination(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    if instr_mod1 > 1:
        return refuse(t, SETMAN_MODE, instr_mod1)
    rest = load32(t.lregs, lreg_c) & ~MANTISSA
    if instr_mod1 == 0:
        write(t, lreg_dest, rest | (load32(t.lregs, lreg_dest) & MANTISSA))
    else:
        write(t, lreg_dest, rest | (imm12_math << 11))
    return DONE


@instruction(
    Mode("of the old value", VERIFIED, vectors="sfpu:SFPSETSGN:0", rule="math V.5"),
    Mode("immediate", VERIFIED, vectors="sfpu:SFPSETSGN:1", rule="math V.5"),
)
def SFPSETSGN(
    t: TileRecord, thread: Int, imm12_math: Int, lreg_c: Int, lreg_dest: Int, instr_mod1: Int, word: Int
) -> Int:
    status = destination(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    if instr_mod1 > 1:
        return refuse(t, SETSGN_MODE, instr_mod1)
    rest = load32(t.lregs, lreg_c) & MAGNITUDE
    if instr_mod1 == 0:
        write(t, lreg_dest, rest | (load32(t.lregs, lreg_dest) & SIGN))
    else:
        write(t, lreg_dest, rest | (imm12_math << 31))
    return DONE
