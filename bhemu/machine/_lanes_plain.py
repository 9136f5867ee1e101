"""Lanes as NumPy arrays, for running the units uncompiled; see bhemu/machine/lanes.py for what they mean.

Values are int32 (or int64 after `widen`) arrays, masks are bool arrays; NumPy's operators wrap in silence as the
lanes do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Lanes = np.ndarray[Any, Any]


def _scalar(value: Any, like: Any) -> Any:
    return like.dtype.type(np.int64(value)) if np.ndim(value) == 0 else value


def where(mask: Lanes, a: Any, b: Any) -> Lanes:
    if np.ndim(a) == 0 and np.ndim(b) == 0:
        return np.where(mask, np.int32(a), np.int32(b))
    like = a if np.ndim(a) else b
    return np.where(mask, _scalar(a, like), _scalar(b, like))


def shift_right_logical(a: Any, b: Any) -> Lanes:
    like = a if np.ndim(a) else b
    unsigned = np.dtype(f"u{like.dtype.itemsize}")
    left = np.asarray(a, like.dtype).view(unsigned)
    result: Lanes = (left >> np.asarray(b, like.dtype).view(unsigned)).view(like.dtype)
    return result


def minimum(a: Any, b: Any) -> Lanes:
    like = a if np.ndim(a) else b
    return np.minimum(a, b, dtype=like.dtype)  # type: ignore[no-any-return]


def maximum(a: Any, b: Any) -> Lanes:
    like = a if np.ndim(a) else b
    return np.maximum(a, b, dtype=like.dtype)  # type: ignore[no-any-return]


def less_unsigned(a: Any, b: Any) -> Lanes:
    like = a if np.ndim(a) else b
    unsigned = np.dtype(f"u{like.dtype.itemsize}")
    return np.asarray(a, like.dtype).view(unsigned) < np.asarray(b, like.dtype).view(unsigned)  # type: ignore[no-any-return]


def _each(function: Any, a: Lanes) -> Lanes:
    bits = a.dtype.itemsize * 8
    return np.array([function(int(x) & ((1 << bits) - 1), bits) for x in a], a.dtype)


def leading_zeros(a: Lanes) -> Lanes:
    return _each(lambda x, bits: bits - x.bit_length(), a)


def population_count(a: Lanes) -> Lanes:
    return _each(lambda x, bits: x.bit_count(), a)


def widen(a: Lanes) -> Lanes:
    return a.astype(np.int64)


def widen_unsigned(a: Lanes) -> Lanes:
    return a.view(np.uint32).astype(np.int64)


def narrow(a: Lanes) -> Lanes:
    return a.astype(np.int32)


def as_integers(mask: Lanes) -> Lanes:
    return mask.astype(np.int32)


def as_halves(a: Lanes) -> Lanes:
    return np.ascontiguousarray(a).view("<i2")


def as_words(a: Lanes) -> Lanes:
    return np.ascontiguousarray(a).view("<i4")


def _wrap32(value: Any) -> np.int32:
    return np.int64(value).astype(np.int32)


def splat16(value: Any) -> Lanes:
    return np.full(16, _wrap32(value), np.int32)


def splat32(value: Any) -> Lanes:
    return np.full(32, _wrap32(value), np.int32)


def iota16() -> Lanes:
    return np.arange(16, dtype=np.int32)


def iota32() -> Lanes:
    return np.arange(32, dtype=np.int32)


def _rows(array: Lanes, count: int) -> Lanes:
    return array.reshape(-1, count)


def _load(array: Lanes, row: Any, count: int) -> Lanes:
    content = _rows(array, count)[row]
    return content.astype(np.uint32).view(np.int32) if content.dtype.kind == "u" else content.astype(np.int32)


def load16(array: Lanes, row: Any) -> Lanes:
    return _load(array, row, 16)


def load32(array: Lanes, row: Any) -> Lanes:
    return _load(array, row, 32)


def load16_at(array: Lanes, position: Any) -> Lanes:
    return _load(array.reshape(-1)[int(position) : int(position) + 16], 0, 16)


def store16(array: Lanes, row: Any, value: Lanes) -> None:
    _rows(array, 16)[row] = value.astype(array.dtype)


def store32(array: Lanes, row: Any, value: Lanes) -> None:
    _rows(array, 32)[row] = value.astype(array.dtype)


def _mask(bits: Any, count: int) -> Lanes:
    return (int(bits) >> np.arange(count)) & 1 == 1  # type: ignore[no-any-return]


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
    return a[np.array(pattern)]  # type: ignore[no-any-return]


def gather(table: Lanes, indices: Lanes) -> Lanes:
    return table[indices].astype(np.int64).astype(np.int32)  # type: ignore[no-any-return]
