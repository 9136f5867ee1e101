"""State of the vector unit besides its registers: `t.vector`, and what SFPLOADMACRO works with: `t.macro`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.machine.agents import THREADS
from bhemu.machine.section import section

VECTOR: Final[np.dtype[Any]] = section(
    [
        ("lane_flags", "u4", ()),  # bit n = flag of lane n (V3)
        ("use_flags", "u4", ()),  # bit n = use bit of lane n: its flag is its enable
        ("flag_stack_held", "u4", (8,)),  # lanes that hold this entry: a lane's entries are the first ones
        ("flag_stack", "u4", (8,)),
        ("use_stack", "u4", (8,)),
        ("acting_lanes", "u4", ()),  # lanes in which the instruction executes: not all in macros and mixed capture
        ("lane_config", "u4", ()),  # where lanes differ: every bit that some lane has set
        ("dst_stack_pointer", "i4", (THREADS,)),  # Sp of the stack form of SFPLOAD and SFPSTORE (V7)
        # What SFPCONFIG and template capture wrote differently by lane: rows of `t.macro.settings`. A row counts where
        # its bit is set; otherwise `lane_config`, and the templates, sequences and Misc of the macros, hold for every
        # lane.
        ("settings_mixed", "u4", ()),
    ]
)
"""dtype of `t.vector`."""

MACRO: Final[np.dtype[Any]] = section(
    [
        # --- what is large: only programs with macros touch it (`_layout` of state.py) --------------------------------
        ("settings", "u4", (10, 32)),  # [row of tensix/lane_settings.py, lane], see `settings_mixed`
        ("word", "u4", (4, 9, 32)),  # [sub-unit, slot, lane] templates; slot 8 = due in the cycle in progress
        ("operands", "u4", (4, 9, 32)),
        ("before", "u4", (17, 32)),  # LRegs when a cycle began, which all its instructions read
        ("after", "u4", (17, 32)),  # and those that the next cycle will read
        ("late", "u4", (17, 32)),  # results that take two cycles
        # --- macros ---------------------------------------------------------------------------------------------------
        ("template", "u4", (4,)),
        ("sequence", "u4", (4,)),
        ("misc", "u4", ()),
        # --- instructions that SFPLOADMACRO has scheduled (tensix/vector_queue.py) ------------------------------------
        ("pending", "i8", ()),  # 0: nothing is scheduled, and macros need no checks
        ("counted", "i8", ()),  # slots that count instructions instead of cycles
        ("head", "i4", ()),  # slot of delay 0
        ("thread", "i4", (4, 9)),
        # --- a cycle with macros --------------------------------------------------------------------------------------
        ("cycle", "i4", ()),  # 1 from its beginning to its end
        ("resume", "i4", ()),  # first thread to issue, in a cycle that the host had to interrupt
        ("counts", "i4", ()),  # this cycle's first vector instruction counts delays down
        ("taken", "i4", ()),  # sub-units, one bit each, that a scheduled instruction uses in this cycle
        ("excluded", "i4", ()),  # sub-units that must not write in this cycle
        ("resting", "i4", ()),  # sub-units that must be idle in this cycle,
        ("rest_next", "i4", ()),  # and in the next one
        ("enabled", "u4", ()),  # lanes enabled when the cycle began
        ("late_lanes", "u4", (17,)),
    ]
)
"""dtype of `t.macro`."""
