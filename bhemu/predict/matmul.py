"""How long ttnn's matmul with multicast in two dimensions takes on a grid of cores.

In each of its steps along K a core of each column reads tiles of the second operand from DRAM and multicasts them, a
core of each row multicasts tiles of the first, and every core multiplies what has come for the step before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bhemu.checks import checked
from bhemu.errors import ConfigurationError
from bhemu.isa.silicon import figure

TILE: Final = 32
PHASES: Final = {"LoFi": 1, "HiFi2": 2, "HiFi3": 3, "HiFi4": 4}
TILE_BYTES: Final = {"BFLOAT16": 2048, "BFLOAT8_B": 1088, "BFLOAT4_B": 576}


@checked
@dataclass(frozen=True, slots=True)
class Matmul:
    """A matmul as its program divides it.

    Attributes:
        m, k, n: size of the product, in elements.
        columns, rows: of the grid of cores.
        dtype: of the operands, a key of `TILE_BYTES`.
        fidelity: a key of `PHASES`.
        divisor: in how many parts each core's share of K is multiplied.
        blocks_high, blocks_wide: in how many parts each core's output is computed, one after the other.
    """

    m: int
    k: int
    n: int
    columns: int
    rows: int
    dtype: str
    fidelity: str
    divisor: int = 1
    blocks_high: int = 1
    blocks_wide: int = 1


@dataclass(frozen=True, slots=True)
class MatmulTime:
    """Its estimate.

    Attributes:
        cycles: of the math cores' kernel.
        ideal: cycles of the multiplications alone, at a MVMUL a cycle.
        bound: what a step takes most of: "math" or "data movement".
    """

    cycles: float
    ideal: float
    bound: str


@checked
def predict(matmul: Matmul) -> MatmulTime:
    """Estimate a matmul.

    Raises:
        ConfigurationError: the data type or fidelity is not known.
    """
    if matmul.dtype not in TILE_BYTES or matmul.fidelity not in PHASES:
        raise ConfigurationError(
            f"no figures for {matmul.dtype} at {matmul.fidelity}",
            remedy=f"use one of {', '.join(TILE_BYTES)}, and one of {', '.join(PHASES)}",
        )
    m = matmul.m / TILE / matmul.rows / matmul.blocks_high
    n = matmul.n / TILE / matmul.columns / matmul.blocks_wide
    k = matmul.k / TILE / matmul.columns / matmul.divisor
    steps = matmul.columns * matmul.divisor * matmul.blocks_high * matmul.blocks_wide
    phases = PHASES[matmul.fidelity]
    tile = phases * figure("llk.matmul_tiles.phase").value + figure("matmul.tile").value
    math = m * n * k * tile + figure("matmul.step").value
    moved = n * k
    data = figure("matmul.data.step").value + moved * figure("matmul.data.tile").value
    data += moved * TILE_BYTES[matmul.dtype] / figure("matmul.data.rate").value
    step = max(math, data) + figure("matmul.overlap").value * min(math, data)
    ideal = m * n * k * 16 * phases * steps
    return MatmulTime(figure("matmul.fixed").value + steps * step, ideal, "math" if math >= data else "data movement")
