"""PCI configuration space of the card (tile H4)."""

from __future__ import annotations

from typing import Final

from bhemu.errors import ConfigurationError

ABSENT: Final = 0xFFFFFFFF
VENDOR_AND_DEVICE: Final = 0xB1401E52
BAR0: Final = 0x1_0000_0000
BAR0_SIZE: Final = 512 << 20
BAR2: Final = 0x1_2000_0000
BAR2_SIZE: Final = 1 << 20
BAR4: Final = 0x8_0000_0000
BAR4_SIZE: Final = 32 << 30

_START: Final = {
    0x00: VENDOR_AND_DEVICE,
    0x04: 0,
    0x08: 0x12000000,
    0x0C: 0,
    0x10: BAR0 & 0xFFFFFFFF | 0x4,
    0x14: BAR0 >> 32,
    0x18: BAR2 & 0xFFFFFFFF | 0x4,
    0x1C: BAR2 >> 32,
    0x20: BAR4 & 0xFFFFFFFF | 0x4,
    0x24: BAR4 >> 32,
    0x28: 0,
    0x2C: 0,
    0x30: 0,
    0x34: 0,
    0x38: 0,
    0x3C: 0xFF,
}
"""Words at start."""


def _bar_mask(size: int) -> int:
    return ~(size - 1) & (1 << 64) - 1


_KEPT: Final = {
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


class ConfigSpace:
    """The words of function 0 of device 0."""

    def __init__(self) -> None:
        self.words = dict(_START)

    def snapshot(self) -> dict[int, int]:
        """The words."""
        return dict(self.words)

    def restore(self, state: dict[int, int]) -> None:
        """Put them back."""
        self.words = dict(state)

    def _known(self, bdf: int, offset: int) -> bool:
        """True when the device exists; refuses what no client may ask."""
        if bdf >> 8 or bdf & 7:
            raise ConfigurationError(
                f"PCI bus {bdf >> 8}, function {bdf & 7}", remedy="the card is bus 0, device 0, function 0"
            )
        if bdf:
            return False
        if offset not in self.words:
            raise ConfigurationError(
                f"PCI configuration offset {offset:#x} does not exist", remedy="offsets 0x00 to 0x3c exist"
            )
        return True

    def read(self, bdf: int, offset: int) -> int:
        """A word; all ones for a device that is not there."""
        return self.words[offset] if self._known(bdf, offset) else ABSENT

    def write(self, bdf: int, offset: int, value: int) -> None:
        """Write a word."""
        if not self._known(bdf, offset):
            raise ConfigurationError(f"PCI device {bdf >> 3} does not exist", remedy="there is one card, device 0")
        if offset not in _KEPT:
            raise ConfigurationError(
                f"PCI configuration offset {offset:#x} is read-only", remedy="write command, BARs or interrupt line"
            )
        mask = _KEPT[offset]
        self.words[offset] = self.words[offset] & ~mask & 0xFFFFFFFF | value & mask
