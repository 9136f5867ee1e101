"""Simple instructions of a core in timed mode, one after the other in one loop, each with its time.

What an instruction does is what it does in the inner loop of riscv/execute.py, and its time is that of cores.py. Both
are in one loop here, as cores execute little else. Whatever is not simple ends the loop.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import bhemu.recording.core_figures as classes
from bhemu.isa.riscv import NUMBER, RISCV
from bhemu.machine.buffer_memory import load_i64, store_i64
from bhemu.machine.core_state import LOCAL_RAM_SIZE, PUSH
from bhemu.machine.kernel import kernel, plain
from bhemu.machine.types import AnyInt, Int, LogAddress, TileRecord
from bhemu.riscv.arithmetic import WORD
from bhemu.riscv.decode import NOWHERE, TTINSN, code_at, fill, key_of
from bhemu.riscv.execute import ACCESS, LIMIT, hand_over
from bhemu.riscv.pushes import pushed_word
from bhemu.riscv.simple import (
    BEQ,
    BGEU,
    ELSEWHERE,
    FENCE,
    FENCE_I,
    IN_L1,
    IN_RAM,
    JALR,
    LB,
    NOT_ALIGNED,
    SB,
    SW,
    access_of,
    is_watched,
    load_memory,
    place_of_access,
    size_of,
    store_memory,
    without_access,
)
from bhemu.timed import layout as at
from bhemu.timed.cores import (
    access_possible,
    count,
    division,
    fetched,
    forget_lines,
    load_from_l1,
    note_store,
    was_predicted,
)

NOT_SIMPLE: Final = -1
"""The next instruction is not simple: the general turn of a core executes it."""

_MUL, _MULHU, _DIV, _REMU = NUMBER["mul"], NUMBER["mulhu"], NUMBER["div"], NUMBER["remu"]
_REGISTER: Final = 31
_WAITS_FOR_RS1: Final = np.array(
    [_REGISTER if plain(classes.reads_rs1)(row.match, row.match & 0x7F) else 0 for row in RISCV], np.int64
)
"""By instruction: mask for the number of its first operand; without one that is x0, which is always known."""
_WAITS_FOR_RS2: Final = np.array(
    [_REGISTER if plain(classes.reads_rs2)(row.match & 0x7F, False) else 0 for row in RISCV], np.int64
)


@kernel(forceinline=True)
def _latency(log: LogAddress, block: Int, n: Int, place: Int, start: Int, address: Int) -> AnyInt:
    """Cycles until the result of an instruction can be used, as far as it is not that which holds the next one."""
    if n >= LB and n < SB:
        return load_from_l1(log, block, start, address) if place == IN_L1 else load_i64(log, at.LOAD_LOCAL)
    if n >= _MUL and n <= _MULHU:
        return load_i64(log, at.MULTIPLY)
    return np.int64(1)


@kernel(forceinline=True)
def _until_next(log: LogAddress, block: Int, n: Int, word: Int, pc: Int, jumps: Int, a: Int, b: Int) -> AnyInt:
    """Cycles until the next instruction may start.

    Args:
        jumps: whether a branch is taken.
        a, b: its operands.
    """
    if n >= BEQ and n <= BGEU:
        return np.int64(1) if was_predicted(log, block, pc, jumps) else 1 + load_i64(log, at.MISPREDICTED)
    if n == JALR and (word >> 15) & 31 not in (1, 5):  # returns are predicted
        return 1 + load_i64(log, at.MISPREDICTED)
    if n >= _DIV and n <= _REMU:
        return division(log, word, a, b)
    return np.int64(1)


@kernel
def simple_turn(t: TileRecord, log: LogAddress, core: Int, cache: Int, one: Int) -> Any:
    """Execute simple instructions of a core, whose turn is a plain one, up to the goal.

    An instruction that starts after other agents' next turns is put off until these are over, unless it touches what is
    the core's own alone.

    Args:
        one: execute at most one.

    Returns:
        LIMIT; ACCESS: the core has requested an access that the memory map has to make, and the buffer says when it
        starts; or NOT_SIMPLE.
    """
    code = code_at(cache)
    block = at.core_block(core)
    l1_end, ram_size = np.int64(t.l1_end), LOCAL_RAM_SIZE[core]
    goal, horizon = np.int64(t.round_goal), np.int64(t.round_horizon)
    now: AnyInt = np.int64(t.core_round[core])
    pc: AnyInt = np.int64(t.core_pc[core])
    loops, loops_limit = np.int64(t.core_loops[core]), np.int64(t.core_loops_limit[core])
    executed, cycles, guessed = np.int64(0), np.int64(0), np.int64(0)
    word, address, a, b = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    reason: AnyInt = np.int64(LIMIT)
    while now < goal and (executed == 0 or not one):
        if pc >= l1_end or pc & 3:
            reason = np.int64(NOT_SIMPLE)
            break
        place_of_code = (pc & WORD) >> 2
        word = np.int64(t.l1_u32[place_of_code])
        fields: Int = np.int64(code.instruction[place_of_code])
        if np.int64(code.key[place_of_code]) != key_of(word):
            fields = fill(code, place_of_code, word)
        n = fields & 0xFF
        if n > FENCE_I and n != TTINSN:
            reason = np.int64(NOT_SIMPLE)
            break
        immediate = fields >> 32
        a = np.int64(t.core_x[core, (fields >> 16) & 31])
        b = np.int64(t.core_x[core, (fields >> 24) & 31])
        start: AnyInt = fetched(log, block, now, pc)
        place: Int = np.int64(ELSEWHERE)
        size, stores = 4, n >= SB and n <= SW
        accesses = n >= LB and n <= SW
        address = np.int64(-1)
        if n != TTINSN:
            start = max(start, load_i64(log, block + at.READY + ((fields >> 16) & _WAITS_FOR_RS1[n])))
            start = max(start, load_i64(log, block + at.READY + ((fields >> 24) & _WAITS_FOR_RS2[n])))
        if accesses:
            address = (a + immediate) & WORD
            size = size_of(n)
            place = place_of_access(address, size, l1_end, ram_size)
            start = access_possible(log, block, start, word & 0x7F, address)
        now = start
        is_own = n < FENCE and (not accesses or place == IN_RAM)
        if start >= goal or (start > horizon and not is_own):
            break
        if n == TTINSN:
            reason = hand_over(t, core, PUSH, 0, 4, pushed_word(word), NOWHERE, 0)
            break
        rd = (fields >> 8) & 0x3F
        if accesses and place == NOT_ALIGNED:
            reason = np.int64(NOT_SIMPLE)
            break
        value: Int = np.int64(0)
        if accesses and (place == ELSEWHERE or (stores and place == IN_L1 and is_watched(t, address))):
            kind, size, value, rd, is_signed = access_of(t, core, fields)
            reason = hand_over(t, core, kind, address, size, value, rd, is_signed)
            break
        after: AnyInt = pc + 4
        jumps = False
        if not accesses:
            value, after, jumps = without_access(n, a, b, immediate, pc)
        elif stores:
            store_memory(t, core, n, place, address, b)
        else:
            value = load_memory(t, core, n, place, address)
        if n >= FENCE:
            forget_lines(log, block)
            guessed += 1
        if after <= pc:
            if loops + 1 >= loops_limit:
                reason = np.int64(NOT_SIMPLE)  # it may poll (riscv/poll.py)
                break
            loops += 1
        if stores and place == IN_L1:
            note_store(log, block, start, address)
        until_next = _until_next(log, block, n, word, pc, jumps, a, b)
        latency = _latency(log, block, n, place, start, address)
        if rd != NOWHERE:
            store_i64(log, block + at.READY + rd, start + max(until_next, latency))
        t.core_x[core, rd] = np.uint32(value & WORD)
        now = start + until_next
        pc = after & WORD
        cycles += until_next
        executed += 1
    if executed > 0:
        t.core_skip_breakpoint[core] = 0
        t.core_x[core, NOWHERE] = 0
        t.core_pc[core] = np.uint32(pc)
        t.core_retired[core] += executed
        t.core_loops[core] = loops
        count(log, at.CORE_CYCLES, cycles)
        count(log, block + at.CORE_BUSY, cycles)
        count(log, at.CORE_GUESSED, guessed)
    t.core_round[core] = now
    if reason == ACCESS:
        store_i64(log, block + at.STARTED, now)
        store_i64(log, block + at.WORD, word)
        store_i64(log, block + at.PC, pc)
        store_i64(log, block + at.ADDRESS, address)
        store_i64(log, block + at.RS1, a)
        store_i64(log, block + at.RS2, b)
        store_i64(log, block + at.RETIRED, np.int64(t.core_retired[core]))
    return reason
