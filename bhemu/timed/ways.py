"""Which links a packet passes, by the kernels of the timed mode's routes (timed/routes.py), for the host."""

from __future__ import annotations

import functools
from typing import Final

from bhemu.chip.coordinates import HEIGHT, WIDTH, Place
from bhemu.chip.state import X_LSB
from bhemu.machine.kernel import plain
from bhemu.timed import routes

Link = tuple[Place, Place]
"""Physical places of the router that a link leaves, and of the one that it leads to."""


_goes_along_row: Final = plain(routes.goes_along_row)
_next_node: Final = plain(routes.next_node)
_raw_node: Final = plain(routes.raw_node)


def _node(place: Place, noc: int) -> int:
    return int(_raw_node(place[0] << X_LSB | place[1], noc))


def _place(node: int, noc: int) -> Place:
    """Physical place of a raw node."""
    x, y = node % WIDTH, node // WIDTH
    return (WIDTH - 1 - x, HEIGHT - 1 - y) if noc else (x, y)


@functools.cache
def links_between(noc: int, first: Place, last: Place) -> tuple[Link, ...]:
    """The links that a packet from a place to another passes, in order; none from a place to itself.

    Args:
        noc: 0 or 1.
        first, last: physical places.
    """
    node, end = _node(first, noc), _node(last, noc)
    found = []
    while node != end:
        after = int(_next_node(node, _goes_along_row(noc, node, end)))
        found.append((_place(node, noc), _place(after, noc)))
        node = after
    return tuple(found)
