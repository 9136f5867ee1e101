"""A copy of several chips and their links, in memory or in a file."""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any, Final

from bhemu.api import plain_file
from bhemu.api.chip_snapshot import ChipSnapshot, snapshot_of
from bhemu.checks import checked
from bhemu.chip.coordinates import Harvesting
from bhemu.cluster.snapshot import LinkState
from bhemu.cluster.topology import ChipOf, End, Topology
from bhemu.errors import ProgramError
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

    def save(self, path: str | Path) -> None:
        """Write the copy to a file, whole or not at all.

        Raises:
            ProgramError: the file cannot be written.
        """
        topology = self.topology
        content = {
            "name": topology.name,
            "latency": topology.latency,
            "ends": tuple((a.chip, a.channel, b.chip, b.channel) for a, b in topology.links),
            "identities": tuple(astuple(chip.identity) for chip in topology.chips),
            "harvesting": tuple(
                (chip.harvesting.columns, chip.harvesting.dram, chip.harvesting.ethernet) for chip in topology.chips
            ),
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
        content = plain_file.load(path, _MAGIC, what="copy of several chips")
        try:
            return _cluster_snapshot(content)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise ProgramError(
                f"{path} is of another version of bhemu: {error}", remedy="make the copy again"
            ) from None


def _cluster_snapshot(content: dict[str, Any]) -> ClusterSnapshot:
    chips = tuple(
        ChipOf(Identity(*identity), Harvesting(*harvesting))
        for identity, harvesting in zip(content["identities"], content["harvesting"], strict=True)
    )
    ends = tuple((End(a, b), End(c, d)) for a, b, c, d in content["ends"])
    return ClusterSnapshot(
        Topology(content["name"], chips, ends, content["latency"]),
        tuple(snapshot_of(chip) for chip in content["chips"]),
        tuple(LinkState(*link) for link in content["links"]),
    )


def without_failures(topology: Topology) -> Topology:
    """The same system, as copies name it."""
    return replace(topology, failures=())
