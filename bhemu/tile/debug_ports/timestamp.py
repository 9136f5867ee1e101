"""Timestamp events: a stream of tokens with the tile's clock, written to L1 (tile K31, E18; documented as D).

The low three bits of a stored token choose the event's size. Events of less than 16 bytes gather until 16 bytes are
full; these go to the first of two buffers that is enabled and has space.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import MemoryError_, UndefinedBehavior
from bhemu.isa.tile_registers import offset_of
from bhemu.machine.faults import DONE, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.state import L1_SIZE
from bhemu.machine.types import Int, TileRecord

COMMAND: Final = offset_of("control", "TIMESTAMP_DUMP_CMD")
CONTROL: Final = offset_of("control", "TIMESTAMP_DUMP_CNTL")
STATUS: Final = offset_of("control", "TIMESTAMP_DUMP_STATUS")
BUFFER_START: Final = offset_of("control", "TIMESTAMP_DUMP_BUF0_START_ADDR")
"""Start and end of buffer 0, then of buffer 1; units of 16 bytes, the end belongs to the buffer."""

_WORD: Final = 0xFFFFFFFF
_BUFFERS: Final = 2
_ENABLED_AT_RESET: Final = 3
_RESET_STREAMS: Final = 1 << 31
_OVERFLOW_LSB: Final = 4
_FLAGS: Final = 0x33
_WORDS_OF_LINE: Final = 4
_POSITION: Final = 0x3FFFF

_WORDS_OF_EVENT: Final = np.array([4, 2, 1, 2, 3, 0, 0, 3], np.int64)
"""By the low bits of the token; 0 is undefined."""
_FLUSH: Final = np.array([0, 0, 0, 1, 0, 0, 0, 1], np.int64)

NO_EVENT: Final = fault(
    "timestamp.event",
    UndefinedBehavior,
    "TIMESTAMP_DUMP_CMD = {0:#x}: no event has {1} in its low three bits",
    remedy="use 0 (128 bits), 1 (64), 2 (32), 4 (96), 3 or 7 (flush 64 or 96)",
    rule="tile K31",
)
MIXED: Final = fault(
    "timestamp.mixed",
    UndefinedBehavior,
    "an event of {0} words while events of {1} words have not been flushed",
    remedy="flush before the size of events changes",
    rule="tile K31",
)
OUTSIDE: Final = fault(
    "timestamp.outside",
    MemoryError_,
    "a timestamp buffer places 16 bytes at {0:#x}, outside L1",
    remedy="set TIMESTAMP_DUMP_BUF0/1_START_ADDR and _END_ADDR to addresses in L1 divided by 16",
    rule="tile K31",
)


@kernel
def _place(t: TileRecord) -> Any:
    """(buffer, unit of 16 bytes) where the next 16 bytes go; buffer -1 when there is no space."""
    enabled = np.int64(t.timestamp_control) ^ _ENABLED_AT_RESET
    for buffer in range(_BUFFERS):
        at = np.int64(t.control_word[(BUFFER_START >> 2) + 2 * buffer]) + np.int64(t.timestamp_position[buffer])
        if (enabled >> buffer) & 1 and at <= np.int64(t.control_word[(BUFFER_START >> 2) + 2 * buffer + 1]):
            return buffer, at
    return -1, np.int64(0)


@kernel
def _flush(t: TileRecord) -> None:
    """The gathered words go to L1, filled up with zeros."""
    buffer, at = _place(t)
    if buffer < 0:
        enabled = np.int64(t.timestamp_control) ^ _ENABLED_AT_RESET
        t.timestamp_flags = np.uint32(np.int64(t.timestamp_flags) | ((enabled & 3) << _OVERFLOW_LSB))
    else:
        for i in range(_WORDS_OF_LINE):
            word = np.int64(t.timestamp_word[i]) if i < t.timestamp_count else np.int64(0)
            t.l1_u32[_WORDS_OF_LINE * at + i] = np.uint32(word)
        t.timestamp_position[buffer] += np.uint32(1)
        if at + 1 > np.int64(t.control_word[(BUFFER_START >> 2) + 2 * buffer + 1]):
            t.timestamp_flags = np.uint32(np.int64(t.timestamp_flags) | (1 << buffer))
    t.timestamp_count = 0
    t.timestamp_size = 0


@kernel
def _append(t: TileRecord, word: Int) -> None:
    t.timestamp_word[t.timestamp_count] = np.uint32(word & _WORD)
    t.timestamp_count += 1
    if t.timestamp_count == _WORDS_OF_LINE:
        _flush(t)


@kernel
def store_command(t: TileRecord, token: Int, now: Int) -> Any:
    """Append an event.

    Args:
        token: the stored word.
        now: the tile's clock.
    """
    kind = token & 7
    words = _WORDS_OF_EVENT[kind]
    if words == 0:
        return refuse(t, NO_EVENT, token, kind)
    if t.timestamp_size != 0 and t.timestamp_size != words:
        return refuse(t, MIXED, words, t.timestamp_size)
    buffer, at = _place(t)
    if buffer >= 0 and 4 * _WORDS_OF_LINE * (at + 1) > L1_SIZE:
        return refuse(t, OUTSIDE, 4 * _WORDS_OF_LINE * at)
    if _FLUSH[kind]:
        _flush(t)
    elif words == 1:
        t.timestamp_size = words
        _append(t, (token & 0xFFFF) | ((now & 0x1FFFE0) << 11))
    else:
        t.timestamp_size = words
        _append(t, token)
        _append(t, now)
        if words > 2:
            _append(t, now >> 32)
        if words > 3:
            _append(t, 0)
    _hold_in_reset(t)
    return DONE


@kernel
def _hold_in_reset(t: TileRecord) -> None:
    """While bit 31 of the control register is set, each clock clears the flags and what has been gathered."""
    if np.int64(t.timestamp_control) & _RESET_STREAMS:
        t.timestamp_flags = 0
        t.timestamp_count = 0
        t.timestamp_size = 0


@kernel
def store_buffer_control(t: TileRecord, value: Int) -> Any:
    """TIMESTAMP_DUMP_CNTL: bits 0 and 1 enable the buffers, bit 31 clears the flags and what has been gathered."""
    t.timestamp_control = np.uint32(value ^ _ENABLED_AT_RESET)
    _hold_in_reset(t)
    return DONE


@kernel
def load_buffer_control(t: TileRecord) -> Int:
    return np.int64(t.timestamp_control) ^ _ENABLED_AT_RESET


@kernel
def store_status(t: TileRecord, value: Int) -> Any:
    """TIMESTAMP_DUMP_STATUS: set bits clear their flags; a full buffer begins again."""
    t.timestamp_flags = np.uint32(np.int64(t.timestamp_flags) & ~(value & _FLAGS))
    for buffer in range(_BUFFERS):
        if (value >> buffer) & 1:
            t.timestamp_position[buffer] = 0
    return DONE


@kernel
def load_status(t: TileRecord) -> Int:
    """Flags, how much has been gathered, and how much buffer 0 holds (in units of 16 bytes)."""
    value = np.int64(t.timestamp_flags)
    count = np.int64(t.timestamp_count)
    if t.timestamp_size == 2:
        value |= (count // 2) << 8
    elif t.timestamp_size == 1:
        value |= count << 9
    elif t.timestamp_size == 3:
        value |= ((_WORDS_OF_LINE - count) & 3) << 11
    return value | ((np.int64(t.timestamp_position[0]) & _POSITION) << 14)
