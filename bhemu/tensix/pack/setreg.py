"""PACR_SETREG: a register write in order with the PACRs before it; and TBUFCMD.

TDMA-RISC holds two register bases (`t.pack.setreg_base`). On Blackhole the data are a register of the packer, which a
special form of the instruction programs 16 bits at a time; Wormhole's instruction carries ten bits that TDMA-RISC's
scalers spread over the word. The instruction is laid out as LLK has it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.errors import MissingSpecification, UndefinedBehavior
from bhemu.isa.memory_map import region
from bhemu.isa.registers import config
from bhemu.isa.tile_registers import address_of
from bhemu.machine.agents import TENSIX
from bhemu.machine.config_access import config_bank, config_field
from bhemu.machine.faults import DONE, REFUSED, fault, open_choice, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Int, TileRecord
from bhemu.tensix.instruction import DOCUMENTED, OPEN, RESERVED_BITS, Mode, instruction
from bhemu.tensix.mmio import MMIO_BASE, MMIO_FIRST, mmio_store
from bhemu.tensix.pack.compression import close_tile

REGISTERS_END: Final = region("overlay").end
"""A write from here on goes nowhere."""

_BASES: Final = 2
_HALF_BITS: Final = 0xFFFF
_PRODUCT_BITS: Final = 0x1FFFF
_OUT_FORMAT: Final = config("THCON_SEC0_REG1_Out_data_format")

# Form that programs the data: [18:3] sixteen bits, [2] which half
_HALF: Final = 1 << 2
_DATA_LSB: Final = 3
_PROGRAM_SPARE: Final = 0xFFFFFF & ~(1 << 22 | 0x1FFFF << 2)
_NO_OPERAND: Final = 1 << 11  # belongs to no operand of the other form

PRIVATE = fault(
    "pack.setreg-private",
    UndefinedBehavior,
    "PACR_SETREG writes {0:#x}, below the registers that the packer can reach",
    remedy=f"set the register base with TDMA-RISC ({address_of('tdma', 'PACK_ADDRESSES'):#x}) so that the address is "
    f"{MMIO_FIRST:#x} or above",
    rule="PACR_SETREG",
)
NO_BASE = fault(
    "pack.setreg-base",
    MissingSpecification,
    "PACR_SETREG takes its address from base {0}: two bases are known, and no source says how the others are set",
    remedy="use AddrSel 0 or 1",
    rule="PACR_SETREG",
)
CARRIES_VALUE = fault(
    "pack.setreg-value",
    MissingSpecification,
    "PACR_SETREG carries the value {0}: Wormhole's page writes it, Blackhole's instruction list does not use the bits",
    remedy="program the data with ModeSel = 1 and leave the value 0, or allow open choices to write the value",
    rule="PACR_SETREG",
)
PROGRAM_STRAY = fault(
    "pack.setreg-program",
    MissingSpecification,
    "bits {0:#x} of PACR_SETREG with ModeSel = 1: that form programs data, and only bits 18:2 have a meaning in it",
    remedy="clear them, and write the register with a second PACR_SETREG",
    rule="PACR_SETREG",
)
RESERVED = fault(
    "pack.tbufcmd",
    MissingSpecification,
    "TBUFCMD is reserved: no source says what it does",
    remedy="leave it out",
    rule="TBUFCMD",
)


@kernel
def _program(t: TileRecord, word: Int) -> Int:
    """Put sixteen bits into one half of the data; nothing is written."""
    if word & _PROGRAM_SPARE:
        return refuse(t, PROGRAM_STRAY, word & _PROGRAM_SPARE)
    shift = 16 if word & _HALF else 0
    kept = np.int64(t.pack.setreg_data) & ~(_HALF_BITS << shift)
    t.pack.setreg_data = np.uint32(kept | (((word >> _DATA_LSB) & _HALF_BITS) << shift))
    return DONE


@kernel
def _data(t: TileRecord, thread: Int, value: Int) -> Int:
    """The packer's data; or with a value in the instruction the value and, above it, the value scaled by format."""
    if value == 0:
        return np.int64(t.pack.setreg_data)
    out_format = config_field(t, config_bank(t, thread), _OUT_FORMAT)
    return value + (((value * np.int64(t.pack.setreg_scaler[out_format & 3])) & _PRODUCT_BITS) << 12)


@instruction(
    Mode("register write", DOCUMENTED, rule="PACR_SETREG"),
    Mode("flush without a write", DOCUMENTED, rule="PACR_SETREG"),
    Mode("program the data", DOCUMENTED, rule="PACR_SETREG"),
    Mode("register write of a value in the instruction", OPEN, rule="PACR_SETREG"),
    reserved=_NO_OPERAND,
)
def PACR_SETREG(
    t: TileRecord, thread: Int, Push: Int, ModeSel: Int, value: Int, AddrSel: Int, StreamId: Int, Flush: Int, word: Int
) -> Int:
    if ModeSel != 0:
        return _program(t, word)
    if word & _NO_OPERAND:
        return refuse(t, RESERVED_BITS, word & _NO_OPERAND)
    pack = t.pack
    if Push != 0 and Flush != 0:  # both are needed for a write
        if AddrSel >= _BASES:
            return refuse(t, NO_BASE, AddrSel)
        address = MMIO_BASE + np.int64(pack.setreg_base[AddrSel]) + (StreamId << 12)
        if address < MMIO_FIRST:
            return refuse(t, PRIVATE, address)
        if value != 0 and not open_choice(t, CARRIES_VALUE, value):
            return REFUSED
        if address < REGISTERS_END:
            status = mmio_store(t, TENSIX, address, _data(t, thread, value))
            if status != DONE:
                return status  # type: ignore[no-any-return]  # a record's field
    if Flush != 0 and pack.open != 0:
        close_tile(t)
        pack.open = 0
    return DONE


@instruction(Mode("any", OPEN, rule="TBUFCMD"))
def TBUFCMD(t: TileRecord, thread: Int) -> Int:
    return refuse(t, RESERVED)
