"""Which links a packet passes: the text of the timed mode's routes (timed/routes.py), executed for the host."""

from __future__ import annotations

import functools
from types import FunctionType
from typing import Any, Final

from bhemu.chip.coordinates import HEIGHT, WIDTH, Place
from bhemu.chip.state import X_LSB
from bhemu.machine.kernel import plain
from bhemu.timed import net_layout as at
from bhemu.timed import routes

Link = tuple[Place, Place]
"""Physical places of the router that a link leaves, and of the one that it leads to."""


def _taken(net: list[int], place: int, begin: int, busy: int) -> int:
    """Note what a packet takes, in the place of the kernel that lets it wait there."""
    net.append(place - at.LINK)
    return 0


_TEXT: Final = plain(routes._travel)
_travel: Final[Any] = FunctionType(
    _TEXT.__code__, _TEXT.__globals__ | {"_taken": _taken, "load_i64": lambda net, place: 0}
)
_raw_node: Final = plain(routes.raw_node)


def _node(place: Place, noc: int) -> int:
    return int(_raw_node(place[0] << X_LSB | place[1], noc))


def _place(x: int, y: int, noc: int) -> Place:
    """Physical place of a raw one."""
    return (WIDTH - 1 - x, HEIGHT - 1 - y) if noc else (x, y)


@functools.cache
def links_between(noc: int, first: Place, last: Place) -> tuple[Link, ...]:
    """The links that a packet from a place to another passes, in order; none from a place to itself.

    Args:
        noc: 0 or 1.
        first, last: physical places.
    """
    passed: list[int] = []
    _travel(passed, noc, _node(first, noc), _node(last, noc), 0, 0)
    found = []
    for link in passed:
        node, down = divmod(link - 2 * noc * at.NODES, 2)
        x, y = node % WIDTH, node // WIDTH
        end = (x, (y + 1) % HEIGHT) if down else ((x + 1) % WIDTH, y)
        found.append((_place(x, y, noc), _place(*end, noc)))
    return tuple(found)
