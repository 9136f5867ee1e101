"""A leader whose workers are on two machines: the program of `test_two_machines`.

    python -m tests.hosts.leader_of_two FOLDER

It goes on from the copy `first` in a folder, leaves copies there, and prints names of workers and what it is told
when the one on the other machine ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from bhemu.api.cluster_snapshot import ClusterSnapshot
from bhemu.hosts.cluster import SpreadCluster
from bhemu.hosts.engine import WorkerLost
from tests.chip.test_cluster_copies import ring

CLOCKS = (500, 2000)
"""Clocks on two machines, and then on the one that is left."""


def main() -> None:
    """Lead workers on two machines, and then on one."""
    folder = Path(sys.argv[1])
    system = ring(40).topology
    told = ""
    with SpreadCluster(system, hosts=["here:1", "there:2"]) as cluster:
        cluster.restore(ClusterSnapshot.load(folder / "first"))
        cluster.clock(CLOCKS[0])
        cluster.snapshot().save(folder / "both")
        hosts = [name.host for name in cluster.workers]
        os.kill(cluster.workers[-1].process, signal.SIGKILL)
        try:
            cluster.clock(1_000_000)
        except WorkerLost as lost:
            told = str(lost)
    with SpreadCluster(system, hosts=["here:2"]) as left:
        left.restore(ClusterSnapshot.load(folder / "both"))
        left.clock(CLOCKS[1])
        left.snapshot().save(folder / "left")
    print(json.dumps({"hosts": hosts, "told": told}))


if __name__ == "__main__":
    main()
