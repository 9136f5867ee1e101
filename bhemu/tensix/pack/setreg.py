"""PACR_SETREG: a register write in order behind the PACRs before it.

TDMA-RISC holds the register bases (`t.pack.setreg_base`) and the scalers that put the ten bits of the instruction
into a word. The sources name the fields of the word differently (rules, instruction table); these are LLK's, with the
arithmetic of the ISA page.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.errors import UndefinedBehavior, Unimplemented
from bhemu.machine.faults import DONE, fault, refuse
from bhemu.tensix.instruction import DOCUMENTED, MISSING, Mode, instruction
from bhemu.tensix.pack.compression import close_tile

MMIO_BASE: Final = 0xFFB00000
FIRST_REGISTER: Final = 0xFFB11000
"""Lower addresses are private to a core."""
BEHIND_REGISTERS: Final = 0xFFB80000
"""A write from here on goes nowhere."""

PRIVATE = fault(
    "pack.setreg-private",
    UndefinedBehavior,
    "PACR_SETREG writes {0:#x}, below the registers that the packer can reach",
    remedy="set the register base with TDMA-RISC (0xffb11038) so that the address is 0xffb11000 or above",
    rule="PACR_SETREG",
)
NO_REGISTERS = fault(
    "pack.setreg",
    Unimplemented,
    "PACR_SETREG writes the tile register {0:#x}: the packer's way to tile registers is not built yet",
    remedy="store to the register from a core",
    rule="PACR_SETREG",
)


@instruction(
    Mode("flush, with an address behind the registers", DOCUMENTED, rule="PACR_SETREG"),
    Mode("register write", MISSING, rule="PACR_SETREG"),
)
def PACR_SETREG(t, thread, AddrSel, StreamId, Flush, Last):
    pack = t.pack
    address = MMIO_BASE + np.int64(pack.setreg_base[AddrSel & 1]) + (StreamId << 12)
    if address < FIRST_REGISTER:
        return refuse(t, PRIVATE, address)
    if address < BEHIND_REGISTERS:
        return refuse(t, NO_REGISTERS, address)
    if (Flush != 0 or Last != 0) and pack.open != 0:
        close_tile(t)
        pack.open = 0
    return DONE
