"""Vector loads and stores of core T2, in L1 and its local RAM (tile T7)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import NonContractualBehavior, Unimplemented
from bhemu.machine.core_state import LOCAL_RAM_SIZE
from bhemu.machine.faults import DONE, REFUSED, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.state import L1_SIZE
from bhemu.machine.types import AnyInt, Bool, Int, TileRecord
from bhemu.machine.vector_core_state import VLEN_BYTES
from bhemu.riscv.simple import RAM_BASE
from bhemu.riscv_vector.elements import (
    REGISTERS,
    WORD,
    clobbers_mask,
    element,
    element_bytes,
    group_eighths,
    is_active,
    is_group,
    overlap,
    registers_in,
    reserved,
    set_element,
)

LOAD_OPCODE: Final = 0x07
_UNIT, _INDEXED, _STRIDED = 0, 1, 2
_WHOLE, _MASK, _FIRST_FAULT = 0x08, 0x0B, 0x10

MISALIGNED: Final = fault(
    "riscv.vector-misaligned",
    NonContractualBehavior,
    "a vector load or store of {1} bytes at {0:#x}, which is misaligned",
    remedy="align elements to their size",
    rule="tile T7, T27",
)
PLACE: Final = fault(
    "riscv.vector-place",
    Unimplemented,
    "a vector load or store at {0:#x}: bhemu has them in L1 and the core's local RAM",
    remedy="access registers by scalar loads and stores",
    rule="tile T7",
)


@kernel
def _load(t: TileRecord, core: Int, address: Int, size: Int) -> Int:
    offset = address - RAM_BASE
    if address < L1_SIZE:
        if size == 4:
            return np.int64(t.l1_u32[address >> 2])
        return np.int64(t.l1_u16[address >> 1]) if size == 2 else np.int64(t.l1[address])
    if size == 4:
        return np.int64(t.core_ram_u32[core, offset >> 2])
    return np.int64(t.core_ram_u16[core, offset >> 1]) if size == 2 else np.int64(t.core_ram[core, offset])


@kernel
def _store(t: TileRecord, core: Int, address: Int, size: Int, value: Int) -> None:
    offset = address - RAM_BASE
    if address < L1_SIZE:
        if size == 4:
            t.l1_u32[address >> 2] = np.uint32(value)
        elif size == 2:
            t.l1_u16[address >> 1] = np.uint16(value)
        else:
            t.l1[address] = np.uint8(value)
    elif size == 4:
        t.core_ram_u32[core, offset >> 2] = np.uint32(value)
    elif size == 2:
        t.core_ram_u16[core, offset >> 1] = np.uint16(value)
    else:
        t.core_ram[core, offset] = np.uint8(value)


@kernel
def _check(t: TileRecord, core: Int, address: Int, size: Int) -> Int:
    if address & (size - 1):
        return refuse(t, MISALIGNED, address, size)
    offset = address - RAM_BASE
    if address < L1_SIZE or (offset >= 0 and offset < LOCAL_RAM_SIZE[core]):
        return DONE
    return refuse(t, PLACE, address)


@kernel
def _move(t: TileRecord, core: Int, is_load: Bool, address: Int, size: Int, register: Int, i: Int) -> None:
    if is_load:
        set_element(t, register, i, size, _load(t, core, address, size))
    else:
        _store(t, core, address, size, element(t, register, i, size))


@kernel
def _bytes(t: TileRecord, core: Int, is_load: Bool, base: Int, register: Int, count: Int) -> Any:
    """`count` bytes from the beginning of a register on, as whole-register and mask accesses move them."""
    for i in range(count):
        if _check(t, core, (base + i) & WORD, np.int64(1)) != DONE:
            return REFUSED
    for i in range(count):
        _move(t, core, is_load, (base + i) & WORD, np.int64(1), register, i)
    return DONE


@kernel
def _unit_special(t: TileRecord, core: Int, word: Int, base: Int, width: Int) -> Any:
    """vl<n>r.v and vs<n>r.v; vlm.v and vsm.v."""
    is_load, kind, register = word & 0x7F == LOAD_OPCODE, (word >> 20) & 31, (word >> 7) & 31
    fields = (word >> 29) + 1
    if (word >> 25) & 1 == 0:
        return reserved(t, word)
    if kind == _MASK:
        if width != 1 or fields != 1:
            return reserved(t, word)
        return _bytes(t, core, is_load, base, register, (np.int64(t.vector_core.vl) + 7) >> 3)
    if fields not in (1, 2, 4, 8) or register % fields or (not is_load and width != 1):
        return reserved(t, word)
    return _bytes(t, core, is_load, base, register, fields * VLEN_BYTES)


@kernel
def _address(t: TileRecord, core: Int, word: Int, base: Int, i: Int, width: Int, fields: Int) -> Int:
    """Address of the first field of element i; `width` is that of an index where the access is indexed."""
    mode, number = (word >> 26) & 3, (word >> 20) & 31
    if mode == _UNIT:
        return (base + i * fields * width) & WORD
    if mode == _STRIDED:
        return (base + i * np.int64(t.core_x[core, number])) & WORD
    return (base + element(t, number, i, width)) & WORD


@kernel
def _is_sound(t: TileRecord, word: Int, width: Int, size: Int, eighths: Int) -> Bool:
    """Register groups of the data, of the indices, and what they may not share."""
    mode, register, number = (word >> 26) & 3, (word >> 7) & 31, (word >> 20) & 31
    is_load, fields = word & 0x7F == LOAD_OPCODE, (word >> 29) + 1
    if not is_group(register, eighths, size) or fields * registers_in(eighths) > 8:
        return False
    if register + fields * registers_in(eighths) > REGISTERS or (is_load and clobbers_mask(word, register)):
        return False
    if mode in (_UNIT, _STRIDED):
        return mode == _STRIDED or number in (0, _FIRST_FAULT)
    index_eighths = group_eighths(t) * width // element_bytes(t)
    if not is_group(number, index_eighths, width):
        return False
    shared = False
    for field in range(fields):
        if overlap(register + field * registers_in(eighths), eighths, number, index_eighths):
            shared = True
    return not shared or not is_load or (fields == 1 and (width == size) and register == number)


@kernel
def execute_access(t: TileRecord, core: Int, word: Int) -> Any:
    """Execute a vector load or store; returns a status.

    Every address is checked before anything is moved. Loads that tolerate faults after their first element find none.
    """
    width_code = (word >> 12) & 7
    width = np.int64(1) if width_code == 0 else (np.int64(2) if width_code == 5 else np.int64(4))
    mode, register, fields = (word >> 26) & 3, (word >> 7) & 31, (word >> 29) + 1
    is_load = word & 0x7F == LOAD_OPCODE
    base = np.int64(t.core_x[core, (word >> 15) & 31])
    if width_code == 7 or (word >> 28) & 1:
        return reserved(t, word)
    if mode == _UNIT and (word >> 20) & 31 in (_WHOLE, _MASK):
        return _unit_special(t, core, word, base, width)
    size: AnyInt = width
    eighths: AnyInt = group_eighths(t) * width // element_bytes(t)
    if mode & 1 == _INDEXED:
        size, eighths = element_bytes(t), group_eighths(t)
    if not _is_sound(t, word, width, size, eighths):
        return reserved(t, word)
    for i in range(np.int64(t.vector_core.vl)):
        if is_active(t, word, i):
            address = _address(t, core, word, base, i, width, fields)
            for field in range(fields):
                if _check(t, core, (address + field * size) & WORD, size) != DONE:
                    return REFUSED
    for i in range(np.int64(t.vector_core.vl)):
        if is_active(t, word, i):
            address = _address(t, core, word, base, i, width, fields)
            for field in range(fields):
                at = (address + field * size) & WORD
                _move(t, core, is_load, at, size, register + field * registers_in(eighths), i)
    return DONE
