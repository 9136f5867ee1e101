"""Chips of several workers compute what chips of one process do, to the last byte (bhemu/hosts)."""

from __future__ import annotations

import random
from typing import Any

import pytest

from bhemu.api.cluster import Cluster
from bhemu.api.links import EndState, Links, Wiring
from bhemu.cluster.topology import End, Failure, Topology
from bhemu.errors import UndefinedBehavior
from bhemu.hosts.placement import place_chips
from tests.chip.test_cluster_copies import random_programs, ring
from tests.chip.test_links import SENT, pair, register_frame, start, stores
from tests.chip.test_run_ahead import count_down
from tests.hosts.workers_here import WorkersHere


class Both:
    """The same system in one process and with several workers."""

    def __init__(self, topology: Topology, workers: int, **settings: Any) -> None:
        self.one = Cluster(topology, **settings)
        self.several = WorkersHere(topology, workers, **settings)

    def __iter__(self) -> Any:
        return iter((self.one, _AsCluster(self.several)))


class _AsCluster:
    """Parts, as `random_programs` uses a cluster."""

    def __init__(self, workers: WorkersHere) -> None:
        self.workers = workers
        self.chips = [workers.chips[number] for number in range(len(workers.chips))]

    def __getitem__(self, number: int) -> Any:
        return self.chips[number]


@pytest.mark.plain
def test_chips_are_placed_in_blocks_of_neighbours() -> None:
    assert place_chips(8, 3) == [(0, 1, 2), (3, 4, 5), (6, 7)]
    assert place_chips(2, 2) == [(0,), (1,)]
    assert place_chips(3, 1) == [(0, 1, 2)]


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_workers_make_no_difference_to_what_chips_compute(seed: int, workers: int) -> None:
    latency = random.Random(seed).choice((17, 40, 256))
    both = Both(ring(latency).topology, workers)
    for cluster in both:
        random_programs(cluster, seed)
    for clocks in (1, 900, 2099, 3000):
        both.one.clock(clocks)
        both.several.clock(clocks)
        assert both.several.time == both.one.time
        assert both.several.snapshot() == both.one.snapshot()


class Everywhere(Wiring):
    """Links whose ends several workers have."""

    def __init__(self, workers: WorkersHere) -> None:
        self._workers = workers

    def _at(self, end: End) -> Wiring:
        return next(part.wiring for part in self._workers.parts if end.chip in part.chips)

    def time(self, end: End) -> int:
        return self._at(end).time(end)

    def let_fail(self, failure: Failure) -> None:
        for part in self._workers.parts:
            part.wiring.let_fail(failure)

    def state(self, end: End) -> EndState:
        return self._at(end).state(end)


def test_failures_of_links_between_workers_happen_as_in_one_process() -> None:
    both = Both(ring(40).topology, 3)
    for cluster in both:
        random_programs(cluster, 1)
    seen = [both.one.links, Links(Everywhere(both.several), both.one.topology)]
    for links in seen:
        links["0:2"].retrain(300, at=700)
        links["1:2"].lose(2, at=400)
        links["2:2"].take_down(at=900)
    for clocks in (650, 300, 2050):
        both.one.clock(clocks)
        both.several.clock(clocks)
        assert both.several.snapshot() == both.one.snapshot()
        assert seen[0].explain() == seen[1].explain()
    assert sum(link.lost for link in both.one.links) > 0


def test_a_refusal_stops_all_workers_at_the_end_of_the_span_and_they_go_on() -> None:
    both = Both(ring(256).topology, 3)
    for cluster in both:
        random_programs(cluster, 5)
        start(cluster[1].ethernet[6], count_down(30, "on") + stores((0xFFB93000, 1)))
    told = []
    for cluster in (both.one, both.several):
        with pytest.raises(UndefinedBehavior, match="chip 1") as refusal:
            cluster.clock(1000)
        told.append(str(refusal.value))
        assert cluster.time < 256
    assert told[0] == told[1]
    assert both.several.time == both.one.time
    assert both.several.snapshot() == both.one.snapshot()
    for cluster in (both.one, both.several):
        cluster.clock(3000)
    assert both.several.snapshot() == both.one.snapshot()


@pytest.mark.plain
def test_a_span_in_which_nothing_proceeds_takes_one_round() -> None:
    workers = WorkersHere(pair(100).topology, 2)
    workers.clock(1_000_000)
    assert workers.time == 1_000_000
    assert workers.rounds == 1


@pytest.mark.plain
def test_workers_do_not_meet_while_nothing_can_arrive_of_which_they_have_not_heard() -> None:
    workers = WorkersHere(pair(100).topology, 2)
    start(workers.chips[0].ethernet[2], count_down(400, "on"))
    for _ in range(20):
        workers.clock(20)
    assert workers.time == 400
    assert workers.rounds == 4


@pytest.mark.plain
def test_a_batch_for_a_chip_of_another_worker_is_refused() -> None:
    workers = WorkersHere(pair(10).topology, 2)
    first, second = workers.parts
    start(first.chips[0].ethernet[2], register_frame(SENT, 5))
    first.prepare()
    first.run_to(50)
    ((number, batch),) = first.take_out().items()
    assert number == 1
    with pytest.raises(ValueError, match="chip 1, which is not here"):
        first.put_in(batch)
    with pytest.raises(ValueError, match="in the middle"):
        second.put_in(batch[:20])
    with pytest.raises(ValueError, match="not here"):
        second.put_in(batch[:-1])
    second.put_in(batch)
    second.prepare()
    second.run_to(100)
    assert second.chips[1].ethernet[9].read_word(SENT) == 5
