"""PCI configuration space of the card: function 0 of device 0 (tile H4)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.chip.faults import refuse
from bhemu.errors import ConfigurationError
from bhemu.machine.faults import DONE, REFUSED, fault
from bhemu.machine.kernel import kernel
from bhemu.machine.types import ChipRecord, Int

ABSENT: Final = 0xFFFFFFFF
VENDOR_AND_DEVICE: Final = 0xB1401E52
BAR0: Final = 0x1_0000_0000
BAR0_SIZE: Final = 512 << 20
BAR2: Final = 0x1_2000_0000
BAR2_SIZE: Final = 1 << 20
BAR4: Final = 0x8_0000_0000
BAR4_SIZE: Final = 32 << 30

CONFIG_WORDS: Final = 16
CONFIG_START: Final = {
    0x00: VENDOR_AND_DEVICE,
    0x08: 0x12000000,
    0x10: BAR0 & 0xFFFFFFFF | 0x4,
    0x14: BAR0 >> 32,
    0x18: BAR2 & 0xFFFFFFFF | 0x4,
    0x1C: BAR2 >> 32,
    0x20: BAR4 & 0xFFFFFFFF | 0x4,
    0x24: BAR4 >> 32,
    0x3C: 0xFF,
}
"""Words at start that are not 0."""


def _bar_mask(size: int) -> int:
    return ~(size - 1) & (1 << 64) - 1


_MASKS: Final = {
    0x04: 0xFFFF,
    0x0C: 0xFFFF,
    0x10: _bar_mask(BAR0_SIZE) & 0xFFFFFFF0,
    0x14: _bar_mask(BAR0_SIZE) >> 32,
    0x18: _bar_mask(BAR2_SIZE) & 0xFFFFFFF0,
    0x1C: _bar_mask(BAR2_SIZE) >> 32,
    0x20: _bar_mask(BAR4_SIZE) & 0xFFFFFFF0,
    0x24: _bar_mask(BAR4_SIZE) >> 32,
    0x30: 0,
    0x3C: 0xFF,
}
"""Bits that a write changes; the address decoder never moves."""
_READ_ONLY: Final = -1
_MASK: Final = np.array([_MASKS.get(4 * n, _READ_ONLY) for n in range(CONFIG_WORDS)], np.int64)

BARS: Final = (0x10, 0x18, 0x20)
"""Offsets of BAR0, BAR2 and BAR4, which have 64 bits."""
DEVICE_STRIDE: Final = 0x10_0000_0000
"""From an address in a BAR of a card to that of the next card of a cluster (ethernet 7)."""

NO_DEVICE: Final = fault(
    "pci.function",
    ConfigurationError,
    "PCI bus {0}, function {1}",
    remedy="the card is bus 0, device 0, function 0",
    rule="tile H4",
)
NO_OFFSET: Final = fault(
    "pci.offset",
    ConfigurationError,
    "PCI configuration offset {0:#x} does not exist",
    remedy="offsets 0x00 to 0x3c exist",
    rule="tile H4",
)
ABSENT_DEVICE: Final = fault(
    "pci.device",
    ConfigurationError,
    "PCI device {0} does not exist",
    remedy="there is one card, device 0",
    rule="tile H4",
)
READ_ONLY: Final = fault(
    "pci.read-only",
    ConfigurationError,
    "PCI configuration offset {0:#x} is read-only",
    remedy="write command, BARs or interrupt line",
    rule="tile H4",
)


@kernel
def _is_known(chip: ChipRecord, bdf: Int, offset: Int) -> bool:
    """False, refused: what no client may ask. A device that does not exist may be asked."""
    if bdf >> 8 or bdf & 7:
        refuse(chip, NO_DEVICE, bdf >> 8, bdf & 7)
        return False
    if bdf == 0 and (offset & 3 or offset < 0 or offset >= 4 * CONFIG_WORDS):
        refuse(chip, NO_OFFSET, offset)
        return False
    return True


@kernel
def read_config(chip: ChipRecord, bdf: Int, offset: Int) -> Any:
    """A word, all ones for a device that is not there; -1: refused."""
    if not _is_known(chip, bdf, offset):
        return np.int64(-1)
    return np.int64(ABSENT) if bdf else np.int64(chip.pci_config[offset >> 2])


@kernel
def write_config(chip: ChipRecord, bdf: Int, offset: Int, value: Int) -> Int:
    """Status of a write of a word."""
    if not _is_known(chip, bdf, offset):
        return REFUSED
    if bdf:
        return refuse(chip, ABSENT_DEVICE, bdf >> 3)
    mask = np.int64(_MASK[offset >> 2])
    if mask == _READ_ONLY:
        return refuse(chip, READ_ONLY, offset)
    chip.pci_config[offset >> 2] = np.uint32((np.int64(chip.pci_config[offset >> 2]) & ~mask) | (value & mask))
    return DONE


def read_config_entry(chip: ChipRecord, bdf: Int, offset: Int) -> Any:
    """`read_config` for the host."""
    return read_config(chip, bdf, offset)


def write_config_entry(chip: ChipRecord, place: Int, value: Int) -> Any:
    """`write_config` for the host; `place` is bdf << 32 | offset."""
    return write_config(chip, place >> 32, place & 0xFFFFFFFF, value)
