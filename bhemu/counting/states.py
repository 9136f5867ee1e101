"""What an observer notes when cores fall asleep, wake up or are reset, from one text for all recorders."""

from __future__ import annotations

from typing import Any

import numpy as np

import bhemu.counting.blocks as at
from bhemu.machine.agents import CORES
from bhemu.machine.buffer_memory import load_i64, store_i64
from bhemu.machine.core_state import ASLEEP, IN_RESET, PUSH
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Int, LogAddress, TileRecord
from bhemu.riscv.arithmetic import WORD
from bhemu.riscv.decode import sign_extend

_LOAD, _LOAD_FLOAT, _STORE, _STORE_FLOAT, _AMO = 0x03, 0x07, 0x23, 0x27, 0x2F


@kernel
def accessed_address(t: TileRecord, core: Int, word: Int) -> Any:
    """Where a load, store or atomic accesses memory, before it does; -1 for any other instruction."""
    opcode = word & 0x7F
    base = np.int64(t.core_x[core, (word >> 15) & 31])
    if opcode in (_LOAD, _LOAD_FLOAT):
        return (base + sign_extend(word >> 20, 12)) & WORD
    if opcode in (_STORE, _STORE_FLOAT):
        return (base + sign_extend(((word >> 25) << 5) | ((word >> 7) & 31), 12)) & WORD
    if opcode == _AMO:
        return base
    return np.int64(-1)


@kernel
def add(log: LogAddress, place: Int, amount: Int) -> None:
    """Add to a number of the buffer."""
    store_i64(log, place, load_i64(log, place) + amount)


def make_state_notes(states_at: int, block_of: Any, expects: Any, count: Any, spent: Any) -> tuple[Any, Any]:
    """Kernels for a recorder.

    Args:
        states_at: place in the buffer for what states cores had.
        block_of: `block_of(core)`: where the block of a core begins.
        expects: `expects(log, core, pc)`: the core continues there; -1: it is held in reset.
        count: `count(log, core, word, times)`: the instruction at a word of L1 was executed so often.
        spent: `spent(t, log, bits, since, pc, address, value, rounds, detail)`: a core was blocked or polled. `bits`
            are the core and a kind, `detail` instructions of a turn of a polling loop.

    Returns:
        `give_up(t, log, core, at_round)`: the access that the core was blocked on will not be made; and
        `note_states(t, log)`, to be called when cores may have fallen asleep, been woken or reset, before those that
        woke up execute.
    """

    @kernel
    def give_up(t: TileRecord, log: LogAddress, core: Int, at_round: Int) -> None:
        block = block_of(core)
        first = load_i64(log, block + at.FIRST_TRY)
        pc = load_i64(log, block + at.FIRST_TRY_PC)
        address = np.int64(-1) if t.access_kind[core] == PUSH else np.int64(t.access_address[core])
        store_i64(log, block + at.FIRST_TRY, -1)
        add(log, block + at.WAITED, at_round - first)
        bits = core | at.GAVE_UP << 4 | np.int64(t.access_size[core]) << 8
        spent(t, log, bits, first, pc, address, np.int64(-1), at_round - first, np.int64(0))

    @kernel
    def woken(t: TileRecord, log: LogAddress, core: Int) -> None:
        """The core has slept: count what it would have executed."""
        block = block_of(core)
        before = load_i64(log, block + at.ASLEEP_SINCE)
        store_i64(log, block + at.ASLEEP_SINCE, -1)
        since = np.int64(t.poll_since[core])
        length = np.int64(t.poll_length[core])
        passed = np.int64(t.core_retired[core]) - before
        for step in range(length):
            turns = passed // length + (1 if step < passed % length else 0)
            if turns > 0:
                count(log, core, np.int64(t.poll_pc[core, step]) >> 2, turns)
        add(log, block + at.POLLED, passed)
        rounds = passed
        if t.core_state[core] == IN_RESET:  # it was not woken: its instructions were not counted either
            rounds = max(np.int64(t.now_round) - since, np.int64(0))
        else:
            expects(log, core, np.int64(t.poll_pc[core, passed % length]))
            store_i64(log, block + at.LAST_ROUND, since + passed - 1)
        add(log, block + at.SLEPT, rounds)
        pc = np.int64(t.poll_pc[core, 0])
        address, value = np.int64(-1), np.int64(-1)
        if t.watch_count[core] > 0:
            address, value = np.int64(t.watch_address[core, 0]), np.int64(t.watch_value[core, 0])
        spent(t, log, core | at.POLL << 4, since, pc, address, value, rounds, length)

    @kernel
    def note_states(t: TileRecord, log: LogAddress) -> None:
        states = np.int64(0)
        for core in range(CORES):
            state = t.core_state[core]
            states |= ((1 if state == ASLEEP else 0) | (2 if state == IN_RESET else 0)) << 2 * core
        if states == load_i64(log, states_at):
            return
        store_i64(log, states_at, states)
        for core in range(CORES):
            block = block_of(core)
            state = t.core_state[core]
            asleep = load_i64(log, block + at.ASLEEP_SINCE) >= 0
            if state == ASLEEP:
                if not asleep:
                    store_i64(log, block + at.ASLEEP_SINCE, np.int64(t.core_retired[core]))
            elif asleep:
                woken(t, log, core)
            if state == IN_RESET:
                if load_i64(log, block + at.FIRST_TRY) >= 0:
                    give_up(t, log, core, np.int64(t.now_round))
                expects(log, core, np.int64(-1))

    return give_up, note_states
