"""Lane flags and their stack: SFPENCC, SFPPUSHC, SFPPOPC, SFPCOMPC, SFPSETCC (math V3).

The flags of all lanes are one 32-bit word. The use bit is the same in all lanes, since whatever writes it writes all.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import UndefinedBehavior
from bhemu.machine.faults import DONE, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import load32, mask_bits
from bhemu.machine.types import Int, TileRecord
from bhemu.tensix.instruction import DOCUMENTED, VERIFIED, Mode, instruction
from bhemu.tensix.lane_settings import ALL_LANES
from bhemu.tensix.vector.registers import FIRST_TEMPLATE, capture, reserved_mode, set_flags
from bhemu.tensix.vector_queue import EXECUTE

STACK_ENTRIES: Final = 8

# Modes of SFPPUSHC and SFPPOPC above the logic operations
PLAIN: Final = 0
INVERT: Final = 13
SET: Final = 14
CLEAR: Final = 15

STACK_FULL = fault(
    "vector.flag-stack-full",
    UndefinedBehavior,
    "SFPPUSHC with {0} entries on the flag stack: it has no more room",
    remedy="nest conditions at most 8 deep, and pop each push",
    rule="math V3",
)
STACK_EMPTY = fault(
    "vector.flag-stack-empty",
    UndefinedBehavior,
    "mode {0} needs an entry on the flag stack, which is empty",
    remedy="push with SFPPUSHC mode 0 first",
    rule="math V3",
)
ENCC_MODE = reserved_mode("SFPENCC", "bit 0 or bit 1 for the use bit and bit 3 for the flags; not bit 2", "math V3")


@kernel
def _executes(t: TileRecord, register: Int, word: Int) -> Int:
    return capture(t, register, word) if register >= FIRST_TEMPLATE else EXECUTE


@instruction(
    Mode("use and flags set (mode 10); flags set (mode 0)", VERIFIED, vectors="sfpu:SFPENCC:10", rule="math V3"),
    Mode("use bit inverted or kept, flags from the immediate (other modes)", DOCUMENTED, rule="math V3"),
)
def SFPENCC(t: TileRecord, thread: Int, imm12_math: Int, lreg_dest: Int, instr_mod1: Int, word: Int) -> Int:
    status = _executes(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    if instr_mod1 & 4:
        return refuse(t, ENCC_MODE, instr_mod1)
    if instr_mod1 & 2:
        t.use_flags = np.uint32(imm12_math & 1)
    elif instr_mod1 & 1:
        t.use_flags = np.uint32(1 if t.use_flags == 0 else 0)
    if instr_mod1 & 8 and not imm12_math & 2:
        t.lane_flags = np.uint32(0)
    else:
        t.lane_flags = np.uint32(ALL_LANES)
    return DONE


@kernel
def logic(mode: Int, x: Int, y: Int) -> Any:
    """Operations 1..12 of the flag stack; x is the item that is updated (V3)."""
    if mode == 1:
        return y
    if mode == 2:
        return ~y
    if mode == 3:
        return x & y
    if mode == 4:
        return x | y
    if mode == 5:
        return x & ~y
    if mode == 6:
        return x | ~y
    if mode == 7:
        return ~x & y
    if mode == 8:
        return ~x | y
    if mode == 9:
        return ~(x | y)
    if mode == 10:
        return ~(x & y)
    if mode == 11:
        return x ^ y
    return ~(x ^ y)


@kernel
def _set_top(t: TileRecord, flags: Int, use: Int) -> None:
    top = t.flag_stack_depth - 1
    t.flag_stack[top] = np.uint32(flags & ALL_LANES)
    t.use_stack[top] = np.uint32(use)


@instruction(
    Mode("push", VERIFIED, vectors="sfpu:SFPPUSHC", rule="math V3"),
    Mode("update the top of the stack (modes 1 to 15)", DOCUMENTED, rule="math V3"),
)
def SFPPUSHC(t: TileRecord, thread: Int, lreg_dest: Int, instr_mod1: Int, word: Int) -> Int:
    status = _executes(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    depth = np.int64(t.flag_stack_depth)
    flags = np.int64(t.lane_flags)
    if instr_mod1 == PLAIN:
        if depth >= STACK_ENTRIES:
            return refuse(t, STACK_FULL, depth)
        t.flag_stack_depth = depth + 1
        _set_top(t, flags, np.int64(t.use_flags))
        return DONE
    if depth == 0:
        return refuse(t, STACK_EMPTY, instr_mod1)
    if instr_mod1 < INVERT:
        top = np.int64(t.flag_stack[depth - 1])
        _set_top(t, logic(instr_mod1, top, flags), np.int64(t.use_flags))
    elif instr_mod1 == INVERT:
        t.lane_flags = np.uint32(~flags & ALL_LANES)
        _set_top(t, ~flags, np.int64(t.use_flags))
    elif instr_mod1 == SET:
        _set_top(t, np.int64(ALL_LANES), 1)
    else:
        _set_top(t, np.int64(0), 1)
    return DONE


@instruction(
    Mode("pop", VERIFIED, vectors="sfpu:SFPPOPC", rule="math V3"),
    Mode("combine with the top of the stack (modes 1 to 15)", DOCUMENTED, rule="math V3"),
)
def SFPPOPC(t: TileRecord, thread: Int, lreg_dest: Int, instr_mod1: Int, word: Int) -> Any:
    status = _executes(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    depth = np.int64(t.flag_stack_depth)
    top_flags, top_use = np.int64(0), np.int64(0)
    if depth > 0:
        top_flags, top_use = np.int64(t.flag_stack[depth - 1]), np.int64(t.use_stack[depth - 1])
    flags = np.int64(t.lane_flags)
    if instr_mod1 == PLAIN:
        if depth == 0:
            return refuse(t, STACK_EMPTY, instr_mod1)
        t.flag_stack_depth = depth - 1
        t.use_flags = np.uint32(top_use)
        t.lane_flags = np.uint32(top_flags)
        return DONE
    if depth == STACK_ENTRIES:  # hardware bug: peeking at a full stack overwrites its oldest entry
        t.flag_stack[0] = np.uint32(top_flags)
        t.use_stack[0] = np.uint32(top_use)
    if instr_mod1 < INVERT:
        t.use_flags = np.uint32(top_use)
        t.lane_flags = np.uint32(logic(instr_mod1, flags, top_flags) & ALL_LANES)
    elif instr_mod1 == INVERT:
        t.lane_flags = np.uint32(~flags & ALL_LANES)
    else:
        t.use_flags = np.uint32(1)
        t.lane_flags = np.uint32(ALL_LANES if instr_mod1 == SET else 0)
    return DONE


@instruction(
    Mode("with flags in use", VERIFIED, vectors="sfpu:SFPCOMPC", rule="math V3"),
    Mode("with a use bit clear", DOCUMENTED, rule="math V3"),
)
def SFPCOMPC(t: TileRecord, thread: Int, lreg_dest: Int, word: Int) -> Any:
    status = _executes(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    depth = np.int64(t.flag_stack_depth)
    top_flags, top_use = np.int64(ALL_LANES), np.int64(1)
    if depth > 0:
        top_flags, top_use = np.int64(t.flag_stack[depth - 1]), np.int64(t.use_stack[depth - 1])
    if top_use != 0 and t.use_flags != 0:
        t.lane_flags = np.uint32(top_flags & ~np.int64(t.lane_flags))
    else:
        t.lane_flags = np.uint32(0)
    return DONE


@instruction(
    Mode("< 0", VERIFIED, vectors="sfpu:SFPSETCC:0", rule="math V3"),
    Mode("!= 0", VERIFIED, vectors="sfpu:SFPSETCC:2", rule="math V3"),
    Mode(">= 0", VERIFIED, vectors="sfpu:SFPSETCC:4", rule="math V3"),
    Mode("== 0", VERIFIED, vectors="sfpu:SFPSETCC:6", rule="math V3"),
    Mode("immediate, clear, or flags not in use", DOCUMENTED, rule="math V3"),
)
def SFPSETCC(
    t: TileRecord, thread: Int, imm12_math: Int, lreg_c: Int, lreg_dest: Int, instr_mod1: Int, word: Int
) -> Int:
    status = _executes(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    clear = (instr_mod1 & 8) != 0 or t.use_flags == 0
    immediate = (instr_mod1 & 1) != 0
    if clear:
        flags = np.int64(0)
    elif immediate:
        flags = np.int64(ALL_LANES if imm12_math & 1 else 0)
    else:
        value = load32(t.lregs, lreg_c)
        if instr_mod1 == 0:
            flags = mask_bits(value < 0)
        elif instr_mod1 == 2:
            flags = mask_bits(value != 0)
        elif instr_mod1 == 4:
            flags = mask_bits(value >= 0)
        else:
            flags = mask_bits(value == 0)
    set_flags(t, flags)
    return DONE
