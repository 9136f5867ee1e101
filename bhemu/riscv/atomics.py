"""Zaamo: a word of L1 is read, combined and written in one turn of the core (tile T5)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import UndefinedBehavior
from bhemu.isa.riscv import NUMBER
from bhemu.machine.faults import DONE, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Int, TileRecord
from bhemu.riscv.arithmetic import signed

AMOADD, AMOSWAP, AMOXOR = NUMBER["amoadd.w"], NUMBER["amoswap.w"], NUMBER["amoxor.w"]
AMOOR, AMOAND = NUMBER["amoor.w"], NUMBER["amoand.w"]
AMOMIN, AMOMAX, AMOMINU, AMOMAXU = (NUMBER[f"amo{name}.w"] for name in ("min", "max", "minu", "maxu"))

MISALIGNED: Final = fault(
    "riscv.amo-misaligned",
    UndefinedBehavior,
    "a misaligned atomic operation at {0:#x}",
    remedy="align the word",
    rule="tile T5",
)
NOT_L1: Final = fault(
    "riscv.amo-place",
    UndefinedBehavior,
    "an atomic operation at {0:#x}, outside of L1 (0..{1:#x})",
    remedy="atomic operations reach L1 only; a variable in local RAM belongs to one core and needs none",
    rule="tile T5",
)


@kernel
def combine(n: Int, old: Int, b: Int) -> Any:
    """What the word becomes, by the instruction's number; its lower 32 bits count."""
    if n == AMOADD:
        return old + b
    if n == AMOSWAP:
        return b
    if n == AMOXOR:
        return old ^ b
    if n == AMOOR:
        return old | b
    if n == AMOAND:
        return old & b
    if n == AMOMIN:
        return min(signed(old), signed(b))
    if n == AMOMAX:
        return max(signed(old), signed(b))
    if n == AMOMINU:
        return min(old, b)
    return max(old, b)


@kernel
def atomic(t: TileRecord, core: Int, n: Int, address: Int, b: Int, rd: Int) -> Any:
    """Execute an AMO; `aq` and `rl` mean nothing where every access is complete before the next (T5, T30)."""
    if address & 3:
        return refuse(t, MISALIGNED, address)
    if address >= t.l1_end:
        return refuse(t, NOT_L1, address, t.l1_end)
    old = np.int64(t.l1_u32[address >> 2])
    t.l1_u32[address >> 2] = np.uint32(combine(n, old, b) & 0xFFFFFFFF)
    t.core_x[core, rd] = np.uint32(old)
    return DONE
