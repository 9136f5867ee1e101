"""Polling loops: a core that spins without changing anything sleeps until a word that it reads changes.

When a core has jumped backwards often, one turn of the loop is followed without executing it: what each instruction
writes to a register, and the words that are read. If the turn changes no register and stores nothing, then all further
turns are the same as long as the words hold what was read, and where the core is in a later round is plain arithmetic.
So sleeping is never observable, except in speed.
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
from bhemu.machine.types import Bool, Int, Record, TileRecord
from bhemu.riscv.arithmetic import WORD
from bhemu.riscv.decode import FIRST_SLOW, NOWHERE, code_at
from bhemu.riscv.execute import instruction_at
from bhemu.riscv.loop_registers import changed_registers, keep_registers, restore_registers
from bhemu.riscv.simple import (
    ELSEWHERE,
    LB,
    LHU,
    RAM_BASE,
    SB,
    SH,
    SW,
    loaded,
    place_of_access,
    size_of,
    without_access,
)
from bhemu.riscv.teams import NO_ATTEMPT
from bhemu.tensix.mmio import OVERLAY_END, OVERLAY_FIRST, STREAM_BYTES
from bhemu.tensix.overlay import peek_stream_register

# What a loop does
ELSE: Final = 0
"""It accesses devices, or pushes words."""
POLLS: Final = 1
COMPUTES: Final = 2
"""It changes registers, stores to L1 or local RAM, or is long, before it does something else."""
LONGEST_PAUSE: Final = 4096
"""Jumps backwards between attempts, at most."""

SEMAPHORES: Final = tile_register("sync", "SEMAPHORE").span.start
SEMAPHORES_END: Final = tile_register("sync", "SEMAPHORE").span.stop


@kernel
def is_memory(t: TileRecord, core: Int, address: Int) -> Bool:
    """True for an address of L1 or of the core's local RAM."""
    return place_of_access(address, np.int64(1), np.int64(t.l1_end), LOCAL_RAM_SIZE[core]) != ELSEWHERE


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
def begin_attempt(t: TileRecord, core: Int) -> None:
    """The core has jumped backwards often: its next turn begins with an attempt to follow its loop."""
    t.core_loops[core] = 0
    t.poll_steps[core] = 0


@kernel
def give_up(t: TileRecord, core: Int) -> None:
    """The core does not poll."""
    t.poll_steps[core] = NO_ATTEMPT
    t.core_loops_limit[core] = min(2 * t.core_loops_limit[core], LONGEST_PAUSE)


@kernel
def _watch(t: TileRecord, core: Int, address: Int, size: Int) -> Any:
    """(known, value) of the word that a load reads, which the loop depends on from now on."""
    count = np.int64(t.watch_count[core])
    if count == WATCHES or address & (size - 1):
        return False, np.int64(0)
    if size < 4 and place_of_access(address, size, np.int64(t.l1_end), LOCAL_RAM_SIZE[core]) == ELSEWHERE:
        return False, np.int64(0)
    known, value = peek(t, core, address & ~3)
    t.watch_address[core, count] = address & ~3
    t.watch_value[core, count] = value
    t.watch_count[core] = count + 1
    return known, value


@kernel
def follow(t: TileRecord, cache: Int, core: Int) -> Int:
    """Follow a turn of the loop at whose beginning the core is, from `poll_pc[core, 0]` on.

    Returns:
        POLLS, COMPUTES or ELSE.
    """
    keep_registers(t, core)
    found = _follow(t, code_at(cache), core)
    restore_registers(t, core)
    return found


@kernel
def _follow(t: TileRecord, code: Record, core: Int) -> Int:
    """`follow`, which leaves other registers behind."""
    head = np.int64(t.core_pc[core])
    pc: Int = head
    t.poll_pc[core, 0] = np.uint32(head)
    t.watch_count[core] = 0
    for step in range(POLL_STEPS):
        if pc >= t.l1_end or pc & 3:
            return np.int64(ELSE)
        fields = instruction_at(t, code, pc)
        n = fields & 0xFF
        if n >= FIRST_SLOW:  # also `.ttinsn`, and where a debugger wants to stop
            return np.int64(ELSE)
        immediate = fields >> 32
        a = np.int64(t.core_x[core, (fields >> 16) & 0xFF])
        b = np.int64(t.core_x[core, (fields >> 24) & 0xFF])
        address = (a + immediate) & WORD
        if n in (SB, SH, SW):
            return np.int64(COMPUTES if is_memory(t, core, address) else ELSE)
        if n >= LB and n <= LHU:
            known, word = _watch(t, core, address, size_of(n))
            if not known:
                return np.int64(ELSE)
            value, to = loaded(n, word, address), pc + 4
        else:
            value, to, _ = without_access(n, a, b, immediate, pc)
        register = (fields >> 8) & 0xFF
        t.poll_pc[core, step] = np.uint32(pc)
        t.poll_register[core, step] = np.uint8(register)
        t.poll_value[core, step] = np.uint32(value & WORD)
        t.poll_length[core] = step + 1
        t.core_x[core, register] = np.uint32(value & WORD)
        pc = to & WORD
        if pc == head:
            return np.int64(POLLS if changed_registers(t, core, np.int64(0)) == 0 else COMPUTES)
    return np.int64(COMPUTES)


@kernel
def watched_words_hold(t: TileRecord, core: Int) -> bool:
    """True when no word that a sleeping core watches has changed."""
    for i in range(t.watch_count[core]):
        _, value = peek(t, core, np.int64(t.watch_address[core, i]))
        if value != t.watch_value[core, i]:
            return False
    return True


@kernel
def fall_asleep(t: TileRecord, core: Int) -> None:
    """The core polls: it sleeps until a word that its loop reads changes."""
    t.poll_since[core] = t.core_round[core]
    t.core_loops_limit[core] = FIRST_POLL_ATTEMPT
    t.core_state[core] = ASLEEP
    _collect_hash(t)


@kernel
def end_step(t: TileRecord, core: Int) -> None:
    """In timed mode, where a turn of the loop is executed once, for its time: an instruction of it has been executed.

    The core falls asleep when the turn is complete and has changed nothing.
    """
    t.poll_steps[core] += 1
    if t.poll_steps[core] < t.poll_length[core]:
        return
    t.poll_steps[core] = NO_ATTEMPT
    if t.core_pc[core] != t.poll_pc[core, 0] or not watched_words_hold(t, core):
        return
    if changed_registers(t, core, np.int64(0)) == 0:
        fall_asleep(t, core)


@kernel
def _collect_hash(t: TileRecord) -> None:
    """Which stores may wake a sleeping core."""
    t.watch_hash = 0
    t.watch_registers = 0
    t.sleepers = 0
    for core in range(CORES):
        if t.core_state[core] == ASLEEP:
            t.sleepers += 1
            for i in range(t.watch_count[core]):
                address = np.int64(t.watch_address[core, i])
                if address < t.l1_end:
                    t.watch_hash |= np.int64(1) << ((address >> 2) & 63)
                elif address >= OVERLAY_FIRST:
                    t.watch_registers = 1


@kernel
def wake(t: TileRecord, core: Int, at_round: Int) -> None:
    """Wake a sleeping core in round `at_round`, with the registers that it has then."""
    passed = at_round - np.int64(t.poll_since[core])
    step = passed % np.int64(t.poll_length[core])
    t.core_pc[core] = t.poll_pc[core, step]
    restore_registers(t, core)
    for done in range(step):
        t.core_x[core, t.poll_register[core, done]] = t.poll_value[core, done]
    t.core_x[core, NOWHERE] = 0
    t.core_round[core] = at_round
    t.core_retired[core] += passed
    t.core_loops[core] = 0
    t.core_state[core] = RUNNING
    _collect_hash(t)


@kernel
def forget(t: TileRecord, core: Int) -> None:
    """A core that is being reset no longer sleeps, nor is its loop to be followed."""
    t.poll_steps[core] = NO_ATTEMPT
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
