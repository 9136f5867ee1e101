"""The recorder of a tile that only counts: how often, how long; not what and when."""

from __future__ import annotations

import functools
import mmap
from typing import Any, Final, Protocol

import numpy as np

import bhemu.counting.blocks as block_at
import bhemu.counting.layout as at
from bhemu.counting.clock import advance_counted_entry
from bhemu.counting.take import take_counters_entry
from bhemu.errors import BhemuError
from bhemu.machine.agents import CORES
from bhemu.machine.compiler import JIT, Entry, compile_entry
from bhemu.machine.state import THREADS
from bhemu.machine.types import Int, Table
from bhemu.tile.cores import Cores
from bhemu.tile.observer import ENTRY, HOW
from bhemu.tile.schedule import OBSERVE

Array = np.ndarray[Any, Any]


class HasCores(Protocol):
    """A tile. One of a chip is brought to the chip's time when its cores are read."""

    @property
    def cores(self) -> Cores:
        """The cores."""


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
        >>> from bhemu.counting.recorder import CounterRecorder, sections
        >>> tile = bhemu.Tile()
        >>> tile.record.l1_u32[0:2] = 0x00500513, 0x00100073  # li a0, 5; ebreak
        >>> recorder = CounterRecorder()
        >>> recorder.attach(tile)
        >>> tile.cores.store(0xFFB121B0, 0x47000)  # release core B
        >>> _ = tile.cores.advance(10)
        >>> runs, *_ = sections(recorder.cut())
        >>> runs.tolist()  # core, first word, words, times executed
        [[0, 0, 2, 1]]
    """

    def __init__(self) -> None:
        self._buffer = _zeros(at.SIZE)
        blocks = self._buffer[at.CORE_BLOCKS : at.CORE_BLOCKS + CORES * at.CORE_BLOCK].reshape(CORES, -1)
        unknown = (block_at.RUN_FIRST, block_at.RUN_END, block_at.FIRST_TRY, block_at.ASLEEP_SINCE)
        for place in (*unknown, block_at.FIRST_ROUND, block_at.LAST_ROUND):
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
        buffer[at.CUT_ROUND], buffer[at.CUT_CLOCK] = int(record.round_goal), int(record.clock)
        buffer[at.ISSUED : at.ISSUED + THREADS * at.OPCODES] = record.issued.reshape(-1)
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
        """What was counted since the recording began, or since the last cut; see `sections`.

        Returns:
            int64 [n], by layout.py.

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


def sections(numbers: Array) -> tuple[Array, Array, Array, Array]:
    """(runs [n, 4], waits [n, 2], words [n, 2], pieces [n, 2]) of what `take_counters` has written; see layout.py.

    Raises:
        ValueError: there are not so many numbers as it says.
    """
    if len(numbers) < at.HEAD:
        raise ValueError(f"{len(numbers)} numbers are not counts")
    counts = numbers[: at.BEGIN].tolist()
    ends = [at.HEAD]
    for count, columns in zip(counts, (at.RUN_COLUMNS, 2, 2, 2), strict=True):
        ends.append(ends[-1] + columns * count)
    if min(counts) < 0 or ends[-1] != len(numbers):
        raise ValueError(f"{len(numbers)} numbers are not those of so many counts")
    return (
        numbers[ends[0] : ends[1]].reshape(-1, at.RUN_COLUMNS),
        numbers[ends[1] : ends[2]].reshape(-1, 2),
        numbers[ends[2] : ends[3]].reshape(-1, 2),
        numbers[ends[3] :].reshape(-1, 2),
    )


def _joined(several: list[Array]) -> Array:
    """One after the other as if they were one; a place may then have several rows."""
    head = several[-1][: at.HEAD].copy()
    heads = np.stack([one[: at.HEAD] for one in several])
    for place in (*range(at.BEGIN), *range(at.RAN, at.FIRST), *range(at.POLLED, at.PCS)):
        head[place] = heads[:, place].sum()
    for core in range(CORES):
        ran = heads[heads[:, at.FIRST + core] >= 0, at.FIRST + core]
        head[at.FIRST + core] = ran[0] if len(ran) else -1
    head[at.LAST : at.POLLED] = heads[:, at.LAST : at.POLLED].max(axis=0)
    split = [sections(one) for one in several]
    return np.concatenate([head, *(one[which].reshape(-1) for which in range(at.BEGIN) for one in split)])


def executed_pieces(numbers: Array) -> list[tuple[int, int]]:
    """(first word, word after the last) of pieces of L1 with the instructions that were executed, in order.

    Args:
        numbers: of `CounterRecorder.cut`.
    """
    count = 2 * int(numbers[at.PIECES])
    found: list[tuple[int, int]] = []
    for first, end in sorted(numbers[len(numbers) - count :].reshape(-1, 2).tolist()):
        if found and first - found[-1][1] <= at.GAP:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((first, end))
    return found


def has_counts(numbers: Array) -> bool:
    """Something was executed, or waited for."""
    return bool(numbers[: at.PIECES].any())
