"""Address counters of the unpackers and the packer (I.8), and SETDVALID, which shares their unit."""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.errors import MissingSpecification, NonContractualBehavior
from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.isa.registers import thread as thread_register
from bhemu.machine.config_access import thread_field
from bhemu.machine.counters import CARRY, CH0_W, CH0_X, CH0_Y, CH0_Z, CH1_W, CH1_X, CH1_Y, CH1_Z, PACKER
from bhemu.machine.faults import DONE, REFUSED, fault, open_choice, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Int, TileRecord
from bhemu.tensix.banks import MATRIX, SRCA, SRCB
from bhemu.tensix.instruction import DOCUMENTED, OPEN, VERIFIED, Mode, instruction

X_MASK: Final = 0x3FFFF
"""X counters have 18 bits (I.8)."""
Y_MASK: Final = 0x1FFF
"""Y counters have 13 bits (I.8)."""
ZW_MASK: Final = 0xFF
"""Z and W counters have 8 bits in the reference and in the vectors. The newest documents say 13, of which an unpacker's
input address uses 8 (I.8, III.1): only values above 255 differ."""

UNITS: Final = PACKER + 1
CHANNEL_STEP: Final = CH1_X - CH0_X
_VALUE_MASK: Final = (1 << INSTRUCTIONS["SETADC"].field("ThreadOverride").lsb) - 1
"""SETADC's value without the thread override in its upper bits (I.8)."""

SETDVALID_FORMAT = fault(
    "adc.setdvalid",
    MissingSpecification,
    "SETDVALID is unsupported on Blackhole: it records no defined source format with the bank",
    remedy="use UNPACR_NOP with Set_Dvalid; or allow open choices, which records the unpacker's previous format",
    rule="I.7",
)
ALREADY_VALID = fault(
    "adc.already-valid",
    NonContractualBehavior,
    "Src{0:c} bank {1} is handed to the matrix unit, which already owns it",
    remedy="wait until the matrix unit has given the bank back (STALLWAIT conditions C5 and C6)",
    rule="U11",
)

# Bits of BitMask (I.8): dimensions a and b are X and Y, or Z and W.
_CH0_A: Final = 1
_CH0_B: Final = 2
_CH1_A: Final = 4
_CH1_B: Final = 8
_ALL_FOUR: Final = 15

SET: Final = 0
INCREMENT: Final = 1
ADD_TO_CARRY: Final = 2


@kernel
def _target(thread: Int, override: Int) -> Int:
    """Thread whose counters are used: the issuing one, or override - 1."""
    return thread if override == 0 else override - 1


@kernel
def _move(t: TileRecord, thread: Int, unit: Int, counter: Int, mask: Int, action: Int, amount: Int) -> None:
    """SETADC* write counter and copy, INCADC* add to the counter, ADDRCR* add to the copy and load it."""
    if action == INCREMENT:
        t.adc[thread, unit, counter] = (np.int64(t.adc[thread, unit, counter]) + amount) & mask
        return
    value = amount
    if action == ADD_TO_CARRY:
        value += np.int64(t.adc[thread, unit, CARRY + counter])
    value &= mask
    t.adc[thread, unit, CARRY + counter] = value
    t.adc[thread, unit, counter] = value


@kernel
def _move_xy(
    t: TileRecord, thread: Int, override: Int, units: Int, select: Int, action: Int, y1: Int, x1: Int, y0: Int, x0: Int
) -> Int:
    target = _target(thread, override)
    for unit in range(UNITS):
        if (units >> unit) & 1:
            if select & _CH0_A:
                _move(t, target, unit, CH0_X, X_MASK, action, x0)
            if select & _CH0_B:
                _move(t, target, unit, CH0_Y, Y_MASK, action, y0)
            if select & _CH1_A:
                _move(t, target, unit, CH1_X, X_MASK, action, x1)
            if select & _CH1_B:
                _move(t, target, unit, CH1_Y, Y_MASK, action, y1)
    return DONE


@kernel
def _move_zw(
    t: TileRecord, thread: Int, override: Int, units: Int, select: Int, action: Int, w1: Int, z1: Int, w0: Int, z0: Int
) -> Int:
    target = _target(thread, override)
    for unit in range(UNITS):
        if (units >> unit) & 1:
            if select & _CH0_A:
                _move(t, target, unit, CH0_Z, ZW_MASK, action, z0)
            if select & _CH0_B:
                _move(t, target, unit, CH0_W, ZW_MASK, action, w0)
            if select & _CH1_A:
                _move(t, target, unit, CH1_Z, ZW_MASK, action, z1)
            if select & _CH1_B:
                _move(t, target, unit, CH1_W, ZW_MASK, action, w1)
    return DONE


@instruction(
    Mode("own thread", VERIFIED, vectors="adc_rwc:SETADC", rule="I.8"),
    Mode("ThreadOverride", DOCUMENTED, rule="I.8"),
)
def SETADC(
    t: TileRecord, thread: Int, CntSetMask: Int, ChannelIndex: Int, DimensionIndex: Int, ThreadOverride: Int, Value: Int
) -> Int:
    target = _target(thread, ThreadOverride)
    counter = ChannelIndex * CHANNEL_STEP + DimensionIndex
    mask = ZW_MASK
    if DimensionIndex == CH0_X:
        mask = X_MASK
    elif DimensionIndex == CH0_Y:
        mask = Y_MASK
    for unit in range(UNITS):
        if (CntSetMask >> unit) & 1:
            _move(t, target, unit, counter, mask, SET, Value & _VALUE_MASK)
    return DONE


@instruction(
    Mode("own thread", VERIFIED, vectors="adc_rwc:SETADCXY", rule="I.8"),
    Mode("ThreadOverride", DOCUMENTED, rule="I.8"),
)
def SETADCXY(
    t: TileRecord,
    thread: Int,
    CntSetMask: Int,
    ThreadOverride: Int,
    Ch1_Y: Int,
    Ch1_X: Int,
    Ch0_Y: Int,
    Ch0_X: Int,
    BitMask: Int,
) -> Int:
    return _move_xy(t, thread, ThreadOverride, CntSetMask, BitMask, SET, Ch1_Y, Ch1_X, Ch0_Y, Ch0_X)


@instruction(
    Mode("own thread", VERIFIED, vectors="adc_rwc:INCADCXY", rule="I.8"),
    Mode("ThreadOverride", DOCUMENTED, rule="I.8"),
)
def INCADCXY(
    t: TileRecord, thread: Int, CntSetMask: Int, ThreadOverride: Int, Ch1_Y: Int, Ch1_X: Int, Ch0_Y: Int, Ch0_X: Int
) -> Int:
    return _move_xy(t, thread, ThreadOverride, CntSetMask, _ALL_FOUR, INCREMENT, Ch1_Y, Ch1_X, Ch0_Y, Ch0_X)


@instruction(
    Mode("own thread", VERIFIED, vectors="adc_rwc:ADDRCRXY", rule="I.8"),
    Mode("ThreadOverride", DOCUMENTED, rule="I.8"),
)
def ADDRCRXY(
    t: TileRecord,
    thread: Int,
    CntSetMask: Int,
    ThreadOverride: Int,
    Ch1_Y: Int,
    Ch1_X: Int,
    Ch0_Y: Int,
    Ch0_X: Int,
    BitMask: Int,
) -> Int:
    return _move_xy(t, thread, ThreadOverride, CntSetMask, BitMask, ADD_TO_CARRY, Ch1_Y, Ch1_X, Ch0_Y, Ch0_X)


@instruction(
    Mode("own thread", VERIFIED, vectors="adc_rwc:SETADCZW", rule="I.8"),
    Mode("ThreadOverride", DOCUMENTED, rule="I.8"),
)
def SETADCZW(
    t: TileRecord,
    thread: Int,
    CntSetMask: Int,
    ThreadOverride: Int,
    Ch1_W: Int,
    Ch1_Z: Int,
    Ch0_W: Int,
    Ch0_Z: Int,
    BitMask: Int,
) -> Int:
    return _move_zw(t, thread, ThreadOverride, CntSetMask, BitMask, SET, Ch1_W, Ch1_Z, Ch0_W, Ch0_Z)


@instruction(
    Mode("own thread", VERIFIED, vectors="adc_rwc:INCADCZW", rule="I.8"),
    Mode("ThreadOverride", DOCUMENTED, rule="I.8"),
)
def INCADCZW(
    t: TileRecord, thread: Int, CntSetMask: Int, ThreadOverride: Int, Ch1_W: Int, Ch1_Z: Int, Ch0_W: Int, Ch0_Z: Int
) -> Int:
    return _move_zw(t, thread, ThreadOverride, CntSetMask, _ALL_FOUR, INCREMENT, Ch1_W, Ch1_Z, Ch0_W, Ch0_Z)


@instruction(
    Mode("own thread", VERIFIED, vectors="adc_rwc:ADDRCRZW", rule="I.8"),
    Mode("ThreadOverride", DOCUMENTED, rule="I.8"),
)
def ADDRCRZW(
    t: TileRecord,
    thread: Int,
    CntSetMask: Int,
    ThreadOverride: Int,
    Ch1_W: Int,
    Ch1_Z: Int,
    Ch0_W: Int,
    Ch0_Z: Int,
    BitMask: Int,
) -> Int:
    return _move_zw(t, thread, ThreadOverride, CntSetMask, BitMask, ADD_TO_CARRY, Ch1_W, Ch1_Z, Ch0_W, Ch0_Z)


@instruction(Mode("own thread", VERIFIED, vectors="adc_rwc:SETADCXX", rule="I.8"))
def SETADCXX(t: TileRecord, thread: Int, CntSetMask: Int, x_end2: Int, x_start: Int) -> Int:
    for unit in range(UNITS):
        if (CntSetMask >> unit) & 1:
            _move(t, thread, unit, CH0_X, X_MASK, SET, x_start)
            _move(t, thread, unit, CH1_X, X_MASK, SET, x_end2)
    return DONE


_SRCA_BASE: Final = thread_register("SRCA_SET_Base")
_SRCB_BASE: Final = thread_register("SRCB_SET_Base")
_ROWS_PER_BASE: Final = 16
_LETTER_A: Final = ord("A")


@instruction(Mode("hand over without UNPACR", OPEN, rule="I.7"))
def SETDVALID(t: TileRecord, thread: Int, setvalid: Int) -> Int:
    for which in range(2):
        if (setvalid >> which) & 1 and t.src_owner[which, t.unpack.bank[which]] == MATRIX:
            return refuse(t, ALREADY_VALID, _LETTER_A + which, t.unpack.bank[which])
    if not open_choice(t, SETDVALID_FORMAT):
        return REFUSED
    for which in range(2):
        if (setvalid >> which) & 1:
            bank = t.unpack.bank[which]
            t.src_owner[which, bank] = MATRIX
            t.src_format[which, bank] = t.src_format[
                which, bank ^ 1
            ]  # the documents: a copy held from an earlier unpack
            t.unpack.bank[which] = bank ^ 1
    if (setvalid >> SRCA) & 1:
        t.unpack.src_row[thread, SRCA] = thread_field(t, thread, _SRCA_BASE) * _ROWS_PER_BASE
    if (setvalid >> SRCB) & 1:
        t.unpack.src_row[thread, SRCB] = thread_field(t, thread, _SRCB_BASE) * _ROWS_PER_BASE
    return DONE
