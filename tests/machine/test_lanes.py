"""Lanes compiled and lanes in plain NumPy give the same results, operation by operation."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from bhemu.machine import _lanes_plain as plain
from bhemu.machine.compiler import JIT

pytestmark = pytest.mark.skipif(not JIT, reason="compares the compiled lanes with the plain ones")

EDGES = np.array([0, 1, -1, 2, 0x7FFFFFFF, -0x80000000, 31, -31, 0x1234567, -0x1234567, 5, 7, 100, -100, 1 << 23, 3])

TABLE = (np.arange(64, dtype=np.uint16) * 3001).astype(np.uint16)


def _programs(lanes):  # type: ignore[no-untyped-def]
    """Each operation as a function (array of 16 x int32, out) written once for both kinds of lanes."""
    load16, store16, where = lanes.load16, lanes.store16, lanes.where

    def arithmetic(a, out):
        x, y = load16(a, 0), load16(a, 1)
        store16(out, 0, x + y)
        store16(out, 1, x - y * 3)
        store16(out, 2, (x & y) | (x ^ 5))
        store16(out, 3, ~x)
        store16(out, 4, -x)
        store16(out, 5, 7 - x)

    def shifts(a, out):
        x, n = load16(a, 0), load16(a, 1) & 31
        store16(out, 0, x << n)
        store16(out, 1, x >> n)
        store16(out, 2, lanes.shift_right_logical(x, n))
        store16(out, 3, lanes.shift_right_logical(x, 4))
        store16(out, 4, lanes.leading_zeros(x))
        store16(out, 5, lanes.population_count(x))

    def compare(a, out):
        x, y = load16(a, 0), load16(a, 1)
        store16(out, 0, where(x < y, x, y))
        store16(out, 1, where((x >= 0) & (y != 0), 1, -1))
        store16(out, 2, where(~(x == y) | (y <= 7), 9, x))
        store16(out, 3, lanes.minimum(x, y))
        store16(out, 4, lanes.maximum(x, 3))
        store16(out, 5, where(lanes.less_unsigned(x, y), 1, 0) + lanes.as_integers(x > y))

    def wide(a, out):
        x, y = load16(a, 0), load16(a, 1)
        product = lanes.widen(x) * lanes.widen(y)
        store16(out, 0, lanes.narrow(product))
        store16(out, 1, lanes.narrow(product >> 32))
        store16(out, 2, lanes.narrow(lanes.shift_right_logical(lanes.widen_unsigned(x) * lanes.widen_unsigned(y), 20)))
        store16(out, 3, lanes.splat16(lanes.horizontal_maximum(x)) + lanes.iota16())
        store16(out, 4, lanes.splat16(lanes.horizontal_minimum(y)))
        store16(out, 5, lanes.splat16(lanes.horizontal_sum(x)))

    def masks(a, out):
        x, y = load16(a, 0), load16(a, 1)
        bits = lanes.mask_bits(x < y)
        store16(out, 0, lanes.splat16(bits))
        store16(out, 1, where(lanes.mask16(bits ^ 0x0F0F), x, y))
        store16(out, 2, lanes.splat16(lanes.lane(x, 5)))
        store16(out, 3, lanes.shuffle(x, (1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 15)))
        store16(out, 4, lanes.gather(TABLE, x & 63))

    def halves(a, out):
        x, y = load16(a, 0), load16(a, 1)
        store16(out, 0, lanes.as_words(lanes.as_halves(x) * lanes.as_halves(y) + 3))
        store16(out, 1, lanes.as_words(lanes.pack_rows(x, y) >> (lanes.as_halves(y) & 15)))
        h, k = lanes.as_halves(x), lanes.as_halves(y)
        store16(out, 2, lanes.as_words(lanes.minimum(h, k) - lanes.maximum(h, 100)))
        store16(out, 3, lanes.as_words(lanes.leading_zeros(h)))
        store16(out, 4, lanes.as_words(where(h < k, h, 0)))
        store16(out, 5, lanes.as_words(lanes.shift_right_logical(h, 3)))

    def rows(a, out):
        x, y = load16(a, 0), load16(a, 1)
        pair = lanes.pack_high_rows(x, y)
        store16(out, 0, lanes.as_words(pair))
        other = lanes.pack_rows(x, y)
        store16(out, 1, lanes.first_row_words(1, pair))
        store16(out, 2, lanes.second_row_words(-2, pair))
        store16(out, 3, lanes.first_row_words(other, pair))
        store16(out, 4, lanes.second_row_words(other, pair))
        store16(out, 5, lanes.opaque(x & 0xFFFF) | lanes.as_words(lanes.opaque(pair << 8)))

    def floats(a, out):
        # Signs and mantissas at random, exponents so that terms overlap, and ties.
        x, y = load16(a, 0), load16(a, 1)
        p, q = (x & ~0x70000000) | 0x30000000, (y & -0x40001000) | 0x3F000000
        store16(out, 0, lanes.add_floats(p, q))
        store16(out, 1, lanes.multiply_add_floats(p, q, y & ~0x40000000))
        store16(out, 2, lanes.multiply_add_floats(p & -0x1000, q, (p & -0x80000000) ^ 0x4B000001))
        store16(out, 3, lanes.multiply_add_floats(q, q, lanes.splat16(0x4B400000)))
        store16(out, 4, lanes.to_floats(x))
        store16(out, 5, lanes.to_floats(y >> 5))

    return [arithmetic, shifts, compare, wide, masks, halves, rows, floats]


@pytest.mark.parametrize("index", range(8))
def test_compiled_lanes_equal_plain_lanes(index: int) -> None:
    from bhemu.machine import lanes as compiled

    program = njit(_programs(compiled)[index])
    expected_program = _programs(plain)[index]
    rng = np.random.default_rng(index)
    for _ in range(30):
        a = rng.integers(-(1 << 31), 1 << 31, (2, 16)).astype(np.int32)
        mix = rng.random((2, 16)) < 0.4
        a[mix] = rng.choice(EDGES, mix.sum()).astype(np.int32)
        got, expected = np.zeros((6, 16), np.int32), np.zeros((6, 16), np.int32)
        program(a, got)
        expected_program(a, expected)
        np.testing.assert_array_equal(got, expected)


def test_rows_of_16_bit_arrays_are_zero_extended_and_truncated() -> None:
    from bhemu.machine import lanes as compiled

    load16, store16 = compiled.load16, compiled.store16

    @njit
    def copy(a, out):  # type: ignore[no-untyped-def]
        store16(out, 1, load16(a, 1) + 0x10000)

    a = np.arange(32, dtype=np.uint16).reshape(2, 16) + np.uint16(65500)
    out = np.zeros((2, 16), np.uint16)
    copy(a, out)
    np.testing.assert_array_equal(out[1], a[1])
    assert not out[0].any()


def test_plain_lanes_truncate_scalars_as_compiled_lanes_do() -> None:
    x = plain.splat16(3)
    for scalar in (np.int64(5), 0x80000000, -0x80000000, True):
        for value in (x + scalar, scalar | x, plain.where(x > 0, scalar, x), plain.maximum(x, scalar)):
            assert value.dtype == np.int32
    assert int((x | 0x80000000)[0]) == -0x7FFFFFFD
    assert int(plain.leading_zeros(x ^ np.int64(0))[0]) == 30


def test_two_rows_of_a_16_bit_array_are_32_lanes() -> None:
    from bhemu.machine import lanes as compiled

    load_row_pair, store_row_pair = compiled.load_row_pair, compiled.store_row_pair

    @njit
    def copy(a, out):  # type: ignore[no-untyped-def]
        store_row_pair(out, 1, load_row_pair(a, 2) + 1)

    a = np.arange(64, dtype=np.uint16).reshape(4, 16) * np.uint16(1000)
    out, expected = np.zeros((4, 16), np.uint16), np.zeros((4, 16), np.uint16)
    copy(a, out)
    plain.store_row_pair(expected, 1, plain.load_row_pair(a, 2) + 1)
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(out[1:3], a[2:4] + 1)


def test_a_load_from_any_position_takes_16_neighbours() -> None:
    from bhemu.machine import lanes as compiled

    load16_at, store16 = compiled.load16_at, compiled.store16

    @njit
    def copy(a, position, out):  # type: ignore[no-untyped-def]
        store16(out, 0, load16_at(a, position))

    for dtype in (np.uint8, np.uint16, np.uint32):
        a = np.arange(200, dtype=dtype).reshape(2, 100)
        for position in (0, 1, 8, 95, 184):
            out = np.zeros(16, np.uint32)
            copy(a, position, out)
            np.testing.assert_array_equal(out, np.arange(position, position + 16))
            np.testing.assert_array_equal(plain.load16_at(a, position), out)
