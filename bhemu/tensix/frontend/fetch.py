"""FIFO, MOP expander and REPLAY expander: how the next word of a thread reaches its wait gate (math Y1 to Y9)."""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.machine.bytes import record_address
from bhemu.machine.frontend_state import FIFO_PUSH_LIMIT, FIFO_SLOTS, READY_SLOTS
from bhemu.machine.kernel import kernel
from bhemu.machine.prefetch import prefetch
from bhemu.machine.state import TILE, offset_of
from bhemu.machine.types import Bool, FrontendRecord, Int, TileRecord
from bhemu.tensix.frontend.mop import NO_WORD, NOP_OPCODE, mop_next, mop_start

NOP_WORD: Final = NOP_OPCODE << 24
MOP: Final = INSTRUCTIONS["MOP"].opcode
MOP_CFG: Final = INSTRUCTIONS["MOP_CFG"].opcode
REPLAY: Final = INSTRUCTIONS["REPLAY"].opcode
_REPLAY = {field.name: field for field in INSTRUCTIONS["REPLAY"].fields}
START_LSB: Final = _REPLAY["start_idx"].lsb
LENGTH_LSB: Final = _REPLAY["len"].lsb
EXECUTE_LSB: Final = _REPLAY["execute_while_loading"].lsb
LOAD_LSB: Final = _REPLAY["load_mode"].lsb
_ISSUED: Final = offset_of(TILE, "issued")
_COUNT_BYTES: Final = TILE["issued"].base.itemsize
"""The counter of a word is often in no cache: it is fetched when the word is pushed, for when the word is issued."""


@kernel
def append(t: TileRecord, thread: Int, word: Int, line: Int) -> None:
    """Append a word to the thread's first FIFO, which has a slot for it."""
    f = t.frontend
    count = np.int64(f.fifo_count[thread])
    at = (np.int64(f.fifo_head[thread]) + count) % FIFO_SLOTS
    f.fifo_word[thread, at] = np.uint32(word)
    f.fifo_line[thread, at] = line
    f.fifo_count[thread] = count + 1


@kernel(forceinline=True)
def _is_expanded(f: FrontendRecord, thread: Int) -> Bool:
    """True when the thread has no word in front of the expanders, or in them."""
    return (f.fifo_count[thread] | f.side_count[thread] | f.mop_active[thread] | f.replay_play_left[thread]) == 0


@kernel(forceinline=True)
def _passes_expanders(f: FrontendRecord, thread: Int, word: Int) -> Bool:
    """True when the expanders would hand on a word that is pushed now as it is, at once (tile E43)."""
    opcode = word >> 24
    is_plain = word != NOP_WORD and opcode != MOP and opcode != MOP_CFG and opcode != REPLAY
    has_room = f.ready_count[thread] < READY_SLOTS and f.replay_load_left[thread] == 0
    return is_plain and has_room and _is_expanded(f, thread)


@kernel(forceinline=True)
def _to_ready(f: FrontendRecord, thread: Int, word: Int, line: Int) -> None:
    """Put a word into the queue after the expanders."""
    at = (np.int64(f.ready_head[thread]) + np.int64(f.ready_count[thread])) % READY_SLOTS
    f.ready[at, thread] = (np.int64(line) << 32) | word
    f.ready_count[thread] += 1


@kernel
def fifo_push(t: TileRecord, thread: Int, word: Int, line: Int) -> bool:
    """Append a word to the thread's first FIFO; False when it must wait (Y3)."""
    f = t.frontend
    if f.fifo_count[thread] > FIFO_PUSH_LIMIT:
        return False
    if t.simulator_order != 0 and _passes_expanders(f, thread, word):
        prefetch(record_address(t) + _ISSUED + _COUNT_BYTES * (256 * thread + (word >> 24)))
        _to_ready(f, thread, word, line)
        return True
    append(t, thread, word, line)
    if t.simulator_order != 0:
        _expand_ahead(t, thread)
    return True


@kernel
def side_push(t: TileRecord, thread: Int, word: Int, line: Int) -> bool:
    """Append a word of core B to the thread's queue after the MOP expander; False when it must wait (Y2, K2)."""
    f = t.frontend
    count = np.int64(f.side_count[thread])
    if count > FIFO_PUSH_LIMIT:
        return False
    at = (np.int64(f.side_head[thread]) + count) % FIFO_SLOTS
    f.side_word[thread, at] = np.uint32(word)
    f.side_line[thread, at] = line
    f.side_count[thread] = count + 1
    if t.simulator_order != 0:
        _expand_ahead(t, thread)
    return True


@kernel
def is_drained(t: TileRecord, thread: Int) -> Bool:
    """True when no instruction of the thread is queued, being expanded, or at its gate; a wait may be latched."""
    f = t.frontend
    return _is_expanded(f, thread) and f.ready_count[thread] == 0 and f.gate_full[thread] == 0


@kernel
def is_idle(t: TileRecord, thread: Int) -> Bool:
    """`is_drained`, and no wait is latched."""
    return is_drained(t, thread) and t.frontend.wait_word[thread] == 0


@kernel(forceinline=True)
def _to_gate(f: FrontendRecord, thread: Int, word: Int, line: Int) -> None:
    f.gate_word[thread] = np.uint32(word)
    f.gate_line[thread] = line
    f.gate_full[thread] = 1


@kernel
def _expand_ahead(t: TileRecord, thread: Int) -> None:
    """Expand as much as the queue after the expanders can hold; NOP is dropped there (tile E43)."""
    f = t.frontend
    full, gate_word, gate_line = f.gate_full[thread], f.gate_word[thread], f.gate_line[thread]
    while f.ready_count[thread] < READY_SLOTS and expand(t, thread):
        word = np.int64(f.gate_word[thread])
        if word == NOP_WORD:
            t.issued[thread, NOP_OPCODE] += 1
            continue
        _to_ready(f, thread, word, f.gate_line[thread])
    f.gate_full[thread], f.gate_word[thread], f.gate_line[thread] = full, gate_word, gate_line


@kernel
def ready_words(t: TileRecord, thread: Int) -> Int:
    """Words in the official simulator's queue: that at the gate, or one whose wait is latched, is there, too."""
    f = t.frontend
    return np.int64(f.ready_count[thread]) + (1 if f.gate_full[thread] != 0 or f.wait_word[thread] != 0 else 0)


@kernel(forceinline=True)
def take_ready(t: TileRecord, thread: Int, head: Int, count: Int, word: Int, line: Int) -> None:
    """A word of the queue after the expanders comes to the gate; the first of the `count` others is in slot `head`."""
    f = t.frontend
    _to_gate(f, thread, word, line)
    f.ready_count[thread] = count
    # An empty queue begins anew: its first words stay in the processor's caches, and most tiles need no more memory.
    f.ready_head[thread] = 0 if count == 0 else head % READY_SLOTS


@kernel(forceinline=True)
def fetch_ready(t: TileRecord, thread: Int) -> bool:
    """`expand`, from the queue after the expanders that the official simulator has (tile E43)."""
    f = t.frontend
    if f.ready_count[thread] == 0 and not _is_expanded(f, thread):
        _expand_ahead(t, thread)
    if f.ready_count[thread] == 0:
        return False
    head = np.int64(f.ready_head[thread])
    word_and_line = np.int64(f.ready[head, thread])
    left = np.int64(f.ready_count[thread]) - 1
    take_ready(t, thread, head + 1, left, word_and_line & 0xFFFFFFFF, word_and_line >> 32)
    return True


@kernel(forceinline=True)  # into the clock's loop: as a call it takes half as long again as a scalar instruction
def expand(t: TileRecord, thread: Int) -> bool:
    """Bring the next word to the gate, through both expanders; False when the thread has nothing to do."""
    f = t.frontend
    while True:
        # Y9: nothing is taken from upstream in that time, entries are not expanded again
        if f.replay_play_left[thread] > 0:
            at = np.int64(f.replay_play_at[thread])
            _to_gate(f, thread, np.int64(f.replay_buffer[thread, at]), f.replay_line[thread])
            f.replay_play_at[thread] = (at + 1) & 31
            f.replay_play_left[thread] -= 1
            return True
        if f.side_count[thread] > 0 and f.mop_active[thread] == 0:  # Y2: core B's words enter after the MOP expander
            head = np.int64(f.side_head[thread])
            word: Int = np.int64(f.side_word[thread, head])
            line = f.side_line[thread, head]
            f.side_head[thread] = (head + 1) % FIFO_SLOTS
            f.side_count[thread] -= 1
        elif f.mop_active[thread] != 0:
            word = mop_next(f, thread)
            line = f.mop_line[thread]
            if word == NO_WORD:
                continue
        elif f.fifo_count[thread] > 0:
            head = np.int64(f.fifo_head[thread])
            word = np.int64(f.fifo_word[thread, head])
            line = f.fifo_line[thread, head]
            f.fifo_head[thread] = (head + 1) % FIFO_SLOTS
            f.fifo_count[thread] -= 1
            opcode = word >> 24
            if opcode == MOP:
                mop_start(f, thread, word, line)
                t.issued[thread, MOP] += 1
                continue
            if opcode == MOP_CFG:
                f.mop_zmask_hi[thread] = np.uint32(word & 0xFFFF)
                t.issued[thread, MOP_CFG] += 1
                continue
        else:
            return False
        if f.replay_load_left[thread] > 0:  # a REPLAY word is stored, not obeyed
            at = np.int64(f.replay_load_at[thread])
            f.replay_buffer[thread, at] = np.uint32(word)
            f.replay_load_at[thread] = (at + 1) & 31
            f.replay_load_left[thread] -= 1
            if f.replay_load_execute[thread] == 0:
                continue
        elif (word >> 24) == REPLAY:
            start = (word >> START_LSB) & 31
            length: Int = (word >> LENGTH_LSB) & 31
            if length == 0:
                length = 32
            if (word >> LOAD_LSB) & 1:
                f.replay_load_at[thread] = start
                f.replay_load_left[thread] = length
                f.replay_load_execute[thread] = (word >> EXECUTE_LSB) & 1
            else:
                f.replay_play_at[thread] = start
                f.replay_play_left[thread] = length
                f.replay_line[thread] = line
            t.issued[thread, REPLAY] += 1
            continue
        _to_gate(f, thread, word, line)
        return True


@kernel
def fetch(t: TileRecord, thread: Int) -> bool:
    """Bring the next word to the gate, in the order of queues that the tile has."""
    if t.simulator_order != 0:
        return fetch_ready(t, thread)
    return expand(t, thread)
