"""One simple instruction of a core: where clients let clocks pass one by one (tile T34, H8).

The inner loop (execute.py) takes longer to begin and to end than for one instruction.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.machine.core_state import LOCAL_RAM_SIZE
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Bool, Int, Record, TileRecord
from bhemu.riscv.arithmetic import WORD
from bhemu.riscv.decode import NOWHERE
from bhemu.riscv.execute import instruction_at
from bhemu.riscv.simple import (
    FENCE,
    IN_L1,
    IN_RAM,
    LB,
    SB,
    SW,
    is_watched,
    load_memory,
    place_of_access,
    size_of,
    store_memory,
    without_access,
)

_CORE_BITS: Final = 7


@kernel
def step(t: TileRecord, core: Int, code: Record) -> Bool:
    """What `run_core` does in a round, the last one before the goal and not behind the horizon.

    Returns False, and has done nothing, where that is more than a simple instruction: one that is refused, that makes
    an access to something else than memory or may wake a core, or after which the core is to be looked at.
    """
    core &= _CORE_BITS  # as in `run_core`
    pc = np.int64(t.core_pc[core])
    l1_end = np.int64(t.l1_end)
    if pc >= l1_end or pc & 3:
        return False
    fields = instruction_at(t, code, pc)
    n = fields & 0xFF
    if n >= FENCE:  # the first that is not simple
        return False
    immediate = fields >> 32
    a = np.int64(t.core_x[core, (fields >> 16) & 0xFF])
    b = np.int64(t.core_x[core, (fields >> 24) & 0xFF])
    value: Int = np.int64(0)
    after = pc + 4
    if n >= LB and n <= SW:
        address = (a + immediate) & WORD
        place = place_of_access(address, size_of(n), l1_end, LOCAL_RAM_SIZE[core])
        if place not in (IN_L1, IN_RAM):
            return False
        if n < SB:
            value = load_memory(t, core, n, place, address)
        elif place == IN_L1 and is_watched(t, address):
            return False
        else:
            store_memory(t, core, n, place, address, b)
    else:
        value, after, _ = without_access(n, a, b, immediate, pc)
        after &= WORD
        if after <= pc:
            loops = np.int64(t.core_loops[core]) + 1
            if loops >= t.core_loops_limit[core]:
                return False
            t.core_loops[core] = loops
    t.core_x[core, (fields >> 8) & 0xFF] = np.uint32(value & WORD)
    t.core_x[core, NOWHERE] = 0
    t.core_pc[core] = np.uint32(after)
    t.core_round[core] += 1
    t.core_retired[core] += 1
    t.core_skip_breakpoint[core] = 0
    t.turn_core = core
    return True
