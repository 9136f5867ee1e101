"""MVMUL, DOTPV and GAPOOL: matrix products (math F7, F10, F16, F32)."""

from __future__ import annotations

from typing import Final

from bhemu.errors import MissingSpecification, UndefinedBehavior
from bhemu.machine.faults import DONE, REFUSED, WAIT, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Int, TileRecord
from bhemu.tensix.banks import SRCA, SRCB, hand_back
from bhemu.tensix.instruction import DOCUMENTED, VERIFIED, Mode, instruction
from bhemu.tensix.matrix.decode import settings
from bhemu.tensix.matrix.dot import dot_rows
from bhemu.tensix.matrix.integer import all_integers, dot_rows_integer
from bhemu.tensix.matrix.operands import (
    INT8_STYLE,
    NO_STYLE,
    SRC_PAST_END,
    SRC_ROWS,
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

DEPTH: Final = 16
"""Rows of SrcA in a product."""
_ALIGNED_8: Final = 0x38
_ANY_ROW: Final = 0x3F
_DST_ALIGNED_8: Final = 0x3F8
_DST_ALIGNED_4: Final = 0x3FC
_DST_BROADCAST: Final = 0x3F9
_LETTER_A: Final = ord("A")
_LETTER_B: Final = ord("B")

DENORMALS_KEPT = fault(
    "matrix.denormals-kept",
    MissingSpecification,
    "Zero_Flag_disabled_src is 1: no source says what a matrix product makes of denormals then",
    remedy="clear ALU_ACC_CTRL_Zero_Flag_disabled_src around MVMUL, DOTPV and GAPOOL",
    rule="math F5, O7",
)
POOL_SHAPE = fault(
    "matrix.pool-shape",
    MissingSpecification,
    "instr_mod19 is 0: only the 16-row form of pooling is described",
    remedy="set instr_mod19 to 1 (p_gpool::DIM_16X16)",
    rule="math F16",
)
NO_AVERAGE_INDEX = fault(
    "matrix.average-index",
    UndefinedBehavior,
    "max_pool_index_en is 1 in GAPOOL, which has no maximum to take an index of",
    remedy="clear max_pool_index_en",
    rule="math F16",
)
DOT_OPTION = fault(
    "matrix.dot-option",
    UndefinedBehavior,
    "DOTPV has no broadcast and addresses like MVMUL: {0:#x} sets other bits",
    remedy="use MVMUL, or leave instr_mod19, addr_mode[4:3] and dst[13:10] at 0",
    rule="math F32",
)


@kernel
def _are_integers(t: TileRecord, a_row: Int, b_row: Int, b_rows: Int) -> bool:
    """True when the operands are integers; records the refusal otherwise."""
    return all_integers(t, t.srca, a_row, DEPTH, _LETTER_A) and all_integers(t, t.srcb, b_row, b_rows, _LETTER_B)


@kernel
def multiply(
    t: TileRecord,
    thread: Int,
    clear_dvalid: Int,
    address_modifier: Int,
    dst: Int,
    b_mask: Int,
    b_step: Int,
    dst_mask: Int,
    dst_step: Int,
    count: Int,
) -> Int:
    """Dst rows += SrcB rows x SrcA: what MVMUL, DOTPV and GAPOOL share."""
    if not owns_a(t) or not owns_b(t):
        return WAIT
    c = settings(t, thread)
    a, b = code_a(t, c, SRCA), code_b(t, c)
    style = arithmetic_style(t, c, a, b)
    if style == NO_STYLE:
        return REFUSED
    if c.keep_denormals:
        return refuse(t, DENORMALS_KEPT)
    first_a = srca_row(t, thread, 0, _ALIGNED_8)
    if first_a > SRC_ROWS - DEPTH:
        return refuse(t, SRC_PAST_END, first_a, DEPTH)
    a_row = bank_row(t, SRCA, first_a)
    b_row = bank_row(t, SRCB, srcb_row(t, thread, 0, b_mask))
    b_rows = count if b_step else 1
    if style == INT8_STYLE and not _are_integers(t, a_row, b_row, b_rows):
        return REFUSED
    view = view_of(c, style)
    phase = fidelity_phase(t, c, thread)
    row = dst_row(t, c, thread, dst, dst_mask)
    if apply_address_modifier(t, thread, address_modifier) != DONE:
        return REFUSED
    if style == INT8_STYLE:
        dot_rows_integer(t, phase, a_row, b_row, b_step, row, dst_step, count)
    else:
        dot_rows(t, style, view, phase, a_row, trim_mask(a), b_row, b_step, trim_mask(b), row, dst_step, count)
    return hand_back(t, thread, clear_dvalid)


@instruction(
    Mode("8-bit exponents", VERIFIED, vectors="fpu:MVMUL", rule="math F8..F13"),
    Mode("5-bit exponents", VERIFIED, vectors="fpu:MVMUL", rule="math F8..F13"),
    Mode("integers", VERIFIED, vectors="fpu:MVMUL", rule="math F14, F15"),
    Mode("one SrcB row to four Dst rows (instr_mod19 = 1)", DOCUMENTED, rule="math F7, F32"),
    Mode("rows that are not aligned: low bits ignored", DOCUMENTED, rule="math F7"),
    Mode("BFP8a, BFP4a, BFP2a, INT32, INT16 as float operands", DOCUMENTED, rule="math F2"),
)
def MVMUL(t: TileRecord, thread: Int, clear_dvalid: Int, instr_mod19: Int, addr_mode: Int, dst: Int) -> Int:
    if instr_mod19:
        return multiply(t, thread, clear_dvalid, addr_mode, dst, _ANY_ROW, 0, _DST_BROADCAST, 2, 4)
    return multiply(t, thread, clear_dvalid, addr_mode, dst, _ALIGNED_8, 1, _DST_ALIGNED_8, 1, 8)


@instruction(Mode("as MVMUL", DOCUMENTED, rule="math F32"))
def DOTPV(t: TileRecord, thread: Int, clear_dvalid: Int, instr_mod19: Int, addr_mode: Int, dst: Int, word: Int) -> Int:
    if instr_mod19 or addr_mode > 7 or dst > 0x3FF:
        return refuse(t, DOT_OPTION, word)
    return multiply(t, thread, clear_dvalid, addr_mode, dst, _ALIGNED_8, 1, _DST_ALIGNED_8, 1, 8)


@instruction(
    Mode("16 SrcA rows", VERIFIED, vectors="fpu:GAPOOL", rule="math F16"),
    Mode("rows that are not aligned: low bits ignored", DOCUMENTED, rule="math F7"),
)
def GAPOOL(
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
    if max_pool_index_en:
        return refuse(t, NO_AVERAGE_INDEX)
    return multiply(t, thread, clear_dvalid, pool_addr_mode, dst, _ALIGNED_8, 1, _DST_ALIGNED_4, 1, 4)
