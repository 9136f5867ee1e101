"""Polling loops in the rows of the cores: which words they read, and what they have waited for."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.machine.agents import CORES
from bhemu.machine.state import L1_SIZE
from bhemu.recording import core_columns as column

Array = np.ndarray[Any, Any]

_BRANCH: Final = 0x63
_LOAD: Final = 0x03
_ATOMIC: Final = 0x2F
_LOOP: Final = 12
"""Instructions of a polling loop at most."""
_STORES: Final = (0x23, 0x27)
_NEAR: Final = 40
"""Rows after the load, of all cores, among which its branch is looked for."""
_FAR: Final = 4000
"""Rows before the branch among which the last write of a register is looked for."""
_EQUAL, _NOT_EQUAL = 0, 1
_LESS, _LESS_UNSIGNED = 4, 6


def polled_words(rows: Array) -> set[int]:
    """Words of L1 that cores poll, or access by atomic instructions, as locks: they hand work over, and are not data.

    A load polls when a core has slept in its loop, or when a branch that leads back before it follows and the load has
    never found another address.

    Args:
        rows: of the cores, of a whole program.
    """
    kinds, address = rows[:, column.WHO] >> 4 & 0xF, rows[:, column.ADDRESS]
    found = {int(one) & ~3 for one in np.unique(address[(kinds == column.POLL) & (address >= 0) & (address < L1_SIZE)])}
    atomic = (kinds <= column.DEVICE) & (rows[:, column.CODE] >> 32 & 0x7F == _ATOMIC) & (address >= 0)
    found |= {int(one) & ~3 for one in np.unique(address[atomic & (address < L1_SIZE)])}
    for core in range(CORES):
        own = rows[(rows[:, column.WHO] & 7 == core) & (kinds <= column.DEVICE)]
        if not len(own):
            continue
        pc, word, place = own[:, column.CODE] & 0xFFFFFFFF, own[:, column.CODE] >> 32, own[:, column.ADDRESS]
        loads = np.flatnonzero((word & 0x7F == _LOAD) & (place >= 0) & (place < L1_SIZE))
        target = np.where(word & 0x7F == _BRANCH, pc + _offsets(word), np.int64(1) << 40)
        back = np.zeros(len(loads), bool)
        for step in range(1, _LOOP):
            at = np.minimum(loads + step, len(own) - 1)
            back |= (target[at] <= pc[loads]) & (target[at] > pc[loads] - 4 * _LOOP)
        pairs = np.unique(np.stack([pc[loads], place[loads]], 1), axis=0)
        single, counts = np.unique(pairs[:, 0], return_counts=True)
        chosen = back & np.isin(pc[loads], single[counts == 1])
        found |= {int(one) & ~3 for one in np.unique(place[loads][chosen])}
    return found


def _offsets(words: Array) -> Array:
    """Offsets of branches."""
    high = -(words >> 31 & 1) << 12
    return np.asarray(high | (words >> 7 & 1) << 11 | (words >> 25 & 0x3F) << 5 | (words >> 8 & 0xF) << 1)


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
    for at in _own_rows(rows, index, core, _NEAR * 6)[:_NEAR]:
        word = int(rows[at, column.CODE]) >> 32 & 0xFFFFFFFF
        kind = int(rows[at, column.WHO]) >> 4 & 0xF
        if kind == column.RESTARTED:
            return None
        if kind not in (column.INSTRUCTION, column.DEVICE):
            continue
        if word & 0x7F in _STORES:
            return None
        if word & 0x7F == _BRANCH:
            taken = _is_taken(rows, at, core)
            found = _difference(rows, at, core, word, taken=taken) if taken is not None else None
            return found if found is not None and 0 <= found < here else None
    return None


def _own_rows(rows: Array, index: int, core: int, many: int) -> list[int]:
    """Indices of a core's rows among the next ones; rows of rounds without time are left out: they name core B."""
    who = rows[index + 1 : index + 1 + many, column.WHO]
    own = ((who & 7) == core) & ((who >> 4 & 0xF) != column.MOVED)
    return [int(at) for at in np.flatnonzero(own) + index + 1]


def _is_taken(rows: Array, at: int, core: int) -> bool | None:
    """Whether a branch was taken: where the core went on; None when that cannot be told.

    A core that slept, or was reset, went on somewhere else. An access that was blocked when a part ended has a row.
    """
    for many in (_NEAR, _FAR):
        behind = _own_rows(rows, at, core, many)
        if behind:
            kind = int(rows[behind[0], column.WHO]) >> 4 & 0xF
            if kind in (column.POLL, column.RESTARTED):
                return None
            after, pc = (int(rows[one, column.CODE]) & 0xFFFFFFFF for one in (behind[0], at))
            return after != pc + 4
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
    for many in (_NEAR, _FAR):  # most were written a few rows before
        near = rows[max(0, at - many) : at]
        kinds = near[:, column.WHO] >> 4 & 0xF
        words = near[:, column.CODE] >> 32
        opcode = words & 0x7F
        writes = ((near[:, column.WHO] & 7) == core) & (kinds <= column.DEVICE) & ((words >> 7 & 31) == register)
        writes &= (opcode != _BRANCH) & (opcode != _STORES[0]) & (opcode != _STORES[1]) & (near[:, column.VALUE] >= 0)
        found = np.flatnonzero(writes)
        if len(found):
            return int(near[found[-1], column.VALUE]) & 0xFFFFFFFF
    return None
