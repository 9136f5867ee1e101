"""A cluster whose chips several processes have, on one machine or several; the leader is the process that makes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from bhemu import checks
from bhemu.api.chip_snapshot import snapshot_of
from bhemu.api.cluster_run import ClusterRun, describe
from bhemu.api.cluster_snapshot import ClusterSnapshot, plain_topology, without_failures
from bhemu.api.links import EndState, Links, Wiring
from bhemu.checks import checked
from bhemu.chip.clock.clocks import QUANTUM
from bhemu.chip.coordinates import Harvesting
from bhemu.chip.pcie.host_memory import HostMemory
from bhemu.cluster.snapshot import LinkState
from bhemu.cluster.topology import End, Failure, Topology
from bhemu.errors import ConfigurationError
from bhemu.hosts.engine import WORKER, WorkerName, Workers
from bhemu.hosts.messages import Refused, result
from bhemu.hosts.placement import place_chips
from bhemu.hosts.remote import RemoteChip

_DEFAULT_WORKERS: Final = 2


@checked
class SpreadCluster(ClusterRun):
    """Several Blackhole chips with links between them, in several processes; what they compute is what `Cluster` does.

    Attributes:
        topology: which chips and links there are.
        chips: by number; each has programs and memory, as a `bhemu.Chip` has them.
        links: between them; they can be made to fail.
        workers: names of the processes.
    """

    _WORKER: ClassVar = WORKER

    def __init__(
        self,
        topology: Topology | str | Path,
        *,
        workers: int | None = None,
        hosts: Sequence[str] | None = None,
        allow_open: bool = False,
        threads: int = 1,
        quantum: int = QUANTUM,
        simulator_order: bool = False,
        host: HostMemory | None = None,
        missing: Iterable[int] = (),
        harvesting: Mapping[int, Harvesting] | None = None,
    ) -> None:
        """
        Args:
            topology, allow_open, quantum, simulator_order, missing, harvesting: see `Cluster`.
            workers: processes on this machine; by default 2.
            hosts: machines instead, as `name` or `name:workers`; the first is this one. mpiexec starts the workers
                there as it does other programs: with ssh, or by the batch system.
            threads: of each worker.
            host: memory of the leader's host, which chips reach as those of one process do; each access goes to the
                leader and back.

        Raises:
            ConfigurationError: the engine is not installed or cannot start the workers, there are more workers than
                chips, or the description makes no sense.
        """
        self.topology = describe(topology, missing, harvesting)
        count = _count(workers, hosts)
        if count > len(self.topology.chips):
            raise ConfigurationError(
                f"{count} workers, and {self.topology.name} has {len(self.topology.chips)} chips",
                remedy="use at most one worker for each chip",
            )
        self._refusals: list[Refused] = []
        self._time = 0
        self._heard: int | None = None
        self._refusing: int | None = None
        placed = place_chips(len(self.topology.chips), count)
        self._owner = {chip: worker for worker, numbers in enumerate(placed) for chip in numbers}
        settings = {
            "allow_open": checks.flag(allow_open, "allow_open"),
            "threads": checks.integer(threads, "threads", 1, error=ConfigurationError),
            "quantum": checks.integer(quantum, "quantum", 1, checks.MAX_CLOCKS, error=ConfigurationError),
            "simulator_order": checks.flag(simulator_order, "simulator_order"),
        }
        memory = checks.optional(host, checks.instance, "host", HostMemory) or HostMemory()
        self._workers = Workers(count, hosts, memory, self._WORKER)
        owners = tuple(self._owner[chip] for chip in range(len(self.topology.chips)))
        system, reached = plain_topology(self.topology), (memory.reads, memory.writes)
        self._ask({k: ("make", system, numbers, settings, reached, owners) for k, numbers in enumerate(placed)})
        self.chips = tuple(
            RemoteChip(number, chip, self._asker(number)) for number, chip in enumerate(self.topology.chips)
        )
        wiring = _RemoteWiring(self)
        self.links = Links(wiring, self.topology)
        for failure in self.topology.failures:
            wiring.let_fail(failure)

    @property
    def workers(self) -> tuple[WorkerName, ...]:
        """Names of the processes that have the chips."""
        return self._workers.names

    def owner(self, chip: int) -> WorkerName:
        """The worker that has a chip."""
        return self.workers[self._owner[checks.integer(chip, "chip", 0, len(self.chips) - 1)]]

    def _ask(self, commands: dict[int, tuple[Any, ...]]) -> list[Any]:
        """Give a command to workers; returns their answers.

        Raises:
            BhemuError: one has refused it.
            WorkerLost: one has ended.
        """
        try:
            return [result(answer) for answer in self._workers.ask(commands)]
        except Refused as refused:
            raise refused.error from None

    def _ask_all(self, name: str, *arguments: Any) -> list[Any]:
        return self._ask(dict.fromkeys(range(len(self.workers)), (name, *arguments)))

    def ask_owner(self, chip: int, name: str, *arguments: Any) -> Any:
        """Give a command to the worker that has a chip; returns its answer."""
        return self._ask({self._owner[chip]: (name, chip, *arguments)})[0]

    def _asker(self, number: int) -> Any:
        return lambda name, *arguments: self.ask_owner(number, name, *arguments)

    def __getitem__(self, number: int) -> RemoteChip:
        """The chip of a number."""
        return self.chips[checks.integer(number, "chip", 0, len(self.chips) - 1)]

    def __len__(self) -> int:
        return len(self.chips)

    # --- time -------------------------------------------------------------------------------------------------------

    @property
    def time(self) -> int:
        """Clocks that have passed on all chips."""
        return self._time

    def clock(self, clocks: int = 1) -> None:
        """Let clocks of all chips pass; see `Cluster.clock`.

        Raises:
            BhemuError: an instruction was refused; the message says on which chip. Its core halts, the cluster can go
                on.
            WorkerLost: a worker has ended, and with it all others.
        """
        clocks = checks.integer(clocks, "clocks", 0, checks.MAX_CLOCKS)
        if clocks and not self._refusals:
            command = ("clock", self._time, self._time + clocks, self._heard)
            passed = []
            for answer in self._workers.ask(dict.fromkeys(range(len(self.workers)), command)):
                try:
                    passed.append(result(answer))
                except Refused as refused:
                    self._refusals.append(refused)
            if self._refusals:  # then workers meet at the begin of the next clocks
                self._heard, self._time = None, min(self._ask_all("time"))
                self._refusals.sort(key=lambda refused: refused.chip or 0)
            else:
                self._heard, self._time = passed[0][1], min(time for time, *_ in passed)
                self._have_passed(passed)
        if clocks and self._refusals:
            first = self._refusals.pop(0)
            self._refusing = first.chip
            raise first.error

    def _have_passed(self, answers: Sequence[Any]) -> None:
        """Clocks have passed: what each worker says of it."""

    def is_at_rest(self) -> bool:
        """Nothing proceeds, is on its way, or will happen to a link."""
        self._ask_all("settle")
        return all(self._ask_all("is_at_rest"))

    def explain(self) -> str:
        """Who does what or waits for what, chip by chip, and which links are down or have lost something."""
        texts = [text for part in self._ask_all("explain") for text in part]
        lines = [f"chip {number}:\n{text}" for number, text in texts if text]
        return "\n".join([*lines, *filter(None, [self.links.explain()])])

    # --- copies -----------------------------------------------------------------------------------------------------

    def snapshot(self) -> ClusterSnapshot:
        """A copy of everything that the chips hold, as `Cluster.snapshot` makes it; each restores the other's."""
        self._ask_all("settle")
        copies = [self.ask_owner(number, "copy") for number in range(len(self))]
        return ClusterSnapshot(
            without_failures(self.topology),
            tuple(snapshot_of(copy["chip"]) for copy in copies),
            tuple(LinkState(*copy["links"]) for copy in copies),
        )

    def restore(self, snapshot: ClusterSnapshot) -> None:
        """Put the chips back into a snapshot's state, whatever number of workers it was made with.

        Raises:
            ConfigurationError: the copy is of another system, or of another version of bhemu.
        """
        snapshot.check(self.topology)
        self._ask_all("settle")  # so that nothing arrives that was sent before
        self._heard = None
        for number, (chip, links) in enumerate(zip(snapshot.chips, snapshot.links, strict=True)):
            content = {"chip": chip.plain(), "links": (links.layout, links.fault, links.frames)}
            self.ask_owner(number, "put", content)
        self._refusals.clear()
        self._time = min(self._ask_all("time"))

    def close(self) -> None:
        """End the workers. That happens as well when the cluster is no longer used, or this process ends."""
        self._workers.close()

    def __enter__(self) -> SpreadCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        links, workers = len(self.topology.links), len(self.workers)
        return (
            f"<SpreadCluster {self.topology.name}: {len(self)} chips, {links} links, {workers} workers, "
            f"{self.time:,} clocks>"
        )


class _RemoteWiring(Wiring):
    """Links whose ends workers have."""

    def __init__(self, cluster: SpreadCluster) -> None:
        self._cluster = cluster

    def time(self, end: End) -> int:
        return self._cluster.time

    def let_fail(self, failure: Failure) -> None:
        self._cluster.topology.link_at(failure.end)
        self._cluster._ask_all(
            "let_fail", (failure.end.chip, failure.end.channel, failure.kind, failure.clock, failure.value)
        )

    def state(self, end: End) -> EndState:
        return EndState(*self._cluster.ask_owner(end.chip, "link", end.channel))


def _count(workers: int | None, hosts: Sequence[str] | None) -> int:
    """How many workers arguments ask for."""
    if hosts is None:
        return checks.integer(_DEFAULT_WORKERS if workers is None else workers, "workers", 1, error=ConfigurationError)
    if workers is not None:
        raise ConfigurationError("workers and hosts are given", remedy="give hosts as name:workers")
    count = 0
    for host in hosts:
        name, _, slots = checks.text(host, "a host").partition(":")
        if not name or name.startswith("-") or "," in name or (slots and not slots.isdecimal()) or slots == "0":
            raise ConfigurationError(f"host {host!r}", remedy="write name, or name:workers")
        count += int(slots or 1)
    if not count:
        raise ConfigurationError("hosts are empty", remedy="name at least this machine")
    return count
