"""A tile moved by a single round, for debuggers: the same turns in the same order as schedule.py (tile T34).

A round in which the coprocessor executes something takes no time, so one clock may hold many rounds, and a debugger
that could only let clocks pass would not see what happens in them.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import numpy as np

from bhemu.machine.kernel import kernel
from bhemu.tile.schedule import ADVANCED, begin_clocks, turn_of_coprocessor, turn_of_core
from bhemu.tile.turns import COPROCESSOR, NOBODY, choose


@kernel
def advance_round(t, table):
    """Let every agent take its turn of the round in progress; returns what `schedule.advance` does."""
    result = ADVANCED
    while result == ADVANCED:
        goal = np.int64(t.round_goal)
        agent = choose(t)
        if agent == NOBODY:
            break
        if agent == COPROCESSOR:
            result = turn_of_coprocessor(t, table)
            if result == ADVANCED and t.round_goal != goal:
                break  # it has executed something: the round took no time, and another follows in the same clock
        else:
            result = turn_of_core(t, table, agent)
    t.clock = t.round_goal - t.free_rounds
    return result


def advance_round_entry(t, table, begin):
    """Advance the tile by one round.

    Args:
        begin: 1 when the clock before is complete, 0 to go on inside of a clock.
    """
    if begin != 0:
        begin_clocks(t, 1)
    return advance_round(t, table)
