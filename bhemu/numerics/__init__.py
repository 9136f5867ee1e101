"""The machine's arithmetic as a library: NumPy in, NumPy out, no program needed.

Every function executes the instruction that it is named after, on a private tile, by the same compiled code that runs
programs: what it returns is what the machine leaves in its registers. There is nothing that the hardware does not have.

- matrix unit: `mvmul`, `gapool`, `gmpool`, `elwadd`, `elwsub`, `elwmul`
- vector unit: `fma`, `reciprocal`, `exponential`, `lut`, `lutfp32`, `mul24`, `cast`, `stochastic_round`, `shift_round`
- unpacker and packer: `unpack_convert`, `pack_convert`, and `src_values` to read cells

Functions whose names end in `_bits` take and return raw bits.

Example:
    >>> import numpy as np
    >>> from bhemu import numerics
    >>> a, b = np.eye(16, dtype=np.float32), np.full((16, 16), 1.03125, np.float32)
    >>> [numerics.mvmul(a, b, fidelity=f)[0, 0].item() for f in ("LoFi", "HiFi2")]
    [1.0, 1.03125]
"""

from bhemu.numerics.conversion import Packed, pack_convert, src_values, unpack_convert
from bhemu.numerics.elementwise import elementwise_bits, elwadd, elwmul, elwsub
from bhemu.numerics.matrix import (
    gapool,
    gapool_bits,
    gmpool,
    gmpool_bits,
    mvmul,
    mvmul_bits,
)
from bhemu.numerics.vector import (
    cast,
    cast_bits,
    exponential,
    exponential_bits,
    fma,
    fma_bits,
    lut,
    lut_bits,
    lutfp32,
    lutfp32_bits,
    mul24,
    reciprocal,
    reciprocal_bits,
    shift_round,
    stochastic_round,
    stochastic_round_bits,
)

__all__ = [
    "Packed",
    "cast",
    "cast_bits",
    "elementwise_bits",
    "elwadd",
    "elwmul",
    "elwsub",
    "exponential",
    "exponential_bits",
    "fma",
    "fma_bits",
    "gapool",
    "gapool_bits",
    "gmpool",
    "gmpool_bits",
    "lut",
    "lut_bits",
    "lutfp32",
    "lutfp32_bits",
    "mul24",
    "mvmul",
    "mvmul_bits",
    "pack_convert",
    "reciprocal",
    "reciprocal_bits",
    "shift_round",
    "src_values",
    "stochastic_round",
    "stochastic_round_bits",
    "unpack_convert",
]
