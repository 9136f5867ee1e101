"""Debugging tiles of a chip: a session for each tile, and one run that moves the whole chip.

The chip moves a clock at a time while it is debugged. A breakpoint stops it inside of that clock, before the
instruction; steps, watchpoints, halts and breakpoints on Tensix instructions are seen between two clocks. A clock has
more than one round where the coprocessor executes something, so a step may execute more than one instruction there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from bhemu.api.blocked import can_move
from bhemu.api.chip import Chip
from bhemu.api.semihosting import Semihosting
from bhemu.checks import checked
from bhemu.chip.coordinates import Place, tile_place
from bhemu.debugger.breakpoints import Breakpoint, CodeMarks, DebugError
from bhemu.debugger.debugged_tile import DebuggedTile
from bhemu.debugger.history import History, Position, Timeline
from bhemu.debugger.runner import GROW_AFTER, Runner, digest, quiet
from bhemu.debugger.session import DebugSession
from bhemu.debugger.stops import Stop
from bhemu.debugger.watchpoints import Watch
from bhemu.errors import BhemuError
from bhemu.machine.agents import CORES, B
from bhemu.machine.core_state import HALTED
from bhemu.tile.turn_ends import AT_BREAKPOINT


class Reached(Exception):
    """A core of a tile is at a breakpoint; leaves the chip inside of a clock."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(stop.text)
        self.stop = stop


class ChipTileRunner(Runner):
    """The breakpoints and positions of one tile; `ChipDebug` moves it."""

    def __init__(self, debug: ChipDebug, tile: DebuggedTile) -> None:
        self.debug = debug
        super().__init__(tile)
        self.history = debug.history

    def _inside_of_a_clock(self) -> tuple[int, int] | None:
        return None

    @property
    def clock(self) -> int:
        """Clocks of the chip that have passed."""
        return self.debug.chip.time

    def run(
        self,
        clocks: int | None,
        *,
        goal: Callable[[], Stop | None] | None = None,
        internal: Iterable[Breakpoint] = (),
        skip: int | None = None,
        stop_when_idle: bool = True,
        poll: Callable[[], bool] | None = None,
    ) -> Stop:
        """Let the chip run until something happens in this tile, or at a breakpoint of another; see `Runner.run`."""
        self._goal, self._internal = goal, list(internal)
        self._skip(skip)
        try:
            return self.debug.run(self, clocks, stop_when_idle=stop_when_idle, poll=poll)
        finally:
            self._goal, self._internal = None, []

    # --- for ChipDebug ----------------------------------------------------------------------------------------------

    def _skip(self, core: int | None) -> None:
        """A core executes the instruction at its pc although a breakpoint is there."""
        if core is not None:
            self._reported[core] = self.state(core).pc

    def begin(self) -> CodeMarks:
        """Remember what counts as new from here on; the places that cores are to stop at."""
        record = self.record
        self._halted = {core for core in range(CORES) if record.core_state[core] == HALTED}
        self._issued = record.issued.copy()
        for watch in self.watches:
            if watch.enabled:
                watch.begin()
        marks = CodeMarks.of([item for item in (*self.breakpoints, *self._internal) if item.enabled], record)
        self._wake_at(marks)
        for core, pc in self._reported.items():
            if self.state(core).pc == pc:
                self.wake(core)
                record.core_skip_breakpoint[core] = 1
        self._reported = {}
        return marks

    def before(self) -> None:
        """Before each clock."""
        for watch in self.watches:
            if watch.enabled:
                watch.before_round()

    def at_mark(self, core: int) -> Stop | None:
        """A core is at a place that is marked; the stop, or None when it is to go on."""
        hit = self._hit(core)
        if hit is None:
            self._take_over(core)
            return None
        return self._at_breakpoint(core, hit)

    def after(self) -> Stop | None:
        """What has happened in a clock."""
        self._serve()
        watching = [watch for watch in self.watches if watch.enabled]
        return self._changed(watching) or self._halted_now() or self._at_tensix_breakpoint() or self._reaches_goal()


@checked
class ChipDebug(Timeline):
    """A debugger of tiles of a chip.

    Example:
        chip = bhemu.Chip()
        chip.load("kernel.elf", tiles=[(1, 2), (2, 2)])
        chip.start()
        debug = ChipDebug(chip, [(1, 2), (2, 2)])
        debug[1, 2].break_at("main")
        print(debug[1, 2].continue_().text)

    Args:
        chip: with its programs loaded and started.
        places: translated coordinates of the tiles that are debugged. The others run as they do.

    Attributes:
        chip: the same.
        sessions: a session for each tile, with breakpoints of its own.
    """

    def __init__(self, chip: Chip, places: Iterable[Place]) -> None:
        self.chip = chip
        chip.device.record.quantum = 1  # tiles do not run ahead of each other: a stop shows all in one clock
        self.history = History(self)
        self._inside: Position | None = None
        self.sessions: dict[Place, DebugSession] = {}
        self._runners: dict[int, ChipTileRunner] = {}
        for place in places:
            self._add(place)
        if not self.sessions:
            raise DebugError("no tile is named", remedy="name the tiles that are to be debugged")

    def _add(self, place: Place) -> None:
        tile = DebuggedTile(self.chip, self.chip[place])
        runner = ChipTileRunner(self, tile)
        runner.number = len(self._runners)
        self._runners[tile.index] = runner
        self.sessions[tile.place] = self._session(tile, runner)

    def _session(self, tile: DebuggedTile, runner: ChipTileRunner) -> DebugSession:
        return DebugSession(tile.programs, runner)

    def __getitem__(self, place: Place) -> DebugSession:
        """The session of a tile.

        Raises:
            DebugError: the tile is not debugged.
        """
        if place not in self.sessions:
            known = ", ".join(f"{x},{y}" for x, y in self.sessions)
            raise DebugError(f"tile {place[0]},{place[1]} is not debugged", remedy=f"debugged are {known}")
        return self.sessions[place]

    def serve(self, services: Callable[[], Semihosting]) -> None:
        """Serve `ecall` of the cores B of the debugged tiles."""
        for runner in self._runners.values():
            runner.semihosting = services()

    # --- running ----------------------------------------------------------------------------------------------------

    def run(
        self,
        asked: ChipTileRunner,
        clocks: int | None,
        *,
        stop_when_idle: bool = True,
        poll: Callable[[], bool] | None = None,
    ) -> Stop:
        """Let the chip run until something happens in a debugged tile, or for `clocks`.

        Args:
            asked: of the tile whose session asks: its goal ends the run.
            clocks: at most; None for no limit.
            stop_when_idle: stop as soon as no core or thread of the debugged tiles can proceed.
            poll: asked now and then; True interrupts the run.
        """
        self.history.begin()
        end = None if clocks is None else self.chip.time + clocks
        device = self.chip.device
        for index in self._runners:
            device.touch(index)
        marks = CodeMarks()
        for runner in self._runners.values():
            found = runner.begin()
            marks.places |= found.places
            marks.numbers |= found.numbers
        for index in self._runners:
            device.touch(index)  # cores that were waked move from now on
        passed = 0
        with marks.planted(), self._hooked():
            while True:
                if self._inside is None:
                    self.history.note()
                if end is not None and self.chip.time >= end:
                    return asked.stop_here("limit", "the clocks have passed")
                if poll is not None and passed % GROW_AFTER == 0 and poll():
                    return asked.stop_here("interrupted", "interrupted")
                stop = self._clock()
                if stop is not None:
                    return stop
                passed += 1
                if stop_when_idle and not any(can_move(runner.record) for runner in self._runners.values()):
                    text = "no core or thread of the debugged tiles can proceed without a write from outside of them"
                    return asked.stop_here("idle", text)

    def _clock(self) -> Stop | None:
        """Let a clock pass, or what is left of one."""
        chip = self.chip
        for runner in self._runners.values():
            runner.before()
        try:
            self._let_pass()
        except Reached as reached:
            return reached.stop
        except BhemuError as error:
            chip.locate(error)
            self._inside = (chip.time, 2)
            return self._fault(error)
        self._inside = None
        for index in self._runners:
            chip.device.touch(index)
        for index, runner in self._runners.items():
            stop = runner.after()
            if stop is not None:
                stop.place = self._place(index)
                return stop
        return None

    def _let_pass(self) -> None:
        self.chip.device.clock(1)

    def _fault(self, error: BhemuError) -> Stop:
        stop = Stop("fault", f"{error.category}: {error}", self.chip.time, None, error=error)
        for index, runner in self._runners.items():
            if error.tile == tile_place(index):
                stop.place = self._place(index)
                if error.core is not None:
                    stop.core, stop.pc = error.core, runner.state(error.core).pc
        return stop

    def _place(self, index: int) -> Place:
        tile = self._runners[index].tile
        assert isinstance(tile, DebuggedTile)
        return tile.place

    @contextmanager
    def _hooked(self) -> Iterator[None]:
        """Cores of the debugged tiles that reach a marked place end the chip's run."""
        with_hooks = []
        for index, runner in self._runners.items():
            cores = runner.tile.cores
            vars(cores)["serve"] = self._hook(index, runner, cores.serve)
            with_hooks.append(cores)
        try:
            yield
        finally:
            for cores in with_hooks:
                del vars(cores)["serve"]  # the method of the class again

    def _hook(self, index: int, runner: ChipTileRunner, serve: Callable[[int], int]) -> Callable[[int], int]:
        def hooked(status: int) -> int:
            result = serve(status)
            if result == AT_BREAKPOINT:
                core = int(runner.record.stopped_core)
                stop = runner.at_mark(core)
                if stop is not None:
                    self._inside = (self.chip.time, 1, index, int(runner.record.core_round[core]), core)
                    stop.place = self._place(index)
                    raise Reached(stop)
            return result

        return hooked

    # --- going back; see bhemu.debugger.history.Timeline ------------------------------------------------------------

    interval = 16384
    """Clocks from one snapshot to the next."""

    @property
    def clock(self) -> int:
        """Clocks of the chip that have passed."""
        return self.chip.time

    def position(self) -> Position:
        """The clock, and inside of a clock the tile, round and core at which it is stopped."""
        return (self.chip.time, 0) if self._inside is None else self._inside

    def copy(self) -> tuple[Any, int]:
        """The chip's state, and how many bytes that takes."""
        state = self.chip.device.snapshot()
        size = state.tiles.content.nbytes + sum(len(page) for pages in state.dram for page in pages.values())
        return (state, self._inside, {number: dict(r._reported) for number, r in self._runners.items()}), size

    def put(self, state: Any) -> None:
        """Put the chip back into a state."""
        content, self._inside, reported = state
        self.chip.device.restore(content)
        for number, runner in self._runners.items():
            runner._reported = dict(reported.get(number, {}))  # a tile may have been added since
            if runner.semihosting is not None and runner.record.core_state[B] != HALTED:
                runner.semihosting.status = None

    def fingerprint(self) -> bytes:
        """A digest of what programs of the debugged tiles can observe."""
        return b"".join(digest(runner) for runner in self._runners.values())

    def play(self, goal: Callable[[], bool]) -> Stop:
        """Run until a goal is reached, or something stops the chip; semihosting is served without output."""
        first = next(iter(self._runners.values()))
        first._goal = lambda: Stop("goal", "", self.clock) if goal() else None
        try:
            with quiet(*self._runners.values()):
                return self.run(first, None, stop_when_idle=False, poll=self.history.poll)
        finally:
            first._goal = None

    def points(self) -> tuple[list[list[Breakpoint]], list[list[Watch]]]:
        """The breakpoints and watchpoints of each tile."""
        runners = self._runners.values()
        return [runner.breakpoints for runner in runners], [runner.watches for runner in runners]

    def set_points(self, points: tuple[list[list[Breakpoint]], list[list[Watch]]]) -> None:
        """Put others in their place."""
        for runner, breakpoints, watches in zip(self._runners.values(), *points, strict=True):
            runner.breakpoints, runner.watches = breakpoints, watches

    def check_past(self) -> None:
        """Refuse to go back on a chip with links: frames on their way belong to two chips."""
        if self.chip.device.record.links:
            raise DebugError("a chip of a cluster with links cannot go back", remedy="debug one without links")
