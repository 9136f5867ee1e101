"""Approximate time: the recorded words again, on a machine whose units take as long as the documents say.

Each thread issues its words in order, one a cycle (Y1); latched waits are judged by the modelled completion of the
units (Y10); semaphores, mutexes and source banks are followed in modelled time. The RISC-V cores take no time: a word
is there as soon as the instruction that its core waited for has been issued.
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from bhemu.analysis.access import Access, access
from bhemu.analysis.dst import dst_blocks
from bhemu.analysis.figures import ADDRESS_CYCLES, figure
from bhemu.analysis.units import (
    SCOREBOARD_CYCLES,
    Banks,
    Configuration,
    Matrix,
    Scalar,
    Semaphores,
    ThreadTime,
    UnitTime,
    Unpackers,
    Vector,
)
from bhemu.checks import checked
from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.isa.names import Condition, Semaphore
from bhemu.isa.timing import AT_LEAST, UNKNOWN
from bhemu.machine.state import THREADS
from bhemu.recording import log as column
from bhemu.recording.log import POST, STORE, Log
from bhemu.tensix.frontend.gate import DEFAULT_BLOCK, DEFAULT_CONDITIONS

UNITS: Final = ("unpacker 0", "unpacker 1", "matrix", "vector", "packer", "scalar", "config", "sync", "misc", "mover")

CORE: Final = "nothing to issue: its core waits or has not pushed"
EXPANDERS: Final = "MOP and replay expanders"
OWN_SCALAR: Final = "own scalar instruction"
OWN_UNPACK: Final = "own UNPACR computes its address"


@dataclass
class Timing:
    """Modelled time of a run.

    Attributes:
        cycles: until everything is done.
        threads: by thread.
        units: by unit, `UNITS`.
        at_least: instructions whose figure is a lower bound, by mnemonic.
        unknown: instructions without any figure, by mnemonic; each counts as one cycle.
        issue: cycle in which each row of the log was issued.
        gate: cycle in which it reached its gate.
        done: cycle in which its work was done.
        semaphores: (cycle, semaphore, value) of each change.
        forced: words issued in the recorded order because the modelled order could not go on; 0 unless the program's
            threads race.
    """

    cycles: int = 0
    threads: list[ThreadTime] = field(default_factory=lambda: [ThreadTime() for _ in range(THREADS)])
    units: dict[str, UnitTime] = field(default_factory=lambda: {name: UnitTime() for name in UNITS})
    at_least: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    issue: list[int] = field(default_factory=list)
    gate: list[int] = field(default_factory=list)
    done: list[int] = field(default_factory=list)
    semaphores: list[tuple[int, int, int]] = field(default_factory=list)
    forced: int = 0


@checked
def timing(log: Log) -> Timing:
    """Time a recorded run; see `Timing`.

    Args:
        log: from `record` or `Recorder.log`.
    """
    return _Clock(log).run()


@dataclass
class _Latch:
    word: int
    mask: int
    since: int


class _Thread:
    """One thread's words and what holds them."""

    def __init__(self, rows: list[int]) -> None:
        self.rows = rows
        self.at = 0
        self.delivered = -1
        self.arrival: int | None = None
        self.free = 0
        self.busy_with = ""
        self.held_by = ""
        self.latch: _Latch | None = None
        self.falling: _Latch | None = None


class _Clock:
    def __init__(self, log: Log) -> None:
        self._log = log
        self._rows = log.rows.tolist()
        self._threads = [
            _Thread([i for i, row in enumerate(self._rows) if row[column.THREAD] == t]) for t in range(THREADS)
        ]
        self._banks = (Banks(), Banks())
        if self._rows:
            owners = self._rows[0][column.OWNERS]
            for file, bank in enumerate(self._banks):
                full = (owners >> (4 + 2 * file) & 1) + (owners >> (5 + 2 * file) & 1)
                bank.completed = [0] * full
        self._scalar = Scalar()
        self._config = Configuration()
        self._matrix = Matrix(self._banks)
        self._vector = Vector()
        self._unpackers = Unpackers(self._banks)
        self._semaphores = Semaphores()
        self._packed = [0] * THREADS
        self._packer_next = 0
        self._sync_next = 0
        self._mutexed: dict[int, int] = {}
        self._notes = [n for n in sorted(log.notes, key=lambda n: n.row) if n.kind != STORE]
        self._result = Timing(issue=[-1] * len(self._rows), gate=[-1] * len(self._rows), done=[-1] * len(self._rows))
        self._wake: list[int] = []

    def run(self) -> Timing:
        result = self._result
        cycle = 0
        while any(t.at < len(t.rows) for t in self._threads):
            self._semaphores.begin_cycle()
            self._cores(cycle)
            causes: list[tuple[int, str]] = []
            moved = False
            for i in range(THREADS):
                thread = (cycle + i) % THREADS
                state = self._threads[thread]
                if state.at == len(state.rows):
                    continue
                cause = self._try(thread, cycle)
                if cause:
                    causes.append((thread, cause))
                else:
                    moved = True
            following = cycle + 1
            if not moved:
                while self._wake and self._wake[0] <= cycle:
                    heapq.heappop(self._wake)
                if not self._wake:
                    self._force(cycle)
                else:
                    following = self._wake[0]
            for thread, cause in causes:
                result.threads[thread].stalls[cause] += following - cycle
            cycle = following
        result.cycles = max([0, *result.done])
        result.semaphores = self._semaphores.changes
        return result

    def _later(self, cycle: int) -> int:
        heapq.heappush(self._wake, cycle)
        return cycle

    # --- what the cores do ----------------------------------------------------------------------------------------

    def _enabled(self, row: int, thread: int, own: bool) -> int | None:
        """Cycle after the instructions that let a core go on when the log had `row` rows; None while one is missing."""
        if row == 0:
            return 0
        clock = self._rows[row - 1][column.CLOCK]
        candidates = []
        for i in range(row - 1, max(row - 1 - THREADS, -1), -1):
            if self._rows[i][column.CLOCK] != clock:
                break
            candidates.append(i)
        if own:
            candidates = [i for i in candidates if self._rows[i][column.THREAD] == thread] or candidates
        else:
            sync = [i for i in candidates if access(self._rows[i][column.WORD]).unit == "sync"]
            candidates = sync or candidates
        times = [self._result.issue[i] for i in candidates]
        return None if -1 in times else max(times) + 1

    def _cores(self, cycle: int) -> None:
        """Let posts and gets of the cores happen that are due."""
        while self._notes:
            note = self._notes[0]
            row = note.row if note.ready is None else note.ready
            time = self._enabled(row, note.thread, own=False)
            if time is None:
                return
            if time > cycle:
                self._later(time)
                return
            self._notes.pop(0)
            self._semaphores.change(
                "SEMPOST" if note.kind == POST else "SEMGET", {"sem_sel": 1 << note.values[0]}, cycle
            )
            self._later(cycle + 1)

    # --- front end ------------------------------------------------------------------------------------------------

    def _arrives(self, thread: int) -> int | None:
        """Cycle in which the thread's next word is at the gate; None while its core cannot push it."""
        state = self._threads[thread]
        if state.arrival is None:
            row = self._rows[state.rows[state.at]]
            pushes = self._log.pushes[thread]
            pushed: int | None = 0
            if 0 < row[column.PUSH] <= len(pushes):
                push = pushes[row[column.PUSH] - 1]
                pushed = self._enabled(push.row, thread, push.own)
            if pushed is None:
                state.held_by = CORE
                return None
            after = state.delivered + 1 + row[column.SILENT]
            state.held_by = CORE if pushed > after else EXPANDERS
            state.arrival = self._later(max(pushed, after))
        return state.arrival

    # --- gate -----------------------------------------------------------------------------------------------------

    def _waits_for(self, thread: int, word: int, cycle: int) -> str:
        """What a latched wait still waits for."""
        o = access(word).operands
        if access(word).mnemonic == "SEMWAIT":
            chosen = [i for i in range(8) if o["sem_sel"] >> i & 1]
            left = self._semaphores.left(chosen, o["wait_sem_cond"])
            if not left:
                return ""
            number, _, state = left.partition(" ")
            return f"SEMWAIT: {Semaphore(int(number)).name} is {'zero' if state == 'zero' else 'at its maximum'}"
        if access(word).mnemonic != "STALLWAIT":
            return ""  # streams are not timed, and STREAMWAIT counts as unknown
        left_names = [
            c.name or "" for c in Condition if self._unmet(thread, o["wait_res"] or DEFAULT_CONDITIONS, c, cycle)
        ]
        return f"STALLWAIT: {' + '.join(left_names)}" if left_names else ""

    def _unmet(self, thread: int, conditions: int, condition: Condition, cycle: int) -> bool:
        if not conditions & condition:
            return False
        match condition:
            case Condition.THCON:
                return self._scalar.memory[thread] > cycle
            case Condition.UNPACK0 | Condition.UNPACK1:
                return self._unpackers.done[thread][condition is Condition.UNPACK1] > cycle
            case Condition.PACK:
                return self._packed[thread] > cycle
            case Condition.MATH:
                return self._matrix.done[thread] > cycle
            case Condition.SFPU:
                return self._vector.done[thread] > cycle
            case Condition.CFGEXU:
                return self._config.done > cycle
            case Condition.SRCA_CLEARED | Condition.SRCB_CLEARED:
                return not self._banks[condition is Condition.SRCB_CLEARED].free(cycle)
            case Condition.SRCA_VALID | Condition.SRCB_VALID:
                return not self._banks[condition is Condition.SRCB_VALID].valid(cycle)
            case _:
                return False  # mover and RISC-V accesses are not timed

    def _try(self, thread: int, cycle: int) -> str:
        """Issue the thread's next word if it may leave; else what holds it."""
        state = self._threads[thread]
        falling = ""
        if state.latch is not None and cycle > state.latch.since:
            left = self._waits_for(thread, state.latch.word, cycle)
            if not left:  # the block falls one cycle later (Y10)
                state.falling, state.latch = state.latch, None
                falling = f"{access(state.falling.word).mnemonic}: the block falls one cycle later"
                self._later(cycle + 1)
        else:
            left = ""
        arrival = self._arrives(thread)
        if arrival is None or arrival > cycle:
            state.falling = None
            return state.held_by
        index = state.rows[state.at]
        row = self._rows[index]
        if self._result.gate[index] < 0:
            self._result.gate[index] = cycle
        found = access(row[column.WORD])
        wait = state.latch or state.falling
        state.falling = None
        if cycle < state.free:
            return state.busy_with
        if wait is not None and _INSTRUCTION[row[column.WORD] >> 24].is_held_by(wait.mask):
            return falling or left or f"{access(wait.word).mnemonic}: just placed"
        refused = self._refuses(thread, found, row, cycle)
        if refused:
            return refused
        self._issue(thread, index, cycle)
        return ""

    def _refuses(self, thread: int, found: Access, row: list[int], cycle: int) -> str:
        match found.unit:
            case "scalar":
                return self._scalar.refuses(cycle)
            case "config":
                return self._config.refuses(found, row, cycle)
            case "matrix":
                return self._matrix.refuses(found, row, cycle)
            case "vector":
                return self._vector.refuses(found, cycle)
            case "unpack":
                return self._unpackers.refuses(found, cycle)
            case "pack":
                if cycle < self._packer_next:
                    return "packer busy"
                return "Dst scoreboard" if self._matrix.blocked(dst_blocks(found, row)[0], cycle) else ""
            case "sync":
                if found.mnemonic in ("ATGETM", "ATRELM"):
                    return self._mutex_refuses(thread, found, cycle)
                return "sync unit busy" if cycle < self._sync_next else ""
        return ""

    def _mutex_refuses(self, thread: int, found: Access, cycle: int) -> str:
        number = found.operands["mutex_index"]
        if self._mutexed.get(number, -1) == cycle:
            return "sync unit busy"
        if found.mnemonic == "ATGETM" and self._semaphores.owner.get(number, thread) != thread:
            return f"mutex {number} held by another thread"
        return ""

    def _issue(self, thread: int, index: int, cycle: int) -> None:
        state, result = self._threads[thread], self._result
        row = self._rows[index]
        found = access(row[column.WORD])
        cost = figure(found, row)
        done = cycle + cost.latency
        match found.unit:
            case "scalar":
                done = self._scalar.take(thread, found, cost, cycle)
                state.free, state.busy_with = done, OWN_SCALAR
                done = max(done, self._scalar.memory[thread] if found.gpr_later else done)
            case "config":
                done = self._config.take(found, row, cost, cycle)
            case "matrix":
                done = self._matrix.take(thread, found, row, cost, cycle)
            case "vector":
                done = self._vector.take(thread, found, row, cost, cycle)
                for block in dst_blocks(found, row)[1]:
                    self._matrix.readable[block] = cycle + 1 + SCOREBOARD_CYCLES
            case "unpack":
                done = self._unpackers.take(thread, found, cost, cycle)
                if found.mnemonic == "UNPACR":
                    state.free, state.busy_with = cycle + ADDRESS_CYCLES, OWN_UNPACK
            case "pack":
                self._packer_next = cycle + cost.occupancy
                self._packed[thread] = done
            case "sync":
                self._sync(thread, found, row, cycle)
        total = result.units[found.unit_name]
        total.instructions += 1
        total.busy += cost.occupancy
        if cost.certainty == AT_LEAST:
            total.at_least += 1
            result.at_least[found.mnemonic] += 1
        elif cost.certainty == UNKNOWN:
            total.unknown += 1
            result.unknown[found.mnemonic] += 1
        result.issue[index], result.done[index] = cycle, done
        result.threads[thread].issued += 1
        result.threads[thread].last = cycle + 1
        state.delivered = state.arrival if state.arrival is not None else cycle
        state.arrival = None
        state.at += 1
        for time in (cycle + 1, done, cycle + cost.occupancy, state.free, cycle + 1 + SCOREBOARD_CYCLES):
            self._later(time)

    def _sync(self, thread: int, found: Access, row: list[int], cycle: int) -> None:
        o = found.operands
        if found.mnemonic in ("ATGETM", "ATRELM"):
            self._mutexed[o["mutex_index"]] = cycle
            if found.mnemonic == "ATGETM":
                self._semaphores.owner[o["mutex_index"]] = thread
            elif self._semaphores.owner.get(o["mutex_index"]) == thread:
                del self._semaphores.owner[o["mutex_index"]]
            return
        self._sync_next = cycle + 1
        if found.mnemonic in ("STALLWAIT", "SEMWAIT", "STREAMWAIT"):
            state = self._threads[thread]
            state.latch = _Latch(row[column.WORD], o["stall_res"] or DEFAULT_BLOCK, cycle)
        else:
            self._semaphores.change(found.mnemonic, o, cycle)

    def _force(self, cycle: int) -> None:
        """Nothing can ever move: the recorded order decides."""
        waiting = [t for t in range(THREADS) if self._threads[t].at < len(self._threads[t].rows)]
        thread = min(waiting, key=lambda t: self._threads[t].rows[self._threads[t].at])
        state = self._threads[thread]
        state.latch = None
        state.arrival = cycle
        self._result.forced += 1
        self._issue(thread, state.rows[state.at], cycle)


_INSTRUCTION: Final = {row.opcode: row for row in INSTRUCTIONS.values()}
