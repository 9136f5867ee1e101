"""The address windows through which cores reach GPRs and configuration (I.10; tile K7 to K11, T24, T26, T28).

GPRs: core B sees the 64 words of thread n at +0x100*n; a T core sees its own 64, every 256 bytes up to +0xfff.
Configuration: Config bank 0, then bank 1, both (stores), ThreadConfig, 68 words a thread (loads).

A store takes effect at once, whatever the thread has queued; holding it back for auto TTSync (K19) is the core's part.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.errors import BhemuError, NonContractualBehavior, UndefinedBehavior
from bhemu.isa.memory_map import bounds
from bhemu.isa.registers import CONFIG_WORDS, THREAD_WORDS
from bhemu.isa.registers import config as config_register
from bhemu.isa.tile_registers import address_of, tile_register
from bhemu.machine.agents import AGENT_NAMES, AGENTS, NC, NOC, T0, TENSIX, B
from bhemu.machine.faults import DONE, REFUSED, fault, open_choice, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.state import THREADS
from bhemu.machine.types import Int, TileRecord
from bhemu.tensix.config import read_config, write_config

GPR_BASE, GPR_END = bounds("gpr")
GPRS: Final = 64
"""Words of one thread."""
_GPR_BYTES: Final = 4 * GPRS

CONFIG_BASE: Final = address_of("config", "BANK_0")
BANK_1: Final = address_of("config", "BANK_1")
BOTH_BANKS: Final = address_of("config", "BOTH_BANKS")
THREAD_CONFIG: Final = address_of("config", "THREAD_CONFIG")
CONFIG_END: Final = tile_register("config", "THREAD_CONFIG").span.stop

WORD_BYTES: Final = 4


def _fault_of_each_core(reason: str, error: type[BhemuError], text: str, *, remedy: str, rule: str) -> tuple[int, ...]:
    """Fault codes indexed by core: a recorded fault holds numbers, and the message names the core."""
    return tuple(
        fault(f"window.{reason}.{name.lower()}", error, f"{AGENTS[name]} {text}", remedy=remedy, rule=rule)
        for name in AGENT_NAMES
    )


NO_ACCESS: Final = _fault_of_each_core(
    "no-access",
    UndefinedBehavior,
    "accesses {0:#x}: GPRs and configuration are mapped for cores B, T0, T1 and T2 only",
    remedy='access it as one of those, as in load_word(address, core="B")',
    rule="tile T24, T28",
)
UNMAPPED: Final = _fault_of_each_core(
    "unmapped",
    UndefinedBehavior,
    "accesses {0:#x}, where it sees neither a GPR nor a word of configuration",
    remedy=f"GPRs are at {GPR_BASE:#x} (B: 192 words; T0, T1, T2: their own 64, up to {GPR_END - 1:#x}), Config at "
    f"{CONFIG_BASE:#x}, ThreadConfig from {THREAD_CONFIG:#x} to {CONFIG_END - 1:#x}",
    rule="tile T24, T25",
)
UNALIGNED: Final = _fault_of_each_core(
    "unaligned",
    UndefinedBehavior,
    "accesses {1} bytes at {0:#x}, a misaligned access",
    remedy="align the address to the width of the access",
    rule="tile T27",
)
NARROW: Final = _fault_of_each_core(
    "narrow",
    UndefinedBehavior,
    "accesses {1} bytes at {0:#x}, where only whole words of 4 bytes can be accessed",
    remedy="use a word access; only loads of configuration may have 1 or 2 bytes",
    rule="tile T24, T26",
)
THREAD_CONFIG_STORE: Final = _fault_of_each_core(
    "thread-config",
    UndefinedBehavior,
    "stores to {0:#x}, which is entry {2} of thread {1}'s ThreadConfig: cores can only read it",
    remedy="execute SETC16 on that thread",
    rule="003.3g, tile K9",
)
BOTH_BANKS_LOAD: Final = _fault_of_each_core(
    "both-banks-load",
    NonContractualBehavior,
    "loads {0:#x} from the window that stores to both banks: it shows bank 0, and the documents do not support it",
    remedy=f"load from bank 0 ({CONFIG_BASE:#x}) or bank 1 ({BANK_1:#x}), or allow open choices to have bank 0 loaded",
    rule="I.10, tile K8",
)

INVALIDATE_MASK: Final = _fault_of_each_core(
    "invalidate-mask",
    UndefinedBehavior,
    "stores {1:#x} to {0:#x}, which empties instruction caches: one bit for each of cores B, T0, T1, T2, NC",
    remedy="set one to five of bits 4:0",
    rule="tile T22",
)
_INVALIDATE_WORD: Final = config_register("RISCV_IC_INVALIDATE_InvalidateAll")[0]
_CACHES: Final = 0x1F


@kernel
def _check(t: TileRecord, core: Int, address: Int, size: Int, loads: bool) -> Int:
    """DONE when the core may access `size` bytes at the address, which then lie in a word that exists."""
    in_gprs = address >= GPR_BASE and address < GPR_END
    in_config = address >= CONFIG_BASE and address < CONFIG_END
    if core in (NC, NOC, TENSIX):
        return refuse(t, NO_ACCESS[core], address)
    if not in_gprs and not in_config:
        return refuse(t, UNMAPPED[core], address)
    if core == B and in_gprs and address >= GPR_BASE + THREADS * _GPR_BYTES:
        return refuse(t, UNMAPPED[core], address)
    if size != WORD_BYTES and (in_gprs or not loads):
        return refuse(t, NARROW[core], address, size)
    if address & (size - 1):
        return refuse(t, UNALIGNED[core], address, size)
    return DONE


@kernel
def _gpr_place(core: Int, address: Int) -> tuple[Int, Int]:
    """(thread, register) that a core finds at an address of the GPR window."""
    word = (address - GPR_BASE) // WORD_BYTES
    if core == B:
        return word // GPRS, word % GPRS
    return core - T0, word % GPRS


@kernel
def window_load(t: TileRecord, core: Int, address: Int, size: Int = WORD_BYTES) -> tuple[Int, Int]:
    """(status, value) of a load from the GPR or configuration window.

    Args:
        core: of machine/agents.py.
        address: byte address, 0 to 2**32 - 1.
        size: 1, 2 or 4 bytes; narrow loads are not extended by sign.
    """
    if _check(t, core, address, size, True) != DONE:
        return REFUSED, np.int64(0)
    if address < CONFIG_BASE:
        thread, register = _gpr_place(core, address)
        return DONE, np.int64(t.gpr[thread, register])
    word = (address - CONFIG_BASE) // WORD_BYTES
    if address >= THREAD_CONFIG:
        entry = word - 3 * CONFIG_WORDS
        value: Int = np.int64(t.thread_config[entry // THREAD_WORDS, entry % THREAD_WORDS])
    elif address >= BOTH_BANKS:
        if not open_choice(t, BOTH_BANKS_LOAD[core], address):
            return REFUSED, np.int64(0)
        value = read_config(t, 0, word - 2 * CONFIG_WORDS)
    else:
        value = read_config(t, word // CONFIG_WORDS, word % CONFIG_WORDS)
    return DONE, (value >> (8 * (address & 3))) & ((1 << (8 * size)) - 1)


@kernel
def window_store(t: TileRecord, core: Int, address: Int, value: Int, size: Int = WORD_BYTES) -> Int:
    """Status of a store of `value`, 0 to 2**32 - 1, with all effects of writing the word; see `window_load`.

    Nothing is changed when the store is refused.
    """
    if _check(t, core, address, size, False) != DONE:
        return REFUSED
    if address < CONFIG_BASE:
        thread, register = _gpr_place(core, address)
        t.gpr[thread, register] = np.uint32(value)
        return DONE
    word = (address - CONFIG_BASE) // WORD_BYTES
    if address >= THREAD_CONFIG:
        entry = word - 3 * CONFIG_WORDS
        return refuse(t, THREAD_CONFIG_STORE[core], address, entry // THREAD_WORDS, entry % THREAD_WORDS)
    if word % CONFIG_WORDS == _INVALIDATE_WORD and (value == 0 or value > _CACHES):
        return refuse(t, INVALIDATE_MASK[core], address, value)
    if address >= BOTH_BANKS:
        write_config(t, 0, word - 2 * CONFIG_WORDS, value)
        write_config(t, 1, word - 2 * CONFIG_WORDS, value)
    else:
        write_config(t, word // CONFIG_WORDS, word % CONFIG_WORDS, value)
    return DONE


def window_load_entry(t: TileRecord, core: Int, address: Int, size: Int) -> Int:
    """`window_load` for `compile_entry(..., arguments=3)`: the value, or -1 when the load is refused."""
    status, value = window_load(t, core, address, size)
    return value if status == DONE else -1


def window_store_entry(t: TileRecord, core: Int, address: Int, value: Int) -> Int:
    """`window_store` of a word for `compile_entry(..., arguments=3)`."""
    return window_store(t, core, address, value)
