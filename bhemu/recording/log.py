"""The log of a recorded run: a row for each word that passed its gate, and what the RISC-V cores did.

Rows are in the order in which the functional machine executed them. The columns of a row hold the state that the
instruction found, as far as the timing model and the hazard check need it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, overload

import numpy as np

Array = np.ndarray[Any, Any]

CLOCK: Final = 0
THREAD: Final = 1
WORD: Final = 2
LINE: Final = 3
PUSH: Final = 4
"""Number of words that the thread's core had pushed up to and including the one that this word came from."""
SILENT: Final = 5
"""Cycles in which the expanders took words and delivered none, just before this word (Y8, Y9)."""
BANK: Final = 6
"""Config bank of the thread."""
DST: Final = 7
"""RWC.Dst + the thread's math offset, in rows."""
ALU: Final = 8
"""Config word that holds the formats and the view of Dst (word 1)."""
OWNERS: Final = 9
"""Bits 0, 1: the matrix unit's bank of SrcA, SrcB; 2, 3: the unpackers'; 4 to 7: owner of A0, A1, B0, B1."""
AUX: Final = 10
"""Six columns that depend on the unit; see `PACK_*` and `UNPACK_*`."""
L1_BEGIN: Final = 16
"""First byte of L1 that a PACR has written, or an UNPACR has read; and the byte after the last one. Equal: none."""
L1_END: Final = 17
COLUMNS: Final = 18

# PACR: channel-0 counters of the packer and the words of its address generator (P4).
PACK_X: Final = 10
"""Channel-0 X in bits 0 to 31, channel-1 X above."""
PACK_YZW: Final = 11
"""Channel-0 Y, Z, W, sixteen bits each."""
PACK_XY: Final = 12
PACK_ZW: Final = 13
PACK_DST: Final = 14
"""Word of the Dst offset in bits 0 to 31, word of the read mode above."""
PACK_FORMAT: Final = 15
"""Word of In_data_format in bits 0 to 31, channel-0 base above."""

# UNPACR: what decides how much is read and where it goes (U2, U3, U10).
UNPACK_X: Final = 10
"""Channel-0 X in bits 0 to 31, channel-1 X above."""
UNPACK_REG2: Final = 11
UNPACK_REG2_NEXT: Final = 12
UNPACK_DEST: Final = 13
"""Context in bits 32 and up, word of its Dst address below."""
UNPACK_TILE: Final = 14
"""First word of the tile descriptor in bits 0 to 31, per-context format word above."""
UNPACK_SPEED: Final = 15

STORE: Final = "store"
POST: Final = "post"
GET: Final = "get"


@dataclass(frozen=True, slots=True)
class Note:
    """Something that a thread's RISC-V core did past its FIFO.

    Attributes:
        row: number of log rows when it happened.
        push: number of words that the core had pushed.
        thread: whose core.
        kind: STORE (config words), POST or GET (a semaphore).
        values: config words as bank * 256 + word, or the semaphore.
        line: program line.
        ready: number of log rows when the core could have done it; None: as `row`.
    """

    row: int
    push: int
    thread: int
    kind: str
    values: tuple[int, ...]
    line: int
    ready: int | None = None


@dataclass(frozen=True, slots=True)
class Push:
    """A word that a core pushed: it could not do so before row `row` - 1 was executed.

    Attributes:
        row: number of log rows when the core could have gone on.
        own: the core had waited for its own thread only.
    """

    row: int
    own: bool


class Pushes(Sequence[Push]):
    """Words that a core pushed: most could be pushed when the one before could.

    Args:
        runs: int64 [n, 3]: row and own of `Push`, and how many pushes in turn are like that.
    """

    def __init__(self, runs: Array) -> None:
        self.runs = runs

    @cached_property
    def _all(self) -> list[Push]:
        return [push for row, own, count in self.runs.tolist() for push in [Push(row, bool(own))] * count]

    def __len__(self) -> int:
        return len(self._all)

    @overload
    def __getitem__(self, at: int) -> Push: ...

    @overload
    def __getitem__(self, at: slice) -> list[Push]: ...

    def __getitem__(self, at: int | slice) -> Push | list[Push]:
        return self._all[at]

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as lists have none


def runs_of(pushes: Sequence[Push]) -> Array:
    """int64 [n, 3]: `Pushes.runs` of what a recorder of cores has noted."""
    assert isinstance(pushes, Pushes)
    return pushes.runs


@dataclass
class Log:
    """A recorded run.

    Attributes:
        rows: int64 [instructions, 18], columns as named in this module.
        pushes: by thread, a `Push` for each word.
        notes: in order.
        file: the program, for messages.
    """

    rows: Array
    pushes: tuple[Sequence[Push], Sequence[Push], Sequence[Push]]
    notes: list[Note] = field(default_factory=list)
    file: Path | None = None

    def __len__(self) -> int:
        return len(self.rows)
