"""The links of a multicast: one way to its rectangle, then branches, which are reserved as a whole before data leave.

A multicast goes along its major axis to the rectangle, along the other one through it, and from each node there along
the major axis again; from within the rectangle that leads over the edges of the torus (ISA, routing paths). All its
links, and the interfaces of its receivers, pass its data at the same time, so the one that is free last decides when
they may leave. Links keep the path for some time after that: no other multicast may use them (ISA, virtual channels).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.chip.coordinates import HEIGHT, TENSIX_TILES, WIDTH
from bhemu.machine.buffer_memory import load_i64, store_i64
from bhemu.machine.kernel import kernel
from bhemu.machine.types import AnyInt, Bool, Int, LogAddress
from bhemu.timed import net_layout as at

ASK: Final = 0
FOLLOW: Final = 1
TAKE: Final = 2


@kernel
def along(first: Int, last: Int, size: Int) -> AnyInt:
    """Hops from a position to another on a one-way ring."""
    return np.int64(last - first if last >= first else last - first + size)


@kernel
def _link_at(noc: Int, x: Int, y: Int, in_row: Bool) -> AnyInt:
    """Place of the link of a row, or of a column, that leaves a node; coordinates may be past the edge."""
    node = x % WIDTH + WIDTH * (y % HEIGHT)
    return np.int64(at.LINK + 2 * (noc * at.NODES + node) + (0 if in_row else 1))


@kernel
def _pass(net: LogAddress, link: Int, time: Int, busy: Int, held: Int, how: Int) -> AnyInt:
    """For how long data that come to a link at a time have to wait; TAKE: they pass it then.

    Args:
        busy: for how long they take.
        held: for how long no other multicast may.
        how: ASK; FOLLOW: the same, the path is theirs already; TAKE.
    """
    path = link - at.LINK + at.PATH
    if how == FOLLOW:
        return load_i64(net, link) - time
    if how == ASK:
        return max(load_i64(net, link), load_i64(net, path)) - time
    store_i64(net, link, time + busy)
    store_i64(net, path, time + held)
    total = link - at.LINK + at.BUSY
    store_i64(net, total, load_i64(net, total) + busy)
    return np.int64(0)


@kernel
def _steps(position: Int, first: Int, last: Int, size: Int) -> Any:
    """(hops to a range of positions on a ring, hops from there until all of it has been passed)."""
    count = along(first, last, size)
    if along(first, position, size) > count:
        return along(position, first, size), count
    return np.int64(0), count if position == first else np.int64(size - 1)


@kernel
def _links(
    net: LogAddress,
    noc: Int,
    own: Int,
    first: Int,
    last: Int,
    by_column: Bool,
    begin: Int,
    busy: Int,
    held: Int,
    how: Int,
) -> AnyInt:
    """The most that the links of a multicast make it wait; see `_pass`.

    Args:
        own, first, last: nodes of the sender and of the rectangle's corners.
        by_column: the major axis is y.
        begin: when its data leave.
    """
    hop = load_i64(net, at.HOP)
    x, y = own % WIDTH, own // WIDTH
    to_x, over_x = _steps(x, first % WIDTH, last % WIDTH, WIDTH)
    to_y, over_y = _steps(y, first // WIDTH, last // WIDTH, HEIGHT)
    to_major, over_major = (to_y, over_y) if by_column else (to_x, over_x)
    to_minor, over_minor = (to_x, over_x) if by_column else (to_y, over_y)
    minor, minor_first = (x, first % WIDTH) if by_column else (y, first // WIDTH)
    minor_size = WIDTH if by_column else HEIGHT
    minor_count = along(minor_first, last % WIDTH if by_column else last // WIDTH, minor_size)
    waits: AnyInt = np.int64(0)
    for i in range(to_major):
        link = _link_at(noc, x, y + i, False) if by_column else _link_at(noc, x + i, y, True)
        waits = max(waits, _pass(net, link, begin + i * hop, busy, held, how))
    if by_column:
        y += to_major
    else:
        x += to_major
    for i in range(to_minor + over_minor + 1):
        time = begin + (to_major + i) * hop
        if along(minor_first, (minor + i) % minor_size, minor_size) <= minor_count:
            for j in range(over_major):
                link = _link_at(noc, x + i, y + j, False) if by_column else _link_at(noc, x + j, y + i, True)
                waits = max(waits, _pass(net, link, time + j * hop, busy, held, how))
        if i < to_minor + over_minor:
            link = _link_at(noc, x + i, y, True) if by_column else _link_at(noc, x, y + i, False)
            waits = max(waits, _pass(net, link, time, busy, held, how))
    return waits


@kernel
def _receivers(net: LogAddress, noc: Int, own: Int, first: Int, last: Int, begin: Int, busy: Int, how: Int) -> AnyInt:
    """The same of the interfaces of the Tensix tiles in the rectangle; the sender's is left out."""
    hop, crossing = load_i64(net, at.HOP), load_i64(net, at.CROSSING)
    columns = along(first % WIDTH, last % WIDTH, WIDTH)
    rows = along(first // WIDTH, last // WIDTH, HEIGHT)
    waits: AnyInt = np.int64(0)
    for index in range(TENSIX_TILES):
        node = load_i64(net, at.NODE + noc * at.TILES + index)
        x, y = along(first % WIDTH, node % WIDTH, WIDTH), along(first // WIDTH, node // WIDTH, HEIGHT)
        if x > columns or y > rows or node == own:
            continue
        hops = along(own % WIDTH, node % WIDTH, WIDTH) + along(own // WIDTH, node // WIDTH, HEIGHT)
        place, time = at.IN + noc * at.NODES + node, begin + hops * hop + crossing
        if how != TAKE:
            waits = max(waits, load_i64(net, place) - time)
            continue
        store_i64(net, place, time + busy)
        total = place - at.LINK + at.BUSY
        store_i64(net, total, load_i64(net, total) + busy)
    return waits


@kernel
def take_path(
    net: LogAddress,
    noc: Int,
    own: Int,
    first: Int,
    last: Int,
    by_column: Bool,
    follows: Bool,
    begin: Int,
    busy: Int,
    held: Int,
) -> AnyInt:
    """When a multicast that could leave at `begin` leaves; then its path is taken.

    Args:
        own, first, last: nodes of the sender and of the rectangle's corners.
        by_column: it goes along a column to its rectangle first.
        follows: it follows a linked one, and has its path already.
        busy: for how long its data take to pass a link.
        held: for how long a link keeps the path.
    """
    how = FOLLOW if follows else ASK
    waits = max(
        _links(net, noc, own, first, last, by_column, begin, busy, held, how),
        _receivers(net, noc, own, first, last, begin, busy, how),
    )
    begin += waits
    _links(net, noc, own, first, last, by_column, begin, busy, held, TAKE)
    _receivers(net, noc, own, first, last, begin, busy, TAKE)
    return np.int64(begin)
