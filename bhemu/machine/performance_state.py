"""State of the performance counters (tile K54): `t.performance`."""

from __future__ import annotations

from typing import Final

from bhemu.machine.section import section

BANKS: Final = ("INSTRN_THREAD", "TDMA_UNPACK", "FPU", "DBG_L1", "TDMA_PACK")
"""Banks of counters, in the order of their control registers."""

# What a bank notes when it starts and when it stops; a count is the difference
CLOCK: Final = 0
THREAD_0: Final = 1
"""Instructions of thread 0; those of threads 1 and 2 follow."""
MATRIX: Final = 4
VECTOR: Final = 5
NOTES: Final = 6

PERFORMANCE: Final = section(
    (
        ("running", "i4", (len(BANKS),)),
        ("started", "i8", (len(BANKS), NOTES)),
        ("stopped", "i8", (len(BANKS), NOTES)),
    )
)
