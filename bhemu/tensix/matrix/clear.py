"""ZEROACC, ZEROSRC, CLEARDVALID and the resets without visible effect (math F26..F29, F32)."""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.errors import UndefinedBehavior
from bhemu.machine.dst import DST_ROWS, high_row
from bhemu.machine.faults import DONE, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import splat16, store16
from bhemu.machine.types import Int, Lanes, MatrixDecodedRecord, TileRecord
from bhemu.tensix.banks import SRCA, SRCB, UNPACKER, change_bank, give_back
from bhemu.tensix.instruction import DOCUMENTED, VERIFIED, Mode, instruction
from bhemu.tensix.matrix.decode import settings
from bhemu.tensix.matrix.operands import SRC_CELL, SRC_ROWS, dst_row
from bhemu.tensix.rwc import apply_address_modifier

# clear_mode of ZEROACC
_ONE_ROW: Final = 0
_TILE: Final = 1
_HALF: Final = 2
_ALL: Final = 3

_TILE_ROWS: Final = 16
_ANY_DST_ROW: Final = 0x3FF
_TILE_INDEX: Final = 0xFF
"""Bits of `where` that ZEROACC uses in tile mode; LLK writes 0xFF for "no tile" (F26)."""

ROW_OF_32 = fault(
    "matrix.zeroacc-row-32",
    UndefinedBehavior,
    "ZEROACC of one row with use_32_bit_mode = 1",
    remedy="clear use_32_bit_mode: the view follows Fp32_enabled for one row",
    rule="math F26, O6",
)
SET_VALID = fault(
    "matrix.zeroacc-set-valid",
    UndefinedBehavior,
    "clear_zero_flags = 1 in clear_mode {0}, use_32_bit_mode {1}: only 32-bit tiles can be made valid",
    remedy="use clear_mode 1 with use_32_bit_mode 1, or write the rows",
    rule="math F26",
)
WHERE_RANGE = fault(
    "matrix.zeroacc-where",
    UndefinedBehavior,
    "where is {0}, but clear_mode {1} takes 0 or, for half of Dst, 1",
    remedy="set where to 0, or 1 for the upper half",
    rule="math F26",
)


@kernel
def _clear_tile(t: TileRecord, c: MatrixDecodedRecord, thread: Int, tile: Int, use_32_bit: Int, valid: Int) -> None:
    """16 rows of one view; a tile past the end changes nothing (F26)."""
    start = dst_row(t, c, thread, 0, _ANY_DST_ROW)
    absolute = c.absolute_tiles != 0
    if use_32_bit:
        if start & 0x300 and not absolute:
            tile += 16
        if tile >= DST_ROWS // (2 * _TILE_ROWS):
            return
        for i in range(8):
            t.dst_valid[2 * _TILE_ROWS * tile + i] = valid
            t.dst_valid[2 * _TILE_ROWS * tile + _TILE_ROWS + i] = valid
        return
    if start & 0x200 and not absolute:
        tile += 32
    if tile >= DST_ROWS // _TILE_ROWS:
        return
    for i in range(_TILE_ROWS):
        t.dst_valid[_TILE_ROWS * tile + i] = valid


@instruction(
    Mode("one row, tile, half, all", VERIFIED, vectors="fpu:ZEROACC", rule="math F26"),
    Mode("tile number past the end: no effect but the address modifier", DOCUMENTED, rule="math F26"),
    Mode("one row in integer mode", DOCUMENTED, rule="math F26"),
)
def ZEROACC(
    t: TileRecord, thread: Int, clear_mode: Int, use_32_bit_mode: Int, clear_zero_flags: Int, addr_mode: Int, where: Int
) -> Int:
    if clear_mode == _ONE_ROW and use_32_bit_mode:
        return refuse(t, ROW_OF_32)
    if clear_zero_flags and not (clear_mode == _TILE and use_32_bit_mode):
        return refuse(t, SET_VALID, clear_mode, use_32_bit_mode)
    if (clear_mode == _ALL and where != 0) or (clear_mode == _HALF and where > 1):
        return refuse(t, WHERE_RANGE, where, clear_mode)
    if clear_mode in (_ALL, _HALF):
        first = (DST_ROWS // 2) * where
        for i in range(DST_ROWS if clear_mode == _ALL else DST_ROWS // 2):
            t.dst_valid[first + i] = 0
        return DONE
    c = settings(t, thread)
    if clear_mode == _TILE:
        _clear_tile(t, c, thread, where & _TILE_INDEX, use_32_bit_mode, clear_zero_flags)
    else:
        row = dst_row(t, c, thread, where, _ANY_DST_ROW)
        t.dst_valid[high_row(row) if c.wide != 0 else row] = 0
    return apply_address_modifier(t, thread, addr_mode)


@kernel
def _fill(array: Lanes, bank: Int, cell: Int) -> None:
    cells = splat16(cell)
    for row in range(SRC_ROWS):
        store16(array, np.int64(bank) * SRC_ROWS + row, cells)


@instruction(
    Mode("zeros to both banks, or to the matrix unit's", VERIFIED, vectors="fpu:ZEROSRC", rule="math F27"),
    Mode("one file of both banks; the unpacker's bank; minus infinity to SrcA", DOCUMENTED, rule="math F27"),
)
def ZEROSRC(t: TileRecord, thread: Int, zero_val: Int, write_mode: Int, bank_mask: Int, src_mask: Int) -> Int:
    if zero_val:
        t.src_fresh = 0
    elif t.src_fresh != 0:
        return DONE  # the pages of cells that were never written stay untouched
    for bank in range(2):
        if src_mask & 1 and (bank_mask or bank == (t.matrix.bank[SRCA] if write_mode else t.unpack.bank[SRCA])):
            _fill(t.srca, bank, SRC_CELL if zero_val else 0)
        if src_mask & 2 and (bank_mask or bank == (t.matrix.bank[SRCB] if write_mode else t.unpack.bank[SRCB])):
            _fill(t.srcb, bank, 0)
    return DONE


_RESET_ALL: Final = 1  # bits of CLEARDVALID's `reset`
_KEEP_BANK: Final = 2


@instruction(
    Mode("give banks back", VERIFIED, vectors="fpu:CLEARDVALID", rule="math F29"),
    Mode("give back what the unpackers own", DOCUMENTED, rule="math F29"),
    Mode("give back and stay on the bank; reset of all banks", DOCUMENTED, rule="math F29"),
)
def CLEARDVALID(t: TileRecord, thread: Int, cleardvalid: Int, reset: Int) -> Int:
    if reset & _RESET_ALL:
        for file in range(2):
            for bank in range(2):
                t.src_owner[file, bank] = UNPACKER
                t.src_format[file, bank] = 0
            t.unpack.bank[file] = 0
            t.matrix.bank[file] = 0
        return DONE
    for file in range(2):
        if (cleardvalid >> file) & 1:
            give_back(t, file)
            if not reset & _KEEP_BANK:
                change_bank(t, file)
    return DONE


@instruction(Mode("no visible effect", DOCUMENTED, rule="math F32"))
def GATESRCRST(t: TileRecord, thread: Int, reset_srcb_gate_control: Int, reset_srca_gate_control: Int) -> Int:
    return DONE


@instruction(Mode("histogram and maximum to zero", DOCUMENTED, rule="math F32, rules I.11"))
def CLREXPHIST(t: TileRecord, thread: Int) -> Int:
    for i in range(32):
        t.pack.histogram[i] = 0
    t.pack.histogram_max = 0
    return DONE
