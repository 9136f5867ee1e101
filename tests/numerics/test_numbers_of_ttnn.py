"""Results of ttnn that differ much from torch's are what their instructions compute (tests/ttnn/settled.py).

Each function goes through an operation's instructions with `bhemu.numerics`, on the numbers of the sweep's case, which
compares what ttnn's kernels leave on the chip with the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bhemu import numerics
from tests.ttnn import settled

Values = Any
"""float32, of which bfloat16 has all numbers."""


def bits_of(values: Values) -> Any:
    return np.ascontiguousarray(values, np.float32).view(np.uint32)


def floats(bits: Any) -> Values:
    return np.asarray(bits, np.uint32).view(np.float32)


def truncated(values: Values) -> Values:
    """What a store into a Dst of bfloat16 leaves."""
    return floats(bits_of(values) & 0xFFFF0000)


def to_even(values: Values) -> Values:
    """The nearest bfloat16, ties to even: the host's, and that of kernels which round by integer instructions."""
    bits = bits_of(values)
    return floats(bits + 0x7FFF + (bits >> 16 & 1) & 0xFFFF0000)


def packed(values: Values) -> Values:
    """PACR from a Dst of FP32 into a buffer of bfloat16."""
    return floats(numerics.pack_convert(bits_of(values), "bf16").bits.astype(np.uint32) << 16)


def nearest(values: Values) -> Values:
    """SFP_STOCH_RND to bfloat16, nearest."""
    return np.asarray(numerics.stochastic_round(values, "bf16", "nearest"), np.float32)


def fma(x: Values, y: Values, z: Values) -> Values:
    """SFPMAD."""
    operands = np.broadcast_arrays(*(np.asarray(value, np.float32) for value in (x, y, z)))
    return np.asarray(numerics.fma(*operands), np.float32)


def array(rows: list[list[float]]) -> Values:
    return np.array(rows, np.float32)


def check(name: str, *results: Values) -> None:
    cells = [(bits_of(result) >> 16).astype(np.uint16).tobytes() for result in results]
    assert settled.digest_of(*cells) == settled.DIGESTS[name]


def test_prod_over_all() -> None:
    """Tiles are folded by ELWMUL in a Dst of FP32; the host multiplies the 1024 numbers that are left, in bfloat16.

    The product so far goes from Dst to SrcA, which drops what bfloat16 does not have, and the host rounds 1024 times.
    """
    x = array(settled.PROD[0])
    tiles = [x[row : row + 32, column : column + 32] for row in (0, 32) for column in (0, 32)]
    product = tiles[0]
    for tile in tiles[1:]:
        product = numerics.elwmul(truncated(product), tile, fidelity="HiFi4", dst_format="fp32")
    left = packed(product).reshape(2, 16, 2, 16).transpose(0, 2, 1, 3).reshape(-1)  # face by face
    result = np.ones(1, np.float32)
    for value in left:
        result = to_even(result * value)
    check("prod", result)
    exact = x.astype(np.float64).prod()
    assert abs(result[0] / exact - 1) > 0.2


def test_hardswish_bw() -> None:
    """Five operations of ttnn, each rounded to bfloat16: x * 0.3333, + 0.5, * gradient, and two choices.

    The choices are x < -3 and x <= 3; torch's are x <= -3 and x < 3 (tt-metal's issue 55291). So at -3 and 3 the
    result is half a gradient off.
    """
    x, gradient = (array(rows) for rows in settled.HARDSWISH_BW)
    third = np.full_like(x, to_even(0.3333))
    slope = packed(numerics.elwmul(x, third, fidelity="HiFi4", dst_format="fp32"))
    slope = packed(numerics.elwadd(slope, np.full_like(x, 0.5), dst_format="fp32"))
    inside = packed(to_even(gradient * slope))  # the vector unit multiplies two tensors of bfloat16
    result = np.where(x < -3, np.float32(0), np.where(x <= 3, inside, gradient))
    check("hardswish_bw", result)
    torch_inside = (x > -3) & (x < 3)
    want = np.where(torch_inside, gradient * (x.astype(np.float64) / 3 + 0.5), np.where(x >= 3, gradient, 0))
    off = np.abs(result - want)
    assert off[np.abs(x) == 3].max() > 0.9
    assert off[np.abs(x) != 3].max() < 0.02


def _fpu(fidelity: Any) -> tuple[Callable[..., Values], ...]:
    """ELWMUL, ELWADD and ELWSUB in a Dst of bfloat16."""

    def mul(a: Values, b: Values) -> Values:
        return np.asarray(numerics.elwmul(a, b, fidelity=fidelity, dst_format="bf16"), np.float32)

    def add(a: Values, b: Values) -> Values:
        return np.asarray(numerics.elwadd(a, b, dst_format="bf16"), np.float32)

    def sub(a: Values, b: Values) -> Values:
        return np.asarray(numerics.elwsub(a, b, dst_format="bf16"), np.float32)

    return mul, add, sub


def _log(a: Values) -> Values:
    """The kernel library's logarithm for a Dst of bfloat16."""
    exponent = (bits_of(a).view(np.int32) - bits_of(np.float32(0.75)).view(np.int32)) & np.int32(-0x800000)
    m = fma(floats(bits_of(a) - exponent.view(np.uint32)), 1, -1)
    square = fma(m, m, 0)
    r = fma(-0.25, m, float.fromhex("0x1.744p-2"))
    r = fma(fma(r, m, float.fromhex("-0x1.008p-1")), square, m)
    step = np.float32(0.693147182) * np.float32(2.0**-23)
    return nearest(fma(exponent.astype(np.float32), step, r))


def _exp(a: Values) -> Values:
    """The kernel library's exponential for a Dst of bfloat16, of numbers from 0 to 80."""
    power = bits_of(fma(a, np.float32(1.4426950216293334961), 127))
    fixed = (power & 0x7FFFFF | 0x800000) << ((power >> 23) - 127)
    fraction = (fixed & 0x7FFFFF).astype(np.float32)
    y = fma(fraction, np.float32(4.791750143340323e-15), np.float32(7.839635491371155e-08))
    y = fma(y, fraction, np.float32(1.0017248))
    return nearest(floats(bits_of(y) & 0x7FFFFF | fixed & 0x7F800000))


def test_moreh_norm_of_order_2() -> None:
    """Squares are cut to bfloat16, MVMUL adds them in a Dst of bfloat16, and the root is exp(0.5 * log(sum)).

    The logarithm in bfloat16 is the coarse one: near 3 its steps are 1/64, which makes steps of 0.8 % in the result.
    """
    mul, _, _ = _fpu("HiFi4")
    x = array(settled.MOREH_NORM[0])
    squares = truncated(fma(x, x, 0))  # times exp(0 * log x), which is 1
    ones, total = np.ones((32, 16), np.float32), None
    for tile in (squares[:, :32], squares[:, 32:]):
        total = numerics.mvmul(tile.copy(), ones, total, fidelity="HiFi4", dst_format="bf16")
    sums = np.asarray(total, np.float32)[:, 0].copy()
    result = _exp(mul(_log(sums), np.full_like(sums, 0.5)))
    check("moreh_norm", result)
    want = np.sqrt((x.astype(np.float64) ** 2).sum(1))
    assert np.abs(result / want - 1).max() > 0.004


def _power(base: Values, exponent: int) -> Values:
    """The kernel library's iterative power, stored into a Dst of bfloat16."""
    result = base
    for _ in range(exponent - 1):
        result = fma(result, base, 0)
    return truncated(result)


def _reciprocal(x: Values) -> Values:
    """SFPARECIP alone: the kernel is compiled for approximate results."""
    return truncated(numerics.reciprocal(x))


def _root(x: Values) -> Values:
    """The kernel library's approximate square root, of 10 bits."""
    y = floats(0x5F0B3892 - (bits_of(x) >> 1))
    c = fma(x, y, 0)
    return nearest(fma(c, fma(-y, c, np.float32(1.89099014875)), 0))


def test_moreh_adam() -> None:
    """Every step is rounded to bfloat16, constants are cut to it, roots and reciprocals are the approximate ones.

    0.999 becomes 0.99609375, so 1 - beta2 is four times what it should be, and the second moment moves that much.
    """
    mul, add, sub = _fpu("HiFi4")
    p, gradient, mean, squares = (array(rows) for rows in settled.MOREH_ADAM)
    one = np.ones_like(p)
    rate, beta1, beta2, eps, decay = (one * truncated(number) for number in (0.1, 0.9, 0.999, 1e-4, 0.05))
    gradient = add(gradient, mul(p, decay))
    new_mean = add(mul(mean, beta1), mul(gradient, sub(one, beta1)))
    new_squares = add(mul(squares, beta2), mul(sub(one, beta2), mul(gradient, gradient)))
    correction1, correction2 = (_reciprocal(sub(one, _power(beta, 3))) for beta in (beta1, beta2))
    divisor = _reciprocal(add(_root(mul(new_squares, correction2)), eps))
    step = mul(divisor, mul(mul(rate, correction1), new_mean))
    result = sub(p, step)
    check("moreh_adam", result, new_mean, new_squares)
    exact = 0.999 * squares.astype(np.float64) + 0.001 * gradient.astype(np.float64) ** 2
    assert np.abs(new_squares / exact - 1).max() > 0.005


@pytest.mark.parametrize("name", settled.DIGESTS)
def test_every_settled_operation_is_in_the_sweep(name: str) -> None:
    assert any(case.name.startswith(f"settled/{name}/") for case in settled.group.cases)
