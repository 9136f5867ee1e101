"""How many pages are in circular buffers of a tile, and what semaphores of the coprocessor hold, over time.

A level is known from the first time on that the recording shows it, when software sets or loads it; where single
instructions of cores were not recorded it is not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from bhemu.analysis.access import access
from bhemu.analysis.tile_events import Pages
from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.isa.names import Semaphore
from bhemu.isa.tile_registers import tile_register
from bhemu.machine.agents import CORE_NAMES
from bhemu.machine.origin import pc_of_line
from bhemu.recording import core_columns as core_column
from bhemu.recording import log as column
from bhemu.recording.core_log import is_t_core
from bhemu.recording.noc_requests import is_store
from bhemu.recording.parts import Part
from bhemu.report.names import PartNames
from bhemu.tensix.sync import SEMAPHORE_TOP

Array = np.ndarray[Any, Any]

_RANGE: Final = 1 << 16
_SEMAPHORES: Final = tile_register("sync", "SEMAPHORE").span
_OPCODES: Final = [INSTRUCTIONS[name].opcode for name in ("SEMINIT", "SEMPOST", "SEMGET")]


class Step(NamedTuple):
    """A level from a round on; `level` is -1 where it is not known any more."""

    round: int
    level: int
    text: str


@dataclass
class Level:
    """A lane, and what it held over the whole recording.

    Attributes:
        most: pages of the buffer, or the maximum of the semaphore; what was seen, where that is not known or is less.
        clocks: for which it is known.
        sum: of levels times clocks.
        empty, full: clocks at 0, and at `most`.
    """

    most: int = 1
    clocks: float = 0.0
    sum: float = 0.0
    empty: float = 0.0
    full: float = 0.0

    def add(self, levels: Array, lengths: Array) -> None:
        """Count steps."""
        self.clocks += float(lengths.sum())
        self.sum += float(levels @ lengths)
        self.empty += float(lengths[levels == 0].sum())
        self.full += float(lengths[levels >= self.most].sum())


class _Change(NamedTuple):
    """A core or a thread changes or loads a semaphore; `value` is that of a load or SEMINIT, `most` of SEMINIT."""

    round: int
    number: int
    verb: str
    by: str
    pc: int | None
    value: int = -1
    most: int = -1


class TileLevels:
    """Follows one tile through the parts of its recording.

    Attributes:
        most: the highest level of each lane so far; `Level.most`.
    """

    def __init__(self) -> None:
        self._sizes: dict[int, int] = {}
        self._counts: dict[tuple[int, bool], int] = {}
        self._semaphores: dict[int, int] = {}
        self.most: dict[str, int] = {}
        self._last: dict[str, Step] = {}
        self._used: set[str] = set()

    def begin(self, parts: Sequence[Part]) -> None:
        """A program begins, which has these parts."""
        self._sizes = {buffer.number: buffer.pages for buffer in parts[-1].buffers or parts[0].buffers}

    def part(self, part: Part, pages: Iterable[Pages], names: PartNames) -> dict[str, list[Step]]:
        """Steps of the next part by lane; the first is the level at the part's begin, when that is known.

        Lanes whose level has been 0 so far are left out: firmware empties all buffers, also those that no core uses.

        Args:
            part: of the recording.
            pages: what it did with counters of circular buffers, in order.
            names: of the part.
        """
        first = part.log.rounds[0]
        if not _is_complete(part):
            lost = {name: [Step(first, -1, "")] for name, step in self._last.items() if step.level >= 0}
            self._counts, self._semaphores, self._last = {}, {}, {}
            return {name: steps for name, steps in lost.items() if name in self._used}
        known = {name: [step._replace(round=first)] for name, step in self._last.items() if step.level >= 0}
        found = defaultdict(list, known)
        for name, step in (*self._buffers(pages, names), *self._changes(part, names)):
            found[name].append(step)
        self._last = {name: steps[-1] for name, steps in found.items()}
        self._used |= {name for name, steps in found.items() if any(step.level > 0 for step in steps)}
        return {name: steps for name, steps in found.items() if name in self._used}

    # --- circular buffers ---------------------------------------------------------------------------------------------

    def _buffers(self, pages: Iterable[Pages], names: PartNames) -> Iterator[tuple[str, Step]]:
        for event in pages:
            key = event.stream, event.received
            before = self._counts.get(key)
            if before is not None and not event.stored:
                continue
            self._counts[key] = event.value
            other = self._counts.get((event.stream, not event.received))
            if other is None or event.value == before:
                continue
            level = (event.value - other if event.received else other - event.value) % _RANGE
            name = f"CB {event.stream} (pages)"
            size = self._sizes.get(event.stream, 0)
            if level > (size or _RANGE // 2 - 1):  # one of the counters has been set anew, the other not yet
                yield name, Step(event.round, -1, "")
                continue
            most = self.most[name] = max(self.most.get(name, 1), size, level)
            pc = event.place.code
            verb = "pushed" if event.received else "popped"
            verb = verb if event.stored and event.value else "seen" if not event.stored else "emptied"
            where = f" at {names.place(pc)}" if pc is not None else ""
            yield name, Step(event.round, level, f"{level} of {most} pages | {verb} by {CORE_NAMES[event.core]}{where}")

    # --- semaphores ---------------------------------------------------------------------------------------------------

    def _changes(self, part: Part, names: PartNames) -> Iterator[tuple[str, Step]]:
        changes = [*_by_words(part), *_by_cores(part)]
        for change in sorted(changes, key=lambda one: one.round):
            number = change.number
            name = _semaphore_name(number)
            before = self._semaphores.get(number)
            if change.most >= 0:
                self.most[name] = max(change.most, 1)
            value = change.value
            if value < 0 and before is not None:
                value = min(before + 1, SEMAPHORE_TOP) if change.verb == "post" else max(before - 1, 0)
            if value < 0 or value == before:
                continue
            self._semaphores[number] = value
            self.most[name] = max(self.most.get(name, 1), value)
            where = f" at {names.place(change.pc)}" if change.pc is not None else ""
            yield name, Step(change.round, value, f"{value} of {self.most[name]} | {change.verb} by {change.by}{where}")


def _semaphore_name(number: int) -> str:
    return f"semaphore {number} {Semaphore(number).name}"


def _by_words(part: Part) -> Iterator[_Change]:
    rows = part.log.tensix.rows
    for row in rows[np.isin(rows[:, column.WORD] >> 24, _OPCODES)].tolist():
        found = access(row[column.WORD])
        values = (-1, -1)
        if found.mnemonic == "SEMINIT":
            values = found.operands["init_value"], found.operands["max_value"]
        for number in range(len(Semaphore)):
            if found.operands["sem_sel"] >> number & 1:
                verb = {"SEMPOST": "post", "SEMGET": "get"}.get(found.mnemonic, "SEMINIT")
                pc = pc_of_line(row[column.LINE])
                yield _Change(row[column.CLOCK], number, verb, f"thread {row[column.THREAD]}", pc, *values)


def _by_cores(part: Part) -> Iterator[_Change]:
    """Accesses of T cores to the window of semaphores (tile K20)."""
    rows = part.log.rows
    kinds, address = rows[:, core_column.WHO] >> 4 & 0xF, rows[:, core_column.ADDRESS]
    chosen = (kinds == core_column.DEVICE) & (address >= _SEMAPHORES.start) & (address < _SEMAPHORES.stop)
    for row in rows[chosen].tolist():
        core, number = row[core_column.WHO] & 7, (row[core_column.ADDRESS] - _SEMAPHORES.start) // 4
        if not is_t_core(core):
            continue
        at, pc, value = row[core_column.ROUND], row[core_column.CODE] & 0xFFFFFFFF, row[core_column.VALUE]
        if is_store(row[core_column.CODE]):
            yield _Change(at, number, "get" if value & 1 else "post", CORE_NAMES[core], pc)
        else:
            yield _Change(at, number, "seen", CORE_NAMES[core], pc, value & 0xF)


def _is_complete(part: Part) -> bool:
    """There is a row for each instruction and each word: a profile and the limits of a recording leave some out."""
    log = part.log
    kinds = log.rows[:, core_column.WHO] >> 4 & 0xF
    rows = np.isin(kinds, (core_column.INSTRUCTION, core_column.DEVICE, core_column.PUSHES)).sum()
    return not (log.dropped or log.tensix_dropped) and int(rows) == int(log.counts[:, 2].sum() - log.polled.sum())


def levels_as_json(levels: dict[tuple[tuple[int, int], str], Level]) -> list[dict[str, Any]]:
    """Each lane with its mean level, and the shares of its time in which it was empty and full."""
    return [
        {
            "tile": list(place),
            "name": name,
            "most": level.most,
            "mean": level.sum / level.clocks,
            "empty": level.empty / level.clocks,
            "full": level.full / level.clocks,
        }
        for (place, name), level in sorted(levels.items())
        if level.clocks
    ]
