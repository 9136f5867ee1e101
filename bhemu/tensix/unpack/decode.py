"""Decoded configuration of the unpackers (rules U2-U4, U6, U8, U12, I.5).

An UNPACR depends on about fifty fields. They are kept decoded in `t.unpack.decoded[config bank, slot, unpacker]`; a
slot is a context (0-7) or the single-context form. `settings` decodes it again when a word that it depends on was
written. Tile base addresses are not kept: software writes them for every tile.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.isa.registers import config
from bhemu.machine.config_access import UNPACK0_BIT, UNPACK1_BIT
from bhemu.machine.decoded import copy_fields
from bhemu.machine.kernel import kernel
from bhemu.machine.types import AnyInt, Int, Record, Table, TileRecord, UnpackDecodedRecord
from bhemu.machine.unpacker_state import CONTEXTS, COPIES, OF_FORMATS, SINGLE
from bhemu.tensix.format_codes import (
    BF16,
    BFP2,
    BFP2A,
    BFP4,
    BFP4A,
    BFP8,
    BFP8A,
    FP8,
    FP16,
    FP32,
    INT8,
    INT16,
    INT32,
    TF32,
)
from bhemu.tensix.unpack import faults
from bhemu.tensix.unpack.convert import (
    LAYOUT_DST_16,
    LAYOUT_DST_32,
    LAYOUT_DST_BF16,
    LAYOUT_DST_FP16,
    LAYOUT_SRC_BF16,
    LAYOUT_SRC_FP16,
    LAYOUT_SRC_INT16,
    LAYOUT_SRC_TF32,
    NORMALISE_BFP,
    NORMALISE_BFP_A,
    NORMALISE_E4M3,
    NORMALISE_E5M2,
    NORMALISE_FP32_TO_BF16,
    NORMALISE_FP32_TO_FP16,
    NORMALISE_FP32_TO_TF32,
    NORMALISE_INT8,
    NORMALISE_NONE,
    NORMALISE_UINT8,
)

# What `dest_mode` holds (U8)
DEST_NONE: Final = 0
DEST_ADD: Final = 1
DEST_REPLACE: Final = 2

Fields = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


def _context_fields(name: str, first: str, of: int = CONTEXTS) -> Fields:
    """(word, lsb, mask) [unpacker, context] of a field that each context has, or each of the first four (U3)."""
    table = np.zeros((2, CONTEXTS, 3), np.int64)
    for unpacker in range(2):
        for context in range(CONTEXTS):
            index = context % of
            pattern = first if index == 0 else name
            table[unpacker, context] = config(pattern.format(unpacker, index, 3 + index // 4))
    return table


BASE: Final = _context_fields("THCON_SEC{0}_REG{2}_Base_cntx{1}_address", first="THCON_SEC{0}_REG3_Base_address")
"""Tile base address [unpacker, context]."""
OFFSET: Final = _context_fields(
    "THCON_SEC{0}_REG7_Offset_cntx{1}_address", first="THCON_SEC{0}_REG7_Offset_address", of=4
)
"""Offset that is added to it."""

_BFP_SHIFT: Final = {BFP8: 0, BFP8A: 0, BFP4: 4, BFP4A: 4, BFP2: 6, BFP2A: 6}
_SRC_LAYOUT: Final = {BF16: LAYOUT_SRC_BF16, FP16: LAYOUT_SRC_FP16, INT16: LAYOUT_SRC_INT16, TF32: LAYOUT_SRC_TF32}
_DST_LAYOUT: Final = {BF16: LAYOUT_DST_BF16, FP16: LAYOUT_DST_FP16, INT16: LAYOUT_DST_16}
_FROM_FP32: Final = {BF16: NORMALISE_FP32_TO_BF16, FP16: NORMALISE_FP32_TO_FP16}


_SAME: Final = (BFP8, BFP4, BFP2)
"""LLK's compressed matrix multiplication changes the input format among these and leaves the output format alone."""


def _may_become(source: int, target: int) -> bool:
    """True when a pair of formats has a meaning: FP32 may become another, the width of BFP datums does not count (I.5).

    The output format of all but FP32 says nothing that the input format does not say already.
    """
    if source == FP32:
        return target in (FP32, TF32, BF16, FP16)
    return source == target or (source in _SAME and target in _SAME)


def _format_row(source: int, target: int, to_dst: bool) -> list[int]:
    """OF_FORMATS of a pair of formats (I.1, I.2, I.5)."""
    shift = _BFP_SHIFT.get(source, 0)
    size = {4: 8, 6: 4}[shift] if shift else 64 >> min(source & 3, 2)
    layout_of = target
    normalise = NORMALISE_NONE
    if source == FP32:
        normalise = _FROM_FP32.get(target, NORMALISE_NONE if to_dst else NORMALISE_FP32_TO_TF32)
    elif source == TF32 and not to_dst:
        normalise = NORMALISE_FP32_TO_TF32
    elif source in (FP8, INT8):
        layout_of, normalise = FP16, NORMALISE_E5M2 if source == FP8 else NORMALISE_INT8
    elif source in (BFP8, BFP4, BFP2):
        layout_of, normalise = BF16, NORMALISE_BFP
    elif source in (BFP8A, BFP4A, BFP2A):
        layout_of, normalise = FP16, NORMALISE_BFP_A
    fault = 0
    if source in (12, 13):
        fault = faults.NO_FORMAT
    elif not _may_become(source, target):
        fault = faults.FORMAT_PAIR
    elif not to_dst and target in (FP32, INT32):
        fault = faults.TOO_WIDE_FOR_SRC
    layout = _DST_LAYOUT.get(layout_of, LAYOUT_DST_32) if to_dst else _SRC_LAYOUT.get(layout_of, LAYOUT_SRC_TF32)
    tf32_to_src = int(source == TF32 and not to_dst)
    out_shift = {0: 2, 1: 1}.get(target & 3, 0)
    return [
        fault,
        size,
        5 if size > 16 else 4,
        int(source in _BFP_SHIFT),
        shift,
        normalise,
        layout,
        tf32_to_src,
        out_shift,
    ]


FORMATS: Final = np.array(
    [
        [[_format_row(source, target, to_dst) for to_dst in (False, True)] for target in range(16)]
        for source in range(16)
    ],
    np.int64,
)
"""What follows from the formats: [input format, output format, 0 Src or 1 Dst, attribute of OF_FORMATS]."""

_POSITIONS: Final = np.stack([copies.positions for copies in COPIES])
_FORMAT_ATTRIBUTES: Final = len(OF_FORMATS)


@kernel
def table_field(t: TileRecord, bank: Int, table: Table, unpacker: Int, index: Int) -> AnyInt:
    """Value of the field that `table` [unpacker, index] names."""
    word = np.int64(t.config[bank, table[unpacker, index, 0]])
    return (word >> table[unpacker, index, 1]) & table[unpacker, index, 2]


@kernel
def settings(t: TileRecord, unpacker: Int, bank: Int, slot: Int) -> Record:
    """Decoded configuration of a slot, decoded again if a word that it depends on was written."""
    unpack = t.unpack
    bit = UNPACK0_BIT if unpacker == 0 else UNPACK1_BIT
    if np.int64(t.config_dirty[bank]) & bit:
        unpack.decoded_slots[unpacker, bank] = 0
        t.config_dirty[bank] = np.uint32(np.int64(t.config_dirty[bank]) & ~bit)
    if (unpack.decoded_slots[unpacker, bank] >> slot) & 1 == 0:
        d = unpack.decoded[bank, slot, unpacker]
        copy_fields(t, bank, 0, _POSITIONS[unpacker], slot, d.copied)
        _decode(d, unpacker, slot)
        unpack.decoded_slots[unpacker, bank] |= 1 << slot
    return unpack.decoded[bank, slot, unpacker]


@kernel
def _decode(d: UnpackDecodedRecord, unpacker: Int, slot: Int) -> None:
    """Work up the copied fields."""
    d.blob_starts |= d.blob_starts_hi << 16
    d.dest_mode = DEST_NONE
    if slot != SINGLE and unpacker == 0:
        d.dest_mode = DEST_ADD if d.to_dst or d.add_dest else DEST_REPLACE
    if d.ovrd_format:
        d.in_format = d.in_format_instead
        d.out_format = d.out_format_instead
    if d.tileize:
        d.column_shift = 0  # U9
    d.upsample_zeros = (1 << d.upsample_rate) - 1
    if d.own_limit_en:
        d.limit = d.own_limit
        d.fifo = d.own_fifo
    d.limit *= 256  # 16-byte units to 1/16 bytes
    d.fifo *= 256
    for i in range(_FORMAT_ATTRIBUTES):
        d.of_formats[i] = FORMATS[d.in_format, d.out_format, 1 if d.to_dst else 0, i]
    if d.e4m3 and d.normalise == NORMALISE_E5M2:
        d.normalise = NORMALISE_E4M3
    elif d.unsigned and d.normalise == NORMALISE_INT8:
        d.normalise = NORMALISE_UINT8
    _decode_tile(d)
    _decode_burst(d)
    if d.fault == 0:
        d.fault = _mode_fault(d, unpacker)


@kernel
def _decode_tile(d: UnpackDecodedRecord) -> None:
    """Strides of the tile and sizes of its sections (U4, U5, U7)."""
    depth = max(d.z_dim, 1)
    count = max(d.w_dim, 1)
    d.z_stride = d.x_dim * d.y_dim
    d.w_stride = d.z_stride * depth
    d.z_dim = depth
    d.w_dim = count
    d.exponent_section = 1 if d.is_bfp and not d.force_exp else 0
    d.exponent_skip = 0
    narrow = d.datum_size < 16
    if d.exponent_section and not (narrow and d.no_exp_section):
        exponents = (d.w_stride * count + 15) // 16
        d.exponent_skip = ((exponents + 15) // 16) * 256
    rows = (d.blobs if d.blobs else d.y_dim) * depth * count
    d.start_index_section = 0 if d.uncompressed else (((rows + 1) * 2 + 15) // 16) * 256
    d.row_datums = 1 << d.row_shift
    d.row_stride = d.row_datums * d.datum_size
    if d.tileize:
        stride_bytes = (d.stride_nibble0 << 4) | (d.stride_nibble1 << 8) | (d.stride_nibble2 << 12)
        d.row_stride = stride_bytes * 16


@kernel
def _decode_burst(d: UnpackDecodedRecord) -> None:
    """SrcA rows that the unpacker writes at a time (U12)."""
    size = d.datum_size
    if size == 4 or not d.uncompressed or d.upsample_zeros >= 3:
        throttle = 0
    elif d.tileize:
        throttle = 2
    elif d.ovrd_throttle:
        throttle = d.throttle
    else:
        throttle = 3 if size == 16 else 2
    bytes_a_cycle = 16 << throttle
    if throttle == 2 and size >= 32:
        bytes_a_cycle = 128
    d.burst_rows = min(max(bytes_a_cycle // size, 1), 8)  # 16 datums of `size` / 16 bytes make a row


@kernel
def _mode_fault(d: UnpackDecodedRecord, unpacker: Int) -> Int:
    """Refusal of modes that have no defined meaning together, 0 = none."""
    if d.haloize and unpacker == 1:
        return faults.HALOIZE_SRCB
    if d.to_dst and d.haloize:
        return faults.HALOIZE_DST
    if d.to_dst and d.column_shift:
        return faults.COLUMN_SHIFT_DST
    if d.tileize and d.datum_size < 16:
        return faults.TILEIZE_SUB_BYTE
    if d.tileize and not d.uncompressed:
        return faults.TILEIZE_COMPRESSED
    if d.tileize and d.upsample_zeros:
        return faults.TILEIZE_UPSAMPLE
    return 0
