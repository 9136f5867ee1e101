"""Loops in which a core waits for the clock: turns that go the same way pass at once.

Firmware waits for some hundred clocks: it loads both halves of the wall clock (tile K32) and compares them with when it
may go on. Each turn gets another clock, so such a core does not sleep (poll.py). One turn is followed: where the clock
is only compared without a sign, and all else stays as it was, it is known up to which clock the turns go the same way.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.machine.core_state import POLL_STEPS
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Bool, Int, Record, TileRecord
from bhemu.machine.wall_clock import HALF, HALF_BITS, LOW, is_wall_clock, may_load_ahead, set_wall_clock
from bhemu.riscv.arithmetic import ADDI, WORD
from bhemu.riscv.decode import NOWHERE, code_at
from bhemu.riscv.execute import instruction_at
from bhemu.riscv.loop_registers import changed_registers, restore_registers
from bhemu.riscv.simple import BEQ, BGE, BGEU, BLT, JAL, LW, branches

_FOREVER: Final = 1 << HALF
_NO_LOOP: Final = (0, 0, 0, 0)


@kernel
def _follow(t: TileRecord, code: Record, core: Int) -> Any:
    """Follow a turn of the loop at whose beginning the core is, in its next rounds; changes its registers.

    Returns:
        (instructions of the turn, 0: it does not only wait; clocks for which further turns go the same way; a bit for
        each register that holds the clock; the clock that was loaded last).
    """
    head = np.int64(t.core_pc[core])
    now = np.int64(t.core_round[core])
    high = np.int64(t.wall_clock_latch)
    pc: Int = head
    room: Int = np.int64(_FOREVER)
    held: Int = np.int64(0)  # registers that hold the clock
    written: Int = np.int64(0)
    used: Int = np.int64(0)  # what they were before the turn
    latest: Int = np.int64(-1)
    for step in range(POLL_STEPS):
        if pc >= t.l1_end or pc & 3:
            return _NO_LOOP
        fields = instruction_at(t, code, pc)
        n, register, of_a, of_b = fields & 0xFF, (fields >> 8) & 0xFF, (fields >> 16) & 0xFF, (fields >> 24) & 0xFF
        immediate = fields >> 32
        a = np.int64(t.core_x[core, of_a])
        a_is_clock = (held >> of_a) & 1
        if n != JAL:
            used |= (np.int64(1) << of_a) & ~written
        to = pc + 4
        value: Int = np.int64(0)
        loads_clock = False
        if n >= BEQ and n <= BGEU:
            b = np.int64(t.core_x[core, of_b])
            b_is_clock = (held >> of_b) & 1
            used |= (np.int64(1) << of_b) & ~written
            if a_is_clock | b_is_clock:
                if (a_is_clock & b_is_clock) or n in (BLT, BGE):
                    return _NO_LOOP
                clock, other = (a, b) if a_is_clock else (b, a)
                if clock <= other:
                    room = max(min(room, other - clock - 1), np.int64(0))
            if branches(n, a, b):
                to = pc + immediate
        elif n == JAL:
            value = to
            to = pc + immediate
        elif a_is_clock:
            return _NO_LOOP
        elif n == ADDI:
            value = (a + immediate) & WORD
        elif n == LW and is_wall_clock((a + immediate) & WORD):
            at = now + step - np.int64(t.free_rounds)
            if at < t.clock_read[core] or at >> HALF != high:
                return _NO_LOOP
            loads_clock = (a + immediate) & WORD == LOW
            value = high
            if loads_clock:
                value = at & HALF_BITS
                latest = at
                room = min(room, HALF_BITS - value)
        else:
            return _NO_LOOP
        bit = np.int64(1) << register
        written |= bit
        held = held | bit if loads_clock else held & ~bit
        t.core_x[core, register] = np.uint32(value)
        pc = to & WORD
        if pc == head:
            if changed_registers(t, core, held) != 0 or held & used != 0 or latest < 0:
                return _NO_LOOP
            return step + 1, room, held, latest
    return _NO_LOOP


@kernel
def pass_turns(t: TileRecord, cache: Int, core: Int) -> Bool:
    """Let a core that waits for the clock, at the beginning of its loop, pass the turns of the loop that it may now.

    It is the core's turn, and `follow` of poll.py has kept its registers. Returns False, and has done nothing, where it
    is not in such a loop, or may pass none.
    """
    length, room, held, latest = _follow(t, code_at(cache), core)
    now, ahead = np.int64(t.core_round[core]), np.int64(t.run_ahead)
    last = min(np.int64(t.round_goal) - 1, np.int64(t.round_horizon) + ahead)  # round
    turns: Int = np.int64(0)
    if length != 0 and t.interrupts == 0 and may_load_ahead(t, now, ahead) and may_load_ahead(t, last, ahead):
        turns = min(room // length + 1, (last - now + 1) // length)
    if turns <= 0:
        restore_registers(t, core)
        return False
    more = (turns - 1) * length
    for i in range(32):
        if (held >> i) & 1:
            t.core_x[core, i] = np.uint32(np.int64(t.core_x[core, i]) + more)
    t.core_x[core, NOWHERE] = 0
    set_wall_clock(t, core, latest + more)
    t.core_round[core] += turns * length
    t.core_retired[core] += turns * length
    t.core_skip_breakpoint[core] = 0
    return True
