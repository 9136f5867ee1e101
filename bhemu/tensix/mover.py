"""The mover: copies of L1 to L1 or to Config, and zeros to either, in units of 16 bytes; XMOV starts it.

A transfer is finished before the next word executes, so the mover is never busy (STALLWAIT C9 never holds).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.errors import MemoryError_, MissingSpecification, UndefinedBehavior
from bhemu.isa.registers import CONFIG_WORDS, config
from bhemu.machine.config_access import config_bank, config_field
from bhemu.machine.faults import DONE, REFUSED, fault, open_choice, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.state import L1_SIZE
from bhemu.machine.types import Int, TileRecord
from bhemu.tensix.config import write_config
from bhemu.tensix.instruction import DOCUMENTED, OPEN, Mode, instruction

UNIT: Final = 16
"""Bytes of a unit of address and size."""
SIZE_BITS: Final = 0xFFFF
"""Units of a transfer; higher bits of the size are not used."""

# Transfer directions ("L0" in their usual names is a misnomer)
ZEROS_TO_L1: Final = 0
L1_TO_CONFIG: Final = 1
ZEROS_TO_CONFIG: Final = 2
L1_TO_L1: Final = 3

# What the mover calls addresses beyond L1: a window on Config as the cores see it (I.10), and on Wormhole one on the
# instruction RAM; what goes elsewhere is lost.
_WINDOW: Final = 0x10000
_INSTRUCTION_RAM: Final = 0x40000
_ADDRESS_LIMIT: Final = 1 << 32
_WRITABLE_BYTES: Final = 3 * CONFIG_WORDS * 4
"""Bank 0, bank 1 and the window that writes both; ThreadConfig follows."""

_SOURCE: Final = config("THCON_SEC0_REG6_Source_address")
_DESTINATION: Final = config("THCON_SEC0_REG6_Destination_address")
_SIZE: Final = config("THCON_SEC0_REG6_Buffer_size")
_DIRECTION: Final = config("THCON_SEC0_REG6_Transfer_direction")

OUT_OF_L1 = fault(
    "mover.out-of-l1",
    MemoryError_,
    "the mover transfers {1} bytes at L1 address {0:#x}, which is past the end of L1 ({2:#x})",
    remedy="addresses and sizes count 16-byte units",
    rule="Mover",
)
OUT_OF_WINDOW = fault(
    "mover.out-of-window",
    UndefinedBehavior,
    "the mover writes {1} bytes at {0:#x}, across the end of a 64 KiB window or of the address space",
    remedy="keep the transfer inside one window; destinations count 16-byte units",
    rule="Mover",
)
INSTRUCTION_RAM = fault(
    "mover.instruction-ram",
    UndefinedBehavior,
    "the mover writes to {0:#x}: Blackhole has no instruction RAM there",
    remedy="cores of Blackhole execute from L1",
    rule="tile T19",
)
PAST_CONFIG = fault(
    "mover.past-config",
    MissingSpecification,
    "the mover writes {1} bytes at {0:#x} of the Config window, past the words of Config ({2:#x})",
    remedy="write ThreadConfig with SETC16",
    rule="I.10",
)
OVERLAP = fault(
    "mover.overlap",
    MissingSpecification,
    "the mover copies from {0:#x} to {1:#x}, which overlap: no source gives the order of its accesses",
    remedy="copy in pieces that do not overlap, or allow open choices to have units copied one by one, upwards",
    rule="Mover",
)
SECOND_MOVER = fault(
    "mover.second",
    MissingSpecification,
    "XMOV with Mov_block_selection = 1: no source says that a second mover exists",
    remedy="use Mov_block_selection = 0",
    rule="Mover",
)


@kernel
def _outside_l1(t: TileRecord, address: Int, size: Int) -> bool:
    """True, with the fault recorded, unless the bytes are inside L1."""
    if address >= L1_SIZE or address + size > L1_SIZE:
        refuse(t, OUT_OF_L1, address, size, L1_SIZE)
        return True
    return False


@kernel
def _to_l1(t: TileRecord, destination: Int, source: Int, size: Int, copies: bool) -> Int:
    if _outside_l1(t, destination, size) or (copies and _outside_l1(t, source, size)):
        return REFUSED
    overlap = copies and source != destination and source < destination + size and destination < source + size
    if overlap and not open_choice(t, OVERLAP, source, destination):
        return REFUSED
    to, of = destination // 4, source // 4
    for i in range(size // 4):
        t.l1_u32[to + i] = t.l1_u32[of + i] if copies else np.uint32(0)
    return DONE


@kernel
def _to_config(t: TileRecord, destination: Int, source: Int, size: Int, copies: bool) -> Int:
    if (destination & (_WINDOW - 1)) + size > _WINDOW or destination >= _ADDRESS_LIMIT:
        return refuse(t, OUT_OF_WINDOW, destination, size)
    if copies and _outside_l1(t, source, size):
        return REFUSED
    if destination >= _INSTRUCTION_RAM and destination < _INSTRUCTION_RAM + _WINDOW:
        return refuse(t, INSTRUCTION_RAM, destination)
    if destination >= _WINDOW:
        return DONE  # the transfer happens, and what it writes is lost
    if destination + size > _WRITABLE_BYTES:
        return refuse(t, PAST_CONFIG, destination, size, _WRITABLE_BYTES)
    for i in range(size // 4):
        value = np.int64(t.l1_u32[source // 4 + i]) if copies else np.int64(0)
        place = destination // 4 + i
        window, word = place // CONFIG_WORDS, place % CONFIG_WORDS
        if window != 1:
            write_config(t, 0, word, value)
        if window != 0:
            write_config(t, 1, word, value)
    return DONE


@kernel
def move(t: TileRecord, destination_unit: Int, source_unit: Int, units: Int, direction: Int) -> Int:
    """Move `units` 16-byte units; addresses count units too. Nothing is changed unless the whole transfer is legal.

    Args:
        destination_unit: of L1, or for L1_TO_CONFIG and ZEROS_TO_CONFIG of the windows beyond L1.
        source_unit: of L1; not used when zeros are written.
        units: 0 to 0xFFFF.
        direction: ZEROS_TO_L1, L1_TO_CONFIG, ZEROS_TO_CONFIG or L1_TO_L1.
    """
    destination, source, size = destination_unit * UNIT, source_unit * UNIT, units * UNIT
    copies = direction in (L1_TO_CONFIG, L1_TO_L1)
    if direction in (ZEROS_TO_L1, L1_TO_L1):
        return _to_l1(t, destination, source, size, copies)
    return _to_config(t, destination, source, size, copies)


@instruction(
    Mode("L1 to L1", DOCUMENTED, rule="Mover"),
    Mode("L1 to Config", DOCUMENTED, rule="Mover"),
    Mode("zeros to L1 or Config", DOCUMENTED, rule="Mover"),
    Mode("L1 to L1, overlapping", OPEN, rule="Mover"),
)
def XMOV(t: TileRecord, thread: Int, Mov_block_selection: Int, Last: Int) -> Int:
    # Last flushes the mover's buffers, which hold nothing back here.
    if Mov_block_selection:
        return refuse(t, SECOND_MOVER)
    bank = config_bank(t, thread)
    return move(
        t,
        config_field(t, bank, _DESTINATION),
        config_field(t, bank, _SOURCE),
        config_field(t, bank, _SIZE) & SIZE_BITS,
        config_field(t, bank, _DIRECTION),
    )
