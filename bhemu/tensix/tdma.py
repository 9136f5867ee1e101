"""TDMA-RISC: commands for the mover, registers for PACR_SETREG, and what packer and unpackers report (tile K30, E17).

A command is executed when it is enqueued, so its queue is always empty and the mover never busy.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.errors import MemoryError_, MissingSpecification, UndefinedBehavior
from bhemu.isa.memory_map import region
from bhemu.isa.tile_registers import offset_of, tile_register
from bhemu.machine.agents import NC, T0, T2, TENSIX
from bhemu.machine.faults import DONE, REFUSED, fault, open_choice, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.state import L1_SIZE, THREADS
from bhemu.machine.types import Bool, Int, TileRecord
from bhemu.tensix.mover import L1_TO_CONFIG, L1_TO_L1, SIZE_BITS, move

# Offsets of registers
_PARAMETERS_END: Final = tile_register("tdma", "MOVER_PARAMETER").offsets[-1] + 4
COMMAND: Final = offset_of("tdma", "COMMAND")
STATUS: Final = offset_of("tdma", "STATUS")
TILE_SIZE: Final = offset_of("tdma", "TILE_SIZE")
ACCUMULATED_SIZE: Final = offset_of("tdma", "ACCUMULATED_SIZE")
ZERO_FLAGS: Final = offset_of("tdma", "ZERO_FLAGS")
CLOCK_GATES: Final = offset_of("tdma", "CLOCK_GATES")
HYSTERESIS: Final = offset_of("tdma", "HYSTERESIS")
MOVE_BASE: Final = offset_of("tdma", "MOVE_BASE")
FIFO_SIZE: Final = offset_of("tdma", "FIFO_SIZE")
FIFO_FLAGS: Final = offset_of("tdma", "FIFO_FLAGS")
PACK_ADDRESSES: Final = offset_of("tdma", "PACK_ADDRESSES")
SCALERS: Final = offset_of("tdma", "SCALERS")
SCALERS_1: Final = offset_of("tdma", "SCALERS_1")

(_PACKERS, _PACKER_STRIDE), (_, _THREAD_STRIDE) = tile_register("tdma", "TILE_SIZE").repeat
_TDMA: Final = region("tdma").base
_WORD_BITS: Final = 0xFFFFFFFF
_HALF_BITS: Final = 0xFFFF

IDLE_STATUS: Final = 0x428
"""Both queues empty, four places free, the mover idle."""
_CLOCK_GATES_KEPT: Final = 0xFFFFFF7F
_HYSTERESIS_KEPT: Final = 0x01FF007F
_SCALER_BITS: Final = 0x1FF
_RESET_PACKER_0: Final = 1 << 16

# Commands
_MOVE: Final = 0x40
_WAIT_FOR_MOVER: Final = 0x46
_WRITE_L1: Final = 0x66
_NOTHING: Final = 0x89
_COMPACT: Final = 1 << 31
_COMPACT_L1: Final = 1 << 30
_WRITE_BITS: Final = 0x600  # must be set in an L1 write
_WRITE_TWO: Final = 0x100

NO_REGISTER = fault(
    "tdma.register",
    UndefinedBehavior,
    "TDMA-RISC has no register at {0:#x}",
    remedy="its registers are at offsets 0x00 to 0x3c, some again for each packer and thread (tile K30)",
    rule="tile K30",
)
UNREACHABLE = fault(
    "tdma.unreachable",
    UndefinedBehavior,
    "TDMA-RISC ({0:#x}) is not mapped for core NC and the NoC",
    remedy="access it from core B, T0, T1 or T2",
    rule="tile T24",
)
FROM_TENSIX = fault(
    "tdma.from-tensix",
    MissingSpecification,
    "the coprocessor accesses TDMA-RISC ({0:#x}): Blackhole's memory map does not map it there, and the pages of the "
    "instructions, which are Wormhole's, allow it",
    remedy="access it from core B, T0, T1 or T2, or allow open choices to have it mapped",
    rule="tile T24",
)
OTHER_PACKER = fault(
    "tdma.other-packer",
    MissingSpecification,
    "{0:#x} belongs to packer {1}, and Blackhole has one packer: no source says what its register does",
    remedy="use the registers of packer 0, or allow open choices to have packers 1 to 3 report zeros",
    rule="tile K30",
)
METADATA_FIFO = fault(
    "tdma.metadata-fifo",
    MissingSpecification,
    "{0:#x} is the packer's metadata FIFO, whose depth is not documented",
    remedy="read tile sizes and zero flags with SETDMAREG, or at offsets 0x18, 0x1c and 0x20",
    rule="000.1.1h",
)
NO_MOVE_BASE = fault(
    "tdma.move-base",
    MissingSpecification,
    "only cores B, T0, T1 and T2 have a base for compact moves",
    remedy="store the base from the core that enqueues the move",
    rule="tile K30",
)
NO_COMMAND = fault(
    "tdma.command",
    UndefinedBehavior,
    "TDMA-RISC has no command {0:#010x}",
    remedy="0x40 moves, 0x46 waits for the mover, 0x66 (with bits 10:9 set, not compact) writes L1, 0x89 does nothing",
    rule="tile K30",
)
MOVER_NUMBER = fault(
    "tdma.mover-number",
    MissingSpecification,
    "command {0:#010x} names a mover other than 0: no source says that another mover exists",
    remedy="clear bits 30:8 of a move with parameters",
    rule="tile K30",
)
WRITE_ADDRESS = fault(
    "tdma.write-address",
    MemoryError_,
    "TDMA-RISC writes {1} bytes to {0:#x}, which is past the end of L1 ({2:#x}) or misaligned",
    remedy="parameter 0 of an L1 write is an aligned byte address",
    rule="tile K30",
)


@kernel
def _admit(t: TileRecord, agent: Int, offset: Int) -> Int:
    if agent == TENSIX:
        return DONE if open_choice(t, FROM_TENSIX, _base(offset)) else REFUSED
    if agent >= NC:
        return refuse(t, UNREACHABLE, _base(offset))
    return DONE


@kernel
def _base(offset: Int) -> Int:
    """The address that messages name."""
    return _TDMA + offset


@kernel
def _move_base(t: TileRecord, agent: Int) -> Int:
    """Units; a unit without a base of its own gets that of T0."""
    return np.int64(t.tdma_base[agent if agent <= T2 else T0])


@kernel
def _write_l1(t: TileRecord, command: Int) -> Int:
    """An L1 write: parameter 2, and parameter 3 above it when 64 bits are written."""
    address = np.int64(t.tdma_parameters[0])
    count = 8 if command & _WRITE_TWO else 4
    if address % count or address >= L1_SIZE:
        return refuse(t, WRITE_ADDRESS, address, count, L1_SIZE)
    t.l1_u32[address // 4] = t.tdma_parameters[2]
    if count == 8:
        t.l1_u32[address // 4 + 1] = t.tdma_parameters[3]
    return DONE


@kernel
def _execute(t: TileRecord, agent: Int, command: Int) -> Int:
    opcode = command & 0xFF
    compact = command & _COMPACT
    if opcode in (_WAIT_FOR_MOVER, _NOTHING):
        return DONE
    if opcode == _MOVE and compact:
        direction = L1_TO_L1 if command & _COMPACT_L1 else L1_TO_CONFIG
        source = (_move_base(t, agent) + ((command >> 8) & 0xFF)) & _WORD_BITS
        return move(t, (command >> 16) & 0xFF, source, (command >> 24) & 0x3F, direction)
    if opcode == _MOVE:
        if command >> 8:
            return refuse(t, MOVER_NUMBER, command)
        return move(
            t,
            np.int64(t.tdma_parameters[1]),
            np.int64(t.tdma_parameters[0]),
            np.int64(t.tdma_parameters[2]) & SIZE_BITS,
            np.int64(t.tdma_parameters[3]) & 3,
        )
    if opcode == _WRITE_L1 and not compact and command & _WRITE_BITS == _WRITE_BITS:
        return _write_l1(t, command)
    return refuse(t, NO_COMMAND, command)


@kernel
def _set_scalers(t: TileRecord, first: Int, value: Int) -> None:
    """Three scalers of nine bits each, as far as there are."""
    for i in range(3):
        if first + i < 4:
            t.pack.setreg_scaler[first + i] = np.uint32((value >> (9 * i)) & _SCALER_BITS)


@kernel
def _scalers(t: TileRecord, unpacker: Int) -> Int:
    """Three scalers; bits 30:27 are busy packers, which none is; bit 31 belongs to the unpacker's message sum."""
    value = np.int64(0)
    for i in range(3):
        value |= np.int64(t.pack.setreg_scaler[i]) << (9 * i)
    return value | (((np.int64(t.unpack.accumulator[unpacker]) >> 16) & 1) << 31)


@kernel
def _set_pack_addresses(t: TileRecord, value: Int) -> None:
    """Two register bases of PACR_SETREG: 10 low bits each from bit 0 up, 2 high bits each from bit 20 up."""
    for i in range(2):
        low, high = (value >> (10 * i)) & 0x3FF, (value >> (20 + 2 * i)) & 3
        t.pack.setreg_base[i] = np.uint32((high << 18) | (low << 2))


@kernel
def _reset_sizes(t: TileRecord, value: Int) -> None:
    """Bits 19:16 name packers, of which there is one: its accumulated sizes restart, and it gets an offset."""
    if value & _RESET_PACKER_0:
        for i in range(THREADS):
            t.pack.acc_tile_size[i] = 0
        t.pack.l1_dest_addr_offset = value & _HALF_BITS


@kernel
def _report(t: TileRecord, packer: Int, place: Int) -> Int:
    """Tile sizes and zero flags; `place` is the offset inside a packer's block, 0x40 a thread."""
    thread = place // _THREAD_STRIDE
    register = place % _THREAD_STRIDE
    if register == ZERO_FLAGS:
        return np.int64(t.pack.all_zero_flags) & _WORD_BITS if packer == 0 else np.int64(0)
    if register == TILE_SIZE:
        if packer != 0 or t.pack.last_thread != thread:
            return np.int64(0)
        return np.int64(t.pack.last_tile_size) & _WORD_BITS
    size = np.int64(t.pack.acc_tile_size[thread]) & _HALF_BITS if packer == 0 else np.int64(0)
    return ((np.int64(t.unpack.accumulator[packer & 1]) & _HALF_BITS) << 16) | size


@kernel
def _is_report(offset: Int) -> bool:
    """Registers that a packer has, by thread: tile size, accumulated size; and its zero flags."""
    place = offset % _PACKER_STRIDE
    register = place % _THREAD_STRIDE
    if offset >= _PACKERS * _PACKER_STRIDE or place >= THREADS * _THREAD_STRIDE:
        return False
    return register in (TILE_SIZE, ACCUMULATED_SIZE) or place == ZERO_FLAGS


@kernel
def _is_fifo(offset: Int) -> Bool:
    return offset < _PACKERS * _PACKER_STRIDE and offset % _PACKER_STRIDE in (FIFO_SIZE, FIFO_FLAGS)


@kernel
def load_tdma(t: TileRecord, agent: Int, offset: Int) -> tuple[Int, Int]:
    """(status, value) of a load from TDMA-RISC, 0 <= offset < 0x1000, a multiple of 4."""
    none = np.int64(0)
    if _admit(t, agent, offset) != DONE:
        return REFUSED, none
    if offset <= COMMAND:
        return DONE, none
    if offset == STATUS:
        return DONE, np.int64(IDLE_STATUS)
    if offset == CLOCK_GATES:
        return DONE, np.int64(t.tdma_clock_gates)
    if offset == HYSTERESIS:
        return DONE, np.int64(t.tdma_hysteresis)
    if offset == MOVE_BASE:
        return DONE, _move_base(t, agent)
    if offset in (SCALERS, SCALERS_1):
        return DONE, _scalers(t, 0 if offset == SCALERS else 1)
    if offset == PACK_ADDRESSES or _is_fifo(offset):
        return refuse(t, METADATA_FIFO, _base(offset)), none
    if not _is_report(offset):
        return refuse(t, NO_REGISTER, _base(offset)), none
    packer = offset // _PACKER_STRIDE
    if packer != 0 and not open_choice(t, OTHER_PACKER, _base(offset), packer):
        return REFUSED, none
    return DONE, _report(t, packer, offset % _PACKER_STRIDE)


@kernel
def store_tdma(t: TileRecord, agent: Int, offset: Int, value: Int) -> Int:
    """Store 32 bits to TDMA-RISC, 0 <= offset < 0x1000, a multiple of 4. Returns a status."""
    if _admit(t, agent, offset) != DONE:
        return REFUSED
    if offset < _PARAMETERS_END:
        t.tdma_parameters[offset // 4] = np.uint32(value)
    elif offset == COMMAND:
        return _execute(t, agent, value)
    elif offset == CLOCK_GATES:
        t.tdma_clock_gates = np.uint32(value & _CLOCK_GATES_KEPT)
    elif offset == HYSTERESIS:
        t.tdma_hysteresis = np.uint32(value & _HYSTERESIS_KEPT)
        _set_scalers(t, 3, value >> 16)
    elif offset == MOVE_BASE:
        if agent > T2:
            return refuse(t, NO_MOVE_BASE)
        t.tdma_base[agent] = np.uint32(value)
    elif offset == PACK_ADDRESSES:
        _set_pack_addresses(t, value)
    elif offset in (SCALERS, SCALERS_1):
        _set_scalers(t, 0, value)
    elif _is_fifo(offset):
        # A store to the zero flags' end takes an entry off, one to the size's end does nothing.
        return refuse(t, METADATA_FIFO, _base(offset))
    elif offset == STATUS:
        return DONE
    elif not _is_report(offset):
        return refuse(t, NO_REGISTER, _base(offset))
    elif offset % _THREAD_STRIDE == ACCUMULATED_SIZE:
        packer = offset // _PACKER_STRIDE
        if packer != 0 and not open_choice(t, OTHER_PACKER, _base(offset), packer):
            return REFUSED
        _reset_sizes(t, value)
    return DONE
