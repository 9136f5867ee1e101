"""Links of a cluster: whether they are up, and how to let them fail (ethernet 6.1)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import bhemu.checks as checks
from bhemu.checks import checked
from bhemu.chip.device import Device
from bhemu.cluster.failures import DOWN_TEXT, LOST_TEXT, RETRAINS_TEXT, UP_TEXT, schedule, tile_of_end
from bhemu.cluster.topology import End, Failure, Topology, link_end
from bhemu.errors import ConfigurationError
from bhemu.ethernet.failures import DOWN, LOSE, RETRAIN, UP


class EndState(NamedTuple):
    """What is wrong with a link at one of its ends (ethernet 6.1).

    Attributes:
        down: it is down.
        until: clock at which its last training is over.
        cut: clock since which it is down.
        lost: frames that this end has lost.
    """

    down: bool
    until: int
    cut: int
    lost: int


class Wiring(ABC):
    """How links are reached: the chips may be in this process or in others."""

    @abstractmethod
    def time(self, end: End) -> int:
        """Clocks that have passed on the chip of an end."""

    @abstractmethod
    def let_fail(self, failure: Failure) -> None:
        """Something happens to a link, now or later."""

    @abstractmethod
    def state(self, end: End) -> EndState:
        """What is wrong with a link at an end."""


class DeviceWiring(Wiring):
    """Links of chips of this process.

    Args:
        devices: the chips.
        topology: which links there are.
        numbers: of these chips in the system; None: they are all.
    """

    def __init__(self, devices: Sequence[Device], topology: Topology, numbers: Sequence[int] | None = None) -> None:
        self._devices = dict(zip(range(len(devices)) if numbers is None else numbers, devices, strict=True))
        self._topology = topology

    def time(self, end: End) -> int:
        """Clocks that have passed on the chip of an end."""
        return self._devices[end.chip].time

    def let_fail(self, failure: Failure) -> None:
        """Something happens to a link, as far as its ends are here."""
        schedule(self._devices, self._topology, failure)

    def state(self, end: End) -> EndState:
        """What is wrong with a link at an end."""
        device = self._devices[end.chip]
        fault, channel = device.record.fault, tile_of_end(device, end).index
        return EndState(
            bool(fault.down[channel]), int(fault.until[channel]), int(fault.cut[channel]), int(fault.lost[channel])
        )


@checked
class Link:
    """A link between two Ethernet tiles: `cluster.links["0:2 - 1:9"]`.

    Example:
        >>> import bhemu
        >>> cluster = bhemu.Cluster("p300")
        >>> link = cluster.links["0:2"]
        >>> link.take_down()
        >>> link, cluster[0].ethernet[2].read_word(0x7CC04)
        (<Link 0:2 - 1:9: down since clock 0>, 2)

    Attributes:
        ends: chip and channel of each.
    """

    def __init__(self, wiring: Wiring, ends: tuple[End, End]) -> None:
        self._wiring = wiring
        self.ends = ends

    def take_down(self, at: int | None = None) -> None:
        """The link goes down: what is on its way is lost, and so is what is sent until it comes up.

        Args:
            at: before this clock; None: now.

        Raises:
            ConfigurationError: the clock has passed, or too many failures are to come.
        """
        self._schedule(DOWN, at)

    def bring_up(self, at: int | None = None) -> None:
        """A link that is down comes up, as after a training; see `take_down`."""
        self._schedule(UP, at)

    def retrain(self, clocks: int, at: int | None = None) -> None:
        """The link trains anew: what is on its way, or sent meanwhile, arrives later.

        Args:
            clocks: that it takes.
            at: before this clock it begins; None: now.
        """
        self._schedule(RETRAIN, at, checks.integer(clocks, "clocks", 1, checks.MAX_CLOCKS))

    def lose(
        self, frames: int = 1, *, sender: End | str | tuple[int, int] | None = None, at: int | None = None
    ) -> None:
        """The next frames are lost.

        Args:
            frames: how many.
            sender: the end that sends them; None: that many of each end.
            at: frames count that leave from this clock on; None: from now on.
        """
        count = checks.integer(frames, "frames", 1, checks.MAX_CLOCKS)
        chosen = self.ends if sender is None else (_end_of(sender),)
        if chosen[0] not in self.ends:
            raise ConfigurationError(
                f"{chosen[0]} is not an end of link {self.name}", remedy=f"use {self.ends[0]} or {self.ends[1]}"
            )
        for end in chosen:
            self._schedule(LOSE, at, count, end)

    def _schedule(self, kind: int, at: int | None, value: int = 0, end: End | None = None) -> None:
        now = max(map(self._wiring.time, self.ends))
        clock = now if at is None else checks.integer(at, "at", 0, checks.MAX_CLOCKS)
        self._wiring.let_fail(Failure(end or self.ends[0], kind, clock, value))

    @property
    def is_down(self) -> bool:
        """It is down."""
        return self._wiring.state(self.ends[0]).down

    @property
    def retrains_until(self) -> int | None:
        """The clock at which it has trained, while it does."""
        end = self._wiring.state(self.ends[0])
        return end.until if end.until > self._wiring.time(self.ends[0]) and not end.down else None

    @property
    def is_up(self) -> bool:
        """What is sent now arrives after the link's latency."""
        return not self.is_down and self.retrains_until is None

    @property
    def lost(self) -> int:
        """Frames that it has lost."""
        return sum(self._wiring.state(end).lost for end in self.ends)

    @property
    def state(self) -> str:
        """`up`, `down since clock 5000`, `retrains until clock 7000`, and how many frames were lost."""
        first, second = map(self._wiring.state, self.ends)  # once: the ends may be in other processes
        text = UP_TEXT
        if first.down:
            text = DOWN_TEXT.format(first.cut)
        elif first.until > self._wiring.time(self.ends[0]):
            text = RETRAINS_TEXT.format(first.until)
        lost = first.lost + second.lost
        return text + (LOST_TEXT.format(lost) if lost else "")

    @property
    def name(self) -> str:
        """Its ends: `0:2 - 1:9`."""
        return f"{self.ends[0]} - {self.ends[1]}"

    def __repr__(self) -> str:
        return f"<Link {self.name}: {self.state}>"


@checked
class Links:
    """The links of a cluster: iterable, and by one end or both: `links["0:2"]`, `links["0:2 - 1:9"]`, `links[0, 2]`."""

    def __init__(self, wiring: Wiring, topology: Topology) -> None:
        self._topology = topology
        self._links = {ends: Link(wiring, ends) for ends in topology.links}

    def __getitem__(self, name: End | str | tuple[int, int]) -> Link:
        """The link with an end.

        Raises:
            ConfigurationError: there is none.
        """
        end = _end_of(name)
        ends = self._topology.link_at(end)
        if isinstance(name, str) and "-" in name:
            other = link_end(name.partition("-")[2], "links")
            if {end, other} != set(ends):
                raise ConfigurationError(
                    f"{self._topology.name}: no link joins {end} and {other}", remedy=f"there is {ends[0]} - {ends[1]}"
                )
        return self._links[ends]

    def of(self, chip: int) -> list[Link]:
        """The links of a chip."""
        return [link for ends, link in self._links.items() if chip in (ends[0].chip, ends[1].chip)]

    def __iter__(self) -> Iterator[Link]:
        return iter(self._links.values())

    def __len__(self) -> int:
        return len(self._links)

    @property
    def failing(self) -> list[Link]:
        """The links that are not up, or have lost something."""
        return [link for link in self if link.state != UP_TEXT]

    def explain(self) -> str:
        """A line for each link that fails."""
        return "\n".join(f"link {link.name}: {link.state}" for link in self.failing)

    def __repr__(self) -> str:
        down = sum(not link.is_up for link in self)
        return f"<{len(self)} links, {down} of them down or training>"


def _end_of(name: End | str | tuple[int, int]) -> End:
    if isinstance(name, End):
        return name
    if isinstance(name, str):
        return link_end(name, "links")
    chip, channel = checks.place(name)
    return End(chip, channel)
