"""The coprocessor in timed mode: which thread issues its word in a cycle, and how long its unit is busy with it.

A word is executed whole when it is issued, as in the plain clock (tensix/frontend/run.py). What later words and waits
see of it in time is kept here: when units take the next word, when a thread's work is done, when banks change hands.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.isa.names import Condition
from bhemu.isa.registers import config
from bhemu.isa.registers import thread as thread_register
from bhemu.machine.buffer_memory import load_i64, store_i64
from bhemu.machine.config_access import config_bank, thread_field
from bhemu.machine.counters import CH0_X, CH1_X, PACKER, RWC_DST
from bhemu.machine.dispatch import NOT_COMPILED, call_handler
from bhemu.machine.faults import DONE, REFUSED, SCHEDULED, WAIT
from bhemu.machine.frontend_state import FIFO_SLOTS
from bhemu.machine.kernel import kernel
from bhemu.machine.state import THREADS
from bhemu.machine.types import AnyInt, Bool, Int, LogAddress, Table, TileRecord
from bhemu.tensix.frontend.fetch import MOP, expand, is_drained
from bhemu.tensix.frontend.gate import (
    DEFAULT_CONDITIONS,
    SEMWAIT,
    STALLWAIT,
    is_held,
    operand,
    wait_is_over,
)
from bhemu.tensix.frontend.run import EMPTY, begin_macro_cycle, end_macro_cycle
from bhemu.timed import layout as at
from bhemu.timed.mover import mover_idle, xmov_cycles

NEVER: Final = 1 << 62
HELD: Final = 9
"""The word may go on in a later cycle, which is known."""

UNPACR: Final = INSTRUCTIONS["UNPACR"].opcode
PACR: Final = INSTRUCTIONS["PACR"].opcode
XMOV: Final = INSTRUCTIONS["XMOV"].opcode
_SCALAR_MEMORY: Final = tuple(
    INSTRUCTIONS[name].opcode for name in ("LOADIND", "STOREIND", "LOADREG", "ATINCGET", "ATINCGETPTR", "ATSWAP")
)
_ALONE: Final = (INSTRUCTIONS["SETC16"].opcode, INSTRUCTIONS["ATGETM"].opcode, INSTRUCTIONS["ATRELM"].opcode)
"""Words of which each thread may have one in a cycle."""
_UNPACKER: Final = operand("UNPACR", "Unpack_block_selection")
_NOP_UNPACKER: Final = operand("UNPACR_NOP", "Unpacker_Select")
_CONDITIONS: Final = operand("STALLWAIT", "wait_res")
_DST: Final = operand("MVMUL", "dst")
_TWO_CYCLES: Final = 2

_MATH_OFFSET: Final = thread_register("DEST_TARGET_REG_CFG_MATH_Offset")
_IN_FORMAT: Final = (
    config("THCON_SEC0_REG0_TileDescriptor_in_data_format"),
    config("THCON_SEC1_REG0_TileDescriptor_in_data_format"),
)
_TILEIZE: Final = (config("THCON_SEC0_REG2_Tileize_mode"), config("THCON_SEC1_REG2_Tileize_mode"))
_BITS: Final = np.array([32, 16, 8, 4, 32, 16, 8, 4, 32, 16, 8, 2, 32, 8, 8, 2], np.int64)
"""Bits of a datum in L1 by format code (rules I.1)."""

_UNPACK0, _UNPACK1 = int(Condition.UNPACK0), int(Condition.UNPACK1)
_CLEARED: Final = (int(Condition.SRCA_CLEARED), int(Condition.SRCB_CLEARED))
_VALID: Final = (int(Condition.SRCA_VALID), int(Condition.SRCB_VALID))
_WORK: Final = (
    (int(Condition.THCON), at.SCALAR),
    (int(Condition.PACK), at.PACK),
    (int(Condition.MATH), at.MATRIX),
    (int(Condition.SFPU), at.VECTOR),
    (int(Condition.CFGEXU), at.CONFIG),
)
_MOVED: Final = int(Condition.XMOV)


@kernel
def _ended(log: LogAddress, thread: Int, unit: Int) -> AnyInt:
    return load_i64(log, at.ENDED + thread * len(at.UNIT_NAMES) + unit)


@kernel
def _later(log: LogAddress, place: Int, cycle: Int) -> None:
    """Note a cycle if it is later than the one that is there."""
    if cycle > load_i64(log, place):
        store_i64(log, place, cycle)


@kernel
def thread_ends(t: TileRecord, log: LogAddress, thread: Int) -> AnyInt:
    """Cycle in which everything that the thread has issued is done."""
    end = load_i64(log, at.NEXT + thread)
    for unit in range(len(at.UNIT_NAMES)):
        end = max(end, _ended(log, thread, unit))
    for which in range(2):
        end = max(end, load_i64(log, at.UNPACKED + 2 * thread + which))
    return end


@kernel
def _wait_ends(t: TileRecord, log: LogAddress, thread: Int, word: Int) -> AnyInt:
    """Cycle from which the units let the latched wait end, as far as their work goes."""
    opcode = word >> 24
    end = load_i64(log, at.LATCHED + thread) + load_i64(log, at.WAIT_SEEN)
    if opcode != STALLWAIT:
        return end
    conditions = (word >> _CONDITIONS[0]) & _CONDITIONS[1]
    if conditions == 0:
        conditions = DEFAULT_CONDITIONS
    for i in range(len(_WORK_MASKS)):
        if conditions & _WORK_MASKS[i]:
            end = max(end, _ended(log, thread, _WORK_UNITS[i]))
    if conditions & _MOVED:
        end = max(end, mover_idle(log))  # whoever has started it
    if conditions & _UNPACK0:
        end = max(end, load_i64(log, at.UNPACKED + 2 * thread))
    if conditions & _UNPACK1:
        end = max(end, load_i64(log, at.UNPACKED + 2 * thread + 1))
    for file in range(2):
        if conditions & _CLEARED[file]:
            end = max(end, load_i64(log, at.BANK_FREE + 2 * file + np.int64(t.unpack.bank[file])))
        if conditions & _VALID[file]:
            end = max(end, load_i64(log, at.BANK_VALID + 2 * file + np.int64(t.matrix.bank[file])))
    return end


_WORK_MASKS: Final = np.array([mask for mask, _ in _WORK], np.int64)
_WORK_UNITS: Final = np.array([unit for _, unit in _WORK], np.int64)


@kernel
def _dst_block(t: TileRecord, thread: Int, word: Int) -> Any:
    row = ((word >> _DST[0]) & _DST[1]) + np.int64(t.rwc[thread, RWC_DST]) + thread_field(t, thread, _MATH_OFFSET)
    return (row >> 3) % at.DST_BLOCKS


@kernel
def _unpacker_of(word: Int) -> Any:
    if word >> 24 == UNPACR:
        return (word >> _UNPACKER[0]) & _UNPACKER[1]
    return (word >> _NOP_UNPACKER[0]) & _NOP_UNPACKER[1]


@kernel
def _free(t: TileRecord, log: LogAddress, thread: Int, word: Int) -> AnyInt:
    """Cycle from which the word's unit takes it, as far as earlier words go."""
    opcode = word >> 24
    times = load_i64(log, at.TIMES + opcode)
    unit = times & at.UNIT_BITS
    if unit == at.UNPACK:
        which = _unpacker_of(word)
        free = max(load_i64(log, at.UNPACKER_FREE + which), load_i64(log, at.UNIT_FREE + unit))
        return max(free, load_i64(log, at.BANK_FREE + 2 * which + np.int64(t.unpack.bank[which])))
    if unit == at.MISC or opcode in _ALONE or opcode in (STALLWAIT, SEMWAIT):
        return np.int64(0)
    free = load_i64(log, at.UNIT_FREE + unit)
    if unit == at.MATRIX:
        for file in range(2):
            if (times >> at.WAITS_LSB + file) & 1:
                free = max(free, load_i64(log, at.BANK_VALID + 2 * file + np.int64(t.matrix.bank[file])))
        if times & at.ACCUMULATES:
            free = max(free, load_i64(log, at.DST_FREE + _dst_block(t, thread, word)))
    elif unit == at.VECTOR:
        for place in range(4):
            if (times >> at.LREG_LSB + place) & 1:
                free = max(free, load_i64(log, at.LREG_READY + ((word >> (4 * place + 4)) & 15)))
    return free


@kernel
def _yields(t: TileRecord, log: LogAddress, thread: Int, unit: Int, now: Int) -> bool:
    """Another thread has a word for the unit, and comes before this one: threads take turns.

    A thread lets others go first in one cycle, no longer: their words may wait for more than the unit.
    """
    yielded = load_i64(log, at.YIELDED + unit)
    if yielded not in (0, now):
        return False
    served = load_i64(log, at.SERVED + unit)
    for ahead in range((thread - served + 2) % THREADS):
        other = (served + 1 + ahead) % THREADS
        if t.frontend.gate_full[other] != 0 and t.frontend.wait_word[other] == 0:
            opcode = np.int64(t.frontend.gate_word[other]) >> 24
            of_unit = load_i64(log, at.TIMES + opcode) & at.UNIT_BITS == unit
            if of_unit and load_i64(log, at.NEXT + other) <= now:
                store_i64(log, at.YIELDED + unit, now)
                return True
    return False


@kernel
def _unpack_cycles(t: TileRecord, log: LogAddress, thread: Int, which: Int) -> AnyInt:
    """Cycles for which an UNPACR reads L1."""
    bank = config_bank(t, thread)
    x = np.int64(t.adc[thread, which, CH1_X]) - np.int64(t.adc[thread, which, CH0_X]) + 1
    place = _IN_FORMAT[0] if which == 0 else _IN_FORMAT[1]
    code = (np.int64(t.config[bank, place[0]]) >> place[1]) & place[2]
    mode = _TILEIZE[0] if which == 0 else _TILEIZE[1]
    tilizes = (np.int64(t.config[bank, mode[0]]) >> mode[1]) & mode[2]
    speed = load_i64(log, at.TILIZE_BYTES if tilizes else at.UNPACK_BYTES)
    size = (max(x, 1) * _BITS[code & 15] + 7) >> 3
    return max((size + speed - 1) // speed, np.int64(1))


@kernel
def _take(t: TileRecord, log: LogAddress, thread: Int, word: Int, now: Int, cycles: Int, block: Int) -> None:
    """The word has been executed in cycle `now`: its unit is busy, and its thread perhaps, too.

    Args:
        cycles: of `_cycles`, before it was executed.
        block: of Dst that it works on, likewise.
    """
    opcode = word >> 24
    times = load_i64(log, at.TIMES + opcode)
    unit = times & at.UNIT_BITS
    latency = (times >> at.LATENCY_LSB) & at.CYCLES_BITS
    next_word: AnyInt = now + 1
    done = now + max(cycles, latency)
    if unit == at.UNPACK:
        which = _unpacker_of(word)
        if opcode == UNPACR:
            address = load_i64(log, at.UNPACK_ADDRESS)
            next_word = now + address
            store_i64(log, at.UNIT_FREE + unit, next_word)
            store_i64(log, at.UNPACKER_FREE + which, now + max(cycles, address))
            done = now + address + cycles + load_i64(log, at.UNPACK_LATENCY)
        else:
            store_i64(log, at.UNPACKER_FREE + which, now + cycles)
        done = max(done, load_i64(log, at.UNPACKED + 2 * thread + which))
        store_i64(log, at.UNPACKED + 2 * thread + which, done)
    else:
        _later(log, at.UNIT_FREE + unit, now + cycles)
        if unit == at.PACK:
            done = now + cycles + load_i64(log, at.PACK_LATENCY)
        elif unit == at.SCALAR:
            next_word = now + cycles
            if opcode in _SCALAR_MEMORY:
                done = now + load_i64(log, at.SCALAR_MEMORY)
        elif unit == at.MOVER:
            done = now + 1  # a thread waits for it by a condition of its own
        elif unit == at.VECTOR and latency == _TWO_CYCLES:
            store_i64(log, at.LREG_READY + ((word >> 4) & 15), now + latency)
        if times & at.ACCUMULATES:
            store_i64(log, at.DST_FREE + block, now + load_i64(log, at.DST_AGAIN))
    _later(log, at.ENDED + thread * len(at.UNIT_NAMES) + unit, done)
    store_i64(log, at.NEXT + thread, next_word)
    store_i64(log, at.BUSY_CYCLES, load_i64(log, at.BUSY_CYCLES) + cycles)
    store_i64(log, at.UNIT_CYCLES + unit, load_i64(log, at.UNIT_CYCLES + unit) + cycles)
    if times & at.GUESSED:
        store_i64(log, at.GUESSED_CYCLES, load_i64(log, at.GUESSED_CYCLES) + cycles)


@kernel
def _cycles(t: TileRecord, log: LogAddress, thread: Int, word: Int) -> AnyInt:
    """Cycles for which the word will occupy its unit."""
    opcode = word >> 24
    if opcode == UNPACR:
        return _unpack_cycles(t, log, thread, _unpacker_of(word))
    if opcode == PACR:
        datums = np.int64(t.adc[thread, PACKER, CH1_X]) - np.int64(t.adc[thread, PACKER, CH0_X]) + 1
        speed = load_i64(log, at.PACK_DATUMS)
        return max((datums + speed - 1) // speed, np.int64(1))
    if opcode == XMOV:
        return xmov_cycles(t, log, thread)
    return (load_i64(log, at.TIMES + opcode) >> at.OCCUPANCY_LSB) & at.CYCLES_BITS


@kernel
def _owners(t: TileRecord) -> Any:
    owners = np.int64(0)
    for place in range(4):
        owners |= np.int64(t.src_owner[place >> 1, place & 1]) << place
    return owners


@kernel
def _hand_over(t: TileRecord, log: LogAddress, thread: Int, opcode: Int, before: Int, now: Int) -> None:
    """Banks that have changed hands: when the other side may use them."""
    changed = before ^ _owners(t)
    if changed == 0:
        return
    unpacks = load_i64(log, at.TIMES + opcode) & at.UNIT_BITS == at.UNPACK
    for place in range(4):
        if (changed >> place) & 1:
            if (before >> place) & 1:
                store_i64(log, at.BANK_FREE + place, now + 1)
            else:
                filled = load_i64(log, at.UNPACKED + 2 * thread + (place >> 1)) if unpacks else now + 1
                store_i64(log, at.BANK_VALID + place, filled)


@kernel
def _arrives(t: TileRecord, log: LogAddress, thread: Int, now: Int) -> Bool:
    """Bring the thread's next word to its gate; False when it has none. The expanders may need some cycles for it."""
    before, head = np.int64(t.frontend.fifo_count[thread]), np.int64(t.frontend.fifo_head[thread])
    arrived = expand(t, thread)
    taken = before - np.int64(t.frontend.fifo_count[thread])
    silent: AnyInt = np.int64(0)
    if taken > 0:
        silent = taken - (1 if arrived else 0)
        if load_i64(log, at.WAS_MOP + thread) and np.int64(t.frontend.fifo_word[thread, head]) >> 24 != MOP:
            silent += load_i64(log, at.AFTER_MOP)
        was_mop = 0
        for k in range(taken):
            if np.int64(t.frontend.fifo_word[thread, (head + k) % FIFO_SLOTS]) >> 24 == MOP:
                was_mop = 1
        store_i64(log, at.WAS_MOP + thread, was_mop)
        if t.frontend.fifo_count[thread] == 0:  # the last word that was pushed: is it there yet?
            silent = max(silent, load_i64(log, at.PUSHED + thread) + load_i64(log, at.PUSH_VISIBLE) - now)
    if silent > 0:
        store_i64(log, at.NEXT + thread, now + silent)
    return arrived


@kernel
def _try(t: TileRecord, table: Table, log: LogAddress, thread: Int, now: Int) -> Any:
    """(status, cycle) of a thread in a cycle, in which it may issue a word: DONE and others; HELD until `cycle`."""
    if t.frontend.gate_full[thread] == 0:
        if not _arrives(t, log, thread, now):
            return np.int64(EMPTY), np.int64(0)
        held = load_i64(log, at.NEXT + thread)
        if now < held:
            return np.int64(HELD), held
    word = np.int64(t.frontend.gate_word[thread])
    opcode = word >> 24
    wait = np.int64(t.frontend.wait_word[thread])
    if wait != 0:
        ends = _wait_ends(t, log, thread, wait)
        if now >= ends and wait_is_over(t, thread):
            t.frontend.wait_word[thread] = np.uint32(0)
            store_i64(log, at.NEXT + thread, now + 1)  # the block falls one cycle later (Y10)
            return np.int64(DONE), np.int64(0)
        if is_held(wait, opcode):
            return (np.int64(HELD), ends) if now < ends else (np.int64(WAIT), np.int64(0))
    free = _free(t, log, thread, word)
    if now < free:
        return np.int64(HELD), free
    times = load_i64(log, at.TIMES + opcode)
    unit = times & at.UNIT_BITS
    if _yields(t, log, thread, unit, now):
        return np.int64(HELD), now + 1
    cycles = _cycles(t, log, thread, word)
    block = _dst_block(t, thread, word) if times & at.ACCUMULATES else np.int64(0)
    owners = _owners(t)
    status = np.int64(call_handler(table, opcode, t, thread, word))
    if status in (DONE, SCHEDULED):
        t.frontend.gate_full[thread] = 0
        t.issued[thread, opcode] += 1
        store_i64(log, at.SERVED + unit, thread)
        store_i64(log, at.YIELDED + unit, 0)
        _take(t, log, thread, word, now, cycles, block)
        _hand_over(t, log, thread, opcode, owners, now)
        if t.frontend.wait_word[thread] != 0 and opcode in (STALLWAIT, SEMWAIT):
            store_i64(log, at.LATCHED + thread, now)
    elif status != WAIT:
        t.fault_thread = thread
        t.fault_word = np.uint32(word)
        t.fault_line = t.frontend.gate_line[thread]
    return status, np.int64(0)


@kernel
def cycle(t: TileRecord, table: Table, log: LogAddress, now: Int) -> Any:
    """One cycle of the coprocessor: (status, whether something moved, the next cycle in which something may move).

    The status is DONE, REFUSED or NOT_COMPILED. After NOT_COMPILED the same cycle is to be repeated: threads that have
    issued a word in it do not issue another one.
    """
    moved = False
    following: AnyInt = np.int64(NEVER)
    scheduled = t.macro.pending != 0 or load_i64(log, at.MACRO_CYCLE) == now
    if scheduled and load_i64(log, at.MACRO_CYCLE) != now:
        status = begin_macro_cycle(t, table)
        if status in (REFUSED, NOT_COMPILED):
            return np.int64(status), moved, following
        store_i64(log, at.MACRO_CYCLE, now)  # it is not begun again if a handler is missing below
        moved = status == DONE
    for i in range(THREADS):
        thread = (now + i) % THREADS
        held = load_i64(log, at.NEXT + thread)
        if now < held:
            following = min(following, held)
            continue
        if is_drained(t, thread):
            continue
        status, held = _try(t, table, log, thread, now)
        if status in (REFUSED, NOT_COMPILED):
            return np.int64(status), moved, following
        if status == HELD:
            following = min(following, held)
        elif status in (DONE, SCHEDULED):
            moved = True
    if scheduled and end_macro_cycle(t, table) != DONE:
        return np.int64(REFUSED), moved, following
    if moved or t.macro.pending != 0:
        following = now + 1
    return np.int64(DONE), moved, following
