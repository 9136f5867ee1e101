"""Exponent histogram of the datums from Dst, after the ReLU. CLREXPHIST, of the matrix unit, zeroes it."""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.machine.config_access import thread_field
from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import horizontal_maximum, lane, mask_bits, splat16
from bhemu.machine.state import THREADS
from bhemu.machine.types import Bool, Int, Lanes, PackRecord, TileRecord
from bhemu.tensix.pack.fields import thread as thread_position
from bhemu.tensix.pack.relu import exponents

_ENABLE: Final = thread_position("ENABLE_ACC_STATS_Enable")
BIN_TOP: Final = 255
"""Bins hold 8 bits and stop here."""


@kernel
def statistics_enabled(t: TileRecord) -> Bool:
    """Any of the three threads turns the bins on for all."""
    enabled = np.int64(0)
    for thread in range(THREADS):
        enabled |= thread_field(t, thread, _ENABLE)
    return enabled != 0


@kernel
def count_exponents(pack: PackRecord, value: Int, column: Int, count: Int) -> None:
    """Count the datums at columns `column` to `column + count - 1` in the bins, by exponent modulo 32.

    An INT32 datum counts as the FP32 of the same bits, INT16 by its low byte; INT8 is unspecified and leaves the bins
    alone.
    """
    if pack.exponent_mask == 0:
        return
    exponent = exponents(pack, value)
    for i in range(column, column + count):
        index = lane(exponent, i) & 31
        held = np.int64(pack.histogram[index])
        if held != BIN_TOP:
            pack.histogram[index] = held + 1


@kernel
def record_maximum(pack: PackRecord, seen: Lanes) -> None:
    """Keep the largest of these exponents if it is larger than all before, whether or not the bins are enabled."""
    if mask_bits(seen > splat16(pack.histogram_max)) != 0:
        pack.histogram_max = horizontal_maximum(seen)
