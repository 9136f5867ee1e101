"""What becomes of a core that has jumped backwards often: it sleeps, passes turns, or its loop is translated.

Translated code is entered and left in each turn, which takes as long as to interpret some ten instructions, and where
many tiles move in turn the code that it compares is in no cache. So for a client, whose cores mostly poll or execute a
piece of code some hundred times, only loops that stay in what is translated are worth while, and only their own
instructions.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.machine.dispatch import call_handler
from bhemu.machine.kernel import kernel
from bhemu.machine.state import L1_SIZE
from bhemu.machine.types import Bool, Int, Record, TileRecord
from bhemu.riscv.arithmetic import WORD
from bhemu.riscv.clock_wait import pass_turns
from bhemu.riscv.code_memory import native_table
from bhemu.riscv.decode import FIRST_SLOW, code_at
from bhemu.riscv.execute import instruction_at
from bhemu.riscv.loop_registers import restore_registers
from bhemu.riscv.poll import COMPUTES, POLLS, fall_asleep, follow, give_up, is_memory, peek
from bhemu.riscv.simple import LB, SB, SW, loaded, without_access
from bhemu.riscv.teams import NO_ATTEMPT
from bhemu.riscv.translation_state import LOOP_HOT, REGION_WORDS, TRANSLATOR_PLACE

_NOT_WORTH: Final = -1


@kernel
def _find_path(t: TileRecord, code: Record, core: Int) -> Int:
    """Follow a turn of the loop as `follow` of poll.py does, but past stores: what later loads get may be old.

    Returns the number of instructions, whose addresses are in `path`; 0: they are too many; _NOT_WORTH: not all of them
    are translated.
    """
    head = np.int64(t.core_pc[core])
    pc: Int = head
    for step in range(REGION_WORDS):
        if pc >= t.l1_end or pc & 3:
            return np.int64(_NOT_WORTH)
        fields = instruction_at(t, code, pc)
        n = fields & 0xFF
        if n >= FIRST_SLOW:
            return np.int64(_NOT_WORTH)
        code.path[step] = pc
        immediate = fields >> 32
        a = np.int64(t.core_x[core, (fields >> 16) & 0xFF])
        value: Int = np.int64(0)
        to: Int = pc + 4
        if n >= LB and n <= SW:
            address = (a + immediate) & WORD
            if not is_memory(t, core, address):
                return np.int64(_NOT_WORTH)
            if n < SB:
                value = loaded(n, peek(t, core, address & ~3)[1], address)
        else:
            value, to, _ = without_access(n, a, np.int64(t.core_x[core, (fields >> 24) & 0xFF]), immediate, pc)
        t.core_x[core, (fields >> 8) & 0xFF] = np.uint32(value & WORD)
        pc = to & WORD
        if pc == head:
            return np.int64(step + 1)
    return np.int64(0)


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
    count = _find_path(t, code, core)
    restore_registers(t, core)  # that `follow` has kept
    if count != _NOT_WORTH:
        code.path_count = count
        call_handler(native_table(cache), TRANSLATOR_PLACE, t, cache, core << 32 | np.int64(t.core_pc[core]))
        code.path_count = 0


@kernel
def attempt(t: TileRecord, cache: Int, core: Int, may_pass: Bool) -> None:
    """The core's turn begins, and all agents before it have had theirs: it falls asleep if it polls.

    Args:
        may_pass: nothing looks on, so it may pass turns in which it waits for the clock, and its loop be translated.
    """
    found = follow(t, cache, core)
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
