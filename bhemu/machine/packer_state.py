"""The packer's section of the state record: decoded configuration, open streams and what the packer keeps accounts of.

`t.pack.<field>`; the stages in `bhemu/tensix/pack/` are its only writers.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.isa.registers import CONFIG_FIELDS
from bhemu.machine.decoded import NONE, Copies
from bhemu.machine.section import section

GROUPS: Final = ("THCON_SEC0_REG1", "THCON_SEC0_REG8", "THCON_SEC1_REG1", "THCON_SEC1_REG8")
"""Register group of each context (P3)."""
FIFOS: Final = (
    "THCON_SEC0_REG9_Pack_0_2",
    "THCON_SEC0_REG9_Pack_1_3",
    "THCON_SEC1_REG9_Pack_0_2",
    "THCON_SEC1_REG9_Pack_1_3",
)
"""L1 FIFO registers of each context (P11)."""


def _grouped(field: str, groups: tuple[str, ...] = GROUPS) -> list[str]:
    """A field in the register group of each context; not every group has every field."""
    names = [f"{group}_{field}" for group in groups]
    return [name if name in CONFIG_FIELDS else NONE for name in names]


COPIES: Final = Copies(
    {
        # input address (P4); strides in bytes
        "input_base": "PCK0_ADDR_BASE_REG_0_Base",
        "x_stride": "PCK0_ADDR_CTRL_XY_REG_0_Xstride",
        "y_stride": "PCK0_ADDR_CTRL_XY_REG_0_Ystride",
        "z_stride": "PCK0_ADDR_CTRL_ZW_REG_0_Zstride",
        "w_stride": "PCK0_ADDR_CTRL_ZW_REG_0_Wstride",
        "dst_offset": "DEST_TARGET_REG_CFG_PACK_SEC0_Offset",  # rows
        "remap": "DEST_ACCESS_CFG_remap_addrs",
        "swizzle": "DEST_ACCESS_CFG_swizzle_32b",
        "source_l1": _grouped("Source_interface_selection"),
        "l1_source": _grouped("L1_source_addr"),
        # early conversion (P6)
        "in_format": _grouped("In_data_format"),
        "intermediate": "ALU_FORMAT_SPEC_REG2_Dstacc",
        "intermediate_override": "ALU_FORMAT_SPEC_REG_Dstacc_override",
        "intermediate_instead": "ALU_FORMAT_SPEC_REG_Dstacc_val",
        "read_32b": "PCK_DEST_RD_CTRL_Read_32b_data",
        "unsigned": "PCK_DEST_RD_CTRL_Read_unsigned",
        "raw": "PCK_DEST_RD_CTRL_Read_int8",
        "round_10b": "PCK_DEST_RD_CTRL_Round_10b_mant",
        "descale_on": "INT_DESCALE_Enable",
        "descale_mode": "INT_DESCALE_Mode",
        "descale_value": "INT_DESCALE_VALUES_SEC0_Value",
        # edge masks (P7)
        "mask0": "PCK_EDGE_OFFSET_SEC0_mask",
        "mask1": "PCK_EDGE_OFFSET_SEC1_mask",
        "mask2": "PCK_EDGE_OFFSET_SEC2_mask",
        "mask3": "PCK_EDGE_OFFSET_SEC3_mask",
        "edge_mode": "PCK_EDGE_MODE_mode",
        "face_select": "PCK_EDGE_TILE_FACE_SET_SELECT_select",
        "face_enable": "PCK_EDGE_TILE_FACE_SET_SELECT_enable",
        "row_select": "PCK_EDGE_TILE_ROW_SET_SELECT_select",
        "reads": "PACK_COUNTERS_SEC0_pack_reads_per_xy_plane",
        "per_plane": "PACK_COUNTERS_SEC0_pack_per_xy_plane",
        "xys_per_tile": "PACK_COUNTERS_SEC0_pack_xys_per_tile",
        "planes_per_context": "PACK_COUNTERS_SEC0_auto_ctxt_inc_xys_cnt",
        "yz_transposed": "PACK_COUNTERS_SEC0_pack_yz_transposed",
        "z_offset": "DEST_TARGET_REG_CFG_PACK_SEC0_ZOffset",
        # ReLU (P8)
        "relu": "STACC_RELU_ApplyRelu",
        "relu_limit": "STACC_RELU_ReluThreshold",
        "threshold_on": _grouped("Exp_threshold_en"),
        "threshold": _grouped("Exp_threshold"),  # exponent threshold, 0 = off
        "downsample": _grouped("Downsample_mask"),  # 16-bit mask, 0xFFFF = keep all
        "downsample_rate": _grouped("Downsample_rate"),
        "gasket_stochastic": "ALU_ROUNDING_MODE_Gasket_srnd_en",
        "stochastic": "ALU_ROUNDING_MODE_Packer_srnd_en",
        # late conversion (P9) and assembly (P10)
        "out_format": _grouped("Out_data_format"),
        "e4m3": _grouped("Pac_LF8_4b_exp", (GROUPS[0], GROUPS[0], GROUPS[2], GROUPS[2])),
        "no_compress": _grouped("Disable_zero_compress"),
        "no_zero_flags": _grouped("Disable_pack_zero_flags"),
        "accumulate": _grouped("Pack_L1_Acc"),
        # output address (P11)
        "dest_address": _grouped("L1_Dest_addr"),
        "sub_header": _grouped("Sub_l1_tile_header_size"),
        "l1_base": "PCK0_ADDR_BASE_REG_1_Base",  # bytes
        "y1_stride": "PCK0_ADDR_CTRL_XY_REG_1_Ystride",
        "z1_stride": "PCK0_ADDR_CTRL_ZW_REG_1_Zstride",
        "w1_stride": "PCK0_ADDR_CTRL_ZW_REG_1_Wstride",
        "add_offset": _grouped("Add_l1_dest_addr_offset"),
        "fifo_limit": _grouped("limit_address", FIFOS),
        "fifo_size": _grouped("fifo_size", FIFOS),
        "row_start_size": _grouped("Row_start_section_size"),
        "exp_size": _grouped("Exp_section_size"),
        "header_units": _grouped("Add_tile_header_size"),
        "auto_interfaces": _grouped("Auto_set_last_pacr_intf_sel"),
        # what no source settles; in the order of the refusals in tensix/pack/decode.py
        "no_assembler": _grouped("Dis_shared_exp_assembler"),
        "out_fifo": _grouped("Enable_out_fifo"),
        "start_interface": _grouped("pack_start_intf_pos"),
        "y_start": _grouped("pack_dis_y_pos_start_offset"),
        "unpack_tile_offset": _grouped("unpack_tile_offset"),
    },
    len(GROUPS),
)
"""What the packer's decoded configuration is made of; form = context."""
UNSETTLED: Final = 5
"""How many of them, from `no_assembler` on, must be 0."""

EDGE_MAPS: Final = Copies(
    {
        **{f"row{b}_{y}": f"TILE_ROW_SET_MAPPING_{b}_row_set_mapping_{y}" for b in range(4) for y in range(16)},
        **{f"face{a}_{z}": f"TILE_FACE_SET_MAPPING_{a}_face_set_mapping_{z}" for a in range(4) for z in range(16)},
    }
)
"""Which edge mask each row has, and which set of rows each face: `t.pack.edge_maps`, copied only where masks differ."""
FACE_MAPS: Final = 64
"""Place of the first face's set in `edge_maps`."""

_DERIVED: Final = (
    "size_shift",  # log2 of the bytes that a datum counts in the input address
    "column_mask",  # ADC X bits that choose the column
    "fp8",  # 1 = In_data_format is FP8
    "early",
    "kind",  # what the intermediate datum is, see early_conversion.py
    "descale",  # right shift of integer magnitudes
    "descale_by_z",
    "edge_free",  # 1 = every mask passes every column
    "edge_faces",  # bits of Z that choose a face set; 0 = one set for all
    "edge_fill",  # replaces a masked datum
    "relu_threshold",
    "relu_sign",  # position of the sign bit; 32 = the datum has none
    "narrow",  # 1 = the datum goes from TF32 to FP16 after the ReLU
    "exponent_shift",
    "exponent_mask",
    "late_widen",
    "late_narrow",
    "late_final",
    "bfp_bits",  # 8, 4, 2; 0 = no shared exponent
    "bfp_family_a",
    "datum_bits",
    "compressed",
    "zero_flags",
    "l1_address",  # 16-byte units, header unit included
    "has_exp_section",
    "bf16_pairs",  # 1 = datums are BF16 from Dst to L1, see tensix/pack/row_pairs.py
)

_STREAMS: list[tuple[str, str]] = [
    ("open", "i8"),
    ("x", "i8"),  # tile position generator (P7)
    ("y", "i8"),
    ("z", "i8"),
    ("data_start", "i8"),  # byte addresses
    ("data_address", "i8"),
    ("exp_start", "i8"),
    ("exp_address", "i8"),
    ("row_start_start", "i8"),
    ("row_start_address", "i8"),
    ("group_count", "i8"),  # datums waiting in `group`
    ("datums", "i8"),  # datums since the streams were opened, padding included
    # zero compression
    ("concat", "i8"),  # 1 = the next PACR continues the compression row
    ("pending", "i8"),
    ("pending_zeros", "i8"),
    ("has_pending", "i8"),
    ("augmented", "i8"),  # augmented datums of the open tile
    ("row_is_zero", "i8"),
    ("rows", "i8"),  # finished compression rows
    # hardware context (P3)
    ("context", "i8"),
    ("planes", "i8"),
    # accounts (read by SETDMAREG and TDMA-RISC)
    ("histogram_max", "i8"),
    ("all_zero_flags", "i8"),
    ("last_tile_size", "i8"),  # 16-byte units
    ("last_thread", "i8"),
    # set by TDMA-RISC
    ("l1_dest_addr_offset", "i8"),
]

PACKER: Final[np.dtype[Any]] = section(
    [
        ("key", "i8", ()),  # bank, context and openness for which the configuration is decoded; 0 = for nothing
        *((name, "i8", ()) for name in (*COPIES.attributes, *_DERIVED)),
        *((name, kind, ()) for name, kind in _STREAMS),
        ("edge_maps", "i8", (len(EDGE_MAPS.attributes),)),
        ("edge_mask", "i4", (16, 16)),  # [Z & 15, Y & 15] column mask
        ("group", "u4", (16,)),  # intermediate datums that wait for a whole group
        ("row", "u4", (16,)),  # the row in progress
        ("zero_counts", "u1", (32,)),  # zeros after each augmented datum of the open group of 32
        ("acc_tile_size", "i8", (3,)),  # [thread] 16-byte units
        ("histogram", "u1", (32,)),
        ("setreg_base", "u4", (2,)),
        ("setreg_scaler", "u4", (4,)),
        ("setreg_data", "u4", ()),  # what PACR_SETREG writes, programmed in halves
    ],
    [
        ("copied", COPIES.attributes[0], "i8", (len(COPIES.attributes),)),
        ("edge_masks", "mask0", "i8", (4,)),
        ("unsettled", "no_assembler", "i8", (UNSETTLED,)),
    ],
)
"""dtype of `t.pack`."""
