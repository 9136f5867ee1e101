"""Loops over arrays: operands into register files, the very instructions, results out again.

Each loop is one entry for the compiler and reads what it is to do, the *plan*, from the first words of the private
tile's L1; operands and results lie after it. The instructions are executed by their handlers through the dispatch
table, as `Coprocessor` does, so nothing here computes: only cells are moved.

Positions in a plan count elements of `l1_u32`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.isa.registers import config
from bhemu.machine.counters import CH0_Y, PACKER, RWC_A, RWC_B, RWC_DST, RWC_FIDELITY
from bhemu.machine.dispatch import NOT_COMPILED, call_handler
from bhemu.machine.dst import LOW_HALF, bf16_of_cell, cell_of_bf16, cell_of_fp16, fp16_of_cell, high_row
from bhemu.machine.faults import DONE
from bhemu.machine.kernel import njit
from bhemu.machine.lanes import load16, load16_at, load32, store16, store16_at, store32
from bhemu.machine.types import Int, Table, TileRecord
from bhemu.tensix.frontend.run import FAULTED, NEEDS_HANDLER, STOPPED
from bhemu.tensix.prng import seed_prng

PLAN_WORDS: Final = 64
"""Words at the start of L1 that hold the plan."""

# How 16 values of a Dst row are ordered in arrays
ORDER_BF16: Final = 0
ORDER_FP16: Final = 1
ORDER_32: Final = 2
ORDER_RAW: Final = 3

SRC_BLOCK: Final = 8
"""SrcB and Dst rows of one matrix instruction start at multiples of this (math F7)."""
DEPTH: Final = 16
MATH_THREAD: Final = 1
UNPACK_THREAD: Final = 0
PACK_THREAD: Final = 2

_UNPACK_BASE: Final = config("THCON_SEC0_REG3_Base_address")


@njit
def _plan(t: TileRecord, index: Int) -> Int:
    return np.int64(t.l1_u32[index])


@njit
def _execute(t: TileRecord, table: Table, thread: Int, word: Int) -> Any:
    """Execute one word; returns what `Coprocessor` expects of its entries, STOPPED when all is well."""
    status = call_handler(table, word >> 24, t, thread, word)
    if status == DONE:
        return STOPPED
    t.fault_thread = thread
    t.fault_word = np.uint32(word)
    return NEEDS_HANDLER if status == NOT_COMPILED else FAULTED


@njit
def _physical_row(order: Int, row: Int) -> Int:
    """Row of the cells, in the 32-bit view of their high halves (rules I.3)."""
    return high_row(row) if order == ORDER_32 else row


@njit
def _write_dst(t: TileRecord, order: Int, row: Int, position: Int) -> None:
    """Sixteen values of L1 to a Dst row; exponent and mantissa change places (rules I.2)."""
    bits = load16_at(t.l1_u32, position)
    physical = _physical_row(order, row)
    if order == ORDER_32:
        store16(t.dst, physical + LOW_HALF, bits & 0xFFFF)
        bits = bits >> 16
    if order == ORDER_FP16:
        bits = cell_of_fp16(bits)
    elif order != ORDER_RAW:
        bits = cell_of_bf16(bits)
    store16(t.dst, physical, bits)
    t.dst_valid[physical] = 1


@njit
def _read_dst(t: TileRecord, order: Int, row: Int, position: Int) -> None:
    """A Dst row to sixteen values in L1."""
    physical = _physical_row(order, row)
    cells = load16(t.dst, physical)
    if order == ORDER_FP16:
        bits = fp16_of_cell(cells)
    elif order == ORDER_RAW:
        bits = cells
    else:
        bits = bf16_of_cell(cells)
    if order == ORDER_32:
        bits = (bits << 16) | load16(t.dst, physical + LOW_HALF)
    store16_at(t.l1_u32, position, bits)


@njit
def _fill_a(t: TileRecord, row: Int, position: Int) -> None:
    store16(t.srca, row, load16_at(t.l1_u32, position))


@njit
def _fill_b(t: TileRecord, row: Int, position: Int) -> None:
    store16(t.srcb, row, load16_at(t.l1_u32, position))


@njit
def _point(t: TileRecord, a: Int, b: Int, dst: Int, phase: Int) -> None:
    """Rows and fidelity phase of the next matrix instruction (math R1)."""
    t.rwc[MATH_THREAD, RWC_A] = a
    t.rwc[MATH_THREAD, RWC_B] = b
    t.rwc[MATH_THREAD, RWC_DST] = dst
    t.rwc[MATH_THREAD, RWC_FIDELITY] = phase


# --- plans of the matrix unit ----------------------------------------------------------------------------------------
P_WORD: Final = 0
P_ORDER: Final = 1
P_BLOCKS: Final = 2  # of `P_ROWS` Dst rows
P_ROWS: Final = 3
P_A: Final = 4
P_B: Final = 5
P_DST: Final = 6
P_STEPS: Final = 7  # groups of sixteen along K
P_STEPS_A_TURN: Final = 8
P_LEFT_STRIDE: Final = 9
P_PHASES: Final = 10
P_FIRST_PHASE: Final = 11  # and the three after it
P_USE_DST: Final = 11 + 4


def dot_loop(t: TileRecord, table: Table, a: Int, b: Int) -> Any:
    """Dst [blocks * rows, 16] += left [blocks * rows, 16 * steps] x right [16 * steps, 16]."""
    word, order, blocks, rows = _plan(t, P_WORD), _plan(t, P_ORDER), _plan(t, P_BLOCKS), _plan(t, P_ROWS)
    right, left, values = _plan(t, P_A), _plan(t, P_B), _plan(t, P_DST)
    steps, turn, stride = _plan(t, P_STEPS), _plan(t, P_STEPS_A_TURN), _plan(t, P_LEFT_STRIDE)
    phases = _plan(t, P_PHASES)
    for m in range(blocks):
        for i in range(rows):
            _write_dst(t, order, m * SRC_BLOCK + i, values + (m * rows + i) * 16)
    for first in range(0, steps, turn):
        count = min(turn, steps - first)
        for k in range(count * DEPTH):
            _fill_a(t, k, right + (first * DEPTH + k) * 16)
        for m in range(blocks):
            for k in range(count):
                for i in range(rows):
                    _fill_b(t, k * SRC_BLOCK + i, left + (m * rows + i) * stride + (first + k) * DEPTH)
            for p in range(phases):
                phase = _plan(t, P_FIRST_PHASE + p)
                for k in range(count):
                    _point(t, k * DEPTH, k * SRC_BLOCK, m * SRC_BLOCK, phase)
                    status = _execute(t, table, MATH_THREAD, word)
                    if status != STOPPED:
                        return status
    for m in range(blocks):
        for i in range(rows):
            _read_dst(t, order, m * SRC_BLOCK + i, values + (m * rows + i) * 16)
    return STOPPED


def elementwise_loop(t: TileRecord, table: Table, a: Int, b: Int) -> Any:
    """Dst block = or += SrcA block (+, -, *) SrcB block, for blocks of eight rows of sixteen."""
    word, order, blocks = _plan(t, P_WORD), _plan(t, P_ORDER), _plan(t, P_BLOCKS)
    position_a, position_b, values = _plan(t, P_A), _plan(t, P_B), _plan(t, P_DST)
    phases, use_dst = _plan(t, P_PHASES), _plan(t, P_USE_DST)
    for m in range(blocks):
        for i in range(SRC_BLOCK):
            offset = (m * SRC_BLOCK + i) * 16
            _fill_a(t, i, position_a + offset)
            _fill_b(t, i, position_b + offset)
            if use_dst:
                _write_dst(t, order, i, values + offset)
        for p in range(phases):
            _point(t, 0, 0, 0, _plan(t, P_FIRST_PHASE + p))
            status = _execute(t, table, MATH_THREAD, word)
            if status != STOPPED:
                return status
        for i in range(SRC_BLOCK):
            _read_dst(t, order, i, values + (m * SRC_BLOCK + i) * 16)
    return STOPPED


def pool_loop(t: TileRecord, table: Table, a: Int, b: Int) -> Any:
    """One Dst row = maximum of it and of `P_STEPS` times sixteen SrcA rows, column by column."""
    word, order, steps = _plan(t, P_WORD), _plan(t, P_ORDER), _plan(t, P_STEPS)
    right, values = _plan(t, P_A), _plan(t, P_DST)
    if _plan(t, P_USE_DST):
        _write_dst(t, order, 0, values)
    else:
        t.dst_valid[0] = 0
    for k in range(steps):
        for i in range(DEPTH):
            _fill_a(t, i, right + (k * DEPTH + i) * 16)
        _point(t, 0, 0, 0, 0)
        status = _execute(t, table, MATH_THREAD, word)
        if status != STOPPED:
            return status
    _read_dst(t, order, 0, values)
    return STOPPED


# --- plans of the vector unit ----------------------------------------------------------------------------------------
V_BLOCKS: Final = 0
V_RESULT: Final = 1  # LReg
V_OUT: Final = 2  # position of the results
V_INPUTS: Final = 3
V_WORDS: Final = 4
V_FIRST: Final = 5  # for each input its LReg and position, then the words


def vector_loop(t: TileRecord, table: Table, a: Int, b: Int) -> Any:
    """A few words for each block of 32 values; every input and the result lie in their own LRegs."""
    blocks, result, out = _plan(t, V_BLOCKS), _plan(t, V_RESULT), _plan(t, V_OUT)
    inputs, words = _plan(t, V_INPUTS), _plan(t, V_WORDS)
    for m in range(blocks):
        for i in range(inputs):
            register, position = _plan(t, V_FIRST + 2 * i), _plan(t, V_FIRST + 2 * i + 1)
            store32(t.lregs, register, load32(t.l1_u32, (position >> 5) + m))
        for i in range(words):
            status = _execute(t, table, MATH_THREAD, _plan(t, V_FIRST + 2 * inputs + i))
            if status != STOPPED:
                return status
        store32(t.l1_u32, (out >> 5) + m, load32(t.lregs, result))
    return STOPPED


SEED: Final = 0
"""Place of the seed in the plan of `seed_loop`."""


def seed_loop(t: TileRecord, table: Table, a: Int, b: Int) -> Any:
    """Generators of all lanes from a seed."""
    seed_prng(t, _plan(t, SEED))
    return STOPPED


# --- plans of the unpacker and the packer ----------------------------------------------------------------------------
U_WORD: Final = 0
U_TILES: Final = 1
U_UNIT: Final = 2  # first tile, in 16-byte units of L1
U_UNITS_A_TILE: Final = 3
U_OUT: Final = 4

UNPACK_ROWS: Final = 64
"""Rows of SrcA, all of which one UNPACR fills."""


def unpack_loop(t: TileRecord, table: Table, a: Int, b: Int) -> Any:
    """SrcA cells of tiles of 1024 datums."""
    word, tiles, unit = _plan(t, U_WORD), _plan(t, U_TILES), _plan(t, U_UNIT)
    units, out = _plan(t, U_UNITS_A_TILE), _plan(t, U_OUT)
    for m in range(tiles):
        # The unpacker adds one unit for a header that is never stored (rules I.4).
        t.config[0, _UNPACK_BASE[0]] = np.uint32(unit + m * units - 1)
        status = _execute(t, table, UNPACK_THREAD, word)
        if status != STOPPED:
            return status
        for i in range(UNPACK_ROWS):
            store16_at(t.l1_u32, out + (m * UNPACK_ROWS + i) * 16, load16(t.srca, i))
    return STOPPED


K_WORD: Final = 0
K_LAST_WORD: Final = 1
K_ORDER: Final = 2
K_ROWS: Final = 3
K_IN: Final = 4

PACK_ROWS: Final = 4
"""Dst rows of one PACR (P2)."""


def pack_loop(t: TileRecord, table: Table, a: Int, b: Int) -> Any:
    """Dst rows through the packer to one run of datums in L1."""
    word, last, order = _plan(t, K_WORD), _plan(t, K_LAST_WORD), _plan(t, K_ORDER)
    rows, values = _plan(t, K_ROWS), _plan(t, K_IN)
    for i in range(rows):
        _write_dst(t, order, i, values + i * 16)
    for row in range(0, rows, PACK_ROWS):
        t.adc[PACK_THREAD, PACKER, CH0_Y] = row
        status = _execute(t, table, PACK_THREAD, last if row + PACK_ROWS == rows else word)
        if status != STOPPED:
            return status
    return STOPPED
