"""What matrix instructions look up first: formats, view of Dst, rows (math F1..F7, rules I.2, I.3).

`c` is the decoded configuration of the instruction's thread, `decode.settings`.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.errors import ConfigurationError, MissingSpecification, NonContractualBehavior, UndefinedBehavior
from bhemu.formats import DataFormat
from bhemu.machine.counters import RWC_A, RWC_B, RWC_DST, RWC_FIDELITY
from bhemu.machine.faults import fault, open_choice, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.types import AnyInt, Bool, Int, MatrixDecodedRecord, TileRecord
from bhemu.tensix.banks import MATRIX, SRCA, SRCB
from bhemu.tensix.matrix.decode import FORMAT_IMPLIED

# --- format codes (rules I.1) and styles (F2) -------------------------------------------------------------------------

TF32: Final = DataFormat.TF32.code
FP16: Final = DataFormat.FP16.code
INT8: Final = DataFormat.INT8.code


def _set_of(*formats: DataFormat) -> int:
    return sum(1 << f.code for f in formats)


_D = DataFormat
FIVE_BIT_CODES: Final = _set_of(_D.FP16, _D.FP8_E5M2, _D.BFP8A, _D.BFP4A, _D.BFP2A, _D.INT8)
"""Formats whose exponent has five bits in Src and Dst, one bit a code; INT8 is laid over FP16 (F2)."""
EIGHT_BIT_CODES: Final = _set_of(_D.FP32, _D.TF32, _D.BF16, _D.BFP8, _D.BFP4, _D.BFP2, _D.INT32, _D.INT16)
BF16_CODES: Final = EIGHT_BIT_CODES & ~_set_of(_D.TF32)
"""Formats that arithmetic sees as BF16 (F2, F4)."""

BF16_STYLE: Final = 0
TF32_STYLE: Final = 1
FP16_STYLE: Final = 2
INT8_STYLE: Final = 3
NO_STYLE: Final = -1
"""The formats were refused."""

VIEW_BF16: Final = 0
VIEW_FP16: Final = 1
VIEW_32: Final = 2

# --- cells (rules I.2) ------------------------------------------------------------------------------------------------

SRC_SIGN: Final = 1 << 18
SRC_CELL: Final = (1 << 19) - 1
SRC_EXPONENT: Final = 0xFF
SRC_MANTISSA_LSB: Final = 8
SRC_MANTISSA: Final = 0x3FF
_SRC_HIGH_EXPONENT: Final = 0xE0
BF16_CELL: Final = SRC_CELL & ~(7 << SRC_MANTISSA_LSB)
"""Bits of a cell that hold a BF16 number."""
SRC_ROWS: Final = 64

NO_FORMAT = fault(
    "matrix.no-format",
    UndefinedBehavior,
    "format code {0} of SrcA or {1} of SrcB is not a data format",
    remedy="keep the unpacker's implied format, or set ALU_FORMAT_SPEC to a format of rules I.1",
    rule="math F2",
)
MIXED_FORMATS = fault(
    "matrix.mixed-formats",
    ConfigurationError,
    "SrcA has format code {0} and SrcB {1}: one has 5 exponent bits and the other 8",
    remedy="unpack both operands to formats with the same exponent width",
    rule="math F2",
)
STOCHASTIC = fault(
    "matrix.stochastic",
    MissingSpecification,
    "ALU_ROUNDING_MODE_Fpu_srnd_en is 1: no source gives the random bits of stochastic rounding",
    remedy="clear ALU_ROUNDING_MODE_Fpu_srnd_en, or accept open choices: round as if it were clear",
    rule="math O13",
)
FORCED_FP16 = fault(
    "matrix.forced-fp16",
    NonContractualBehavior,
    "FP16A_FORCE_Enable is 1, which Blackhole silicon does not have",
    remedy="leave ThreadConfig FP16A_FORCE at 0 and configure FP16 formats",
    rule="math F1",
)
DST_BASE = fault(
    "matrix.dst-base",
    NonContractualBehavior,
    "DEST_REGW_BASE_Base is {0}: documents add it to Dst rows, Blackhole silicon does not have it",
    remedy="leave it at 0 and use DEST_TARGET_REG_CFG_MATH_Offset",
    rule="math O5",
)
SRC_PAST_END = fault(
    "matrix.src-past-end",
    UndefinedBehavior,
    "{1} SrcA rows from row {0} reach past row 63",
    remedy="start at row 48 or below",
    rule="math F7",
)


@kernel
def owns_a(t: TileRecord) -> Bool:
    """The matrix unit's bank of SrcA holds data (F30)."""
    t.matrix.scratch[0, 0] = 0  # written before it is read: see `_layout` of machine/state.py
    return t.src_owner[SRCA, t.matrix.bank[SRCA]] == MATRIX


@kernel
def owns_b(t: TileRecord) -> Bool:
    """The matrix unit's bank of SrcB holds data (F30)."""
    t.matrix.scratch[0, 0] = 0  # likewise
    return t.src_owner[SRCB, t.matrix.bank[SRCB]] == MATRIX


@kernel
def code_a(t: TileRecord, c: MatrixDecodedRecord, file: Int) -> AnyInt:
    """Format code "fA": implied by the bank of `file` (SrcB for moves from and to SrcB), or configured (F1)."""
    if c.format_a == FORMAT_IMPLIED:
        return np.int64(t.src_format[file, t.matrix.bank[file]])
    return c.format_a


@kernel
def code_b(t: TileRecord, c: MatrixDecodedRecord) -> AnyInt:
    """Format code "fB" (F1)."""
    if c.format_b == FORMAT_IMPLIED:
        return np.int64(t.src_format[SRCB, t.matrix.bank[SRCB]])
    return c.format_b


@kernel
def _is_accepted(t: TileRecord, c: MatrixDecodedRecord) -> bool:
    """`is_supported` of a configuration that sets something out of the ordinary."""
    if c.stochastic and not open_choice(t, STOCHASTIC):
        return False
    if c.force_fp16:
        refuse(t, FORCED_FP16)
        return False
    if c.dst_base:
        refuse(t, DST_BASE, c.dst_base)
        return False
    return True


@kernel
def is_supported(t: TileRecord, c: MatrixDecodedRecord) -> bool:
    """False, with the refusal recorded, when a setting asks for what silicon does not have or no source describes."""
    return c.unsupported == 0 or _is_accepted(t, c)


@kernel
def arithmetic_style(t: TileRecord, c: MatrixDecodedRecord, a: Int, b: Int) -> Int:
    """Style of an arithmetic instruction with format codes a and b, or NO_STYLE with the refusal recorded (F2)."""
    if not is_supported(t, c):
        return NO_STYLE
    if c.integer:
        return INT8_STYLE
    five = ((FIVE_BIT_CODES >> a) & 1) + 2 * ((FIVE_BIT_CODES >> b) & 1)
    eight = ((EIGHT_BIT_CODES >> a) & 1) + 2 * ((EIGHT_BIT_CODES >> b) & 1)
    if five == 3:
        return FP16_STYLE
    if eight == 3:
        return TF32_STYLE if a == TF32 else BF16_STYLE
    if (five | eight) == 3:
        refuse(t, MIXED_FORMATS, a, b)
    else:
        refuse(t, NO_FORMAT, a, b)
    return NO_STYLE


@kernel
def view_of(c: MatrixDecodedRecord, style: Int) -> Int:
    """View of Dst for a style (F3)."""
    if c.wide:
        return VIEW_32
    return VIEW_FP16 if style == FP16_STYLE else VIEW_BF16


@kernel(forceinline=True)
def trim_mask(code: Int) -> Int:
    """Bits of a Src cell that arithmetic sees, by the operand's own format (F4).

    Cells of a 5-bit format may have exponent bits 7:5: LLK's kernels for tiles of few rows also compute with rows that
    hold what another format has left there, and drop the results.
    """
    if (FIVE_BIT_CODES >> code) & 1:
        return SRC_CELL & ~_SRC_HIGH_EXPONENT
    return SRC_CELL if code == TF32 else BF16_CELL


@kernel
def fidelity_phase(t: TileRecord, c: MatrixDecodedRecord, thread: Int) -> Int:
    """Fidelity phase 0..3 (F8)."""
    # A Python integer, since a NumPy one would widen the lanes that it meets when Numba is disabled.
    return int((np.int64(t.rwc[thread, RWC_FIDELITY]) + c.fidelity_base) & 3)


# --- rows -------------------------------------------------------------------------------------------------------------


@kernel
def srca_row(t: TileRecord, thread: Int, offset: Int, mask: Int) -> Int:
    """First SrcA row; remembers it for SHIFTXA (F7, F31)."""
    row = (np.int64(t.rwc[thread, RWC_A]) + offset) & mask
    t.matrix.srca_row = row + 1
    return row


@kernel
def forget_srca_row(t: TileRecord) -> None:
    """After an instruction whose SrcA row no source gives, SHIFTXA's input is unknown (F31)."""
    t.matrix.srca_row = 0


@kernel
def srcb_row(t: TileRecord, thread: Int, offset: Int, mask: Int) -> Int:
    """First SrcB row (F7)."""
    return (np.int64(t.rwc[thread, RWC_B]) + offset) & mask


@kernel
def dst_row(t: TileRecord, c: MatrixDecodedRecord, thread: Int, immediate: Int, mask: Int) -> AnyInt:
    """First logical Dst row in the view in use (F6)."""
    return (immediate + np.int64(t.rwc[thread, RWC_DST]) + c.dst_offset) & mask


@kernel(forceinline=True)
def bank_row(t: TileRecord, file: Int, row: Int) -> Int:
    """Position of row `row` of the matrix unit's bank among all rows of `t.srca` or `t.srcb`, for `load16`."""
    return np.int64(t.matrix.bank[file]) * SRC_ROWS + row
