"""The mailbox of an Ethernet tile's base firmware: the one message of which a source says what it does (ethernet 4.3).

Base firmware is not emulated. What it would do with a message is done as soon as the message is there.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import Unimplemented
from bhemu.ethernet.reset import STACK_POINTER, STACK_TOP, release
from bhemu.machine.core_state import IN_RESET
from bhemu.machine.ethernet_state import ERISC0
from bhemu.machine.faults import DONE, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Int, TileRecord

MAILBOX: Final = 0x7D000
ENTRY: Final = 16
ENTRIES: Final = 4
"""For the host, core ERISC1, the management firmware, others: a word with the message, three arguments."""
_CALL: Final = 0xCA11
_IS_DONE: Final = 0xD0E50000
_RELEASE_CORE: Final = 2

UNKNOWN_MESSAGE: Final = fault(
    "ethernet.message",
    Unimplemented,
    "message {0:#x} for base firmware in entry {1} of its mailbox: what it does is not known",
    remedy="0xca110002, which starts core ERISC0 at the address in the first argument, is the one that is known",
    rule="ethernet 4.3",
)


@kernel
def calls_firmware(t: TileRecord, address: Int, size: Int) -> bool:
    """A write to L1 has left a message for base firmware, which has core ERISC0 of a tile with a link."""
    if address >= MAILBOX + ENTRIES * ENTRY or address + size <= MAILBOX:
        return False
    return bool(t.ethernet.linked != 0 and t.core_state[ERISC0] == IN_RESET and _first_call(t) < ENTRIES)


@kernel
def _first_call(t: TileRecord) -> Int:
    """The first entry with a message; ENTRIES: none has one."""
    for entry in range(ENTRIES):
        if np.int64(t.l1_u32[(MAILBOX + entry * ENTRY) // 4]) >> 16 == _CALL:
            return np.int64(entry)
    return np.int64(ENTRIES)


@kernel
def serve(t: TileRecord) -> Any:
    """Status of what base firmware does with the first message; its entry says that it is done."""
    entry = _first_call(t)
    word = (MAILBOX + entry * ENTRY) // 4
    message = np.int64(t.l1_u32[word])
    if message & 0xFFFF != _RELEASE_CORE:
        t.l1_u32[word] = 0
        return refuse(t, UNKNOWN_MESSAGE, message, entry)
    t.reset_pc[ERISC0] = t.l1_u32[word + 1]
    t.core_x[ERISC0, STACK_POINTER] = np.uint32(STACK_TOP)
    t.l1_u32[word] = np.uint32(_IS_DONE | _RELEASE_CORE)
    for argument in range(1, ENTRY // 4):
        t.l1_u32[word + argument] = 0
    release(t, ERISC0)
    return DONE
