"""Instructions between GPRs: immediates and arithmetic, 32 bits that wrap (I.11)."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit

from bhemu.errors import MissingSpecification, UndefinedBehavior, Unimplemented
from bhemu.machine.faults import DONE, fault, refuse
from bhemu.tensix.instruction import DOCUMENTED, MISSING, OPEN, VERIFIED, Mode, instruction

WORD_BITS: Final = 0xFFFFFFFF
HALF_BITS: Final = 0xFFFF
_SHIFT_BITS: Final = 31

SIGNALS = fault(
    "scalar.signals",
    Unimplemented,
    "SETDMAREG of packer state (InputSource {0}) is not built yet",
    remedy="use the immediate form, SetSignalsMode = 0",
    rule="I.11",
)
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
    "nobody documents what RSTDMA resets",
    remedy="leave it out",
    rule="I.11",
)


@njit
def read_half(t, thread, half):
    """A 16-bit half of a GPR: 2n is the low half of GPR n, 2n + 1 the high half (003.1e)."""
    return (np.int64(t.gpr[thread, half >> 1]) >> (16 * (half & 1))) & HALF_BITS


@njit
def write_half(t, thread, half, value):
    """Write the low 16 bits of `value` to a half of a GPR and keep the other half."""
    shift = 16 * (half & 1)
    kept = np.int64(t.gpr[thread, half >> 1]) & ~(HALF_BITS << shift)
    t.gpr[thread, half >> 1] = np.uint32(kept | ((value & HALF_BITS) << shift))


@instruction(
    Mode("immediate", VERIFIED, vectors="scalar:setdma", rule="I.11"),
    Mode("signals", MISSING, rule="I.11"),
)
def SETDMAREG(t, thread, value, InputSource, SetSignalsMode, RegIndex16b):
    if SetSignalsMode:
        return refuse(t, SIGNALS, InputSource)
    write_half(t, thread, RegIndex16b, value)
    return DONE


@instruction(Mode("idle cycle", VERIFIED, vectors="scalar:dmanop", rule="I.11"))
def DMANOP(t, thread):
    return DONE


@instruction(Mode("any", OPEN, rule="I.11"))
def RSTDMA(t, thread):
    return refuse(t, RSTDMA_UNKNOWN)


@njit
def _right(t, thread, is_constant, index):
    """Operand B: a GPR, or the field itself as an unsigned 6-bit constant."""
    return index if is_constant else np.int64(t.gpr[thread, index])


@njit
def _write(t, thread, index, value):
    t.gpr[thread, index] = np.uint32(value & WORD_BITS)
    return DONE


@instruction(
    Mode("GPR", VERIFIED, vectors="scalar:adddma", rule="I.11"),
    Mode("constant", DOCUMENTED, rule="I.11"),
)
def ADDDMAREG(t, thread, OpBisConst, ResultRegIndex, OpBRegIndex, OpARegIndex):
    left = np.int64(t.gpr[thread, OpARegIndex])
    return _write(t, thread, ResultRegIndex, left + _right(t, thread, OpBisConst, OpBRegIndex))


@instruction(Mode("GPR or constant", DOCUMENTED, rule="I.11"))
def SUBDMAREG(t, thread, OpBisConst, ResultRegIndex, OpBRegIndex, OpARegIndex):
    left = np.int64(t.gpr[thread, OpARegIndex])
    return _write(t, thread, ResultRegIndex, left - _right(t, thread, OpBisConst, OpBRegIndex))


@instruction(
    Mode("GPR", VERIFIED, vectors="scalar:muldma", rule="I.11"),
    Mode("constant", DOCUMENTED, rule="I.11"),
)
def MULDMAREG(t, thread, OpBisConst, ResultRegIndex, OpBRegIndex, OpARegIndex):
    left = np.int64(t.gpr[thread, OpARegIndex]) & HALF_BITS
    return _write(t, thread, ResultRegIndex, left * (_right(t, thread, OpBisConst, OpBRegIndex) & HALF_BITS))


@instruction(Mode("and, or, xor", DOCUMENTED, rule="I.11"))
def BITWOPDMAREG(t, thread, OpBisConst, OpSel, ResultRegIndex, OpBRegIndex, OpARegIndex):
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
def SHIFTDMAREG(t, thread, OpBisConst, OpSel, ResultRegIndex, OpBRegIndex, OpARegIndex):
    left = np.int64(t.gpr[thread, OpARegIndex])
    amount = _right(t, thread, OpBisConst, OpBRegIndex) & _SHIFT_BITS
    if OpSel == 0:
        return _write(t, thread, ResultRegIndex, left << amount)
    if OpSel == 1:
        return _write(t, thread, ResultRegIndex, left >> amount)
    return refuse(t, NO_OPERATION, OpSel)


@instruction(Mode("greater, less, equal (unsigned)", DOCUMENTED, rule="I.11"))
def CMPDMAREG(t, thread, OpBisConst, OpSel, ResultRegIndex, OpBRegIndex, OpARegIndex):
    left = np.int64(t.gpr[thread, OpARegIndex])
    right = _right(t, thread, OpBisConst, OpBRegIndex)
    if OpSel == 0:
        return _write(t, thread, ResultRegIndex, 1 if left > right else 0)
    if OpSel == 1:
        return _write(t, thread, ResultRegIndex, 1 if left < right else 0)
    if OpSel == 2:
        return _write(t, thread, ResultRegIndex, 1 if left == right else 0)
    return refuse(t, NO_OPERATION, OpSel)
