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
def new_event(net: LogAddress) -> AnyInt:
    """Where a free event is, which is free no longer; -1: there is none."""
    count = load_i64(net, at.FREE_COUNT)
    if count == 0:
        return np.int64(-1)
    store_i64(net, at.FREE_COUNT, count - 1)
    return load_i64(net, at.FREE + count - 1)


@kernel
def free_event(net: LogAddress, event: Int) -> None:
    """An event is over."""
    count = load_i64(net, at.FREE_COUNT)
    store_i64(net, at.FREE + count, event)
    store_i64(net, at.FREE_COUNT, count + 1)


@kernel
def take_block(net: LogAddress) -> AnyInt:
    """Number of a free block, of which there is one."""
    count = load_i64(net, at.BLOCKS_FREE) - 1
    store_i64(net, at.BLOCKS_FREE, count)
    return load_i64(net, at.FREE_BLOCKS + count)


@kernel
def free_block(net: LogAddress, block: Int) -> None:
    """A block's data are needed no longer."""
    count = load_i64(net, at.BLOCKS_FREE)
    store_i64(net, at.FREE_BLOCKS + count, block)
    store_i64(net, at.BLOCKS_FREE, count + 1)


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
    while place > 0:
        above = (place - 1) >> 1
        other = load_i64(net, at.HEAP + above)
        if not _before(net, event, other):
            break
        store_i64(net, at.HEAP + place, other)
        place = above
    store_i64(net, at.HEAP + place, event)


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
