"""The buffer of the recorder that only counts: header and blocks of cores as in core_columns.py, other tables behind.

Instructions are not counted one by one. A run of them without a jump in between adds one to the difference at its first
word, and takes one away at the word after its last; sums of differences are counts. What cores wait and poll for is
summed up by place.
"""

from __future__ import annotations

from typing import Final

from bhemu.machine.agents import CORES
from bhemu.machine.state import THREADS
from bhemu.recording.core_columns import BASE, CORE_BLOCK, COUNTS, FIRST_ROW, SIZE, WORDS

__all__ = ["CORE_BLOCK", "SIZE"]

WAIT_COUNT: Final = BASE + 21
"""Places in use of the table of waits."""
FIRST_TRY_ADDRESS: Final = 40
"""Of a core's block: what the access that blocks it accesses; -1: no address."""

MOST_WAITS: Final = 1 << 10
WAITS: Final = FIRST_ROW
"""[MOST_WAITS, 2]: 1 + the number of `core_log.wait_key` (0: the place is free), rounds."""
ISSUED: Final = WAITS + 2 * MOST_WAITS
"""[thread, opcode]: words that the coprocessor had executed at the last cut."""
PAGE_BITS: Final = 9
"""Of a word's number: differences of a page are looked at together."""
PAGES_OF_CORE: Final = (WORDS >> PAGE_BITS) + 1
PAGES: Final = ISSUED + THREADS * 256
"""[core, page]: 1: it has differences."""
DIFFERENCES: Final = COUNTS
"""[core, word of L1, and one after the last]."""

# What `take_counters` writes
RUNS: Final = 0
"""How many runs there are, [core, first word, words, times executed];"""
WAITED: Final = 1
"""then how many waits, [number of `wait_key`, rounds];"""
WORDS_EXECUTED: Final = 2
"""then how many rows about words of the coprocessor, [256 * thread + opcode, times]."""
BEGIN: Final = 3
END: Final = 4
"""Rounds of the cut before and of this one,"""
CLOCKS: Final = 5
"""clocks of the tile between them, then by core:"""
RAN: Final = 6
"""rounds in which it executed something, polling left out,"""
FIRST: Final = RAN + CORES
"""round of its first instruction, -1 without one,"""
LAST: Final = FIRST + CORES
"""of its last one,"""
POLLED: Final = LAST + CORES
"""instructions executed while asleep,"""
PCS: Final = POLLED + CORES
"""where it is,"""
HALTED: Final = PCS + CORES
"""1: `ebreak` has halted it."""
HEAD: Final = HALTED + CORES
RUN_COLUMNS: Final = 4
MOST: Final = HEAD + RUN_COLUMNS * CORES * (WORDS + 1) + 2 * MOST_WAITS + 2 * 256 * THREADS
"""Numbers that there can be."""
