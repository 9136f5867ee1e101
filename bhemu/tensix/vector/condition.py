"""Lane flags and their stack: SFPENCC, SFPPUSHC, SFPPOPC, SFPCOMPC, SFPSETCC (math V3).

The flags of all lanes are one 32-bit word, and so are their use bits. Each lane has a stack of its own: an instruction
may execute in some lanes only, which are `acting_lanes`. All of these change in enabled and disabled lanes alike,
except by SFPSETCC.
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
from bhemu.tensix.vector.registers import (
    FIRST_TEMPLATE,
    STACK_ENTRIES,
    capture,
    chosen_bits,
    reserved_mode,
    set_flags,
    set_stack_entry,
    set_stack_top,
    stack_top,
)
from bhemu.tensix.vector_queue import EXECUTE

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
    lanes = np.int64(t.vector.acting_lanes)
    if instr_mod1 & 2:
        t.vector.use_flags = np.uint32(chosen_bits(lanes, -(imm12_math & 1), np.int64(t.vector.use_flags)))
    elif instr_mod1 & 1:
        t.vector.use_flags = np.uint32(np.int64(t.vector.use_flags) ^ lanes)
    flags = 0 if instr_mod1 & 8 and not imm12_math & 2 else ALL_LANES
    t.vector.lane_flags = np.uint32(chosen_bits(lanes, flags, np.int64(t.vector.lane_flags)))
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
def _push(t: TileRecord, lanes: Int) -> None:
    """A new entry for each of `lanes`, which have room."""
    flags, use = np.int64(t.vector.lane_flags), np.int64(t.vector.use_flags)
    for entry in range(STACK_ENTRIES - 1, -1, -1):
        below = np.int64(t.vector.flag_stack_held[entry - 1]) if entry > 0 else np.int64(ALL_LANES)
        held = np.int64(t.vector.flag_stack_held[entry])
        here = lanes & below & ~held
        if here != 0:
            set_stack_entry(t, entry, here, flags, use)
            t.vector.flag_stack_held[entry] = np.uint32(held | here)


@kernel
def _pop(t: TileRecord, lanes: Int) -> None:
    """Drop the newest entry of each of `lanes`, which have one."""
    for entry in range(STACK_ENTRIES):
        above = np.int64(t.vector.flag_stack_held[entry + 1]) if entry + 1 < STACK_ENTRIES else np.int64(0)
        t.vector.flag_stack_held[entry] = np.uint32(np.int64(t.vector.flag_stack_held[entry]) & ~(lanes & ~above))


@instruction(
    Mode("push", VERIFIED, vectors="sfpu:SFPPUSHC", rule="math V3"),
    Mode("update the top of the stack (modes 1 to 15)", DOCUMENTED, rule="math V3"),
)
def SFPPUSHC(t: TileRecord, thread: Int, lreg_dest: Int, instr_mod1: Int, word: Int) -> Int:
    status = _executes(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    lanes = np.int64(t.vector.acting_lanes)
    flags, use = np.int64(t.vector.lane_flags), np.int64(t.vector.use_flags)
    if instr_mod1 == PLAIN:
        if lanes & np.int64(t.vector.flag_stack_held[STACK_ENTRIES - 1]):
            return refuse(t, STACK_FULL, STACK_ENTRIES)
        _push(t, lanes)
        return DONE
    if lanes & ~np.int64(t.vector.flag_stack_held[0]):
        return refuse(t, STACK_EMPTY, instr_mod1)
    if instr_mod1 < INVERT:
        top, _ = stack_top(t, 0, 0)
        set_stack_top(t, logic(instr_mod1, top, flags), use)
    elif instr_mod1 == INVERT:
        t.vector.lane_flags = np.uint32(flags ^ lanes)
        set_stack_top(t, ~flags, use)
    else:
        set_stack_top(t, ALL_LANES if instr_mod1 == SET else 0, ALL_LANES)
    return DONE


@instruction(
    Mode("pop", VERIFIED, vectors="sfpu:SFPPOPC", rule="math V3"),
    Mode("combine with the top of the stack (modes 1 to 15)", DOCUMENTED, rule="math V3"),
)
def SFPPOPC(t: TileRecord, thread: Int, lreg_dest: Int, instr_mod1: Int, word: Int) -> Any:
    status = _executes(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    lanes = np.int64(t.vector.acting_lanes)
    flags, use = np.int64(t.vector.lane_flags), np.int64(t.vector.use_flags)
    top_flags, top_use = stack_top(t, 0, 0)
    if instr_mod1 == PLAIN:
        if lanes & ~np.int64(t.vector.flag_stack_held[0]):
            return refuse(t, STACK_EMPTY, instr_mod1)
        _pop(t, lanes)
        use, flags = chosen_bits(lanes, top_use, use), chosen_bits(lanes, top_flags, flags)
    else:
        full = lanes & np.int64(t.vector.flag_stack_held[STACK_ENTRIES - 1])
        if full:  # hardware bug: peeking at a full stack overwrites its oldest entry
            set_stack_entry(t, 0, full, top_flags, top_use)
        if instr_mod1 < INVERT:
            use = chosen_bits(lanes, top_use, use)
            flags = chosen_bits(lanes, logic(instr_mod1, flags, top_flags), flags)
        elif instr_mod1 == INVERT:
            flags ^= lanes
        else:
            use |= lanes
            flags = chosen_bits(lanes, ALL_LANES if instr_mod1 == SET else 0, flags)
    t.vector.use_flags, t.vector.lane_flags = np.uint32(use), np.uint32(flags)
    return DONE


@instruction(
    Mode("with flags in use", VERIFIED, vectors="sfpu:SFPCOMPC", rule="math V3"),
    Mode("with a use bit clear", DOCUMENTED, rule="math V3"),
)
def SFPCOMPC(t: TileRecord, thread: Int, lreg_dest: Int, word: Int) -> Any:
    status = _executes(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    flags = np.int64(t.vector.lane_flags)
    top_flags, top_use = stack_top(t, ALL_LANES, ALL_LANES)
    rest = top_flags & ~flags & top_use & np.int64(t.vector.use_flags)
    t.vector.lane_flags = np.uint32(chosen_bits(np.int64(t.vector.acting_lanes), rest, flags))
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
    clear = (instr_mod1 & 8) != 0
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
    # A lane whose flag is not in use is enabled, and its flag is cleared.
    set_flags(t, flags & np.int64(t.vector.use_flags))
    return DONE
