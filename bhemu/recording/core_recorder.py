"""The recorder of a tile with RISC-V cores: what each core and each thread of the coprocessor executes, and when."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from bhemu.errors import BhemuError
from bhemu.isa.tile_registers import tile_register
from bhemu.machine.agents import CORES, T0
from bhemu.machine.compiler import JIT, Entry, compile_entry
from bhemu.machine.core_state import ASLEEP, PUSH
from bhemu.machine.origin import line_of_pc
from bhemu.machine.state import THREADS
from bhemu.machine.types import Int, Table
from bhemu.recording import core_columns as column
from bhemu.recording import log as tensix_column
from bhemu.recording.core_clock import advance_recorded_entry
from bhemu.recording.core_figures import CLASSES
from bhemu.recording.core_log import CoreLog, Executables, Names, Segment, count_waits, is_t_core
from bhemu.recording.log import GET as GETS
from bhemu.recording.log import POST as POSTS
from bhemu.recording.log import Log, Note, Push
from bhemu.recording.recorder import CAPACITY as TENSIX_CAPACITY
from bhemu.recording.recorder import COUNT as TENSIX_COUNT
from bhemu.recording.recorder import HEADER as TENSIX_HEADER
from bhemu.recording.recorder import PUSHED
from bhemu.recording.recorder import ROWS as TENSIX_ROWS
from bhemu.tile.observer import ENTRY, HOW
from bhemu.tile.schedule import OBSERVE

if TYPE_CHECKING:
    from bhemu.tile.cores import Cores

Array = np.ndarray[Any, Any]

LIMIT: Final = 1 << 20
"""Rows that are kept by default, the last ones, of the cores (64 bytes each) and of the coprocessor (128)."""
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
        self._kept = 0
        self.dropped = 0

    def add(self, rows: Array) -> None:
        if not len(rows):
            return
        self._chunks.append(rows)
        self._kept += len(rows)
        while self._limit is not None and self._kept - len(self._chunks[0]) >= self._limit:
            gone = len(self._chunks.popleft())
            self._kept -= gone
            self.dropped += gone

    def rows(self) -> Array:
        """All of them in one array."""
        return np.concatenate(self._chunks) if self._chunks else np.zeros((0, self._columns), np.int64)


class HasCores(Protocol):
    """A tile. One of a chip is brought to the chip's time when its cores are read."""

    @property
    def cores(self) -> Cores:
        """The cores."""


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
    """

    def __init__(self, *, instructions: bool = True, limit: int | None = LIMIT) -> None:
        self._buffer = np.zeros(column.SIZE, np.int64)
        self._buffer[TENSIX_CAPACITY] = TENSIX_ROWS
        self._buffer[column.CAPACITY] = column.ROWS
        self._buffer[column.WANTED] = int(instructions)
        self._buffer[column.BREAK] = -1
        for core in range(CORES):
            block = column.CORE_BLOCKS + core * column.CORE_BLOCK
            for at in (column.FIRST_TRY, column.ASLEEP_SINCE, column.LAST_LOAD_PC, column.FIRST_ROUND):
                self._buffer[block + at] = -1
            self._buffer[block + column.LAST_ROUND] = -1
            self._buffer[block + column.EXPECTED_PC] = -1
        self._rows = _Chunks(column.COLUMNS, limit)
        self._tensix = _Chunks(tensix_column.COLUMNS, limit)
        self._waits: Counter[tuple[int, int, str]] = Counter()
        self._polls: Counter[tuple[int, int, str]] = Counter()
        self._turns: tuple[list[tuple[int, Push]], ...] = tuple([(0, Push(0, False))] for _ in range(THREADS))
        self._notes: list[Note] = []
        self._segments: list[Segment] = []
        self._tile: HasCores | None = None
        self._cores: Cores | None = None
        self._names = Names()
        self._first_round = 0
        self._first_clock = 0
        self._segment_begin = 0
        self._entry: Entry | None = None
        self.log_address = int(self._buffer.ctypes.data)
        """Of the buffer, for compiled code."""

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
            buffer[PUSHED + thread] = record.fifo_count[thread]
        self._entry = compile_entry("advance_recorded", advance_recorded_entry)
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
        count_waits(rows, self._waits, self._polls)
        self._follow_pushes(rows)
        self._rows.add(rows)

    def _segment(self, end: int) -> Segment:
        """How the clock goes with the rounds since the last break."""
        return Segment(self._segment_begin, end, int(self._buffer[column.FREE]))

    def _follow_pushes(self, rows: Array) -> None:
        """What the words that T cores push had to wait for, and semaphores that they post or get."""
        who, kinds = rows[:, column.WHO], rows[:, column.WHO] >> 4 & 0xF
        address = rows[:, column.ADDRESS]
        posts = (address >= _SEMAPHORES.start) & (address < _SEMAPHORES.stop)
        chosen = ((rows[:, column.ROUNDS] > 0) & (kinds != column.MOVED)) | (who & column.CHANGED != 0) | posts
        for row in rows[chosen].tolist():
            core = row[column.WHO] & 7
            if not is_t_core(core):
                continue
            thread, kind = core - T0, row[column.WHO] >> 4 & 0xF
            executed, pushed, word = row[column.TENSIX_ROWS], row[column.DETAIL] & 0xFFFFFFFF, row[column.CODE] >> 32
            if row[column.ROUNDS] > 0 or row[column.WHO] & column.CHANGED:
                own = kind in (column.DEVICE, column.PUSHES) and bool(row[column.WHO] & column.OWN)
                own = own and not row[column.WHO] & column.CHANGED
                self._turns[thread].append((pushed, Push(executed, own)))
            if row[column.ADDRESS] in _SEMAPHORES and word & 0x7F == 0x23:
                number = (row[column.ADDRESS] - _SEMAPHORES.start) >> 2
                what = GETS if row[column.VALUE] & 1 else POSTS
                pc = row[column.CODE] & 0xFFFFFFFF
                self._notes.append(Note(executed, pushed, thread, what, (number,), line_of_pc(pc)))

    def _pushes(self) -> tuple[list[Push], list[Push], list[Push]]:
        """For each pushed word what its core had waited for last."""
        result: list[list[Push]] = []
        for thread in range(THREADS):
            total = int(self._buffer[PUSHED + thread])
            turns = self._turns[thread]
            ends = [pushed for pushed, _ in turns[1:]] + [total]
            begins = [0, *ends[:-1]]
            gone = self._tensix.dropped
            kept = [Push(max(push.row - gone, 0), push.own) for _, push in turns]
            result.append([push for push, a, b in zip(kept, begins, ends, strict=True) for _ in range(b - a)])
        return result[0], result[1], result[2]

    def _kept_notes(self) -> list[Note]:
        gone = self._tensix.dropped
        return [replace(note, row=note.row - gone) for note in self._notes if note.row >= gone]

    def _settle(self) -> None:
        if self._tile is None or self._cores is None:
            raise BhemuError("the recorder is not attached to a tile", remedy="call attach(tile) before the run")
        self._tile.cores.settle()
        self.advance(self._cores.coprocessor.target, self._cores.table, OBSERVE)
        self.take_away()

    def log(self) -> CoreLog:
        """Everything recorded so far; cores that poll or are blocked count up to now.

        Raises:
            BhemuError: the recorder has never been attached.
        """
        self._settle()
        assert self._cores is not None
        buffer, record = self._buffer, self._cores.record
        blocks = buffer[column.CORE_BLOCKS : column.FIRST_ROW].reshape(CORES, column.CORE_BLOCK).copy()
        rows, waits = self._rows.rows(), Counter(self._waits)
        extra = [row for core in range(CORES) if (row := self._still_blocked(core, blocks[core])) is not None]
        length = int(buffer[column.MOVED_ROUNDS])
        if length:
            extra.append([int(buffer[column.MOVED_FROM]), column.MOVED << 4, 0, -1, -1, length, 0, 0])
        if extra:
            added = np.array(extra, np.int64)
            count_waits(added, waits, Counter())
            rows = np.concatenate([rows, added])
        order = np.lexsort((rows[:, column.WHO] & 7, rows[:, column.ROUND]))
        executed = buffer[column.EXECUTED : column.CYCLES].reshape(CORES, column.WORDS)
        cycles = buffer[column.CYCLES :].reshape(CORES, column.WORDS)
        return CoreLog(
            rows=rows[order],
            dropped=self._rows.dropped,
            tensix=Log(self._tensix.rows(), self._pushes(), self._kept_notes()),
            tensix_dropped=self._tensix.dropped,
            executed=executed.copy(),
            cycles=cycles.copy(),
            mix=blocks[:, column.MIX : column.MIX + CLASSES],
            modelled=blocks[:, column.EX1_FREE],
            polled=blocks[:, column.POLLED],
            ran=blocks[:, column.RAN],
            first=blocks[:, column.FIRST_ROUND],
            last=blocks[:, column.LAST_ROUND],
            waits=waits,
            polls=Counter(self._polls),
            rounds=(self._first_round, int(record.round_goal)),
            clocks=int(record.clock) - self._first_clock,
            names=self._names,
            segments=[*self._segments, self._segment(int(record.round_goal))],
        )

    def _still_blocked(self, core: int, block: Array) -> list[int] | None:
        """A row for an access that has not been made yet."""
        assert self._cores is not None
        record = self._cores.record
        first, pc = int(block[column.FIRST_TRY]), int(block[column.FIRST_TRY_PC])
        if first < 0 or record.core_state[core] == ASLEEP:
            return None
        pushes = record.access_kind[core] == PUSH
        address = -1 if pushes else int(record.access_address[core])
        who = core | column.GAVE_UP << 4 | int(record.access_size[core]) << 8
        word = int(record.l1_u32[pc >> 2])
        code = pc | (word - (word >> 31 << 32)) << 32  # as compiled code packs it: 64 bits with a sign
        waited = int(record.round_goal) - first
        return [first, who, code, address, -1, waited, int(self._buffer[column.TENSIX_BEFORE]), 0]
