"""The units of the timing model: when each takes an instruction, and until when it is busy.

A unit's `refuses` names what holds an instruction in a cycle, or returns "" when it takes it; `take` then changes the
unit. Cycles count from 0; a unit that is busy until cycle n takes the next instruction in cycle n.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from bhemu.analysis.access import Access, unpacker_of
from bhemu.analysis.dst import dst_blocks
from bhemu.analysis.figures import ADDRESS_CYCLES, Figure
from bhemu.isa.timing import FACTS, Timing, timing_of
from bhemu.machine.state import THREADS
from bhemu.recording import log as column

SCOREBOARD_CYCLES: Final = FACTS["scoreboard"].value


@dataclass
class UnitTime:
    """What one unit did.

    Attributes:
        instructions: how many it took.
        busy: cycles in which it was occupied, as far as known.
        at_least: instructions whose figure is a lower bound.
        unknown: instructions that no document gives a figure for; they count as one cycle.
    """

    instructions: int = 0
    busy: int = 0
    at_least: int = 0
    unknown: int = 0


@dataclass
class Banks:
    """Ownership of the two banks of one source file (F28, U1, U11).

    Attributes:
        completed: cycles in which the fills are handed over, in order.
        returned: cycles from which on the hand-backs are seen, in order.
    """

    completed: list[int] = field(default_factory=list)
    returned: list[int] = field(default_factory=list)

    def free(self, cycle: int) -> bool:
        """The unpackers own the bank that they would fill next: fill n needs hand-back n - 2."""
        needed = len(self.completed) - 2
        return needed < 0 or (needed < len(self.returned) and self.returned[needed] <= cycle)

    def valid(self, cycle: int) -> bool:
        """The matrix unit owns its bank."""
        at = len(self.returned)
        return at < len(self.completed) and self.completed[at] <= cycle


class Scalar:
    """One instruction at a time; while it lasts its thread issues nothing (I.11)."""

    def __init__(self) -> None:
        self.until = 0
        self.memory = [0] * THREADS

    def refuses(self, cycle: int) -> str:
        """Why it does not accept."""
        return "scalar unit busy" if cycle < self.until else ""

    def take(self, thread: int, found: Access, figure: Figure, cycle: int) -> int:
        """Accept; returns the cycle in which the work is done."""
        self.until = cycle + figure.occupancy
        if found.memory_request:
            self.memory[thread] = max(self.memory[thread], cycle + figure.latency)
        return self.until


class Configuration:
    """The pipeline of stages -4..+1 with one access a cycle at stage 0; SETC16 has slots of its own (I.11)."""

    def __init__(self) -> None:
        self._inside: list[tuple[int, Timing]] = []
        self.done = 0

    def refuses(self, found: Access, row: Any, cycle: int) -> str:
        """Why it does not accept. A word issued in cycle c is at its entry stage in cycle c + 1."""
        if not _in_pipeline(found):
            return ""
        self._inside = [item for item in self._inside if cycle - item[0] < _STAGES]
        entry = timing_of(row[column.WORD]).stage
        for issued, other in self._inside:
            if issued == cycle:
                clash = entry in (other.stage, other.blocks_stage)
            else:
                now = other.stage + cycle - issued - 1
                blocks = other.blocks_stage
                clash = -3 <= now < entry or (blocks is not None and now == 0 and entry >= blocks)
            if clash:
                return "configuration unit busy"
        return ""

    def take(self, found: Access, row: Any, figure: Figure, cycle: int) -> int:
        """Accept; returns the cycle in which the work is done."""
        if _in_pipeline(found):
            self._inside.append((cycle, timing_of(row[column.WORD])))
        self.done = max(self.done, cycle + figure.latency)
        return cycle + figure.latency


_STAGES: Final = 6
"""Stages -4 to +1."""


def _in_pipeline(found: Access) -> bool:
    """Writes of ThreadConfig have slots of their own (I.11)."""
    return not any(role.file == "thread_config" for role in found.roles_written)


class Matrix:
    """One instruction a cycle, with the scoreboard of Dst and what some moves exclude (Y12, Y13)."""

    def __init__(self, banks: tuple[Banks, Banks]) -> None:
        self._banks = banks
        self._next = 0
        self._only: tuple[int, frozenset[str]] = (0, frozenset())
        self._moved = 0
        self.readable: dict[int, int] = {}
        self.done = [0] * THREADS

    def blocked(self, blocks: frozenset[int], cycle: int) -> bool:
        """One of the blocks was written too recently to be read."""
        return any(self.readable.get(block, 0) > cycle for block in blocks)

    def refuses(self, found: Access, row: Any, cycle: int) -> str:
        """Why it does not accept."""
        if cycle < self._next:
            return "matrix unit busy"
        for file in sorted(found.needs):
            if not self._banks[file].valid(cycle):
                return f"Src{'AB'[file]} bank not filled"
        if cycle < self._only[0] and found.mnemonic not in self._only[1]:
            return "matrix unit: after a move"
        reads, _ = dst_blocks(found, row)
        if cycle < self._moved and reads:  # moves from Dst, and what accumulates
            return "matrix unit: after a move to Dst"
        if self.blocked(reads, cycle):
            return "Dst scoreboard"
        return ""

    def take(self, thread: int, found: Access, row: Any, figure: Figure, cycle: int) -> int:
        """Accept; returns the cycle in which the work is done."""
        self._next = cycle + figure.occupancy
        timing = timing_of(row[column.WORD])
        self._only = (cycle + 1 + timing.then_cycles, timing.then_only)
        if timing.delays_accumulation:
            self._moved = cycle + 1 + timing.delays_accumulation
        if any(role.file == "dst" for role in found.roles_written):  # not row-valid flags alone (F26)
            for block in dst_blocks(found, row)[1]:
                self.readable[block] = cycle + 1 + SCOREBOARD_CYCLES
        for file in found.hands_over:
            self._banks[file].returned.append(cycle + 1)
        self.done[thread] = max(self.done[thread], cycle + figure.latency)
        return cycle + figure.latency


class Vector:
    """One instruction a cycle; a reader of a two-cycle result waits one cycle, unless it reads unseen (Y12, Y14)."""

    def __init__(self) -> None:
        self._next = 0
        self._only: tuple[int, frozenset[str]] = (0, frozenset())
        self._ready: dict[int, int] = {}
        self.done = [0] * THREADS

    def refuses(self, found: Access, cycle: int) -> str:
        """Why it does not accept."""
        if cycle < self._next:
            return "vector unit busy"
        if cycle < self._only[0] and found.mnemonic not in self._only[1]:
            return "vector unit busy"
        if any(self._ready.get(register, 0) > cycle for register in found.lreg_reads):
            return "vector unit: result of a two-cycle instruction"
        return ""

    def take(self, thread: int, found: Access, row: Any, figure: Figure, cycle: int) -> int:
        """Accept; returns the cycle in which the work is done."""
        self._next = cycle + 1
        timing = timing_of(row[column.WORD])
        self._only = (cycle + 1 + timing.then_cycles, timing.then_only)
        for register in found.lreg_writes:
            self._ready[register] = cycle + figure.latency
        self.done[thread] = max(self.done[thread], cycle + figure.latency)
        return cycle + figure.latency


class Unpackers:
    """Two unpackers behind one address generator (U1, U12)."""

    def __init__(self, banks: tuple[Banks, Banks]) -> None:
        self._banks = banks
        self._until = [0, 0]
        self._address = 0
        self.done = [[0, 0] for _ in range(THREADS)]

    def refuses(self, found: Access, cycle: int) -> str:
        """Why it does not accept."""
        which = unpacker_of(found.operands)
        if not self._banks[which].free(cycle):
            return f"Src{'AB'[which]} bank not handed back"
        if found.mnemonic == "UNPACR" and cycle < self._address:
            return "unpackers' address generator busy"
        return f"unpacker {which} busy" if cycle < self._until[which] else ""

    def take(self, thread: int, found: Access, figure: Figure, cycle: int) -> int:
        """Accept; returns the cycle in which the work is done."""
        which = unpacker_of(found.operands)
        done = max(cycle + figure.latency, self.done[thread][which])
        self._until[which] = cycle + figure.occupancy
        if found.mnemonic == "UNPACR":
            self._address = cycle + ADDRESS_CYCLES
        for file in found.hands_over:
            self._banks[file].completed.append(done)
        self.done[thread][which] = done
        return done


class Semaphores:
    """Eight semaphores and the mutexes, in modelled time (Y11a, Y11b)."""

    def __init__(self) -> None:
        self.value = [0] * 8
        self.maximum = [0] * 8
        self._seen = ([0] * 8, [0] * 8)
        self.owner: dict[int, int] = {}
        self.changes: list[tuple[int, int, int]] = []
        """(cycle, semaphore, value)"""

    def begin_cycle(self) -> None:
        """From now on the changes of earlier cycles are seen."""
        self._seen = (list(self.value), list(self.maximum))

    def left(self, chosen: list[int], condition: int) -> str:
        """What a SEMWAIT still waits for: a semaphore's number and state."""
        value, maximum = self._seen
        for i in chosen:
            if condition & 1 and value[i] == 0:
                return f"{i} zero"
            if condition & 2 and value[i] >= maximum[i]:
                return f"{i} full"
        return ""

    def change(self, name: str, o: Any, cycle: int) -> None:
        """SEMINIT, SEMPOST or SEMGET."""
        for i in range(8):
            if not o["sem_sel"] >> i & 1:
                continue
            if name == "SEMINIT":
                self.value[i], self.maximum[i] = o["init_value"], o["max_value"]
            elif name == "SEMPOST":
                self.value[i] = min(self.value[i] + 1, 15)
            elif name == "SEMGET":
                self.value[i] = max(self.value[i] - 1, 0)
            else:
                continue
            self.changes.append((cycle, i, self.value[i]))


@dataclass
class ThreadTime:
    """What one thread did.

    Attributes:
        issued: instructions.
        stalls: cycles without an instruction, by cause.
        last: cycle after its last instruction.
    """

    issued: int = 0
    stalls: Counter[str] = field(default_factory=Counter)
    last: int = 0
