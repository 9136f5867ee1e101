"""Zero-compressed tiles: row start indices, then groups of 32 datums and 32 four-bit zero counts (rules I.4, U5).

Addresses are in 1/16 byte, as in address.py.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.machine.counters import CH0_W, CH0_X, CH0_Y, CH0_Z, CH1_X
from bhemu.machine.faults import refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.state import L1_SIZE
from bhemu.machine.types import AnyInt, Int, TileRecord, UnpackDecodedRecord
from bhemu.tensix.unpack import faults
from bhemu.tensix.unpack.address import REFUSED_RANGE

GROUP: Final = 32
"""Datums, and zero counts, that follow each other."""
COUNTS_SIZE: Final = 256
"""32 zero counts: 16 bytes."""
NO_LIMIT: Final = 1 << 40


@kernel
def _row_start(t: TileRecord, start: Int, index: Int) -> Int:
    """Row start index `index` after byte address `start`, or -1 outside L1."""
    at = start + 2 * index
    if at < 0 or at + 2 > L1_SIZE:
        refuse(t, faults.OUT_OF_L1, at, start, index)
        return np.int64(-1)
    return np.int64(t.l1_u16[at >> 1])


@kernel
def compressed_range(
    t: TileRecord, d: UnpackDecodedRecord, thread: Int, adc_thread: Int, unpacker: Int, start: Int, row_search: Int
) -> Any:
    """What to read of a compressed tile: first augmented datum, their count, datums to drop first, datums to keep.

    `start` is the byte address of the row start indices. A negative count says that the range was refused.
    """
    x = np.int64(t.adc[adc_thread, unpacker, CH0_X])
    y = np.int64(t.adc[adc_thread, unpacker, CH0_Y]) & 0xFF
    end = np.int64(t.adc[adc_thread, unpacker, CH1_X]) + 1
    z = np.int64(t.adc[thread, unpacker, CH0_Z]) & 0xFF
    w = np.int64(t.adc[thread, unpacker, CH0_W]) & 0xFF
    zero = np.int64(0)
    refused = np.int64(REFUSED_RANGE)
    no_limit = np.int64(NO_LIMIT)
    rows = d.blobs if row_search and d.blobs else d.y_dim
    plane = (w * d.z_dim + z) * rows
    first = _row_start(t, start, plane + y)
    if first < 0:
        return zero, refused, zero, zero
    if not row_search and not (x == 0 and end == d.x_dim):
        if end <= x:
            refuse(t, faults.X_RANGE, x, end - 1)
            return zero, refused, zero, zero
        return first, no_limit, x, end - x  # decompress from the row's start, drop x datums, keep the range
    following = _row_start(t, start, plane + ((x & 0xFF) if row_search else y) + 1)
    if following < first:
        if following >= 0:
            refuse(t, faults.ROW_STARTS, following, first)
        return zero, refused, zero, zero
    return first, following - first, zero, no_limit


@kernel
def datum_offset(d: UnpackDecodedRecord, index: Int) -> AnyInt:
    """Offset of augmented datum `index` from the first."""
    group = GROUP * d.datum_size + COUNTS_SIZE
    return (index // GROUP) * group + (index % GROUP) * d.datum_size


@kernel
def count_offset(d: UnpackDecodedRecord, index: Int) -> AnyInt:
    """Offset of the zero count of augmented datum `index` from the first datum."""
    group = GROUP * d.datum_size + COUNTS_SIZE
    return (index // GROUP) * group + GROUP * d.datum_size + (index % GROUP) * 8
