"""Lanes as NumPy arrays, for running the units uncompiled; see bhemu/machine/lanes.py for what they mean.

Values are int32 (or int64 after `widen`) arrays, masks are bool arrays; NumPy's operators wrap without a warning, as
the lanes do. The arrays are `LaneArray`s, which truncate a scalar operand to the width of the lanes, as compiled lanes
do; plain NumPy would widen the lanes to an `np.int64` operand, and refuse a Python integer such as 0x80000000.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bhemu.machine.types import Lanes, Table


class LaneArray(np.ndarray[Any, Any]):
    """Lanes: an array whose width no operand changes."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        kind = next(x.dtype for x in inputs if np.ndim(x))
        plain = [np.asarray(x) if np.ndim(x) else _truncated(x, kind) for x in inputs]
        result = getattr(ufunc, method)(*plain, **options)
        return result.view(LaneArray) if isinstance(result, np.ndarray) else result


def _truncated(value: Any, kind: np.dtype[Any]) -> Any:
    return np.int64(value).astype(kind)


def _lanes(values: Lanes) -> Lanes:
    return values.view(LaneArray)


def _scalar(value: Any, like: Any) -> Any:
    return _truncated(value, like.dtype) if np.ndim(value) == 0 else value


def where(mask: Lanes, a: Any, b: Any) -> Lanes:
    if np.ndim(a) == 0 and np.ndim(b) == 0:
        return _lanes(np.where(mask, _wrap32(a), _wrap32(b)))
    like = a if np.ndim(a) else b
    return _lanes(np.where(mask, _scalar(a, like), _scalar(b, like)))


def shift_right_logical(a: Any, b: Any) -> Lanes:
    like = a if np.ndim(a) else b
    unsigned = np.dtype(f"u{like.dtype.itemsize}")
    left = np.asarray(_scalar(a, like)).view(unsigned)
    return _lanes((left >> np.asarray(_scalar(b, like)).view(unsigned)).view(like.dtype))


def minimum(a: Any, b: Any) -> Lanes:
    like = a if np.ndim(a) else b
    return np.minimum(_scalar(a, like), _scalar(b, like))


def maximum(a: Any, b: Any) -> Lanes:
    like = a if np.ndim(a) else b
    return np.maximum(_scalar(a, like), _scalar(b, like))


def less_unsigned(a: Any, b: Any) -> Lanes:
    like = a if np.ndim(a) else b
    unsigned = np.dtype(f"u{like.dtype.itemsize}")
    left, right = np.asarray(_scalar(a, like)).view(unsigned), np.asarray(_scalar(b, like)).view(unsigned)
    return _lanes(left < right)


def add_floats(a: Lanes, b: Lanes) -> Lanes:
    kind = f"f{a.dtype.itemsize}"
    with np.errstate(all="ignore"):
        return (a.view(kind) + b.view(kind)).view(a.dtype)


def to_floats(value: Lanes) -> Lanes:
    return _lanes(value.astype("f4").view("i4"))


def multiply_add_floats(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    with np.errstate(all="ignore"):
        product = np.asarray(a).view("f4").astype("f8") * np.asarray(b).view("f4")  # exact
        term = np.asarray(c).view("f4").astype("f8")
        total = product + term
        # What the sum in binary64 lost. Where that is not zero, the sum is made odd: rounded once more, it then is what
        # one rounding gives.
        part = total - product
        lost = (product - (total - part)) + (term - part)
        bits = total.view("i8")
        inexact = np.isfinite(total) & (lost != 0)
        toward_zero = inexact & ((lost < 0) == (total > 0))
        odd = (bits - toward_zero) | inexact
        return _lanes(odd.view("f8").astype("f4").view("i4"))


def _each(function: Any, a: Lanes) -> Lanes:
    bits = a.dtype.itemsize * 8
    return _lanes(np.array([function(int(x) & ((1 << bits) - 1), bits) for x in a], a.dtype))


def leading_zeros(a: Lanes) -> Lanes:
    return _each(lambda x, bits: bits - x.bit_length(), a)


def population_count(a: Lanes) -> Lanes:
    return _each(lambda x, bits: x.bit_count(), a)


def widen(a: Lanes) -> Lanes:
    return a.astype(np.int64)


def widen_unsigned(a: Lanes) -> Lanes:
    return np.asarray(a).view(np.uint32).astype(np.int64).view(LaneArray)


def narrow(a: Lanes) -> Lanes:
    return a.astype(np.int32)


def as_integers(mask: Lanes) -> Lanes:
    return mask.astype(np.int32)


def as_halves(a: Lanes) -> Lanes:
    return np.ascontiguousarray(a).view("<i2")


def as_words(a: Lanes) -> Lanes:
    return np.ascontiguousarray(a).view("<i4")


def pack_rows(a: Lanes, b: Lanes) -> Lanes:
    return np.concatenate([as_halves(a)[::2], as_halves(b)[::2]])


def pack_high_rows(a: Lanes, b: Lanes) -> Lanes:
    return np.concatenate([as_halves(a)[1::2], as_halves(b)[1::2]])


def quads_of_rows(pair: Lanes) -> Lanes:
    return np.ascontiguousarray(pair.reshape(2, 4, 4).transpose(1, 0, 2)).reshape(32)


def pack_quads(a: Lanes, b: Lanes) -> Lanes:
    return quads_of_rows(pack_rows(a, b))


def pack_high_quads(a: Lanes, b: Lanes) -> Lanes:
    return quads_of_rows(pack_high_rows(a, b))


def _row_words(low: Any, high: Lanes, row: int) -> Lanes:
    pairs = [np.broadcast_to(_scalar(low, high), 32), high]
    halves = np.stack([pair.reshape(4, 2, 4)[:, row].reshape(16) for pair in pairs], axis=1)
    return as_words(halves.reshape(32).view(LaneArray))


def first_row_words(low: Any, high: Lanes) -> Lanes:
    return _row_words(low, high, 0)


def second_row_words(low: Any, high: Lanes) -> Lanes:
    return _row_words(low, high, 1)


def subtract_floats(a: Lanes, b: Lanes) -> Lanes:
    kind = f"f{a.dtype.itemsize}"
    with np.errstate(all="ignore"):
        return (a.view(kind) - b.view(kind)).view(a.dtype)


def opaque(a: Lanes) -> Lanes:
    return a


def load_row_pair(array: Lanes, row: Any) -> Lanes:
    return _rows(array, 16)[row : row + 2].reshape(32).view(np.int16).copy()


def store_row_pair(array: Lanes, row: Any, value: Lanes) -> None:
    _rows(array, 16)[row : row + 2] = value.view(array.dtype).reshape(2, 16)


def _wrap32(value: Any) -> np.int32:
    return np.int64(value).astype(np.int32)


def splat16(value: Any) -> Lanes:
    return _lanes(np.full(16, _wrap32(value), np.int32))


def splat32(value: Any) -> Lanes:
    return _lanes(np.full(32, _wrap32(value), np.int32))


def iota16() -> Lanes:
    return _lanes(np.arange(16, dtype=np.int32))


def iota32() -> Lanes:
    return _lanes(np.arange(32, dtype=np.int32))


def _rows(array: Lanes, count: int) -> Lanes:
    return array.reshape(-1, count)


def _load(array: Lanes, row: Any, count: int) -> Lanes:
    content = _rows(array, count)[row]
    return _lanes(content.astype(np.uint32).view(np.int32) if content.dtype.kind == "u" else content.astype(np.int32))


def load16(array: Lanes, row: Any) -> Lanes:
    return _load(array, row, 16)


def load32(array: Lanes, row: Any) -> Lanes:
    return _load(array, row, 32)


def load16_at(array: Lanes, position: Any) -> Lanes:
    return _load(array.reshape(-1)[int(position) : int(position) + 16], 0, 16)


def store16(array: Lanes, row: Any, value: Lanes) -> None:
    _rows(array, 16)[row] = value.astype(array.dtype)


def store16_at(array: Lanes, position: Any, value: Lanes) -> None:
    array.reshape(-1)[position : position + 16] = value.astype(array.dtype)


def store32(array: Lanes, row: Any, value: Lanes) -> None:
    _rows(array, 32)[row] = value.astype(array.dtype)


def _mask(bits: Any, count: int) -> Lanes:
    return _lanes((int(bits) >> np.arange(count)) & 1 == 1)


def mask16(bits: Any) -> Lanes:
    return _mask(bits, 16)


def mask32(bits: Any) -> Lanes:
    return _mask(bits, 32)


def mask_bits(mask: Lanes) -> np.int64:
    return np.int64(sum(1 << i for i, on in enumerate(mask) if on))


def horizontal_sum(a: Lanes) -> np.int64:
    return np.int64(a.sum(dtype=a.dtype))


def horizontal_maximum(a: Lanes) -> np.int64:
    return np.int64(a.max())


def horizontal_minimum(a: Lanes) -> np.int64:
    return np.int64(a.min())


def lane(a: Lanes, index: Any) -> np.int64:
    return np.int64(a[index])


def shuffle(a: Lanes, pattern: tuple[int, ...]) -> Lanes:
    return a[np.array(pattern)]


def gather(table: Table, indices: Lanes) -> Lanes:
    return _lanes(table[indices].astype(np.int64).astype(np.int32))
