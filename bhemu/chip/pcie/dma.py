"""The DMA channel that copies from host memory into the chip (tile H6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import bhemu.checks as checks
from bhemu.errors import ConfigurationError, UndefinedBehavior, Unimplemented

FIRST: Final = 0x100
END: Final = 0x1AC
ENABLE: Final = 0x100
DOORBELL: Final = 0x104
COUNT: Final = 0x11C
HOST_LOW: Final = 0x120
HOST_HIGH: Final = 0x124
DEVICE: Final = 0x128
DEVICE_HIGH: Final = 0x12C
_PLAIN: Final = (0x188, 0x190, 0x194, 0x1A0, 0x1A4, 0x1A8)
"""Interrupt setup; nothing is raised, and clients wait for the count to become 0."""
_REGISTERS: Final = (ENABLE, DOORBELL, COUNT, HOST_LOW, HOST_HIGH, DEVICE, DEVICE_HIGH, *_PLAIN)
CHUNK: Final = 4096

ReadHost = Callable[[int, int], bytes]
WriteHost = Callable[[int, bytes], None]


class HostMemory:
    """Memory of the host as the chip reaches it: through functions of the client.

    Args:
        read: (address, size) -> bytes; None when the client has given none.
        write: (address, bytes) -> None.
    """

    def __init__(self, read: ReadHost | None = None, write: WriteHost | None = None) -> None:
        for name, called in (("read", read), ("write", write)):
            checks.optional(called, checks.function, name)
        self._read = read
        self._write = write

    def read(self, address: int, size: int) -> bytes:
        """Bytes of host memory."""
        if self._read is None:
            raise _no_callback("read", address, size)
        return self._read(address, size)

    def write(self, address: int, content: bytes) -> None:
        """Bytes to host memory."""
        if self._write is None:
            raise _no_callback("write", address, len(content))
        self._write(address, content)


def _no_callback(what: str, address: int, size: int) -> ConfigurationError:
    return ConfigurationError(
        f"the chip wants to {what} {size} bytes of host memory at {address:#x}, and the client has no callback for it",
        remedy="give it one: libttsim_set_pci_dma_mem_callbacks before libttsim_init, in Python bhemu.Chip(host=...)",
    )


class ReadChannel:
    """Channel 0: a doorbell copies everything at once.

    Args:
        host: where the bytes come from.
        write: (offset in the area of the 2 MiB windows, bytes): where they go.
    """

    def __init__(self, host: HostMemory, write: Callable[[int, bytes], None]) -> None:
        self._host = host
        self._write = write
        self._words = dict.fromkeys(_REGISTERS, 0)

    def _known(self, offset: int) -> None:
        if offset not in self._words:
            raise ConfigurationError(
                f"there is no DMA register {offset:#x} in BAR2",
                remedy="channel 0 has registers 0x100 to 0x12c and 0x188 to 0x1a8 (tile H6)",
            )

    def snapshot(self) -> dict[int, int]:
        """The registers."""
        return dict(self._words)

    def restore(self, state: dict[int, int]) -> None:
        """Put them back."""
        self._words = dict(state)

    def read(self, offset: int) -> int:
        """A register."""
        self._known(offset)
        return self._words[offset]

    def write(self, offset: int, value: int) -> None:
        """Write a register; a write to the doorbell copies.

        Raises:
            UndefinedBehavior: the channel is off, or count or address is not a multiple of 4.
            Unimplemented: a value that has no function here.
        """
        self._known(offset)
        if offset == DOORBELL:
            self._ring(value)
            return
        if offset == ENABLE and value > 1:
            raise Unimplemented(f"the DMA channel is enabled with {value:#x}", remedy="write 0 or 1")
        self._words[offset] = value

    def _ring(self, value: int) -> None:
        words = self._words
        if value != 1:
            raise Unimplemented(f"{value:#x} is written to the DMA doorbell", remedy="write 1: channel 0, start")
        if not words[ENABLE]:
            raise UndefinedBehavior("the DMA doorbell rings while the channel is off", remedy="write 1 to 0x100 first")
        count, device = words[COUNT], words[DEVICE]
        if count == 0 or count % 4 or device % 4:
            raise UndefinedBehavior(
                f"a DMA of {count} bytes to {device:#x}",
                remedy="count and device address are multiples of 4, count > 0",
            )
        if words[DEVICE_HIGH]:
            raise Unimplemented(
                f"a DMA to device address {words[DEVICE_HIGH]:#x}{device:08x}",
                remedy="the device address is an offset in the area of the 2 MiB windows; its upper half is 0",
            )
        source = words[HOST_LOW] | words[HOST_HIGH] << 32
        for done in range(0, count, CHUNK):
            size = min(CHUNK, count - done)
            content = self._host.read(source + done, size)
            self._write(device + done, content)
        words[COUNT] = 0  # clients poll it
