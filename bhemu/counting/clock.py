"""The observer of a tile's schedule that counts: instructions of cores by their place, rounds blocked and asleep.

A counted tile has the schedule of one that is not observed: cores run ahead of each other, and the coprocessor's words
are not looked at. The inner loop of the cores tells what it has executed at each jump and at its end
(riscv/execute.py); whatever a core does outside of the loop ends its turn, and is counted there.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import bhemu.counting.blocks as block_at
import bhemu.counting.layout as at
from bhemu.counting.states import accessed_address, add, make_state_notes
from bhemu.machine.buffer_memory import load_i64, store_i64
from bhemu.machine.core_state import BLOCKED, LOAD, PUSH
from bhemu.machine.dispatch import CODE_CACHE, place_value
from bhemu.machine.kernel import kernel
from bhemu.machine.types import AnyInt, Bool, Int, LogAddress, Table, TileRecord
from bhemu.riscv.execute import ACCESS, LIMIT, make_run_core
from bhemu.tensix.frontend.observer import NO_OBSERVER
from bhemu.tensix.frontend.run import run as run_words
from bhemu.tile.observer import HOW, NO_TILE_OBSERVER, TileObserver
from bhemu.tile.schedule import Execution, make_schedule
from bhemu.tile.turns import make_turns

_POLLS: Final = 8


@kernel
def block_of(core: Int) -> Int:
    """Where the block of a core begins in the buffer."""
    return at.CORE_BLOCKS + core * at.CORE_BLOCK


@kernel(forceinline=True)
def change(log: LogAddress, core: Int, word: Int, amount: Int) -> None:
    """Change the difference at a word."""
    store_i64(log, at.PAGES + core * at.PAGES_OF_CORE + (word >> at.PAGE_BITS), 1)
    add(log, at.DIFFERENCES + core * (at.WORDS + 1) + word, amount)


@kernel(forceinline=True)
def _row_of(first: Int, end: Int) -> Int:
    """The row of a run in its core's table, by the addresses where it begins and ends."""
    return ((first >> 1) + (first >> 2) + (end >> 2)) & (at.TABLE_ROWS - 1)


@kernel
def _look_for(log: LogAddress, core: Int, first: Int, end: Int, run: Int) -> None:
    """Count a run that is not in its row."""
    row = _row_of(first, end)
    for probe in range(at.PROBES):
        place = at.TABLES + core * at.TABLE + 2 * ((row + probe) & (at.TABLE_ROWS - 1))
        found = load_i64(log, place)
        if found == 0:
            store_i64(log, place, run)
        if found in (0, run):
            add(log, place + 1, 1)
            return
    change(log, core, first >> 2, 1)
    change(log, core, end >> 2, -1)


@kernel(forceinline=True)
def _executed(log: LogAddress, core: Int, first: Int, end: Int) -> None:
    """Instructions were executed from one address up to another one."""
    run = (first >> 2) << at.END_BITS | end >> 2
    place = at.TABLES + core * at.TABLE + 2 * _row_of(first, end)
    if load_i64(log, place) == run:
        add(log, place + 1, 1)
    else:
        _look_for(log, core, first, end, run)


@kernel
def _count(log: LogAddress, core: Int, word: Int, times: Int) -> None:
    """The instruction at a word of L1 was executed so often."""
    change(log, core, word, times)
    change(log, core, word + 1, -times)


@kernel
def wait(log: LogAddress, core: Int, bits: Int, pc: Int, address: Int, rounds: Int) -> None:
    """A core was blocked at a pc by an access, or polled (`bits` are then _POLLS); see `layout.WAITS`."""
    if rounds <= 0:
        return
    key = (address + 1 << 23 | (pc & 0x1FFFFC) << 2 | bits | core) + 1
    place = (key ^ key >> 7 ^ key >> 23) & (at.MOST_WAITS - 1)
    while True:
        found = load_i64(log, at.WAITS + 2 * place)
        if found == 0:
            store_i64(log, at.WAITS + 2 * place, key)
            add(log, at.WAIT_COUNT, 1)
        if found in (0, key):
            add(log, at.WAITS + 2 * place + 1, rounds)
            return
        place = (place + 1) & (at.MOST_WAITS - 1)


@kernel(forceinline=True)
def _expects(log: LogAddress, core: Int, pc: Int) -> None:
    pass


@kernel
def _spent(
    t: TileRecord, log: LogAddress, bits: Int, since: Int, pc: Int, address: Int, value: Int, rounds: Int, detail: Int
) -> None:
    polls = np.int64(_POLLS if (bits >> 4) & 0xF == block_at.POLL else 0)
    wait(log, bits & 7, polls, pc, address, rounds)


_give_up, note_states = make_state_notes(at.STATES, block_of, _expects, _count, _spent)


@kernel
def _begins(t: TileRecord, log: LogAddress, core: Int, pc: Int, at_round: Int) -> None:
    """An instruction has been executed, before which its core was blocked."""
    block = block_of(core)
    if load_i64(log, block + block_at.FIRST_TRY_PC) != pc:
        _give_up(t, log, core, at_round)
        return
    waited = at_round - load_i64(log, block + block_at.FIRST_TRY)
    store_i64(log, block + block_at.FIRST_TRY, -1)
    add(log, block + block_at.WAITED, waited)
    wait(log, core, np.int64(0), pc, load_i64(log, block + block_at.FIRST_TRY_ADDRESS), waited)


@kernel
def _first_of_turn(t: TileRecord, log: LogAddress, core: Int, pc: Int, at_round: Int) -> None:
    """The core has executed something after it was blocked, or for the first time."""
    block = block_of(core)
    if load_i64(log, block + block_at.FIRST_TRY) >= 0:
        _begins(t, log, core, pc, at_round)
    if load_i64(log, block + block_at.FIRST_ROUND) < 0:
        store_i64(log, block + block_at.FIRST_ROUND, at_round)


@kernel(forceinline=True)
def _ran(t: TileRecord, log: LogAddress, core: Int, pc: Int, first: Int, last: Int) -> None:
    """A core has executed instructions from one round to another one, the first of them at a pc."""
    block = block_of(core)
    if load_i64(log, block + block_at.FIRST_TRY) >= 0 or load_i64(log, block + block_at.FIRST_ROUND) < 0:
        _first_of_turn(t, log, core, pc, first)
    store_i64(log, block + block_at.LAST_ROUND, last)


@kernel
def close(log: LogAddress, core: Int) -> None:
    """Count the instructions that the core has executed last, one after the other."""
    block = block_of(core)
    first, end = load_i64(log, block + block_at.RUN_FIRST), load_i64(log, block + block_at.RUN_END)
    if first != end:
        _executed(log, core, first, end)
    store_i64(log, block + block_at.RUN_FIRST, end)


@kernel(forceinline=True)
def _begun(log: LogAddress, core: Int, pc: Int) -> AnyInt:
    block = block_of(core)
    if load_i64(log, block + block_at.RUN_END) == pc:
        return load_i64(log, block + block_at.RUN_FIRST)
    close(log, core)  # a reset, an interrupt, the end of a poll, or the host has changed pc
    return pc


@kernel(forceinline=True)
def _ended(t: TileRecord, log: LogAddress, core: Int, first: Int, pc: Int, now: Int) -> None:
    """The inner loop ends."""
    block = block_of(core)
    if load_i64(log, block + block_at.ASLEEP_SINCE) >= 0:
        note_states(t, log)  # while the count of retired instructions tells how long
    start = np.int64(t.core_round[core])
    if now != start:
        _ran(t, log, core, np.int64(t.core_pc[core]), start, now - 1)
    store_i64(log, block + block_at.RUN_FIRST, first)
    store_i64(log, block + block_at.RUN_END, pc)


@kernel(forceinline=True)
def _before_core(t: TileRecord, log: LogAddress, core: Int) -> None:
    """Remember what the rest of the turn begins with."""
    store_i64(log, at.BEFORE_PC, np.int64(t.core_pc[core]))
    store_i64(log, at.BEFORE_ROUND, np.int64(t.core_round[core]))
    store_i64(log, at.BEFORE_RETIRED, np.int64(t.core_retired[core]))


@kernel
def _after_core(t: TileRecord, log: LogAddress, core: Int, reason: Int) -> None:
    """The core has had its turn: count what it has executed after its loop, in one round."""
    block = block_of(core)
    pc, at_round = load_i64(log, at.BEFORE_PC), load_i64(log, at.BEFORE_ROUND)
    retired = np.int64(t.core_retired[core]) - load_i64(log, at.BEFORE_RETIRED)
    if retired > 0:
        _ran(t, log, core, pc, at_round, at_round)
        add(log, block + block_at.FUSED, retired - 1)  # adjacent `.ttinsn`
        store_i64(log, block + block_at.RUN_END, pc + 4 * retired)
    elif t.core_state[core] == BLOCKED and load_i64(log, block + block_at.FIRST_TRY) < 0:
        store_i64(log, block + block_at.FIRST_TRY, at_round)
        store_i64(log, block + block_at.FIRST_TRY_PC, pc)
        address = accessed_address(t, core, np.int64(t.l1_u32[pc >> 2]))
        store_i64(log, block + block_at.FIRST_TRY_ADDRESS, address)
    # Loads and pushes let no core sleep, and reset none; who wakes up is noted when it executes.
    if reason != LIMIT and not (reason == ACCESS and t.access_kind[core] in (LOAD, PUSH)):
        note_states(t, log)


@kernel
def _begin(t: TileRecord, log: LogAddress) -> None:
    note_states(t, log)


@kernel
def _is_full(log: LogAddress) -> Bool:
    return 2 * load_i64(log, at.WAIT_COUNT) > at.MOST_WAITS


_run_core = make_run_core(True, _begun, _executed, _ended)
_run_turns: Final = make_turns(_run_core, _before_core, _after_core, _is_full)


@kernel
def _turn(t: TileRecord, table: Table, core: Int, log: LogAddress) -> Any:
    reason = _run_core(t, core, place_value(table, CODE_CACHE), False, log)
    _before_core(t, log, core)
    return reason


@kernel
def _turns(t: TileRecord, table: Table, core: Int, log: LogAddress) -> Any:
    return _run_turns(t, core, table, log)


_plain: Final = NO_TILE_OBSERVER
_schedule: Final = make_schedule(
    TileObserver(
        NO_OBSERVER, False, _is_full, _begin, _before_core, _after_core, _plain.before_words, _plain.after_words
    ),
    run_words,
    Execution(_turn, _turns),
)
_move: Final = _schedule.move


def advance_counted_entry(t: TileRecord, table: Table, log: LogAddress) -> AnyInt:
    """`schedule.advance_tile_entry` of a tile that is counted.

    Args:
        log: address of the buffer of layout.py, which says what to do, too.
    """
    return _move(t, table, load_i64(log, HOW), log)
