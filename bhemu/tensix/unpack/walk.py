"""The loops over datums (rules U6, U7, U9, 001.2.6).

`walk_rows` moves whole aligned rows, a row at a time: the shape of almost every real unpack. `walk_datums` does
everything: partial and unaligned rows, FIFO wrap, compressed tiles, upsampling, column shift. Both convert 16 at once.
Addresses are in 1/16 byte, as in address.py.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.machine.faults import refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import iota16, load16, load16_at, splat16, store16, where
from bhemu.machine.types import AnyInt, Bool, Int, Lanes, TileRecord, UnpackDecodedRecord, UnpackWalkRecord
from bhemu.tensix.unpack import faults
from bhemu.tensix.unpack.address import L1_END, wrap
from bhemu.tensix.unpack.compressed import COUNTS_SIZE, GROUP
from bhemu.tensix.unpack.convert import (
    LAYOUT_SRC_BF16,
    NORMALISE_BFP,
    NORMALISE_BFP_A,
    NORMALISE_FP32_TO_TF32,
    NORMALISE_NONE,
    bf16_to_src,
    bfp_a_is_undefined,
    bfp_to_bf16,
    convert,
    fp32_to_src_tf32,
)
from bhemu.tensix.unpack.place import BIAS_ROWS, TO_SRCA, TO_SRCA_TRANSPOSED, TO_SRCB, place_datum, place_row

REFUSED_WALK: Final = -1


@kernel
def _load_row(t: TileRecord, size: Int, address: Int) -> Lanes:
    """16 datums from `address`, zero-extended; sub-byte rows start at a multiple of 4 bytes."""
    if size == 32:
        return load16_at(t.l1_u16, address >> 5)
    if size == 64:
        return load16_at(t.l1_u32, address >> 6)
    if size == 16:
        return load16_at(t.l1, address >> 4)
    low = splat16(np.int64(t.l1_u32[address >> 6]))
    if size == 8:
        high = splat16(np.int64(t.l1_u32[(address >> 6) + 1]))
        return (where(iota16() < 8, low, high) >> ((iota16() & 7) * 4)) & 15
    return (low >> (iota16() * 2)) & 3


# The three transfers that most kernels spend their unpacks on have loops with no choices inside: half the time.
# 16- and 32-bit data come in unpack rows of two register rows, `stride` apart (U7).


@kernel
def _bf16_rows(
    t: TileRecord, registers: Lanes, first: Int, row: Int, row_mask: Int, data: Int, stride: Int, rows: Int
) -> None:
    """BF16 to a Src bank that starts at register row `first`."""
    for i in range(rows):
        bits = load16_at(t.l1_u16, (data + (i >> 1) * stride + (i & 1) * 512) >> 5)
        store16(registers, first + ((row + i) & row_mask), bf16_to_src(bits))


@kernel
def _tf32_rows(
    t: TileRecord, registers: Int, first: Int, row: Int, row_mask: Int, data: Int, stride: Int, rows: Int
) -> None:
    """FP32 to a Src bank as TF32."""
    for i in range(rows):
        bits = load16_at(t.l1_u32, (data + (i >> 1) * stride + (i & 1) * 1024) >> 6)
        store16(registers, first + ((row + i) & row_mask), fp32_to_src_tf32(bits))


@kernel
def _bfp8_rows(
    t: TileRecord, registers: Int, first: Int, row: Int, row_mask: Int, data: Int, exponents: Int, rows: Int
) -> None:
    """BFP8 with an exponent section to consecutive rows of a Src bank."""
    for i in range(rows):
        shared = splat16(np.int64(t.l1[(exponents >> 4) + i]))
        bits = bfp_to_bf16(load16_at(t.l1, (data >> 4) + 16 * i), shared, 0)
        store16(registers, first + ((row + i) & row_mask), bf16_to_src(bits))


@kernel
def walk_rows(t: TileRecord, d: UnpackDecodedRecord, w: UnpackWalkRecord, bias: Int, rows: Int) -> None:
    """Move the first `rows` times 16 datums that `w` describes to consecutive rows of the target.

    Args:
        d: decoded configuration.
        bias: register row = (output row + bias) & `w.row_mask`.
    """
    target, bank, row_mask = np.int64(w.target), np.int64(w.bank), np.int64(w.row_mask)
    data, exponents, zero = np.int64(w.datum), np.int64(w.exponents), w.zero != 0
    row = (np.int64(w.out) >> 4) + bias
    size = d.datum_size
    normalise = d.normalise
    layout = d.layout
    shift = d.bfp_shift
    halves_mask = (d.row_datums >> 4) - 1  # an unpack row is one or two register rows (U7)
    jump = d.row_stride - d.row_datums * size
    if target in (TO_SRCA, TO_SRCB) and not zero:
        registers = t.srca if target == TO_SRCA else t.srcb
        first = bank * 64
        if normalise == NORMALISE_NONE and layout == LAYOUT_SRC_BF16:
            _bf16_rows(t, registers, first, row, row_mask, data, d.row_stride, rows)
            return
        if normalise == NORMALISE_FP32_TO_TF32:
            _tf32_rows(t, registers, first, row, row_mask, data, d.row_stride, rows)
            return
        if normalise == NORMALISE_BFP and size == 16 and d.exponent_section and jump == 0:
            _bfp8_rows(t, registers, first, row, row_mask, data, exponents, rows)
            return
    has_exponents = d.exponent_section != 0
    exponent = d.forced_exp
    for i in range(rows):
        cells = splat16(0)
        if not zero:
            if has_exponents:
                exponent = np.int64(t.l1[exponents >> 4])
                exponents += 16
            cells = convert(normalise, layout, shift, _load_row(t, size, data), splat16(exponent))
            data += 16 * size
            if i & halves_mask == halves_mask:
                data += jump
        place_row(t, target, bank, (row + i) & row_mask, cells)


@kernel
def _read(t: TileRecord, size: Int, address: Int) -> Int:
    """One datum."""
    if size == 64:
        return np.int64(t.l1_u32[address >> 6])
    if size == 32:
        return np.int64(t.l1_u16[address >> 5])
    byte = np.int64(t.l1[address >> 4])
    return (byte >> ((address & 15) >> 1)) & ((1 << (size >> 1)) - 1)


@kernel
def _is_outside(t: TileRecord, address: Int, size: Int, first: Int) -> bool:
    if address < 0 or address + size > L1_END:
        refuse(t, faults.OUT_OF_L1, address >> 4, address >> 4, first)
        return True
    return False


@kernel
def _gather(
    t: TileRecord,
    d: UnpackDecodedRecord,
    w: UnpackWalkRecord,
    index: Int,
    data: Int,
    exponents: Int,
    counts: Int,
    room: Int,
) -> tuple[Int, Int, AnyInt, AnyInt, AnyInt]:
    """Read up to 16 datums from number `index` on into `t.unpack`: bits, exponents, and zeros that follow each.

    Args:
        data, exponents, counts: addresses of what belongs to the first of them.
        room: output datums, zeros included, before the last one.

    Returns:
        (datums, output datums that they make, the three addresses after them); -1 datums when one was refused.
    """
    size = d.datum_size
    n, produced, refused = np.int64(0), np.int64(0), np.int64(-1)
    while n < 16 and index < w.end and produced < room:
        t.unpack.zeros[n] = np.uint32(0)
        if w.zero == 0:
            if _is_outside(t, data, size, index):
                return refused, produced, data, exponents, counts
            t.unpack.bits[n] = np.uint32(_read(t, size, data))
            data += size
            if (index + 1) & (d.row_datums - 1) == 0:
                data = wrap(d, data + d.row_stride - d.row_datums * size)
            exponent = d.forced_exp
            if d.exponent_section:
                if _is_outside(t, exponents, np.int64(1), index):
                    return refused, produced, data, exponents, counts
                exponent = np.int64(t.l1[exponents >> 4])
                exponents += 1
                if exponents & 0xFF == 0:
                    exponents = wrap(d, exponents)
            t.unpack.exponents[n] = np.uint32(exponent)
            if d.uncompressed == 0:
                if _is_outside(t, counts, np.int64(8), index):
                    return refused, produced, data, exponents, counts
                zeros = _read(t, np.int64(8), counts)
                t.unpack.zeros[n] = np.uint32(zeros)
                produced += zeros
                counts += 8
                if counts & (COUNTS_SIZE - 1) == 0:
                    data += COUNTS_SIZE
                    counts = wrap(d, counts + GROUP * size)
        produced += 1
        index += 1
        n += 1
    return n, produced, data, exponents, counts


@kernel
def _convert(t: TileRecord, d: UnpackDecodedRecord, w: UnpackWalkRecord, index: Int, count: Int) -> bool:
    """Convert the datums read, from number `index` on, to `t.unpack.cells`; False when one of them is not defined."""
    if w.zero != 0:
        store16(t.unpack.cells, 0, splat16(0))
        return True
    bits = load16(t.unpack.bits, 0)
    shared = load16(t.unpack.exponents, 0)
    if d.normalise == NORMALISE_BFP_A:
        wrong = bfp_a_is_undefined(bits, shared, d.bfp_shift) & ((1 << count) - 1)
        if wrong:
            lane = 0
            while (wrong >> lane) & 1 == 0:
                lane += 1
            exponent = np.int64(t.unpack.exponents[lane])
            refuse(t, faults.BFP_A_EXPONENT, index + lane - w.index, d.in_format, exponent)
            return False
    store16(t.unpack.cells, 0, convert(d.normalise, d.layout, d.bfp_shift, bits, shared))
    return True


@kernel
def walk_datums(t: TileRecord, d: UnpackDecodedRecord, w: UnpackWalkRecord, bias: Int, write: Int) -> Any:
    """Move the datums that `w` describes one at a time.

    Args:
        w: `t.unpack.walk`, see machine/unpacker_state.py; it is not changed.
        bias: register row = (output row + bias) & `w.row_mask`.
        write: False rehearses: all reads and checks, no register is written.

    Returns:
        The position after the last output datum, or REFUSED_WALK.
    """
    data, exponents, counts = np.int64(w.datum), np.int64(w.exponents), np.int64(w.counts)
    index, drop, keep = np.int64(w.index), np.int64(w.drop), np.int64(w.keep)
    out = np.int64(w.out)
    upsample = d.upsample_zeros
    while index < w.end and keep > 0:
        n, produced, data, exponents, counts = _gather(t, d, w, index, data, exponents, counts, drop + keep)
        if n < 0 or not _convert(t, d, w, index, n):
            return np.int64(REFUSED_WALK)
        index += n
        if not write:
            dropped = min(drop, produced)
            kept = min(produced - dropped, keep)
            drop -= dropped
            keep -= kept
            out += kept * (1 + upsample)
            continue
        for i in range(n):
            cell = np.int64(t.unpack.cells[i])
            for _ in range(1 + np.int64(t.unpack.zeros[i])):
                if drop > 0:
                    drop -= 1
                elif keep > 0:
                    keep -= 1
                    for step in range(1 + upsample):
                        if step == 0 or not d.interleave:
                            _place(t, d, w, bias, out, cell if step == 0 else 0)
                        out += 1
                cell = np.int64(0)
    return out


@kernel
def _place(t: TileRecord, d: UnpackDecodedRecord, w: UnpackWalkRecord, bias: Int, out: Int, cell: Int) -> None:
    """Store the output datum at position `out`, or drop it (U9)."""
    row = out >> 4
    column = out & 15
    if w.target in (TO_SRCA, TO_SRCA_TRANSPOSED):
        if row < BIAS_ROWS or column < d.column_shift:
            return
        column -= d.column_shift
    place_datum(t, w.target, w.bank, (row + bias) & w.row_mask, column, cell)


@kernel
def is_whole_rows(d: UnpackDecodedRecord, w: UnpackWalkRecord, rows: Int) -> bool:
    """True when `rows` whole rows may go through `walk_rows`: aligned at both ends, nothing between the datums."""
    if rows == 0 or w.out & 15 or d.upsample_zeros or d.column_shift or not d.uncompressed:
        return False
    if w.target in (TO_SRCA, TO_SRCA_TRANSPOSED) and (w.out >> 4) < BIAS_ROWS:
        return False
    if w.zero:
        return True
    size = d.datum_size
    if size < 16 and w.datum & (16 * size - 1):
        return False
    return not (d.exponent_section and w.exponents & 15)


@kernel
def advanced(d: UnpackDecodedRecord, data: Int, count: Int) -> AnyInt:
    """Address of the datum `count` datums after `data` in an uncompressed tile, without wrap."""
    in_row = count & (d.row_datums - 1)
    return data + (count >> d.row_shift) * d.row_stride + in_row * d.datum_size


@kernel
def needs_rehearsal(d: UnpackDecodedRecord, data_end: Int, exponents_end: Int) -> Bool:
    """True when only a walk through the data tells where it ends, whether it stays in L1 or whether it is defined."""
    wraps = d.fifo != 0 and (data_end > d.limit or exponents_end > d.limit)
    return wraps or d.uncompressed == 0 or d.normalise == NORMALISE_BFP_A
