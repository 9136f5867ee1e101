"""Integer mode: magnitudes of 8 bits and more into INT32 (math F14, F15)."""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.errors import UndefinedBehavior
from bhemu.machine.faults import fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import load16, mask_bits, splat16, store16, where, widen
from bhemu.machine.types import Int, Lanes, TileRecord
from bhemu.tensix.matrix.dst import load_int32, store_int32
from bhemu.tensix.matrix.operands import SRC_EXPONENT, SRC_MANTISSA, SRC_MANTISSA_LSB, SRC_SIGN

_EXPONENT: Final = 16
"""Exponent field of a non-zero integer in Src (rules I.2)."""
_A: Final = 0  # rows of `t.matrix.scratch`
_B: Final = 16
_DEPTH: Final = 16

NOT_INTEGER = fault(
    "matrix.not-integer",
    UndefinedBehavior,
    "integer mode, but a cell of Src{0:c} has an exponent field other than 0 and 16",
    remedy="unpack INT8 data, or clear INT8_math_enabled",
    rule="math F14, O10",
)


@kernel
def all_integers(t: TileRecord, array: Lanes, row: Int, count: Int, letter: Int) -> bool:
    """True when every cell of the rows has exponent 0 or 16; records the refusal otherwise."""
    cells = load16(array, row)
    for i in range(1, count):
        cells = cells | load16(array, row + i)
    return are_integers(t, cells, letter)


@kernel
def are_integers(t: TileRecord, cells: Lanes, letter: Int) -> bool:
    """True when the cells, or those that were or-ed together, have exponent 0 or 16; records the refusal otherwise."""
    if mask_bits((cells & (SRC_EXPONENT ^ _EXPONENT)) != 0) != 0:
        refuse(t, NOT_INTEGER, letter)
        return False
    return True


@kernel
def factor_a(phase: Int) -> Int:
    """Magnitude bits of SrcA that take part in a product (F14)."""
    return 0x1F if phase & 1 else 0xE0


@kernel
def factor_b(phase: Int) -> Int:
    """Magnitude bits of SrcB that take part in a product (F14)."""
    return 0xF if phase & 2 else 0x3F0


@kernel(forceinline=True)
def integer(cell: Lanes, mask: Int, keep_denormals: bool) -> Lanes:
    """Signed value of Src cells; 0 where the exponent is 0, unless `keep_denormals` (F14)."""
    magnitude = (cell >> SRC_MANTISSA_LSB) & (mask & SRC_MANTISSA)
    if not keep_denormals:
        magnitude = where((cell & SRC_EXPONENT) != 0, magnitude, 0)
    return where((cell & SRC_SIGN) != 0, -magnitude, magnitude)


@kernel
def dot_rows_integer(
    t: TileRecord, phase: Int, a_row: Int, b_row: Int, b_step: Int, dst_row: Int, dst_step: Int, count: Int
) -> None:
    """Dst rows += SrcB rows x sixteen SrcA rows, saturating (F15)."""
    for k in range(_DEPTH):
        store16(t.matrix.scratch, _A + k, integer(load16(t.srca, a_row + k), factor_a(phase), False))
    for i in range(count):
        store16(t.matrix.scratch, _B + i, integer(load16(t.srcb, b_row + i * b_step), factor_b(phase), False))
    for i in range(count):
        total = splat16(0)
        for k in range(_DEPTH):
            total = total + load16(t.matrix.scratch, _A + k) * splat16(np.int64(t.matrix.scratch[_B + i, k]))
        row = dst_row + i * dst_step
        store_int32(t, row, widen(total) + load_int32(t, row))


@kernel(forceinline=True)
def add_row_integer(t: TileRecord, row: Int, a: Lanes, b: Lanes, accumulate: Int) -> None:
    """Dst row = a + b, or += a + b with saturation, of signed integers (F15)."""
    total = widen(a + b)
    store_int32(t, row, total + load_int32(t, row) if accumulate else total)


@kernel(forceinline=True)
def multiply_row_integer(t: TileRecord, row: Int, a: Lanes, b: Lanes) -> None:
    """Dst row += a * b with saturation (F15)."""
    store_int32(t, row, widen(a * b) + load_int32(t, row))
