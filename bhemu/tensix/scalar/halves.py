"""16-bit halves of GPRs (003.1e)."""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.machine.kernel import kernel
from bhemu.machine.types import Int, TileRecord

WORD_BITS: Final = 0xFFFFFFFF
HALF_BITS: Final = 0xFFFF
QUAD_REGISTER: Final = 0x3C
"""Four consecutive GPRs start at a multiple of four."""


@kernel
def read_half(t: TileRecord, thread: Int, half: Int) -> Int:
    """A half of a GPR: 2n is the low half of GPR n, 2n + 1 the high half."""
    return (np.int64(t.gpr[thread, half >> 1]) >> (16 * (half & 1))) & HALF_BITS


@kernel
def write_half(t: TileRecord, thread: Int, half: Int, value: Int) -> None:
    """Write the low 16 bits of `value` to a half of a GPR and keep the other half."""
    shift = 16 * (half & 1)
    kept = np.int64(t.gpr[thread, half >> 1]) & ~(HALF_BITS << shift)
    t.gpr[thread, half >> 1] = np.uint32(kept | ((value & HALF_BITS) << shift))
