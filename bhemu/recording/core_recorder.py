"""The recorder of a tile with RISC-V cores: what each core and each thread of the coprocessor executes, and when."""

from __future__ import annotations

import functools
import mmap
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bhemu.counting.recorder import HasCores
from bhemu.errors import BhemuError, ConfigurationError
from bhemu.isa.tile_registers import tile_register
from bhemu.machine.agents import CORE_NAMES, CORES, T0, T2
from bhemu.machine.compiler import JIT, Entry, compile_entry
from bhemu.machine.core_state import ASLEEP, PUSH
from bhemu.machine.origin import line_of_pc, pc_of_line
from bhemu.machine.state import L1_SIZE, THREADS
from bhemu.machine.types import Int, Table
from bhemu.recording import core_columns as column
from bhemu.recording import log as tensix_column
from bhemu.recording.core_clock import advance_recorded_entry
from bhemu.recording.core_counts import take_counts
from bhemu.recording.core_figures import CLASSES
from bhemu.recording.core_log import (
    NO_WAITS,
    Change,
    CoreLog,
    Executables,
    Names,
    Segment,
    add_waits,
    is_t_core,
    rows_in_order,
    waits_and_polls,
)
from bhemu.recording.log import GET as GETS
from bhemu.recording.log import POST as POSTS
from bhemu.recording.log import Log, Note, Pushes
from bhemu.recording.recorder import CAPACITY as TENSIX_CAPACITY
from bhemu.recording.recorder import COUNT as TENSIX_COUNT
from bhemu.recording.recorder import HEADER as TENSIX_HEADER
from bhemu.recording.recorder import PUSHED
from bhemu.recording.recorder import ROWS as TENSIX_ROWS
from bhemu.tensix.coprocessor import THREAD_NAMES
from bhemu.tile.observer import ENTRY, HOW
from bhemu.tile.schedule import OBSERVE

if TYPE_CHECKING:
    from bhemu.tile.cores import Cores

Array = np.ndarray[Any, Any]

LIMIT: Final = 1 << 20
"""Rows that are kept by default, the last ones, of the cores (64 bytes each) and of the coprocessor (128)."""
_MOST_TELLING: Final = 1 << 16
"""Rows about waits that are kept until they are counted."""
_SEMAPHORES: Final = tile_register("sync", "SEMAPHORE").span


class _Chunks:
    """The last rows of a stream, at least `limit` of them when there were as many.

    Args:
        columns: of a row.
        limit: None keeps all.
    """

    def __init__(self, columns: int, limit: int | None) -> None:
        self._columns = columns
        self._limit = limit
        self._chunks: deque[Array] = deque()
        self.kept = 0
        self.dropped = 0

    def add(self, rows: Array) -> None:
        if not len(rows):
            return
        self._chunks.append(rows)
        self.kept += len(rows)
        while self._limit is not None and self.kept - len(self._chunks[0]) >= self._limit:
            gone = len(self._chunks.popleft())
            self.kept -= gone
            self.dropped += gone

    def forget(self) -> None:
        """All that is kept has been used: drop it."""
        self.dropped += self.kept
        self.kept = 0
        self._chunks.clear()

    def chunks(self) -> list[Array]:
        """All of them; what is kept here, not copies."""
        return list(self._chunks) or [np.zeros((0, self._columns), np.int64)]


def _tells(rows: Array) -> Array:
    """bool [n]: rows that say what a core waits for, or that it posts or gets a semaphore."""
    address = rows[:, column.ADDRESS]
    waits = (rows[:, column.ROUNDS] > 0) | (rows[:, column.WHO] & column.CHANGED != 0)
    return np.asarray(waits | (address >= _SEMAPHORES.start) & (address < _SEMAPHORES.stop))


def _checked_watch(addresses: Sequence[int]) -> list[int]:
    if len(addresses) > column.MOST_WATCHES:
        raise ConfigurationError(
            f"{len(addresses)} watched words", remedy=f"watch at most {column.MOST_WATCHES} in a tile"
        )
    for address in addresses:
        if not 0 <= address < L1_SIZE or address % 4:
            raise ConfigurationError(
                f"the watched address {address:#x} is not that of a word of L1",
                remedy=f"use multiples of 4 below {L1_SIZE:#x}",
            )
    return [int(address) for address in addresses]


@dataclass(frozen=True)
class Taken:
    """What a recorder has taken from a tile, for a log that is made of it later, without the tile.

    Attributes:
        rows, telling, tensix: chunks of rows: of cores, those of them that say what cores wait for, of the coprocessor.
        added: rows for what has not ended yet.
        counts, words: as in `CoreLog`.
        blocks: int64 [core, CORE_BLOCK]: what the buffer has about the cores.
        pushed: by thread, words that were pushed.
        first_push: by thread, those before the part.
        tensix_dropped: rows of the coprocessor that the recorder keeps no longer.
        is_cut: the part ends here.
        other: what the log has as it is.
    """

    rows: list[Array]
    telling: list[Array]
    tensix: list[Array]
    added: list[list[int]]
    counts: Array
    words: range
    blocks: Array
    pushed: list[int]
    first_push: list[int]
    tensix_dropped: int
    is_cut: bool
    other: dict[str, Any]


@functools.cache
def _advance_recorded() -> Entry:
    """The compiled function that all recorded tiles advance by."""
    return compile_entry("advance_recorded", advance_recorded_entry)


class CoreRecorder:
    """Records a tile from `attach` on.

    Example:
        >>> import bhemu
        >>> from bhemu.recording import CoreRecorder
        >>> tile = bhemu.Tile()
        >>> tile.record.l1_u32[0:2] = 0x00500513, 0x00100073  # li a0, 5; ebreak
        >>> recorder = CoreRecorder()
        >>> recorder.attach(tile)
        >>> tile.cores.store(0xFFB121B0, 0x47000)  # release core B
        >>> _ = tile.cores.advance(10)
        >>> recorder.log().retired(0)
        2

    Args:
        instructions: keep a row for each instruction of a core, as traces need them. Without, the profile and the
            timing of the coprocessor can still be made.
        limit: rows that are kept of each kind, the last ones; None keeps all.
        watch: addresses of words of L1: each change of one is noted, with who has made it.
        buffer_rows: rows of each kind that compiled code writes before the host takes them away.

    Raises:
        ConfigurationError: a watched address is not that of a word of L1, or there are too many.
    """

    def __init__(
        self,
        *,
        instructions: bool = True,
        limit: int | None = LIMIT,
        watch: Sequence[int] = (),
        buffer_rows: int | None = None,
    ) -> None:
        # Most counts are never touched, so their pages are not there, and are not to be large ones.
        self._buffer = np.frombuffer(mmap.mmap(-1, 8 * column.SIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.int64)
        self._buffer[TENSIX_CAPACITY] = min(buffer_rows or TENSIX_ROWS, TENSIX_ROWS)
        self._buffer[column.CAPACITY] = min(buffer_rows or column.ROWS, column.ROWS)
        self._watch = _checked_watch(watch)
        self.changes: list[Change] = []
        self._buffer[column.WANTED] = int(instructions)
        self._buffer[column.BREAK] = -1
        for core in range(CORES):
            block = column.CORE_BLOCKS + core * column.CORE_BLOCK
            for at in (column.FIRST_TRY, column.ASLEEP_SINCE, column.LAST_LOAD_PC, column.FIRST_ROUND):
                self._buffer[block + at] = -1
            self._buffer[block + column.LAST_ROUND] = -1
            self._buffer[block + column.EXPECTED_PC] = -1
            self._buffer[block + column.LOW] = column.WORDS
        self._rows = _Chunks(column.COLUMNS, limit)
        self._tensix = _Chunks(tensix_column.COLUMNS, limit)
        self._telling = _Chunks(column.COLUMNS, None)
        self._waits = NO_WAITS
        self._turns = [np.array([[thread, 0, 0, 0] for thread in range(THREADS)], np.int64)]
        self._notes: list[Note] = []
        self._segments: list[Segment] = []
        self._tile: HasCores | None = None
        self._cores: Cores | None = None
        self._names = Names()
        self._first_round = 0
        self._first_clock = 0
        self._first_push = [0] * THREADS
        self._modelled_before = np.zeros(CORES, np.int64)
        self._dropped = (0, 0)
        self._taken = self._made = 0  # parts; a thread may make them while others are taken
        self._segment_begin = 0
        self._entry: Entry | None = None
        self.log_address = int(self._buffer.ctypes.data)
        """Of the buffer, for compiled code."""

    @property
    def first_push(self) -> tuple[int, ...]:
        """By thread, how many pushes of the whole recording precede those of the part that is being recorded."""
        return tuple(self._first_push)

    def attach(self, tile: HasCores, executables: Executables | None = None) -> None:
        """Record what `tile` executes from now on, whenever its clock moves.

        Args:
            tile: a `bhemu.Tile`, or a tile of a `bhemu.Chip`, `chip[1, 2]`.
            executables: what its cores run, for names and source lines: by core name an `Executable`, or several.
        """
        self._tile, self._cores = tile, tile.cores
        record, buffer = self._cores.record, self._buffer
        self._names = Names(executables)
        self._first_round, self._first_clock = int(record.round_goal), int(record.clock)
        self._segment_begin = self._first_round
        buffer[column.FREE] = self._first_round - self._first_clock
        for thread in range(THREADS):
            buffer[PUSHED + thread] = record.frontend.fifo_count[thread]
        for number, address in enumerate(self._watch):
            buffer[column.WATCHED + 2 * number : column.WATCHED + 2 * number + 2] = (
                address >> 2,
                record.l1_u32[address >> 2],
            )
        buffer[column.WATCHES] = len(self._watch)
        self._entry = _advance_recorded()
        buffer[ENTRY] = self._entry.address
        self._cores.observe(self)

    def detach(self) -> None:
        """Record no longer."""
        if self._cores is not None:
            self._settle()
            self._cores.observe(None)
            self._tile = self._cores = None

    def advance(self, target: Any, table: Table, how: Int) -> int:
        """Advance the tile as `bhemu.tile.schedule.advance_tile_entry` does, and record it."""
        assert self._entry is not None
        self._buffer[HOW] = how
        return int(self._entry.call(target, table, self.log_address if JIT else self._buffer))

    def take_away(self) -> None:
        """Move the rows out of the buffer."""
        buffer = self._buffer
        if buffer[column.BREAK] >= 0 and self._cores is not None:
            self._segments.append(self._segment(int(buffer[column.BREAK])))
            self._segment_begin = int(buffer[column.BREAK])
            buffer[column.FREE] = self._cores.record.free_rounds
            buffer[column.BREAK] = -1
        count = int(buffer[TENSIX_COUNT])
        end = TENSIX_HEADER + count * tensix_column.COLUMNS
        self._tensix.add(buffer[TENSIX_HEADER:end].reshape(count, tensix_column.COLUMNS).copy())
        buffer[TENSIX_COUNT] = 0
        buffer[column.TENSIX_BEFORE] += count
        count = int(buffer[column.COUNT])
        end = column.FIRST_ROW + count * column.COLUMNS
        rows = buffer[column.FIRST_ROW : end].reshape(count, column.COLUMNS).copy()
        buffer[column.COUNT] = 0
        self._telling.add(rows[_tells(rows)])
        if self._telling.kept > _MOST_TELLING and self._made == self._taken:
            self._digest(self._telling.chunks())
            self._telling.forget()
        self._rows.add(rows)
        self._take_changes()

    def _digest(self, telling: list[Array]) -> None:
        """Count what cores have waited for, and follow pushes."""
        rows = np.concatenate(telling)
        self._waits = add_waits(rows, self._waits)
        self._follow_pushes(rows)

    def _take_changes(self) -> None:
        buffer = self._buffer
        count = int(buffer[column.CHANGES])
        end = column.CHANGED_ROWS + count * column.CHANGE_COLUMNS
        for at, who, place, number, before, after in (
            buffer[column.CHANGED_ROWS : end].reshape(count, column.CHANGE_COLUMNS).tolist()
        ):
            core, pc, by = None, None, "the NoC or the host" if who == column.BY_OTHERS else "the coprocessor"
            if who < CORES:
                core, pc, by = who, place, CORE_NAMES[who]
            elif who < column.BY_UNIT:
                thread = who - column.BY_THREAD
                pc, by = pc_of_line(place), f"thread {thread} ({THREAD_NAMES[thread]})"
                core = None if pc is None else self._names.pusher(thread, pc)
            self.changes.append(Change(at, by, self._watch[number], before, after, core, pc))
        buffer[column.CHANGES] = 0

    def _segment(self, end: int) -> Segment:
        """How the clock goes with the rounds since the last break."""
        return Segment(self._segment_begin, end, int(self._buffer[column.FREE]))

    def _follow_pushes(self, rows: Array) -> None:
        """What the words that T cores push had to wait for, and semaphores that they post or get."""
        who = rows[:, column.WHO]
        waits = rows[((rows[:, column.ROUNDS] > 0) | (who & column.CHANGED != 0)) & (who & 7 >= T0) & (who & 7 <= T2)]
        who = waits[:, column.WHO]
        kinds = who >> 4 & 0xF
        own = ((kinds == column.DEVICE) | (kinds == column.PUSHES)) & (
            who & (column.OWN | column.CHANGED) == column.OWN
        )
        pushed = waits[:, column.DETAIL] & 0xFFFFFFFF
        self._turns.append(np.array([(who & 7) - T0, pushed, waits[:, column.TENSIX_ROWS], own]).T)
        address = rows[:, column.ADDRESS]
        posts = rows[(address >= _SEMAPHORES.start) & (address < _SEMAPHORES.stop)]
        for row in posts.tolist():
            core, word = row[column.WHO] & 7, row[column.CODE] >> 32
            if is_t_core(core) and row[column.ADDRESS] in _SEMAPHORES and word & 0x7F == 0x23:
                number = (row[column.ADDRESS] - _SEMAPHORES.start) >> 2
                what = GETS if row[column.VALUE] & 1 else POSTS
                line = line_of_pc(row[column.CODE] & 0xFFFFFFFF)
                executed, pushed = row[column.TENSIX_ROWS], row[column.DETAIL] & 0xFFFFFFFF
                self._notes.append(Note(executed, pushed, core - T0, what, (number,), line))

    def _pushes(self, taken: Taken) -> tuple[Pushes, Pushes, Pushes]:
        """For each pushed word what its core had waited for last."""
        result: list[Pushes] = []
        turns, kept = np.concatenate(self._turns), []
        for thread in range(THREADS):
            known = turns[turns[:, 0] == thread]
            known = known[np.searchsorted(known[1:, 1], taken.first_push[thread], side="right") :]
            kept.append(known)
            _, pushed, rows, own = known.T
            ends = np.empty(len(rows) + 1, np.int64)
            ends[0], ends[-1] = taken.first_push[thread], taken.pushed[thread]
            np.maximum(pushed[1:], ends[0], out=ends[1:-1])
            runs = np.array([np.maximum(rows - taken.tensix_dropped, 0), own, ends[1:] - ends[:-1]]).T
            result.append(Pushes(runs[runs[:, 2] > 0]))
        self._turns = [np.concatenate(kept)]
        return result[0], result[1], result[2]

    def _kept_notes(self, taken: Taken) -> list[Note]:
        gone, first = taken.tensix_dropped, taken.first_push
        return [
            Note(n.row - gone, max(n.push - first[n.thread], 0), n.thread, n.kind, n.values, n.line, n.ready)
            for n in self._notes
            if n.row >= gone
        ]

    def _settle(self) -> None:
        if self._tile is None or self._cores is None:
            raise BhemuError("the recorder is not attached to a tile", remedy="call attach(tile) before the run")
        self._tile.cores.settle()
        self.advance(self._cores.coprocessor.target, self._cores.table, OBSERVE)
        self.take_away()

    def log(self) -> CoreLog:
        """Everything recorded so far, or since the last cut; cores that poll or are blocked count up to now.

        Raises:
            BhemuError: the recorder has never been attached.
        """
        return self.made(self._take(is_cut=False))

    def _take(self, *, is_cut: bool) -> Taken:
        """Everything so far; with counts of all words of L1, or of those between the first and the last executed."""
        self._settle()
        assert self._cores is not None
        buffer, record = self._buffer, self._cores.record
        goal = int(record["round_goal"])
        blocks = self._blocks().copy()
        added = [row for core in range(CORES) if (row := self._still_blocked(core, blocks[core])) is not None]
        length = int(buffer[column.MOVED_ROUNDS])
        if length:
            added.append([int(buffer[column.MOVED_FROM]), column.MOVED << 4, 0, -1, -1, length, 0, 0])
        counts = take_counts(buffer, clears=is_cut)
        words = range(column.WORDS)
        if is_cut:
            words = range(int(counts[:, 1].min()), int(counts[:, 1].max()) + 1) if len(counts) else range(0)
        telling = self._telling.chunks()
        self._telling.forget()
        return Taken(
            rows=self._rows.chunks(),
            telling=telling,
            tensix=self._tensix.chunks(),
            added=added,
            counts=counts,
            words=words,
            blocks=blocks,
            pushed=buffer[PUSHED : PUSHED + THREADS].tolist(),
            first_push=list(self._first_push),
            tensix_dropped=self._tensix.dropped,
            is_cut=is_cut,
            other={
                "dropped": self._rows.dropped - self._dropped[0],
                "tensix_dropped": self._tensix.dropped - self._dropped[1],
                "modelled": blocks[:, column.EX1_FREE] - self._modelled_before,
                "rounds": (self._first_round, goal),
                "clocks": int(record["clock"]) - self._first_clock,
                "names": self._names,
                "segments": [*self._segments, self._segment(goal)],
                "changes": list(self.changes),
            },
        )

    def made(self, taken: Taken, *, in_order: bool = True) -> CoreLog:
        """The log of what was taken; logs are made in the order in which that was, and not side by side.

        Args:
            in_order: rows of cores are by their rounds; else as they were recorded: cores run ahead of each other.
        """
        self._digest(taken.telling)
        added = np.array(taken.added, np.int64).reshape(-1, column.COLUMNS)
        waits, polls = waits_and_polls(add_waits(added, self._waits))
        executed, words = np.concatenate([*taken.rows, added]), np.concatenate(taken.tensix)
        words[:, tensix_column.PUSH] -= np.array(taken.first_push, np.int64)[words[:, tensix_column.THREAD]]
        blocks = taken.blocks
        log = CoreLog(
            rows=rows_in_order(executed) if in_order else executed,
            tensix=Log(words, self._pushes(taken), self._kept_notes(taken)),
            counts=taken.counts,
            words=taken.words,
            mix=blocks[:, column.MIX : column.MIX + CLASSES],
            polled=blocks[:, column.POLLED],
            ran=blocks[:, column.RAN],
            first=blocks[:, column.FIRST_ROUND],
            last=blocks[:, column.LAST_ROUND],
            waits=waits,
            polls=polls,
            **taken.other,
        )
        if taken.is_cut:
            self._waits = NO_WAITS
            self._notes = []
            self._made += 1
        return log

    def _blocks(self) -> Array:
        """int64 [core, CORE_BLOCK]: what the buffer has about the cores."""
        return self._buffer[column.CORE_BLOCKS : column.FIRST_ROW].reshape(CORES, column.CORE_BLOCK)

    def cut(self) -> CoreLog:
        """Everything since the recording began, or since the last cut, and begin a new part; see `log`.

        The parts of a recording add up: an access that a core is blocked in counts in each of them, up to the cut.
        """
        return self.made(self.take())

    def take(self) -> Taken:
        """What `cut` returns, of which `made` is still to make the log; that may be in another thread."""
        taken = self._take(is_cut=True)
        assert self._cores is not None
        buffer, record, blocks = self._buffer, self._cores.record, self._blocks()
        blocked = blocks[:, column.FIRST_TRY] >= 0
        goal = int(record["round_goal"])
        blocks[blocked, column.FIRST_TRY] = goal
        self._modelled_before = blocks[:, column.EX1_FREE].copy()
        blocks[:, column.SLEPT : column.FIRST_ROUND] = 0
        blocks[:, column.FIRST_ROUND : column.POLLED] = -1
        blocks[:, [column.POLLED, column.RAN, column.HIGH]] = 0
        blocks[:, column.LOW] = column.WORDS
        blocks[:, column.MIX : column.MIX + CLASSES] = 0
        buffer[column.MOVED_ROUNDS] = 0
        self._rows.forget()
        self._tensix.forget()
        self._dropped = (self._rows.dropped, self._tensix.dropped)
        self.changes.clear()
        self._segments.clear()
        self._segment_begin = self._first_round = goal
        self._first_clock = int(record["clock"])
        waiting = record["frontend"]["fifo_count"]
        # The word that a thread works on, or has just finished, came from this push.
        self._first_push = [max(taken.pushed[thread] - int(waiting[thread]) - 1, 0) for thread in range(THREADS)]
        self._taken += 1
        return taken

    def _still_blocked(self, core: int, block: Array) -> list[int] | None:
        """A row for an access that has not been made yet."""
        assert self._cores is not None
        first, pc = int(block[column.FIRST_TRY]), int(block[column.FIRST_TRY_PC])
        if first < 0 or self._cores.record["core_state"][core] == ASLEEP:
            return None
        record = self._cores.record
        pushes = record.access_kind[core] == PUSH
        address = -1 if pushes else int(record.access_address[core])
        who = core | column.GAVE_UP << 4 | int(record.access_size[core]) << 8
        word = int(record.l1_u32[pc >> 2])
        code = pc | (word - (word >> 31 << 32)) << 32  # as compiled code packs it: 64 bits with a sign
        waited = int(record.round_goal) - first
        return [first, who, code, address, -1, waited, int(self._buffer[column.TENSIX_BEFORE]), 0]
