"""Phases of overlay streams from software to software (tile K55).

In a phase a stream takes a number of messages. Software has written each to a buffer in L1 and its header to an array,
and tells the stream; other software, or UNPACR_NOP, reads what RECEIVER_MSG_INFO shows and takes the messages off.
What a stream needs for a phase can lie in L1: a header word, then pairs of register and value. All this takes no time.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import MissingSpecification, UndefinedBehavior, Unimplemented
from bhemu.isa.tile_registers import bit_of, bits_of
from bhemu.machine.faults import DONE, REFUSED, fault, open_choice, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.types import AnyInt, Bool, Int, TileRecord
from bhemu.tensix.overlay_words import SLOT, put_word, register_number, slot_of

PHASE: Final = register_number("CURR_PHASE")
ONETIME_CONFIG: Final = register_number("ONETIME_MISC_CFG")
CONFIG_HEADER: Final = register_number("PHASE_AUTO_CFG_HEADER")
WAIT_STATUS: Final = register_number("WAIT_STATUS")
COMPRESS: Final = register_number("MSG_GROUP_COMPRESS")
INFO_FIRST: Final = register_number("RECEIVER_MSG_INFO")
INFO_END: Final = INFO_FIRST + 96

_ONETIME: Final = slot_of("ONETIME_MISC_CFG")
_MISC: Final = slot_of("MISC_CFG")
_START: Final = slot_of("BUF_START")
_SIZE: Final = slot_of("BUF_SIZE")
_READ: Final = slot_of("RD_PTR")
_WRITE: Final = slot_of("WR_PTR")
_HEADERS: Final = slot_of("MSG_INFO_PTR")
_HEADERS_WRITE: Final = slot_of("MSG_INFO_WR_PTR")
_FORMAT: Final = slot_of("MSG_HEADER_FORMAT")
_ADDRESS: Final = slot_of("PHASE_AUTO_CFG_PTR")

_AUTO_CONFIG: Final = 1 << bit_of("stream", "ONETIME_MISC_CFG", "AUTO_CONFIG")
_AUTO_ADVANCE: Final = 1 << bit_of("stream", "ONETIME_MISC_CFG", "AUTO_ADVANCE")
_ENDS: Final = bits_of("stream", "MISC_CFG", "ENDS")[1] << bits_of("stream", "MISC_CFG", "ENDS")[0]
_SOFTWARE_TO_SOFTWARE: Final = (1 << bit_of("stream", "MISC_CFG", "SOURCE_ENDPOINT")) | (
    1 << bit_of("stream", "MISC_CFG", "RECEIVER_ENDPOINT")
)
_PHASE_BITS: Final = bits_of("stream", "CURR_PHASE", "PHASE")[1]
_INCREMENT_BITS: Final = bits_of("stream", "PHASE_AUTO_CFG_HEADER", "INCREMENT")[1]
_MESSAGES_LSB, _MESSAGES_BITS = bits_of("stream", "PHASE_AUTO_CFG_HEADER", "MESSAGES")
_WORDS_LSB: Final = bit_of("stream", "PHASE_AUTO_CFG_HEADER", "WORDS")
_IDLE_STATUS: Final = 1 << bit_of("stream", "WAIT_STATUS", "IDLE")
_RUNNING_STATUS: Final = 1 << bit_of("stream", "WAIT_STATUS", "RUNNING") | 5 << 3
"""Bit 2, and state 5 in [6:3]."""
_POINTER_BITS: Final = bits_of("stream", "WR_PTR", "VALUE")[1]
_UNIT: Final = 16
"""Bytes of L1 that pointers and lengths count."""
_REGISTER_BITS: Final = 0xFF
_VALUE_LSB: Final = 8
_HEADER_STREAMS: Final = (4, 5)
"""Streams whose RECEIVER_MSG_INFO has the header after address and length."""
_PHASES_AT_ONCE: Final = 256
"""Phases without messages that may follow each other."""

LOADS_PHASE: Final = fault(
    "overlay.phase",
    MissingSpecification,
    "overlay stream {0} loads its configuration from L1 ({1:#x}): no page describes Blackhole's overlay, and what "
    "Wormhole's says of these words is not how software for Blackhole writes them",
    remedy="configure the stream by stores, or allow open choices to have [7:0] of a word taken as the register and "
    "[31:8] as its value",
    rule="tile K55",
)
PHASE_ADDRESS: Final = fault(
    "overlay.phase-address",
    UndefinedBehavior,
    "overlay stream {0} loads {2} words of configuration at {1:#x}, which are not aligned words of L1",
    remedy="store the byte address of the configuration to PHASE_AUTO_CFG_PTR",
    rule="tile K55",
)
NOT_CONFIGURABLE: Final = fault(
    "overlay.phase-register",
    Unimplemented,
    "the configuration in L1 of overlay stream {0} sets register {1}, which is not built",
    remedy="phases can set 2, 3, 4, 8, 10, 11, 16 to 20, 22, 23, 29, 31, 33, 34 and 36 to 41",
    rule="tile K55",
)
ENDS: Final = fault(
    "overlay.phase-ends",
    Unimplemented,
    "MISC_CFG of overlay stream {0} is {1:#x}: a phase whose messages do not come from software and go to software is "
    "not built",
    remedy="set SOURCE_ENDPOINT (bit 4) and RECEIVER_ENDPOINT (bit 6)",
    rule="tile K55",
)
ENDLESS: Final = fault(
    "overlay.phase-endless",
    UndefinedBehavior,
    "overlay stream {0} goes through {1} phases without a message",
    remedy="let the configuration in L1 end with a phase that has messages, or without AUTO_CONFIG",
    rule="tile K55",
)


@kernel
def is_receiver(t: TileRecord, stream: Int) -> Bool:
    """True for a stream whose messages software reads."""
    return (np.int64(t.stream_word[_MISC, stream]) & _ENDS) == _SOFTWARE_TO_SOFTWARE


@kernel
def wait_status(t: TileRecord, stream: Int) -> Int:
    """WAIT_STATUS."""
    return np.int64(_RUNNING_STATUS) if t.stream_running[stream] != 0 else np.int64(_IDLE_STATUS)


@kernel
def _header_word(t: TileRecord, stream: Int, message: Int, word: Int) -> Int:
    """A word of the header of a message, counted from the oldest one; 0 where its address is not in L1."""
    unit = np.int64(t.stream_word[_HEADERS_WRITE, stream]) - np.int64(t.stream_messages[stream]) + message
    address = unit * _UNIT + 4 * word
    if address < 0 or address >= t.l1_end:
        return np.int64(0)
    return np.int64(t.l1_u32[address >> 2])


@kernel
def _length(t: TileRecord, stream: Int, message: Int) -> Int:
    """Length of a message, from the bits of its header that stream 0's MSG_HEADER_FORMAT names."""
    layout = np.int64(t.stream_word[_FORMAT, 0])
    offset, width = layout & 0x78, layout >> 7
    word = offset >> 5
    bits = _header_word(t, stream, message, word)
    if word < 3:
        bits |= _header_word(t, stream, message, word + 1) << 32
    return (bits >> (offset & 31)) & ((np.int64(1) << np.int64(min(width, np.int64(32)))) - 1) & _POINTER_BITS


@kernel
def _advanced(t: TileRecord, stream: Int, pointer: Int, amount: Int) -> AnyInt:
    """An offset in the receive buffer, some units on."""
    size = np.int64(t.stream_word[_SIZE, stream])
    moved = pointer + amount
    return moved % size if size != 0 else moved & _POINTER_BITS


@kernel
def message_info(t: TileRecord, stream: Int, place: Int) -> AnyInt:
    """RECEIVER_MSG_INFO, word 0 to 95: address and length of each message, with the header on streams 4 and 5."""
    words = 6 if stream in _HEADER_STREAMS else 2
    message, item = place // words, place % words
    if message >= t.stream_messages[stream]:
        return np.int64(0)
    if item >= 2:
        return _header_word(t, stream, message, item - 2)
    if item == 1:
        return _length(t, stream, message)
    at: AnyInt = np.int64(t.stream_word[_READ, stream])
    for i in range(message):
        at = _advanced(t, stream, at, _length(t, stream, i))
    return np.int64(t.stream_word[_START, stream]) + at


@kernel
def group_compress(t: TileRecord, stream: Int) -> Int:
    """MSG_GROUP_COMPRESS: bit 20 of the second header word of each of the first four messages."""
    result = np.int64(0)
    if stream in _HEADER_STREAMS:
        for i in range(4):
            result |= ((message_info(t, stream, 6 * i + 3) >> 20) & 1) << i
    return result


@kernel
def set_header(t: TileRecord, stream: Int, value: Int) -> None:
    """A store to PHASE_AUTO_CFG_HEADER."""
    t.stream_phase[stream] = (np.int64(t.stream_phase[stream]) + (value & _INCREMENT_BITS)) & _PHASE_BITS
    t.stream_left[stream] = (value >> _MESSAGES_LSB) & _MESSAGES_BITS
    if np.int64(t.stream_word[_ONETIME, stream]) & _AUTO_CONFIG:
        at = np.int64(t.stream_word[_ADDRESS, stream]) + 4 * (np.int64(t.stream_next[stream]) + 1)
        t.stream_word[_ADDRESS, stream] = np.uint32(at & 0xFFFFFF)
    t.stream_next[stream] = value >> _WORDS_LSB


@kernel
def header_of(t: TileRecord, stream: Int) -> Int:
    """What a load from PHASE_AUTO_CFG_HEADER gives."""
    left = np.int64(t.stream_left[stream])
    return (np.int64(t.stream_next[stream]) << _WORDS_LSB) | (left << _MESSAGES_LSB) | left


@kernel
def _load_configuration(t: TileRecord, stream: Int) -> Int:
    """Set the registers of the next phase from L1."""
    address = np.int64(t.stream_word[_ADDRESS, stream])
    words = np.int64(t.stream_next[stream]) + 1
    if not open_choice(t, LOADS_PHASE, stream, address):
        return REFUSED
    if address & 3 or address + 4 * words > t.l1_end:
        return refuse(t, PHASE_ADDRESS, stream, address, words)
    set_header(t, stream, np.int64(t.l1_u32[address >> 2]))
    for i in range(1, words):
        pair = np.int64(t.l1_u32[(address >> 2) + i])
        register, value = pair & _REGISTER_BITS, pair >> _VALUE_LSB
        if register == CONFIG_HEADER:
            set_header(t, stream, value)
        elif register == PHASE:
            t.stream_phase[stream] = value & _PHASE_BITS
        elif SLOT[register] < 0:
            return refuse(t, NOT_CONFIGURABLE, stream, register)
        else:
            put_word(t, stream, register, value)
    return DONE


@kernel
def next_phases(t: TileRecord, stream: Int) -> Any:
    """An idle stream loads its configuration from L1 as often as it says, and starts; returns a status."""
    for _ in range(_PHASES_AT_ONCE):
        onetime = np.int64(t.stream_word[_ONETIME, stream])
        if not onetime & _AUTO_CONFIG:
            return DONE
        if _load_configuration(t, stream) != DONE:
            return REFUSED
        if not np.int64(t.stream_word[_ONETIME, stream]) & _AUTO_ADVANCE:
            return DONE
        if t.stream_left[stream] != 0:
            if not is_receiver(t, stream):
                return refuse(t, ENDS, stream, np.int64(t.stream_word[_MISC, stream]))
            t.stream_running[stream] = 1
            t.stream_messages[stream] = 0
            return DONE
    return refuse(t, ENDLESS, stream, _PHASES_AT_ONCE)


@kernel
def store_onetime(t: TileRecord, stream: Int, value: Int) -> Any:
    """A store to ONETIME_MISC_CFG; returns a status."""
    put_word(t, stream, ONETIME_CONFIG, value)
    if t.stream_running[stream] == 0:
        return next_phases(t, stream)
    return DONE


@kernel
def push_messages(t: TileRecord, stream: Int, count: Int, length: Int) -> None:
    """Messages of `length` units together have been written to the buffer, their headers to the array.

    A phase that has all its messages takes no more, and nothing of the stream moves.
    """
    if t.stream_running[stream] == 0:
        t.stream_messages[stream] += count
        return
    if t.stream_messages[stream] + count > t.stream_left[stream]:
        return
    t.stream_messages[stream] += count
    headers = (np.int64(t.stream_word[_HEADERS_WRITE, stream]) + count) & _POINTER_BITS
    t.stream_word[_HEADERS_WRITE, stream] = np.uint32(headers)
    t.stream_word[_HEADERS, stream] = np.uint32(headers)  # the stream fetches them at once
    write = np.int64(t.stream_word[_WRITE, stream])
    t.stream_word[_WRITE, stream] = np.uint32(_advanced(t, stream, write, length))


@kernel
def pop_messages(t: TileRecord, stream: Int, count: Int) -> Any:
    """Take the oldest messages off, which the stream holds; returns a status."""
    if t.stream_running[stream] == 0:
        t.stream_messages[stream] -= count
        return DONE
    read: AnyInt = np.int64(t.stream_word[_READ, stream])
    for i in range(count):
        read = _advanced(t, stream, read, _length(t, stream, i))
    t.stream_word[_READ, stream] = np.uint32(read)
    t.stream_messages[stream] -= count
    t.stream_left[stream] = max(np.int64(t.stream_left[stream]) - count, 0)
    if t.stream_left[stream] == 0:
        t.stream_running[stream] = 0
        return next_phases(t, stream)
    return DONE
