"""Between Dst and LRegs: SFPLOAD, SFPSTORE (math V2, V7, V8).

Four rows of Dst are 32 pairs of neighbouring columns, so that pair l of the four rows is lane l's even and odd column:
an access needs no gather, it takes one half of each 32-bit pair.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.errors import MissingSpecification, NonContractualBehavior
from bhemu.isa.registers import config
from bhemu.isa.registers import thread as thread_register
from bhemu.machine.config_access import config_bank, config_field, thread_field
from bhemu.machine.counters import RWC_DST
from bhemu.machine.dst import DST_ROWS, bf16_of_cell, cell_of_bf16, high_row
from bhemu.machine.faults import DONE, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import as_integers, iota32, load32, mask32, shift_right_logical, splat32, store32, where
from bhemu.machine.types import Int, Lanes, TileRecord
from bhemu.tensix.instruction import DOCUMENTED, VERIFIED, Mode, instruction
from bhemu.tensix.lane_settings import ALL_LANES, lanes_with
from bhemu.tensix.rwc import apply_address_modifier_keep_fidelity
from bhemu.tensix.vector.registers import (
    BLOCK_DEST_RD,
    BLOCK_DEST_WR,
    CAPTURE_DEFAULT_DEST_INDEX,
    DEST_RD_ODD,
    DEST_WR_ODD,
    ENABLE_DEST_INDEX,
    ENABLE_FP16A_INF,
    FIRST_CONSTANT,
    FIRST_TEMPLATE,
    SIGN,
    capture,
    enabled_bits,
)
from bhemu.tensix.vector_queue import EXECUTE

ALL_ROWS_VALID: Final = 0x01010101
"""Valid bytes of four rows."""

MATH_OFFSET: Final = thread_register("DEST_TARGET_REG_CFG_MATH_Offset")
STACK_INCR: Final = thread_register("SFPU_STACK_Incr")
STACK_BASE: Final = config("DEST_SP_BASE_Base")
FP32_ENABLED: Final = config("ALU_ACC_CTRL_SFPU_Fp32_enabled")
SRCB_FORMAT: Final = config("ALU_FORMAT_SPEC_REG1_SrcB")
SRCB_OVERRIDE: Final = config("ALU_FORMAT_SPEC_REG_SrcB_override")
SRCB_OVERRIDE_FORMAT: Final = config("ALU_FORMAT_SPEC_REG_SrcB_val")
OWN_FORMAT_ENABLE: Final = thread_register("SFPU_DEST_FMT_Enable")
OWN_FORMAT: Final = thread_register("SFPU_DEST_FMT_Base")

# Mod0 (V8)
FROM_SRCB: Final = 0
FP16: Final = 1
BF16: Final = 2
FP32: Final = 3
INT32: Final = 4
INT8: Final = 5
UINT16: Final = 6
HI16: Final = 7
INT16: Final = 8
LO16: Final = 9
STACK: Final = 10
NOTHING: Final = 11
INT32_SM: Final = 12
INT8_COMP: Final = 13
LO16_ONLY: Final = 14
HI16_ONLY: Final = 15

_BF16_FORMATS: Final = 0b1000_0011_1111_0001
"""Data formats of SrcB that make Mod0 = 0 mean BF16: 0, 4..9, 15 (V7)."""

ODD_ADDRESS = fault(
    "vector.odd-address",
    NonContractualBehavior,
    "Dst address {0} (dest_reg_addr {1} + RWC.Dst + math offset) is odd: bit 0 selects nothing",
    remedy="use even addresses: bits 9:2 select four rows, bit 1 the odd columns",
    rule="math V2",
)
CONSTANT_TARGET = fault(
    "vector.load-to-constant",
    MissingSpecification,
    "destination register {0}: a load cannot write LReg 12..15, and no source says that it records a template",
    remedy="load LReg 0..7; write constants and templates with SFPCONFIG",
    rule="math V1",
)


@kernel
def format_mode(t: TileRecord, thread: Int, mode: Int) -> Int:
    """Mod0, with 0 resolved by the configuration (V7)."""
    if mode != FROM_SRCB:
        return mode
    bank = config_bank(t, thread)
    if config_field(t, bank, FP32_ENABLED):
        return FP32
    code = config_field(t, bank, SRCB_FORMAT)
    if thread_field(t, thread, OWN_FORMAT_ENABLE):
        code = thread_field(t, thread, OWN_FORMAT)
    elif config_field(t, bank, SRCB_OVERRIDE):
        code = config_field(t, bank, SRCB_OVERRIDE_FORMAT)
    return BF16 if (_BF16_FORMATS >> code) & 1 else FP16


@kernel
def dst_address(t: TileRecord, thread: Int, offset: Int) -> Int:
    """Dst address of an access: bits 9:2 choose four rows, bit 1 the odd columns (V2)."""
    return (offset + np.int64(t.rwc[thread, RWC_DST]) + thread_field(t, thread, MATH_OFFSET)) % DST_ROWS


@kernel
def high_group(address: Int) -> Int:
    """Group of four physical rows with the high halves of four 32-bit rows; low halves are 2 groups further (I.3)."""
    return high_row(address) >> 2


@kernel
def _valid_pairs(t: TileRecord, group: Int, valid_group: Int) -> Lanes:
    """The 32 column pairs of four rows; invalid rows read as zero (I.3)."""
    pairs = load32(t.dst_u32, group)
    valid = np.int64(t.dst_valid_u32[valid_group])
    if valid != ALL_ROWS_VALID:
        pairs = where(mask32(valid * 0xFF), pairs, 0)  # a valid byte of 1 becomes the eight lanes of the row
    return pairs


@kernel
def _from_fp16_cell(cell: Lanes, infinity: Int) -> Lanes:
    """FP16 cells as FP32; in the lanes of the bits `infinity` the largest number means infinity."""
    exponent = cell & 0x1F
    mantissa = shift_right_logical(cell, 5) & 0x3FF
    wide = where(exponent == 0, 0, exponent + 112)
    if infinity:
        top = ((cell & 0x7FFF) == 0x7FFF) & mask32(infinity)
        wide = where(top, 255, wide)
        mantissa = where(top, 0, mantissa)
    return ((cell & 0x8000) << 16) | (wide << 23) | (mantissa << 13)


@kernel
def _to_fp16_cell(v: Lanes) -> Lanes:
    exponent = (shift_right_logical(v, 23) & 0xFF) - 112
    rest = (shift_right_logical(v, 8) & 0x7FE0) | exponent
    rest = where(exponent > 31, 0x7FFF, where(exponent <= 0, 0, rest))
    return (shift_right_logical(v, 16) & 0x8000) | rest


@kernel
def flush(v: Lanes) -> Lanes:
    """Exponent field 0 becomes a zero of the same sign."""
    return where((v & 0x7F800000) == 0, v & SIGN, v)


@kernel
def _is_32bit(mode: Int) -> bool:
    return mode in (FP32, INT32, INT32_SM, STACK)


@kernel
def _loaded(t: TileRecord, mode: Int, address: Int, odd: bool, old: Lanes) -> Lanes:
    """What SFPLOAD gives to the LReg that holds `old` (V8)."""
    shift = 16 if odd else 0
    if _is_32bit(mode):
        group = high_group(address)
        high = shift_right_logical(_valid_pairs(t, group, group), shift) & 0xFFFF
        low = shift_right_logical(_valid_pairs(t, group + 2, group), shift) & 0xFFFF
        return (bf16_of_cell(high) << 16) | low
    cell = shift_right_logical(_valid_pairs(t, address >> 2, address >> 2), shift) & 0xFFFF
    if mode == BF16:
        return bf16_of_cell(cell) << 16
    if mode == FP16:
        return _from_fp16_cell(cell, lanes_with(t, ENABLE_FP16A_INF))
    if mode == LO16_ONLY:
        return (old & -0x10000) | cell
    if mode == HI16_ONLY:
        return (old & 0xFFFF) | (cell << 16)
    if mode == HI16:
        return cell << 16
    if mode == INT8:
        return ((cell & 0x8000) << 16) | (shift_right_logical(cell, 5) & 0xFF)
    if mode == INT8_COMP:
        return ((cell & 0x8000) << 16) | (shift_right_logical(cell, 5) & 0x3FF)
    if mode == INT16:
        return ((cell & 0x8000) << 16) | (cell & 0x7FFF)
    if mode == NOTHING:
        return splat32(0)
    return cell  # UINT16, LO16


@kernel
def write_lanes(t: TileRecord, register: Int, value: Lanes, bits: Int) -> None:
    if bits != ALL_LANES:
        value = where(mask32(bits), value, load32(t.lregs, register))
    store32(t.lregs, register, value)


@kernel
def _address(t: TileRecord, thread: Int, mode: Int, offset: Int, pointer: Int) -> Int:
    """V7: the Dst address with the stack pointer's part."""
    if mode == STACK:
        base = config_field(t, config_bank(t, thread), STACK_BASE)
        row = np.int64(t.rwc[thread, RWC_DST]) & 3
        return (offset + thread_field(t, thread, MATH_OFFSET) + pointer + base + row) % DST_ROWS
    return (dst_address(t, thread, offset) + (pointer & 3)) % DST_ROWS


@kernel
def _popped(t: TileRecord, thread: Int, mode: Int) -> Int:
    """Stack pointer that a load uses: the stack form takes an entry off first, if there is one (V7)."""
    pointer = np.int64(t.vector.dst_stack_pointer[thread])
    if mode == STACK and pointer != 0:
        pointer = (pointer - thread_field(t, thread, STACK_INCR)) % DST_ROWS
    return pointer


@kernel
def load_address(t: TileRecord, thread: Int, instr_mod0: Int, offset: Int) -> Int:
    """Dst address that `load` will read."""
    mode = format_mode(t, thread, instr_mod0)
    return _address(t, thread, mode, offset, _popped(t, thread, mode))


@kernel
def load(t: TileRecord, thread: Int, lreg_ind: Int, instr_mod0: Int, sfpu_addr_mode: Int, dest_reg_addr: Int) -> Int:
    """SFPLOAD, and the first part of SFPLOADMACRO; returns a status."""
    mode = format_mode(t, thread, instr_mod0)
    pointer = _popped(t, thread, mode)
    address = _address(t, thread, mode, dest_reg_addr, pointer)
    if (address | dest_reg_addr) & 1:
        return refuse(t, ODD_ADDRESS, address, dest_reg_addr)
    if lreg_ind >= FIRST_TEMPLATE:
        return refuse(t, CONSTANT_TARGET, lreg_ind)
    status = apply_address_modifier_keep_fidelity(t, thread, sfpu_addr_mode)
    if status != DONE:
        return status
    if mode == STACK:
        t.vector.dst_stack_pointer[thread] = pointer
    blocked = lanes_with(t, BLOCK_DEST_RD)
    if lreg_ind < FIRST_CONSTANT and blocked != ALL_LANES:
        bits = (np.int64(ALL_LANES) if mode == STACK else enabled_bits(t)) & ~blocked
        always_odd = lanes_with(t, DEST_RD_ODD)
        value = _loaded(t, mode, address, (address & 2) != 0 or always_odd == ALL_LANES, load32(t.lregs, lreg_ind))
        if always_odd != 0 and always_odd != ALL_LANES and not address & 2:
            value = where(mask32(always_odd), _loaded(t, mode, address, True, load32(t.lregs, lreg_ind)), value)
        write_lanes(t, lreg_ind, value, bits)
        if lreg_ind < 4:
            indexed = bits & lanes_with(t, ENABLE_DEST_INDEX) & lanes_with(t, CAPTURE_DEFAULT_DEST_INDEX)
            if indexed != 0:
                lanes = iota32()
                odd = as_integers(mask32(always_odd | (ALL_LANES if address & 2 else 0)))
                row = (lanes >> 3) + (address & ~3)
                write_lanes(t, lreg_ind + 4, (row << 4) | ((lanes & 7) << 1) | odd, indexed)
    return DONE


@instruction(
    Mode("format from configuration (Mod0 0): FP16, BF16, FP32", VERIFIED, vectors="sfpu:SFPLOAD:0", rule="math V7"),
    Mode("BF16", VERIFIED, vectors="sfpu:SFPLOAD:2", rule="math V8"),
    Mode("FP32", VERIFIED, vectors="sfpu:SFPLOAD:3", rule="math V8"),
    Mode("INT32", VERIFIED, vectors="sfpu:SFPLOAD:4", rule="math V8"),
    Mode("UINT16", VERIFIED, vectors="sfpu:SFPLOAD:6", rule="math V8"),
    Mode("INT32 (Mod0 12)", VERIFIED, vectors="sfpu:SFPLOAD:12", rule="math V8"),
    Mode("into the low half", VERIFIED, vectors="sfpu:SFPLOAD:14", rule="math V8"),
    Mode("into the high half", VERIFIED, vectors="sfpu:SFPLOAD:15", rule="math V8"),
    Mode("FP16, INT8, HI16, INT16, LO16, zero, INT8 (Mod0 1, 5, 7, 8, 9, 11, 13)", DOCUMENTED, rule="math V8"),
    Mode("stack (Mod0 10)", DOCUMENTED, rule="math V7"),
    Mode("LaneConfig: FP16 infinity, blocked loads, odd columns, index capture", DOCUMENTED, rule="math V5"),
)
def SFPLOAD(t: TileRecord, thread: Int, lreg_ind: Int, instr_mod0: Int, sfpu_addr_mode: Int, dest_reg_addr: Int) -> Int:
    return load(t, thread, lreg_ind, instr_mod0, sfpu_addr_mode, dest_reg_addr)


@kernel
def _cell(mode: Int, v: Lanes) -> Lanes:
    """The 16-bit cell that SFPSTORE writes in the modes of the 16-bit view (V8)."""
    if mode == BF16:
        return cell_of_bf16(shift_right_logical(flush(v), 16))
    if mode == FP16:
        return _to_fp16_cell(v)
    if mode in (INT8, INT8_COMP):
        return (shift_right_logical(v, 16) & 0x8000) | ((v & 0x3FF) << 5) | 16
    if mode == HI16_ONLY:
        return shift_right_logical(v, 16)
    if mode == INT16:
        return (shift_right_logical(v, 16) & 0x8000) | (v & 0x7FFF)
    if mode == NOTHING:
        return splat32(0)
    return v & 0xFFFF  # UINT16, LO16_ONLY


@kernel
def _put(t: TileRecord, group: Int, odd: bool, cell: Lanes, bits: Int) -> None:
    """Write one half of each column pair of a group of four rows."""
    old = load32(t.dst_u32, group)
    new = (cell << 16) | (old & 0xFFFF) if odd else cell | (old & -0x10000)
    if bits != ALL_LANES:
        new = where(mask32(bits), new, old)
    store32(t.dst_u32, group, new)


@kernel
def _make_valid(t: TileRecord, group: Int, bits: Int) -> None:
    """Rows of the group that a lane of `bits` writes become valid (I.3)."""
    if bits == ALL_LANES:
        t.dst_valid_u32[group] = np.uint32(ALL_ROWS_VALID)
    else:
        for row in range(4):
            if (bits >> (8 * row)) & 0xFF:
                t.dst_valid[4 * group + row] = 1


@kernel
def _store_lanes(t: TileRecord, mode: Int, address: Int, v: Lanes, bits: Int, odd: bool) -> None:
    if not (_is_32bit(mode) or mode in (HI16, LO16)):
        group = address >> 2
        _put(t, group, odd, _cell(mode, v), bits)
        _make_valid(t, group, bits)
        return
    high = shift_right_logical(v, 16)
    low = v & 0xFFFF
    if mode == LO16:
        high, low = low, high
    elif mode == FP32:
        flushed = flush(v)
        high = cell_of_bf16(shift_right_logical(flushed, 16))
        low = flushed & 0xFFFF
    elif mode != HI16:
        high = cell_of_bf16(high)
    group = high_group(address)
    _put(t, group, odd, high, bits)
    _put(t, group + 2, odd, low, bits)
    _make_valid(t, group, bits)


@kernel
def store_lanes(t: TileRecord, mode: Int, address: Int, v: Lanes, bits: Int) -> None:
    """Write the lanes `bits` of `v` to Dst (V8)."""
    always_odd = lanes_with(t, DEST_WR_ODD)
    if always_odd != 0 and always_odd != ALL_LANES and not address & 2:
        _store_lanes(t, mode, address, v, bits & always_odd, True)
        bits &= ~always_odd
    _store_lanes(t, mode, address, v, bits, (address & 2) != 0 or always_odd == ALL_LANES)


@instruction(
    Mode("format from configuration (Mod0 0): FP16, BF16, FP32", VERIFIED, vectors="sfpu:SFPSTORE:0", rule="math V7"),
    Mode("BF16", VERIFIED, vectors="sfpu:SFPSTORE:2", rule="math V8"),
    Mode("FP32", VERIFIED, vectors="sfpu:SFPSTORE:3", rule="math V8"),
    Mode("INT32", VERIFIED, vectors="sfpu:SFPSTORE:4", rule="math V8"),
    Mode("UINT16", VERIFIED, vectors="sfpu:SFPSTORE:6", rule="math V8"),
    Mode("HI16", VERIFIED, vectors="sfpu:SFPSTORE:7", rule="math V8"),
    Mode("LO16", VERIFIED, vectors="sfpu:SFPSTORE:9", rule="math V8"),
    Mode("INT32 (Mod0 12)", VERIFIED, vectors="sfpu:SFPSTORE:12", rule="math V8"),
    Mode("low half", VERIFIED, vectors="sfpu:SFPSTORE:14", rule="math V8"),
    Mode("high half", VERIFIED, vectors="sfpu:SFPSTORE:15", rule="math V8"),
    Mode("FP16, INT8, INT16, zero, INT8 (Mod0 1, 5, 8, 11, 13)", DOCUMENTED, rule="math V8"),
    Mode("stack (Mod0 10)", DOCUMENTED, rule="math V7"),
    Mode("LaneConfig: blocked stores, odd columns; LReg 12..15 records a template", DOCUMENTED, rule="math V5"),
)
def SFPSTORE(
    t: TileRecord, thread: Int, lreg_ind: Int, instr_mod0: Int, sfpu_addr_mode: Int, dest_reg_addr: Int, word: Int
) -> Int:
    mode = format_mode(t, thread, instr_mod0)
    address = _address(t, thread, mode, dest_reg_addr, np.int64(t.vector.dst_stack_pointer[thread]))
    if (address | dest_reg_addr) & 1:
        return refuse(t, ODD_ADDRESS, address, dest_reg_addr)
    execute = True
    if lreg_ind >= FIRST_TEMPLATE:
        status = capture(t, lreg_ind, word)
        if status != EXECUTE and status != DONE:
            return status
        execute = status == EXECUTE
    status = apply_address_modifier_keep_fidelity(t, thread, sfpu_addr_mode)
    if status != DONE:
        return status
    if execute:
        bits = (np.int64(t.vector.acting_lanes) if mode == STACK else enabled_bits(t)) & ~lanes_with(t, BLOCK_DEST_WR)
        store_lanes(t, mode, address, load32(t.lregs, lreg_ind), bits)
    if mode == STACK:
        step = thread_field(t, thread, STACK_INCR)
        t.vector.dst_stack_pointer[thread] = (np.int64(t.vector.dst_stack_pointer[thread]) + step) % DST_ROWS
    return DONE
