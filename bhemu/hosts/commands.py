"""What the leader can ask a worker to do with its chips. Commands and their arguments are plain values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from bhemu.api.chip import Chip
from bhemu.api.chip_snapshot import ChipSnapshot, snapshot_of
from bhemu.api.cluster_run import chip_is_at_rest, name_chip
from bhemu.api.cluster_snapshot import topology_of
from bhemu.cluster.snapshot import LinkState, check_links, copy_links, put_links
from bhemu.cluster.topology import End, Failure
from bhemu.errors import BhemuError, ProgramError
from bhemu.hosts.leader_host import AskLeader, remote_memory
from bhemu.hosts.messages import answer, refusal
from bhemu.hosts.part import Part
from bhemu.hosts.rounds import Exchange, Request, pass_clocks, settle
from bhemu.loader.elf import parse_elf


class Worker:
    """A worker, as its commands see it.

    Args:
        exchange: with the others.
        ask_leader: for memory of its host.
    """

    commands: ClassVar[dict[str, Callable[..., Any]]] = {}
    """By their names."""

    def __init__(self, exchange: Exchange, ask_leader: AskLeader) -> None:
        self._exchange = exchange
        self._ask_leader = ask_leader
        self._part: Part | None = None

    def handle(self, name: str, arguments: tuple[Any, ...]) -> bytes:
        """Carry out a command; returns the answer (bhemu/hosts/messages.py)."""
        command = self.commands.get(name)
        if command is None:
            return refusal(ProgramError(f"a worker has no command {name!r}", remedy="use the same version everywhere"))
        try:
            return answer(command(self, *arguments))
        except _Stopped as stopped:
            return refusal(stopped.error, stopped.chip)
        except BhemuError as error:
            return refusal(error)

    @property
    def part(self) -> Part:
        """The chips that it has."""
        if self._part is None:
            raise ProgramError("a worker has no chips yet", remedy="make them first")
        return self._part

    def _chip(self, number: int) -> Chip:
        return self.part.chips[number]

    def locate(self, error: BhemuError, number: int, chip: Chip) -> None:
        """Say in a refusal where it was."""
        name_chip(error, number, chip)

    # --- commands ---------------------------------------------------------------------------------------------------

    def make(
        self, system: dict[str, Any], numbers: tuple[int, ...], settings: dict[str, Any], host: tuple[bool, bool]
    ) -> None:
        """Make chips of a system, which can read or write memory of the leader's host."""
        memory = remote_memory(self._ask_leader, *host) if any(host) else None
        self._part = Part(topology_of(system), numbers, settings, memory, self.locate)

    def clock(self, start: int, end: int, heard: int | None) -> Any:
        """Let clocks pass (see `Request`); returns how many have passed, and `heard` as it is then."""
        error, heard = pass_clocks(self.part, Request(start, end, heard), self._exchange)
        if error is not None:
            raise _Stopped(error, self.part.refusing)
        return self.part.time, heard

    def time(self) -> int:
        """Clocks that have passed."""
        return self.part.time

    def chip_time(self, number: int) -> int:
        """Clocks that have passed on a chip."""
        return self._chip(number).time

    def settle(self) -> None:
        """What chips of other workers have sent is on its way."""
        settle(self.part, self._exchange)

    def is_at_rest(self) -> bool:
        """Nothing proceeds on its chips, or is on its way to them."""
        return all(map(chip_is_at_rest, self.part.chips.values()))

    def explain(self) -> tuple[tuple[int, str], ...]:
        """Who waits for what, by chip."""
        return tuple((number, chip.explain()) for number, chip in self.part.chips.items())

    def read(self, number: int, place: tuple[int, int], address: int, size: int) -> bytes:
        """Bytes of a node's memory, or a register."""
        device = self._chip(number).device
        return device.read_node(device.node(place), address, size)

    def write(self, number: int, place: tuple[int, int], address: int, content: bytes) -> None:
        """Bytes into a node's memory, or a register."""
        device = self._chip(number).device
        device.write_node(device.node(place), address, content)

    def load(self, number: int, files: tuple[tuple[str | None, str, bytes], ...], tiles: Any) -> tuple[str, ...]:
        """Load ELF files, each with the core, its name and content."""
        chip = self._chip(number)
        if len(files) == 1 and files[0][0] is None:
            return chip.load(parse_elf(files[0][2], files[0][1]), tiles=tiles)
        return chip.load({str(core): parse_elf(content, name) for core, name, content in files}, tiles=tiles)

    def start(self, number: int, cores: tuple[str, ...], tiles: Any) -> None:
        """Release cores from reset."""
        self._chip(number).start(*cores, tiles=tiles)

    def hold(self, number: int, cores: tuple[str, ...], tiles: Any) -> None:
        """Put cores into reset."""
        self._chip(number).hold(*cores, tiles=tiles)

    def cores(self, number: int, place: tuple[int, int]) -> str:
        """A tile, as it shows itself."""
        chip = self._chip(number)
        tiles = {tile.place: tile for tile in (*chip.tensix, *chip.ethernet)}
        return repr(tiles[place])

    def let_fail(self, failure: tuple[int, int, int, int, int]) -> None:
        """Something happens to a link, now or later."""
        chip, channel, kind, clock, value = failure
        self.part.wiring.let_fail(Failure(End(chip, channel), kind, clock, value))

    def link(self, number: int, channel: int) -> tuple[bool, int, int, int]:
        """What is wrong with a link at an end."""
        return tuple(self.part.wiring.state(End(number, channel)))  # type: ignore[return-value]

    def copy(self, number: int) -> dict[str, Any]:
        """A copy of a chip and its links."""
        part = self.part
        chip = part.chips[number]
        state = dict(zip(part.chips, copy_links(part.devices), strict=True))[number]
        return {
            "chip": ChipSnapshot(chip.device.state(), chip.programs()).plain(),
            "links": (state.layout, state.fault, state.frames),
        }

    def put(self, number: int, content: dict[str, Any]) -> None:
        """Put a chip and its links back into the state of a copy."""
        chip = self._chip(number)
        links = LinkState(*content["links"])
        check_links([links])
        chip.restore(snapshot_of(content["chip"]))
        put_links([chip.device], [links])
        self.part.forget()


class _Stopped(Exception):
    """A chip has refused something while clocks passed."""

    def __init__(self, error: BhemuError, chip: int) -> None:
        super().__init__(str(error))
        self.error = error
        self.chip = chip


Worker.commands = {
    command.__name__: command
    for command in (
        Worker.make,
        Worker.clock,
        Worker.time,
        Worker.chip_time,
        Worker.settle,
        Worker.is_at_rest,
        Worker.explain,
        Worker.read,
        Worker.write,
        Worker.load,
        Worker.start,
        Worker.hold,
        Worker.cores,
        Worker.let_fail,
        Worker.link,
        Worker.copy,
        Worker.put,
    )
}
