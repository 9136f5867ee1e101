"""Copies, integer arithmetic, shifts and logic, lane by lane (math V.5); SFPNOP."""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.machine.faults import DONE, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import leading_zeros, load32, mask32, mask_bits, shift_right_logical, splat32, store32, where
from bhemu.machine.types import Int, Lanes, TileRecord
from bhemu.tensix.instruction import DOCUMENTED, VERIFIED, Mode, instruction
from bhemu.tensix.lane_settings import LANE_CONFIG, MISC, setting
from bhemu.tensix.prng import prng_step
from bhemu.tensix.vector.registers import (
    FIRST_CONSTANT,
    SIGN,
    destination,
    enabled_bits,
    reserved_mode,
    set_flags,
    write,
)
from bhemu.tensix.vector_queue import EXECUTE

# Mode bits of SFPLZ and SFPEXEXP
SET_FLAGS: Final = 2
INVERT_FLAGS: Final = 8

MAGNITUDE: Final = 0x7FFFFFFF
NEGATIVE_NAN: Final = -0x800000
"""0xFF800000, minus infinity: patterns above it are NaNs with a sign."""


@kernel
def signed12(immediate: Int) -> Int:
    """The 12-bit immediate as a signed number."""
    return immediate - ((immediate & 0x800) << 1)


@kernel
def condition(t: TileRecord, d: Int, true: Lanes, sets: bool, inverts: bool) -> None:
    """Flags of an instruction that writes LReg `d`: set from the mask `true`, then inverted (V.5)."""
    if d < FIRST_CONSTANT and (sets or inverts):
        flags = mask_bits(true) if sets else np.int64(t.vector.lane_flags)
        set_flags(t, ~flags if inverts else flags)


# --- moving and signs ---------------------------------------------------------------------------------------------

MOV_MODE = reserved_mode("SFPMOV", "0 copy, 1 flip the sign, 2 copy in all lanes, 8 special register", "math V.5")
ABS_MODE = reserved_mode("SFPABS", "0 (two's complement) or 1 (FP32, sign-magnitude)", "math V.5")

COPY: Final = 0
NEGATE: Final = 1
ALL_LANES_COPY: Final = 2
SPECIAL: Final = 8


@kernel
def _special(t: TileRecord, source: Int) -> Lanes:
    """What SFPMOV mode 8 reads, apart from the PRNG (V.5)."""
    if source <= MISC:  # numbered as in SFPCONFIG
        return setting(t, source)
    return setting(t, LANE_CONFIG) if source == 15 else splat32(0)


@instruction(
    Mode("copy", VERIFIED, vectors="sfpu:SFPMOV:0", rule="math V.5"),
    Mode("flip the sign", VERIFIED, vectors="sfpu:SFPMOV:1", rule="math V.5"),
    Mode("copy in all lanes", VERIFIED, vectors="sfpu:SFPMOV:2", rule="math V.5"),
    Mode("PRNG", VERIFIED, vectors="sfpu:SFPMOV:8", rule="math V4"),
    Mode("macro templates and sequences, Misc, LaneConfig", DOCUMENTED, rule="math V.5"),
)
def SFPMOV(t: TileRecord, thread: Int, lreg_c: Int, lreg_dest: Int, instr_mod1: Int, word: Int) -> Int:
    status = destination(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    if instr_mod1 == COPY:
        write(t, lreg_dest, load32(t.lregs, lreg_c))
    elif instr_mod1 == NEGATE:
        write(t, lreg_dest, load32(t.lregs, lreg_c) ^ SIGN)
    elif instr_mod1 == ALL_LANES_COPY:
        if lreg_dest < FIRST_CONSTANT:
            store32(t.lregs, lreg_dest, load32(t.lregs, lreg_c))
    elif instr_mod1 == SPECIAL:
        if lreg_c == 9:
            write(t, lreg_dest, prng_step(t, mask32(enabled_bits(t))))
        else:
            write(t, lreg_dest, _special(t, lreg_c))
    else:
        return refuse(t, MOV_MODE, instr_mod1)
    return DONE


@instruction(
    Mode("two's complement", VERIFIED, vectors="sfpu:SFPABS:0", rule="math V.5"),
    Mode("FP32", VERIFIED, vectors="sfpu:SFPABS:1", rule="math V.5"),
)
def SFPABS(t: TileRecord, thread: Int, lreg_c: Int, lreg_dest: Int, instr_mod1: Int, word: Int) -> Int:
    status = destination(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    if instr_mod1 > 1:
        return refuse(t, ABS_MODE, instr_mod1)
    c = load32(t.lregs, lreg_c)
    if instr_mod1 == 0:
        write(t, lreg_dest, where(c < 0, -c, c))
    else:  # as a signed number, a NaN with sign is negative and above 0xFF800000
        write(t, lreg_dest, where((c < 0) & (c > NEGATIVE_NAN), c, c & MAGNITUDE))
    return DONE


# --- addition and shifts ------------------------------------------------------------------------------------------

IADD_MODE = reserved_mode("SFPIADD", "bits 1:0 of 0, 1 or 2, bit 2 to keep the flags, bit 3 for >= 0", "math V.5")
SHFT_MODE = reserved_mode("SFPSHFT", "0, 1, 2, 3, 5 or 7", "math V.5")

ADD_IMMEDIATE: Final = 1
SUBTRACT: Final = 2
KEEP_FLAGS: Final = 4
FLAGS_GE: Final = 8

SHIFT_IMMEDIATE: Final = 1
SHIFT_ARITHMETIC: Final = 2
SHIFT_SOURCE_C: Final = 4


@instruction(
    Mode("add registers, flags < 0", VERIFIED, vectors="sfpu:SFPIADD:0", rule="math V.5"),
    Mode("add an immediate, flags < 0", VERIFIED, vectors="sfpu:SFPIADD:1", rule="math V.5"),
    Mode("subtract, flags < 0", VERIFIED, vectors="sfpu:SFPIADD:2", rule="math V.5"),
    Mode("without flags", VERIFIED, vectors="sfpu:SFPIADD:5", rule="math V.5"),
    Mode("flags >= 0", VERIFIED, vectors="sfpu:SFPIADD:10", rule="math V.5"),
    Mode("flags inverted (modes 12 to 14)", DOCUMENTED, rule="math V.5"),
)
def SFPIADD(
    t: TileRecord, thread: Int, imm12_math: Int, lreg_c: Int, lreg_dest: Int, instr_mod1: Int, word: Int
) -> Int:
    status = destination(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    if (instr_mod1 & 3) == 3:
        return refuse(t, IADD_MODE, instr_mod1)
    if lreg_dest >= FIRST_CONSTANT:
        return DONE
    c = load32(t.lregs, lreg_c)
    if instr_mod1 & ADD_IMMEDIATE:
        result = c + signed12(imm12_math)
    elif instr_mod1 & SUBTRACT:
        result = c - load32(t.lregs, lreg_dest)
    else:
        result = c + load32(t.lregs, lreg_dest)
    write(t, lreg_dest, result)
    condition(t, lreg_dest, result < 0, (instr_mod1 & KEEP_FLAGS) == 0, (instr_mod1 & FLAGS_GE) != 0)
    return DONE


@kernel
def shift(value: Lanes, amount: Lanes, arithmetic: Int) -> Lanes:
    """Left by amount & 31, or right by -amount & 31 where the amount is negative (V.5)."""
    left = value << (amount & 31)
    back = (-amount) & 31
    right = value >> back if arithmetic else shift_right_logical(value, back)
    return where(amount >= 0, left, right)


@instruction(
    Mode("logical, by a register", VERIFIED, vectors="sfpu:SFPSHFT:0", rule="math V.5"),
    Mode("logical, by an immediate", VERIFIED, vectors="sfpu:SFPSHFT:1", rule="math V.5"),
    Mode("arithmetic, by a register", VERIFIED, vectors="sfpu:SFPSHFT:2", rule="math V.5"),
    Mode("arithmetic, by an immediate", VERIFIED, vectors="sfpu:SFPSHFT:3", rule="math V.5"),
    Mode("c logical, by an immediate", VERIFIED, vectors="sfpu:SFPSHFT:5", rule="math V.5"),
    Mode("c arithmetic, by an immediate", VERIFIED, vectors="sfpu:SFPSHFT:7", rule="math V.5"),
)
def SFPSHFT(
    t: TileRecord, thread: Int, imm12_math: Int, lreg_c: Int, lreg_dest: Int, instr_mod1: Int, word: Int
) -> Int:
    status = destination(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    if instr_mod1 > 7 or (instr_mod1 & SHIFT_SOURCE_C and not instr_mod1 & SHIFT_IMMEDIATE):
        return refuse(t, SHFT_MODE, instr_mod1)
    c = load32(t.lregs, lreg_c)
    value = c if instr_mod1 & SHIFT_SOURCE_C else load32(t.lregs, lreg_dest)
    amount = splat32(signed12(imm12_math)) if instr_mod1 & SHIFT_IMMEDIATE else c
    write(t, lreg_dest, shift(value, amount, instr_mod1 & SHIFT_ARITHMETIC))
    return DONE


# --- logic --------------------------------------------------------------------------------------------------------

AND_MODE = reserved_mode("SFPAND", "0 (old destination) or 1 (register in imm12[3:0])", "math V.5")
LZ_MODE = reserved_mode("SFPLZ", "bit 1 to set flags, bit 2 to ignore the sign, bit 3 to invert the flags", "math V.5")
OR_MODE = reserved_mode("SFPOR", "0 (old destination) or 1 (register in imm12[3:0])", "math V.5")


@instruction(
    Mode("with the old destination", VERIFIED, vectors="sfpu:SFPAND:0", rule="math V.5"),
    Mode("with another register", VERIFIED, vectors="sfpu:SFPAND:1", rule="math V.5"),
)
def SFPAND(t: TileRecord, thread: Int, imm12_math: Int, lreg_c: Int, lreg_dest: Int, instr_mod1: Int, word: Int) -> Int:
    status = destination(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    if instr_mod1 > 1:
        return refuse(t, AND_MODE, instr_mod1)
    other = load32(t.lregs, imm12_math if instr_mod1 else lreg_dest)
    write(t, lreg_dest, other & load32(t.lregs, lreg_c))
    return DONE


@instruction(
    Mode("with the old destination", VERIFIED, vectors="sfpu:SFPOR:0", rule="math V.5"),
    Mode("with another register", VERIFIED, vectors="sfpu:SFPOR:1", rule="math V.5"),
)
def SFPOR(t: TileRecord, thread: Int, imm12_math: Int, lreg_c: Int, lreg_dest: Int, instr_mod1: Int, word: Int) -> Int:
    status = destination(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    if instr_mod1 > 1:
        return refuse(t, OR_MODE, instr_mod1)
    other = load32(t.lregs, imm12_math if instr_mod1 else lreg_dest)
    write(t, lreg_dest, other | load32(t.lregs, lreg_c))
    return DONE


@instruction(Mode("with the old destination", VERIFIED, vectors="sfpu:SFPXOR", rule="math V.5"))
def SFPXOR(t: TileRecord, thread: Int, lreg_c: Int, lreg_dest: Int, word: Int) -> Int:
    status = destination(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    write(t, lreg_dest, load32(t.lregs, lreg_dest) ^ load32(t.lregs, lreg_c))
    return DONE


@instruction(Mode("of c", VERIFIED, vectors="sfpu:SFPNOT", rule="math V.5"))
def SFPNOT(t: TileRecord, thread: Int, lreg_c: Int, lreg_dest: Int, word: Int) -> Int:
    status = destination(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    write(t, lreg_dest, ~load32(t.lregs, lreg_c))
    return DONE


@instruction(
    Mode("of 32 bits", VERIFIED, vectors="sfpu:SFPLZ:0", rule="math V.5"),
    Mode("with flags", VERIFIED, vectors="sfpu:SFPLZ:2", rule="math V.5"),
    Mode("of 31 bits", VERIFIED, vectors="sfpu:SFPLZ:4", rule="math V.5"),
    Mode("flags inverted (mode bit 3)", DOCUMENTED, rule="math V.5"),
)
def SFPLZ(t: TileRecord, thread: Int, lreg_c: Int, lreg_dest: Int, instr_mod1: Int, word: Int) -> Int:
    status = destination(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    if instr_mod1 & 1:
        return refuse(t, LZ_MODE, instr_mod1)
    c = load32(t.lregs, lreg_c)
    if instr_mod1 & 4:
        c = c & MAGNITUDE
    write(t, lreg_dest, leading_zeros(c))
    condition(t, lreg_dest, c != 0, (instr_mod1 & SET_FLAGS) != 0, (instr_mod1 & INVERT_FLAGS) != 0)
    return DONE


@instruction(Mode("idle", DOCUMENTED, rule="math V.5"))
def SFPNOP(t: TileRecord, thread: Int) -> Int:
    return DONE
