"""A cluster in several processes: what it computes, what the leader reaches, and what is said when a worker ends.

The tests that start workers need mpi4py and Open MPI, and are skipped without: `make test-hosts` installs both.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bhemu.api.cluster import Cluster
from bhemu.api.cluster_snapshot import ClusterSnapshot
from bhemu.chip.pcie.host_memory import HostMemory
from bhemu.cluster.topology import Topology
from bhemu.errors import BhemuError, ConfigurationError, Deadlock, UndefinedBehavior
from bhemu.hosts import engine
from bhemu.hosts.cluster import SpreadCluster
from bhemu.hosts.commands import Worker
from bhemu.hosts.engine import WorkerLost
from bhemu.hosts.messages import Refused, result
from tests.chip.noc_programs import READ, WRITE, at, request
from tests.chip.test_cluster_copies import random_programs, ring
from tests.chip.test_links import DATA, SENT, register_frame, start, stores
from tests.chip.test_run_ahead import count_down
from tests.hosts.engine_here import needs_engine
from tests.loader.boot_programs import program


@pytest.fixture(scope="module")
def system() -> Topology:
    return ring(40).topology


@pytest.fixture(scope="module")
def spread(system: Topology) -> Iterator[SpreadCluster]:
    """Three chips, two workers; a test restores the state in which it begins."""
    with SpreadCluster(system, workers=2) as cluster:
        yield cluster


@pytest.fixture
def cluster(spread: SpreadCluster, system: Topology) -> SpreadCluster:
    spread.restore(Cluster(system).snapshot())
    return spread


@needs_engine
@pytest.mark.parametrize("seed", range(2))
def test_processes_make_no_difference_to_results(cluster: SpreadCluster, system: Topology, seed: int) -> None:
    one = Cluster(system)
    for known in (one, cluster):
        random_programs(known, seed)  # type: ignore[arg-type]
        known.links["0:2"].retrain(300, at=700)
        known.links["1:2"].lose(2, at=400)
    for clocks in (1, 900, 2099, 3000):
        one.clock(clocks)
        cluster.clock(clocks)
        assert cluster.snapshot() == one.snapshot()
        assert (cluster.time, cluster.links.explain()) == (one.time, one.links.explain())


@needs_engine
def test_a_refusal_is_that_of_one_process_and_the_chips_go_on(cluster: SpreadCluster, system: Topology) -> None:
    one = Cluster(system)
    told = []
    for known in (one, cluster):
        random_programs(known, 5)  # type: ignore[arg-type]
        for number in (1, 2):
            start(known[number].ethernet[6], count_down(30, "on") + stores((0xFFB93000, 1)))  # type: ignore[arg-type]
        for _ in range(2):
            with pytest.raises(UndefinedBehavior) as refusal:
                known.clock(1000)
            told.append((str(refusal.value), refusal.value.core, refusal.value.pc, refusal.value.tile))
        known.clock(3000)
    assert told[:2] == told[2:]
    assert "chip 1" in told[0][0]
    assert cluster.snapshot() == one.snapshot()


@needs_engine
def test_the_leader_reaches_memory_programs_and_registers_of_all_chips(cluster: SpreadCluster) -> None:
    numbers = np.arange(2048, dtype=np.float32).reshape(32, 64) / 8
    for chip in cluster.chips:
        chip.dram[3].write(0x1000, bytes([chip.number]) * 100_000)
        chip.interleaved.write_tensor(0x4000000, numbers, "Float32")
        chip[1, 2].write_tensor(0x40000, numbers, "Float32")
        assert chip.load(program("li a0, 0x20000\nli a1, 77\nsw a1, 0(a0)\nebreak"), "B", tiles=(1, 2)) == ("B",)
        chip.start(tiles=chip[1, 2])
    cluster.clock(500)
    for chip in cluster.chips:
        assert chip.dram[3].read(0x1000, 100_000) == bytes([chip.number]) * 100_000
        assert np.array_equal(chip.interleaved.read_tensor(0x4000000, (32, 64), "Float32"), numbers)
        assert np.array_equal(chip[1, 2].read_tensor(0x40000, (32, 64), "Float32"), numbers)
        assert chip[1, 2].read_word(0x20000) == 77
        assert "B halted" in repr(chip[1, 2])
        assert chip.time == cluster.time == 500
    assert str(cluster.owner(0)) != str(cluster.owner(2))
    with pytest.raises(BhemuError, match="0-0 is not a Tensix tile"):
        cluster[0].load(program("ebreak"), "B", tiles=(0, 0))


@needs_engine
def test_run_waits_for_what_comes_from_another_worker_and_tells_who_waits_in_vain(cluster: SpreadCluster) -> None:
    sender, receiver = cluster[2].ethernet[2], cluster[0].ethernet[4]  # of two workers
    start(sender, count_down(400, "on") + register_frame(SENT, 9))  # type: ignore[arg-type]
    passed = cluster.run(lambda: receiver.read_word(SENT) == 9, step=100)
    assert 400 < passed < 4000
    cluster.links["2:2"].take_down()
    start(receiver, f"li a0, {DATA:#x}\nagain: lw a1, 0(a0)\nbeqz a1, again\n")  # type: ignore[arg-type]
    start(sender, register_frame(DATA, 1))  # type: ignore[arg-type]
    with pytest.raises(Deadlock, match=r"(?s)chip 0:.*0x20000.*link 2:2 - 0:4: down"):
        cluster.run(lambda: receiver.read_word(DATA) == 1)


@needs_engine
def test_large_batches_that_cross_each_other_arrive(cluster: SpreadCluster) -> None:
    """Larger than MPI sends before they are expected."""
    ends = [(cluster[2].ethernet[2], bytes([1, 2]) * 30_000), (cluster[0].ethernet[4], bytes([3, 4, 5]) * 20_000)]
    for end, content in ends:
        end.write(0x20000, content)
        for offset, value in ((0x14, 0x20000), (0x18, len(content)), (0x1C, 0x40000), (0x04, 2)):
            end.write_word(0xFFB90000 + offset, value)
    cluster.clock(1000)
    for (end, _), (_, content) in zip(ends, reversed(ends), strict=True):
        assert end.read(0x40000, len(content)) == content


@needs_engine
def test_copies_go_from_one_process_to_several_and_back(
    cluster: SpreadCluster, system: Topology, tmp_path: Path
) -> None:
    one = Cluster(system)
    random_programs(one, 3)
    one.clock(777)
    one.snapshot().save(tmp_path / "copy")
    cluster.restore(ClusterSnapshot.load(tmp_path / "copy"))
    assert cluster.time == 777
    for known in (one, cluster):
        known.clock(1500)
    back = Cluster(system)
    back.restore(cluster.snapshot())
    assert back.snapshot() == one.snapshot()


@needs_engine
def test_a_worker_that_dies_is_named_and_the_last_copy_goes_on_with_what_is_left(system: Topology) -> None:
    one = Cluster(system)
    random_programs(one, 4)
    one.clock(1000)
    victim = random.Random(4).randrange(1, 3)
    with SpreadCluster(system, workers=3) as cluster:
        cluster.restore(one.snapshot())
        cluster.clock(500)
        last = cluster.snapshot()
        name = cluster.workers[victim]
        os.kill(name.process, signal.SIGKILL)
        with pytest.raises(WorkerLost, match=rf"worker {victim} on .* \(process {name.process}\) has ended") as lost:
            cluster.clock(1_000_000)
        assert lost.value.workers == (str(name),)
        with pytest.raises(WorkerLost, match="have ended"):
            cluster.clock(1)
    for clocks in (500, 2000):
        one.clock(clocks)
    with SpreadCluster(system, hosts=("localhost:2",)) as left:
        left.restore(last)
        left.clock(2000)
        assert left.snapshot() == one.snapshot()


@needs_engine
def test_the_worker_beside_the_leader_is_named_too(system: Topology) -> None:
    with SpreadCluster(system, workers=2) as cluster:
        os.kill(cluster.workers[0].process, signal.SIGKILL)
        with pytest.raises(WorkerLost, match="worker 0 on"):
            cluster.clock(10)


def through_the_host(number: int) -> str:
    """64 bytes of L1 into memory of the host and back, at places of the chip's own, 20 times."""
    me, host, pcie = {"back_hi": at(1, 2)}, 0x1000 * (number + 1), 1 << 28  # bit 60 of an address
    text = ""
    for turn in range(20):
        there = host + 64 * turn
        text += request(
            ctrl=WRITE, target=DATA, target_hi=at(1, 2), back=there, back_mid=pcie, back_hi=at(19, 24), length=64
        )
        text += request(ctrl=READ, target=there, target_mid=pcie, target_hi=at(19, 24), back=DATA + 64, **me, length=64)
    return text + "ebreak"


@needs_engine
@pytest.mark.rule("tile N27")
@pytest.mark.parametrize("threads", [1, 2])
def test_chips_of_workers_reach_memory_of_the_leader(system: Topology, threads: int) -> None:
    """Those of several at the same time, and one that is refused."""
    seen = []
    for kind in (Cluster, SpreadCluster):
        memory = bytearray(0x4000)

        def read(address: int, size: int, memory: bytearray = memory) -> bytes:
            if address + size > len(memory):
                raise ConfigurationError(f"there is no byte {address:#x}")
            return bytes(memory[address : address + size])

        def write(address: int, content: bytes, memory: bytearray = memory) -> None:
            memory[address : address + len(content)] = content

        more = {} if kind is Cluster else {"workers": 3}
        cluster = kind(system, host=HostMemory(read, write), threads=threads, **more)  # type: ignore[arg-type]
        for number, chip in enumerate(cluster.chips):
            chip.load(program(through_the_host(number)), "B", tiles=(1, 2))
            chip[1, 2].write(DATA, bytes(range(64 * number, 64 * number + 64)))
            chip.start(tiles=(1, 2))
        cluster.clock(3000)
        found = [chip[1, 2].read(DATA + 64, 64) for chip in cluster.chips]
        assert found == [bytes(range(64 * number, 64 * number + 64)) for number in range(3)]
        there = {"target": 0x5000, "target_mid": 1 << 28, "target_hi": at(19, 24)}
        beyond = request(ctrl=READ, **there, back=DATA, back_hi=at(2, 2), length=4)
        cluster[2].load(program(beyond + "ebreak"), "B", tiles=(2, 2))
        cluster[2].start(tiles=(2, 2))
        with pytest.raises(ConfigurationError, match="there is no byte 0x5000") as refusal:
            cluster.clock(1000)
        seen.append((bytes(memory), str(refusal.value), cluster.snapshot()))
        if isinstance(cluster, SpreadCluster):
            cluster.close()
    assert seen[0] == seen[1]
    assert sum(map(bool, seen[0][0])) == 20 * (3 * 64 - 1)


# --- without workers --------------------------------------------------------------------------------------------------


@pytest.mark.plain
def test_without_the_engine_the_package_to_install_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(engine.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(engine.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ConfigurationError) as refusal:
        SpreadCluster("p300")
    assert "needs mpi4py and mpiexec of Open MPI" in refusal.value.message
    assert "pip install 'bhemu[hosts]'" in str(refusal.value.remedy)


@pytest.mark.plain
def test_workers_and_hosts_that_make_no_sense_are_refused() -> None:
    for options, reason in (
        ({"workers": 3}, "3 workers, and p300 has 2 chips"),
        ({"workers": 0}, "workers = 0 is out of range"),
        ({"workers": 2, "hosts": ["a"]}, "workers and hosts are given"),
        ({"hosts": []}, "hosts are empty"),
        ({"hosts": ["--version"]}, "host '--version'"),
        ({"hosts": ["a:b"]}, "host 'a:b'"),
        ({"hosts": ["a,b"]}, "host 'a,b'"),
    ):
        with pytest.raises(ConfigurationError, match=reason):
            SpreadCluster("p300", **options)  # type: ignore[arg-type]


@pytest.mark.plain
def test_a_worker_answers_refusals_and_unknown_commands() -> None:
    worker = Worker(lambda own, batches: ([own], []), lambda content: content)
    with pytest.raises(Refused, match="has no command 'os_system'"):
        result(worker.handle("os_system", ("true",)))
    with pytest.raises(Refused, match="has no chips yet"):
        result(worker.handle("time", ()))
