"""Workers of a cluster as threads of this process, one of which moves at a time: what they do without an engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bhemu.api.chip_snapshot import ChipSnapshot
from bhemu.api.cluster_snapshot import ClusterSnapshot, without_failures
from bhemu.cluster.snapshot import copy_links
from bhemu.cluster.topology import Topology
from bhemu.errors import BhemuError
from bhemu.hosts.part import Part
from bhemu.hosts.placement import place_chips
from bhemu.hosts.rounds import Horizon, Request, pass_clocks, settle


class WorkersHere:
    """A cluster whose chips several parts have."""

    def __init__(self, topology: Topology, workers: int, **settings: Any) -> None:
        self.topology = topology
        self.parts = [Part(topology, numbers, settings) for numbers in place_chips(len(topology.chips), workers)]
        self.chips = {number: chip for part in self.parts for number, chip in part.chips.items()}
        self.rounds = 0
        self._heard: int | None = None
        self._given: list[tuple[Horizon, Mapping[int, bytes]]] = []
        self._turn = threading.Lock()

    def clock(self, clocks: int) -> None:
        request = Request(self.time, self.time + clocks, self._heard)
        results = self._together(lambda part, exchange: pass_clocks(part, request, exchange))
        refused, heard = zip(*results, strict=True)
        assert len(set(heard)) == 1
        self._heard = None if any(refused) else heard[0]
        told = [(part.refusing, error) for part, error in zip(self.parts, refused, strict=True) if error is not None]
        if told:
            raise min(told, key=lambda known: known[0])[1]

    @property
    def time(self) -> int:
        return min(part.time for part in self.parts)

    def snapshot(self) -> ClusterSnapshot:
        self._together(settle)
        links: dict[int, Any] = {}
        for part in self.parts:
            links.update(zip(part.chips, copy_links(part.devices), strict=True))
        count = range(len(self.topology.chips))
        return ClusterSnapshot(
            without_failures(self.topology),
            tuple(ChipSnapshot(self.chips[n].device.state(), self.chips[n].programs()) for n in count),
            tuple(links[n] for n in count),
        )

    def _together(self, work: Callable[[Part, Any], Any]) -> list[Any]:
        meeting = threading.Barrier(len(self.parts))
        results: list[Any] = [None] * len(self.parts)
        given: list[Any] = [None] * len(self.parts)

        def one(k: int) -> None:
            def exchange(horizon: Horizon, batches: Mapping[int, bytes]) -> tuple[Sequence[Horizon], Sequence[bytes]]:
                given[k] = (horizon, batches)
                self._turn.release()
                meeting.wait()
                horizons = [known for known, _ in given]
                come = [
                    batch
                    for other, (_, known) in enumerate(given)
                    for number, batch in known.items()
                    if other != k and number in self.parts[k].chips
                ]
                self.rounds += k == 0
                meeting.wait()
                self._turn.acquire()
                return horizons, come

            with self._turn:
                try:
                    results[k] = work(self.parts[k], exchange)
                except BaseException as error:
                    results[k] = error
                    meeting.abort()

        threads = [threading.Thread(target=one, args=(k,)) for k in range(len(self.parts))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, BhemuError):
                raise result
        return results
