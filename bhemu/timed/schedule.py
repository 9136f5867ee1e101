"""The schedule of a tile in timed mode: as tile/schedule.py, but an agent has its turn when silicon would be ready.

The round of an agent's next turn is a cycle of silicon here, and every round takes one clock. The agent that is first
has its turn; a core executes one instruction, the coprocessor one cycle.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bhemu.machine.agents import CORES
from bhemu.machine.buffer_memory import load_i64, store_i64
from bhemu.machine.core_state import ASLEEP, BLOCKED, RUNNING
from bhemu.machine.dispatch import CODE_CACHE, NOT_COMPILED, RUN_CORE, call_handler, has_handler, place_value
from bhemu.machine.faults import REFUSED
from bhemu.machine.kernel import kernel
from bhemu.machine.types import AnyInt, Int, LogAddress, Table, TileRecord
from bhemu.riscv.execute import LIMIT, LOOPS
from bhemu.riscv.loop_registers import restore_registers
from bhemu.riscv.poll import POLLS, end_step, follow, give_up
from bhemu.riscv.teams import NO_ATTEMPT, is_plain_turn
from bhemu.tile import schedule as plain
from bhemu.tile import turn_ends as ends
from bhemu.tile.debug_ports.watch import after_instruction, before_instruction
from bhemu.tile.interrupts import take_interrupt
from bhemu.tile.observer import HOW
from bhemu.tile.turns import choose
from bhemu.timed import layout as at
from bhemu.timed.cores import executed, may_run_ahead, starts
from bhemu.timed.turns import NOT_SIMPLE, simple_turn
from bhemu.timed.words import NEVER, cycle


@kernel
def _wake_on_time(t: TileRecord, log: LogAddress) -> None:
    """Cores that have been woken: they are at the beginning of a turn of their loop, which takes its time."""
    if load_i64(log, at.SLEEPERS) == t.sleepers:
        return
    for core in range(CORES):
        block = at.core_block(core)
        if load_i64(log, block + at.SLEEPS) == 0 or t.core_state[core] == ASLEEP:
            continue
        store_i64(log, block + at.SLEEPS, 0)
        store_i64(log, at.SLEEPERS, load_i64(log, at.SLEEPERS) - 1)
        if t.core_state[core] != RUNNING:
            continue
        since, period = np.int64(t.poll_since[core]), load_i64(log, block + at.PERIOD)
        passed = np.int64(t.core_round[core]) - since
        turns = max((passed + period - 1) // period, np.int64(0))
        t.core_retired[core] += turns * np.int64(t.poll_length[core]) - passed
        t.core_pc[core] = t.poll_pc[core, 0]
        restore_registers(t, core)
        t.core_round[core] = since + turns * period


@kernel
def _begin_loop(t: TileRecord, table: Table, log: LogAddress, core: Int) -> None:
    """Begin to execute a turn of a loop that polls (riscv/poll.py), for its time."""
    if follow(t, place_value(table, CODE_CACHE), core) != POLLS:
        give_up(t, core)
    store_i64(log, at.core_block(core) + at.SINCE, np.int64(t.core_round[core]))


@kernel
def _general_turn(t: TileRecord, table: Table, core: Int, log: LogAddress) -> Any:
    """(reason, whether an instruction was to be executed) of any instruction of a core.

    It is put off until the turns of other agents before it are over, unless it touches what is the core's own alone.
    """
    start = starts(t, log, core)
    t.core_round[core] = start
    goal = np.int64(t.round_goal)
    under_watch = t.debug_watch[core] != 0
    if start > t.round_horizon or start >= goal:
        by_turns = under_watch or t.interrupts != 0 or t.poll_steps[core] != NO_ATTEMPT
        if start >= goal or by_turns or not may_run_ahead(log, at.core_block(core)):
            return np.int64(LIMIT), False
    if under_watch:
        t.poll_steps[core] = NO_ATTEMPT
        before_instruction(t, core)
    elif t.poll_steps[core] == 0:
        _begin_loop(t, table, log, core)
    t.round_goal = start + 1
    reason = np.int64(call_handler(table, RUN_CORE, t, core, place_value(table, CODE_CACHE)))
    t.round_goal = goal
    if under_watch and reason == LOOPS:
        reason = np.int64(LIMIT)
    return reason, True


@kernel
def _turn_of_core(t: TileRecord, table: Table, core: Int, log: LogAddress, one: Int) -> Any:
    """(status, whether the core's next turn follows at once, as nothing else has changed)."""
    if not has_handler(table, RUN_CORE):
        t.needs_place = RUN_CORE
        return ends.NEEDS_HANDLER, False
    block = at.core_block(core)
    if t.core_request[core] != 0:
        result = ends.end_of_request(t, core)
        if np.int64(t.core_retired[core]) != load_i64(log, block + at.RETIRED):
            executed(t, log, core)
        return result, False
    if t.interrupts != 0:
        take_interrupt(t, core)
    under_watch = t.debug_watch[core] != 0
    reason: AnyInt = np.int64(NOT_SIMPLE)
    if is_plain_turn(t, core):
        reason = simple_turn(t, log, core, place_value(table, CODE_CACHE), one)
        if reason == LIMIT:
            return ends.ADVANCED, False
    if reason == NOT_SIMPLE:
        reason, begins = _general_turn(t, table, core, log)
        if not begins:
            return ends.ADVANCED, False
    start = load_i64(log, block + at.STARTED)
    in_loop = t.poll_steps[core] != NO_ATTEMPT
    result = ends.after_run(t, table, core, reason)
    if in_loop and result == ends.ADVANCED and t.core_state[core] == RUNNING:
        end_step(t, core)
    elif in_loop:
        t.poll_steps[core] = NO_ATTEMPT  # the instruction will be tried again, and must not be counted twice
    moved = np.int64(t.core_retired[core]) != load_i64(log, block + at.RETIRED)
    if moved:
        executed(t, log, core)
        if under_watch:
            after_instruction(t, core)
    if moved and reason != LIMIT and t.tensix_state == RUNNING:  # it may have pushed a word, or lifted a wait
        t.tensix_round = min(np.int64(t.tensix_round), max(start, load_i64(log, at.LAST_CYCLE) + 1))
    if t.core_state[core] == ASLEEP and load_i64(log, block + at.SLEEPS) == 0:
        now = np.int64(t.core_round[core])
        t.poll_since[core] = now
        store_i64(log, block + at.SLEEPS, 1)
        store_i64(log, at.SLEEPERS, load_i64(log, at.SLEEPERS) + 1)
        store_i64(log, block + at.PERIOD, max(now - load_i64(log, block + at.SINCE), 1))
    follows = moved and reason == LIMIT and not under_watch and t.core_state[core] == RUNNING
    return result, follows and t.core_round[core] < t.round_goal


@kernel
def _turn_of_coprocessor(t: TileRecord, table: Table, log: LogAddress) -> Any:
    now = np.int64(t.tensix_round)
    t.now_round = now
    t.now_agent = ends.COPROCESSOR
    store_i64(log, at.LAST_CYCLE, now)
    in_flight = plain.words_in_flight(t)
    status, moved, following = cycle(t, table, log, now)
    if status == NOT_COMPILED:
        return ends.NEEDS_HANDLER if t.noc_pending == 0 else ends.NOC_REQUEST
    if moved or plain.words_in_flight(t) != in_flight:
        ends.event(t, now, ends.COPROCESSOR, True)
    if status == REFUSED:
        t.tensix_round = now + 1
        return ends.TENSIX_FAULTED
    if following == NEVER:
        t.tensix_state = BLOCKED
        t.tensix_round = now + 1
    else:
        t.tensix_round = following
    return ends.ADVANCED


@kernel
def _advance(t: TileRecord, table: Table, one_turn: Int, log: LogAddress) -> Any:
    result: AnyInt = ends.ADVANCED
    while result == ends.ADVANCED:
        agent = choose(t)
        if agent == ends.NO_AGENT:
            break
        if agent == ends.COPROCESSOR:
            result = _turn_of_coprocessor(t, table, log)
        else:
            result, follows = _turn_of_core(t, table, agent, log, one_turn)
            while follows and result == ends.ADVANCED and not one_turn:
                result, follows = _turn_of_core(t, table, agent, log, one_turn)
        _wake_on_time(t, log)
        if one_turn:
            break
    t.clock = t.round_goal - t.free_rounds
    return result


@kernel
def _keep_limit(t: TileRecord, log: LogAddress) -> None:
    """End the clocks that have begun where something arrives at the tile (chip_clock.py)."""
    limit = load_i64(log, at.LIMIT)
    if limit != at.NO_LIMIT:
        store_i64(log, at.LIMIT, at.NO_LIMIT)
        t.round_goal = min(np.int64(t.round_goal), limit + t.free_rounds)


@kernel
def _move(t: TileRecord, table: Table, how: Int, log: LogAddress) -> Any:
    if how < 0:
        plain.begin_clocks(t, -how)
    elif how == plain.BEGIN_ROUND:
        plain.begin_clocks(t, 1)
    elif how == plain.OBSERVE:
        return ends.ADVANCED
    elif how == plain.GO_ON_CHANGED:
        ends.event(t, np.int64(t.now_round), ends.NO_AGENT, True)
    _keep_limit(t, log)
    _wake_on_time(t, log)
    return _advance(t, table, how in (plain.GO_ON_ROUND, plain.BEGIN_ROUND), log)


def advance_timed_entry(t: TileRecord, table: Table, log: LogAddress) -> AnyInt:
    """`schedule.advance_tile_entry` in timed mode.

    Args:
        log: address of the buffer of layout.py, which says what to do, too.
    """
    return _move(t, table, load_i64(log, HOW), log)
