"""Words that a core pushes to its coprocessor by `.ttinsn`, and a push in the midst of a turn (tile T11, E43)."""

from __future__ import annotations

import numpy as np

from bhemu.machine.agents import T0
from bhemu.machine.core_state import RUNNING
from bhemu.machine.ethernet_state import TENSIX_TILE
from bhemu.machine.frontend_state import READY_PUSH_LIMIT
from bhemu.machine.kernel import kernel
from bhemu.machine.origin import line_of_pc
from bhemu.machine.state import THREADS
from bhemu.machine.types import Bool, Int, TileRecord
from bhemu.tensix.frontend.fetch import fifo_push, is_idle, ready_words


@kernel(forceinline=True)
def pushed_word(instruction: Int) -> Int:
    """The Tensix instruction that a `.ttinsn` holds."""
    return (instruction >> 2) | ((instruction & 3) << 30)


@kernel
def pushes(t: TileRecord, core: Int, instruction: Int, pc: Int, now: Int) -> Bool:
    """Push what a `.ttinsn` holds to the core's own thread; False where that is left to tile/accesses.py.

    It is done here in the order of the official simulator alone, in which a core pushes one word in a round (E43).
    """
    thread = core - T0
    if t.simulator_order == 0 or thread < 0 or thread >= THREADS or t.tile_kind != TENSIX_TILE:
        return False
    if ready_words(t, thread) > READY_PUSH_LIMIT or not fifo_push(t, thread, pushed_word(instruction), line_of_pc(pc)):
        return False
    if t.tensix_state != RUNNING and not is_idle(t, thread):
        t.tensix_state = RUNNING
        t.tensix_round = max(np.int64(t.tensix_round), now)
    return True
