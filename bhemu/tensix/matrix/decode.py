"""Decoded configuration of the matrix unit, by Config bank and thread (math F1..F6)."""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.machine.config_access import MATRIX_BIT, config_bank
from bhemu.machine.decoded import copy_fields
from bhemu.machine.kernel import kernel
from bhemu.machine.matrix_state import COPIES
from bhemu.machine.types import Int, MatrixDecodedRecord, Record, TileRecord

_POSITIONS: Final = COPIES.positions

FORMAT_IMPLIED: Final = -1
"""Instead of a format code: the bank has its own, the one with which the unpacker has filled it (F1)."""


@kernel
def settings(t: TileRecord, thread: Int) -> Record:
    """Decoded configuration for instructions of `thread`, decoded again if a word that it depends on was written."""
    bank = config_bank(t, thread)
    matrix = t.matrix
    dirty = np.int64(t.config_dirty[bank])
    if dirty & MATRIX_BIT:
        matrix.decoded_threads[bank] = 0
        t.config_dirty[bank] = np.uint32(dirty & ~MATRIX_BIT)
    if (matrix.decoded_threads[bank] >> thread) & 1 == 0:
        c = matrix.decoded[bank, thread]
        copy_fields(t, bank, thread, _POSITIONS, 0, c.copied)
        _decode(c)
        matrix.decoded_threads[bank] |= 1 << thread
    return matrix.decoded[bank, thread]


@kernel
def _decode(c: MatrixDecodedRecord) -> None:
    """Work up the copied fields."""
    c.format_a = FORMAT_IMPLIED
    if c.not_implied_a:
        c.format_a = c.instead_a if c.override_a else c.configured_a
    c.format_b = FORMAT_IMPLIED
    if c.not_implied_b:
        c.format_b = c.instead_b if c.override_b else c.configured_b
    c.wide = 1 if c.fp32 or c.integer else 0
    c.unsupported = 1 if c.stochastic or c.force_fp16 or c.dst_base else 0
    c.special = 1 if c.unsupported or c.wide or c.keep_denormals else 0
