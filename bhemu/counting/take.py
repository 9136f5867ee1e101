"""Taking what has been counted out of a recorder's buffer: as runs, waits and words, in the order of layout.py."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import bhemu.counting.blocks as block_at
import bhemu.counting.layout as at
from bhemu.counting.clock import block_of, change, close, wait
from bhemu.counting.states import add
from bhemu.machine.agents import CORES
from bhemu.machine.buffer_memory import load_i64, store_i64
from bhemu.machine.core_state import ASLEEP, HALT_EBREAK, HALTED, PUSH
from bhemu.machine.kernel import kernel
from bhemu.machine.state import THREADS
from bhemu.machine.types import AnyInt, Int, LogAddress, TileRecord

_PAGE: Final = 1 << at.PAGE_BITS


@kernel
def _empty_tables(log: LogAddress) -> None:
    """Runs of the cores' tables become differences."""
    for core in range(CORES):
        for row in range(at.TABLE_ROWS):
            place = at.TABLES + core * at.TABLE + 2 * row
            run = load_i64(log, place)
            if run != 0:
                times = load_i64(log, place + 1)
                change(log, core, run >> at.END_BITS, times)
                change(log, core, run & ((1 << at.END_BITS) - 1), -times)
                store_i64(log, place, 0)
                store_i64(log, place + 1, 0)


@kernel
def _take_runs(log: LogAddress, found: LogAddress, end: Int) -> Any:
    """Write runs from number `end` on, and clear the differences; returns the number after the last one."""
    for core in range(CORES):
        times: Int = np.int64(0)
        first: Int = np.int64(0)
        for page in range(at.PAGES_OF_CORE):
            if load_i64(log, at.PAGES + core * at.PAGES_OF_CORE + page) == 0:
                continue
            store_i64(log, at.PAGES + core * at.PAGES_OF_CORE + page, 0)
            for word in range(page * _PAGE, min((page + 1) * _PAGE, at.WORDS + 1)):
                place = at.DIFFERENCES + core * (at.WORDS + 1) + word
                change = load_i64(log, place)
                if change == 0:
                    continue
                store_i64(log, place, 0)
                if times != 0:
                    store_i64(found, end, core)
                    store_i64(found, end + 1, first)
                    store_i64(found, end + 2, word - first)
                    store_i64(found, end + 3, times)
                    add(found, at.RAN + core, (word - first) * times)
                    end += at.RUN_COLUMNS
                times += change
                first = np.int64(word)
    return end


@kernel
def _take_pieces(found: LogAddress, end: Int) -> Any:
    """Write pieces of L1 from number `end` on, by the runs; returns the number after the last one."""
    core: Int = np.int64(-1)
    for place in range(at.HEAD, at.HEAD + at.RUN_COLUMNS * load_i64(found, at.RUNS), at.RUN_COLUMNS):
        first = load_i64(found, place + 1)
        last = first + load_i64(found, place + 2)
        if load_i64(found, place) == core and first - load_i64(found, end - 1) <= at.GAP:
            store_i64(found, end - 1, last)
            continue
        core = load_i64(found, place)
        store_i64(found, end, first)
        store_i64(found, end + 1, last)
        end += 2
    return end


@kernel
def _cut_waits(t: TileRecord, log: LogAddress) -> None:
    """An access that a core is blocked in counts in each part of a recording, up to the cut."""
    goal = np.int64(t.round_goal)
    for core in range(CORES):
        block = block_of(core)
        first = load_i64(log, block + block_at.FIRST_TRY)
        if first < 0:
            continue
        if t.core_state[core] != ASLEEP:
            address = np.int64(-1) if t.access_kind[core] == PUSH else np.int64(t.access_address[core])
            wait(log, core, np.int64(0), load_i64(log, block + block_at.FIRST_TRY_PC), address, goal - first)
        store_i64(log, block + block_at.FIRST_TRY, goal)


@kernel
def take_counters(t: TileRecord, log: LogAddress, found: LogAddress, cuts: Int) -> AnyInt:
    """Write what has been counted since the last time as layout.py says; returns how many numbers.

    Args:
        log: the buffer.
        found: gets the numbers.
        cuts: a part of the recording ends; otherwise there is only no room left.
    """
    goal = np.int64(t.round_goal)
    store_i64(found, at.BEGIN, load_i64(log, at.CUT_ROUND))
    store_i64(found, at.END, goal)
    store_i64(found, at.CLOCKS, np.int64(t.clock) - load_i64(log, at.CUT_CLOCK))
    if cuts:
        store_i64(log, at.CUT_ROUND, goal)
        store_i64(log, at.CUT_CLOCK, np.int64(t.clock))
        _cut_waits(t, log)
    for core in range(CORES):
        block = block_of(core)
        close(log, core)
        polled = load_i64(log, block + block_at.POLLED)
        store_i64(found, at.RAN + core, -polled - load_i64(log, block + block_at.FUSED))  # and what it has executed
        store_i64(found, at.FIRST + core, load_i64(log, block + block_at.FIRST_ROUND))
        store_i64(found, at.LAST + core, load_i64(log, block + block_at.LAST_ROUND))
        store_i64(found, at.POLLED + core, polled)
        store_i64(found, at.PCS + core, np.int64(t.core_pc[core]))
        by_ebreak = t.core_state[core] == HALTED and t.core_halt_reason[core] == HALT_EBREAK
        store_i64(found, at.HALTED + core, 1 if by_ebreak else 0)
        store_i64(log, block + block_at.FUSED, 0)
        store_i64(log, block + block_at.FIRST_ROUND, -1)
        store_i64(log, block + block_at.LAST_ROUND, -1)
        store_i64(log, block + block_at.POLLED, 0)
    _empty_tables(log)
    end: Int = _take_runs(log, found, np.int64(at.HEAD))
    store_i64(found, at.RUNS, (end - at.HEAD) // at.RUN_COLUMNS)
    store_i64(found, at.WAITED, load_i64(log, at.WAIT_COUNT))
    if load_i64(log, at.WAIT_COUNT) != 0:
        store_i64(log, at.WAIT_COUNT, 0)
        for place in range(at.MOST_WAITS):
            key = load_i64(log, at.WAITS + 2 * place)
            if key != 0:
                store_i64(found, end, key - 1)
                store_i64(found, end + 1, load_i64(log, at.WAITS + 2 * place + 1))
                store_i64(log, at.WAITS + 2 * place, 0)
                store_i64(log, at.WAITS + 2 * place + 1, 0)
                end += 2
    words: Int = np.int64(0)
    for thread in range(THREADS):
        for opcode in range(at.OPCODES):
            issued = np.int64(t.issued[thread, opcode])
            number = thread * at.OPCODES + opcode
            if issued != load_i64(log, at.ISSUED + number):
                store_i64(found, end, number)
                store_i64(found, end + 1, issued - load_i64(log, at.ISSUED + number))
                store_i64(log, at.ISSUED + number, issued)
                end += 2
                words += 1
    store_i64(found, at.WORDS_EXECUTED, words)
    pieces = end
    end = _take_pieces(found, end)
    store_i64(found, at.PIECES, (end - pieces) // 2)
    return end


def take_counters_entry(t: TileRecord, log: LogAddress, found: LogAddress, cuts: Int) -> AnyInt:
    """`take_counters` for the host."""
    return take_counters(t, log, found, cuts)
