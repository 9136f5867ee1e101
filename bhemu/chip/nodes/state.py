"""What nodes without emulated cores hold, as parts of the chip's record; and the sizes of DRAM."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.chip.nodes.kinds import DRAM_CHANNEL
from bhemu.machine.section import section

CHANNELS: Final = 8
PAGE_BITS: Final = 16
PAGE: Final = 1 << PAGE_BITS
"""Bytes of DRAM that are allocated together, when they are first written."""
PAGES: Final = DRAM_CHANNEL >> PAGE_BITS

CSM_BYTES: Final = 0x80000
SCRATCHES: Final = 8
SCRATCH_RAMS: Final = 16

ARC_TILE: Final[np.dtype[Any]] = section(
    (
        ("memory", "u1", (CSM_BYTES,)),
        ("scratch", "u4", (SCRATCHES,)),
        ("scratch_ram", "u4", (SCRATCH_RAMS,)),
        ("misc_control", "u4", ()),
        ("heartbeat", "i8", ()),  # number of the memory's word that counts
    ),
    (("memory_u32", "memory", "u4", (CSM_BYTES // 4,)),),
)
"""The ARC tile (nodes/arc.py)."""
