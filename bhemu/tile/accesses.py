"""What a core leaves to the schedule in its turn: accesses to shared devices, `.ttinsn`, and slow instructions."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import UndefinedBehavior
from bhemu.machine.agents import NC, T0, B
from bhemu.machine.core_state import HALT_REFUSED, HALTED, LOAD, NO_ACCESS, PUSH
from bhemu.machine.dispatch import DEVICE_LOAD, DEVICE_STORE, SLOW_CORE, access_device, call_place
from bhemu.machine.ethernet_state import TENSIX_TILE
from bhemu.machine.faults import DONE, REFUSED, WAIT, fault, open_choice, refuse
from bhemu.machine.frontend_state import FIFO_PUSH_LIMIT, FIFO_SLOTS, READY_PUSH_LIMIT
from bhemu.machine.kernel import kernel
from bhemu.machine.origin import line_of_pc
from bhemu.machine.types import Bool, Int, Table, TileRecord
from bhemu.riscv.arithmetic import WORD
from bhemu.riscv.decode import sign_extend
from bhemu.riscv.pushes import pushed_word
from bhemu.riscv.simple import IN_L1, SB, SH, SW, store_memory
from bhemu.tensix.frontend.fetch import MOP, append, fifo_push, ready_words, side_push
from bhemu.tile.sync_window import COPROCESSOR_DONE, MOP_DONE, SYNC_BASE, is_busy

FUSED: Final = 4
"""Adjacent `.ttinsn` that a T core pushes in one round, unless cfg0 forbids it (T11)."""
NO_FUSING: Final = 1 << 18

NC_PUSHES: Final = fault(
    "core.nc-push",
    UndefinedBehavior,
    "core NC executes .ttinsn {0:#010x}, but is not connected to the coprocessor",
    remedy="push from core B or a T core; or allow open choices, with which NC stops until it is reset",
    rule="tile T11",
)
"""It is a store to an address where NC has nothing (T10, T24), and such a store may block forever (T25)."""


ETHERNET_PUSHES: Final = fault(
    "ethernet.push",
    UndefinedBehavior,
    "a core of an Ethernet tile executes .ttinsn {0:#010x}: the tile has no coprocessor",
    remedy="leave Tensix instructions to the cores of Tensix tiles",
    rule="ethernet 1",
)
MOP_FROM_B: Final = fault(
    "core.b-mop",
    UndefinedBehavior,
    "core B pushes MOP {0:#010x}: its words enter behind the MOP expander",
    remedy="push MOP words from the thread's own core",
    rule="tile K3",
)


@kernel
def push(t: TileRecord, core: Int, thread: Int, word: Int, line: Int) -> Int:
    """Status of a push by core B, whose words enter after the MOP expander, or by a thread's own core (K1 to K3)."""
    if core != B:
        return DONE if fifo_push(t, thread, word, line) else WAIT
    if (word >> 24) == MOP:
        return refuse(t, MOP_FROM_B, word)
    return DONE if side_push(t, thread, word, line) else WAIT


@kernel
def _is_ahead(t: TileRecord, thread: Int) -> Bool:
    """True when the official simulator would let `.ttinsn` wait (E43)."""
    return t.simulator_order != 0 and ready_words(t, thread) > READY_PUSH_LIMIT


@kernel
def _execute_push(t: TileRecord, core: Int) -> Any:
    """Execute `.ttinsn`; returns a status."""
    pc = np.int64(t.core_pc[core])
    word = np.int64(t.access_value[core])
    if t.tile_kind != TENSIX_TILE:
        return refuse(t, ETHERNET_PUSHES, word)
    if core == NC:
        if not open_choice(t, NC_PUSHES, word):
            return REFUSED
        t.core_state[core] = HALTED
        t.core_halt_reason[core] = HALT_REFUSED
        return DONE
    thread = np.int64(0) if core == B else core - T0
    if _is_ahead(t, thread):
        return WAIT
    status = push(t, core, thread, word, line_of_pc(pc))
    if status != DONE or core == B:
        return status
    if (np.int64(t.core_cfg0[core]) & NO_FUSING) == 0 and t.debug_watch[core] == 0 and t.simulator_order == 0:
        _push_adjacent(t, core, thread)
    return DONE


@kernel
def _push_adjacent(t: TileRecord, core: Int, thread: Int) -> None:
    """T11: up to three more `.ttinsn` that follow go the same way in the same round."""
    for _ in range(FUSED - 1):
        after = np.int64(t.core_pc[core]) + 4
        if after >= t.l1_end or t.frontend.fifo_count[thread] >= FIFO_SLOTS:
            return
        word = np.int64(t.l1_u32[after >> 2])
        if word & 3 == 3:
            return
        append(t, thread, pushed_word(word), line_of_pc(after))
        t.core_pc[core] = np.uint32(after)
        t.core_retired[core] += 1


@kernel
def access(t: TileRecord, table: Table, core: Int) -> Any:
    """Make the access that the core has requested; returns a status."""
    kind = t.access_kind[core]
    address = np.int64(t.access_address[core])
    t.now_round = t.core_round[core]
    t.now_agent = core
    if kind == PUSH:
        return _execute_push(t, core)
    value: Int = np.int64(t.access_value[core])
    size = np.int64(t.access_size[core])
    if address < t.l1_end:  # a store that may wake a sleeping core
        store_memory(t, core, SW if size == 4 else (SH if size == 2 else SB), IN_L1, address, value)
        return DONE
    place = DEVICE_LOAD if kind == LOAD else DEVICE_STORE
    status, value = access_device(t, table, place, core, address, value, size)
    if status == DONE and kind == LOAD:
        if t.access_signed[core] != 0:
            value = sign_extend(value, 8 * size)
        t.core_x[core, t.access_register[core]] = np.uint32(value & WORD)
    return status


@kernel
def would_wait(t: TileRecord, core: Int) -> Bool:
    """True when a BLOCKED core's access, tried again now, would wait and change nothing.

    For what cores wait for most often, their coprocessor's thread; of other accesses False says nothing.
    """
    kind = t.access_kind[core]
    if core == NC or t.tile_kind != TENSIX_TILE:
        return False
    thread = np.int64(0) if core == B else core - T0
    if kind == PUSH:
        count = t.frontend.side_count[thread] if core == B else t.frontend.fifo_count[thread]
        return count > FIFO_PUSH_LIMIT or _is_ahead(t, thread)
    offset = np.int64(t.access_address[core]) - SYNC_BASE
    return kind == LOAD and core != B and offset in (COPROCESSOR_DONE, MOP_DONE) and is_busy(t, thread, offset)


@kernel
def slow(t: TileRecord, table: Table, core: Int) -> Any:
    """An instruction outside the inner loop; it moves pc itself."""
    t.now_round = t.core_round[core]
    t.now_agent = core
    t.access_kind[core] = NO_ACCESS
    return call_place(t, table, SLOW_CORE, core, 0)
