"""Opcodes that have lost their function on Blackhole, and undefined opcodes (math F32)."""

from __future__ import annotations

from typing import Any, Final

from bhemu.errors import MissingSpecification
from bhemu.machine.faults import DONE, REFUSED, WAIT, fault, open_choice, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import splat16
from bhemu.machine.types import AnyInt, Int, TileRecord
from bhemu.tensix.banks import SRCA, hand_back
from bhemu.tensix.instruction import OPEN, Mode, instruction
from bhemu.tensix.matrix.decode import settings
from bhemu.tensix.matrix.dst import accumulate_one, load_int32, store_int32
from bhemu.tensix.matrix.fidelity import exponent_bias
from bhemu.tensix.matrix.operands import (
    INT8_STYLE,
    NO_STYLE,
    arithmetic_style,
    code_a,
    code_b,
    dst_row,
    fidelity_phase,
    owns_a,
    owns_b,
    srca_row,
    view_of,
)
from bhemu.tensix.matrix.pool import pool
from bhemu.tensix.rwc import apply_address_modifier

_DST_ROWS: Final = 0x3FF
_MODIFIERS: Final = 7
_CONVOLUTION_ROWS: Final = 8
_POOL_ROWS: Final = 4

ADDS_ZERO = fault(
    "matrix.adds-zero",
    MissingSpecification,
    "legacy opcode: documents say `Dst += 0` and not for how many rows, nor which banks it waits for",
    remedy="drop it, or allow open choices to have it act as MVMUL or GAPOOL with SrcA zero",
    rule="math F32",
)
POOLS_ZERO = fault(
    "matrix.pools-zero",
    MissingSpecification,
    "legacy opcode: documents describe it as similar to GMPOOL with SrcA zero",
    remedy="use GMPOOL, or allow open choices to have it act as GMPOOL with SrcA zero",
    rule="math F32",
)
LEGACY_BITS = fault(
    "matrix.legacy-bits",
    MissingSpecification,
    "legacy opcode with operand bits {0:#x} beyond ten of dst and three of the address modifier",
    remedy="clear them",
    rule="math F32",
)
UNDEFINED_OPCODE = fault(
    "matrix.undefined-opcode",
    MissingSpecification,
    "no source says what this opcode does",
    remedy="do without it; TRNSPSRCB, SHIFTXB and the packer's edge masks are described",
    rule="math F32",
)


@kernel
def _add_zero(t: TileRecord, thread: Int, clear_dvalid: Int, address_modifier: Int, dst: Int, count: Int) -> Int:
    """`Dst += 0` for `count` rows, as MVMUL and GAPOOL do it with zero operands."""
    if not open_choice(t, ADDS_ZERO):
        return REFUSED
    if dst > _DST_ROWS or address_modifier > _MODIFIERS:
        return refuse(t, LEGACY_BITS, (address_modifier << 10) | dst)
    if not owns_a(t) or not owns_b(t):
        return WAIT
    c = settings(t, thread)
    style = arithmetic_style(t, c, code_a(t, c, SRCA), code_b(t, c))
    if style == NO_STYLE:
        return REFUSED
    view = view_of(c, style)
    exponent = splat16(max(exponent_bias(style, view, fidelity_phase(t, c, thread)), 0))
    zero = splat16(0)
    row = dst_row(t, c, thread, dst, _DST_ROWS & ~(count - 1))
    srca_row(t, thread, 0, 0x30)
    if apply_address_modifier(t, thread, address_modifier) != DONE:
        return REFUSED
    for i in range(count):
        if style == INT8_STYLE:
            store_int32(t, row + i, load_int32(t, row + i))
        else:
            accumulate_one(t, view, row + i, zero, exponent, zero != 0)
    return hand_back(t, thread, clear_dvalid)


@instruction(Mode("Dst += 0, 8 rows", OPEN, rule="math F32"))
def CONV3S1(t: TileRecord, thread: Int, clear_dvalid: Int, rotate_weights: Int, addr_mode: Int, dst: Int) -> Int:
    return _add_zero(t, thread, clear_dvalid, addr_mode, dst, _CONVOLUTION_ROWS)


@instruction(Mode("Dst += 0, 8 rows", OPEN, rule="math F32"))
def CONV3S2(t: TileRecord, thread: Int, clear_dvalid: Int, rotate_weights: Int, addr_mode: Int, dst: Int) -> Int:
    return _add_zero(t, thread, clear_dvalid, addr_mode, dst, _CONVOLUTION_ROWS)


@instruction(Mode("Dst += 0, 8 rows", OPEN, rule="math F32"))
def MFCONV3S1(t: TileRecord, thread: Int, clear_dvalid: Int, rotate_weights: Int, addr_mode: Int, dst: Int) -> Int:
    return _add_zero(t, thread, clear_dvalid, addr_mode, dst, _CONVOLUTION_ROWS)


@instruction(Mode("Dst += 0, 4 rows", OPEN, rule="math F32"))
def APOOL3S1(t: TileRecord, thread: Int, clear_dvalid: Int, pool_addr_mode: Int, index_en: Int, dst: Int) -> Int:
    return _add_zero(t, thread, clear_dvalid, pool_addr_mode, dst, _POOL_ROWS)


@instruction(Mode("Dst += 0, 4 rows", OPEN, rule="math F32"))
def APOOL3S2(t: TileRecord, thread: Int, clear_dvalid: Int, pool_addr_mode: Int, index_en: Int, dst: Int) -> Int:
    return _add_zero(t, thread, clear_dvalid, pool_addr_mode, dst, _POOL_ROWS)


@kernel
def _pool_zero(
    t: TileRecord, thread: Int, clear_dvalid: Int, address_modifier: Int, index_enabled: Int, dst: Int
) -> Any:
    if not open_choice(t, POOLS_ZERO):
        return REFUSED
    if dst > _DST_ROWS or address_modifier > _MODIFIERS:
        return refuse(t, LEGACY_BITS, (address_modifier << 10) | dst)
    return pool(t, thread, clear_dvalid, address_modifier, index_enabled, dst, True)


@instruction(Mode("GMPOOL with SrcA zero", OPEN, rule="math F32"))
def MPOOL3S1(t: TileRecord, thread: Int, clear_dvalid: Int, pool_addr_mode: Int, index_en: Int, dst: Int) -> AnyInt:
    return _pool_zero(t, thread, clear_dvalid, pool_addr_mode, index_en, dst)


@instruction(Mode("GMPOOL with SrcA zero", OPEN, rule="math F32"))
def MPOOL3S2(t: TileRecord, thread: Int, clear_dvalid: Int, pool_addr_mode: Int, index_en: Int, dst: Int) -> AnyInt:
    return _pool_zero(t, thread, clear_dvalid, pool_addr_mode, index_en, dst)


@instruction(Mode("not defined", OPEN, rule="math F32"))
def TRNSPSRCA(t: TileRecord, thread: Int) -> Int:
    return refuse(t, UNDEFINED_OPCODE)


@instruction(Mode("not defined", OPEN, rule="math F32"))
def RAREB(t: TileRecord, thread: Int) -> Int:
    return refuse(t, UNDEFINED_OPCODE)


@instruction(Mode("not defined", OPEN, rule="math F32"))
def SETASHRMH(t: TileRecord, thread: Int, word: Int) -> Int:
    return refuse(t, UNDEFINED_OPCODE)


@instruction(Mode("not defined", OPEN, rule="math F32"))
def SETASHRMH0(t: TileRecord, thread: Int, word: Int) -> Int:
    return refuse(t, UNDEFINED_OPCODE)


@instruction(Mode("not defined", OPEN, rule="math F32"))
def SETASHRMH1(t: TileRecord, thread: Int, word: Int) -> Int:
    return refuse(t, UNDEFINED_OPCODE)


@instruction(Mode("not defined", OPEN, rule="math F32"))
def SETASHRMV(t: TileRecord, thread: Int, word: Int) -> Int:
    return refuse(t, UNDEFINED_OPCODE)


@instruction(Mode("not defined", OPEN, rule="math F32"))
def SETPKEDGOF(t: TileRecord, thread: Int, word: Int) -> Int:
    return refuse(t, UNDEFINED_OPCODE)


@instruction(Mode("not defined", OPEN, rule="math F32"))
def SETIBRWC(t: TileRecord, thread: Int, word: Int) -> Int:
    return refuse(t, UNDEFINED_OPCODE)
