"""The pipeline of a baby RISC-V core in timed mode: when its next instruction starts, and what it leaves behind.

One instruction starts in a cycle, in order, once its operands are known, its bytes are fetched, and the queue of stores
or the data cache can take its access. Branches are predicted by two-bit counters.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import bhemu.recording.core_figures as classes
from bhemu.counting.states import accessed_address
from bhemu.isa.tile_registers import address_of
from bhemu.machine.agents import T0, T2
from bhemu.machine.buffer_memory import load_i64, store_i64
from bhemu.machine.kernel import kernel
from bhemu.machine.state import L1_SIZE
from bhemu.machine.types import AnyInt, Bool, Int, LogAddress, TileRecord
from bhemu.riscv.arithmetic import WORD, signed
from bhemu.timed import layout as at
from bhemu.timed.mover import COMMAND, STATUS, mover_idle, start_command
from bhemu.timed.words import thread_ends

_LOAD, _FENCE, _STORE, _STORE_FLOAT, _AMO = 0x03, 0x0F, 0x23, 0x27, 0x2F
_IMMEDIATE, _AUIPC, _REGISTER, _LUI = 0x13, 0x17, 0x33, 0x37
_BRANCH, _JALR, _JAL = 0x63, 0x67, 0x6F
_LINE: Final = 4
"""Bits of an address within 16 bytes: a line of the caches, and what stores coalesce in."""
_DONE: Final = address_of("sync", "COPROCESSOR_DONE")
"""A load of it waits until the core's thread is done (K18)."""


@kernel
def _known(log: LogAddress, block: Int, now: Int, register: Int) -> AnyInt:
    return max(now, load_i64(log, block + at.READY + register))


@kernel
def _operands_known(log: LogAddress, block: Int, now: Int, word: Int) -> AnyInt:
    """Cycle from which the registers that the instruction reads are known."""
    opcode = word & 0x7F
    float1, float2 = classes.float_sources(word, opcode)
    if classes.reads_rs1(word, opcode):
        now = _known(log, block, now, ((word >> 15) & 31) + (32 if float1 else 0))
    if classes.reads_rs2(opcode, float2):
        now = _known(log, block, now, ((word >> 20) & 31) + (32 if float2 else 0))
    if classes.is_fused(opcode):
        now = _known(log, block, now, (word >> 27) + 32)
    return now


@kernel
def fetched(log: LogAddress, block: Int, now: Int, pc: Int) -> Any:
    """Cycle from which the instruction at `pc` is there; brings its line into the instruction cache."""
    line = pc >> _LINE
    before = load_i64(log, block + at.FETCHED)
    if line == before:
        return now
    store_i64(log, block + at.FETCHED, line)
    place = block + at.CACHE + line % at.CACHE_SETS
    both = load_i64(log, place)
    older, newer = both >> 32, both & WORD
    if newer == line + 1:
        return now
    store_i64(log, place, newer << 32 | (line + 1))
    if older == line + 1:
        return now
    return now + load_i64(log, at.FETCH_NEXT if line == before + 1 else at.FETCH_JUMP)


@kernel
def _line_of_cache(log: LogAddress, block: Int, line: Int) -> AnyInt:
    """Place of a line in the L0 data cache, or -1."""
    for i in range(4):
        if load_i64(log, block + at.LINES + i) == line:
            return np.int64(i)
    return np.int64(-1)


@kernel
def access_possible(log: LogAddress, block: Int, now: Int, opcode: Int, address: Int) -> AnyInt:
    """Cycle from which L1 takes the access."""
    if address < 0 or address >= L1_SIZE:
        return now
    line = address >> _LINE
    if opcode in (_STORE, _STORE_FLOAT):
        if line == load_i64(log, block + at.STORE_LINE):
            return now
        last = load_i64(log, block + at.STORE_FREE) - load_i64(log, at.STORE_QUEUE) * load_i64(log, at.STORE_64THS)
        return max(now, (last + 63) >> 6)
    if opcode == _AMO or _line_of_cache(log, block, line) < 0:
        return max(now, load_i64(log, block + at.MISS_FREE))
    return now


@kernel
def starts(t: TileRecord, log: LogAddress, core: Int) -> Any:
    """Cycle in which the core's next instruction can start; remembers what it finds. May be asked again."""
    block = at.core_block(core)
    now = np.int64(t.core_round[core])
    pc = np.int64(t.core_pc[core])
    store_i64(log, block + at.RETIRED, np.int64(t.core_retired[core]))
    if pc >= L1_SIZE:
        return now
    word = np.int64(t.l1_u32[pc >> 2])
    now = fetched(log, block, now, pc)
    address = np.int64(-1)
    if word & 3 == 3:
        now = _operands_known(log, block, now, word)
        address = accessed_address(t, core, word)
        now = access_possible(log, block, now, word & 0x7F, address)
    store_i64(log, block + at.STARTED, now)
    store_i64(log, block + at.WORD, word)
    store_i64(log, block + at.PC, pc)
    store_i64(log, block + at.ADDRESS, address)
    store_i64(log, block + at.RS1, np.int64(t.core_x[core, (word >> 15) & 31]))
    store_i64(log, block + at.RS2, np.int64(t.core_x[core, (word >> 20) & 31]))
    return now


@kernel
def may_run_ahead(log: LogAddress, block: Int) -> Any:
    """The instruction of `starts` touches the core's own state alone: it may come before earlier turns of others."""
    word = load_i64(log, block + at.WORD)
    if word & 3 != 3:
        return False
    opcode = word & 0x7F
    if opcode in (_LOAD, _STORE):
        return classes.load_class(load_i64(log, block + at.ADDRESS)) == classes.LOAD_LOCAL
    return opcode in (_IMMEDIATE, _AUIPC, _REGISTER, _LUI, _BRANCH, _JALR, _JAL)


@kernel
def _is_taken(word: Int, a: Int, b: Int) -> Any:
    """Whether a branch on the values a and b is taken, also when it leads to the next instruction."""
    function = (word >> 12) & 7
    if function < 2:
        return (a == b) == (function == 0)
    if function < 6:
        a, b = signed(a), signed(b)
    return (a < b) == (function & 1 == 0)


@kernel
def was_predicted(log: LogAddress, block: Int, pc: Int, taken: Bool) -> Any:
    """Whether a branch goes where it was expected to; its counter moves."""
    number = (pc >> 2) % at.COUNTERS
    place, shift = block + at.PREDICTED + number // at.COUNTERS_IN_WORD, 2 * (number % at.COUNTERS_IN_WORD)
    counters = load_i64(log, place)
    counter = (counters >> shift) & 3
    after = min(counter + 1, 3) if taken else max(counter - 1, 0)
    store_i64(log, place, counters ^ ((counter ^ after) << shift))
    return (counter >= 2) == taken


@kernel
def division(log: LogAddress, word: Int, dividend: Int, divisor: Int) -> AnyInt:
    """Cycles that a division takes."""
    if classes.is_short_division(word, dividend, divisor):
        return load_i64(log, at.DIVIDE_SHORT)
    if (word >> 12) & 1 == 0 and dividend >> 31:
        dividend = -dividend & WORD
    bits = np.int64(0)
    while dividend >> bits:
        bits += 1
    cycles = load_i64(log, at.DIVIDE_BASE) + (((bits - 12) * load_i64(log, at.DIVIDE_64THS) + 32) >> 6)
    return min(max(cycles, load_i64(log, at.DIVIDE_LEAST)), load_i64(log, at.DIVIDE_MOST))


@kernel
def load_from_l1(log: LogAddress, block: Int, start: Int, address: Int) -> AnyInt:
    """Latency of a load from L1; its line comes into the L0 data cache."""
    line = address >> _LINE
    found = _line_of_cache(log, block, line)
    if found >= 0:
        arrives = load_i64(log, block + at.LINE_READY + found) - start
        return max(load_i64(log, at.LOAD_HIT), arrives)
    for i in range(3):
        store_i64(log, block + at.LINES + i, load_i64(log, block + at.LINES + i + 1))
        store_i64(log, block + at.LINE_READY + i, load_i64(log, block + at.LINE_READY + i + 1))
    latency = load_i64(log, at.LOAD_MISS)
    store_i64(log, block + at.LINES + 3, line)
    store_i64(log, block + at.LINE_READY + 3, start + latency)
    store_i64(log, block + at.MISS_FREE, start + load_i64(log, at.MISS_BETWEEN))
    return latency


@kernel
def forget_lines(log: LogAddress, block: Int) -> None:
    """Empty the L0 data cache."""
    for i in range(4):
        store_i64(log, block + at.LINES + i, -1)


@kernel
def note_store(log: LogAddress, block: Int, start: Int, address: Int) -> None:
    """A store to L1 is queued, or coalesces with the one before."""
    line = address >> _LINE
    if line == load_i64(log, block + at.STORE_LINE):
        return
    store_i64(log, block + at.STORE_LINE, line)
    free = max(load_i64(log, block + at.STORE_FREE), start << 6)
    store_i64(log, block + at.STORE_FREE, free + load_i64(log, at.STORE_64THS))


@kernel
def _latency(log: LogAddress, block: Int, what: Int, start: Int, address: Int) -> AnyInt:
    """Cycles until the instruction's result can be used."""
    if what == classes.LOAD_L1:
        return load_from_l1(log, block, start, address)
    if what == classes.LOAD_LOCAL:
        return load_i64(log, at.LOAD_LOCAL)
    if what == classes.MULTIPLY:
        return load_i64(log, at.MULTIPLY)
    if what == classes.LOAD_SYNC:
        return load_i64(log, at.LOAD_SYNC)
    if what == classes.LOAD_COPROCESSOR:
        return load_i64(log, at.LOAD_COPROCESSOR)
    if what == classes.LOAD_REGISTERS:
        return load_i64(log, at.LOAD_REGISTERS)
    if what == classes.LOAD_OTHER_RAM:
        return load_i64(log, at.LOAD_OTHER_RAM)
    if what == classes.LOAD_DST:
        return load_i64(log, at.LOAD_DST)
    if what == classes.ATOMIC:
        return load_i64(log, at.ATOMIC)
    if what == classes.FLOAT:
        return load_i64(log, at.FLOAT)
    if what == classes.FLOAT_OTHER:
        return load_i64(log, at.FLOAT_OTHER)
    if what == classes.SYSTEM:
        return load_i64(log, at.SYSTEM)
    return np.int64(1)


@kernel
def count(log: LogAddress, place: Int, cycles: Int) -> None:
    """Add cycles to a count."""
    store_i64(log, place, load_i64(log, place) + cycles)


@kernel
def executed(t: TileRecord, log: LogAddress, core: Int) -> None:
    """The instruction of `starts` has been executed: when may the next one start, and its result be used?"""
    block = at.core_block(core)
    retired = np.int64(t.core_retired[core]) - load_i64(log, block + at.RETIRED)
    start = load_i64(log, block + at.STARTED)
    word, pc = load_i64(log, block + at.WORD), load_i64(log, block + at.PC)
    address = load_i64(log, block + at.ADDRESS)
    after = np.int64(t.core_pc[core])
    opcode = word & 0x7F
    what = classes.class_of(word, pc, after, address)
    after_start: AnyInt = np.int64(1)
    if word & 3 != 3:
        after_start = retired  # neighbours are pushed together (T11), in as many cycles
        if core >= T0 and core <= T2:
            store_i64(log, at.PUSHED + core - T0, start)
    elif opcode == _BRANCH:
        taken = _is_taken(word, load_i64(log, block + at.RS1), load_i64(log, block + at.RS2))
        if not was_predicted(log, block, pc, taken):
            after_start += load_i64(log, at.MISPREDICTED)
    elif opcode == _JALR and (word >> 15) & 31 not in (1, 5):
        after_start += load_i64(log, at.MISPREDICTED)  # returns are predicted
    elif what == classes.DIVIDE:
        after_start = division(log, word, load_i64(log, block + at.RS1), load_i64(log, block + at.RS2))
    elif opcode in (_STORE, _STORE_FLOAT) and address < L1_SIZE:
        note_store(log, block, start, address)
    elif opcode == _STORE and address == COMMAND:
        start_command(t, log, start, load_i64(log, block + at.RS2))
    elif opcode in (_AMO, _FENCE):
        forget_lines(log, block)
    if classes.writes_register(word):
        latency = max(after_start, _latency(log, block, what, start, address))
        if address == _DONE and core >= T0 and core <= T2:
            ends = thread_ends(t, log, core - T0)
            if ends > start:  # the units finish later than they start
                latency = max(latency, ends - start + load_i64(log, at.SYNC_SEEN))
                after_start = max(after_start, latency)
        if address == STATUS:  # it says that the mover is idle (tensix/tdma.py), so it is read when it is
            latency = max(latency, mover_idle(log) - start)
        rd = (word >> 7) & 31
        is_float = classes.writes_float(word)
        if rd != 0 or is_float:
            store_i64(log, block + at.READY + rd + (32 if is_float else 0), start + latency)
    count(log, at.CORE_CYCLES, after_start)
    count(log, block + at.CORE_BUSY, after_start)
    if what in (classes.SYSTEM, classes.FLOAT_OTHER, classes.LOAD_DST):
        count(log, at.CORE_GUESSED, after_start)
    t.core_round[core] = start + after_start
