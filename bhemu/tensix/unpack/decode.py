"""Decoded configuration of the unpackers (rules U2-U4, U6, U8, U12, I.5).

An UNPACR depends on about fifty fields. They are kept decoded in `t.unpack_decoded[unpacker, config bank, slot]`, a row
of int64; a slot is a context (0-7) or the single-context form. `refresh` decodes a row again when a word that it
depends on was written. Tile base addresses are not kept: software writes them for every tile.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.isa.registers import config
from bhemu.machine.config_access import UNPACK0_BIT, UNPACK1_BIT
from bhemu.machine.kernel import kernel
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
from bhemu.tensix.unpack import refusals
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

SINGLE: Final = 8
"""Slot of the single-context form (OvrdThreadId = 0)."""
CONTEXTS: Final = 8

# What DEST_MODE holds (U8)
DEST_NONE: Final = 0
DEST_ADD: Final = 1
DEST_REPLACE: Final = 2

# Positions in a decoded row: fields as they are ...
(
    IN_FORMAT,
    OUT_FORMAT,
    UNCOMPRESSED,
    NO_EXP_SECTION,
    BLOBS,
    X_DIM,
    Y_DIM,
    Z_DIM,
    W_DIM,
    BLOB_STARTS,
    BLOB_STARTS_HI,
    DIGEST,
    HALOIZE,
    TILEIZE,
    SRC_ROW_UPDATE,
    TO_DST,
    UPSAMPLE_ZEROS,
    INTERLEAVE,
    OVRD_FORMAT,
    COLUMN_SHIFT,
    STRIDE_NIBBLE1,
    STRIDE_NIBBLE2,
    FORCE_EXP,
    FORCED_EXP,
    CONTEXT_COUNT,
    COUNT_NON_LOG2,
    NON_LOG2_EN,
    LIMIT,
    FIFO,
    LIMIT_CNTX1,
    FIFO_CNTX1,
    LIMIT_CNTX1_EN,
    OUT_BASE,
    OUT_Y_STRIDE,
    OUT_Z_STRIDE,
    OUT_W_STRIDE,
    DEST_MODE,
    E4M3,
    UNSIGNED,
    THROTTLE,
    OVRD_THROTTLE,
) = range(41)
_FIELDS: Final = 41

# ... and what follows from them. Sizes in 1/16 byte: an exponent byte serves 16 datums, so a datum takes 1/16 of it.
(
    FAULT,  # code of the refusal that the configuration earns, 0 = none; up to OUT_SHIFT: a row of FORMATS
    DATUM_SIZE,
    ROW_SHIFT,  # log2 of the datums in an unpack row (U7)
    IS_BFP,
    BFP_SHIFT,
    NORMALISE,
    LAYOUT,
    TF32_TO_SRC,
    OUT_SHIFT,
    DEST_ADDRESS,
    Z_STRIDE,  # datums per Z step of the tile
    W_STRIDE,
    ROW_DATUMS,
    ROW_STRIDE,
    EXPONENT_SECTION,
    EXPONENT_SKIP,  # the part of the section that the datum address skips
    START_INDEX_SECTION,
    BURST_ROWS,
) = range(_FIELDS, _FIELDS + 18)

_PLAIN: Final = (
    (IN_FORMAT, "THCON_SEC{0}_REG0_TileDescriptor_in_data_format"),
    (OUT_FORMAT, "THCON_SEC{0}_REG2_Out_data_format"),
    (UNCOMPRESSED, "THCON_SEC{0}_REG0_TileDescriptor_uncompressed"),
    (NO_EXP_SECTION, "THCON_SEC{0}_REG0_TileDescriptor_no_bfp_exp_section"),
    (BLOBS, "THCON_SEC{0}_REG0_TileDescriptor_blobs_per_xy_plane"),
    (X_DIM, "THCON_SEC{0}_REG0_TileDescriptor_x_dim"),
    (Y_DIM, "THCON_SEC{0}_REG0_TileDescriptor_y_dim"),
    (Z_DIM, "THCON_SEC{0}_REG0_TileDescriptor_z_dim"),
    (W_DIM, "THCON_SEC{0}_REG0_TileDescriptor_w_dim"),
    (BLOB_STARTS, "THCON_SEC{0}_REG0_TileDescriptor_blobs_y_start_lo"),
    (BLOB_STARTS_HI, "THCON_SEC{0}_REG0_TileDescriptor_blobs_y_start_hi"),
    (DIGEST, "THCON_SEC{0}_REG0_TileDescriptor_digest_size"),
    (HALOIZE, "THCON_SEC{0}_REG2_Haloize_mode"),
    (TILEIZE, "THCON_SEC{0}_REG2_Tileize_mode"),
    (SRC_ROW_UPDATE, "THCON_SEC{0}_REG2_Unpack_Src_Reg_Set_Upd"),
    (TO_DST, "THCON_SEC{0}_REG2_Unpack_If_Sel"),
    (UPSAMPLE_ZEROS, "THCON_SEC{0}_REG2_Upsample_rate"),
    (INTERLEAVE, "THCON_SEC{0}_REG2_Upsample_and_interleave"),
    (OVRD_FORMAT, "THCON_SEC{0}_REG2_Ovrd_data_format"),
    (COLUMN_SHIFT, "THCON_SEC{0}_REG2_Shift_amount_cntx0"),
    (STRIDE_NIBBLE1, "THCON_SEC{0}_REG2_Shift_amount_cntx1"),
    (STRIDE_NIBBLE2, "THCON_SEC{0}_REG2_Shift_amount_cntx2"),
    (FORCE_EXP, "THCON_SEC{0}_REG2_Force_shared_exp"),
    (FORCED_EXP, "UNP{0}_FORCED_SHARED_EXP_shared_exp"),
    (CONTEXT_COUNT, "THCON_SEC{0}_REG2_Context_count"),
    (COUNT_NON_LOG2, "THCON_SEC{0}_REG2_Context_count_non_log2"),
    (NON_LOG2_EN, "THCON_SEC{0}_REG2_Context_count_non_log2_en"),
    (LIMIT, "THCON_SEC{0}_REG2_Unpack_limit_address"),
    (FIFO, "THCON_SEC{0}_REG2_Unpack_fifo_size"),
    (LIMIT_CNTX1, "THCON_SEC{0}_REG10_Unpack_limit_address"),
    (FIFO_CNTX1, "THCON_SEC{0}_REG10_Unpack_fifo_size"),
    (LIMIT_CNTX1_EN, "THCON_SEC{0}_REG10_Unpack_limit_address_en"),
    (OUT_BASE, "UNP{0}_ADDR_BASE_REG_1_Base"),
    (OUT_Y_STRIDE, "UNP{0}_ADDR_CTRL_XY_REG_1_Ystride"),
    (OUT_Z_STRIDE, "UNP{0}_ADDR_CTRL_ZW_REG_1_Zstride"),
    (OUT_W_STRIDE, "UNP{0}_ADDR_CTRL_ZW_REG_1_Wstride"),
    (DEST_MODE, "UNP{0}_ADD_DEST_ADDR_CNTR_add_dest_addr_cntr"),
    (E4M3, "THCON_SEC{0}_REG1_Unp_LF8_4b_exp"),
    (THROTTLE, "THCON_SEC{0}_REG2_Throttle_mode"),
    (OVRD_THROTTLE, "THCON_SEC{0}_REG1_ovrd_default_throttle_mode"),
)

Fields = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


def _plain_fields() -> Fields:
    table = np.zeros((2, _FIELDS, 3), np.int64)
    for unpacker in range(2):
        for position, name in _PLAIN:
            table[unpacker, position] = config(name.format(unpacker))
        table[unpacker, UNSIGNED] = config(f"ALU_FORMAT_SPEC_REG0_Src{'AB'[unpacker]}Unsigned")
    return table


def _context_fields(name: str, first: str | None = None, of: int = CONTEXTS) -> Fields:
    """(word, lsb, mask) [unpacker, context] of a field that each context has, or each of the first four (U3)."""
    table = np.zeros((2, CONTEXTS, 3), np.int64)
    for unpacker in range(2):
        for context in range(CONTEXTS):
            index = context % of
            pattern = first if first is not None and index == 0 else name
            table[unpacker, context] = config(pattern.format(unpacker, index, 3 + index // 4))
    return table


_FIELD: Final = _plain_fields()
_CNTX_UNCOMPRESSED: Final = _context_fields("THCON_SEC{0}_REG2_Disable_zero_compress_cntx{1}")
_CNTX_TO_DST: Final = _context_fields("THCON_SEC{0}_REG2_Unpack_if_sel_cntx{1}")
_CNTX_IN_FORMAT: Final = _context_fields("THCON_SEC{0}_REG7_Unpack_data_format_cntx{1}")
_CNTX_OUT_FORMAT: Final = _context_fields("THCON_SEC{0}_REG7_Unpack_out_data_format_cntx{1}")
_CNTX_SHIFT: Final = _context_fields("THCON_SEC{0}_REG2_Shift_amount_cntx{1}", of=4)
_CNTX_X_DIM: Final = _context_fields("THCON_SEC{0}_REG5_Tile_x_dim_cntx{1}", of=4)
_CNTX_DEST: Final = _context_fields("THCON_SEC{0}_REG5_Dest_cntx{1}_address", of=4)

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
    """FAULT .. OUT_SHIFT of a pair of formats (I.1, I.2, I.5)."""
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
        fault = refusals.NO_FORMAT
    elif not _may_become(source, target):
        fault = refusals.FORMAT_PAIR
    elif not to_dst and target in (FP32, INT32):
        fault = refusals.TOO_WIDE_FOR_SRC
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
"""What follows from the formats: [input format, output format, 0 Src or 1 Dst, position behind FAULT]."""

_BLOBS_01: Final = config("UNP0_BLOBS_Y_START_CNTX_01_blobs_y_start")
_BLOBS_23: Final = config("UNP0_BLOBS_Y_START_CNTX_23_blobs_y_start")


@kernel
def table_field(t, bank, table, unpacker, index):
    """Value of the field that `table` [unpacker, index] names."""
    word = np.int64(t.config[bank, table[unpacker, index, 0]])
    return (word >> table[unpacker, index, 1]) & table[unpacker, index, 2]


@kernel
def refresh(t, unpacker, bank, slot):
    """Decode the row of a slot again if a word that it depends on was written."""
    bit = UNPACK0_BIT if unpacker == 0 else UNPACK1_BIT
    if np.int64(t.config_dirty[bank]) & bit:
        t.unpack_decoded_slots[unpacker, bank] = 0
        t.config_dirty[bank] = np.uint32(np.int64(t.config_dirty[bank]) & ~bit)
    if (t.unpack_decoded_slots[unpacker, bank] >> slot) & 1 == 0:
        _decode(t, t.unpack_decoded[unpacker, bank, slot], unpacker, bank, slot)
        t.unpack_decoded_slots[unpacker, bank] |= 1 << slot


@kernel
def _decode(t, d, unpacker, bank, slot):
    for position in range(_FIELDS):
        d[position] = table_field(t, bank, _FIELD, unpacker, position)
    if unpacker == 1:
        d[TO_DST] = 0  # only unpacker 0 reaches Dst (U10)
    d[BLOB_STARTS] |= d[BLOB_STARTS_HI] << 16
    nibble0 = d[COLUMN_SHIFT]
    add_dest = d[DEST_MODE]
    d[DEST_MODE] = DEST_NONE
    d[DEST_ADDRESS] = 0
    if slot != SINGLE:
        d[UNCOMPRESSED] = table_field(t, bank, _CNTX_UNCOMPRESSED, unpacker, slot)
        d[COLUMN_SHIFT] = table_field(t, bank, _CNTX_SHIFT, unpacker, slot)
        if d[OVRD_FORMAT]:
            d[IN_FORMAT] = table_field(t, bank, _CNTX_IN_FORMAT, unpacker, slot)
            d[OUT_FORMAT] = table_field(t, bank, _CNTX_OUT_FORMAT, unpacker, slot)
        if unpacker == 0:
            d[TO_DST] = table_field(t, bank, _CNTX_TO_DST, unpacker, slot)
            d[X_DIM] = table_field(t, bank, _CNTX_X_DIM, unpacker, slot)
            d[DEST_ADDRESS] = table_field(t, bank, _CNTX_DEST, unpacker, slot)
            d[DEST_MODE] = DEST_ADD if d[TO_DST] or add_dest else DEST_REPLACE
            blobs = _BLOBS_23 if slot & 2 else _BLOBS_01
            d[BLOB_STARTS] = (np.int64(t.config[bank, blobs[0]]) >> blobs[1]) & blobs[2]
    if d[TILEIZE] or unpacker == 1:
        d[COLUMN_SHIFT] = 0  # U9
    d[UPSAMPLE_ZEROS] = (1 << d[UPSAMPLE_ZEROS]) - 1
    if slot == 1 and d[LIMIT_CNTX1_EN]:
        d[LIMIT] = d[LIMIT_CNTX1]
        d[FIFO] = d[FIFO_CNTX1]
    d[LIMIT] *= 256  # 16-byte units to 1/16 bytes
    d[FIFO] *= 256
    for position in range(OUT_SHIFT + 1 - FAULT):
        d[FAULT + position] = FORMATS[d[IN_FORMAT], d[OUT_FORMAT], 1 if d[TO_DST] else 0, position]
    if d[E4M3] and d[NORMALISE] == NORMALISE_E5M2:
        d[NORMALISE] = NORMALISE_E4M3
    elif d[UNSIGNED] and d[NORMALISE] == NORMALISE_INT8:
        d[NORMALISE] = NORMALISE_UINT8
    _decode_tile(d, nibble0)
    _decode_burst(d)
    if d[FAULT] == 0:
        d[FAULT] = _mode_fault(d, unpacker)


@kernel
def _decode_tile(d, nibble0):
    """Strides of the tile and sizes of its sections (U4, U5, U7)."""
    depth = max(d[Z_DIM], 1)
    count = max(d[W_DIM], 1)
    d[Z_STRIDE] = d[X_DIM] * d[Y_DIM]
    d[W_STRIDE] = d[Z_STRIDE] * depth
    d[Z_DIM] = depth
    d[W_DIM] = count
    d[EXPONENT_SECTION] = 1 if d[IS_BFP] and not d[FORCE_EXP] else 0
    d[EXPONENT_SKIP] = 0
    narrow = d[DATUM_SIZE] < 16
    if d[EXPONENT_SECTION] and not (narrow and d[NO_EXP_SECTION]):
        exponents = (d[W_STRIDE] * count + 15) // 16
        d[EXPONENT_SKIP] = ((exponents + 15) // 16) * 256
    rows = (d[BLOBS] if d[BLOBS] else d[Y_DIM]) * depth * count
    d[START_INDEX_SECTION] = 0 if d[UNCOMPRESSED] else (((rows + 1) * 2 + 15) // 16) * 256
    d[ROW_DATUMS] = 1 << d[ROW_SHIFT]
    d[ROW_STRIDE] = d[ROW_DATUMS] * d[DATUM_SIZE]
    if d[TILEIZE]:
        stride_bytes = (nibble0 << 4) | (d[STRIDE_NIBBLE1] << 8) | (d[STRIDE_NIBBLE2] << 12)
        d[ROW_STRIDE] = stride_bytes * 16


@kernel
def _decode_burst(d):
    """SrcA rows that the unpacker writes at a time (U12)."""
    size = d[DATUM_SIZE]
    if size == 4 or not d[UNCOMPRESSED] or d[UPSAMPLE_ZEROS] >= 3:
        throttle = 0
    elif d[TILEIZE]:
        throttle = 2
    elif d[OVRD_THROTTLE]:
        throttle = d[THROTTLE]
    else:
        throttle = 3 if size == 16 else 2
    bytes_a_cycle = 16 << throttle
    if throttle == 2 and size >= 32:
        bytes_a_cycle = 128
    d[BURST_ROWS] = min(max(bytes_a_cycle // size, 1), 8)  # 16 datums of `size` / 16 bytes make a row


@kernel
def _mode_fault(d, unpacker):
    """Refusal of modes that have no defined meaning together, 0 = none."""
    if d[HALOIZE] and unpacker == 1:
        return refusals.HALOIZE_SRCB
    if d[TO_DST] and d[HALOIZE]:
        return refusals.HALOIZE_DST
    if d[TO_DST] and d[COLUMN_SHIFT]:
        return refusals.COLUMN_SHIFT_DST
    if d[TILEIZE] and d[DATUM_SIZE] < 16:
        return refusals.TILEIZE_SUB_BYTE
    if d[TILEIZE] and not d[UNCOMPRESSED]:
        return refusals.TILEIZE_COMPRESSED
    if d[TILEIZE] and d[UPSAMPLE_ZEROS]:
        return refusals.TILEIZE_UPSAMPLE
    return 0
