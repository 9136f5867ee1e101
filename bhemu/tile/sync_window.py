"""PCBufs, manual TTSync and the semaphore window (tile K16 to K21).

For core B each 64 KiB is one PCBuf: to T0, T1, T2. A T core sees in the same place its own PCBuf, then the two checks
of manual TTSync, and the eight semaphores.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import MissingSpecification, UndefinedBehavior
from bhemu.isa.memory_map import region
from bhemu.isa.tile_registers import address_of, bit_of, bits_of, offset_of, tile_register
from bhemu.machine.agents import AGENT_NAMES, AGENTS, T0, B
from bhemu.machine.core_state import BLOCKED, RUNNING
from bhemu.machine.device_state import PCBUF_WORDS
from bhemu.machine.faults import DONE, REFUSED, WAIT, fault, open_choice, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Bool, Int, TileRecord
from bhemu.tensix.frontend.in_flight import mop_is_done, thread_is_done
from bhemu.tensix.sync import SEMAPHORE_TOP
from bhemu.tile.reset import agent_round

SYNC_BASE: Final = region("sync").base
PCBUF_BYTES: Final = region("pcbuf").step
POP: Final = offset_of("sync", "PCBUF_POP")
COPROCESSOR_DONE: Final = offset_of("sync", "COPROCESSOR_DONE")
MOP_DONE: Final = offset_of("sync", "MOP_DONE")
SEMAPHORES: Final = offset_of("sync", "SEMAPHORE")
SEMAPHORES_END: Final = tile_register("sync", "SEMAPHORE").offsets[-1] + 4
OVERRIDE_WORD: Final = offset_of("control", "TRISC_PC_BUF_OVERRIDE") // 4
"""Place of the PCBuf override register among the words of the control block (K16)."""

# Bits of the override register, 10 for each PCBuf
_OVERRIDE_STEP: Final = bit_of("control", "TRISC_PC_BUF_OVERRIDE", "T1_ENABLE")
_ENABLE: Final = 1 << bit_of("control", "TRISC_PC_BUF_OVERRIDE", "T0_ENABLE")
_BUSY: Final = 1 << bit_of("control", "TRISC_PC_BUF_OVERRIDE", "T0_BUSY")
_VALUE_LSB, _VALUE_BITS = bits_of("control", "TRISC_PC_BUF_OVERRIDE", "T0_VALUE")

NOTHING_THERE: Final = tuple(
    fault(
        f"sync_window.nothing.{name.lower()}",
        UndefinedBehavior,
        f"{AGENTS[name]} accesses {{0:#x}}, which is unmapped in its window of PCBuf, TTSync and semaphores",
        remedy=f"PCBuf {SYNC_BASE:#x}, CoprocessorDone {address_of('sync', 'COPROCESSOR_DONE'):#x}, MOPExpanderDone "
        f"{address_of('sync', 'MOP_DONE'):#x}, semaphores from {address_of('sync', 'SEMAPHORE'):#x}",
        rule="tile T24",
    )
    for name in AGENT_NAMES
)

CHECK_OF_B: Final = fault(
    "sync_window.check-of-b",
    MissingSpecification,
    "core B stores {1:#x} to {0:#x}, where a T core has a check of TTSync: the documents have B push anywhere in the "
    "64 KiB of a PCBuf, and software for Blackhole stores there before a load that waits for the T core, which works "
    "only when the store does not push",
    remedy="push at the first address of the PCBuf, or allow open choices to have the store discarded",
    rule="tile K17",
)


@kernel
def _override(t: TileRecord, thread: Int) -> Int:
    """The thread's ten bits of the override register."""
    return np.int64(t.control_word[OVERRIDE_WORD]) >> (_OVERRIDE_STEP * thread)


@kernel
def _retry_b(t: TileRecord) -> None:
    """A T core begins to wait in a pop, which core B may be waiting for; a wait is not an event by itself."""
    if t.core_state[B] == BLOCKED:
        t.core_state[B] = RUNNING
        t.core_round[B] = max(np.int64(t.core_round[B]), agent_round(t, B))


@kernel
def _pop(t: TileRecord, thread: Int) -> Any:
    """(status, value) of a pop by the T core of `thread` (K16)."""
    count = np.int64(t.pcbuf_count[thread])
    if count == 0:
        override = _override(t, thread)
        if override & _ENABLE:
            t.pcbuf_waiting[thread] = 0
            return DONE, (override >> _VALUE_LSB) & _VALUE_BITS
        if t.pcbuf_waiting[thread] == 0 and t.now_agent == T0 + thread:  # the host does not wait
            t.pcbuf_waiting[thread] = 1
            _retry_b(t)
        return WAIT, np.int64(0)
    head = np.int64(t.pcbuf_head[thread])
    t.pcbuf_head[thread] = (head + 1) % PCBUF_WORDS
    t.pcbuf_count[thread] = count - 1
    t.pcbuf_waiting[thread] = 0
    return DONE, np.int64(t.pcbuf_word[thread, head])


@kernel
def _load_of_b(t: TileRecord, thread: Int) -> Any:
    """(status, value) of a load by core B: until the T core waits for more and its thread has nothing to do (K16)."""
    zero = np.int64(0)
    override = _override(t, thread)
    if (override & _ENABLE) and (override & _BUSY):
        return DONE, zero
    if t.pcbuf_count[thread] == 0 and t.pcbuf_waiting[thread] != 0 and thread_is_done(t, thread):
        return DONE, zero
    return WAIT, zero


@kernel
def is_busy(t: TileRecord, thread: Int, offset: Int) -> Bool:
    """True when a load of COPROCESSOR_DONE or MOP_DONE by the thread's T core waits (K18)."""
    override = _override(t, thread)
    if (override & _ENABLE) and (override & _BUSY):
        return False
    return not (thread_is_done(t, thread) if offset == COPROCESSOR_DONE else mop_is_done(t, thread))


@kernel
def sync_load(t: TileRecord, core: Int, address: Int) -> Any:
    """(status, value) of a load of a word by core B, T0, T1 or T2."""
    if core == B:
        return _load_of_b(t, (address - SYNC_BASE) // PCBUF_BYTES)
    thread = core - T0
    offset = address - SYNC_BASE
    if offset == POP:
        return _pop(t, thread)
    if offset >= SEMAPHORES and offset < SEMAPHORES_END:
        return DONE, np.int64(t.sync.semaphore[(offset - SEMAPHORES) >> 2])
    if offset != COPROCESSOR_DONE and offset != MOP_DONE:
        return refuse(t, NOTHING_THERE[core], address), np.int64(0)
    return WAIT if is_busy(t, thread, offset) else DONE, np.int64(0)


@kernel
def _push(t: TileRecord, thread: Int, value: Int) -> Any:
    """Status of a push by core B (K16)."""
    count = np.int64(t.pcbuf_count[thread])
    if count == PCBUF_WORDS:
        return WAIT
    at = (np.int64(t.pcbuf_head[thread]) + count) % PCBUF_WORDS
    t.pcbuf_word[thread, at] = np.uint32(value)
    t.pcbuf_count[thread] = count + 1
    return DONE


@kernel
def sync_store(t: TileRecord, core: Int, address: Int, value: Int) -> Any:
    """Status of a store of a word; see `sync_load`."""
    if core == B:
        place = (address - SYNC_BASE) % PCBUF_BYTES
        if place in (COPROCESSOR_DONE, MOP_DONE):
            return DONE if open_choice(t, CHECK_OF_B, address, value) else REFUSED
        return _push(t, (address - SYNC_BASE) // PCBUF_BYTES, value)
    offset = address - SYNC_BASE
    if offset >= SEMAPHORES and offset < SEMAPHORES_END:
        i = (offset - SEMAPHORES) >> 2
        if value & 1:  # like SEMGET (K20)
            if t.sync.semaphore[i] > 0:
                t.sync.semaphore[i] -= 1
        elif t.sync.semaphore[i] < SEMAPHORE_TOP:  # like SEMPOST
            t.sync.semaphore[i] += 1
        return DONE
    if offset in (POP, COPROCESSOR_DONE, MOP_DONE):
        return DONE  # discarded: only keeps its place among the core's accesses (K16, K18)
    return refuse(t, NOTHING_THERE[core], address)
