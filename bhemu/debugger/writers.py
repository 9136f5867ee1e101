"""Who has written something last: a watch that also notes who executed what in the round of a change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bhemu.debugger.watchpoints import AccessWatch, Watch
from bhemu.isa.instructions import BY_OPCODE
from bhemu.isa.riscv import disassemble_riscv, find, is_ttinsn
from bhemu.machine.agents import CORE_NAMES, CORES
from bhemu.machine.state import L1_SIZE, THREADS
from bhemu.tensix.coprocessor import THREAD_NAMES

if TYPE_CHECKING:
    from bhemu.debugger.points import Points

Array = np.ndarray[Any, Any]

_L1_WRITERS: Final = frozenset(("PACR", "STOREIND", "ATINCGET", "ATINCGETPTR", "ATSWAP", "ATCAS", "XMOV", "FLUSHDMA"))
"""Instructions of the coprocessor that write L1."""
_STORES: Final = ("S", "fstore", "amo")


class WriterWatch(Watch):
    """A watch of the same thing as another one, which says who has changed it.

    For memory a core's store counts even when it stores what was there.

    Args:
        watch: the other one.
        session: of the tile.
    """

    def __init__(self, watch: Watch, session: Points) -> None:
        super().__init__(watch.number, watch.text, watch.read, watch.explain)
        self.address, self.core = watch.address, watch.core
        self._session = session
        self._record = session.record
        self._pcs: Array = np.zeros(0)
        self._retired: Array = np.zeros(0)
        self._issued: Array = np.zeros(0)
        self._stores: AccessWatch | None = None
        if watch.address is not None:
            size = len(watch.read())
            self._stores = AccessWatch(watch.number, "", self._record, watch.address, size, "store", watch.core)

    def before_round(self) -> None:
        record = self._record
        self._pcs, self._retired = record.core_pc.copy(), record.core_retired.copy()
        self._issued = record.issued.copy()
        if self._stores is not None:
            self._stores.before_round()

    def changed(self) -> str | None:
        text = super().changed()
        store = None if self._stores is None else self._stores.changed()
        if store is not None:
            assert self._stores is not None
            assert self._stores.core is not None
            core = self._stores.core
            return f"{text or 'the same value'}, by {self._instruction(core)}"
        return None if text is None else f"{text}, by {self._who()}"

    def _instruction(self, core: int) -> str:
        """What a core has executed in this round."""
        pc = int(self._pcs[core])
        word = int(self._record.l1_u32[pc >> 2]) if pc < L1_SIZE else 0
        return f"core {CORE_NAMES[core]} at {self._session.describe(core, pc)}: {disassemble_riscv(word, pc)}"

    def _who(self) -> str:
        is_register = self.core is not None and self.address is None
        found = [self._instruction(core) for core in range(CORES) if self._may_write(core, is_register)]
        if not is_register:
            found += self._threads()
        if found:
            return " or ".join(found)
        return "no core or thread of this tile: a NoC request, the mover, or the host"

    def _may_write(self, core: int, is_register: bool) -> bool:
        """A core has executed something that may have made the change, for all that is known."""
        record, pc = self._record, int(self._pcs[core])
        if int(record.core_retired[core]) <= int(self._retired[core]) or pc >= L1_SIZE:
            return False
        if is_register:
            return core == self.core
        word = int(record.l1_u32[pc >> 2])
        row = find(word) if word & 3 == 3 and not is_ttinsn(word) else None
        return row is not None and row.layout in _STORES and self.address is None

    def _threads(self) -> list[str]:
        """What threads of the coprocessor have executed in this round."""
        found = []
        for thread in range(THREADS):
            opcodes = np.flatnonzero(self._record.issued[thread] != self._issued[thread])
            names = [row.mnemonic for row in (BY_OPCODE[int(opcode)] for opcode in opcodes) if row is not None]
            if self.address is not None:
                names = [name for name in names if name in _L1_WRITERS]
            if names:
                found.append(f"thread {thread} ({THREAD_NAMES[thread]}): {', '.join(names)}")
        return found
