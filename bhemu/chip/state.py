"""What compiled code knows of a chip: one record, beside those of its tiles."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"

from __future__ import annotations

import weakref
from typing import Any, Final

import numpy as np
from numba import types
from numba.extending import intrinsic
from numba.np.numpy_support import from_dtype

from bhemu.chip.coordinates import TENSIX_TILES
from bhemu.chip.memory import CHANNELS, PAGES
from bhemu.chip.windows import WINDOWS
from bhemu.machine.compiler import JIT
from bhemu.machine.state import TILE, TILE_TYPE

PLACES: Final = 32
"""Translated coordinates are smaller."""

CHIP: Final[np.dtype[Any]] = np.dtype(
    [
        ("address", "i8"),  # of this record
        ("tiles", "i8"),  # address of the first tile's record
        # --- time (chip/run.py) ---------------------------------------------------------------------------------------
        ("time", "i8"),  # clocks that have passed, or that of the tile which the host attends to
        ("end", "i8"),  # of the clocks that were asked for
        ("quantum", "i8"),  # clocks that tiles may run ahead of each other, at most
        ("last_message", "i8"),  # when somebody last changed something in a tile that moves
        ("current", "i8"),  # tile that the host must attend to
        ("active_count", "i8"),
        ("order", "i8", (TENSIX_TILES,)),  # the active tiles, in the order of their numbers
        ("active", "u1", (TENSIX_TILES,)),
        ("touched", "u1", (TENSIX_TILES,)),  # somebody else may have changed it since it moved
        ("waiting", "u1", (TENSIX_TILES,)),  # a NoC request has to wait for another tile: it tries again in each clock
        ("status", "u1", (TENSIX_TILES,)),  # why it stands in the midst of a clock; 0: it does not
        ("local", "i8", (TENSIX_TILES,)),  # clocks that it has completed
        ("moment", "i8", (TENSIX_TILES,)),  # round in which it stands in the midst of a clock
        # --- tiles on several threads ---------------------------------------------------------------------------------
        ("threads", "i8"),  # that take part, this one included
        ("share_begin", "i8"),  # counts the shares of work that were given out
        ("share_goal", "i8"),  # clock up to which
        ("share_count", "i8"),  # so many tiles
        ("share_next", "i8"),  # from this one on in `order`
        ("share_done", "i8"),  # shall run, and so many have
        ("share_stop", "i8"),  # no more work comes
        # --- what the host sees (chip/direct.py) ----------------------------------------------------------------------
        ("window_words", "u4", (WINDOWS, 3)),
        ("window_kind", "u1", (WINDOWS,)),  # UNKNOWN, ... of chip/direct.py
        ("window_index", "i8", (WINDOWS,)),  # tile or channel
        ("window_base", "i8", (WINDOWS,)),  # address there of the window's first byte
        ("node_kind", "u1", (PLACES, PLACES)),  # [x, y translated]
        ("node_index", "i8", (PLACES, PLACES)),
        ("zeros", "i8"),  # address of a DRAM page of zeros
        ("page", "i8", (CHANNELS, PAGES)),  # addresses of DRAM pages, 0: nobody has written it
    ],
    align=True,
)
CHIP_TYPE: Final = from_dtype(CHIP)
_TILE_BYTES: Final = TILE.itemsize

PLAIN_TILES: Final[weakref.WeakValueDictionary[int, Any]] = weakref.WeakValueDictionary()
"""Tiles by the address of the first, for plain Python."""


def new_chip(tiles: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The record of a chip with these tiles, as an array of one."""
    memory = np.zeros(1, CHIP).view(np.recarray)
    memory["address"] = memory.ctypes.data
    memory["tiles"] = tiles.ctypes.data
    if not JIT:
        PLAIN_TILES[tiles.ctypes.data] = tiles
    return memory


if JIT:

    @intrinsic
    def tile_at(typing_context, address):
        """The tile's record at an address."""

        def codegen(context, builder, signature, arguments):
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        return TILE_TYPE(types.int64), codegen

else:

    def tile_at(address):
        """The tile's record at an address."""
        first, tiles = next(
            (first, tiles) for first, tiles in PLAIN_TILES.items() if 0 <= address - first < tiles.nbytes
        )
        return tiles[(address - first) // _TILE_BYTES]
