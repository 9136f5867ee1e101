"""The watchdog: a counter that goes down to 0 (tile K56)."""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.errors import MissingSpecification
from bhemu.isa.tile_registers import bit_of, offset_of
from bhemu.machine.faults import DONE, REFUSED, fault, open_choice
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Bool, Int, TileRecord

TIMER: Final = offset_of("control", "WATCHDOG_TIMER")
CONTROL: Final = offset_of("control", "WDT_CNTL")
STATUS: Final = offset_of("control", "WDT_STATUS")
_ENABLE: Final = 1 << bit_of("control", "WDT_CNTL", "ENABLE")

STARTED: Final = fault(
    "control.watchdog",
    MissingSpecification,
    "WDT_CNTL = {0:#x} starts the watchdog: the pages of Wormhole's Ethernet tiles alone describe it, and no source "
    "says what the bits above bit 0 do and when the watchdog interrupts",
    remedy="leave WDT_CNTL at 0, or allow open choices to have bit 0 count down and nothing else happen",
    rule="tile K56",
)


@kernel
def is_register(offset: Int) -> Bool:
    """True for the three registers of the watchdog."""
    return offset >= TIMER and offset <= STATUS


@kernel
def _remaining(t: TileRecord, now: Int) -> Int:
    """Clocks until the watchdog's count is 0."""
    value = np.int64(t.control_word[TIMER >> 2])
    if np.int64(t.control_word[CONTROL >> 2]) & _ENABLE:
        value = max(value - (now - np.int64(t.watchdog_start)), np.int64(0))
    return value


@kernel
def load(t: TileRecord, offset: Int, now: Int) -> Int:
    """Value of a register at clock `now`."""
    if offset == TIMER:
        return _remaining(t, now)
    control = np.int64(t.control_word[CONTROL >> 2])
    if offset == CONTROL:
        return control
    return np.int64(1) if control & _ENABLE and _remaining(t, now) == 0 else np.int64(0)


@kernel
def store(t: TileRecord, offset: Int, value: Int, now: Int) -> Int:
    """Status of a store at clock `now`; WDT_STATUS discards it."""
    if offset == STATUS:
        return DONE
    if offset == CONTROL and value != 0 and not open_choice(t, STARTED, value):
        return REFUSED
    remaining = value if offset == TIMER else _remaining(t, now)
    t.control_word[TIMER >> 2] = np.uint32(remaining)
    t.watchdog_start = now
    if offset == CONTROL:
        t.control_word[CONTROL >> 2] = np.uint32(value)
    return DONE
