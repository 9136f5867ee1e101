"""Decoded configuration: the fields of one bank and register group, copied and worked up in `t.pack` (P3).

Decoded again when a word changed, or when the bank or the context is another one. What the configuration may not ask
for is refused here, so that the stages need not look.
"""

# ruff: noqa: SIM109  (compiled code: `in` on a tuple costs compile time)
from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.machine.decoded import copy_fields
from bhemu.machine.faults import DONE, REFUSED, open_choice, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.packer_state import COPIES, EDGE_MAPS, FACE_MAPS, UNSETTLED
from bhemu.machine.types import Int, PackRecord, TileRecord
from bhemu.tensix.format_codes import BF16, BFP2, BFP2A, BFP4, BFP4A, FP8, FP16, FP32, INT32, TF32
from bhemu.tensix.pack import faults
from bhemu.tensix.pack.conversions import NONE, early_rule, family_a, family_b, kind_of, late_steps
from bhemu.tensix.pack.formats import KIND_BF16, KIND_FP16, KIND_FP32, KIND_INT8, KIND_INT32
from bhemu.tensix.pack.relu import NO_SIGN
from bhemu.tensix.pack.row_pairs import are_bf16_pairs

_POSITIONS: Final = COPIES.positions
_EDGE_POSITIONS: Final = EDGE_MAPS.positions

NO_MASK: Final = 0xFFFF
"""Edge or downsample mask that passes all sixteen columns."""

# The codes as plain names: compiled code takes module globals as constants.
_FORMAT_MISMATCH: Final = faults.FORMAT_MISMATCH
_NO_EARLY: Final = faults.NO_EARLY_CONVERSION
_NO_LATE: Final = faults.NO_LATE_CONVERSION
_FP8_CONTEXT: Final = faults.FP8_CONTEXT
_DESCALE_BY_Z: Final = faults.DESCALE_BY_Z
_RELU_NEGATIVE: Final = faults.RELU_NEGATIVE
_RELU_INTEGER: Final = faults.RELU_INTEGER
_EDGE_INTEGER: Final = faults.EDGE_INFINITY_INTEGER
_EDGE_FP16: Final = faults.EDGE_INFINITY_FP16
_ACCUMULATE_FORMAT: Final = faults.ACCUMULATE_FORMAT
_ACCUMULATE_INT32: Final = faults.ACCUMULATE_INT32
_ACCUMULATE_COMPRESSED: Final = faults.ACCUMULATE_COMPRESSED
_COMPRESS_BFP2: Final = faults.COMPRESS_BFP2
_RATE: Final = faults.DOWNSAMPLE_RATE
_STOCHASTIC: Final = faults.STOCHASTIC
_L1_SOURCE_OPEN: Final = faults.L1_SOURCE
_L1_SOURCE_FORMAT: Final = faults.L1_SOURCE_FORMAT
_AUTO_INTERFACES_OPEN: Final = faults.AUTO_INTERFACES
_XYS_OPEN: Final = faults.XYS_PER_TILE
_UNSETTLED: Final = np.array(
    [
        faults.SHARED_EXPONENT_OFF,
        faults.OUT_FIFO,
        faults.START_INTERFACE,
        faults.Y_START,
        faults.UNPACK_TILE_OFFSET,
    ],
    np.int64,
)
_AUTO_LAST: Final = faults.AUTO_LAST


@kernel
def _decode_input(t: TileRecord) -> Int:
    pack = t.pack
    width = pack.in_format & 3
    pack.size_shift = 2 if width == 0 else 1 if width == 1 else 0
    pack.column_mask = 3 if width == 0 else 7 if width == 1 else 15
    pack.x_stride &= 15
    if pack.source_l1 != 0:
        if not open_choice(t, _L1_SOURCE_OPEN):
            return REFUSED
        if pack.in_format == TF32:
            return refuse(t, _L1_SOURCE_FORMAT, pack.in_format)
    return DONE


@kernel
def _decode_formats(t: TileRecord, context: Int) -> Int:
    pack = t.pack
    in_format, out_format = pack.in_format, pack.out_format
    intermediate = pack.intermediate_instead if pack.intermediate_override != 0 else pack.intermediate
    read_32b, raw, round_10b = pack.read_32b, pack.raw, pack.round_10b
    early_format = intermediate
    if intermediate != in_format:
        # The documents have one pair that differs: BF16 rounded to TF32 before FP16.
        through_tf32 = intermediate == BF16 and in_format == TF32 and out_format == FP16 and round_10b != 0 and raw == 0
        if not through_tf32:
            return refuse(t, _FORMAT_MISMATCH, intermediate, in_format)
        early_format = TF32
    rule = early_rule(read_32b, early_format, raw, pack.unsigned, round_10b)
    kind = kind_of(in_format)
    if kind == NONE or (rule == NONE and pack.source_l1 == 0):
        return refuse(t, _NO_EARLY, intermediate, read_32b, raw, round_10b)
    e4m3 = 0
    if out_format == FP8:
        if context & 1 != 0 and not open_choice(t, _FP8_CONTEXT, context):
            return REFUSED
        e4m3 = pack.e4m3
    widen, narrow, last = late_steps(in_format, out_format, e4m3)
    if last == NONE:
        return refuse(t, _NO_LATE, in_format, out_format)
    pack.early = rule
    pack.kind = kind
    pack.fp8 = 1 if in_format == FP8 else 0
    pack.narrow = 1 if read_32b != 0 and in_format == FP16 else 0
    pack.late_widen = widen
    pack.late_narrow = narrow
    pack.late_final = last
    pack.bfp_family_a = 1 if family_a(out_format) else 0
    width = out_format & 3
    if width == 3:
        bits = 4 if out_format == BFP4 or out_format == BFP4A else 2
    else:
        bits = 32 >> width
    pack.datum_bits = bits
    pack.bfp_bits = bits if family_a(out_format) or family_b(out_format) else 0
    pack.descale = 0
    pack.descale_by_z = 0
    if pack.descale_on != 0:
        if pack.descale_mode != 0 and not open_choice(t, _DESCALE_BY_Z):
            return REFUSED
        pack.descale_by_z = pack.descale_mode
        pack.descale = pack.descale_value & 31
    return DONE


@kernel
def _decode_relu(t: TileRecord) -> Int:
    """ReLU and the exponent field; `kind` is decoded. FP16 out of 32-bit Dst is TF32 until after the ReLU (P6)."""
    pack = t.pack
    kind = KIND_FP32 if pack.narrow != 0 else pack.kind
    mode = pack.relu & 3
    limit = pack.relu_limit
    if mode >= 2:
        if kind >= KIND_INT32:
            return refuse(t, _RELU_INTEGER, mode, pack.in_format)
        if limit & 0x8000 != 0:
            return refuse(t, _RELU_NEGATIVE, limit, mode)
    pack.relu = mode
    pack.relu_threshold = limit << 16 if kind == KIND_FP32 else limit
    if kind == KIND_FP32 or kind == KIND_INT32:
        pack.relu_sign = 31
    elif kind == KIND_INT8:
        pack.relu_sign = NO_SIGN if pack.unsigned != 0 else 7
    else:
        pack.relu_sign = 15
    kind = pack.kind
    pack.exponent_shift = 23 if kind == KIND_FP32 or kind == KIND_INT32 else 7 if kind == KIND_BF16 else 0
    pack.exponent_mask = 0 if kind == KIND_INT8 else 0xFF
    if kind == KIND_FP16:
        pack.exponent_shift = 10
        pack.exponent_mask = 0x1F
    return DONE


@kernel
def _edge_row(pack: PackRecord, z: Int, rows: Int) -> None:
    """Masks of the sixteen Y positions by one TILE_ROW_SET_MAPPING register."""
    for y in range(16):
        mask = pack.edge_masks[pack.edge_maps[rows * 16 + y]]
        pack.edge_mask[z, y] = mask
        if mask != NO_MASK:
            pack.edge_free = 0


@kernel
def _decode_edges(t: TileRecord, bank: Int) -> Int:
    pack = t.pack
    pack.edge_faces = 0
    pack.edge_free = 1
    pack.edge_fill = 0
    for i in range(4):
        if pack.edge_masks[i] != NO_MASK:
            pack.edge_free = 0
    if pack.edge_free != 0 and pack.descale_by_z == 0:
        return DONE
    copy_fields(t, bank, 0, _EDGE_POSITIONS, 0, pack.edge_maps)
    pack.edge_free = 1
    if pack.face_enable != 0:
        pack.edge_faces = 15
        faces = pack.face_select & 3
        for z in range(16):
            _edge_row(pack, z, pack.edge_maps[FACE_MAPS + faces * 16 + z])
    else:
        _edge_row(pack, np.int64(0), pack.row_select & 3)
    if pack.edge_free == 0 and pack.edge_mode != 0:
        kind = KIND_FP32 if pack.narrow != 0 else pack.kind
        if kind >= KIND_INT32:
            return refuse(t, _EDGE_INTEGER, pack.in_format)
        if pack.kind == KIND_FP16 and not open_choice(t, _EDGE_FP16, pack.in_format):
            return REFUSED
        pack.edge_fill = 0xFF800000 if kind == KIND_FP32 else 0xFF80 if kind == KIND_BF16 else 0xFC00
    if pack.descale_by_z != 0:
        pack.edge_free = 0  # the position must be right at every row, not only after the last
    return DONE


@kernel
def _decode_output(t: TileRecord) -> Int:
    pack = t.pack
    out_format = pack.out_format
    pack.l1_address = pack.dest_address + 1 - pack.sub_header
    pack.has_exp_section = (out_format >> 1) & 1
    pack.zero_flags = 1 - pack.no_zero_flags
    pack.compressed = 1 - pack.no_compress
    if pack.compressed != 0 and (out_format == BFP2 or out_format == BFP2A):
        return refuse(t, _COMPRESS_BFP2, out_format)
    if pack.accumulate != 0:
        if pack.compressed != 0:
            return refuse(t, _ACCUMULATE_COMPRESSED)
        if out_format == INT32:
            if not open_choice(t, _ACCUMULATE_INT32):
                return REFUSED
        elif out_format != FP32 and out_format != FP16 and out_format != BF16:
            return refuse(t, _ACCUMULATE_FORMAT, out_format)
    return DONE


@kernel
def _decode_controls(t: TileRecord) -> Int:
    pack = t.pack
    for i in range(UNSETTLED):
        if pack.unsettled[i] != 0:
            return refuse(t, _UNSETTLED[i], pack.unsettled[i])
    if pack.per_plane != 0:
        return refuse(t, _AUTO_LAST, pack.per_plane)
    stochastic = pack.gasket_stochastic | (pack.stochastic << 1)
    if stochastic != 0 and not open_choice(t, _STOCHASTIC, stochastic):
        return REFUSED
    if pack.xys_per_tile != 0 and not open_choice(t, _XYS_OPEN, pack.xys_per_tile):
        return REFUSED
    if pack.downsample_rate != 0 and not open_choice(t, _RATE, pack.downsample_rate):
        return REFUSED
    if pack.auto_interfaces != 0 and not open_choice(t, _AUTO_INTERFACES_OPEN):
        return REFUSED
    if pack.downsample == 0:
        pack.downsample = NO_MASK
    if pack.threshold_on == 0 or pack.kind > KIND_FP16:
        pack.threshold = 0
    return DONE


@kernel
def decode(t: TileRecord, bank: Int, context: Int) -> Int:
    """Fill the decoded fields of `t.pack`; returns DONE or REFUSED."""
    copy_fields(t, bank, 0, _POSITIONS, context, t.pack.copied)
    if _decode_input(t) != DONE:
        return REFUSED
    if _decode_formats(t, context) != DONE:
        return REFUSED
    if _decode_relu(t) != DONE:
        return REFUSED
    if _decode_edges(t, bank) != DONE:
        return REFUSED
    if _decode_output(t) != DONE or _decode_controls(t) != DONE:
        return REFUSED
    t.pack.bf16_pairs = 1 if are_bf16_pairs(t.pack) else 0
    return DONE
