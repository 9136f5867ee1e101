"""qstatus and bstatus: which types of instruction the coprocessor's front end has queued, or executes (tile T13)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.isa.instructions import BY_OPCODE, INSTRUCTIONS
from bhemu.machine.agents import T0, T2
from bhemu.machine.frontend_state import FIFO_SLOTS
from bhemu.machine.kernel import kernel
from bhemu.machine.state import THREADS
from bhemu.machine.types import AnyInt, Int, TileRecord
from bhemu.tensix.frontend.fetch import EXECUTE_LSB, LOAD_LSB, REPLAY
from bhemu.tensix.vector.registers import enabled_bits
from bhemu.tensix.vector_queue import is_busy

QUEUED: Final = 0
BUSY: Final = 1

TYPES: Final = 11
"""Width of a group of type bits."""
IS_REPLAY: Final = 1 << 0
IS_MOP: Final = 1 << 1
IS_SYNC: Final = 1 << 7
IS_VECTOR: Final = 1 << 9
# The wait gate knows the same classes by its block bits (Y10). B0 is Misc, Mover, ThCon, Packer and Unpacker.
_BIT_OF_BLOCK: Final = {"B0": 8, "B1": 7, "B2": 5, "B3": 4, "B4": 3, "B5": 2, "B6": 10, "B7": 6, "B8": 9}
_WAITS: Final = ("STALLWAIT", "SEMWAIT", "STREAMWAIT")


def _types() -> np.ndarray[Any, np.dtype[np.int64]]:
    types = np.zeros(256, np.int64)
    for row in BY_OPCODE:
        if row is None or row.block_rule == "all":
            continue
        types[row.opcode] = sum(1 << _BIT_OF_BLOCK[block] for block in row.block)
    for mnemonic in _WAITS:  # every block bit holds a wait, which is an instruction of the Sync Unit
        types[INSTRUCTIONS[mnemonic].opcode] = IS_SYNC
    types[INSTRUCTIONS["MOP"].opcode] = IS_MOP
    return types


_TYPES: Final = _types()
"""Type bits of each opcode; REPLAY is counted by its word."""


@kernel
def types_of(word: Int) -> AnyInt:
    """Type bits of an instruction word."""
    opcode = word >> 24
    if opcode == REPLAY:
        return IS_REPLAY if (word >> EXECUTE_LSB) & 1 or not (word >> LOAD_LSB) & 1 else 0
    return _TYPES[opcode]


@kernel
def thread_types(t: TileRecord, thread: Int, busy: Int) -> Any:
    """Type bits of a thread: what its queues, expanders and gate hold, and with `busy` also what has been issued."""
    types = np.int64(0)
    for i in range(t.frontend.fifo_count[thread]):
        types |= types_of(np.int64(t.frontend.fifo_word[thread, (t.frontend.fifo_head[thread] + i) % FIFO_SLOTS]))
    for i in range(t.frontend.side_count[thread]):
        types |= types_of(np.int64(t.frontend.side_word[thread, (t.frontend.side_head[thread] + i) % FIFO_SLOTS]))
    if t.frontend.gate_full[thread] != 0:
        types |= types_of(np.int64(t.frontend.gate_word[thread]))
    if t.frontend.mop_active[thread] != 0:
        types |= IS_MOP
    if t.frontend.replay_play_left[thread] > 0:
        types |= IS_REPLAY
    if busy:
        # Units finish an instruction before the next one starts; a latched wait and what SFPLOADMACRO has scheduled
        # are all that takes time.
        if t.frontend.wait_word[thread] != 0:
            types |= IS_SYNC
        if is_busy(t):
            types |= IS_VECTOR
    return types


@kernel
def tensix_status(t: TileRecord, core: Int, which: Int) -> Int:
    """Value of qstatus (QUEUED) or bstatus (BUSY) as a core sees it."""
    every = np.int64(0)
    for thread in range(THREADS):
        every |= thread_types(t, thread, which == BUSY)
    own = thread_types(t, core - T0, which == BUSY) if core >= T0 and core <= T2 else every
    if which == BUSY:
        return own | (every << TYPES)
    some_lane = np.int64(1) if enabled_bits(t) != 0 else np.int64(0)
    return own | (some_lane << 11) | (every << 13) | (some_lane << 24)
