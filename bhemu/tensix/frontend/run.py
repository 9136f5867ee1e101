"""The clock of one coprocessor: three threads, each moving at most one word a cycle (math Y1, Y10).

`run` visits the threads in order until nothing can move; `drain` executes what one thread has queued, each word to
its end. Both come from a factory (`make_front_end`): a recorder, which needs each word, has the same clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bhemu.isa.instructions import BY_OPCODE, INSTRUCTIONS
from bhemu.machine.dispatch import MACRO_CYCLE, NOT_COMPILED, call_handler, has_handler
from bhemu.machine.faults import DONE, REFUSED, SCHEDULED, WAIT
from bhemu.machine.frontend_state import READY_SLOTS
from bhemu.machine.kernel import kernel
from bhemu.machine.state import THREADS
from bhemu.machine.types import AnyInt, Bool, Int, LogAddress, Table, TileRecord
from bhemu.tensix.frontend.fetch import expand, fetch, fetch_ready, fifo_push, take_ready
from bhemu.tensix.frontend.gate import is_held, wait_is_over
from bhemu.tensix.frontend.observer import NO_LOG, NO_OBSERVER, WordObserver
from bhemu.tensix.src_rows import begin_src_epochs, end_src_epochs, note_word
from bhemu.tensix.vector_queue import ALL_THREADS, BEGIN, END, NO_THREAD

LOADMACRO: Final = INSTRUCTIONS["SFPLOADMACRO"].opcode

ENDS_NO_WAIT: Final = np.array(
    [
        row is not None and row.opcode != LOADMACRO and (row.unit == "vector" or row.mnemonic == "INCRWC")
        for row in BY_OPCODE
    ]
)
"""bool [opcode]: after such a word a thread that could not go on cannot go on, either. None waits for what is in
Dst, LRegs or counters (Y10, Y11), and nothing is scheduled."""

EMPTY: Final = 3
"""The thread has no word at the gate and none in flight."""

# What `run` and `drain` return
STOPPED: Final = 0
"""Nothing can move: every thread is empty or waits."""
FAULTED: Final = 1
NEEDS_HANDLER: Final = 2
"""`fault_word` holds the word whose opcode the host must compile."""
CYCLES_SPENT: Final = 3
OBSERVER_FULL: Final = 5
"""The observer's buffer has no room: the host takes its rows away and calls again."""

AFTER: Final = (STOPPED, STOPPED, FAULTED, STOPPED, NEEDS_HANDLER)
"""What the clock returns after each status of an instruction other than DONE."""

CYCLES_IN_A_SCRIPT: Final = 1_000_000


@dataclass(frozen=True)
class FrontEnd:
    """The clock of a coprocessor as one observer sees it; kernels, each with the observer's buffer as last argument.

    Attributes:
        issue: `issue(t, table, thread, log)` executes the word at the thread's gate; DONE also when a
            latched wait has just been lifted.
        fetch: `fetch(t, thread, log)` brings the next word to the gate, in the order of queues that the tile has.
        run: `run(t, table, cycles, log)` clocks the threads for at most `cycles`, or until no thread can proceed.
        drain: `drain(t, table, thread, log)` executes all words that the thread has queued; STOPPED when it is empty or
            waits. What SFPLOADMACRO has scheduled keeps its place among the words; what is left of it when the thread
            is empty stays for `settle` or for the next words.
    """

    issue: Any
    fetch: Any
    run: Any
    drain: Any


@kernel
def note_fault(t: TileRecord, thread: Int, word: Int) -> None:
    """The word at the thread's gate is refused, or its handler is missing."""
    t.fault_thread = thread
    t.fault_word = np.uint32(word)
    t.fault_line = t.frontend.gate_line[thread]


@kernel(forceinline=True)
def issue_queued(t: TileRecord, table: Table, thread: Int, cycles: Int) -> Any:
    """(status, cycles left): words of a thread, one a cycle, as long as they end no wait of another one.

    They come from the queue after the expanders that the official simulator has. Such words write no row of Src:
    there is nothing for `note_word`.
    """
    f = t.frontend
    left = cycles
    status: Int = np.int64(DONE)
    count = np.int64(f.ready_count[thread])
    if t.simulator_order == 0 or f.gate_full[thread] != 0 or f.wait_word[thread] != 0:
        count = np.int64(0)
    head = np.int64(f.ready_head[thread])
    word: Int = np.int64(0)
    line: Int = np.int64(0)
    first = left
    while count > 0 and left > 0:
        word_and_line = np.int64(f.ready[head & (READY_SLOTS - 1), thread])
        opcode = (word_and_line >> 24) & 0xFF
        if not ENDS_NO_WAIT[opcode]:
            break
        word = word_and_line & 0xFFFFFFFF
        line = word_and_line >> 32
        count -= 1
        head += 1
        status = call_handler(table, opcode, t, thread, word)
        if status != DONE:
            break
        t.issued[thread, opcode] += 1
        t.clock += 1
        left -= 1
    if left != first or status != DONE:
        take_ready(t, thread, head, count, word, line)
        t.frontend.gate_full[thread] = 1 if status != DONE else 0
        if status not in (DONE, WAIT):
            note_fault(t, thread, word)
    return status, left


def make_issue(observer: WordObserver) -> tuple[Any, Any]:
    """`issue` and `fetch` of a `FrontEnd`."""
    plain = observer is NO_OBSERVER
    # Of the plain clock all is in one loop: calls, which LLVM would leave there, take as long again.
    inline: Callable[[Any], Any] = kernel(forceinline=True) if plain else kernel
    before_fetch, after_fetch = observer.before_fetch, observer.after_fetch
    before_word, after_word = observer.before_word, observer.after_word

    def observed(bring: Any) -> Any:
        @inline
        def fetch_word(t: TileRecord, thread: Int, log: LogAddress) -> Bool:
            before_fetch(t, log, thread)
            arrived = bring(t, thread)
            after_fetch(t, log, thread, arrived)
            return arrived

        return fetch_word

    fetch_either = observed(fetch)
    fetch_expanded, fetch_queued = (observed(expand), observed(fetch_ready)) if plain else (fetch_either, fetch_either)

    @inline
    def execute(t: TileRecord, table: Table, thread: Int, word: Int, log: LogAddress) -> AnyInt:
        """Execute the word at the thread's gate; returns its status."""
        opcode = word >> 24
        before_word(t, log, thread, word)
        status = call_handler(table, opcode, t, thread, word)
        note_word(t, opcode)
        if status in (DONE, SCHEDULED):
            after_word(t, log, thread)
            t.frontend.gate_full[thread] = 0
            t.issued[thread, opcode] += 1
        elif status != WAIT:
            note_fault(t, thread, word)
        return status

    @inline
    def issue_in_simulator_order(t: TileRecord, table: Table, thread: Int, log: LogAddress) -> Any:
        """As the official simulator does it: a wait holds every word, and to latch one takes no time (tile E43)."""
        if t.frontend.wait_word[thread] != 0:
            if not wait_is_over(t, thread):
                return WAIT
            t.frontend.wait_word[thread] = np.uint32(0)
            return DONE
        if t.frontend.gate_full[thread] == 0 and not fetch_queued(t, thread, log):
            return EMPTY
        status = execute(t, table, thread, np.int64(t.frontend.gate_word[thread]), log)
        if status in (DONE, SCHEDULED) and t.frontend.wait_word[thread] != 0:
            if not wait_is_over(t, thread):
                return WAIT  # it is executed when its condition holds
            t.frontend.wait_word[thread] = np.uint32(0)
        return status

    @inline
    def issue(t: TileRecord, table: Table, thread: Int, log: LogAddress) -> AnyInt:
        if t.simulator_order != 0:
            return issue_in_simulator_order(t, table, thread, log)
        if t.frontend.gate_full[thread] == 0 and not fetch_expanded(t, thread, log):
            return EMPTY
        word = np.int64(t.frontend.gate_word[thread])
        wait = np.int64(t.frontend.wait_word[thread])
        if wait != 0:
            if wait_is_over(t, thread):
                t.frontend.wait_word[thread] = np.uint32(0)  # the block falls one cycle later
                return DONE
            if is_held(wait, word >> 24):
                return WAIT
        return execute(t, table, thread, word, log)

    return issue, fetch_either


@kernel
def step_macros(t: TileRecord, table: Table, step: Int, log: LogAddress) -> AnyInt:
    """A cycle, or a part of one, in which something may be scheduled (`tensix/vector_queue.py` lists the steps).

    The call goes through the table of handlers, so that the clock stays small.
    """
    if not has_handler(table, MACRO_CYCLE):
        t.fault_word = np.uint32(LOADMACRO << 24)  # the host compiles both
        return NOT_COMPILED
    return call_handler(table, MACRO_CYCLE, t, step, table)


@kernel
def begin_macro_cycle(t: TileRecord, table: Table) -> AnyInt:
    """What a cycle with scheduled instructions begins with."""
    return step_macros(t, table, BEGIN, NO_LOG)


@kernel
def end_macro_cycle(t: TileRecord, table: Table) -> AnyInt:
    """What it ends with."""
    return step_macros(t, table, END, NO_LOG)


def make_macro_cycle(issue: Any, fetch: Any, begin: Any, end: Any) -> Any:
    """`step_macros` for the words of threads, inlined.

    Args:
        issue, fetch: of the front end.
        begin, end: `begin(t, table)` and `end(t, table)` of a cycle (tensix/vector/cycle.py).

    Returns:
        `cycle(t, table, step, log)`, a cycle of the thread `step`, of ALL_THREADS, or of NO_THREAD. It returns DONE
        when something moved; WAIT; EMPTY when a single thread has no word, before anything happens; REFUSED;
        NOT_COMPILED, and the next call resumes the same cycle.
    """

    @kernel
    def cycle(t: TileRecord, table: Table, step: Int, log: LogAddress) -> AnyInt:
        if step < THREADS and t.frontend.gate_full[step] == 0 and not fetch(t, step, log):
            return EMPTY
        result = WAIT
        scheduled = t.macro.pending != 0
        if scheduled:
            result = begin(t, table)
        if result in (REFUSED, NOT_COMPILED):
            return result
        first = np.int64(t.macro.resume)
        t.macro.resume = 0
        for thread in range(first, THREADS):
            if thread == step or step == ALL_THREADS:
                status = issue(t, table, thread, log)
                if status in (REFUSED, NOT_COMPILED):
                    t.macro.resume = thread if status == NOT_COMPILED else thread + 1
                    return status
                if status in (DONE, SCHEDULED):
                    result = DONE
        if scheduled and end(t, table) != DONE:
            return REFUSED
        return result

    return cycle


def make_front_end(observer: WordObserver) -> FrontEnd:
    """The clock of a coprocessor, from this one text for each observer.

    Of the observer that does nothing (`NO_OBSERVER`) the compiler leaves nothing over. Entries that are compiled of it
    are functions of the module that has the observer: the names of their cache files then depend on both.
    """
    issue, fetch_either = make_issue(observer)
    is_full = observer.is_full
    plain = observer is NO_OBSERVER
    if plain:
        macro_cycle = step_macros
    else:
        macro_cycle = make_macro_cycle(issue, fetch_either, begin_macro_cycle, end_macro_cycle)

    @kernel
    def run_with_macros(t: TileRecord, table: Table, cycles: Int, log: LogAddress) -> Int:
        """`run` for the rest of a call, once something was scheduled."""
        for _ in range(cycles):
            if is_full(log):
                return OBSERVER_FULL
            status = macro_cycle(t, table, ALL_THREADS, log)
            if status != DONE:
                return AFTER[status]
            t.clock += 1
        return CYCLES_SPENT

    @kernel(forceinline=True)
    def run_cycles(t: TileRecord, table: Table, cycles: Int, log: LogAddress) -> Int:
        scheduled = t.macro.pending != 0
        left = cycles
        first: Int = np.int64(t.cycle_resume)  # a cycle that found a handler missing resumes where it stopped
        moved = t.cycle_moved != 0
        t.cycle_resume = 0
        t.cycle_moved = 0
        while left > 0 and (first > 0 or not scheduled):
            if first == 0 and is_full(log):
                return OBSERVER_FULL
            alone: Int = np.int64(NO_THREAD)  # the only one that moves
            for thread in range(first, THREADS):
                status = issue(t, table, thread, log)
                if status == DONE:
                    alone = NO_THREAD if moved else thread
                    moved = True
                elif status == REFUSED:
                    return FAULTED
                elif status == NOT_COMPILED:
                    t.cycle_resume = thread
                    t.cycle_moved = 1 if moved else 0
                    return NEEDS_HANDLER
                elif status == SCHEDULED:
                    moved = scheduled = True
            if not moved:
                return STOPPED
            t.clock += 1
            left -= 1
            first = 0
            moved = False
            if plain and alone < THREADS and not scheduled:
                status, left = issue_queued(t, table, alone, left)
                if status == REFUSED:
                    return FAULTED
                if status == NOT_COMPILED:
                    t.cycle_resume = alone
                    return NEEDS_HANDLER
        return run_with_macros(t, table, left, log)

    @kernel
    def run(t: TileRecord, table: Table, cycles: Int, log: LogAddress) -> Int:
        begin_src_epochs(t)
        status = run_cycles(t, table, cycles, log)
        end_src_epochs(t)
        return status

    @kernel
    def drain_with_macros(t: TileRecord, table: Table, thread: Int, log: LogAddress) -> Int:
        """`drain` for the rest of a call, once something was scheduled."""
        while True:
            if is_full(log):
                return OBSERVER_FULL
            status = macro_cycle(t, table, thread, log)
            if status != DONE:
                return AFTER[status]
            t.clock += 1

    @kernel(forceinline=True)
    def drain_words(t: TileRecord, table: Table, thread: Int, log: LogAddress) -> Int:
        if t.macro.pending != 0:
            return drain_with_macros(t, table, thread, log)
        while True:
            if is_full(log):
                return OBSERVER_FULL
            status = issue(t, table, thread, log)
            if status == REFUSED:
                return FAULTED
            if status == NOT_COMPILED:
                return NEEDS_HANDLER
            if status == SCHEDULED:
                t.clock += 1
                return drain_with_macros(t, table, thread, log)
            if status != DONE:
                return STOPPED
            t.clock += 1

    @kernel(forceinline=True)
    def drain(t: TileRecord, table: Table, thread: Int, log: LogAddress) -> Int:
        begin_src_epochs(t)
        status = drain_words(t, table, thread, log)
        end_src_epochs(t)
        return status

    return FrontEnd(issue, fetch_either, run, drain)


_plain: Final = make_front_end(NO_OBSERVER)
issue, fetch_plain, run, drain = _plain.issue, _plain.fetch, _plain.run, _plain.drain


def settle(t: TileRecord, table: Table, _: Int) -> Int:
    """Advance until what is scheduled is done, or waits for further vector instructions."""
    while t.macro.pending != 0:
        status = step_macros(t, table, NO_THREAD, NO_LOG)
        if status != DONE:
            return AFTER[status]
        t.clock += 1
    return STOPPED


@kernel
def repeat(t: TileRecord, table: Table, thread_and_word: Int, count: Int) -> Any:
    """Push and drain the same word `count` times (for `bhemu bench`); the thread is in the bits above the word's 32."""
    thread = thread_and_word >> 32
    word = thread_and_word & 0xFFFFFFFF
    for _ in range(count):
        fifo_push(t, thread, word, 0)
        status = drain(t, table, thread, NO_LOG)
        if status != STOPPED:
            return status
    return STOPPED


@kernel
def play(t: TileRecord, table: Table, script: Int, count: Int) -> Any:
    """Push a script of words for all three threads and run it to its end, `count` times (for `bhemu bench`).

    The script lies in L1, at 32-bit word `script`: the number of entries, then (thread, instruction word) pairs.
    """
    entries = np.int64(t.l1_u32[script])
    for _ in range(count):
        for i in range(entries):
            thread = np.int64(t.l1_u32[script + 1 + 2 * i])
            word = np.int64(t.l1_u32[script + 2 + 2 * i])
            while not fifo_push(t, thread, word, 0):
                status = run(t, table, CYCLES_IN_A_SCRIPT, NO_LOG)
                if status != STOPPED:
                    return status
        status = run(t, table, CYCLES_IN_A_SCRIPT, NO_LOG)
        if status != STOPPED:
            return status
    return STOPPED


def play_entry(t: TileRecord, table: Table, script: Int, count: Int) -> AnyInt:
    return play(t, table, script, count)


def run_entry(t: TileRecord, table: Table, cycles: Int) -> AnyInt:
    return run(t, table, cycles, NO_LOG)


def drain_entry(t: TileRecord, table: Table, thread: Int) -> AnyInt:
    return drain(t, table, thread, NO_LOG)


def repeat_entry(t: TileRecord, table: Table, thread_and_word: Int, count: Int) -> AnyInt:
    return repeat(t, table, thread_and_word, count)


def push_entry(t: TileRecord, thread: Int, word: Int, line: Int) -> Int:
    return 1 if fifo_push(t, thread, word, line) else 0
