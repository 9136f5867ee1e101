"""What recorders of a tile keep of each core, in a block of their buffer that begins with these columns."""

from __future__ import annotations

from typing import Final

FIRST_TRY: Final = 0
"""Round in which the access that blocks the core was tried first; -1: none."""
FIRST_TRY_PC: Final = 1
ASLEEP_SINCE: Final = 2
"""Instructions retired when the core fell asleep; -1: it is awake."""
FIRST_TRY_ADDRESS: Final = 3
"""What the access that blocks the core accesses; -1: no address. Where instructions are only counted."""
RUN_FIRST: Final = 4
RUN_END: Final = 5
"""Instructions that the core has executed one after the other, not counted yet: the first, and after the last."""
FUSED: Final = 6
"""Instructions that were executed in the round of another one."""
SLEPT: Final = 7
"""Rounds asleep."""
WAITED: Final = 8
"""Rounds blocked."""
FIRST_ROUND: Final = 9
"""Round of the first instruction; -1: none yet."""
LAST_ROUND: Final = 10
POLLED: Final = 11
"""Instructions of polling loops that were not executed one by one."""

# Kinds of what a core does, bits 7:4 of a number whose bits 2:0 are the core
POLL: Final = 3
"""A core slept while it polled (riscv/poll.py)."""
GAVE_UP: Final = 4
"""A blocked access was abandoned: the core was reset, or an interrupt came."""
