"""When the rows of SrcA and SrcB can have changed.

The matrix unit keeps operands decoded, and compares them with the rows before it uses them (matrix/prepared.py). While
the front end executes words one after the other, only the words themselves can write Src: as long as none does, what
was compared once need not be compared again. `t.src_epoch` is a number for such a stretch, and 0 outside the front end,
where the host and the cores may have written Src.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Int, TileRecord


def _table(names: Iterable[str]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """bool [opcode]: it is that of one of these instructions."""
    opcodes = {INSTRUCTIONS[name].opcode for name in names}
    return np.array([opcode in opcodes for opcode in range(256)])


_LEAVE_SRC: Final = (
    *("NOP", "MOP", "REPLAY", "ZEROACC", "MOVA2D", "MOVB2D", "MVMUL", "DOTPV", "GAPOOL", "ELWADD", "ELWSUB", "ELWMUL"),
    *("SETRWC", "INCRWC", "PACR", "SETADC", "SETADCXY", "INCADCXY", "ADDRCRXY", "SETADCZW", "INCADCZW", "ADDRCRZW"),
    *("SETADCXX", "SETDMAREG", "ADDDMAREG", "STALLWAIT", "SEMINIT", "SEMPOST", "SEMGET", "SEMWAIT", "SETC16"),
)
"""Instructions that are often executed between matrix products and write no row of Src."""
LEAVES_SRC: Final = _table(_LEAVE_SRC)
"""bool [opcode]. Others are taken to write some row."""

WRITES_SRC: Final = _table(
    ("STOREIND", "UNPACR", "UNPACR_NOP", "MOVD2A", "MOVD2B", "MOVB2A", "TRNSPSRCB", "SHIFTXA", "SHIFTXB")
)
"""bool [opcode]: instructions that write cells of Src, beside ZEROSRC. In the C library nothing else does, so
`t.src_fresh` is 1 there in a new tile."""


@kernel(forceinline=True)
def begin_src_epochs(t: TileRecord) -> None:
    """From here on only words of the front end write Src."""
    t.src_epoch = 1


@kernel(forceinline=True)
def end_src_epochs(t: TileRecord) -> None:
    """From here on the host and the cores may, too. Nothing is left of the epochs, which are not state."""
    t.src_epoch = 0
    if t.src_compared != 0:
        t.src_compared = 0
        for block in range(len(t.prepared.compared)):
            t.prepared.compared[block] = 0


@kernel(forceinline=True)
def note_word(t: TileRecord, opcode: Int) -> None:
    """The front end has executed a word, or tried to."""
    if not LEAVES_SRC[opcode]:
        t.src_epoch += 1
        if WRITES_SRC[opcode]:
            t.src_fresh = 0
