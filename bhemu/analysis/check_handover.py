"""The part of the hazard check for STOREREG that hands pages of a circular buffer over while a unit still uses them."""

from __future__ import annotations

from bhemu.analysis.access import Access, unpacker_of
from bhemu.analysis.hazard import BUFFERS, C1, C2, C3, Check, Made, Reports, Row
from bhemu.analysis.ordering import Knowledge
from bhemu.machine.state import THREADS
from bhemu.recording import log as column
from bhemu.recording.circular_buffers import MMIO, counter_at


class HandOverCheck(Check):
    """The scalar unit does not wait for packers and unpackers (I.11, K51)."""

    def __init__(self, rows: list[Row], known: list[Knowledge], reports: Reports) -> None:
        super().__init__(rows, known, reports)
        self._add = reports.add_rows
        # By thread and condition: the last word of the packer and of each unpacker that has accessed L1.
        self._last: list[dict[int, Made]] = [{} for _ in range(THREADS)]

    def step(self, found: Access, row: Row, me: Made) -> None:
        """Look at an instruction."""
        if found.mnemonic == "PACR":
            self._last[me.thread][C3] = me
        elif found.mnemonic == "UNPACR" and row[column.L1_END] > row[column.L1_BEGIN]:
            self._last[me.thread][C2 if unpacker_of(found.operands) else C1] = me
        elif found.mnemonic == "STOREREG":
            counter = counter_at(MMIO + 4 * found.operands["RegAddr"])
            if counter is not None:
                self._handed_over(me, *counter)

    def _handed_over(self, me: Made, stream: int, received: bool) -> None:
        done = self._known[me.thread].done[me.thread]
        for condition in (C3,) if received else (C1, C2):
            last = self._last[me.thread].get(condition)
            if last is not None and done[condition] < last.number:
                self._add(
                    BUFFERS,
                    "rules I.11, tile K51",
                    f"hands pages of circular buffer {stream} over while the "
                    f"{'packer may still write' if received else 'unpacker may still read'} them",
                    last.row,
                    me.row,
                    f"STALLWAIT(STALL_THCON, {'PACK' if received else 'UNPACK'})",
                )
