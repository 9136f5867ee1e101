"""GMPOOL: maximum of SrcA columns (math F17, F18)."""

from __future__ import annotations

from typing import Final

from bhemu.errors import MissingSpecification, NonContractualBehavior
from bhemu.machine.dst import LOW_HALF, high_row
from bhemu.machine.faults import DONE, REFUSED, WAIT, fault, open_choice, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import lane, load16, splat16, store16, where
from bhemu.machine.types import Int, Lanes, TileRecord
from bhemu.tensix.banks import SRCA, SRCB, hand_back
from bhemu.tensix.instruction import DOCUMENTED, OPEN, VERIFIED, Mode, instruction
from bhemu.tensix.matrix.decode import settings
from bhemu.tensix.matrix.integer import all_integers
from bhemu.tensix.matrix.multiply import POOL_SHAPE
from bhemu.tensix.matrix.operands import (
    BF16_STYLE,
    FP16_STYLE,
    INT8_STYLE,
    NO_STYLE,
    SRC_CELL,
    SRC_EXPONENT,
    SRC_MANTISSA,
    SRC_MANTISSA_LSB,
    SRC_SIGN,
    TF32_STYLE,
    arithmetic_style,
    bank_row,
    code_a,
    code_b,
    dst_row,
    owns_a,
    owns_b,
    srca_row,
    srcb_row,
    trim_mask,
)
from bhemu.tensix.rwc import apply_address_modifier

_DEPTH: Final = 16
_ALIGNED_16: Final = 0x30
_ALIGNED_8: Final = 0x38
_DST_ALIGNED_4: Final = 0x3FC
_LETTER_A: Final = ord("A")

# A value under comparison: sign, exponent of 9 bits (the sum of two biased exponents), 10 bits of mantissa.
_SIGN: Final = 1 << 19
_EXPONENT_LSB: Final = 10
_EXPONENT: Final = 0x1FF
_MANTISSA: Final = 0x3FF
_LOWEST: Final = _SIGN | (_EXPONENT << _EXPONENT_LSB) | _MANTISSA

_BIAS_8: Final = 127
_BIAS_5: Final = 15
_INDEX: Final = 0xFF
_INDEX_STEP: Final = 0x100
_INDEX_PHASE: Final = 0xF00
_INDEX_ROWS: Final = 8
_INDEX_CODES: Final = (0, 3, 6, 1, 4, 7, 2, 5, 0, 0, 0, 0, 0, 0, 0, 0)
"""What GMPOOL adds to the index for a maximum in row 0..7 (F18)."""

INDEX_NEEDS_32 = fault(
    "matrix.index-needs-32",
    NonContractualBehavior,
    "max_pool_index_en with the 16-bit view of Dst: the index is in the low half, which this view does not have",
    remedy="set ALU_ACC_CTRL_Fp32_enabled",
    rule="math F18",
)
FP16_INTO_32 = fault(
    "matrix.pool-fp16-into-32",
    MissingSpecification,
    "GMPOOL of 5-bit exponents into 32-bit Dst: documents compare 5-bit exponents with 8-bit ones as they are",
    remedy="use the 16-bit view or the index mode, or allow open choices to have the documents' model",
    rule="math F18",
)

_INT32_STYLE: Final = 4  # style of Dst, besides the styles of operands.py


@kernel(forceinline=True)
def _comparable(value: Lanes) -> Lanes:
    """Signed number in the order of the values: sign and magnitude."""
    magnitude = value & (_SIGN - 1)
    return where((value & _SIGN) != 0, -magnitude, magnitude)


@kernel(forceinline=True)
def _read_dst(style: Int, cell: Lanes, low: Lanes) -> Lanes:
    """The old Dst value under comparison, from its high and low half cells (F18)."""
    sign = (cell & 0x8000) << 4
    if style == _INT32_STYLE:
        return sign | (cell & 0x700) << 8 | low
    if style == FP16_STYLE:
        return sign | ((cell & 0x1F) + _BIAS_5) << _EXPONENT_LSB | (cell >> 5) & _MANTISSA
    value = sign | ((cell & 0xFF) + _BIAS_8) << _EXPONENT_LSB | (cell & 0x7F00) >> 5
    return value | (low >> 13) & 7 if style == TF32_STYLE else value


@kernel(forceinline=True)
def _high_cell(style: Int, value: Lanes) -> Lanes:
    """High half cell (16-bit view: the cell) of the result."""
    sign = (value & _SIGN) >> 4
    exponent = (value >> _EXPONENT_LSB) & _EXPONENT
    if style == _INT32_STYLE:
        return sign
    if style == FP16_STYLE:
        cell = sign | (value & _MANTISSA) << 5 | (exponent - _BIAS_5) & 0x1F
        return where((exponent & 0x3F) != 0, cell, 0)
    cell = sign | (value & 0x3F8) << 5 | (exponent - _BIAS_8) & 0xFF
    return where(exponent != 0, cell, 0)


@kernel(forceinline=True)
def _low_cell(style: Int, value: Lanes) -> Lanes:
    """Low half cell of the result without the index."""
    if style == _INT32_STYLE:
        return value & 0x1FFF
    if style == TF32_STYLE:
        return where((value >> _EXPONENT_LSB) & _EXPONENT != 0, (value & 7) << 13, 0)
    return value & 0


@kernel(forceinline=True)
def _candidate(style: Int, cells: Lanes, scale: Int) -> Lanes:
    """SrcA cells scaled by the exponent of a SrcB cell, under comparison (F18)."""
    exponent = cells & SRC_EXPONENT
    if style == INT8_STYLE:
        total = exponent & 0
    elif style == FP16_STYLE:
        total = (exponent & 0x1F) + (scale & 0x1F)
    else:
        total = exponent + scale
    value = (cells & SRC_SIGN) << 1 | total << _EXPONENT_LSB | (cells >> SRC_MANTISSA_LSB) & SRC_MANTISSA
    return where(exponent != 0, value, 0)


@kernel
def _pool(
    t: TileRecord,
    style: Int,
    dst_style: Int,
    wide: bool,
    index_enabled: Int,
    a_row: Int,
    trim: Int,
    b_row: Int,
    b_trim: Int,
    row: Int,
) -> None:
    """One GMPOOL; the order of rows and the `>=` matter for the index alone (F18)."""
    physical = high_row(row) if wide else row
    cell, low = splat16(0xFFFF), splat16(0xFFFF)  # minus infinity from a row that is not valid
    if t.dst_valid[physical] != 0:
        cell = load16(t.dst, physical)
        if wide:
            low = load16(t.dst, physical + LOW_HALF)
    best = _read_dst(dst_style, cell, low)
    phase = (low + _INDEX_STEP) & _INDEX_PHASE
    index = low & _INDEX
    scales = load16(t.srcb, b_row) & SRC_EXPONENT & b_trim
    for visit in range(_DEPTH):
        i = visit ^ 4 if visit < _INDEX_ROWS else visit
        scale = int(lane(scales, i))
        value = _candidate(style, load16(t.srca, a_row + i) & trim, scale)
        if scale == 0:
            value = splat16(_LOWEST)
        wins = _comparable(value) >= _comparable(best)
        best = where(wins, value, best)
        if i < _INDEX_ROWS:
            index = where(wins, (phase >> 4) + _INDEX_CODES[i], index)
    high = _high_cell(dst_style, best)
    if not wide:
        store16(t.dst, row, high)
        t.dst_valid[row] = 1
        for i in range(1, 4):
            store16(t.dst, row + i, splat16(0))
            t.dst_valid[row + i] = 1
        return
    lower = _low_cell(dst_style, best)
    if index_enabled:
        lower = phase | index
        if dst_style == _INT32_STYLE:
            high = splat16(0)
    store16(t.dst, physical, high)
    store16(t.dst, physical + LOW_HALF, lower)
    t.dst_valid[physical] = 1
    for i in range(1, 4):
        rest = splat16(0)
        if index_enabled and t.dst_valid[physical + i] != 0:
            rest = (load16(t.dst, physical + i + LOW_HALF) + _INDEX_STEP) & _INDEX_PHASE
        store16(t.dst, physical + i, splat16(0))
        store16(t.dst, physical + i + LOW_HALF, rest)
        t.dst_valid[physical + i] = 1


@kernel
def pool(
    t: TileRecord, thread: Int, clear_dvalid: Int, address_modifier: Int, index_enabled: Int, dst: Int, zero_a: bool
) -> Int:
    """GMPOOL; with `zero_a` every SrcA cell counts as zero."""
    if not owns_a(t) or not owns_b(t):
        return WAIT
    c = settings(t, thread)
    a, b = code_a(t, c, SRCA), code_b(t, c)
    style = arithmetic_style(t, c, a, b)
    if style == NO_STYLE:
        return REFUSED
    wide = c.wide != 0
    if index_enabled and not wide:
        return refuse(t, INDEX_NEEDS_32)
    a_row = bank_row(t, SRCA, srca_row(t, thread, 0, _ALIGNED_16))
    b_row = bank_row(t, SRCB, srcb_row(t, thread, 0, _ALIGNED_8))
    dst_style = style
    if style == INT8_STYLE:
        dst_style = _INT32_STYLE
        if not all_integers(t, t.srca, a_row, _DEPTH, _LETTER_A):
            return REFUSED
    elif style == FP16_STYLE:
        if wide and not index_enabled:
            dst_style = TF32_STYLE
            if not open_choice(t, FP16_INTO_32):
                return REFUSED
    elif index_enabled:
        dst_style = _INT32_STYLE if style == TF32_STYLE else BF16_STYLE
    else:
        dst_style = TF32_STYLE if wide else BF16_STYLE
    row = dst_row(t, c, thread, dst, _DST_ALIGNED_4)
    if apply_address_modifier(t, thread, address_modifier) != DONE:
        return REFUSED
    trim = SRC_CELL if style == INT8_STYLE else trim_mask(a)
    if zero_a:
        trim = 0
    _pool(
        t,
        style,
        dst_style,
        wide,
        index_enabled,
        a_row,
        trim,
        b_row,
        SRC_CELL if style == INT8_STYLE else trim_mask(b),
        row,
    )
    return hand_back(t, thread, clear_dvalid)


@instruction(
    Mode("8-bit exponents, scale 1.0", VERIFIED, vectors="fpu:GMPOOL", rule="math F17"),
    Mode("scale by SrcB exponents; FP16 in the 16-bit view; integers; index", DOCUMENTED, rule="math F18"),
    Mode("rows that are not aligned: low bits ignored", DOCUMENTED, rule="math F7"),
    Mode("5-bit exponents into the 32-bit view without index", OPEN, rule="math F18"),
)
def GMPOOL(
    t: TileRecord,
    thread: Int,
    clear_dvalid: Int,
    instr_mod19: Int,
    pool_addr_mode: Int,
    max_pool_index_en: Int,
    dst: Int,
) -> Int:
    if not instr_mod19:
        return refuse(t, POOL_SHAPE)
    return pool(t, thread, clear_dvalid, pool_addr_mode, max_pool_index_en, dst, False)
