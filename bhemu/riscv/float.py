"""The part of F that the cores have (tile T6, E2). Arithmetic is the vector unit's, not IEEE's (math V10)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import NonContractualBehavior
from bhemu.isa.riscv import NUMBER, RISCV
from bhemu.machine.core_state import LOCAL_RAM_SIZE
from bhemu.machine.dispatch import (
    DEVICE_LOAD,
    DEVICE_STORE,
    NOT_COMPILED,
    call_handler,
    handlers_of,
    has_handler,
)
from bhemu.machine.faults import DONE, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import lane, splat16
from bhemu.machine.types import Bool, Int, TileRecord
from bhemu.riscv.arithmetic import WORD, count_leading_zeros
from bhemu.riscv.csr import FLAGS_UNKNOWN
from bhemu.riscv.simple import RAM_BASE
from bhemu.tensix.vector.fma import fma

_N: Final = NUMBER
FLW, FSW = _N["flw"], _N["fsw"]
FMSUB, FNMSUB, FNMADD = _N["fmsub.s"], _N["fnmsub.s"], _N["fnmadd.s"]
FADD, FSUB, FMUL = _N["fadd.s"], _N["fsub.s"], _N["fmul.s"]
FSGNJ, FSGNJN, FSGNJX = _N["fsgnj.s"], _N["fsgnjn.s"], _N["fsgnjx.s"]
FMIN, FMAX = _N["fmin.s"], _N["fmax.s"]
FLE, FLT = _N["fle.s"], _N["flt.s"]
FCVT_W_S, FCVT_WU_S, FCVT_S_W, FCVT_S_WU = _N["fcvt.w.s"], _N["fcvt.wu.s"], _N["fcvt.s.w"], _N["fcvt.s.wu"]
FCLASS, FMV_W_X = _N["fclass.s"], _N["fmv.w.x"]

# By number: what an instruction's layout says of it
_IS_ARITHMETIC: Final = np.array([row.layout in ("R4", "FR") for row in RISCV], np.bool_)
_IS_CONVERSION: Final = np.array([row.layout in ("F2X", "X2F") for row in RISCV], np.bool_)
_IS_COMPARISON: Final = np.array([row.layout == "Fcmp" for row in RISCV], np.bool_)

SIGN: Final = 0x80000000
MAGNITUDE: Final = 0x7FFFFFFF
INFINITY: Final = 0x7F800000
NAN: Final = 0x7FC00000
ONE: Final = 0x3F800000

MISALIGNED: Final = fault(
    "riscv.float-misaligned",
    NonContractualBehavior,
    "a misaligned flw or fsw at {0:#x}",
    remedy="align the data to 4 bytes",
    rule="tile T27",
)


@kernel
def scalar_fma(x: Int, y: Int, z: Int) -> Int:
    """x * y + z of FP32 bits, as the vector unit computes it in each lane (V10)."""
    return lane(fma(splat16(x), splat16(y), splat16(z)), 0) & WORD


@kernel
def is_nan(x: Int) -> Bool:
    return (x & MAGNITUDE) > INFINITY


@kernel
def number_of(x: Int) -> Int:
    """An integer that orders FP32 bits as the numbers they mean; the zeros are equal."""
    return -(x & MAGNITUDE) if x & SIGN else x


@kernel
def minimum_maximum(a: Int, b: Int, maximum: Int) -> Any:
    """fmin and fmax: a NaN loses against a number, and -0 is below +0."""
    if is_nan(a):
        return np.int64(NAN) if is_nan(b) else b
    if is_nan(b):
        return a
    first, second = number_of(a), number_of(b)
    if first == second:
        return a & b if maximum else a | b
    return a if (first < second) != maximum else b


@kernel
def classify(x: Int) -> Int:
    """The ten bits of fclass."""
    negative = x & SIGN != 0
    exponent, mantissa = (x >> 23) & 0xFF, x & 0x7FFFFF
    if exponent == 0xFF and mantissa != 0:
        return np.int64(1 << 9) if mantissa >> 22 else np.int64(1 << 8)
    # From the infinities inwards: infinite, normal, subnormal, zero
    step = 1
    if exponent == 0xFF:
        step = 0
    elif exponent == 0:
        step = 2 if mantissa != 0 else 3
    return np.int64(1) << (step if negative else 7 - step)


@kernel
def magnitude_of(x: Int) -> Int:
    """Integer magnitude of a number, rounded to nearest even; 2**32 for whatever is larger."""
    exponent = (x >> 23) & 0xFF
    if exponent >= 127 + 32:
        return np.int64(1) << 32
    if exponent == 0:
        return np.int64(0)  # subnormal numbers are below one half
    significand = (x & 0x7FFFFF) | 0x800000
    up = exponent - 150
    if up >= 0:
        return significand << up
    down = min(-up, 30)
    half = np.int64(1) << (down - 1)
    return (significand + half - 1 + ((significand >> down) & 1)) >> down


@kernel
def to_signed(x: Int) -> Int:
    """fcvt.w.s: saturates; NaN is the largest."""
    if is_nan(x):
        return np.int64(MAGNITUDE)
    magnitude = magnitude_of(x)
    if x & SIGN:
        return (-min(magnitude, np.int64(SIGN))) & WORD
    return min(magnitude, np.int64(MAGNITUDE))


@kernel
def to_unsigned(x: Int) -> Int:
    """fcvt.wu.s: saturates; NaN is the largest, negative numbers are 0."""
    if is_nan(x):
        return np.int64(WORD)
    if x & SIGN:
        return np.int64(0)
    return min(magnitude_of(x), np.int64(WORD))


@kernel
def from_magnitude(magnitude: Int, sign: Int) -> Int:
    """FP32 bits of a 32-bit magnitude, rounded to nearest even."""
    if magnitude == 0:
        return np.int64(0)
    top = 31 - count_leading_zeros(magnitude)
    if top <= 23:
        significand = magnitude << (23 - top)
    else:
        down = top - 23
        half = np.int64(1) << (down - 1)
        significand = (magnitude + half - 1 + ((magnitude >> down) & 1)) >> down
    # The hidden bit counts as one in the exponent; a carry out of the significand makes it two.
    return sign | (((top + 126) << 23) + significand)


@kernel
def _compare(n: Int, a: Int, b: Int) -> Int:
    if is_nan(a) or is_nan(b):
        return np.int64(0)
    first, second = number_of(a), number_of(b)
    holds = first == second
    if n == FLT:
        holds = first < second
    elif n == FLE:
        holds = first <= second
    return np.int64(1) if holds else np.int64(0)


@kernel
def _multiply_add(n: Int, a: Int, b: Int, c: Int) -> Int:
    """Operands change their sign before the sum, so that a sum of zero has the sign of a sum (T6)."""
    if n == FADD:
        return scalar_fma(a, np.int64(ONE), b)
    if n == FSUB:
        return scalar_fma(a, np.int64(ONE), b ^ SIGN)
    if n == FMUL:
        return scalar_fma(a, b, (a ^ b) & SIGN)  # a zero with the product's sign
    if n in (FNMSUB, FNMADD):
        a = a ^ SIGN
    if n in (FMSUB, FNMADD):
        c = c ^ SIGN
    return scalar_fma(a, b, c)


@kernel
def _sign_injected(n: Int, a: Int, b: Int) -> Int:
    sign = b & SIGN
    if n == FSGNJN:
        sign = sign ^ SIGN
    elif n == FSGNJX:
        sign = (a ^ b) & SIGN
    return (a & MAGNITUDE) | sign


@kernel
def float_access(t: TileRecord, core: Int, n: Int, address: Int, register: Int) -> Any:
    """flw and fsw: a word from or to any address that the core's lw and sw reach."""
    if address & 3:
        return refuse(t, MISALIGNED, address)
    offset = address - RAM_BASE
    if address < t.l1_end:
        if n == FLW:
            t.core_f[core, register] = t.l1_u32[address >> 2]
        else:
            t.l1_u32[address >> 2] = t.core_f[core, register]
        return DONE
    if offset >= 0 and offset < LOCAL_RAM_SIZE[core]:
        if n == FLW:
            t.core_f[core, register] = t.core_ram_u32[core, offset >> 2]
        else:
            t.core_ram_u32[core, offset >> 2] = t.core_f[core, register]
        return DONE
    table = handlers_of(t)
    place = DEVICE_LOAD if n == FLW else DEVICE_STORE
    if not has_handler(table, place):
        t.needs_place = place
        return NOT_COMPILED
    t.device_size = 4
    t.device_value = np.int64(t.core_f[core, register])
    status = call_handler(table, place, t, core, address)
    if status == DONE and n == FLW:
        t.core_f[core, register] = np.uint32(np.int64(t.device_value) & WORD)
    return status


@kernel
def execute_float(t: TileRecord, core: Int, n: Int, word: Int, destination: Int) -> Any:
    """Execute an instruction of F other than flw and fsw. Rounding is to nearest even, whatever the word says (T6).

    Args:
        destination: place of an integer destination among the registers.
    """
    fd, f1, f2, f3 = (word >> 7) & 31, (word >> 15) & 31, (word >> 20) & 31, word >> 27
    a, b = np.int64(t.core_f[core, f1]), np.int64(t.core_f[core, f2])
    if _IS_ARITHMETIC[n] or _IS_CONVERSION[n] or n in (FMIN, FMAX) or _IS_COMPARISON[n]:
        t.core_fcsr[core] |= np.uint32(FLAGS_UNKNOWN)
    if _IS_ARITHMETIC[n]:
        result = _multiply_add(n, a, b, np.int64(t.core_f[core, f3]))
    elif n in (FSGNJ, FSGNJN, FSGNJX):
        result = _sign_injected(n, a, b)
    elif n in (FMIN, FMAX):
        result = minimum_maximum(a, b, n == FMAX)
    elif n == FMV_W_X:
        result = np.int64(t.core_x[core, f1])
    elif n == FCVT_S_W:
        x = np.int64(t.core_x[core, f1])
        result = from_magnitude((-x) & WORD, np.int64(SIGN)) if x & SIGN else from_magnitude(x, np.int64(0))
    elif n == FCVT_S_WU:
        result = from_magnitude(np.int64(t.core_x[core, f1]), np.int64(0))
    else:
        if _IS_COMPARISON[n]:
            result = _compare(n, a, b)
        elif n == FCVT_W_S:
            result = to_signed(a)
        elif n == FCVT_WU_S:
            result = to_unsigned(a)
        elif n == FCLASS:
            result = classify(a)
        else:
            result = a  # fmv.x.w
        t.core_x[core, destination] = np.uint32(result)
        return DONE
    t.core_f[core, fd] = np.uint32(result)
    return DONE
