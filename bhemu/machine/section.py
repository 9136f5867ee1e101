"""Layout of a unit's part of the state record: `t.pack`, `t.unpack`, `t.matrix`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

Fields = Sequence[tuple[str, "str | np.dtype[Any]", tuple[int, ...]]]
"""(name, type, shape) of fields; a shape of () is a scalar."""
Views = Sequence[tuple[str, str, str, tuple[int, ...]]]
"""(name, of, type, shape): the bytes from the beginning of field `of` on, under another name."""

LINE: Final = 64
"""Bytes of a line of the host's cache."""


def section(fields: Fields, views: Views = (), begins: Mapping[str, tuple[int, int]] | None = None) -> np.dtype[Any]:
    """The dtype of a unit's state.

    Rows of lanes, and what is larger, begin at a multiple of 64 bytes: a vector register then fits in a cache line.
    Without the compiler a field is an attribute of a NumPy scalar, whose own attributes would hide it: such a name is
    refused with RuntimeError.

    Args:
        fields: in the order in which they lie in memory.
        views: other names of their bytes.
        begins: by name, (m, n): a field's offset is a multiple of m, plus n.
    """
    names: list[str] = []
    formats: list[np.dtype[Any]] = []
    offsets: list[int] = []
    end = 0
    for name, kind, shape in fields:
        dtype = np.dtype((kind, shape)) if shape else np.dtype(kind)
        alignment = LINE if dtype.itemsize >= LINE else np.dtype(kind).alignment
        multiple, more = (begins or {}).get(name, (alignment, 0))
        offsets.append(-((more - end) // multiple) * multiple + more)
        end = offsets[-1] + dtype.itemsize
        names.append(name)
        formats.append(dtype)
    for name, of, kind, shape in views:
        offsets.append(offsets[names.index(of)])
        names.append(name)
        formats.append(np.dtype((kind, shape)))
    if hidden := set(names) & set(dir(np.record)):
        raise RuntimeError(f"fields of a unit's state need other names: {sorted(hidden)}")
    itemsize = -(-end // LINE) * LINE
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": itemsize})
