"""The log of a recorded run of a tile with RISC-V cores, and names for its addresses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from bhemu.checks import checked
from bhemu.isa.memory_map import Agent, region, region_at
from bhemu.isa.names import Semaphore
from bhemu.isa.tile_registers import address_of, tile_register
from bhemu.machine.agents import CORE_NAMES, CORES, T0, T2, B
from bhemu.recording import core_columns as column
from bhemu.recording.log import Log
from bhemu.tensix.coprocessor import THREAD_NAMES

if TYPE_CHECKING:
    from bhemu.loader.elf import Executable, SourceLine

Array = np.ndarray[Any, Any]
Executables = Mapping[str, "Executable"] | Callable[[int, int], "Executable | None"]
"""What the cores run: by core name; or a function that is given core and pc (`Machine.executable_at`)."""

_FIFO: Final = range(region("push0").base, region("push2").end)
_SEMAPHORES: Final = tile_register("sync", "SEMAPHORE").span
_SYNC_NAMES: Final = {
    address_of("sync", "PCBUF_POP"): "PCBuf from B",
    address_of("sync", "COPROCESSOR_DONE"): "TTSync: instructions in flight",
    address_of("sync", "MOP_DONE"): "TTSync: a MOP in flight",
}
_NAMES: Final = 1 << 12
"""Names of what is waited for that are remembered."""
_TRACKED: Final = tuple(region(name).title for name in ("gpr", "config", "tdma"))


def device_name(core: int, address: int, *, pushes: bool = False) -> str:
    """What answers at an address, as a core sees it: `FIFO of thread 1 (math)`, `mailbox from T0`, `semaphore 3`.

    Args:
        core: number of the core.
        address: of the access.
        pushes: it is `.ttinsn`, which has no address.
    """
    thread = 0 if core == B else core - T0
    if pushes or address in _FIFO:
        thread = (address - _FIFO.start) // region("push0").size if core == B and not pushes else thread
        return f"FIFO of thread {thread} ({THREAD_NAMES[thread]})"
    found = region_at(address, cast(Agent, CORE_NAMES[core].rstrip("012")))
    if found is None:
        return f"{address:#x}"
    if found.name == "mailbox":
        return f"mailbox with {CORE_NAMES[(address - found.base) // found.step]}"
    if found.name == "pcbuf":
        return f"PCBuf of T{(address - found.base) // found.step}"
    if address in _SEMAPHORES:
        number = (address - _SEMAPHORES.start) // 4
        return f"semaphore {number} ({Semaphore(number).name})"
    return _SYNC_NAMES.get(address, f"{address:#x}") if found.name == "sync" else found.title


@lru_cache(_NAMES)
def wait_name(core: int, address: int, *, pushes: bool) -> str:
    """What a blocked access waits for."""
    name = device_name(core, address, pushes=pushes)
    return f"automatic TTSync before {name}" if name in _TRACKED else name


@lru_cache(_NAMES)
def _poll_name(core: int, address: int) -> str:
    """What a core reads that polls; -1: nothing."""
    if address < 0:
        return "nothing: it is idle"
    name = device_name(core, address)
    return f"{address:#x} in {name}" if name in ("L1", "local RAM") else name


class Names:
    """Symbols and source lines of addresses, by core.

    Args:
        executables: what the cores run; without them places are plain addresses.
    """

    def __init__(self, executables: Executables | None = None) -> None:
        self._executables = {} if executables is None else executables
        self.executable = cache(self._executable)
        self.function = cache(self._function)
        self.line = cache(self._line)
        self.place = cache(self._place)

    def _executable(self, core: int, pc: int) -> Executable | None:
        if callable(self._executables):
            return self._executables(core, pc)
        program = self._executables.get(CORE_NAMES[core])
        if program is None or not any(s.executable and s.address <= pc < s.address + s.size for s in program.segments):
            return None
        return program

    def _function(self, core: int, pc: int) -> tuple[str, int]:
        """(name of the function or label that holds pc, its address); `?` and pc where nothing is known."""
        program = self.executable(core, pc)
        found = program.symbol_at(pc) if program is not None else None
        return (found[0].display, found[0].address) if found is not None else ("?", pc)

    def _line(self, core: int, pc: int) -> SourceLine | None:
        """The source line of an address."""
        program = self.executable(core, pc)
        return program.line_at(pc) if program is not None else None

    def pusher(self, thread: int, pc: int) -> int:
        """The core that pushed a word to a thread from a pc: the thread's own, unless only B has code there."""
        own = T0 + thread
        return B if self.executable(own, pc) is None and self.executable(B, pc) is not None else own

    def _place(self, core: int, pc: int) -> str:
        """`main+0x10`, or nothing."""
        name, start = self.function(core, pc)
        if name == "?":
            return ""
        return f"{name}+{pc - start:#x}" if pc != start else name


@dataclass(frozen=True)
class Segment:
    """Rounds of the schedule without a break in the clock: words executed outside of it move the clock, too.

    Attributes:
        first, end: rounds.
        free: rounds before `end` that took no time, as the schedule counts them.
    """

    first: int
    end: int
    free: int


@dataclass(frozen=True)
class Change:
    """A watched word of L1 has changed.

    Attributes:
        round: in which it was noticed.
        by: `T1 at 0x0a008`, `thread 2 (pack)`, `the coprocessor`, `the NoC or the host`.
        address, before, after: of the word.
        core, pc: the instruction; of a word of a thread where it was pushed. None: not known.
    """

    round: int
    by: str
    address: int
    before: int
    after: int
    core: int | None = None
    pc: int | None = None


@dataclass
class CoreLog:
    """A recorded run.

    Attributes:
        rows: int64 [rows, 8], columns of core_columns.py, by round and within a round in the order of the cores.
        dropped: rows that were left out at the beginning, because there is a limit.
        tensix: words of the coprocessor; their CLOCK is the round.
        tensix_dropped: the same for them.
        counts: int64 [n, 4], for each instruction: core, number of the word of L1, how often it was executed, polling
            included, cycles that the modelled pipeline took, polling left out (core_figures.py).
        words: words of L1 of which `executed` and `cycles` tell; instructions outside were not executed.
        mix: int64 [core, class of core_figures.py]: instructions, polling left out.
        modelled: int64 [core]: cycles of the modelled pipeline.
        polled: int64 [core]: instructions executed while asleep.
        ran: int64 [core]: rounds in which it executed something, polling left out.
        first, last: int64 [core]: rounds of its first and last instruction, -1 without one.
        waits: rounds blocked, by (core, pc, what for).
        polls: rounds asleep, by (core, pc, what it reads first).
        rounds: (round in which the recording began, round in which it ended).
        clocks: clocks that passed.
        names: of addresses.
        changes: of watched words of L1, in order.
        issued: int64 [thread, opcode]: words of the coprocessor where they were only counted, and so were the
            instructions of cores: then there are no rows, no `tensix`, no `mix`, and no cycles. None otherwise.
    """

    rows: Array
    dropped: int
    tensix: Log
    tensix_dropped: int
    counts: Array
    words: range
    mix: Array
    modelled: Array
    polled: Array
    ran: Array
    first: Array
    last: Array
    waits: Counter[tuple[int, int, str]]
    polls: Counter[tuple[int, int, str]]
    rounds: tuple[int, int]
    clocks: int
    names: Names
    segments: list[Segment] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    issued: Array | None = None

    @cached_property
    def executed(self) -> Array:
        """int64 [core, word of `words`]: how often each instruction was executed, polling included."""
        return self._spread(2)

    @cached_property
    def cycles(self) -> Array:
        """int64 [core, word of `words`]: cycles that the modelled pipeline took, polling left out."""
        return self._spread(3)

    def _spread(self, which: int) -> Array:
        found = np.zeros((CORES, len(self.words)), np.int64)
        found[self.counts[:, 0], self.counts[:, 1] - self.words.start] = self.counts[:, which]
        return found

    @checked
    def counted(self, core: int) -> Iterator[tuple[int, int, int]]:
        """(pc, times executed, modelled cycles) of each instruction that a core has executed."""
        for word, times, cycles in self.counts[self.counts[:, 0] == core, 1:].tolist():
            yield 4 * word, times, cycles

    @checked
    def clock_of(self, rounds: Array) -> Array:
        """Clock of the tile in rounds.

        Args:
            rounds: int64 [n].

        Returns:
            int64 [n]; -1 outside of what was recorded.
        """
        moved = self.rows[(self.rows[:, column.WHO] >> 4 & 0xF) == column.MOVED]
        starts, lengths = moved[:, column.ROUND], moved[:, column.ROUNDS]
        before = np.concatenate([[0], np.cumsum(lengths)])

        def free_until(at: Array) -> Array:
            index = np.searchsorted(starts, at, side="right")
            partial = np.zeros(len(at), np.int64)
            inside = index > 0
            last = index[inside] - 1
            partial[inside] = lengths[last] - np.minimum(lengths[last], at[inside] - starts[last])
            return np.asarray(before[index] - partial)

        clocks = np.full(len(rounds), -1, np.int64)
        for segment in self.segments:
            inside = (rounds >= segment.first) & (rounds <= segment.end)
            later = free_until(np.array([segment.end]))[0] - free_until(rounds[inside])
            clocks[inside] = rounds[inside] - (segment.free - later)
        return clocks

    @checked
    def retired(self, core: int) -> int:
        """Instructions that a core has executed while it was recorded."""
        return int(self.counts[self.counts[:, 0] == core, 2].sum())


def rows_in_order(rows: Array) -> Array:
    """Rows by their rounds, and in these by cores."""
    key = rows[:, column.ROUND] << 3 | rows[:, column.WHO] & 7
    if (key[1:] >= key[:-1]).all():
        return rows
    return rows.take(np.argsort(key, kind="stable"), axis=0)


NO_WAITS: Final[Array] = np.zeros((2, 0), np.int64)
"""What `add_waits` begins with."""


def add_waits(rows: Array, before: Array) -> Array:
    """Add what rows say about blocked and polling cores.

    Args:
        rows: int64 [n, 8].
        before: NO_WAITS, or what this function returned.

    Returns:
        int64 [2, n]: where a core waited, and for what, as one number; and how many rounds. See `waits_and_polls`.
    """
    rows = rows[rows[:, column.ROUNDS] > 0].T
    kinds = rows[column.WHO] >> 4 & 0xF
    keys = rows[column.ADDRESS] + 1 << 23 | (rows[column.CODE] & 0x1FFFFC) << 2 | rows[column.WHO] & 7
    keys[kinds == column.POLL] |= 8
    waited = kinds != column.MOVED
    keys, rounds = np.concatenate([before, np.stack([keys[waited], rows[column.ROUNDS][waited]])], axis=1)
    if not len(keys):
        return NO_WAITS
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    return np.stack([keys[first], np.add.reduceat(rounds[order], first)])


def waits_and_polls(counted: Array) -> tuple[Counter[tuple[int, int, str]], Counter[tuple[int, int, str]]]:
    """`waits` and `polls` of `CoreLog` from what `add_waits` returned."""
    waits: Counter[tuple[int, int, str]] = Counter()
    polls: Counter[tuple[int, int, str]] = Counter()
    for key, rounds in counted.T.tolist():
        core, pc, address = key & 7, key >> 2 & 0x1FFFFC, (key >> 23) - 1
        if key & 8:
            polls[core, pc, _poll_name(core, address)] += rounds
        else:
            waits[core, pc, wait_name(core, address, pushes=address < 0)] += rounds
    return waits, polls


@dataclass(frozen=True, slots=True)
class Step:
    """A row in words.

    Attributes:
        round: in which it was executed, or began.
        core, kind, pc, word: what and where; kinds are those of core_columns.py.
        address, value: of an access, None without one; what the instruction wrote, stored or pushed.
        size: bytes of the access.
        rounds: blocked before the instruction, or the length of a POLL.
        length: of a POLL: instructions of a turn.
    """

    round: int
    core: int
    kind: int
    pc: int
    word: int
    address: int | None
    value: int | None
    size: int
    rounds: int
    length: int

    @property
    def begin(self) -> int:
        """Round in which the core began with it."""
        return self.round if self.kind in (column.POLL, column.GAVE_UP) else self.round - self.rounds

    @property
    def end(self) -> int:
        """Round after it."""
        return self.round + (self.rounds if self.kind in (column.POLL, column.GAVE_UP) else 1)


def steps(log: CoreLog) -> Iterator[Step]:
    """What the cores did, in order; rounds without time are left out."""
    for at, who, code, address, value, rounds, _, detail in log.rows.tolist():
        kind = who >> 4 & 0xF
        if kind == column.MOVED:
            continue
        yield Step(
            round=at,
            core=who & 7,
            kind=kind,
            pc=code & 0xFFFFFFFF,
            word=code >> 32 & 0xFFFFFFFF,
            address=address if address >= 0 else None,
            value=value & 0xFFFFFFFF if value >= 0 else None,
            size=who >> 8 & 0xF,
            rounds=rounds,
            length=detail >> 32 if kind == column.POLL else 0,
        )


def is_t_core(core: int) -> bool:
    """One of the cores that have a thread of the coprocessor."""
    return T0 <= core <= T2


def top(counts: Mapping[Any, int], number: int) -> Iterable[tuple[Any, int]]:
    """The largest ones, largest first; of equals the first in order of their keys."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:number]
