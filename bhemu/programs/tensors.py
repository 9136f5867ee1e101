"""The tensors of a program: shapes that inputs bind, and their places in L1."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from bhemu.checks import checked
from bhemu.errors import BhemuError, FormatError, MemoryError_, ProgramError
from bhemu.formats import DataFormat, TileShape, tensor_size
from bhemu.machine.state import L1_SIZE

Array = np.ndarray[Any, Any]
Dimension = int | str

FIRST_ADDRESS = 0x8000
"""Where buffers without an address of their own begin; what lies below is left to the program."""


@checked
@dataclass
class Tensor:
    """A tensor that a program reads or writes.

    Attributes:
        name: as `--in name=file.npy` and `--out name=file.npy` use it.
        dimensions: shape, integers or names that inputs bind (`"M"`).
        format: of its datums in L1.
        tile_shape: rows and columns of a tile, or None for row-major order.
        is_output: written by the program.
        requested: byte address in L1 that the program asks for, or None.
        address: byte address in L1 of this run.
        shape: the shape of this run.
        values: an input's values, for the reference.
    """

    name: str
    dimensions: tuple[Dimension, ...]
    format: DataFormat
    tile_shape: TileShape | None
    is_output: bool
    requested: int | None = None
    address: int = -1
    shape: tuple[int, ...] = ()
    values: Array | None = None

    def plot(self, values: Any = None, *, ax: Any = None) -> Any:
        """Draw values with matplotlib: those given, or an input's own; returns the axes.

        Raises:
            ProgramError: an output has no values of its own: give those of the result.
            ConfigurationError: matplotlib is not installed.
        """
        from bhemu.pictures.plot import matrix

        if values is None and self.values is None:
            raise ProgramError(
                f"tensor {self.name} has no values", remedy=f"run the program, and give result.outputs[{self.name!r}]"
            )
        return matrix(np.asarray(self.values if values is None else values), f"{self.name}, {self.format.name}", ax=ax)

    def _repr_html_(self) -> str:
        from bhemu.pictures import html

        shape = " x ".join(map(str, self.shape or self.dimensions))
        title = f"{'output' if self.is_output else 'input'} {self.name}: {shape}, {self.format.name}"
        place = "" if self.address < 0 else html.paragraph(f"in L1 at {self.address:#x}, {self.bytes:,} bytes")
        shown = "" if self.values is None else html.picture(self.values.astype(np.float64))
        return html.heading(title) + place + shown

    @property
    def bytes(self) -> int:
        """Size in L1 in bytes."""
        return tensor_size(self.shape, self.format, tile_shape=self.tile_shape)

    @property
    def tiles(self) -> int:
        """Number of tiles (1 for row-major order)."""
        if self.tile_shape is None:
            return 1
        return math.prod(self.shape) // (self.tile_shape[0] * self.tile_shape[1])

    @property
    def tile_bytes(self) -> int:
        """Bytes of one tile."""
        return self.bytes // self.tiles

    def tile_grid(self) -> tuple[int, int]:
        """Tile rows and tile columns of the last two dimensions."""
        if self.tile_shape is None:
            return 1, 1
        return self.shape[-2] // self.tile_shape[0], self.shape[-1] // self.tile_shape[1]

    def tile_address(self, index: int) -> int:
        """Byte address of tile `index` in row-major tile order."""
        if not 0 <= index < self.tiles:
            raise MemoryError_(f"tensor {self.name} has no tile {index}", remedy=f"it has tiles 0 to {self.tiles - 1}")
        return self.address + index * self.tile_bytes


def place(tensors: Collection[Tensor]) -> None:
    """Give every tensor its address: the one that the program asks for, or the first gap that is large enough.

    Raises:
        MemoryError_: the tensors do not fit into L1, or overlap.
    """
    taken: list[tuple[int, int, str]] = []
    for tensor in tensors:
        if tensor.requested is None:
            continue
        tensor.address = tensor.requested
        if tensor.address % 16 or tensor.address + tensor.bytes > L1_SIZE:
            raise MemoryError_(
                f"tensor {tensor.name}: {tensor.bytes} bytes at {tensor.address:#x} are not an aligned range of L1 "
                f"(0..{L1_SIZE:#x})",
                remedy="use a multiple of 16 and leave room for the whole tensor",
            )
        for first, last, other in taken:
            if tensor.address < last and first < tensor.address + tensor.bytes:
                raise MemoryError_(
                    f"tensor {tensor.name} at {tensor.address:#x}..{tensor.address + tensor.bytes:#x} overlaps "
                    f"{other} at {first:#x}..{last:#x}",
                    remedy="move one of them, or let bhemu choose the address",
                )
        taken.append((tensor.address, tensor.address + tensor.bytes, tensor.name))
    for tensor in tensors:
        if tensor.requested is not None:
            continue
        at = FIRST_ADDRESS
        for first, last, _name in sorted(taken):
            if at + tensor.bytes > first and at < last:
                at = (last + 63) & ~63
        if at + tensor.bytes > L1_SIZE:
            total = sum(t.bytes for t in tensors)
            raise MemoryError_(
                f"tensor {tensor.name} ({tensor.bytes} bytes) does not fit: the tensors need {total} bytes of L1, "
                f"which has {L1_SIZE - FIRST_ADDRESS}",
                remedy="use smaller tensors or a denser format, or work on them in parts",
            )
        tensor.address = at
        taken.append((at, at + tensor.bytes, tensor.name))


def match(tensor: Tensor, shape: tuple[int, ...], sizes: dict[str, int]) -> None:
    """Bind the tensor's named dimensions to the shape of an input; `sizes` holds what is bound already.

    Raises:
        ProgramError: the shape contradicts the declaration or another input.
    """
    if len(shape) != len(tensor.dimensions):
        raise ProgramError(
            f"input {tensor.name} has shape {shape}, the program declares {len(tensor.dimensions)} dimensions "
            f"({', '.join(map(str, tensor.dimensions))})",
            remedy="reshape the array",
        )
    for declared, given in zip(tensor.dimensions, shape, strict=True):
        known = sizes.setdefault(declared, given) if isinstance(declared, str) else declared
        if known != given:
            raise ProgramError(
                f"input {tensor.name} has shape {shape}, but {declared} is {known}",
                remedy="give inputs whose shapes agree",
            )


def check_whole_tiles(tensor: Tensor) -> None:
    """Raise FormatError, with the tensor's name, unless its shape is whole tiles."""
    try:
        size = tensor.bytes
    except BhemuError as error:
        raise FormatError(f"tensor {tensor.name}: {error.message}", remedy=error.remedy) from None
    if size == 0:
        raise FormatError(f"tensor {tensor.name} has no datums (shape {tensor.shape})", remedy="give it some")
