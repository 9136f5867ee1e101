"""NoC overlay: stream registers that software uses as plain words, and streams as counters (tile K50 to K53, E22).

A stream has a phase and a count of messages: STREAMWAIT reads both, a store to NUM_MSGS_RECEIVED_INC adds messages and
UNPACR_NOP takes them off (I.7). Messages carry no data: buffers, transfers and phases that advance by themselves do not
exist, and the registers that would show or steer them are refused.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import UndefinedBehavior, Unimplemented
from bhemu.isa.memory_map import region
from bhemu.isa.tile_registers import bits_of, offset_of, registers_of, tile_register
from bhemu.machine.faults import DONE, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.state import STREAM_WORDS
from bhemu.machine.types import Bool, Int, TileRecord

STREAMS: Final = region("overlay").size // region("overlay").step
REGISTERS: Final = region("overlay").step // 4
"""Word positions of a stream's 4 KiB window."""


def _number(name: str) -> int:
    """A register's number: its word in a stream's window."""
    return offset_of("stream", name) // 4


MESSAGES_INCREMENT: Final = _number("NUM_MSGS_RECEIVED_INC")
DEST_BUFFER_START: Final = _number("REMOTE_DEST_BUF_START")
DEST_BUFFER_SIZE: Final = _number("REMOTE_DEST_BUF_SIZE")
DEST_WRITE_POINTER: Final = _number("REMOTE_DEST_WR_PTR")
PHASE: Final = _number("CURR_PHASE")
SCRATCH: Final = _number("SCRATCH")
MESSAGES: Final = _number("NUM_MSGS_RECEIVED")
SPACE_UPDATE: Final = _number("REMOTE_DEST_BUF_SPACE_AVAILABLE_UPDATE")
SPACE: Final = _number("REMOTE_DEST_BUF_SPACE_AVAILABLE")

SCRATCH_WORDS: Final = len(tile_register("stream", "SCRATCH").offsets)
PHASE_BITS: Final = bits_of("stream", "CURR_PHASE", "PHASE")[1]
SPACE_BITS: Final = bits_of("stream", "REMOTE_DEST_BUF_SPACE_AVAILABLE", "SPACE")[1]
MESSAGE_LIMIT: Final = bits_of("stream", "NUM_MSGS_RECEIVED", "MESSAGES")[1]
"""The largest count that STREAMWAIT can name (Y11c)."""
_INCREMENT_BITS: Final = bits_of("stream", "NUM_MSGS_RECEIVED_INC", "MESSAGES")[1]
_INCREMENT_SPARE: Final = 0xE0000000  # the last-message flag and what lies above the size
_SPACE_INDEX: Final = 0x3F
_SPACE_SHIFT: Final = 6

# Plain words: the slot of `t.stream_word` and the bits that are kept, by register number; slot -1 = no plain word.
_PLAIN: Final[dict[int, int]] = {
    offset // 4: bits.mask
    for row in registers_of("stream")
    for bits in row.fields
    if bits.name == "VALUE" or row.offset // 4 == SPACE
    for offset in row.offsets
}


def _slots() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    slots, kept = np.full(REGISTERS, -1, np.int64), np.zeros(REGISTERS, np.int64)
    for slot, (register, mask) in enumerate(_PLAIN.items()):
        slots[register], kept[register] = slot, mask
    return slots, kept


if len(_PLAIN) != STREAM_WORDS:
    raise RuntimeError(f"the state record has {STREAM_WORDS} words a stream, and {len(_PLAIN)} are in use")
SLOT: Final = _slots()[0]
KEPT: Final = _slots()[1]
SPACE_SLOT: Final = int(SLOT[SPACE])
POINTER_SLOT: Final = int(SLOT[DEST_WRITE_POINTER])

NO_REGISTER = fault(
    "overlay.register",
    Unimplemented,
    "register {1} of overlay stream {0} is not built: streams are plain counters and words",
    remedy="use the phase (29), message count (259, added to by 1), plain words 4, 8, 10, 11, 31, 36 to 41, or space "
    "counter (297, added to by 270)",
    rule="tile K53",
)
READ_ONLY = fault(
    "overlay.read-only",
    UndefinedBehavior,
    "register {1} of overlay stream {0} can only be read",
    remedy="add messages through register 1 and space through register 270",
    rule="tile K50",
)
WRITE_ONLY = fault(
    "overlay.write-only",
    UndefinedBehavior,
    "register {1} of overlay stream {0} can only be written",
    remedy="read the message count in register 259 and the space in register 297",
    rule="tile K50",
)
TOO_MANY_MESSAGES = fault(
    "overlay.messages",
    UndefinedBehavior,
    "overlay stream {0} holds {1} messages and gets {2} more, which is past the 17 bits of its count",
    remedy="pop messages with UNPACR_NOP before adding more",
    rule="tile K53",
)
MESSAGE_FLAGS = fault(
    "overlay.message-flags",
    Unimplemented,
    "{1:#x} for overlay stream {0} marks a last message or uses bits above it: phases do not end by themselves here",
    remedy="clear bits 31:29 of the word for register 1",
    rule="tile K53",
)
SPACE_OF_RECEIVER = fault(
    "overlay.space-index",
    Unimplemented,
    "space of receiver {1} of overlay stream {0}: multicast is not built, only receiver 0 has a counter",
    remedy="use index 0 in bits 5:0",
    rule="tile K50",
)


@kernel
def _has_scratch(stream: Int) -> Bool:
    """Only streams that can write to DRAM buffers have scratch words: 0 to 3 and 8 to 11."""
    return stream < 4 or (stream >= 8 and stream < 12)


@kernel
def load_stream_register(t: TileRecord, stream: Int, register: Int) -> tuple[Int, Int]:
    """(status, value) of a load from a stream register, 0 <= stream < 64 and 0 <= register < 1024."""
    if register == PHASE:
        return DONE, np.int64(t.stream_phase[stream])
    if register == MESSAGES:
        return DONE, np.int64(t.stream_messages[stream])
    if register in (MESSAGES_INCREMENT, SPACE_UPDATE):
        return refuse(t, WRITE_ONLY, stream, register), np.int64(0)
    slot = SLOT[register]
    if slot < 0:
        return refuse(t, NO_REGISTER, stream, register), np.int64(0)
    return DONE, np.int64(t.stream_word[stream, slot])


@kernel
def peek_stream_register(t: TileRecord, stream: Int, register: Int) -> Any:
    """(known, value): what a load would give, without refusing where there is nothing to load."""
    if register == PHASE:
        return True, np.int64(t.stream_phase[stream])
    if register == MESSAGES:
        return True, np.int64(t.stream_messages[stream])
    slot = SLOT[register]
    if register in (MESSAGES_INCREMENT, SPACE_UPDATE) or slot < 0:
        return False, np.int64(0)
    return True, np.int64(t.stream_word[stream, slot])


@kernel
def _add_messages(t: TileRecord, stream: Int, value: Int) -> Int:
    """Bits 11:0 count messages; bits 28:12, their size, would move buffer pointers that do not exist."""
    if value & _INCREMENT_SPARE:
        return refuse(t, MESSAGE_FLAGS, stream, value)
    held, more = np.int64(t.stream_messages[stream]), value & _INCREMENT_BITS
    if held + more > MESSAGE_LIMIT:
        return refuse(t, TOO_MANY_MESSAGES, stream, held, more)
    t.stream_messages[stream] = held + more
    return DONE


@kernel
def store_stream_register(t: TileRecord, stream: Int, register: Int, value: Int) -> Int:
    """Store 32 bits to a stream register; those beyond its width are not kept. Returns a status."""
    if register == MESSAGES_INCREMENT:
        return _add_messages(t, stream, value)
    if register == PHASE:
        t.stream_phase[stream] = value & PHASE_BITS
        return DONE
    if register == SPACE_UPDATE:
        if value & _SPACE_INDEX:
            return refuse(t, SPACE_OF_RECEIVER, stream, value & _SPACE_INDEX)
        space = np.int64(t.stream_word[stream, SPACE_SLOT]) + (value >> _SPACE_SHIFT)
        t.stream_word[stream, SPACE_SLOT] = np.uint32(space & SPACE_BITS)  # software subtracts by wrapping
        return DONE
    if register in (MESSAGES, SPACE):
        return refuse(t, READ_ONLY, stream, register)
    slot = SLOT[register]
    if slot < 0:
        return refuse(t, NO_REGISTER, stream, register)
    if register >= SCRATCH and register < SCRATCH + SCRATCH_WORDS and not _has_scratch(stream):
        return DONE  # the write is ignored, and the word reads as zero
    kept = np.uint32(value & KEPT[register])
    t.stream_word[stream, slot] = kept
    if register == DEST_BUFFER_START:
        t.stream_word[stream, POINTER_SLOT] = np.uint32(0)
    elif register == DEST_BUFFER_SIZE:
        t.stream_word[stream, SPACE_SLOT] = kept
    return DONE
