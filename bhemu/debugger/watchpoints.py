"""Watchpoints: what a session checks after every round, and how it says what has changed.

A watch that compares values sees every change that lasts to the end of a round; in a round each core executes one
instruction at most (a T core: up to four adjacent `.ttinsn`) and each thread of the coprocessor one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from bhemu.isa.riscv import REGISTER_NAMES, find, immediate
from bhemu.machine.agents import CORE_NAMES, CORES
from bhemu.machine.core_state import BLOCKED, RUNNING
from bhemu.machine.state import L1_SIZE

Array = np.ndarray[Any, Any]
Reader = Callable[[], bytes]
SHOWN_CHANGES: Final = 4


class Watch:
    """Something that the session compares after each round.

    Args:
        number: by which the user names it.
        text: what the user asked for.
        read: returns what is watched, as bytes.
        explain: text for the bytes before and after.

    Attributes:
        core: number of the core that it belongs to, or None.
        hits: how often it has changed.
        kind: `write`, `read` or `access`, as GDB calls them; `store` (a core stores) for `bhemu.debugger.writers`.
        address: of watched memory, or None.
    """

    def __init__(self, number: int, text: str, read: Reader, explain: Callable[[bytes, bytes], str]) -> None:
        self.number = number
        self.text = text
        self.core: int | None = None
        self.enabled = True
        self.temporary = False
        self.hits = 0
        self.kind = "write"
        self.address: int | None = None
        self.read = read
        self.explain = explain
        self._before = b""

    def begin(self) -> None:
        """Remember what is there now, before the tile moves."""
        self._before = self.read()

    def before_round(self) -> None:
        """Called before each round."""

    def changed(self) -> str | None:
        """What has happened in the round, or None."""
        now = self.read()
        if now == self._before:
            return None
        text = self.explain(self._before, now)
        self._before = now
        return text

    def describe(self) -> str:
        """The line that `info watchpoints` shows."""
        state = "" if self.enabled else ", disabled"
        times = "once" if self.hits == 1 else f"{self.hits} times"
        return f"{self.number}: watch {self.text}{state}; reached {times}"


class AccessWatch(Watch):
    """Stops after an instruction of a core that loads from (or stores to) a range of memory.

    Args:
        record: the tile.
        address, size: bytes that are watched.
        kind: of access.
        owner: the core whose local RAM is meant, or None for all cores.
    """

    def __init__(
        self, number: int, text: str, record: Any, address: int, size: int, kind: str, owner: int | None
    ) -> None:
        super().__init__(number, text, lambda: b"", lambda _before, _after: "")
        self.address, self.kind = address, kind
        self._record, self._size, self._owner = record, size, owner
        self._pending: dict[int, tuple[int, str]] = {}

    def before_round(self) -> None:
        record = self._record
        self._pending = {}
        for core in range(CORES):
            if record.core_state[core] not in (RUNNING, BLOCKED) or self._owner not in (None, core):
                continue
            pc = int(record.core_pc[core])
            found = self._access(core, int(record.l1_u32[pc >> 2])) if pc < L1_SIZE else None
            if found is not None:
                self._pending[core] = (int(record.core_retired[core]), f"{found} by core {CORE_NAMES[core]}")

    def changed(self) -> str | None:
        for core, (retired, text) in self._pending.items():
            if int(self._record.core_retired[core]) > retired:
                self.core = core
                return text
        return None

    def _access(self, core: int, word: int) -> str | None:
        row = find(word) if word & 3 == 3 else None
        if row is None or row.layout not in ("load", "S", "amo", "fload", "fstore"):
            return None
        loads, stores = row.layout in ("load", "fload", "amo"), row.layout in ("S", "fstore", "amo")
        base = int(self._record.core_x[core, word >> 15 & 31])
        address = base + immediate(word, row.layout) & 0xFFFFFFFF
        size = 1 if row.name in ("lb", "lbu", "sb") else 2 if row.name in ("lh", "lhu", "sh") else 4
        assert self.address is not None
        if address >= self.address + self._size or address + size <= self.address:
            return None
        if (self.kind == "read" and not loads) or (self.kind == "store" and not stores):
            return None
        what = "load and store" if loads and stores else "load" if loads else "store"
        return f"{what} of {size} bytes at {address:#x}"


def explain_words(before: bytes, after: bytes, address: int, size: int) -> str:
    """Which words of watched memory have changed.

    Args:
        address: of the first byte.
        size: bytes of a unit that is shown.
    """
    parts = []
    for at in range(0, len(before), size):
        old, new = before[at : at + size], after[at : at + size]
        if old != new:
            numbers = (int.from_bytes(content, "little") for content in (old, new))
            parts.append(f"{address + at:#x}: " + " -> ".join(f"{n:#0{2 + 2 * size}x}" for n in numbers))
    more = f" and {len(parts) - SHOWN_CHANGES} more" if len(parts) > SHOWN_CHANGES else ""
    return ", ".join(parts[:SHOWN_CHANGES]) + more


def explain_number(before: bytes, after: bytes) -> str:
    """`old -> new` of one number of 4 bytes."""
    old, new = (int.from_bytes(content, "little") for content in (before, after))
    return f"{old} -> {new} ({old:#x} -> {new:#x})"


def explain_rows(name: str, row_bytes: int) -> Callable[[bytes, bytes], str]:
    """A text that names the rows of a register file which have changed.

    Args:
        name: of the file or bank.
        row_bytes: bytes of one row.
    """

    def explain(before: bytes, after: bytes) -> str:
        old, new = (np.frombuffer(content, np.uint8).reshape(-1, row_bytes) for content in (before, after))
        rows = np.flatnonzero((old != new).any(axis=1))
        shown = ", ".join(str(row) for row in rows[:SHOWN_CHANGES])
        more = f" and {len(rows) - SHOWN_CHANGES} more" if len(rows) > SHOWN_CHANGES else ""
        return f"{name} row {shown}{more}" if len(rows) == 1 else f"{name} rows {shown}{more}"

    return explain


def register_number(name: str) -> int | None:
    """The number of an integer register by any of its names (`a0`, `x10`, `fp`), or None."""
    if name in REGISTER_NAMES:
        return REGISTER_NAMES.index(name)
    if name == "fp":
        return REGISTER_NAMES.index("s0")
    if name.startswith("x") and name[1:].isdigit() and int(name[1:]) < len(REGISTER_NAMES):
        return int(name[1:])
    return None


def rows_of(cells: Array, name: str, row: int) -> tuple[Callable[[], bytes], Callable[[bytes, bytes], str]]:
    """How to read a row of a register file, and to say what has changed there."""

    def explain(before: bytes, after: bytes) -> str:
        old, new = (np.frombuffer(content, cells.dtype) for content in (before, after))
        columns = np.flatnonzero(old != new)
        first = int(columns[0])
        more = f" and {len(columns) - 1} more columns" if len(columns) > 1 else ""
        return f"{name} row {row}: column {first} {int(old[first]):#x} -> {int(new[first]):#x}{more}"

    return lambda: bytes(cells[row].tobytes()), explain
