"""Instructions outside the inner loop: Zaamo, Zicsr, F, T2's part of V, ecall, ebreak, mret (tile T5 to T9, T12)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import UndefinedBehavior
from bhemu.isa.riscv import FIRST, NUMBER
from bhemu.machine.agents import T2
from bhemu.machine.core_state import HALT_EBREAK, HALT_ECALL, HALTED
from bhemu.machine.dispatch import NOT_COMPILED, VECTOR_CORE, call_handler, handlers_of, has_handler
from bhemu.machine.faults import DONE, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.types import AnyInt, Int, TileRecord
from bhemu.riscv.arithmetic import WORD
from bhemu.riscv.atomics import atomic
from bhemu.riscv.csr import execute_csr
from bhemu.riscv.decode import ILLEGAL, fields_of
from bhemu.riscv.encodings import is_vector, refuse_word
from bhemu.riscv.float import FLW, FSW, execute_float, float_access

ECALL, EBREAK, MRET = NUMBER["ecall"], NUMBER["ebreak"], NUMBER["mret"]
_FIRST_CSR: Final = FIRST["csr"]
_FIRST_ENVIRONMENT: Final = FIRST["environment"]

NO_HANDLER: Final = fault(
    "riscv.mret",
    UndefinedBehavior,
    "mret outside of an interrupt handler",
    remedy="it ends a handler that the interrupt controller has entered, on cores B and NC",
    rule="tile T9, K24",
)


@kernel
def _pause(t: TileRecord, core: Int, reason: Int) -> None:
    """ecall and ebreak retire, and the core halts before the next instruction (T9)."""
    t.core_state[core] = HALTED
    t.core_halt_reason[core] = reason
    t.core_retired[core] += 1


@kernel
def _vector(t: TileRecord, core: Int, word: Int) -> Any:
    """A word that is not a decoded instruction: core T2 has the vector extension; returns a status."""
    if core != T2 or not is_vector(word):
        return refuse_word(t, word)
    table = handlers_of(t)
    if not has_handler(table, VECTOR_CORE):
        t.needs_place = VECTOR_CORE
        return NOT_COMPILED
    return call_handler(table, VECTOR_CORE, t, core, word)


@kernel
def slow_core(t: TileRecord, core: Int) -> Any:
    """Execute the instruction at the core's pc: DONE, pc then at the next one; or WAIT or REFUSED, nothing changed.

    Rounds and retired instructions are counted by the schedule; where the core halts, here.
    """
    pc = np.int64(t.core_pc[core])
    word = np.int64(t.l1_u32[pc >> 2])
    fields = fields_of(word)
    n = fields & 0xFF
    rd = (fields >> 8) & 0x3F
    rs1 = (fields >> 16) & 31
    rs2 = (fields >> 24) & 31
    immediate = fields >> 32
    a = np.int64(t.core_x[core, rs1])
    if n == ILLEGAL:
        status = _vector(t, core, word)
        if status == DONE:
            t.core_pc[core] = np.uint32(pc + 4)
        return status
    if n == MRET:
        if t.core_in_handler[core] == 0:
            return refuse(t, NO_HANDLER)
        t.core_in_handler[core] = 0
        t.core_pc[core] = t.core_interrupted_pc[core]
        return DONE
    status = DONE
    if n < _FIRST_CSR:
        status = atomic(t, core, n, a, np.int64(t.core_x[core, rs2]), rd)
    elif n < _FIRST_ENVIRONMENT:
        status = execute_csr(t, core, n, immediate, rs1, (word >> 7) & 31, rd)
    elif n in (ECALL, EBREAK):
        _pause(t, core, HALT_ECALL if n == ECALL else HALT_EBREAK)
    elif n in (FLW, FSW):
        register = (word >> 7) & 31 if n == FLW else rs2
        status = float_access(t, core, n, (a + immediate) & WORD, register)
    else:
        status = execute_float(t, core, n, word, rd)
    if status == DONE:
        t.core_pc[core] = np.uint32(pc + 4)
    return status


def slow_core_entry(t: TileRecord, core: Int, _: Int) -> AnyInt:
    """`slow_core` for the table of handlers."""
    return slow_core(t, core)
