"""Reading configuration fields in compiled code.

A field is a tuple (word, least significant bit, mask) from `bhemu.isa.config` / `bhemu.isa.thread`, bound to a module-level
name so that it is a constant of the compiled code.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit

from bhemu.isa.registers import FIRST_SHARED_WORD, thread

STATE_ID: Final = thread("CFG_STATE_ID_StateID")


@njit
def config_bank(t, thread):
    """Config bank that instructions of `thread` use (I.10)."""
    return np.int64(t.thread_config[thread, STATE_ID[0]]) & STATE_ID[2]


@njit
def config_field(t, bank, field):
    """Value of a Config field; words that both banks share live in bank 0 (I.10)."""
    word = field[0]
    return (np.int64(t.config[0 if word >= FIRST_SHARED_WORD else bank, word]) >> field[1]) & field[2]


@njit
def thread_field(t, thread, field):
    """Value of a ThreadConfig field of `thread`."""
    return (np.int64(t.thread_config[thread, field[0]]) >> field[1]) & field[2]
