"""Which datums an UNPACR moves, and where they lie in L1 and in the register file (rules U5, U6, U8).

Addresses are in 1/16 byte: with one exponent byte for 16 datums, every pointer then moves in whole steps.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.machine.counters import CH0_W, CH0_X, CH0_Y, CH0_Z, CH1_W, CH1_X, CH1_Y, CH1_Z
from bhemu.machine.faults import refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.state import L1_SIZE
from bhemu.machine.types import AnyInt, Int, TileRecord, UnpackDecodedRecord
from bhemu.tensix.unpack import faults
from bhemu.tensix.unpack.decode import BASE, DEST_NONE, DEST_REPLACE, OFFSET, table_field

L1_END: Final = L1_SIZE * 16
"""End of L1 in 1/16 byte."""

REFUSED_RANGE: Final = -1
"""Count of a range that was refused."""


@kernel
def tile_start(t: TileRecord, d: UnpackDecodedRecord, unpacker: Int, bank: Int, context: Int) -> AnyInt:
    """Byte address of the tile's first section: RSI, exponents or datums (U5). The sum has 32 bits."""
    base = table_field(t, bank, BASE, unpacker, context)
    offset = table_field(t, bank, OFFSET, unpacker, context)
    return ((base + offset + 1 + d.digest) * 16) & 0xFFFFFFFF


@kernel
def datum_range(
    t: TileRecord, d: UnpackDecodedRecord, thread: Int, adc_thread: Int, unpacker: Int, row_search: Int
) -> tuple[Int, Int]:
    """First datum and count in an uncompressed tile; a negative count says that the range was refused (U5)."""
    x = np.int64(t.adc[adc_thread, unpacker, CH0_X])
    y = np.int64(t.adc[adc_thread, unpacker, CH0_Y])
    end = np.int64(t.adc[adc_thread, unpacker, CH1_X]) + 1
    if row_search and d.blobs:
        start, end = _blob(d, x & 7, y & 7)
        if end < start:
            refuse(t, faults.BLOB_RANGE, start, end)
            return np.int64(0), np.int64(REFUSED_RANGE)
        x = start
        y = np.int64(0)
    elif row_search:
        x = np.int64(0)
        end -= 1  # the last X itself is left out here
    elif end <= x:
        refuse(t, faults.X_RANGE, x, end - 1)
        return np.int64(0), np.int64(REFUSED_RANGE)
    # Only 8 bits of Z and W reach the input address (I.8)
    z = np.int64(t.adc[thread, unpacker, CH0_Z]) & 0xFF
    w = np.int64(t.adc[thread, unpacker, CH0_W]) & 0xFF
    return w * d.w_stride + z * d.z_stride + y * d.x_dim + x, end - x


@kernel
def _blob(d: UnpackDecodedRecord, x: Int, y: Int) -> Any:
    """Start and end datum of a blob: 4-bit starts in units of 16 datums."""
    start = ((d.blob_starts >> (4 * y)) & 15) << 4
    following = x + 1
    if following == d.blobs:
        end = d.x_dim & 0x1F0
    elif following < 8:
        end = ((d.blob_starts >> (4 * following)) & 15) << 4
    else:
        end = np.int64(-1)
    return start, end


@kernel
def wrap(d: UnpackDecodedRecord, address: Int) -> Int:
    """An address beyond the FIFO's limit moves down by the FIFO's size; size 0 means no FIFO (U6)."""
    return address - d.fifo if address > d.limit else address


@kernel
def output_address(t: TileRecord, d: UnpackDecodedRecord, thread: Int, unpacker: Int) -> AnyInt:
    """Position of the first output datum, in datums (U8); negative when refused."""
    y = np.int64(t.adc[thread, unpacker, CH1_Y])
    z = np.int64(t.adc[thread, unpacker, CH1_Z])
    w = np.int64(t.adc[thread, unpacker, CH1_W])
    address = d.out_base + y * d.out_y_stride + z * d.out_z_stride + w * d.out_w_stride
    shift = d.out_shift
    if d.dest_mode == DEST_REPLACE:
        return d.dest_address
    if address & ((1 << shift) - 1):
        refuse(t, faults.OUT_ALIGNMENT, address)
        return np.int64(-1)
    address >>= shift
    return address if d.dest_mode == DEST_NONE else address + d.dest_address
