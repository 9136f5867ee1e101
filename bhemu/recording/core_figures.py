"""How long instructions of the RISC-V cores take at least, by the figures of `isa/data/riscv_timing.toml`.

The model is a lower bound: one instruction enters EX1 in each cycle, in order, when its operands are known. Every
branch is predicted, every fetch hits the instruction cache, every load from L1 hits the L0 data cache, stores coalesce,
and L1 has no contention. What an instruction waits for (a FIFO, a mailbox, TTSync) is not part of it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import bhemu.recording.core_columns as column
from bhemu.isa.memory_map import LOCAL_RAM_BASE, bounds, region
from bhemu.isa.riscv_timing import CLASSES as TIMING_CLASSES
from bhemu.isa.riscv_timing import FACTS, NUMBER
from bhemu.machine.buffer_memory import load_i64, store_i64
from bhemu.machine.core_state import LOCAL_RAM
from bhemu.machine.kernel import njit
from bhemu.machine.state import L1_SIZE
from bhemu.machine.types import AnyInt, Bool, Int, LogAddress

ALU: Final = NUMBER["ALU"]
MULTIPLY: Final = NUMBER["MULTIPLY"]
DIVIDE: Final = NUMBER["DIVIDE"]
FLOAT: Final = NUMBER["FLOAT"]
BRANCH_NOT_TAKEN: Final = NUMBER["BRANCH_NOT_TAKEN"]
JUMP: Final = NUMBER["JUMP"]
"""Branches taken, and jumps."""
LOAD_LOCAL: Final = NUMBER["LOAD_LOCAL"]
LOAD_L1: Final = NUMBER["LOAD_L1"]
LOAD_SYNC: Final = NUMBER["LOAD_SYNC"]
LOAD_COPROCESSOR: Final = NUMBER["LOAD_COPROCESSOR"]
LOAD_REGISTERS: Final = NUMBER["LOAD_REGISTERS"]
LOAD_OTHER_RAM: Final = NUMBER["LOAD_OTHER_RAM"]
LOAD_DST: Final = NUMBER["LOAD_DST"]
STORE_L1: Final = NUMBER["STORE_L1"]
STORE_OTHER: Final = NUMBER["STORE_OTHER"]
ATOMIC: Final = NUMBER["ATOMIC"]
PUSH: Final = NUMBER["PUSH"]
SYSTEM: Final = NUMBER["SYSTEM"]
FLOAT_OTHER: Final = NUMBER["FLOAT_OTHER"]
CLASSES: Final = len(TIMING_CLASSES)
CLASS_NAMES: Final = tuple(entry.name for entry in TIMING_CLASSES)

_LATENCY: Final = np.array([entry.latency for entry in TIMING_CLASSES], np.int64)
DIVIDE_CYCLES: Final = FACTS["divide"]
SHORT_DIVIDE_CYCLES: Final = FACTS["short_divide"]
L1_MISS_EXTRA: Final = FACTS["l1_miss"]
MISPREDICTED_EXTRA: Final = FACTS["misprediction"]

_WORD: Final = 0xFFFFFFFF
_LOAD, _LOAD_FLOAT, _FENCE, _IMMEDIATE, _AUIPC = 0x03, 0x07, 0x0F, 0x13, 0x17
_STORE, _STORE_FLOAT, _AMO, _REGISTER, _LUI = 0x23, 0x27, 0x2F, 0x33, 0x37
_MADD, _MSUB, _NMSUB, _NMADD, _FLOAT = 0x43, 0x47, 0x4B, 0x4F, 0x53
_BRANCH, _JALR, _JAL, _SYSTEM = 0x63, 0x67, 0x6F, 0x73
_LOCAL: Final = LOCAL_RAM_BASE
_TDMA, _TDMA_END = bounds("tdma")
_OTHER_RAM, _OTHER_RAM_END = bounds("other_local_ram")
_DST, _DST_END = bounds("dst")
_GPR: Final = region("gpr").base
_SYNC, _SYNC_END = region("pcbuf").base, region("mailbox").end


@njit
def load_class(address: Int) -> Any:
    """Class of a load by its address."""
    if address < L1_SIZE:
        return LOAD_L1
    if address >= _LOCAL and address < _LOCAL + LOCAL_RAM:
        return LOAD_LOCAL
    if address >= _SYNC and address < _SYNC_END:
        return LOAD_SYNC
    if address >= _GPR or (address >= _TDMA and address < _TDMA_END):
        return LOAD_COPROCESSOR
    if address >= _OTHER_RAM and address < _OTHER_RAM_END:
        return LOAD_OTHER_RAM
    if address >= _DST and address < _DST_END:
        return LOAD_DST
    return LOAD_REGISTERS


@njit
def class_of(word: Int, pc: Int, after: Int, address: Int) -> Any:
    """Class of an executed instruction.

    Args:
        word, pc: the instruction.
        after: pc of the next one.
        address: of its access, if it makes one.
    """
    opcode = word & 0x7F
    if word & 3 != 3:
        return PUSH
    if opcode in (_LOAD, _LOAD_FLOAT):
        return load_class(address)
    if opcode in (_STORE, _STORE_FLOAT):
        return STORE_L1 if address < L1_SIZE else STORE_OTHER
    if opcode in (_JAL, _JALR):
        return JUMP
    if opcode == _BRANCH:
        return JUMP if after != pc + 4 else BRANCH_NOT_TAKEN
    if opcode == _REGISTER and word >> 25 == 1:
        return MULTIPLY if (word >> 12) & 7 < 4 else DIVIDE
    if opcode == _AMO:
        return ATOMIC
    if opcode in (_MADD, _MSUB, _NMSUB, _NMADD):
        return FLOAT
    if opcode == _FLOAT:  # fadd, fsub, fmul
        return FLOAT if (word >> 25) & 0x7C in (0x00, 0x04, 0x08) else FLOAT_OTHER
    return SYSTEM if opcode in (_SYSTEM, _FENCE) else ALU


@njit
def is_short_division(word: Int, dividend: Int, divisor: Int) -> Bool:
    """By 0 or 1, or the quotient overflows."""
    signed = (word >> 12) & 1 == 0
    return divisor < 2 or (signed and dividend == 0x80000000 and divisor == _WORD)


@njit
def float_sources(word: Int, opcode: Int) -> Any:
    """(rs1 is a floating-point register, rs2 is one)."""
    if opcode == _FLOAT:
        function = (word >> 25) & 0x7C
        return function not in (0x68, 0x78), function not in (0x60, 0x68, 0x70, 0x78)
    return is_fused(opcode), is_fused(opcode) or opcode == _STORE_FLOAT


@njit
def is_fused(opcode: Int) -> bool:
    """fmadd and its like, which have three operands."""
    return opcode in (_MADD, _MSUB, _NMSUB, _NMADD)


@njit
def reads_rs1(word: Int, opcode: Int) -> bool:
    """True when the instruction has a first operand."""
    return opcode not in (_LUI, _AUIPC, _JAL, _FENCE) and not (opcode == _SYSTEM and (word >> 14) & 1 == 1)


@njit
def reads_rs2(opcode: Int, is_float: bool) -> bool:
    """True when the instruction has a second operand; `is_float`: of `float_sources`."""
    return opcode in (_BRANCH, _STORE, _REGISTER, _AMO) or is_float


@njit
def writes_float(word: Int) -> bool:
    """True when the destination is a floating-point register."""
    opcode = word & 0x7F
    if opcode == _FLOAT:
        return (word >> 25) & 0x7C not in (0x50, 0x60, 0x70)
    return opcode in (_LOAD_FLOAT, _MADD, _MSUB, _NMSUB, _NMADD)


@njit
def writes_register(word: Int) -> bool:
    """True when the instruction has a destination."""
    opcode = word & 0x7F
    return word & 3 == 3 and opcode not in (_BRANCH, _STORE, _STORE_FLOAT, _FENCE)


@njit
def _known(log: LogAddress, block: Int, ready: Int, register: Int) -> AnyInt:
    """`ready`, or the cycle in which a register (32 to 63: floating point) can be used, if that is later."""
    return max(ready, load_i64(log, block + column.READY + register))


@njit
def take_time(log: LogAddress, block: Int, word: Int, what: Int, dividend: Int, divisor: Int) -> AnyInt:
    """Execute an instruction in the modelled pipeline of a core; returns the cycles that this took of EX1.

    Args:
        log: the buffer.
        block: of the core in it.
        word: the instruction.
        what: its class.
        dividend, divisor: values of rs1 and rs2.
    """
    free = load_i64(log, block + column.EX1_FREE)
    enters = free
    opcode = word & 0x7F
    if word & 3 == 3:
        float1, float2 = float_sources(word, opcode)
        if reads_rs1(word, opcode):
            enters = _known(log, block, enters, ((word >> 15) & 31) + (32 if float1 else 0))
        if reads_rs2(opcode, float2):
            enters = _known(log, block, enters, ((word >> 20) & 31) + (32 if float2 else 0))
        if is_fused(opcode):
            enters = _known(log, block, enters, (word >> 27) + 32)
    occupies = 1
    if what == DIVIDE:
        occupies = SHORT_DIVIDE_CYCLES if is_short_division(word, dividend, divisor) else DIVIDE_CYCLES
    if writes_register(word):
        rd = (word >> 7) & 31
        is_float = writes_float(word)
        if rd != 0 or is_float:
            done = enters + max(occupies, _LATENCY[what])
            store_i64(log, block + column.READY + rd + (32 if is_float else 0), done)
    store_i64(log, block + column.EX1_FREE, enters + occupies)
    return enters + occupies - free
