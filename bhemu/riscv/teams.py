"""Cores of a tile that take short turns, all of them in translated code: a team (tile T34).

Cores that share memory take turns of a few instructions, from one access to L1 to the next. A core of a team that stops
at the horizon leaves its registers in the record, and the next one goes on where it had stopped, without leaving
machine code in between (SWITCH of x86.py). Whose turn it is, and up to which round, follows from the same rule as in
`choose` of tile/turns.py.

A team lasts as long as its cores execute translated code and nothing else: whatever else they do ends it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.machine.agents import CORES
from bhemu.machine.buffer_memory import load_i64, store_i64
from bhemu.machine.core_state import LOCAL_RAM_SIZE, RUNNING
from bhemu.machine.kernel import kernel
from bhemu.machine.state import L1_SIZE
from bhemu.machine.types import Bool, Int, Record, TileRecord
from bhemu.riscv.translation_state import CODE_AT, CODE_SIZE, GOAL, KEYS, RAM_SIZES, RESUME, SWITCHES

NO_ATTEMPT: Final = -1
"""`poll_steps` of a core whose loop is not to be followed (poll.py)."""
_WORTH: Final = 8
"""Switches that make a team worth while; after one with less there is none for this number of turns:"""
_PAUSE: Final = 48
_NO_TURN: Final = -1


@kernel
def is_plain_turn(t: TileRecord, core: Int) -> bool:
    """True when the core begins with a new instruction, is not watched, and no interrupt or attempt to sleep is due."""
    looked_at = t.poll_steps[core] != NO_ATTEMPT or t.debug_watch[core] != 0
    return not looked_at and t.interrupts == 0 and t.core_request[core] == 0


@kernel
def can_join(t: TileRecord, agent: Int) -> Bool:
    """True when the turn of an agent can be one of a team."""
    return agent < CORES and is_plain_turn(t, agent) and t.core_skip_breakpoint[agent] == 0


@kernel
def _key(left: Int, agent: Int) -> Int:
    return 8 * left + 7 - agent


@kernel(seldom=True)
def begin_team(t: TileRecord, c: Record, core: Int, goal: Int) -> bool:
    """The core, whose turn it is, and others that run are a team from now on; False: each takes its turn by itself."""
    if c.pause > 0:
        c.pause -= 1
        return False
    memory = np.int64(c.memory)
    if load_i64(memory, SWITCHES) < _WORTH:
        store_i64(memory, SWITCHES, _WORTH)
        c.pause = _PAUSE
        return False
    if not can_join(t, core):
        return False
    for agent in range(CORES):
        runs = t.core_state[agent] == RUNNING
        store_i64(memory, KEYS + agent, _key(goal - t.core_round[agent], agent) if runs else _NO_TURN)
        store_i64(memory, RESUME + agent, 0)
        store_i64(memory, RAM_SIZES + agent, LOCAL_RAM_SIZE[agent])
    runs = t.tensix_state == RUNNING
    store_i64(memory, KEYS + CORES, _key(goal - t.tensix_round, np.int64(CORES)) if runs else _NO_TURN)
    store_i64(memory, RESUME + CORES, 0)
    store_i64(memory, CODE_AT, L1_SIZE)  # nothing yet
    store_i64(memory, CODE_SIZE, -L1_SIZE)
    store_i64(memory, GOAL, goal)
    store_i64(memory, SWITCHES, 0)
    return True
