"""What a polling loop has waited for: the number that its branch compares with."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.recording import core_columns as column

Array = np.ndarray[Any, Any]

_BRANCH: Final = 0x63
_STORES: Final = (0x23, 0x27)
_NEAR: Final = 40
"""Rows after the load, of all cores, among which its branch is looked for."""
_FAR: Final = 4000
"""Rows before the branch among which the last write of a register is looked for."""
_EQUAL, _NOT_EQUAL = 0, 1
_LESS, _LESS_UNSIGNED = 4, 6


def slack(rows: Array, index: int, here: int) -> int | None:
    """How much more a wait has found than it has waited for.

    A wait loads a counter, works out how much is there, and goes on until that is not less than what it needs. The
    branch behind the load compares the two, or their sums with something: their difference is what it has found
    beyond its need.

    Args:
        rows: of the cores.
        index: of the load.
        here: what the loaded value says is there.

    Returns:
        The difference, less than `here`; None when it cannot be told.
    """
    core = int(rows[index, column.WHO]) & 7
    end = min(index + _NEAR * 6, len(rows))
    own = np.flatnonzero((rows[index + 1 : end, column.WHO] & 7) == core)[:_NEAR] + index + 1
    for number, at in enumerate(own.tolist()):
        word = int(rows[at, column.CODE]) >> 32 & 0xFFFFFFFF
        if int(rows[at, column.WHO]) >> 4 & 0xF not in (column.INSTRUCTION, column.DEVICE):
            continue
        if word & 0x7F in _STORES:
            return None
        if word & 0x7F == _BRANCH:
            after = int(rows[own[number + 1], column.CODE]) if number + 1 < len(own) else 0
            taken = after & 0xFFFFFFFF != (int(rows[at, column.CODE]) & 0xFFFFFFFF) + 4
            found = _difference(rows, at, core, word, taken=taken)
            return found if found is not None and 0 <= found < here else None
    return None


def _difference(rows: Array, at: int, core: int, word: int, *, taken: bool) -> int | None:
    left, right = (_register(rows, at, core, word >> shift & 31) for shift in (15, 20))
    if left is None or right is None:
        return None
    operation = word >> 12 & 7
    between = abs(left - right)
    if operation in (_EQUAL, _NOT_EQUAL):
        return between - 1
    return between - 1 if taken == (operation in (_LESS, _LESS_UNSIGNED)) else between


def _register(rows: Array, at: int, core: int, register: int) -> int | None:
    """What a register of a core held before a row; None when it was not written in the rows before."""
    if register == 0:
        return 0
    begin = max(0, at - _FAR)
    near = rows[begin:at]
    kinds = near[:, column.WHO] >> 4 & 0xF
    words = near[:, column.CODE] >> 32
    opcode = words & 0x7F
    writes = ((near[:, column.WHO] & 7) == core) & (kinds <= column.DEVICE) & ((words >> 7 & 31) == register)
    writes &= (opcode != _BRANCH) & (opcode != _STORES[0]) & (opcode != _STORES[1]) & (near[:, column.VALUE] >= 0)
    found = np.flatnonzero(writes)
    return int(near[found[-1], column.VALUE]) & 0xFFFFFFFF if len(found) else None
