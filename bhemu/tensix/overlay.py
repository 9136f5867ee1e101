"""NoC overlay: stream registers that software uses as plain words, and streams as counters (tile K50 to K53, E22).

A stream has a phase and a count of messages: STREAMWAIT reads both, a store to NUM_MSGS_RECEIVED_INC adds messages and
UNPACR_NOP takes them off (I.7). overlay_phases.py has what streams from software to software do with buffers and
phases. Transfers between tiles do not exist, and the registers that would show or steer them are refused.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import UndefinedBehavior, Unimplemented
from bhemu.isa.tile_registers import bits_of
from bhemu.machine.faults import DONE, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.types import AnyInt, Int, TileRecord
from bhemu.tensix.overlay_phases import (
    COMPRESS,
    CONFIG_HEADER,
    INFO_END,
    INFO_FIRST,
    ONETIME_CONFIG,
    PHASE,
    WAIT_STATUS,
    group_compress,
    header_of,
    is_receiver,
    message_info,
    push_messages,
    set_header,
    store_onetime,
    wait_status,
)
from bhemu.tensix.overlay_words import SLOT, SPACE, SPACE_SLOT, put_word, register_number

MESSAGES_INCREMENT: Final = register_number("NUM_MSGS_RECEIVED_INC")
MESSAGES: Final = register_number("NUM_MSGS_RECEIVED")
SPACE_UPDATE: Final = register_number("REMOTE_DEST_BUF_SPACE_AVAILABLE_UPDATE")

PHASE_BITS: Final = bits_of("stream", "CURR_PHASE", "PHASE")[1]
SPACE_BITS: Final = bits_of("stream", "REMOTE_DEST_BUF_SPACE_AVAILABLE", "SPACE")[1]
MESSAGE_LIMIT: Final = bits_of("stream", "NUM_MSGS_RECEIVED", "MESSAGES")[1]
"""The largest count that STREAMWAIT can name (Y11c)."""
_INCREMENT_BITS: Final = bits_of("stream", "NUM_MSGS_RECEIVED_INC", "MESSAGES")[1]
_SIZE_LSB, _SIZE_BITS = bits_of("stream", "NUM_MSGS_RECEIVED_INC", "SIZE")
_INCREMENT_SPARE: Final = 0xE0000000  # the last-message flag and what lies above the size
_SPACE_INDEX: Final = 0x3F
_SPACE_SHIFT: Final = 6

NO_REGISTER = fault(
    "overlay.register",
    Unimplemented,
    "register {1} of overlay stream {0} is not built: streams are words, counters, and phases from and to software",
    remedy="use the phase (29), message count (259, added to by 1), plain words 4, 8, 10, 11, 36 to 41, space counter "
    "(297, added to by 270), or registers of phases (2, 3, 17 to 20, 22, 23, 31, 33, 34, 257)",
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
    "{1:#x} for overlay stream {0} marks a last message or uses bits above it: phases end by their count here",
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
def _of_phase(t: TileRecord, stream: Int, register: Int) -> Any:
    """(known, value) of a register that shows a phase."""
    if register == WAIT_STATUS:
        return True, wait_status(t, stream)
    if register == CONFIG_HEADER:
        return True, header_of(t, stream)
    if register == COMPRESS and is_receiver(t, stream):
        return True, group_compress(t, stream)
    if register >= INFO_FIRST and register < INFO_END and is_receiver(t, stream):
        return True, message_info(t, stream, register - INFO_FIRST)
    return False, np.int64(0)


@kernel
def load_stream_register(t: TileRecord, stream: Int, register: Int) -> tuple[Int, Int]:
    """(status, value) of a load from a stream register, 0 <= stream < 64 and 0 <= register < 1024."""
    if register == PHASE:
        return DONE, np.int64(t.stream_phase[stream])
    if register == MESSAGES:
        return DONE, np.int64(t.stream_messages[stream])
    if register in (MESSAGES_INCREMENT, SPACE_UPDATE):
        return refuse(t, WRITE_ONLY, stream, register), np.int64(0)
    known, value = _of_phase(t, stream, register)
    if known:
        return DONE, value
    slot = SLOT[register]
    if slot < 0:
        return refuse(t, NO_REGISTER, stream, register), np.int64(0)
    return DONE, np.int64(t.stream_word[slot, stream])


@kernel
def peek_stream_register(t: TileRecord, stream: Int, register: Int) -> Any:
    """(known, value): what a load would give, without refusing where there is nothing to load."""
    if register == PHASE:
        return True, np.int64(t.stream_phase[stream])
    if register == MESSAGES:
        return True, np.int64(t.stream_messages[stream])
    if register == WAIT_STATUS:
        return True, wait_status(t, stream)
    slot = SLOT[register]  # -1 for what shows headers in L1, too
    if register in (MESSAGES_INCREMENT, SPACE_UPDATE) or slot < 0:
        return False, np.int64(0)
    return True, np.int64(t.stream_word[slot, stream])


@kernel
def _add_messages(t: TileRecord, stream: Int, value: Int) -> Int:
    """Bits 11:0 count messages; bits 28:12 are their size together, in units of 16 bytes."""
    if value & _INCREMENT_SPARE:
        return refuse(t, MESSAGE_FLAGS, stream, value)
    held, more = np.int64(t.stream_messages[stream]), value & _INCREMENT_BITS
    if held + more > MESSAGE_LIMIT:
        return refuse(t, TOO_MANY_MESSAGES, stream, held, more)
    push_messages(t, stream, more, (value >> _SIZE_LSB) & _SIZE_BITS)
    return DONE


@kernel
def store_stream_register(t: TileRecord, stream: Int, register: Int, value: Int) -> AnyInt:
    """Store 32 bits to a stream register; those beyond its width are not kept. Returns a status."""
    if register == MESSAGES_INCREMENT:
        return _add_messages(t, stream, value)
    if register == PHASE:
        t.stream_phase[stream] = value & PHASE_BITS
        return DONE
    if register == SPACE_UPDATE:
        if value & _SPACE_INDEX:
            return refuse(t, SPACE_OF_RECEIVER, stream, value & _SPACE_INDEX)
        space = np.int64(t.stream_word[SPACE_SLOT, stream]) + (value >> _SPACE_SHIFT)
        t.stream_word[SPACE_SLOT, stream] = np.uint32(space & SPACE_BITS)  # software subtracts by wrapping
        return DONE
    if register == ONETIME_CONFIG:
        return store_onetime(t, stream, value)
    if register == CONFIG_HEADER:
        set_header(t, stream, value)
        return DONE
    if register in (MESSAGES, SPACE, WAIT_STATUS):
        return refuse(t, READ_ONLY, stream, register)
    slot = SLOT[register]
    if slot < 0:
        return refuse(t, NO_REGISTER, stream, register)
    put_word(t, stream, register, value)
    return DONE
