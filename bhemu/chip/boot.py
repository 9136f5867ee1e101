"""What a chip's record holds when management firmware has booted: the grid, identities, results of the boot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bhemu.chip.coordinates import NODES, X_LSB, Harvesting, Kind, Place
from bhemu.chip.nodes import arc
from bhemu.chip.nodes.identity import identity_words
from bhemu.chip.nodes.kinds import CLOCKED, KINDS, holds
from bhemu.chip.pcie.pci import CONFIG_START
from bhemu.ethernet.boot import Identity
from bhemu.ethernet.boot import boot as boot_ethernet


def boot(
    chip: Any,
    tiles: Any,
    translation: Mapping[Place, Place],
    harvesting: Harvesting,
    identity: Identity,
    *,
    named: bool,
) -> None:
    """Fill in a new record.

    Args:
        chip: record of the chip.
        tiles: those of its tiles, after reset.
        translation: physical coordinates by translated ones.
        harvesting: what the chip does not have.
        identity: what it says about itself.
        named: NoC requests name nodes by this table, not by those of their tiles (N8).
    """
    chip.named = int(named)
    chip.place[:] = -1
    for (x, y), (column, row) in translation.items():
        chip.place[x, y] = column << X_LSB | row
    logical = {physical: place for place, physical in sorted(translation.items(), key=lambda pair: pair[0][1])}
    for (column, row), node in NODES.items():
        place = column << X_LSB | row
        chip.place_kind[place] = holds(node)
        chip.place_index[place] = node.tile if KINDS[node.kind].cores else node.index
        chip.interface[place] = (KINDS[node.kind].interfaces[0] + (1 << 63)) % (1 << 64) - (1 << 63)
        chip.node_id[place], chip.endpoint_id[place], chip.logical[place] = identity_words(
            node, logical.get(node.place, node.place)
        )
    for node in CLOCKED:
        if node.kind is Kind.ETHERNET:
            boot_ethernet(tiles[node.tile])
    arc.boot(chip.arc, harvesting, identity)
    for offset, word in CONFIG_START.items():
        chip.pci_config[offset // 4] = word
