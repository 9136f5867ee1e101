"""Atomics on L1: ATINCGET, ATINCGETPTR, ATSWAP, ATCAS (I.11).

Where silicon tries again until L1 has the value that it waits for, the word stays at the wait gate, tried each cycle.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.errors import UndefinedBehavior
from bhemu.machine.faults import DONE, REFUSED, WAIT, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.state import L1_SIZE
from bhemu.machine.types import Int, TileRecord
from bhemu.tensix.instruction import DOCUMENTED, Mode, instruction
from bhemu.tensix.scalar.halves import QUAD_REGISTER, WORD_BITS, read_half
from bhemu.tensix.scalar.memory import OUT_OF_L1, l1_address

_PUSH: Final = 1
"""Bit of ATINCGETPTR's word offset: push (write pointer at +4) rather than pop (read pointer at +0)."""
_CAPACITY_OF_WIDTH_0: Final = 0x8000

NOT_L1 = fault(
    "scalar.not-l1",
    UndefinedBehavior,
    "MemHierSel is 1: atomics work on L1 only",
    remedy="leave MemHierSel at 0",
    rule="I.11",
)


@kernel
def _in_l1(t: TileRecord, memory_select: Int, address: Int) -> bool:
    """True when the word may be accessed; records the refusal otherwise."""
    if memory_select:
        refuse(t, NOT_L1)
        return False
    if address >= L1_SIZE:
        refuse(t, OUT_OF_L1, address, L1_SIZE)
        return False
    return True


@kernel
def _add_in_field(old: Int, amount: Int, mask: Int) -> Int:
    """`old` with `amount` added inside the bits of `mask`."""
    return ((old + amount) & mask) | (old & ~mask & WORD_BITS)


@instruction(Mode("L1", DOCUMENTED, rule="I.11"))
def ATINCGET(
    t: TileRecord, thread: Int, MemHierSel: Int, IntWidth: Int, Sel32b: Int, DataRegIndex: Int, AddrRegIndex: Int
) -> Int:
    address = l1_address(t, thread, AddrRegIndex, 4 * Sel32b)
    if not _in_l1(t, MemHierSel, address):
        return REFUSED
    old = np.int64(t.l1_u32[address // 4])
    amount = np.int64(t.gpr[thread, DataRegIndex])
    t.l1_u32[address // 4] = np.uint32(_add_in_field(old, amount, (2 << IntWidth) - 1))
    t.gpr[thread, DataRegIndex] = np.uint32(old)
    return DONE


@instruction(Mode("L1", DOCUMENTED, rule="I.11"))
def ATINCGETPTR(
    t: TileRecord,
    thread: Int,
    MemHierSel: Int,
    NoIncr: Int,
    IncrVal: Int,
    WrapVal: Int,
    Sel32b: Int,
    DataRegIndex: Int,
    AddrRegIndex: Int,
) -> Int:
    address = l1_address(t, thread, AddrRegIndex, 0)
    if not _in_l1(t, MemHierSel, address):
        return REFUSED
    first = address // 4
    size = (np.int64(t.l1_u32[first + 1]) - np.int64(t.l1_u32[first])) & WORD_BITS
    if Sel32b & _PUSH:
        capacity = 1 << (WrapVal - 1) if WrapVal else _CAPACITY_OF_WIDTH_0
        if size != 0 and size % capacity == 0:
            return WAIT
    elif size == 0:
        return WAIT
    old = np.int64(t.l1_u32[first + Sel32b])
    amount = 0 if NoIncr else 1 << IncrVal
    t.l1_u32[first + Sel32b] = np.uint32(_add_in_field(old, amount, (1 << WrapVal) - 1))
    t.gpr[thread, DataRegIndex] = np.uint32(old)
    return DONE


@instruction(Mode("four GPRs, one GPR", DOCUMENTED, rule="I.11"))
def ATSWAP(
    t: TileRecord, thread: Int, MemHierSel: Int, SingleDataReg: Int, SwapMask: Int, DataRegIndex: Int, AddrRegIndex: Int
) -> Int:
    address = l1_address(t, thread, AddrRegIndex, 0)
    if not _in_l1(t, MemHierSel, address):
        return REFUSED
    for i in range(8):
        if (SwapMask >> i) & 1:
            register = (DataRegIndex & QUAD_REGISTER) + (i >> 1)
            value: Int = 0
            if not SingleDataReg or register == DataRegIndex:
                value = read_half(t, thread, 2 * register + (i & 1))
            t.l1_u16[address // 2 + i] = np.uint16(value)
    return DONE


@instruction(Mode("L1", DOCUMENTED, rule="I.11"))
def ATCAS(
    t: TileRecord, thread: Int, MemHierSel: Int, SwapVal: Int, CmpVal: Int, Sel32b: Int, AddrRegIndex: Int
) -> Int:
    address = l1_address(t, thread, AddrRegIndex, 4 * Sel32b)
    if not _in_l1(t, MemHierSel, address):
        return REFUSED
    if np.int64(t.l1_u32[address // 4]) != CmpVal:
        return WAIT
    t.l1_u32[address // 4] = np.uint32(SwapVal)
    return DONE
