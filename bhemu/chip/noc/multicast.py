"""Where on a NoC a multicast goes: a rectangle, or one without the quadrant that BRCST_EXCLUDE cuts off (tile N21).

The register's fields are those that tt-metal writes (`get_noc_exclude_region`); the ISA pages describe what they mean
where they describe the same fields of an L2CPU's windows. All coordinates are those of the NoC itself, untranslated;
a corner is x << X_LSB | y.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.chip.coordinates import HEIGHT, WIDTH, X_LSB, Y_MASK
from bhemu.machine.device_state import ROUTER_CFG_1, ROUTER_CFG_3
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Bool, Int, NocRequestRecord, TileRecord
from bhemu.tile.noc.soundness import SOUND

INCLUDE_SOURCE: Final = 1 << 17
"""Bit of CTRL: a multicast goes to its sender, too (N14)."""
# Bits of BRCST_EXCLUDE; bit 23 chooses a way through the NoC and makes no difference here
STRIDES: Final = 0xFF
"""Which tiles of a row or column are left out in turn. No source states their order."""
DESTINATIONS: Final = 0xFF << 24
"""A number of destinations, which an L2CPU's window needs."""
EXCLUDES: Final = 1 << 22
"""A quadrant is left out: from the place in bits 13:8 (x) and 19:14 (y) on, that place with it,"""
_RIGHTWARDS: Final = 1 << 20
_DOWNWARDS: Final = 1 << 21
"""to larger x and larger y, else to smaller ones."""
_COORDINATE: Final = 63

# Why a multicast is not sound, besides the reasons of tile/noc/soundness.py
READ_TO_MANY: Final = 32
CORNER: Final = 33
"""A corner is not a Tensix tile."""
UNKNOWN_BITS: Final = 34
OVER_THE_EDGE: Final = 35
"""BRCST_EXCLUDE, which sources do not describe for such a rectangle, or at all."""
BAD_NODE: Final = 37
"""The rectangle holds a node that takes no multicasts."""


@kernel
def _from(start: Int, position: Int, size: Int) -> Int:
    """Steps in the direction of the NoC, over the edge when a position is before the start."""
    return position - start if position >= start else position - start + size


@kernel
def distance_to(first: Int, x: Int, y: Int) -> Int:
    """Place in the order in which a multicast from a corner passes its rectangle, row by row."""
    return _from(first & Y_MASK, y, HEIGHT) * WIDTH + _from(first >> X_LSB, x, WIDTH)


@kernel
def runs_over_the_edge(first: Int, last: Int) -> Bool:
    """The rectangle begins after its end in some direction."""
    return (first >> X_LSB) > (last >> X_LSB) or (first & Y_MASK) > (last & Y_MASK)


@kernel
def unknown_exclusion(word: Int, first: Int, last: Int) -> Int:
    """SOUND when sources tell what BRCST_EXCLUDE leaves out of a rectangle; else why not."""
    if word & (STRIDES | DESTINATIONS):
        return np.int64(UNKNOWN_BITS)
    return np.int64(OVER_THE_EDGE if word & EXCLUDES and runs_over_the_edge(first, last) else SOUND)


@kernel
def reaches(t: TileRecord, request: NocRequestRecord, first: Int, last: Int, x: Int, y: Int) -> bool:
    """True when a multicast of a tile goes to a place: inside its rectangle, in a column and row that take multicasts.

    Which ones do is read in the sender's registers, as the official simulator does; firmware writes the same to all.
    """
    if _from(first & Y_MASK, y, HEIGHT) > _from(first & Y_MASK, last & Y_MASK, HEIGHT):
        return False
    if _from(first >> X_LSB, x, WIDTH) > _from(first >> X_LSB, last >> X_LSB, WIDTH):
        return False
    noc = request.noc
    if ((np.int64(t.niu_config[noc, ROUTER_CFG_1]) >> x) | (np.int64(t.niu_config[noc, ROUTER_CFG_3]) >> y)) & 1:
        return False
    word = np.int64(request.exclude)
    if word & EXCLUDES == 0:
        return True
    corner_x, corner_y = (word >> 8) & _COORDINATE, (word >> 14) & _COORDINATE
    in_columns = x >= corner_x if word & _RIGHTWARDS else x <= corner_x
    in_rows = y >= corner_y if word & _DOWNWARDS else y <= corner_y
    return not (in_columns and in_rows)
