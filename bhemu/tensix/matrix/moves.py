"""Moves between SrcA, SrcB and Dst (math F19..F23, F25)."""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.errors import MissingSpecification, UndefinedBehavior
from bhemu.machine.dst import LOW_HALF, high_row
from bhemu.machine.faults import DONE, REFUSED, WAIT, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import lane, load16, mask16, splat16, store16, where
from bhemu.machine.types import Int, Lanes, MatrixDecodedRecord, TileRecord
from bhemu.tensix.banks import SRCA, SRCB
from bhemu.tensix.instruction import DOCUMENTED, VERIFIED, Mode, instruction
from bhemu.tensix.lane_settings import lanes_with
from bhemu.tensix.matrix.decode import settings
from bhemu.tensix.matrix.operands import (
    EIGHT_BIT_CODES,
    FIVE_BIT_CODES,
    FP16,
    NO_FORMAT,
    SRC_EXPONENT,
    TF32,
    bank_row,
    code_a,
    code_b,
    dst_row,
    forget_srca_row,
    is_supported,
    owns_a,
    owns_b,
    srca_row,
    srcb_row,
    trim_mask,
)
from bhemu.tensix.rwc import apply_address_modifier

# instr_mod of all moves but MOVB2D
_ONE_ROW: Final = 0
_BLOCK: Final = 2
# movb2d_instr_mod
_SPREAD_COLUMN_0: Final = 1
_SPREAD_ROW: Final = 2
_FOUR_ROWS: Final = 4

_ANY_ROW: Final = 0x3F
_ALIGNED_4: Final = 0x3C
_ALIGNED_8: Final = 0x38
_DST_ANY_ROW: Final = 0x3FF
_DST_ALIGNED_4: Final = 0x3FC
_DST_ALIGNED_8: Final = 0x3F8
_BLOCK_MOVES_LSB: Final = 9
"""LaneConfig bits 10:9: moves skip odd, even columns (F25)."""
_FP16_CELL: Final = 0x7FF1F
"""Bits of a Src cell that an FP16 value occupies."""

BAD_MODE = fault(
    "matrix.move-mode",
    UndefinedBehavior,
    "instr_mod is {0}: this move has only 0 (one row) and 2 (a block of rows)",
    remedy="set instr_mod to 0 or 2",
    rule="math F19, F21, F22",
)
LOW_HALF_TF32 = fault(
    "matrix.low-half-tf32",
    UndefinedBehavior,
    "dest_32b_lo with TF32 data: a hardware erratum spoils the low half",
    remedy="move TF32 data with dest_32b_lo = 0",
    rule="math F19",
)
LOW_HALF_16 = fault(
    "matrix.low-half-16",
    UndefinedBehavior,
    "dest_32b_lo with the 16-bit view of Dst, which has no low halves",
    remedy="set ALU_ACC_CTRL_Fp32_enabled or clear dest_32b_lo",
    rule="math F21",
)
WIDE_DST_FIELD = fault(
    "matrix.wide-dst-field",
    UndefinedBehavior,
    "dst is {0}, but Dst has 1024 rows",
    remedy="keep dst below 1024",
    rule="math F23",
)
UNALIGNED_B2A = fault(
    "matrix.unaligned-b2a",
    MissingSpecification,
    "MOVB2A of four rows from SrcB row {0} to SrcA row {1}: no source says what happens to rows that are not aligned",
    remedy="use rows that are multiples of 4",
    rule="math F22",
)


@kernel(forceinline=True)
def _is_moved(t: TileRecord) -> Lanes:
    """Mask of the columns that LaneConfig does not block (F25)."""
    even = lanes_with(t, 1 << _BLOCK_MOVES_LSB)
    odd = lanes_with(t, 2 << _BLOCK_MOVES_LSB)
    blocked: Int = 0
    for column in range(8):  # the lanes of a column see an even and an odd column of Dst
        blocked |= (((even >> column) & 1) | (((odd >> column) & 1) << 1)) << (2 * column)
    return ~mask16(blocked)


@kernel(forceinline=True)
def _store(t: TileRecord, array: Lanes, row: Int, cells: Lanes) -> None:
    """Write a row, but for the columns that LaneConfig blocks (F25)."""
    if np.int64(t.vector.lane_config) & (3 << _BLOCK_MOVES_LSB):
        cells = where(_is_moved(t), cells, load16(array, row))
    store16(array, row, cells)


@kernel
def _flushed(cells: Lanes) -> Lanes:
    """Cells with exponent 0 become zero ("FZ")."""
    return where((cells & SRC_EXPONENT) != 0, cells, 0)


@kernel
def _store_dst(t: TileRecord, code: Int, low_half: Int, row: Int, cells: Lanes) -> None:
    """Write Src cells to Dst row `row` in the form that format `code` has there (F19)."""
    upper = (cells >> 3) & 0xFF00 | cells & 0xFF
    physical = high_row(row)
    if code == TF32:
        _store(t, t.dst, physical, upper)
        _store(t, t.dst, physical + LOW_HALF, (cells << 5) & 0xE000)
        t.dst_valid[physical] = 1
        return
    if (FIVE_BIT_CODES >> code) & 1:
        upper = (cells >> 3) & 0xFFE0 | cells & 0x1F
    if low_half:
        if t.dst_valid[physical] == 0:
            store16(t.dst, physical, splat16(0))
        _store(t, t.dst, physical + LOW_HALF, upper)
        t.dst_valid[physical] = 1
    else:
        _store(t, t.dst, row, upper)
        t.dst_valid[row] = 1


@kernel
def _can_store(t: TileRecord, c: MatrixDecodedRecord, code: Int, low_half: Int) -> bool:
    """False, with the refusal recorded, when cells of that format cannot be moved to Dst."""
    if not is_supported(t, c):
        return False
    if ((EIGHT_BIT_CODES | FIVE_BIT_CODES) >> code) & 1 == 0:
        refuse(t, NO_FORMAT, code, code)
        return False
    if low_half and code == TF32:
        refuse(t, LOW_HALF_TF32)
        return False
    return True


@kernel
def _a_to_dst(t: TileRecord, thread: Int, low_half: Int, src: Int, address_modifier: Int, mode: Int, dst: Int) -> Int:
    c = settings(t, thread)
    code = code_a(t, c, SRCA)
    if not _can_store(t, c, code, low_half):
        return REFUSED
    if mode != _ONE_ROW and mode != _BLOCK:
        return refuse(t, BAD_MODE, mode)
    keep = c.keep_denormals != 0
    block = mode == _BLOCK
    source = bank_row(t, SRCA, srca_row(t, thread, src, _ALIGNED_8 if block else _ANY_ROW))
    row = dst_row(t, c, thread, dst, _DST_ALIGNED_8 if block else _DST_ANY_ROW)
    if apply_address_modifier(t, thread, address_modifier) != DONE:
        return REFUSED
    for i in range(8 if block else 1):
        cells = load16(t.srca, source + i)
        _store_dst(t, code, low_half, row + i, cells if keep else _flushed(cells))
    return DONE


@instruction(
    Mode("8 rows", VERIFIED, vectors="fpu:MOVA2D", rule="math F19"),
    Mode("1 row", DOCUMENTED, rule="math F19"),
    Mode("dest_32b_lo with 5-bit exponents", DOCUMENTED, rule="math F19"),
    Mode("rows that are not aligned: low bits ignored", DOCUMENTED, rule="math F19"),
)
def MOVA2D(t: TileRecord, thread: Int, dest_32b_lo: Int, src: Int, addr_mode: Int, instr_mod: Int, dst: Int) -> Int:
    if not owns_a(t):
        return WAIT
    return _a_to_dst(t, thread, dest_32b_lo, src, addr_mode, instr_mod, dst)


@instruction(Mode("as MOVA2D, without waiting for the bank", DOCUMENTED, rule="math F23"))
def MOVDBGA2D(t: TileRecord, thread: Int, dest_32b_lo: Int, src: Int, addr_mode: Int, instr_mod: Int, dst: Int) -> Int:
    if dst > _DST_ANY_ROW:
        return refuse(t, WIDE_DST_FIELD, dst)
    return _a_to_dst(t, thread, dest_32b_lo, src, addr_mode, instr_mod, dst)


@kernel
def _trim_b(code: Int, code_of_b: Int) -> Int:
    """Bits of SrcB cells that MOVB2D moves (F20); 5-bit formats that the reference does not move keep theirs."""
    five = (FIVE_BIT_CODES >> code) & 1
    if code_of_b == FP16:
        return _FP16_CELL
    if five and (FIVE_BIT_CODES >> code_of_b) & 1:
        return _FP16_CELL
    return trim_mask(TF32 if code_of_b == TF32 else 0)


@kernel
def _b_to_dst(t: TileRecord, thread: Int, low_half: Int, src: Int, address_modifier: Int, mode: Int, dst: Int) -> Int:
    c = settings(t, thread)
    code, code_of_b = code_a(t, c, SRCB), code_b(t, c)
    if not _can_store(t, c, code, low_half):
        return REFUSED
    keep = c.keep_denormals != 0
    count, step, src_mask, dst_mask = 1, 1, _ANY_ROW, _DST_ANY_ROW
    if mode & _SPREAD_ROW:
        count, step, dst_mask = 8, 0, _DST_ALIGNED_8
    elif mode & _FOUR_ROWS:
        count, src_mask, dst_mask = 4, _ALIGNED_4, _DST_ALIGNED_4
    source = bank_row(t, SRCB, srcb_row(t, thread, src, src_mask))
    row = dst_row(t, c, thread, dst, dst_mask)
    forget_srca_row(t)
    if apply_address_modifier(t, thread, address_modifier) != DONE:
        return REFUSED
    trim = _trim_b(code, code_of_b)
    for i in range(count):
        cells = load16(t.srcb, source + i * step)
        if mode & _SPREAD_COLUMN_0:
            cells = splat16(lane(cells, 0))
        _store_dst(t, code, low_half, row + i, (cells if keep else _flushed(cells)) & trim)
    return DONE


@instruction(
    Mode("4 rows, or 1 row to 8 (modes 2 to 5)", VERIFIED, vectors="fpu:MOVB2D", rule="math F20"),
    Mode("1 row (modes 0, 1)", DOCUMENTED, rule="math F20"),
    Mode("modes 6 and 7: as 2 and 3", DOCUMENTED, rule="math F20, O6"),
    Mode("dest_32b_lo with 5-bit exponents", DOCUMENTED, rule="math F19"),
    Mode("rows that are not aligned: any row when it is spread, else low bits ignored", DOCUMENTED, rule="math F20"),
)
def MOVB2D(
    t: TileRecord, thread: Int, dest_32b_lo: Int, src: Int, addr_mode: Int, movb2d_instr_mod: Int, dst: Int
) -> Int:
    if not owns_b(t):
        return WAIT
    return _b_to_dst(t, thread, dest_32b_lo, src, addr_mode, movb2d_instr_mod, dst)


@instruction(Mode("as MOVB2D, without waiting for the bank", DOCUMENTED, rule="math F23"))
def MOVDBGB2D(
    t: TileRecord, thread: Int, dest_32b_lo: Int, src: Int, addr_mode: Int, movb2d_instr_mod: Int, dst: Int
) -> Int:
    if dst > _DST_ANY_ROW:
        return refuse(t, WIDE_DST_FIELD, dst)
    return _b_to_dst(t, thread, dest_32b_lo, src, addr_mode, movb2d_instr_mod, dst)


@kernel
def _load_dst(t: TileRecord, code: Int, wide: bool, low_half: Int, row: Int) -> Lanes:
    """Src cells of Dst row `row` for format `code` (F21); an invalid row reads as zeros."""
    physical = high_row(row) if wide else row
    if t.dst_valid[physical] == 0:
        return splat16(0)
    upper = load16(t.dst, physical)
    lower = splat16(0)
    if wide:
        lower = load16(t.dst, physical + LOW_HALF)
        if low_half:
            if code == TF32:
                return lower & 0x1FFF
            upper = lower
    if (FIVE_BIT_CODES >> code) & 1:
        return (upper & 0xFFE0) << 3 | upper & 0x1F
    cells = (upper & 0xFF00) << 3 | upper & 0xFF
    return cells | (lower >> 5) & 0x700 if code == TF32 else cells


@kernel
def _from_dst(
    t: TileRecord,
    thread: Int,
    array: Lanes,
    file: Int,
    low_half: Int,
    src: Int,
    address_modifier: Int,
    mode: Int,
    dst: Int,
) -> Int:
    c = settings(t, thread)
    code = code_a(t, c, file)
    if not is_supported(t, c):
        return REFUSED
    if ((EIGHT_BIT_CODES | FIVE_BIT_CODES) >> code) & 1 == 0:
        return refuse(t, NO_FORMAT, code, code)
    if mode != _ONE_ROW and mode != _BLOCK:
        return refuse(t, BAD_MODE, mode)
    wide = c.wide != 0
    if low_half and not wide:
        return refuse(t, LOW_HALF_16)
    block = mode == _BLOCK
    src_mask = _ALIGNED_4 if block else _ANY_ROW
    if file == SRCA:
        target = bank_row(t, file, srca_row(t, thread, src, src_mask))
    else:
        target = bank_row(t, file, srcb_row(t, thread, src, src_mask))
        forget_srca_row(t)
    row = dst_row(t, c, thread, dst, _DST_ALIGNED_4 if block else _DST_ANY_ROW)
    if apply_address_modifier(t, thread, address_modifier) != DONE:
        return REFUSED
    for i in range(4 if block else 1):
        _store(t, array, target + i, _load_dst(t, code, wide, low_half, row + i))
    return DONE


@instruction(
    Mode("4 rows", VERIFIED, vectors="fpu:MOVD2A", rule="math F21"),
    Mode("1 row", DOCUMENTED, rule="math F21"),
    Mode("dest_32b_lo; 5-bit exponents from the 32-bit view", DOCUMENTED, rule="math F21"),
    Mode("rows that are not aligned: low bits ignored", DOCUMENTED, rule="math F21"),
)
def MOVD2A(t: TileRecord, thread: Int, dest_32b_lo: Int, src: Int, addr_mode: Int, instr_mod: Int, dst: Int) -> Int:
    return _from_dst(t, thread, t.srca, SRCA, dest_32b_lo, src, addr_mode, instr_mod, dst)


@instruction(
    Mode("4 rows and 1 row", VERIFIED, vectors="fpu:MOVD2B", rule="math F21"),
    Mode("dest_32b_lo with TF32; 5-bit exponents from the 32-bit view", DOCUMENTED, rule="math F21"),
    Mode("rows that are not aligned: low bits ignored", DOCUMENTED, rule="math F21"),
)
def MOVD2B(t: TileRecord, thread: Int, dest_32b_lo: Int, src: Int, addr_mode: Int, instr_mod: Int, dst: Int) -> Int:
    return _from_dst(t, thread, t.srcb, SRCB, dest_32b_lo, src, addr_mode, instr_mod, dst)


@instruction(
    Mode("4 rows", VERIFIED, vectors="fpu:MOVB2A", rule="math F22"),
    Mode("1 row", DOCUMENTED, rule="math F22"),
)
def MOVB2A(t: TileRecord, thread: Int, srca: Int, addr_mode: Int, instr_mod: Int, srcb: Int) -> Int:
    if not owns_b(t):
        return WAIT
    c = settings(t, thread)
    if not is_supported(t, c):
        return REFUSED
    if instr_mod != _ONE_ROW and instr_mod != _BLOCK:
        return refuse(t, BAD_MODE, instr_mod)
    keep = c.keep_denormals != 0
    first_b = srcb_row(t, thread, srcb, _ANY_ROW)
    first_a = srca_row(t, thread, srca, _ANY_ROW)
    if instr_mod == _BLOCK and (first_a | first_b) & ~_ALIGNED_4:
        return refuse(t, UNALIGNED_B2A, first_b, first_a)
    if apply_address_modifier(t, thread, addr_mode) != DONE:
        return REFUSED
    source, target = bank_row(t, SRCB, first_b), bank_row(t, SRCA, first_a)
    for i in range(4 if instr_mod == _BLOCK else 1):
        cells = load16(t.srcb, source + i)
        _store(t, t.srca, target + i, cells if keep else _flushed(cells))
    return DONE
