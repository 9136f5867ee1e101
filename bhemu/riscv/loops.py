"""What becomes of a core that has jumped backwards often: it sleeps, passes turns, or its loop is translated.

Translated code is entered and left in each turn, which takes as long as to interpret some ten instructions, and where
many tiles move in turn the code that it compares is in no cache. So for a client, whose cores mostly poll or execute a
piece of code some hundred times, only loops that stay in what is translated are worth while, and only their own
instructions.
"""

from __future__ import annotations

import numpy as np

from bhemu.machine.core_state import POLL_STEPS
from bhemu.machine.dispatch import call_handler
from bhemu.machine.kernel import kernel
from bhemu.machine.state import L1_SIZE
from bhemu.machine.types import Bool, Int, TileRecord
from bhemu.riscv.clock_wait import pass_turns
from bhemu.riscv.code_memory import native_table
from bhemu.riscv.decode import code_at
from bhemu.riscv.poll import COMPUTES, POLLS, fall_asleep, follow, give_up
from bhemu.riscv.teams import NO_ATTEMPT
from bhemu.riscv.translation_state import LOOP_HOT, TRANSLATOR_PLACE


@kernel(seldom=True)
def _iterate(t: TileRecord, cache: Int, core: Int, count: Int) -> None:
    """The core is at the beginning of a loop that computes, and has jumped backwards `count` times."""
    code = code_at(cache)
    place = np.int64(t.core_pc[core]) >> 2
    translates = code.native[TRANSLATOR_PLACE] != 0 and t.run_ahead != 0 and t.l1_end == L1_SIZE
    if not translates or place >= L1_SIZE >> 2 or code.heat[place] >= code.hot:
        return
    heat: Int = np.int64(code.heat[place]) + count
    if heat < code.hot and heat < LOOP_HOT:
        code.heat[place] = heat
        return
    code.heat[place] = code.hot
    if follow(t, cache, core, True) == COMPUTES:
        length = np.int64(t.poll_length[core])
        code.path_count = length if length < POLL_STEPS else 0
        call_handler(native_table(cache), TRANSLATOR_PLACE, t, cache, core << 32 | np.int64(t.core_pc[core]))


@kernel
def attempt(t: TileRecord, cache: Int, core: Int, may_pass: Bool) -> None:
    """The core's turn begins, and all agents before it have had theirs: it falls asleep if it polls.

    Args:
        may_pass: nothing looks on, so it may pass turns in which it waits for the clock, and its loop be translated.
    """
    found = follow(t, cache, core, False)
    if found == POLLS:
        t.poll_steps[core] = NO_ATTEMPT
        fall_asleep(t, core)
    elif may_pass and pass_turns(t, cache, core):
        t.poll_steps[core] = NO_ATTEMPT
        t.core_loops[core] = t.core_loops_limit[core] - 1  # it tries again when it jumps backwards next
    else:
        if may_pass and found == COMPUTES:
            _iterate(t, cache, core, np.int64(t.core_loops_limit[core]))
        give_up(t, core)
