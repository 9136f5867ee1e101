"""State of the threads' front ends, first index the thread: `t.frontend`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.machine.agents import THREADS
from bhemu.machine.section import section

FIFO_SLOTS = 32
"""Slots of the first instruction FIFO of a thread (math Y3)."""
FIFO_PUSH_LIMIT = 28
"""A push needs an occupancy of 28 or less (math Y3)."""

READY_SLOTS = 512
"""Slots of the queue after the expanders, with `simulator_order`."""
READY_PUSH_LIMIT = 52
"""`.ttinsn` then needs an occupancy of 52 or less (tile K1)."""

FRONTEND: Final[np.dtype[Any]] = section(
    [
        ("fifo_head", "i4", (THREADS,)),  # of the first FIFO, whose words come last
        ("fifo_count", "i4", (THREADS,)),
        ("ready_head", "i4", (THREADS,)),  # of the queue after the expanders, with `simulator_order`
        ("ready_count", "i4", (THREADS,)),
        ("side_word", "u4", (THREADS, FIFO_SLOTS)),  # words of core B, which enter after the MOP expander (Y2, K2)
        ("side_line", "i4", (THREADS, FIFO_SLOTS)),  # source line of each word, for messages; 0 unknown
        ("side_head", "i4", (THREADS,)),
        ("side_count", "i4", (THREADS,)),
        ("mop_config", "u4", (THREADS, 9)),  # MopCfg words (Y6)
        ("mop_zmask_hi", "u4", (THREADS,)),
        ("mop_active", "i4", (THREADS,)),  # 0 idle, 1 template 0, 2 template 1
        ("mop_word", "u4", (THREADS,)),
        ("mop_line", "i4", (THREADS,)),
        ("mop_phase", "i4", (THREADS,)),
        ("mop_outer", "i4", (THREADS,)),
        ("mop_inner", "i4", (THREADS,)),
        ("replay_buffer", "u4", (THREADS, 32)),
        ("replay_load_left", "i4", (THREADS,)),
        ("replay_load_at", "i4", (THREADS,)),
        ("replay_load_execute", "i4", (THREADS,)),
        ("replay_play_left", "i4", (THREADS,)),
        ("replay_play_at", "i4", (THREADS,)),
        ("replay_line", "i4", (THREADS,)),
        ("gate_full", "i4", (THREADS,)),  # a word waits at the gate
        ("gate_word", "u4", (THREADS,)),
        ("gate_line", "i4", (THREADS,)),
        ("wait_word", "u4", (THREADS,)),  # the latched STALLWAIT / SEMWAIT / STREAMWAIT word, 0 when none (Y10)
        ("wait_line", "i4", (THREADS,)),
        # Large, so they come last. A few words of each thread lie in one page (`_layout` of machine/state.py).
        ("fifo_word", "u4", (THREADS, FIFO_SLOTS)),
        ("fifo_line", "i4", (THREADS, FIFO_SLOTS)),
        ("ready", "i8", (READY_SLOTS, THREADS)),  # 2^32 x line + word
    ]
)
"""dtype of `t.frontend`."""


def queued(frontend: Any, queue: str, thread: int, slot: int) -> tuple[int, int]:
    """A word that waits, and its source line.

    Args:
        frontend: `t.frontend`.
        queue: `fifo`, `side` or `ready`.
        thread: 0 to 2.
        slot: of the queue, whose first word is in slot `..._head`.
    """
    if queue == "ready":
        line, word = divmod(int(frontend.ready[slot, thread]), 1 << 32)
        return word, line
    return int(frontend[f"{queue}_word"][thread, slot]), int(frontend[f"{queue}_line"][thread, slot])
