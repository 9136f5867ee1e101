"""Letting a tile run until something happens, and stopping in the exact round in which it does.

Cores run ahead of each other on what is their own (tile/schedule.py), so a tile that has run many clocks to a
breakpoint shows the other cores somewhere else than a tile that moves round by round. A session must not show that. So
it runs in pieces: when something has happened in a piece, the tile is put back to the beginning of it and goes through
it again in smaller pieces, at last a round at a time. Nothing that is seen differs from a run without a debugger.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from bhemu.api.blocked import can_move
from bhemu.api.semihosting import Semihosting
from bhemu.api.tile import Tile
from bhemu.api.waits import pushed_from
from bhemu.debugger.breakpoints import Breakpoint, CodeMarks, is_pushed_with, number_of
from bhemu.debugger.debugged_tile import DebuggedTile
from bhemu.debugger.history import History, Position, Timeline
from bhemu.debugger.positions import StoppedTile
from bhemu.debugger.stops import Stop
from bhemu.debugger.watchpoints import Watch
from bhemu.errors import BhemuError
from bhemu.isa.assembler import disassemble
from bhemu.isa.riscv import find, is_ttinsn
from bhemu.machine.agents import CORE_NAMES, CORES, B
from bhemu.machine.core_state import ASLEEP, HALTED
from bhemu.machine.origin import pc_of_line
from bhemu.machine.state import L1_SIZE, THREADS, state_field
from bhemu.riscv.teams import NO_ATTEMPT
from bhemu.tensix.coprocessor import THREAD_NAMES
from bhemu.tile.cores import HALT_REASONS

Array = np.ndarray[Any, Any]

PIECES: Final = (0, 16, 256, 4096, 65536)
"""Clocks of a piece at each level; level 0 goes by rounds."""
GROW_AFTER: Final = 16
"""Pieces (at level 0: clocks) in which nothing happened, until pieces get larger."""
BEFORE_ALL: Final = -1
"""Place in the order of a round before core B."""
OBSERVED: Final = (
    *("l1", "core_ram", "dst", "dst_valid", "srca", "srcb", "lregs", "gpr", "config", "thread_config", "adc", "rwc"),
    *("sync.semaphore", "sync.semaphore_max", "sync.mutex_owner", "mailbox_word", "mailbox_count", "issued"),
    *("frontend.gate_word", "frontend.gate_full", "frontend.fifo_count", "core_f", "core_fcsr", "core_cfg0"),
    *("niu_initiator", "niu_counter", "src_owner", "prng"),
)
"""Fields of a tile's record that programs can observe."""


class Runner(StoppedTile, Timeline):
    """Moves a tile exactly, and stops it where breakpoints and watches say.

    Attributes:
        history: snapshots, to go back; see `bhemu.debugger.history`.
    """

    number = 0
    """Of the tile, among those of its history."""
    interval = 8192
    """Clocks from one snapshot to the next."""

    def __init__(self, tile: Tile | DebuggedTile) -> None:
        super().__init__(tile)
        self.history = History(self)
        self.breakpoints: list[Breakpoint] = []
        self.watches: list[Watch] = []
        self._goal: Callable[[], Stop | None] | None = None
        self._halted: set[int] = set()
        self._issued: Array = np.zeros((THREADS, 256), np.int64)
        self._internal: list[Breakpoint] = []
        self.semihosting: Semihosting | None = None
        """Serves `ecall` of core B; without it, ecall halts."""

    # --- running ----------------------------------------------------------------------------------------------------

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
        """Let the tile run until something happens.

        Args:
            clocks: at most; None for no limit.
            goal: asked after each piece; what it once says must not become untrue later, and it must be cheap.
            internal: breakpoints for this run only.
            skip: a core that executes the instruction at its pc even where a breakpoint is.
            stop_when_idle: stop as soon as no core or thread can proceed.
            poll: asked between pieces; True interrupts the run.
        """
        record = self.record
        self.history.begin()
        self._goal = goal
        self._internal = list(internal)
        self._halted = {core for core in range(CORES) if record.core_state[core] == HALTED}
        self._issued = record.issued.copy()
        active = [item for item in (*self.breakpoints, *self._internal) if item.enabled]
        marks = CodeMarks.of(active, record)
        self._wake_at(marks)
        for core, pc in {**self._reported, **({} if skip is None else {skip: self.state(skip).pc})}.items():
            if self.state(core).pc == pc:
                self.wake(core)
                record.core_skip_breakpoint[core] = 1
        self._reported = {}
        watching = [watch for watch in self.watches if watch.enabled]
        for watch in watching:
            watch.begin()
        end = None if clocks is None else self.clock + clocks
        try:
            with marks.planted():
                stop = self._run_pieces(end, watching, stop_when_idle, poll)
        except BaseException:  # KeyboardInterrupt, or what a user's condition raises: the tile may be anywhere
            self._inside = self._inside_of_a_clock()
            raise
        finally:
            for item in self.breakpoints:
                if item.opcode is not None and item.ignore:
                    item.ignore = max(0, item.ignore - sum(self._times(item).values()))
            self._internal = []
            self._goal = None
        return stop

    def _wake_at(self, marks: CodeMarks) -> None:
        """Cores that poll in a loop with a breakpoint in it must go through it."""
        record = self.record
        for core in range(CORES):
            if record.core_state[core] != ASLEEP:
                continue
            pcs = [int(pc) for pc in record.poll_pc[core, : int(record.poll_length[core])]]
            rows = (find(int(record.l1_u32[pc >> 2])) for pc in pcs)
            if any(pc >> 2 in marks.places for pc in pcs) or any(row and row.number in marks.numbers for row in rows):
                self.wake(core)

    def _run_pieces(
        self, end: int | None, watching: list[Watch], stop_when_idle: bool, poll: Callable[[], bool] | None
    ) -> Stop:
        level = quiet = 0
        polled = 0
        while True:
            polled += 1
            if poll is not None and (level > 1 or polled % GROW_AFTER == 0) and poll():
                return self.stop_here("interrupted", "interrupted")
            if self._inside is None:
                self.history.note()
            left = None if end is None else end - self.clock
            if left is not None and left <= 0 and self._inside is None:
                return self.stop_here("limit", "the clocks have passed")
            if level == 0 or self._inside is not None:
                stop = self._round(watching)
                if stop is not None:
                    return stop
                happened = False
            else:
                before = self.tile.snapshot()
                happened = self._clocks(PIECES[level] if left is None else min(left, PIECES[level]))
                if happened:
                    self.tile.restore(before)
                    level, quiet = level - 1, 0
            if not happened and self._inside is None:
                if stop_when_idle and not can_move(self.record):
                    return self.stop_here(
                        "idle", "no core or thread can proceed without a write from outside of the tile"
                    )
                quiet += 1
                if quiet >= GROW_AFTER and not watching:
                    level, quiet = min(level + 1, len(PIECES) - 1), 0

    def _clocks(self, clocks: int) -> bool:
        """Let whole clocks pass; True when something has happened that has to be examined round by round."""
        try:
            stopped = self.tile.cores.advance(clocks)
            while stopped is not None:
                if any(item.is_private is False or self._holds(item, stopped) for item in self._reached(stopped)):
                    return True
                self._take_over(stopped)
                stopped = self.tile.cores.advance(0)
        except BhemuError:
            return True
        return self._halted_now() is not None or self._executed() is not None or self._reaches_goal() is not None

    def _round(self, watching: list[Watch]) -> Stop | None:
        """Let one round pass, or what is left of it."""
        record, cores = self.record, self.tile.cores
        begin = self._inside is None
        goal = int(record.round_goal) + begin
        for watch in watching:
            watch.before_round()
        try:
            stopped = cores.advance_round(begin)
            while stopped is not None:
                hit = self._hit(stopped)
                if hit is not None:
                    self._inside = (int(record.core_round[stopped]), stopped)
                    return self._at_breakpoint(stopped, hit)
                self._take_over(stopped)
                stopped = cores.advance_round(False)
            self._serve()
        except BhemuError as error:
            return self._fault(error)
        self._inside = None if int(record.round_goal) == goal else (int(record.round_goal) - 1, BEFORE_ALL)
        return self._changed(watching) or self._halted_now() or self._at_tensix_breakpoint() or self._reaches_goal()

    def _serve(self) -> None:
        """Answer an `ecall`; the core resumes in the next clock."""
        if self.semihosting is not None and self.semihosting.serve(self.record):
            self.tile.cores[B].resume()

    def _take_over(self, core: int) -> None:
        """Let a core execute the instruction at a breakpoint that is not meant for it."""
        self.record.core_skip_breakpoint[core] = 1
        self.record.poll_steps[core] = NO_ATTEMPT  # what was to be followed may not be executed next

    # --- what stops it ----------------------------------------------------------------------------------------------

    def stop_here(self, reason: str, text: str, core: int | None = None) -> Stop:
        """A stop in the present state."""
        return Stop(reason, text, self.clock, core, None if core is None else self.state(core).pc)

    def _reached(self, core: int) -> list[Breakpoint]:
        """The breakpoints for a core that is at a marked place, whatever their conditions say."""
        pc = int(self.record.core_pc[core])
        word = int(self.record.l1_u32[pc >> 2]) if pc < L1_SIZE else 0
        row = find(word)
        number = number_of(".ttinsn") if is_ttinsn(word) else row.number if row is not None else -1
        found = []
        for item in (*self._internal, *self.breakpoints):
            if not item.enabled or core not in item.cores:
                continue
            is_kind = item.mnemonic is not None and number_of(item.mnemonic) == number
            if is_kind or self._pushed_place(item, core, pc) is not None:
                found.append(item)
        return found

    def _pushed_place(self, item: Breakpoint, core: int, pc: int) -> int | None:
        """Where a breakpoint stops a core at a pc: there, or at a `.ttinsn` that is pushed with it."""
        if pc in item.addresses:
            return pc
        return next((place for place in item.addresses if is_pushed_with(self.record, core, pc, place)), None)

    @staticmethod
    def _holds(item: Breakpoint, core: int) -> bool:
        return item.condition is None or item.condition(core)

    def _hit(self, core: int) -> Breakpoint | None:
        for item in self._reached(core):
            if not self._holds(item, core):
                continue
            if item.ignore:
                item.ignore -= 1
                continue
            return item
        return None

    def _at_breakpoint(self, core: int, item: Breakpoint) -> Stop:
        self.record.poll_steps[core] = NO_ATTEMPT
        item.hits += 1
        pc = int(self.record.core_pc[core])
        self._reported[core] = pc
        text = f"breakpoint {item.number}" if item.number >= 0 else item.text
        place = self._pushed_place(item, core, pc)
        if place not in (None, pc):
            text += f" at {place:#x}, whose .ttinsn is pushed in one round with this one"
        if item.temporary and item in self.breakpoints:
            self.breakpoints.remove(item)
        stop = self.stop_here("breakpoint" if item.number >= 0 else "step", text, core)
        stop.breakpoint = item
        return stop

    def _fault(self, error: BhemuError) -> Stop:
        record = self.record
        if error.core is not None:
            self._inside = (int(record.core_round[error.core]), error.core)
        else:
            self._inside = (int(record.tensix_round), BEFORE_ALL)
        stop = self.stop_here("fault", f"{error.category}: {error}", error.core)
        stop.error = error
        return stop

    def _changed(self, watching: list[Watch]) -> Stop | None:
        for watch in watching:
            text = watch.changed()
            if text is not None:
                watch.hits += 1
                stop = self.stop_here("watch", f"watchpoint {watch.number}: {watch.text}: {text}", watch.core)
                stop.watch = watch
                if watch.temporary:
                    self.watches.remove(watch)
                return stop
        return None

    def _halted_now(self) -> Stop | None:
        record = self.record
        for core in range(CORES):
            if record.core_state[core] == HALTED and core not in self._halted:
                reason = HALT_REASONS[int(record.core_halt_reason[core])]
                if core == B and self.semihosting is not None and self.semihosting.status is not None:
                    return self.stop_here("exit", f"the program has called exit({self.semihosting.status})", core)
                return self.stop_here("halt", f"core {CORE_NAMES[core]} has halted: {reason}", core)
        return None

    def _executed(self) -> tuple[Breakpoint, int] | None:
        """A breakpoint on a Tensix instruction that has been executed since the run began, and the thread."""
        for item in self.breakpoints:
            if item.opcode is None or not item.enabled:
                continue
            times = self._times(item)
            if sum(times.values()) > item.ignore:
                return item, next(thread for thread, count in times.items() if count)
        return None

    def _times(self, item: Breakpoint) -> dict[int, int]:
        issued = self.record.issued
        return {t: int(issued[t, item.opcode] - self._issued[t, item.opcode]) for t in sorted(item.threads)}

    def _at_tensix_breakpoint(self) -> Stop | None:
        found = self._executed()
        if found is None:
            return None
        item, thread = found
        item.hits += 1
        if item.temporary:
            self.breakpoints.remove(item)
        word, line = int(self.record.frontend.gate_word[thread]), int(self.record.frontend.gate_line[thread])
        what = item.text
        # MOP and REPLAY do not get to the gate
        if word >> 24 == item.opcode and not self.record.frontend.gate_full[thread]:
            what = disassemble(word)
            if pc_of_line(line) is not None:
                what += pushed_from(thread, self.tile.cores.describe, self.tile.cores.pusher)(line)
        text = f"breakpoint {item.number}: thread {thread} ({THREAD_NAMES[thread]}) has executed {what}"
        stop = self.stop_here("breakpoint", text)
        stop.breakpoint = item
        return stop

    def _reaches_goal(self) -> Stop | None:
        return None if self._goal is None else self._goal()

    @property
    def place(self) -> tuple[int, int] | None:
        """Translated coordinates of a tile of a chip."""
        return self.tile.place if isinstance(self.tile, DebuggedTile) else None

    # --- going back; see bhemu.debugger.history.Timeline ------------------------------------------------------------

    def position(self) -> Position:
        """The round in which the tile is, and the agent whose turn it is there."""
        return (int(self.record.round_goal), BEFORE_ALL) if self._inside is None else self._inside

    def copy(self) -> tuple[Any, int]:
        """The tile's state, and how many bytes that takes."""
        return (self.tile.snapshot(), self._inside, dict(self._reported)), self.record.nbytes

    def put(self, state: Any) -> None:
        """Put the tile back into a state."""
        snapshot, self._inside, reported = state
        self.tile.restore(snapshot)
        self._reported = dict(reported)
        if self.semihosting is not None and self.record.core_state[B] != HALTED:
            self.semihosting.status = None

    def fingerprint(self) -> bytes:
        """A digest of what programs of the tile can observe."""
        return digest(self)

    def play(self, goal: Callable[[], bool]) -> Stop:
        """Run until a goal is reached, or something stops the tile; semihosting is served without output."""
        with quiet(self):
            return self.run(None, goal=self._as_stop(goal), stop_when_idle=False, poll=self.history.poll)

    def _as_stop(self, goal: Callable[[], bool]) -> Callable[[], Stop | None]:
        return lambda: Stop("goal", "", self.clock) if goal() else None

    def points(self) -> tuple[list[list[Breakpoint]], list[list[Watch]]]:
        """The tile's breakpoints and watchpoints."""
        return [self.breakpoints], [self.watches]

    def set_points(self, points: tuple[list[list[Breakpoint]], list[list[Watch]]]) -> None:
        """Put others in their place."""
        [self.breakpoints], [self.watches] = points


@contextmanager
def quiet(*runners: Runner) -> Iterator[None]:
    """Programs print nothing meanwhile."""
    served = [runner.semihosting for runner in runners]
    for runner, services in zip(runners, served, strict=True):
        runner.semihosting = None if services is None else Semihosting(lambda _stream, _content: None)
    try:
        yield
    finally:
        for runner, services in zip(runners, served, strict=True):
            runner.semihosting = services


def digest(tile: StoppedTile) -> bytes:
    """A digest of what programs of a tile can observe: L1, register files, configuration, cores."""
    record = tile.record
    found = hashlib.blake2b(digest_size=16)
    for name in OBSERVED:
        found.update(np.ascontiguousarray(state_field(record, name)).tobytes())
    for core in range(CORES):
        now = tile.state(core)
        found.update(np.array([now.pc, now.retired], np.int64).tobytes() + now.x.tobytes())
    return found.digest()
