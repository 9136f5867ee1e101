"""Conversion of datums to register cells, 16 at a time (rules I.2, I.5).

Two steps: `NORMALISE_*` brings the datum as L1 holds it to BF16, FP16 or FP32 bits {sign, exponent, mantissa} or leaves
it, `LAYOUT_*` permutes those to the cell {sign, mantissa, exponent} of the register file.
"""

from __future__ import annotations

from typing import Any, Final

from bhemu.machine.dst import cell_of_bf16, cell_of_fp16
from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import leading_zeros, mask_bits, minimum, where
from bhemu.machine.types import AnyInt, Int, Lanes

NORMALISE_NONE: Final = 0
NORMALISE_FP32_TO_TF32: Final = 1  # its layout drops the bits
NORMALISE_FP32_TO_BF16: Final = 2
NORMALISE_FP32_TO_FP16: Final = 3
NORMALISE_E5M2: Final = 4
NORMALISE_E4M3: Final = 5
NORMALISE_BFP: Final = 6
NORMALISE_BFP_A: Final = 7
NORMALISE_INT8: Final = 8
NORMALISE_UINT8: Final = 9

LAYOUT_SRC_TF32: Final = 0
LAYOUT_SRC_BF16: Final = 1
LAYOUT_SRC_FP16: Final = 2
LAYOUT_SRC_INT16: Final = 3
LAYOUT_DST_16: Final = 4  # opaque 16 bits
LAYOUT_DST_BF16: Final = 5
LAYOUT_DST_FP16: Final = 6
LAYOUT_DST_32: Final = 7  # a pair of cells: see place.py

FP16_TOP: Final = 0x7FFF
"""Largest FP16 magnitude; exponent 31 is an ordinary value when unpacked (I.5)."""
_FP16_REBIAS: Final = 112  # 127 - 15


@kernel
def _fp32_to_fp16(bits: Int) -> AnyInt:
    """Truncates; E = 0 keeps its mantissa, underflow is a signed zero, overflow, Inf and NaN the largest (I.5)."""
    sign = (bits >> 16) & 0x8000
    exponent = ((bits >> 23) & 0xFF) - _FP16_REBIAS
    magnitude = (exponent << 10) | ((bits >> 13) & 0x3FF)
    magnitude = where(exponent < 0, 0, where(exponent > 31, FP16_TOP, magnitude))
    return sign | magnitude


@kernel
def _e5m2_to_fp16(bits: Lanes) -> Lanes:
    return (bits << 8) | where((bits & 0x7F) == 0x7F, 0xFF, 0)


@kernel
def _e4m3_to_fp16(bits: Lanes) -> Lanes:
    exponent = (bits >> 3) & 0xF
    mantissa = (bits & 7) << 7
    exponent = where(exponent != 0, exponent + 8, 0)  # denormals are not normalised
    top = where((bits & 0x7F) == 0x7F, 0x7F, 0)
    return ((bits & 0x80) << 8) | (exponent << 10) | mantissa | top


@kernel
def _bfp_parts(bits: Int, exponents: Int, shift: Int) -> Any:
    """Normalised 8-bit magnitude without its leading one (`& 0x7E`) and the exponent before any wrap."""
    magnitude = ((bits << shift) & 0x7F) << 1
    lead = minimum(leading_zeros(magnitude) - 24, 7)  # zeros in front of the leading one of 8 bits
    return (magnitude << lead) & 0x7E, exponents - lead


@kernel
def bfp_to_bf16(bits: Int, exponents: Int, shift: Int) -> AnyInt:
    """The exponent wraps modulo 256; negative zero is minus infinity (I.5)."""
    left = bits << shift
    mantissa, exponent = _bfp_parts(bits, exponents, shift)
    value = ((left & 0x80) << 8) | ((exponent & 0xFF) << 7) | mantissa
    return where((left & 0x7F) == 0, where((left & 0x80) != 0, 0xFF80, 0), value)


@kernel
def _bfp_a_to_fp16(bits: Int, exponents: Int, shift: Int) -> AnyInt:
    left = bits << shift
    mantissa, exponent = _bfp_parts(bits, exponents, shift)
    value = ((left & 0x80) << 8) | ((exponent & 0x1F) << 10) | (mantissa << 3)
    return where((left & 0x7F) == 0, where((left & 0x80) != 0, 0xFC00, 0), value)


@kernel
def bfp_a_is_undefined(bits: Int, exponents: Int, shift: Int) -> Int:
    """Bit n: datum n of an A-family BFP format needs an exponent outside 0..31, which has no defined result (I.5)."""
    _mantissa, exponent = _bfp_parts(bits, exponents, shift)
    return mask_bits((((bits << shift) & 0x7F) != 0) & ((exponent & 0xE0) != 0))


@kernel
def _integer8(bits: Int, magnitude_mask: Int) -> AnyInt:
    """Magnitude under the dummy exponent 16; the sign survives a magnitude of 0 (I.2)."""
    magnitude = bits & magnitude_mask
    sign = bits & ~magnitude_mask & 0x80
    return (sign << 8) | where(magnitude != 0, magnitude | (16 << 10), 0)


@kernel
def bf16_to_src(bits: Lanes) -> Lanes:
    """SrcA / SrcB cells of BF16 bits (I.2)."""
    return ((bits & 0x8000) << 3) | ((bits & 0x7F) << 11) | ((bits >> 7) & 0xFF)


@kernel
def fp32_to_src_tf32(bits: Int) -> Int:
    """SrcA / SrcB cells of FP32 bits as TF32: 13 low mantissa bits are dropped (I.5)."""
    return ((bits >> 13) & 0x40000) | ((bits >> 5) & 0x3FF00) | ((bits >> 23) & 0xFF)


@kernel
def convert(normalise: Int, layout: Int, shift: Int, bits: Lanes, exponents: Lanes) -> Lanes:
    """Cells of 16 datums.

    Args:
        normalise, layout: what to do, `NORMALISE_*` and `LAYOUT_*`.
        shift: left shift that aligns a BFP datum to 8 bits.
        bits: the datums, zero-extended.
        exponents: shared exponent byte of each datum (BFP only).
    """
    if normalise == NORMALISE_FP32_TO_BF16:
        bits = where((bits & 0x7F800000) == 0, (bits >> 16) & 0x8000, (bits >> 16) & 0xFFFF)
    elif normalise == NORMALISE_FP32_TO_FP16:
        bits = _fp32_to_fp16(bits)
    elif normalise == NORMALISE_E5M2:
        bits = _e5m2_to_fp16(bits)
    elif normalise == NORMALISE_E4M3:
        bits = _e4m3_to_fp16(bits)
    elif normalise == NORMALISE_BFP:
        bits = bfp_to_bf16(bits, exponents, shift)
    elif normalise == NORMALISE_BFP_A:
        bits = _bfp_a_to_fp16(bits, exponents, shift)
    elif normalise in (NORMALISE_INT8, NORMALISE_UINT8):
        bits = _integer8(bits, 0x7F if normalise == NORMALISE_INT8 else 0xFF)

    if layout == LAYOUT_SRC_TF32:
        bits = fp32_to_src_tf32(bits)
    elif layout == LAYOUT_SRC_BF16:
        bits = bf16_to_src(bits)
    elif layout == LAYOUT_SRC_FP16:
        bits = ((bits & 0x8000) << 3) | ((bits & 0x3FF) << 8) | ((bits >> 10) & 0x1F)
    elif layout == LAYOUT_SRC_INT16:
        bits = ((bits & 0xFF00) << 3) | (bits & 0xFF)
    elif layout == LAYOUT_DST_BF16:
        bits = cell_of_bf16(bits)
    elif layout == LAYOUT_DST_FP16:
        bits = cell_of_fp16(bits)
    elif layout == LAYOUT_DST_32:
        bits = (cell_of_bf16(bits >> 16) << 16) | (bits & 0xFFFF)
    return bits
