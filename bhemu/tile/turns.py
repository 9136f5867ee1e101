"""Whose turn it is, and turns of cores one after the other without leaving compiled code in between (tile T34).

Cores that share memory take turns of a few instructions; how a turn begins and ends is then what takes the time.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.machine.agents import CORES
from bhemu.machine.core_state import RUNNING
from bhemu.machine.kernel import kernel
from bhemu.machine.types import AnyInt, Int, TileRecord
from bhemu.riscv.execute import LIMIT, run_core
from bhemu.riscv.teams import is_plain_turn

COPROCESSOR: Final = CORES
"""The coprocessor's place in the order of a round."""
NO_AGENT: Final = -1


@kernel
def choose(t: TileRecord) -> Any:
    """The agent whose turn it is, or NO_AGENT before the goal; sets `round_horizon` for it."""
    found = NO_AGENT
    first = np.int64(t.round_goal)
    horizon = first
    for agent in range(CORES + 1):
        if agent == COPROCESSOR:
            state, due = t.tensix_state, np.int64(t.tensix_round)
        else:
            state, due = t.core_state[agent], np.int64(t.core_round[agent])
        if state == RUNNING:
            if due < first:
                # The agents before this one come after it, and before it in a round.
                horizon = min(horizon, first - 1)
                first = due
                found = agent
            else:
                horizon = min(horizon, due)
    t.round_horizon = horizon
    return found


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


@kernel
def run_turns(t: TileRecord, core: Int, cache: Int) -> Any:
    """Plain turns of cores from that of `core` on, as long as they end at their LIMIT.

    Returns why the last one ended (see `run_core`), which is that of core `turn_core`.
    """
    while True:
        last_round = t.core_round[core] == t.round_goal - 1
        reason = run_core(t, core, cache, True)
        if reason != LIMIT:
            return reason
        core = _next_in_last_round(t, core) if last_round and t.turn_core == core else choose(t)
        if core in (NO_AGENT, COPROCESSOR) or not is_plain_turn(t, core):
            return LIMIT


def run_turns_entry(t: TileRecord, core: Int, cache: Int) -> AnyInt:
    """`run_turns` for the table of handlers."""
    return run_turns(t, core, cache)
