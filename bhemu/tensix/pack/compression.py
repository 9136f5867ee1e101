"""Zero compression and the gathering of datums into groups of sixteen (002.11, I.4).

Compressed, each datum that is stored carries a count of the zeros that follow it and are not stored. The first and
the last datum of a row are always stored. Row start indices count stored datums; 32 stored datums are followed by
their 32 counts. How silicon chooses among the encodings that the format allows is not documented: here runs are as
long as the 4-bit count allows.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import load16
from bhemu.machine.types import Int, TileRecord
from bhemu.tensix.pack.output_address import ALL, fill_unit, write_datums, zero_fill

COUNT_TOP: Final = 15
"""Largest number of zeros that a count can express."""


@kernel
def _gather(t: TileRecord, datum: Int) -> None:
    pack = t.pack
    pack.group[pack.group_count] = datum
    pack.group_count += 1
    if pack.group_count == 16:
        write_datums(t, load16(pack.group, 0), ALL)
        pack.group_count = 0


@kernel
def _write_counts(t: TileRecord) -> None:
    """The 32 counts after 32 datums, least significant four bits first."""
    pack = t.pack
    for i in range(16):
        t.l1[pack.data_address + i] = pack.zero_counts[2 * i] | (np.int64(pack.zero_counts[2 * i + 1]) << 4)
        pack.zero_counts[2 * i] = 0
        pack.zero_counts[2 * i + 1] = 0
    pack.data_address += 16


@kernel
def _store_pending(t: TileRecord) -> None:
    pack = t.pack
    pack.zero_counts[pack.augmented & 31] = pack.pending_zeros
    pack.augmented += 1
    _gather(t, pack.pending)
    if pack.augmented & 31 == 0:
        _write_counts(t)
    pack.pending_zeros = 0


@kernel
def push(t: TileRecord, datum: Int) -> None:
    """Append one intermediate datum to the open tile."""
    pack = t.pack
    pack.datums += 1
    if pack.compressed == 0:
        _gather(t, datum)
        return
    if datum != 0:
        pack.row_is_zero = 0
    if pack.has_pending == 0:
        pack.has_pending = 1
    elif datum == 0 and pack.pending_zeros < COUNT_TOP:
        pack.pending_zeros += 1
        return
    else:
        _store_pending(t)
    pack.pending = datum


@kernel
def _row_start(t: TileRecord) -> None:
    pack = t.pack
    t.l1[pack.row_start_address] = pack.augmented & 0xFF
    t.l1[pack.row_start_address + 1] = (pack.augmented >> 8) & 0xFF
    pack.row_start_address += 2


@kernel
def open_tile(t: TileRecord) -> None:
    """First row start index, which is zero."""
    pack = t.pack
    pack.augmented = 0
    pack.rows = 0
    pack.has_pending = 0
    pack.pending_zeros = 0
    pack.row_is_zero = 1
    pack.all_zero_flags = 0
    if pack.compressed != 0:
        for i in range(32):
            pack.zero_counts[i] = 0
        _row_start(t)


@kernel
def end_row(t: TileRecord) -> None:
    """Store the last datum of the row as itself, and the row start index after it."""
    pack = t.pack
    if pack.has_pending == 0:
        return
    zeros = pack.pending_zeros
    if zeros > 0:
        pack.pending_zeros = zeros - 1
        _store_pending(t)
        pack.pending = 0
    _store_pending(t)
    pack.has_pending = 0
    if pack.zero_flags != 0 and pack.row_is_zero != 0 and pack.rows < 32:
        pack.all_zero_flags |= 1 << pack.rows
    pack.rows += 1
    pack.row_is_zero = 1
    _row_start(t)


@kernel
def write_gathered(t: TileRecord) -> None:
    """Write the datums that wait for a whole group; a BFP group is completed with zeros."""
    pack = t.pack
    count = pack.group_count
    if count == 0:
        return
    for i in range(count, 16):
        pack.group[i] = 0
    whole = pack.bfp_bits != 0 or pack.compressed != 0
    write_datums(t, load16(pack.group, 0), ALL if whole else count)
    pack.group_count = 0


@kernel
def close_tile(t: TileRecord) -> None:
    """Complete all streams to whole 16-byte units."""
    pack = t.pack
    if pack.compressed != 0:
        end_row(t)
        stored = pack.augmented & 31
        write_gathered(t)
        if stored != 0:
            if stored <= 16:
                pack.data_address = zero_fill(t, pack.data_address, pack.data_address + 2 * pack.datum_bits)
            _write_counts(t)
        pack.row_start_address = fill_unit(t, pack.row_start_address)
    else:
        write_gathered(t)
    pack.data_address = fill_unit(t, pack.data_address)
    if pack.bfp_bits != 0:
        pack.exp_address = fill_unit(t, pack.exp_address)
