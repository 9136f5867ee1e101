"""What the code cache holds of translated code (translate.py): entries, memory for machine code, scratch space.

A *region* is up to REGION_WORDS instructions that static jumps connect. It has an *entry* for each of its blocks: a
place of the code cache that is entered has the number TRANSLATED and the number of its entry in its fields.
"""

from __future__ import annotations

from typing import Any, Final

from bhemu.machine.state import L1_SIZE

PLACES: Final = L1_SIZE // 4
REGION_WORDS: Final = 64
WINDOW: Final = 1024
"""Words around a region's first instruction in which its others must be."""
RETURNS: Final = 4
"""Calls of a region to which a jump by register may return inside of it."""
ENTRIES: Final = 1 << 14
TEXT_BYTES: Final = 1 << 15
"""Bytes of machine code of one region, at most."""
INSTRUCTION_BYTES: Final = 512
"""More than one instruction can take, with its stubs."""
JUMPS: Final = 1024
"""Jumps of a region whose destination is set at its end."""

# Columns of an entry
PLACE: Final = 0
WORD: Final = 1
"""Its first instruction."""
FIELDS: Final = 2
"""That instruction decoded, as if nothing was translated."""
COUNT: Final = 3
"""Instructions of its block: it may be entered when that number of rounds is left."""
BLOCK: Final = 4
"""Address of the block's machine code."""
REGION: Final = 5
"""Address of the region's first instructions, which compare the code and load registers."""
NEXT: Final = 6
"""Another entry for the same place, 0 none."""
RANGE: Final = 7
"""Addresses of the region's first instruction [63:32] and after its last one [31:0]."""
COLUMNS: Final = 8

# Words at the beginning of the memory for machine code, which it reaches relative to its own address
SLACK: Final = 0
"""Rounds from the horizon to the goal: that number must be left at an access to shared memory."""
LOOPS_LEFT: Final = 1
"""Jumps backwards until the core leaves its loop (LOOPS)."""
RAM_BYTES: Final = 2
"""Of the core's local RAM."""
WATCHED: Final = 3
"""`watch_hash`."""
REGION_AT: Final = 4
BLOCK_AT: Final = 5
LEFT: Final = 6
"""Rounds left to the goal, when translated code has ended."""
CODE_AT: Final = 7
CODE_SIZE: Final = 8
"""Where the code is of those that execute translated code now: their stores into it are the interpreter's."""
TEAM: Final = 9
"""1: at the horizon another core goes on (teams.py). What follows is used only then."""
CURRENT: Final = 10
"""The core that executes."""
PREVIOUS: Final = 11
"""The core that was the last to stop at the horizon since translated code was entered, or NO_CORE."""
NO_CORE: Final = -1
TILE_AT: Final = 12
GOAL: Final = 13
"""Address of the record, and the round up to which cores execute."""
SWITCHES: Final = 14
"""How often a core went on where it had stopped."""
KEYS: Final = 16
"""Of each core and the coprocessor, 8 * rounds left + 7 - its number: the largest key has its turn; -1: it has none."""
RESUME: Final = 24
"""Of each core: address of the machine code where it goes on, 0: it is not in translated code."""
RAM_SIZES: Final = 32
"""Of each core."""
FIRST_CODE: Final = 4096
"""Bytes of these words: they stay writable, and the pages after them do not."""

MEMORY_BYTES: Final = 4 << 20
"""Of the memory for machine code of one code cache."""

FAILED: Final = -1
"""What translated code returns when memory no longer holds the code that was translated."""
STAY: Final = 1 << 32
"""Set in what it returns: the instruction at pc is one for the interpreter."""
AT_HORIZON: Final = 1 << 33
"""It is at pc before an access beyond the horizon."""
JOIN: Final = 1 << 34
"""No pc: it is the turn of core CURRENT, which is not in translated code yet. The record has the others' progress."""
ALL_DONE: Final = 1 << 35
"""No pc: no agent has a turn before the goal."""

HOT: Final = 500
"""Arrivals at an instruction until it is translated: that takes as long as to interpret some thousand instructions."""
NEVER: Final = 0xFFFF
LEAST_ROUNDS: Final = 16
"""Turns that may take fewer rounds do not count as arrivals."""
CLIENT_HOT: Final = 20_000
CLIENT_LEAST_ROUNDS: Final = 256
CLIENT_FIRST_ROUND: Final = 250_000
"""The same in the C library, unless BHEMU_TRANSLATE=1 asks for the ones above, and when counting begins. Cores of its
clients mostly poll, or execute a piece of code some hundred times, and then counting would be in vain. Where cores may
run ahead only loops count (loops.py)."""

LOOP_HOT: Final = 1500
"""Iterations of a loop that computes until it is translated where cores may run ahead (loops.py)."""
LOOP_WORDS: Final = 32
"""A loop in so many words is translated whole, of a longer one what it executes."""

TRANSLATOR_PLACE: Final = 0
ENTER_PLACE: Final = 1
"""Places in `native`, which `call_handler` takes for a table."""

FIELDS_OF_CACHE: Final[list[Any]] = [
    ("native", "i8", (2,)),  # addresses of the translator and of what enters translated code; 0: there is none
    ("memory", "i8"),  # address of the memory for machine code
    ("memory_bytes", "i8"),
    ("memory_used", "i8"),
    ("hot", "i8"),  # arrivals at an instruction until it is translated
    ("least_rounds", "i8"),  # that a turn may take, for arrivals to count
    ("first_round", "i8"),  # in which a turn may end, for the same
    ("protect", "i8"),  # address of the system's mprotect
    ("leave", "i8"),  # where translated code ends, as an offset in the memory
    ("switch", "i8"),  # where a core stops at the horizon
    ("pause", "i8"),  # turns without a team
    ("entry_count", "i8"),  # entry 0 is never used
    ("entry", "i8", (ENTRIES, COLUMNS)),
    # --- the region that is being translated --------------------------------------------------------------------------
    ("text_at", "i8"),
    ("jump_count", "i8"),
    ("jump", "i8", (JUMPS, 8)),
    ("first_pc", "i8"),  # of the window
    ("path_count", "i8"),  # instructions of a loop that is translated alone (loops.py), 0: what jumps connect
    ("path", "i8", (REGION_WORDS,)),  # their addresses
    ("code_first", "i8"),  # addresses of the first instruction and after the last one
    ("code_end", "i8"),
    ("todo", "i8", (WINDOW,)),
    ("raw", "i8", (WINDOW,)),  # instructions, and the same decoded
    ("fields", "i8", (WINDOW,)),
    ("label", "i4", (WINDOW,)),
    ("begin", "i4", (WINDOW,)),  # where an instruction's machine code begins in the text
    ("wanted", "u1", (WINDOW,)),
    ("included", "u1", (WINDOW,)),
    ("leader", "u1", (WINDOW,)),
    ("depth", "u1", (WINDOW,)),  # loops around each instruction
    ("uses", "i8", (40,)),  # how often each x register is named, by an estimate
    ("host", "i4", (40,)),  # the processor's register that holds a register of the core, -1: memory does
    ("written", "u1", (40,)),
    ("text", "u1", (TEXT_BYTES,)),
    # --- for each place -----------------------------------------------------------------------------------------------
    ("first", "u2", (PLACES,)),  # its first entry
    ("heat", "u2", (PLACES,)),  # arrivals
]
