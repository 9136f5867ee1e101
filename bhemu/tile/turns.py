"""Whose turn it is, and turns of cores one after the other without leaving compiled code in between (tile T34).

Cores that share memory take turns of a few instructions; how a turn begins and ends is then what takes the time.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.machine.agents import CORES
from bhemu.machine.core_state import RUNNING
from bhemu.machine.dispatch import CODE_CACHE, place_value
from bhemu.machine.kernel import kernel
from bhemu.machine.types import AnyInt, Int, LogAddress, Table, TileRecord
from bhemu.riscv.execute import LIMIT, ignore_begun, ignore_ended, ignore_executed, make_run_core
from bhemu.riscv.teams import is_plain_turn
from bhemu.tensix.frontend.observer import NO_LOG
from bhemu.tile.observer import NO_TILE_OBSERVER
from bhemu.tile.turn_ends import ADVANCED, COPROCESSOR, NO_AGENT, access_in_turn, after_run

_PLACE_BITS: Final = 3
"""Of an agent's place in a round."""
assert CORES + 1 <= 1 << _PLACE_BITS


@kernel
def choose(t: TileRecord) -> Any:
    """The agent whose turn it is, or NO_AGENT before the goal; sets `round_horizon` for it."""
    # A turn's key is its round and its agent's place there: the smallest key is next. No branches: what comes next is
    # not foreseen.
    never = np.int64(t.round_goal) << _PLACE_BITS
    first = never
    second = never
    for agent in range(CORES + 1):
        if agent == COPROCESSOR:
            state, due = t.tensix_state, np.int64(t.tensix_round)
        else:
            state, due = t.core_state[agent], np.int64(t.core_round[agent])
        key = (due << _PLACE_BITS) + agent if state == RUNNING else never
        second = min(second, max(first, key))
        first = min(first, key)
    found = first & ((1 << _PLACE_BITS) - 1)
    t.round_horizon = (second - found - 1) >> _PLACE_BITS
    return found if first < never else np.int64(NO_AGENT)


@kernel
def _next_in_last_round(t: TileRecord, core: Int) -> Any:
    """The core whose turn comes after that of `core` in the last round before the goal; NO_AGENT: see `choose`.

    `core` has had its turn there, so all agents before it have reached the goal, and no other one is in an earlier
    round.
    """
    for other in range(core + 1, CORES):
        if t.core_state[other] == RUNNING and t.core_round[other] < t.round_goal:
            return other if is_plain_turn(t, other) else NO_AGENT
    return NO_AGENT


def make_turns(run: Any, after_loop: Any, after_turn: Any, is_full: Any) -> Any:
    """Plain turns of cores, from this one text for cores whose instructions are counted and for others.

    Returns:
        `run_turns(t, core, table, log)`: plain turns from that of `core` on, until it is another agent's turn, or not a
        plain one. It returns what `advance` of tile/schedule.py does next: ADVANCED, it goes on.

    Args:
        run: of riscv/execute.py.
        after_loop: `after_loop(t, log, core)`: a core's inner loop has ended, and not only because of a LIMIT.
        after_turn: `after_turn(t, log, core, reason)`: a core has had its turn, unless it has only reached a LIMIT.
        is_full: `is_full(log)`: there may be no room for another turn.
    """

    @kernel
    def run_turns(t: TileRecord, core: Int, table: Table, log: LogAddress) -> Any:
        cache = place_value(table, CODE_CACHE)
        while True:
            last_round = t.core_round[core] == t.round_goal - 1
            reason = run(t, core, cache, True, log)
            if reason != LIMIT:
                core = np.int64(t.turn_core)
                after_loop(t, log, core)
                result = after_run(t, table, core, reason)
                after_turn(t, log, core, reason)
                if result != ADVANCED or is_full(log):
                    return result
                core = choose(t)
            elif last_round and t.turn_core == core:
                core = _next_in_last_round(t, core)
            else:
                core = choose(t)
            if core in (NO_AGENT, COPROCESSOR) or not is_plain_turn(t, core):
                return np.int64(ADVANCED)

    return run_turns


_run_core: Final = make_run_core(False, ignore_begun, ignore_executed, ignore_ended, access_in_turn)
_run_turns: Final = make_turns(
    _run_core, NO_TILE_OBSERVER.before_core, NO_TILE_OBSERVER.after_core, NO_TILE_OBSERVER.is_full
)


def run_turns_entry(t: TileRecord, core: Int, table: Table) -> AnyInt:
    """`run_turns` for the table of handlers."""
    return _run_turns(t, core, table, NO_LOG)
