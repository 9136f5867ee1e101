"""Decoded configuration: the Config words of one bank and register group, as the fields of `t.pack` (P3).

Decoded again when a word changed, or when the bank or the context is another one. What the configuration may not ask
for is refused here, so that the stages need not look.
"""

# ruff: noqa: SIM109  (compiled code: `in` on a tuple costs compile time)
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.machine.config_access import config_field
from bhemu.machine.faults import DONE, REFUSED, open_choice, refuse
from bhemu.machine.kernel import kernel
from bhemu.tensix.format_codes import BF16, BFP2, BFP2A, BFP4, BFP4A, FP8, FP16, FP32, INT32, TF32
from bhemu.tensix.pack import faults
from bhemu.tensix.pack.conversions import NONE, early_rule, family_a, family_b, kind_of, late_steps
from bhemu.tensix.pack.fields import Positions, config, positions
from bhemu.tensix.pack.formats import KIND_BF16, KIND_FP16, KIND_FP32, KIND_INT8, KIND_INT32
from bhemu.tensix.pack.relu import NO_SIGN

GROUPS: Final = ("THCON_SEC0_REG1", "THCON_SEC0_REG8", "THCON_SEC1_REG1", "THCON_SEC1_REG8")
"""Register group of each context (P3)."""
FIFOS: Final = (
    "THCON_SEC0_REG9_Pack_0_2",
    "THCON_SEC0_REG9_Pack_1_3",
    "THCON_SEC1_REG9_Pack_0_2",
    "THCON_SEC1_REG9_Pack_1_3",
)
"""L1 FIFO registers of each context (P11)."""


def _grouped(field: str) -> Positions:
    """Position of a field in the register group of each context."""
    return positions([f"{group}_{field}" for group in GROUPS])


_ROW_START_SIZE: Final = _grouped("Row_start_section_size")
_EXP_SIZE: Final = _grouped("Exp_section_size")
_L1_DEST_ADDR: Final = _grouped("L1_Dest_addr")
_NO_COMPRESS: Final = _grouped("Disable_zero_compress")
_ADD_OFFSET: Final = _grouped("Add_l1_dest_addr_offset")
_NO_ZERO_FLAGS: Final = _grouped("Disable_pack_zero_flags")
_OUT_FORMAT: Final = _grouped("Out_data_format")
_IN_FORMAT: Final = _grouped("In_data_format")
_NO_ASSEMBLER: Final = _grouped("Dis_shared_exp_assembler")
_AUTO_INTERFACES: Final = _grouped("Auto_set_last_pacr_intf_sel")
_OUT_FIFO: Final = _grouped("Enable_out_fifo")
_SUB_HEADER: Final = _grouped("Sub_l1_tile_header_size")
_SOURCE: Final = _grouped("Source_interface_selection")
_START_INTERFACE: Final = _grouped("pack_start_intf_pos")
_ADD_HEADER: Final = _grouped("Add_tile_header_size")
_Y_START: Final = _grouped("pack_dis_y_pos_start_offset")
_UNPACK_TILE_OFFSET: Final = _grouped("unpack_tile_offset")
_L1_SOURCE: Final = _grouped("L1_source_addr")
_DOWNSAMPLE_MASK: Final = _grouped("Downsample_mask")
_DOWNSAMPLE_RATE: Final = _grouped("Downsample_rate")
_L1_ACC: Final = _grouped("Pack_L1_Acc")
_THRESHOLD_ON: Final = _grouped("Exp_threshold_en")
_THRESHOLD: Final = _grouped("Exp_threshold")
_E4M3: Final = positions([f"{GROUPS[c & 2]}_Pac_LF8_4b_exp" for c in range(4)])
_FIFO_LIMIT: Final = positions([f"{name}_limit_address" for name in FIFOS])
_FIFO_SIZE: Final = positions([f"{name}_fifo_size" for name in FIFOS])

_DSTACC: Final = config("ALU_FORMAT_SPEC_REG2_Dstacc")
_DSTACC_VAL: Final = config("ALU_FORMAT_SPEC_REG_Dstacc_val")
_DSTACC_OVERRIDE: Final = config("ALU_FORMAT_SPEC_REG_Dstacc_override")
_GASKET_SRND: Final = config("ALU_ROUNDING_MODE_Gasket_srnd_en")
_PACKER_SRND: Final = config("ALU_ROUNDING_MODE_Packer_srnd_en")
_APPLY_RELU: Final = config("STACC_RELU_ApplyRelu")
_RELU_THRESHOLD: Final = config("STACC_RELU_ReluThreshold")
_DESCALE_ON: Final = config("INT_DESCALE_Enable")
_DESCALE_MODE: Final = config("INT_DESCALE_Mode")
_DESCALE_VALUE: Final = config("INT_DESCALE_VALUES_SEC0_Value")
_X0_STRIDE: Final = config("PCK0_ADDR_CTRL_XY_REG_0_Xstride")
_Y0_STRIDE: Final = config("PCK0_ADDR_CTRL_XY_REG_0_Ystride")
_Z0_STRIDE: Final = config("PCK0_ADDR_CTRL_ZW_REG_0_Zstride")
_W0_STRIDE: Final = config("PCK0_ADDR_CTRL_ZW_REG_0_Wstride")
_Y1_STRIDE: Final = config("PCK0_ADDR_CTRL_XY_REG_1_Ystride")
_Z1_STRIDE: Final = config("PCK0_ADDR_CTRL_ZW_REG_1_Zstride")
_W1_STRIDE: Final = config("PCK0_ADDR_CTRL_ZW_REG_1_Wstride")
_BASE0: Final = config("PCK0_ADDR_BASE_REG_0_Base")
_BASE1: Final = config("PCK0_ADDR_BASE_REG_1_Base")
_READ_32B: Final = config("PCK_DEST_RD_CTRL_Read_32b_data")
_READ_UNSIGNED: Final = config("PCK_DEST_RD_CTRL_Read_unsigned")
_READ_RAW: Final = config("PCK_DEST_RD_CTRL_Read_int8")
_ROUND_10B: Final = config("PCK_DEST_RD_CTRL_Round_10b_mant")
_FACE_SELECT: Final = config("PCK_EDGE_TILE_FACE_SET_SELECT_select")
_FACE_ENABLE: Final = config("PCK_EDGE_TILE_FACE_SET_SELECT_enable")
_ROW_SELECT: Final = config("PCK_EDGE_TILE_ROW_SET_SELECT_select")
_EDGE_MODE: Final = config("PCK_EDGE_MODE_mode")
_EDGE_MASKS: Final = positions([f"PCK_EDGE_OFFSET_SEC{i}_mask" for i in range(4)])
_ROW_MAPS: Final = positions([f"TILE_ROW_SET_MAPPING_{b}_row_set_mapping_{y}" for b in range(4) for y in range(16)])
_FACE_MAPS: Final = positions([f"TILE_FACE_SET_MAPPING_{a}_face_set_mapping_{z}" for a in range(4) for z in range(16)])
_PER_PLANE: Final = config("PACK_COUNTERS_SEC0_pack_per_xy_plane")
_READS: Final = config("PACK_COUNTERS_SEC0_pack_reads_per_xy_plane")
_XYS_PER_TILE: Final = config("PACK_COUNTERS_SEC0_pack_xys_per_tile")
_YZ_TRANSPOSED: Final = config("PACK_COUNTERS_SEC0_pack_yz_transposed")
_PLANES_PER_CONTEXT: Final = config("PACK_COUNTERS_SEC0_auto_ctxt_inc_xys_cnt")
_DST_OFFSET: Final = config("DEST_TARGET_REG_CFG_PACK_SEC0_Offset")
_Z_OFFSET: Final = config("DEST_TARGET_REG_CFG_PACK_SEC0_ZOffset")
_SWIZZLE: Final = config("DEST_ACCESS_CFG_swizzle_32b")
_REMAP: Final = config("DEST_ACCESS_CFG_remap_addrs")

NO_MASK: Final = 0xFFFF
"""Edge or downsample mask that lets all sixteen columns pass."""

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
_UNSETTLED_FIELDS: Final = np.stack([_NO_ASSEMBLER, _OUT_FIFO, _START_INTERFACE, _Y_START, _UNPACK_TILE_OFFSET])
_AUTO_LAST: Final = faults.AUTO_LAST


@kernel
def _read(t, bank, positions, index):
    """Field `index` of a table of positions; all of them are words that each bank has of its own."""
    word = np.int64(t.config[bank, positions[index, 0]])
    return (word >> positions[index, 1]) & positions[index, 2]


@kernel
def _decode_input(t, bank, context, in_format):
    pack = t.pack
    width = in_format & 3
    pack.size_shift = 2 if width == 0 else 1 if width == 1 else 0
    pack.column_mask = 3 if width == 0 else 7 if width == 1 else 15
    pack.input_base = config_field(t, bank, _BASE0)
    pack.x_stride = config_field(t, bank, _X0_STRIDE) & 15
    pack.y_stride = config_field(t, bank, _Y0_STRIDE)
    pack.z_stride = config_field(t, bank, _Z0_STRIDE)
    pack.w_stride = config_field(t, bank, _W0_STRIDE)
    pack.dst_offset = config_field(t, bank, _DST_OFFSET)
    pack.remap = config_field(t, bank, _REMAP)
    pack.swizzle = config_field(t, bank, _SWIZZLE)
    pack.source_l1 = _read(t, bank, _SOURCE, context)
    pack.l1_source = _read(t, bank, _L1_SOURCE, context)
    if pack.source_l1 != 0:
        if not open_choice(t, _L1_SOURCE_OPEN):
            return REFUSED
        if in_format == TF32:
            return refuse(t, _L1_SOURCE_FORMAT, in_format)
    return DONE


@kernel
def _decode_formats(t, bank, context, in_format, out_format):
    pack = t.pack
    intermediate = config_field(t, bank, _DSTACC)
    if config_field(t, bank, _DSTACC_OVERRIDE) != 0:
        intermediate = config_field(t, bank, _DSTACC_VAL)
    read_32b = config_field(t, bank, _READ_32B)
    raw = config_field(t, bank, _READ_RAW)
    unsigned = config_field(t, bank, _READ_UNSIGNED)
    round_10b = config_field(t, bank, _ROUND_10B)
    early_format = intermediate
    if intermediate != in_format:
        # The documents have one pair that differs: BF16 rounded to TF32 on the way to FP16.
        through_tf32 = intermediate == BF16 and in_format == TF32 and out_format == FP16 and round_10b != 0 and raw == 0
        if not through_tf32:
            return refuse(t, _FORMAT_MISMATCH, intermediate, in_format)
        early_format = TF32
    rule = early_rule(read_32b, early_format, raw, unsigned, round_10b)
    kind = kind_of(in_format)
    if kind == NONE or (rule == NONE and pack.source_l1 == 0):
        return refuse(t, _NO_EARLY, intermediate, read_32b, raw, round_10b)
    e4m3 = 0
    if out_format == FP8:
        if context & 1 != 0 and not open_choice(t, _FP8_CONTEXT, context):
            return REFUSED
        e4m3 = _read(t, bank, _E4M3, context)
    widen, narrow, last = late_steps(in_format, out_format, e4m3)
    if last == NONE:
        return refuse(t, _NO_LATE, in_format, out_format)
    pack.read_32b = read_32b
    pack.early = rule
    pack.kind = kind
    pack.unsigned = unsigned
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
    pack.out_format = out_format
    pack.descale = 0
    if config_field(t, bank, _DESCALE_ON) != 0:
        by_z = config_field(t, bank, _DESCALE_MODE)
        if by_z != 0 and not open_choice(t, _DESCALE_BY_Z):
            return REFUSED
        pack.descale_by_z = by_z
        pack.descale = config_field(t, bank, _DESCALE_VALUE) & 31
    else:
        pack.descale_by_z = 0
    return DONE


@kernel
def _decode_relu(t, bank, in_format):
    """ReLU and the exponent field; `kind` is decoded. FP16 out of 32-bit Dst is TF32 until behind the ReLU (P6)."""
    pack = t.pack
    kind = KIND_FP32 if pack.narrow != 0 else pack.kind
    mode = config_field(t, bank, _APPLY_RELU) & 3
    limit = config_field(t, bank, _RELU_THRESHOLD)
    if mode >= 2:
        if kind >= KIND_INT32:
            return refuse(t, _RELU_INTEGER, mode, in_format)
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
def _edge_row(t, bank, z, rows):
    """Masks of the sixteen Y positions by one TILE_ROW_SET_MAPPING register."""
    for y in range(16):
        mask = _read(t, bank, _EDGE_MASKS, _read(t, bank, _ROW_MAPS, rows * 16 + y))
        t.pack.edge_mask[z, y] = mask
        if mask != NO_MASK:
            t.pack.edge_free = 0


@kernel
def _decode_edges(t, bank, in_format):
    pack = t.pack
    pack.reads = config_field(t, bank, _READS)
    pack.yz_transposed = config_field(t, bank, _YZ_TRANSPOSED)
    pack.z_offset = config_field(t, bank, _Z_OFFSET)
    pack.edge_faces = 0
    pack.edge_free = 1
    pack.edge_fill = 0
    for i in range(4):
        if _read(t, bank, _EDGE_MASKS, i) != NO_MASK:
            pack.edge_free = 0
    if pack.edge_free != 0 and pack.descale_by_z == 0:
        return DONE
    pack.edge_free = 1
    if config_field(t, bank, _FACE_ENABLE) != 0:
        pack.edge_faces = 15
        faces = config_field(t, bank, _FACE_SELECT) & 3
        for z in range(16):
            _edge_row(t, bank, z, _read(t, bank, _FACE_MAPS, faces * 16 + z))
    else:
        _edge_row(t, bank, np.int64(0), config_field(t, bank, _ROW_SELECT) & 3)
    if pack.edge_free == 0 and config_field(t, bank, _EDGE_MODE) != 0:
        kind = KIND_FP32 if pack.narrow != 0 else pack.kind
        if kind >= KIND_INT32:
            return refuse(t, _EDGE_INTEGER, in_format)
        if pack.kind == KIND_FP16 and not open_choice(t, _EDGE_FP16, in_format):
            return REFUSED
        pack.edge_fill = 0xFF800000 if kind == KIND_FP32 else 0xFF80 if kind == KIND_BF16 else 0xFC00
    if pack.descale_by_z != 0:
        pack.edge_free = 0  # the position must be right at every row, not only behind the last
    return DONE


@kernel
def _decode_output(t, bank, context, out_format):
    pack = t.pack
    pack.l1_address = _read(t, bank, _L1_DEST_ADDR, context) + 1 - _read(t, bank, _SUB_HEADER, context)
    pack.l1_base = config_field(t, bank, _BASE1)
    pack.y1_stride = config_field(t, bank, _Y1_STRIDE)
    pack.z1_stride = config_field(t, bank, _Z1_STRIDE)
    pack.w1_stride = config_field(t, bank, _W1_STRIDE)
    pack.add_offset = _read(t, bank, _ADD_OFFSET, context)
    pack.fifo_limit = _read(t, bank, _FIFO_LIMIT, context)
    pack.fifo_size = _read(t, bank, _FIFO_SIZE, context)
    pack.row_start_size = _read(t, bank, _ROW_START_SIZE, context)
    pack.exp_size = _read(t, bank, _EXP_SIZE, context)
    pack.has_exp_section = (out_format >> 1) & 1
    pack.header_units = _read(t, bank, _ADD_HEADER, context)
    pack.zero_flags = 1 - _read(t, bank, _NO_ZERO_FLAGS, context)
    pack.compressed = 1 - _read(t, bank, _NO_COMPRESS, context)
    pack.accumulate = _read(t, bank, _L1_ACC, context)
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
def _decode_controls(t, bank, context):
    pack = t.pack
    for i in range(_UNSETTLED.size):
        value = _read(t, bank, _UNSETTLED_FIELDS[i], context)
        if value != 0:
            return refuse(t, _UNSETTLED[i], value)
    per_plane = config_field(t, bank, _PER_PLANE)
    if per_plane != 0:
        return refuse(t, _AUTO_LAST, per_plane)
    stochastic = config_field(t, bank, _GASKET_SRND) | (config_field(t, bank, _PACKER_SRND) << 1)
    if stochastic != 0 and not open_choice(t, _STOCHASTIC, stochastic):
        return REFUSED
    xys = config_field(t, bank, _XYS_PER_TILE)
    if xys != 0 and not open_choice(t, _XYS_OPEN, xys):
        return REFUSED
    rate = _read(t, bank, _DOWNSAMPLE_RATE, context)
    if rate != 0 and not open_choice(t, _RATE, rate):
        return REFUSED
    pack.auto_interfaces = _read(t, bank, _AUTO_INTERFACES, context)
    if pack.auto_interfaces != 0 and not open_choice(t, _AUTO_INTERFACES_OPEN):
        return REFUSED
    pack.downsample = _read(t, bank, _DOWNSAMPLE_MASK, context)
    if pack.downsample == 0:
        pack.downsample = NO_MASK
    pack.threshold = 0
    if _read(t, bank, _THRESHOLD_ON, context) != 0 and pack.kind <= KIND_FP16:
        pack.threshold = _read(t, bank, _THRESHOLD, context)
    pack.planes_per_context = config_field(t, bank, _PLANES_PER_CONTEXT)
    return DONE


@kernel
def decode(t, bank, context):
    """Fill the decoded fields of `t.pack`; returns DONE or REFUSED."""
    in_format = _read(t, bank, _IN_FORMAT, context)
    out_format = _read(t, bank, _OUT_FORMAT, context)
    if _decode_input(t, bank, context, in_format) != DONE:
        return REFUSED
    if _decode_formats(t, bank, context, in_format, out_format) != DONE:
        return REFUSED
    if _decode_relu(t, bank, in_format) != DONE:
        return REFUSED
    if _decode_edges(t, bank, in_format) != DONE:
        return REFUSED
    if _decode_output(t, bank, context, out_format) != DONE:
        return REFUSED
    return _decode_controls(t, bank, context)
