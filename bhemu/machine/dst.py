"""Where the rows of Dst lie and how its cells hold numbers (rules I.2, I.3): the one home of these formulas.

Each formula works on a Python integer, a lane value and a NumPy array. `high_row` and its like are for compiled code;
`plain(high_row)` is the same text for integers and arrays on the host.
"""

from __future__ import annotations

from typing import Any, Final

from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import shift_right_logical
from bhemu.machine.types import Int, Lanes

DST_ROWS: Final = 1024
"""Physical rows, each of 16 cells of 16 bits."""
LOW_HALF: Final = 8
"""Distance in physical rows from the high halves of a 32-bit row to its low halves."""

BF16_SIGN: Final = -(1 << 15)
"""Sign of a BF16 number in a lane of 16 bits, or of 32 bits whose upper half is zero."""


@kernel(forceinline=True)
def high_row(row: Int) -> Int:
    """Physical row of the high halves of 32-bit row `row`; the low halves are `LOW_HALF` rows further (I.3).

    Rows 512 to 1023 of the 32-bit view show the physical rows of the other view's upper half once more.
    """
    return ((row & 0x1F8) << 1) | (row & 0x207)


@kernel(forceinline=True)
def cell_of_bf16_magnitude(bits: Lanes) -> Lanes:
    """The cell of BF16 bits whose sign is clear: exponent and mantissa change places (I.2)."""
    return ((bits & 0x7F) << 8) | (bits >> 7)


@kernel(forceinline=True)
def cell_of_bf16(bits: Lanes) -> Lanes:
    """The cell {sign, mantissa, exponent} of BF16 bits, or of the high half of FP32 bits (I.2)."""
    return (bits & 0x8000) | ((bits & 0x7F) << 8) | ((bits >> 7) & 0xFF)


@kernel(forceinline=True)
def bf16_of_cell(cell: Lanes) -> Lanes:
    """BF16 bits of a cell, or the high half of FP32 bits: the inverse of `cell_of_bf16` (I.2)."""
    return (cell & 0x8000) | ((cell & 0xFF) << 7) | ((cell >> 8) & 0x7F)


@kernel(forceinline=True)
def bf16_of_exponent_halves(exponent: Lanes, cell: Lanes) -> Lanes:
    """`bf16_of_cell` of lanes of 16 bits, whose sign is that of the lane; the exponent is given, in place."""
    return exponent | ((cell >> 8) & 0x7F) | (cell & BF16_SIGN)


@kernel(forceinline=True)
def bf16_of_cell_halves(cell: Lanes) -> Lanes:
    """`bf16_of_cell` of lanes of 16 bits."""
    return bf16_of_exponent_halves((cell & 0xFF) << 7, cell)


@kernel(forceinline=True)
def cell_of_bf16_halves(bits: Lanes, double: Lanes) -> Lanes:
    """`cell_of_bf16` of lanes of 16 bits, of the bits and of twice the bits, where the exponent is a byte."""
    return (bits & BF16_SIGN) | (((bits << 8) | shift_right_logical(double, 8)) & ~BF16_SIGN)


@kernel(forceinline=True)
def cell_of_fp16_magnitude(bits: Lanes) -> Lanes:
    """The cell of FP16 bits whose sign is clear (I.2)."""
    return ((bits & 0x3FF) << 5) | (bits >> 10)


@kernel(forceinline=True)
def cell_of_fp16(bits: Any) -> Any:
    """The cell {sign, mantissa, exponent} of FP16 bits (I.2)."""
    return (bits & 0x8000) | ((bits & 0x3FF) << 5) | ((bits >> 10) & 0x1F)


@kernel(forceinline=True)
def fp16_of_cell(cell: Lanes) -> Lanes:
    """FP16 bits of a cell: the inverse of `cell_of_fp16` (I.2)."""
    return (cell & 0x8000) | ((cell & 0x1F) << 10) | ((cell >> 5) & 0x3FF)
