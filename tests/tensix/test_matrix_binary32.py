"""Dot products and products as binary32 lanes and as integers: two computations of the same rule (math F8..F13)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

from bhemu.machine.codegen import JIT, record_of
from bhemu.machine.lanes import lane, load16, splat16
from bhemu.machine.state import TILE_TYPE, new_tiles, reset
from bhemu.tensix.matrix.dot import dot_rows
from bhemu.tensix.matrix.dot_large import dot_rows_of_large
from bhemu.tensix.matrix.elementwise import _multiply_bf16, _multiply_row, _multiply_tf32
from bhemu.tensix.matrix.fidelity import exponent_bias
from bhemu.tensix.matrix.operands import BF16_STYLE, FP16_STYLE, TF32_STYLE, VIEW_32, VIEW_BF16, VIEW_FP16

CASES = 400
ROWS = 64
TILE_AT = record_of(TILE_TYPE)


@njit
def _both(address, result, style, view, phase, trim, a_row, b_row, b_step, row):  # type: ignore[no-untyped-def]
    t = TILE_AT(address)
    if result == 0:
        dot_rows(t, style, view, phase, a_row, trim, b_row, b_step, trim, row, 1, 8)
    else:
        bias = exponent_bias(style, view, phase)
        dot_rows_of_large(t, view, phase, bias, a_row, trim, b_row, b_step, trim, row, 1, 8)


def _cells(rng: np.random.Generator, least: int, most: int) -> np.ndarray[Any, Any]:
    """Src rows with exponent fields of a range; with zeros, and mantissas whose products are often ties."""
    shape = (ROWS, 16)
    exponent = np.where(rng.random(shape) < rng.choice([0, 0.1, 0.9]), 0, rng.integers(least, most + 1, shape))
    mantissa = rng.integers(0, 1024, shape) & rng.choice([0x3FF, 0x3F8, 0x380, 0x200], shape)
    return rng.integers(0, 2, shape) << 18 | mantissa << 8 | exponent


def _dst(rng: np.random.Generator, view: int, least: int, most: int) -> np.ndarray[Any, Any]:
    shape = (1024, 16)
    exponent = np.clip(rng.integers(least, most + 1, shape), 0, 31 if view == VIEW_FP16 else 255)
    if view == VIEW_FP16:
        return rng.integers(0, 2, shape) << 15 | rng.integers(0, 1024, shape) << 5 | exponent
    cells = rng.integers(0, 2, shape) << 15 | rng.integers(0, 128, shape) << 8 | exponent
    if view == VIEW_32:
        low = (np.arange(1024) & 8) != 0
        cells[low] = rng.integers(0, 1 << 16, (512, 16))
    return cells


@pytest.mark.skipif(not JIT, reason="compares thousands of compiled products; the plain text has the vectors")
@pytest.mark.parametrize(
    ("style", "view"),
    [
        (BF16_STYLE, VIEW_BF16),
        (TF32_STYLE, VIEW_BF16),
        (BF16_STYLE, VIEW_32),
        (FP16_STYLE, VIEW_FP16),
        (FP16_STYLE, VIEW_32),
    ],
)
def test_sums_of_binary32_are_the_sums_of_integers(style: int, view: int) -> None:
    rng = np.random.default_rng([style, view])
    tiles = new_tiles(1)
    reset(tiles, 0)
    t: Any = tiles[0]
    five = style == FP16_STYLE
    most = 31 if five else 255
    trim = 0x7FF1F if five else 0x7FFFF if style == TF32_STYLE else 0x7F8FF
    for _ in range(CASES):
        middle, width = int(rng.integers(1, most + 1)), int(rng.choice([0, 3, 8, 14, 40, 300]))
        other = middle if five or rng.random() < 0.5 else 254 - middle
        for file, centre in ((t.srca, middle), (t.srcb, other)):
            file[0] = _cells(rng, max(1, centre - width), max(1, min(most, centre + width)))
        phase = int(rng.integers(0, 4))
        product = middle + other + exponent_bias.py_func(style, view, phase)  # type: ignore[attr-defined]
        dst = _dst(rng, view, product - width - 14, product + width + 14)
        valid = rng.random(t.dst_valid.shape) < 0.9
        a_row, b_row, row = int(rng.integers(0, 7)) * 8, int(rng.integers(0, 57)), int(rng.integers(0, 60)) * 8
        results = []
        for result in range(2):
            t.dst[...], t.dst_valid[...] = dst, valid
            _both(tiles.ctypes.data, result, style, view, phase, trim, a_row, b_row, 1, row)
            results.append((t.dst.copy(), t.dst_valid.copy()))
        np.testing.assert_array_equal(results[0][0], results[1][0])
        np.testing.assert_array_equal(results[0][1], results[1][1])
        assert (results[0][0] != dst).any()


@pytest.mark.skipif(not JIT, reason="compares thousands of compiled products; the plain text has the vectors")
def test_operands_that_are_kept_decoded_are_used_only_while_they_are_the_same() -> None:
    """Between two products little changes: one bit of one cell, or one argument."""
    rng = np.random.default_rng(20)
    tiles = new_tiles(1)
    reset(tiles, 0)
    t: Any = tiles[0]
    for file in (t.srca, t.srcb):
        file[...] = _cells(rng, 110, 140)
    style, view, phase, trim, a_row, b_row, b_step = BF16_STYLE, VIEW_BF16, 0, 0x7F8FF, 0, 0, 1
    decoded_before = int(t.prepared.versions)
    for step in range(3000):
        change = int(rng.integers(0, 16))
        if change < 5:
            file = t.srca if change < 3 else t.srcb
            at = int(rng.integers(0, 2)), int(rng.integers(0, ROWS)), int(rng.integers(0, 16))
            file[at] ^= 1 << int(rng.integers(0, 19))
        elif change < 8:
            phase = int(rng.integers(0, 4))
        elif change < 10:
            a_row = int(rng.integers(0, 16)) * 8 if rng.random() < 0.3 else int(rng.integers(0, 8)) * 16
            a_row -= 8 if a_row == 120 else 0
        elif change < 12:
            b_row = int(rng.integers(0, 16)) * 8
        elif change == 12:
            trim = int(rng.choice([0x7FFFF, 0x7F8FF]))
        elif change == 13:
            b_step = int(rng.integers(0, 2))
            b_row += int(rng.integers(0, 8)) if b_step == 0 else -(b_row % 8)
        elif change == 14:
            style, view = [(BF16_STYLE, VIEW_BF16), (BF16_STYLE, VIEW_32), (FP16_STYLE, VIEW_FP16)][rng.integers(0, 3)]
        row = int(rng.integers(0, 60)) * 8
        dst = _dst(rng, view, 0, 40 if view == VIEW_FP16 else 200)
        results = []
        for result in range(2):
            t.dst[...] = dst
            seen = 0x7FF1F if style == FP16_STYLE else trim
            _both(tiles.ctypes.data, result, style, view, phase, seen, a_row, b_row, b_step, row)
            results.append(t.dst.copy())
        np.testing.assert_array_equal(results[0], results[1], err_msg=f"step {step}")
    assert t.prepared.versions - decoded_before < 1500  # half of the products at least have found both blocks decoded


@njit
def _products(address, short, phase, trim, a_row, b_row, b_step, spread, row):  # type: ignore[no-untyped-def]
    """How many rows of ELWMUL binary32 has made; the others are made as integers. Less than 0: all of them are."""
    t = TILE_AT(address)
    bias = exponent_bias(BF16_STYLE, VIEW_BF16, phase)
    done = 0
    if short > 0:
        done = _multiply_bf16(t, phase, a_row, b_row, b_step, spread, row)
    elif short == 0:
        done = _multiply_tf32(t, phase, a_row, b_row, b_step, spread, trim, trim, row)
    for i in range(done, 8):
        a, b = load16(t.srca, a_row + i) & trim, load16(t.srcb, b_row + i * b_step) & trim
        _multiply_row(t, bias, VIEW_BF16, phase, a, splat16(lane(b, 0)) if spread else b, False, row + i)
    return done


@pytest.mark.skipif(not JIT, reason="compares thousands of compiled products; the plain text has the vectors")
@pytest.mark.parametrize("style", [BF16_STYLE, TF32_STYLE])
def test_products_of_binary32_are_the_products_of_integers(style: int) -> None:
    rng = np.random.default_rng([style, 7])
    tiles = new_tiles(1)
    reset(tiles, 0)
    t: Any = tiles[0]
    trim = 0x7FFFF if style == TF32_STYLE else 0x7F8FF
    made = 0
    for _ in range(4 * CASES):
        middle, width = int(rng.integers(1, 256)), int(rng.choice([0, 3, 8, 14, 40, 300]))
        # Products about which Dst is, and at times those at the least exponent.
        other = int(np.clip(rng.choice([middle, 254 - middle, 127 - middle]), 1, 255))
        for file, centre in ((t.srca, middle), (t.srcb, other)):
            file[0] = _cells(rng, max(1, centre - width), max(1, min(255, centre + width)))
        phase = int(rng.integers(0, 4))
        product = middle + other + exponent_bias.py_func(style, VIEW_BF16, phase)  # type: ignore[attr-defined]
        dst = _dst(rng, VIEW_BF16, product - width - 14, product + width + 14)
        valid = rng.random(t.dst_valid.shape) < 0.9
        a_row, b_row, row = int(rng.integers(0, 7)) * 8, int(rng.integers(0, 57)), int(rng.integers(0, 60)) * 8
        b_step, spread = int(rng.integers(0, 2)), bool(rng.random() < 0.3)
        results = []
        for short in (-1, 1 if style == BF16_STYLE or phase == 0 else 0, 0):
            t.dst[...], t.dst_valid[...] = dst, valid
            done = _products(tiles.ctypes.data, short, phase, trim, a_row, b_row, b_step, spread, row)
            results.append((t.dst.copy(), t.dst_valid.copy()))
            made += done if short > 0 else 0
        for result in results[1:]:
            np.testing.assert_array_equal(results[0][0], result[0])
            np.testing.assert_array_equal(results[0][1], result[1])
    assert made > CASES  # not all exponents are too large
