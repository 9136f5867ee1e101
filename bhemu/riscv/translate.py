"""Translating hot code of the cores into machine code of the host: regions of basic blocks (tile T1 to T4, T34).

What translated code computes, and in which round, is what the interpreter (execute.py) would. A block is entered only
when enough rounds are left for all of it. An access to shared memory beyond the horizon, anything but a load or store
to L1 or local RAM, and every instruction without a template (x86.py) leave the region before they have changed
anything, and the interpreter goes on there.

A region is entered only if memory holds the words that were translated: it compares them itself. In its turn no other
agent changes memory, and a core's store into its own region is the interpreter's. So no writer of L1, be it the
host, the NoC or the coprocessor, has to know of translations (T22).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bhemu.isa.memory_map import LOCAL_RAM_BASE
from bhemu.machine.agents import CORES
from bhemu.machine.buffer_memory import store_i64
from bhemu.machine.kernel import kernel
from bhemu.machine.state import L1_SIZE
from bhemu.machine.types import AnyInt, Bool, Int, Record, TileRecord
from bhemu.riscv.code_memory import protect, write
from bhemu.riscv.decode import BREAKPOINT, NOWHERE, TRANSLATED, code_at, fields_of, key_of
from bhemu.riscv.emit import IN_MEMORY, MOV_FROM, MOV_TO, ZERO, emit, on_operand, put, refer
from bhemu.riscv.translation_state import (
    BLOCK,
    COUNT,
    ENTRIES,
    FIELDS,
    FIRST_CODE,
    INSTRUCTION_BYTES,
    JUMPS,
    LOOP_WORDS,
    NEVER,
    NEXT,
    PLACE,
    RANGE,
    REGION,
    REGION_WORDS,
    RESUME,
    RETURNS,
    TEXT_BYTES,
    WINDOW,
    WORD,
)
from bhemu.riscv.x86 import (
    BACKWARDS,
    BEGIN_BLOCK,
    BEGIN_REGION,
    BRANCH,
    COMPARE_FOUR,
    COMPARE_ONE,
    COMPARE_PC,
    END_COMPARE,
    ENTER,
    ENTER_BLOCK,
    FAILURE,
    FORWARDS,
    INSTRUCTIONS,
    IS_LOAD,
    IS_STORE,
    JUMP,
    JUMP_BACKWARDS,
    JUMP_FORWARDS,
    JUMP_REGISTER,
    KIND,
    LEAVE,
    LOAD_L1,
    LOAD_RAM,
    NONE,
    POOL,
    READS,
    STORE_L1,
    STORE_RAM,
    SWITCH,
    TO_END,
    TO_FAILURE,
    TO_HORIZON,
    TO_OTHER_HALF,
    TO_PC,
    TO_WORDS,
)


@kernel
def forget_translations(c: Record) -> None:
    """Forget all regions."""
    for core in range(CORES):
        store_i64(c.memory, RESUME + core, 0)
    for i in range(1, c.entry_count):
        place = c.entry[i, PLACE]
        c.key[place] = 0
        c.first[place] = 0
        c.heat[place] = 0
    c.entry_count = 1
    c.memory_used = FIRST_CODE
    c.native[1] = 0


@kernel
def _decoded(c: Record, place: Int, word: Int) -> AnyInt:
    fields = np.int64(c.instruction[place])
    if np.int64(c.key[place]) != key_of(word) or fields & 0xFF >= BREAKPOINT:
        fields = fields_of(word)
    return fields


@kernel
def _is_breakpoint(c: Record, place: Int, number: Int) -> Bool:
    """True where a debugger wants to stop: the instruction stays with the interpreter."""
    for i in range(c.breakpoint_count):
        if c.breakpoint[i] == place:
            return True
    return c.breakpoint_number[number] != 0


@kernel
def _destination(fields: Int, pc: Int) -> AnyInt:
    """Where a branch or jump goes, -1 for an instruction that does not, -2 where no instruction can be."""
    kind = KIND[fields & 0xFF]
    if kind not in (BRANCH, JUMP):
        return np.int64(-1)
    target = pc + (fields >> 32)
    return target if target >= 0 and target < L1_SIZE and target & 3 == 0 else np.int64(-2)


@kernel
def _want(c: Record) -> None:
    """Mark the words of the window that the region may have: all, or those of a loop (loops.py)."""
    count = np.int64(c.path_count)
    for i in range(WINDOW):
        c.wanted[i] = 1 if count == 0 else 0
    first, last = np.int64(L1_SIZE), np.int64(0)
    for step in range(count):
        first = min(first, np.int64(c.path[step]))
        last = max(last, np.int64(c.path[step]))
    for step in range(count):
        at = np.int64(c.path[step])
        end = last if last - first < 4 * LOOP_WORDS else at
        while at <= end:
            i = (at - c.first_pc) >> 2
            if i >= 0 and i < WINDOW:
                c.wanted[i] = 1
            at += 4


@kernel
def _follow(t: TileRecord, c: Record, pc: Int) -> Int:
    """Collect the instructions of the region that begins at `pc`; returns how many they are."""
    c.first_pc = max(np.int64(0), pc - 2 * WINDOW)
    _want(c)
    for i in range(WINDOW):
        c.included[i] = 0
        c.leader[i] = 0
    c.todo[0] = pc
    waiting, taken, count = 1, 0, 0
    while taken < waiting:
        at = np.int64(c.todo[taken])
        taken += 1
        i = (at - c.first_pc) >> 2
        if i < 0 or i >= WINDOW:
            continue
        c.leader[i] = 1
        while i < WINDOW and at < L1_SIZE - 4 and count < REGION_WORDS and c.included[i] < c.wanted[i]:
            word = np.int64(t.l1_u32[at >> 2])
            fields = _decoded(c, at >> 2, word)
            kind = KIND[fields & 0xFF]
            target = _destination(fields, at)
            if kind == NONE or target == -2 or _is_breakpoint(c, at >> 2, fields & 0xFF):
                break
            c.included[i] = 1
            c.raw[i] = word
            c.fields[i] = fields
            count += 1
            if waiting + 2 < WINDOW and target >= 0:
                c.todo[waiting] = target
                waiting += 1
            if waiting + 2 < WINDOW and kind == JUMP and (fields >> 8) & 0x3F != NOWHERE:  # what follows a call
                c.todo[waiting] = at + 4
                waiting += 1
            if kind in (JUMP, JUMP_REGISTER):
                break
            i += 1
            at += 4
            if kind == BRANCH and i < WINDOW:
                c.leader[i] = 1
    return count


@kernel
def _find_loops(c: Record) -> None:
    """Count the loops around each instruction: the jumps backwards over it."""
    for i in range(WINDOW):
        c.depth[i] = 0
    for i in range(WINDOW):
        if c.included[i] != 0:
            target = _destination(np.int64(c.fields[i]), c.first_pc + 4 * i)
            first = (target - c.first_pc) >> 2
            if target >= 0 and first >= 0:
                for j in range(first, i + 1):
                    c.depth[j] = min(c.depth[j] + 1, 4)


@kernel
def _choose_registers(c: Record) -> None:
    """Give the x registers that are used most one of the processor."""
    for x in range(40):
        c.uses[x] = 0
        c.host[x] = -1
        c.written[x] = 0
    c.code_first, c.code_end = L1_SIZE, 0
    for i in range(WINDOW):
        if c.included[i] == 0:
            continue
        pc = np.int64(c.first_pc) + 4 * i
        c.code_first = min(np.int64(c.code_first), pc)
        c.code_end = max(np.int64(c.code_end), pc + 4)
        fields = np.int64(c.fields[i])
        d = (fields >> 8) & 0x3F
        weight = np.int64(1) << (3 * np.int64(c.depth[i]))
        if d < NOWHERE:
            c.uses[d] += weight
            c.written[d] = 1
        if READS[fields & 0xFF, 0]:
            c.uses[(fields >> 16) & 31] += weight
        if READS[fields & 0xFF, 1]:
            c.uses[(fields >> 24) & 31] += weight
    for k in range(len(POOL)):
        best = 0
        for x in range(1, 32):
            if c.host[x] < 0 and (c.host[best] >= 0 or c.uses[x] > c.uses[best]):
                best = x
        if c.uses[best] > 1 and c.host[best] < 0:
            c.host[best] = POOL[k]


@kernel
def _block_length(c: Record, i: Int) -> Int:
    n = 1
    while i + n < WINDOW and c.included[i + n] != 0 and c.leader[i + n] == 0:
        kind = KIND[c.fields[i + n - 1] & 0xFF]
        if kind in (JUMP, JUMP_REGISTER):
            break
        n += 1
    return n


@kernel
def _emit_start(c: Record) -> None:
    """The beginning of the region: it compares the code, loads registers, and goes on at the block that is entered."""
    emit(c, BEGIN_REGION, ZERO, ZERO, ZERO, ZERO)
    last = (c.code_end - c.first_pc) >> 2
    i = (c.code_first - c.first_pc) >> 2
    while i < last:
        pc = np.int64(c.first_pc) + 4 * i
        if c.included[i] == 0:
            i += 1
        elif i + 4 <= last and c.included[i + 1] and c.included[i + 2] and c.included[i + 3]:
            emit(c, COMPARE_FOUR, ZERO, pc, ZERO, ZERO)
            i += 4
        else:
            emit(c, COMPARE_ONE, np.int64(c.raw[i]) << 32, pc, ZERO, ZERO)
            i += 1
    emit(c, END_COMPARE, ZERO, ZERO, ZERO, ZERO)
    for x in range(32):
        if c.host[x] >= 0:
            on_operand(c, MOV_FROM, np.int64(c.host[x]), IN_MEMORY, x, ZERO)
    emit(c, ENTER_BLOCK, ZERO, ZERO, ZERO, ZERO)


@kernel
def _emit_instruction(t: TileRecord, c: Record, core: Int, fields: Int, pc: Int, rest: Int) -> None:
    n = fields & 0xFF
    kind = KIND[n]
    if kind in (BRANCH, JUMP):
        backwards = fields >> 32 <= 0
        if kind == BRANCH:
            emit(c, BACKWARDS if backwards else FORWARDS, fields, pc, rest, ZERO)
        else:
            emit(c, JUMP_BACKWARDS if backwards else JUMP_FORWARDS, fields, pc, rest, ZERO)
        return
    emit(c, INSTRUCTIONS + n, fields, pc, rest, ZERO)
    if kind in (IS_LOAD, IS_STORE):
        # First the memory to which the base register points now.
        ram = np.int64(t.core_x[core, (fields >> 16) & 31]) >= LOCAL_RAM_BASE
        _emit_half(c, fields, pc, rest, ram, np.int64(1 if ram else 2))
    elif kind == JUMP_REGISTER:
        _emit_returns(c)


@kernel
def _emit_half(c: Record, fields: Int, pc: Int, rest: Int, ram: Bool, other_half: Int) -> None:
    if KIND[fields & 0xFF] == IS_LOAD:
        emit(c, LOAD_RAM if ram else LOAD_L1, fields, pc, rest, other_half)
    else:
        emit(c, STORE_RAM if ram else STORE_L1, fields, pc, rest, other_half)


@kernel
def _emit_returns(c: Record) -> None:
    """To the address in eax, which may be that after a call of the region."""
    found = 0
    for i in range(WINDOW - 1):
        if found < RETURNS and c.included[i] != 0 and c.included[i + 1] != 0:
            fields = np.int64(c.fields[i])
            if KIND[fields & 0xFF] == JUMP and (fields >> 8) & 0x3F != NOWHERE:
                found += 1
                emit(c, COMPARE_PC, ZERO, np.int64(c.first_pc) + 4 * i + 4, ZERO, ZERO)
    put(c, 1, 0xE9)
    refer(c, np.int64(TO_END), ZERO, ZERO, ZERO)


@kernel
def _emit_blocks(t: TileRecord, c: Record, core: Int) -> bool:
    """Write the machine code of all blocks, in the order of their addresses; False when there is no room."""
    rest: Int = 0
    for i in range(WINDOW):
        c.label[i] = -1
        if c.included[i] == 0:
            continue
        pc = np.int64(c.first_pc) + 4 * i
        if c.text_at > TEXT_BYTES - INSTRUCTION_BYTES or c.jump_count > JUMPS - 16:
            return False
        if rest == 0:
            rest = _block_length(c, i)
            c.label[i] = c.text_at
            emit(c, BEGIN_BLOCK, ZERO, pc, rest, ZERO)
        fields = np.int64(c.fields[i])
        c.begin[i] = c.text_at
        _emit_instruction(t, c, core, fields, pc, rest)
        rest -= 1
        if KIND[fields & 0xFF] not in (JUMP, JUMP_REGISTER) and (i + 1 == WINDOW or c.included[i + 1] == 0):
            put(c, 1, 0xE9)
            refer(c, np.int64(TO_PC), pc + 4, ZERO, ZERO)
    return True


@kernel
def _emit_leave(c: Record) -> None:
    put(c, 1, 0xE9)
    put(c, 4, c.leave - (c.memory_used + c.text_at + 4))


@kernel
def _emit_end(c: Record) -> AnyInt:
    """The end of the region, with the pc in eax: first with STAY, then, at the place that is returned, without."""
    put(c, 5, 0x20E8BA0F48)  # bts rax, 32
    end = np.int64(c.text_at)
    for x in range(32):
        if c.host[x] >= 0 and c.written[x] != 0:
            on_operand(c, MOV_TO, np.int64(c.host[x]), IN_MEMORY, x, ZERO)
    _emit_leave(c)
    return end


@kernel
def _emit_wait(c: Record) -> AnyInt:
    """The core stops at the horizon, with its pc in eax, and in rcx where it goes on."""
    wait = np.int64(c.text_at)
    for x in range(32):
        if c.host[x] >= 0 and c.written[x] != 0:
            on_operand(c, MOV_TO, np.int64(c.host[x]), IN_MEMORY, x, ZERO)
    put(c, 1, 0xE9)
    put(c, 4, c.switch - (c.memory_used + c.text_at + 4))
    return wait


@kernel
def _emit_stop(c: Record, pc: Int, rest: Int, wait: Int) -> None:
    """An access is beyond the horizon: the core stops before the instruction, and begins with it when it goes on."""
    put(c, 1, 0xB8)  # mov eax, pc
    put(c, 4, pc)
    put(c, 4, 0xC68349 | rest << 24)  # add r14, rest
    put(c, 3, 0x0D8D48)  # lea rcx, [after the jmp]
    put(c, 4, 5)
    put(c, 1, 0xE9)
    put(c, 4, wait - (c.text_at + 4))
    for x in range(32):
        if c.host[x] >= 0:
            on_operand(c, MOV_FROM, np.int64(c.host[x]), IN_MEMORY, x, ZERO)
    put(c, 4, 0xEE8349 | rest << 24)  # sub r14, rest
    put(c, 1, 0xE9)
    put(c, 4, c.begin[(pc - c.first_pc) >> 2] - (c.text_at + 4))


@kernel
def _emit_exit(c: Record, pc: Int, rest: Int, end: Int) -> None:
    """A way out: mov eax, pc; the rounds that have not passed back to r14; jmp."""
    put(c, 1, 0xB8)
    put(c, 4, pc)
    if rest != 0:
        put(c, 4, 0xC68349 | rest << 24)
    put(c, 1, 0xE9)
    put(c, 4, end - (c.text_at + 4))


@kernel
def _set_distance(c: Record, i: Int, place: Int) -> None:
    at = np.int64(c.jump[i, 0])
    distance = place - (at + 4)
    for k in range(4):
        c.text[at + k] = np.uint8((distance >> (8 * k)) & 0xFF)


@kernel
def _emit_stubs(c: Record) -> bool:
    """What the region's jumps need after it; False when there is no room."""
    failure = np.int64(c.text_at)
    emit(c, FAILURE, ZERO, ZERO, ZERO, ZERO)
    _emit_leave(c)
    stay = np.int64(c.text_at)
    end = _emit_end(c)
    wait = _emit_wait(c)
    i = 0
    pc_before, rest_before, stays_before = -1, 0, 0
    at_before: Int = 0
    while i < c.jump_count:
        if c.text_at > TEXT_BYTES - INSTRUCTION_BYTES or c.jump_count > JUMPS - 16:
            return False
        to, pc, rest, stays = c.jump[i, 1], c.jump[i, 2], c.jump[i, 3], c.jump[i, 4]
        if to == TO_FAILURE:
            _set_distance(c, i, failure)
        elif to == TO_END:
            _set_distance(c, i, end)
        elif to == TO_HORIZON:
            _set_distance(c, i, c.text_at)
            _emit_stop(c, pc, rest, wait)
        elif to == TO_OTHER_HALF:
            _set_distance(c, i, c.text_at)
            _emit_half(c, c.jump[i, 5], pc, rest, c.jump[i, 6] == 2, ZERO)
            put(c, 1, 0xE9)
            put(c, 4, c.jump[i, 7] - (c.text_at + 4))
        elif to == TO_WORDS:
            while (c.memory_used + c.text_at) & 15:
                put(c, 1, 0xCC)
            _set_distance(c, i, c.text_at)
            for k in range(4):
                put(c, 4, c.raw[((pc - c.first_pc) >> 2) + k])
        else:
            window = (pc - c.first_pc) >> 2
            label: Int = np.int64(-1)
            if to == TO_PC and window >= 0 and window < WINDOW:
                label = np.int64(c.label[window])
            if label < 0 and (pc, rest, stays) == (pc_before, rest_before, stays_before):
                label = at_before
            if label < 0:
                label = np.int64(c.text_at)
                pc_before, rest_before, stays_before, at_before = pc, rest, stays, label
                _emit_exit(c, pc, rest, stay if stays else end)
            _set_distance(c, i, label)
        i += 1
    return True


@kernel
def _enter_into_cache(t: TileRecord, c: Record, pc: Int) -> None:
    """Make entries for the region's blocks."""
    base = c.memory + c.memory_used
    for i in range(WINDOW):
        if c.included[i] == 0 or c.label[i] < 0 or c.entry_count == ENTRIES:
            continue
        place = (np.int64(c.first_pc) >> 2) + i
        fields = _decoded(c, place, np.int64(c.raw[i]))
        current = np.int64(c.key[place]) == key_of(np.int64(c.raw[i]))
        if current and c.instruction[place] & 0xFF == TRANSLATED and place != pc >> 2:
            continue
        number = np.int64(c.entry_count)
        c.entry_count = number + 1
        c.entry[number, PLACE] = place
        c.entry[number, WORD] = c.raw[i]
        c.entry[number, FIELDS] = fields
        c.entry[number, COUNT] = _block_length(c, i)
        c.entry[number, BLOCK] = base + c.label[i]
        c.entry[number, REGION] = base
        c.entry[number, NEXT] = c.first[place]
        c.entry[number, RANGE] = np.int64(c.code_first) << 32 | c.code_end
        c.first[place] = np.uint16(number)
        c.key[place] = key_of(np.int64(c.raw[i]))
        c.instruction[place] = TRANSLATED | (number << 32)


@kernel
def _publish(c: Record) -> Bool:
    """Put the text into the memory for machine code."""
    first = c.memory_used & -4096
    size = c.memory_used + c.text_at - first
    if not protect(c, first, size, True):
        return False
    for i in range(c.text_at):
        write(c, c.memory_used + i, c.text[i])
    return protect(c, first, size, False)


@kernel
def _make_enter(c: Record) -> bool:
    """Write what enters translated code."""
    c.text_at = 0
    emit(c, ENTER, ZERO, ZERO, ZERO, ZERO)
    c.switch = c.memory_used + c.text_at
    emit(c, SWITCH, ZERO, ZERO, ZERO, ZERO)
    c.leave = c.memory_used + c.text_at
    emit(c, LEAVE, ZERO, ZERO, ZERO, ZERO)
    if not _publish(c):
        return False
    c.native[1] = c.memory + c.memory_used
    c.memory_used = (c.memory_used + c.text_at + 63) & -64
    return True


@kernel
def translate(t: TileRecord, c: Record, core: Int, pc: Int) -> Any:
    """Translate the region that begins at `pc`, as the code is now; False when it stays with the interpreter."""
    if c.memory_used + 2 * TEXT_BYTES > c.memory_bytes or c.entry_count + REGION_WORDS > ENTRIES:
        forget_translations(c)
    if c.native[1] == 0 and not _make_enter(c):
        c.native[0] = 0  # the system has changed its mind: never again
        return False
    count = _follow(t, c, pc)
    head = (pc - c.first_pc) >> 2
    if c.included[head] == 0 or count < 2:
        return False
    _find_loops(c)
    _choose_registers(c)
    c.text_at = 0
    c.jump_count = 0
    _emit_start(c)
    if not _emit_blocks(t, c, core) or not _emit_stubs(c) or c.label[head] < 0 or not _publish(c):
        return False
    _enter_into_cache(t, c, pc)
    c.memory_used = (c.memory_used + c.text_at + 63) & -64
    return True


def translate_entry(t: TileRecord, cache: Int, core_and_pc: Int) -> AnyInt:
    """Translate the code at a pc that a core has reached often.

    Args:
        core_and_pc: core << 32 | pc.
    """
    c = code_at(cache)
    pc = core_and_pc & 0xFFFFFFFF
    if not translate(t, c, core_and_pc >> 32, pc):
        c.heat[pc >> 2] = NEVER
    return 0
