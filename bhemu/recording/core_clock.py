"""The observer of a tile's schedule that writes a row for each instruction of a core and each word of the coprocessor.

The schedule with it (`make_schedule`) is compiled on its own: a tile without a recorder pays nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

import bhemu.recording.core_columns as column
from bhemu.counting.states import accessed_address, add, make_state_notes
from bhemu.isa.memory_map import LOCAL_RAM_BASE, bounds, region
from bhemu.machine.agents import T0, T2
from bhemu.machine.buffer_memory import load_i64, store_i64
from bhemu.machine.core_state import BLOCKED
from bhemu.machine.kernel import kernel
from bhemu.machine.state import L1_SIZE, THREADS
from bhemu.machine.types import AnyInt, Bool, Int, LogAddress, Table, TileRecord
from bhemu.recording.core_figures import LOAD_DST, class_of, take_time, writes_float, writes_register
from bhemu.recording.recorder import CAPACITY as TENSIX_CAPACITY
from bhemu.recording.recorder import CLOCK_OFFSET, PUSHED, WORDS
from bhemu.recording.recorder import COUNT as TENSIX_COUNT
from bhemu.recording.recorder import after_word as row_written
from bhemu.riscv.execute import ACCESS, LIMIT
from bhemu.tensix.frontend.run import make_front_end
from bhemu.tile.memory_map import PUSH_END, PUSH_FIRST
from bhemu.tile.observer import HOW, TileObserver
from bhemu.tile.schedule import make_schedule

_STORE_FLOAT: Final = 0x27
_PCBUF: Final = region("sync").base
_MAILBOXES, _MAILBOXES_END = bounds("mailbox")
_LOCAL_RAM, _LOCAL_RAM_END = LOCAL_RAM_BASE, region("local_ram_upper").end


@kernel
def _block(core: Int) -> Int:
    """Where the block of a core begins in the buffer."""
    return column.CORE_BLOCKS + core * column.CORE_BLOCK


@kernel
def _tensix_rows(log: LogAddress) -> AnyInt:
    return load_i64(log, column.TENSIX_BEFORE) + load_i64(log, TENSIX_COUNT)


@kernel
def _pushed(log: LogAddress, core: Int) -> Int:
    """Words that a T core has pushed to its FIFO."""
    return load_i64(log, PUSHED + core - T0) if core >= T0 and core <= T2 else np.int64(0)


@kernel
def _row(
    log: LogAddress, at_round: Int, who: Int, code: Int, address: Int, value: Int, rounds: Int, detail: Int
) -> None:
    """Write a row; the caller has made sure that there is room."""
    count = load_i64(log, column.COUNT)
    at = column.FIRST_ROW + count * column.COLUMNS
    store_i64(log, at + column.ROUND, at_round)
    store_i64(log, at + column.WHO, who)
    store_i64(log, at + column.CODE, code)
    store_i64(log, at + column.ADDRESS, address)
    store_i64(log, at + column.VALUE, value)
    store_i64(log, at + column.ROUNDS, rounds)
    store_i64(log, at + column.TENSIX_ROWS, _tensix_rows(log))
    store_i64(log, at + column.DETAIL, detail)
    store_i64(log, column.COUNT, count + 1)


@kernel
def _count(log: LogAddress, core: Int, word: Int, times: Int) -> None:
    """The instruction at a word of L1 has been executed."""
    block = _block(core)
    if word < load_i64(log, block + column.LOW):
        store_i64(log, block + column.LOW, word)
    if word >= load_i64(log, block + column.HIGH):
        store_i64(log, block + column.HIGH, word + 1)
    add(log, column.COUNTS + 2 * (core * column.WORDS + word), times)


@kernel
def _compare(t: TileRecord, log: LogAddress, who: Int, at_round: Int, place: Int) -> None:
    """Write a row for each watched word that an agent has changed.

    Args:
        who: a core, or BY_THREAD and so on.
        place: pc, or the line of a word.
    """
    for number in range(load_i64(log, column.WATCHES)):
        at = column.WATCHED + 2 * number
        value, before = np.int64(t.l1_u32[load_i64(log, at)]), load_i64(log, at + 1)
        if value == before:
            continue
        store_i64(log, at + 1, value)
        count = load_i64(log, column.CHANGES)
        if count >= column.MOST_CHANGES:
            add(log, column.CHANGES_LOST, 1)
            continue
        row = column.CHANGED_ROWS + count * column.CHANGE_COLUMNS
        store_i64(log, row, at_round)
        store_i64(log, row + 1, who)
        store_i64(log, row + 2, place)
        store_i64(log, row + 3, number)
        store_i64(log, row + 4, before)
        store_i64(log, row + 5, value)
        store_i64(log, column.CHANGES, count + 1)


@kernel
def _has_room(log: LogAddress) -> Bool:
    return load_i64(log, column.COUNT) + column.SPARE <= load_i64(log, column.CAPACITY)


@kernel
def _expects(log: LogAddress, core: Int, pc: Int) -> None:
    """Where the core continues unless it is reset."""
    store_i64(log, _block(core) + column.EXPECTED_PC, pc)


@kernel
def _spent(
    t: TileRecord, log: LogAddress, bits: Int, since: Int, pc: Int, address: Int, value: Int, rounds: Int, detail: Int
) -> None:
    """Write a row about a core that was blocked or polled."""
    word = np.int64(t.l1_u32[pc >> 2])
    _row(log, since, bits, pc | word << 32, address, value, rounds, _pushed(log, bits & 7) | detail << 32)


_give_up, _note_states = make_state_notes(column.STATES, _block, _expects, _count, _spent)


@kernel
def _size_of(word: Int) -> Int:
    """Bytes of a load, store or atomic."""
    return np.int64(1) << ((word >> 12) & 3)


@kernel
def _is_device(address: Int) -> Bool:
    """Neither L1 nor the core's own local RAM."""
    return address >= L1_SIZE and not (address >= _LOCAL_RAM and address < _LOCAL_RAM_END)


@kernel
def _found_change(log: LogAddress, block: Int, pc: Int, address: Int, value: Int) -> Any:
    """True when the core loads again what it has just loaded with the same instruction, and finds another value."""
    again = load_i64(log, block + column.LAST_LOAD_PC) == pc
    again = again and load_i64(log, block + column.LAST_LOAD_ADDRESS) == address
    changed = again and load_i64(log, block + column.LAST_LOAD_VALUE) != value
    store_i64(log, block + column.LAST_LOAD_PC, pc)
    store_i64(log, block + column.LAST_LOAD_ADDRESS, address)
    store_i64(log, block + column.LAST_LOAD_VALUE, value)
    return changed


@kernel
def _count_pushes(t: TileRecord, log: LogAddress, core: Int, is_push: Int, address: Int, retired: Int) -> None:
    """Keep count of the words in a T core's FIFO."""
    if core >= T0 and core <= T2:
        if is_push:
            add(log, PUSHED + core - T0, retired)
        elif address >= PUSH_FIRST and address < PUSH_END:
            add(log, PUSHED + core - T0, 1)


@kernel
def _keep(t: TileRecord, log: LogAddress, core: Int, at_round: Int, loaded: Int, retired: Int) -> None:
    """The core has executed an instruction (`.ttinsn`: up to four) in round `at_round`: count it, write its row."""
    pc, word = load_i64(log, column.BEFORE_PC), np.int64(load_i64(log, column.BEFORE_WORD))
    address, stored = load_i64(log, column.BEFORE_ADDRESS), load_i64(log, column.BEFORE_STORED)
    dividend, divisor = load_i64(log, column.BEFORE_RS1), load_i64(log, column.BEFORE_RS2)
    block = _block(core)
    waited = np.int64(0)
    flags = np.int64(0)
    first = load_i64(log, block + column.FIRST_TRY)
    if first >= 0:
        if load_i64(log, block + column.FIRST_TRY_PC) != pc:
            _give_up(t, log, core, at_round)
        else:
            waited = at_round - first
            store_i64(log, block + column.FIRST_TRY, -1)
            add(log, block + column.WAITED, waited)
    is_push = word & 3 != 3
    if load_i64(log, block + column.FIRST_ROUND) < 0:
        store_i64(log, block + column.FIRST_ROUND, at_round)
    expected = load_i64(log, block + column.EXPECTED_PC)
    if expected != pc:
        _row(log, at_round, core | column.RESTARTED << 4, pc | word << 32, -1, -1, 0, 0)
    after = np.int64(t.core_pc[core])
    store_i64(log, block + column.EXPECTED_PC, after)
    store_i64(log, block + column.LAST_ROUND, at_round)
    add(log, block + column.RAN, 1)
    what = class_of(word, pc, after, address)
    add(log, block + column.MIX + what, retired)
    cost = take_time(log, block, word, what, dividend, divisor)
    for i in range(retired if is_push else 1):
        _count(log, core, (pc >> 2) + i, 1)
    add(log, column.COUNTS + 2 * (core * column.WORDS + (pc >> 2)) + 1, cost)
    pushed = _pushed(log, core)
    _count_pushes(t, log, core, is_push, address, retired)
    kind = np.int64(column.PUSHES if is_push else column.INSTRUCTION)
    value: Int = np.int64(-1)
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
    _row(log, at_round, who, pc | word << 32, address, value, waited, pushed)
    if is_push and load_i64(log, column.WANTED) != 0:
        for i in range(1, retired):
            code = np.int64(t.l1_u32[(pc >> 2) + i])
            value = (code >> 2) | ((code & 3) << 30)
            _row(log, at_round, who, (pc + 4 * i) | code << 32, -1, value, 0, pushed + i)


@kernel
def _before_core(t: TileRecord, log: LogAddress, core: Int) -> None:
    """Remember what the instruction finds."""
    if load_i64(log, _block(core) + column.ASLEEP_SINCE) >= 0:
        _note_states(t, log)  # while the count of retired instructions tells how long
    pc = np.int64(t.core_pc[core])
    word = np.int64(t.l1_u32[pc >> 2]) if pc < L1_SIZE else np.int64(0)
    source = (word >> 20) & 31
    store_i64(log, column.BEFORE_ROUND, np.int64(t.core_round[core]))
    store_i64(log, column.BEFORE_RETIRED, np.int64(t.core_retired[core]))
    store_i64(log, column.BEFORE_PC, pc)
    store_i64(log, column.BEFORE_WORD, word)
    store_i64(log, column.BEFORE_ADDRESS, accessed_address(t, core, word))
    store_i64(log, column.BEFORE_RS1, np.int64(t.core_x[core, (word >> 15) & 31]))
    store_i64(log, column.BEFORE_RS2, np.int64(t.core_x[core, source]))
    if word & 0x7F == _STORE_FLOAT:
        store_i64(log, column.BEFORE_STORED, np.int64(t.core_f[core, source]))
    else:
        store_i64(log, column.BEFORE_STORED, np.int64(t.core_x[core, source]))


@kernel
def _after_core(t: TileRecord, log: LogAddress, core: Int, reason: Int) -> None:
    block = _block(core)
    at_round = load_i64(log, column.BEFORE_ROUND)
    retired = np.int64(t.core_retired[core]) - load_i64(log, column.BEFORE_RETIRED)
    if retired > 0:
        loaded = np.int64(t.device_value) if reason == ACCESS else np.int64(-1)
        _keep(t, log, core, at_round, loaded, retired)
        _compare(t, log, core, at_round, load_i64(log, column.BEFORE_PC))
    elif t.core_state[core] == BLOCKED and load_i64(log, block + column.FIRST_TRY) < 0:
        store_i64(log, block + column.FIRST_TRY, at_round)
        store_i64(log, block + column.FIRST_TRY_PC, load_i64(log, column.BEFORE_PC))
    if reason != LIMIT:  # otherwise it has changed no state
        _note_states(t, log)


@kernel
def _moved(log: LogAddress, first: Int, rounds: Int) -> None:
    """The coprocessor has executed something in each of these rounds."""
    start, length = load_i64(log, column.MOVED_FROM), load_i64(log, column.MOVED_ROUNDS)
    if length > 0 and start + length != first and load_i64(log, column.WANTED) != 0:
        _row(log, start, column.MOVED << 4, 0, -1, -1, length, 0)
    if length == 0 or start + length != first:
        store_i64(log, column.MOVED_FROM, first)
        length = np.int64(0)
    store_i64(log, column.MOVED_ROUNDS, length + rounds)


@kernel
def _before_words(t: TileRecord, log: LogAddress) -> None:
    """Rows of the coprocessor's words say in which round they were executed."""
    store_i64(log, CLOCK_OFFSET, np.int64(t.tensix_round) - np.int64(t.clock))


@kernel
def _after_words(t: TileRecord, log: LogAddress, first: Int, moved: Int) -> None:
    if moved > 0:
        _moved(log, first, moved)
    store_i64(log, column.FREE, np.int64(t.free_rounds) + moved)
    _compare(t, log, column.BY_UNIT, first, 0)


@kernel
def _after_word(t: TileRecord, log: LogAddress, thread: Int) -> None:
    row_written(t, log, thread)
    at_round = np.int64(t.clock) + load_i64(log, CLOCK_OFFSET)
    _compare(t, log, column.BY_THREAD + thread, at_round, np.int64(t.frontend.gate_line[thread]))


_WORDS: Final = replace(WORDS, after_word=_after_word)


@kernel
def _begin(t: TileRecord, log: LogAddress) -> None:
    """Note what has happened outside of the schedule: words executed there have moved the clock, too."""
    if np.int64(t.free_rounds) != load_i64(log, column.FREE):
        store_i64(log, column.BREAK, load_i64(log, column.GOAL))
    store_i64(log, column.GOAL, np.int64(t.round_goal))
    _compare(t, log, column.BY_OTHERS, np.int64(t.round_goal), 0)
    _note_states(t, log)


@kernel
def _is_full(log: LogAddress) -> bool:
    words = load_i64(log, TENSIX_COUNT) + THREADS > load_i64(log, TENSIX_CAPACITY)
    changes = 2 * load_i64(log, column.CHANGES) > column.MOST_CHANGES
    return words or changes or not _has_room(log) or load_i64(log, column.BREAK) >= 0


_schedule: Final = make_schedule(
    TileObserver(_WORDS, True, _is_full, _begin, _before_core, _after_core, _before_words, _after_words),
    make_front_end(_WORDS).run,
)
_move: Final = _schedule.move


def advance_recorded_entry(t: TileRecord, table: Table, log: LogAddress) -> AnyInt:
    """`schedule.advance_tile_entry` with a recorder.

    Args:
        log: address of the buffer of core_columns.py, which says what to do, too.
    """
    return _move(t, table, load_i64(log, HOW), log)
