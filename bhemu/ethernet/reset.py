"""Soft reset of an Ethernet tile: holding and releasing cores ERISC0 and ERISC1 (ethernet 2.1).

Base firmware, which would run on core ERISC0 of a tile with a link, is not emulated: a core whose reset pc is 0 stays
where it is.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import Unimplemented
from bhemu.isa.memory_map import region
from bhemu.machine.core_state import FIRST_POLL_ATTEMPT, IN_RESET, LOCAL_RAM, RUNNING
from bhemu.machine.ethernet_state import ERISC0, ERISC1
from bhemu.machine.faults import DONE, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Int, TileRecord
from bhemu.riscv.poll import forget

HOLDS_ERISC0: Final = 1 << 11
HOLDS_ERISC1: Final = 1 << 12
BOTH_HELD: Final = HOLDS_ERISC0 | HOLDS_ERISC1
IGNORED: Final = 0x80046000
"""Bits of Tensix tiles' cores, which clients set on all tiles alike."""
STACK_TOP: Final = region("local_ram_upper").end
STACK_POINTER: Final = 2

UNKNOWN_BITS: Final = fault(
    "ethernet.reset-bits",
    Unimplemented,
    "the soft reset of an Ethernet tile is set to {0:#x}: other bits than 11 and 12 are not built",
    remedy="bit 11 holds core ERISC0, bit 12 core ERISC1; bits 13, 14, 18 and 31 are ignored",
    rule="ethernet 2.1",
)


@kernel
def _hold(t: TileRecord, core: Int) -> None:
    if t.core_state[core] != IN_RESET:
        forget(t, core)
        t.core_state[core] = IN_RESET
        t.core_request[core] = 0


@kernel
def release(t: TileRecord, core: Int) -> None:
    """Start a core that is in reset and has a reset pc; its local RAM is cleared, registers keep what they hold."""
    if t.core_state[core] != IN_RESET or t.reset_pc[core] == 0:
        return
    if core == ERISC1:
        t.core_x[core, STACK_POINTER] = np.uint32(STACK_TOP)
    for i in range(LOCAL_RAM // 4):
        t.core_ram_u32[core, i] = 0
    t.core_halt_reason[core] = 0
    t.core_loops[core] = 0
    t.core_loops_limit[core] = FIRST_POLL_ATTEMPT
    t.core_pc[core] = t.reset_pc[core]
    # A core that is released in a round begins in the next one; the host's accesses come before a round.
    t.core_round[core] = np.int64(t.now_round) + (0 if t.now_agent < 0 else 1)
    t.core_state[core] = RUNNING


@kernel
def store_soft_reset(t: TileRecord, value: Int) -> Any:
    """Status of a store to SOFT_RESET_0: a core whose bit is set is held, one whose bit is clear is released."""
    value &= ~IGNORED
    if value & ~BOTH_HELD:
        return refuse(t, UNKNOWN_BITS, value)
    t.soft_reset = np.uint32(value)
    if value & HOLDS_ERISC0:
        _hold(t, ERISC0)
    else:
        release(t, ERISC0)
    if value & HOLDS_ERISC1:
        _hold(t, ERISC1)
    else:
        release(t, ERISC1)
    return DONE
