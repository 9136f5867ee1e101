"""Running a program's three functions and the machine side by side.

Each function is a coroutine (a greenlet) that runs until its FIFO is full or it waits; then the machine is clocked
until nothing
in it can move. Semaphores, bank ownership and latched waits decide who moves, so the outcome does not depend on this
order.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from greenlet import greenlet

from bhemu.api.waits import explain
from bhemu.errors import BhemuError, CycleLimit, Deadlock, ProgramError
from bhemu.programs.thread_core import Core
from bhemu.tensix.coprocessor import THREAD_NAMES
from bhemu.tensix.frontend.run import CYCLES_SPENT

if TYPE_CHECKING:
    from bhemu.api.tile import Tile
    from bhemu.programs.program import Program

QUANTUM: Final = 100_000
"""Cycles after which the machine looks up, for progress and limits."""
IDLE_POLLS: Final = 10_000
"""Rounds in which only polling functions run and nothing changes, after which they are taken to poll forever."""


class Schedule:
    """One run of a program on a tile.

    Args:
        tile: the machine.
        program: bound to its tensors.
        max_cycles: stop with CycleLimit after this many cycles (a poll counts as one).
        progress: called now and then with the cores.
        core_type: what the functions get.
    """

    def __init__(
        self,
        tile: Tile,
        program: Program,
        *,
        max_cycles: int | None = None,
        progress: Callable[[list[Core]], Any] | None = None,
        core_type: type[Core] = Core,
    ) -> None:
        self._tile = tile
        self._program = program
        self._max_cycles = max_cycles
        self._progress = progress
        self._recorder = tile.recorder
        # A recorder wants to know after which instruction a core could have gone on, so it looks in every cycle.
        self._quantum = QUANTUM if self._recorder is None else 1
        self.cores = [core_type(tile, program, thread) for thread in range(3)]
        self._tasks = [greenlet(self._body(core)) for core in self.cores]

    def _body(self, core: Core) -> Callable[[], None]:
        function = self._program.threads[core.thread]
        assert function is not None

        def run() -> None:
            function(core)

        return run

    def run(self) -> None:
        """Run to the end.

        Raises:
            Deadlock: no thread can proceed, and at least one waits.
            CycleLimit: `max_cycles` have passed.
            ProgramError: a function failed.
            BhemuError: an instruction was refused.
        """
        idle_polls = 0
        while True:
            stepped = polled = False
            for core, task in zip(self.cores, self._tasks, strict=True):
                if task.dead or not core.is_ready():
                    continue
                polls = core.polls
                if self._recorder is not None:
                    self._recorder.saw(core.thread, core.sees())
                    self._recorder.resumed(core.thread, core.waits_for_others)
                self._switch(core, task)
                if self._recorder is not None:
                    self._recorder.saw(core.thread, core.sees())
                if core.polls > polls and not task.dead:
                    polled = True
                else:
                    stepped = True
            moved = self._clock()
            if self._progress is not None:
                self._progress(self.cores)
            if all(task.dead for task in self._tasks) and not self._pending():
                return
            if moved or stepped:
                idle_polls = 0
            elif polled:
                idle_polls += 1
                self._spend(0)
                if idle_polls > IDLE_POLLS:
                    raise self._deadlock()
            elif not any(not t.dead and c.is_ready() for c, t in zip(self.cores, self._tasks, strict=True)):
                raise self._deadlock()

    def _switch(self, core: Core, task: Any) -> None:
        try:
            task.switch()
        except BhemuError as error:
            error.file = self._program.path
            if error.line is None:
                error.line = self._line_of(error) or core.line
            if error.thread is None:
                error.thread = core.thread
            raise
        except Exception as error:
            failure = ProgramError(
                f"{THREAD_NAMES[core.thread]} function: {type(error).__name__}: {error}", remedy="fix the program"
            )
            failure.file = self._program.path
            failure.line = self._line_of(error) or core.line
            failure.thread = core.thread
            raise failure from error

    def _line_of(self, error: BaseException) -> int | None:
        """The innermost program line in the error's traceback."""
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(self._program.path)]
        return lines[-1] if lines else None

    def _clock(self) -> bool:
        """Clock the machine until nothing moves; True when something did."""
        record = self._tile.record
        start = int(record.clock)
        while True:
            status = self._tile.coprocessor.run(self._spend(self._quantum))
            if self._recorder is not None:
                for core in self.cores:
                    self._recorder.saw(core.thread, core.sees())
            if status != CYCLES_SPENT:
                return int(record.clock) > start
            self._spend(0)
            if self._progress is not None:
                self._progress(self.cores)

    def _spend(self, wanted: int) -> int:
        """At most `wanted` cycles, within the limit."""
        if self._max_cycles is None:
            return wanted
        spent = int(self._tile.record.clock) + sum(core.polls for core in self.cores)
        if spent >= self._max_cycles:
            error = CycleLimit(
                f"the program has not ended after {spent} cycles\n{self._explain()}",
                remedy="raise --max-cycles, or look for a loop that does not end",
            )
            raise error
        return min(wanted, self._max_cycles - spent) if wanted else 0

    def _pending(self) -> bool:
        f = self._tile.coprocessor.frontend
        return bool(f.fifo_count.any() or f.mop_active.any() or f.replay_play_left.any() or f.gate_full.any())

    def _explain(self) -> str:
        state = [
            (core.thread, "" if task.dead else core.waiting_for or "its turn", core.line)
            for core, task in zip(self.cores, self._tasks, strict=True)
        ]
        return explain(self._tile.record, state)

    def _deadlock(self) -> Deadlock:
        return Deadlock(
            f"nothing can move\n{self._explain()}",
            remedy="post the semaphore, hand over the bank or release the mutex that is waited for",
        )
