"""Joining the Ethernet tiles of several chips, as their base firmware would find them (ethernet 3, 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from bhemu.chip.coordinates import ETHERNET_PLACES, NODES, translation
from bhemu.chip.device import Device
from bhemu.cluster.failures import schedule, tile_of_end
from bhemu.cluster.state import MOST_CHIPS
from bhemu.cluster.topology import Topology
from bhemu.errors import ConfigurationError
from bhemu.ethernet.boot import boot_link

ELSEWHERE: Final = MOST_CHIPS
"""Number, in the record of a chip, of partners that another process has."""


def join(devices: Sequence[Device], topology: Topology, numbers: Sequence[int] | None = None) -> None:
    """Join the chips of a system with its links, before the first clock.

    Args:
        devices: the chips.
        topology: how.
        numbers: of these chips in the system, when others are in other processes; None: these are all.

    Raises:
        ConfigurationError: there are more or fewer chips, or clocks have passed.
    """
    owned = range(len(topology.chips)) if numbers is None else numbers
    if len(devices) != len(owned) or any(device.time for device in devices):
        raise ConfigurationError(
            f"{topology.name}: {len(devices)} chips, and {len(owned)} are described",
            remedy="join new chips, as many as there are",
        )
    places = {number: place for place, number in enumerate(owned)}
    for end, other in topology.ends.items():
        if end.chip not in places:
            continue
        device = devices[places[end.chip]]
        node = tile_of_end(device, end)
        peer = NODES[translation(topology.chips[other.chip].harvesting)[ETHERNET_PLACES[other.channel]]]
        record: Any = device.record
        record.links += 1
        record.latency = topology.latency
        record.peer_number[node.index] = places.get(other.chip, ELSEWHERE)
        record.peer_channel[node.index] = peer.index
        boot_link(
            device.tiles[node.tile],
            (topology.chips[end.chip].identity, end.channel),
            (topology.chips[other.chip].identity, other.channel),
        )
    for device in devices:
        device.partners = tuple(devices)
    by_number = dict(zip(owned, devices, strict=True))
    for failure in topology.failures:
        schedule(by_number, topology, failure)
