"""Reading configuration fields in compiled code, and which unit keeps which of them decoded.

A field is a tuple (word, least significant bit, mask) from `bhemu.isa.config` / `bhemu.isa.thread`, bound to a
module-level name so that it is a constant of the compiled code.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.isa.registers import CONFIG_WORDS, FIRST_SHARED_WORD, THREAD_WORDS, Space, thread
from bhemu.machine import matrix_state, packer_state, unpacker_state
from bhemu.machine.decoded import Copies
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Int, TileRecord

STATE_ID: Final = thread("CFG_STATE_ID_StateID")


@kernel
def config_bank(t: TileRecord, thread: Int) -> Int:
    """Config bank that instructions of `thread` use (I.10)."""
    return np.int64(t.thread_config[thread, STATE_ID[0]]) & STATE_ID[2]


@kernel
def config_field(t: TileRecord, bank: Int, field: tuple[Int, Int, Int]) -> Int:
    """Value of a Config field; words that both banks share live in bank 0 (I.10)."""
    word = field[0]
    return (np.int64(t.config[0 if word >= FIRST_SHARED_WORD else bank, word]) >> field[1]) & field[2]


@kernel
def thread_field(t: TileRecord, thread: Int, field: tuple[Int, Int, Int]) -> Int:
    """Value of a ThreadConfig field of `thread`."""
    return (np.int64(t.thread_config[thread, field[0]]) >> field[1]) & field[2]


# Units that keep decoded configuration: one bit each of `config_dirty[bank]`. A unit that finds its bit set decodes its
# fields again and clears the bit.
UNPACK0_BIT: Final = 1
UNPACK1_BIT: Final = 2
PACK_BIT: Final = 4
MATRIX_BIT: Final = 8

COPIES: Final[dict[int, tuple[Copies, ...]]] = {
    UNPACK0_BIT: (unpacker_state.COPIES[0],),
    UNPACK1_BIT: (unpacker_state.COPIES[1],),
    PACK_BIT: (packer_state.COPIES, packer_state.EDGE_MAPS),
    MATRIX_BIT: (matrix_state.COPIES,),
}
"""What each unit keeps decoded, by its bit."""


def _units(space: Space, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    units = np.zeros(count, np.int64)
    for bit, tables in COPIES.items():
        for copies in tables:
            units[sorted(copies.words(space))] |= bit
    return units


UNITS_OF_WORD: Final = _units("config", CONFIG_WORDS)
"""Bits of the units that keep a field of a Config word decoded, by word."""
UNITS_OF_ENTRY: Final = _units("thread", THREAD_WORDS)
"""The same for the entries of ThreadConfig. Both banks' decoded configuration is stale when such an entry changes."""
