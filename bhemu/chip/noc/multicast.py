"""Where on a NoC a multicast goes: a rectangle, or one without the quadrant that BRCST_EXCLUDE cuts off (tile N21).

The register's fields are those that tt-metal writes (`get_noc_exclude_region`); the ISA pages describe what they mean
where they describe the same fields of an L2CPU's windows. All coordinates are those of the NoC itself, untranslated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from bhemu.chip.coordinates import HEIGHT, WIDTH, Place
from bhemu.errors import Unimplemented

_STRIDES: Final = 0xFF
"""Other bits of BRCST_EXCLUDE: which tiles of a row or column are left out in turn. No source tells their order."""
_DESTINATIONS: Final = 0xFF << 24
"""Likewise: a number of destinations, which an L2CPU's window needs."""


@dataclass(frozen=True)
class Quadrant:
    """Places that a multicast leaves out.

    Attributes:
        corner: the place next to the others; is left out itself.
        rightwards, downwards: whether places with larger x, larger y are left out, or those with smaller ones.
    """

    corner: Place
    rightwards: bool
    downwards: bool

    def __contains__(self, place: Place) -> bool:
        (x, y), (corner_x, corner_y) = place, self.corner
        return (x >= corner_x if self.rightwards else x <= corner_x) and (
            y >= corner_y if self.downwards else y <= corner_y
        )


def excluded(word: int) -> Quadrant | None:
    """What BRCST_EXCLUDE leaves out; None: nothing.

    Bit 23 chooses a way through the NoC and makes no difference here.

    Raises:
        Unimplemented: bits are set whose meaning in this register no source tells.
    """
    if word & (_STRIDES | _DESTINATIONS):
        raise Unimplemented(
            f"BRCST_EXCLUDE is {word:#x}: no source tells what its bits 0 to 7 and 24 to 31 do",
            remedy="set them to 0: bits 8 to 22 can leave out a quadrant",
        )
    if not word >> 22 & 1:
        return None
    return Quadrant((word >> 8 & 63, word >> 14 & 63), bool(word >> 20 & 1), bool(word >> 21 & 1))


def places(start: Place, end: Place, without: Quadrant | None) -> Iterator[Place]:
    """Places of a rectangle, which runs in the direction of the NoC, over the edge when it begins behind its end.

    Raises:
        Unimplemented: a rectangle over the edge has a part excluded.
    """
    if without is not None and (start[0] > end[0] or start[1] > end[1]):
        raise Unimplemented(
            "BRCST_EXCLUDE with a rectangle that runs over the edge of the NoC: no source tells what is left out",
            remedy="send one multicast on each side of the edge",
        )
    for y in _span(start[1], end[1], HEIGHT):
        for x in _span(start[0], end[0], WIDTH):
            if without is None or (x, y) not in without:
                yield x, y


def _span(start: int, end: int, size: int) -> Iterator[int]:
    """From start to end, over the edge when start is behind end."""
    return iter(range(start, end + 1)) if start <= end else iter([*range(start, size), *range(end + 1)])
