"""Outbound address translation between the NoC and the host: 16 regions (tile H12, E35).

All are off at start, and addresses pass unchanged.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.chip.faults import refuse
from bhemu.errors import ConfigurationError, UndefinedBehavior, Unimplemented
from bhemu.machine.faults import DONE, REFUSED, fault
from bhemu.machine.kernel import kernel
from bhemu.machine.process_memory import load_u32, store_u32
from bhemu.machine.types import ChipRecord, Int

REGIONS: Final = 16
REGISTERS: Final = 9
SLOT_BYTES: Final = 0x100
SIZE: Final = 2 * REGIONS * SLOT_BYTES
"""Even slots are outbound regions, odd slots inbound ones."""
HIGHEST: Final = (1 << 58) - 1

# Registers of a region
CONTROL_1: Final = 0x00
CONTROL_2: Final = 0x04
BASE_LOW: Final = 0x08
BASE_HIGH: Final = 0x0C
LIMIT_LOW: Final = 0x10
TARGET_LOW: Final = 0x14
TARGET_HIGH: Final = 0x18
LIMIT_HIGH: Final = 0x20
_ENABLE: Final = 1 << 31
_ALL: Final = 0xFFFFFFFF
_ALLOWED: Final = np.array([1 << 13, _ENABLE, _ALL, _ALL, _ALL, _ALL, _ALL, 0, _ALL], np.int64)
"""Bits that may be set, by register."""

NO_REGISTER: Final = fault(
    "iatu.register",
    ConfigurationError,
    "the address translation unit has no register {0:#x} in a region",
    remedy="a region has registers 0x00 to 0x20",
    rule="tile H12",
)
INBOUND: Final = fault(
    "iatu.inbound",
    Unimplemented,
    "inbound region {0} of the address translation unit is written",
    remedy="use outbound regions: even slots of 0x100 bytes",
    rule="tile H12",
)
BAD_BITS: Final = fault(
    "iatu.bits",
    Unimplemented,
    "register {0:#x} of outbound region {1} is set to {2:#x}",
    remedy="set no other bits than {3:#x}",
    rule="tile H12",
)
BAD_REGION: Final = fault(
    "iatu.region",
    UndefinedBehavior,
    "outbound region {0} reaches from {1:#x} to {2:#x}",
    remedy=f"set base and limit before the region is enabled: base <= limit <= {HIGHEST:#x}",
    rule="tile H12",
)
TWO_REGIONS: Final = fault(
    "iatu.overlap",
    UndefinedBehavior,
    "outbound regions {0} and {1} both match {2:#x}",
    remedy="let regions not overlap",
    rule="tile H12",
)
PAST_END: Final = fault(
    "iatu.end",
    UndefinedBehavior,
    "{0} bytes at {1:#x} reach past an end of outbound region {2}",
    remedy="split the access",
    rule="tile H12",
)


@kernel
def _wide(chip: ChipRecord, region: Int, low: Int, high: Int) -> Int:
    """A 64-bit value of two registers, as a signed number."""
    return np.int64(chip.iatu[region, low >> 2]) | np.int64(chip.iatu[region, high >> 2]) << 32


@kernel
def _is_sound(chip: ChipRecord, region: Int) -> bool:
    """True for a region that begins before it ends; refuses another."""
    base, limit = _wide(chip, region, BASE_LOW, BASE_HIGH), _wide(chip, region, LIMIT_LOW, LIMIT_HIGH)
    if base < 0 or limit < base or limit > HIGHEST:
        refuse(chip, BAD_REGION, region, base, limit)
        return False
    return True


@kernel
def read_iatu(chip: ChipRecord, offset: Int, to: Int) -> Int:
    """Status of a read of a register, to an address in this process."""
    register = offset & (SLOT_BYTES - 1)
    if register > LIMIT_HIGH:
        return refuse(chip, NO_REGISTER, register)
    slot = offset // SLOT_BYTES
    store_u32(to, np.int64(0) if slot & 1 else np.int64(chip.iatu[slot >> 1, register >> 2]))
    return DONE


@kernel
def write_iatu(chip: ChipRecord, offset: Int, source: Int) -> Int:
    """Status of a write to a register of an outbound region."""
    register, slot = offset & (SLOT_BYTES - 1), offset // SLOT_BYTES
    if register > LIMIT_HIGH:
        return refuse(chip, NO_REGISTER, register)
    region = slot >> 1
    if slot & 1:
        return refuse(chip, INBOUND, region)
    value = load_u32(source)
    allowed = np.int64(_ALLOWED[register >> 2])
    if value & ~allowed:
        return refuse(chip, BAD_BITS, register, region, value, allowed)
    before = chip.iatu[region, register >> 2]
    chip.iatu[region, register >> 2] = np.uint32(value)
    if register == CONTROL_2 and value != 0 and not _is_sound(chip, region):
        chip.iatu[region, register >> 2] = before
        return REFUSED
    return DONE


@kernel
def translate(chip: ChipRecord, address: Int, size: Int) -> Any:
    """Status; `chip.translated` is the address that the host sees for an address of the chip."""
    chip.translated = address
    past: Any = False
    found = -1
    for region in range(REGIONS):
        if chip.iatu[region, CONTROL_2 >> 2] == 0:
            continue
        if not _is_sound(chip, region):
            return REFUSED
        base, limit = _wide(chip, region, BASE_LOW, BASE_HIGH), _wide(chip, region, LIMIT_LOW, LIMIT_HIGH)
        if address <= limit and address + size > base:
            if found >= 0:
                return refuse(chip, TWO_REGIONS, found, region, address)
            found, past = region, address < base or address + size - 1 > limit
            chip.translated = address - base + _wide(chip, region, TARGET_LOW, TARGET_HIGH)
    if past:
        return refuse(chip, PAST_END, size, address, found)
    return DONE
