"""The DMA channel that copies from host memory into the chip (tile H6)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.chip.faults import refuse
from bhemu.errors import ConfigurationError, UndefinedBehavior, Unimplemented
from bhemu.machine.faults import DONE, REFUSED, fault
from bhemu.machine.kernel import kernel
from bhemu.machine.process_memory import load_u32, store_u32
from bhemu.machine.types import ChipRecord, Int

FIRST: Final = 0x100
END: Final = 0x1AC
REGISTERS: Final = (END - FIRST) // 4
ENABLE: Final = 0x100
DOORBELL: Final = 0x104
COUNT: Final = 0x11C
HOST_LOW: Final = 0x120
HOST_HIGH: Final = 0x124
DEVICE: Final = 0x128
DEVICE_HIGH: Final = 0x12C
_PLAIN: Final = (0x188, 0x190, 0x194, 0x1A0, 0x1A4, 0x1A8)
"""Interrupt setup; nothing is raised, and clients wait for the count to become 0."""
_KNOWN: Final = (ENABLE, DOORBELL, COUNT, HOST_LOW, HOST_HIGH, DEVICE, DEVICE_HIGH, *_PLAIN)
_EXISTS: Final = np.array([FIRST + 4 * n in _KNOWN for n in range(REGISTERS)], np.int64)
CHUNK: Final = 4096

NO_REGISTER: Final = fault(
    "dma.register",
    ConfigurationError,
    "there is no DMA register {0:#x} in BAR2",
    remedy="channel 0 has registers 0x100 to 0x12c and 0x188 to 0x1a8",
    rule="tile H6",
)
BAD_ENABLE: Final = fault(
    "dma.enable",
    Unimplemented,
    "the DMA channel is enabled with {0:#x}",
    remedy="write 0 or 1",
    rule="tile H6",
)
BAD_DOORBELL: Final = fault(
    "dma.doorbell",
    Unimplemented,
    "{0:#x} is written to the DMA doorbell",
    remedy="write 1: channel 0, start",
    rule="tile H6",
)
OFF: Final = fault(
    "dma.off",
    UndefinedBehavior,
    "the DMA doorbell rings while the channel is off",
    remedy="write 1 to 0x100 first",
    rule="tile H6",
)
BAD_COUNT: Final = fault(
    "dma.count",
    UndefinedBehavior,
    "a DMA of {0} bytes to {1:#x}",
    remedy="count and device address are multiples of 4, count > 0",
    rule="tile H6",
)
BAD_DEVICE: Final = fault(
    "dma.device",
    Unimplemented,
    "a DMA to device address {0:#x}",
    remedy="the device address is an offset in the area of the 2 MiB windows; its upper half is 0",
    rule="tile H6",
)


@kernel
def _word(chip: ChipRecord, offset: Int) -> Int:
    return np.int64(chip.dma[(offset - FIRST) >> 2])


@kernel
def _is_known(chip: ChipRecord, offset: Int) -> bool:
    """True for a register's offset in BAR2; refuses another."""
    if _EXISTS[(offset - FIRST) >> 2] == 0:
        refuse(chip, NO_REGISTER, offset)
        return False
    return True


@kernel
def read_dma(chip: ChipRecord, offset: Int, to: Int) -> Int:
    """Status of a read of a register, to an address in this process."""
    if not _is_known(chip, offset):
        return REFUSED
    store_u32(to, _word(chip, offset))
    return DONE


@kernel
def write_dma(chip: ChipRecord, offset: Int, source: Int) -> Int:
    """Status of a write to a register; DONE at the doorbell: everything is copied next (`copy` of bars.py)."""
    if not _is_known(chip, offset):
        return REFUSED
    value = load_u32(source)
    if offset == DOORBELL:
        return _check_start(chip, value)
    if offset == ENABLE and value > 1:
        return refuse(chip, BAD_ENABLE, value)
    chip.dma[(offset - FIRST) >> 2] = np.uint32(value)
    return DONE


@kernel
def _check_start(chip: ChipRecord, value: Int) -> Int:
    """Status of a write to the doorbell: REFUSED where the registers do not describe a copy."""
    if value != 1:
        return refuse(chip, BAD_DOORBELL, value)
    if _word(chip, ENABLE) == 0:
        return refuse(chip, OFF)
    count, device, high = _word(chip, COUNT), _word(chip, DEVICE), _word(chip, DEVICE_HIGH)
    if count == 0 or count & 3 or device & 3:
        return refuse(chip, BAD_COUNT, count, device)
    if high != 0:
        return refuse(chip, BAD_DEVICE, high << 32 | device)
    return DONE


@kernel
def dma_copy(chip: ChipRecord) -> Any:
    """(address in the host's memory, offset in the area of the 2 MiB windows, bytes) of the copy to be made."""
    return _word(chip, HOST_LOW) | _word(chip, HOST_HIGH) << 32, _word(chip, DEVICE), _word(chip, COUNT)


@kernel
def end_dma(chip: ChipRecord) -> None:
    """The copy is made: clients poll the count."""
    chip.dma[(COUNT - FIRST) >> 2] = np.uint32(0)
