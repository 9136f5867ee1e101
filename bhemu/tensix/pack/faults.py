"""Why the packer refuses a configuration or an instruction."""

from __future__ import annotations

import numpy as np

from bhemu.errors import BhemuError, ConfigurationError, MemoryError_, MissingSpecification, UndefinedBehavior
from bhemu.machine.faults import fault


def _refusal(name: str, error: type[BhemuError], text: str, *, remedy: str, rule: str) -> np.int64:
    """A fault whose code is not a literal to the compiler, which would otherwise compile `refuse` anew for each."""
    return np.int64(fault(name, error, text, remedy=remedy, rule=rule))


# --- formats ---------------------------------------------------------------------------------------------------------

FORMAT_MISMATCH = _refusal(
    "pack.format-mismatch",
    UndefinedBehavior,
    "intermediate format {0} (ALU_FORMAT_SPEC_REG2_Dstacc, word 1 [28:25], or its override) is not In_data_format {1} "
    "(word 70 [11:8] of context 0)",
    remedy="program both with the same format code",
    rule="P6",
)
NO_EARLY_CONVERSION = _refusal(
    "pack.no-early-conversion",
    UndefinedBehavior,
    "Dst has no conversion to format {0} with PCK_DEST_RD_CTRL (word 18) Read_32b_data {1}, Read_int8 (raw) {2}, "
    "Round_10b_mant {3}",
    remedy="choose an intermediate format and Read_* bits of the table of early conversions",
    rule="P6",
)
NO_LATE_CONVERSION = _refusal(
    "pack.no-late-conversion",
    UndefinedBehavior,
    "the packer does not convert In_data_format {0} to Out_data_format {1} (word 70 [11:8] and [7:4] of context 0)",
    remedy="floats go to floats, each integer format only to itself; make TF32 with the early conversion",
    rule="P9",
)
FP8_CONTEXT = _refusal(
    "pack.fp8-context",
    MissingSpecification,
    "FP8 output in context {0}: its register group has no Pac_LF8_4b_exp bit",
    remedy="use context 0 or 2 (words 71 and 119, bit 23), or accept open choices: the bit of the group before it",
    rule="P3, 000.1.1k",
)
DESCALE_BY_Z = _refusal(
    "pack.int-descale-mode",
    MissingSpecification,
    "INT_DESCALE_Mode (word 8 bit 1) = 1: no source says which Z chooses the shift amount",
    remedy="use mode 0 (amount in word 187), or accept open choices: Z of the tile position",
    rule="002.5.2e",
)
FORMAT_CHANGE = _refusal(
    "pack.format-change",
    ConfigurationError,
    "{1}-bit datums cannot follow at byte address {0:#x}: the open stream holds narrower ones",
    remedy="finish the tile with Last or Flush before you change Out_data_format",
    rule="P11",
)

# --- stages ----------------------------------------------------------------------------------------------------------

RELU_NEGATIVE = _refusal(
    "pack.relu-negative-threshold",
    UndefinedBehavior,
    "STACC_RELU_ReluThreshold {0:#06x} (word 2 [21:6]) is negative, in ReLU mode {1}",
    remedy="use a threshold >= 0",
    rule="P8",
)
RELU_INTEGER = _refusal(
    "pack.relu-integer",
    UndefinedBehavior,
    "STACC_RELU_ApplyRelu mode {0} (word 2 [3:2]) with the integer format {1}",
    remedy="use mode 0 or 1 with integers",
    rule="P8",
)
EDGE_INFINITY_INTEGER = _refusal(
    "pack.edge-infinity-integer",
    UndefinedBehavior,
    "PCK_EDGE_MODE (word 24 bit 16) = 1 fills with minus infinity, which format {0} does not have",
    remedy="use edge mode 0 with integers",
    rule="002.9.1e",
)
EDGE_INFINITY_FP16 = _refusal(
    "pack.edge-infinity-encoding",
    MissingSpecification,
    "PCK_EDGE_MODE (word 24 bit 16) = 1: no source gives minus infinity in the 5-bit-exponent format {0}",
    remedy="use an intermediate with 8 exponent bits, or accept open choices: sign and all exponent bits (0xFC00)",
    rule="002.9.1e",
)
ACCUMULATE_FORMAT = _refusal(
    "pack.accumulate-format",
    MissingSpecification,
    "Pack_L1_Acc (word 71 bit 19) with Out_data_format {0}: no source defines the sum",
    remedy="accumulate in FP32, FP16 or BF16",
    rule="I.9",
)
ACCUMULATE_INT32 = _refusal(
    "pack.accumulate-int32",
    MissingSpecification,
    "Pack_L1_Acc (word 71 bit 19) with INT32 output: only LLK tests speak of it",
    remedy="accumulate in FP32, FP16 or BF16, or accept open choices: a saturating sign-magnitude sum",
    rule="002.13b",
)
ACCUMULATE_COMPRESSED = _refusal(
    "pack.accumulate-compressed",
    UndefinedBehavior,
    "Pack_L1_Acc (word 71 bit 19) with zero compression (Disable_zero_compress, word 70 bit 0, is 0)",
    remedy="set Disable_zero_compress to accumulate in L1",
    rule="002.13, 002.11",
)
COMPRESS_BFP2 = _refusal(
    "pack.compressed-bfp2",
    MissingSpecification,
    "zero compression (Disable_zero_compress, word 70 bit 0, is 0) with the 2-bit Out_data_format {0}",
    remedy="set Disable_zero_compress: the compressed layout is defined for datums of 4 bits and more",
    rule="I.4",
)
DOWNSAMPLE_RATE = _refusal(
    "pack.downsample-rate",
    MissingSpecification,
    "Downsample_rate (word 71 [18:16]) = {0}: no source gives it an effect",
    remedy="write 0, or accept open choices: no effect",
    rule="002.10b",
)

# --- controls that no source settles ---------------------------------------------------------------------------------

STOCHASTIC = _refusal(
    "pack.stochastic-rounding",
    MissingSpecification,
    "stochastic rounding is on (word 1 [2:1] = {0}); its bits are not documented",
    remedy="clear ALU_ROUNDING_MODE_Gasket_srnd_en and Packer_srnd_en, or accept open choices: round to nearest",
    rule="000.3d",
)
SHARED_EXPONENT_OFF = _refusal(
    "pack.dis-shared-exp-assembler",
    MissingSpecification,
    "Dis_shared_exp_assembler (word 70 bit 12) = 1: no source gives the algorithm",
    remedy="clear the bit",
    rule="002.6.3a",
)
AUTO_INTERFACES = _refusal(
    "pack.auto-set-last-pacr-intf-sel",
    MissingSpecification,
    "Auto_set_last_pacr_intf_sel (word 70 bit 13) = 1: which PACR is the last of its plane is not settled",
    remedy="name the interfaces in ReadIntfSel, or accept open choices: as many as rows are left in the plane",
    rule="P2",
)
OUT_FIFO = _refusal(
    "pack.enable-out-fifo",
    MissingSpecification,
    "Enable_out_fifo (word 70 bit 14) = 1: the depth of the metadata FIFO is not documented",
    remedy="clear the bit and read sizes with SETDMAREG",
    rule="000.1.1h",
)
START_INTERFACE = _refusal(
    "pack.start-intf-pos",
    MissingSpecification,
    "pack_start_intf_pos (word 70 [20:17]) = {0}: no source gives the rule",
    remedy="write 0",
    rule="000.1.1h",
)
Y_START = _refusal(
    "pack.dis-y-pos-start-offset",
    MissingSpecification,
    "pack_dis_y_pos_start_offset (word 70 bit 23, word 98 bit 18) = 1: no source gives the rule",
    remedy="clear the bit",
    rule="000.1.1h",
)
UNPACK_TILE_OFFSET = _refusal(
    "pack.unpack-tile-offset",
    MissingSpecification,
    "unpack_tile_offset (words 98 and 146 [23:19]) = {0}: no source gives the rule",
    remedy="write 0",
    rule="000.1.1k",
)
AUTO_LAST = _refusal(
    "pack.pack-per-xy-plane",
    MissingSpecification,
    "pack_per_xy_plane (word 28 [7:0]) = {0} asks for an automatic Last; no source says how it counts",
    remedy="write 0 and set Last in the PACR",
    rule="000.1.4",
)
XYS_PER_TILE = _refusal(
    "pack.xys-per-tile",
    MissingSpecification,
    "pack_xys_per_tile (word 28 [22:16]) = {0}: no source gives its effect",
    remedy="write 0, or accept open choices: no effect",
    rule="000.1.4",
)
L1_SOURCE = _refusal(
    "pack.l1-source",
    MissingSpecification,
    "Source_interface_selection (word 70 bit 16) = 1: sources disagree on the place of L1_source_addr in the address",
    remedy="pack from Dst, or accept open choices: L1_source_addr is address bits 25:18",
    rule="002.3.4a",
)
L1_SOURCE_FORMAT = _refusal(
    "pack.l1-source-format",
    UndefinedBehavior,
    "packing from L1 with In_data_format {0}",
    remedy="use FP32, FP16, BF16, BFP8, BFP8a, FP8, INT32, INT16 or INT8",
    rule="002.3.4b",
)
STRIDED = _refusal(
    "pack.strided",
    MissingSpecification,
    "DstAccessMode = 1 with remap_addrs {0}, swizzle_32b {1} (word 220) and ReadIntfSel {2}",
    remedy="use strided mode with both bits set and masks 0, 1, 3, or accept open choices: rows 8 apart in storage",
    rule="P5",
)
PARTIAL_BFP_ROW = _refusal(
    "pack.partial-bfp-row",
    MissingSpecification,
    "BFP output of {0} datums an interface: sources disagree on where a shared exponent begins",
    remedy="pack 16 datums an interface or use RowPadZero, or accept open choices: groups of 16 output datums",
    rule="P2, P10",
)
CONTEXT_KEEP = _refusal(
    "pack.ctxt-ctrl-3",
    MissingSpecification,
    "CtxtCtrl = 3: no source says when mode 1 would have reset the context",
    remedy="use CtxtCtrl 1, or accept open choices: as 1",
    rule="P3",
)

# --- instruction -----------------------------------------------------------------------------------------------------

MISALIGNED = _refusal(
    "pack.misaligned-input",
    UndefinedBehavior,
    "the input address {0:#x} is not a multiple of the {1} bytes of a datum of In_data_format",
    remedy="choose strides in words 12 and 13 that are multiples of the datum size",
    rule="P4",
)
DATUM_COUNT = _refusal(
    "pack.datum-count",
    UndefinedBehavior,
    "channel-1 X {0} and channel-0 X {1} of the packer ADC give {2} datums an interface, outside 1 to 16",
    remedy="set both with SETADCXX",
    rule="P2",
)
ROW_END = _refusal(
    "pack.row-end",
    UndefinedBehavior,
    "{1} datums from column {0} run past the end of the Dst row",
    remedy="keep channel-0 X (modulo the row) plus the datum count within 16",
    rule="P2",
)
MASK_SPILLS = _refusal(
    "pack.interface-spill",
    UndefinedBehavior,
    "ReadIntfSel {0} from row {1} reaches beyond its four interfaces",
    remedy="start at a row that is a multiple of 4",
    rule="P2",
)
ZERO_WRITE_COUNT = _refusal(
    "pack.zero-write-count",
    UndefinedBehavior,
    "ZeroWrite with ReadIntfSel 0 needs channel-0 X = 0 and channel-1 X + 1 a multiple of 16; they are {0} and {1}",
    remedy="set both with SETADCXX",
    rule="P3, 002.2h",
)
OUT_OF_L1 = _refusal(
    "pack.out-of-l1",
    MemoryError_,
    "the packer would write L1 up to {0:#x}; L1 ends at {1:#x}",
    remedy="check L1_Dest_addr (word 69) and the channel-1 counters and strides",
    rule="P11",
)
L1_SOURCE_RANGE = _refusal(
    "pack.l1-source-range",
    MemoryError_,
    "the packer would read L1 up to {0:#x}; L1 ends at {1:#x}",
    remedy="check L1_source_addr (word 70 [31:24]) and the channel-0 counters and strides",
    rule="002.3.4a",
)
