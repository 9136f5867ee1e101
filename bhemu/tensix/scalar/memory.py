"""GPRs to and from L1, MMIO and Src: LOADIND, STOREIND, LOADREG, STOREREG; FLUSHDMA (I.11)."""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.errors import MemoryError_, MissingSpecification, UndefinedBehavior
from bhemu.isa.registers import thread as thread_register
from bhemu.machine.agents import TENSIX
from bhemu.machine.config_access import thread_field
from bhemu.machine.faults import DONE, REFUSED, WAIT, fault, open_choice, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.state import L1_SIZE
from bhemu.machine.types import Int, TileRecord
from bhemu.tensix.banks import SRCA, SRCB, UNPACKER
from bhemu.tensix.instruction import DOCUMENTED, OPEN, Mode, instruction
from bhemu.tensix.mmio import MMIO_BASE, mmio_load, mmio_store
from bhemu.tensix.scalar.halves import HALF_BITS, QUAD_REGISTER, WORD_BITS, read_half, write_half

L1_UNIT: Final = 16
"""Addresses in GPRs count 16-byte units (I.11)."""
_MMIO_OFFSET: Final = 0xFFFFC

# Size codes of LOADIND and STOREIND (I.11)
QUAD: Final = 0
WORD: Final = 1
HALF: Final = 2
BYTE: Final = 3

_BYTE_BITS: Final = 0xFF

OUT_OF_L1 = fault(
    "scalar.out-of-l1",
    MemoryError_,
    "L1 address {0:#x} is past the end of L1 ({1:#x})",
    remedy="an address register counts 16-byte units; the offset counts bytes",
    rule="I.11",
)
SIZE_CODE = fault(
    "scalar.store-size",
    MissingSpecification,
    "STOREIND to L1 with size {0}: one source reads 1 as 32 and 2 as 16 bits, the other the reverse",
    remedy="use size 0 (16 bytes) or 3 (8 bits), or allow open choices to take the former",
    rule="003.2.7b",
)
SRC_ADDRESS = fault(
    "scalar.src-address",
    UndefinedBehavior,
    "STOREIND to Src: address {0:#x} is row {1}, outside the rows that it may write",
    remedy="SrcA: rows 4..67 (4..19 without SetOvrdWithAddr); SrcB: rows 0..15; an address is 4 * row + column / 4",
    rule="I.11",
)


@kernel
def l1_address(t: TileRecord, thread: Int, register: Int, offset: Int) -> Int:
    """Byte address of L1: the GPR in 16-byte units plus an offset in bytes, 32 bits."""
    return (np.int64(t.gpr[thread, register]) * L1_UNIT + offset) & WORD_BITS


@kernel
def _advance(t: TileRecord, thread: Int, half: Int, code: Int) -> None:
    """Post-increment of the offset half: 0, 2, 4 or 16 bytes."""
    step = L1_UNIT if code == 3 else 2 * code
    if step != 0:
        write_half(t, thread, half, read_half(t, thread, half) + step)


@instruction(Mode("16, 32, 16, 8 bits and 16 bytes, with post-increment", DOCUMENTED, rule="I.11"))
def LOADIND(
    t: TileRecord, thread: Int, SizeSel: Int, OffsetIndex: Int, AutoIncSpec: Int, DataRegIndex: Int, AddrRegIndex: Int
) -> Int:
    address = l1_address(t, thread, AddrRegIndex, read_half(t, thread, OffsetIndex))
    if address >= L1_SIZE:
        return refuse(t, OUT_OF_L1, address, L1_SIZE)
    _advance(t, thread, OffsetIndex, AutoIncSpec)  # first: the loaded data arrive later and win
    if SizeSel == QUAD:
        first = DataRegIndex & QUAD_REGISTER
        for i in range(4):
            t.gpr[thread, first + i] = t.l1_u32[(address // L1_UNIT) * 4 + i]
    elif SizeSel == WORD:
        t.gpr[thread, DataRegIndex] = t.l1_u32[address // 4]
    else:
        old = np.int64(t.gpr[thread, DataRegIndex])
        if SizeSel == HALF:
            new = (old & ~HALF_BITS) | np.int64(t.l1_u16[address // 2])
        else:
            new = (old & ~_BYTE_BITS) | np.int64(t.l1[address])
        t.gpr[thread, DataRegIndex] = np.uint32(new)
    return DONE


@kernel
def _store_l1(t: TileRecord, thread: Int, size: Int, offset_half: Int, increment: Int, data: Int, register: Int) -> Int:
    address = l1_address(t, thread, register, read_half(t, thread, offset_half))
    if address >= L1_SIZE:
        return refuse(t, OUT_OF_L1, address, L1_SIZE)
    if size in (WORD, HALF) and not open_choice(t, SIZE_CODE, size):
        return REFUSED
    _advance(t, thread, offset_half, increment)  # before the data are read, should it be the same GPR
    value = np.int64(t.gpr[thread, data])
    if size == QUAD:
        first = data & QUAD_REGISTER
        for i in range(4):
            t.l1_u32[(address // L1_UNIT) * 4 + i] = t.gpr[thread, first + i]
    elif size == WORD:
        t.l1_u32[address // 4] = np.uint32(value)
    elif size == HALF:
        t.l1_u16[address // 2] = np.uint16(value & HALF_BITS)
    else:
        t.l1[address] = np.uint8(value & _BYTE_BITS)
    return DONE


_OVERRIDE_WITH_ADDRESS: Final = thread_register("SRCA_SET_SetOvrdWithAddr")
_SRC_ADDRESS_BITS: Final = 0xFFFFF
_SRC_ADDRESS_LIMIT: Final = 0x10000
_SRC_ROWS: Final = 64
_BLOCK_ROWS: Final = 16
_SRCA_FIRST_ROW: Final = 4


@kernel
def _low_bf16_cell(word: Int) -> Int:
    """Src cell of the low half of a GPR, which holds {sign, mantissa 7, exponent 8}."""
    return ((word & 0xFF00) << 3) | (word & 0xFF)


@kernel
def _high_bf16_cell(word: Int) -> Int:
    """Src cell of the high half of a GPR, which holds BF16 in its usual order."""
    return ((word >> 31) << 18) | (((word >> 16) & 0x7F) << 11) | ((word >> 23) & 0xFF)


@kernel
def _store_src(
    t: TileRecord, thread: Int, which: Int, offset_half: Int, increment: Int, data: Int, register: Int
) -> Int:
    """Four BF16 datums of two GPRs to the unpacker's bank; SrcA rows below 4 are dropped (U9)."""
    bank = t.unpack.bank[which]
    if t.src_owner[which, bank] != UNPACKER:
        return WAIT
    address = (np.int64(t.gpr[thread, register]) + (read_half(t, thread, offset_half) >> 4)) & _SRC_ADDRESS_BITS
    row = address >> 2
    if which == SRCA:
        row -= _SRCA_FIRST_ROW
    moves = which == SRCB or thread_field(t, thread, _OVERRIDE_WITH_ADDRESS) == 0
    last = row
    if moves and row >= 0:
        last = row + np.int64(t.unpack.src_row[thread, which])
    if address >= _SRC_ADDRESS_LIMIT or (moves and row >= _BLOCK_ROWS) or last >= _SRC_ROWS:
        return refuse(t, SRC_ADDRESS, address, address >> 2)
    first = data & QUAD_REGISTER
    low, high = np.int64(t.gpr[thread, first]), np.int64(t.gpr[thread, first + 1])
    _advance(t, thread, offset_half, increment)
    if row < 0:
        return DONE
    column = 4 * (address & 3)
    cells = t.srca if which == SRCA else t.srcb
    cells[bank, last, column] = np.uint32(_low_bf16_cell(low))
    cells[bank, last, column + 1] = np.uint32(_high_bf16_cell(low))
    cells[bank, last, column + 2] = np.uint32(_low_bf16_cell(high))
    cells[bank, last, column + 3] = np.uint32(_high_bf16_cell(high))
    return DONE


@kernel
def _store_mmio(t: TileRecord, thread: Int, offset_half: Int, increment: Int, data: Int, register: Int) -> Int:
    """The GPR plus the offset in sixteenths, in a window of 1 MiB that repeats (003.2.7d)."""
    address = np.int64(t.gpr[thread, register]) + (read_half(t, thread, offset_half) >> 4)
    status = mmio_store(t, TENSIX, MMIO_BASE + (address & _MMIO_OFFSET), np.int64(t.gpr[thread, data]))
    if status == DONE:
        _advance(t, thread, offset_half, increment)
    return status  # type: ignore[no-any-return]  # a record's field


@instruction(
    Mode("L1, 16 bytes or 8 bits", DOCUMENTED, rule="I.11"),
    Mode("L1, 32 or 16 bits", OPEN, rule="003.2.7b"),
    Mode("Src", DOCUMENTED, rule="I.11"),
    Mode("MMIO: overlay streams", DOCUMENTED, rule="003.2.7d"),
    Mode("MMIO: TDMA-RISC", OPEN, rule="tile T24"),
    Mode("MMIO: NIU, control, PIC and other devices", DOCUMENTED, rule="tile T24"),
)
def STOREIND(
    t: TileRecord,
    thread: Int,
    MemHierSel: Int,
    SizeSel: Int,
    Size: Int,
    StoreToSrcB: Int,
    OffsetIndex: Int,
    AutoIncSpec: Int,
    DataRegIndex: Int,
    AddrRegIndex: Int,
) -> Int:
    if MemHierSel:
        return _store_l1(t, thread, Size, OffsetIndex, AutoIncSpec, DataRegIndex, AddrRegIndex)
    if SizeSel:
        return _store_mmio(t, thread, OffsetIndex, AutoIncSpec, DataRegIndex, AddrRegIndex)
    return _store_src(t, thread, StoreToSrcB, OffsetIndex, AutoIncSpec, DataRegIndex, AddrRegIndex)


@instruction(
    Mode("overlay streams", DOCUMENTED, rule="I.11"),
    Mode("TDMA-RISC", OPEN, rule="tile T24"),
    Mode("NIU, control, PIC and other devices", DOCUMENTED, rule="tile T24"),
)
def LOADREG(t: TileRecord, thread: Int, TdmaDataRegIndex: Int, RegAddr: Int) -> Int:
    status, value = mmio_load(t, TENSIX, MMIO_BASE + 4 * RegAddr)
    if status == DONE:
        t.gpr[thread, TdmaDataRegIndex] = np.uint32(value)
    return status


@instruction(
    Mode("overlay streams", DOCUMENTED, rule="I.11"),
    Mode("TDMA-RISC", OPEN, rule="tile T24"),
    Mode("NIU, control, PIC and other devices", DOCUMENTED, rule="tile T24"),
)
def STOREREG(t: TileRecord, thread: Int, TdmaDataRegIndex: Int, RegAddr: Int) -> Int:
    return mmio_store(t, TENSIX, MMIO_BASE + 4 * RegAddr, np.int64(t.gpr[thread, TdmaDataRegIndex]))  # type: ignore[no-any-return]  # a record's field


@instruction(Mode("any condition", DOCUMENTED, rule="I.11"))
def FLUSHDMA(t: TileRecord, thread: Int) -> Int:
    return DONE
