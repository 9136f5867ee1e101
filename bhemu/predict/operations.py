"""How long attention, gather, convolution and narrow matmuls of ttnn take, from device kernel to device kernel.

Each model counts the work of the core that has the most of it. Times are microseconds at the clock of the figures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from bhemu.isa.silicon import figure
from bhemu.predict.matmul import PHASES, TILE, TILE_BYTES

MHZ: Final = 1350.0
"""The AI clock of a busy card."""


def _f(name: str) -> float:
    return figure(name).value


def _up(count: float, unit: float = TILE) -> int:
    return max(1, math.ceil(count / unit))


@dataclass(frozen=True, slots=True)
class Attention:
    """ttnn's scaled dot-product attention, prefill.

    Attributes:
        heads: of the queries, over the whole batch.
        rows: of queries and of keys.
        size: of a head.
        rows_q, rows_k: of a chunk of queries, of keys.
        causal: chunks of keys behind the queries are left out.
        fidelity: a key of `PHASES`.
        cores: that take part.
    """

    heads: int
    rows: int
    size: int = 128
    rows_q: int = 128
    rows_k: int = 128
    causal: bool = True
    fidelity: str = "HiFi2"
    cores: int = 110


def _score_tile(one: Attention) -> tuple[float, float]:
    """(matrix unit, vector unit) cycles for a tile of scores and its share of the output."""
    each = PHASES[one.fidelity] * _f("llk.matmul_tiles.phase") + _f("matmul.tile")
    return 2 * _up(one.size) * each, _f("attention.exp")


def attention(one: Attention) -> float:
    """Microseconds of the core with the most chunks of queries."""
    matrix, vector = _score_tile(one)
    tiles = _up(one.rows_q) * _up(one.rows_k)
    chunks = math.ceil(one.heads * _up(one.rows, one.rows_q) / one.cores)
    along = _up(one.rows, one.rows_k)
    steps = (along + 1) / 2 if one.causal else along
    step = tiles * (matrix + vector + _f("attention.tile")) + _f("attention.step")
    return chunks * (steps * step + _f("attention.chunk")) / MHZ


def attention_math(one: Attention, vector: bool = True) -> float:
    """Microseconds for which the math of an average core is busy, without waits.

    Args:
        vector: with the vector unit's part.
    """
    matrix, exp = _score_tile(one)
    along = _up(one.rows, one.rows_k)
    steps = (along + 1) / 2 if one.causal else along
    tiles = one.heads * _up(one.rows, one.rows_q) / one.cores * steps * _up(one.rows_q) * _up(one.rows_k)
    return tiles * (matrix + (exp if vector else 0)) / MHZ


def attention_decode(batch: int, heads: int, rows: int, size: int, dtype: str, cores: int = 110) -> float:
    """Microseconds of attention of one new token: all keys and values are read from DRAM once.

    Args:
        heads: of keys and values; the queries of each fit into a tile.
        rows: of the cache.
        dtype: of the cache, a key of `TILE_BYTES`.
    """
    tiles = batch * heads * _up(rows)
    memory = 2 * tiles * _up(size) * TILE_BYTES[dtype] / _f("dram.stream")
    compute = tiles / cores * _f("attention.decode.tile")
    return (_f("operation.launch") + max(memory, compute)) / MHZ


def gather(rows: int, columns: int, index_columns: int, cores: int = 110) -> float:
    """Microseconds of `ttnn.gather` along the last dimension.

    Short rows are kept whole in L1, and cores share the rows; of long rows each core searches all tiles for the indices
    of its own columns.
    """
    high, wide, index = _up(rows), _up(columns), _up(index_columns)
    if wide <= _f("gather.short"):
        return math.ceil(high / cores) * index * TILE * TILE * _f("gather.element") / MHZ
    return high * wide * math.ceil(index / cores) * TILE * TILE * _f("gather.search") / MHZ


def transposes() -> float:
    """Microseconds of the two transposes around an operation along the last dimension but one."""
    return _f("transposes") / MHZ


@dataclass(frozen=True, slots=True)
class Convolution:
    """ttnn's conv2d.

    Attributes:
        inputs, outputs: channels.
        high, wide: of the input.
        window: of the kernel, in each direction.
        stride, padding: in each direction.
        fidelity: a key of `PHASES`.
        sharded: "height": cores share the pixels; "block": pixels and channels.
        batch: images.
    """

    inputs: int
    outputs: int
    high: int
    wide: int
    window: int = 3
    stride: int = 1
    padding: int = 1
    fidelity: str = "LoFi"
    sharded: str = "height"
    batch: int = 1


def convolution(one: Convolution, columns: int = 11, rows: int = 10) -> float:
    """Microseconds: the input as rows of a matrix is tilized, multiplied with the weights, and packed."""
    reach = 2 * one.padding - one.window
    pixels = one.batch * ((one.high + reach) // one.stride + 1) * ((one.wide + reach) // one.stride + 1)
    m, n, k = _up(pixels), _up(one.outputs), _up(one.inputs * one.window**2)
    if one.sharded == "block":
        m, n, tilized = _up(m, rows), _up(n, columns), _up(k, columns)
    else:
        m, tilized = _up(m, columns * rows), k
    multiply = m * n * k * (PHASES[one.fidelity] * _f("llk.matmul_tiles.phase") + _f("matmul.tile"))
    around = m * tilized * _f("conv.tilize") + m * n * _f("conv.output")
    return (_f("conv.fixed") + multiply + around) / MHZ


def narrow_matmul(m: int, k: int, n: int, element: int = 2) -> float:
    """Microseconds of a matmul with few rows: the second operand is read from DRAM, the first goes to every core.

    Args:
        m, k, n: size, in elements.
        element: bytes of one.
    """
    read = k * n * element / _f("narrow.weights") + m * k * element / _f("narrow.input")
    return (_f("operation.launch") + read) / MHZ
