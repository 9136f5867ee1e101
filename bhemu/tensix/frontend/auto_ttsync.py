"""Auto TTSync: accesses of a T core that wait for instructions which the core has pushed before (tile K19).

Configuration, GPRs and TDMA-RISC are tracked as wholes. A store waits while an instruction that uses the resource has
not passed its gate, a load while one that writes it has not. That an instruction waits for an access before it needs
nothing: cores execute in order, and an access is complete before the next instruction.

On silicon a load is held back only when there is a fence between the push and the load (a hardware bug). Here it always
is: a program without the fence gets the value of program order, which silicon may or may not give.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.isa.instructions import BY_OPCODE, INSTRUCTIONS
from bhemu.machine.agents import T0, T2
from bhemu.machine.frontend_state import FIFO_SLOTS
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Int, Table, TileRecord
from bhemu.tensix.windows import CONFIG_BASE, GPR_BASE, GPR_END

_TRACKING_WORD: Final = 56
# Bits of that entry of ThreadConfig
_TRACK_CONFIG: Final = 0x01
_TRACK_GPRS: Final = 0x04
_TRACK_TDMA: Final = 0x08
_TRACK_INSTRUCTIONS: Final = 0x10

CONFIG: Final = 1
GPRS: Final = 2
TDMA: Final = 4
_EVERYTHING: Final = CONFIG | GPRS | TDMA

_ARITHMETIC: Final = ("ADDDMAREG", "SUBDMAREG", "MULDMAREG", "BITWOPDMAREG", "SHIFTDMAREG", "CMPDMAREG", "SETDMAREG")
_ATOMICS: Final = ("ATINCGET", "ATINCGETPTR", "ATSWAP", "ATCAS")
# (reads, writes) of each instruction, as the hardware declares them without RESOURCEDECL; all others read Config.
# RESOURCEDECL is accepted without effect: these are what instructions really use, so declaring more is only slower.
_USES: Final[dict[str, tuple[int, int]]] = {
    **dict.fromkeys(("NOP", "MOP_CFG", "RESOURCEDECL"), (0, 0)),
    **dict.fromkeys((*_ARITHMETIC, *_ATOMICS, "LOADIND", "STOREIND"), (GPRS, GPRS)),
    "REG2FLOP": (GPRS | TDMA, GPRS | TDMA),
    "STREAMWRCFG": (CONFIG, CONFIG),
    "CFGSHIFTMASK": (CONFIG, CONFIG),
    "STOREREG": (GPRS, 0),
    "LOADREG": (0, GPRS),
    "FLUSHDMA": (0, TDMA),
    "WRCFG": (GPRS, CONFIG),
    "RDCFG": (CONFIG, GPRS),
    "XMOV": (GPRS | CONFIG, GPRS | CONFIG),
    "UNPACR": (TDMA | CONFIG, TDMA),
    "UNPACR_NOP": (TDMA | CONFIG, TDMA),
    "PACR": (TDMA | CONFIG, TDMA),
    "MOP": (_EVERYTHING, _EVERYTHING),
    "REPLAY": (_EVERYTHING, _EVERYTHING),
}
_OTHERS: Final = (CONFIG, 0)


def _tables() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """By opcode: what an instruction reads or writes, and what it writes."""
    for name in _USES:
        if name not in INSTRUCTIONS:
            raise RuntimeError(f"auto TTSync knows {name}, which is not an instruction")
    uses, writes = np.zeros(256, np.int64), np.zeros(256, np.int64)
    for row in BY_OPCODE:
        if row is not None:
            read, written = _USES.get(row.mnemonic, _OTHERS)
            uses[row.opcode], writes[row.opcode] = read | written, written
    return uses, writes


USES: Final = _tables()[0]
WRITES: Final = _tables()[1]


@kernel
def _tracked_resource(t: TileRecord, thread: Int, address: Int) -> Int:
    """The resource that an address belongs to, or 0 when it is not tracked; the caller knows that it is one of them."""
    tracked = np.int64(t.thread_config[thread, _TRACKING_WORD])
    if (tracked & _TRACK_INSTRUCTIONS) == 0:
        return 0
    if address >= CONFIG_BASE:
        return CONFIG if tracked & _TRACK_CONFIG else 0
    if address >= GPR_BASE and address < GPR_END:
        return GPRS if tracked & _TRACK_GPRS else 0
    return TDMA if tracked & _TRACK_TDMA else 0


@kernel
def _is_pending(t: TileRecord, thread: Int, resource: Int, table: Table) -> bool:
    """True when a word of the thread that has not passed its gate has the resource in `table`.

    While a MOP or REPLAY is expanded its own declaration holds, which is everything (K19).
    """
    if t.frontend.mop_active[thread] != 0 or t.frontend.replay_play_left[thread] > 0:
        return True
    if t.frontend.gate_full[thread] != 0 and table[np.int64(t.frontend.gate_word[thread]) >> 24] & resource:
        return True
    head = np.int64(t.frontend.fifo_head[thread])
    for i in range(t.frontend.fifo_count[thread]):
        word = np.int64(t.frontend.fifo_word[thread, (head + i) % FIFO_SLOTS])
        if table[word >> 24] & resource:
            return True
    return False


@kernel
def must_wait_for_own_thread(t: TileRecord, agent: Int, address: Int, is_load: bool) -> bool:
    """True when an access to configuration, GPRs or TDMA-RISC must wait for what its core has pushed (K19 b, c)."""
    if agent < T0 or agent > T2:
        return False
    thread = agent - T0
    resource = _tracked_resource(t, thread, address)
    if resource == 0:
        return False
    if is_load:
        return _is_pending(t, thread, resource, WRITES)
    return _is_pending(t, thread, resource, USES)
