"""Control, debug and status registers of the tile (tile K31 to K42).

control_registers.py says what an access to each does. Registers that act are here; what the debug ports reach is in
debug_ports/ and injection.py.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import MissingSpecification, UndefinedBehavior, Unimplemented
from bhemu.isa.memory_map import region
from bhemu.isa.registers import CONFIG_WORDS, THREAD_WORDS
from bhemu.isa.tile_registers import bit_of, offset_of
from bhemu.machine.agents import NC, T0
from bhemu.machine.faults import DONE, fault, open_choice, refuse
from bhemu.machine.faults import REFUSED as STATUS_REFUSED
from bhemu.machine.kernel import kernel
from bhemu.machine.state import THREADS
from bhemu.machine.types import AnyInt, Int, TileRecord
from bhemu.machine.wall_clock import HALF, HALF_BITS, clock_now, latch_clock
from bhemu.tensix.config import read_config
from bhemu.tensix.frontend.injection import CONTROL_0 as PUSH_CONTROL
from bhemu.tensix.frontend.injection import load_status as load_push_status
from bhemu.tensix.frontend.injection import store_control as store_push_control
from bhemu.tensix.performance import is_performance, load_performance, store_performance
from bhemu.tile import watchdog as watchdog
from bhemu.tile.block_reset import reset_blocks
from bhemu.tile.control_registers import (
    KIND,
    NOT_BUILT,
    NOTHING,
    OPEN,
    PLAIN,
    READ_ONLY,
    REFUSED,
    RESULT,
    UNKNOWN,
)
from bhemu.tile.debug_ports import timestamp as timestamp
from bhemu.tile.debug_ports.array import load_array
from bhemu.tile.debug_ports.bus import L1_REG2, load_bus_data, store_bus_control, store_l1_control
from bhemu.tile.debug_ports.interface import load_debug_status, reset_debug, store_debug_control
from bhemu.tile.reset import store_soft_reset

BUS_CONTROL: Final = offset_of("control", "DBG_BUS_CTRL")
CONFIG_READ: Final = offset_of("control", "TENSIX_CREG_READ")
BUS_DATA: Final = offset_of("control", "DBG_RD_DATA")
FEATURE_DISABLE: Final = offset_of("control", "DBG_FEATURE_DISABLE")
ARRAY_DATA: Final = offset_of("control", "DBG_ARRAY_RD_DATA")
CONFIG_DATA: Final = offset_of("control", "TENSIX_CREG_RDDATA")
DEBUG_CONTROL_0: Final = offset_of("control", "RISC_DBG_CNTL_0")
DEBUG_STATUS_0: Final = offset_of("control", "RISC_DBG_STATUS_0")
DEBUG_STATUS_1: Final = offset_of("control", "RISC_DBG_STATUS_1")
PUSH_STATUS: Final = offset_of("control", "INSTRN_BUF_STATUS")
STICKY_BITS: Final = offset_of("control", "FPU_STICKY_BITS")
SOFT_RESET: Final = offset_of("control", "SOFT_RESET_0")
WALL_CLOCK_0: Final = offset_of("control", "WALL_CLOCK_0")
WALL_CLOCK_1: Final = offset_of("control", "WALL_CLOCK_1")
WALL_CLOCK_1_AT: Final = offset_of("control", "WALL_CLOCK_1_AT")
DISABLE_RESET: Final = offset_of("control", "DISABLE_RESET")
RESET_PC_T0: Final = offset_of("control", "TRISC0_RESET_PC")
RESET_OVERRIDE_T: Final = offset_of("control", "TRISC_RESET_PC_OVERRIDE")
RESET_PC_NC: Final = offset_of("control", "NCRISC_RESET_PC")
RESET_OVERRIDE_NC: Final = offset_of("control", "NCRISC_RESET_PC_OVERRIDE")

DST_HIGH_HALVES: Final = 1 << bit_of("control", "DBG_FEATURE_DISABLE", "DST_HIGH_HALVES")
L1_ARBITRATION: Final = 1 << bit_of("control", "DBG_FEATURE_DISABLE", "L1_ARBITRATION")
SOFT_RESET_BITS: Final = (1 << bit_of("control", "SOFT_RESET_0", "IGNORED")) - 1
"""Bit 31 is ignored (T17)."""

NO_REGISTER: Final = fault(
    "control.register",
    UndefinedBehavior,
    f"there is no register at {{0:#x}} of the control block ({region('control').base:#x})",
    remedy="tile K31 lists the registers",
    rule="tile K31",
)
FEATURE: Final = fault(
    "control.feature-disable",
    Unimplemented,
    "DBG_FEATURE_DISABLE = {0:#x}: bit 11 would make 16-bit accesses of Dst reach the high halves of 32-bit rows, "
    "which bhemu does not have",
    remedy="leave bit 11 clear, and read 32-bit Dst through the 32-bit views",
    rule="tile K58, I.3",
)
FEATURE_UNKNOWN: Final = fault(
    "control.feature-open",
    MissingSpecification,
    "DBG_FEATURE_DISABLE = {0:#x}: of its bits only 3 (arbitration of L1) and 11 (views of Dst) are documented",
    remedy="leave the other bits clear, or allow open choices to have them kept without effect",
    rule="tile K58",
)
STICKY: Final = fault(
    "control.sticky-bits",
    Unimplemented,
    "FPU_STICKY_BITS ({0:#x}): bhemu's matrix unit does not record math exceptions",
    remedy="do not load the register; storing 0 to clear it is fine",
    rule="tile K31",
)
NO_CONFIG_WORD: Final = fault(
    "control.config-word",
    UndefinedBehavior,
    "TENSIX_CREG_READ asks for word {0} of the configuration window, which ends at word {1}",
    remedy="words 0 to 223 are bank 0, 224 to 447 bank 1, 448 to 671 both banks, from 672 ThreadConfig",
    rule="tile K12",
)


@kernel
def read_config_window(t: TileRecord, word: Int) -> Int:
    """Word 0 to 875 of the configuration window, as CREG_READ counts them (K12)."""
    if word >= 3 * CONFIG_WORDS:
        entry = word - 3 * CONFIG_WORDS
        return np.int64(t.thread_config[entry // THREAD_WORDS, entry % THREAD_WORDS])
    if word >= 2 * CONFIG_WORDS:
        return read_config(t, 0, word - 2 * CONFIG_WORDS)  # loads from the window of both banks show bank 0 (K8)
    return read_config(t, word // CONFIG_WORDS, word % CONFIG_WORDS)


@kernel
def _store_config_read(t: TileRecord, word: Int) -> Any:
    """K12: the value is taken when the index is stored."""
    end = 3 * CONFIG_WORDS + THREADS * THREAD_WORDS
    if word >= end:
        return refuse(t, NO_CONFIG_WORD, word, end - 1)
    t.control_word[CONFIG_READ >> 2] = np.uint32(word)
    t.debug_read = np.uint32(read_config_window(t, word))
    return DONE


@kernel
def _load_acting(t: TileRecord, offset: Int) -> Any:
    """(status, value) of a register that acts."""
    value: Int = np.int64(0)
    if offset == SOFT_RESET:
        value = np.int64(t.soft_reset)
    elif offset == WALL_CLOCK_0:
        value = latch_clock(t)
    elif offset == WALL_CLOCK_1:
        value = (clock_now(t) >> HALF) & HALF_BITS
    elif offset == WALL_CLOCK_1_AT:
        value = np.int64(t.wall_clock_latch)
    elif offset == CONFIG_DATA:
        value = np.int64(t.debug_read)
    elif offset == DISABLE_RESET:
        value = np.int64(t.disable_reset)
    elif offset >= RESET_PC_T0 and offset < RESET_PC_T0 + 4 * THREADS:
        value = np.int64(t.reset_pc[T0 + (offset - RESET_PC_T0) // 4])
    elif offset == RESET_OVERRIDE_T:
        for thread in range(THREADS):
            value |= np.int64(t.reset_pc_override[T0 + thread]) << thread
    elif offset == RESET_PC_NC:
        value = np.int64(t.reset_pc[NC])
    elif offset == RESET_OVERRIDE_NC:
        value = np.int64(t.reset_pc_override[NC])
    elif offset == BUS_DATA:
        return load_bus_data(t)
    elif offset == ARRAY_DATA:
        return load_array(t)
    elif offset == DEBUG_STATUS_0:
        value = load_debug_status(t)
    elif offset == DEBUG_STATUS_1:
        value = np.int64(t.debug_read_value)
    elif offset == PUSH_STATUS:
        value = load_push_status(t)
    elif offset == timestamp.CONTROL:
        value = timestamp.load_buffer_control(t)
    elif offset == timestamp.STATUS:
        value = timestamp.load_status(t)
    elif offset == STICKY_BITS:
        return refuse(t, STICKY, offset), value
    elif is_performance(offset):
        return load_performance(t, offset, clock_now(t))
    elif watchdog.is_register(offset):
        value = watchdog.load(t, offset, clock_now(t))
    elif offset != timestamp.COMMAND:  # which is always 0
        value = np.int64(t.control_word[offset >> 2])
    return DONE, value


@kernel
def control_load(t: TileRecord, agent: Int, offset: Int) -> Any:
    """(status, value) of a load, 0 <= offset < 0x1000, a multiple of 4."""
    place = offset >> 2
    kind = KIND[place]
    if kind == PLAIN or (kind == OPEN and open_choice(t, UNKNOWN[place])):
        return DONE, np.int64(t.control_word[place])
    if kind == OPEN:
        return STATUS_REFUSED, np.int64(0)
    if kind == RESULT:
        return DONE, np.int64(0)
    if kind == REFUSED:
        return refuse(t, NOT_BUILT[place]), np.int64(0)
    if kind == NOTHING:
        return refuse(t, NO_REGISTER, offset), np.int64(0)
    return _load_acting(t, offset)


@kernel
def _store_soft_reset(t: TileRecord, value: Int) -> Any:
    """SOFT_RESET_0 of blocks, debug registers and cores."""
    before = np.int64(t.soft_reset)
    if reset_blocks(t, before, value) != DONE:
        return STATUS_REFUSED
    reset_debug(t, before, value)
    store_soft_reset(t, value)
    return DONE


@kernel
def _store_reset_setting(t: TileRecord, offset: Int, value: Int) -> Int:
    """Where cores start, and which of their state a reset keeps."""
    if offset == DISABLE_RESET:
        t.disable_reset = np.uint32(value)
    elif offset >= RESET_PC_T0 and offset < RESET_PC_T0 + 4 * THREADS:
        t.reset_pc[T0 + (offset - RESET_PC_T0) // 4] = np.uint32(value)
    elif offset == RESET_OVERRIDE_T:
        for thread in range(THREADS):
            t.reset_pc_override[T0 + thread] = (value >> thread) & 1
    elif offset == RESET_PC_NC:
        t.reset_pc[NC] = np.uint32(value)
    else:
        t.reset_pc_override[NC] = value & 1
    return DONE


@kernel
def _store_feature_disable(t: TileRecord, value: Int) -> Int:
    """K58."""
    if value & DST_HIGH_HALVES:
        return refuse(t, FEATURE, value)
    if value & ~L1_ARBITRATION and not open_choice(t, FEATURE_UNKNOWN, value):
        return STATUS_REFUSED
    t.control_word[FEATURE_DISABLE >> 2] = np.uint32(value)
    return DONE


@kernel
def _store_acting(t: TileRecord, offset: Int, value: Int) -> AnyInt:
    """Status of a store to a register that acts."""
    if offset == SOFT_RESET:
        return _store_soft_reset(t, value & SOFT_RESET_BITS)
    if offset >= DISABLE_RESET and offset <= RESET_OVERRIDE_NC:
        return _store_reset_setting(t, offset, value)
    if offset == BUS_CONTROL:
        return store_bus_control(t, value)
    if offset == L1_REG2:
        return store_l1_control(t, value)
    if offset == CONFIG_READ:
        return _store_config_read(t, value)
    if offset == DEBUG_CONTROL_0:
        return store_debug_control(t, value)
    if offset == PUSH_CONTROL:
        return store_push_control(t, value)
    if offset == WALL_CLOCK_0:  # latches, as a load does
        latch_clock(t)
        return DONE
    if offset == timestamp.COMMAND:
        return timestamp.store_command(t, value, clock_now(t))
    if offset == timestamp.CONTROL:
        return timestamp.store_buffer_control(t, value)
    if offset == timestamp.STATUS:
        return timestamp.store_status(t, value)
    if offset == FEATURE_DISABLE:
        return _store_feature_disable(t, value)
    if is_performance(offset):
        return store_performance(t, offset, value, clock_now(t))
    if watchdog.is_register(offset):
        return watchdog.store(t, offset, value, clock_now(t))
    if offset == STICKY_BITS:
        return DONE if value == 0 else refuse(t, STICKY, offset)
    return DONE  # registers that only report discard it; drivers use such stores to order what they do next


@kernel
def control_store(t: TileRecord, agent: Int, offset: Int, value: Int) -> AnyInt:
    """Status of a store of 32 bits; see `control_load`."""
    place = offset >> 2
    kind = KIND[place]
    if kind == OPEN and not open_choice(t, UNKNOWN[place]):
        return STATUS_REFUSED
    if kind in (PLAIN, OPEN):
        t.control_word[place] = np.uint32(value)
        return DONE
    if kind == RESULT:
        return DONE if value == 0 else refuse(t, READ_ONLY[place], value)
    if kind == REFUSED:
        return refuse(t, NOT_BUILT[place])
    if kind == NOTHING:
        return refuse(t, NO_REGISTER, offset)
    return _store_acting(t, offset, value)
