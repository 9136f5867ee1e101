"""The whole state of a tile as one `.npz` file: every register file, memory and queue by its name in the record."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from bhemu.api.tile import Tile
from bhemu.tile.cores import Cores

_VIEWS = ("l1_u16", "l1_u32", "dst_u32", "dst_valid_u32", "core_ram_u16", "core_ram_u32")
"""Fields that show the bytes of others."""
_NO_STATE = ("handlers",)


def dump_state(tile: Tile) -> bytes:
    """The state as the bytes of an `.npz` file.

    Fields are those of bhemu/machine/state.py; a nested field is called `pack.name`. Cores are in the order B, T0, T1,
    T2, NC, threads unpack, math, pack.
    """
    return dump_cores(tile.cores)


def dump_cores(cores: Cores) -> bytes:
    """The state of the tile of these cores; see `dump_state`."""
    cores.settle()
    record = cores.record
    arrays: dict[str, Any] = {}
    for name in record.dtype.names:
        if name in _VIEWS or name in _NO_STATE:
            continue
        value = record[name]
        if getattr(value, "dtype", None) is not None and value.dtype.names:
            arrays |= {f"{name}.{inner}": np.asarray(value[inner]) for inner in value.dtype.names}
        else:
            arrays[name] = np.asarray(value)
    stream = io.BytesIO()
    np.savez_compressed(stream, allow_pickle=False, **arrays)
    return stream.getvalue()
