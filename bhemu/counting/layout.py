"""The buffer of the recorder that counts.

Instructions are not counted one by one. A run of them without a jump in between is counted in a small table of its
core. Where that has no room, it adds one to the difference at its first word, and takes one away at the word after its
last, as all runs of the tables do when counts are taken: sums of differences are counts. So what a core touches in its
turns is in two pages of memory; differences alone, in pages of their own for each piece of code, were more than the
processor's tables hold. What cores wait and poll for is summed up by place.
"""

from __future__ import annotations

from typing import Final

from bhemu.machine.agents import CORES
from bhemu.machine.state import L1_SIZE, THREADS
from bhemu.tile.observer import RESERVED

STATES: Final = RESERVED
"""Which cores slept and which were held in reset when that was last looked at: two bits a core."""
BEFORE_PC: Final = RESERVED + 1
"""Of the core whose turn it is, when its inner loop has ended:"""
BEFORE_ROUND: Final = RESERVED + 2
BEFORE_RETIRED: Final = RESERVED + 3
CUT_ROUND: Final = RESERVED + 4
CUT_CLOCK: Final = RESERVED + 5
"""Round and clock of the last cut."""
WAIT_COUNT: Final = RESERVED + 6
"""Places in use of the table of waits."""
CORE_BLOCKS: Final = 16
"""Of each core, by blocks.py."""
CORE_BLOCK: Final = 16

WORDS: Final = L1_SIZE // 4
TABLE_ROWS: Final = 1 << 8
TABLES: Final = 512
"""[core, TABLE_ROWS, 2], a page of memory each: a run, first word << 20 | word after its last (0: the row is free), and
how often it was executed. A run is in the row that `clock._row_of` says, or in one of the next ones."""
TABLE: Final = 2 * TABLE_ROWS
PROBES: Final = 4
"""Rows that a run is looked for in."""
END_BITS: Final = 20
MOST_WAITS: Final = 1 << 10
WAITS: Final = TABLES + CORES * TABLE
"""[MOST_WAITS, 2]: 1 + a key (0: the place is free), rounds. Of a key bits 2:0 are the core, bit 3 says that
it polled, bits 22:4 are bits 20:2 of pc, and above is 1 + the address that was accessed, or polled first; 0: none."""
OPCODES: Final = 256
ISSUED: Final = WAITS + 2 * MOST_WAITS
"""[thread, opcode]: words that the coprocessor had executed at the last cut."""
PAGE_BITS: Final = 9
"""Of a word's number: differences of a page are looked at together."""
PAGES_OF_CORE: Final = (WORDS >> PAGE_BITS) + 1
PAGES: Final = ISSUED + THREADS * OPCODES
"""[core, page]: 1: it has differences."""
DIFFERENCES: Final = PAGES + CORES * PAGES_OF_CORE
"""[core, word of L1, and one after the last]."""
SIZE: Final = DIFFERENCES + CORES * (WORDS + 1)

# What `take_counters` writes
RUNS: Final = 0
"""How many runs there are, [core, first word, words, times executed];"""
WAITED: Final = 1
"""then how many waits, [key, rounds];"""
WORDS_EXECUTED: Final = 2
"""then how many rows about words of the coprocessor, [256 * thread + opcode, times]."""
PIECES: Final = 3
"""then how many pieces of L1 that hold what a core has executed, [first word, word after the last];"""
BEGIN: Final = 4
END: Final = 5
"""Rounds of the cut before and of this one,"""
CLOCKS: Final = 6
"""clocks of the tile between them, then by core:"""
RAN: Final = 7
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
GAP: Final = 64
"""Words that were not executed, between two that were, in one piece, at most."""
MOST: Final = HEAD + (RUN_COLUMNS + 2) * CORES * (WORDS + 1) + 2 * MOST_WAITS + 2 * THREADS * OPCODES
"""Numbers that there can be."""
