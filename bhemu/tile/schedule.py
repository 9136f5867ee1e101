"""The schedule of one tile: five cores and the coprocessor take turns, in rounds (tile T34).

In a round each running core executes one instruction, in the order B, T0, T1, T2, NC, then each thread of the
coprocessor at most one. A round in which the coprocessor executed something takes no time; any other round takes one
clock of the tile. So that a coprocessor that always has words does not stop the clock, a clock has room for
MOST_FREE of such rounds, and the next one takes a clock as well; each further clock of which that is true has room for
half as many, down to none.

That order is kept exactly, but not by visiting every agent in each round. An agent whose turn it is runs ahead of the
others on what is its own (registers, local RAM), up to the round before another agent's next turn where it touches what
they share (`round_horizon`). An agent that is BLOCKED or polls (ASLEEP) is skipped until what it waits for may have
changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bhemu.machine.agents import CORES
from bhemu.machine.core_state import ASLEEP, BLOCKED, RUNNING
from bhemu.machine.dispatch import CODE_CACHE, RUN_CORE, RUN_TURNS, call_handler, has_handler, place_value
from bhemu.machine.kernel import kernel
from bhemu.machine.state import THREADS
from bhemu.machine.types import AnyInt, Bool, Int, LogAddress, Table, TileRecord
from bhemu.riscv.execute import ACCESS, LIMIT, LOOPS
from bhemu.riscv.loops import attempt
from bhemu.riscv.poll import wake, watched_words_hold
from bhemu.riscv.teams import NO_ATTEMPT, is_plain_turn
from bhemu.tensix.frontend import run as clock
from bhemu.tensix.frontend.observer import NO_LOG
from bhemu.tensix.frontend.run import OBSERVER_FULL
from bhemu.tile.accesses import would_wait
from bhemu.tile.debug_ports.watch import after_instruction, before_instruction
from bhemu.tile.interrupts import take_interrupt
from bhemu.tile.observer import NO_TILE_OBSERVER, TileObserver
from bhemu.tile.turn_ends import (
    ADVANCED,
    COPROCESSOR,
    NEEDS_HANDLER,
    NO_AGENT,
    NOC_REQUEST,
    TENSIX_FAULTED,
    after_run,
    end_of_request,
    event,
)
from bhemu.tile.turns import choose

MOST_FREE: Final = 1 << 16
"""Rounds that take no time, at most, in a clock; recorded clients (LLK, ttnn) do not notice."""
_MOST_HALVINGS: Final = 16


@kernel
def _is_noticed(t: TileRecord) -> Bool:
    """True when an agent that is blocked or polls may go on after what the coprocessor has just changed."""
    for core in range(CORES):
        if t.core_state[core] == BLOCKED and not would_wait(t, core):
            return True
        if t.core_state[core] == ASLEEP and not watched_words_hold(t, core):
            return True
    return False


@kernel(forceinline=True)  # like all parts of a turn: calls would cost a tenth
def _begin_coprocessor(t: TileRecord, by_rounds: Int) -> Any:
    """The coprocessor's turn begins.

    Returns:
        (rounds that it may take, whether another agent waits or polls, whether what it executes takes a clock).
    """
    room: AnyInt = (MOST_FREE >> min(np.int64(t.full_clocks), np.int64(_MOST_HALVINGS + 1))) - np.int64(t.busy_rounds)
    rounds: AnyInt = max(room, 1)  # which are free and move the goal: the goal does not limit them
    observed = t.sleepers != 0
    for core in range(CORES):
        if t.core_state[core] == RUNNING:
            rounds = min(rounds, np.int64(t.core_round[core]) - np.int64(t.tensix_round))
        observed = observed or t.core_state[core] == BLOCKED
    t.now_round = t.tensix_round
    t.now_agent = COPROCESSOR
    return (1 if by_rounds else rounds), observed, room <= 0


@kernel(forceinline=True)
def words_in_flight(t: TileRecord) -> Any:
    """Words between the cores and the gates: expanders take some without executing anything."""
    f, count = t.frontend, np.int64(0)
    for thread in range(THREADS):
        count += np.int64(f.fifo_count[thread]) + np.int64(f.side_count[thread]) + np.int64(f.ready_count[thread])
        count += 1 if f.mop_active[thread] != 0 else 0
    return count


@kernel(forceinline=True)
def _end_coprocessor(t: TileRecord, status: Int, moved: Int, observed: Int, takes_clock: Int, in_flight: Int) -> Any:
    """The coprocessor has executed in `moved` rounds; returns what `advance` does next.

    Args:
        status: of its clock (tensix/frontend/run.py).
        observed, takes_clock: of `_begin_coprocessor`.
        in_flight: where it is observed, `words_in_flight` before the last round.
    """
    t.tensix_round += moved
    if not takes_clock:
        t.free_rounds += moved
        t.round_goal += moved
        t.busy_rounds += moved
    elif moved > 0:
        t.busy_rounds = 0
        t.full_clocks += 1
    if status in (clock.STOPPED, clock.FAULTED):
        t.busy_rounds = 0
        t.full_clocks = 0
    if moved > 0 and (status == clock.CYCLES_SPENT or not observed):
        event(t, np.int64(t.tensix_round) - 1, COPROCESSOR, True)
    elif observed and words_in_flight(t) != in_flight:  # MOP_CFG or the end of a MOP, say: a FIFO has room again
        event(t, np.int64(t.tensix_round), COPROCESSOR, True)
    if status == clock.STOPPED:
        t.tensix_state = BLOCKED
        t.tensix_round += 1
    elif status == clock.FAULTED:
        t.tensix_round += 1
        return TENSIX_FAULTED
    elif status == clock.NEEDS_HANDLER:
        return NEEDS_HANDLER if t.noc_pending == 0 else NOC_REQUEST
    elif status == OBSERVER_FULL:
        return OBSERVER_FULL
    return ADVANCED


@kernel
def begin_clocks(t: TileRecord, clocks: Int) -> None:
    """Set the goal `clocks` clocks ahead. Between calls the host, or another tile, may have changed anything."""
    first = np.int64(t.round_goal)
    t.free_rounds = first - t.clock  # words executed outside of the schedule have moved the clock, too
    t.round_goal = first + clocks
    for core in range(CORES):
        t.core_round[core] = max(np.int64(t.core_round[core]), first)
    t.tensix_round = max(np.int64(t.tensix_round), first)
    event(t, first, NO_AGENT, True)


# What an entry is asked to do; less than 0: begin that number of clocks, and advance to their end
GO_ON: Final = 0
"""Advance to the goal: what is left of a call that returned early."""
GO_ON_CHANGED: Final = 1
"""The same; the host or another tile has changed the tile."""
GO_ON_ROUND: Final = 2
"""Advance by one round, or to the goal. A round in which the coprocessor executes something takes no time, so one clock
may hold many rounds, and a debugger that could only let clocks pass would not see what happens in them."""
BEGIN_ROUND: Final = 3
"""Begin a clock, and do the same."""
OBSERVE: Final = 4
"""Begin to observe the tile."""
AFTER_RUN: Final = 8
"""+ core + 8 * why it has left its loop: finish its turn, and advance to the goal."""


@dataclass(frozen=True)
class Schedule:
    """The schedule of a tile as one observer sees it; kernels.

    Attributes:
        turn_of_core: `turn_of_core(t, table, core, log)` executes with the core as far as it may.
        move: `move(t, table, how, log)` advances every agent; returns ADVANCED and others.
    """

    turn_of_core: Any
    move: Any


@kernel(forceinline=True)
def _run_by_handler(t: TileRecord, table: Table, core: Int, log: LogAddress) -> AnyInt:
    return call_handler(table, RUN_CORE, t, core, place_value(table, CODE_CACHE))


@kernel(forceinline=True)
def _turns_by_handler(t: TileRecord, table: Table, core: Int, log: LogAddress) -> AnyInt:
    if has_handler(table, RUN_TURNS):
        return call_handler(table, RUN_TURNS, t, core, table)
    t.needs_place = RUN_TURNS
    return np.int64(NEEDS_HANDLER)


@dataclass(frozen=True)
class Execution:
    """How cores execute; kernels.

    Attributes:
        turn: `turn(t, table, core, log)` executes with a core up to `round_goal`; returns why it has stopped.
        turns: `turns(t, table, core, log)` takes plain turns from that of a core on (tile/turns.py).
    """

    turn: Any
    turns: Any


BY_HANDLERS: Final = Execution(_run_by_handler, _turns_by_handler)
"""By the entries that all schedules share."""


def make_schedule(observer: TileObserver, run: Any, execution: Execution = BY_HANDLERS) -> Schedule:
    """The schedule of a tile, from this one text for each observer.

    Of the observer that does nothing (`NO_TILE_OBSERVER`) the compiler leaves nothing over.

    Args:
        observer: what is called when agents move.
        run: of the front end that its observer of words has (tensix/frontend/run.py).
        execution: of the cores.
    """
    run_one, run_turns = execution.turn, execution.turns
    one_by_one, is_full, begin = observer.one_by_one, observer.is_full, observer.begin
    before_core, after_core = observer.before_core, observer.after_core
    before_words, after_words = observer.before_words, observer.after_words
    unobserved = observer is NO_TILE_OBSERVER

    @kernel
    def turn_of_core(t: TileRecord, table: Table, core: Int, log: LogAddress) -> Any:
        if not has_handler(table, RUN_CORE):
            t.needs_place = RUN_CORE
            return NEEDS_HANDLER
        if t.core_request[core] != 0:
            before_core(t, log, core)
            result = end_of_request(t, core)
            after_core(t, log, core, np.int64(ACCESS))
            return result
        if t.interrupts != 0:
            take_interrupt(t, core)
        before_core(t, log, core)
        goal = np.int64(t.round_goal)
        retired = np.int64(t.core_retired[core])
        end = goal
        under_watch = t.debug_watch[core] != 0
        if under_watch:  # it steps or has watchpoints (debug_ports/watch.py): one instruction, and it does not sleep
            t.poll_steps[core] = NO_ATTEMPT
            before_instruction(t, core)
        elif t.poll_steps[core] != NO_ATTEMPT:
            attempt(t, place_value(table, CODE_CACHE), core, unobserved)
            after_core(t, log, core, np.int64(LOOPS))
            return ADVANCED  # it sleeps, or has its turn now
        if under_watch or one_by_one:
            end = np.int64(t.core_round[core]) + 1
        elif t.interrupts != 0:
            end = min(goal, np.int64(t.round_horizon) + 1)  # the next one may be raised then
        t.round_goal = end
        reason = run_one(t, table, core, log)
        t.round_goal = goal
        if under_watch and reason == LOOPS:
            reason = np.int64(LIMIT)
        result = after_run(t, table, core, reason)
        if under_watch and t.core_retired[core] != retired:
            after_instruction(t, core)
        after_core(t, log, core, reason)
        return result

    @kernel
    def turn_of_coprocessor(t: TileRecord, table: Table, by_rounds: Int, log: LogAddress) -> AnyInt:
        """Execute with the coprocessor as far as it may: until an agent that waits or polls may go on."""
        rounds, observed, takes_clock = _begin_coprocessor(t, by_rounds)
        before_words(t, log)
        before = np.int64(t.clock)
        first = np.int64(t.tensix_round)
        in_flight: Int = np.int64(0)
        if observed:
            step = 1 + np.int64(t.run_ahead)
            status = clock.CYCLES_SPENT
            spent: AnyInt = np.int64(0)
            while status == clock.CYCLES_SPENT and spent < rounds:
                t.now_round = first + spent
                in_flight = words_in_flight(t)
                status = run(t, table, min(step, rounds - spent), log)
                if status != clock.CYCLES_SPENT and np.int64(t.clock) - before > spent:
                    in_flight = np.int64(-1)  # it has executed something in this step, too
                spent = np.int64(t.clock) - before
                if status == clock.CYCLES_SPENT and _is_noticed(t):
                    break
        else:
            status = run(t, table, rounds, log)
        moved = np.int64(t.clock) - before
        t.clock = before
        after_words(t, log, first, 0 if takes_clock else moved)
        return _end_coprocessor(t, status, moved, observed, takes_clock, in_flight)

    @kernel
    def advance(t: TileRecord, table: Table, by_rounds: Int, log: LogAddress) -> Any:
        """Advance every agent up to `round_goal`."""
        result: Int = ADVANCED
        while result == ADVANCED:
            if is_full(log):
                result = OBSERVER_FULL
                break
            goal = np.int64(t.round_goal)
            agent = choose(t)
            if agent == NO_AGENT:
                break
            if agent == COPROCESSOR:
                result = turn_of_coprocessor(t, table, by_rounds, log)
                if by_rounds and result == ADVANCED and t.round_goal != goal:
                    break  # it has executed something: the round took no time, and another follows in the same clock
            elif not one_by_one and is_plain_turn(t, agent):
                result = run_turns(t, table, agent, log)
            else:
                result = turn_of_core(t, table, agent, log)
        t.clock = t.round_goal - t.free_rounds
        return result

    @kernel
    def move(t: TileRecord, table: Table, how: Int, log: LogAddress) -> Any:
        begin(t, log)
        if how < 0:
            begin_clocks(t, -how)
        elif how == BEGIN_ROUND:
            begin_clocks(t, 1)
        elif how == OBSERVE:
            return ADVANCED
        elif how == GO_ON_CHANGED:
            event(t, np.int64(t.now_round), NO_AGENT, True)
        elif how >= AFTER_RUN:
            result = after_run(t, table, (how - AFTER_RUN) & 7, (how - AFTER_RUN) >> 3)
            if result != ADVANCED:
                t.clock = t.round_goal - t.free_rounds
                return result
        begin(t, log)
        return advance(t, table, how in (GO_ON_ROUND, BEGIN_ROUND), log)

    return Schedule(turn_of_core, move)


_plain: Final = make_schedule(NO_TILE_OBSERVER, clock.run)
turn_of_core, _move = _plain.turn_of_core, _plain.move


def advance_tile_entry(t: TileRecord, table: Table, how: Int) -> AnyInt:
    """Advance a tile; `how` is one of the constants above."""
    return _move(t, table, how, NO_LOG)


def settle_cores_entry(t: TileRecord, _table: Int, _: Int) -> Int:
    """Bring the registers of sleeping cores to the present round, before the host reads them."""
    for core in range(CORES):
        if t.core_state[core] == ASLEEP:
            wake(t, core, np.int64(t.round_goal))
    return 0
