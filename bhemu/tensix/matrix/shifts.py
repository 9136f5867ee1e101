"""TRNSPSRCB, SHIFTXA and SHIFTXB: rearranging Src rows in place (math F24, F31)."""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.errors import MissingSpecification, UndefinedBehavior
from bhemu.machine.faults import DONE, REFUSED, WAIT, fault, refuse
from bhemu.machine.lanes import iota16, load16, shuffle, store16, where
from bhemu.machine.types import Int, TileRecord
from bhemu.tensix.banks import SRCA, SRCB
from bhemu.tensix.instruction import DOCUMENTED, VERIFIED, Mode, instruction
from bhemu.tensix.matrix.operands import bank_row, owns_a, owns_b, srcb_row
from bhemu.tensix.rwc import apply_address_modifier

_TRANSPOSED_ROW: Final = 16
_SIZE: Final = 16
_ANY_ROW: Final = 0x3F
_ALIGNED_16: Final = 0x30
_RIGHT: Final = 2  # shift_mode
_LEFT: Final = 3
_FROM_LEFT: Final = (15, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)
_FROM_RIGHT: Final = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0)

SHIFT_MODE = fault(
    "matrix.shift-mode",
    UndefinedBehavior,
    "SHIFTXA {0:#x}: only shift_mode 2 (right) and 3 (left) with log2_amount2 = 0 are defined",
    remedy="shift by one column: shift_mode 2 or 3, log2_amount2 0",
    rule="math F31",
)
STALE_ROW = fault(
    "matrix.shift-row",
    MissingSpecification,
    "SHIFTXA reads the rows that the latest instruction with a SrcA row used, and which they are is not known here",
    remedy="execute MOVA2D, MOVD2A, MOVB2A or an arithmetic instruction on the wanted SrcA rows first",
    rule="math F31",
)
SHIFTXB_BITS = fault(
    "matrix.shiftxb-bits",
    UndefinedBehavior,
    "SHIFTXB word {0:#010x} sets bits that no source describes",
    remedy="use a row below 64, bit 10 for shift or rotate, and an address modifier in bits 16:14",
    rule="math F31",
)


@instruction(Mode("rows 16..31", VERIFIED, vectors="fpu:TRNSPSRCB", rule="math F24"))
def TRNSPSRCB(t: TileRecord, thread: Int) -> Int:
    if not owns_b(t):
        return WAIT
    bank = np.int64(t.matrix.bank[SRCB])
    for i in range(_SIZE):
        for j in range(i):
            upper = t.srcb[bank, _TRANSPOSED_ROW + j, i]
            t.srcb[bank, _TRANSPOSED_ROW + j, i] = t.srcb[bank, _TRANSPOSED_ROW + i, j]
            t.srcb[bank, _TRANSPOSED_ROW + i, j] = upper
    return DONE


@instruction(Mode("one column left or right", DOCUMENTED, rule="math F31"))
def SHIFTXA(t: TileRecord, thread: Int, log2_amount2: Int, shift_mode: Int, word: Int) -> Int:
    if log2_amount2 != 0 or (shift_mode != _RIGHT and shift_mode != _LEFT):
        return refuse(t, SHIFT_MODE, word)
    if not owns_a(t):
        return WAIT
    if t.matrix.srca_row == 0:
        return refuse(t, STALE_ROW)
    source = bank_row(t, SRCA, (np.int64(t.matrix.srca_row) - 1) & _ALIGNED_16)
    target = bank_row(t, SRCA, 0)
    for i in range(_SIZE):
        cells = load16(t.srca, source + i)
        if shift_mode == _RIGHT:
            cells = where(iota16() == 0, 0, shuffle(cells, _FROM_LEFT))
        else:
            cells = where(iota16() == _SIZE - 1, 0, shuffle(cells, _FROM_RIGHT))
        store16(t.srca, target + i, cells)
    return DONE


@instruction(Mode("rotate or shift one row left by one column", DOCUMENTED, rule="math F31, O6"))
def SHIFTXB(t: TileRecord, thread: Int, addr_mode: Int, rot_shift: Int, shift_row: Int, word: Int) -> Int:
    # rot_shift and addr_mode keep the widths of the LLK macro; one bit and three bits of them are in use.
    if rot_shift > 1 or shift_row > _ANY_ROW or addr_mode > 7:
        return refuse(t, SHIFTXB_BITS, word)
    if not owns_b(t):
        return WAIT
    row = bank_row(t, SRCB, srcb_row(t, thread, shift_row, _ANY_ROW))
    if apply_address_modifier(t, thread, addr_mode) != DONE:
        return REFUSED
    cells = shuffle(load16(t.srcb, row), _FROM_RIGHT)
    if rot_shift:
        cells = where(iota16() == _SIZE - 1, 0, cells)
    store16(t.srcb, row, cells)
    return DONE
