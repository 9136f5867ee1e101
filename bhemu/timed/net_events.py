"""Events of a timed chip's NoC in the order of their cycles: a heap, and lists of free events and blocks of data."""

from __future__ import annotations

from typing import Any

import numpy as np

from bhemu.machine.buffer_memory import load_i64, store_i64
from bhemu.machine.kernel import kernel
from bhemu.machine.types import AnyInt, Int, LogAddress
from bhemu.timed import net_layout as at


@kernel
def event_at(net: LogAddress, place: Int) -> AnyInt:
    """Where the event at a place of the heap is."""
    return load_i64(net, at.HEAP + place)


@kernel
def _take(net: LogAddress, counter: Int, first: Int) -> AnyInt:
    """The last item of a list, which is not empty."""
    count = load_i64(net, counter) - 1
    store_i64(net, counter, count)
    return load_i64(net, first + count)


@kernel
def _give(net: LogAddress, counter: Int, first: Int, item: Int) -> None:
    """Append an item to a list."""
    count = load_i64(net, counter)
    store_i64(net, first + count, item)
    store_i64(net, counter, count + 1)


@kernel
def new_event(net: LogAddress) -> AnyInt:
    """Where a free event is, which is free no longer; -1: there is none."""
    if load_i64(net, at.FREE_COUNT) == 0:
        return np.int64(-1)
    return _take(net, at.FREE_COUNT, at.FREE)


@kernel
def free_event(net: LogAddress, event: Int) -> None:
    """An event is over."""
    _give(net, at.FREE_COUNT, at.FREE, event)


@kernel
def take_block(net: LogAddress) -> AnyInt:
    """Number of a free block, of which there is one."""
    return _take(net, at.BLOCKS_FREE, at.FREE_BLOCKS)


@kernel
def free_block(net: LogAddress, block: Int) -> None:
    """A block's data are needed no longer."""
    _give(net, at.BLOCKS_FREE, at.FREE_BLOCKS, block)


@kernel
def _before(net: LogAddress, a: Int, b: Int) -> Any:
    first, second = load_i64(net, a + at.CYCLE), load_i64(net, b + at.CYCLE)
    if first != second:
        return first < second
    return load_i64(net, a + at.ORDER) < load_i64(net, b + at.ORDER)


@kernel
def add_event(net: LogAddress, event: Int, cycle: Int) -> None:
    """Let an event happen in a cycle."""
    store_i64(net, event + at.CYCLE, cycle)
    order = load_i64(net, at.SEQUENCE)
    store_i64(net, event + at.ORDER, order)
    store_i64(net, at.SEQUENCE, order + 1)
    place = load_i64(net, at.HEAP_COUNT)
    store_i64(net, at.HEAP_COUNT, place + 1)
    _sift(net, event, place, place + 1)


@kernel
def remove_event(net: LogAddress, place: Int) -> AnyInt:
    """Take the event at a place out of the heap."""
    event = load_i64(net, at.HEAP + place)
    count = load_i64(net, at.HEAP_COUNT) - 1
    store_i64(net, at.HEAP_COUNT, count)
    last = load_i64(net, at.HEAP + count)
    if place < count:
        _sift(net, last, place, count)
    return event


@kernel
def _sift(net: LogAddress, event: Int, place: Int, count: Int) -> None:
    """Put an event at a place, or above or below it where it belongs."""
    while place > 0:
        above = (place - 1) >> 1
        other = load_i64(net, at.HEAP + above)
        if not _before(net, event, other):
            break
        store_i64(net, at.HEAP + place, other)
        place = above
    while True:
        below = 2 * place + 1
        if below >= count:
            break
        other = load_i64(net, at.HEAP + below)
        if below + 1 < count and _before(net, load_i64(net, at.HEAP + below + 1), other):
            below += 1
            other = load_i64(net, at.HEAP + below)
        if not _before(net, other, event):
            break
        store_i64(net, at.HEAP + place, other)
        place = below
    store_i64(net, at.HEAP + place, event)
