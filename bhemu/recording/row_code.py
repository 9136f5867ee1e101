"""Rows of a recording as few bytes: what a row is expected to be after the one before is not written.

A row follows the last one of its *group* (core, or thread). When a row with the same *keys* (an instruction at its
place) was followed by another one before in its group, the same is expected now: counters grow as they grew then, and
other columns have the values that they had then. For each row there is a mask of its columns that are different, its
group in the mask's highest bits, and for each such column the difference as a number of as many bytes as it needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np

import bhemu.recording.core_columns as core_column
import bhemu.recording.log as column
from bhemu.machine.buffer_memory import load_i64, load_u8, store_i64, store_u8
from bhemu.machine.codegen import JIT
from bhemu.machine.compiler import Entry, compile_entry
from bhemu.machine.kernel import kernel
from bhemu.machine.types import AnyInt, Int, LogAddress, TileRecord

Array = np.ndarray[Any, Any]

_GROUPS: Final = 8
_PLACES: Final = 1 << 12
"""Keys that are told apart."""
_MOST_BYTES: Final = 10
"""Of a number."""
_DAMAGED: Final = -1
"""What the compiled function returns for bytes that are not those of so many rows."""

# What compiled code gets beside rows and code: `_plan`
_COLUMNS: Final = 0
_GROUP: Final = 1
_KEY: Final = 2
_SECOND_KEY: Final = 3
_COUNTERS: Final = 4
"""Mask of columns."""
_COUNT: Final = 5
"""Rows."""
_BYTES: Final = 6
"""Bytes of the code that is read."""
_LAST: Final = 7
"""[group]: number of its last row; -1: none."""
_BEFORE: Final = _LAST + _GROUPS
"""[place of keys]: the last row with these keys; -1: none."""
_AFTER: Final = _BEFORE + _PLACES
"""[place of keys]: the row that followed it in its group."""
_SIZE: Final = _AFTER + _PLACES


@dataclass(frozen=True)
class Form:
    """How rows of a kind are written.

    Attributes:
        columns: of a row.
        group: column whose three lowest bits are the group.
        keys: columns that say which instruction it is.
        counters: columns that grow.
    """

    columns: int
    group: int
    keys: tuple[int, int]
    counters: tuple[int, ...]


FORMS: Final = {
    "rows": Form(
        core_column.COLUMNS,
        core_column.WHO,
        (core_column.CODE, core_column.CODE),
        (core_column.ROUND, core_column.TENSIX_ROWS, core_column.DETAIL),
    ),
    "tensix": Form(
        column.COLUMNS,
        column.THREAD,
        (column.WORD, column.LINE),
        (column.CLOCK, column.PUSH, column.L1_BEGIN, column.L1_END),
    ),
    "counts": Form(core_column.COUNT_COLUMNS, 0, (1, 1), ()),
}
"""Of arrays by their names in a frame (parts.py)."""

if JIT:

    @kernel(forceinline=True)
    def _wrapped(value: Int) -> Int:
        return value

else:

    def _wrapped(value: Int) -> Int:
        """As 64 bits with a sign, which compiled code has anyway."""
        return (int(value) + (1 << 63)) % (1 << 64) - (1 << 63)


@kernel
def _place(plan: LogAddress, rows: LogAddress, row: Int, group: Int) -> AnyInt:
    """Place of a row's keys."""
    at = row * load_i64(plan, _COLUMNS)
    first = load_i64(rows, at + load_i64(plan, _KEY))
    second = load_i64(rows, at + load_i64(plan, _SECOND_KEY))
    last_bits = _PLACES - 1
    return (((first ^ (first >> 11)) & last_bits) + 5 * (second & last_bits) + 509 * group) & last_bits


@kernel
def _expected(plan: LogAddress, rows: LogAddress, last: Int, before: Int, after: Int, j: Int) -> AnyInt:
    """What column j is expected to be.

    Args:
        last: row before in the group; -1: none.
        before, after: a row with the same keys, and what followed it; -1: none.
    """
    columns = load_i64(plan, _COLUMNS)
    if last < 0:
        return np.int64(0)
    if after < 0:
        return load_i64(rows, last * columns + j)
    value = load_i64(rows, after * columns + j)
    if (load_i64(plan, _COUNTERS) >> j) & 1:
        value = _wrapped(load_i64(rows, last * columns + j) + value - load_i64(rows, before * columns + j))
    return value


@kernel
def _follows(plan: LogAddress, rows: LogAddress, row: Int, group: Int, place: Int) -> None:
    """A row has been written or read."""
    last = load_i64(plan, _LAST + group)
    if last >= 0:
        store_i64(plan, _BEFORE + place, last)
        store_i64(plan, _AFTER + place, row)
    store_i64(plan, _LAST + group, row)


def encode_rows_entry(t: TileRecord, plan: LogAddress, rows: LogAddress, code: LogAddress) -> AnyInt:
    """Write rows as bytes; returns how many bytes."""
    columns = load_i64(plan, _COLUMNS)
    masks = (columns + 3 + 7) >> 3
    end: Int = np.int64(0)
    for row in range(load_i64(plan, _COUNT)):
        group = load_i64(rows, row * columns + load_i64(plan, _GROUP)) & 7
        last = load_i64(plan, _LAST + group)
        place = _place(plan, rows, last, group) if last >= 0 else np.int64(0)
        before, after = load_i64(plan, _BEFORE + place), load_i64(plan, _AFTER + place)
        start = end
        end += masks
        mask: Int = np.int64(group) << (8 * masks - 3)
        for j in range(columns):
            value = load_i64(rows, row * columns + j)
            wrong = _wrapped(value - _expected(plan, rows, last, before, after, j))
            if wrong == 0:
                continue
            mask |= np.int64(1) << j
            left: Int = _wrapped((wrong << 1) ^ (wrong >> 63))
            while left & ~0x7F:
                store_u8(code, end, left & 0x7F | 0x80)
                left = (left >> 7) & ((1 << 57) - 1)
                end += 1
            store_u8(code, end, left)
            end += 1
        for i in range(masks):
            store_u8(code, start + i, (mask >> (8 * i)) & 0xFF)
        _follows(plan, rows, row, group, place)
    return end


def decode_rows_entry(t: TileRecord, plan: LogAddress, rows: LogAddress, code: LogAddress) -> AnyInt:
    """Read rows from bytes; returns how many bytes, or _DAMAGED when there are fewer than the rows need."""
    columns = load_i64(plan, _COLUMNS)
    size = load_i64(plan, _BYTES)
    masks = (columns + 3 + 7) >> 3
    end: Int = np.int64(0)
    for row in range(load_i64(plan, _COUNT)):
        if end + masks > size:
            return np.int64(_DAMAGED)
        mask: Int = np.int64(0)
        for i in range(masks):
            mask |= load_u8(code, end + i) << (8 * i)
        end += masks
        group = mask >> (8 * masks - 3)
        last = load_i64(plan, _LAST + group)
        place = _place(plan, rows, last, group) if last >= 0 else np.int64(0)
        before, after = load_i64(plan, _BEFORE + place), load_i64(plan, _AFTER + place)
        for j in range(columns):
            wrong: Int = np.int64(0)
            if (mask >> j) & 1:
                shift: Int = np.int64(0)
                byte: Int = np.int64(0x80)
                while byte & 0x80:
                    if end >= size or shift >= 7 * _MOST_BYTES:
                        return np.int64(_DAMAGED)
                    byte = load_u8(code, end)
                    wrong |= (byte & 0x7F) << shift
                    shift += 7
                    end += 1
                wrong = _wrapped(((wrong >> 1) & ((1 << 63) - 1)) ^ -(wrong & 1))
            value = _wrapped(wrong + _expected(plan, rows, last, before, after, j))
            store_i64(rows, row * columns + j, value)
        _follows(plan, rows, row, group, place)
    return end


@cache
def coding() -> tuple[Entry, Entry]:
    """The compiled functions."""
    return (
        compile_entry("encode_rows", encode_rows_entry, arguments=3),
        compile_entry("decode_rows", decode_rows_entry, arguments=3),
    )


def _call(entry: Entry, form: Form, rows: Array, code: Array, count: int) -> int:
    plan = np.full(_SIZE, -1, np.int64)
    plan[:_LAST] = form.columns, form.group, *form.keys, sum(1 << j for j in form.counters), count, len(code)
    return int(entry.call(0, *(array.ctypes.data if JIT else array for array in (plan, rows, code))))


def encoded(form: Form, rows: Array) -> Array:
    """Rows as bytes.

    Args:
        form: of the rows.
        rows: int64 [n, columns].

    Returns:
        uint8 [bytes].
    """
    room = len(rows) * ((form.columns + 10) // 8 + _MOST_BYTES * form.columns)
    code = np.empty(room, np.uint8)
    size = _call(coding()[0], form, np.ascontiguousarray(rows).reshape(-1), code, len(rows))
    return code[:size]


def decoded(form: Form, code: Array, count: int) -> Array:
    """Rows from bytes, the inverse of `encoded`.

    Args:
        form: of the rows.
        code: uint8 [bytes].
        count: of rows.

    Returns:
        int64 [count, columns].

    Raises:
        ValueError: these are not the bytes of so many rows.
    """
    least = (form.columns + 10) // 8
    if not 0 <= count * least <= len(code):
        raise ValueError(f"{len(code)} bytes are not those of {count} rows")
    rows = np.zeros(count * form.columns, np.int64)
    if _call(coding()[1], form, rows, code, count) != len(code):
        raise ValueError(f"{len(code)} bytes are not those of {count} rows")
    return rows.reshape(count, form.columns)
