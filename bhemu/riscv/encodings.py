"""Words that are not instructions of the baby cores, by the table `isa/data/riscv_absent.tsv` (tile E1)."""

from __future__ import annotations

from typing import Final

import numpy as np

import bhemu.errors as errors
from bhemu.isa.tables import rows
from bhemu.machine.faults import fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Bool, Int, TileRecord


def _load() -> tuple[tuple[int, ...], ...]:
    """(match, mask, fault) in the order in which words are tried."""
    return tuple(
        (*(int(half, 16) for half in word.split("/")), code)
        for name, words, error, what, remedy, rule in rows("riscv_absent.tsv")[1:]
        for code in [fault(f"riscv.{name}", getattr(errors, error), f"{{0:#010x}} {what}", remedy=remedy, rule=rule)]
        for word in words.split()
    )


_WORDS: Final = np.array(_load(), np.int64)
_LOAD_FP: Final = 0x07
_STORE_FP: Final = 0x27
_VECTOR: Final = 0x57


@kernel
def is_vector(word: Int) -> Bool:
    """True for a word of the vector extension."""
    opcode, width = word & 0x7F, (word >> 12) & 7
    return opcode == _VECTOR or (opcode in (_LOAD_FP, _STORE_FP) and (width == 0 or width >= 5))


@kernel
def refuse_word(t: TileRecord, word: Int) -> Int:
    """Refuse a word that is not an instruction of the cores."""
    i = 0
    while word & _WORDS[i, 1] != _WORDS[i, 0]:  # the last one is all words
        i += 1
    return refuse(t, _WORDS[i, 2], word)
