"""A recorded call stream as a plan for the compiled replayer (replay.c): what to call, and what must come of it.

A plan is made for the run and thrown away after it; what is kept is the call trace (`bhemu.compare.trace`).

An exact plan makes the recorded calls, each as it was. Another one lets clocks pass as a client does, so that libraries
that take other numbers of clocks for the same work can be compared: between two calls that change something (a write,
but for the entries of windows) a client only waits and reads, and the plan

- reads a place until it gives what the last of these reads gave when it was recorded, with the clocks of each read; a
  place outside Tensix tiles whose value did not change is read as recorded, for libraries differ in what the card says
  of itself,
- lets clocks pass until the chip has written to the host's memory what it wrote then,
- keeps all else as recorded: a value that is read again and again without a change is read as often.

The host's own memory, which the chip reads, is filled as early as the recording allows: after the last call in which
the chip used the same bytes otherwise.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from bhemu.chip.pcie.windows import window_at
from bhemu.compare.calls import CLOCK, CONFIG_READ, CONFIG_WRITE, EXIT, INIT, READ, WRITE, Call, Ended
from bhemu.compare.places import Windows, entry_of

MAGIC: Final = b"bhemu-p1"
NOTHING: Final = (1 << 64) - 1
"""No bytes are expected."""
_HEADER: Final = struct.Struct("<8sQQQQQ")
_OPERATION: Final = struct.Struct("<IIQQQ")
_EXPECTATION: Final = struct.Struct("<QQQQ")
_LINE: Final = 64
"""Bytes of the host's memory that are followed together."""
_PATIENCE: Final = 20
"""A wait is given up after this multiple of the clocks that it took when it was recorded,"""
_LEAST_PATIENCE: Final = 20_000
"""and not before these."""


class Kind(IntEnum):
    """Operations; replay.c has the same numbers."""

    INIT, EXIT, CONFIG_READ, CONFIG_WRITE, READ, WRITE, CLOCK, PUT, POLL, AWAIT, REPEAT, SECTION = range(12)


@dataclass
class Plan:
    """A plan under construction.

    Attributes:
        calls: in it, as recorded.
        number: of the recorded call that operations are added for.
        origin: for each operation the number of the recorded call that it belongs to.
        exact: the calls are made as they were recorded.
    """

    calls: int = 0
    number: int = 0
    origin: list[int] = field(default_factory=list)
    exact: bool = False
    _operations: list[bytes] = field(default_factory=list)
    _expectations: list[bytes] = field(default_factory=list)
    _data: bytearray = field(default_factory=bytearray)
    _places: dict[bytes, int] = field(default_factory=dict)
    _longest: int = 0

    def add(self, kind: Kind, size: int = 0, address: int = 0, data: int = 0, count: int = 0) -> None:
        """An operation; what its numbers mean is said in replay.c."""
        self._operations.append(_OPERATION.pack(kind, size, address, data, count))
        self.origin.append(self.number)

    def place(self, content: bytes) -> int:
        """Where bytes are in the plan, once for equal ones."""
        if content not in self._places:
            self._places[content] = _HEADER.size + len(self._data)
            self._data += content
        return self._places[content]

    def expect_write(self, call: int, address: int, content: bytes) -> None:
        """The chip writes this to the host's memory."""
        self._expectations.append(_EXPECTATION.pack(address, self.place(content), len(content), call))
        self._longest = max(self._longest, len(content))

    @property
    def expectations(self) -> int:
        """How many writes to the host's memory are expected so far."""
        return len(self._expectations)

    def repeat(self, times: int, *calls: Call) -> None:
        """Calls that are repeated this number of times."""
        self.add(Kind.REPEAT, len(calls), count=times)
        for call in calls:
            self.call(0, call)

    def section(self, number: int | None) -> None:
        """From here on time is counted in a section of its own; None ends it."""
        self.add(Kind.SECTION, address=NOTHING if number is None else number)

    def call(self, number: int, call: Call) -> None:
        """A call as it was recorded.

        Args:
            number: of the call in the recording.
            call: with its answer, if that is known.
        """
        self.number = number
        answer = call.answer if isinstance(call.answer, bytes) else None
        if call.name == READ:
            self._longest = max(self._longest, call.size)
            self.add(Kind.READ, call.size, call.a, NOTHING if answer is None else self.place(answer), number)
        elif call.name == WRITE:
            self.add(Kind.WRITE, len(call.content), call.a, self.place(call.content), number)
        elif call.name == CLOCK:
            for part in _clock_parts(call.a):
                self.add(Kind.CLOCK, part, count=1)
        elif call.name == CONFIG_READ:
            value = NOTHING if answer is None else int.from_bytes(answer, "little")
            self.add(Kind.CONFIG_READ, 0, call.a << 32 | call.b, value, number)
        elif call.name == CONFIG_WRITE:
            self.add(Kind.CONFIG_WRITE, 0, call.a << 32 | call.b, int.from_bytes(call.content, "little"), number)
        else:
            self.add({INIT: Kind.INIT, EXIT: Kind.EXIT}[call.name], count=number)

    def packed(self) -> bytes:
        """The file that the replayer reads: header, bytes, operations, expected writes."""
        data = bytes(self._data) + bytes(-len(self._data) % _OPERATION.size)
        operations = _HEADER.size + len(data)
        expectations = operations + len(self._operations) * _OPERATION.size
        header = _HEADER.pack(
            *(MAGIC, len(self._operations), operations, len(self._expectations), expectations, self._longest)
        )
        return b"".join([header, data, *self._operations, *self._expectations])


def _clock_parts(clocks: int) -> Iterator[int]:
    while clocks:
        part = min(clocks, (1 << 32) - 1)
        yield part
        clocks -= part


# --- the host's memory ------------------------------------------------------------------------------------------------


def host_puts(calls: Sequence[Call]) -> dict[int, list[tuple[int, bytes]]]:
    """What the host has put into its memory: (address, bytes), by the number of the call before which it is done."""
    memory: dict[int, bytes] = {}
    used: dict[int, int] = {}  # by line: the latest call in which the chip used it
    puts: dict[int, list[tuple[int, bytes]]] = {}
    for number, call in enumerate(calls):
        for address, content in call.host:
            pieces: list[tuple[int, int, bytes]] = []  # when at the earliest, where, what
            for place, part in _lines(address, content):
                line, offset = divmod(place, _LINE)
                if line not in used or memory[line][offset : offset + len(part)] != part:
                    earliest = min(used.get(line, -1) + 1, number)
                    if pieces and pieces[-1][0] == earliest and pieces[-1][1] + len(pieces[-1][2]) == place:
                        pieces[-1] = (earliest, pieces[-1][1], pieces[-1][2] + part)
                    else:
                        pieces.append((earliest, place, part))
                _fill(memory, place, part)
                used[line] = number
            for earliest, place, part in pieces:
                puts.setdefault(earliest, []).append((place, part))
        for address, content in call.host_writes:
            for place, part in _lines(address, content):
                _fill(memory, place, part)
                used[place // _LINE] = number
    return puts


def _lines(address: int, content: bytes) -> Iterator[tuple[int, bytes]]:
    """The parts of bytes that lie in one line each."""
    end = address + len(content)
    place = address
    while place < end:
        after = min(end, (place // _LINE + 1) * _LINE)
        yield place, content[place - address : after - address]
        place = after


def _fill(memory: dict[int, bytes], place: int, part: bytes) -> None:
    line, offset = divmod(place, _LINE)
    if len(part) == _LINE:
        memory[line] = part
    else:
        known = memory.get(line, bytes(_LINE))
        memory[line] = known[:offset] + part + known[offset + len(part) :]


# --- waits ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Source:
    """What a read reads.

    Attributes:
        key: equal for reads of the same bytes, through whatever window.
        of_tile: it is in a Tensix tile.
    """

    key: tuple[object, ...]
    of_tile: bool


@dataclass
class _Step:
    """What a client repeats while it waits: it aims a window, reads, lets clocks pass; or the last alone."""

    calls: list[tuple[int, Call]]

    @property
    def read(self) -> tuple[int, Call] | None:
        """The read with its number, if there is one."""
        return next(((number, call) for number, call in self.calls if call.name == READ), None)


def _only_waits(call: Call) -> bool:
    return call.name in (READ, CLOCK) or entry_of(call) is not None


def _steps(calls: list[tuple[int, Call]]) -> list[_Step]:
    """The calls in groups: windows, a read, the one call of clock after it; clocks alone; windows alone at the end."""
    steps: list[_Step] = []
    group: list[tuple[int, Call]] = []
    after_read = False
    for number, call in calls:
        if call.name == CLOCK and not group:
            if after_read and steps:
                steps[-1].calls.append((number, call))
            else:
                steps.append(_Step([(number, call)]))
            after_read = False
            continue
        if call.name == CLOCK:
            steps.append(_Step(group))  # windows, and clocks after them
            steps.append(_Step([(number, call)]))
            group, after_read = [], False
            continue
        after_read = False
        group.append((number, call))
        if call.name == READ:
            steps.append(_Step(group))
            group, after_read = [], True
    if group:
        steps.append(_Step(group))
    return steps


class _Wait:
    """Calls that only wait and read, in the place of which the plan waits for the same.

    Args:
        plan: gets the operations.
        calls: with their numbers.
        sources: of the reads, by number.
    """

    def __init__(self, plan: Plan, calls: list[tuple[int, Call]], sources: dict[int, _Source]) -> None:
        self._plan = plan
        self._calls = calls
        self._sources = sources
        self._steps = _steps(calls)
        self._left_out: dict[int, tuple[int, Call]] = {}
        """Entries of windows that steps have written which are not in the plan, by address."""
        passed = sum(call.a for _, call in calls if call.name == CLOCK)
        self._bound = max(_LEAST_PATIENCE, _PATIENCE * passed)

    def _key(self, step: _Step) -> tuple[object, ...] | None:
        return None if step.read is None else self._sources[step.read[0]].key

    def _polled(self) -> set[tuple[object, ...] | None]:
        """What changes while it is read again and again: the client waits for it."""
        answers: dict[tuple[object, ...] | None, object] = {}
        found = set()
        for step in self._steps:
            key = self._key(step)
            if step.read is not None and answers.setdefault(key, step.read[1].answer) != step.read[1].answer:
                found.add(key)
        return found

    def add(self) -> None:
        """Add the operations."""
        polled = self._polled()
        last = {self._key(step): place for place, step in enumerate(self._steps)}
        row: list[tuple[int, Call]] = []
        for place, step in enumerate(self._steps):
            if step.read is None:
                row += step.calls
                continue
            if polled and last[self._key(step)] != place:
                self._leave_out(step)
                continue
            self._add_row(row)
            row = []
            self._add_read(step, waits=self._key(step) in polled or self._sources[step.read[0]].of_tile)
        self._add_row(row)
        self._aim(list(self._left_out.values()))
        reads = [item for step in self._steps if step.read is not None for item in step.calls]
        if _expect(self._plan, reads):
            self._plan.add(Kind.AWAIT, _usual_clocks(self._calls), self._plan.expectations, count=self._bound)

    def _leave_out(self, step: _Step) -> None:
        self._left_out.update((call.a, (number, call)) for number, call in step.calls if call.name == WRITE)

    def _aim(self, writes: list[tuple[int, Call]]) -> None:
        for number, call in writes:
            del self._left_out[call.a]
            self._plan.call(number, call)

    def _add_read(self, step: _Step, *, waits: bool) -> None:
        assert step.read is not None
        for _, call in step.calls:
            if call.name == WRITE:
                self._left_out.pop(call.a, None)
        through = window_at(step.read[1].a)
        window = None if through is None else through[0]
        self._aim([item for item in self._left_out.values() if entry_of(item[1]) == window])
        if waits:
            self._plan.number = step.calls[0][0]
            self._plan.add(Kind.POLL, _operations_of(step), count=self._bound)
        for number, call in step.calls:
            self._plan.call(number, call)

    def _add_row(self, row: list[tuple[int, Call]]) -> None:
        """Clocks, and windows between them: waits for the last write to the host's memory, then as recorded."""
        last = max((place for place, (_, call) in enumerate(row) if call.host_writes), default=-1)
        waited, rest = row[: last + 1], row[last + 1 :]
        for number, call in waited:
            if call.name != CLOCK:
                self._left_out.pop(call.a, None)
                self._plan.call(number, call)
        if _expect(self._plan, waited):
            self._plan.add(Kind.AWAIT, _usual_clocks(waited), self._plan.expectations, count=self._bound)
        for number, call in rest:
            if call.name == WRITE:
                self._left_out.pop(call.a, None)
            self._plan.call(number, call)


def _usual_clocks(calls: list[tuple[int, Call]]) -> int:
    """How many clocks the client lets pass in a call."""
    usual = Counter(call.a for _, call in calls if call.name == CLOCK and call.a).most_common(1)
    return min(usual[0][0], (1 << 32) - 1) if usual else 1


def _operations_of(step: _Step) -> int:
    return sum(len(list(_clock_parts(call.a))) if call.name == CLOCK else 1 for _, call in step.calls)


def _expect(plan: Plan, calls: list[tuple[int, Call]]) -> bool:
    """Expect what the chip has written to the host's memory; whether there was anything."""
    before = plan.expectations
    for number, call in calls:
        for address, content in call.host_writes:
            plan.expect_write(number, address, content)
    return plan.expectations > before


def make_plan(calls: Sequence[Call], *, exact: bool = False) -> Plan:
    """A plan for the replayer.

    Args:
        calls: with their answers; what comes after a refused call is left out, and the call too.
        exact: make the calls as they were recorded, and do not wait.
    """
    refused = next((number for number, call in enumerate(calls) if isinstance(call.answer, Ended)), len(calls))
    calls = calls[:refused]
    plan = Plan(calls=len(calls), exact=exact)
    puts = host_puts(calls)
    windows = Windows()
    sources: dict[int, _Source] = {}
    waiting: list[tuple[int, Call]] = []
    for number, call in enumerate(calls):
        waits = not exact and _only_waits(call)
        windows.follow(call)
        if waits and call.name == READ:
            sources[number] = _source(windows, call)
        if waiting and (not waits or number in puts):
            _Wait(plan, waiting, sources).add()
            waiting = []
        for address, content in puts.get(number, ()):
            plan.add(Kind.PUT, len(content), address, plan.place(content))
        if waits:
            waiting.append((number, call))
        else:
            plan.call(number, call)
            _expect(plan, [(number, call)])
    if waiting:
        _Wait(plan, waiting, sources).add()
    if plan.expectations:
        plan.add(Kind.AWAIT, 1, plan.expectations, count=0 if exact else _LEAST_PATIENCE)
    return plan


def _source(windows: Windows, call: Call) -> _Source:
    place = windows.place(call.a)
    if place is None:
        return _Source((call.a, call.size), of_tile=False)
    return _Source((place.node.kind, place.node.index, place.address, call.size), of_tile=place.tile is not None)


def place_of(calls: Sequence[Call], number: int) -> str:
    """Where a recorded call reads, for a message."""
    windows = Windows()
    for call in calls[:number]:
        windows.follow(call)
    return str(windows.place(calls[number].a) or f"PCI address {calls[number].a:#x}")
