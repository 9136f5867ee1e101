"""A copy of several chips and their links, in memory or in a file."""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any, Final

from bhemu.api import plain_file
from bhemu.api.chip_snapshot import ChipSnapshot, snapshot_of
from bhemu.checks import checked
from bhemu.chip.coordinates import Harvesting
from bhemu.cluster.snapshot import LinkState, check_links
from bhemu.cluster.topology import ChipOf, End, Topology
from bhemu.errors import ConfigurationError
from bhemu.ethernet.boot import Identity

_MAGIC: Final = b"bhemu cluster 1\n"


@checked
@dataclass(frozen=True, eq=False)
class ClusterSnapshot:
    """A copy of several chips, from `Cluster.snapshot`; its size is what they have touched, not what they could hold.

    Copies can be compared (by what the chips hold), pickled, and kept in files. Memory of the host is not part of them.

    Attributes:
        topology: which chips and links there are. Failures that are to come are part of `links`.
        chips: a copy of each.
        links: of each.
    """

    topology: Topology
    chips: tuple[ChipSnapshot, ...]
    links: tuple[LinkState, ...]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ClusterSnapshot)
            and self.topology == other.topology
            and self.chips == other.chips
            and self.links == other.links
        )

    __hash__ = None  # type: ignore[assignment]

    def check(self, topology: Topology) -> None:
        """Refuse to be restored into a system.

        Raises:
            ConfigurationError: the copy is of another one, or of another version of bhemu.
        """
        if self.topology != without_failures(topology):
            raise ConfigurationError(
                f"the copy is of {self.topology.name}: {len(self.chips)} chips, {len(self.topology.links)} links; "
                f"this one is {topology.name}: {len(topology.chips)} chips, {len(topology.links)} links",
                remedy="restore into a cluster that was made of the same description",
            )
        check_links(self.links)

    def save(self, path: str | Path) -> None:
        """Write the copy to a file, whole or not at all.

        Raises:
            ProgramError: the file cannot be written.
        """
        content = {
            **plain_topology(self.topology),
            "chips": tuple(chip.plain() for chip in self.chips),
            "links": tuple((link.layout, link.fault, link.frames) for link in self.links),
        }
        plain_file.save(path, _MAGIC, content)

    @staticmethod
    def load(path: str | Path) -> ClusterSnapshot:
        """Read a copy from a file.

        Raises:
            ProgramError: the file cannot be read, or is not such a copy.
        """
        return plain_file.load(path, _MAGIC, _cluster_snapshot, what="copy of several chips")


def plain_topology(topology: Topology) -> dict[str, Any]:
    """A system, but for what fails, as plain values."""
    return {
        "name": topology.name,
        "latency": topology.latency,
        "ends": tuple((a.chip, a.channel, b.chip, b.channel) for a, b in topology.links),
        "buses": tuple(chip.pci_bus for chip in topology.chips),
        "identities": tuple(astuple(chip.identity) for chip in topology.chips),
        "harvesting": tuple(
            (chip.harvesting.columns, chip.harvesting.dram, chip.harvesting.ethernet) for chip in topology.chips
        ),
    }


def topology_of(content: dict[str, Any]) -> Topology:
    """The system that `plain_topology` has made plain values of."""
    chips = tuple(
        ChipOf(Identity(*identity), Harvesting(*harvesting), bus)
        for identity, harvesting, bus in zip(
            content["identities"], content["harvesting"], content["buses"], strict=True
        )
    )
    ends = tuple((End(a, b), End(c, d)) for a, b, c, d in content["ends"])
    return Topology(content["name"], chips, ends, content["latency"])


def _cluster_snapshot(content: dict[str, Any]) -> ClusterSnapshot:
    return ClusterSnapshot(
        topology_of(content),
        tuple(snapshot_of(chip) for chip in content["chips"]),
        tuple(LinkState(*link) for link in content["links"]),
    )


def without_failures(topology: Topology) -> Topology:
    """The same system, as copies name it."""
    return replace(topology, failures=())
