"""DRAM: each channel holds 4 GiB, of which pages exist when they are written (tile N4, E31)."""

from __future__ import annotations

import struct
from typing import Any, Final

import numpy as np

from bhemu.chip.nodes.identity import PAGE as INTERFACE_PAGE
from bhemu.chip.nodes.identity import Identity, check_word, describe
from bhemu.chip.nodes.kinds import DRAM_CHANNEL as CHANNEL_BYTES
from bhemu.chip.nodes.kinds import DRAM_INTERFACES
from bhemu.errors import MemoryError_

CHANNELS: Final = 8
PAGE_BITS: Final = 16
PAGE: Final = 1 << PAGE_BITS
PAGES: Final = CHANNEL_BYTES >> PAGE_BITS
ZEROS: Final = np.zeros(PAGE, np.uint8)
"""What an unwritten page holds."""


class Dram:
    """One channel. Bytes that were never written read as 0.

    Args:
        channel: its number.
        addresses: int64 [PAGES]: where compiled code finds the pages (chip/state.py).
    """

    def __init__(self, channel: int, addresses: np.ndarray[Any, Any]) -> None:
        self.channel = channel
        self._addresses = addresses
        self.pages: dict[int, np.ndarray[Any, np.dtype[np.uint8]]] = {}

    def _check(self, address: int, size: int) -> None:
        if address < 0 or address + size > CHANNEL_BYTES:
            raise MemoryError_(
                f"{size} bytes at {address:#x} are outside of DRAM channel {self.channel}",
                remedy="a channel has 4 GiB: addresses 0 to 0xffffffff",
            )

    def read(self, address: int, size: int) -> bytes:
        """Bytes from an address on."""
        self._check(address, size)
        parts = []
        while size:
            start = address & (PAGE - 1)
            count = min(size, PAGE - start)
            page = self.pages.get(address >> PAGE_BITS)
            parts.append(bytes(count) if page is None else page[start : start + count].tobytes())
            address += count
            size -= count
        return b"".join(parts)

    def write(self, address: int, content: bytes) -> None:
        """Bytes from an address on."""
        self._check(address, len(content))
        data = np.frombuffer(content, np.uint8)
        done = 0
        while done < len(data):
            start = address & (PAGE - 1)
            count = min(len(data) - done, PAGE - start)
            page = self.page(address >> PAGE_BITS)
            page[start : start + count] = data[done : done + count]
            address += count
            done += count

    def provide(self, address: int, size: int) -> None:
        """Make the pages of a range, so that compiled code can write there."""
        for number in range(address >> PAGE_BITS, (address + size - 1 >> PAGE_BITS) + 1):
            self.page(number)

    def page(self, number: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """A page, to be written."""
        page = self.pages.get(number)
        if page is None:
            page = self.pages[number] = np.zeros(PAGE, np.uint8)
            self._addresses[number] = page.ctypes.data
        return page

    def snapshot(self) -> dict[int, bytes]:
        """Contents of the pages that are not zero, by number."""
        return {number: page.tobytes() for number, page in sorted(self.pages.items()) if page.any()}

    def restore(self, pages: dict[int, bytes]) -> None:
        """Put the channel back into the state of a copy."""
        for number in self.pages.keys() - pages.keys():
            self._addresses[number] = 0
            del self.pages[number]
        for number, content in pages.items():
            self.page(number)[:] = np.frombuffer(content, np.uint8)


class DramNode:
    """One port of a channel, with network interfaces above the memory.

    Args:
        identity: of the node.
        dram: all channels.
    """

    def __init__(self, identity: Identity, dram: list[Dram]) -> None:
        self._identity = identity
        self._channel = dram[identity.node.index]

    def snapshot(self) -> None:
        """Its state is that of the channel."""

    def restore(self, state: None) -> None:
        """Nothing to put back."""

    def read(self, address: int, size: int, noc: int = 0) -> bytes:
        """Bytes of the channel, or a register of a network interface."""
        if address < CHANNEL_BYTES:
            return self._channel.read(address, size)
        interface = self._interface(address, size)
        return struct.pack("<I", self._identity.read(interface, address - DRAM_INTERFACES[interface]))

    def write(self, address: int, content: bytes, noc: int = 0) -> None:
        """Bytes into the channel."""
        if address >= CHANNEL_BYTES:
            interface = self._interface(address, len(content))
            self._identity.write(interface, address - DRAM_INTERFACES[interface])
        self._channel.write(address, content)

    def _interface(self, address: int, size: int) -> int:
        """Which network interface an address above the memory belongs to."""
        for noc, page in enumerate(DRAM_INTERFACES):
            if page <= address < page + INTERFACE_PAGE:
                check_word(self._identity.node, address, size)
                return noc
        raise MemoryError_(
            f"{describe(self._identity.node)}: {size} bytes at {address:#x}, a channel has 4 GiB",
            remedy="use addresses 0 to 0xffffffff",
        )
