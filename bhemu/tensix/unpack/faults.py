"""What the unpackers refuse, with the register that holds the value at fault."""

from __future__ import annotations

from typing import Final

from bhemu.errors import (
    ConfigurationError,
    MissingSpecification,
    NonContractualBehavior,
    UndefinedBehavior,
)
from bhemu.isa.registers import field
from bhemu.machine.faults import fault


def _at(*names: str) -> str:
    """Where fields live: `NAME (word 72 bits 3:0)`, joined by `and`."""
    places = []
    for name in names:
        found = field(name)
        bits = f"bit {found.lsb}" if found.width == 1 else f"bits {found.msb}:{found.lsb}"
        space = "word" if found.space == "config" else "ThreadConfig entry"
        places.append(f"{name} ({space} {found.word} {bits})")
    return " and ".join(places)


def _both(name: str) -> str:
    return _at(name.format(0)) + ", for unpacker 1 " + _at(name.format(1))


_IN = _both("THCON_SEC{0}_REG0_TileDescriptor_in_data_format")
_OUT = _both("THCON_SEC{0}_REG2_Out_data_format")
_SET_OVRD = _at("SRCA_SET_SetOvrdWithAddr")
_HALOIZE = _at("THCON_SEC0_REG2_Haloize_mode")

# --- formats ----------------------------------------------------------------------------------------------------------
NO_FORMAT: Final = fault(
    "unpack.no-format",
    UndefinedBehavior,
    f"input format code {{0}} is unassigned; it is in {_IN}, or the context's REG7 field under Ovrd_data_format",
    remedy="use a code of rules I.1; INT8 and UINT8 are 14",
    rule="I.1",
)
FORMAT_PAIR: Final = fault(
    "unpack.format-pair",
    UndefinedBehavior,
    f"input format {{0}} cannot become output format {{1}}; they are in {_IN} and {_OUT}",
    remedy="make the two equal; only FP32 (0) may become another format, TF32 (4), BF16 (5) or FP16 (1), and BFP8 (6), "
    "BFP4 (7) and BFP2 (15) are interchangeable",
    rule="I.5",
)
TOO_WIDE_FOR_SRC: Final = fault(
    "unpack.too-wide-for-src",
    UndefinedBehavior,
    f"output format {{0}} does not fit a Src register; it is in {_OUT}",
    remedy="unpack FP32 to Src as TF32 (4), BF16 (5) or FP16 (1); FP32 and INT32 can only go to Dst (Unpack_if_sel)",
    rule="I.5",
)
TF32_TO_SRC: Final = fault(
    "unpack.tf32-to-src",
    MissingSpecification,
    f"input format TF32 (4) to a Src register; it is in {_IN}",
    remedy="declare the data FP32 (0) and the output TF32 (4); the recommended choice does the same",
    rule="001.3.2i",
)
BFP_A_EXPONENT: Final = fault(
    "unpack.bfp-a-exponent",
    UndefinedBehavior,
    "datum {0} of the unpack (format {1}) needs an FP16 exponent outside 0..31: shared exponent {2}",
    remedy="give A-family BFP data shared exponents of 5 bits, large enough for the smallest datum of the block",
    rule="I.5",
)

# --- modes ------------------------------------------------------------------------------------------------------------
HALOIZE_SRCB: Final = fault(
    "unpack.haloize-srcb",
    NonContractualBehavior,
    f"{_at('THCON_SEC1_REG2_Haloize_mode')} is 1: unpacker 1 cannot transpose",
    remedy="transpose SrcB in the matrix unit (TRNSPSRCB)",
    rule="U9",
)
HALOIZE_DST: Final = fault(
    "unpack.haloize-dst",
    UndefinedBehavior,
    f"{_HALOIZE} is 1 while unpacking to Dst",
    remedy="clear Haloize_mode, or unpack to SrcA",
    rule="U10",
)
COLUMN_SHIFT_DST: Final = fault(
    "unpack.column-shift-dst",
    UndefinedBehavior,
    f"a column shift ({_at('THCON_SEC0_REG2_Shift_amount_cntx0')}, or the context's field) while unpacking to Dst",
    remedy="set the shift amount of the context to 0",
    rule="U10",
)
TILEIZE_SUB_BYTE: Final = fault(
    "unpack.tileize-sub-byte",
    UndefinedBehavior,
    f"Tileize_mode with input format {{0}}, whose datums are smaller than a byte; the mode is "
    f"{_both('THCON_SEC{0}_REG2_Tileize_mode')}",
    remedy="tilize data of 8 bits or more",
    rule="U7",
)
TILEIZE_COMPRESSED: Final = fault(
    "unpack.tileize-compressed",
    UndefinedBehavior,
    f"Tileize_mode with a compressed tile; the mode is {_both('THCON_SEC{0}_REG2_Tileize_mode')}",
    remedy="set Disable_zero_compress of the context, or clear Tileize_mode",
    rule="U5",
)
TILEIZE_UPSAMPLE: Final = fault(
    "unpack.tileize-upsample",
    UndefinedBehavior,
    f"Tileize_mode together with upsampling; the rate is {_both('THCON_SEC{0}_REG2_Upsample_rate')}",
    remedy="clear Upsample_rate or Tileize_mode",
    rule="U5",
)

# --- operands ---------------------------------------------------------------------------------------------------------
FORM_MIX: Final = fault(
    "unpack.form-mix",
    MissingSpecification,
    "CfgContextCntInc or SearchCacheFlush together with operands of a data transfer: bits {0:#x} of the word",
    remedy="issue the counter increment or the cache flush as an UNPACR of its own, all other operands 0",
    rule="U2",
)
ADC_3: Final = fault(
    "unpack.adc-3",
    UndefinedBehavior,
    "AddrCntContextId is 3: there are the ADCs of threads 0, 1 and 2",
    remedy="use 0, 1 or 2",
    rule="U2",
)
CONTEXT_SRCB: Final = fault(
    "unpack.context-srcb",
    UndefinedBehavior,
    f"context {{0}} on unpacker 1, which has contexts 0 and 1; CfgContextId or the counter plus "
    f"{_at('UNPACK_MISC_CFG_CfgContextOffset_1')}",
    remedy="keep the sum at 0 or 1",
    rule="U2",
)
BROADCAST_SRCA: Final = fault(
    "unpack.broadcast-srca",
    UndefinedBehavior,
    "srcb_bcast on unpacker 0: the row broadcast belongs to SrcB",
    remedy="clear srcb_bcast, or use unpacker 1",
    rule="001.2.1b",
)
BROADCAST_ROWS: Final = fault(
    "unpack.broadcast-rows",
    MissingSpecification,
    "srcb_bcast with {0} output datums: only the fate of the first row (16 datums at column 0) is documented",
    remedy="broadcast one row: at most 16 datums (X counters), at an output address that is a multiple of 16 datums",
    rule="001.2.1b",
)
BROADCAST: Final = fault(
    "unpack.broadcast",
    MissingSpecification,
    "srcb_bcast: which 8 SrcB rows receive the row (first row {0}) is not settled",
    remedy="write the row with 8 UNPACRs; the recommended choice writes rows first .. first + 7",
    rule="001.2.1b",
)

# --- addresses --------------------------------------------------------------------------------------------------------
X_RANGE: Final = fault(
    "unpack.x-range",
    UndefinedBehavior,
    "channel-1 X ({1}) is below channel-0 X ({0}): the datum count is negative",
    remedy="set both with SETADCXX; channel-1 X is the index of the last datum",
    rule="U5",
)
BLOB_RANGE: Final = fault(
    "unpack.blob-range",
    UndefinedBehavior,
    f"blob from datum {{0}} to datum {{1}}: start list and X dimension contradict each other "
    f"({_at('THCON_SEC0_REG0_TileDescriptor_blobs_per_xy_plane', 'UNP0_BLOBS_Y_START_CNTX_01_blobs_y_start')})",
    remedy="list blob starts in rising order, one for each of blobs_per_xy_plane",
    rule="U5",
)
ROW_STARTS: Final = fault(
    "unpack.row-starts",
    UndefinedBehavior,
    "row start index {0} follows row start index {1}: the compressed row has a negative length",
    remedy="check the row start indices in front of the tile; they are datum indices, not byte offsets (I.4)",
    rule="I.4",
)
START_ALIGNMENT: Final = fault(
    "unpack.start-alignment",
    UndefinedBehavior,
    f"first datum at byte {{0:#x}}: with {_HALOIZE} or Tileize_mode it must be a multiple of 16",
    remedy="choose X, Y, Z and the tile dimensions so that the first datum is 16-byte aligned",
    rule="U7",
)
OUT_OF_L1: Final = fault(
    "unpack.out-of-l1",
    UndefinedBehavior,
    "the transfer reaches byte {0:#x}, outside L1 (0x180000 bytes); tile base {1:#x}, first datum {2}",
    remedy="check the base address (bytes / 16 - 1), the offset, the ADC counters and the FIFO limit and size",
    rule="U5",
)
OUT_ALIGNMENT: Final = fault(
    "unpack.out-alignment",
    UndefinedBehavior,
    "output address {0} bytes is not a multiple of the output datum's size",
    remedy="make the channel-1 strides and the base (UNP ADDR_CTRL REG_1, ADDR_BASE_REG_1) multiples of the datum size",
    rule="U8",
)
ROW_SRCA: Final = fault(
    "unpack.row-srca",
    UndefinedBehavior,
    f"row {{0}} with {_SET_OVRD} = 0: the output address may reach rows 0 to 15 only",
    remedy="set SetOvrdWithAddr to 1 to address all 64 rows",
    rule="U9",
)
ROW_SRCA_SUM: Final = fault(
    "unpack.row-srca-sum",
    UndefinedBehavior,
    f"SrcA row {{0}}: there are 64 (row of the output address {{1}}, SrcRow {{2}}, {_SET_OVRD} = 0)",
    remedy="hand the bank over (SetDatValid) before SrcRow leaves it, or lower SRCA_SET_Base",
    rule="U9",
)
OVRD_DST: Final = fault(
    "unpack.ovrd-dst",
    UndefinedBehavior,
    f"{_SET_OVRD} is 1 while unpacking to Dst",
    remedy="SETC16 the entry to 0 around an unpack to Dst",
    rule="U10",
)
BURST: Final = fault(
    "unpack.burst",
    MissingSpecification,
    "first SrcA row {0} is not a multiple of the {1} rows that the unpacker writes at a time: some writes may be lost",
    remedy="start at a multiple of the burst, or lower the speed (ovrd_default_throttle_mode, Throttle_mode); "
    "the recommended choice writes every row",
    rule="U12",
)

# --- UNPACR_NOP -------------------------------------------------------------------------------------------------------
NOP_STRAY: Final = fault(
    "unpack.nop-stray",
    UndefinedBehavior,
    "bits {0:#x} of the word have no function with Unpack_Pop = {1}",
    remedy="clear them; set-dvalid belongs to Unpack_Pop = 1, stream and count to Unpack_Pop = 3",
    rule="I.7",
)
NOP_ONE_FORMAT: Final = fault(
    "unpack.nop-one-format",
    ConfigurationError,
    "Clr_to1_fmt_Ctrl is {0} without Src_ClrVal_Ctrl = 2: the clear value is not 1",
    remedy="clear it, or choose the clear value 2",
    rule="I.7",
)
ALREADY_VALID: Final = fault(
    "unpack.already-valid",
    NonContractualBehavior,
    "Src{0:c} bank {1} is handed over, but the matrix unit already owns it",
    remedy="wait for the bank: Stall_Clr_Cntrl = 1, or STALLWAIT on the Src clear condition (C5, C6)",
    rule="U11",
)
CLEAR_REGISTER: Final = fault(
    "unpack.clear-register",
    MissingSpecification,
    f"clear value from {_both('UNP{0}_NOP_REG_CLR_VAL_nop_reg_clr_val')}: how 32 bits become a cell is not settled",
    remedy="clear to 0, 1 or minus infinity; the recommended choice takes bits 18:0 as the cell",
    rule="I.7",
)
STREAM_EMPTY: Final = fault(
    "unpack.stream-empty",
    UndefinedBehavior,
    "{0} messages are popped from stream {1}, which holds {2}",
    remedy="wait for the messages (STREAMWAIT), or check NOC_OVERLAY_MSG_CLEAR (ThreadConfig 42, 43)",
    rule="I.7",
)
POP_ACCUMULATE: Final = fault(
    "unpack.pop-accumulate",
    MissingSpecification,
    "enhanced pop with accumulate (bit 3): no Blackhole source gives its rule",
    remedy="pop the count directly; the recommended choice follows the older SETREG: count 0 clears the sum, any other "
    "is added and the sum is popped",
    rule="001.8.5",
)
POP_REGISTER: Final = fault(
    "unpack.pop-register",
    MissingSpecification,
    "enhanced pop with register address select {0} (bits 22 and 15): no source says which register that is",
    remedy="use select 0, the stream's message clear",
    rule="001.8.5",
)
