"""Tiles of a chip that are counted in a client's own process, without Python (capi/counters.c).

What `CounterRecorder` and `Launches` do for a chip under Python, compiled: begin to count a tile, see which programs
have begun and ended, end a part of what was counted.
"""

from __future__ import annotations

import functools
from typing import Final

import numpy as np

import bhemu.counting.blocks as block_at
import bhemu.counting.layout as at
from bhemu.chip.clock.tiles import tile_of, touch
from bhemu.chip.state import CHIP_TYPE
from bhemu.counting.clock import note_states
from bhemu.counting.take import take_counters
from bhemu.loader.firmware_layout import GO
from bhemu.machine.agents import CORES, T0, T2
from bhemu.machine.buffer_memory import load_i64, store_i64
from bhemu.machine.compiler import Entry, compile_entry
from bhemu.machine.core_state import ASLEEP
from bhemu.machine.kernel import kernel
from bhemu.machine.state import POWER_ON_RESET, THREADS
from bhemu.machine.types import AnyInt, ChipRecord, Int, LogAddress, TileRecord
from bhemu.riscv.poll import wake
from bhemu.tile.reset import CORE_BIT

# The buffer of a chip
COUNT: Final = 0
"""How many tiles are followed."""
JUMP: Final = 1
"""The word at address 0 of the first of them when it was looked at last; -1: never."""
LAYOUT: Final = 2
"""Number of the firmware's layout; -1: no firmware that is known."""
LAYOUTS: Final = 3
"""How many layouts there are."""
FIRST_LAYOUT: Final = 4
"""Of each [the word at address 0, where the word with the index, the first go signal and the launch pointer are]."""
LAYOUT_COLUMNS: Final = 4
MOST_LAYOUTS: Final = 16
FIRST_TILE: Final = FIRST_LAYOUT + LAYOUT_COLUMNS * MOST_LAYOUTS
"""Of each tile, in these columns:"""
INDEX: Final = 0
HAPPENED: Final = 1
"""BEGUN, ENDED,"""
RUNNING: Final = 2
"""1: a program runs,"""
POINTER: Final = 3
"""launch pointer when it was looked at last,"""
HAD_T_CORES: Final = 4
"""1: T cores have run since all cores were held in reset (of use without a known firmware)."""
TILE_COLUMNS: Final = 5
BEGUN: Final = 1
"""A program has begun;"""
ENDED: Final = 2
"""one has ended, before that."""

_T_CORES: Final = int((1 << CORE_BIT[T0 : T2 + 1]).sum())


@kernel
def _find_layout(jump: Int, buffer: LogAddress) -> AnyInt:
    for number in range(load_i64(buffer, LAYOUTS)):
        if load_i64(buffer, FIRST_LAYOUT + LAYOUT_COLUMNS * number) == jump:
            return np.int64(number)
    return np.int64(-1)


@kernel
def _runs(t: TileRecord, buffer: LogAddress, layout: Int) -> AnyInt:
    """1: a program runs on a tile, as its firmware says."""
    begin = FIRST_LAYOUT + LAYOUT_COLUMNS * layout
    which = np.int64(t.l1_u32[load_i64(buffer, begin + 1) >> 2]) & 7
    signal = np.int64(t.l1[load_i64(buffer, begin + 2) + 4 * which])
    return np.int64(1 if signal == GO else 0)


@kernel
def _runs_by_reset(t: TileRecord, buffer: LogAddress, at_tile: Int) -> AnyInt:
    """The same where no firmware is known: some core is not held in reset, and the T cores are not back in it."""
    held = np.int64(t.soft_reset)
    t_cores_run, any_runs = held & _T_CORES != _T_CORES, held & POWER_ON_RESET != POWER_ON_RESET
    had = (load_i64(buffer, at_tile + HAD_T_CORES) != 0 or t_cores_run) and any_runs
    store_i64(buffer, at_tile + HAD_T_CORES, 1 if had else 0)
    return np.int64(1 if t_cores_run or (any_runs and not had) else 0)


def look_counted_entry(chip: ChipRecord, buffer: LogAddress, _: Int) -> AnyInt:
    """`Launches.look`: note in `HAPPENED` of each tile what has begun and ended; returns of how many tiles.

    Args:
        buffer: of the chip.
    """
    first = tile_of(chip, load_i64(buffer, FIRST_TILE + INDEX))
    jump = np.int64(first.l1_u32[0])
    changed = False
    if jump != load_i64(buffer, JUMP):
        store_i64(buffer, JUMP, jump)
        known = _find_layout(jump, buffer)
        changed = known != load_i64(buffer, LAYOUT)
        store_i64(buffer, LAYOUT, known)
    layout = load_i64(buffer, LAYOUT)
    count: Int = np.int64(0)
    for number in range(load_i64(buffer, COUNT)):
        at_tile = FIRST_TILE + TILE_COLUMNS * number
        t = tile_of(chip, load_i64(buffer, at_tile + INDEX))
        ran = load_i64(buffer, at_tile + RUNNING) != 0 and not changed
        before = load_i64(buffer, at_tile + POINTER)
        pointer: Int = before
        if layout >= 0:
            runs = _runs(t, buffer, layout) != 0
            pointer = np.int64(t.l1_u32[load_i64(buffer, FIRST_LAYOUT + LAYOUT_COLUMNS * layout + 3) >> 2])
        else:
            runs = _runs_by_reset(t, buffer, at_tile) != 0
        again = ran and pointer != before  # its end was not seen
        happened = 0
        if runs and (not ran or again):
            happened |= BEGUN
        if ran and (not runs or again):
            happened |= ENDED
        store_i64(buffer, at_tile + HAPPENED, happened)
        store_i64(buffer, at_tile + RUNNING, 1 if runs else 0)
        store_i64(buffer, at_tile + POINTER, pointer)
        count += 1 if happened != 0 else 0
    return count


def begin_counted_entry(t: TileRecord, log: LogAddress, _: Int) -> AnyInt:
    """Begin to count a tile: `log` is its buffer, of zeros."""
    store_i64(log, at.CUT_ROUND, np.int64(t.round_goal))
    store_i64(log, at.CUT_CLOCK, np.int64(t.clock))
    for core in range(CORES):
        block = at.CORE_BLOCKS + core * at.CORE_BLOCK
        store_i64(log, block + block_at.RUN_FIRST, -1)
        store_i64(log, block + block_at.RUN_END, -1)
        store_i64(log, block + block_at.FIRST_TRY, -1)
        store_i64(log, block + block_at.ASLEEP_SINCE, -1)
        store_i64(log, block + block_at.FIRST_ROUND, -1)
        store_i64(log, block + block_at.LAST_ROUND, -1)
    for thread in range(THREADS):
        for opcode in range(at.OPCODES):
            store_i64(log, at.ISSUED + thread * at.OPCODES + opcode, np.int64(t.issued[thread, opcode]))
    return np.int64(0)


def cut_counted_entry(chip: ChipRecord, index: Int, log: LogAddress, found: LogAddress) -> AnyInt:
    """`CounterRecorder.cut`, between two clocks, or where the chip has stopped: see `take_counters`."""
    if index != chip.current:
        touch(chip, index, chip.time + (1 if index < chip.current else 0))
    t = tile_of(chip, index)
    if t.sleepers != 0:
        for core in range(CORES):
            if t.core_state[core] == ASLEEP:
                wake(t, core, np.int64(t.round_goal))
    note_states(t, log)
    return take_counters(t, log, found, 1)


@kernel
def _section(numbers: LogAddress, which: Int) -> AnyInt:
    """(place where a section of taken counts begins, how many numbers it has); see `recorder.sections`."""
    place: Int = np.int64(at.HEAD)
    for before in range(which):
        place += load_i64(numbers, before) * (at.RUN_COLUMNS if before == at.RUNS else 2)
    return place, load_i64(numbers, which) * (at.RUN_COLUMNS if which == at.RUNS else 2)


def join_counted_entry(_: TileRecord, one: LogAddress, other: LogAddress, found: LogAddress) -> AnyInt:
    """Write what was taken twice, the second time later, as if it had been taken once; returns how many numbers.

    A place may then have several rows.
    """
    end: Int = np.int64(at.HEAD)
    for place in range(at.HEAD):
        a, b = load_i64(one, place), load_i64(other, place)
        if place < at.BEGIN or at.RAN <= place < at.FIRST or at.POLLED <= place < at.PCS:
            b += a
        elif at.FIRST <= place < at.LAST:
            b = a if a >= 0 else b
        elif at.LAST <= place < at.POLLED:
            b = max(a, b)
        store_i64(found, place, b)
    for which in range(at.BEGIN):
        for numbers in (one, other):
            place, count = _section(numbers, which)
            for i in range(count):
                store_i64(found, end + i, load_i64(numbers, place + i))
            end += count
    return end


@functools.cache
def counting_chip() -> tuple[Entry, ...]:
    """The compiled functions, for the C library."""
    return (
        compile_entry("look_counted", look_counted_entry, record=CHIP_TYPE),
        compile_entry("begin_counted", begin_counted_entry),
        compile_entry("cut_counted", cut_counted_entry, arguments=3, record=CHIP_TYPE),
        compile_entry("join_counted", join_counted_entry, arguments=3),
    )
