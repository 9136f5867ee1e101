"""The memory map of a Tensix tile above L1: which agent may access what, which device answers (tile T24 to T28).

That of an Ethernet tile is in the room ethernet/.

`device_load` and `device_store` serve cores, the coprocessor and the NoC. Address windows of the coprocessor are in
tensix/windows.py, registers that it shares with the cores in tensix/mmio.py.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import UndefinedBehavior
from bhemu.isa.memory_map import L1_SIZE, bounds, region
from bhemu.isa.niu import INITIATOR_BYTES, INITIATOR_WORDS, INITIATORS
from bhemu.machine.agents import AGENT_NAMES, AGENTS, T0, B, is_t_core
from bhemu.machine.core_state import RUNNING
from bhemu.machine.dispatch import ETHERNET_LOAD, ETHERNET_STORE, call_place, handlers_of
from bhemu.machine.ethernet_state import TENSIX_TILE
from bhemu.machine.faults import DONE, WAIT, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.origin import line_of_pc
from bhemu.machine.types import AnyInt, Bool, Int, TileRecord
from bhemu.tensix.dst_window import dst_load, dst_store
from bhemu.tensix.frontend.auto_ttsync import must_wait_for_own_thread
from bhemu.tensix.frontend.fetch import is_idle
from bhemu.tensix.mmio import OVERLAY_END, OVERLAY_FIRST, TDMA_END, TDMA_FIRST, mmio_load, mmio_store
from bhemu.tensix.windows import window_load, window_store
from bhemu.tile.accesses import push
from bhemu.tile.control import control_load, control_store
from bhemu.tile.interrupts import pic_load, pic_store
from bhemu.tile.local_ram import (
    OWN_RAM_FIRST,
    is_own_ram,
    other_ram_load,
    other_ram_store,
    own_ram_load,
    own_ram_store,
    pc_snapshot,
)
from bhemu.tile.mailbox import mailbox_load, mailbox_store
from bhemu.tile.noc.niu import niu_load, niu_store
from bhemu.tile.sync_window import sync_load, sync_store

WORD_BYTES: Final = 4

CONTROL_FIRST, CONTROL_END = bounds("control")
PIC_FIRST, PIC_END = bounds("pic")
SNAPSHOT_FIRST, SNAPSHOT_END = bounds("pc_snapshot")
OTHER_RAM_FIRST, OTHER_RAM_END = bounds("other_local_ram")
NIU_FIRST, NIU_END = region("niu0").base, region("niu1").end
NIU_BYTES: Final = region("niu0").size
MOP_CONFIG_FIRST, MOP_CONFIG_END = bounds("mop_config")
DST_FIRST, DST_END = bounds("dst")
GPR_FIRST, GPR_END = bounds("gpr")
PUSH_FIRST, PUSH_END = region("push0").base, region("push2").end
PUSH_BYTES: Final = region("push0").size
SYNC_FIRST, SYNC_END = bounds("pcbuf")
"""For core B buffers alone; T cores see their own, TTSync and semaphores at the first addresses."""
MAILBOX_FIRST, MAILBOX_END = bounds("mailbox")
MAILBOX_BYTES: Final = region("mailbox").step
CONFIG_FIRST, CONFIG_END = bounds("config")


def _fault_of_each_agent(reason: str, text: str, *, remedy: str, rule: str) -> tuple[int, ...]:
    return tuple(
        fault(f"map.{reason}.{name.lower()}", UndefinedBehavior, f"{AGENTS[name]} {text}", remedy=remedy, rule=rule)
        for name in AGENT_NAMES
    )


UNMAPPED: Final = _fault_of_each_agent(
    "unmapped",
    "accesses {0:#x}, which is unmapped for it: silicon may hang",
    remedy=f"see the memory map (tile T24): L1 below {L1_SIZE:#x}, local RAM from {OWN_RAM_FIRST:#x}, "
    f"registers from {TDMA_FIRST:#x}",
    rule="tile T24, T25",
)
NARROW: Final = _fault_of_each_agent(
    "narrow",
    "accesses {1} bytes at {0:#x}, where only whole words of 4 bytes can be accessed",
    remedy="use a word access; narrow accesses are for L1, local RAM, loads of configuration and the Dst window",
    rule="tile T26",
)
NO_STORE: Final = _fault_of_each_agent(
    "read-only",
    "stores to {0:#x}, which can only be loaded",
    remedy="the program counters of the cores can be read, not set",
    rule="tile T24",
)
NO_LOAD: Final = _fault_of_each_agent(
    "write-only",
    "loads from {0:#x}, which can only be stored to",
    remedy="keep a copy of what was stored",
    rule="tile T24",
)
OTHER_THREAD: Final = _fault_of_each_agent(
    "other-thread",
    "stores to {0:#x}, the instruction window of another thread: silicon hangs",
    remedy=f"a T core pushes to its own thread at {PUSH_FIRST:#x}; only core B has {region('push1').base:#x} and "
    f"{region('push2').base:#x}",
    rule="tile T24, E8",
)


@kernel
def _reaches_coprocessor(agent: Int) -> bool:
    """The windows above the overlay exist for B and the T cores (T24, T28)."""
    return agent == B or is_t_core(agent)


@kernel
def changes_only_data(agent: Int, address: Int, stores: Bool) -> Bool:
    """True when an access, if it is made, stops, resets and interrupts no core and starts no request to the NoC."""
    if address >= NIU_FIRST and address < NIU_END:
        place = (address - NIU_FIRST) % NIU_BYTES
        words = place < INITIATORS * INITIATOR_BYTES and place % INITIATOR_BYTES < INITIATOR_WORDS * WORD_BYTES
        return words or not stores
    if (address >= OVERLAY_FIRST and address < OVERLAY_END) or (address >= TDMA_FIRST and address < TDMA_END):
        return True
    return address >= MOP_CONFIG_FIRST and _reaches_coprocessor(agent)


@kernel
def may_be_early(t: TileRecord, core: Int, address: Int, stores: Bool) -> Bool:
    """True when an access of `changes_only_data` may come before turns of other agents in earlier rounds (tile T34).

    Streams and NIUs are like L1 then: who uses them together looks at a flag first. The rest is the core's own as long
    as its thread has nothing to do.
    """
    if address >= OVERLAY_FIRST and address < OVERLAY_END:
        return stores and t.watch_registers == 0
    if address >= NIU_FIRST and address < NIU_END:
        return True
    if not stores or not is_t_core(core):
        return False
    if address >= PUSH_FIRST and address < PUSH_END:
        return True
    own = (address >= GPR_FIRST and address < GPR_END) or (address >= MOP_CONFIG_FIRST and address < MOP_CONFIG_END)
    return own and is_idle(t, core - T0)


@kernel(forceinline=True)
def may_end_a_wait(t: TileRecord, address: Int) -> Bool:
    """False where no agent waits for what an access changes, of what `changes_only_data` names.

    No agent waits for GPRs and NIUs; for streams may a core that polls, or a thread at STREAMWAIT (Y11).
    """
    if address >= OVERLAY_FIRST and address < OVERLAY_END:
        wait = t.frontend.wait_word
        return t.watch_registers != 0 or (t.tensix_state != RUNNING and (wait[0] | wait[1] | wait[2]) != 0)
    return (address < NIU_FIRST or address >= NIU_END) and (address < GPR_FIRST or address >= GPR_END)


@kernel
def _load_for_all(t: TileRecord, agent: Int, address: Int) -> Any:
    """(status, value) of a load from what the NoC reaches, too."""
    if address >= OVERLAY_FIRST and address < OVERLAY_END:
        return mmio_load(t, agent, address)
    if address >= CONTROL_FIRST and address < CONTROL_END:
        return control_load(t, agent, address - CONTROL_FIRST)
    if address >= PIC_FIRST and address < PIC_END:
        return pic_load(t, agent, address - PIC_FIRST)
    if address >= SNAPSHOT_FIRST and address < SNAPSHOT_END:
        return pc_snapshot(t, (address - SNAPSHOT_FIRST) // WORD_BYTES)
    if address >= OTHER_RAM_FIRST and address < OTHER_RAM_END:
        return other_ram_load(t, address - OTHER_RAM_FIRST)
    if address >= NIU_FIRST and address < NIU_END:
        return niu_load(t, (address - NIU_FIRST) // NIU_BYTES, (address - NIU_FIRST) % NIU_BYTES)
    return refuse(t, UNMAPPED[agent], address), np.int64(0)


@kernel
def _load_for_coprocessor_cores(t: TileRecord, agent: Int, address: Int, size: Int) -> Any:
    """(status, value) of a load by B or a T core from the windows above the overlay."""
    none = np.int64(0)
    if (address >= GPR_FIRST and address < GPR_END) or (address >= CONFIG_FIRST and address < CONFIG_END):
        if must_wait_for_own_thread(t, agent, address, True):
            return WAIT, none
        return window_load(t, agent, address, size)
    if is_t_core(agent) and address >= DST_FIRST and address < DST_END:
        return dst_load(t, agent - T0, address - DST_FIRST, size)
    if size != WORD_BYTES:
        return refuse(t, NARROW[agent], address, size), none
    if address >= SYNC_FIRST and address < SYNC_END:
        return sync_load(t, agent, address)
    if address >= MAILBOX_FIRST and address < MAILBOX_END:
        return mailbox_load(
            t, agent, (address - MAILBOX_FIRST) // MAILBOX_BYTES, (address - MAILBOX_FIRST) % MAILBOX_BYTES
        )
    if address >= PUSH_FIRST and address < PUSH_END:
        return refuse(t, NO_LOAD[agent], address), none
    if is_t_core(agent) and address >= MOP_CONFIG_FIRST and address < MOP_CONFIG_END:
        return refuse(t, NO_LOAD[agent], address), none
    return refuse(t, UNMAPPED[agent], address), none


@kernel
def load(t: TileRecord, agent: Int, address: Int, size: Int) -> Any:
    """(status, value) of a load of `size` bytes, aligned, by an agent; narrow values are not extended by sign.

    WAIT: the access must be tried again when another agent has proceeded.
    """
    if address >= MOP_CONFIG_FIRST and _reaches_coprocessor(agent):
        return _load_for_coprocessor_cores(t, agent, address, size)
    if is_own_ram(agent, address):
        return own_ram_load(t, agent, address - OWN_RAM_FIRST, size)
    if address >= TDMA_FIRST and size != WORD_BYTES:
        return refuse(t, NARROW[agent], address, size), np.int64(0)
    if address >= TDMA_FIRST and address < TDMA_END:
        if must_wait_for_own_thread(t, agent, address, True):
            return WAIT, np.int64(0)
        return mmio_load(t, agent, address)
    return _load_for_all(t, agent, address)


@kernel
def _store_for_all(t: TileRecord, agent: Int, address: Int, value: Int) -> AnyInt:
    if address >= OVERLAY_FIRST and address < OVERLAY_END:
        return mmio_store(t, agent, address, value)
    if address >= CONTROL_FIRST and address < CONTROL_END:
        return control_store(t, agent, address - CONTROL_FIRST, value)
    if address >= PIC_FIRST and address < PIC_END:
        return pic_store(t, agent, address - PIC_FIRST, value)
    if address >= SNAPSHOT_FIRST and address < SNAPSHOT_END:
        return refuse(t, NO_STORE[agent], address)
    if address >= OTHER_RAM_FIRST and address < OTHER_RAM_END:
        return other_ram_store(t, address - OTHER_RAM_FIRST, value)
    if address >= NIU_FIRST and address < NIU_END:
        return niu_store(t, (address - NIU_FIRST) // NIU_BYTES, (address - NIU_FIRST) % NIU_BYTES, value)
    return refuse(t, UNMAPPED[agent], address)


@kernel
def _push(t: TileRecord, agent: Int, address: Int, value: Int) -> Int:
    """A store to an instruction window (K1, K2; E8: anywhere in its 64 KiB)."""
    thread = (address - PUSH_FIRST) // PUSH_BYTES
    line = line_of_pc(np.int64(t.core_pc[agent]))
    if agent == B:
        return push(t, agent, thread, value, line)
    if thread != 0:
        return refuse(t, OTHER_THREAD[agent], address)
    return push(t, agent, agent - T0, value, line)


@kernel
def _store_for_coprocessor_cores(t: TileRecord, agent: Int, address: Int, value: Int, size: Int) -> Any:
    if (address >= GPR_FIRST and address < GPR_END) or (address >= CONFIG_FIRST and address < CONFIG_END):
        if must_wait_for_own_thread(t, agent, address, False):
            return WAIT
        return window_store(t, agent, address, value, size)
    if is_t_core(agent) and address >= DST_FIRST and address < DST_END:
        return dst_store(t, agent - T0, address - DST_FIRST, value, size)
    if size != WORD_BYTES:
        return refuse(t, NARROW[agent], address, size)
    if address >= PUSH_FIRST and address < PUSH_END:
        return _push(t, agent, address, value)
    if address >= SYNC_FIRST and address < SYNC_END:
        return sync_store(t, agent, address, value)
    if address >= MAILBOX_FIRST and address < MAILBOX_END:
        return mailbox_store(
            t, agent, (address - MAILBOX_FIRST) // MAILBOX_BYTES, (address - MAILBOX_FIRST) % MAILBOX_BYTES, value
        )
    if is_t_core(agent) and address >= MOP_CONFIG_FIRST and address < MOP_CONFIG_END:
        t.frontend.mop_config[agent - T0, (address - MOP_CONFIG_FIRST) // WORD_BYTES] = np.uint32(value)
        return DONE
    return refuse(t, UNMAPPED[agent], address)


@kernel
def store(t: TileRecord, agent: Int, address: Int, value: Int, size: Int) -> AnyInt:
    """Status of a store of the low `size` bytes of `value`, aligned; see `load`."""
    if address >= MOP_CONFIG_FIRST and _reaches_coprocessor(agent):
        return _store_for_coprocessor_cores(t, agent, address, value, size)
    if is_own_ram(agent, address):
        return own_ram_store(t, agent, address - OWN_RAM_FIRST, value, size)
    if address >= TDMA_FIRST and size != WORD_BYTES:
        return refuse(t, NARROW[agent], address, size)
    if address >= TDMA_FIRST and address < TDMA_END:
        if must_wait_for_own_thread(t, agent, address, False):
            return WAIT
        return mmio_store(t, agent, address, value)
    return _store_for_all(t, agent, address, value)


# For the table of handlers: the value travels in `device_value`, the number of bytes in `device_size`.


def device_load_entry(t: TileRecord, agent: Int, address: Int) -> AnyInt:
    """Load for `call_handler`; returns a status."""
    if t.tile_kind != TENSIX_TILE:
        return call_place(t, handlers_of(t), ETHERNET_LOAD, agent, address)
    status, value = load(t, agent, address, np.int64(t.device_size))
    t.device_value = value
    return status


def device_store_entry(t: TileRecord, agent: Int, address: Int) -> AnyInt:
    """Store for `call_handler`; returns a status."""
    if t.tile_kind != TENSIX_TILE:
        return call_place(t, handlers_of(t), ETHERNET_STORE, agent, address)
    return store(t, agent, address, np.int64(t.device_value), np.int64(t.device_size))
