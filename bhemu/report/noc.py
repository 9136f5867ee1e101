"""The other end of a NoC request, by name."""

from __future__ import annotations

from bhemu.chip.coordinates import NODES, WIDTH, Kind, Place


def end_name(translation: dict[Place, Place], place: Place, noc: int) -> str:
    """`DRAM 17-12` or `tile 1-2`, for coordinates in a request.

    Args:
        translation: physical coordinates by translated ones.
    """
    physical = translation.get(place)
    if physical is None:
        x, y = place
        physical = (WIDTH - 1 - x, 11 - y) if noc else (x, y)
    node = NODES.get(physical)
    if node is None:
        return f"{place[0]}-{place[1]}"
    if node.kind is Kind.DRAM:
        return f"DRAM {place[0]}-{place[1]}"
    return f"{'tile' if node.kind is Kind.TENSIX else node.kind.value} {place[0]}-{place[1]}"
