"""Conversions between number kinds: SFPCAST, SFP_STOCH_RND (math V16, V17; rules I.12)."""

from __future__ import annotations

from typing import Final

from bhemu.errors import MissingSpecification, NonContractualBehavior
from bhemu.machine.faults import DONE, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import (
    as_integers,
    leading_zeros,
    load32,
    mask32,
    maximum,
    minimum,
    shift_right_logical,
    splat32,
    where,
)
from bhemu.machine.types import Int, Lanes, TileRecord
from bhemu.tensix.instruction import DOCUMENTED, VERIFIED, Mode, instruction
from bhemu.tensix.prng import prng_step
from bhemu.tensix.vector.registers import SIGN, destination, enabled_bits, reserved_mode, write
from bhemu.tensix.vector_queue import EXECUTE

MAGNITUDE: Final = 0x7FFFFFFF
INFINITY: Final = 0x7F800000
FRACTION: Final = 0x7FFFFF
"""23 bits: a dropped fraction, and the threshold that it is compared with (V17)."""

CAST_MODE = reserved_mode(
    "SFPCAST",
    "0 or 1 (sign-magnitude to FP32), 2 (absolute value) or 3 (to or from two's complement)",
    "I.12",
    NonContractualBehavior,
)


@kernel
def _cast(c: Lanes, unit: Lanes) -> Lanes:
    """Sign-magnitude integers to FP32, truncated, plus `unit` in the last place; a zero keeps its sign (V16)."""
    magnitude = c & MAGNITUDE
    zeros = leading_zeros(magnitude)
    normal = magnitude << minimum(zeros, 31)
    # The hidden bit, bit 31 of `normal`, adds one to the exponent field.
    bits = ((157 - zeros) << 23) + shift_right_logical(normal, 8) + unit
    return (c & SIGN) | where(magnitude == 0, 0, bits)


@instruction(
    Mode("sign-magnitude to FP32, nearest even", VERIFIED, vectors="sfpu:SFPCAST:0", rule="I.12, math V16"),
    Mode("sign-magnitude to FP32, stochastic", DOCUMENTED, rule="I.12, math V16"),
    Mode("two's complement absolute value", DOCUMENTED, rule="I.12"),
    Mode("sign-magnitude to or from two's complement", VERIFIED, vectors="sfpu:SFPCAST:3", rule="I.12"),
)
def SFPCAST(t: TileRecord, thread: Int, lreg_src_c: Int, lreg_dest: Int, instr_mod1: Int, word: Int) -> Int:
    status = destination(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    if instr_mod1 > 3:
        return refuse(t, CAST_MODE, instr_mod1)
    c = load32(t.lregs, lreg_src_c)
    if instr_mod1 < 2:
        magnitude = c & MAGNITUDE
        dropped = (magnitude << minimum(leading_zeros(magnitude), 31)) & 0x1FF  # 8 dropped bits and the last kept one
        if instr_mod1 == 0:
            unit = as_integers(((dropped & 0x80) != 0) & ((dropped & 0x17F) != 0))
        else:
            random = prng_step(t, mask32(enabled_bits(t)))
            unit = as_integers((dropped & 0xFE) > (shift_right_logical(random, 9) & 0xFE))
        write(t, lreg_dest, _cast(c, unit))
    elif instr_mod1 == 2:
        write(t, lreg_dest, where(c < 0, -c, c))
    else:  # the map is its own inverse
        write(t, lreg_dest, where(c < 0, -c | SIGN, c))
    return DONE


# --- SFP_STOCH_RND ------------------------------------------------------------------------------------------------

TO_FP19: Final = 0
TO_BF16: Final = 1
TO_UINT8: Final = 2
TO_INT8: Final = 3
INT32_TO_UINT8: Final = 4
INT32_TO_INT8: Final = 5
TO_UINT16: Final = 6
TO_INT16: Final = 7
SHIFT_IMMEDIATE: Final = 8
"""Mode bit 3: the shift of modes 4 and 5 is the immediate, not LReg b (V17). LLK's exponential sets it in mode 6."""

NEAREST: Final = 0
STOCHASTIC: Final = 1
TOWARD_ZERO: Final = 2

_MAXIMUM: Final = (0, 0, 255, 127, 255, 127, 65535, 32767)
"""Largest magnitude by mode."""
_SIGNED: Final = 0b1010_1000
"""Modes that keep the sign."""

SCALED_FLOAT = fault(
    "vector.sfp-stoch-rnd-scale",
    MissingSpecification,
    "mode {0} of SFP_STOCH_RND rounds FP32 and has the immediate {1}; only modes 4 and 5 are known to shift by it",
    remedy="use an immediate of 0, or clear bit 3 of the mode",
    rule="math V17",
)
ROUNDING = reserved_mode("SFP_STOCH_RND rnd_mode", "0 nearest, 1 stochastic or 2 toward zero", "math V17")


@kernel
def _round_float(c: Lanes, threshold: Lanes, drop: Int) -> Lanes:
    """FP32 with the low `drop` mantissa bits rounded away; exponent 0 gives +0, exponent 255 infinity (V17)."""
    exponent = c & INFINITY
    mask = (1 << drop) - 1
    up = (c & mask) >= shift_right_logical(threshold, 23 - drop)
    rounded = where(up, (c & ~mask) + (1 << drop), c & ~mask)
    rounded = where(exponent == INFINITY, (c & SIGN) | INFINITY, rounded)
    return where(exponent == 0, 0, rounded)


@kernel
def _clamped(magnitude: Lanes, c: Lanes, top: Int, signed: Int) -> Lanes:
    magnitude = minimum(magnitude, top)
    if signed:
        magnitude = where(magnitude == 0, 0, magnitude | (c & SIGN))
    return magnitude


@kernel
def _float_to_integer(c: Lanes, threshold: Lanes, top: Int) -> Lanes:
    """Magnitude of FP32 as an integer of at most 16 bits (V17)."""
    exponent = (shift_right_logical(c, 23) & 0xFF) - 127
    significand = (c & FRACTION) | 0x800000
    half = exponent == -1
    left = minimum(maximum(exponent, 0), 15)
    whole = where(half, 0, shift_right_logical(significand, 23 - left))
    fraction = where(half, shift_right_logical(significand, 1), significand << left) & FRACTION
    value = minimum(whole + as_integers(fraction >= threshold), top)
    return where(exponent >= 16, top, where(exponent < -1, 0, value))


@kernel
def _shifted_integer(c: Lanes, threshold: Lanes, amount: Lanes, top: Int) -> Lanes:
    """Magnitude shifted right, rounded by the dropped part, a 23-bit fraction (V17)."""
    magnitude = c & MAGNITUDE
    whole = shift_right_logical(magnitude, amount)
    near = magnitude << maximum(23 - amount, 0)
    far = shift_right_logical(magnitude, maximum(amount - 23, 0))
    fraction = where(amount <= 23, near, far) & FRACTION
    return minimum(whole, top) + as_integers(fraction >= threshold)


@instruction(
    Mode("to BF16", VERIFIED, vectors="sfpu:SFP_STOCH_RND:1", rule="math V17"),
    Mode("to UINT8", VERIFIED, vectors="sfpu:SFP_STOCH_RND:2", rule="math V17"),
    Mode("to INT8", VERIFIED, vectors="sfpu:SFP_STOCH_RND:3", rule="math V17"),
    Mode("to UINT16", VERIFIED, vectors="sfpu:SFP_STOCH_RND:6", rule="math V17"),
    Mode("to INT16", VERIFIED, vectors="sfpu:SFP_STOCH_RND:7", rule="math V17"),
    Mode("to 10 mantissa bits; INT32 to UINT8, INT8", DOCUMENTED, rule="math V17"),
    Mode("stochastic, toward zero", DOCUMENTED, rule="math V17"),
    Mode("from FP32 with mode bit 3 and immediate 0", DOCUMENTED, rule="math V17"),
)
def SFP_STOCH_RND(
    t: TileRecord,
    thread: Int,
    rnd_mode: Int,
    imm8_math: Int,
    lreg_src_b: Int,
    lreg_src_c: Int,
    lreg_dest: Int,
    instr_mod1: Int,
    word: Int,
) -> Int:
    status = destination(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    mode = instr_mod1 & 7
    integer = mode in (INT32_TO_UINT8, INT32_TO_INT8)
    if instr_mod1 & SHIFT_IMMEDIATE and imm8_math != 0 and not integer:
        return refuse(t, SCALED_FLOAT, instr_mod1, imm8_math)
    if rnd_mode > TOWARD_ZERO:
        return refuse(t, ROUNDING, rnd_mode)
    # The generators step in every mode and rounding.
    threshold = prng_step(t, mask32(enabled_bits(t))) & FRACTION
    if rnd_mode == NEAREST:
        threshold = splat32(0x400000)
    elif rnd_mode == TOWARD_ZERO:
        threshold = splat32(FRACTION)
    c = load32(t.lregs, lreg_src_c)
    if mode == TO_FP19:
        result = _round_float(c, threshold, 13)
    elif mode == TO_BF16:
        result = _round_float(c, threshold, 16)
    else:
        top = _MAXIMUM[mode]
        if integer:
            amount = splat32(imm8_math) if instr_mod1 & SHIFT_IMMEDIATE else load32(t.lregs, lreg_src_b) & 31
            magnitude = _shifted_integer(c, threshold, amount, top)
        else:
            magnitude = _float_to_integer(c, threshold, top)
        result = _clamped(magnitude, c, top, (_SIGNED >> mode) & 1)
    write(t, lreg_dest, result)
    return DONE
