"""Links that fail: events on both ends of a link, at a clock of the system (ethernet 6.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

import bhemu.checks as checks
from bhemu.chip.coordinates import ETHERNET_PLACES, TENSIX_TILES, Node
from bhemu.chip.device import Device
from bhemu.cluster.topology import End, Failure, Topology
from bhemu.errors import ConfigurationError
from bhemu.ethernet.failures import EVENTS, LOSE, RETRAIN, TRAINED_AGAIN, happen

_FIELDS: Final = ("clock", "channel", "kind", "value")

UP_TEXT: Final = "up"
DOWN_TEXT: Final = "down since clock {}"
RETRAINS_TEXT: Final = "retrains until clock {}"
LOST_TEXT: Final = ", frames lost: {}"
"""How the state of a link is told: in Python, in recordings, and by the C library (capi/machine_text.py)."""


def tile_of_end(device: Device, end: End) -> Node:
    """The Ethernet tile at an end of a link."""
    return device.node(ETHERNET_PLACES[end.channel])


def schedule(devices: Mapping[int, Device], topology: Topology, failure: Failure) -> None:
    """Let something happen to a link; what is due happens at once.

    Args:
        devices: the chips of this process, by number.
        topology: which links there are.
        failure: what happens; nothing is done at ends that another process has.

    Raises:
        ConfigurationError: there is no such link, clocks have passed that one already, or too much is to come.
    """
    ends = topology.link_at(failure.end)
    now = max((devices[end.chip].time for end in ends if end.chip in devices), default=0)
    name = f"{ends[0]} - {ends[1]}"
    if failure.clock < now:
        raise ConfigurationError(
            f"{topology.name}: a failure of link {name} at clock {failure.clock:,}, and {now:,} have passed",
            remedy="name a clock that is to come",
        )
    until = failure.clock + failure.value
    if failure.kind == RETRAIN and until > checks.MAX_CLOCKS:
        raise ConfigurationError(f"link {name} retrains until {until:,}", remedy="give fewer clocks")
    for end in (failure.end,) if failure.kind == LOSE else ends:
        if end.chip not in devices:
            continue
        device = devices[end.chip]
        if failure.kind == RETRAIN:
            _add(device, end, (failure.clock, RETRAIN, until))
            _add(device, end, (until, TRAINED_AGAIN, 0))
        else:
            _add(device, end, (failure.clock, failure.kind, failure.value))
        _let_happen(device)


def _add(device: Device, end: End, event: tuple[int, int, int]) -> None:
    """Put (clock, kind, value) into the list of a chip, after others of the same clock."""
    fault: Any = device.record.fault
    count = int(fault.count)
    if count == EVENTS:
        raise ConfigurationError(
            f"chip {end.chip} has {EVENTS} failures of links to come", remedy="give them in parts, as the run goes on"
        )
    clock, kind, value = event
    place = int(np.searchsorted(fault.event["clock"][:count], clock, "right"))
    for name, content in zip(_FIELDS, (clock, tile_of_end(device, end).index, kind, value), strict=True):
        row = fault.event[name]
        row[place + 1 : count + 1] = row[place:count].copy()
        row[place] = content
    fault.count = count + 1


def _let_happen(device: Device) -> None:
    """Events that are due take place."""
    fault: Any = device.record.fault
    while fault.count and int(fault.event["clock"][0]) <= device.time:
        index = TENSIX_TILES + int(fault.event["channel"][0])
        if device.time:  # before the first clock no agent can have looked
            device.touch(index)
        happen(fault, device.tiles[index])
