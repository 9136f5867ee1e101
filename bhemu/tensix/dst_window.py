"""The window through which T cores access Dst (tile K45 to K47).

What an element is, and whether it is converted between the order of bits in Dst and the core's, is configured for each
thread (Config RISC_DEST_ACCESS_CTRL_SEC):

    fmt  element                       row and column from the address       converted unless no_swizzle
    0    32 bits                       Dst32b[512][16], 4 bytes a datum      permuted cells and FP32 (or plain 32 bits)
    1    32 bits, signed integer       the same                              and sign-magnitude to two's complement
    2    FP16                          Dst16b[1024][16], 2 bytes             FP16 cell and IEEE order
    3    BF16                          the same                              BF16 cell and IEEE order
    4    16 bits, integer              the same                              sign-magnitude to two's complement
    5    8 bits, integer               Dst16b[1024][16], 1 byte              magnitude and sign to two's complement

Rows are the logical rows of every other unit: remap_addrs and swizzle_32b permute all views alike (rules I.3). A store
makes its row valid; loads ignore the flag (K47).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import UndefinedBehavior
from bhemu.isa.registers import config
from bhemu.machine.config_access import config_bank
from bhemu.machine.dst import DST_ROWS, LOW_HALF, bf16_of_cell, cell_of_bf16, cell_of_fp16, fp16_of_cell, high_row
from bhemu.machine.faults import DONE, REFUSED, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.state import THREADS
from bhemu.machine.types import Int, TileRecord

FLOAT32: Final = 0
INT32: Final = 1
FP16: Final = 2
BF16: Final = 3
INT16: Final = 4
INT8: Final = 5

COLUMNS: Final = 16
"""Distance in physical rows from the high halves of a 32-bit row to its low halves (rules I.3)."""
_WIDTH: Final = np.array([4, 4, 2, 2, 2, 1, 0, 0], np.int64)
"""Bytes of an element; formats 6 and 7 are reserved."""
_T2: Final = 2
"""The thread whose core reaches several elements at once."""
_INT8_EXPONENT: Final = 16
"""Low bits of a cell that holds an 8-bit integer other than 0 (rules I.2)."""


def _lsbs(field: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([config(f"RISC_DEST_ACCESS_CTRL_SEC{thread}_{field}")[1] for thread in range(THREADS)], np.int64)


_WORD: Final = config("RISC_DEST_ACCESS_CTRL_SEC0_fmt")[0]
_FORMAT_MASK: Final = config("RISC_DEST_ACCESS_CTRL_SEC0_fmt")[2]
_FORMAT: Final = _lsbs("fmt")
_NO_SWIZZLE: Final = _lsbs("no_swizzle")
_UNSIGNED: Final = _lsbs("unsigned_int")

RESERVED: Final = fault(
    "dst_window.format",
    UndefinedBehavior,
    "core T{0} accesses Dst with RISC_DEST_ACCESS_CTRL_SEC{0}_fmt = {1}, which is reserved",
    remedy="use 0 (FP32), 1 (INT32), 2 (FP16), 3 (BF16), 4 (INT16) or 5 (INT8)",
    rule="tile K45",
)
WRONG_WIDTH: Final = fault(
    "dst_window.width",
    UndefinedBehavior,
    "core T{0} accesses {1} bytes of Dst at once, where elements have {2} bytes (RISC_DEST_ACCESS_CTRL_SEC{0}_fmt {3})",
    remedy="cores T0 and T1 access exactly one element; T2 one or more whole elements",
    rule="tile K45",
)
PAST_END: Final = fault(
    "dst_window.past-end",
    UndefinedBehavior,
    "core T{0} accesses Dst at {1:#x} of the window: 8-bit elements end at 0x4000",
    remedy="address row r, column c at 16*r + c",
    rule="tile K45",
)


@kernel
def value_of_cells(fmt: Int, high: Int, low: Int, raw: Int, unsigned: Int) -> Any:
    """What a load gives.

    Args:
        fmt: 0 to 5.
        high: the 16-bit cell; for 32-bit elements the cell of the high half.
        low: cell of the low half, of 32-bit elements alone.
        raw: no_swizzle.
        unsigned: unsigned_int, of formats 4 and 5 alone.
    """
    if fmt == INT8:
        magnitude = (high >> 5) & 0xFF
        if raw or unsigned:
            return magnitude
        magnitude &= 0x7F
        return -magnitude & 0xFF if high & 0x8000 else magnitude
    if raw:
        return (high << 16) | low if fmt <= INT32 else high
    if fmt <= INT32:
        value = (bf16_of_cell(high) << 16) | low
        if fmt == INT32 and value >> 31:
            return -(value & 0x7FFFFFFF) & 0xFFFFFFFF
        return value
    if fmt == FP16:
        return fp16_of_cell(high)
    if fmt == BF16:
        return bf16_of_cell(high)
    if high & 0x8000 and not unsigned:
        return -(high & 0x7FFF) & 0xFFFF
    return high


@kernel
def cells_of_value(fmt: Int, value: Int, raw: Int, unsigned: Int) -> Any:
    """(high, low) cells that a store writes; see `value_of_cells`. `low` is 0 unless the element has 32 bits."""
    none = np.int64(0)
    if fmt == INT8:
        if raw or unsigned or value < 0x80:
            return (value << 5) | (_INT8_EXPONENT if value else 0), none
        # Meant to be the magnitude, but silicon computes this (K45).
        magnitude = (0x180 - value - (1 if value == 0x80 else 0)) & 0xFF
        return 0x8000 | (magnitude << 5) | _INT8_EXPONENT, none
    if fmt <= INT32:
        if raw:
            return value >> 16, value & 0xFFFF
        if fmt == INT32 and value >> 31:
            value = (1 << 31) | min(-(value - (1 << 32)), 0x7FFFFFFF)  # the lowest number is clamped
        return cell_of_bf16(value >> 16), value & 0xFFFF
    if raw:
        return value, none
    if fmt == FP16:
        return cell_of_fp16(value), none
    if fmt == BF16:
        return cell_of_bf16(value), none
    if value & 0x8000 and not unsigned:
        return 0x8000 | min(0x10000 - value, 0x7FFF), none
    return value, none


@kernel
def _format(t: TileRecord, thread: Int, offset: Int, size: Int) -> Any:
    """The configured format, or -1 when the access is refused."""
    fmt = (np.int64(t.config[config_bank(t, thread), _WORD]) >> _FORMAT[thread]) & _FORMAT_MASK
    width = _WIDTH[fmt]
    if width == 0:
        refuse(t, RESERVED, thread, fmt)
        return -1
    if size < width or (size > width and thread != _T2):
        refuse(t, WRONG_WIDTH, thread, size, width, fmt)
        return -1
    if width == 1 and offset >= DST_ROWS * COLUMNS:
        refuse(t, PAST_END, thread, offset)
        return -1
    return fmt


@kernel
def dst_load(t: TileRecord, thread: Int, offset: Int, size: Int) -> Any:
    """(status, value) of a load of 1, 2 or 4 bytes by a T core, 0 <= offset < 0x8000 and aligned."""
    value = np.int64(0)
    fmt = _format(t, thread, offset, size)
    if fmt < 0:
        return REFUSED, value
    word = np.int64(t.config[config_bank(t, thread), _WORD])
    raw, unsigned = (word >> _NO_SWIZZLE[thread]) & 1, (word >> _UNSIGNED[thread]) & 1
    width = _WIDTH[fmt]
    for i in range(size // width):
        element = offset // width + i
        row, column = element // COLUMNS, element % COLUMNS
        if width == 4:
            place = high_row(row)
            high, low = np.int64(t.dst[place, column]), np.int64(t.dst[place + LOW_HALF, column])
        else:
            high, low = np.int64(t.dst[row, column]), np.int64(0)
        value |= value_of_cells(fmt, high, low, raw, unsigned) << (8 * width * i)
    return DONE, value


@kernel
def dst_store(t: TileRecord, thread: Int, offset: Int, value: Int, size: Int) -> Any:
    """Status of a store of the low `size` bytes of `value`; see `dst_load`."""
    fmt = _format(t, thread, offset, size)
    if fmt < 0:
        return REFUSED
    word = np.int64(t.config[config_bank(t, thread), _WORD])
    raw, unsigned = (word >> _NO_SWIZZLE[thread]) & 1, (word >> _UNSIGNED[thread]) & 1
    width = _WIDTH[fmt]
    for i in range(size // width):
        element = offset // width + i
        row, column = element // COLUMNS, element % COLUMNS
        part = (value >> (8 * width * i)) & ((1 << (8 * width)) - 1)
        high, low = cells_of_value(fmt, part, raw, unsigned)
        place = row
        if width == 4:
            place = high_row(row)
            t.dst[place + LOW_HALF, column] = np.uint16(low)
        t.dst[place, column] = np.uint16(high)
        t.dst_valid[place] = 1
    return DONE
