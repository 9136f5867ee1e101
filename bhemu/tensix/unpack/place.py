"""Cells into SrcA, SrcB and Dst (rules I.3, U8-U10)."""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.machine.dst import LOW_HALF, high_row
from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import store16
from bhemu.machine.types import Int, Lanes, TileRecord

TO_SRCA: Final = 0
TO_SRCA_TRANSPOSED: Final = 1
TO_SRCB: Final = 2
TO_DST_16: Final = 3
TO_DST_32: Final = 4

BIAS_ROWS: Final = 4
"""Unpacker 0's output addresses start 4 rows in front of row 0 (U8)."""


@kernel
def place_row(t: TileRecord, target: Int, bank: Int, row: Int, cells: Lanes) -> None:
    """Store 16 cells as one row."""
    if target == TO_SRCA:
        store16(t.srca, bank * 64 + row, cells)
    elif target == TO_SRCB:
        store16(t.srcb, bank * 64 + row, cells)
    elif target == TO_DST_16:
        store16(t.dst, row, cells)
        t.dst_valid[row] = 1
    elif target == TO_DST_32:
        high = high_row(row)
        store16(t.dst, high, (cells >> 16) & 0xFFFF)
        store16(t.dst, high + LOW_HALF, cells & 0xFFFF)
        t.dst_valid[high] = 1  # the flag of the low halves' row is not touched (I.3)
    else:
        store16(t.unpack.cells, 0, cells)
        block = row & ~15
        for column in range(16):
            t.srca[bank, block | column, row & 15] = t.unpack.cells[column]


@kernel
def place_datum(t: TileRecord, target: Int, bank: Int, row: Int, column: Int, cell: Int) -> None:
    """Store one cell."""
    if target == TO_SRCA:
        t.srca[bank, row, column] = np.uint32(cell)
    elif target == TO_SRCA_TRANSPOSED:
        t.srca[bank, (row & ~15) | column, row & 15] = np.uint32(cell)
    elif target == TO_SRCB:
        t.srcb[bank, row, column] = np.uint32(cell)
    elif target == TO_DST_16:
        t.dst[row, column] = np.uint16(cell & 0xFFFF)
        t.dst_valid[row] = 1
    else:
        high = high_row(row)
        t.dst[high, column] = np.uint16((cell >> 16) & 0xFFFF)
        t.dst[high + LOW_HALF, column] = np.uint16(cell & 0xFFFF)
        t.dst_valid[high] = 1
