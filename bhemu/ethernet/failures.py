"""Links that go down, lose frames or retrain: what happens when, and what the tile shows of it (ethernet 6.1).

Each chip has its own list of events, in the order of their clocks, so that what happens does not depend on how far
another chip is.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.ethernet.boot import LINK_UP, PORT_DOWN, PORT_STATUS, PORT_UP, RETRAIN_COUNT, TRAIN_STATUS, TRAINED
from bhemu.ethernet.queues import LINK_IS_DOWN
from bhemu.machine.kernel import register_jitable

EVENTS: Final = 128
"""At most this many events of one chip can be still to come."""
DOWN, UP, LOSE, RETRAIN, TRAINED_AGAIN = 1, 2, 3, 4, 5
"""Kinds of events: the link goes down; comes up; its end loses as many of its next frames as `value` says; retrains
until clock `value`; has retrained."""


def link_faults(channels: int) -> np.dtype[Any]:
    """What is wrong with the links of a chip, and what will be: part of its record.

    Args:
        channels: Ethernet tiles of a chip.
    """
    return np.dtype(
        [
            ("count", "i8"),  # events to come
            ("event", [("clock", "i8"), ("channel", "i8"), ("kind", "i8"), ("value", "i8")], (EVENTS,)),
            ("down", "i8", (channels,)),  # 1: the link of this channel is down
            ("cut", "i8", (channels,)),  # frames that left before this clock do not arrive: the link went down then
            ("until", "i8", (channels,)),  # it retrains until this clock
            ("lose", "i8", (channels,)),  # this number of the next frames that this end sends are lost
            ("lost", "i8", (channels,)),  # frames that were lost when they left this end, or were to arrive at it
        ],
        align=True,
    )


@register_jitable
def loses(fault: Any, channel: Any) -> bool:
    """True when a frame that leaves by a channel is lost; it is counted."""
    if fault.down[channel] == 0 and fault.lose[channel] == 0:
        return False
    if fault.down[channel] == 0:
        fault.lose[channel] -= 1
    fault.lost[channel] += 1
    return True


@register_jitable
def _show(t: Any, is_up: Any) -> None:
    """What base firmware leaves in L1 when the link changes, and what its registers show."""
    t.ethernet.linked = 1 if is_up else LINK_IS_DOWN
    t.l1_u32[PORT_STATUS // 4] = PORT_UP if is_up else PORT_DOWN
    t.l1_u32[TRAIN_STATUS // 4] = TRAINED if is_up else 0
    t.l1_u32[LINK_UP // 4] = 1 if is_up else 0
    if is_up:
        t.l1_u32[RETRAIN_COUNT // 4] = (np.int64(t.l1_u32[RETRAIN_COUNT // 4]) + 1) & 0xFFFFFFFF


@register_jitable
def happen(fault: Any, t: Any) -> None:
    """The first event of the list takes place at its tile, and is taken off the list."""
    clock, channel = np.int64(fault.event[0].clock), np.int64(fault.event[0].channel)
    kind, value = np.int64(fault.event[0].kind), np.int64(fault.event[0].value)
    fault.count -= 1
    for k in range(fault.count):
        fault.event[k].clock = fault.event[k + 1].clock
        fault.event[k].channel = fault.event[k + 1].channel
        fault.event[k].kind = fault.event[k + 1].kind
        fault.event[k].value = fault.event[k + 1].value
    if kind == LOSE:
        fault.lose[channel] += value
    elif kind == DOWN:
        fault.cut[channel] = clock
        if fault.down[channel] == 0:
            fault.down[channel] = 1
            _show(t, False)
    elif kind == UP:
        if fault.down[channel] != 0:
            fault.down[channel] = 0
            _show(t, True)
    elif kind == RETRAIN:
        fault.until[channel] = max(np.int64(fault.until[channel]), value)
        if fault.down[channel] == 0:
            _show(t, False)
    elif fault.down[channel] == 0 and fault.until[channel] <= clock:
        _show(t, True)
