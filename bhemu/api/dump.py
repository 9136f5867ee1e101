"""The whole state of a tile as one `.npz` file: every register file, memory and queue by its name in the record."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np

from bhemu.api.tile import Tile
from bhemu.tile.cores import Cores

_NO_STATE = ("handlers",)


def dump_state(tile: Tile) -> bytes:
    """The state as the bytes of an `.npz` file.

    Fields are those of bhemu/machine/state.py; what belongs to a unit is called `pack.name`. Cores are in the order B,
    T0, T1, T2, NC, threads unpack, math, pack.
    """
    return dump_cores(tile.cores)


def dump_cores(cores: Cores) -> bytes:
    """The state of the tile of these cores; see `dump_state`."""
    cores.settle()
    record = cores.record
    arrays = dict(_arrays(record, ""))
    stream = io.BytesIO()
    np.savez_compressed(stream, allow_pickle=False, **arrays)
    return stream.getvalue()


def _arrays(section: Any, prefix: str) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Name and content of each field, those inside of sections included; views of other fields' bytes are left out."""
    end = 0
    for name in section.dtype.names:
        kind, offset = section.dtype.fields[name][:2]
        if offset < end or name in _NO_STATE:
            continue
        end = offset + kind.itemsize
        value = section[name]
        if value.dtype.names:
            yield from _arrays(value, f"{prefix}{name}.")
        else:
            yield prefix + name, np.asarray(value)
