"""ELWADD, ELWSUB and ELWMUL (math F7, F11, F14, F15)."""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.machine.faults import DONE, REFUSED, WAIT
from bhemu.machine.kernel import kernel, plain
from bhemu.machine.lanes import lane, load16, minimum, splat16, where
from bhemu.machine.types import AnyInt, Bool, Int, Lanes, MatrixDecodedRecord, TileRecord
from bhemu.tensix.banks import SRCA, SRCB, hand_back
from bhemu.tensix.instruction import DOCUMENTED, VERIFIED, Mode, instruction
from bhemu.tensix.matrix.binary32 import scale_of
from bhemu.tensix.matrix.decode import settings
from bhemu.tensix.matrix.dst import accumulate_one, replace
from bhemu.tensix.matrix.fidelity import exponent_bias, slice_a, slice_b
from bhemu.tensix.matrix.integer import (
    add_row_integer,
    are_integers,
    factor_a,
    factor_b,
    integer,
    multiply_row_integer,
)
from bhemu.tensix.matrix.narrow import add_pair, multiply_bf16_pairs, multiply_pair
from bhemu.tensix.matrix.operands import (
    BF16_CELL,
    BF16_CODES,
    BF16_STYLE,
    FP16_STYLE,
    INT8_STYLE,
    NO_STYLE,
    SRC_EXPONENT,
    SRC_MANTISSA,
    SRC_MANTISSA_LSB,
    SRC_SIGN,
    VIEW_32,
    VIEW_BF16,
    VIEW_FP16,
    arithmetic_style,
    bank_row,
    code_a,
    code_b,
    dst_row,
    fidelity_phase,
    owns_a,
    owns_b,
    srca_row,
    srcb_row,
    trim_mask,
    view_of,
)
from bhemu.tensix.rwc import apply_address_modifier

_ADD: Final = 0
_SUBTRACT: Final = 1
_MULTIPLY: Final = 2

_ROWS: Final = 8
_ALIGNED_8: Final = 0x38
_ANY_ROW: Final = 0x3F
_DST_ALIGNED_8: Final = 0x3F8
_SPREAD_COLUMN_0: Final = 1  # instr_mod19
_SPREAD_ROW: Final = 2
_TERM_SHIFT: Final = 13
_TOO_FAR: Final = 12
"""A smaller operand this many exponents away leaves nothing of itself (F11)."""
_FP16_TO_FP32: Final = 112
_FP16_ZERO_IN_FP32: Final = 97
_BF16_SCALE: Final = plain(scale_of)(plain(exponent_bias)(BF16_STYLE, VIEW_BF16, 0))
_LETTER_A: Final = ord("A")
_LETTER_B: Final = ord("B")


@kernel(forceinline=True)
def _operand_b(t: TileRecord, row: Int, spread: bool) -> Lanes:
    """A SrcB row, or its column 0 in all columns."""
    cells = load16(t.srcb, row)
    return splat16(lane(cells, 0)) if spread else cells


@kernel(forceinline=True)
def _significand(cell: Lanes) -> Lanes:
    """11-bit significand of a cell that ELWADD adds: 0 for the all-zero cell (F11)."""
    return where(cell != 0, (cell >> SRC_MANTISSA_LSB) & SRC_MANTISSA | (SRC_MANTISSA + 1), 0)


@kernel(forceinline=True)
def _magnitude_order(cell: Lanes) -> Lanes:
    """Exponent and mantissa as one number."""
    return ((cell & SRC_EXPONENT) << 10) | ((cell >> SRC_MANTISSA_LSB) & SRC_MANTISSA)


@kernel(forceinline=True)
def _sum(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """(signed value, exponent of the larger operand) of a + b; the smaller is shifted with half up."""
    a_is_big = _magnitude_order(a) >= _magnitude_order(b)
    big, small = where(a_is_big, a, b), where(a_is_big, b, a)
    exponent = big & SRC_EXPONENT
    distance = minimum(exponent - (small & SRC_EXPONENT), _TOO_FAR)
    part = (((_significand(small) << 1) >> distance) + 1) >> 1
    total = _significand(big) + where(((a ^ b) & SRC_SIGN) != 0, -part, part)
    return where((big & SRC_SIGN) != 0, -total, total) << _TERM_SHIFT, exponent


@kernel(forceinline=True)
def _is_minus_zero_alone(a: Lanes, b: Lanes) -> Lanes:
    """Columns of the corner of F11 (O8): nothing plus a minus zero that Zero_Flag_disabled_src keeps.

    The minus zero counts as the smaller operand and has a significand, so that the difference is below zero under a
    plus sign; the accumulation then takes it as an unsigned number.
    """
    return (a == 0) & (b == SRC_SIGN)


@kernel(forceinline=True)
def _add_row(t: TileRecord, style: Int, view: Int, phase: Int, a: Lanes, b: Lanes, accumulate: Int, row: Int) -> None:
    value, exponent = _sum(a, b)
    if style == FP16_STYLE and view == VIEW_32:
        exponent = where(exponent != 0, exponent + _FP16_TO_FP32, _FP16_ZERO_IN_FP32)
    exponent = exponent - (5 * (phase & 1) + 7 * (phase >> 1))
    if accumulate:
        accumulate_one(t, view, row, value, exponent, _is_minus_zero_alone(a, b))
    else:
        replace(t, view, row, value, exponent)


@kernel(forceinline=True)
def _multiply_row(
    t: TileRecord, bias: Int, view: Int, phase: Int, a: Lanes, b: Lanes, keep_denormals: bool, row: Int
) -> None:
    exponent = (a & SRC_EXPONENT) + (b & SRC_EXPONENT) + bias
    dead = ((a & SRC_EXPONENT) == 0) | (exponent <= 0)  # F9
    if not keep_denormals:
        dead = dead | ((b & SRC_EXPONENT) == 0)
    product = slice_a(a, phase) * slice_b(b, phase, keep_denormals)
    exponent = where(dead, max(bias, 0), exponent)
    accumulate_one(t, view, row, where(dead, 0, product << _TERM_SHIFT), exponent, dead & ~dead)


@kernel(forceinline=True)
def _operands(
    t: TileRecord, a_row: Int, b_row: Int, b_step: Int, spread: bool, a_trim: Int, b_trim: Int, flip: Int
) -> tuple[Lanes, Lanes, Lanes, Lanes]:
    """Two rows of SrcA and two of SrcB, as arithmetic sees them (F4); `flip` changes the sign of SrcB's."""
    a0, a1 = load16(t.srca, a_row) & a_trim, load16(t.srca, a_row + 1) & a_trim
    b0 = (_operand_b(t, b_row, spread) & b_trim) ^ flip
    b1 = (_operand_b(t, b_row + b_step, spread) & b_trim) ^ flip
    return a0, a1, b0, b1


@kernel
def _add_bf16(
    t: TileRecord,
    accumulate: Int,
    a_row: Int,
    b_row: Int,
    b_step: Int,
    spread: bool,
    a_trim: Int,
    b_trim: Int,
    flip: Int,
    row: Int,
) -> Int:
    """Sums into the BF16 view; how many rows there are before some whose exponents are too large for binary32.

    A function of its own, with one path: constants of others would take registers in its loop.
    """
    for i in range(0, _ROWS, 2):
        a0, a1, b0, b1 = _operands(t, a_row + i, b_row + i * b_step, b_step, spread, a_trim, b_trim, flip)
        if not add_pair(t, VIEW_BF16, a0, b0, a1, b1, accumulate, row + i):
            return i
    return _ROWS


@kernel(forceinline=True)
def _multiply_bf16_rows(t: TileRecord, phase: Int, a_row: Int, b_row: Int, b_step: Int, spread: bool, row: Int) -> Int:
    bias = exponent_bias(BF16_STYLE, VIEW_BF16, phase)
    for i in range(0, _ROWS, 4):
        a0, a1, b0, b1 = _operands(t, a_row + i, b_row + i * b_step, b_step, spread, -1, -1, 0)
        a2, a3, b2, b3 = _operands(t, a_row + i + 2, b_row + (i + 2) * b_step, b_step, spread, -1, -1, 0)
        if not multiply_bf16_pairs(t, (a0, a1, a2, a3), (b0, b1, b2, b3), phase, _BF16_SCALE, bias, row + i):
            return i
    return _ROWS


@kernel(forceinline=True)
def _multiply_bf16(t: TileRecord, phase: Int, a_row: Int, b_row: Int, b_step: Int, spread: bool, row: Int) -> Int:
    """Products into the BF16 view, as `_add_bf16` does sums; operands are `_are_bf16`."""
    if phase == 0:  # which takes fewer steps, and for many operations is the only one
        return _multiply_bf16_rows(t, 0, a_row, b_row, b_step, spread, row)
    return _multiply_bf16_rows(t, phase, a_row, b_row, b_step, spread, row)


@kernel
def _multiply_tf32(
    t: TileRecord,
    phase: Int,
    a_row: Int,
    b_row: Int,
    b_step: Int,
    spread: bool,
    a_trim: Int,
    b_trim: Int,
    row: Int,
) -> Int:
    """The same, of any operands."""
    bias = exponent_bias(BF16_STYLE, VIEW_BF16, phase)
    for i in range(0, _ROWS, 2):
        a0, a1, b0, b1 = _operands(t, a_row + i, b_row + i * b_step, b_step, spread, a_trim, b_trim, 0)
        if not multiply_pair(t, VIEW_BF16, a0, b0, a1, b1, phase, _BF16_SCALE, bias, row + i):
            return i
    return _ROWS


@kernel(forceinline=True)
def _are_bf16(phase: Int, a_trim: Int, b_trim: Int) -> Bool:
    """True when of both operands only the bits of BF16 numbers are multiplied (F4, F8)."""
    a_used = a_trim if phase & 1 else a_trim & BF16_CELL
    b_used = b_trim if phase & 2 else b_trim & BF16_CELL
    return a_used == BF16_CELL and b_used == BF16_CELL


@kernel(seldom=True)
def _hold_integers(t: TileRecord, a_row: Int, b_row: Int, b_step: Int, spread: bool) -> Bool:
    """False, with the refusal recorded, when operands of the 8-bit style are not integers (F14)."""
    all_a, all_b = splat16(0), splat16(0)
    for i in range(_ROWS):
        all_a = all_a | load16(t.srca, a_row + i)
        all_b = all_b | _operand_b(t, b_row + i * b_step, spread)
    return are_integers(t, all_a, _LETTER_A) and are_integers(t, all_b, _LETTER_B)


@kernel
def _integer_rows(
    t: TileRecord,
    operation: Int,
    phase: Int,
    accumulate: Int,
    a_row: Int,
    b_row: Int,
    b_step: Int,
    spread: bool,
    keep_denormals: bool,
    row: Int,
) -> None:
    """All rows, in the 8-bit style (F14, F15)."""
    flip = SRC_SIGN if operation == _SUBTRACT else 0
    for i in range(_ROWS):
        a, b = load16(t.srca, a_row + i), _operand_b(t, b_row + i * b_step, spread) ^ flip
        if operation == _MULTIPLY:
            value_a, value_b = integer(a, factor_a(phase), False), integer(b, factor_b(phase), keep_denormals)
            multiply_row_integer(t, row + i, value_a, value_b)
        else:
            value_a, value_b = integer(a, SRC_MANTISSA, False), integer(b, SRC_MANTISSA, keep_denormals)
            add_row_integer(t, row + i, value_a, value_b, accumulate)


@kernel(forceinline=True)
def _is_narrow(keep_denormals: bool, operation: Int, phase: Int) -> Bool:
    """True when binary32 does in the 16-bit views (matrix/narrow.py).

    In fidelity phases above 0 a sum's exponent may be below zero.
    """
    return not keep_denormals and (operation == _MULTIPLY or phase == 0)


@kernel
def _other_rows(
    t: TileRecord,
    operation: Int,
    done: Int,
    style: Int,
    view: Int,
    phase: Int,
    accumulate: Int,
    a_row: Int,
    b_row: Int,
    b_step: Int,
    spread: bool,
    a_trim: Int,
    b_trim: Int,
    keep_denormals: bool,
    row: Int,
) -> None:
    """Rows from `done` on, whatever their style, view and values."""
    flip = SRC_SIGN if operation == _SUBTRACT else 0
    bias = exponent_bias(style, view, phase)
    scale = scale_of(exponent_bias(style, view, 0))
    narrow = view == VIEW_FP16 and _is_narrow(keep_denormals, operation, phase)
    for i in range(done, _ROWS, 2):
        a0, a1, b0, b1 = _operands(t, a_row + i, b_row + i * b_step, b_step, spread, a_trim, b_trim, flip)
        if narrow:
            if operation == _MULTIPLY:
                is_done = multiply_pair(t, VIEW_FP16, a0, b0, a1, b1, phase, scale, bias, row + i)
            else:
                is_done = add_pair(t, VIEW_FP16, a0, b0, a1, b1, accumulate, row + i)
            if is_done:
                continue
        for k in range(2):
            a, b = (a1, b1) if k else (a0, b0)
            if operation == _MULTIPLY:
                _multiply_row(t, bias, view, phase, a, b, keep_denormals, row + i + k)
            else:
                a = where((a & SRC_EXPONENT) != 0, a, 0)
                if not keep_denormals:
                    b = where((b & SRC_EXPONENT) != 0, b, 0)
                _add_row(t, style, view, phase, a, b, accumulate, row + i + k)


@kernel(forceinline=True)
def _is_ordinary(c: MatrixDecodedRecord, a: Int, b: Int) -> Bool:
    """True when formats a and b, and Dst, are BF16, and nothing else is set: style and view need not be worked out."""
    return c.special == 0 and ((BF16_CODES >> a) & (BF16_CODES >> b) & 1) != 0


@kernel(forceinline=True)
def _rows_of(
    t: TileRecord, c: MatrixDecodedRecord, thread: Int, broadcast: Int, dst: Int
) -> tuple[Int, Int, Int, Bool, AnyInt]:
    """First rows of SrcA and SrcB, the step in SrcB, whether its column 0 is spread; the first Dst row (F7)."""
    b_mask, b_step = (_ANY_ROW, 0) if broadcast & _SPREAD_ROW else (_ALIGNED_8, 1)
    a_row = bank_row(t, SRCA, srca_row(t, thread, 0, _ALIGNED_8))
    b_row = bank_row(t, SRCB, srcb_row(t, thread, 0, b_mask))
    return a_row, b_row, b_step, (broadcast & _SPREAD_COLUMN_0) != 0, dst_row(t, c, thread, dst, _DST_ALIGNED_8)


@kernel(forceinline=True)
def _of_any(
    t: TileRecord,
    c: MatrixDecodedRecord,
    thread: Int,
    clear_dvalid: Int,
    accumulate: Int,
    broadcast: Int,
    address_modifier: Int,
    dst: Int,
    operation: Int,
) -> Int:
    """`_elementwise` for all formats and settings."""
    code_of_a, code_of_b = code_a(t, c, SRCA), code_b(t, c)
    style = arithmetic_style(t, c, code_of_a, code_of_b)
    if style == NO_STYLE:
        return REFUSED
    view, a_trim, b_trim = view_of(c, style), trim_mask(code_of_a), trim_mask(code_of_b)
    a_row, b_row, b_step, spread, row = _rows_of(t, c, thread, broadcast, dst)
    if style == INT8_STYLE and not _hold_integers(t, a_row, b_row, b_step, spread):
        return REFUSED
    keep_denormals = c.keep_denormals != 0
    phase = fidelity_phase(t, c, thread)
    if apply_address_modifier(t, thread, address_modifier) != DONE:
        return REFUSED
    if style == INT8_STYLE:
        _integer_rows(t, operation, phase, accumulate, a_row, b_row, b_step, spread, keep_denormals, row)
        return hand_back(t, thread, clear_dvalid)
    done: Int = np.int64(0)
    if view == VIEW_BF16 and _is_narrow(keep_denormals, operation, phase):
        if operation != _MULTIPLY:
            flip = SRC_SIGN if operation == _SUBTRACT else 0
            done = _add_bf16(t, accumulate, a_row, b_row, b_step, spread, a_trim, b_trim, flip, row)
        elif _are_bf16(phase, a_trim, b_trim):
            done = _multiply_bf16(t, phase, a_row, b_row, b_step, spread, row)
        else:
            done = _multiply_tf32(t, phase, a_row, b_row, b_step, spread, a_trim, b_trim, row)
    if done != _ROWS:
        _other_rows(
            t, operation, done, style, view, phase, accumulate, a_row, b_row, b_step, spread, a_trim, b_trim,
            keep_denormals, row,
        )  # fmt: skip
    return hand_back(t, thread, clear_dvalid)


@kernel
def _elementwise(
    t: TileRecord,
    thread: Int,
    clear_dvalid: Int,
    accumulate: Int,
    broadcast: Int,
    address_modifier: Int,
    dst: Int,
    operation: Int,
) -> Int:
    """What the three instructions share; `operation` is a constant in each."""
    if not owns_a(t) or not owns_b(t):
        return WAIT
    c = settings(t, thread)
    if not _is_ordinary(c, code_a(t, c, SRCA), code_b(t, c)):
        return _of_any(t, c, thread, clear_dvalid, accumulate, broadcast, address_modifier, dst, operation)
    a_row, b_row, b_step, spread, row = _rows_of(t, c, thread, broadcast, dst)
    phase = fidelity_phase(t, c, thread)
    if apply_address_modifier(t, thread, address_modifier) != DONE:
        return REFUSED
    done: Int = np.int64(0)
    if operation == _MULTIPLY:
        done = _multiply_bf16(t, phase, a_row, b_row, b_step, spread, row)
    elif phase == 0:
        flip = SRC_SIGN if operation == _SUBTRACT else 0
        done = _add_bf16(t, accumulate, a_row, b_row, b_step, spread, BF16_CELL, BF16_CELL, flip, row)
    if done != _ROWS:
        _other_rows(
            t, operation, done, BF16_STYLE, VIEW_BF16, phase, accumulate, a_row, b_row, b_step, spread, BF16_CELL,
            BF16_CELL, False, row,
        )  # fmt: skip
    return hand_back(t, thread, clear_dvalid) if clear_dvalid else DONE


@instruction(
    Mode("phase 0", VERIFIED, vectors="fpu:ELWADD", rule="math F11, F15"),
    Mode("fidelity phases 1 to 3: sum divided by 32, 128 or both", DOCUMENTED, rule="math F11"),
    Mode("rows that are not aligned: low bits ignored", DOCUMENTED, rule="math F7"),
)
def ELWADD(
    t: TileRecord, thread: Int, clear_dvalid: Int, dest_accum_en: Int, instr_mod19: Int, addr_mode: Int, dst: Int
) -> Int:
    return _elementwise(t, thread, clear_dvalid, dest_accum_en, instr_mod19, addr_mode, dst, _ADD)


@instruction(
    Mode("phase 0", VERIFIED, vectors="fpu:ELWSUB", rule="math F11, F15"),
    Mode("fidelity phases 1 to 3: difference divided by 32, 128 or both", DOCUMENTED, rule="math F11"),
    Mode("rows that are not aligned: low bits ignored", DOCUMENTED, rule="math F7"),
)
def ELWSUB(
    t: TileRecord, thread: Int, clear_dvalid: Int, dest_accum_en: Int, instr_mod19: Int, addr_mode: Int, dst: Int
) -> Int:
    return _elementwise(t, thread, clear_dvalid, dest_accum_en, instr_mod19, addr_mode, dst, _SUBTRACT)


@instruction(
    Mode("all phases", VERIFIED, vectors="fpu:ELWMUL", rule="math F8, F9, F11, F15"),
    Mode("dest_accum_en = 1, which changes nothing", DOCUMENTED, rule="math F11"),
    Mode("rows that are not aligned: low bits ignored", DOCUMENTED, rule="math F7"),
)
def ELWMUL(
    t: TileRecord, thread: Int, clear_dvalid: Int, dest_accum_en: Int, instr_mod19: Int, addr_mode: Int, dst: Int
) -> Int:
    return _elementwise(t, thread, clear_dvalid, dest_accum_en, instr_mod19, addr_mode, dst, _MULTIPLY)
