"""Parts of a recording that only counts, many in one frame of a file: a cut must not take longer than what it cuts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import bhemu.counting.layout as at
from bhemu.chip.coordinates import Place
from bhemu.counting.recorder import executed_pieces, has_counts, sections
from bhemu.machine.agents import CORES
from bhemu.machine.state import THREADS
from bhemu.recording import core_columns as column
from bhemu.recording import log as tensix_column
from bhemu.recording.core_figures import CLASSES
from bhemu.recording.core_log import CoreLog, Names, waits_and_polls
from bhemu.recording.log import Log, Pushes

Array = np.ndarray[Any, Any]

KIND: Final = "counted"
"""Of such frames."""


@dataclass(frozen=True)
class Counted:
    """What a tile executed in a span of time, counted.

    Attributes:
        place, begin, end, launch, started, code, firmware_end, mailboxes: as those of `parts.Part`.
        numbers: int64 [n], of `CounterRecorder.cut`.
    """

    place: Place
    begin: int
    end: int
    launch: int
    started: int | None
    numbers: Array
    code: list[tuple[int, bytes]]
    firmware_end: int
    mailboxes: Array

    @property
    def is_empty(self) -> bool:
        """Nothing has happened, and no launch has ended."""
        return not self.launch and not has_counts(self.numbers)

    @property
    def pcs(self) -> tuple[int, ...]:
        """By core, where it was at the end."""
        return tuple(self.numbers[at.PCS : at.PCS + CORES].tolist())

    @property
    def halted(self) -> tuple[int, ...]:
        """Cores that `ebreak` had halted by then."""
        return tuple(np.flatnonzero(self.numbers[at.HALTED : at.HALTED + CORES]).tolist())


def code_of(numbers: Array, l1: Array) -> list[tuple[int, bytes]]:
    """(address, bytes) of pieces of L1 with the instructions that were executed; see `executed_pieces`."""
    return [(4 * a, l1[4 * a : 4 * b].tobytes()) for a, b in executed_pieces(numbers)]


def described(parts: Sequence[Counted], code: Sequence[list[list[Any]]]) -> tuple[dict[str, Any], dict[str, Array]]:
    """Description and arrays of a frame.

    Args:
        parts: all of them.
        code: of each, [address, name of the piece in the file].
    """
    told = [
        [
            *(*part.place, part.begin, part.end, part.launch, part.started, part.firmware_end),
            *(len(part.numbers), len(part.mailboxes), pieces),
        ]
        for part, pieces in zip(parts, code, strict=True)
    ]
    arrays = {
        "numbers": np.concatenate([part.numbers for part in parts]),
        "mailboxes": np.concatenate([part.mailboxes for part in parts]),
    }
    return {"kind": KIND, "parts": told}, arrays


def undescribed(told: Mapping[str, Any], arrays: Mapping[str, Array], code: Mapping[str, bytes]) -> list[Counted]:
    """The parts of a frame, the inverse of `described`.

    Raises:
        ValueError, LookupError, TypeError: it is nothing of that kind.
    """
    numbers, mailboxes = arrays["numbers"], arrays["mailboxes"]
    if numbers.dtype != np.int64 or numbers.ndim != 1 or mailboxes.dtype != np.uint8 or mailboxes.ndim != 1:
        raise ValueError("counts are not int64 [n], or mailboxes not uint8 [n]")
    found, count, size = [], 0, 0
    for x, y, begin, end, launch, started, firmware_end, counts, bytes_, pieces in told["parts"]:
        if not 0 <= counts <= len(numbers) - count or not 0 <= bytes_ <= len(mailboxes) - size:
            raise ValueError(f"a part has {counts} numbers and {bytes_} bytes")
        part = Counted(
            place=(x, y),
            begin=begin,
            end=end,
            launch=launch,
            started=started,
            numbers=numbers[count : count + counts],
            code=[(address, code[digest]) for address, digest in pieces],
            firmware_end=firmware_end,
            mailboxes=mailboxes[size : size + bytes_],
        )
        found.append(part)
        count, size = count + counts, size + bytes_
    return found


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
        and int(size.sum()) <= column.WORDS * CORES
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
    runs, waits, words, _ = sections(numbers)
    counts = _counts(runs)
    issued = np.zeros(THREADS * at.OPCODES, np.int64)
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
        issued=issued.reshape(THREADS, at.OPCODES),
    )
