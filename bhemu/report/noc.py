"""NoC requests: their other ends by name, and the bytes that went over each link."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from bhemu.chip.coordinates import HEIGHT, NODES, SIMULATOR, WIDTH, Kind, Place, translation
from bhemu.recording.noc_requests import READ, Request
from bhemu.timed.ways import links_between, links_of_multicast

TRANSLATION: Final = translation(SIMULATOR)
"""Physical coordinates by translated ones, of the chip that is recorded."""
COUNTED: Final = (
    "data of requests that recorded tiles started, without headers and answers, on the ways of the timed mode: NoC 0 "
    "goes right, then down, NoC 1 up, then left, both round the edges. A read's data go from the other end to the "
    "tile. A multicast's data pass each link of its branches once: to its rectangle, through it, and from its nodes on"
)


def _physical(place: Place, noc: int) -> Place:
    """Of coordinates in a request; those that are not translated are mirrored on NoC 1 (tile N7)."""
    x, y = place
    return TRANSLATION.get(place) or ((WIDTH - 1 - x, HEIGHT - 1 - y) if noc else (x, y))


def end_name(place: Place, noc: int) -> str:
    """`DRAM 17-12` or `tile 1-2`, for coordinates in a request."""
    node = NODES.get(_physical(place, noc))
    if node is None:
        return f"{place[0]}-{place[1]}"
    if node.kind is Kind.DRAM:
        return f"DRAM {place[0]}-{place[1]}"
    return f"{'tile' if node.kind is Kind.TENSIX else node.kind.value} {place[0]}-{place[1]}"


def _names() -> dict[Place, str]:
    """Of every node by its physical place: its kind, and its translated coordinates where it has some."""
    translated = {physical: place for place, physical in TRANSLATION.items()}
    names = {}
    for physical, node in NODES.items():
        x, y = translated.get(physical, physical)
        kind = {Kind.TENSIX: "tile", Kind.DRAM: f"DRAM bank {node.index},"}.get(node.kind, node.kind.value)
        names[physical] = f"{kind} {x}-{y}"
    return names


NODE_NAMES: Final = _names()


@dataclass
class LinkTraffic:
    """Bytes over the links of both NoCs; see `COUNTED`.

    Attributes:
        ways: bytes by (NoC, first, last physical place of a way).
        trees: bytes of multicasts by (NoC, sender, first and last corner of the rectangle, along columns first).
        unknown: bytes of requests to places that the grid does not have.
    """

    ways: Counter[tuple[int, Place, Place]] = field(default_factory=Counter)
    trees: Counter[tuple[int, Place, Place, Place, bool]] = field(default_factory=Counter)
    unknown: int = 0

    def add(self, place: Place, requests: Iterable[Request]) -> None:
        """Count requests of a tile, which has translated coordinates."""
        own = TRANSLATION[place]
        for request in requests:
            # `last` is the corner from which a multicast starts (tile N21).
            other = _physical(request.last if request.multicast else request.other, request.noc)
            if other not in NODES:
                self.unknown += request.size
                continue
            if request.multicast:
                corner = _physical(request.other, request.noc)
                self.trees[request.noc, own, other, corner, request.by_column] += request.size
                continue
            first, last = (other, own) if request.kind == READ else (own, other)
            self.ways[request.noc, first, last] += request.size

    def update(self, other: LinkTraffic) -> None:
        """Count what another has counted, too."""
        self.ways.update(other.ways)
        self.trees.update(other.trees)
        self.unknown += other.unknown

    def links(self) -> list[tuple[int, Place, Place, int]]:
        """(NoC, physical places of its ends, bytes) of each link that was used, the busiest first."""
        found: Counter[tuple[int, Place, Place]] = Counter()
        for (noc, first, last), size in self.ways.items():
            for begin, end in links_between(noc, first, last):
                found[noc, begin, end] += size
        for (noc, *ends, by_column), size in self.trees.items():
            for begin, end in links_of_multicast(noc, *ends, by_column):
                found[noc, begin, end] += size
        return [(*link, size) for link, size in sorted(found.items(), key=lambda item: (-item[1], item[0]))]


def link_traffic_as_json(traffic: LinkTraffic) -> dict[str, Any]:
    """Links as plain data. Places are physical; names have translated coordinates."""
    return {
        "counted": COUNTED,
        "multicast_bytes": [sum(size for tree, size in traffic.trees.items() if tree[0] == noc) for noc in range(2)],
        "unknown_bytes": traffic.unknown,
        "links": [
            {
                "noc": noc,
                "from": list(begin),
                "to": list(end),
                "name": f"{NODE_NAMES[begin]} to {NODE_NAMES[end]}",
                "bytes": size,
            }
            for noc, begin, end, size in traffic.links()
        ],
    }
