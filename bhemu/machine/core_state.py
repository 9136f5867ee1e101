"""State of the five RISC-V cores and of the schedule of cores and coprocessor (tile T, T34).

First index = core, in the order of machine/agents.py. Fields are appended to those of machine/state.py.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.isa.memory_map import local_ram_bytes
from bhemu.machine.agents import CORE_NAMES, CORES

LOCAL_RAM_SIZE: Final = np.array([local_ram_bytes(name) for name in CORE_NAMES], np.int64)
"""Bytes of each core's local RAM (T19)."""
LOCAL_RAM: Final = int(LOCAL_RAM_SIZE.max())
"""Bytes that the record holds for each core's local RAM; T cores have the first half of it (T19)."""
REGISTERS: Final = 33
"""x0 to x31; what is written to x0 goes to the last place."""

# What a core does; `core_state`
IN_RESET: Final = 0
RUNNING: Final = 1
BLOCKED: Final = 2
"""Tries the same access again in each round, and cannot succeed before another agent has moved."""
ASLEEP: Final = 3
"""Spins on unchanged memory (riscv/poll.py)."""
HALTED: Final = 4
"""Stopped by `ebreak`, a debugger or a refusal."""

# Why it is halted; `core_halt_reason`
HALT_EBREAK: Final = 1
HALT_ECALL: Final = 2
HALT_DEBUGGER: Final = 3
HALT_REFUSED: Final = 4

POLL_STEPS: Final = 48
"""Instructions of the longest loop that is recognised as polling."""
FIRST_POLL_ATTEMPT: Final = 8
"""Backward jumps of a core before the first check whether it polls."""
WATCHES: Final = 16
"""Words that such a loop may read."""

# Kinds of the access that a core hands to the memory map; `access_kind`
LOAD: Final = 0
STORE: Final = 1
PUSH: Final = 2
"""The core executes `.ttinsn`."""
NO_ACCESS: Final = 3
"""The core executes an instruction of riscv/slow.py."""

CORE_FIELDS: list[tuple[str, str | np.dtype[Any], tuple[int, ...]]] = [
    ("core_state", "i4", (CORES,)),
    ("core_pc", "u4", (CORES,)),
    ("core_x", "u4", (CORES, REGISTERS)),
    ("core_f", "u4", (CORES, 32)),
    ("core_round", "i8", (CORES,)),  # round in which the core executes its next instruction
    ("core_retired", "i8", (CORES,)),  # instructions since the record was made (minstret adds core_instret_offset)
    ("core_skip_breakpoint", "i4", (CORES,)),  # 1: execute the instruction at a breakpoint
    ("core_halt_reason", "i4", (CORES,)),
    # --- control and status registers (T12) ---------------------------------------------------------------------------
    ("core_cfg0", "u4", (CORES,)),
    ("core_pmacfg", "u4", (CORES, 2)),
    ("core_scratch", "u4", (CORES, 4)),
    ("core_stream_scratch", "u4", (CORES, 8)),
    ("core_fcsr", "u4", (CORES,)),
    ("core_status", "u4", (CORES, 2)),  # qstatus and bstatus while cfg0 freezes them
    ("core_cycle_offset", "i8", (CORES,)),  # mcycle = tile clock + this
    ("core_instret_offset", "i8", (CORES,)),
    ("core_interrupted_pc", "u4", (CORES,)),
    ("core_in_handler", "i4", (CORES,)),
    # --- an access that the memory map has to make (tile/memory_map.py) -----------------------------------------------
    ("access_kind", "i4", (CORES,)),
    ("access_address", "i8", (CORES,)),
    ("access_size", "i4", (CORES,)),
    ("access_value", "i8", (CORES,)),  # of a store; of a load when it has been made
    ("access_register", "i4", (CORES,)),  # place in core_x that a load fills
    ("access_signed", "i4", (CORES,)),
    ("core_request", "i4", (CORES,)),  # 1 + the NoC request with which the core's store ends (tile/noc), 0 none
    # --- polling loops (riscv/poll.py) --------------------------------------------------------------------------------
    ("core_loops", "i8", (CORES,)),  # jumps backwards since the last attempt to find one
    ("core_loops_limit", "i8", (CORES,)),  # jumps until the next attempt
    ("poll_length", "i4", (CORES,)),  # instructions of one turn of the loop
    ("poll_steps", "i4", (CORES,)),  # 0: the loop is to be followed; in timed mode what of it was executed; else -1
    ("poll_since", "i8", (CORES,)),  # round of the loop's first instruction
    ("poll_pc", "u4", (CORES, POLL_STEPS)),
    ("poll_x", "u4", (CORES, REGISTERS)),  # registers before the first of them
    ("poll_register", "u1", (CORES, POLL_STEPS)),  # the place in core_x to which each writes, and what
    ("poll_value", "u4", (CORES, POLL_STEPS)),
    ("watch_count", "i4", (CORES,)),
    ("watch_address", "i8", (CORES, WATCHES)),
    ("watch_value", "i8", (CORES, WATCHES)),
    ("watch_hash", "i8", ()),  # bit (address >> 2) % 64 is set for each watched word of L1
    ("watch_registers", "i4", ()),  # 1: a sleeping core watches a register, not memory
    # --- the schedule (tile/schedule.py) ------------------------------------------------------------------------------
    ("round_goal", "i8", ()),  # rounds up to this one may happen
    ("round_horizon", "i8", ()),  # last round in which the agent whose turn it is may touch what others share
    ("run_ahead", "i8", ()),  # rounds beyond it in which a core may still access L1, say (chip/clock/run.py)
    ("free_rounds", "i8", ()),  # rounds that took no time (the coprocessor executed): clock = round - this
    ("busy_rounds", "i8", ()),  # rounds since the last one that took a clock, the coprocessor executing in each
    ("full_clocks", "i8", ()),  # clocks in a row that had no room for more such rounds
    ("tensix_round", "i8", ()),  # next round of the coprocessor
    ("tensix_state", "i4", ()),  # RUNNING, BLOCKED, or IN_RESET when nothing is queued
    ("sleepers", "i4", ()),  # how many cores are asleep
    ("turn_core", "i4", ()),  # the core whose turn was the last one (tile/turns.py)
    ("stopped_core", "i4", ()),  # the core that is at a breakpoint
    ("interrupts", "i4", ()),  # 1: some interrupt is raised (tile/interrupts.py)
    ("fault_core", "i4", ()),  # 1 + the core whose instruction is at fault, 0 the coprocessor or none
    ("fault_pc", "u4", ()),
    ("core_ram", "u1", (CORES, LOCAL_RAM)),
]
