"""DRAM of a chip as the host writes and reads it: one bank, or all banks page by page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

import bhemu.checks as checks
from bhemu.api.node_memory import Nodes
from bhemu.api.tensor_memory import TensorMemory
from bhemu.chip.coordinates import Node, Place
from bhemu.chip.nodes.kinds import DRAM_CHANNEL as CHANNEL_BYTES
from bhemu.errors import MemoryError_
from bhemu.formats import DataFormat, TileShape, decode, encode, tensor_size

Array = np.ndarray[Any, Any]

PAGE_ALIGNMENT: Final = 64
"""Pages begin at multiples of this, so that the NoC can read each of them whole (tile N19)."""
_DRAM_COLUMNS: Final = (17, 18)
_DRAM_FIRST_ROW: Final = 12
_PORTS: Final = 3
_BANKS_OF_COLUMN: Final = 4


def dram_places() -> Iterator[Place]:
    """Translated coordinates of the first port of each bank."""
    for x in _DRAM_COLUMNS:
        for number in range(_BANKS_OF_COLUMN):
            yield x, _DRAM_FIRST_ROW + _PORTS * number


class DramBank(TensorMemory):
    """One bank: a DRAM channel of 4 GiB. Bytes never written read as 0.

    Attributes:
        place: translated coordinates of its first port.
        node: the same place in physical coordinates, and the channel's number.
    """

    def __init__(self, device: Nodes, place: Place) -> None:
        self._device = device
        self.place = place
        self.node: Node = device.node(place)

    def read(self, address: int, size: int) -> bytes:
        """Bytes from an address on.

        Raises:
            MemoryError_: they do not lie inside the bank.
        """
        address, size = self._range(address, size)
        return self._device.read_node(self.node, address, size)

    def write(self, address: int, content: bytes) -> None:
        """Bytes from an address on; see `read`."""
        content = checks.content(content)
        self._device.write_node(self.node, self._range(address, len(content))[0], content)

    def _range(self, address: int, size: int) -> tuple[int, int]:
        address, size = checks.integer(address, "address"), checks.integer(size, "size")
        if size < 0 or not 0 <= address <= CHANNEL_BYTES - size:
            raise MemoryError_(
                f"{size} bytes at {address:#x} are outside of the DRAM bank at {self.place[0]}-{self.place[1]}",
                remedy="a bank has 4 GiB: addresses 0 to 0xffffffff",
            )
        return address, size

    def _put(self, address: int, content: Array) -> None:
        self.write(address, content.tobytes())

    def _get(self, address: int, size: int) -> Array:
        return np.frombuffer(bytearray(self.read(address, size)), np.uint8)

    def __repr__(self) -> str:
        return f"<DRAM bank at {self.place[0]}-{self.place[1]}, channel {self.node.index}>"


class InterleavedDram:
    """All banks as one buffer, as tt-metal's interleaved buffers are: page i lies in bank i % banks.

    With `size` the bytes of a page rounded up to a multiple of 64, it lies there at address + (i // banks) * size.

    Args:
        banks: in their order.
    """

    def __init__(self, banks: Sequence[DramBank]) -> None:
        self._banks = banks

    def _pages(self, address: int, size: int, page_size: int) -> Iterator[tuple[DramBank, int, slice]]:
        """(bank, address in it, place in the buffer) of each page."""
        address = checks.integer(address, "address", 0, CHANNEL_BYTES - 1, error=MemoryError_)
        size = checks.integer(size, "size", 0, CHANNEL_BYTES * len(self._banks), error=MemoryError_)
        if checks.integer(page_size, "page_size") <= 0:
            raise MemoryError_(f"pages of {page_size} bytes", remedy="give a page at least one byte")
        if address % PAGE_ALIGNMENT:
            raise MemoryError_(
                f"an interleaved buffer at {address:#x}, which is not a multiple of {PAGE_ALIGNMENT}",
                remedy="align the address: each page is a read of its own over the NoC (tile N19)",
            )
        step = -(-page_size // PAGE_ALIGNMENT) * PAGE_ALIGNMENT
        for page in range(-(-size // page_size)):
            turn, bank = divmod(page, len(self._banks))
            start = page * page_size
            yield self._banks[bank], address + turn * step, slice(start, min(start + page_size, size))

    def read(self, address: int, size: int, *, page_size: int) -> bytes:
        """Bytes of a buffer.

        Args:
            address: of the buffer, the same in all banks: a multiple of 64.
            size: bytes of the buffer.
            page_size: bytes of a page.

        Raises:
            MemoryError_: address or page size is invalid, or a page does not lie inside its bank.
        """
        pages = self._pages(address, size, page_size)
        return b"".join(bank.read(place, part.stop - part.start) for bank, place, part in pages)

    def write(self, address: int, content: bytes, *, page_size: int) -> None:
        """Bytes to a buffer; see `read`."""
        whole = memoryview(checks.content(content))
        for bank, place, part in self._pages(address, len(whole), page_size):
            bank.write(place, whole[part].tobytes())

    def write_tensor(
        self,
        address: int,
        array: Any,
        data_format: DataFormat | str,
        *,
        tile_shape: TileShape | None = (32, 32),
        page_size: int | None = None,
        rounding: Any = "nearest",
    ) -> int:
        """Encode a tensor into a buffer; returns the number of its bytes.

        Args:
            address: of the buffer, the same in all banks: a multiple of 64.
            array: the tensor.
            data_format: of its datums.
            tile_shape: rows and columns of a tile, or None for row-major order.
            page_size: bytes of a page; by default those of a tile, in row-major order those of a row.
            rounding: of what the format cannot hold.

        Raises:
            FormatError: the format cannot hold the tensor, or its shape is not whole tiles.
            MemoryError_: address or page size is invalid, or a page does not lie inside its bank.
        """
        content = encode(array, data_format, tile_shape=tile_shape, rounding=rounding)
        page = _page_size(np.shape(array), len(content), tile_shape) if page_size is None else page_size
        self.write(address, content.tobytes(), page_size=page)
        return len(content)

    def read_tensor(
        self,
        address: int,
        shape: tuple[int, ...],
        data_format: DataFormat | str,
        *,
        tile_shape: TileShape | None = (32, 32),
        page_size: int | None = None,
    ) -> Array:
        """Decode a tensor of `shape` from a buffer; see `write_tensor`."""
        size = tensor_size(shape, data_format, tile_shape=tile_shape)
        page = _page_size(shape, size, tile_shape) if page_size is None else page_size
        content = self.read(address, size, page_size=page)
        return decode(np.frombuffer(bytearray(content), np.uint8), data_format, shape, tile_shape=tile_shape)

    def __repr__(self) -> str:
        return f"<DRAM interleaved over {len(self._banks)} banks>"


def _page_size(shape: tuple[int, ...], size: int, tile_shape: TileShape | None) -> int:
    """Bytes of a tile, or of a row."""
    pages = math.prod(shape[:-1]) if tile_shape is None else math.prod(shape) // (tile_shape[0] * tile_shape[1])
    if pages == 0 or size % pages:
        raise MemoryError_(
            f"{size} bytes do not make {pages} pages of one size", remedy="say how large a page is with page_size"
        )
    return size // pages
