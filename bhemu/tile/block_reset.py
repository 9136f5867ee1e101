"""Soft reset of the coprocessor's blocks (tile K40, K41).

Here is what setting or clearing a block's bit resets. Between the two its state is as reset has left it, but
bhemu does not stop it from working: software that lets a block work while it is held in reset finds silicon dropping
instructions. The bits without an effect below (unpackers, mover, glue, automatic TTSync) abort what is in flight, and
here nothing is in flight when a register is stored to.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import MissingSpecification
from bhemu.isa.registers import FIRST_SHARED_WORD
from bhemu.isa.tile_registers import bit_of
from bhemu.machine.dst import DST_ROWS
from bhemu.machine.faults import DONE, REFUSED, fault, open_choice
from bhemu.machine.kernel import kernel
from bhemu.machine.state import ALL_CONFIG_DIRTY, THREADS
from bhemu.machine.types import Int, TileRecord
from bhemu.tensix.banks import SRCA, SRCB, UNPACKER
from bhemu.tensix.matrix.operands import SRC_ROWS, forget_srca_row

PACKER_BIT: Final = bit_of("control", "SOFT_RESET_0", "PACKER")
TDMA_BIT: Final = bit_of("control", "SOFT_RESET_0", "TDMA")
SCALAR_BIT: Final = bit_of("control", "SOFT_RESET_0", "SCALAR")
MATH_BIT: Final = bit_of("control", "SOFT_RESET_0", "MATH")
SRCA_BANKS_BIT: Final = bit_of("control", "SOFT_RESET_0", "SRCA_BANKS")
SRCB_BANKS_BIT: Final = bit_of("control", "SOFT_RESET_0", "SRCB_BANKS")
DST_BIT: Final = bit_of("control", "SOFT_RESET_0", "DST")
SRCA_COLUMNS_BIT: Final = bit_of("control", "SOFT_RESET_0", "SRCA_COLUMNS")
"""Columns 0 to 3; the next three bits are the others."""

FIRST_SCALAR_WORD: Final = 64
"""Config words of unpackers and packer begin here (THCON section)."""
LANES: Final = 32
COLUMNS: Final = 16
_RELEASED_LREG: Final = np.array([0] * 8 + [0, 0, 0, 0xBF800000, 0x37800000, 0xBF2CC4C7, 0xBEB08FF9, 0, 0], np.int64)
"""LRegs that the vector unit's release sets; 8, 9, 10 and 15 are constants (K41)."""

LREG_12: Final = fault(
    "block_reset.lreg12",
    MissingSpecification,
    "SOFT_RESET_0 = {0:#x} releases the vector unit: LReg 12 is then 1/65536 by the documents, but 1/512 at power on "
    "by other sources",
    remedy="do not reset the vector unit (bit 10), or allow open choices to have 1/65536",
    rule="tile K41, Q3",
)


@kernel
def _zero_srca(t: TileRecord, first: Int, count: Int) -> None:
    """Columns of SrcA, all banks and rows."""
    forget_srca_row(t)
    for bank in range(2):
        for row in range(SRC_ROWS):
            for column in range(first, first + count):
                t.srca[bank, row, column] = 0


@kernel
def _return_banks(t: TileRecord, file: Int) -> None:
    t.matrix.bank[file] = 0
    t.unpack.bank[file] = 0
    for bank in range(2):
        t.src_owner[file, bank] = UNPACKER


@kernel
def _zero_srcb(t: TileRecord) -> None:
    for bank in range(2):
        for row in range(SRC_ROWS):
            for column in range(COLUMNS):
                t.srcb[bank, row, column] = 0


@kernel
def _forget_scheduled(t: TileRecord) -> None:
    """What SFPLOADMACRO has scheduled never happens."""
    t.macro.pending = 0
    t.macro.counted = 0
    t.macro.cycle = 0
    t.macro.resume = 0
    t.macro.counts = 0
    t.macro.taken = 0
    t.macro.excluded = 0
    t.macro.resting = 0
    t.macro.rest_next = 0
    for register in range(17):
        t.macro.late_lanes[register] = 0
    for unit in range(4):
        for slot in range(9):
            for lane in range(LANES):
                t.macro.word[unit, slot, lane] = 0


@kernel
def _release_vector_unit(t: TileRecord) -> None:
    """Every setting as at power on; LRegs by the table of K41."""
    for register in range(17):
        if register < 8 or register == 16 or (register >= 11 and register <= 14):
            for lane in range(LANES):
                t.lregs[register, lane] = np.uint32(_RELEASED_LREG[register])
    for lane in range(LANES):
        t.prng[lane] = 0
    t.vector.lane_flags = np.uint32(0xFFFFFFFF)
    t.vector.use_flags = np.uint32(0xFFFFFFFF)
    for entry in range(8):
        t.vector.flag_stack_held[entry] = 0
    t.vector.lane_config = 0
    for i in range(4):
        t.macro.template[i] = 0
        t.macro.sequence[i] = 0
    t.macro.misc = 0
    t.vector.settings_mixed = 0


@kernel
def _enter_dst(t: TileRecord) -> None:
    """The exponent histogram restarts; rows that ZEROACC has cleared show again what they held."""
    for i in range(32):
        t.pack.histogram[i] = 0
    t.pack.histogram_max = 0
    for row in range(DST_ROWS):
        t.dst_valid[row] = 1


@kernel
def _enter_scalar_unit(t: TileRecord) -> None:
    """Configuration of unpackers and packer, of both banks."""
    for bank in range(2):
        for word in range(FIRST_SCALAR_WORD, FIRST_SHARED_WORD):
            t.config[bank, word] = 0
        t.config_dirty[bank] = np.uint32(ALL_CONFIG_DIRTY)


@kernel
def _enter(t: TileRecord, bit: Int) -> None:
    """A block's bit has been set."""
    if bit == PACKER_BIT:
        t.pack.last_tile_size = 0
        for thread in range(THREADS):
            t.pack.acc_tile_size[thread] = 0
    elif bit == TDMA_BIT:
        for i in range(4):
            t.tdma_parameters[i] = 0
    elif bit == SCALAR_BIT:
        _enter_scalar_unit(t)
    elif bit == MATH_BIT:
        _forget_scheduled(t)
        _zero_srca(t, 0, COLUMNS)
    elif bit == SRCA_BANKS_BIT:
        _return_banks(t, SRCA)
    elif bit == SRCB_BANKS_BIT:
        _return_banks(t, SRCB)
        _zero_srcb(t)
    elif bit == DST_BIT:
        _enter_dst(t)
    elif bit >= SRCA_COLUMNS_BIT and bit < SRCA_COLUMNS_BIT + 4:
        _zero_srca(t, 4 * (bit - SRCA_COLUMNS_BIT), 4)


@kernel
def reset_blocks(t: TileRecord, before: Int, after: Int) -> Any:
    """What a store of `after` to SOFT_RESET_0, which held `before`, does to the coprocessor.

    Returns DONE, or REFUSED with nothing changed.
    """
    changed = before ^ after
    releases_math = (changed & before) >> MATH_BIT & 1
    if releases_math and not open_choice(t, LREG_12, after):
        return REFUSED
    for bit in range(SRCA_COLUMNS_BIT + 4):
        if (changed & after) >> bit & 1:
            _enter(t, bit)
    if releases_math:
        _release_vector_unit(t)
    if (changed & before) >> PACKER_BIT & 1:
        t.pack.l1_dest_addr_offset = 0
    return DONE
