"""The recorder of a tile that only counts: how often, how long; not what and when."""

from __future__ import annotations

import functools
import mmap
from typing import Any, Final

import numpy as np

import bhemu.recording.core_columns as column
import bhemu.recording.counter_columns as at
from bhemu.errors import BhemuError
from bhemu.machine.agents import CORES
from bhemu.machine.compiler import JIT, Entry, compile_entry
from bhemu.machine.state import THREADS
from bhemu.machine.types import Int, Table
from bhemu.recording import log as tensix_column
from bhemu.recording.core_figures import CLASSES
from bhemu.recording.core_log import CoreLog, Names, waits_and_polls
from bhemu.recording.core_recorder import HasCores
from bhemu.recording.counter_clock import advance_counted_entry, take_counters_entry
from bhemu.recording.log import Log, Pushes
from bhemu.tile.cores import Cores
from bhemu.tile.observer import ENTRY, HOW
from bhemu.tile.schedule import OBSERVE

Array = np.ndarray[Any, Any]

_OPCODES: Final = 256


def _zeros(count: int) -> Array:
    """int64 [count], of which pages that are never touched are not there."""
    return np.frombuffer(mmap.mmap(-1, 8 * count, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.int64)


@functools.cache
def counting() -> tuple[Entry, Entry]:
    """The compiled functions: all counted tiles advance by the first, and the second takes their counts."""
    return (
        compile_entry("advance_counted", advance_counted_entry),
        compile_entry("take_counters", take_counters_entry, arguments=3),
    )


_found: Final = functools.cache(lambda: _zeros(at.MOST))
"""Where counts are written to before they are copied."""


class CounterRecorder:
    """Counts what a tile executes from `attach` on.

    Example:
        >>> import bhemu
        >>> from bhemu.recording.counter_recorder import CounterRecorder, counted_log
        >>> tile = bhemu.Tile()
        >>> tile.record.l1_u32[0:2] = 0x00500513, 0x00100073  # li a0, 5; ebreak
        >>> recorder = CounterRecorder()
        >>> recorder.attach(tile)
        >>> tile.cores.store(0xFFB121B0, 0x47000)  # release core B
        >>> _ = tile.cores.advance(10)
        >>> counted_log(recorder.cut()).retired(0)
        2
    """

    def __init__(self) -> None:
        self._buffer = _zeros(at.SIZE)
        blocks = self._buffer[column.CORE_BLOCKS : column.FIRST_ROW].reshape(CORES, column.CORE_BLOCK)
        for place in (column.FIRST_TRY, column.ASLEEP_SINCE, column.FIRST_ROUND, column.LAST_ROUND):
            blocks[:, place] = -1
        self._full: list[Array] = []
        self._tile: HasCores | None = None
        self._cores: Cores | None = None
        self.log_address = int(self._buffer.ctypes.data)
        """Of the buffer, for compiled code."""

    def attach(self, tile: HasCores) -> None:
        """Count what `tile` executes from now on, whenever its clock moves.

        Args:
            tile: a `bhemu.Tile`, or a tile of a `bhemu.Chip`, `chip[1, 2]`.
        """
        self._tile, self._cores = tile, tile.cores
        record, buffer = self._cores.record, self._buffer
        buffer[column.GOAL], buffer[column.FREE] = int(record.round_goal), int(record.clock)
        buffer[at.ISSUED : at.ISSUED + THREADS * _OPCODES] = record.issued.reshape(-1)
        self._advance, self._take = counting()
        buffer[ENTRY] = self._advance.address
        self._cores.observe(self)

    def detach(self) -> None:
        """Count no longer."""
        if self._cores is not None:
            self._cores.observe(None)
            self._tile = self._cores = None

    def advance(self, target: Any, table: Table, how: Int) -> int:
        """Advance the tile as `bhemu.tile.schedule.advance_tile_entry` does, and count."""
        self._buffer[HOW] = how
        return int(self._advance.call(target, table, self._log))

    @property
    def _log(self) -> Any:
        return self.log_address if JIT else self._buffer

    def _taken(self, cuts: int) -> Array:
        assert self._cores is not None
        found = _found()
        size = self._take.call(self._cores.coprocessor.target, self._log, found.ctypes.data if JIT else found, cuts)
        return found[: int(size)].copy()

    def take_away(self) -> None:
        """There is no room for further waits."""
        self._full.append(self._taken(0))

    def cut(self) -> Array:
        """What was counted since the recording began, or since the last cut; see `counted_log`.

        Returns:
            int64 [n], by counter_columns.py.

        Raises:
            BhemuError: the recorder is not attached.
        """
        if self._tile is None:
            raise BhemuError("the recorder is not attached to a tile", remedy="call attach(tile) before the run")
        cores = self._tile.cores
        cores.settle()
        self.advance(cores.coprocessor.target, cores.table, OBSERVE)
        numbers = self._taken(1)
        if self._full:
            numbers = _joined([*self._full, numbers])
            self._full.clear()
        return numbers


def _sections(numbers: Array) -> tuple[Array, Array, Array]:
    """(runs [n, 4], waits [n, 2], words [n, 2]) of what `take_counters` has written.

    Raises:
        ValueError: there are not so many numbers as it says.
    """
    if len(numbers) < at.HEAD or int(numbers[: at.BEGIN].min()) < 0:
        raise ValueError(f"{len(numbers)} numbers are no counts")
    runs = at.HEAD + at.RUN_COLUMNS * int(numbers[at.RUNS])
    waits = runs + 2 * int(numbers[at.WAITED])
    if waits + 2 * int(numbers[at.WORDS_EXECUTED]) != len(numbers):
        raise ValueError(f"{len(numbers)} numbers are not those of so many counts")
    return (
        numbers[at.HEAD : runs].reshape(-1, at.RUN_COLUMNS),
        numbers[runs:waits].reshape(-1, 2),
        numbers[waits:].reshape(-1, 2),
    )


def _joined(several: list[Array]) -> Array:
    """One after the other as if they were one; a place may then have several rows."""
    head = several[-1][: at.HEAD].copy()
    heads = np.stack([one[: at.HEAD] for one in several])
    for place in (at.RUNS, at.WAITED, at.WORDS_EXECUTED, *range(at.RAN, at.FIRST), *range(at.POLLED, at.PCS)):
        head[place] = heads[:, place].sum()
    for core in range(CORES):
        ran = heads[heads[:, at.FIRST + core] >= 0, at.FIRST + core]
        head[at.FIRST + core] = ran[0] if len(ran) else -1
    head[at.LAST : at.POLLED] = heads[:, at.LAST : at.POLLED].max(axis=0)
    sections = [_sections(one) for one in several]
    return np.concatenate([head, *(part.reshape(-1) for which in range(3) for part in (s[which] for s in sections))])


def executed_pieces(numbers: Array, gap: int) -> list[tuple[int, int]]:
    """(first, last) words of pieces of L1 with the instructions that were executed.

    Args:
        numbers: of `CounterRecorder.cut`.
        gap: words that were not executed between two that were, in one piece.
    """
    runs = _sections(numbers)[0]
    if not len(runs):
        return []
    order = np.argsort(runs[:, 1], kind="stable")
    first = runs[order, 1]
    end = np.maximum.accumulate(first + runs[order, 2])
    breaks = np.flatnonzero(first[1:] - end[:-1] >= gap) + 1
    begins, ends = first[[0, *breaks]].tolist(), end[[*(breaks - 1), -1]].tolist()
    return [(begin, end - 1) for begin, end in zip(begins, ends, strict=True)]


def has_counts(numbers: Array) -> bool:
    """Something was executed, or waited for."""
    return bool(numbers[at.RUNS] or numbers[at.WAITED] or numbers[at.WORDS_EXECUTED])


def _counts(runs: Array) -> Array:
    """`CoreLog.counts` of runs.

    Raises:
        ValueError: they are not in L1.
    """
    core, first, size, times = runs.T
    if len(runs) and not (
        core.min() >= 0
        and core.max() < CORES
        and first.min() >= 0
        and size.min() > 0
        and (first + size).max() <= column.WORDS
        and size.max() <= column.WORDS
        and int(size.sum()) <= column.WORDS * CORES * max(len(runs) // (column.WORDS * CORES), 1)
    ):
        raise ValueError("counts are not those of words of L1")
    before = np.cumsum(size) - size
    words = np.arange(int(size.sum())) - np.repeat(before - first, size)
    keys = np.repeat(core, size) * column.WORDS + words
    keys, where = np.unique(keys, return_inverse=True)
    sums = np.zeros(len(keys), np.int64)
    np.add.at(sums, where, np.repeat(times, size))
    return np.stack([keys // column.WORDS, keys % column.WORDS, sums, np.zeros_like(sums)], axis=1)


def counted_log(numbers: Array) -> CoreLog:
    """What was counted, as the log of a recording without rows.

    Args:
        numbers: of `CounterRecorder.cut`.

    Raises:
        ValueError: they are nothing of that kind.
    """
    runs, waits, words = _sections(numbers)
    counts = _counts(runs)
    issued = np.zeros(THREADS * _OPCODES, np.int64)
    if len(words) and not (words[:, 0].min() >= 0 and words[:, 0].max() < len(issued)):
        raise ValueError("there are no such words of the coprocessor")
    np.add.at(issued, words[:, 0], words[:, 1])
    waited, polled = waits_and_polls(waits.T)
    nothing: Pushes = Pushes(np.zeros((0, 3), np.int64))
    return CoreLog(
        rows=np.zeros((0, column.COLUMNS), np.int64),
        dropped=0,
        tensix=Log(np.zeros((0, tensix_column.COLUMNS), np.int64), (nothing, nothing, nothing), []),
        tensix_dropped=0,
        counts=counts,
        words=range(int(counts[:, 1].min()), int(counts[:, 1].max()) + 1) if len(counts) else range(0),
        mix=np.zeros((CORES, CLASSES), np.int64),
        modelled=np.zeros(CORES, np.int64),
        polled=numbers[at.POLLED : at.PCS],
        ran=numbers[at.RAN : at.FIRST],
        first=numbers[at.FIRST : at.LAST],
        last=numbers[at.LAST : at.POLLED],
        waits=waited,
        polls=polled,
        rounds=(int(numbers[at.BEGIN]), int(numbers[at.END])),
        clocks=int(numbers[at.CLOCKS]),
        names=Names(),
        issued=issued.reshape(THREADS, _OPCODES),
    )
