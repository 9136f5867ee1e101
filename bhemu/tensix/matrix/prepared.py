"""Operands of floating-point dot products, decoded, and kept while Src rows hold the same cells (math F5, F8 to F10).

A matrix product uses sixteen SrcA rows with several blocks of SrcB, and each pair of blocks in up to four fidelity
phases. So cells are decoded once, cut into slices once a phase, and the greatest exponents of a pair of blocks are
the same in all phases, but for the bias. Many instructions, and the host, write Src: what is kept is compared with the
rows before it is used, which costs less than decoding them, unless they cannot have changed since (tensix/src_rows.py).

Exponents fit 16 bits: those of both groups of products are handled at once. Each 32-bit lane is a column, its low half
group 0 and its high half group 1.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import (
    as_halves,
    as_words,
    load16,
    mask_bits,
    maximum,
    shuffle,
    splat16,
    store16,
    where,
)
from bhemu.machine.matrix_state import A_BLOCKS, B_BLOCKS
from bhemu.machine.types import Bool, Int, Lanes, PreparedRecord, TileRecord
from bhemu.tensix.matrix.binary32 import LARGE, LITTLE, alive, slice_of_a, slice_of_b
from bhemu.tensix.matrix.dot_large import GROUP, NO_EXPONENT, SWAP, pair_of
from bhemu.tensix.matrix.operands import SRC_EXPONENT

A_ROWS: Final = 2 * GROUP
B_ROWS: Final = 8
_A_LSB: Final = 4  # of a block's number in a SrcA row's
_B_LSB: Final = 3
_ROW_BITS: Final = 8
_SLICED: Final = 1 << 16
_COUNT_LSB: Final = 24
_STEP_LSB: Final = 32


@kernel(forceinline=True)
def _hold(rows: Any, first: Int, step: Int, kept: Any, at: Int, count: Int) -> Bool:
    """True when Src rows still hold the cells that were kept."""
    changed = load16(rows, first) ^ load16(kept, at)
    for k in range(1, count):
        changed = changed | (load16(rows, first + k * step) ^ load16(kept, at + k))
    return mask_bits(changed != 0) == 0


@kernel(forceinline=True)
def _was_compared(t: TileRecord, block: Int, row: Int) -> Bool:
    """True when the block holds the rows from `row` on and they cannot have changed; from now on that is so."""
    if t.src_epoch == 0:
        return False
    p, now = t.prepared, t.src_epoch << _ROW_BITS | row
    known = p.compared[block] == now
    p.compared[block] = now
    t.src_compared = 1
    return known


@kernel(forceinline=True)
def _keep(p: PreparedRecord, block: Int, key: Int, large: Bool) -> None:
    """A block has been decoded; its numbers are those of no phase yet."""
    p.key[block] = key
    p.large[block] = large
    p.sliced[block] = 0
    p.versions += 1
    p.version[block] = p.versions


@kernel(forceinline=True)
def _begin_slices(p: PreparedRecord, block: Int, phase: Int, scale: Int) -> Bool:
    """True when a block's numbers are those of another phase or scale, and have to be made now."""
    sliced = _SLICED | scale << 2 | phase
    if p.sliced[block] == sliced:
        return False
    p.sliced[block] = sliced
    return True


@kernel
def _decode_a(t: TileRecord, block: Int, row: Int, trim: Int) -> None:
    p = t.prepared
    greatest = as_halves(splat16(0))
    for k in range(GROUP):
        low, high = load16(t.srca, row + k), load16(t.srca, row + k + GROUP)
        store16(p.a_cells, block * A_ROWS + k, low)
        store16(p.a_cells, block * A_ROWS + k + GROUP, high)
        pair = as_halves(pair_of(low & trim & SRC_EXPONENT, high & trim & SRC_EXPONENT))
        greatest = maximum(greatest, pair)
        store16(p.a_exponents, block * GROUP + k, as_words(where(pair != 0, pair, NO_EXPONENT)))
    _keep(p, block, trim, mask_bits(greatest > LARGE) != 0)


@kernel
def _slice_a(t: TileRecord, block: Int, trim: Int, phase: Int, scale: Int) -> None:
    # A slice of SrcA is a little larger than it is, so that ties of products are rounded up on the magnitude (F10).
    p = t.prepared
    for k in range(A_ROWS):
        cell = load16(p.a_cells, block * A_ROWS + k) & trim
        store16(p.a_numbers, block * A_ROWS + k, alive(cell, slice_of_a(cell, phase, scale, LITTLE)))


@kernel(forceinline=True)
def prepare_a(t: TileRecord, row: Int, trim: Int, phase: Int, scale: Int) -> Int:
    """Decode sixteen SrcA rows, unless that was done; the block's number."""
    p = t.prepared
    block = (row >> _A_LSB) & (A_BLOCKS - 1)
    known = _was_compared(t, block, row)
    if p.key[block] != trim or not (known or _hold(t.srca, row, 1, p.a_cells, block * A_ROWS, A_ROWS)):
        _decode_a(t, block, row, trim)
    if _begin_slices(p, block, phase, scale):
        _slice_a(t, block, trim, phase, scale)
    return block


@kernel
def _decode_b(t: TileRecord, block: Int, row: Int, step: Int, trim: Int, count: Int, key: Int) -> None:
    p = t.prepared
    greatest = splat16(0)
    for i in range(count):
        cell = load16(t.srcb, row + i * step)
        store16(p.b_cells, block * B_ROWS + i, cell)
        field = cell & trim & SRC_EXPONENT
        greatest = maximum(greatest, field)
        exponent = where(field != 0, field, NO_EXPONENT)
        store16(p.b_exponents, block * B_ROWS + i, pair_of(exponent, shuffle(exponent, SWAP)))
    _keep(p, A_BLOCKS + block, key, mask_bits(greatest > LARGE) != 0)


@kernel
def _slice_b(t: TileRecord, block: Int, trim: Int, count: Int, phase: Int, scale: Int) -> None:
    p = t.prepared
    for i in range(count):
        cell = load16(p.b_cells, block * B_ROWS + i) & trim
        store16(p.b_numbers, block * B_ROWS + i, alive(cell, slice_of_b(cell, phase, scale)))


@kernel(forceinline=True)
def prepare_b(t: TileRecord, row: Int, step: Int, trim: Int, count: Int, phase: Int, scale: Int) -> Int:
    """Decode SrcB rows, unless that was done; the block's number among those of SrcB."""
    p = t.prepared
    block = (row >> _B_LSB) & (B_BLOCKS - 1)
    key = trim | count << _COUNT_LSB | step << _STEP_LSB
    known = _was_compared(t, A_BLOCKS + block, row)
    if p.key[A_BLOCKS + block] != key or not (known or _hold(t.srcb, row, step, p.b_cells, block * B_ROWS, count)):
        _decode_b(t, block, row, step, trim, count, key)
    if _begin_slices(p, A_BLOCKS + block, phase, scale):
        _slice_b(t, block, trim, count, phase, scale)
    return block


@kernel(forceinline=True)
def are_large(t: TileRecord, a: Int, b: Int) -> Bool:
    """Exponents of one of two blocks are too large for binary32."""
    return t.prepared.large[a] != 0 or t.prepared.large[A_BLOCKS + b] != 0


@kernel
def _compare(t: TileRecord, a: Int, b: Int, count: Int) -> None:
    p = t.prepared
    for i in range(count):
        greatest = as_halves(splat16(0)) + 2 * NO_EXPONENT
        for k in range(GROUP):
            other = as_halves(splat16(np.int64(p.b_exponents[b, i, k])))
            greatest = maximum(greatest, as_halves(load16(p.a_exponents, a * GROUP + k)) + other)
        store16(p.greatest, (a * B_BLOCKS + b) * B_ROWS + i, as_words(greatest))


@kernel(forceinline=True)
def prepare_exponents(t: TileRecord, a: Int, b: Int, count: Int) -> None:
    """Find the greatest exponents of two blocks that are decoded, unless that was done."""
    p = t.prepared
    version_a, version_b = p.version[a], p.version[A_BLOCKS + b]
    if p.greatest_of[a, b, 0] != version_a or p.greatest_of[a, b, 1] != version_b:
        _compare(t, a, b, count)
        p.greatest_of[a, b, 0] = version_a
        p.greatest_of[a, b, 1] = version_b


@kernel(forceinline=True)
def greatest_of(t: TileRecord, a: Int, b: Int, index: Int, bias: Int, zero_exponent: Int) -> Lanes:
    """The greatest exponent of each group for one SrcB row, as pairs (F10).

    `zero_exponent` is the exponent of zero products (F9). Where it is above zero it is below that of any other product,
    so taking it into the maximum without looking for zero products changes nothing.
    """
    greatest = as_halves(load16(t.prepared.greatest, (a * B_BLOCKS + b) * B_ROWS + index))
    return as_words(maximum(greatest + bias, as_halves(splat16(zero_exponent | (zero_exponent << 16)))))
