"""The part of the hazard check for source banks and rows of Dst."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from bhemu.analysis.access import Access, access, unpacker_of
from bhemu.analysis.dst import dst_blocks
from bhemu.analysis.hazard import BLOCKS, C1, C3, C4, C7, C11, NOTE, Check, Made, Place, Reports, Row
from bhemu.analysis.ordering import BankOrder, Knowledge
from bhemu.isa.timing import FACTS
from bhemu.machine.state import THREADS
from bhemu.recording import log as column
from bhemu.tensix.coprocessor import THREAD_NAMES

_SFPLOAD_GAP: Final = FACTS["sfpload_gap"].value


class DataCheck(Check):
    """Source banks (F30, U1) and Dst (Y13)."""

    def __init__(self, rows: list[Row], known: list[Knowledge], reports: Reports) -> None:
        super().__init__(rows, known, reports)
        self._banks = (BankOrder(), BankOrder())
        self._valid = [[False, False] for _ in range(THREADS)]
        # Latest writers of a block of Dst, and since then its latest packers by thread.
        self._fpu: dict[int, Made] = {}
        self._sfpu: dict[int, Made] = {}
        self._unpacked: dict[int, Made] = {}
        self._packed: dict[int, dict[int, Made]] = {}
        # By thread: numbers of its words for the matrix unit, and how many of each thread it knew to be issued before.
        self._matrix: list[tuple[list[int], list[list[int]]]] = [([], []) for _ in range(THREADS)]

    def bank_is_valid(self, thread: int, condition: int) -> None:
        """The thread has waited for C7 or C8."""
        self._valid[thread][condition - C7] = True
        self._known[thread].join(self._banks[condition - C7].for_matrix())

    def step(self, found: Access, row: Row, me: Made) -> None:
        """Look at an instruction, then remember what it writes."""
        if found.unit == "matrix":
            numbers, issued = self._matrix[me.thread]
            numbers.append(me.number)
            issued.append(list(self._known[me.thread].issued))
        if found.unit in ("matrix", "unpack", "misc"):
            self._source_banks(found, me)
        if found.unit in ("matrix", "vector", "pack", "unpack"):
            self._dst(found, row, me)

    # --- source banks (F30, U1) -----------------------------------------------------------------------------------

    def _source_banks(self, found: Access, me: Made) -> None:
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
            known.join(self._banks[unpacker_of(found.operands)].for_unpacker())
        for file in found.hands_over:
            given = known.copy()
            given.complete(me.thread, C1 + file, me.number)
            self._banks[file].filled.append(given)

    def _unowned(self, file: int, me: Made) -> None:
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

    def _dst(self, found: Access, row: list[int], me: Made) -> None:
        reads, writes = dst_blocks(found, row)
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

    def _dst_block(self, found: Access, block: int, is_write: bool, me: Made) -> None:
        known = self._known[me.thread]
        stall = BLOCKS[found.unit]
        rows = f"Dst rows {8 * block}..{8 * block + 7}"
        unpacked = self._unpacked.get(block)
        if unpacked is not None and found.unit != "unpack" and known.done[unpacked.thread][C1] < unpacked.number:
            self._dst_report(
                f"uses {rows} before unpacker 0 has certainly written them", unpacked, me, stall, "UNPACK0", "rules U10"
            )
        fpu = self._fpu.get(block)
        if fpu is not None and known.done[fpu.thread][C4] < fpu.number and not self._is_overtaken(known, fpu):
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

    def _is_overtaken(self, known: Knowledge, made: Made) -> bool:
        """A word that was certainly issued later is known to be through the matrix unit, which is in order (Y12)."""
        for thread, (numbers, issued) in enumerate(self._matrix):
            at = bisect_right(numbers, known.done[thread][C4]) - 1
            if at >= 0 and issued[at][made.thread] >= made.number:
                return True
        return False

    def _after_matrix(self, found: Access, rows: str, made: Made, me: Made, stall: str) -> None:
        known = self._known[me.thread]
        if found.unit == "vector" and any(role.file == "dst" for role in found.roles_read):
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

    def _dst_report(self, message: str, made: Made, me: Made, stall: str, condition: str, rule: str) -> None:
        if made.thread == me.thread:
            missing = f"STALLWAIT({stall}, {condition})"
        else:
            other, own = THREAD_NAMES[made.thread], THREAD_NAMES[me.thread]
            missing = (
                f"STALLWAIT(STALL_SYNC, {condition}) and a semaphore operation in {other}, "
                f"SEMWAIT({stall}, ...) in {own}"
            )
        self._report(rule, message, made.row, me.row, missing)


def _filled(row: list[int]) -> frozenset[int]:
    return frozenset((unpacker_of(access(row[column.WORD]).operands),))
