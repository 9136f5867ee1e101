"""The hazard check: instructions that use something before it is certain to be there.

The log of a run is read once, in order. For each register the checker knows who wrote it last; a reader is reported
when the documents let it overtake that writer and nothing orders the two. What the hardware orders by itself is not
reported: units that execute in order, the scoreboard of Dst (Y13), the configuration unit's pipeline (I.11), waits for
source banks (F30, U1), and the stall between dependent instructions of the vector unit (Y12).

Not looked at: L1, and config words that one thread writes and another uses.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from bhemu.debug import access as sets
from bhemu.debug import log as column
from bhemu.debug.access import Access, access
from bhemu.debug.log import GET, POST, STORE, Log, Note
from bhemu.debug.order import BankOrder, Knowledge, SemaphoreOrder, bit_of
from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.isa.names import Condition
from bhemu.isa.registers import FIRST_SHARED_WORD, fields_of_word
from bhemu.machine.state import THREADS
from bhemu.tensix.coprocessor import THREAD_NAMES
from bhemu.tensix.frontend.gate import DEFAULT_BLOCK, DEFAULT_CONDITIONS

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
"""Safe as far as anybody knows, but only by something that the documents do not promise for this case."""

_BLOCKS: Final = {
    "config": "STALL_CFG",
    "scalar": "STALL_THCON",
    "matrix": "STALL_MATH",
    "vector": "STALL_SFPU",
    "pack": "STALL_PACK",
    "unpack": "STALL_UNPACK",
}
_UNIT_NAMES: Final = {
    "config": "the configuration unit",
    "scalar": "the scalar unit",
    "matrix": "the matrix unit",
    "vector": "the vector unit",
    "pack": "the packer",
    "unpack": "the unpacker",
}
_ARITHMETIC: Final = frozenset({"ADDDMAREG", "SUBDMAREG", "MULDMAREG", "BITWOPDMAREG", "SHIFTDMAREG", "CMPDMAREG"})
_SFPLOAD_GAP: Final = 3
"""Instructions that must lie between a write of the matrix unit and an SFPLOAD of the same block (Y13)."""
_BANK_GAP: Final = 2
"""Words between a write of the bank selector and its first use, as the kernel library keeps them."""


@dataclass(frozen=True)
class Place:
    """One of the two instructions of a hazard.

    Attributes:
        thread: 0 unpack, 1 math, 2 pack.
        line: program line, 0 unknown.
        text: the instruction; what a core did, for a core.
    """

    thread: int
    line: int
    text: str

    def __str__(self) -> str:
        line = f"line {self.line}, " if self.line else ""
        return f"{self.text} ({line}thread {self.thread}, {THREAD_NAMES[self.thread]})"


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
    """

    rule: str
    message: str
    producer: Place
    consumer: Place
    missing: str
    severity: str = HAZARD
    count: int = 1

    def __str__(self) -> str:
        times = f", {self.count} times" if self.count > 1 else ""
        return (
            f"{self.severity}: {self.message} [{self.rule}]{times}\n"
            f"  first:   {self.producer}\n  then:    {self.consumer}\n  missing: {self.missing}"
        )


@dataclass(frozen=True, slots=True)
class _Made:
    """A register's latest writer (or Dst's latest packer): thread, number of the word in its thread, log row."""

    thread: int
    number: int
    row: int


@dataclass
class _Latched:
    """A wait word whose block has not been passed yet."""

    word: int
    number: int
    push: int
    mask: int
    tokens: list[tuple[int, int, int]]
    """SEMWAIT: (semaphore, condition bits, posts or gets made when the wait was placed)."""


def hazards(log: Log) -> list[Hazard]:
    """Check a recorded run; each pair of program lines is reported once, in order of first appearance.

    Args:
        log: from `record` or `Recorder.log`.
    """
    return _Checker(log).run()


class _Checker:
    def __init__(self, log: Log) -> None:
        self._log = log
        self._rows = log.rows.tolist()
        self._found: dict[tuple[object, ...], Hazard] = {}
        self._known = [Knowledge() for _ in range(THREADS)]
        self._latched: list[_Latched | None] = [None] * THREADS
        self._semaphores = [SemaphoreOrder() for _ in range(8)]
        self._banks = (BankOrder(), BankOrder())
        self._mutexes: dict[int, Knowledge] = {}
        self._valid = [[False, False] for _ in range(THREADS)]
        # Latest writers. GPRs by (thread, register); config words by (thread, bank, word).
        self._scalar: dict[tuple[int, int], _Made] = {}
        self._later: dict[tuple[int, int], _Made] = {}
        self._from_config: dict[tuple[int, int], _Made] = {}
        self._stores: dict[tuple[int, int, int], Note] = {}
        self._slow_config: dict[tuple[int, int, int], _Made] = {}
        self._streamed: dict[tuple[int, int, int], _Made] = {}
        self._selector: list[_Made | None] = [None] * THREADS
        self._last_pacr: list[_Made | None] = [None] * THREADS
        self._last_vector: list[_Made | None] = [None] * THREADS
        # Dst by block.
        self._fpu: dict[int, _Made] = {}
        self._sfpu: dict[int, _Made] = {}
        self._unpacked: dict[int, _Made] = {}
        self._packed: dict[int, dict[int, _Made]] = {}

    def run(self) -> list[Hazard]:
        notes = sorted(self._log.notes, key=lambda note: note.row)
        at = 0
        for index, row in enumerate(self._rows):
            while at < len(notes) and notes[at].row <= index:
                self._note(notes[at])
                at += 1
            self._step(index, row)
        return list(self._found.values())

    # --- reports --------------------------------------------------------------------------------------------------

    def _place(self, row: int) -> Place:
        entry = self._rows[row]
        return Place(entry[column.THREAD], entry[column.LINE], short_text(entry[column.WORD]))

    def _report(
        self, rule: str, message: str, producer: Place | int, consumer: int, missing: str, severity: str = HAZARD
    ) -> None:
        first = producer if isinstance(producer, Place) else self._place(producer)
        then = self._place(consumer)
        # Instructions of one line differ in their operands from pass to pass: the mnemonics tell pairs apart.
        names = first.text.split(" ")[0], then.text.split(" ")[0]
        key = (rule, first.thread, first.line, then.thread, then.line, missing, severity, *names)
        known = self._found.get(key)
        if known is None:
            self._found[key] = Hazard(rule, message, first, then, missing, severity)
        else:
            known.count += 1

    # --- one event ------------------------------------------------------------------------------------------------

    def _note(self, note: Note) -> None:
        if note.kind == STORE:
            for place in note.values:
                self._stores[note.thread, place >> 8, place & 0xFF] = note
        elif note.kind == POST:
            self._semaphores[note.values[0]].post(None)
        elif note.kind == GET:
            self._semaphores[note.values[0]].get(None)

    def _step(self, index: int, row: list[int]) -> None:
        thread, word = row[column.THREAD], row[column.WORD]
        found = access(word)
        known = self._known[thread]
        self._pass_gate(thread, word)
        known.issued[thread] += 1
        me = _Made(thread, known.issued[thread], index)
        if found.unit == "sync":
            self._sync(found, row, me)
            return
        if found.unit in ("matrix", "unpack", "misc"):
            self._source_banks(found, row, me)
        if found.gpr_reads or found.gpr_writes or found.gpr_later or found.gpr_config is not None:
            self._gprs(found, me)
        self._config(found, row, me)
        if found.unit in ("matrix", "vector", "pack", "unpack"):
            self._dst(found, row, me)
        if found.unit == "vector":
            self._lregs(found, me)
        if found.mnemonic == "FLUSHDMA":  # the thread cannot go on before it is over (I.11)
            for bit in range(4):
                if (found.operands["FlushSpec"] or 0xF) >> bit & 1:
                    known.complete(thread, bit, me.number)

    # --- waits ----------------------------------------------------------------------------------------------------

    def _pass_gate(self, thread: int, word: int) -> None:
        """The word has left the gate: a latched wait that holds words of its kind is over (Y10)."""
        wait = self._latched[thread]
        instruction = _ROW_OF[word >> 24]
        if wait is None or instruction is None or not instruction.is_held_by(wait.mask):
            return
        self._latched[thread] = None
        known = self._known[thread]
        operands = access(wait.word).operands
        if access(wait.word).mnemonic == "STALLWAIT":
            conditions = operands["wait_res"] or DEFAULT_CONDITIONS
            for bit in range(13):
                if conditions >> bit & 1:
                    known.complete(thread, bit, wait.number)
                    if bit == C12:  # any thread's work (Y10)
                        for other in range(THREADS):
                            known.complete(other, bit, known.issued[other])
                    elif bit == C10:
                        known.fenced[thread] = max(known.fenced[thread], wait.push)
                    elif bit in (C7, C8):
                        self._valid[thread][bit - C7] = True
                        known.join(self._banks[bit - C7].for_matrix())
        for semaphore, condition, made in wait.tokens:
            order = self._semaphores[semaphore]
            known.join(order.passed_zero(made) if condition == 1 else order.passed_max(made))

    def _sync(self, found: Access, row: list[int], me: _Made) -> None:
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

    # --- GPRs (I.11) ------------------------------------------------------------------------------------------------

    def _gprs(self, found: Access, me: _Made) -> None:
        thread = me.thread
        done = self._known[thread].done[thread]
        block = _BLOCKS[found.unit]
        writes = found.gpr_writes | found.gpr_later
        touched = found.gpr_reads | writes | ({found.gpr_config} if found.gpr_config is not None else set())
        for register in sorted(touched):
            key = (thread, register)
            later = self._later.get(key)
            if later is not None and done[C0] < later.number:
                verb = "reads" if register in found.gpr_reads else "writes"
                self._report(
                    "rules I.11, 003.2.6f",
                    f"{verb} GPR {register} before the data of the memory request has certainly arrived",
                    later.row,
                    me.row,
                    f"STALLWAIT({block}, THCON)",
                )
            made = self._from_config.get(key)
            if made is not None and done[C12] < made.number:
                next_word = me.number == made.number + 1
                if register in found.gpr_reads and found.mnemonic not in _ARITHMETIC:
                    severity = HAZARD
                elif register in found.gpr_reads or (register in writes and next_word):
                    # Arithmetic takes three or four cycles, and kernels of the seeds (unpack 11.3) read at once.
                    severity = NOTE if found.mnemonic in _ARITHMETIC else HAZARD
                else:
                    severity = ""
                if severity:
                    self._report(
                        "rules I.11, 003.4.2b",
                        f"uses GPR {register} before RDCFG has certainly written it",
                        made.row,
                        me.row,
                        f"STALLWAIT({block}, CFGEXU)",
                        severity,
                    )
            scalar = self._scalar.get(key)
            if (
                scalar is not None
                and found.unit == "config"
                and register in found.gpr_reads
                and me.number == scalar.number + 1
                and done[C0] < scalar.number
            ):
                self._report(
                    "rules I.11, 003.5a",
                    f"reads GPR {register} right after the scalar unit wrote it, which the configuration unit "
                    "does not wait for",
                    scalar.row,
                    me.row,
                    f"STALLWAIT({block}, THCON), or a DMANOP between them",
                )
        if found.mnemonic == "SETDMAREG" and found.operands.get("SetSignalsMode"):
            self._packer_state(me)
        for register in writes | ({found.gpr_config} if found.gpr_config is not None else set()):
            key = (thread, register)
            for latest in (self._scalar, self._later, self._from_config):
                latest.pop(key, None)
            if register in found.gpr_later:
                self._later[key] = me
            elif register == found.gpr_config:
                self._from_config[key] = me
            else:
                self._scalar[key] = me

    def _packer_state(self, me: _Made) -> None:
        last = self._last_pacr[me.thread]
        if last is not None and self._known[me.thread].done[me.thread][C3] < last.number:
            self._report(
                "rules I.11, 003.2.1d",
                "reads sizes and flags of the packer while it may still be packing",
                last.row,
                me.row,
                "STALLWAIT(STALL_THCON, PACK)",
            )

    # --- configuration (I.10, I.11) -----------------------------------------------------------------------------------

    def _config(self, found: Access, row: list[int], me: _Made) -> None:
        thread, bank = me.thread, row[column.BANK]
        known = self._known[thread]
        if found.mnemonic == "SETC16":
            if found.operands["setc16_reg"] == sets.STATE_ID and found.operands["setc16_value"] & 1 != bank:
                self._selector[thread] = me
            return
        own = found.config_writes
        if found.mnemonic in ("RDCFG", "CFGSHIFTMASK"):
            own |= {found.operands["CfgReg"]}
        used = sets.consumed_words(found, row)
        if used or own:
            self._bank_selector(me)
        for (maker, where, number), note in list(self._stores.items()):
            if maker != thread or number not in (used | own) or (where != bank and number < FIRST_SHARED_WORD):
                continue
            if row[column.PUSH] > note.push and known.fenced[thread] <= note.push:
                self._report(
                    "rules I.13 C10, unpack seed 9.5",
                    f"uses {_name(number)} before the core's own store to it has certainly arrived",
                    Place(thread, note.line, f"store to {_name(number)} by the thread's RISC-V core"),
                    me.row,
                    f"STALLWAIT({_BLOCKS[found.unit]}, TRISC_CFG)",
                )
            elif known.fenced[thread] > note.push:
                del self._stores[maker, where, number]
        if used and self._slow_config:
            self._config_gap(found, used, bank, me)
        if (used or own) and self._streamed:
            for (maker, where, number), made in self._streamed.items():
                late = known.done[thread][C12] < made.number
                if maker == thread and number in used | own and _same(where, bank, number) and late:
                    self._report(
                        "rules I.11 STREAMWRCFG",
                        f"uses {_name(number)} before STREAMWRCFG has certainly written it; later configuration "
                        "instructions can overtake it",
                        made.row,
                        me.row,
                        f"STALLWAIT({_BLOCKS[found.unit]}, CFGEXU)",
                    )
        if found.unit == "config" and found.config_writes:
            self._packer_words(found, me)
            for number in found.config_writes:
                place = (thread, 0 if number >= FIRST_SHARED_WORD else bank, number)
                self._slow_config.pop(place, None)
                self._streamed.pop(place, None)
                if found.mnemonic in ("WRCFG", "CFGSHIFTMASK"):
                    self._slow_config[place] = me
                elif found.mnemonic == "STREAMWRCFG":
                    self._streamed[place] = me

    def _bank_selector(self, me: _Made) -> None:
        made = self._selector[me.thread]
        if made is None:
            return
        if me.number - made.number <= _BANK_GAP:
            self._report(
                "rules I.11, 003.4.3b",
                "uses the configuration bank in the words right after SETC16 of its selector, which may share a "
                "fused group with it",
                made.row,
                me.row,
                f"{_BANK_GAP} NOPs between them",
            )
        else:
            self._selector[me.thread] = None

    def _config_gap(self, found: Access, used: frozenset[int], bank: int, me: _Made) -> None:
        """The word right after WRCFG (or CFGSHIFTMASK) does not see what it wrote."""
        for place, made in list(self._slow_config.items()):
            if made.thread != me.thread:
                continue
            if me.number > made.number + 1:
                del self._slow_config[place]
            elif place[2] in used and _same(place[1], bank, place[2]):
                self._report(
                    "rules I.11, 003.4.1c",
                    f"uses {_name(place[2])} in the slot right after it was written, one too early",
                    made.row,
                    me.row,
                    "a NOP between them",
                )

    def _packer_words(self, found: Access, me: _Made) -> None:
        last = self._last_pacr[me.thread]
        if last is None or self._known[me.thread].done[me.thread][C3] >= last.number:
            return
        words = sorted(found.config_writes & sets.PACKER_WORDS)
        if words:
            self._report(
                "rules 002.17.1d, I.13 C3",
                f"overwrites {_name(words[0])} while the packer may still use it",
                last.row,
                me.row,
                "STALLWAIT(STALL_CFG, PACK)",
            )

    # --- source banks (F30, U1) -----------------------------------------------------------------------------------

    def _source_banks(self, found: Access, row: list[int], me: _Made) -> None:
        known = self._known[me.thread]
        if found.unit == "matrix":
            for file in found.needs:
                self._valid[me.thread][file] = True
                known.join(self._banks[file].for_matrix())
            for file in found.touches:
                if not self._valid[me.thread][file]:
                    self._unowned(file, me)
            for file in found.hands_over:
                self._banks[file].returned.append(known.copy())
                for valid in self._valid:
                    valid[file] = False
            return
        if found.unit == "unpack":
            name = "Unpack_block_selection" if found.mnemonic == "UNPACR" else "Unpacker_Select"
            known.join(self._banks[found.operands[name]].for_unpacker())
        for file in found.hands_over:
            given = known.copy()
            given.complete(me.thread, C1 + file, me.number)
            self._banks[file].filled.append(given)

    def _unowned(self, file: int, me: _Made) -> None:
        name = "AB"[file]
        filler = next(
            (
                i
                for i in range(me.row - 1, -1, -1)
                if access(self._rows[i][column.WORD]).unit == "unpack" and file in _filled(self._rows[i])
            ),
            None,
        )
        producer: Place | int = Place(0, 0, f"the unpacker of Src{name}") if filler is None else filler
        self._report(
            "math F21, F23, F30",
            f"uses the bank of Src{name} without waiting until the matrix unit owns it",
            producer,
            me.row,
            f"STALLWAIT(STALL_MATH, SRC{name}_VLD)",
        )

    # --- Dst (Y13) --------------------------------------------------------------------------------------------------

    def _dst(self, found: Access, row: list[int], me: _Made) -> None:
        reads, writes = sets.dst_blocks(found, row)
        if found.unit == "pack" and found.mnemonic in ("PACR", "PACR_SETREG"):
            self._last_pacr[me.thread] = me
        if not reads and not writes:
            return
        for block in sorted(reads | writes):
            self._dst_block(found, block, block in writes, me)
        for block in writes:
            for latest in (self._fpu, self._sfpu, self._unpacked):
                latest.pop(block, None)
            {"matrix": self._fpu, "vector": self._sfpu}.get(found.unit, self._unpacked)[block] = me
            self._packed.pop(block, None)
        if found.unit == "pack":
            for block in reads:
                self._packed.setdefault(block, {})[me.thread] = me

    def _dst_block(self, found: Access, block: int, is_write: bool, me: _Made) -> None:
        known = self._known[me.thread]
        stall = _BLOCKS[found.unit]
        rows = f"Dst rows {8 * block}..{8 * block + 7}"
        unpacked = self._unpacked.get(block)
        if unpacked is not None and found.unit != "unpack" and known.done[unpacked.thread][C1] < unpacked.number:
            self._dst_report(
                f"uses {rows} before unpacker 0 has certainly written them", unpacked, me, stall, "UNPACK0", "rules U10"
            )
        fpu = self._fpu.get(block)
        if fpu is not None and known.done[fpu.thread][C4] < fpu.number:
            self._after_matrix(found, rows, fpu, me, stall)
        sfpu = self._sfpu.get(block)
        if sfpu is not None and sfpu.thread != me.thread and known.done[sfpu.thread][C11] < sfpu.number:
            self._dst_report(
                f"uses {rows} before the vector unit has certainly written them",
                sfpu,
                me,
                stall,
                "SFPU",
                "math Y10 C11, Y13",
            )
        if is_write:
            for packed in self._packed.get(block, {}).values():
                if known.done[packed.thread][C3] < packed.number:
                    self._dst_report(
                        f"overwrites {rows} before the packer has certainly read them",
                        packed,
                        me,
                        stall,
                        "PACK",
                        "rules 002.16a, math Y10 C3",
                    )

    def _after_matrix(self, found: Access, rows: str, made: _Made, me: _Made, stall: str) -> None:
        known = self._known[me.thread]
        if found.mnemonic == "SFPLOAD":
            if made.thread != me.thread:
                self._dst_report(
                    f"reads {rows} before the matrix unit has certainly written them",
                    made,
                    me,
                    stall,
                    "MATH",
                    "math Y13",
                )
            elif me.number - made.number - 1 < _SFPLOAD_GAP:
                self._report(
                    "math Y13",
                    f"reads {rows}, which the matrix unit is still writing: nothing holds SFPLOAD back",
                    made.row,
                    me.row,
                    f"STALLWAIT({stall}, MATH), or {_SFPLOAD_GAP} unrelated instructions between them",
                )
            return
        if known.issued[made.thread] < made.number:
            self._dst_report(
                f"uses {rows} without any order with the matrix unit's write", made, me, stall, "MATH", "math Y11a"
            )
        elif found.unit == "pack" and made.thread != me.thread:
            self._report(
                "math Y10 C4, Y13",
                f"reads {rows} of a semaphore posted before the matrix unit was done; only the scoreboard holds it",
                made.row,
                me.row,
                "STALLWAIT(STALL_SYNC, MATH) before the SEMPOST",
                NOTE,
            )

    def _dst_report(self, message: str, made: _Made, me: _Made, stall: str, condition: str, rule: str) -> None:
        if made.thread == me.thread:
            missing = f"STALLWAIT({stall}, {condition})"
        else:
            other, own = THREAD_NAMES[made.thread], THREAD_NAMES[me.thread]
            missing = (
                f"STALLWAIT(STALL_SYNC, {condition}) and a semaphore operation in {other}, "
                f"SEMWAIT({stall}, ...) in {own}"
            )
        self._report(rule, message, made.row, me.row, missing)

    # --- vector unit (Y14) --------------------------------------------------------------------------------------------

    def _lregs(self, found: Access, me: _Made) -> None:
        last = self._last_vector[me.thread]
        self._last_vector[me.thread] = me
        if last is None or me.number != last.number + 1:
            return
        before = access(self._rows[last.row][column.WORD])
        if before.mnemonic not in sets.TWO_CYCLES and not sets.is_slow_shift(before.mnemonic, before.operands):
            return
        for register in sorted(before.lreg_writes & found.lreg_hidden):
            self._report(
                "math Y14",
                f"reads LReg {register} in the cycle after a two-cycle instruction, in a place that the hardware "
                "does not look at",
                last.row,
                me.row,
                "an SFPNOP between them",
            )


_ROW_OF: Final = {row.opcode: row for row in INSTRUCTIONS.values()}


def short_text(word: int) -> str:
    """The instruction with the operands that are not zero."""
    found = access(word)
    return " ".join([found.mnemonic, *(f"{name}={value:#x}" for name, value in found.operands.items() if value)])


def _same(where: int, bank: int, word: int) -> bool:
    return word >= FIRST_SHARED_WORD or where == bank


def _filled(row: list[int]) -> frozenset[int]:
    found = access(row[column.WORD])
    o = found.operands
    return frozenset((o.get("Unpack_block_selection", o.get("Unpacker_Select", 0)),))


def _name(word: int) -> str:
    """A config word, by the name of its first field when it has one."""
    fields = fields_of_word("config", word)
    return f"config word {word} ({fields[0].name})" if fields else f"config word {word}"


def worst(found: list[Hazard]) -> Counter[str]:
    """How many reports there are of each severity."""
    return Counter(hazard.severity for hazard in found)
