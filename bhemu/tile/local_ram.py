"""Local RAMs at their own and at their second addresses, and the program counter snapshots (tile T19, T20, T24).

Cores reach their own local RAM without the memory map (riscv/execute.py); the first functions are for agents that
access memory as a core does.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.isa.memory_map import LOCAL_RAM_BASE, region
from bhemu.machine.agents import CORES, NC, T0, T1, T2, B
from bhemu.machine.core_state import ASLEEP, LOCAL_RAM_SIZE
from bhemu.machine.faults import DONE
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Bool, Int, TileRecord

_BLOCK: Final = region("other_local_ram").step
_CORE_OF_BLOCK: Final = np.array([B, NC, T0, T1, T2], np.int64)
"""Order of the second addresses and of the snapshots."""
OWN_RAM_FIRST: Final = LOCAL_RAM_BASE


@kernel
def is_own_ram(agent: Int, address: Int) -> Bool:
    """True when the agent is a core that has its local RAM at the address."""
    return agent < CORES and address >= OWN_RAM_FIRST and address < OWN_RAM_FIRST + LOCAL_RAM_SIZE[agent]


@kernel
def own_ram_load(t: TileRecord, core: Int, offset: Int, size: Int) -> Any:
    """(status, value) of a load of 1, 2 or 4 aligned bytes from the core's local RAM."""
    word = np.int64(t.core_ram_u32[core, offset >> 2])
    return DONE, (word >> (8 * (offset & 3))) & ((1 << (8 * size)) - 1)


@kernel
def own_ram_store(t: TileRecord, core: Int, offset: Int, value: Int, size: Int) -> Any:
    """Status of the same for a store."""
    for i in range(size):
        t.core_ram[core, offset + i] = np.uint8((value >> (8 * i)) & 0xFF)
    return DONE


@kernel
def other_ram_load(t: TileRecord, offset: Int) -> tuple[Int, Int]:
    """(status, value) of a load from a local RAM, offset 0 to 0x9fff; a T core's RAM appears twice (T20)."""
    core = _CORE_OF_BLOCK[offset // _BLOCK]
    return DONE, np.int64(t.core_ram_u32[core, (offset % _BLOCK % LOCAL_RAM_SIZE[core]) >> 2])


@kernel
def other_ram_store(t: TileRecord, offset: Int, value: Int) -> Int:
    """Status of the same for a store."""
    core = _CORE_OF_BLOCK[offset // _BLOCK]
    t.core_ram_u32[core, (offset % _BLOCK % LOCAL_RAM_SIZE[core]) >> 2] = np.uint32(value)
    return DONE


@kernel
def pc_snapshot(t: TileRecord, index: Int) -> tuple[Int, Int]:
    """(status, value): the pc of core B, NC, T0, T1 or T2 (T24).

    A core that executes instructions on private state may be ahead of the round of the access, and shows the
    pc that it has got to.
    """
    core = _CORE_OF_BLOCK[index]
    if t.core_state[core] == ASLEEP:
        passed = np.int64(t.now_round) + (1 if core < t.now_agent else 0) - np.int64(t.poll_since[core])
        return DONE, np.int64(t.poll_pc[core, passed % np.int64(t.poll_length[core])])
    return DONE, np.int64(t.core_pc[core])
