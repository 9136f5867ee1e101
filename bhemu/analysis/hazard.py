"""What the hazard check reports, and what its parts share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bhemu.analysis.access import access
from bhemu.analysis.ordering import Knowledge, bit_of
from bhemu.isa.names import Condition
from bhemu.machine.agents import CORE_NAMES
from bhemu.machine.origin import pc_of_line
from bhemu.recording import log as column
from bhemu.tensix.coprocessor import THREAD_NAMES

C0: Final = bit_of(Condition.THCON)
C1: Final = bit_of(Condition.UNPACK0)
C2: Final = bit_of(Condition.UNPACK1)
C3: Final = bit_of(Condition.PACK)
C4: Final = bit_of(Condition.MATH)
C7: Final = bit_of(Condition.SRCA_VALID)
C8: Final = bit_of(Condition.SRCB_VALID)
C10: Final = bit_of(Condition.TRISC_CFG)
C11: Final = bit_of(Condition.SFPU)
C12: Final = bit_of(Condition.CFGEXU)

HAZARD: Final = "hazard"
NOTE: Final = "note"
"""Safe as far as is known, but only by something that the documents do not promise for this case."""

ORDER: Final = "order"
"""Kinds of checks: instructions of the coprocessor that use something too early,"""
L1: Final = "l1"
"""accesses to L1 that nothing orders,"""
NOC: Final = "noc"
"""NoC requests whose end no core has waited for,"""
BUFFERS: Final = "cb"
"""circular buffers."""
KINDS: Final = (ORDER, L1, NOC, BUFFERS)

BLOCKS: Final = {
    "config": "STALL_CFG",
    "scalar": "STALL_THCON",
    "matrix": "STALL_MATH",
    "vector": "STALL_SFPU",
    "pack": "STALL_PACK",
    "unpack": "STALL_UNPACK",
    "mover": "STALL_XMOV",
}
"""Block of STALLWAIT that holds the instructions of a unit (Y10)."""


@dataclass(frozen=True)
class Place:
    """One of the two instructions of a hazard.

    Attributes:
        thread: 0 unpack, 1 math, 2 pack; of a core that has none -1.
        line: program line, 0 unknown.
        text: the instruction; what a core did, for a core.
        core: that executed it; None: a thread of the coprocessor did.
        pc: of the core's instruction.
    """

    thread: int
    line: int
    text: str
    core: int | None = None
    pc: int | None = None

    @property
    def agent(self) -> str:
        """`core B` or `thread 2, pack`."""
        if self.core is not None:
            return f"core {CORE_NAMES[self.core]}"
        return f"thread {self.thread}, {THREAD_NAMES[self.thread]}"

    @property
    def code(self) -> int | None:
        """Where the core executed it, or pushed the word; None: not known."""
        return self.pc if self.pc is not None else pc_of_line(self.line)

    def __str__(self) -> str:
        line = f"line {self.line}, " if self.line and self.core is None else ""
        at = f" at {self.pc:#x}" if self.pc is not None else ""
        return f"{self.text} ({line}{self.agent}{at})"


@dataclass
class Hazard:
    """An unordered pair of instructions.

    Attributes:
        rule: rule ids.
        message: what is used too early, in one sentence.
        producer: who makes it (for a register that is overwritten too early: who still reads it).
        consumer: who uses it.
        missing: what would order the two.
        severity: HAZARD, or NOTE.
        count: how often the pair was executed.
        kind: of the check that has found it, one of KINDS.
    """

    rule: str
    message: str
    producer: Place
    consumer: Place
    missing: str
    severity: str = HAZARD
    count: int = 1
    kind: str = ORDER

    def __str__(self) -> str:
        times = f", {self.count} times" if self.count > 1 else ""
        return (
            f"{self.severity}: {self.message} [{self.rule}]{times}\n"
            f"  first:   {self.producer}\n  then:    {self.consumer}\n  missing: {self.missing}"
        )


@dataclass(frozen=True, slots=True)
class Made:
    """A register's latest writer (or Dst's latest packer): thread, number of the word in its thread, log row."""

    thread: int
    number: int
    row: int


Row = list[int]


class Reports:
    """Hazards found so far; each pair of program lines once, in order of first appearance."""

    def __init__(self, rows: list[Row] | None = None) -> None:
        self._rows = rows or []
        self._found: dict[tuple[object, ...], Hazard] = {}

    def all(self) -> list[Hazard]:
        """Everything reported."""
        return list(self._found.values())

    def _place(self, row: int) -> Place:
        entry = self._rows[row]
        return Place(entry[column.THREAD], entry[column.LINE], short_text(entry[column.WORD]))

    def report(
        self, rule: str, message: str, producer: Place | int, consumer: int, missing: str, severity: str = HAZARD
    ) -> None:
        first = producer if isinstance(producer, Place) else self._place(producer)
        self.add(ORDER, rule, message, first, self._place(consumer), missing, severity)

    def add_rows(self, kind: str, rule: str, message: str, producer: int, consumer: int, missing: str) -> None:
        """Report two rows of the log for another kind of check."""
        self.add(kind, rule, message, self._place(producer), self._place(consumer), missing)

    def add(
        self, kind: str, rule: str, message: str, first: Place, then: Place, missing: str, severity: str = HAZARD
    ) -> None:
        """Report a pair of places, or count it when it is known."""
        # Instructions of one line differ in their operands from pass to pass: the mnemonics tell pairs apart.
        names = first.text.split(" ")[0], then.text.split(" ")[0]
        ends = (first.thread, first.line, first.core, first.pc, then.thread, then.line, then.core, then.pc)
        key = (kind, rule, missing, severity, *ends, *names)
        known = self._found.get(key)
        if known is None:
            self._found[key] = Hazard(rule, message, first, then, missing, severity, kind=kind)
        else:
            known.count += 1


class Check:
    """A part of the checker, with what all parts share.

    Args:
        rows: of the log.
        known: what each thread may rely on.
        reports: where hazards go.
    """

    def __init__(self, rows: list[Row], known: list[Knowledge], reports: Reports) -> None:
        self._rows = rows
        self._known = known
        self._report = reports.report


def count_line(certain: int, found: int) -> str:
    """How many hazards and notes were found: `hazards: 2, notes: 1`.

    Args:
        certain: hazards that are not notes.
        found: all.
    """
    notes = found - certain
    return f"hazards: {certain or 'none'}" + (f", notes: {notes}" if notes else "")


def short_text(word: int) -> str:
    """The instruction with the operands that are not zero."""
    found = access(word)
    return " ".join([found.mnemonic, *(f"{name}={value:#x}" for name, value in found.operands.items() if value)])
