"""SFPLOAD, SFPSTORE and SFPLOADI over all 65,536 cells, halves and immediates, against scalar models of V8 and V9."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.tensix.sfpu import Sfpu, word

Array = np.ndarray[Any, Any]

ALL_CELLS = np.arange(1 << 16)
LANE_ROW = np.arange(32) // 8
LANE_PAIR = np.arange(32) % 8 * 2
ROWS_OF_32 = np.array([row for row in range(1024) if row & 0x100 == 0])
"""Logical rows of the 32-bit view, each once: rows 256 and on reach the same cells as 512 and on (R7)."""


@pytest.fixture(scope="module")
def sfpu() -> Sfpu:
    return Sfpu()


def physical(row: Array) -> Array:
    """Rows of the high halves of 32-bit rows; low halves are eight rows further (rules I.3)."""
    return (row & 0x1F8) << 1 | row & 0x207


def run(sfpu: Sfpu, instruction: int) -> None:
    assert sfpu.coprocessor.push(1, instruction)
    assert sfpu.coprocessor.drain(1)


def float_of_fp16_cell(c: int, _: int) -> int:
    s, m, e = c >> 15, c >> 5 & 0x3FF, c & 0x1F
    return s << 31 | (e + 112 if e else 0) << 23 | m << 13


def bf16_of_cell(c: int) -> int:
    return (c >> 15) << 15 | (c & 0xFF) << 7 | c >> 8 & 0x7F


LOADS: dict[int, Callable[[int, int], int]] = {
    1: float_of_fp16_cell,
    2: lambda c, old: bf16_of_cell(c) << 16,
    5: lambda c, old: (c >> 15) << 31 | c >> 5 & 0xFF,
    6: lambda c, old: c,
    7: lambda c, old: c << 16,
    8: lambda c, old: (c >> 15) << 31 | c & 0x7FFF,
    9: lambda c, old: c,
    11: lambda c, old: 0,
    13: lambda c, old: (c >> 15) << 31 | c >> 5 & 0x3FF,
    14: lambda c, old: old >> 16 << 16 | c,
    15: lambda c, old: c << 16 | old & 0xFFFF,
}
"""V8: what a load of the 16-bit view makes of cell c over the old LReg value."""


@pytest.mark.rule("math V8")
@pytest.mark.parametrize("mode", LOADS)
def test_every_16_bit_load_decodes_every_cell(sfpu: Sfpu, mode: int) -> None:
    rng = np.random.default_rng(mode)
    cells = rng.permutation(ALL_CELLS).reshape(4, 1024, 16)
    old = rng.integers(0, 1 << 32, 32)
    for quarter in cells:
        sfpu.t["dst"][...] = quarter
        for address in range(0, 1024, 2):
            sfpu.t["lregs"][1] = old
            run(sfpu, word("SFPLOAD", lreg_ind=1, instr_mod0=mode, dest_reg_addr=address))
            row = (address & ~3) + LANE_ROW
            loaded = quarter[row, LANE_PAIR + (address >> 1 & 1)]
            expected = [LOADS[mode](c, v) for c, v in zip(loaded.tolist(), old.tolist(), strict=True)]
            assert sfpu.t["lregs"][1].tolist() == expected, address


@pytest.mark.rule("math V8")
@pytest.mark.parametrize("mode", [3, 4, 12])
def test_every_32_bit_load_decodes_every_half(sfpu: Sfpu, mode: int) -> None:
    """The permutation of the high half is undone; 12 converts no sign on Blackhole; 3 flushes nothing."""
    rng = np.random.default_rng(mode)
    high = np.concatenate([ALL_CELLS, rng.integers(0, 1 << 16, 1 << 16)]).reshape(-1, 512, 16)
    low = np.concatenate([rng.integers(0, 1 << 16, 1 << 16), ALL_CELLS]).reshape(-1, 512, 16)
    for high_cells, low_cells in zip(high, low, strict=True):
        sfpu.t["dst"][physical(ROWS_OF_32)] = high_cells
        sfpu.t["dst"][physical(ROWS_OF_32) + 8] = low_cells
        for first in range(0, 512, 4):
            for odd in (0, 1):
                address = int(ROWS_OF_32[first]) + 2 * odd
                run(sfpu, word("SFPLOAD", lreg_ind=1, instr_mod0=mode, dest_reg_addr=address))
                at = first + LANE_ROW, LANE_PAIR + odd
                pairs = zip(high_cells[at].tolist(), low_cells[at].tolist(), strict=True)
                assert sfpu.t["lregs"][1].tolist() == [bf16_of_cell(h) << 16 | x for h, x in pairs], address


def bf16_cell(bits: int) -> int:
    return (bits >> 15) << 15 | (bits & 0x7F) << 8 | bits >> 7 & 0xFF


def flushed(v: int) -> int:
    return v if v >> 23 & 0xFF else v & 0x80000000


def fp16_cell(v: int) -> int:
    s, e, m = v >> 31, (v >> 23 & 0xFF) - 112, v >> 13 & 0x3FF
    if e <= 0:
        return s << 15
    if e > 31:
        e, m = 31, 1023
    return s << 15 | m << 5 | e


STORES: dict[int, Callable[[int], int]] = {
    1: fp16_cell,
    2: lambda v: bf16_cell(flushed(v) >> 16),
    5: lambda v: (v >> 31) << 15 | (v & 0x3FF) << 5 | 16,
    6: lambda v: v & 0xFFFF,
    8: lambda v: (v >> 31) << 15 | v & 0x7FFF,
    11: lambda v: 0,
    13: lambda v: (v >> 31) << 15 | (v & 0x3FF) << 5 | 16,
    14: lambda v: v & 0xFFFF,
    15: lambda v: v >> 16,
}
"""V8: the cell of the 16-bit view that a store writes."""

WIDE_STORES: dict[int, Callable[[int], tuple[int, int]]] = {
    3: lambda v: (bf16_cell(flushed(v) >> 16), flushed(v) & 0xFFFF),
    4: lambda v: (bf16_cell(v >> 16), v & 0xFFFF),
    7: lambda v: (v >> 16, v & 0xFFFF),
    9: lambda v: (v & 0xFFFF, v >> 16),
    12: lambda v: (bf16_cell(v >> 16), v & 0xFFFF),
}
"""V8: the high and low half cells of the 32-bit view that a store writes."""


def every_half(seed: int) -> Array:
    """32-bit values with every upper half and with every lower half."""
    noise = np.random.default_rng(seed).integers(0, 1 << 16, 1 << 16)
    return np.concatenate([ALL_CELLS << 16 | noise, noise << 16 | ALL_CELLS])


@pytest.mark.rule("math V8")
@pytest.mark.parametrize("mode", STORES)
def test_every_16_bit_store_encodes_every_half(sfpu: Sfpu, mode: int) -> None:
    for values in every_half(mode).reshape(-1, 512, 32):
        sfpu.t["dst_valid"][...] = 0
        expected = np.empty((1024, 16), np.int64)
        for i, lanes in enumerate(values):
            sfpu.t["lregs"][1] = lanes
            run(sfpu, word("SFPSTORE", lreg_ind=1, instr_mod0=mode, dest_reg_addr=2 * i))
            expected[(2 * i & ~3) + LANE_ROW, LANE_PAIR + (i & 1)] = [STORES[mode](v) for v in lanes.tolist()]
        np.testing.assert_array_equal(sfpu.t["dst"], expected)
        assert sfpu.t["dst_valid"].all()


@pytest.mark.rule("math V8")
@pytest.mark.parametrize("mode", WIDE_STORES)
def test_every_32_bit_store_encodes_every_half(sfpu: Sfpu, mode: int) -> None:
    for values in every_half(mode).reshape(-1, 256, 32):
        sfpu.t["dst_valid"][...] = 0
        expected = np.empty((1024, 16), np.int64)
        for i, lanes in enumerate(values):
            address = int(ROWS_OF_32[2 * i & ~3]) + 2 * (i & 1)
            sfpu.t["lregs"][1] = lanes
            run(sfpu, word("SFPSTORE", lreg_ind=1, instr_mod0=mode, dest_reg_addr=address))
            row = physical((address & ~3) + LANE_ROW)
            cells = np.array([WIDE_STORES[mode](v) for v in lanes.tolist()])
            expected[row, LANE_PAIR + (i & 1)] = cells[:, 0]
            expected[row + 8, LANE_PAIR + (i & 1)] = cells[:, 1]
        np.testing.assert_array_equal(sfpu.t["dst"], expected)
        assert np.flatnonzero(sfpu.t["dst_valid"]).tolist() == sorted(physical(ROWS_OF_32).tolist())


@pytest.mark.rule("math V8")
@pytest.mark.plain
@pytest.mark.parametrize("mode", sorted(STORES | WIDE_STORES))
def test_stores_and_loads_leave_other_columns_rows_and_disabled_lanes_alone(sfpu: Sfpu, mode: int) -> None:
    rng = np.random.default_rng(mode)
    sfpu.t["dst"][...] = rng.integers(0, 1 << 16, (1024, 16))
    sfpu.t["dst_valid"][...] = 1
    before = sfpu.t["dst"].copy()
    sfpu.flags(0x0F0F00F0)
    enabled = (0x0F0F00F0 >> np.arange(32) & 1).astype(bool)
    values = rng.integers(0, 1 << 32, 32)
    sfpu.t["lregs"][1] = values
    run(sfpu, word("SFPSTORE", lreg_ind=1, instr_mod0=mode, dest_reg_addr=22))
    row, column = 20 + LANE_ROW, LANE_PAIR + 1
    if mode in STORES:
        before[row[enabled], column[enabled]] = [STORES[mode](v) for v in values[enabled].tolist()]
    else:
        cells = np.array([WIDE_STORES[mode](v) for v in values[enabled].tolist()])
        before[physical(row)[enabled], column[enabled]] = cells[:, 0]
        before[physical(row)[enabled] + 8, column[enabled]] = cells[:, 1]
    np.testing.assert_array_equal(sfpu.t["dst"], before)
    sfpu.t["lregs"][2] = values
    run(sfpu, word("SFPLOAD", lreg_ind=2, instr_mod0=mode, dest_reg_addr=48))
    assert (sfpu.t["lregs"][2] == values)[~enabled].all()
    cells = before[48 + LANE_ROW, LANE_PAIR].tolist()
    if mode in LOADS:
        wanted = [LOADS[mode](c, v) for c, v in zip(cells, values.tolist(), strict=True)]
    else:
        high = before[physical(48 + LANE_ROW), LANE_PAIR].tolist()
        low = before[physical(48 + LANE_ROW) + 8, LANE_PAIR].tolist()
        wanted = [bf16_of_cell(h) << 16 | x for h, x in zip(high, low, strict=True)]
    assert (sfpu.t["lregs"][2] == wanted)[enabled].all()
    sfpu.flags(0xFFFFFFFF)


IMMEDIATES: dict[int, Callable[[int, int], int]] = {
    0: lambda i, old: i << 16,
    1: lambda i, old: (i >> 15) << 31 | ((i >> 10 & 0x1F) + 112) << 23 | (i & 0x3FF) << 13,
    2: lambda i, old: i,
    4: lambda i, old: i - (1 << 16) & 0xFFFFFFFF if i >> 15 else i,
    8: lambda i, old: i << 16 | old & 0xFFFF,
    10: lambda i, old: old & 0xFFFF0000 | i,
}
"""V9: what SFPLOADI makes of immediate i over the old LReg value; mode 1 has no special cases."""


@pytest.mark.rule("math V9")
@pytest.mark.parametrize("mode", IMMEDIATES)
def test_every_mode_of_sfploadi_places_every_immediate(sfpu: Sfpu, mode: int) -> None:
    old = np.random.default_rng(mode).integers(0, 1 << 32, 8)
    base = word("SFPLOADI", instr_mod0=mode)
    step = word("SFPLOADI", lreg_ind=1) - word("SFPLOADI")
    for first in range(0, 1 << 16, 8):
        sfpu.t["lregs"][:8] = old[:, None]
        for register in range(8):
            assert sfpu.coprocessor.push(1, base + register * step + first + register)
        assert sfpu.coprocessor.drain(1)
        expected = [IMMEDIATES[mode](first + r, int(old[r])) for r in range(8)]
        assert sfpu.t["lregs"][:8, 0].tolist() == expected
        assert sfpu.t["lregs"][:8, 31].tolist() == expected
