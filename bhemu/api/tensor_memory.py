"""Tensors in a memory of bytes: encoded when written, decoded when read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

import bhemu.checks as checks
from bhemu.formats import DataFormat, TileShape, decode, encode, tensor_size

Array = np.ndarray[Any, Any]


class TensorMemory(ABC):
    """A memory that holds tensors."""

    @abstractmethod
    def _put(self, address: int, content: Array) -> None:
        """Write bytes (uint8 [n]) at an address, or raise MemoryError_."""

    @abstractmethod
    def _get(self, address: int, size: int) -> Array:
        """A copy of bytes (uint8 [size]) from an address on, or raise MemoryError_."""

    def write_tensor(
        self,
        address: int,
        array: Any,
        data_format: DataFormat | str,
        *,
        tile_shape: TileShape | None = (32, 32),
        rounding: Any = "nearest",
    ) -> int:
        """Encode a tensor at a byte address; returns the number of bytes.

        Raises:
            FormatError: the format cannot hold the tensor, or its shape is not whole tiles.
            MemoryError_: the tensor does not fit there; or, in L1, the address is not a multiple of 16.
        """
        address = checks.integer(address, "address")
        content = encode(array, data_format, tile_shape=tile_shape, rounding=rounding)
        self._put(address, content)
        return len(content)

    def read_tensor(
        self,
        address: int,
        shape: tuple[int, ...],
        data_format: DataFormat | str,
        *,
        tile_shape: TileShape | None = (32, 32),
    ) -> Array:
        """Decode a tensor of `shape` from a byte address.

        Raises:
            FormatError: the shape is not whole tiles.
            MemoryError_: the tensor does not lie in this memory.
        """
        address = checks.integer(address, "address")
        size = tensor_size(shape, data_format, tile_shape=tile_shape)
        return decode(self._get(address, size), data_format, shape, tile_shape=tile_shape)
