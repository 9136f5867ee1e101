"""Copies of several chips, and chips that move side by side on threads of the host (bhemu/cluster)."""

from __future__ import annotations

import copy
import hashlib
import pickle
import random
import subprocess
import sys
from pathlib import Path

import pytest

from bhemu.api.cluster import Cluster
from bhemu.api.cluster_snapshot import ClusterSnapshot
from bhemu.chip.coordinates import Harvesting
from bhemu.cluster import clocks
from bhemu.cluster.topology import ChipOf, End, Topology
from bhemu.errors import ConfigurationError, ProgramError, UndefinedBehavior
from bhemu.ethernet.boot import Identity
from tests.chip.test_links import DATA, SENT, data_frame, ends, pair, register_frame, start, stores
from tests.chip.test_run_ahead import count_down
from tests.loader.boot_programs import program


def ring(latency: int = 40, **options: object) -> Cluster:
    """Three chips: channel 2 of each leads to channel 4 of the next one."""
    chips = tuple(ChipOf(Identity((0x440, 1), 1 + n, n, 1)) for n in range(3))
    links = tuple((End(n, 2), End((n + 1) % 3, 4)) for n in range(3))
    return Cluster(Topology("ring", chips, links, latency), **options)  # type: ignore[arg-type]


def random_programs(cluster: Cluster, seed: int) -> None:
    """Every end counts, sends what it has counted or found, and notes it; tiles of the chips are busy, too."""
    source = random.Random(seed)
    for number, chip in enumerate(cluster.chips):
        for channel in (2, 4):
            text = ""
            for turn in range(6):
                text += count_down(source.randrange(5, 200), f"busy{turn}")
                place = SENT + 4 * source.randrange(16)
                text += register_frame(place, source.randrange(1 << 31), source.randrange(2))
                text += data_frame(SENT, 64, SENT + 0x100 + 64 * source.randrange(8))
                text += f"li a0, {SENT:#x}\nlw a1, {4 * source.randrange(16)}(a0)\n"
                text += f"li a0, {DATA + 4 * turn:#x}\nsw a1, 0(a0)\n"
            start(chip.ethernet[channel], text)
        for place in random.Random(seed + number).sample([(x, y) for x in (1, 2, 3) for y in (2, 3)], 3):
            chip.load(program(count_down(source.randrange(500, 2000), "busy") + "ebreak"), tiles=place)
        chip.start()


def state_hash(cluster: Cluster) -> str:
    """Of all that the chips hold."""
    copied = cluster.snapshot()
    digest = hashlib.sha256()
    for chip, links in zip(copied.chips, copied.links, strict=True):
        digest.update(chip.state.tiles.numbers.tobytes() + chip.state.tiles.content.tobytes())
        digest.update(repr((sorted(chip.state.clocks.items()), chip.state.dram)).encode())
        digest.update(links.fault + repr(links.frames).encode())
    return digest.hexdigest()


@pytest.mark.parametrize("seed", range(4))
def test_threads_make_no_difference_to_what_chips_compute(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "WORTH_THREADS", 0)
    found = set()
    for threads in (1, 2, 3):
        cluster = ring(latency=random.Random(seed).choice((1, 17, 256)), threads=threads)
        random_programs(cluster, seed)
        cluster.links["0:2"].retrain(300, at=700)
        cluster.links["1:2"].lose(2, at=400)
        cluster.clock(6000)
        found.add(state_hash(cluster))
    assert len(found) == 1


def test_a_refusal_is_the_same_with_threads_and_the_chips_go_on_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two chips refuse something in the same span: the one of the smaller number is told first, then the other."""
    monkeypatch.setattr(clocks, "WORTH_THREADS", 0)
    found = set()
    for threads in (1, 2):
        cluster = ring(latency=256, threads=threads)
        random_programs(cluster, 5)
        for number, waits in ((1, 30), (2, 10)):
            bad = count_down(waits, "on") + stores((0xFFB93000, 1))
            start(cluster[number].ethernet[6], bad)
        told = []
        for _ in range(2):
            with pytest.raises(UndefinedBehavior) as refusal:
                cluster.clock(1000)
            told.append(str(refusal.value))
        cluster.clock(3000)
        found.add((tuple(told), cluster.time, state_hash(cluster)))
    ((told, _, _),) = found
    assert ["chip 1" in told[0], "chip 2" in told[1]] == [True, True]


@pytest.mark.plain
@pytest.mark.parametrize("clocks", [1, 75, 333])
def test_a_restored_cluster_goes_on_as_one_that_was_never_interrupted(clocks: int) -> None:
    """Frames are on their way, and a link retrains."""

    def begun() -> Cluster:
        cluster = pair(60)
        own, other = ends(cluster)
        cluster.links["0:2"].retrain(100, at=40)
        cluster.links["0:2"].lose(3, at=100)
        start(own, "".join(data_frame(0x1000, 64, SENT + 64 * n) + register_frame(SENT, n) for n in range(1, 12)))
        start(other, "".join(register_frame(SENT + 4 * n, n) for n in range(1, 12)))
        return cluster

    whole, cluster = begun(), begun()
    for one in (whole, cluster):
        one.clock(clocks)
    between = cluster.snapshot()
    for one in (whole, cluster):
        one.clock(900 - clocks)
    after = cluster.snapshot()
    assert after == whole.snapshot() != between
    cluster.links["0:2"].take_down()
    cluster.restore(between)
    assert cluster.snapshot() == between
    assert (cluster.time, cluster.links["0:2"].is_down) == (clocks, False)
    cluster.clock(900 - clocks)
    assert cluster.snapshot() == after
    assert cluster.links["0:2"].lost == whole.links["0:2"].lost > 0


@pytest.mark.plain
def test_a_cluster_is_copied_and_pickled_with_what_is_on_its_way() -> None:
    cluster = pair(100)
    start(ends(cluster)[0], register_frame(SENT, 5))
    cluster.clock(60)
    copies = [copy.copy(cluster), copy.deepcopy(cluster), pickle.loads(pickle.dumps(cluster))]
    cluster.clock(200)
    for other in copies:
        assert ends(other)[1].read_word(SENT) == 0
        other.clock(200)
        assert ends(other)[1].read_word(SENT) == 5
        assert other.snapshot() == cluster.snapshot()


READER = """
import sys
import bhemu
from bhemu.api.cluster_snapshot import ClusterSnapshot
cluster = bhemu.Cluster(sys.argv[1])
cluster.restore(ClusterSnapshot.load(sys.argv[2]))
cluster.clock(300)
cluster.snapshot().save(sys.argv[3])
"""
PAIR = """
name: pair
latency: 100
chips:
  - {board_id: [0x440, 1], asic_location: 0}
  - {board_id: [0x440, 1], asic_location: 1}
links: ['0:2 - 1:9']
"""


@pytest.mark.plain
def test_a_copy_in_a_file_goes_on_in_another_process(tmp_path: Path) -> None:
    (tmp_path / "pair.yaml").write_text(PAIR)
    cluster = Cluster(tmp_path / "pair.yaml")
    start(ends(cluster)[0], register_frame(SENT, 5) + register_frame(SENT + 4, 6))
    cluster.links["0:2"].take_down(at=250)
    cluster.clock(60)
    cluster.snapshot().save(tmp_path / "before")
    assert ClusterSnapshot.load(tmp_path / "before") == cluster.snapshot()
    names = [str(tmp_path / name) for name in ("pair.yaml", "before", "after")]
    subprocess.run([sys.executable, "-c", READER, *names], check=True)
    cluster.clock(300)
    assert ClusterSnapshot.load(tmp_path / "after") == cluster.snapshot()
    assert ends(cluster)[1].read_word(SENT + 4) == 6


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.plain
def test_a_copy_of_another_system_or_version_is_refused() -> None:
    copied = pair(100).snapshot()
    with pytest.raises(ConfigurationError, match="the copy is of pair: 2 chips, 1 links"):
        ring().restore(copied)
    with pytest.raises(ConfigurationError, match="the copy is of pair"):
        pair(99).restore(copied)
    object.__setattr__(copied.links[0], "layout", "older")
    with pytest.raises(ConfigurationError, match="version of bhemu that keeps other state"):
        pair(100).restore(copied)
    with pytest.raises(ConfigurationError, match="the copy is of p300"):
        Cluster("p300", harvesting={0: Harvesting(columns=(13,))}).restore(Cluster("p300").snapshot())


@pytest.mark.plain
def test_files_that_are_no_copies_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "copy"
    cluster = pair()
    cluster[0].ethernet[0].write(0, b"something")
    cluster.snapshot().save(path)
    whole = path.read_bytes()
    damaged = whole[:-1] + bytes([whole[-1] ^ 1])
    for content, reason in (
        (b"", "is not a copy of several chips"),
        (whole[:-5], "is damaged"),
        (damaged, "is damaged"),
        (pickle.dumps(cluster.snapshot()), "is not a copy of several chips"),
    ):
        path.write_bytes(content)
        with pytest.raises(ProgramError, match=reason):
            ClusterSnapshot.load(path)
    with pytest.raises(ProgramError, match="cannot be read"):
        ClusterSnapshot.load(tmp_path / "nothing")
