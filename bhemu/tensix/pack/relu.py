"""ReLU, and the exponent threshold after it (P8, 002.7). Both compare bit patterns of intermediate datums."""

from __future__ import annotations

from typing import Any, Final

from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import shift_right_logical, splat16, where
from bhemu.machine.types import AnyInt, Int, Lanes, PackRecord

NO_SIGN: Final = 32
"""In place of the sign bit's position: the datum is unsigned."""


@kernel
def relu(pack: PackRecord, value: Int) -> Any:
    """ReLU modes 1 to 3: a set sign bit gives +0; then values <= threshold give 0, or values > threshold the threshold.

    FP32 in mode 3 compares bits 31:13 only (P8); those below are zero in the threshold, so clearing them in the value
    is enough.
    """
    mode = pack.relu
    if mode == 0:
        return value
    if pack.relu_sign == NO_SIGN:
        return value
    value = where((shift_right_logical(value, splat16(pack.relu_sign)) & 1) != 0, 0, value)
    if mode == 2:
        return where(value <= splat16(pack.relu_threshold), 0, value)
    if mode == 3:
        limit = splat16(pack.relu_threshold)
        compared = value & -0x2000 if pack.relu_sign == 31 else value
        return where(compared > limit, limit, value)
    return value


@kernel
def exponents(pack: PackRecord, value: Lanes) -> Lanes:
    """Exponent field of each datum, in its raw form."""
    return shift_right_logical(value, splat16(pack.exponent_shift)) & splat16(pack.exponent_mask)


@kernel
def exponent_threshold(pack: PackRecord, value: Int) -> AnyInt:
    """Datums whose exponent is below the threshold become zero (002.7)."""
    return where(exponents(pack, value) < splat16(pack.threshold), 0, value)
