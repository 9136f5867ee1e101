"""Sync unit: wait words, semaphores and mutexes (math Y10, Y11), and NOP."""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.errors import UndefinedBehavior
from bhemu.machine.faults import DONE, WAIT, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.state import THREADS
from bhemu.machine.types import Bool, Int, TileRecord
from bhemu.tensix.instruction import DOCUMENTED, VERIFIED, Mode, instruction

SEMAPHORE_TOP: Final = 15
"""Semaphores hold 4 bits; SEMPOST stops here, not at the maximum (Y11a)."""

NO_SEMAPHORE = fault(
    "sync.no-semaphore",
    UndefinedBehavior,
    "sem_sel is 0: no semaphore is selected",
    remedy="set one bit of sem_sel for each semaphore (bit n = semaphore n)",
    rule="math Y11a",
)
INIT_ABOVE_MAX = fault(
    "sync.init-above-max",
    UndefinedBehavior,
    "initial value {0} is above the maximum {1}",
    remedy="choose init_value <= max_value",
    rule="math Y11a",
)
NO_CONDITION = fault(
    "sync.no-condition",
    UndefinedBehavior,
    "wait_sem_cond is 0: the wait has no condition",
    remedy="use 1 (wait while zero) or 2 (wait while at maximum)",
    rule="math Y11a",
)
NO_MUTEX = fault(
    "sync.no-mutex",
    UndefinedBehavior,
    "mutex {0} does not exist: a thread would wait for ever",
    remedy="use mutex 0, 2, 3 or 4",
    rule="math Y11b",
)


@kernel
def _latch(t: TileRecord, thread: Int, word: Int) -> Int:
    """Place the wait; a thread has one latch, so a second wait word waits for the first (Y10)."""
    if t.frontend.wait_word[thread] != 0:
        return WAIT
    t.frontend.wait_word[thread] = np.uint32(word)
    t.frontend.wait_line[thread] = t.frontend.gate_line[thread]
    return DONE


@instruction(Mode("no operation", VERIFIED, vectors="frontend:mop1", rule="math Y4"))
def NOP(t: TileRecord, thread: Int) -> Int:
    return DONE


@instruction(
    Mode("C7, C8 (Src banks valid)", VERIFIED, vectors="frontend:STALLWAIT", rule="math Y10"),
    Mode("C5, C6 (Src banks cleared)", DOCUMENTED, rule="math Y10"),
    Mode("block mask", DOCUMENTED, rule="math Y10"),
    reserved=0x4000,  # Wormhole's condition for the vector unit, which tt-exalens sets on both chips
)
def STALLWAIT(t: TileRecord, thread: Int, word: Int) -> Int:
    return _latch(t, thread, word)


@instruction(
    Mode("one condition", VERIFIED, vectors="frontend:SEMWAIT", rule="math Y11a"),
    Mode("both conditions", DOCUMENTED, rule="math Y11a"),
)
def SEMWAIT(t: TileRecord, thread: Int, sem_sel: Int, wait_sem_cond: Int, word: Int) -> Int:
    if sem_sel == 0:
        return refuse(t, NO_SEMAPHORE)
    if wait_sem_cond == 0:
        return refuse(t, NO_CONDITION)
    return _latch(t, thread, word)


@instruction(Mode("phase or message count", DOCUMENTED, rule="math Y11c"))
def STREAMWAIT(t: TileRecord, thread: Int, word: Int) -> Int:
    return _latch(t, thread, word)


@instruction(Mode("value and maximum", VERIFIED, vectors="frontend:SEMINIT", rule="math Y11a"))
def SEMINIT(t: TileRecord, thread: Int, max_value: Int, init_value: Int, sem_sel: Int) -> Int:
    if sem_sel == 0:
        return refuse(t, NO_SEMAPHORE)
    if init_value > max_value:
        return refuse(t, INIT_ABOVE_MAX, init_value, max_value)
    for i in range(8):
        if (sem_sel >> i) & 1:
            t.sync.semaphore[i] = init_value
            t.sync.semaphore_max[i] = max_value
    return DONE


@instruction(
    Mode("below the maximum", VERIFIED, vectors="frontend:SEMPOST", rule="math Y11a"),
    Mode("at or above the maximum", DOCUMENTED, rule="math Y11a"),
)
def SEMPOST(t: TileRecord, thread: Int, sem_sel: Int) -> Int:
    if sem_sel == 0:
        return refuse(t, NO_SEMAPHORE)
    for i in range(8):
        if (sem_sel >> i) & 1 and t.sync.semaphore[i] < SEMAPHORE_TOP:
            t.sync.semaphore[i] += 1
    return DONE


@instruction(
    Mode("above zero", VERIFIED, vectors="frontend:SEMGET", rule="math Y11a"),
    Mode("at zero", DOCUMENTED, rule="math Y11a"),
)
def SEMGET(t: TileRecord, thread: Int, sem_sel: Int) -> Int:
    if sem_sel == 0:
        return refuse(t, NO_SEMAPHORE)
    for i in range(8):
        if (sem_sel >> i) & 1 and t.sync.semaphore[i] > 0:
            t.sync.semaphore[i] -= 1
    return DONE


@kernel
def _mutex_exists(index: Int) -> Bool:
    return index == 0 or (index >= 2 and index <= 4)


@kernel
def _is_next(t: TileRecord, mutex: Int, thread: Int) -> bool:
    """After thread i released, thread i + 1 (mod 3) is served first if both others ask (Y11b)."""
    last = t.sync.mutex_last[mutex]
    if last == 0:
        return True
    first = last % THREADS  # mutex_last holds thread + 1, so this is the thread after it
    if thread == first:
        return True
    f = t.frontend
    asks = f.gate_full[first] != 0 and np.int64(f.gate_word[first]) == np.int64(f.gate_word[thread])
    return not (asks and f.wait_word[first] == 0)


@instruction(
    Mode("mutex 0", VERIFIED, vectors="frontend:MUTEX", rule="math Y11b"),
    Mode("mutexes 2, 3, 4; own mutex again", DOCUMENTED, rule="math Y11b"),
)
def ATGETM(t: TileRecord, thread: Int, mutex_index: Int) -> Int:
    if not _mutex_exists(mutex_index):
        return refuse(t, NO_MUTEX, mutex_index)
    owner = t.sync.mutex_owner[mutex_index]
    if owner == thread + 1:
        return DONE
    if owner != 0 or not _is_next(t, mutex_index, thread):
        return WAIT
    t.sync.mutex_owner[mutex_index] = thread + 1
    return DONE


@instruction(
    Mode("held mutex 0", VERIFIED, vectors="frontend:MUTEX", rule="math Y11b"),
    Mode("mutexes 2, 3, 4; mutex not held", DOCUMENTED, rule="math Y11b"),
)
def ATRELM(t: TileRecord, thread: Int, mutex_index: Int) -> Int:
    if not _mutex_exists(mutex_index):
        return refuse(t, NO_MUTEX, mutex_index)
    if t.sync.mutex_owner[mutex_index] == thread + 1:
        t.sync.mutex_owner[mutex_index] = 0
        t.sync.mutex_last[mutex_index] = thread + 1
    return DONE
