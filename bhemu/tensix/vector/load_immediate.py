"""Immediates into LRegs: SFPLOADI (math V9)."""

from __future__ import annotations

from bhemu.machine.faults import DONE, refuse
from bhemu.machine.lanes import load32
from bhemu.machine.types import Int, TileRecord
from bhemu.tensix.instruction import VERIFIED, Mode, instruction
from bhemu.tensix.vector.load_store import CONSTANT_TARGET, write_lanes
from bhemu.tensix.vector.registers import FIRST_CONSTANT, FIRST_TEMPLATE, enabled_bits, reserved_mode

LOADI_MODE = reserved_mode("SFPLOADI", "0 BF16, 1 FP16, 2 unsigned, 4 signed, 8 high half or 10 low half", "math V9")


@instruction(
    Mode("BF16", VERIFIED, vectors="sfpu:SFPLOADI:0", rule="math V9"),
    Mode("FP16", VERIFIED, vectors="sfpu:SFPLOADI:1", rule="math V9"),
    Mode("unsigned 16 bits", VERIFIED, vectors="sfpu:SFPLOADI:2", rule="math V9"),
    Mode("signed 16 bits", VERIFIED, vectors="sfpu:SFPLOADI:4", rule="math V9"),
    Mode("high half", VERIFIED, vectors="sfpu:SFPLOADI:8", rule="math V9"),
    Mode("low half", VERIFIED, vectors="sfpu:SFPLOADI:10", rule="math V9"),
)
def SFPLOADI(t: TileRecord, thread: Int, lreg_ind: Int, instr_mod0: Int, imm16: Int) -> Int:
    if instr_mod0 > 10 or not (0b101_0001_0111 >> instr_mod0) & 1:
        return refuse(t, LOADI_MODE, instr_mod0)
    if lreg_ind >= FIRST_TEMPLATE:
        return refuse(t, CONSTANT_TARGET, lreg_ind)
    if lreg_ind >= FIRST_CONSTANT:
        return DONE
    # What stays of the old value, and what is put over it
    keep = 0
    value = imm16
    if instr_mod0 == 0:
        value = imm16 << 16
    elif instr_mod0 == 1:
        value = ((imm16 & 0x8000) << 16) | (((imm16 >> 10) & 0x1F) + 112) << 23 | (imm16 & 0x3FF) << 13
    elif instr_mod0 == 4:
        value = imm16 - ((imm16 & 0x8000) << 1)
    elif instr_mod0 == 8:
        keep = 0xFFFF
        value = imm16 << 16
    elif instr_mod0 == 10:
        keep = -0x10000
    write_lanes(t, lreg_ind, (load32(t.lregs, lreg_ind) & keep) | value, enabled_bits(t))
    return DONE
