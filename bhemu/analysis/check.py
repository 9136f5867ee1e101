"""The hazard check: instructions that use a value before it has certainly been written.

The log of a run is read once, in order. For each register the checker knows which instruction wrote it last; a reader
is reported when the documents let it overtake that writer and nothing orders the two. What the hardware orders by
itself is not reported: units that execute in order, the scoreboard of Dst (Y13), the configuration unit's pipeline
(I.11), waits for source banks (F30, U1), and the stall between dependent instructions of the vector unit (Y12).

Not checked: L1, config words that one thread writes and another uses, and those that the mover writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bhemu.analysis.access import Access, access
from bhemu.analysis.check_dst import DataCheck
from bhemu.analysis.check_handover import HandOverCheck
from bhemu.analysis.check_registers import RegisterCheck
from bhemu.analysis.hazard import C7, C8, C10, C12, Hazard, Made, Reports, Row
from bhemu.analysis.ordering import CONDITIONS, Knowledge, SemaphoreOrder
from bhemu.checks import checked
from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.machine.state import THREADS
from bhemu.recording import log as column
from bhemu.recording.log import POST, STORE, Log, Note
from bhemu.tensix.frontend.gate import DEFAULT_BLOCK, DEFAULT_CONDITIONS


@dataclass
class _Latched:
    """A wait word whose block has not been passed yet."""

    word: int
    number: int
    push: int
    mask: int
    tokens: list[tuple[int, int, int]]
    """SEMWAIT: (semaphore, condition bits, posts or gets made when the wait was placed)."""


@checked
def hazards(log: Log) -> list[Hazard]:
    """Check a recorded run; each pair of program lines is reported once, in order of first appearance.

    Args:
        log: from `record` or `Recorder.log`.
    """
    return _Checker(log).run()


class _Checker:
    """Follows what each thread knows, and asks the two checks about every instruction."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._rows: list[Row] = log.rows.tolist()
        self._known = [Knowledge() for _ in range(THREADS)]
        self._latched: list[_Latched | None] = [None] * THREADS
        self._semaphores = [SemaphoreOrder() for _ in range(8)]
        self._mutexes: dict[int, Knowledge] = {}
        self._reports = Reports(self._rows)
        self._registers = RegisterCheck(self._rows, self._known, self._reports)
        self._data = DataCheck(self._rows, self._known, self._reports)
        self._pages = HandOverCheck(self._rows, self._known, self._reports)

    def run(self) -> list[Hazard]:
        notes = sorted(self._log.notes, key=lambda note: note.row)
        at = 0
        for index, row in enumerate(self._rows):
            while at < len(notes) and notes[at].row <= index:
                self._note(notes[at])
                at += 1
            self._step(index, row)
        return self._reports.all()

    def _note(self, note: Note) -> None:
        if note.kind == STORE:
            self._registers.stored(note)
        elif note.kind == POST:
            self._semaphores[note.values[0]].post(None)
        else:
            self._semaphores[note.values[0]].get(None)

    def _step(self, index: int, row: Row) -> None:
        thread, word = row[column.THREAD], row[column.WORD]
        found = access(word)
        known = self._known[thread]
        self._pass_gate(thread, word)
        known.issued[thread] += 1
        me = Made(thread, known.issued[thread], index)
        if found.unit == "sync":
            self._sync(found, row, me)
            return
        self._data.step(found, row, me)
        self._registers.step(found, row, me)
        self._pages.step(found, row, me)
        if found.mnemonic == "FLUSHDMA":  # the thread cannot go on before it is over (I.11)
            for bit in range(4):
                if (found.operands["FlushSpec"] or 0xF) >> bit & 1:
                    known.complete(thread, bit, me.number)

    # --- waits ----------------------------------------------------------------------------------------------------

    def _pass_gate(self, thread: int, word: int) -> None:
        """The word has left the gate: a latched wait that holds words of its kind is over (Y10)."""
        wait = self._latched[thread]
        instruction = _ROW_OF[word >> 24]
        if wait is None or not instruction.is_held_by(wait.mask):
            return
        self._latched[thread] = None
        known = self._known[thread]
        operands = access(wait.word).operands
        if access(wait.word).mnemonic == "STALLWAIT":
            conditions = operands["wait_res"] or DEFAULT_CONDITIONS
            for bit in range(CONDITIONS):
                if conditions >> bit & 1:
                    known.complete(thread, bit, wait.number)
                    if bit == C12:  # any thread's work (Y10)
                        for other in range(THREADS):
                            known.complete(other, bit, known.issued[other])
                    elif bit == C10:
                        known.fenced[thread] = max(known.fenced[thread], wait.push)
                    elif bit in (C7, C8):
                        self._data.bank_is_valid(thread, bit)
        for semaphore, condition, made in wait.tokens:
            order = self._semaphores[semaphore]
            known.join(order.passed_zero(made) if condition == 1 else order.passed_max(made))

    def _sync(self, found: Access, row: list[int], me: Made) -> None:
        name, o = found.mnemonic, found.operands
        known = self._known[me.thread]
        chosen = [i for i in range(8) if o.get("sem_sel", 0) >> i & 1]
        if name in ("STALLWAIT", "SEMWAIT", "STREAMWAIT"):
            tokens = []
            for i in chosen:
                order = self._semaphores[i]
                if o["wait_sem_cond"] & 1:
                    tokens.append((i, 1, len(order.gets)))
                if o["wait_sem_cond"] & 2:
                    tokens.append((i, 2, len(order.posts)))
            mask = o["stall_res"] or DEFAULT_BLOCK
            self._latched[me.thread] = _Latched(row[column.WORD], me.number, row[column.PUSH], mask, tokens)
        elif name == "SEMINIT":
            for i in chosen:
                self._semaphores[i].init(o["init_value"], o["max_value"], known.copy())
        elif name == "SEMPOST":
            for i in chosen:
                self._semaphores[i].post(known.copy())
        elif name == "SEMGET":
            for i in chosen:
                self._semaphores[i].get(known.copy())
        elif name == "ATRELM":
            self._mutexes[o["mutex_index"]] = known.copy()
        elif name == "ATGETM":
            known.join(self._mutexes.get(o["mutex_index"]))


_ROW_OF: Final = {row.opcode: row for row in INSTRUCTIONS.values()}
