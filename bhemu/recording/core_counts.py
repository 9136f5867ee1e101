"""Taking the counts of instructions out of a recorder's buffer: most words of L1 have none."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import bhemu.recording.core_columns as column
from bhemu.machine.agents import CORES
from bhemu.machine.buffer_memory import load_i64, store_i64
from bhemu.machine.codegen import JIT
from bhemu.machine.compiler import Entry, compile_entry
from bhemu.machine.types import AnyInt, Int, LogAddress, TileRecord

Array = np.ndarray[Any, Any]


def take_counts_entry(t: TileRecord, log: LogAddress, counts: LogAddress, clears: Int) -> AnyInt:
    """Write a row for each word of L1 with counts; returns how many.

    Args:
        log: the buffer.
        counts: gets the rows.
        clears: the buffer's counts become 0.
    """
    found: Int = np.int64(0)
    for core in range(CORES):
        block = column.CORE_BLOCKS + core * column.CORE_BLOCK
        for word in range(load_i64(log, block + column.LOW), load_i64(log, block + column.HIGH)):
            at = column.COUNTS + 2 * (core * column.WORDS + word)
            times = load_i64(log, at)
            if times == 0:
                continue
            row = found * column.COUNT_COLUMNS
            store_i64(counts, row, core)
            store_i64(counts, row + 1, word)
            store_i64(counts, row + 2, times)
            store_i64(counts, row + 3, load_i64(log, at + 1))
            found += 1
            if clears:
                store_i64(log, at, 0)
                store_i64(log, at + 1, 0)
    return found


@cache
def taking() -> Entry:
    """The compiled function."""
    return compile_entry("take_counts", take_counts_entry, arguments=3)


def take_counts(buffer: Array, *, clears: bool) -> Array:
    """What a recorder has counted.

    Args:
        buffer: of the recorder.
        clears: its counts become 0.

    Returns:
        int64 [n, 4]: core, word of L1, times executed, cycles.
    """
    blocks = buffer[column.CORE_BLOCKS : column.FIRST_ROW].reshape(CORES, column.CORE_BLOCK)
    words = int(np.maximum(blocks[:, column.HIGH] - blocks[:, column.LOW], 0).sum())
    rows = np.empty(words * column.COUNT_COLUMNS, np.int64)
    log, counts = (buffer.ctypes.data, rows.ctypes.data) if JIT else (buffer, rows)
    found = int(taking().call(0, log, counts, int(clears)))
    return rows[: found * column.COUNT_COLUMNS].reshape(found, column.COUNT_COLUMNS).copy()
