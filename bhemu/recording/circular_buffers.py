"""Circular buffers in L1, and where the launch message of a tile says that they are (tile B3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bhemu.errors import ConfigurationError
from bhemu.isa.memory_map import LOCAL_RAM_BASE, region
from bhemu.loader.firmware_layout import FirmwareLayout
from bhemu.machine.state import L1_SIZE

STREAMS: Final = 64
MMIO: Final = LOCAL_RAM_BASE
"""Where the register addresses of STOREREG begin."""
_OVERLAY: Final = region("overlay").base
_STREAM_BYTES: Final = 0x1000
_ACKED, _RECEIVED = 0x20, 0x28
COUNTERS_END: Final = _OVERLAY + STREAMS * _STREAM_BYTES
"""Behind the last register of a stream."""
_CONFIG_WORDS: Final = 4
"""Of a buffer in the configuration of a launch: address, size, pages, bytes of a page."""


def counter_at(address: int) -> tuple[int, bool] | None:
    """(number of a buffer, whether it counts pages received) of a register; None: it does not count pages (K51)."""
    stream, offset = divmod(address - _OVERLAY, _STREAM_BYTES)
    if not 0 <= stream < STREAMS or offset not in (_ACKED, _RECEIVED):
        return None
    return stream, offset == _RECEIVED


@dataclass(frozen=True)
class CircularBuffer:
    """A ring of pages.

    Attributes:
        number: of the buffer, and of the stream whose registers count its pages.
        address: of the first page in L1.
        page_size: bytes.
        pages: of the ring.
    """

    number: int
    address: int
    page_size: int
    pages: int

    def __post_init__(self) -> None:
        fits = self.page_size > 0 and self.pages > 0 and self.address >= 0 and self.end <= L1_SIZE
        if not (fits and 0 <= self.number < STREAMS):
            raise ConfigurationError(
                f"circular buffer {self.number}: {self.pages} pages of {self.page_size} bytes at {self.address:#x}",
                remedy=f"buffers have numbers 0 to {STREAMS - 1}, at least one page, and lie in L1",
            )

    @property
    def end(self) -> int:
        """Behind the last page."""
        return self.address + self.pages * self.page_size


def buffers_of_launch(record: Any, layout: FirmwareLayout) -> list[CircularBuffer]:
    """The circular buffers of the program that runs on a tile, as its launch message has them.

    Args:
        record: of the tile.
        layout: of the firmware on it.

    Returns:
        The buffers; none where the layout does not say where they are, or the message makes no sense.
    """
    fields = layout.launch
    if fields.local_buffers is None or fields.buffer_mask is None:
        return []
    message = layout.launch_message(int(record["l1_u32"][layout.launch_read_pointer >> 2]))
    content = record["l1"]
    base = int(np.frombuffer(content[message + fields.config_base :][:4].tobytes(), "<u4")[0])
    offset = int(np.frombuffer(content[message + fields.local_buffers :][:2].tobytes(), "<u2")[0])
    mask = int(np.frombuffer(content[message + fields.buffer_mask :][:8].tobytes(), "<u8")[0])
    return list(_configured(content, base + offset, mask))


def _configured(content: Any, at: int, mask: int) -> Iterable[CircularBuffer]:
    for number in range(STREAMS):
        place = at + 4 * _CONFIG_WORDS * number
        if mask >> number & 1 and place + 16 <= L1_SIZE:
            address, size, pages, page_size = np.frombuffer(content[place : place + 16].tobytes(), "<u4").tolist()
            if pages and page_size and size == pages * page_size and address + size <= L1_SIZE:
                yield CircularBuffer(number, address, page_size, pages)
