"""Registers of the two network interfaces (tile N10 to N15, N20, N24).

Each has four initiators of requests, 0x800 apart, and in the first page its configuration and counters. Registers are
words that keep what is stored; a store to CMD_CTRL starts a request (tile/noc/transfer.py).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import UndefinedBehavior, Unimplemented
from bhemu.isa.niu import (
    CLEAR_OUTSTANDING,
    CMD_CTRL,
    CONFIG_END,
    CONFIG_FIRST,
    COUNTERS,
    COUNTERS_END,
    COUNTERS_FIRST,
    ENDPOINT_ID,
    FIFO_STATUS_END,
    FIFO_STATUS_FIRST,
    INITIATOR_BYTES,
    INITIATOR_WORDS,
    INITIATORS,
    NODE_ID,
    OUTSTANDING,
    PACKET_TAG,
    RTZ_ENABLES,
    RTZ_KEEPS_ON_READ,
    RTZ_NUMBER,
    RTZ_SOURCE,
    TRANSACTION_IDS,
)
from bhemu.isa.tile_registers import bit_of, offset_of, tile_register
from bhemu.machine.device_state import RTZ_CLEAR, RTZ_CONFIG
from bhemu.machine.dispatch import NOC_START, call_place, handlers_of
from bhemu.machine.faults import DONE, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.types import AnyInt, Bool, Int, TileRecord
from bhemu.tile.interrupts import notice

_TAG_BITS: Final = 0xFFFF
"""The upper half of PACKET_TAG reads as zero."""
_RTZ_CONFIG_BITS: Final = RTZ_ENABLES | RTZ_KEEPS_ON_READ
_NIU_CFG_0: Final = CONFIG_FIRST
_TILE_CLOCK_OFF: Final = 1 << bit_of("niu", "NIU_CFG_0", "TILE_CLOCK_OFF")
_FIFO_MODE: Final = 1 << bit_of("niu", "NIU_CFG_0", "FIFO_MODE")
_HOLE: Final = offset_of("niu", "ID_LOGICAL") + 4
"""Between the words of configuration there is one place without a register."""
_DEBUG_RESET: Final = offset_of("niu", "DEBUG_RESET")
_KNOWN_END: Final = tile_register("niu", "MORE").offsets[-1] + 4

NO_REGISTER: Final = fault(
    "niu.no-register",
    UndefinedBehavior,
    "the network interface of NoC {0} has no register at {1:#x}",
    remedy="initiators 0x800 apart (+0x00 to +0x40), NODE_ID +0x44, configuration 0x100, counters 0x200 (tile N13)",
    rule="tile N13",
)
NOT_BUILT: Final = fault(
    "niu.not-built",
    Unimplemented,
    "register {1:#x} of the network interface of NoC {0} is not built: request FIFO, debug, security fences, packet "
    "counters of the router",
    remedy="leave FIFO mode off and use the counters at 0x200",
    rule="tile N13, E27",
)
READ_ONLY: Final = fault(
    "niu.read-only",
    UndefinedBehavior,
    "register {1:#x} of the network interface of NoC {0} can only be read",
    remedy="clear outstanding requests with a store to 0x60 and return-to-zero bits with one to 0x17c",
    rule="tile N13",
)
WRITE_ONLY: Final = fault(
    "niu.write-only",
    UndefinedBehavior,
    "register {1:#x} of the network interface of NoC {0} can only be written",
    remedy="read the outstanding requests of each transaction id from 0x240 on",
    rule="tile N13",
)
NO_COMMAND: Final = fault(
    "niu.command",
    UndefinedBehavior,
    "{1:#x} is stored to CMD_CTRL of NoC {0}",
    remedy="1 starts the request",
    rule="tile N13",
)
NO_SUCH_MODE: Final = fault(
    "niu.mode",
    Unimplemented,
    "NIU_CFG_0 of NoC {0} is set to {1:#x}: switching the tile off (bit 12) and FIFO mode (bit 16) are not built",
    remedy="leave bits 12 and 16 clear",
    rule="tile N13, E27",
)


@kernel
def _is_plain_config(offset: Int) -> Bool:
    """Configuration words that keep what is stored."""
    return offset >= CONFIG_FIRST and offset < CONFIG_END and offset not in (_HOLE, _DEBUG_RESET)


@kernel
def _load_rtz_number(t: TileRecord, noc: Int) -> Int:
    """Number of a set and enabled bit, or 0; the bit is cleared unless the configuration keeps it (N24)."""
    config = np.int64(t.niu_config[noc, RTZ_CONFIG])
    source = np.int64(t.niu_rtz[noc])
    for i in range(TRANSACTION_IDS):
        if (source & config & RTZ_ENABLES) >> i & 1:
            if (config & RTZ_KEEPS_ON_READ) == 0:
                t.niu_rtz[noc] = np.uint32(source & ~(1 << i))
            return np.int64(i)
    return np.int64(0)


@kernel
def niu_load(t: TileRecord, noc: Int, offset: Int) -> tuple[Int, Int]:
    """(status, value) of a load from the interface of NoC 0 or 1, 0 <= offset < 0x10000."""
    none = np.int64(0)
    initiator, inside = offset // INITIATOR_BYTES, offset % INITIATOR_BYTES
    if initiator < INITIATORS:
        if inside < INITIATOR_WORDS * 4:
            return DONE, np.int64(t.niu_initiator[noc, initiator, inside // 4])
        if inside == CMD_CTRL:
            return DONE, none  # requests are accepted at once (N15, E41)
        if inside in (NODE_ID, ENDPOINT_ID):
            return DONE, np.int64(t.niu_place[noc, (inside - NODE_ID) // 4])
        if inside >= FIFO_STATUS_FIRST and inside < FIFO_STATUS_END:
            return refuse(t, NOT_BUILT, noc, offset), none
    if offset == CLEAR_OUTSTANDING:
        return refuse(t, WRITE_ONLY, noc, offset), none
    if _is_plain_config(offset):
        return DONE, np.int64(t.niu_config[noc, (offset - CONFIG_FIRST) // 4])
    if offset >= COUNTERS_FIRST and offset < COUNTERS_END:
        return DONE, np.int64(t.niu_counter[noc, (offset - COUNTERS_FIRST) // 4])
    if offset == RTZ_NUMBER:
        number = _load_rtz_number(t, noc)
        notice(t)
        return DONE, number
    if offset == RTZ_SOURCE:
        return DONE, np.int64(t.niu_rtz[noc])
    return _refuse_unknown(t, noc, offset), none


@kernel
def _refuse_unknown(t: TileRecord, noc: Int, offset: Int) -> Int:
    built_in_silicon = offset == _DEBUG_RESET or (offset >= COUNTERS_FIRST + 4 * COUNTERS and offset < _KNOWN_END)
    return refuse(t, NOT_BUILT if built_in_silicon else NO_REGISTER, noc, offset)


@kernel
def _store_config(t: TileRecord, noc: Int, offset: Int, value: Int) -> Any:
    word = (offset - CONFIG_FIRST) // 4
    if offset == _NIU_CFG_0 and value & (_TILE_CLOCK_OFF | _FIFO_MODE):
        return refuse(t, NO_SUCH_MODE, noc, value)
    if word == RTZ_CLEAR:
        t.niu_rtz[noc] = np.uint32(np.int64(t.niu_rtz[noc]) & ~value)
    elif word == RTZ_CONFIG:
        t.niu_config[noc, word] = np.uint32(value & _RTZ_CONFIG_BITS)
    else:
        t.niu_config[noc, word] = np.uint32(value)
    if word in (RTZ_CLEAR, RTZ_CONFIG):
        notice(t)
    return DONE


@kernel
def niu_store(t: TileRecord, noc: Int, offset: Int, value: Int) -> AnyInt:
    """Status of a store of 32 bits; see `niu_load`."""
    initiator, inside = offset // INITIATOR_BYTES, offset % INITIATOR_BYTES
    if initiator < INITIATORS:
        if inside < INITIATOR_WORDS * 4:
            kept = value & _TAG_BITS if inside == PACKET_TAG else value
            t.niu_initiator[noc, initiator, inside // 4] = np.uint32(kept)
            return DONE
        if inside == CMD_CTRL:
            if value > 1:
                return refuse(t, NO_COMMAND, noc, value)
            if value == 0:
                return DONE
            return call_place(t, handlers_of(t), NOC_START, noc, initiator)  # compiled by tiles that send something
        if inside in (NODE_ID, ENDPOINT_ID):
            return refuse(t, READ_ONLY, noc, offset)
        if inside >= FIFO_STATUS_FIRST and inside < FIFO_STATUS_END:
            return refuse(t, READ_ONLY, noc, offset)
    if offset == CLEAR_OUTSTANDING:
        for i in range(TRANSACTION_IDS):
            if (value >> i) & 1:
                t.niu_counter[noc, OUTSTANDING + i] = np.uint32(0)
        return DONE
    if _is_plain_config(offset):
        return _store_config(t, noc, offset, value)
    if offset >= COUNTERS_FIRST and offset < COUNTERS_END:
        return refuse(t, READ_ONLY, noc, offset)
    if offset in (RTZ_NUMBER, RTZ_SOURCE):
        return DONE  # a store has no effect
    return _refuse_unknown(t, noc, offset)
