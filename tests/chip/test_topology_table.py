"""Descriptions of systems as plain tables, as the C library holds them (bhemu/cluster/topology.py)."""

from __future__ import annotations

import json

import pytest

from bhemu.chip.coordinates import Harvesting
from bhemu.cluster.topology import ChipOf, End, Failure, Topology, load_topology, read_topology, topology_table
from bhemu.ethernet.failures import DOWN, LOSE, RETRAIN, UP

pytestmark = pytest.mark.plain

LINK = (End(0, 2), End(1, 9))
FAILING = Topology(
    "failing",
    (ChipOf(), ChipOf(harvesting=Harvesting(columns=(12, 13), ethernet=(6, 9)), pci_bus=0x41)),
    (LINK,),
    latency=77,
    failures=(
        Failure(LINK[0], LOSE, 0, 1),
        Failure(LINK[1], RETRAIN, 100, 2),
        Failure(LINK[1], DOWN, 500, 1),
        Failure(LINK[0], UP, 600, 1),
    ),
)


@pytest.mark.parametrize("name", ["p150", "p300", "p300x2", "galaxy", "failing"])
def test_a_table_gives_the_system_that_it_was_made_of(name: str) -> None:
    topology = FAILING if name == "failing" else load_topology(name)
    assert read_topology(json.loads(json.dumps(topology_table(topology))), name) == topology
