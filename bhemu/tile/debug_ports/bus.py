"""The debug bus: internal signals in groups of 128 bits (tile K36, K37).

DBG_BUS_CTRL selects a group (daisy stop and signal) and one of its four words, DBG_RD_DATA shows it. Groups that bhemu
has: address counters, bank states, row counters, fidelity phases, program counters. DBG_L1_MEM_REG0 to 2 write whole
groups to L1.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import UndefinedBehavior, Unimplemented
from bhemu.isa.tile_registers import bits_of, offset_of, tile_register
from bhemu.machine.counters import (
    CARRY,
    CH0_W,
    CH0_X,
    CH0_Y,
    CH0_Z,
    CH1_X,
    PACKER,
    RWC_A,
    RWC_A_CR,
    RWC_B,
    RWC_B_CR,
    RWC_DST,
    RWC_DST_CR,
    RWC_FIDELITY,
)
from bhemu.machine.faults import DONE, REFUSED, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.state import THREADS
from bhemu.machine.types import AnyInt, Int, TileRecord
from bhemu.tensix.banks import MATRIX, SRCA, SRCB, UNPACKER
from bhemu.tile.local_ram import pc_snapshot

L1_REG0: Final = offset_of("control", "DBG_L1_MEM_REG0")
L1_REG2: Final = offset_of("control", "DBG_L1_MEM_REG2")
CONTROL: Final = offset_of("control", "DBG_BUS_CTRL")

_SIGNAL: Final = bits_of("control", "DBG_BUS_CTRL", "SIGNAL")[1]
_DAISY_LSB, _DAISY = bits_of("control", "DBG_BUS_CTRL", "DAISY_STOP")
_WORD_LSB, _WORD = bits_of("control", "DBG_BUS_CTRL", "WORD")
_ENABLED: Final = 1 << bits_of("control", "DBG_BUS_CTRL", "ENABLE")[0]
_RESERVED: Final = 0xFFFFFFFF & ~sum(bits.in_place for bits in tile_register("control", "DBG_BUS_CTRL").fields)

_ROW_COUNTERS: Final = 3
_COUNTERS: Final = 6
_EXECUTION: Final = 7
_PC_SIGNALS: Final = np.array([11, 25, 13, 15, 17], np.int64)
"""Of B, NC, T0, T1, T2: the order of the pc snapshots."""
_PC_BITS: Final = 0x3FFFFFFF
_PC_WORD: Final = 1

_MODE: Final = 0xF
_MODE_PREPARE: Final = 0xF
_MODE_SAME_PLACE: Final = 0
_MODE_NEXT_PLACE: Final = 1
_TRIGGER: Final = 1 << 12
_LOW_L1: Final = 1 << 20

DISABLED: Final = fault(
    "debug_bus.disabled",
    UndefinedBehavior,
    "the debug bus is read while DBG_BUS_CTRL = {0:#x} does not enable it",
    remedy="set bit 29 of DBG_BUS_CTRL",
    rule="tile K31",
)
RESERVED_BITS: Final = fault(
    "debug_bus.reserved",
    UndefinedBehavior,
    "DBG_BUS_CTRL = {0:#x} has reserved bits set",
    remedy="leave bits 24, 30 and 31 clear",
    rule="tile K31",
)
NO_SIGNAL: Final = fault(
    "debug_bus.signal",
    Unimplemented,
    "bhemu does not have word {2} of signal group {1} at daisy stop {0} of the debug bus",
    remedy="stop 6 has signals 0 to 5 (address counters) and 9 (Src banks), stop 3 has 2, 3 (row counters) and 4 "
    "(fidelity), stop 7 has 11, 13, 15, 17, 25 (program counters in word 1)",
    rule="tile K36, K37",
)
SAMPLING: Final = fault(
    "debug_bus.sampling",
    Unimplemented,
    "DBG_L1_MEM_REG2 = {0:#x} starts write mode {1}, and bhemu has single samples only",
    remedy="use write mode 0 or 1, one trigger a sample",
    rule="tile K36",
)
PAST_LOW_L1: Final = fault(
    "debug_bus.l1",
    UndefinedBehavior,
    "the debug bus writes a sample to {0:#x}, and reaches only the first MiB of L1",
    remedy="store a lower address, divided by 16, to DBG_L1_MEM_REG0",
    rule="tile K36",
)


@kernel
def _part(value: Int, first: Int, word: Int) -> Int:
    """What of a value whose bit 0 is bit `first` of a group lies in a word of the group."""
    shift = first - 32 * word
    if shift >= 32 or shift <= -32:
        return np.int64(0)
    if shift < 0:
        return value >> -shift
    return (value << shift) & 0xFFFFFFFF


@kernel
def _address_counters(t: TileRecord, signal: Int, word: Int) -> Int:
    """Daisy stop 6, signal 2 * unit + channel: an unpacker's counters are thread 0's, the packer's thread 2's."""
    unit = signal >> 1
    thread = 2 if unit == PACKER else 0
    channel = CH1_X if signal & 1 else CH0_X
    adc = t.adc[thread, unit]
    value = _part(np.int64(adc[channel + CH0_X]) & 0x3FFFF, 0, word)
    value |= _part(np.int64(adc[channel + CH0_X + CARRY]) & 0x3FFFF, 18, word)
    value |= _part(np.int64(adc[channel + CH0_Y]) & 0x1FFF, 64, word)
    value |= _part(np.int64(adc[channel + CH0_Y + CARRY]) & 0x1FFF, 80, word)
    value |= _part(np.int64(adc[channel + CH0_Z]) & 0xFF, 96, word)
    value |= _part(np.int64(adc[channel + CH0_Z + CARRY]) & 0xFF, 104, word)
    value |= _part(np.int64(adc[channel + CH0_W]) & 0xFF, 112, word)
    return value | _part(np.int64(adc[channel + CH0_W + CARRY]) & 0xFF, 120, word)


@kernel
def _bit(condition: Int, first: Int, word: Int) -> Int:
    return _part(np.int64(1 if condition else 0), first, word)


@kernel
def _banks(t: TileRecord, word: Int) -> Int:
    """Daisy stop 6, signal 9: owners of the Src banks, and the bank that each unit works on."""
    matrix_a, matrix_b = np.int64(t.matrix.bank[SRCA]), np.int64(t.matrix.bank[SRCB])
    unpack_a, unpack_b = np.int64(t.unpack.bank[SRCA]), np.int64(t.unpack.bank[SRCB])
    value = _bit(t.src_owner[SRCA, unpack_a] == UNPACKER, 84, word)
    value |= _bit(t.src_owner[SRCA, matrix_a] == MATRIX, 85, word)
    value |= _bit(t.src_owner[SRCA, 1] == MATRIX, 90, word)
    value |= _bit(t.src_owner[SRCA, 0] == MATRIX, 91, word)
    value |= _part(matrix_a, 92, word) | _part(matrix_a, 93, word) | _part(unpack_a, 94, word)
    value |= _part(matrix_b, 100, word) | _part(matrix_b, 101, word) | _part(unpack_b, 102, word)
    value |= _bit(t.src_owner[SRCB, 0] == MATRIX, 105, word)
    return value | _bit(t.src_owner[SRCB, 1] == MATRIX, 106, word)


@kernel
def _row_counters(t: TileRecord, word: Int) -> Any:
    """Daisy stop 3, signals 2 and 3 (words 0 to 3 and 4 to 7): row counters of the three threads."""
    value = np.int64(0)
    for thread in range(THREADS):
        rwc = t.rwc[thread]
        value |= _part(np.int64(rwc[RWC_A]), 16 * thread, word)
        value |= _part(np.int64(rwc[RWC_A_CR]), 16 * thread + 8, word)
        value |= _part(np.int64(rwc[RWC_B]), 60 + 16 * thread, word)
        value |= _part(np.int64(rwc[RWC_B_CR]), 68 + 16 * thread, word)
        value |= _part(np.int64(rwc[RWC_DST]), 120 + 20 * thread, word)
        value |= _part(np.int64(rwc[RWC_DST_CR]), 130 + 20 * thread, word)
    return value


@kernel
def _fidelity(t: TileRecord, word: Int) -> Any:
    value = np.int64(0)
    for thread in range(THREADS):
        value |= _part(np.int64(t.rwc[thread, RWC_FIDELITY]), 60 + 2 * thread, word)
    return value


@kernel
def bus_word(t: TileRecord, daisy: Int, signal: Int, word: Int) -> Any:
    """(status, value) of word 0 to 3 of a group."""
    if word < 4:
        if daisy == _COUNTERS and signal < 6:
            return DONE, _address_counters(t, signal, word)
        if daisy == _COUNTERS and signal == 9:
            return DONE, _banks(t, word)
        if daisy == _ROW_COUNTERS and (signal == 2 or signal == 3):
            return DONE, _row_counters(t, 4 * (signal - 2) + word)
        if daisy == _ROW_COUNTERS and signal == 4:
            return DONE, _fidelity(t, word)
        if daisy == _EXECUTION:
            for i in range(len(_PC_SIGNALS)):
                if signal == _PC_SIGNALS[i]:
                    # The other words are reserved but for two bits that say whether a fetch is under way: none is.
                    status, pc = pc_snapshot(t, i)
                    return status, (pc & _PC_BITS if word == _PC_WORD else np.int64(0))
    return refuse(t, NO_SIGNAL, daisy, signal, word), np.int64(0)


@kernel
def store_bus_control(t: TileRecord, value: Int) -> Any:
    """DBG_BUS_CTRL."""
    if value & _RESERVED:
        return refuse(t, RESERVED_BITS, value)
    t.control_word[CONTROL >> 2] = np.uint32(value)
    return DONE


@kernel
def _selected(t: TileRecord, word: Int) -> Any:
    """(status, value) of a word of the selected group."""
    control = np.int64(t.control_word[CONTROL >> 2])
    if not control & _ENABLED:
        return refuse(t, DISABLED, control), np.int64(0)
    return bus_word(t, (control >> _DAISY_LSB) & _DAISY, control & _SIGNAL, word)


@kernel
def load_bus_data(t: TileRecord) -> AnyInt:
    """(status, value) of DBG_RD_DATA."""
    return _selected(t, (np.int64(t.control_word[CONTROL >> 2]) >> _WORD_LSB) & _WORD)


@kernel
def _write_sample(t: TileRecord) -> Any:
    """One group to L1."""
    address = 16 * np.int64(t.debug_l1_pointer)
    if address >= _LOW_L1:
        return refuse(t, PAST_LOW_L1, address)
    for word in range(4):  # all of them or none
        if _selected(t, word)[0] != DONE:
            return REFUSED
    for word in range(4):
        t.l1_u32[(address >> 2) + word] = np.uint32(_selected(t, word)[1])
    return DONE


@kernel
def store_l1_control(t: TileRecord, value: Int) -> Any:
    """DBG_L1_MEM_REG2: bits 3:0 write mode, bit 12 trigger; the mode after 15 takes its address from REG0."""
    before = np.int64(t.control_word[L1_REG2 >> 2])
    mode = value & _MODE
    pointer = np.int64(t.debug_l1_pointer)
    if before & _MODE == _MODE_PREPARE and mode != _MODE_PREPARE:
        t.debug_l1_pointer = np.int64(t.control_word[L1_REG0 >> 2])
    status: Int = DONE
    if value & _TRIGGER and not before & _TRIGGER and mode != _MODE_PREPARE:
        if mode != _MODE_SAME_PLACE and mode != _MODE_NEXT_PLACE:
            status = refuse(t, SAMPLING, value, mode)
        else:
            status = _write_sample(t)
        if status == DONE:
            t.debug_l1_pointer += mode
    if status != DONE:
        t.debug_l1_pointer = pointer
        return status
    t.control_word[L1_REG2 >> 2] = np.uint32(value)
    return DONE
