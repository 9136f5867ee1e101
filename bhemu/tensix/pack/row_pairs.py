"""Whole rows of BF16 from Dst to BF16 in L1, two at a time: what most kernels pack.

A datum has 16 bits from Dst to L1, so that two rows are 32 lanes, and the stages between (P6, P8, P9) are a few
operations on each. All other configurations, and rows that do not lie together, take the stages one by one
(tensix/pack/pacr.py), with the same results.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.machine.dst import BF16_SIGN, DST_ROWS, LOW_HALF, bf16_of_cell_halves, high_row
from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import as_words, load_row_pair, mask32, maximum, splat16, store16_at, where
from bhemu.machine.types import Bool, Int, Lanes, PackRecord, TileRecord
from bhemu.tensix.pack.early_conversion import BF16_FLUSH, BF16_FROM_32, BF16_KEEP, bf16_without_specials
from bhemu.tensix.pack.edge_mask import advance
from bhemu.tensix.pack.formats import KIND_BF16
from bhemu.tensix.pack.histogram import record_maximum
from bhemu.tensix.pack.late_conversion import AS_IS

_ROWS: Final = 4
_DATUMS: Final = 64
_PAIR_BYTES: Final = 64
_INFINITE: Final = 0x7F80
_LEAST: Final = 0x80
_ROW: Final = 0xFFFF
_CLAMPS_BELOW_ZERO: Final = 1
"""ReLU mode 1."""


@kernel
def are_bf16_pairs(pack: PackRecord) -> Bool:
    """What decoding finds of a configuration: its datums are BF16 all the way, and no stage looks at the others."""
    rule = pack.early
    if rule != BF16_FLUSH and rule != BF16_KEEP and rule != BF16_FROM_32:
        return False
    if pack.kind != KIND_BF16 or pack.narrow != 0 or pack.edge_free == 0 or pack.relu > _CLAMPS_BELOW_ZERO:
        return False
    if pack.threshold != 0 or pack.late_widen != 0 or pack.late_narrow != 0 or pack.late_final != AS_IS:
        return False
    return pack.datum_bits == 16 and pack.bfp_bits == 0 and pack.accumulate == 0 and pack.compressed == 0


@kernel
def lie_together(pack: PackRecord, row: Int) -> Bool:
    """Four rows of Dst from `row` on are neighbours, and so are their words in L1."""
    if pack.data_address & 3 != 0:
        return False
    return row & 7 <= 4 if pack.early == BF16_FROM_32 else row & (DST_ROWS - 1) <= DST_ROWS - _ROWS


@kernel(forceinline=True)
def _rounded(value: Lanes, low: Lanes) -> Lanes:
    """BF16 of FP32 halves, half away from zero, without NaN and values with exponent 0 (P6)."""
    infinite = (value & 0x7FFF) >= _INFINITE
    value = where(infinite, (value & BF16_SIGN) | _INFINITE, value + ((low >> 15) & 1))
    return where((value & 0x7FFF) < _LEAST, 0, value)


@kernel(forceinline=True)
def _pair(t: TileRecord, row: Int) -> Lanes:
    """Intermediate datums of two rows from `row` on, of the view that the rule reads; zeros where one is not valid."""
    rule = t.pack.early
    physical = high_row(row) if rule == BF16_FROM_32 else row & (DST_ROWS - 1)
    valid = np.int64(t.dst_valid[physical]) * _ROW | np.int64(t.dst_valid[physical + 1]) * (_ROW << 16)
    value = where(mask32(valid), bf16_of_cell_halves(load_row_pair(t.dst, physical)), 0)
    if rule == BF16_FROM_32:
        return _rounded(value, load_row_pair(t.dst, physical + LOW_HALF))
    return value if rule == BF16_KEEP else bf16_without_specials(value)


@kernel
def pack_pairs(t: TileRecord, row: Int) -> None:
    """Four rows of Dst from `row` on, where they are BF16 pairs that lie together."""
    pack = t.pack
    seen = splat16(0)
    for i in range(0, _ROWS, 2):
        value = _pair(t, row + i)
        if pack.relu != 0:
            value = where(value < 0, 0, value)
        words = as_words((value >> 7) & 0xFF)
        seen = maximum(seen, maximum(words & _ROW, words >> 16))
        store16_at(t.l1_u32, pack.data_address >> 2, as_words(value))
        pack.data_address += _PAIR_BYTES
    pack.datums += _DATUMS
    advance(pack, np.int64(_DATUMS))
    record_maximum(pack, seen)
