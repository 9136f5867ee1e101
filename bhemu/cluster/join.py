"""Joining the Ethernet tiles of several chips, as their base firmware would find them (ethernet 3, 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bhemu.chip.device import Device
from bhemu.cluster.failures import schedule, tile_of_end
from bhemu.cluster.topology import Topology
from bhemu.errors import ConfigurationError
from bhemu.ethernet.boot import boot_link


def join(devices: Sequence[Device], topology: Topology) -> None:
    """Join the chips of a system with its links, before the first clock.

    Raises:
        ConfigurationError: there are more or fewer chips, or clocks have passed.
    """
    if len(devices) != len(topology.chips) or any(device.time for device in devices):
        raise ConfigurationError(
            f"{topology.name}: {len(devices)} chips, and {len(topology.chips)} are described",
            remedy="join new chips, as many as there are",
        )
    for end, other in topology.ends.items():
        device, partner = devices[end.chip], devices[other.chip]
        node, peer = tile_of_end(device, end), tile_of_end(partner, other)
        record: Any = device.record
        record.links += 1
        record.latency = topology.latency
        record.peer_number[node.index] = other.chip
        record.peer_channel[node.index] = peer.index
        boot_link(
            device.tiles[node.tile],
            (topology.chips[end.chip].identity, end.channel),
            (topology.chips[other.chip].identity, other.channel),
        )
    for device in devices:
        device.partners = tuple(devices)
    for failure in topology.failures:
        schedule(devices, topology, failure)
