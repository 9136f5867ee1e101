"""Outbound address translation between the NoC and the host: 16 regions (tile H12, E35)."""

from __future__ import annotations

from typing import Final

from bhemu.errors import ConfigurationError, UndefinedBehavior, Unimplemented

REGIONS: Final = 16
SLOT_BYTES: Final = 0x100
SIZE: Final = 2 * REGIONS * SLOT_BYTES
"""Even slots are outbound regions, odd slots inbound ones."""
HIGHEST: Final = (1 << 58) - 1

CONTROL_1: Final = 0x00
CONTROL_2: Final = 0x04
BASE_LOW: Final = 0x08
BASE_HIGH: Final = 0x0C
LIMIT_LOW: Final = 0x10
TARGET_LOW: Final = 0x14
TARGET_HIGH: Final = 0x18
CONTROL_3: Final = 0x1C
LIMIT_HIGH: Final = 0x20
_ENABLE: Final = 1 << 31
_ALLOWED: Final = {
    CONTROL_1: 1 << 13,
    CONTROL_2: _ENABLE,
    BASE_LOW: 0xFFFFFFFF,
    BASE_HIGH: 0xFFFFFFFF,
    LIMIT_LOW: 0xFFFFFFFF,
    TARGET_LOW: 0xFFFFFFFF,
    TARGET_HIGH: 0xFFFFFFFF,
    CONTROL_3: 0,
    LIMIT_HIGH: 0xFFFFFFFF,
}
"""Bits that may be set."""


class Iatu:
    """The regions; all are off at start, and addresses pass unchanged."""

    def __init__(self) -> None:
        self._words: dict[tuple[int, int], int] = {}

    def snapshot(self) -> dict[tuple[int, int], int]:
        """The registers that were written."""
        return dict(self._words)

    def restore(self, state: dict[tuple[int, int], int]) -> None:
        """Put them back."""
        self._words = dict(state)

    @staticmethod
    def _known(offset: int) -> tuple[int, int]:
        """(slot, register) of an offset in the whole block."""
        slot, register = divmod(offset, SLOT_BYTES)
        if register not in _ALLOWED:
            raise ConfigurationError(
                f"the address translation unit has no register {register:#x} in a region",
                remedy="a region has registers 0x00 to 0x20 (tile H12)",
            )
        return slot, register

    def read(self, offset: int) -> int:
        """A register."""
        return self._words.get(self._known(offset), 0)

    def write(self, offset: int, value: int) -> None:
        """Write a register of an outbound region.

        Raises:
            Unimplemented: the region is inbound, or a bit is set that has no function here.
            UndefinedBehavior: an enabled region would end before it begins.
        """
        slot, register = self._known(offset)
        if slot % 2:
            raise Unimplemented(
                f"inbound region {slot // 2} of the address translation unit is written",
                remedy="use outbound regions: even slots of 0x100 bytes",
            )
        if value & ~_ALLOWED[register]:
            raise Unimplemented(
                f"register {register:#x} of outbound region {slot // 2} is set to {value:#x}",
                remedy=f"set no other bits than {_ALLOWED[register]:#x}",
            )
        before = self._words.get((slot, register), 0)
        self._words[slot, register] = value
        if register == CONTROL_2 and value:
            try:
                self._region(slot // 2)
            except UndefinedBehavior:
                self._words[slot, register] = before
                raise

    def _wide(self, slot: int, low: int, high: int) -> int:
        return self._words.get((slot, low), 0) | self._words.get((slot, high), 0) << 32

    def _region(self, number: int) -> tuple[int, int, int]:
        """(base, limit, target) of an enabled region."""
        slot = 2 * number
        base, limit = self._wide(slot, BASE_LOW, BASE_HIGH), self._wide(slot, LIMIT_LOW, LIMIT_HIGH)
        if not base <= limit <= HIGHEST:
            raise UndefinedBehavior(
                f"outbound region {number} reaches from {base:#x} to {limit:#x}",
                remedy=f"set base and limit before the region is enabled: base <= limit <= {HIGHEST:#x}",
            )
        return base, limit, self._wide(slot, TARGET_LOW, TARGET_HIGH)

    def translate(self, address: int, size: int) -> int:
        """Address that the host sees for an address of the chip.

        Raises:
            UndefinedBehavior: two regions match, or the range reaches over the end of one.
        """
        matches = []
        for number in range(REGIONS):
            if not self._words.get((2 * number, CONTROL_2), 0):
                continue
            base, limit, target = self._region(number)
            if address <= limit and address + size > base:
                matches.append((number, base, limit, target))
        if not matches:
            return address
        if len(matches) > 1:
            raise UndefinedBehavior(
                f"outbound regions {matches[0][0]} and {matches[1][0]} both match {address:#x}",
                remedy="let regions not overlap",
            )
        number, base, limit, target = matches[0]
        if address < base or address + size - 1 > limit:
            raise UndefinedBehavior(
                f"{size} bytes at {address:#x} reach past an end of outbound region {number}",
                remedy="split the access",
            )
        return address - base + target
