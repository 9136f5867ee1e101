"""The recorded schedule: `tile/schedule.py` with a row for each instruction of a core and each word of the coprocessor.

It is compiled on its own, of the same functions, and takes the same turns: within a turn a core executes one
instruction at a time, so that each can be seen. A tile without a recorder pays nothing.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg, var-annotated"

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.isa.memory_map import LOCAL_RAM_BASE, bounds, region
from bhemu.machine.agents import CORES, T0, T2
from bhemu.machine.core_state import ASLEEP, BLOCKED, IN_RESET, PUSH
from bhemu.machine.dispatch import CODE_CACHE, RUN_CORE, call_handler, has_handler, place_value
from bhemu.machine.kernel import kernel
from bhemu.machine.state import L1_SIZE, THREADS
from bhemu.recording import core_columns as column
from bhemu.recording import log as tensix_column
from bhemu.recording.buffer_memory import load_i64, store_i64
from bhemu.recording.core_figures import LOAD_DST, class_of, take_time, writes_float, writes_register
from bhemu.recording.recorder import CAPACITY as TENSIX_CAPACITY
from bhemu.recording.recorder import COUNT as TENSIX_COUNT
from bhemu.recording.recorder import HEADER as TENSIX_HEADER
from bhemu.recording.recorder import LOG_FULL, PUSHED, run_recorded
from bhemu.riscv.decode import sign_extend
from bhemu.riscv.execute import ACCESS, LIMIT, WORD
from bhemu.tile.interrupts import take_interrupt
from bhemu.tile.memory_map import PUSH_END, PUSH_FIRST
from bhemu.tile.schedule import (
    ADVANCED,
    NEEDS_HANDLER,
    after_run,
    begin_clocks,
    begin_coprocessor,
    begin_turn,
    end_coprocessor,
    turn_of_core,
    words_on_the_way,
)
from bhemu.tile.turns import COPROCESSOR, NOBODY, choose

# What the entry shall do, in place of a number of clocks
NOTE_ONLY: Final = -1
"""Write rows about what has happened outside of the schedule."""
GO_ON: Final = 0
ONE_ROUND: Final = 1 << 40
"""Bit: advance by one round; bit 0 says whether a clock begins with it."""

_LOAD, _LOAD_FLOAT, _STORE, _STORE_FLOAT, _AMO = 0x03, 0x07, 0x23, 0x27, 0x2F
_PCBUF: Final = region("sync").base
_MAILBOXES, _MAILBOXES_END = bounds("mailbox")
_LOCAL_RAM, _LOCAL_RAM_END = LOCAL_RAM_BASE, region("local_ram_upper").end


@kernel
def _block(core):
    """Where the block of a core begins in the buffer."""
    return column.CORE_BLOCKS + core * column.CORE_BLOCK


@kernel
def _tensix_rows(log):
    return load_i64(log, column.TENSIX_BEFORE) + load_i64(log, TENSIX_COUNT)


@kernel
def _pushed(log, core):
    """Words that a T core has pushed to its FIFO."""
    return load_i64(log, PUSHED + core - T0) if core >= T0 and core <= T2 else np.int64(0)


@kernel
def _row(log, moment, who, code, address, value, rounds, detail):
    """Write a row; the caller has made sure that there is room."""
    count = load_i64(log, column.COUNT)
    at = column.FIRST_ROW + count * column.COLUMNS
    store_i64(log, at + column.ROUND, moment)
    store_i64(log, at + column.WHO, who)
    store_i64(log, at + column.CODE, code)
    store_i64(log, at + column.ADDRESS, address)
    store_i64(log, at + column.VALUE, value)
    store_i64(log, at + column.ROUNDS, rounds)
    store_i64(log, at + column.TENSIX_ROWS, _tensix_rows(log))
    store_i64(log, at + column.DETAIL, detail)
    store_i64(log, column.COUNT, count + 1)


@kernel
def _add(log, at, amount):
    store_i64(log, at, load_i64(log, at) + amount)


@kernel
def _has_room(log):
    return load_i64(log, column.COUNT) + column.SPARE <= load_i64(log, column.CAPACITY)


@kernel
def _give_up(t, log, core, moment):
    """The access that the core was blocked on will not be made."""
    block = _block(core)
    first = load_i64(log, block + column.FIRST_TRY)
    pc = load_i64(log, block + column.FIRST_TRY_PC)
    address = np.int64(-1) if t.access_kind[core] == PUSH else np.int64(t.access_address[core])
    store_i64(log, block + column.FIRST_TRY, -1)
    _add(log, block + column.WAITED, moment - first)
    word = np.int64(t.l1_u32[pc >> 2])
    who = core | column.GAVE_UP << 4 | np.int64(t.access_size[core]) << 8
    _row(log, first, who, pc | word << 32, address, -1, moment - first, _pushed(log, core))


@kernel
def _woken(t, log, core):
    """The core has slept: count what it would have executed."""
    block = _block(core)
    before = load_i64(log, block + column.ASLEEP_SINCE)
    store_i64(log, block + column.ASLEEP_SINCE, -1)
    since = np.int64(t.poll_since[core])
    length = np.int64(t.poll_length[core])
    passed = np.int64(t.core_retired[core]) - before
    for step in range(length):
        turns = passed // length + (1 if step < passed % length else 0)
        _add(log, column.EXECUTED + core * column.WORDS + (np.int64(t.poll_pc[core, step]) >> 2), turns)
    _add(log, block + column.POLLED, passed)
    rounds = passed
    if t.core_state[core] == IN_RESET:  # it was not woken: its instructions were not counted either
        rounds = max(np.int64(t.now_round) - since, np.int64(0))
    else:
        store_i64(log, block + column.EXPECTED_PC, np.int64(t.poll_pc[core, passed % length]))
        store_i64(log, block + column.LAST_ROUND, since + passed - 1)
    _add(log, block + column.SLEPT, rounds)
    pc = np.int64(t.poll_pc[core, 0])
    word = np.int64(t.l1_u32[pc >> 2])
    address, value = np.int64(-1), np.int64(-1)
    if t.watch_count[core] > 0:
        address, value = np.int64(t.watch_address[core, 0]), np.int64(t.watch_value[core, 0])
    who = core | column.POLL << 4
    _row(log, since, who, pc | word << 32, address, value, rounds, _pushed(log, core) | length << 32)


@kernel
def note_states(t, log):
    """Rows about cores that fell asleep, woke up or were reset; at most two a core."""
    for core in range(CORES):
        block = _block(core)
        state = t.core_state[core]
        asleep = load_i64(log, block + column.ASLEEP_SINCE) >= 0
        if state == ASLEEP:
            if not asleep:
                store_i64(log, block + column.ASLEEP_SINCE, np.int64(t.core_retired[core]))
        elif asleep:
            _woken(t, log, core)
        if state == IN_RESET:
            if load_i64(log, block + column.FIRST_TRY) >= 0:
                _give_up(t, log, core, np.int64(t.now_round))
            store_i64(log, block + column.EXPECTED_PC, -1)


@kernel
def _address_of(t, core, word):
    """Where a load, store or atomic accesses memory, before it does; -1 for any other instruction."""
    opcode = word & 0x7F
    if word & 3 != 3:
        return np.int64(-1)
    base = np.int64(t.core_x[core, (word >> 15) & 31])
    if opcode in (_LOAD, _LOAD_FLOAT):
        return (base + sign_extend(word >> 20, 12)) & WORD
    if opcode in (_STORE, _STORE_FLOAT):
        return (base + sign_extend(((word >> 25) << 5) | ((word >> 7) & 31), 12)) & WORD
    if opcode == _AMO:
        return base
    return np.int64(-1)


@kernel
def _size_of(word):
    """Bytes of a load, store or atomic."""
    return np.int64(1) << ((word >> 12) & 3)


@kernel
def _is_device(address):
    """Neither L1 nor the core's own local RAM."""
    return address >= L1_SIZE and not (address >= _LOCAL_RAM and address < _LOCAL_RAM_END)


@kernel
def _found_change(log, block, pc, address, value):
    """True when the core loads again what it has just loaded with the same instruction, and finds another value."""
    again = load_i64(log, block + column.LAST_LOAD_PC) == pc
    again = again and load_i64(log, block + column.LAST_LOAD_ADDRESS) == address
    changed = again and load_i64(log, block + column.LAST_LOAD_VALUE) != value
    store_i64(log, block + column.LAST_LOAD_PC, pc)
    store_i64(log, block + column.LAST_LOAD_ADDRESS, address)
    store_i64(log, block + column.LAST_LOAD_VALUE, value)
    return changed


@kernel
def _count_pushes(t, log, core, is_push, address, retired):
    """Keep count of the words in a T core's FIFO."""
    if core >= T0 and core <= T2:
        if is_push:
            _add(log, PUSHED + core - T0, retired)
        elif address >= PUSH_FIRST and address < PUSH_END:
            _add(log, PUSHED + core - T0, 1)


@kernel
def _keep(t, log, core, moment, pc, word, address, loaded, stored, dividend, divisor, retired):
    """The core has executed an instruction (`.ttinsn`: up to four) in round `moment`: count it, write its row."""
    block = _block(core)
    waited = np.int64(0)
    flags = np.int64(0)
    first = load_i64(log, block + column.FIRST_TRY)
    if first >= 0:
        if load_i64(log, block + column.FIRST_TRY_PC) != pc:
            _give_up(t, log, core, moment)
        else:
            waited = moment - first
            store_i64(log, block + column.FIRST_TRY, -1)
            _add(log, block + column.WAITED, waited)
    is_push = word & 3 != 3
    if load_i64(log, block + column.FIRST_ROUND) < 0:
        store_i64(log, block + column.FIRST_ROUND, moment)
    expected = load_i64(log, block + column.EXPECTED_PC)
    if expected != pc:
        _row(log, moment, core | column.RESTARTED << 4, pc | word << 32, -1, -1, 0, 0)
    after = np.int64(t.core_pc[core])
    store_i64(log, block + column.EXPECTED_PC, after)
    store_i64(log, block + column.LAST_ROUND, moment)
    _add(log, block + column.RAN, 1)
    what = class_of(word, pc, after, address)
    _add(log, block + column.MIX + what, retired)
    cost = take_time(log, block, word, what, dividend, divisor)
    place = column.EXECUTED + core * column.WORDS + (pc >> 2)
    for i in range(retired if is_push else 1):
        _add(log, place + i, 1)
    _add(log, place + column.CYCLES - column.EXECUTED, cost)
    pushed = _pushed(log, core)
    _count_pushes(t, log, core, is_push, address, retired)
    kind = np.int64(column.PUSHES if is_push else column.INSTRUCTION)
    value = np.int64(-1)
    if is_push:
        value = np.int64(t.access_value[core])
    elif writes_register(word):
        register = (word >> 7) & 31
        if writes_float(word):
            value = np.int64(t.core_f[core, register])
        elif register != 0:
            value = np.int64(t.core_x[core, register])
        else:
            value = loaded
    elif address >= 0:
        value = stored
    if _is_device(address):
        kind = np.int64(column.DEVICE)
        if what <= LOAD_DST and _found_change(log, block, pc, address, value):
            flags |= column.CHANGED
    if address != _PCBUF and not (address >= _MAILBOXES and address < _MAILBOXES_END):
        flags |= column.OWN  # a full FIFO, manual or automatic TTSync
    if waited == 0 and flags & column.CHANGED == 0 and load_i64(log, column.WANTED) == 0:
        return
    size = _size_of(word) if address >= 0 else np.int64(0)
    who = core | kind << 4 | size << 8 | flags
    _row(log, moment, who, pc | word << 32, address, value, waited, pushed)
    if is_push and load_i64(log, column.WANTED) != 0:
        for i in range(1, retired):
            code = np.int64(t.l1_u32[(pc >> 2) + i])
            value = (code >> 2) | ((code & 3) << 30)
            _row(log, moment, who, (pc + 4 * i) | code << 32, -1, value, 0, pushed + i)


@kernel
def _turn_of_core(t, table, core, log, continuing):
    """`turn_of_core` of the schedule, an instruction at a time."""
    if not has_handler(table, RUN_CORE):
        t.needs_place = RUN_CORE
        return NEEDS_HANDLER
    under_watch = t.debug_watch[core] != 0
    recording = False
    end = load_i64(log, column.CONTINUES_UNTIL)
    if under_watch:
        if t.interrupts != 0:
            take_interrupt(t, core)  # before the pc is looked at
    elif not continuing:
        end, recording = begin_turn(t, core)
    block = _block(core)
    goal = np.int64(t.round_goal)
    while True:
        if not _has_room(log):
            store_i64(log, column.CONTINUES, 1 + core)
            store_i64(log, column.CONTINUES_UNTIL, end)
            return LOG_FULL
        moment = np.int64(t.core_round[core])
        before = np.int64(t.core_retired[core])
        pc = np.int64(t.core_pc[core])
        word = np.int64(t.l1_u32[pc >> 2]) if pc < L1_SIZE else np.int64(0)
        address = _address_of(t, core, word)
        dividend = np.int64(t.core_x[core, (word >> 15) & 31])
        divisor = np.int64(t.core_x[core, (word >> 20) & 31])
        stored = np.int64(t.core_f[core, (word >> 20) & 31]) if word & 0x7F == _STORE_FLOAT else divisor
        on = False
        if under_watch:
            reason = ACCESS
            result = turn_of_core(t, table, core)
        else:
            t.round_goal = moment + 1
            reason = call_handler(table, RUN_CORE, t, core, place_value(table, CODE_CACHE))
            t.round_goal = goal
            on = reason == LIMIT and t.core_round[core] > moment and moment + 1 < end and not recording
            result = ADVANCED if on else after_run(t, table, core, reason, recording)
        retired = np.int64(t.core_retired[core]) - before
        if retired > 0:
            loaded = np.int64(t.device_value) if reason == ACCESS else np.int64(-1)
            _keep(t, log, core, moment, pc, word, address, loaded, stored, dividend, divisor, retired)
        elif t.core_state[core] == BLOCKED and load_i64(log, block + column.FIRST_TRY) < 0:
            store_i64(log, block + column.FIRST_TRY, moment)
            store_i64(log, block + column.FIRST_TRY_PC, pc)
        if not on:
            return result


@kernel
def _moved(log, first, rounds):
    """The coprocessor has executed something in each of these rounds."""
    start, length = load_i64(log, column.MOVED_FROM), load_i64(log, column.MOVED_ROUNDS)
    if length > 0 and start + length != first and load_i64(log, column.WANTED) != 0:
        _row(log, start, column.MOVED << 4, 0, -1, -1, length, 0)
    if length == 0 or start + length != first:
        store_i64(log, column.MOVED_FROM, first)
        length = np.int64(0)
    store_i64(log, column.MOVED_ROUNDS, length + rounds)


@kernel
def _turn_of_coprocessor(t, table, log):
    """The turn of the schedule; rows of the coprocessor's words say in which round they were executed."""
    count = load_i64(log, TENSIX_COUNT)
    room = (load_i64(log, TENSIX_CAPACITY) - count) // THREADS
    if room == 0 or not _has_room(log):
        return LOG_FULL
    rounds, looked_on = begin_coprocessor(t)
    on_the_way = words_on_the_way(t)
    before = np.int64(t.clock)
    first = np.int64(t.tensix_round)
    status = run_recorded(t, table, min(rounds, room), log)
    moved = np.int64(t.clock) - before
    t.clock = before
    for i in range(count, load_i64(log, TENSIX_COUNT)):
        at = TENSIX_HEADER + i * tensix_column.COLUMNS + tensix_column.CLOCK
        store_i64(log, at, load_i64(log, at) - before + first)
    if moved > 0:
        _moved(log, first, moved)
    return end_coprocessor(t, status, moved, looked_on, on_the_way)


@kernel
def _advance(t, table, log, one_round):
    """`schedule.advance`, or `one_round.advance_round`; LOG_FULL when the host must take rows away."""
    result = ADVANCED
    while result == ADVANCED:
        goal = np.int64(t.round_goal)
        continues = load_i64(log, column.CONTINUES)
        store_i64(log, column.CONTINUES, 0)
        agent = continues - 1 if continues != 0 else choose(t)
        if agent == NOBODY:
            break
        if agent == COPROCESSOR:
            result = _turn_of_coprocessor(t, table, log)
        else:
            result = _turn_of_core(t, table, agent, log, continues != 0)
        if result != LOG_FULL:
            note_states(t, log)
        if one_round and agent == COPROCESSOR and result == ADVANCED and t.round_goal != goal:
            break
    t.clock = t.round_goal - t.free_rounds
    return result


def advance_recorded(t, table, amount, log):
    """`schedule.advance_entry` with a recorder.

    Args:
        amount: of clocks, GO_ON, NOTE_ONLY, or ONE_ROUND with bit 0.
        log: address of the buffer of core_columns.py, with room for the rows of two turns.
    """
    one_round = amount >= ONE_ROUND
    clocks = amount - ONE_ROUND if one_round else amount
    note_states(t, log)
    if amount == NOTE_ONLY:
        return ADVANCED
    if clocks > 0:
        begin_clocks(t, clocks)
        note_states(t, log)
    return _advance(t, table, log, one_round)
