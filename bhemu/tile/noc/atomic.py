"""What NoC atomics do to a word of L1 (tile N22, Q2)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import UndefinedBehavior, Unimplemented
from bhemu.machine.faults import fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Int, TileRecord
from bhemu.riscv.atomics import AMOADD, AMOAND, AMOMAX, AMOMAXU, AMOMIN, AMOMINU, AMOOR, AMOXOR, combine

# Operations, bits 15:12 of AT_LEN_BE
INCREMENT: Final = 1
SWAP_HALVES: Final = 3
COMPARE_AND_SWAP: Final = 4
SWAP_6: Final = 6
SWAP_7: Final = 7
ACCUMULATE: Final = 9
SWAP_OR_ZAAMO: Final = 10
_OPERATION_LSB: Final = 12
_ZAAMO: Final = 1 << 11
_ZAAMO_LSB: Final = 8
_ZAAMO_NUMBER: Final = np.array([AMOADD, AMOXOR, AMOOR, AMOAND, AMOMIN, AMOMAX, AMOMINU, AMOMAXU])
"""The instruction of the cores that does the same, by bits 10:8."""
_SWAP_10: Final = 0x300
_WORD_BITS: Final = 0xFFFFFFFF
_BLOCK: Final = 16
"""An atomic works inside 16 bytes of L1."""

# Formats of ACCUMULATE that add integers
_U32: Final = 4
_U8_SATURATING: Final = 7
_U32_ALSO: Final = 12
_U32_TOO: Final = 13
_U8: Final = 15

NO_OPERATION: Final = fault(
    "noc.atomic",
    UndefinedBehavior,
    "AT_LEN_BE is {0:#x}, which names no NoC atomic",
    remedy="bits 15:12: 1 increment, 3, 6, 7, 10 swap, 4 compare and swap, 9 accumulate, 10 with bit 11 Zaamo",
    rule="tile N22",
)
FLOAT_SUM: Final = fault(
    "noc.atomic-float",
    Unimplemented,
    "a NoC atomic accumulates floating-point numbers (format {0}): how the adder rounds is not known",
    remedy="accumulate integers (formats 4, 7, 12, 13, 15), or add in a core or the packer",
    rule="tile N22",
)


@kernel
def is_known_atomic(t: TileRecord, code: Int) -> Any:
    """True for a code of AT_LEN_BE that `apply_atomic` knows; refuses the others."""
    operation = (code >> _OPERATION_LSB) & 0xF
    if operation == ACCUMULATE:
        form = code & 0xF
        if form in (0, 1, 2, 8, 9, 10):
            refuse(t, FLOAT_SUM, form)
            return False
        known = form in (_U32, _U8_SATURATING, _U32_ALSO, _U32_TOO, _U8)
    elif operation == SWAP_OR_ZAAMO:
        known = (code & _ZAAMO) != 0 or (code & 0xF00) == _SWAP_10
    elif operation == SWAP_6:
        known = (code & 4) != 0
    else:
        known = operation in (INCREMENT, SWAP_HALVES, COMPARE_AND_SWAP, SWAP_7)
    if not known:
        refuse(t, NO_OPERATION, code)
    return known


@kernel
def _accumulate(t: TileRecord, first_word: Int, form: Int, data: Int) -> None:
    """Add AT_DATA to each of four words, or each of its bytes to a byte of each."""
    for i in range(4):
        old = np.int64(t.l1_u32[first_word + i])
        if form in (_U8_SATURATING, _U8):
            new = np.int64(0)
            for lsb in range(0, 32, 8):
                total = ((old >> lsb) & 0xFF) + ((data >> lsb) & 0xFF)
                if form == _U8_SATURATING:
                    total = min(total, 0xFF)
                new |= (total & 0xFF) << lsb
        else:
            new = (old + data) & _WORD_BITS
        t.l1_u32[first_word + i] = np.uint32(new)


@kernel
def apply_atomic(t: TileRecord, address: Int, code: Int, data: Int) -> Any:
    """Perform an atomic on the tile's L1.

    Args:
        address: byte address in L1; the operation's own word is in the same 16 bytes.
        code: AT_LEN_BE, for which `is_known_atomic` holds.
        data: AT_DATA, 32 bits.

    Returns:
        The word at `address` before the operation.
    """
    result = np.int64(t.l1_u32[address >> 2])
    first = (address & ~(_BLOCK - 1)) >> 2
    operation = (code >> _OPERATION_LSB) & 0xF
    if operation == SWAP_HALVES:
        for i in range(8):
            if (code >> (2 + i)) & 1:
                t.l1_u16[2 * first + i] = np.uint16((data >> (16 * (i & 1))) & 0xFFFF)
        return result
    if operation == ACCUMULATE:
        _accumulate(t, first, code & 0xF, data)
        return result
    word = first + ((code >> 2) & 3 if operation == SWAP_7 else code & 3)
    old = np.int64(t.l1_u32[word])
    if operation == INCREMENT:
        mask = (np.int64(2) << ((code >> 2) & 31)) - 1
        new = ((old + data) & mask) | (old & ~mask)
    elif operation == COMPARE_AND_SWAP:
        new = (code >> 6) & 0xF if old == (code >> 2) & 0xF else old
    elif operation == SWAP_OR_ZAAMO and code & _ZAAMO:
        new = combine(_ZAAMO_NUMBER[(code >> _ZAAMO_LSB) & 7], old, data)
    else:
        new = data
    t.l1_u32[word] = np.uint32(new & _WORD_BITS)
    return result
