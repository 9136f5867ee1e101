"""The part of the hazard check for GPRs, config words and LRegs."""

from __future__ import annotations

from typing import Final

from bhemu.analysis import access as sets
from bhemu.analysis.access import Access, access
from bhemu.analysis.figures import is_arithmetic
from bhemu.analysis.hazard import BLOCKS, C0, C3, C12, HAZARD, NOTE, Check, Made, Place, Reports, Row
from bhemu.analysis.ordering import Knowledge
from bhemu.isa.registers import FIRST_SHARED_WORD, fields_of_word
from bhemu.isa.timing import FACTS, timing_of
from bhemu.machine.state import THREADS
from bhemu.recording import log as column
from bhemu.recording.log import Note

_BANK_GAP: Final = FACTS["bank_selector_gap"].value
_SEEN_LATE: Final = 2
"""Latency of a vector instruction whose result the next one finds only if hardware holds it back (Y12, Y14)."""


class RegisterCheck(Check):
    """GPRs (I.11), configuration (I.10, I.11) and LRegs (Y14)."""

    def __init__(self, rows: list[Row], known: list[Knowledge], reports: Reports) -> None:
        super().__init__(rows, known, reports)
        # Latest writers. GPRs by (thread, register); config words by (thread, bank, word).
        self._scalar: dict[tuple[int, int], Made] = {}
        self._later: dict[tuple[int, int], Made] = {}
        self._from_config: dict[tuple[int, int], Made] = {}
        self._stores: dict[tuple[int, int, int], Note] = {}
        self._slow_config: dict[tuple[int, int, int], Made] = {}
        self._streamed: dict[tuple[int, int, int], Made] = {}
        self._selector: list[Made | None] = [None] * THREADS
        self._last_pacr: list[Made | None] = [None] * THREADS
        self._last_vector: list[Made | None] = [None] * THREADS

    def stored(self, note: Note) -> None:
        """The thread's core has stored to config words."""
        for place in note.values:
            self._stores[note.thread, place >> 8, place & 0xFF] = note

    def step(self, found: Access, row: Row, me: Made) -> None:
        """Look at an instruction, then remember what it writes."""
        if found.gpr_reads or found.gpr_writes or found.gpr_later or found.gpr_config:
            self._gprs(found, me)
        self._config(found, row, me)
        if found.unit == "vector":
            self._lregs(found, me)
        if found.mnemonic in ("PACR", "PACR_SETREG"):
            self._last_pacr[me.thread] = me

    # --- GPRs (I.11) ------------------------------------------------------------------------------------------------

    def _gprs(self, found: Access, me: Made) -> None:
        thread = me.thread
        writes = found.gpr_writes | found.gpr_later
        for register in sorted(found.gpr_reads | writes | found.gpr_config):
            self._memory_request(found, register, me)
            self._read_config(found, register, me)
            self._scalar_result(found, register, me)
        if found.mnemonic == "SETDMAREG" and found.operands.get("SetSignalsMode"):
            self._packer_state(me)
        for register in writes | found.gpr_config:
            key = (thread, register)
            for latest in (self._scalar, self._later, self._from_config):
                latest.pop(key, None)
            if register in found.gpr_later:
                self._later[key] = me
            elif register in found.gpr_config:
                self._from_config[key] = me
            else:
                self._scalar[key] = me

    def _memory_request(self, found: Access, register: int, me: Made) -> None:
        """The register's value comes from L1."""
        made = self._later.get((me.thread, register))
        if made is not None and self._known[me.thread].done[me.thread][C0] < made.number:
            verb = "reads" if register in found.gpr_reads else "writes"
            self._report(
                "rules I.11, 003.2.6f",
                f"{verb} GPR {register} before the data of the memory request has certainly arrived",
                made.row,
                me.row,
                f"STALLWAIT({BLOCKS[found.unit]}, THCON)",
            )

    def _read_config(self, found: Access, register: int, me: Made) -> None:
        """The register's value comes from RDCFG."""
        made = self._from_config.get((me.thread, register))
        if made is None or self._known[me.thread].done[me.thread][C12] >= made.number:
            return
        is_next = me.number == made.number + 1
        if register in found.gpr_reads or (register in found.gpr_writes | found.gpr_later and is_next):
            self._report(
                "rules I.11, 003.4.2b",
                f"uses GPR {register} before RDCFG has certainly written it",
                made.row,
                me.row,
                f"STALLWAIT({BLOCKS[found.unit]}, CFGEXU)",
                # Arithmetic takes three or four cycles, and kernels read at once (001.11.3a).
                NOTE if is_arithmetic(self._rows[me.row][column.WORD]) else HAZARD,
            )

    def _scalar_result(self, found: Access, register: int, me: Made) -> None:
        """The register's value comes from the scalar unit, for which the configuration unit does not wait."""
        made = self._scalar.get((me.thread, register))
        if made is None or found.unit != "config" or register not in found.gpr_reads:
            return
        if me.number == made.number + 1 and self._known[me.thread].done[me.thread][C0] < made.number:
            self._report(
                "rules I.11, 003.5a",
                f"reads GPR {register} right after the scalar unit wrote it, which the configuration unit "
                "does not wait for",
                made.row,
                me.row,
                f"STALLWAIT({BLOCKS[found.unit]}, THCON), or a DMANOP between them",
            )

    def _packer_state(self, me: Made) -> None:
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

    def _config(self, found: Access, row: list[int], me: Made) -> None:
        thread, bank = me.thread, row[column.BANK]
        known = self._known[thread]
        if found.mnemonic == "SETC16":
            if found.operands["setc16_reg"] == sets.STATE_ID and found.operands["setc16_value"] & 1 != bank:
                self._selector[thread] = me
            return
        own = found.config_writes | (found.config_reads if found.unit == "config" else frozenset())
        used = sets.consumed_words(found, row)
        if used or own:
            self._bank_selector(me)
        for (maker, where, number), note in list(self._stores.items()):
            if maker != thread or number not in (used | own) or (where != bank and number < FIRST_SHARED_WORD):
                continue
            if row[column.PUSH] <= note.push:
                self._report(
                    "rules 001.9.2",
                    f"was pushed before the core's own store to {_name(number)} and uses it afterwards",
                    Place(thread, note.line, f"store to {_name(number)} by the thread's RISC-V core"),
                    me.row,
                    "a semaphore that the instruction's thread gets after it and the core waits for before the store",
                )
            elif known.fenced[thread] <= note.push:
                self._report(
                    "rules I.13 C10, 001.9.5",
                    f"uses {_name(number)} before the core's own store to it has certainly arrived",
                    Place(thread, note.line, f"store to {_name(number)} by the thread's RISC-V core"),
                    me.row,
                    f"STALLWAIT({BLOCKS[found.unit]}, TRISC_CFG)",
                )
            else:
                del self._stores[maker, where, number]
        if used and self._slow_config:
            self._config_gap(used, bank, me)
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
                        f"STALLWAIT({BLOCKS[found.unit]}, CFGEXU)",
                    )
        if found.unit == "config" and found.config_writes:
            self._packer_words(found, me)
            for number in found.config_writes:
                place = (thread, 0 if number >= FIRST_SHARED_WORD else bank, number)
                self._slow_config.pop(place, None)
                self._streamed.pop(place, None)
                if any(role.until for role in found.roles_written):
                    self._streamed[place] = me
                elif (timing_of(row[column.WORD]).latency or 1) > 1:
                    self._slow_config[place] = me

    def _bank_selector(self, me: Made) -> None:
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

    def _config_gap(self, used: frozenset[int], bank: int, me: Made) -> None:
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

    def _packer_words(self, found: Access, me: Made) -> None:
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

    # --- vector unit (Y14) --------------------------------------------------------------------------------------------

    def _lregs(self, found: Access, me: Made) -> None:
        last = self._last_vector[me.thread]
        self._last_vector[me.thread] = me
        if last is None or me.number != last.number + 1:
            return
        before = access(self._rows[last.row][column.WORD])
        if (timing_of(self._rows[last.row][column.WORD]).latency or 1) < _SEEN_LATE:
            return
        for register in sorted(before.lreg_writes & found.lreg_hidden):
            self._report(
                "math Y14",
                f"reads LReg {register} in the cycle after a two-cycle instruction, in a place that the hardware "
                "does not check",
                last.row,
                me.row,
                "an SFPNOP between them",
            )


def _same(where: int, bank: int, word: int) -> bool:
    return word >= FIRST_SHARED_WORD or where == bank


def _name(word: int) -> str:
    """A config word, by the name of its first field when it has one."""
    fields = fields_of_word("config", word)
    return f"config word {word} ({fields[0].name})" if fields else f"config word {word}"
