"""A debugging session: run, stop, step and inspect a tile with programs on its cores, from Python.

Example:
    machine = bhemu.Machine()
    machine.load("kernel.elf", "T1")
    machine.start()
    session = DebugSession(machine)
    session.break_at("main")
    print(session.continue_().text, session.where())
    session.step()
"""

from __future__ import annotations

from typing import Final

from bhemu.api.machine import Machine
from bhemu.api.tile import Tile
from bhemu.api.tile_programs import TilePrograms
from bhemu.checks import checked
from bhemu.debugger import core_view
from bhemu.debugger.breakpoints import Breakpoint, DebugError
from bhemu.debugger.history import History
from bhemu.debugger.points import Points
from bhemu.debugger.runner import Runner
from bhemu.debugger.stops import Stop
from bhemu.debugger.unwind import RA, SP, Frame, Unwinder, backtrace
from bhemu.debugger.watchpoints import Watch
from bhemu.debugger.writers import WriterWatch
from bhemu.isa.riscv_words import is_call
from bhemu.loader.lines import SourceLine
from bhemu.machine.agents import CORE_NAMES
from bhemu.machine.core_state import HALTED, IN_RESET
from bhemu.machine.state import L1_SIZE
from bhemu.tile.cores import HALT_REASONS

STEP_CLOCKS: Final = 1_000_000
"""Clocks that one step waits for its core."""
LINE_STEPS: Final = 100_000
"""Instructions of one step by source lines, at most."""
LONGEST_STACK: Final = 64


@checked
class DebugSession(Points):
    """Controls a tile.

    Args:
        target: a machine with its programs loaded and started, or a tile without symbols.
        runner: moves the tile, where `target` is the programs of a tile of a chip; see `ChipDebug`.

    Attributes:
        machine: the programs.
        runner: moves the tile.
        core: number of the chosen core; what methods take when none is given.
    """

    def __init__(self, target: Machine | Tile | TilePrograms, runner: Runner | None = None) -> None:
        super().__init__(target, runner)
        self._unwinders: dict[int, Unwinder] = {}

    # --- running ----------------------------------------------------------------------------------------------------

    def continue_(self, clocks: int | None = None) -> Stop:
        """Run to a breakpoint, a watchpoint, a halt or a refusal, until nothing can proceed, or for `clocks`."""
        return self.runner.run(clocks, skip=self._running(self.core), poll=self.poll)

    def until(self, clocks: int) -> Stop:
        """Let clocks of the tile pass, idle or not; breakpoints, halts and refusals stop it earlier.

        Raises:
            DebugError: `clocks` is less than 1.
        """
        if clocks < 1:
            raise DebugError(f"{clocks} clocks", remedy="let 1 clock pass at least")
        return self.runner.run(clocks, skip=self._running(self.core), stop_when_idle=False, poll=self.poll)

    def step(self, core: str | int | None = None, count: int = 1, *, clocks: int | None = STEP_CLOCKS) -> Stop:
        """Let a core execute instructions while the rest of the tile moves as it does without a debugger.

        A T core executes up to four adjacent `.ttinsn` at once (tile T11).

        Args:
            core: by default the chosen one.
            count: instructions.
            clocks: to wait for the core, which may be blocked; None for no limit.

        Raises:
            DebugError: the core cannot execute anything: it is in reset or halted.
        """
        number = self.number_of_core(core)
        self._check_can_step(number)
        if count < 1:
            raise DebugError(f"{count} steps", remedy="do 1 step at least")
        target = self.runner.state(number).retired + count

        def reached() -> Stop | None:
            now = self.runner.state(number)
            return Stop("step", "", self.clock, number, now.pc) if now.retired >= target else None

        stop = self.runner.run(clocks, goal=reached, skip=number, poll=self.poll)
        return self._say_who_waits(stop, number)

    def next(self, core: str | int | None = None, *, clocks: int = STEP_CLOCKS) -> Stop:
        """Like `step`, but a call is executed to its return."""
        number = self.number_of_core(core)
        self._check_can_step(number)
        now = self.runner.state(number)
        if not self._is_call(now.pc):
            return self.step(number, clocks=clocks)
        return self._run_to(number, now.pc + 4, int(now.x[SP]), clocks)

    def finish(self, core: str | int | None = None, *, clocks: int | None = None) -> Stop:
        """Run until the function in which a core is has returned.

        Raises:
            DebugError: its return address cannot be determined.
        """
        number = self.number_of_core(core)
        self._check_can_step(number)
        frames = self.backtrace(number, 2)
        if len(frames) < 2 or frames[0].cfa is None:
            raise DebugError(
                f"core {CORE_NAMES[number]} is in its outermost function, or its stack cannot be followed",
                remedy="set a breakpoint where it continues: `break *ADDRESS`",
            )
        return self._run_to(number, frames[1].pc, frames[0].cfa, clocks)

    def step_line(self, core: str | int | None = None, *, over_calls: bool = False) -> Stop:
        """Run until a core begins another source line; functions without source lines are run to their return.

        Args:
            core: by default the chosen one.
            over_calls: do not stop in functions that the line calls.
        """
        number = self.number_of_core(core)
        start = self.line(number)
        if start is None:
            return self.next(number) if over_calls else self.step(number)
        stop: Stop | None = None
        for _ in range(LINE_STEPS):
            pc = self.runner.state(number).pc
            stop = self.next(number) if over_calls else self.step(number)
            now = self.runner.state(number)
            if stop.reason != "step":
                return stop
            if self.line(number) is None and self._is_call(pc) and int(now.x[RA]) == pc + 4:
                stop = self._run_to(number, pc + 4, int(now.x[SP]), STEP_CLOCKS)
                if stop.reason != "step":
                    return stop
            line = self.line(number)
            if line is not None and (line != start or self._begins_line(number, line)):
                return stop
        assert stop is not None
        stop.text = f"still no other source line after {LINE_STEPS:,} instructions"
        return stop

    def _begins_line(self, core: int, line: SourceLine) -> bool:
        """A loop has come back to the beginning of the line."""
        executable = self.executable_at(core, self.runner.state(core).pc)
        if executable is None:
            return False
        starts = executable.addresses_of_line(line.file, line.line)
        return bool(starts) and self.runner.state(core).pc == starts[0]

    def _run_to(self, core: int, address: int, sp: int, clocks: int | None) -> Stop:
        """Run until a core reaches an address with a stack no deeper than `sp`."""
        record = self.record
        there = Breakpoint(
            -1,
            "",
            address,
            cores=frozenset((core,)),
            condition=lambda c: int(record.core_x[c, SP]) >= sp,
            is_private=True,
        )
        stop = self.runner.run(clocks, internal=[there], skip=core, poll=self.poll)
        return self._say_who_waits(stop, core)

    def _is_call(self, pc: int) -> bool:
        word = int(self.record.l1_u32[pc >> 2]) if pc < L1_SIZE else 0
        return is_call(word)

    def _running(self, core: int) -> int | None:
        return None if self.record.core_state[core] in (IN_RESET, HALTED) else core

    def _check_can_step(self, core: int) -> None:
        name, state = CORE_NAMES[core], self.record.core_state[core]
        if state == IN_RESET:
            raise DebugError(f"core {name} is in reset", remedy="choose a core that runs: `info threads`")
        if state == HALTED:
            reason = HALT_REASONS[int(self.record.core_halt_reason[core])]
            raise DebugError(
                f"core {name} has halted: {reason}", remedy="`resume` lets it go on with the instruction at its pc"
            )

    def _say_who_waits(self, stop: Stop, core: int) -> Stop:
        if stop.reason in ("limit", "idle"):
            stop.text = f"core {CORE_NAMES[core]} has made no progress ({stop.text}):\n{self.machine.explain()}"
        return stop

    # --- going back -------------------------------------------------------------------------------------------------

    def reverse_step(self, core: str | int | None = None, count: int = 1) -> Stop:
        """Go back to where a core had executed `count` instructions fewer: the state that a step forward shows.

        Args:
            core: by default the chosen one.
            count: instructions.

        Raises:
            DebugError: the session cannot go back; it is where it was.
        """
        number = self.number_of_core(core)
        if count < 1:
            raise DebugError(f"{count} steps", remedy="do 1 step at least")
        history = self._past()
        stop = history.back_to(lambda: self.runner.state(number).retired, count, number)
        stop.core, stop.pc, stop.place = number, self.runner.state(number).pc, self.runner.place
        return stop

    def reverse_line(self, core: str | int | None = None) -> Stop:
        """Go back to the beginning of the source line that a core was at before; see `reverse_step`."""
        number = self.number_of_core(core)
        start, found = self.line(number), None
        stop = self.reverse_step(number)
        for _ in range(LINE_STEPS):
            line = self.line(number)
            if stop.reason != "step" or start is None:
                break
            if line is not None and line != start:
                found = found or line
            if found is not None and line == found and self._begins_line(number, line):
                break
            stop = self.reverse_step(number)
        return stop

    def reverse_continue(self) -> Stop:
        """Go back to the last place at which a breakpoint or a watchpoint stops the run, or to its beginning."""
        stop = self._past().back_to_stop()
        stop.place = stop.place or self.runner.place
        return stop

    def go_to(self, clock: int) -> None:
        """Go back to the end of a clock of the tile, or of the chip.

        Raises:
            DebugError: the history does not reach so far back, or the clock has not passed yet.
        """
        self._past().go_to(clock)

    def last_write(self, *watches: Watch) -> Stop | None:
        """The last change of what some watchpoints watch, and who has made it; the session stays where it is.

        A core's store counts also when it stores what was there. Other changes are compared after every round.

        Args:
            watches: from `watch_memory`, `watch_config`, ...; they need not belong to the session any more.

        Returns:
            The stop after it, with a text that says who; None when there was none since the history begins.
        """
        return self._past().last_event(self.runner.number, [WriterWatch(watch, self) for watch in watches])

    def _past(self) -> History:
        self.runner.history.poll = self.poll
        return self.runner.history

    # --- stack ------------------------------------------------------------------------------------------------------

    def backtrace(self, core: str | int | None = None, limit: int = LONGEST_STACK) -> list[Frame]:
        """The functions of a core that have not returned, innermost first."""
        number = self.number_of_core(core)
        now = self.runner.state(number)

        def holding(address: int) -> Unwinder | None:
            executable = self.executable_at(number, address)
            if executable is None:
                return None
            return self._unwinders.setdefault(id(executable), Unwinder(executable))

        def load(address: int) -> int | None:
            if address % 4 or (address >= L1_SIZE and not core_view.is_local(number, address, 4)):
                return None
            return int.from_bytes(core_view.read(self.tile, number, address, 4), "little")

        return backtrace(now.pc, [int(value) for value in now.x], holding, load, limit)
