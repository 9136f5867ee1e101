"""The debug interface of cores B, T0, T1 and T2: pause, step, resume, registers, memory, watchpoints (tile K42).

Four registers of the control block reach 18 debug registers (DR) of each core. A rising bit 31 of RISC_DBG_CNTL_0
reads or writes one; commands are writes to DR 1.

    DR 0       status: 0 paused, 1 by a breakpoint, 2 by a memory watchpoint, 3 by ebreak or ecall, 8 + i watchpoint i
    DR 1       command bits, see below
    DR 2, 3    arguments: register or address, and data
    DR 4       result
    DR 5       mode of each watchpoint, 4 bits: 8 pc, 9 load, 10 store, 11 both
    DR 10..17  addresses of the watchpoints

A paused core is before an instruction; a core that waits for an access is paused at once, where silicon would
let the access finish; debug_watch.py has breakpoints and watchpoints.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import MissingSpecification, UndefinedBehavior
from bhemu.isa.tile_registers import address_of, bit_of, bits_of, offset_of
from bhemu.machine.agents import CORE_NAMES
from bhemu.machine.core_state import (
    HALT_DEBUGGER,
    HALT_EBREAK,
    HALT_ECALL,
    HALTED,
    IN_RESET,
    LOCAL_RAM_SIZE,
    RUNNING,
)
from bhemu.machine.dispatch import DEVICE_LOAD, DEVICE_STORE, NOT_COMPILED, access_device, handlers_of
from bhemu.machine.faults import DONE, REQUEST_PENDING, fault, open_choice, refuse
from bhemu.machine.faults import REFUSED as NOT_ALLOWED
from bhemu.machine.kernel import kernel
from bhemu.machine.state import L1_SIZE
from bhemu.machine.types import Bool, Int, TileRecord
from bhemu.riscv.arithmetic import WORD
from bhemu.riscv.execute import MISALIGNED
from bhemu.riscv.simple import RAM_BASE
from bhemu.tile.debug_ports.watch import (
    FIRST_ADDRESS,
    MODE_BOTH,
    MODE_PC,
    MODES,
    STEPPING,
    WATCHING,
    WATCHPOINTS,
    pause,
    resume,
)
from bhemu.tile.reset import CORE_BIT, start_pc

CONTROL_0: Final = offset_of("control", "RISC_DBG_CNTL_0")
CONTROL_1: Final = offset_of("control", "RISC_DBG_CNTL_1")

CORES_WITH: Final = 4
"""B, T0, T1, T2."""
_TRIGGER: Final = 1 << bit_of("control", "RISC_DBG_CNTL_0", "TRIGGER")
_WRITES: Final = 1 << bit_of("control", "RISC_DBG_CNTL_0", "WRITE")
_CORE_LSB: Final = bit_of("control", "RISC_DBG_CNTL_0", "CORE")
_REGISTER: Final = bits_of("control", "RISC_DBG_CNTL_0", "REGISTER")[1]
_READ_VALID: Final = 1 << bit_of("control", "RISC_DBG_STATUS_0", "READ_VALID")
_ECHO_LSB: Final = 13

STATUS: Final = 0
COMMAND: Final = 1
ARGUMENT_0: Final = 2
ARGUMENT_1: Final = 3
RESULT: Final = 4
DEBUG_REGISTERS: Final = 18

PAUSED: Final = 1
BY_EBREAK: Final = 8

PAUSE: Final = 1
STEP: Final = 2
CONTINUE: Final = 4
READ_REGISTER: Final = 8
WRITE_REGISTER: Final = 16
READ_MEMORY: Final = 32
WRITE_MEMORY: Final = 64
CLEAR_REGISTERS: Final = 128
SET_PC: Final = 256
_ONLY_PAUSED: Final = 0x1FE
DEBUG_MODE: Final = 1 << 31


_OWN_REGISTERS: Final = address_of("control", "RISC_DBG_CNTL_0")
_OWN_REGISTERS_END: Final = address_of("control", "RISC_DBG_STATUS_1") + 4
_PC: Final = 32
"""Number of pc among the registers."""
_KEEP_DEBUG_BIT: Final = np.array([bit_of("control", "DISABLE_RESET", f"{n}_DEBUG") for n in CORE_NAMES[:-1]], np.int64)
"""Bit of DISABLE_RESET that keeps each core's debug registers."""

NO_DEBUG_REGISTER: Final = fault(
    "debug.register",
    UndefinedBehavior,
    "RISC_DBG_CNTL_0 = {0:#x} names debug register {1}, which does not exist",
    remedy="debug registers are 0 to 5 and 10 to 17",
    rule="tile K42",
)
NOT_PAUSED: Final = fault(
    "debug.not-paused",
    UndefinedBehavior,
    "debug command {1:#x} to core {0} (0 B, 1 T0, 2 T1, 3 T2), which is not paused",
    remedy="pause it first (command bit 0) and wait until bit 0 of its status is set",
    rule="tile K42",
)
NO_GPR: Final = fault(
    "debug.gpr",
    UndefinedBehavior,
    "debug command {1:#x} to core {0} names register {2}",
    remedy="registers are 0 to 31, and 32 is pc",
    rule="tile K42",
)
CONFLICTING: Final = fault(
    "debug.conflict",
    UndefinedBehavior,
    "debug command {1:#x} to core {0} combines a memory access with another one or with resuming",
    remedy="give one command at a time",
    rule="tile K42",
)
ITSELF: Final = fault(
    "debug.itself",
    UndefinedBehavior,
    "a debug command lets core {0} access {1:#x}, a register of the debug interface itself",
    remedy="access the interface directly",
    rule="tile K42",
)
WRITE_PC: Final = fault(
    "debug.write-pc",
    MissingSpecification,
    "register 32 of core {0} is written: it reads as pc, and no source says that a write sets pc",
    remedy="set pc with command bit 8, the address in argument 1; or allow open choices to have pc written",
    rule="tile K42",
)


@kernel
def _status(t: TileRecord, core: Int) -> Any:
    """DR 0."""
    if t.core_state[core] != HALTED:
        return np.int64(0)
    value = PAUSED | np.int64(t.debug_cause[core])
    if t.core_halt_reason[core] == HALT_EBREAK or t.core_halt_reason[core] == HALT_ECALL:
        value |= BY_EBREAK
    return value


@kernel
def _step(t: TileRecord, core: Int) -> None:
    """Blackhole needs two step commands for an instruction, as drivers know."""
    if t.debug_half_step[core] == 0:
        t.debug_half_step[core] = 1
        return
    resume(t, core)
    t.debug_watch[core] |= STEPPING


@kernel
def _clear_registers(t: TileRecord, core: Int) -> None:
    for register in range(32):
        t.core_x[core, register] = 0


@kernel
def _set_pc(t: TileRecord, core: Int, command: Int) -> None:
    """In debug mode pc comes from argument 1, else it is where a reset starts; an ebreak is forgotten."""
    pc = start_pc(t, core)
    if command & DEBUG_MODE:
        pc = np.int64(t.debug_dr[core, ARGUMENT_1])
    t.core_pc[core] = np.uint32(pc)
    t.core_halt_reason[core] = HALT_DEBUGGER


@kernel
def _read_register(t: TileRecord, core: Int, command: Int) -> Any:
    register = np.int64(t.debug_dr[core, ARGUMENT_0])
    if register > _PC:
        return refuse(t, NO_GPR, core, command, register)
    value = np.int64(t.core_pc[core])
    if register < _PC:
        value = np.int64(t.core_x[core, register])
    t.debug_dr[core, RESULT] = np.uint32(value)
    return DONE


@kernel
def _write_register(t: TileRecord, core: Int, command: Int) -> Any:
    register, value = np.int64(t.debug_dr[core, ARGUMENT_0]), np.int64(t.debug_dr[core, ARGUMENT_1])
    if register > _PC:
        return refuse(t, NO_GPR, core, command, register)
    if register == _PC:
        if not open_choice(t, WRITE_PC, core):
            return NOT_ALLOWED
        t.core_pc[core] = np.uint32(value)
    elif register > 0:
        t.core_x[core, register] = np.uint32(value)
    return DONE


@kernel
def _access_device(t: TileRecord, core: Int, address: Int, place: Int, value: Int) -> Int:
    """Status of an access by the core to what is neither L1 nor local RAM; `device_value` is what was loaded."""
    if address >= _OWN_REGISTERS and address < _OWN_REGISTERS_END:
        return np.int64(refuse(t, ITSELF, core, address))
    status, _ = access_device(t, handlers_of(t), place, core, address, value, 4)
    return np.int64(NOT_COMPILED) if status == REQUEST_PENDING else status  # the command is given again


@kernel
def _read_memory(t: TileRecord, core: Int) -> Any:
    """As if the core executed lw."""
    address = np.int64(t.debug_dr[core, ARGUMENT_0])
    if address & 3:
        return np.int64(refuse(t, MISALIGNED, address, 4))
    offset = address - RAM_BASE
    status: Int
    value, status = np.int64(0), np.int64(DONE)
    if address < L1_SIZE:
        value = np.int64(t.l1_u32[address >> 2])
    elif offset >= 0 and offset < LOCAL_RAM_SIZE[core]:
        value = np.int64(t.core_ram_u32[core, offset >> 2])
    else:
        status = _access_device(t, core, address, DEVICE_LOAD, np.int64(0))
        value = np.int64(t.device_value)
    if status == DONE:
        t.debug_dr[core, RESULT] = np.uint32(value & WORD)
    return status


@kernel
def _write_memory(t: TileRecord, core: Int) -> Int:
    """As if the core executed sw."""
    address, value = np.int64(t.debug_dr[core, ARGUMENT_0]), np.int64(t.debug_dr[core, ARGUMENT_1])
    if address & 3:
        return np.int64(refuse(t, MISALIGNED, address, 4))
    offset = address - RAM_BASE
    if address < L1_SIZE:
        t.l1_u32[address >> 2] = np.uint32(value)
    elif offset >= 0 and offset < LOCAL_RAM_SIZE[core]:
        t.core_ram_u32[core, offset >> 2] = np.uint32(value)
    else:
        return _access_device(t, core, address, DEVICE_STORE, value)
    return np.int64(DONE)


@kernel
def _execute(t: TileRecord, core: Int, command: Int) -> Any:
    """Status of a command; WAIT and NOT_COMPILED leave everything as it was."""
    resumes = command & (STEP | CONTINUE) and not command & SET_PC
    if command & READ_MEMORY and command & WRITE_MEMORY:
        return np.int64(refuse(t, CONFLICTING, core, command))
    if command & (READ_MEMORY | WRITE_MEMORY) and command & (STEP | CONTINUE):
        return np.int64(refuse(t, CONFLICTING, core, command))
    if command & _ONLY_PAUSED and t.core_state[core] != HALTED:
        return np.int64(refuse(t, NOT_PAUSED, core, command))
    status: Int = np.int64(DONE)
    if command & READ_MEMORY:
        status = _read_memory(t, core)
    elif command & WRITE_MEMORY:
        status = _write_memory(t, core)
    elif command & READ_REGISTER:
        status = np.int64(_read_register(t, core, command))
    elif command & WRITE_REGISTER:
        status = np.int64(_write_register(t, core, command))
    if status != DONE:
        return status
    if command & CLEAR_REGISTERS:
        _clear_registers(t, core)
    if command & SET_PC:
        _set_pc(t, core, command)
        if command & CONTINUE:
            resume(t, core)
    elif resumes and command & CONTINUE:
        resume(t, core)
    elif resumes:
        _step(t, core)
    if command & PAUSE:
        if t.core_state[core] == RUNNING and t.now_agent == core:  # its own store has been made
            t.core_pc[core] += np.uint32(4)
            t.core_retired[core] += 1
        pause(t, core, 0)
    return status


@kernel
def _exists(register: Int) -> Bool:
    return register <= MODES or (register >= FIRST_ADDRESS and register < DEBUG_REGISTERS)


@kernel
def _note_modes(t: TileRecord, core: Int) -> None:
    """Whether the core has to be watched."""
    modes = np.int64(t.debug_dr[core, MODES])
    t.debug_watch[core] &= ~WATCHING
    for i in range(WATCHPOINTS):
        mode = (modes >> (4 * i)) & 0xF
        if mode >= MODE_PC and mode <= MODE_BOTH:
            t.debug_watch[core] |= WATCHING


@kernel
def _held(t: TileRecord, core: Int) -> Bool:
    """The core is in reset and discards writes to its debug registers."""
    return t.core_state[core] == IN_RESET and (np.int64(t.disable_reset) >> _KEEP_DEBUG_BIT[core]) & 1 == 0


@kernel
def _write(t: TileRecord, core: Int, register: Int, value: Int) -> Any:
    """Status of a write to a debug register."""
    if register in (STATUS, RESULT) or _held(t, core):
        return np.int64(DONE)
    if register == COMMAND:
        status = _execute(t, core, value)
        if status != DONE:
            return status
    t.debug_dr[core, register] = np.uint32(value)
    if register == MODES:
        _note_modes(t, core)
    return np.int64(DONE)


@kernel
def store_debug_control(t: TileRecord, value: Int) -> Any:
    """RISC_DBG_CNTL_0: bit 31 rising reads (or, with bit 16, writes) debug register [10:0] of core [18:17]."""
    if value & _TRIGGER and not np.int64(t.control_word[CONTROL_0 >> 2]) & _TRIGGER:
        register, core = value & _REGISTER, (value >> _CORE_LSB) & 3
        if not _exists(register):
            return np.int64(refuse(t, NO_DEBUG_REGISTER, value, register))
        if value & _WRITES:
            status = _write(t, core, register, np.int64(t.control_word[CONTROL_1 >> 2]))
            if status != DONE:
                return status
            t.debug_read_valid = 0
        else:
            result = _status(t, core) if register == STATUS else np.int64(t.debug_dr[core, register])
            t.debug_read_value = np.uint32(result)
            t.debug_read_valid = 1
    t.control_word[CONTROL_0 >> 2] = np.uint32(value)
    return np.int64(DONE)


@kernel
def load_debug_status(t: TileRecord) -> Int:
    """RISC_DBG_STATUS_0: what was stored to CNTL_0, rearranged, and bit 30 when STATUS_1 holds what was read."""
    control = np.int64(t.control_word[CONTROL_0 >> 2])
    value = control & (_REGISTER | _TRIGGER)
    if control & _WRITES:
        value |= 1 << (_ECHO_LSB + ((control >> _CORE_LSB) & 3))
    return value | (_READ_VALID if t.debug_read_valid != 0 else 0)


@kernel
def reset_debug(t: TileRecord, before: Int, after: Int) -> None:
    """Cores that a store to SOFT_RESET_0 puts into reset lose their debug registers, unless DISABLE_RESET is set."""
    for core in range(CORES_WITH):
        if ((after & ~before) >> CORE_BIT[core]) & 1:
            t.debug_half_step[core] = 0
            t.debug_cause[core] = 0
            t.debug_watch[core] &= ~STEPPING
            if (np.int64(t.disable_reset) >> _KEEP_DEBUG_BIT[core]) & 1 == 0:
                t.debug_watch[core] = 0
                for register in range(DEBUG_REGISTERS):
                    t.debug_dr[core, register] = 0
