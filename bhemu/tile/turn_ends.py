"""How a core's turn ends (tile T34): its access is made, agents that waited go on, or the schedule has to stop."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.machine.agents import CORES
from bhemu.machine.core_state import BLOCKED, HALT_REFUSED, HALTED, LOAD, PUSH, RUNNING
from bhemu.machine.dispatch import NOT_COMPILED, handlers_of
from bhemu.machine.ethernet_state import TENSIX_TILE
from bhemu.machine.faults import DONE, REQUEST_PENDING, WAIT
from bhemu.machine.kernel import kernel
from bhemu.machine.state import THREADS
from bhemu.machine.types import Bool, Int, Table, TileRecord
from bhemu.machine.wall_clock import is_wall_clock, load_wall_clock, may_load_ahead
from bhemu.riscv.arithmetic import WORD
from bhemu.riscv.execute import ACCESS, FAULTED, GOES_ON, LOOPS, NOT_MADE, SLOW, STOPPED, TURN_ENDS, hand_over_access
from bhemu.riscv.poll import begin_attempt, wake_changed
from bhemu.riscv.simple import LW, SB, SW, size_of
from bhemu.riscv.teams import NO_ATTEMPT
from bhemu.tensix.frontend.fetch import is_idle
from bhemu.tensix.mmio import OVERLAY_END, OVERLAY_FIRST, store_to_overlay
from bhemu.tile.accesses import access, slow, would_wait
from bhemu.tile.debug_ports.watch import after_instruction
from bhemu.tile.memory_map import NIU_BYTES, NIU_END, NIU_FIRST, changes_only_data, may_be_early, may_end_a_wait
from bhemu.tile.noc.niu import niu_load, niu_store
from bhemu.tile.noc.transfer import end_request

# What a turn and `move` of tile/schedule.py return, or OBSERVER_FULL
ADVANCED: Final = 0
"""Every agent has reached the goal."""
CORE_FAULTED: Final = 1
NEEDS_HANDLER: Final = 2
"""The host must compile a handler or fill a place of the table, and call again."""
AT_BREAKPOINT: Final = 3
"""A core is at a breakpoint: `stopped_core`."""
TENSIX_FAULTED: Final = 4
NOC_REQUEST: Final = 6
"""The tile's NoC request `noc_pending` must be carried out before the tile can go on."""

COPROCESSOR: Final = CORES
"""The coprocessor's place in the order of a round."""
NO_AGENT: Final = -1


@kernel
def _rearm(t: TileRecord, at_round: Int, agent: Int) -> bool:
    """State has changed in the turn of `agent`: agents that were blocked try again in their next turn.

    Those that would wait again need not; the host may have changed what they do (NO_AGENT). True: some core does.
    """
    found = False
    for core in range(CORES):
        if t.core_state[core] == BLOCKED and (agent == NO_AGENT or not would_wait(t, core)):
            t.core_state[core] = RUNNING
            t.core_round[core] = max(np.int64(t.core_round[core]), at_round + (1 if core <= agent else 0))
            found = True
    if agent != COPROCESSOR and t.tensix_state != RUNNING:
        for thread in range(THREADS):
            if not is_idle(t, thread):
                t.tensix_state = RUNNING
        if t.macro.pending != 0:
            t.tensix_state = RUNNING
        if t.tensix_state == RUNNING:
            t.tensix_round = max(np.int64(t.tensix_round), at_round)
    return found


@kernel
def event(t: TileRecord, at_round: Int, agent: Int, words: Bool) -> bool:
    """What the agents share has changed in the turn of `agent` in round `at_round`; True: a core that waited goes on.

    Args:
        words: also words that a sleeping core may wait for (riscv/poll.py).
    """
    found = _rearm(t, at_round, agent)
    if words and t.sleepers != 0 and wake_changed(t, at_round, agent):
        found = True
    return found


@kernel
def _retire(t: TileRecord, core: Int, pc: Int) -> None:
    """The instruction of an access has been executed."""
    t.core_pc[core] = np.uint32(pc & WORD)
    t.core_round[core] += 1
    t.core_retired[core] += 1
    t.core_skip_breakpoint[core] = 0


@kernel
def _blame(t: TileRecord, core: Int) -> Any:
    """The core's instruction was refused; the core is halted, the others can continue."""
    t.fault_core = core + 1
    t.fault_pc = t.core_pc[core]
    t.core_state[core] = HALTED
    t.core_halt_reason[core] = HALT_REFUSED
    return CORE_FAULTED


@kernel(seldom=True)
def _finish(t: TileRecord, core: Int, status: Int, pc_step: Int) -> Any:
    """What follows from the status of an access or a slow instruction; returns what `advance` does next."""
    if status == DONE:
        at_round = np.int64(t.core_round[core])
        if t.core_state[core] == RUNNING:
            _retire(t, core, np.int64(t.core_pc[core]) + pc_step)
        event(t, at_round, core, t.access_kind[core] not in (LOAD, PUSH))
        return ADVANCED
    if status == WAIT:
        t.core_state[core] = BLOCKED
        t.core_round[core] += 1
        return ADVANCED
    if status == REQUEST_PENDING:
        t.core_request[core] = t.noc_pending
        return NOC_REQUEST
    if status == NOT_COMPILED:
        return NEEDS_HANDLER if t.noc_pending == 0 else NOC_REQUEST
    return _blame(t, core)


@kernel(seldom=True)
def access_in_turn(t: TileRecord, core: Int, fields: Int, address: Int, early: Bool) -> Int:
    """Make the access of a core's load or store, and let its turn go on, where that can be; see `make_run_core`."""
    n = fields & 0xFF
    stores = n >= SB
    if address & (size_of(n) - 1):
        return np.int64(NOT_MADE)
    if n == LW and is_wall_clock(address):
        if early and not may_load_ahead(t, np.int64(t.core_round[core]), np.int64(t.run_ahead)):
            return np.int64(NOT_MADE)
        clock = load_wall_clock(t, core, address, np.int64(t.core_round[core]))
        t.core_x[core, (fields >> 8) & 0xFF] = np.uint32(clock)
        return np.int64(GOES_ON)
    to_stream = n == SW and address >= OVERLAY_FIRST and address < OVERLAY_END  # of these there are most
    if t.tile_kind != TENSIX_TILE or not (to_stream or changes_only_data(core, address, stores)):
        return np.int64(NOT_MADE)
    if early and not may_be_early(t, core, address, stores):
        return np.int64(NOT_MADE)
    # What `access` does; without the memory map where firmware clears hundreds of registers, or describes one request
    # after the other.
    t.now_round = t.core_round[core]
    t.now_agent = core
    stored = np.int64(t.core_x[core, (fields >> 24) & 0xFF])
    if to_stream:
        status = store_to_overlay(t, address - OVERLAY_FIRST, stored)
    elif n == SW and address >= NIU_FIRST and address < NIU_END:
        status = niu_store(t, (address - NIU_FIRST) // NIU_BYTES, (address - NIU_FIRST) % NIU_BYTES, stored)
    elif n == LW and address >= NIU_FIRST and address < NIU_END:
        status, value = niu_load(t, (address - NIU_FIRST) // NIU_BYTES, (address - NIU_FIRST) % NIU_BYTES)
        if status == DONE:
            t.core_x[core, (fields >> 8) & 0xFF] = np.uint32(value)
    else:
        hand_over_access(t, core, fields, address)
        status = access(t, handlers_of(t), core)
    if status != DONE:
        # It has changed nothing, and is tried again at the end of the turn. Other agents may be refused before.
        t.fault_code = 0
        return np.int64(NOT_MADE)
    goes_on = False
    if may_end_a_wait(t, address):
        goes_on = event(t, np.int64(t.now_round), core, stores and t.watch_registers != 0)
    return np.int64(TURN_ENDS if goes_on or t.interrupts != 0 else GOES_ON)


@kernel
def end_of_request(t: TileRecord, core: Int) -> Any:
    """The NoC request that the core's store has started is over: so is the store, which was not refused before."""
    number = np.int64(t.core_request[core]) - 1
    t.core_request[core] = 0
    t.now_round = t.core_round[core]
    t.now_agent = core
    retired = np.int64(t.core_retired[core])
    result = _finish(t, core, end_request(t, number), 4)
    if t.debug_watch[core] != 0 and t.core_retired[core] != retired:
        after_instruction(t, core)
    return result


@kernel(forceinline=True)
def after_run(t: TileRecord, table: Table, core: Int, reason: Int) -> Any:
    """What follows from why a core has left its loop; returns what `advance` does next.

    Args:
        reason: LIMIT and others of riscv/execute.py.
    """
    result = ADVANCED
    if reason == ACCESS:
        result = _finish(t, core, access(t, table, core), 4)
    elif reason == SLOW:
        result = _finish(t, core, slow(t, table, core), 0)
    elif reason == FAULTED:
        result = _blame(t, core)
    elif reason == STOPPED:
        t.stopped_core = core
        result = AT_BREAKPOINT
    elif reason == LOOPS and t.poll_steps[core] == NO_ATTEMPT:
        begin_attempt(t, core)
    return result
