"""Performance counters: five banks that count what the coprocessor does between a start and a stop (tile K54).

Clocks are the tile's. Of the events, a model that has no stalls and no conflicts knows the instructions that threads
have issued and that the matrix and the vector unit have executed, each in a cycle of its own.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import MissingSpecification
from bhemu.isa.instructions import BY_OPCODE
from bhemu.isa.memory_map import region
from bhemu.isa.tile_registers import bits_of, offset_of
from bhemu.machine.faults import DONE, REFUSED, fault, open_choice
from bhemu.machine.kernel import kernel
from bhemu.machine.performance_state import BANKS, CLOCK, MATRIX, NOTES, THREAD_0, VECTOR
from bhemu.machine.state import THREADS
from bhemu.machine.types import Bool, Int, TileRecord

_START_ALL: Final = offset_of("control", "PERF_CNT_ALL")
_COMMANDS: Final = ("INSTRN_THREAD2", "TDMA_UNPACK2", "FPU2", "L1_2", "TDMA_PACK2")
COMMAND: Final = np.array([offset_of("control", f"PERF_CNT_{name}") for name in _COMMANDS], np.int64)
"""Start and stop, by bank; the mode is in the word before, the period before that."""
_IS_COMMAND: Final = np.isin(np.arange(region("control").size // 4) * 4, COMMAND)
OUT_LOW: Final = np.array([offset_of("control", f"PERF_CNT_OUT_L_{name}") for name in BANKS], np.int64)
"""Clocks of each bank; the word after it shows the selected count."""
_OUT_FIRST: Final = int(OUT_LOW.min())
_OUT_END: Final = int(OUT_LOW.max()) + 8
_INSTRUCTIONS: Final = BANKS.index("INSTRN_THREAD")
_UNPACK: Final = BANKS.index("TDMA_UNPACK")
_UNITS: Final = BANKS.index("FPU")

_START: Final = 1
_STOP: Final = 2
_MODE_BITS: Final = bits_of("control", "PERF_CNT_FPU1", "MODE")[1]
_SELECT_LSB, _SELECT_BITS = bits_of("control", "PERF_CNT_FPU1", "SELECT")
_GRANT: Final = 1 << bits_of("control", "PERF_CNT_FPU1", "GRANT")[0]
_FOR_A_PERIOD: Final = 1
_WORD: Final = 0xFFFFFFFF

_ALL_UNITS: Final = [row.unit if row is not None else "" for row in BY_OPCODE]
IS_MATRIX: Final = np.array([unit == "matrix" for unit in _ALL_UNITS], np.bool_)
IS_VECTOR: Final = np.array([unit == "vector" for unit in _ALL_UNITS], np.bool_)

NOT_COUNTED: Final = fault(
    "control.performance-event",
    MissingSpecification,
    "count {1} of performance counters {0}: it counts stalls, conflicts, ports, or cycles in which a unit is busy, of "
    "which a functional model has none",
    remedy="read the clocks, issued instructions (INSTRN_THREAD: grants of 0, 8, 16) or executed ones (FPU: 0, 1 and "
    "the grant of 1; TDMA_UNPACK: 3), or allow open choices to have 0",
    rule="tile K54",
)
PERIOD: Final = fault(
    "control.performance-mode",
    MissingSpecification,
    "performance counters {0} are read in mode {1}: no source says what remains of the counts of a period that is over",
    remedy="count in mode 0, or allow open choices to have mode 1 and others count as mode 0",
    rule="tile K54",
)


@kernel
def is_performance(offset: Int) -> Bool:
    """True for the registers that start, stop and show the counters."""
    if offset == _START_ALL or (offset >= _OUT_FIRST and offset < _OUT_END):
        return True
    return _IS_COMMAND[offset >> 2]


@kernel
def _note(t: TileRecord, what: Int, now: Int) -> Int:
    """What has been counted of something up to now."""
    if what == CLOCK:
        return now
    count = np.int64(0)
    if what < MATRIX:
        for opcode in range(256):
            count += np.int64(t.issued[what - THREAD_0, opcode])
        return count
    for thread in range(THREADS):
        for opcode in range(256):
            if (IS_MATRIX[opcode] and what == MATRIX) or (IS_VECTOR[opcode] and what == VECTOR):
                count += np.int64(t.issued[thread, opcode])
    return count


@kernel
def _command(t: TileRecord, bank: Int, before: Int, value: Int, now: Int) -> None:
    """Rising bits of a store to a bank's command register, or to the one of two banks."""
    rising = value & ~before
    if rising & _START:
        for what in range(NOTES):
            t.performance.started[bank, what] = _note(t, np.int64(what), now)
        t.performance.running[bank] = 1
    if rising & _STOP and t.performance.running[bank] != 0:
        for what in range(NOTES):
            t.performance.stopped[bank, what] = _note(t, np.int64(what), now)
        t.performance.running[bank] = 0


@kernel
def store_performance(t: TileRecord, offset: Int, value: Int, now: Int) -> Int:
    """Status of a store at clock `now`; the registers that show counts discard it."""
    before = np.int64(t.control_word[offset >> 2])
    if offset == _START_ALL:
        _command(t, np.int64(_INSTRUCTIONS), before, value, now)
        _command(t, np.int64(_UNITS), before, value, now)
    for bank in range(len(BANKS)):
        if offset == COMMAND[bank]:
            _command(t, np.int64(bank), before, value, now)
    if offset < _OUT_FIRST or offset >= _OUT_END:
        t.control_word[offset >> 2] = np.uint32(value)
    return DONE


@kernel
def _counted(t: TileRecord, bank: Int, what: Int, now: Int) -> Int:
    """Since the start, up to the stop."""
    end = _note(t, what, now) if t.performance.running[bank] != 0 else np.int64(t.performance.stopped[bank, what])
    return (end - np.int64(t.performance.started[bank, what])) & _WORD


@kernel
def _event(bank: Int, select: Int, granted: Bool) -> Int:
    """What a count is made of: a bit for each note; 0 for events that do not happen here."""
    if bank == _INSTRUCTIONS and granted and select % 8 == 0 and select < 8 * THREADS:
        return np.int64(1) << (THREAD_0 + select // 8)
    if bank == _UNITS and not granted and select == 0:
        return np.int64(1) << MATRIX
    if bank == _UNITS and not granted and select == 1:
        return np.int64(1) << VECTOR
    if bank == _UNITS and granted and select == 1:
        return np.int64(1) << MATRIX | np.int64(1) << VECTOR
    if bank == _UNPACK and not granted and select == 3:
        return np.int64(1) << MATRIX
    return np.int64(0)


@kernel
def load_performance(t: TileRecord, offset: Int, now: Int) -> Any:
    """(status, value) of a load at clock `now`."""
    if offset < _OUT_FIRST or offset >= _OUT_END:
        return DONE, np.int64(t.control_word[offset >> 2])
    for bank in range(len(BANKS)):
        if offset == OUT_LOW[bank] or offset == OUT_LOW[bank] + 4:
            mode = np.int64(t.control_word[(COMMAND[bank] - 4) >> 2])
            if mode & _MODE_BITS == _FOR_A_PERIOD and not open_choice(t, PERIOD, bank, mode & _MODE_BITS):
                return REFUSED, np.int64(0)
            if offset == OUT_LOW[bank]:
                return DONE, _counted(t, np.int64(bank), np.int64(CLOCK), now)
            select = (mode >> _SELECT_LSB) & _SELECT_BITS
            events = _event(np.int64(bank), select, mode & _GRANT != 0)
            if events == 0:
                if not open_choice(t, NOT_COUNTED, bank, select | ((mode & _GRANT) >> 8)):
                    return REFUSED, np.int64(0)
                return DONE, np.int64(0)
            count = np.int64(0)
            for what in range(NOTES):
                if (events >> what) & 1:
                    count += _counted(t, np.int64(bank), np.int64(what), now)
            return DONE, count & _WORD
    return DONE, np.int64(0)
