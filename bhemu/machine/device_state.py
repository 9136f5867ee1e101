"""State of what surrounds the coprocessor in a tile: reset, mailboxes, buffers, interrupts, NIUs (tile K, N13).

Fields are appended to those of machine/state.py.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

MAILBOX_WORDS: Final = 4
"""Words that the four mailboxes of one writer hold together (K14)."""
PCBUF_WORDS: Final = 16
NIU_WORDS: Final = 0x800 // 4
"""Words of a NIU's first page; the other three initiators repeat the first 0x44 bytes."""

DEVICE_FIELDS: list[tuple[str, str | np.dtype[Any], tuple[int, ...]]] = [
    # --- control, debug and status (K31) ------------------------------------------------------------------------------
    ("soft_reset", "u4", ()),
    ("reset_pc", "u4", (5,)),  # by core; B has none
    ("reset_pc_override", "u4", (5,)),
    ("disable_reset", "u4", ()),
    ("wall_clock_latch", "u4", ()),
    ("control_word", "u4", (0x400,)),  # plain words of the block, by offset / 4
    ("debug_read", "u4", ()),  # what CREG_RDDATA shows (K12)
    # --- mailboxes: first index writer, second reader; B, T0, T1, T2 (K13) --------------------------------------------
    ("mailbox_word", "u4", (4, 4, MAILBOX_WORDS)),
    ("mailbox_head", "i4", (4, 4)),
    ("mailbox_count", "i4", (4, 4)),
    # --- PCBufs, by thread (K16) --------------------------------------------------------------------------------------
    ("pcbuf_word", "u4", (3, PCBUF_WORDS)),
    ("pcbuf_head", "i4", (3,)),
    ("pcbuf_count", "i4", (3,)),
    ("pcbuf_waiting", "i4", (3,)),  # the T core waits in a pop
    # --- words that core B pushes to a thread, behind the MOP expander (K2) -------------------------------------------
    ("side_word", "u4", (3, 32)),
    ("side_line", "i4", (3, 32)),
    ("side_head", "i4", (3,)),
    ("side_count", "i4", (3,)),
    # --- interrupt controller (K22); first index 0 = B, 1 = NC --------------------------------------------------------
    ("pic_enable", "u4", (2, 2)),  # [core, software / hardware]
    ("pic_handling", "u4", (2,)),
    ("pic_next", "i4", (2,)),  # where the round robin goes on
    ("pic_software", "u4", (32,)),  # value of each software IRQ, 0 = not raised
    ("pic_hardware", "u4", (4,)),
    ("pic_handler", "u4", (36,)),
    # --- network interfaces (N13), by NoC -----------------------------------------------------------------------------
    ("niu_initiator", "u4", (2, 4, 24)),  # words 0x00 to 0x5c of each initiator
    ("niu_config", "u4", (2, 0x80)),  # words 0x100 to 0x2ff of the first page, as far as they are plain
    ("niu_counter", "u4", (2, 64)),
    ("niu_rtz", "u4", (2,)),  # ids whose outstanding counter has returned to zero (N24)
    ("niu_place", "u4", (2, 2)),  # [NoC, NODE_ID / ID_LOGICAL], set by the chip
]
