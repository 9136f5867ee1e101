"""The matrix unit's section of the state record, `t.matrix`: decoded configuration and its place in the Src banks."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.machine.decoded import Copies, decoded
from bhemu.machine.section import section

COPIES: Final = Copies(
    {
        # Format codes of SrcA and SrcB where the unpackers' own are not implied (F1)
        "configured_a": "ALU_FORMAT_SPEC_REG0_SrcA",
        "override_a": "ALU_FORMAT_SPEC_REG_SrcA_override",
        "instead_a": "ALU_FORMAT_SPEC_REG_SrcA_val",
        "not_implied_a": "DISABLE_IMPLIED_SRCA_FMT_Base",
        "configured_b": "ALU_FORMAT_SPEC_REG1_SrcB",
        "override_b": "ALU_FORMAT_SPEC_REG_SrcB_override",
        "instead_b": "ALU_FORMAT_SPEC_REG_SrcB_val",
        "not_implied_b": "DISABLE_IMPLIED_SRCB_FMT_Base",
        # Arithmetic (F2, F3, F5, F8)
        "fp32": "ALU_ACC_CTRL_Fp32_enabled",
        "integer": "ALU_ACC_CTRL_INT8_math_enabled",
        "keep_denormals": "ALU_ACC_CTRL_Zero_Flag_disabled_src",
        "fidelity_base": "FIDELITY_BASE_Phase",
        "stochastic": "ALU_ROUNDING_MODE_Fpu_srnd_en",
        "force_fp16": "FP16A_FORCE_Enable",
        # Rows of Dst (F6, F26)
        "dst_offset": "DEST_TARGET_REG_CFG_MATH_Offset",
        "dst_base": "DEST_REGW_BASE_Base",
        "absolute_tiles": "DEST_ACCESS_CFG_zeroacc_absolute_tile_mode",
    }
)
"""What the matrix unit's decoded configuration is made of."""

DECODED: Final = decoded(
    COPIES,
    (
        "format_a",  # code, or FORMAT_IMPLIED
        "format_b",
        "wide",  # 1 = Dst is used in its 32-bit view
        "unsupported",  # 1 = a setting that is refused, or that no source settles, is on
        "special",  # 1 = anything but formats, fidelity and places is set: arithmetic with BF16 need not look further
    ),
)
"""dtype of `t.matrix.decoded[config bank, thread]`."""

MATRIX: Final[np.dtype[Any]] = section(
    [
        ("decoded_threads", "i4", (2,)),  # [config bank]: bit n = thread n's row below is up to date
        ("decoded", DECODED, (2, 3)),
        ("bank", "i4", (2,)),  # bank of SrcA and of SrcB that the unit works on
        ("srca_row", "i4", ()),  # 1 + first SrcA row of the latest instruction that computed one, 0 unknown (F31)
        ("scratch", "i4", (24, 16)),  # operands of the dot product in progress; nothing between instructions
    ]
)
"""dtype of `t.matrix`."""

A_BLOCKS: Final = 4
"""Blocks of sixteen SrcA rows that are kept decoded."""
B_BLOCKS: Final = 8
"""Blocks of eight SrcB rows that are kept decoded."""

PREPARED: Final[np.dtype[Any]] = section(
    [
        ("versions", "i8", ()),  # blocks that have been decoded, ever
        # [block]: SrcA's, then SrcB's
        ("key", "i8", (A_BLOCKS + B_BLOCKS,)),  # which bits and rows count; 0 nothing is kept
        ("version", "i8", (A_BLOCKS + B_BLOCKS,)),  # a new number whenever it is decoded
        ("compared", "i8", (A_BLOCKS + B_BLOCKS,)),  # epoch and row of the latest comparison with the rows
        ("large", "i4", (A_BLOCKS + B_BLOCKS,)),  # 1: exponents are too large for binary32
        ("sliced", "i8", (A_BLOCKS + B_BLOCKS,)),  # phase and scale of the numbers, 0 none
        # [block of SrcA]
        ("a_cells", "i4", (A_BLOCKS, 16, 16)),  # as in SrcA
        ("a_exponents", "i4", (A_BLOCKS, 8, 16)),  # pairs of fields
        ("a_numbers", "i4", (A_BLOCKS, 16, 16)),  # slices of one phase, as binary32
        # [block of SrcB]
        ("b_cells", "i4", (B_BLOCKS, 8, 16)),
        ("b_exponents", "i4", (B_BLOCKS, 8, 16)),
        ("b_numbers", "i4", (B_BLOCKS, 8, 16)),
        # [block of SrcA, block of SrcB]
        ("greatest_of", "i8", (A_BLOCKS, B_BLOCKS, 2)),  # versions of both blocks
        ("greatest", "i4", (A_BLOCKS, B_BLOCKS, 8, 16)),  # pairs of the greatest sums of two exponent fields
    ]
)
"""dtype of `t.prepared`: operands of dot products, decoded (tensix/matrix/prepared.py). Nothing of it is state."""
