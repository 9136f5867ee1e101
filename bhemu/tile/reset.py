"""Soft reset: holding and releasing cores, and where a released core starts (tile T14 to T18)."""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.isa.tile_registers import bit_of
from bhemu.machine.agents import CORE_NAMES, CORES, NC, T0, T2, B
from bhemu.machine.core_state import FIRST_POLL_ATTEMPT, IN_RESET, LOCAL_RAM_SIZE, REGISTERS, RUNNING
from bhemu.machine.kernel import kernel
from bhemu.machine.types import AnyInt, Int, TileRecord
from bhemu.machine.vector_core_state import VECTOR_REGISTERS, VLEN_BYTES
from bhemu.riscv.poll import forget

CORE_BIT: Final = np.array([bit_of("control", "SOFT_RESET_0", name) for name in CORE_NAMES], np.int64)
"""Bit of the soft-reset register that holds each core (T14)."""
DEFAULT_PC: Final = np.array([0x0000, 0x6000, 0xA000, 0xE000, 0x12000], np.int64)
"""Where a core starts unless its override is enabled (T14)."""
KEEP_RAM_BIT: Final = np.array([bit_of("control", "DISABLE_RESET", f"{name}_RAM") for name in CORE_NAMES], np.int64)
"""Bit of DISABLE_RESET that keeps each core's local RAM (T16)."""


@kernel
def start_pc(t: TileRecord, core: Int) -> AnyInt:
    """The pc that a core takes when it is released now."""
    if core != B and t.reset_pc_override[core] != 0:
        return np.int64(t.reset_pc[core])
    return DEFAULT_PC[core]


@kernel
def agent_round(t: TileRecord, agent: Int) -> Int:
    """Round in which an agent has its next turn after the access in progress: cores move in order B, T0, T1, T2, NC."""
    return np.int64(t.now_round) + (1 if agent <= t.now_agent else 0)


@kernel
def _hold(t: TileRecord, core: Int) -> None:
    """Entering reset (T16): a T core's queued words are dropped, mailboxes that the core writes are emptied."""
    forget(t, core)
    t.core_state[core] = IN_RESET
    t.core_request[core] = 0
    if core >= T0 and core <= T2:
        thread = core - T0
        t.frontend.fifo_count[thread] = 0
        t.frontend.mop_active[thread] = 0
        t.pcbuf_waiting[thread] = 0
    if core != NC:
        for reader in range(4):
            t.mailbox_count[core, reader] = 0


@kernel
def _release(t: TileRecord, core: Int) -> None:
    """Leaving reset (T15, T16)."""
    for i in range(REGISTERS):
        t.core_x[core, i] = 0
    for i in range(32):
        t.core_f[core, i] = 0
    t.core_fcsr[core] = 0
    if core == T2:
        for i in range(VECTOR_REGISTERS * VLEN_BYTES // 4):
            t.vector_core.word[i] = 0
    if ((np.int64(t.disable_reset) >> KEEP_RAM_BIT[core]) & 1) == 0:
        for i in range(LOCAL_RAM_SIZE[core] // 4):
            t.core_ram_u32[core, i] = 0
    if core >= T0 and core <= T2:
        t.pcbuf_count[core - T0] = 0
    t.core_in_handler[core] = 0
    t.core_halt_reason[core] = 0
    t.core_loops[core] = 0
    t.core_loops_limit[core] = FIRST_POLL_ATTEMPT
    t.core_pc[core] = np.uint32(start_pc(t, core))
    # A core that is released in a round begins in the next one; the host's accesses come before a round.
    t.core_round[core] = np.int64(t.now_round) + (0 if t.now_agent < 0 else 1)
    t.core_state[core] = RUNNING


@kernel
def store_soft_reset(t: TileRecord, value: Int) -> None:
    """Store to the soft-reset register; cores whose bit changes are held or released."""
    before = np.int64(t.soft_reset)
    t.soft_reset = np.uint32(value)
    for core in range(CORES):
        bit = CORE_BIT[core]
        held, holds = (before >> bit) & 1, (value >> bit) & 1
        if holds and not held:
            _hold(t, core)
        elif held and not holds:
            _release(t, core)
