"""Several timed chips: frames take as long as they do in functional mode, and the NoC of each chip takes time."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest

import bhemu
from bhemu.api.cluster import Cluster
from bhemu.chip.coordinates import NODES, Place
from bhemu.errors import ConfigurationError, Deadlock
from tests.chip.noc_programs import B_RUNS, SOFT_RESET, at, fill, request
from tests.chip.noc_programs import WRITE as WRITE_REQUEST
from tests.chip.test_links import DATA, SENT, data_frame, ends, pair, register_frame, stamp, start
from tests.riscv.rv_asm import assemble
from tests.timed.test_timed_chip import barrier, write

FIRST, LAST, ARRIVED = (1, 2), (16, 11), 0x28000
"""Tensix tiles, and where a flag follows the data."""


def start_b(cluster: Cluster, chip: int, place: Place, text: str) -> None:
    """Let core B of a Tensix tile execute a program."""
    device = cluster[chip].device
    device.write_node(NODES[place], 0, assemble(text + "\nend: j end\n", 0))
    device.write_node(NODES[place], SOFT_RESET, B_RUNS.to_bytes(4, "little"))


def wait_for_word(address: int, label: str) -> str:
    return f"li a0, {address:#x}\n{label}: lw a1, 0(a0)\nbeqz a1, {label}\n"


@pytest.mark.parametrize("latency", [7, 100])
def test_a_frame_takes_as_long_as_in_functional_mode_whatever_the_clock_is_cut_into(latency: int) -> None:
    found = set()
    for step, timed in itertools.product((13, 5000), (False, True)):
        cluster = pair(latency, timed=timed)
        own, other = ends(cluster)
        start(other, wait_for_word(SENT, "again") + stamp(DATA))
        start(own, stamp(DATA) + register_frame(SENT, 1))
        while cluster.time < 1300:
            cluster.clock(min(step, 1300 - cluster.time))
        found.add((own.read_word(DATA), other.read_word(DATA)))
    assert len(found) == 1


def relay(**options: object) -> tuple[Cluster, bytes]:
    """A Tensix tile of chip 0 writes to an Ethernet tile, which sends to its partner, which writes to one of chip 1."""
    cluster = pair(100, **options)
    own, other = ends(cluster)
    content = fill(5, 4096).tobytes()
    cluster[0].device.write_node(NODES[FIRST], DATA, content)
    near, far = own.place, other.place
    flag = "li a3, 1\nli a4, 0x27000\nsw a3, 0(a4)\n"
    here = {"source": DATA, "target": DATA}
    text = flag + write(near, FIRST, 4096, **here) + write(near, FIRST, 16, source=0x27000, target=ARRIVED)
    start_b(cluster, 0, FIRST, text + barrier("on") + stamp(0x26000))
    frames = data_frame(DATA, 4096, DATA) + register_frame(ARRIVED, 1, 1)
    start(own, wait_for_word(ARRIVED, "here") + frames)
    last = {"target_hi": at(*far), "back_hi": at(*LAST)}
    data = request(ctrl=WRITE_REQUEST, length=4096, target=DATA, back=DATA, **last)
    flag = request(ctrl=WRITE_REQUEST, length=16, target=ARRIVED, back=ARRIVED, **last)
    start(other, wait_for_word(ARRIVED, "there") + data + flag)
    start_b(cluster, 1, LAST, wait_for_word(ARRIVED, "wait") + stamp(0x26000))
    return cluster, content


def stamps(cluster: Cluster) -> tuple[int, ...]:
    nodes = (cluster[0].device, NODES[FIRST]), (cluster[1].device, NODES[LAST])
    return tuple(int.from_bytes(device.read_node(node, 0x26000, 4), "little") for device, node in nodes)


def test_data_go_from_a_tile_of_one_chip_to_one_of_another_with_times_that_do_not_depend_on_threads_or_steps() -> None:
    found = set()
    for threads, step in ((1, 4000), (2, 4000), (1, 37)):
        cluster, content = relay(threads=threads, timed=True)
        while cluster.time < 4000:
            cluster.clock(min(step, 4000 - cluster.time))
        assert cluster[1].device.read_node(NODES[LAST], DATA, 4096) == content
        found.add(stamps(cluster))
        requests = [chip.timing.report().requests for chip in cluster.chips if chip.timing is not None]
        assert requests == [2, 2]
    ((sent, arrived),) = found
    assert 200 < sent < arrived - 100


def test_a_timed_cluster_computes_what_a_functional_one_does() -> None:
    (timed, content), (plain, _) = relay(timed=True), relay()
    for cluster in (timed, plain):
        cluster.clock(4000)
        assert cluster[1].device.read_node(NODES[LAST], DATA, 4096) == content
    states = [cluster[1].device.tiles["core_state"] for cluster in (timed, plain)]
    assert np.array_equal(states[0], states[1])
    assert stamps(timed)[1] > stamps(plain)[1]  # the NoC of both chips takes time


def test_what_is_on_its_way_over_the_noc_is_no_deadlock() -> None:
    cluster = pair(100, timed=True)
    start_b(cluster, 0, FIRST, write(LAST, FIRST, 16384, source=DATA, target=DATA) + barrier("on") + stamp(0x26000))
    assert cluster.run(lambda: stamps(cluster)[0] > 0, step=5, max_clocks=3000) > 400
    with pytest.raises(Deadlock):
        cluster.run(lambda: False)


def test_a_timed_cluster_is_not_copied() -> None:
    cluster = bhemu.Cluster("p300", timed=True)
    with pytest.raises(ConfigurationError, match="a timed chip cannot be copied"):
        copy.copy(cluster)
    plain = bhemu.Cluster("p300").snapshot()
    with pytest.raises(ConfigurationError, match="a timed chip cannot be copied"):
        cluster.restore(plain)
