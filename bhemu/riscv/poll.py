"""Polling loops: a core that spins without changing anything sleeps until a word that it reads changes.

A turn of the loop is recorded an instruction at a time: registers before each, and the words that are read. If the
turn has changed no register and stored nothing, and the words still hold what was read, then all further turns are the
same, and where the core is in a later round is plain arithmetic. So sleeping is never observable, except in speed.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.isa.tile_registers import tile_register
from bhemu.machine.agents import CORES
from bhemu.machine.core_state import (
    ASLEEP,
    FIRST_POLL_ATTEMPT,
    IN_RESET,
    LOCAL_RAM_SIZE,
    POLL_STEPS,
    RUNNING,
    WATCHES,
)
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Int, TileRecord
from bhemu.riscv.arithmetic import WORD
from bhemu.riscv.decode import FIRST_SLOW, TTINSN, fields_of
from bhemu.riscv.execute import LB, LBU, LH, LHU, LW, RAM_BASE, SB, SH, SW
from bhemu.riscv.teams import NOT_RECORDING
from bhemu.tensix.mmio import OVERLAY_END, OVERLAY_FIRST, STREAM_BYTES
from bhemu.tensix.overlay import peek_stream_register

LONGEST_PAUSE: Final = 4096
"""Jumps backwards between attempts, at most."""

SEMAPHORES: Final = tile_register("sync", "SEMAPHORE").span.start
SEMAPHORES_END: Final = tile_register("sync", "SEMAPHORE").span.stop


@kernel
def peek(t: TileRecord, core: Int, address: Int) -> Any:
    """(known, value) of the word at an aligned address that a core may read without changing anything.

    Known are words that only stores change: L1, the core's local RAM, semaphores, plain registers of overlay streams.
    """
    if address < t.l1_end:
        return True, np.int64(t.l1_u32[address >> 2])
    offset = address - RAM_BASE
    if offset >= 0 and offset < LOCAL_RAM_SIZE[core]:
        return True, np.int64(t.core_ram_u32[core, offset >> 2])
    if address >= SEMAPHORES and address < SEMAPHORES_END and core >= 1 and core <= 3:
        return True, np.int64(t.sync.semaphore[(address - SEMAPHORES) >> 2])
    if address >= OVERLAY_FIRST and address < OVERLAY_END:
        return peek_stream_register(
            t, (address - OVERLAY_FIRST) // STREAM_BYTES, ((address - OVERLAY_FIRST) % STREAM_BYTES) // 4
        )
    return False, np.int64(0)


@kernel
def begin_recording(t: TileRecord, core: Int) -> None:
    """The core has jumped backwards often: record a turn from here."""
    t.core_loops[core] = 0
    t.poll_steps[core] = 0
    t.watch_count[core] = 0


@kernel
def _give_up(t: TileRecord, core: Int) -> None:
    t.poll_steps[core] = NOT_RECORDING
    t.core_loops_limit[core] = min(2 * t.core_loops_limit[core], LONGEST_PAUSE)


@kernel
def record_step(t: TileRecord, core: Int) -> None:
    """Record the instruction that the core is about to execute, or give up recording."""
    step = np.int64(t.poll_steps[core])
    pc = np.int64(t.core_pc[core])
    if step == POLL_STEPS or pc >= t.l1_end:
        _give_up(t, core)
        return
    fields = fields_of(np.int64(t.l1_u32[pc >> 2]))
    n = fields & 0xFF
    if n >= FIRST_SLOW or n in (TTINSN, SW, SB, SH):
        _give_up(t, core)
        return
    if n in (LW, LB, LBU, LH, LHU):
        address = (np.int64(t.core_x[core, (fields >> 16) & 31]) + (fields >> 32)) & WORD & ~3
        known, value = peek(t, core, address)
        count = np.int64(t.watch_count[core])
        if not known or count == WATCHES:
            _give_up(t, core)
            return
        t.watch_address[core, count] = address
        t.watch_value[core, count] = value
        t.watch_count[core] = count + 1
    t.poll_pc[core, step] = np.uint32(pc)
    for i in range(32):
        t.poll_x[step, core, i] = t.core_x[core, i]
    t.poll_steps[core] = step + 1


@kernel
def watched_words_hold(t: TileRecord, core: Int) -> bool:
    """True when no word that a sleeping core watches has changed."""
    for i in range(t.watch_count[core]):
        _, value = peek(t, core, np.int64(t.watch_address[core, i]))
        if value != t.watch_value[core, i]:
            return False
    return True


@kernel
def end_step(t: TileRecord, core: Int) -> None:
    """The recorded instruction has been executed; the core falls asleep if the turn is complete and changed nothing."""
    steps = np.int64(t.poll_steps[core])
    if steps <= 0 or t.core_pc[core] != t.poll_pc[core, 0]:
        return
    for i in range(32):
        if t.core_x[core, i] != t.poll_x[0, core, i]:
            _give_up(t, core)
            return
    if not watched_words_hold(t, core):
        t.poll_steps[core] = NOT_RECORDING
        return
    t.poll_steps[core] = NOT_RECORDING
    t.poll_length[core] = steps
    t.poll_since[core] = t.core_round[core]
    t.core_loops_limit[core] = FIRST_POLL_ATTEMPT
    t.core_state[core] = ASLEEP
    _collect_hash(t)


@kernel
def _collect_hash(t: TileRecord) -> None:
    """Which stores to L1 may wake a sleeping core."""
    t.watch_hash = 0
    t.sleepers = 0
    for core in range(CORES):
        if t.core_state[core] == ASLEEP:
            t.sleepers += 1
            for i in range(t.watch_count[core]):
                if t.watch_address[core, i] < t.l1_end:
                    t.watch_hash |= np.int64(1) << ((np.int64(t.watch_address[core, i]) >> 2) & 63)


@kernel
def wake(t: TileRecord, core: Int, at_round: Int) -> None:
    """Wake a sleeping core in round `at_round`, with the registers that it has then."""
    passed = at_round - np.int64(t.poll_since[core])
    step = passed % np.int64(t.poll_length[core])
    t.core_pc[core] = t.poll_pc[core, step]
    for i in range(32):
        t.core_x[core, i] = t.poll_x[step, core, i]
    t.core_round[core] = at_round
    t.core_retired[core] += passed
    t.core_loops[core] = 0
    t.core_state[core] = RUNNING
    _collect_hash(t)


@kernel
def forget(t: TileRecord, core: Int) -> None:
    """A core that is being reset no longer sleeps, nor is it being recorded."""
    t.poll_steps[core] = NOT_RECORDING
    if t.core_state[core] == ASLEEP:
        t.core_state[core] = IN_RESET
        _collect_hash(t)


@kernel
def wake_changed(t: TileRecord, at_round: Int, agent: Int) -> Any:
    """Wake the cores whose words have changed in the turn of `agent` in round `at_round`; True when there were any."""
    woken = False
    for core in range(CORES):
        if t.core_state[core] == ASLEEP and not watched_words_hold(t, core):
            wake(t, core, at_round + (1 if core <= agent else 0))
            woken = True
    return woken
