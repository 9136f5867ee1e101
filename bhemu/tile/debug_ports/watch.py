"""Pausing a core, and the watchpoints that pause it (tile K42).

A breakpoint or watchpoint pauses the core after the instruction that hits it. While a core steps or has watchpoints on
(`debug_watch`), the schedule executes one instruction a turn, between `before_instruction` and
`after_instruction`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.isa.memory_map import region
from bhemu.isa.riscv import FIRST, NUMBER
from bhemu.machine.core_state import ASLEEP, BLOCKED, FIRST_POLL_ATTEMPT, HALT_DEBUGGER, HALTED, RUNNING
from bhemu.machine.kernel import kernel
from bhemu.machine.state import L1_SIZE
from bhemu.machine.types import Int, TileRecord
from bhemu.riscv.arithmetic import WORD
from bhemu.riscv.decode import TTINSN, fields_of
from bhemu.riscv.poll import wake
from bhemu.riscv.simple import LB, LHU, SB, SH, SW, size_of
from bhemu.riscv.teams import NO_ATTEMPT
from bhemu.tile.reset import agent_round

MODES: Final = 5
FIRST_ADDRESS: Final = 10
WATCHPOINTS: Final = 8

BY_BREAKPOINT: Final = 2
BY_WATCHPOINT: Final = 4
HIT_LSB: Final = 8
"""Bits of the debug status (`debug_cause`)."""

MODE_PC: Final = 8
MODE_BOTH: Final = 11
"""Watchpoint modes: 8 pc, 9 load, 10 store, 11 both; others are off."""
_LOADS: Final = 1
_STORES: Final = 2

WATCHING: Final = 1
"""Bit of `debug_watch`: some watchpoint is on."""
STEPPING: Final = 2
"""Bit of `debug_watch`: pause after the next instruction."""

_PUSH_ADDRESS: Final = region("push0").base
FLW, FSW = NUMBER["flw"], NUMBER["fsw"]
_FIRST_ATOMIC, _FIRST_CSR = FIRST["atomic"], FIRST["csr"]


@kernel
def pause(t: TileRecord, core: Int, cause: Int) -> None:
    """Stop a core before its next instruction."""
    state = t.core_state[core]
    if state == ASLEEP:
        wake(t, core, agent_round(t, core))
    if state in (RUNNING, ASLEEP, BLOCKED):
        t.core_state[core] = HALTED
        t.core_halt_reason[core] = HALT_DEBUGGER
        t.debug_cause[core] = cause
        # A loop that was to be followed may find other registers when the core resumes.
        t.poll_steps[core] = NO_ATTEMPT
    t.debug_half_step[core] = 0
    t.debug_watch[core] &= ~STEPPING


@kernel
def resume(t: TileRecord, core: Int) -> None:
    """Resume a paused core at the instruction at pc."""
    t.core_state[core] = RUNNING
    t.core_halt_reason[core] = 0
    t.core_loops[core] = 0
    t.core_loops_limit[core] = FIRST_POLL_ATTEMPT
    t.core_skip_breakpoint[core] = 1  # of a debugger in the host, if it has one here
    t.core_round[core] = agent_round(t, core)
    t.debug_cause[core] = 0
    t.debug_half_step[core] = 0
    t.debug_watch[core] &= ~STEPPING


@kernel
def _access_of(t: TileRecord, core: Int, pc: Int) -> Any:
    """(kind, address, size) of the access that the instruction at pc makes; kind 0: none, bits _LOADS and _STORES."""
    word = np.int64(t.l1_u32[pc >> 2])
    fields = fields_of(word)
    n = fields & 0xFF
    base = np.int64(t.core_x[core, (fields >> 16) & 31])
    address = (base + (fields >> 32)) & WORD
    if n >= LB and n <= LHU:
        return _LOADS, address, size_of(n)
    if n in (SB, SH, SW):
        return _STORES, address, size_of(n)
    if n in (FLW, FSW):
        return _LOADS if n == FLW else _STORES, address, 4
    if n >= _FIRST_ATOMIC and n < _FIRST_CSR:
        return _LOADS | _STORES, base, 4
    if n == TTINSN:  # exactly a store (T10)
        return _STORES, np.int64(_PUSH_ADDRESS), 4
    return 0, np.int64(0), 0


@kernel
def before_instruction(t: TileRecord, core: Int) -> None:
    """Remember the watchpoints that the instruction at pc is going to hit."""
    t.debug_hits[core] = 0
    pc = np.int64(t.core_pc[core])
    if not t.debug_watch[core] & WATCHING or pc >= L1_SIZE:
        return
    modes = np.int64(t.debug_dr[core, MODES])
    kind, address, size = _access_of(t, core, pc)
    for i in range(WATCHPOINTS):
        mode = (modes >> (4 * i)) & 0xF
        watched = np.int64(t.debug_dr[core, FIRST_ADDRESS + i])
        hit = mode == MODE_PC and watched == pc
        if mode > MODE_PC and mode <= MODE_BOTH and watched >= address and watched < address + size:
            hit = (mode & kind) != 0
        if hit:
            t.debug_hits[core] |= 1 << i


@kernel
def after_instruction(t: TileRecord, core: Int) -> None:
    """Pause the core if it has made its step or hit a watchpoint."""
    hits = np.int64(t.debug_hits[core])
    cause = np.int64(0)
    if hits != 0:
        cause = hits << HIT_LSB
        modes = np.int64(t.debug_dr[core, MODES])
        for i in range(WATCHPOINTS):
            if (hits >> i) & 1:
                cause |= BY_BREAKPOINT if (modes >> (4 * i)) & 0xF == MODE_PC else BY_WATCHPOINT
    steps = t.debug_watch[core] & STEPPING
    if t.core_state[core] == HALTED:  # by ebreak or ecall
        t.debug_cause[core] = cause
        t.debug_watch[core] &= ~STEPPING
    elif hits != 0 or steps:
        pause(t, core, cause)
