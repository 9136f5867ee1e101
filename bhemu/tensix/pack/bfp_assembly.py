"""Assembly of BFP groups: one shared exponent and 16 magnitudes from 16 datums (P10)."""

from __future__ import annotations

from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import horizontal_maximum, minimum, splat16, where
from bhemu.machine.types import AnyInt, Int


@kernel
def shared_exponent(family_a: Int, value: Int) -> Int:
    """Largest exponent of the 16 datums; the highest code (255 or 31) is an ordinary value."""
    if family_a != 0:
        return horizontal_maximum((value >> 10) & 0x1F)
    return horizontal_maximum((value >> 7) & 0xFF)


@kernel
def signed_magnitudes(family_a: Int, bits: Int, shared: Int, value: Int) -> AnyInt:
    """Sign and magnitude codes of `bits` (8, 4 or 2) bits: rounded half up to 7 bits of magnitude, then truncated.

    The hidden bit is part of the magnitude. A zero magnitude loses its sign: the code -0 means minus infinity (I.5).
    """
    if family_a != 0:
        exponent, mantissa = (value >> 10) & 0x1F, (value >> 3) & 0x7F
    else:
        exponent, mantissa = (value >> 7) & 0xFF, value & 0x7F
    full = where(exponent != 0, mantissa | 0x80, mantissa)
    distance = minimum(splat16(shared) - exponent, 8)  # at 8 the rounding below gives 0, as for all beyond
    magnitude = minimum((full + (splat16(1) << distance)) >> (distance + 1), 127)
    if bits != 8:
        magnitude = magnitude >> splat16(8 - bits)
    sign = ((value >> 15) & 1) << splat16(bits - 1)
    return magnitude | where(magnitude != 0, sign, 0)
