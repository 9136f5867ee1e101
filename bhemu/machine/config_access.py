"""Reading configuration fields in compiled code.

A field is a tuple (word, least significant bit, mask) from `bhemu.isa.config` / `bhemu.isa.thread`, bound to a
module-level name so that it is a constant of the compiled code.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.isa.registers import CONFIG_WORDS, FIRST_SHARED_WORD, thread
from bhemu.machine.kernel import kernel

STATE_ID: Final = thread("CFG_STATE_ID_StateID")


@kernel
def config_bank(t, thread):
    """Config bank that instructions of `thread` use (I.10)."""
    return np.int64(t.thread_config[thread, STATE_ID[0]]) & STATE_ID[2]


@kernel
def config_field(t, bank, field):
    """Value of a Config field; words that both banks share live in bank 0 (I.10)."""
    word = field[0]
    return (np.int64(t.config[0 if word >= FIRST_SHARED_WORD else bank, word]) >> field[1]) & field[2]


@kernel
def thread_field(t, thread, field):
    """Value of a ThreadConfig field of `thread`."""
    return (np.int64(t.thread_config[thread, field[0]]) >> field[1]) & field[2]


# Units whose decoded configuration depends on a Config word: one bit each of `config_dirty[bank]`. A unit that finds
# its bit set decodes its words again and clears the bit.
UNPACK0_BIT: Final = 1
UNPACK1_BIT: Final = 2
PACK_BIT: Final = 4
MATH_BIT: Final = 8  # matrix and vector unit


def _units_of_words() -> np.ndarray[Any, np.dtype[np.int64]]:
    units = np.zeros(CONFIG_WORDS, np.int64)
    for bit, words in (
        # Tile base addresses (words 76-83, 124-131) change with every tile: the unpackers read them undecoded.
        (UNPACK0_BIT, [1, *range(48, 58), *range(64, 68), *range(70, 76), *range(84, 88), *range(92, 96), 104, 105]),
        (
            UNPACK1_BIT,
            [1, *range(58, 64), *range(112, 116), *range(118, 124), *range(132, 136), *range(140, 144), 152, 153],
        ),
        (
            PACK_BIT,
            [*range(0, 40), *range(68, 72), *range(96, 104), *range(116, 120), *range(144, 152), *range(180, 224)],
        ),
        (MATH_BIT, [0, 1, 2, 6, *range(180, 224)]),
    ):
        units[words] |= bit
    return units


UNITS_OF_WORD: Final = _units_of_words()
"""Dirty bits of each Config word."""
