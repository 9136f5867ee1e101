"""Rows of the recorder of a tile with RISC-V cores, and the buffer that compiled code writes them to.

The buffer is one array of int64: first the part of `recorder.py` for words of the coprocessor, then what is laid out
here: a header, a block for each core, the rows, and two tables with a count for each word of L1.
"""

from __future__ import annotations

from typing import Final

import bhemu.counting.blocks as blocks
import bhemu.recording.log as tensix_column
from bhemu.machine.agents import CORES
from bhemu.machine.state import L1_SIZE, THREADS
from bhemu.recording.recorder import HEADER as TENSIX_HEADER
from bhemu.recording.recorder import ROWS as TENSIX_ROWS_OF_BUFFER

# Columns of a row
ROUND: Final = 0
"""Round in which the instruction was executed; of a row with a duration, in which it began."""
WHO: Final = 1
"""Core in bits 2:0, kind in 7:4, bytes of an access in 11:8, flags from bit 12 on."""
CODE: Final = 2
"""pc in bits 31:0, the instruction word above."""
ADDRESS: Final = 3
"""Of a load, store, atomic or blocked access; of a poll the first word that it reads. -1: none."""
VALUE: Final = 4
"""What the instruction wrote to its destination, or what it stored or pushed; -1: nothing."""
ROUNDS: Final = 5
"""Rounds that the instruction was blocked before; of a POLL the rounds asleep, of MOVED the rounds without time."""
TENSIX_ROWS: Final = 6
"""Words that the coprocessor had executed."""
DETAIL: Final = 7
"""Words that the T core had pushed to its FIFO before; of a POLL above bit 31 the instructions of a turn, too."""
COLUMNS: Final = 8

# Kinds of rows
INSTRUCTION: Final = 0
DEVICE: Final = 1
"""An instruction that accessed something other than L1 and local RAM."""
PUSHES: Final = 2
"""`.ttinsn`."""
POLL: Final = blocks.POLL
GAVE_UP: Final = blocks.GAVE_UP
MOVED: Final = 5
"""The coprocessor executed something in each of these rounds, so they took no time (tile T34)."""
RESTARTED: Final = 6
"""The core does not continue after its last instruction: a reset, an interrupt, or the host has changed pc."""

CHANGED: Final = 1 << 12
"""Flag: the load polls, and found another value than before."""
OWN: Final = 1 << 13
"""Flag: the core waited for its own thread of the coprocessor only."""

# Header
BASE: Final = TENSIX_HEADER + (TENSIX_ROWS_OF_BUFFER + THREADS) * tensix_column.COLUMNS
COUNT: Final = BASE
CAPACITY: Final = BASE + 1
FREE: Final = BASE + 2
"""Rounds that took no time, as the schedule counts them: words executed outside of it change the count."""
WANTED: Final = BASE + 3
"""0: only rows that the profile needs: those with a duration and those that are CHANGED."""
TENSIX_BEFORE: Final = BASE + 4
"""Words of the coprocessor in the chunks that the host has taken away."""
MOVED_FROM: Final = BASE + 5
MOVED_ROUNDS: Final = BASE + 6
"""Rounds without time that have no row yet."""
GOAL: Final = BASE + 7
"""`round_goal` when the observer was last called between two calls of the schedule."""
BREAK: Final = BASE + 8
"""Round in which the count of rounds without time has changed like that; -1: none."""

# What a core's instruction finds
BEFORE_ROUND: Final = BASE + 9
BEFORE_RETIRED: Final = BASE + 10
BEFORE_PC: Final = BASE + 11
BEFORE_WORD: Final = BASE + 12
BEFORE_ADDRESS: Final = BASE + 13
BEFORE_RS1: Final = BASE + 14
BEFORE_RS2: Final = BASE + 15
BEFORE_STORED: Final = BASE + 16
WATCHES: Final = BASE + 17
"""Words of L1 that are compared whenever an agent has had its turn."""
CHANGES: Final = BASE + 18
"""Rows of changes written."""
CHANGES_LOST: Final = BASE + 19
"""Changes for which there was no room."""
STATES: Final = BASE + 20
"""Which cores slept and which were held in reset when that was last looked at: two bits a core."""
CORE_BLOCKS: Final = BASE + 24

# Block of a core; what is not said here stands in counting/blocks.py
FIRST_TRY: Final = blocks.FIRST_TRY
FIRST_TRY_PC: Final = blocks.FIRST_TRY_PC
ASLEEP_SINCE: Final = blocks.ASLEEP_SINCE
LAST_LOAD_PC: Final = 3
"""The last load from a device, with its address and value: a load that is repeated polls."""
LAST_LOAD_ADDRESS: Final = 4
LAST_LOAD_VALUE: Final = 5
EX1_FREE: Final = 6
"""Cycle in which the first stage of the modelled pipeline is free (figures of core_figures.py)."""
SLEPT: Final = blocks.SLEPT
WAITED: Final = blocks.WAITED
FIRST_ROUND: Final = blocks.FIRST_ROUND
LAST_ROUND: Final = blocks.LAST_ROUND
POLLED: Final = blocks.POLLED
EXPECTED_PC: Final = 12
"""Where the core continues unless it is reset; -1: it has not run."""
RAN: Final = 13
"""Rounds in which it executed an instruction, polling left out."""
LOW: Final = 14
"""First word of L1 that has counts, and the word after the last one."""
HIGH: Final = 15
MIX: Final = 16
"""Counts of instructions by class, `core_figures.CLASSES` of them."""
READY: Final = 48
"""Cycle from which each of 32 integer and 32 floating-point registers can be used."""
CORE_BLOCK: Final = READY + 64

FIRST_ROW: Final = CORE_BLOCKS + CORES * CORE_BLOCK
ROWS: Final = 1 << 15
SPARE: Final = 32
"""Rows that may be written at most before the schedule asks again whether there is room."""
WORDS: Final = L1_SIZE // 4
COUNTS: Final = FIRST_ROW + ROWS * COLUMNS
"""[core, word of L1, 2]: how often the instruction was executed, and cycles that the modelled pipeline took for it."""
COUNT_COLUMNS: Final = 4
"""Of a row about a word with counts, when they are taken away: core, word, times executed, cycles."""
WATCHED: Final = COUNTS + 2 * CORES * WORDS
"""[MOST_WATCHES, 2]: number of the word of L1, and what it held last."""
MOST_WATCHES: Final = 16
CHANGED_ROWS: Final = WATCHED + 2 * MOST_WATCHES
"""[MOST_CHANGES, CHANGE_COLUMNS]: round, who, pc or line, number of the watch, value before, value after."""
MOST_CHANGES: Final = 128
CHANGE_COLUMNS: Final = 6
SIZE: Final = CHANGED_ROWS + MOST_CHANGES * CHANGE_COLUMNS

# Who has changed a watched word: a core by its number,
BY_THREAD: Final = 5
"""a word of a thread of the coprocessor: BY_THREAD + thread,"""
BY_UNIT: Final = 8
"""what the coprocessor does besides words, such as the mover's transfers,"""
BY_OTHERS: Final = 9
"""the NoC, or the host."""


def kind_of(who: int) -> int:
    """The kind of a row."""
    return who >> 4 & 0xF
