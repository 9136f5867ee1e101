"""Which links packets pass in the timed mode (timed/routes.py, trees.py), for the host."""

from __future__ import annotations

import functools
from itertools import pairwise
from typing import Final

from bhemu.chip.coordinates import HEIGHT, WIDTH, X_LSB, Place
from bhemu.machine.kernel import plain
from bhemu.timed import routes, trees

Link = tuple[Place, Place]
"""Physical places of the router that a link leaves, and of the one that it leads to."""


_goes_along_row: Final = plain(routes.goes_along_row)
_next_node: Final = plain(routes.next_node)
_raw_node: Final = plain(routes.raw_node)
_along: Final = plain(trees.along)


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


def _over(ends: list[int], size: int) -> tuple[list[int], list[int]]:
    """Positions of a ring that are passed from one on, up to the end of a range; those of the range among them."""
    position, first, last = ends
    count = int(_along(first, last, size))
    inside = int(_along(first, position, size)) <= count
    hops = (count if position == first else size - 1) if inside else int(_along(position, first, size)) + count
    passed = [(position + i) % size for i in range(hops + 1)]
    return passed, [one for one in passed if int(_along(first, one, size)) <= count]


@functools.cache
def links_of_multicast(noc: int, own: Place, first: Place, last: Place, by_column: bool) -> tuple[Link, ...]:
    """The links that a multicast passes, each once: its way to the rectangle, and its branches there (timed/trees.py).

    Args:
        noc: 0 or 1.
        own: physical place of the sender.
        first, last: physical places of the corner at which the rectangle begins in the direction of the NoC, and of
            the opposite one.
        by_column: it goes along a column to its rectangle, and from node to node there along columns.
    """
    nodes = [_node(place, noc) for place in (own, first, last)]
    columns = _over([node % WIDTH for node in nodes], WIDTH)
    rows = _over([node // WIDTH for node in nodes], HEIGHT)
    (passed, branch), (lines, starts) = (rows, columns) if by_column else (columns, rows)
    inside = branch[0] == passed[0]
    way = [passed[0]] if inside else passed[: passed.index(branch[0]) + 1]
    branch = passed if inside else branch
    steps = [((a, lines[0]), (b, lines[0])) for a, b in pairwise(way)]
    steps += [((way[-1], a), (way[-1], b)) for a, b in pairwise(lines)]
    steps += [((a, line), (b, line)) for line in starts for a, b in pairwise(branch)]

    def place(at: tuple[int, int]) -> Place:
        x, y = reversed(at) if by_column else at
        return _place(x + WIDTH * y, noc)

    return tuple((place(a), place(b)) for a, b in steps)
