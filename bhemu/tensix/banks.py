"""Giving Src banks back to the unpackers (math F28, F29)."""

from __future__ import annotations

from typing import Final

from bhemu.errors import NonContractualBehavior
from bhemu.isa.registers import thread as thread_register
from bhemu.machine.config_access import thread_field
from bhemu.machine.faults import DONE, REFUSED, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.origin import DEBUG_PORT_LINE
from bhemu.machine.types import Int, TileRecord

SRCA: Final = 0
SRCB: Final = 1
UNPACKER: Final = 0
"""`src_owner` of a bank that an unpacker may write."""
MATRIX: Final = 1
"""`src_owner` of a bank that holds data for the matrix unit."""

_KEEP_A: Final = thread_register("CLR_DVALID_SrcA_Disable")
_KEEP_B: Final = thread_register("CLR_DVALID_SrcB_Disable")

_LETTER_A: Final = ord("A")  # a fault's values are integers: the file's letter goes as its code

BANK_NOT_VALID = fault(
    "banks.not-valid",
    NonContractualBehavior,
    "Src{0:c} bank {1} is given back to the unpackers, which already own it",
    remedy="give a bank back once, after an unpacker has handed it over (STALLWAIT conditions C7 and C8 wait for that)",
    rule="math F28",
)


@kernel
def give_back(t: TileRecord, which: Int) -> None:
    """Give the matrix unit's bank of SrcA (0) or SrcB (1) to the unpackers, whatever its owner."""
    t.src_owner[which, t.matrix.bank[which]] = UNPACKER


@kernel
def change_bank(t: TileRecord, which: Int) -> None:
    """Move the matrix unit to its other bank of SrcA (0) or SrcB (1)."""
    t.matrix.bank[which] = t.matrix.bank[which] ^ 1


@kernel
def _is_kept(t: TileRecord, thread: Int, which: Int) -> bool:
    """True when ThreadConfig CLR_DVALID keeps the bank of SrcA (0) or SrcB (1) valid."""
    return thread_field(t, thread, _KEEP_A if which == SRCA else _KEEP_B) != 0


@kernel
def can_hand_back(t: TileRecord, thread: Int, mask_ab: Int) -> bool:
    """True when `hand_back` with the same arguments would be DONE; records the refusal otherwise.

    Instructions that change more than the banks call it first, so that a refusal leaves the state as it was. Words from
    the debug port are never refused: debuggers read both banks in turn, whichever unit owns them.
    """
    if t.frontend.gate_line[thread] == DEBUG_PORT_LINE:
        return True
    for which in range(2):
        gives = (mask_ab >> which) & 1 and not _is_kept(t, thread, which)
        if gives and t.src_owner[which, t.matrix.bank[which]] != MATRIX:
            refuse(t, BANK_NOT_VALID, _LETTER_A + which, t.matrix.bank[which])
            return False
    return True


@kernel
def hand_back(t: TileRecord, thread: Int, mask_ab: Int) -> Int:
    """Give back the matrix unit's banks that `mask_ab` selects (bit 0 SrcA, bit 1 SrcB) and change banks (F28).

    With ThreadConfig CLR_DVALID's disable bit of the file the bank stays valid and the matrix unit alone moves on.
    Returns DONE, or REFUSED with nothing changed: a bank that the unpackers own already is given back by mistake.
    """
    if not can_hand_back(t, thread, mask_ab):
        return REFUSED
    for which in range(2):
        if (mask_ab >> which) & 1:
            if not _is_kept(t, thread, which):
                give_back(t, which)
            change_bank(t, which)
    return DONE
