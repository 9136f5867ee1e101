"""The debugger of a running client's chip: clocks pass when the client asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from bhemu.api.chip import Chip
from bhemu.chip.coordinates import Place
from bhemu.chip.device import Device
from bhemu.client.gate import Gate
from bhemu.client.names import CodeNames
from bhemu.counting.launches import Launches
from bhemu.debugger.breakpoints import Breakpoint, DebugError
from bhemu.debugger.chip_session import ChipDebug, ChipTileRunner, Reached
from bhemu.debugger.debugged_tile import DebuggedTile
from bhemu.debugger.history import Checkpoint, Position
from bhemu.debugger.names import is_line
from bhemu.debugger.session import DebugSession
from bhemu.debugger.stops import Stop
from bhemu.errors import BhemuError
from bhemu.machine.agents import CORE_NAMES

AT_ONCE: Final = 64
"""Clocks that pass at once while nothing but a halt can stop the chip, which is seen after them."""
AT_ONCE_BEFORE_LAUNCH: Final = 16
"""The same while a breakpoint waits for its program."""
_NAMES: Final = "names"
"""Reason of a stop that the user does not see: breakpoints have got addresses."""


class LiveSession(DebugSession):
    """A tile of a running client's chip. Breakpoints by name get their addresses when the program is there.

    Args:
        tile: which.
        runner: moves the chip.
        names: of code.
    """

    def __init__(self, tile: DebuggedTile, runner: ChipTileRunner, names: CodeNames) -> None:
        names.refresh(tile.index, tile.l1, tile.programs)
        super().__init__(tile.programs, runner)
        self._code = names
        self._named: dict[int, str] = {}

    def refresh(self) -> None:
        """Give names to the code that is there now, and addresses to breakpoints."""
        index = self.runner.tile.index  # type: ignore[union-attr]
        if not self._code.refresh(index, self.tile.l1, self.machine):
            return
        for item in self.runner.breakpoints:
            if item.number in self._named:
                self._resolve(item, self._named[item.number])

    def has_pending(self) -> bool:
        """A breakpoint may get another address."""
        return any(item.number in self._named and item.enabled for item in self.runner.breakpoints)

    def describe_files(self) -> str:
        """Which ELF files the tile holds code of."""
        return self._code.describe(self.machine)

    def add_file(self, path: Path) -> None:
        """Look for code of a file, too.

        Raises:
            DebugError: the tile does not hold it.
        """
        self._code.add(path, self.tile.l1)
        self.refresh()

    def _resolve(self, item: Breakpoint, name: str) -> None:
        core = min(item.cores)
        chosen, self.core = self.core, core
        try:
            places = [self.locate(name)] if is_line(name) else self.own_places_of(core, name)
        except BhemuError:
            places = []
        finally:
            self.core = chosen
        item.address, item.copies = places[0] if places else None, tuple(places[1:])
        where = self.describe_places(core, places) if places else "when its program runs"
        item.text = f"{name} ({where})"

    def break_at(
        self,
        where: str | int,
        *,
        cores: Iterable[str | int] | None = None,
        condition: str | Callable[[int], bool] | None = None,
        temporary: bool = False,
    ) -> Breakpoint:
        """Stop before the instruction at a place; a name is that of the chosen core's program, also of later ones.

        See `DebugSession.break_at`.
        """
        chosen = [self.core] if cores is None else [self.number_of_core(core) for core in cores]
        is_name = isinstance(where, str) and not where.startswith("*") and not where[:1].isdigit()
        if not is_name:
            return super().break_at(where, cores=cores, condition=condition, temporary=temporary)
        name = str(where)
        if len(chosen) != 1:
            raise DebugError(
                f"{name} is at another address for each core", remedy="set a breakpoint for each: core T0, core T1, ..."
            )
        item = Breakpoint(self._next_number(), name, cores=frozenset(chosen), temporary=temporary)
        self._resolve(item, name)
        if item.address is None and not self._code.knows(name.rpartition(":")[0].rpartition("/")[2] or name):
            self.address_of(name)  # refuses, and names near ones, or is that of another core
            raise DebugError(
                f"the program of core {CORE_NAMES[chosen[0]]} has no {name}", remedy=f"say: break {name} core NAME"
            )
        if condition is not None:
            self.set_condition(item, condition)
        self._named[item.number] = name
        self.runner.breakpoints.append(item)
        return item


class LiveDebug(ChipDebug):
    """A debugger of tiles of a running client's chip.

    Args:
        device: the chip.
        gate: through which the client's calls come.
        names: of code.
        places: translated coordinates of the tiles; more can be chosen later.

    Raises:
        UndefinedBehavior: the chip has no such tile.
    """

    interval = 8192

    def __init__(self, device: Device, gate: Gate, names: CodeNames, places: Iterable[Place]) -> None:
        self.gate = gate
        self._names = names
        self._quantum = int(device.record.quantum)
        self._present: Checkpoint | None = None
        self._interrupted: Callable[[], bool] | None = None
        self._at_once = 1
        self._launches: Launches | None = None
        self._calls = -1
        chip = Chip.__new__(Chip)
        chip.__setstate__((device, device.harvesting, {}))
        try:
            super().__init__(chip, places)
        except BaseException:
            device.record.quantum = self._quantum
            raise
        gate.on_overflow = self.history.forget

    def close(self) -> None:
        """Let the client go on from its present."""
        if self._present is not None:
            self.history.return_to(self._present)
        self.chip.device.record.quantum = self._quantum
        self.gate.on_overflow = lambda: None
        self.gate.detach()

    def _session(self, tile: DebuggedTile, runner: ChipTileRunner) -> DebugSession:
        self._launches = None
        return LiveSession(tile, runner, self._names)

    def __getitem__(self, place: Place) -> DebugSession:
        """The session of a tile, which is debugged from now on.

        Raises:
            UndefinedBehavior: the chip has no such tile.
        """
        if place not in self.sessions:
            self._add(place)
        return self.sessions[place]

    # --- running ----------------------------------------------------------------------------------------------------

    def run(
        self,
        asked: ChipTileRunner,
        clocks: int | None,
        *,
        stop_when_idle: bool = True,
        poll: Callable[[], bool] | None = None,
    ) -> Stop:
        """Let the chip run; see `ChipDebug.run`. A chip in which nothing can proceed waits for its client."""
        if self.gate.error is None:
            self.gate.check_client()
        self._interrupted = poll
        end = None if clocks is None else self.chip.time + clocks
        while True:
            self._at_once = 1 if clocks is not None else self._clocks_at_once()
            left = None if end is None else end - self.chip.time
            stop = super().run(asked, left, stop_when_idle=False, poll=poll)
            if stop.reason != _NAMES:
                break
        if not self.history.playing:
            for session in self.sessions.values():
                assert isinstance(session, LiveSession)
                session.refresh()
        return stop

    def _clocks_at_once(self) -> int:
        runners = self._runners.values()
        if self.history.playing or any(runner._goal is not None for runner in runners):
            return 1
        if any(w.enabled for r in runners for w in r.watches):
            return 1
        points = [item for runner in runners for item in (*runner.breakpoints, *runner._internal) if item.enabled]
        if any((item.address, item.mnemonic, item.opcode) != (None, None, None) for item in points):
            return 1
        return AT_ONCE_BEFORE_LAUNCH if self._has_pending() else AT_ONCE

    def _has_pending(self) -> bool:
        return any(isinstance(session, LiveSession) and session.has_pending() for session in self.sessions.values())

    def _clock(self) -> Stop | None:
        stop = super()._clock()
        if stop is None and not self.history.playing and self._has_pending() and self._has_new_code():
            before = [item.addresses for runner in self._runners.values() for item in runner.breakpoints]
            for session in self.sessions.values():
                assert isinstance(session, LiveSession)
                session.refresh()
            if before != [item.addresses for runner in self._runners.values() for item in runner.breakpoints]:
                return Stop(_NAMES, "", self.clock)
        return stop

    def _has_new_code(self) -> bool:
        """A program has begun on a debugged tile; where the firmware is not tt-metal's: the client has written."""
        if self._launches is None:
            self._launches = Launches(self.chip.device.tiles, list(self._runners))
        begun, _ = self._launches.look()
        if self._launches.layout is not None:
            return bool(begun)
        called, self._calls = self._calls != self.gate.calls, self.gate.calls
        return called

    def _let_pass(self) -> None:
        device, gate = self.chip.device, self.gate
        if self.history.playing or self._present is not None:
            if self._present is not None and not self.history.playing and self._is_over(self._present):
                present, self._present = self._present, None
                self.history.return_to(present)
                raise Reached(Stop("present", "the present: from here on the client goes on", self.clock))
            if not gate.repeat(device):
                device.clock(1)
            return
        clocks = gate.take(self._interrupted)
        if clocks is None:
            raise Reached(Stop("interrupted", "interrupted", self.clock))
        if clocks == 0:
            return
        before = device.time
        try:
            device.clock(min(clocks, self._at_once))
        finally:
            gate.passed(device.time - before, device.time)

    def _is_over(self, present: Checkpoint) -> bool:
        """The run that can be repeated has been repeated."""
        return self.position() >= self.history.end_of_segment(present)

    def _fault(self, error: BhemuError) -> Stop:
        if not self.history.playing and self._present is None:
            self.gate.error = error
        return super()._fault(error)

    # --- going back -------------------------------------------------------------------------------------------------

    def position(self) -> Position:
        """The clock, and how many calls the client had made."""
        return (self.chip.time, 0, self.gate.cursors[0]) if self._inside is None else self._inside

    def copy(self) -> tuple[Any, int]:
        """The chip's state, and how far the client had got."""
        state, size = super().copy()
        return (state, self.gate.cursors), size

    def put(self, state: Any) -> None:
        """Put the chip back into a state."""
        super().put(state[0])
        self.gate.cursors = state[1]

    def check_change(self) -> None:
        """Refuse that the past of a client is changed."""
        if self._present is not None:
            raise DebugError(
                "the client has seen what came of this state, so it cannot be changed",
                remedy="`continue` (without breakpoints in between) comes back to the present",
            )

    @property
    def only_repeats(self) -> bool:
        """In the past, the run up to the present is repeated."""
        return self._present is not None

    def left(self, present: Checkpoint) -> None:
        """The chip has gone back from the client's present."""
        self._present = self._present or present
