"""The vector unit's arithmetic on arrays: one SFPU instruction for each 32 values (math V10..V17)."""

from __future__ import annotations

from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bhemu.checks import checked
from bhemu.errors import ConfigurationError, FormatError
from bhemu.isa.instructions import encode
from bhemu.numerics import loops
from bhemu.numerics.operands import (
    U32,
    as_array,
    float_bits,
    from_sign_magnitude,
    int32_values,
    raw_bits,
    shown,
    sign_magnitude,
)
from bhemu.numerics.unit import DATA, unit

Rounding = Literal["nearest", "stochastic", "toward_zero"]

LANES: Final = 32
_ROWS_A_CALL: Final = 512
_FIRST_ROW: Final = -(-DATA // LANES)
_RESULT: Final = 7
"""LReg of the result; inputs stay below, but for the tables, which have their registers fixed."""


def _apply(
    words: list[int],
    inputs: dict[int, U32],
    *,
    result: int = _RESULT,
    constants: dict[int, int] | None = None,
    seed: int | None = None,
) -> Any:
    """Execute the words for each 32 elements of the broadcast inputs.

    Args:
        words: instruction words.
        inputs: LReg -> values that it gets.
        result: LReg of the results.
        constants: LReg -> value in all lanes.
        seed: start of the pseudo-random generators.
    """
    try:
        shape = np.broadcast_shapes(*(array.shape for array in inputs.values()))
    except ValueError:
        shapes = ", ".join(str(array.shape) for array in inputs.values())
        raise FormatError(f"shapes {shapes} do not broadcast", remedy="see NumPy's broadcasting") from None
    size = int(np.prod(shape))
    flat = {register: np.broadcast_to(array, shape).reshape(-1) for register, array in inputs.items()}
    out = np.empty(size, np.uint32)
    step = _ROWS_A_CALL * LANES
    places = {register: (_FIRST_ROW + i * _ROWS_A_CALL) * LANES for i, register in enumerate(flat)}
    target = (_FIRST_ROW + len(flat) * _ROWS_A_CALL) * LANES
    plan = {loops.V_RESULT: result, loops.V_OUT: target, loops.V_INPUTS: len(flat), loops.V_WORDS: len(words)}
    tail = [item for pair in places.items() for item in pair] + words
    plan |= {loops.V_FIRST + i: item for i, item in enumerate(tail)}
    with unit("vector") as u:
        for register, value in (constants or {}).items():
            u.record["lregs"][register] = value
        if seed is not None:
            u.seed(seed)
        for first in range(0, size, step):
            count = min(step, size - first)
            blocks = -(-count // LANES)
            for register, place in places.items():
                u.words[place : place + count] = flat[register][first : first + count]
                u.words[place + count : place + blocks * LANES] = 0
            opcodes = {word >> 24 for word in words}
            u.execute("numerics_vector", loops.vector_loop, opcodes, plan | {loops.V_BLOCKS: blocks})
            out[first : first + count] = u.words[target : target + count]
    return out.reshape(shape)


def _float(bits: U32) -> Any:
    return shown(bits.view(np.float32))


# --- multiply and add ------------------------------------------------------------------------------------------------

_SFPMAD: Final = encode("SFPMAD", lreg_src_a=0, lreg_src_b=1, lreg_src_c=2, lreg_dest=_RESULT)


@checked
def fma_bits(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> Any:
    """`fma` on FP32 bits: uint32 in, uint32 out."""
    return shown(_apply([_SFPMAD], {0: raw_bits(x, "x"), 1: raw_bits(y, "y"), 2: raw_bits(z, "z")}))


@checked
def fma(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> Any:
    """x * y + z in FP32 as SFPMAD computes it (math V10). With z = 0 it is SFPMUL, with y = 1 SFPADD.

    Rounding: to nearest even, but only partly fused. The product is cut to 28 bits with a sticky bit before the sum,
    and whichever operand is shifted to the other's exponent gets one too. A sticky bit counts as a bit: the error can
    be a little over half a unit, and after cancellation that bit can be the whole result. An operand that is shifted
    out completely leaves nothing.

    Special values: denormal inputs count as zero, denormal results become a zero of their sign. A product whose
    exponent reaches 255 before normalisation is infinite even if z would bring it back; one whose exponent is below 0
    vanishes. Each NaN is 0x7FC00000. An exact zero is -0 only where both z and the product are negative.

    Args:
        x, y, z: broadcast; types other than float32 are rounded to it by NumPy first.

    Returns:
        float32.

    Raises:
        FormatError: no numbers, or shapes that do not broadcast.

    Example:
        >>> fma(3.0, [1.0, 2.0], 0.5).tolist()
        [3.5, 6.5]
        >>> hex(fma_bits(0x3F800001, 0x3F800001, 0xBF800002))  # exact: 2**-46
        '0x32800000'
    """
    bits = {0: float_bits(x, "x"), 1: float_bits(y, "y"), 2: float_bits(z, "z")}
    return _float(_apply([_SFPMAD], bits))


# --- reciprocal and exponential --------------------------------------------------------------------------------------

_RECIPROCAL: Final = encode("SFPARECIP", lreg_c=0, lreg_dest=_RESULT)
_EXPONENTIAL: Final = encode("SFPARECIP", lreg_c=0, lreg_dest=_RESULT, instr_mod1=2)


@checked
def reciprocal_bits(x: ArrayLike) -> Any:
    """`reciprocal` on FP32 bits: uint32 in, uint32 out."""
    return shown(_apply([_RECIPROCAL], {0: raw_bits(x, "x")}))


@checked
def reciprocal(x: ArrayLike) -> Any:
    """Approximate 1 / x as SFPARECIP mode 0 computes it: a table of 128 entries, 7 mantissa bits (math V14).

    Special values: the sign is kept; zero and denormals give infinity; from 2**126 up, infinity and NaN included, zero.

    Returns:
        float32, shape of `x`.

    Example:
        >>> reciprocal([2.0, -3.0, 0.0]).tolist()
        [0.498046875, -0.33203125, inf]
    """
    return _float(_apply([_RECIPROCAL], {0: float_bits(x, "x")}))


@checked
def exponential_bits(x: ArrayLike) -> Any:
    """`exponential` on FP32 bits: uint32 in, uint32 out."""
    return shown(_apply([_EXPONENTIAL], {0: raw_bits(x, "x")}))


@checked
def exponential(x: ArrayLike) -> Any:
    """Approximate exp(|x|) with the sign of x, as SFPARECIP mode 2 computes it, for |x| below 2 (math V14).

    The upper 16 bits are e**X, cut to 7 mantissa bits, of x with its lower 16 bits cleared; the lower 16 bits are those
    of x. Below 2**-6 the upper half is 0x3F81; denormals and zero give 1.0 with the sign. From 2.0 up the upper half is
    0x4080, whatever x is. Rests on documents alone: the reference does not execute this mode.

    Returns:
        float32, shape of `x`.

    Example:
        >>> exponential([0.0, 1.0, -1.0, 5.0]).tolist()
        [1.0, 2.703125, -2.703125, 4.0]
    """
    return _float(_apply([_EXPONENTIAL], {0: float_bits(x, "x")}))


# --- tables ----------------------------------------------------------------------------------------------------------

_ARGUMENT: Final = 3
_KEEP_SIGN: Final = 4
_LUTFP32_MODES: Final = {"fp32": 0, "fp16": 2, "fp16_to_4": 3}


@checked
def lut_bits(x: ArrayLike, coefficients: ArrayLike, *, keep_sign: bool = True) -> Any:
    """`lut` on FP32 bits: uint32 in, uint32 out."""
    return shown(_lut(raw_bits(x, "x"), coefficients, keep_sign))


def _lut(x: U32, coefficients: ArrayLike, keep_sign: bool) -> Any:
    codes = raw_bits(coefficients, "coefficients", 16)
    if codes.shape != (3,):
        raise FormatError(f"coefficients of shape {codes.shape}", remedy="pass three, {slope, offset} in 16 bits each")
    word = encode("SFPLUT", lreg_ind=_RESULT, instr_mod0=_KEEP_SIGN * keep_sign)
    return _apply([word], {_ARGUMENT: x}, constants={i: int(code) for i, code in enumerate(codes)})


@checked
def lut(x: ArrayLike, coefficients: ArrayLike, *, keep_sign: bool = True) -> Any:
    """slope * |x| + offset by a table of three intervals, as SFPLUT computes it (math V12).

    The intervals are |x| below 1, below 2, and the rest (NaN too). Multiplied and added as `fma` does.

    Args:
        x: any shape.
        coefficients: three codes of 16 bits, slope in the upper byte and offset in the lower: {sign, 3-bit negated
            exponent, 4-bit mantissa}, which is (-1)**sign * 2**-exponent * (1 + mantissa / 16); 0xFF is 0.
        keep_sign: the result gets the sign of x (mode bit 2); without, that of the sum (documents alone).

    Returns:
        float32, shape of `x`.

    Example:
        >>> lut([0.5, -1.5, 3.0], [0x00FF, 0x1000, 0xFF00]).tolist()  # |x|, |x| / 2 + 1, 1
        [0.5, -1.75, 1.0]
    """
    return _float(_lut(float_bits(x, "x"), coefficients, keep_sign))


@checked
def lutfp32_bits(
    x: ArrayLike, slopes: ArrayLike, offsets: ArrayLike, *, table: str = "fp16", keep_sign: bool = False
) -> Any:
    """`lutfp32` on FP32 bits: uint32 in, uint32 out."""
    return shown(_lutfp32(raw_bits(x, "x"), slopes, offsets, table, keep_sign))


def _lutfp32(x: U32, slopes: ArrayLike, offsets: ArrayLike, table: str, keep_sign: bool) -> Any:
    mode = _LUTFP32_MODES.get(table)
    if mode is None:
        raise ConfigurationError(f"no table {table!r}", remedy=f"say {', '.join(_LUTFP32_MODES)}")
    constants: dict[int, int] = {}
    for first, name, given in ((0, "slopes", slopes), (4, "offsets", offsets)):
        if table == "fp32":
            codes = float_bits(given, name)
            wanted = 3
        else:
            codes = as_array(given, name).astype(np.float16).view(np.uint16).astype(np.uint32)
            wanted = 6
        if codes.shape != (wanted,):
            raise FormatError(f"{name} of shape {codes.shape}", remedy=f"table {table!r} has {wanted} entries")
        entries = codes if table == "fp32" else codes[0::2] | codes[1::2] << np.uint32(16)
        constants |= {first + i: int(entry) for i, entry in enumerate(entries)}
    word = encode("SFPLUTFP32", lreg_dest=_RESULT, instr_mod1=mode | _KEEP_SIGN * keep_sign)
    return _apply([word], {_ARGUMENT: x}, constants=constants)


@checked
def lutfp32(
    x: ArrayLike, slopes: ArrayLike, offsets: ArrayLike, *, table: str = "fp16", keep_sign: bool = False
) -> Any:
    """slope * |x| + offset by a table of six or three intervals, as SFPLUTFP32 computes it (math V13).

    Multiplied and added as `fma` does. An FP16 coefficient with exponent 31 counts as zero; one with exponent 0 is a
    normal number, 2**-15 * (1 + m), so that an FP16 zero is 2**-15.

    Args:
        x: any shape.
        slopes, offsets: six numbers, made FP16 by NumPy, or three of FP32.
        table: "fp16": six intervals that end at 0.5, 1, 1.5, 2, 3; "fp16_to_4": the last end is 4; "fp32": three that
            end at 1 and 2. All but "fp16" rest on documents alone.
        keep_sign: the result gets the sign of x (documents alone).

    Returns:
        float32, shape of `x`.

    Example:
        >>> lutfp32([0.25, -2.5], [1, 1, 1, 1, 2, 1], [1, 1, 1, 1, 1, 1]).tolist()
        [1.25, 6.0]
    """
    return _float(_lutfp32(float_bits(x, "x"), slopes, offsets, table, keep_sign))


# --- integers and rounding -------------------------------------------------------------------------------------------


@checked
def mul24(x: ArrayLike, y: ArrayLike, *, high: bool = False) -> Any:
    """Product of the low 23 bits of two integers, as SFPMUL24 computes it (math V15).

    Args:
        x, y: raw 32-bit values, broadcast.
        high: bits 45:23 of the product instead of bits 22:0.

    Returns:
        uint32.

    Example:
        >>> mul24(3, [5, 1 << 22]).tolist(), mul24(1 << 22, 6, high=True).item()
        ([15, 4194304], 3)
    """
    word = encode("SFPMUL24", lreg_src_a=0, lreg_src_b=1, lreg_src_c=9, lreg_dest=_RESULT, instr_mod1=int(high))
    return shown(_apply([word], {0: raw_bits(x, "x"), 1: raw_bits(y, "y")}))


_CAST_TO_SIGN_MAGNITUDE: Final = encode("SFPCAST", lreg_src_c=0, lreg_dest=0, instr_mod1=3)


@checked
def cast_bits(x: ArrayLike, *, seed: int | None = None) -> Any:
    """`cast` on sign-magnitude bits: uint32 in, FP32 bits out; a zero keeps its sign."""
    return shown(_apply([_cast_word(seed)], {0: raw_bits(x, "x")}, seed=seed))


def _cast_word(seed: int | None) -> int:
    return encode("SFPCAST", lreg_src_c=0, lreg_dest=_RESULT, instr_mod1=0 if seed is None else 1)


@checked
def cast(x: ArrayLike, *, seed: int | None = None) -> Any:
    """INT32 to FP32 as SFPCAST does it: mode 3 to sign-magnitude, then mode 0, nearest even (rules I.12, math V16).

    Args:
        x: integers within +-(2**31 - 1).
        seed: round stochastically instead (mode 1, documents alone), with generators started from this seed; see
            `stochastic_round` for how elements meet generators.

    Returns:
        float32, shape of `x`.

    Example:
        >>> cast([-3, 2**24 + 1, 2**24 + 3]).tolist()
        [-3.0, 16777216.0, 16777220.0]
    """
    words = [_CAST_TO_SIGN_MAGNITUDE, _cast_word(seed)]
    return _float(_apply(words, {0: int32_values(x, "x").view(np.uint32)}, seed=seed))


_ROUND_MODES: Final = {"tf32": 0, "bf16": 1, "uint8": 2, "int8": 3, "uint16": 6, "int16": 7}
_SHIFT_MODES: Final = {"uint8": 4, "int8": 5}
_ROUNDINGS: Final = {"nearest": 0, "stochastic": 1, "toward_zero": 2}
_SHIFT_IMMEDIATE: Final = 8


def _rounding(rounding: str) -> int:
    found = _ROUNDINGS.get(rounding)
    if found is None:
        raise ConfigurationError(f"unknown rounding {rounding!r}", remedy=f"say {', '.join(_ROUNDINGS)}")
    return found


@checked
def stochastic_round_bits(x: ArrayLike, to: str = "bf16", rounding: Rounding = "nearest", *, seed: int = 0) -> Any:
    """`stochastic_round` on FP32 bits: uint32 in; out FP32 bits, or sign-magnitude integers, as uint32."""
    return shown(_stochastic_round(raw_bits(x, "x"), to, rounding, seed))


def _stochastic_round(x: U32, to: str, rounding: str, seed: int) -> Any:
    mode = _ROUND_MODES.get(to)
    if mode is None:
        raise ConfigurationError(f"SFP_STOCH_RND does not round to {to!r}", remedy=f"say {', '.join(_ROUND_MODES)}")
    word = encode("SFP_STOCH_RND", rnd_mode=_rounding(rounding), lreg_src_c=0, lreg_dest=_RESULT, instr_mod1=mode)
    return _apply([word], {0: x}, seed=seed)


@checked
def stochastic_round(x: ArrayLike, to: str = "bf16", rounding: Rounding = "nearest", *, seed: int = 0) -> Any:
    """FP32 to fewer bits as SFP_STOCH_RND does it (math V17).

    Rounding: up when the dropped fraction is at or above a threshold of 23 bits: a half ("nearest": ties away from
    zero), random ("stochastic": biased up, since an equal fraction rounds up), all ones ("toward_zero": a fraction of
    all ones still rounds up). Only "nearest" is verified; the others, and "tf32", rest on documents.

    Special values: exponent 0 gives +0; for "bf16" and "tf32" exponent 255 gives infinity, NaN too. Integers are
    clamped, NaN and infinity to the largest; unsigned ones take the absolute value.

    Args:
        x: any shape.
        to: "bf16" or "tf32" (7 or 10 mantissa bits), "uint8", "int8", "uint16", "int16" (+-127 and +-32767).
        rounding: "nearest", "stochastic" or "toward_zero".
        seed: of the pseudo-random generators, as a write to PRNG_SEED starts them (math V4). Element i of the flattened
            array uses generator i mod 32 in its step i div 32.

    Returns:
        float32 that holds the narrower value, or int32; shape of `x`.

    Raises:
        ConfigurationError: a target or rounding that does not exist.

    Example:
        >>> stochastic_round([1.00390625, 2.5], "bf16").tolist()
        [1.0078125, 2.5]
        >>> stochastic_round([2.5, -0.5, 300.0], "int8").tolist()
        [3, -1, 127]
    """
    bits = _stochastic_round(float_bits(x, "x"), to, rounding, seed)
    return _float(bits) if to in ("bf16", "tf32") else shown(from_sign_magnitude(bits))


@checked
def shift_round(
    x: ArrayLike, shift: int, to: str = "int8", rounding: Rounding = "nearest", *, seed: int = 0
) -> NDArray[np.int32]:
    """INT32 shifted right and clamped to 8 bits as SFP_STOCH_RND modes 4 and 5 do it (math V17; documents alone).

    Args:
        x: integers within +-(2**31 - 1).
        shift: 0..31.
        to: "int8" (+-127) or "uint8" (the magnitude, at most 255).
        rounding, seed: as `stochastic_round`.

    Returns:
        int32, shape of `x`.

    Example:
        >>> shift_round([1000, -24, 7], 4).tolist()
        [63, -2, 0]
    """
    mode = _SHIFT_MODES.get(to)
    if mode is None:
        raise ConfigurationError(f"integers are not shifted to {to!r}", remedy=f"say {', '.join(_SHIFT_MODES)}")
    if not 0 <= shift <= 31:
        raise ConfigurationError(f"shift {shift}", remedy="shift by 0 to 31")
    word = encode(
        "SFP_STOCH_RND",
        rnd_mode=_rounding(rounding),
        imm8_math=shift,
        lreg_src_c=0,
        lreg_dest=_RESULT,
        instr_mod1=mode | _SHIFT_IMMEDIATE,
    )
    bits = _apply([word], {0: sign_magnitude(int32_values(x, "x"))}, seed=seed)
    return shown(from_sign_magnitude(bits))  # type: ignore[no-any-return]
