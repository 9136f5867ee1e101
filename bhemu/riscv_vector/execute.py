"""The vector extension of core T2: part of V with VLEN = 128 and elements of up to 32 bits (tile T7).

Its words are none of the decoded instructions; the slow path hands them over, as it does with words that are not an
instruction. `execute_vector` has a place of its own in the table of handlers, so that only programs that use it compile
it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.machine.faults import DONE
from bhemu.machine.kernel import kernel
from bhemu.machine.types import AnyInt, Bool, Int, TileRecord
from bhemu.riscv_vector.elements import is_configured, reserved, set_vector_length
from bhemu.riscv_vector.float import execute_float_vector
from bhemu.riscv_vector.integer import execute_integer
from bhemu.riscv_vector.memory import execute_access
from bhemu.riscv_vector.permute import (
    COMPRESS,
    EXTEND,
    GATHER,
    LAST_REDUCTION,
    MASK_LOGIC,
    MASK_LOGIC_END,
    MASKS,
    SCALARS,
    SLIDE1_DOWN,
    SLIDE1_UP,
    SLIDE_DOWN,
    SLIDE_UP,
    WHOLE,
    WREDSUM,
    WREDSUMU,
    permute_integer,
    permute_mask,
)

ARITHMETIC: Final = 0x57
"""Opcode of vector arithmetic and vset."""
_SET: Final = 7
_FLOAT_FORMS: Final = (1, 5)
_MASK_FORMS: Final = (2, 6)
_IMMEDIATE: Final = 3


@kernel
def _configure(t: TileRecord, core: Int, word: Int) -> Any:
    """vsetvli, vsetivli and vsetvl."""
    rd, number = (word >> 7) & 31, (word >> 15) & 31
    keeps = False
    if word >> 30 == 3:
        available, kind = number, (word >> 20) & 0x3FF
    else:
        kind = (word >> 20) & 0x7FF
        if word >> 31:
            if (word >> 25) & 0x3F:
                return reserved(t, word)
            kind = np.int64(t.core_x[core, (word >> 20) & 31])
        available = np.int64(t.core_x[core, number]) if number != 0 else np.int64(-1)
        keeps = number == 0 and rd == 0
    status, length = set_vector_length(t, word, available, keeps, kind)
    if status == DONE and rd != 0:
        t.core_x[core, rd] = np.uint32(length)
    return status


@kernel
def _is_permutation(f: Int, form: Int) -> Bool:
    """Instructions that do not work on each element by itself."""
    if form in _MASK_FORMS:
        if f <= LAST_REDUCTION or (f >= MASK_LOGIC and f <= MASK_LOGIC_END):
            return True
        return f in (SLIDE1_UP, SLIDE1_DOWN, SCALARS, EXTEND, MASKS, COMPRESS)
    return f in (GATHER, SLIDE_UP, SLIDE_DOWN, WREDSUMU, WREDSUM) or (f == WHOLE and form == _IMMEDIATE)


@kernel
def execute_vector(t: TileRecord, core: Int, word: Int) -> Any:
    """Execute an instruction of the vector extension; returns a status. pc and counts are the slow path's."""
    form, f = (word >> 12) & 7, word >> 26
    if word & 0x7F == ARITHMETIC and form == _SET:
        return _configure(t, core, word)
    if not is_configured(t):
        return reserved(t, word)
    if word & 0x7F != ARITHMETIC:
        return execute_access(t, core, word)
    if form in _FLOAT_FORMS:
        return execute_float_vector(t, core, word)
    if not _is_permutation(f, form):
        return execute_integer(t, core, word)
    if form in _MASK_FORMS:
        return permute_mask(t, core, word, f)
    return permute_integer(t, core, word, f)


def execute_vector_entry(t: TileRecord, core: Int, word: Int) -> AnyInt:
    """`execute_vector` for the table of handlers."""
    return execute_vector(t, core, word)
