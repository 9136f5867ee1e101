"""The description of several chips that older clients read from a file beside the library (ethernet 7).

It has the form of tt-umd's cluster descriptors. Clients that look at PCI configuration space need none.
"""

from __future__ import annotations

from typing import Final

from bhemu.chip.coordinates import ETHERNET_PLACES, ETHERNET_TILES
from bhemu.cluster.topology import Topology

NAME: Final = "cluster_descriptor.yaml"
BOARDS: Final = {0x400: "p150", 0x440: "p300", 0x470: "ubb_blackhole"}
"""Types of boards by the high half of a board's id."""
_LOCATION_BITS: Final = 5
_OTHER_PCIE: Final = {1: 2, 4: 1}
"""Mask of the PCIe tile that is off, by what telemetry says of their use."""


def unique_id(board_id: int, location: int, asic_id: int, board: str) -> int:
    """By what clients tell chips apart: its place on a board, on a Galaxy the id of the chip (ethernet 3)."""
    return asic_id if board == BOARDS[0x470] else board_id << _LOCATION_BITS | location


def cluster_descriptor(topology: Topology) -> str:
    """The file's text; every chip is a PCI device."""
    numbers = range(len(topology.chips))
    identities = [chip.identity for chip in topology.chips]
    ids = [identity.board_id[0] << 32 | identity.board_id[1] for identity in identities]
    types = [BOARDS.get(identity.board_id[0], "unknown") for identity in identities]
    unique = [unique_id(ids[n], identities[n].asic_location, identities[n].asic_id, types[n]) for n in numbers]
    links = [
        f"  - [{{chip: {a.chip}, chan: {a.channel}}}, {{chip: {b.chip}, chan: {b.channel}}}]" for a, b in topology.links
    ]
    harvesting = []
    for n in numbers:
        off = topology.chips[n].harvesting
        columns = sum(1 << column for column in off.columns)
        there = [tile for tile in range(ETHERNET_TILES) if tile not in off.ethernet][: len(ETHERNET_PLACES)]
        ethernet = sum(1 << tile for tile in range(ETHERNET_TILES) if tile not in there)  # always two, or all
        harvesting.append(
            f"  {n}: {{noc_translation: true, harvest_mask: {columns}, dram_harvesting_mask: 0, "
            f"eth_harvesting_mask: {ethernet}, pcie_harvesting_mask: {_OTHER_PCIE.get(identities[n].pcie_usage, 0)}, "
            "l2cpu_harvesting_mask: 0}"
        )
    boards = []
    for board, kind in dict(zip(ids, types, strict=True)).items():
        chips = ", ".join(str(n) for n in numbers if ids[n] == board)
        boards.append(f"  - [{{board_id: {board}}}, {{board_type: {kind}}}, {{chips: [{chips}]}}]")
    lines = [
        f"# Written by bhemu: {topology.name}.",
        "arch:",
        *(f"  {n}: blackhole" for n in numbers),
        "chips: {}",
        "chip_unique_ids:",
        *(f"  {n}: {unique[n]}" for n in numbers),
        "ethernet_connections:" if links else "ethernet_connections: []",
        *links,
        "ethernet_connections_to_remote_devices: []",
        "chips_with_mmio:",
        *(f"  - {n}: {n}" for n in numbers),
        "harvesting:",
        *harvesting,
        "boards:",
        *boards,
        "asic_locations:",
        *(f"  {n}: {identities[n].asic_location}" for n in numbers),
    ]
    buses = {n: chip.pci_bus for n, chip in enumerate(topology.chips) if chip.pci_bus}
    lines += ["chip_to_bus_id:", *(f'  {n}: "{bus:#04x}"' for n, bus in buses.items())] if buses else []
    return "\n".join([*lines, ""])
