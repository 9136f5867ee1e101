"""Every field that the register document in seeds/ or a rule places sits there, and says what it means."""

from __future__ import annotations

import pytest

from bhemu.isa.registers import CONFIG_FIELDS, THREAD_FIELDS

UNP0, UNP1 = "THCON_SEC0_", "THCON_SEC1_"
PACK = "THCON_SEC0_REG1_"
DESCRIPTOR = "REG0_TileDescriptor_"

# Fields that the register document in seeds/ quotes, under the map's name: (name, word, lsb, width).
# Where the document's position is wrong (rules 000.*), the corrected one is here.
DOCUMENT = [
    # pack config (1.1)
    (PACK + "Row_start_section_size", 68, 0, 16),
    (PACK + "Exp_section_size", 68, 16, 16),
    (PACK + "L1_Dest_addr", 69, 0, 32),
    (PACK + "Disable_zero_compress", 70, 0, 1),
    (PACK + "Add_l1_dest_addr_offset", 70, 1, 1),
    (PACK + "Disable_pack_zero_flags", 70, 2, 1),
    (PACK + "Out_data_format", 70, 4, 4),
    (PACK + "In_data_format", 70, 8, 4),
    (PACK + "Dis_shared_exp_assembler", 70, 12, 1),
    (PACK + "Auto_set_last_pacr_intf_sel", 70, 13, 1),
    (PACK + "Enable_out_fifo", 70, 14, 1),
    (PACK + "Sub_l1_tile_header_size", 70, 15, 1),
    (PACK + "Source_interface_selection", 70, 16, 1),
    (PACK + "pack_start_intf_pos", 70, 17, 4),
    (PACK + "All_pack_disable_zero_compress_ovrd", 70, 21, 1),
    (PACK + "Add_tile_header_size", 70, 22, 1),
    (PACK + "pack_dis_y_pos_start_offset", 70, 23, 1),
    (PACK + "L1_source_addr", 70, 24, 8),
    (PACK + "Pack_L1_Acc", 71, 19, 1),
    (PACK + "Exp_threshold_en", 71, 20, 1),
    (PACK + "Unp_LF8_4b_exp", 71, 22, 1),
    (PACK + "Pac_LF8_4b_exp", 71, 23, 1),
    (PACK + "Exp_threshold", 71, 24, 8),
    # Dst read control (1.2), ReLU (1.3), counters (1.4)
    ("PCK_DEST_RD_CTRL_Read_32b_data", 18, 0, 1),
    ("PCK_DEST_RD_CTRL_Read_unsigned", 18, 1, 1),
    ("PCK_DEST_RD_CTRL_Read_int8", 18, 2, 1),
    ("PCK_DEST_RD_CTRL_Round_10b_mant", 18, 3, 1),
    ("ALU_ACC_CTRL_Zero_Flag_disabled_src", 2, 0, 1),
    ("ALU_ACC_CTRL_Zero_Flag_disabled_dst", 2, 1, 1),
    ("STACC_RELU_ApplyRelu", 2, 2, 4),
    ("STACC_RELU_ReluThreshold", 2, 6, 16),
    ("PACK_COUNTERS_SEC0_pack_per_xy_plane", 28, 0, 8),
    ("PACK_COUNTERS_SEC0_pack_reads_per_xy_plane", 28, 8, 8),
    ("PACK_COUNTERS_SEC0_pack_xys_per_tile", 28, 16, 7),
    ("PACK_COUNTERS_SEC0_pack_yz_transposed", 28, 23, 1),
    ("PACK_COUNTERS_SEC0_auto_ctxt_inc_xys_cnt", 28, 24, 8),
    # edge masks (1.5)
    ("PCK_EDGE_OFFSET_SEC0_mask", 24, 0, 16),
    ("PCK_EDGE_MODE_mode", 24, 16, 1),
    ("PCK_EDGE_TILE_ROW_SET_SELECT_select", 24, 17, 8),
    ("PCK_EDGE_OFFSET_SEC1_mask", 25, 0, 16),
    ("PCK_EDGE_OFFSET_SEC2_mask", 26, 0, 16),
    ("PCK_EDGE_OFFSET_SEC3_mask", 27, 0, 16),
    *[(f"TILE_ROW_SET_MAPPING_{m}_row_set_mapping_{r}", 20 + m, 2 * r, 2) for m in range(4) for r in range(16)],
    # strides and bases (1.6, 2.6)
    *[
        (f"{unit}_ADDR_CTRL_{pair}_REG_{channel}_{axis}stride", first + half, 16 * position, 16)
        for unit, channel, first in (
            ("PCK0", 0, 12),
            ("PCK0", 1, 14),
            ("UNP0", 0, 44),
            ("UNP1", 0, 46),
            ("UNP0", 1, 56),
            ("UNP1", 1, 58),
        )
        for half, pair in enumerate(("XY", "ZW"))
        for position, axis in enumerate(pair)
    ],
    *[
        (f"{unit}_ADDR_BASE_REG_{channel}_Base", first + channel, 0, 18)
        for unit, first in (("PCK0", 16), ("UNP0", 48), ("UNP1", 60))
        for channel in (0, 1)
    ],
    ("UNP0_ADD_DEST_ADDR_CNTR_add_dest_addr_cntr", 50, 8, 1),
    ("UNP1_ADD_DEST_ADDR_CNTR_add_dest_addr_cntr", 62, 8, 1),
    # Dst target (1.7)
    *[(f"DEST_TARGET_REG_CFG_PACK_SEC{i}_Offset", 180 + i, 0, 12) for i in range(4)],
    *[(f"DEST_TARGET_REG_CFG_PACK_SEC{i}_ZOffset", 180 + i, 12, 6) for i in range(4)],
    # unpackers (2.1 - 2.5): the document gives unpacker 0; unpacker 1 lies 48 words above
    *[
        (unit + name, word + above, lsb, width)
        for unit, above in ((UNP0, 0), (UNP1, 48))
        for name, word, lsb, width in (
            (DESCRIPTOR + "in_data_format", 64, 0, 4),
            (DESCRIPTOR + "uncompressed", 64, 4, 1),
            (DESCRIPTOR + "blobs_per_xy_plane", 64, 8, 3),
            (DESCRIPTOR + "x_dim", 64, 16, 16),
            (DESCRIPTOR + "y_dim", 65, 0, 8),
            (DESCRIPTOR + "z_dim", 65, 16, 8),
            (DESCRIPTOR + "w_dim", 66, 0, 8),
            (DESCRIPTOR + "blobs_y_start_lo", 66, 16, 16),
            (DESCRIPTOR + "blobs_y_start_hi", 67, 0, 16),
            ("REG2_Out_data_format", 72, 0, 4),
            ("REG2_Throttle_mode", 72, 4, 2),
            ("REG2_Context_count", 72, 6, 2),
            ("REG2_Haloize_mode", 72, 8, 1),
            ("REG2_Tileize_mode", 72, 9, 1),
            ("REG2_Unpack_Src_Reg_Set_Upd", 72, 10, 1),
            ("REG2_Unpack_If_Sel", 72, 11, 1),
            ("REG2_Upsample_rate", 72, 12, 2),
            ("REG2_Upsample_and_interleave", 72, 15, 1),
            *((f"REG2_Shift_amount_cntx{c}", 72, 16 + 4 * c, 4) for c in range(4)),
            *((f"REG2_Disable_zero_compress_cntx{c}", 73, c if c < 4 else 12 + c, 1) for c in range(8)),
            *((f"REG2_Unpack_if_sel_cntx{c}", 73, 4 + c if c < 4 else 16 + c, 1) for c in range(8)),
            ("REG2_Force_shared_exp", 73, 8, 1),
            ("REG2_Unpack_limit_address", 74, 0, 17),
            ("REG2_Unpack_fifo_size", 75, 0, 17),
            ("REG3_Base_address", 76, 0, 32),
            ("REG3_Base_cntx1_address", 77, 0, 32),
            *((f"REG5_Dest_cntx{c}_address", 84 + c // 2, 16 * (c % 2), 16) for c in range(4)),
            *((f"REG5_Tile_x_dim_cntx{c}", 86 + c // 2, 16 * (c % 2), 16) for c in range(4)),
            ("REG7_Offset_address", 92, 0, 16),
            ("REG7_Unpack_data_format_cntx0", 92, 16, 4),
            ("REG7_Unpack_out_data_format_cntx0", 92, 20, 4),
            ("REG7_Unpack_data_format_cntx4", 92, 24, 4),
            ("REG7_Unpack_out_data_format_cntx4", 92, 28, 4),
            ("REG7_Offset_cntx1_address", 93, 0, 16),
        )
    ],
    # ALU (3)
    ("ALU_FORMAT_SPEC_REG_SrcA_val", 0, 0, 4),
    ("ALU_FORMAT_SPEC_REG_SrcB_val", 0, 5, 4),
    ("ALU_FORMAT_SPEC_REG_Dstacc_val", 0, 10, 4),
    ("ALU_ROUNDING_MODE_Fpu_srnd_en", 1, 0, 1),
    ("ALU_ROUNDING_MODE_Gasket_srnd_en", 1, 1, 1),
    ("ALU_ROUNDING_MODE_Packer_srnd_en", 1, 2, 1),
    ("ALU_ROUNDING_MODE_GS_LF", 1, 13, 1),
    ("ALU_ROUNDING_MODE_Bfp8_HF", 1, 14, 1),
    ("ALU_FORMAT_SPEC_REG0_SrcAUnsigned", 1, 15, 1),
    ("ALU_FORMAT_SPEC_REG0_SrcBUnsigned", 1, 16, 1),
    ("ALU_FORMAT_SPEC_REG0_SrcA", 1, 17, 4),
    ("ALU_FORMAT_SPEC_REG1_SrcB", 1, 21, 4),
    ("ALU_FORMAT_SPEC_REG2_Dstacc", 1, 25, 4),
    ("ALU_ACC_CTRL_Fp32_enabled", 1, 29, 1),
    ("ALU_ACC_CTRL_SFPU_Fp32_enabled", 1, 30, 1),
    ("ALU_ACC_CTRL_INT8_math_enabled", 1, 31, 1),
]

# Positions that the rules state beyond the document: Part I (U*, P*, I.7, I.10), rows 000.*, math and tile rules.
RULES = [
    *[(f"ALU_FORMAT_SPEC_REG_{s}_override", 0, bit, 1) for s, bit in (("SrcA", 4), ("SrcB", 9), ("Dstacc", 14))],
    ("DISABLE_RISC_BP_Disable_main", 2, 22, 1),  # K10
    ("DISABLE_RISC_BP_Disable_trisc", 2, 23, 3),
    ("DISABLE_RISC_BP_Disable_ncrisc", 2, 26, 1),
    ("DISABLE_RISC_BP_Disable_bmp_clear_main", 2, 27, 1),
    ("DISABLE_RISC_BP_Disable_bmp_clear_trisc", 2, 28, 3),
    ("DISABLE_RISC_BP_Disable_bmp_clear_ncrisc", 2, 31, 1),
    *[(f"RISC_DEST_ACCESS_CTRL_SEC{t}_no_swizzle", 3, 14 + 5 * t, 1) for t in range(3)],  # K45
    *[(f"RISC_DEST_ACCESS_CTRL_SEC{t}_unsigned_int", 3, 15 + 5 * t, 1) for t in range(3)],
    *[(f"RISC_DEST_ACCESS_CTRL_SEC{t}_fmt", 3, 16 + 5 * t, 3) for t in range(3)],
    ("STATE_RESET_EN", 4, 0, 1),  # I.10
    ("DEST_REGW_BASE_Base", 6, 0, 16),  # F6
    ("INT_DESCALE_Enable", 8, 0, 1),  # 002.5.2e
    ("INT_DESCALE_Mode", 8, 1, 1),
    *[(f"INT_DESCALE_VALUES_SEC{i}_Value", 187 + i, 0, 32) for i in range(16)],
    ("PCK_EDGE_TILE_FACE_SET_SELECT_select", 19, 0, 8),  # 000.1.5c
    ("PCK_EDGE_TILE_FACE_SET_SELECT_enable", 19, 8, 1),
    *[(f"TILE_FACE_SET_MAPPING_{m}_face_set_mapping_{f}", 36 + m, 2 * f, 2) for m in range(4) for f in range(16)],
    *[(f"PACK_COUNTERS_SEC{i}_pack_reads_per_xy_plane", 28 + i, 8, 8) for i in range(4)],  # 000.1.4
    *[(f"UNP{u}_FORCED_SHARED_EXP_shared_exp", 50 + 12 * u, 0, 8) for u in (0, 1)],  # I.5
    ("UNP0_BLOBS_Y_START_CNTX_01_blobs_y_start", 51, 0, 32),  # 000.2.6c
    ("UNP0_BLOBS_Y_START_CNTX_23_blobs_y_start", 52, 0, 32),
    ("UNP0_NOP_REG_CLR_VAL_nop_reg_clr_val", 53, 0, 32),  # I.7
    ("UNP1_NOP_REG_CLR_VAL_nop_reg_clr_val", 63, 0, 32),
    *[
        (unit + name, word + above, lsb, width)
        for unit, above in ((UNP0, 0), (UNP1, 48))
        for name, word, lsb, width in (
            (DESCRIPTOR + "no_bfp_exp_section", 64, 5, 1),  # U4
            (DESCRIPTOR + "digest_size", 67, 24, 8),
            ("REG1_ovrd_default_throttle_mode", 70, 3, 1),  # U12
            ("REG1_Downsample_mask", 71, 0, 16),  # 000.1.1j
            ("REG1_Downsample_rate", 71, 16, 3),
            ("REG1_Unp_LF8_4b_exp", 71, 22, 1),  # 000.0g: unpacker 1 has its own
            ("REG2_Ovrd_data_format", 72, 14, 1),  # U3
            ("REG2_Context_count_non_log2", 73, 9, 3),  # U11
            ("REG2_Context_count_non_log2_en", 73, 12, 1),
            *((f"REG3_Base_cntx{c}_address", 76 + c, 0, 32) for c in (1, 2, 3)),  # U3
            *((f"REG4_Base_cntx{c}_address", 76 + c, 0, 32) for c in (4, 5, 6, 7)),
            *((f"REG7_Offset_cntx{c}_address", 92 + c, 0, 16) for c in (1, 2, 3)),
            *((f"REG7_Unpack_data_format_cntx{c}", 92 + c % 4, 16 + 8 * (c // 4), 4) for c in range(8)),
            *((f"REG7_Unpack_out_data_format_cntx{c}", 92 + c % 4, 20 + 8 * (c // 4), 4) for c in range(8)),
            ("REG8_Row_start_section_size", 96, 0, 16),  # P3: contexts 1 and 3
            ("REG8_L1_Dest_addr", 97, 0, 32),
            ("REG8_Out_data_format", 98, 4, 4),
            ("REG8_Add_tile_header_size", 98, 17, 1),
            ("REG8_pack_dis_y_pos_start_offset", 98, 18, 1),
            ("REG8_Pack_L1_Acc", 99, 19, 1),
            ("REG9_Pack_0_2_limit_address", 100, 0, 17),  # P11
            ("REG9_Pack_0_2_fifo_size", 101, 0, 17),
            ("REG9_Pack_1_3_limit_address", 102, 0, 17),
            ("REG9_Pack_1_3_fifo_size", 103, 0, 17),
            ("REG10_Unpack_limit_address", 104, 0, 17),  # U6
            ("REG10_Unpack_fifo_size", 105, 0, 17),
            ("REG10_Unpack_limit_address_en", 105, 17, 1),
        )
    ],
    ("RISCV_IC_INVALIDATE_InvalidateAll", 185, 0, 5),  # I.10, T22
    ("PRNG_SEED_Seed_Val", 186, 0, 32),
    *[(f"SCRATCH_SEC{i}_val", 209 + i, 0, 32) for i in range(3)],
    ("DEST_ACCESS_CFG_swizzle_32b", 220, 0, 1),  # I.3
    ("DEST_ACCESS_CFG_remap_addrs", 220, 1, 1),
    ("DEST_ACCESS_CFG_zeroacc_absolute_tile_mode", 220, 3, 1),  # F26
]

THREAD_RULES = [
    ("CFG_STATE_ID_StateID", 0, 0, 1),
    ("DEST_TARGET_REG_CFG_MATH_Offset", 1, 0, 12),  # R7
    ("DISABLE_IMPLIED_SRCA_FMT_Base", 2, 0, 1),  # F1
    ("DISABLE_IMPLIED_SRCB_FMT_Base", 3, 0, 1),
    ("SFPU_DEST_FMT_Enable", 4, 0, 1),  # V7
    ("SFPU_DEST_FMT_Base", 4, 1, 4),
    ("SRCA_SET_Base", 5, 0, 2),  # U9
    ("SRCA_SET_SetOvrdWithAddr", 5, 2, 1),
    ("SRCB_SET_Base", 6, 0, 2),
    ("CLR_DVALID_SrcA_Disable", 7, 0, 1),  # F28
    ("CLR_DVALID_SrcB_Disable", 7, 1, 1),
    ("FIDELITY_BASE_Phase", 11, 0, 2),  # F8
    *[
        (f"ADDR_MOD_{name.format(i)}", first + i, lsb, width)  # R3
        for i in range(8)
        for first, name, lsb, width in (
            (12, "AB_SEC{}_SrcAIncr", 0, 6),
            (12, "AB_SEC{}_SrcACR", 6, 1),
            (12, "AB_SEC{}_SrcAClear", 7, 1),
            (12, "AB_SEC{}_SrcBIncr", 8, 6),
            (12, "AB_SEC{}_SrcBCR", 14, 1),
            (12, "AB_SEC{}_SrcBClear", 15, 1),
            (20, "AB2_SEC{}_SrcAIncr", 0, 1),
            (20, "AB2_SEC{}_SrcBIncr", 1, 1),
            (28, "DST_SEC{}_DestIncr", 0, 10),
            (28, "DST_SEC{}_DestCR", 10, 1),
            (28, "DST_SEC{}_DestClear", 11, 1),
            (28, "DST_SEC{}_DestCToCR", 12, 1),
            (28, "DST_SEC{}_FidelityIncr", 13, 2),
            (28, "DST_SEC{}_FidelityClear", 15, 1),
            (47, "BIAS_SEC{}_BiasIncr", 0, 4),
            (47, "BIAS_SEC{}_BiasClear", 4, 1),
        )
    ],
    ("SFPU_STACK_Incr", 36, 0, 10),
    *[
        (f"ADDR_MOD_PACK_SEC{i}_{name}", 37 + i, lsb, width)  # P12, 002.4.6c
        for i in range(4)
        for name, lsb, width in (
            ("YsrcIncr", 0, 4),
            ("YsrcCR", 4, 1),
            ("YsrcClear", 5, 1),
            ("YdstIncr", 6, 4),
            ("YdstCR", 10, 1),
            ("YdstClear", 11, 1),
            ("ZsrcIncr", 12, 1),
            ("ZsrcClear", 13, 1),
            ("ZdstIncr", 14, 1),
            ("ZdstClear", 15, 1),
        )
    ],
    ("UNPACK_MISC_CFG_CfgContextOffset_0", 41, 0, 4),  # U2, 000.2.7
    ("UNPACK_MISC_CFG_CfgContextCntReset_0", 41, 4, 1),
    ("UNPACK_MISC_CFG_CfgContextCntInc_0", 41, 5, 1),
    ("UNPACK_MISC_CFG_CfgContextOffset_1", 41, 8, 4),
    ("UNPACK_MISC_CFG_CfgContextCntReset_1", 41, 12, 1),
    ("UNPACK_MISC_CFG_CfgContextCntInc_1", 41, 13, 1),
    ("UNPACK_MISC_CFG_CfgContextCntReset_metadata", 41, 14, 1),
    ("UNPACK_MISC_CFG_CfgContextCntReset_metadata_zstart", 41, 15, 1),
    *[(f"NOC_OVERLAY_MSG_CLEAR_StreamId_{u}", 42 + u, 0, 6) for u in (0, 1)],
    *[(f"NOC_OVERLAY_MSG_CLEAR_MsgNum_{u}", 42 + u, 8, 3) for u in (0, 1)],
    ("ENABLE_ACC_STATS_Enable", 45, 0, 1),
    ("FP16A_FORCE_Enable", 55, 0, 1),
    *[
        (f"TENSIX_TRISC_SYNC_{name}", 56, bit, 1)  # K19
        for bit, name in enumerate(
            ("TrackGlobalCfg", "EnSubdividedCfgForUnpacr", "TrackGPR", "TrackTDMARegs", "TrackTensixInstructions")
        )
    ],
    ("STREAMWAIT_PHASE_HI_Val", 57, 0, 10),  # Y11c
    ("STREAMWAIT_NUM_MSGS_HI_Val", 58, 0, 7),
    *[(f"STREAM_ID_SYNC_SEC{i}_BankSel", 59 + i, 0, 6) for i in range(4)],
]


@pytest.mark.parametrize(("name", "word", "lsb", "width"), DOCUMENT + RULES)
def test_config_field_sits_where_document_and_rules_say_and_is_described(
    name: str, word: int, lsb: int, width: int
) -> None:
    found = CONFIG_FIELDS[name]
    assert (found.word, found.lsb, found.width) == (word, lsb, width)
    assert found.description


@pytest.mark.parametrize(("name", "word", "lsb", "width"), THREAD_RULES)
def test_thread_field_sits_where_the_rules_say_and_is_described(name: str, word: int, lsb: int, width: int) -> None:
    found = THREAD_FIELDS[name]
    assert (found.word, found.lsb, found.width) == (word, lsb, width)
    assert found.description
