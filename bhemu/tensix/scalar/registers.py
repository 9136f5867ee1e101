"""Instructions between GPRs: immediates and arithmetic, 32 bits that wrap (I.11)."""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.errors import MissingSpecification, UndefinedBehavior
from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.machine.faults import DONE, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Int, TileRecord
from bhemu.tensix.instruction import DOCUMENTED, OPEN, RESERVED_BITS, VERIFIED, Mode, instruction
from bhemu.tensix.scalar.halves import HALF_BITS, WORD_BITS, write_half
from bhemu.tensix.scalar.signals import write_signal

_SHIFT_BITS: Final = 31
_SIGNAL_SPARE: Final = ~INSTRUCTIONS["SETDMAREG"].form("signal").mask & 0xFFFFFF
"""Operand bits that the signal form does not use."""

NO_OPERATION = fault(
    "scalar.no-operation",
    UndefinedBehavior,
    "OpSel {0} selects no operation",
    remedy="BITWOPDMAREG: 0 and, 1 or, 2 xor; SHIFTDMAREG: 0 left, 1 right; CMPDMAREG: 0 >, 1 <, 2 =",
    rule="I.11",
)
RSTDMA_UNKNOWN = fault(
    "scalar.rstdma",
    MissingSpecification,
    "what RSTDMA resets is undocumented",
    remedy="leave it out",
    rule="I.11",
)


@instruction(
    Mode("immediate", VERIFIED, vectors="scalar:setdma", rule="I.11"),
    Mode("signals", DOCUMENTED, rule="003.2.1"),
)
def SETDMAREG(
    t: TileRecord,
    thread: Int,
    value: Int,
    ResultSize: Int,
    WhichPackers: Int,
    InputSource: Int,
    InputHalfReg: Int,
    SetSignalsMode: Int,
    RegIndex16b: Int,
    word: Int,
) -> Int:
    if not SetSignalsMode:
        write_half(t, thread, RegIndex16b, value)
        return DONE
    if word & _SIGNAL_SPARE:
        return refuse(t, RESERVED_BITS, word & _SIGNAL_SPARE)
    return write_signal(t, thread, ResultSize, WhichPackers, InputSource, InputHalfReg, RegIndex16b)


@instruction(Mode("idle cycle", VERIFIED, vectors="scalar:dmanop", rule="I.11"))
def DMANOP(t: TileRecord, thread: Int) -> Int:
    return DONE


@instruction(Mode("any", OPEN, rule="I.11"))
def RSTDMA(t: TileRecord, thread: Int) -> Int:
    return refuse(t, RSTDMA_UNKNOWN)


@kernel
def _right(t: TileRecord, thread: Int, is_constant: Int, index: Int) -> Int:
    """Operand B: a GPR, or the field itself as an unsigned 6-bit constant."""
    return index if is_constant else np.int64(t.gpr[thread, index])


@kernel
def _write(t: TileRecord, thread: Int, index: Int, value: Int) -> Int:
    t.gpr[thread, index] = np.uint32(value & WORD_BITS)
    return DONE


@instruction(
    Mode("GPR", VERIFIED, vectors="scalar:adddma", rule="I.11"),
    Mode("constant", DOCUMENTED, rule="I.11"),
)
def ADDDMAREG(
    t: TileRecord, thread: Int, OpBisConst: Int, ResultRegIndex: Int, OpBRegIndex: Int, OpARegIndex: Int
) -> Int:
    left = np.int64(t.gpr[thread, OpARegIndex])
    return _write(t, thread, ResultRegIndex, left + _right(t, thread, OpBisConst, OpBRegIndex))


@instruction(Mode("GPR or constant", DOCUMENTED, rule="I.11"))
def SUBDMAREG(
    t: TileRecord, thread: Int, OpBisConst: Int, ResultRegIndex: Int, OpBRegIndex: Int, OpARegIndex: Int
) -> Int:
    left = np.int64(t.gpr[thread, OpARegIndex])
    return _write(t, thread, ResultRegIndex, left - _right(t, thread, OpBisConst, OpBRegIndex))


@instruction(
    Mode("GPR", VERIFIED, vectors="scalar:muldma", rule="I.11"),
    Mode("constant", DOCUMENTED, rule="I.11"),
)
def MULDMAREG(
    t: TileRecord, thread: Int, OpBisConst: Int, ResultRegIndex: Int, OpBRegIndex: Int, OpARegIndex: Int
) -> Int:
    left = np.int64(t.gpr[thread, OpARegIndex]) & HALF_BITS
    return _write(t, thread, ResultRegIndex, left * (_right(t, thread, OpBisConst, OpBRegIndex) & HALF_BITS))


@instruction(Mode("and, or, xor", DOCUMENTED, rule="I.11"))
def BITWOPDMAREG(
    t: TileRecord, thread: Int, OpBisConst: Int, OpSel: Int, ResultRegIndex: Int, OpBRegIndex: Int, OpARegIndex: Int
) -> Int:
    left = np.int64(t.gpr[thread, OpARegIndex])
    right = _right(t, thread, OpBisConst, OpBRegIndex)
    if OpSel == 0:
        return _write(t, thread, ResultRegIndex, left & right)
    if OpSel == 1:
        return _write(t, thread, ResultRegIndex, left | right)
    if OpSel == 2:
        return _write(t, thread, ResultRegIndex, left ^ right)
    return refuse(t, NO_OPERATION, OpSel)


@instruction(Mode("left, logical right", DOCUMENTED, rule="I.11"))
def SHIFTDMAREG(
    t: TileRecord, thread: Int, OpBisConst: Int, OpSel: Int, ResultRegIndex: Int, OpBRegIndex: Int, OpARegIndex: Int
) -> Int:
    left = np.int64(t.gpr[thread, OpARegIndex])
    amount = _right(t, thread, OpBisConst, OpBRegIndex) & _SHIFT_BITS
    if OpSel == 0:
        return _write(t, thread, ResultRegIndex, left << amount)
    if OpSel == 1:
        return _write(t, thread, ResultRegIndex, left >> amount)
    return refuse(t, NO_OPERATION, OpSel)


@instruction(Mode("greater, less, equal (unsigned)", DOCUMENTED, rule="I.11"))
def CMPDMAREG(
    t: TileRecord, thread: Int, OpBisConst: Int, OpSel: Int, ResultRegIndex: Int, OpBRegIndex: Int, OpARegIndex: Int
) -> Int:
    left = np.int64(t.gpr[thread, OpARegIndex])
    right = _right(t, thread, OpBisConst, OpBRegIndex)
    if OpSel == 0:
        return _write(t, thread, ResultRegIndex, 1 if left > right else 0)
    if OpSel == 1:
        return _write(t, thread, ResultRegIndex, 1 if left < right else 0)
    if OpSel == 2:
        return _write(t, thread, ResultRegIndex, 1 if left == right else 0)
    return refuse(t, NO_OPERATION, OpSel)
