"""Control, debug and status registers (tile K31 to K42)."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.errors import Unimplemented
from bhemu.machine.agents import NC, T0
from bhemu.machine.faults import DONE, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.state import THREADS
from bhemu.tile.reset import store_soft_reset

SOFT_RESET: Final = 0x1B0
WALL_CLOCK_0: Final = 0x1F0
WALL_CLOCK_1: Final = 0x1F4
WALL_CLOCK_1_AT: Final = 0x1F8
DISABLE_RESET: Final = 0x224
RESET_PC_T0: Final = 0x228
RESET_OVERRIDE_T: Final = 0x234
RESET_PC_NC: Final = 0x238
RESET_OVERRIDE_NC: Final = 0x23C
CLOCK_GATING: Final = 0x240

NO_REGISTER: Final = fault(
    "control.register",
    Unimplemented,
    "register {0:#x} of the control block (0xffb12000) is not built",
    remedy="see tile K31",
    rule="tile K31",
)


@kernel
def clock_now(t):
    """The tile's clock in the round of the access in progress (K32)."""
    return np.int64(t.now_round) - np.int64(t.free_rounds)


@kernel
def control_load(t, agent, offset):
    """(status, value) of a load, 0 <= offset < 0x1000."""
    value = np.int64(0)
    if offset == SOFT_RESET:
        value = np.int64(t.soft_reset)
    elif offset == WALL_CLOCK_0:
        now = clock_now(t)
        t.wall_clock_latch = np.uint32((now >> 32) & 0xFFFFFFFF)
        value = now & 0xFFFFFFFF
    elif offset == WALL_CLOCK_1:
        value = (clock_now(t) >> 32) & 0xFFFFFFFF
    elif offset == WALL_CLOCK_1_AT:
        value = np.int64(t.wall_clock_latch)
    elif offset == DISABLE_RESET:
        value = np.int64(t.disable_reset)
    elif offset >= RESET_PC_T0 and offset < RESET_PC_T0 + 4 * THREADS:
        value = np.int64(t.reset_pc[T0 + (offset - RESET_PC_T0) // 4])
    elif offset == RESET_OVERRIDE_T:
        for thread in range(THREADS):
            value |= np.int64(t.reset_pc_override[T0 + thread]) << thread
    elif offset == RESET_PC_NC:
        value = np.int64(t.reset_pc[NC])
    elif offset == RESET_OVERRIDE_NC:
        value = np.int64(t.reset_pc_override[NC])
    else:
        return refuse(t, NO_REGISTER, offset), value
    return DONE, value


@kernel
def control_store(t, agent, offset, value):
    """Status of a store of 32 bits."""
    if offset == SOFT_RESET:
        store_soft_reset(t, value)
    elif offset == DISABLE_RESET:
        t.disable_reset = np.uint32(value)
    elif offset >= RESET_PC_T0 and offset < RESET_PC_T0 + 4 * THREADS:
        t.reset_pc[T0 + (offset - RESET_PC_T0) // 4] = np.uint32(value)
    elif offset == RESET_OVERRIDE_T:
        for thread in range(THREADS):
            t.reset_pc_override[T0 + thread] = (value >> thread) & 1
    elif offset == RESET_PC_NC:
        t.reset_pc[NC] = np.uint32(value)
    elif offset == RESET_OVERRIDE_NC:
        t.reset_pc_override[NC] = value & 1
    elif offset == CLOCK_GATING:
        return DONE
    else:
        return refuse(t, NO_REGISTER, offset)
    return DONE
