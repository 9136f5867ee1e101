"""The clock of one coprocessor: three threads, each moving at most one word a cycle (math Y1, Y10).

`run` visits the threads in order until nothing can move; `drain` executes what one thread has queued, each word to
its end.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.machine.dispatch import BESIDE, NOT_COMPILED, call_handler, has_handler
from bhemu.machine.faults import DONE, REFUSED, SCHEDULED, WAIT
from bhemu.machine.kernel import kernel
from bhemu.machine.state import THREADS
from bhemu.tensix.frontend.fetch import expand, fetch_ready, fifo_push
from bhemu.tensix.frontend.gate import is_held, wait_is_over
from bhemu.tensix.vector_queue import ALL_THREADS, NO_THREAD

LOADMACRO: Final = INSTRUCTIONS["SFPLOADMACRO"].opcode

EMPTY: Final = 3
"""The thread has no word at the gate and none on the way."""

# What `run` and `drain` return
STOPPED: Final = 0
"""Nothing can move: every thread is empty or waits."""
FAULTED: Final = 1
NEEDS_HANDLER: Final = 2
"""`fault_word` holds the word whose opcode the host must compile."""
CYCLES_SPENT: Final = 3

AFTER: Final = (STOPPED, STOPPED, FAULTED, STOPPED, NEEDS_HANDLER)
"""What the clock returns after each status of an instruction other than DONE."""

CYCLES_IN_A_SCRIPT: Final = 1_000_000


@kernel(forceinline=True)
def _execute(t, table, thread, word):
    """Let the word at the thread's gate execute; returns its status."""
    opcode = word >> 24
    status = call_handler(table, opcode, t, thread, word)
    if status in (DONE, SCHEDULED):
        t.gate_full[thread] = 0
        t.issued[thread, opcode] += 1
    elif status != WAIT:
        t.fault_thread = thread
        t.fault_word = np.uint32(word)
        t.fault_line = t.gate_line[thread]
    return status


@kernel
def _issue_in_simulator_order(t, table, thread):
    """`issue` as the official simulator does it: a wait holds every word, and to latch one takes no time (tile E43)."""
    if t.wait_word[thread] != 0:
        if not wait_is_over(t, thread):
            return WAIT
        t.wait_word[thread] = np.uint32(0)
        return DONE
    if t.gate_full[thread] == 0 and not fetch_ready(t, thread):
        return EMPTY
    status = _execute(t, table, thread, np.int64(t.gate_word[thread]))
    if status in (DONE, SCHEDULED) and t.wait_word[thread] != 0:
        if not wait_is_over(t, thread):
            return WAIT  # it is executed when its condition holds
        t.wait_word[thread] = np.uint32(0)
    return status


@kernel(forceinline=True)  # calls, which LLVM would leave here, take as long again
def issue(t, table, thread):
    """Let one word of the thread pass its gate and execute; DONE also when a latched wait has just been lifted."""
    if t.simulator_order != 0:
        return _issue_in_simulator_order(t, table, thread)
    if t.gate_full[thread] == 0 and not expand(t, thread):
        return EMPTY
    word = np.int64(t.gate_word[thread])
    wait = np.int64(t.wait_word[thread])
    if wait != 0:
        if wait_is_over(t, thread):
            t.wait_word[thread] = np.uint32(0)  # the block falls one cycle later
            return DONE
        if is_held(wait, word >> 24):
            return WAIT
    return _execute(t, table, thread, word)


@kernel
def step_beside(t, table, step):
    """A cycle, or a part of one, in which something may be scheduled (`tensix/vector_queue.py` lists the steps).

    The call goes through the table of handlers, so that the loops below stay small.
    """
    if not has_handler(table, BESIDE):
        t.fault_word = np.uint32(LOADMACRO << 24)  # the host compiles both
        return NOT_COMPILED
    return call_handler(table, BESIDE, t, step, table)


@kernel
def _run_beside(t, table, cycles):
    """`run` for the rest of a call, once something was scheduled."""
    for _ in range(cycles):
        status = step_beside(t, table, ALL_THREADS)
        if status != DONE:
            return AFTER[status]
        t.clock += 1
    return CYCLES_SPENT


@kernel
def run(t, table, cycles):
    """Clock the coprocessor for at most `cycles` cycles, or until nothing moves."""
    beside = t.macro_pending != 0
    left = cycles
    first = np.int64(t.cycle_resume)  # a cycle that found a handler missing goes on where it stopped
    moved = t.cycle_moved != 0
    t.cycle_resume = 0
    t.cycle_moved = 0
    while left > 0 and (first > 0 or not beside):
        for thread in range(first, THREADS):
            status = issue(t, table, thread)
            if status == DONE:
                moved = True
            elif status == REFUSED:
                return FAULTED
            elif status == NOT_COMPILED:
                t.cycle_resume = thread
                t.cycle_moved = 1 if moved else 0
                return NEEDS_HANDLER
            elif status == SCHEDULED:
                moved = beside = True
        if not moved:
            return STOPPED
        t.clock += 1
        left -= 1
        first = 0
        moved = False
    return _run_beside(t, table, left)


@kernel
def _drain_beside(t, table, thread):
    """`drain` for the rest of a call, once something was scheduled."""
    while True:
        status = step_beside(t, table, thread)
        if status != DONE:
            return AFTER[status]
        t.clock += 1


@kernel(forceinline=True)
def drain(t, table, thread):
    """Execute all that the thread has queued; STOPPED when it is empty or waits.

    What SFPLOADMACRO has scheduled keeps its place among the words; what is left of it when the thread is empty stays
    for `settle` or for the next words.
    """
    if t.macro_pending != 0:
        return _drain_beside(t, table, thread)
    while True:
        status = issue(t, table, thread)
        if status == REFUSED:
            return FAULTED
        if status == NOT_COMPILED:
            return NEEDS_HANDLER
        if status == SCHEDULED:
            t.clock += 1
            return _drain_beside(t, table, thread)
        if status != DONE:
            return STOPPED
        t.clock += 1


def settle(t, table, _):
    """Let cycles pass until what is scheduled is done, or waits for further vector instructions."""
    while t.macro_pending != 0:
        status = step_beside(t, table, NO_THREAD)
        if status != DONE:
            return AFTER[status]
        t.clock += 1
    return STOPPED


@kernel
def repeat(t, table, thread_and_word, count):
    """Push and drain the same word `count` times (for `bhemu bench`); the thread stands above the word's 32 bits."""
    thread = thread_and_word >> 32
    word = thread_and_word & 0xFFFFFFFF
    for _ in range(count):
        fifo_push(t, thread, word, 0)
        status = drain(t, table, thread)
        if status != STOPPED:
            return status
    return STOPPED


@kernel
def play(t, table, script, count):
    """Push a script of words for all three threads and run it to its end, `count` times (for `bhemu bench`).

    The script lies in L1, at 32-bit word `script`: the number of entries, then (thread, instruction word) pairs.
    """
    entries = np.int64(t.l1_u32[script])
    for _ in range(count):
        for i in range(entries):
            thread = np.int64(t.l1_u32[script + 1 + 2 * i])
            word = np.int64(t.l1_u32[script + 2 + 2 * i])
            while not fifo_push(t, thread, word, 0):
                status = run(t, table, CYCLES_IN_A_SCRIPT)
                if status != STOPPED:
                    return status
        status = run(t, table, CYCLES_IN_A_SCRIPT)
        if status != STOPPED:
            return status
    return STOPPED


def play_entry(t, table, script, count):
    return play(t, table, script, count)


def run_entry(t, table, cycles):
    return run(t, table, cycles)


def drain_entry(t, table, thread):
    return drain(t, table, thread)


def repeat_entry(t, table, thread_and_word, count):
    return repeat(t, table, thread_and_word, count)


def push_entry(t, thread, word, line):
    return 1 if fifo_push(t, thread, word, line) else 0
