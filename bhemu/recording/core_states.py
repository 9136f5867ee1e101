"""What an observer notes when cores fall asleep, wake up or are reset, from one text for all recorders."""

from __future__ import annotations

from typing import Any

import numpy as np

import bhemu.recording.core_columns as column
from bhemu.machine.agents import CORES
from bhemu.machine.buffer_memory import load_i64, store_i64
from bhemu.machine.core_state import ASLEEP, IN_RESET, PUSH
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Bool, Int, LogAddress, TileRecord


@kernel
def block_of(core: Int) -> Int:
    """Where the block of a core begins in the buffer."""
    return column.CORE_BLOCKS + core * column.CORE_BLOCK


@kernel
def add(log: LogAddress, at: Int, amount: Int) -> None:
    """Add to a number of the buffer."""
    store_i64(log, at, load_i64(log, at) + amount)


@kernel(forceinline=True)
def slept(log: LogAddress, core: Int) -> Bool:
    """The core was asleep when that was last looked at."""
    return load_i64(log, block_of(core) + column.ASLEEP_SINCE) >= 0


def make_state_notes(count: Any, spent: Any) -> tuple[Any, Any]:
    """Kernels for a recorder.

    Args:
        count: `count(log, core, word, times)`: the instruction at a word of L1 was executed so often.
        spent: `spent(t, log, bits, since, pc, address, value, rounds, detail)`: a core was blocked or polled. `bits`
            are those of the column WHO, `detail` those of DETAIL above bit 31.

    Returns:
        `give_up(t, log, core, at_round)`: the access that the core was blocked on will not be made; and
        `note_states(t, log)`, to be called when cores may have fallen asleep, been woken or reset, before those that
        woke up execute.
    """

    @kernel
    def give_up(t: TileRecord, log: LogAddress, core: Int, at_round: Int) -> None:
        block = block_of(core)
        first = load_i64(log, block + column.FIRST_TRY)
        pc = load_i64(log, block + column.FIRST_TRY_PC)
        address = np.int64(-1) if t.access_kind[core] == PUSH else np.int64(t.access_address[core])
        store_i64(log, block + column.FIRST_TRY, -1)
        add(log, block + column.WAITED, at_round - first)
        bits = core | column.GAVE_UP << 4 | np.int64(t.access_size[core]) << 8
        spent(t, log, bits, first, pc, address, np.int64(-1), at_round - first, np.int64(0))

    @kernel
    def woken(t: TileRecord, log: LogAddress, core: Int) -> None:
        """The core has slept: count what it would have executed."""
        block = block_of(core)
        before = load_i64(log, block + column.ASLEEP_SINCE)
        store_i64(log, block + column.ASLEEP_SINCE, -1)
        since = np.int64(t.poll_since[core])
        length = np.int64(t.poll_length[core])
        passed = np.int64(t.core_retired[core]) - before
        for step in range(length):
            turns = passed // length + (1 if step < passed % length else 0)
            if turns > 0:
                count(log, core, np.int64(t.poll_pc[core, step]) >> 2, turns)
        add(log, block + column.POLLED, passed)
        rounds = passed
        if t.core_state[core] == IN_RESET:  # it was not woken: its instructions were not counted either
            rounds = max(np.int64(t.now_round) - since, np.int64(0))
        else:
            store_i64(log, block + column.EXPECTED_PC, np.int64(t.poll_pc[core, passed % length]))
            store_i64(log, block + column.LAST_ROUND, since + passed - 1)
        add(log, block + column.SLEPT, rounds)
        pc = np.int64(t.poll_pc[core, 0])
        address, value = np.int64(-1), np.int64(-1)
        if t.watch_count[core] > 0:
            address, value = np.int64(t.watch_address[core, 0]), np.int64(t.watch_value[core, 0])
        spent(t, log, core | column.POLL << 4, since, pc, address, value, rounds, length)

    @kernel
    def note_states(t: TileRecord, log: LogAddress) -> None:
        states = np.int64(0)
        for core in range(CORES):
            state = t.core_state[core]
            states |= ((1 if state == ASLEEP else 0) | (2 if state == IN_RESET else 0)) << 2 * core
        if states == load_i64(log, column.STATES):
            return
        store_i64(log, column.STATES, states)
        for core in range(CORES):
            block = block_of(core)
            state = t.core_state[core]
            asleep = load_i64(log, block + column.ASLEEP_SINCE) >= 0
            if state == ASLEEP:
                if not asleep:
                    store_i64(log, block + column.ASLEEP_SINCE, np.int64(t.core_retired[core]))
            elif asleep:
                woken(t, log, core)
            if state == IN_RESET:
                if load_i64(log, block + column.FIRST_TRY) >= 0:
                    give_up(t, log, core, np.int64(t.now_round))
                store_i64(log, block + column.EXPECTED_PC, -1)

    return give_up, note_states
