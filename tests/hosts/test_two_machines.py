"""A cluster on two machines with a network between them: the bits of one process, and what a lost machine leaves.

It needs mpi4py, Open MPI, and a user that may make networks, and is skipped without.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bhemu.api.cluster import Cluster
from bhemu.api.cluster_snapshot import ClusterSnapshot
from tests.chip.test_cluster_copies import random_programs, ring
from tests.hosts.engine_here import needs_engine
from tests.hosts.leader_of_two import CLOCKS
from tests.hosts.machines_here import machines_are_missing, two_machines

WHY = machines_are_missing()


@needs_engine
@pytest.mark.skipif(bool(WHY), reason=WHY)
def test_two_machines_give_the_bits_of_one_and_the_last_copy_survives_one_of_them(tmp_path: Path) -> None:
    one = Cluster(ring(40).topology)
    random_programs(one, 4)
    one.clock(1000)
    one.snapshot().save(tmp_path / "first")
    with two_machines(tmp_path) as machines:
        printed = machines.run(0, sys.executable, "-m", "tests.hosts.leader_of_two", str(tmp_path))
    said = json.loads(printed.splitlines()[-1])
    assert said["hosts"] == ["here", "there", "there"]
    assert "worker 2 on there (process" in said["told"]
    for clocks, copy in zip(CLOCKS, ("both", "left"), strict=True):
        one.clock(clocks)
        assert ClusterSnapshot.load(tmp_path / copy) == one.snapshot()
