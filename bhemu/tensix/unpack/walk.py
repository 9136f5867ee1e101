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
def walk_rows(
    t: TileRecord,
    d: UnpackDecodedRecord,
    target: Int,
    bank: Int,
    row: Int,
    row_mask: Int,
    data: Int,
    exponents: Int,
    rows: Int,
    zero: Int,
) -> None:
    """Move `rows` times 16 datums to consecutive rows of the target.

    Args:
        d: decoded configuration.
        target: `TO_*`.
        row: register row of the first 16; rows count modulo `row_mask` + 1.
        data, exponents: addresses of the first datum and of its exponent.
        zero: write zeros and do not read L1.
    """
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
def walk_datums(t: TileRecord, d: UnpackDecodedRecord, w: UnpackWalkRecord, bias: Int, write: Int) -> Any:
    """Move the datums that `w` describes one at a time.

    Args:
        w: `t.unpack.walk`, see machine/unpacker_state.py; it is not changed.
        bias: register row = (output row + bias) & `w.row_mask`.
        write: False rehearses: all reads and checks, no register is written.

    Returns:
        The position after the last output datum, or REFUSED_WALK.
    """
    size = d.datum_size
    target = w.target
    bank = w.bank
    row_mask = w.row_mask
    data = w.datum
    exponents = w.exponents
    counts = w.counts
    index = w.index
    end = w.end
    drop = w.drop
    keep = w.keep
    out = w.out
    zero = w.zero
    first = index
    upsample = d.upsample_zeros
    is_compressed = d.uncompressed == 0
    while index < end and keep > 0:
        n = 0
        produced = 0
        while n < 16 and index < end and produced < drop + keep:
            t.unpack.zeros[n] = np.uint32(0)
            if not zero:
                if _is_outside(t, data, size, index):
                    return REFUSED_WALK
                t.unpack.bits[n] = np.uint32(_read(t, size, data))
                data += size
                if (index + 1) & (d.row_datums - 1) == 0:
                    data = wrap(d, data + d.row_stride - d.row_datums * size)
                exponent = d.forced_exp
                if d.exponent_section:
                    if _is_outside(t, exponents, np.int64(1), index):
                        return REFUSED_WALK
                    exponent = np.int64(t.l1[exponents >> 4])
                    exponents += 1
                    if exponents & 0xFF == 0:
                        exponents = wrap(d, exponents)
                t.unpack.exponents[n] = np.uint32(exponent)
                if is_compressed:
                    if _is_outside(t, counts, np.int64(8), index):
                        return REFUSED_WALK
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
        if zero:
            store16(t.unpack.cells, 0, splat16(0))
        else:
            bits = load16(t.unpack.bits, 0)
            shared = load16(t.unpack.exponents, 0)
            if d.normalise == NORMALISE_BFP_A:
                wrong = bfp_a_is_undefined(bits, shared, d.bfp_shift) & ((1 << n) - 1)
                if wrong:
                    lane = 0
                    while (wrong >> lane) & 1 == 0:
                        lane += 1
                    exponent = np.int64(t.unpack.exponents[lane])
                    refuse(t, faults.BFP_A_EXPONENT, index - n + lane - first, d.in_format, exponent)
                    return REFUSED_WALK
            store16(t.unpack.cells, 0, convert(d.normalise, d.layout, d.bfp_shift, bits, shared))
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
                            _place(t, target, bank, bias, row_mask, d.column_shift, out, cell if step == 0 else 0)
                        out += 1
                cell = np.int64(0)
    return out


@kernel
def _place(
    t: TileRecord, target: Int, bank: Int, bias: Int, row_mask: Int, column_shift: Int, out: Int, cell: Int
) -> None:
    """Store the output datum at position `out`, or drop it (U9)."""
    row = out >> 4
    column = out & 15
    if target in (TO_SRCA, TO_SRCA_TRANSPOSED):
        if row < BIAS_ROWS or column < column_shift:
            return
        column -= column_shift
    place_datum(t, target, bank, (row + bias) & row_mask, column, cell)


@kernel
def is_whole_rows(
    d: UnpackDecodedRecord, target: Int, out: Int, data: Int, exponents: Int, rows: Int, zero: Int
) -> bool:
    """True when `rows` whole rows may go through `walk_rows`: aligned at both ends, nothing between the datums."""
    if rows == 0 or out & 15 or d.upsample_zeros or d.column_shift or not d.uncompressed:
        return False
    if target in (TO_SRCA, TO_SRCA_TRANSPOSED) and (out >> 4) < BIAS_ROWS:
        return False
    if zero:
        return True
    size = d.datum_size
    if size < 16 and data & (16 * size - 1):
        return False
    return not (d.exponent_section and exponents & 15)


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
