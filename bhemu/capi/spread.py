"""The chips behind the library in several processes, on one machine or several (BHEMU_WORKERS, BHEMU_HOSTS).

The process that serves the client leads the workers (bhemu/hosts). Reads, writes and clocks go to them as they come;
what chips access of the client's memory goes the other way.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from bhemu.capi.attach import RECORD, Say
from bhemu.capi.bus import device_of, place_of
from bhemu.capi.refusals import refusal_text
from bhemu.capi.settings import HOSTS, SEMIHOSTING, TIME, WORKERS, Settings
from bhemu.capi.slots import Table
from bhemu.capi.told import say_who_waits, who_polls
from bhemu.chip.pcie.host_memory import HostMemory
from bhemu.cluster.topology import Topology
from bhemu.errors import BhemuError, ConfigurationError
from bhemu.hosts.cluster import SpreadCluster
from bhemu.hosts.engine import INSTALL, WorkerLost, mpiexec
from bhemu.hosts.messages import Refused, result
from bhemu.machine.faults import FAULTS

_ALONE: Final = {
    RECORD: "a recording",
    "BHEMU_DEBUG": "a debugger",
    SEMIHOSTING: "semihosting",
}
"""Variables of what needs all chips in one process."""
_MOST_POSTED: Final = 8
"""Batches of posted writes that wait for a command, at most: of a mebibyte each (channel.h)."""


class _LibraryCluster(SpreadCluster):
    """A cluster whose workers serve a client of the library.

    Attributes:
        active: tiles that can proceed, and 0 when a link fails, too.
    """

    _WORKER: ClassVar = "bhemu.capi.spread_worker"
    active: int = 0

    def _have_passed(self, answers: Sequence[Any]) -> None:
        self.active = 0 if any(fails for *_, fails in answers) else sum(active for *_, active, _ in answers)

    def tell_all(self, name: str, *arguments: Any) -> list[Any]:
        """Give a command to all workers; returns their answers."""
        return self._ask_all(name, *arguments)

    def tell_after(self, posted: bytes, chip: int, name: str, *arguments: Any) -> tuple[list[Any], bytes]:
        """Give writes to all workers, and then a command to the one that has a chip.

        Returns:
            What each has refused of the writes, and the answer to the command (hosts/messages.py).
        """
        owner = self._owner[chip]
        commands: dict[int, tuple[Any, ...]] = dict.fromkeys(range(len(self.workers)), ("write_all", posted))
        refused = self._ask(commands | {owner: ("after", posted, name, chip, *arguments)})
        refused[owner], told = refused[owner]
        return refused, told

    @property
    def refusing(self) -> int | None:
        """Number of the chip that has refused something last while clocks passed."""
        return self._refusing


@dataclass(frozen=True)
class _Chip:
    """A chip that a worker has, as the client accesses it."""

    system: SpreadSystem
    number: int

    def read(self, paddr: int, size: int) -> bytes:
        content: bytes = self.system.ask(self.number, "pci_read", paddr, size)
        return content

    def write(self, paddr: int, content: bytes) -> None:
        self.system.ask(self.number, "pci_write", paddr, content)

    def read_config(self, bdf: int, offset: int) -> int:
        word: int = self.system.ask(self.number, "config_read", bdf, offset)
        return word

    def write_config(self, bdf: int, offset: int, value: int) -> None:
        self.system.ask(self.number, "config_write", bdf, offset, value)


class SpreadSystem:
    """The chips, in several processes; it does what `System` does.

    Args:
        topology: which.
        settings: of the library.
        host: the client's memory.
        refuse_write: tells the client that a posted write was refused.

    Attributes:
        recording: None; chips of several processes are not recorded.

    Raises:
        ConfigurationError: the engine is not installed or cannot start the workers, there are more workers than chips,
            or another setting needs all chips in one process.
    """

    recording: None = None

    def __init__(
        self, topology: Topology, settings: Settings, host: HostMemory, refuse_write: Callable[[BhemuError], None]
    ) -> None:
        asked = WORKERS if settings.workers else HOSTS
        for name, what in _ALONE.items():
            if os.environ.get(name):
                raise ConfigurationError(
                    f"{asked} and {name} are both set: {what} needs all chips in one process",
                    remedy="unset one of them",
                )
        if settings.timed:
            raise ConfigurationError(
                f"{TIME} is 'silicon', and {asked} is set: processes of workers execute rounds",
                remedy="unset one of them",
            )
        try:
            mpiexec()
        except ConfigurationError as error:
            raise ConfigurationError(
                error.message, remedy=f"{INSTALL}, for the Python that BHEMU_PYTHON names; or unset {asked}"
            ) from None
        self._cluster = _LibraryCluster(
            topology,
            workers=settings.workers or None,
            hosts=settings.hosts or None,
            allow_open=settings.allow_open,
            threads=settings.threads,
            quantum=settings.quantum,
            simulator_order=settings.simulator_order,
            host=host,
        )
        self._cluster.tell_all("begin", settings.run_ahead)
        self._chips = tuple(_Chip(self, number) for number in range(len(topology.chips)))
        self._concerned = 0
        self._posted: list[bytes] = []
        self._refuse_write = refuse_write

    def connect(self, table: Table) -> None:
        """Let the server call Python for everything.

        Args:
            table: that the server reads.
        """
        table.unseen_clocks = table.chips = table.find = table.run = None
        table.watched_count = table.active = 0
        self._table = table

    def close(self) -> None:
        """The chips end, and the processes of the workers."""
        self._cluster.close()

    # --- time -------------------------------------------------------------------------------------------------------

    @property
    def time(self) -> int:
        """Clocks that have passed on all chips."""
        return self._cluster.time

    def clock(self, clocks: int) -> None:
        """Let clocks pass.

        Raises:
            BhemuError: an instruction was refused.
            WorkerLost: a worker has ended, and with it all others.
        """
        self.flush()  # not with the clocks: when one worker has refused a write, the others must not wait for it
        try:
            self._cluster.clock(clocks)
        except BhemuError:
            if self._cluster.refusing is not None:
                self._concerned = self._cluster.refusing
            raise
        self._table.active = self._cluster.active

    def attend(self) -> None:
        """Workers finish what they begin."""

    # --- what the host sees -----------------------------------------------------------------------------------------

    def device(self, bdf: int) -> tuple[_Chip, int]:
        """(the chip that is a device of bus 0, what is left of `bdf`): to the first chip others are not there."""
        self._concerned, rest = device_of(bdf, len(self._chips))
        return self._chips[self._concerned], rest

    def place(self, paddr: int) -> tuple[_Chip, int]:
        """(the chip that has a PCI address in its BARs, the address as the first chip has it)."""
        self._concerned, at = place_of(paddr, len(self._chips))
        return self._chips[self._concerned], at

    def post(self, writes: bytes) -> None:
        """Writes are to be carried out before anything else that a worker does."""
        self._posted.append(writes)
        if len(self._posted) > _MOST_POSTED:
            self.flush()

    def flush(self) -> None:
        """Let workers carry out what was posted."""
        if self._posted:
            self._say_refused(self._cluster.tell_all("write_all", self._take_posted()))

    def ask(self, chip: int, name: str, *arguments: Any) -> Any:
        """Give a command to the worker that has a chip, after what was posted; returns its answer."""
        if not self._posted:
            return self._cluster.ask_owner(chip, name, *arguments)
        refused, told = self._cluster.tell_after(self._take_posted(), chip, name, *arguments)
        self._say_refused(refused)
        self._concerned = chip
        try:
            return result(told)
        except Refused as error:
            raise error.error from None

    def _take_posted(self) -> bytes:
        posted, self._posted = b"".join(self._posted), []
        return posted

    def _say_refused(self, told: Sequence[Any]) -> None:
        """Tell the client what workers have refused of its writes, in their order."""
        for _, message in sorted(pair for part in told for pair in part):
            try:
                result(message)
            except Refused as refused:
                self._concerned = refused.chip or 0
                self._refuse_write(refused.error)

    # --- what the client is told ------------------------------------------------------------------------------------

    def refusal(self, function: str, error: BaseException) -> str:
        """The message of a refusal; its worker has said where it was."""
        time = self.time
        if not isinstance(error, WorkerLost):
            with suppress(BhemuError):
                time = self._cluster[self._concerned].time
        return refusal_text(function, error, None, clock=time)

    def say_who_waits(self, say: Say) -> None:
        """Say which links fail, and what waits for what."""
        failed = []
        for link in self._cluster.links.failing:
            failed += [end.chip for end in link.ends]
            say(f"[{self.time}] bhemu: link {link.name}: {link.state}\n")
        ask = self._cluster.ask_owner
        say_who_waits(
            say, self.time, len(self._chips), failed, lambda chip, moving: str(ask(chip, "who_waits", moving))
        )

    def say_who_polls(self) -> str | None:
        """What the cores poll, chip by chip; None when one of those that are looked at does more than poll."""
        return who_polls(self.time, len(self._chips), lambda chip: self._cluster.ask_owner(chip, "who_polls"))

    def happened(self) -> int:
        """A number that is another one when something has happened on a chip that does not where cores poll."""
        numbers: list[int] = self._cluster.tell_all("happened")
        return sum(numbers) & (1 << 62) - 1

    def choices_made(self) -> list[str]:
        """Names of the open cases in which a chip has used the recommended choice so far."""
        try:
            told = self._cluster.tell_all("choices")
        except WorkerLost:
            return []
        return list(dict.fromkeys(FAULTS[code].name for codes in told for code in codes))
