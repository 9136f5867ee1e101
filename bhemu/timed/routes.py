"""When NoC requests of a timed chip arrive and are answered: two one-way tori, their interfaces, and DRAM banks.

A packet holds each link of its way, and the interfaces at both ends, for as long as it takes to pass. Answers to writes
are one flit; they go on round the ring and wait for nothing. All times are in 64ths of a cycle.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.chip.coordinates import HEIGHT, WIDTH, X_LSB, Y_MASK
from bhemu.machine.buffer_memory import load_i64, store_i64
from bhemu.machine.kernel import kernel
from bhemu.machine.types import AnyInt, Bool, Int, LogAddress
from bhemu.timed import net_layout as at
from bhemu.timed.trees import along, take_path

_FLIT: Final = 64
_LONGEST: Final = 16384
LOOKAHEAD: Final = 16
"""Cycles after which a request changes L1 of its receiver at the earliest, also when that is its sender."""


@kernel
def lookahead(net: LogAddress) -> AnyInt:
    """Cycles from the start of a request to L1 of another tile until it arrives there, at least: one hop, two flits."""
    least = 2 * load_i64(net, at.CROSSING) + load_i64(net, at.HOP) + 2 * at.PART
    return max(np.int64(least // at.PART), np.int64(LOOKAHEAD))


@kernel
def raw_node(place: Int, noc: Int) -> AnyInt:
    """Number of a node on a NoC, by its physical place: positions count in the direction in which the NoC runs."""
    x, y = place >> X_LSB, place & Y_MASK
    if noc != 0:
        x, y = WIDTH - 1 - x, HEIGHT - 1 - y
    return np.int64(x + WIDTH * y)


@kernel
def in_rectangle(place: Int, noc: Int, first: Int, last: Int) -> Any:
    """A physical place is in the rectangle from raw place `first` to raw place `last` of a NoC."""
    node = raw_node(place, noc)
    x, y = first >> X_LSB, first & Y_MASK
    to_x, to_y = last >> X_LSB, last & Y_MASK
    columns, rows = along(x, node % WIDTH, WIDTH), along(y, node // WIDTH, HEIGHT)
    return columns <= along(x, to_x, WIDTH) and rows <= along(y, to_y, HEIGHT)


@kernel
def hops(first: Int, last: Int) -> AnyInt:
    """Hops from a node to another."""
    return along(first % WIDTH, last % WIDTH, WIDTH) + along(first // WIDTH, last // WIDTH, HEIGHT)


@kernel
def occupancy(net: LogAddress, size: Int, long: Int) -> AnyInt:
    """For how long packets with a number of bytes of data occupy a link.

    Args:
        long: figure of what long packets take for each flit.
    """
    total, left = np.int64(0), np.int64(size)
    while left > 0:
        part = left if left < _LONGEST else np.int64(_LONGEST)
        flits = (part + _FLIT - 1) // _FLIT
        total += flits * at.PART + max(load_i64(net, at.PACKET), flits * load_i64(net, long))
        left -= _LONGEST
    return max(total, np.int64(2 * at.PART))


@kernel
def _taken(net: LogAddress, place: Int, begin: Int, busy: Int) -> AnyInt:
    """When something that is free again at a time takes a packet which comes at `begin`; then it is busy."""
    free = load_i64(net, place)
    start = begin
    if free > begin:
        store_i64(net, at.WAITED, load_i64(net, at.WAITED) + free - begin)
        start = free
    store_i64(net, place, start + busy)
    total = place - at.LINK + at.BUSY
    store_i64(net, total, load_i64(net, total) + busy)
    return np.int64(start)


@kernel
def goes_along_row(noc: Int, node: Int, last: Int) -> Any:
    """Whether the next link of a packet to another node is one of its row. NoC 0 goes along the row first."""
    if noc == 0:
        return node % WIDTH != last % WIDTH
    return node // WIDTH == last // WIDTH


@kernel
def next_node(node: Int, in_row: Bool) -> AnyInt:
    """The node behind a link of a row, or of a column."""
    if in_row:
        return node - WIDTH + 1 if node % WIDTH == WIDTH - 1 else node + 1
    return (node + WIDTH) % (WIDTH * HEIGHT)


@kernel
def _travel(net: LogAddress, noc: Int, first: Int, last: Int, begin: Int, busy: Int) -> AnyInt:
    """When the head of a packet that leaves a node at `begin` is at another one."""
    node: AnyInt = np.int64(first)
    time: AnyInt = np.int64(begin)
    while node != last:
        in_row = goes_along_row(noc, node, last)
        link = at.LINK + 2 * (noc * at.NODES + node) + (0 if in_row else 1)
        time = _taken(net, link, time, busy) + load_i64(net, at.HOP)
        node = next_node(node, in_row)
    return time


@kernel
def _bank(net: LogAddress, channel: Int, begin: Int, size: Int) -> AnyInt:
    """When a DRAM bank has moved a number of bytes that are asked for at `begin`."""
    rate = load_i64(net, at.BANK_LONG if size >= _LONGEST else at.BANK)
    busy = max(size * at.PART * at.PART // rate, load_i64(net, at.BANK_REQUEST))
    return _taken(net, at.BANK_FREE + channel, begin, busy) + busy


@kernel
def write_times(net: LogAddress, noc: Int, own: Int, end: Int, channel: Int, now: Int, size: Int) -> Any:
    """(when a write from node `own` has arrived at node `end`, when it is answered).

    Args:
        channel: of DRAM, -1 where the end is none.
        now: when its sender starts it.
    """
    crossing = load_i64(net, at.CROSSING)
    busy = occupancy(net, size, at.PACKET_LONG)
    begin = _taken(net, at.OUT + noc * at.NODES + own, now + crossing, busy)
    head = _travel(net, noc, own, end, begin, busy)
    tail = _taken(net, at.IN + noc * at.NODES + end, head + crossing, busy) + busy
    served = tail + load_i64(net, at.ENDPOINT)
    if channel >= 0:
        served = _bank(net, channel, tail - busy, size) + load_i64(net, at.BANK_WRITE)
    answered = served + hops(end, own) * load_i64(net, at.HOP) + 2 * crossing
    return tail, answered


@kernel
def read_time(net: LogAddress, noc: Int, own: Int, end: Int, channel: Int, now: Int, size: Int) -> AnyInt:
    """When the data that node `own` reads from node `end` have come; see `write_times`."""
    crossing = load_i64(net, at.CROSSING)
    busy = occupancy(net, size, at.READ_LONG)
    begin = _taken(net, at.OUT + noc * at.NODES + own, now + crossing, np.int64(at.PART))
    asked = _travel(net, noc, own, end, begin, np.int64(at.PART)) + crossing
    ready = asked + load_i64(net, at.ENDPOINT_READ)
    if channel >= 0:
        # The bank's first bytes leave while it reads the others.
        done = _bank(net, channel, asked, size)
        ready = max(asked, done - busy) + load_i64(net, at.BANK_READ)
    leaves = _taken(net, at.OUT + noc * at.NODES + end, ready + crossing, busy)
    head = _travel(net, noc, end, own, leaves, busy)
    return _taken(net, at.IN + noc * at.NODES + own, head + crossing, busy) + busy


@kernel
def multicast_times(
    net: LogAddress,
    noc: Int,
    own: Int,
    first: Int,
    last: Int,
    now: Int,
    size: Int,
    inside: Bool,
    linked: Bool,
    by_column: Bool,
) -> Any:
    """(when a multicast has arrived at all nodes of a rectangle, when the last answer is there).

    Its path is reserved as a whole: the sender's next packet waits until it is released, or, linked, follows at once.

    Args:
        first, last: nodes at the rectangle's corners.
        inside: the sender is in it.
        by_column: it goes along a column first (trees.py).
    """
    crossing = load_i64(net, at.CROSSING)
    busy = occupancy(net, size, at.PACKET_LONG)
    columns = along(first % WIDTH, last % WIDTH, WIDTH)
    rows = along(first // WIDTH, last // WIDTH, HEIGHT)
    across = columns + rows
    hop = load_i64(net, at.HOP)
    if inside:
        path = load_i64(net, at.PATH_FIXED) + load_i64(net, at.PATH_HOP) * across
        ring = (WIDTH if columns else 0) + (HEIGHT if rows else 0)
        answers = ring * hop + load_i64(net, at.FIRST_HOP) * across
    else:
        length = rows + 1 if rows else columns
        path = load_i64(net, at.PATH_OUTSIDE) + load_i64(net, at.PATH_HOP) * length
        answers = (WIDTH + HEIGHT) * hop + load_i64(net, at.FIRST_OUTSIDE)
        answers += load_i64(net, at.FIRST_ROW) * min(length, 8)
    interface = noc * at.NODES + own
    follows = load_i64(net, at.OPEN + interface)
    store_i64(net, at.OPEN + interface, 1 if linked else 0)
    whole = busy + path
    kept = max(busy, whole * load_i64(net, at.TOGETHER) // at.PART)
    ready = max(now + crossing, load_i64(net, at.OUT + interface))
    ready = take_path(net, noc, own, first, last, by_column, follows != 0, ready, busy, kept)
    store_i64(net, at.WAITED, load_i64(net, at.WAITED) + ready - now - crossing)
    begin = _taken(net, at.OUT + interface, ready, busy if linked else whole)
    tail = begin + (hops(own, first) + across) * hop + crossing + busy
    answered = max(begin + answers + busy + load_i64(net, at.ENDPOINT) + 3 * crossing, tail + crossing)
    return tail, answered
