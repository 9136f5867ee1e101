"""The debug array port: rows of Dst, SrcA and SrcB as they are stored (tile K35).

A command names array, bank, row and one of the eight 32-bit words of a row; word k holds columns 2k (low half) and
2k + 1 (high half). Rows of Dst are physical ones: with remap_addrs, and in the 32-bit view swizzle_32b, they are others
than the rows that units name (rules I.3), under which bhemu keeps them. Row-valid bits are ignored.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import MissingSpecification, UndefinedBehavior
from bhemu.isa.registers import config
from bhemu.isa.tile_registers import bits_of, offset_of
from bhemu.machine.config_access import config_field
from bhemu.machine.dst import DST_ROWS
from bhemu.machine.faults import DONE, REFUSED, fault, open_choice, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Int, TileRecord
from bhemu.tensix.matrix.operands import FIVE_BIT_CODES, SRC_ROWS

ENABLE: Final = offset_of("control", "DBG_ARRAY_RD_EN")
COMMAND: Final = offset_of("control", "DBG_ARRAY_RD_CMD")

_ROW: Final = bits_of("control", "DBG_ARRAY_RD_CMD", "ROW")[1]
_WORD_LSB, _WORD = bits_of("control", "DBG_ARRAY_RD_CMD", "WORD")
_ARRAY_LSB, _ARRAY = bits_of("control", "DBG_ARRAY_RD_CMD", "ARRAY")
_BANK_LSB: Final = bits_of("control", "DBG_ARRAY_RD_CMD", "BANK")[0]
_COMMAND_BITS: Final = 2 << _BANK_LSB
WORDS: Final = 8
DST: Final = 2
_UPPER_COLUMNS: Final = 64
"""Drivers set this bit in the row of a Src word that holds columns 8 to 15."""

_REMAP: Final = config("DEST_ACCESS_CFG_remap_addrs")
_SWIZZLE: Final = config("DEST_ACCESS_CFG_swizzle_32b")
_FP32: Final = config("ALU_ACC_CTRL_Fp32_enabled")
_INT8: Final = config("ALU_ACC_CTRL_INT8_math_enabled")

DISABLED: Final = fault(
    "debug_array.disabled",
    UndefinedBehavior,
    "DBG_ARRAY_RD_DATA is loaded while DBG_ARRAY_RD_EN is 0",
    remedy="store 1 to DBG_ARRAY_RD_EN first",
    rule="tile K35",
)
NO_SUCH_WORD: Final = fault(
    "debug_array.command",
    UndefinedBehavior,
    "DBG_ARRAY_RD_CMD = {0:#x} names row {1}, word {2} of array {3}, which does not exist",
    remedy="arrays are 0 (SrcA), 1 (SrcB): 64 rows; and 2 (Dst): 1024 rows, bank 0; a row has words 0 to 7",
    rule="tile K35",
)
SRC_CELLS: Final = fault(
    "debug_array.src",
    MissingSpecification,
    "no source says how the 19 bits of a Src cell appear in 16 bits of the debug array (array {0}, row {1})",
    remedy="move the row to Dst and read it there, or allow open choices: cells as a move to 16-bit Dst makes them",
    rule="tile K35",
)


@kernel
def _named_row(t: TileRecord, row: Int) -> Int:
    """The row as units name it, in the view of the matrix unit by bank 0, as tt-metal's device print has it."""
    if config_field(t, 0, _REMAP) == 0:
        return row
    wide = config_field(t, 0, _FP32) | config_field(t, 0, _INT8) != 0
    at = ((row >> 1) & ~7) | (row & 7) if wide else row
    if wide and config_field(t, 0, _SWIZZLE) != 0:  # bit 2 has become bit 3, and bit 3 bit 4 XOR bit 2 (rules I.3)
        at = (at & ~0xC) | ((at & 4) << 1) | (((at >> 1) ^ (at >> 2)) & 4)
    at = (at & ~0x38) | ((at & 0x18) << 1) | ((at & 0x20) >> 2)  # bits 5:4 have moved to 4:3, and bit 3 to 5
    return ((at & ~7) << 1) | (row & 8) | (at & 7) if wide else at


@kernel
def _src_half(cell: Int, five_bits: Int) -> Int:
    """A Src cell as a move to a 16-bit row of Dst leaves it (rules I.2): BF16, or FP16 where exponents have 5 bits."""
    sign, mantissa = (cell >> 3) & 0x8000, (cell >> 8) & 0x3FF
    if five_bits:
        return sign | (mantissa << 5) | (cell & 0x1F)
    return sign | ((mantissa >> 3) << 8) | (cell & 0xFF)


@kernel
def _load_source(t: TileRecord, file: Int, bank: Int, row: Int, word: Int) -> Any:
    """(status, value) of a word of SrcA (0) or SrcB (1)."""
    if not open_choice(t, SRC_CELLS, file, row):
        return REFUSED, np.int64(0)
    five_bits = (FIVE_BIT_CODES >> np.int64(t.src_format[file, bank])) & 1
    cells = t.srca if file == 0 else t.srcb
    low, high = np.int64(cells[bank, row, 2 * word]), np.int64(cells[bank, row, 2 * word + 1])
    return DONE, _src_half(low, five_bits) | (_src_half(high, five_bits) << 16)


@kernel
def load_array(t: TileRecord) -> Any:
    """(status, value) of DBG_ARRAY_RD_DATA."""
    if t.control_word[ENABLE >> 2] & 1 == 0:
        return refuse(t, DISABLED), np.int64(0)
    command = np.int64(t.control_word[COMMAND >> 2])
    row, word = command & _ROW, (command >> _WORD_LSB) & _WORD
    array, bank = (command >> _ARRAY_LSB) & _ARRAY, (command >> _BANK_LSB) & 1
    if command < _COMMAND_BITS and word < WORDS:
        if array == DST and bank == 0 and row < DST_ROWS:
            return DONE, np.int64(t.dst_u32[_named_row(t, row), word])
        if array < DST:
            if word >= WORDS // 2:
                row &= ~_UPPER_COLUMNS
            if row < SRC_ROWS:
                return _load_source(t, array, bank, row, word)
    return refuse(t, NO_SUCH_WORD, command, row, word, array), np.int64(0)
