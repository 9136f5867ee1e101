"""Which of several chips an access of the client is for: they are devices of bus 0, each with BARs of its own."""

from __future__ import annotations

from typing import Final

from bhemu.chip.pcie.pci import DEVICE_STRIDE

_DEVICE: Final = 31 << 3
"""Bits of `bdf` that number a device of bus 0."""


def device_of(bdf: int, chips: int) -> tuple[int, int]:
    """(number of the chip that is a device of bus 0, what is left of `bdf`): to the first chip others are not there."""
    number = (bdf & _DEVICE) >> 3
    return (number, bdf & ~_DEVICE) if number < chips else (0, bdf)


def place_of(paddr: int, chips: int) -> tuple[int, int]:
    """(number of the chip that has a PCI address in its BARs, the address as the first chip has it)."""
    number = paddr // DEVICE_STRIDE if chips > 1 else 0
    return (number, paddr - number * DEVICE_STRIDE) if number < chips else (0, paddr)
