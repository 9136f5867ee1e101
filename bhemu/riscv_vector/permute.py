"""Vector instructions of core T2 that move elements, reduce, and work on masks (tile T7)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.machine.faults import DONE
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Bool, Int, TileRecord
from bhemu.riscv_vector.elements import (
    WORD,
    bad_overlap,
    clobbers_mask,
    copy_registers,
    element,
    element_bytes,
    group_eighths,
    is_active,
    is_group,
    longest_vector,
    mask_bit,
    overlap,
    reserved,
    set_element,
    set_mask_bit,
    signed_of,
)

# funct6 of OPI
GATHER, SLIDE_UP, SLIDE_DOWN, WHOLE, WREDSUMU, WREDSUM = 0x0C, 0x0E, 0x0F, 0x27, 0x30, 0x31
# funct6 of OPM
LAST_REDUCTION, SLIDE1_UP, SLIDE1_DOWN, SCALARS, EXTEND, MASKS, COMPRESS = 0x07, 0x0E, 0x0F, 0x10, 0x12, 0x14, 0x17
MASK_LOGIC, MASK_LOGIC_END = 0x18, 0x1F
_POPULATION: Final = 0x10
_FIRST: Final = 0x11
_BEFORE_FIRST, _ONLY_FIRST, _UP_TO_FIRST, _IOTA, _INDEX = 0x01, 0x02, 0x03, 0x10, 0x11
_VI: Final = 3
_VV: Final = 0


@kernel
def _can_slide(t: TileRecord, word: Int, up: Bool) -> Any:
    """True when the groups of a slide are sound; upwards they must not overlap."""
    to, first = (word >> 7) & 31, (word >> 20) & 31
    size, eighths = element_bytes(t), group_eighths(t)
    if not is_group(to, eighths, size) or not is_group(first, eighths, size) or clobbers_mask(word, to):
        return False
    return not up or not overlap(to, eighths, first, eighths)


@kernel
def slide(t: TileRecord, word: Int, up: Bool, offset: Int) -> Any:
    """vslideup and vslidedown by any offset; returns a status."""
    to, first, size = (word >> 7) & 31, (word >> 20) & 31, element_bytes(t)
    if not _can_slide(t, word, up):
        return reserved(t, word)
    most = longest_vector(group_eighths(t), size)
    for i in range(np.int64(t.vector_core.vl)):
        if not is_active(t, word, i):
            continue
        if not up:
            set_element(t, to, i, size, element(t, first, i + offset, size) if i + offset < most else np.int64(0))
        elif i >= offset:
            set_element(t, to, i, size, element(t, first, i - offset, size))
    return DONE


@kernel
def slide_one(t: TileRecord, word: Int, up: Bool, scalar: Int) -> Any:
    """vslide1up and vslide1down, vfslide1up and vfslide1down; returns a status."""
    to, first, size = (word >> 7) & 31, (word >> 20) & 31, element_bytes(t)
    if not _can_slide(t, word, up):
        return reserved(t, word)
    length = np.int64(t.vector_core.vl)
    for i in range(length):
        if not is_active(t, word, i):
            continue
        if i == (0 if up else length - 1):
            set_element(t, to, i, size, scalar)
        else:
            set_element(t, to, i, size, element(t, first, i - 1 if up else i + 1, size))
    return DONE


@kernel
def gather(t: TileRecord, word: Int, indices: Int, index_size: Int, scalar: Int) -> Any:
    """vrgather and vrgatherei16; `indices` is a register, or -1 where `scalar` is the index of all; a status."""
    to, first = (word >> 7) & 31, (word >> 20) & 31
    size, eighths = element_bytes(t), group_eighths(t)
    index_eighths = eighths * index_size // size
    if not is_group(to, eighths, size) or not is_group(first, eighths, size) or clobbers_mask(word, to):
        return reserved(t, word)
    if overlap(to, eighths, first, eighths):
        return reserved(t, word)
    if indices >= 0 and (
        not is_group(indices, index_eighths, index_size) or overlap(to, eighths, indices, index_eighths)
    ):
        return reserved(t, word)
    most = longest_vector(eighths, size)
    for i in range(np.int64(t.vector_core.vl)):
        if is_active(t, word, i):
            at = element(t, indices, i, index_size) if indices >= 0 else scalar
            set_element(t, to, i, size, element(t, first, at, size) if at < most else np.int64(0))
    return DONE


@kernel
def _compress(t: TileRecord, word: Int) -> Any:
    to, first, mask = (word >> 7) & 31, (word >> 20) & 31, (word >> 15) & 31
    size, eighths = element_bytes(t), group_eighths(t)
    if not is_group(to, eighths, size) or not is_group(first, eighths, size) or (word >> 25) & 1 == 0:
        return reserved(t, word)
    if overlap(to, eighths, first, eighths) or overlap(to, eighths, mask, np.int64(8)):
        return reserved(t, word)
    count = np.int64(0)
    for i in range(np.int64(t.vector_core.vl)):
        if mask_bit(t, mask, i):
            set_element(t, to, count, size, element(t, first, i, size))
            count += 1
    return DONE


@kernel
def _combine(f: Int, a: Int, b: Int) -> Int:
    """vred*: sum, and, or, xor, minu, min, maxu, max."""
    if f == 0:
        return a + b
    if f == 1:
        return a & b
    if f == 2:
        return a | b
    if f == 3:
        return a ^ b
    return min(a, b) if f in (4, 5) else max(a, b)


@kernel
def reduce(t: TileRecord, word: Int, f: Int, wide: Int, as_signed: Int) -> Any:
    """vred* and vwredsum*: element 0 of vs1 with the active elements of vs2, to element 0 of vd; returns a status."""
    to, first, second = (word >> 7) & 31, (word >> 20) & 31, (word >> 15) & 31
    size, eighths = element_bytes(t), group_eighths(t)
    result_size = 2 * size if wide else size
    if not is_group(first, eighths, size) or result_size > 4:
        return reserved(t, word)
    length = np.int64(t.vector_core.vl)
    if length == 0:
        return DONE
    result = element(t, second, np.int64(0), result_size)
    if as_signed:
        result = signed_of(result, result_size)
    for i in range(length):
        if is_active(t, word, i):
            value = element(t, first, i, size)
            result = _combine(f, result, signed_of(value, size) if as_signed else value)
    set_element(t, to, np.int64(0), result_size, result)
    return DONE


@kernel
def _mask_logic(t: TileRecord, word: Int) -> Any:
    """vmandn, vmand, vmor, vmxor, vmorn, vmnand, vmnor, vmxnor."""
    f, to, first, second = (word >> 26) & 7, (word >> 7) & 31, (word >> 20) & 31, (word >> 15) & 31
    if (word >> 25) & 1 == 0:
        return reserved(t, word)
    for i in range(np.int64(t.vector_core.vl)):
        a, b = mask_bit(t, first, i), mask_bit(t, second, i)
        if f in (0, 4):
            b ^= 1
        if f in (0, 1, 5):
            bit = a & b
        elif f in (2, 4, 6):
            bit = a | b
        else:
            bit = a ^ b
        set_mask_bit(t, to, i, bit ^ 1 if f >= 5 else bit)
    return DONE


@kernel
def _mask_unary(t: TileRecord, word: Int) -> Any:
    """vmsbf, vmsof, vmsif, viota and vid."""
    kind, to, first = (word >> 15) & 31, (word >> 7) & 31, (word >> 20) & 31
    size, eighths = element_bytes(t), group_eighths(t)
    length = np.int64(t.vector_core.vl)
    if clobbers_mask(word, to):
        return reserved(t, word)
    if kind in (_IOTA, _INDEX):
        if not is_group(to, eighths, size) or (kind == _INDEX and first != 0):
            return reserved(t, word)
        if kind == _IOTA and overlap(to, eighths, first, np.int64(8)):
            return reserved(t, word)
        count = np.int64(0)
        for i in range(length):
            if is_active(t, word, i):
                set_element(t, to, i, size, count if kind == _IOTA else i)
                if kind == _IOTA:
                    count += mask_bit(t, first, i)
        return DONE
    if kind not in (_BEFORE_FIRST, _ONLY_FIRST, _UP_TO_FIRST) or to == first:
        return reserved(t, word)
    found = False
    for i in range(length):
        if is_active(t, word, i):
            here = mask_bit(t, first, i) != 0 and not found
            before = not found and not here
            found = found or here
            set_mask_bit(t, to, i, 1 if (here and kind != _BEFORE_FIRST) or (before and kind != _ONLY_FIRST) else 0)
    return DONE


@kernel
def _to_scalar(t: TileRecord, core: Int, word: Int) -> Any:
    """vmv.x.s, vcpop.m and vfirst.m."""
    kind, first, rd = (word >> 15) & 31, (word >> 20) & 31, (word >> 7) & 31
    if kind == 0:
        if (word >> 25) & 1 == 0:
            return reserved(t, word)
        size = element_bytes(t)
        result = signed_of(element(t, first, np.int64(0), size), size)
    elif kind in (_POPULATION, _FIRST):
        result = np.int64(0) if kind == _POPULATION else np.int64(-1)
        for i in range(np.int64(t.vector_core.vl)):
            if is_active(t, word, i) and mask_bit(t, first, i):
                if kind == _POPULATION:
                    result += 1
                elif result < 0:
                    result = np.int64(i)
    else:
        return reserved(t, word)
    if rd != 0:
        t.core_x[core, rd] = np.uint32(result & WORD)
    return DONE


@kernel
def _extend(t: TileRecord, word: Int) -> Any:
    """vzext and vsext by 2 and 4."""
    kind, to, first = (word >> 15) & 31, (word >> 7) & 31, (word >> 20) & 31
    size, eighths = element_bytes(t), group_eighths(t)
    if kind < 4 or kind > 7:
        return reserved(t, word)
    factor = 4 if kind < 6 else 2
    if size % factor or eighths < factor:
        return reserved(t, word)
    if not is_group(to, eighths, size) or not is_group(first, eighths // factor, size // factor):
        return reserved(t, word)
    if clobbers_mask(word, to) or bad_overlap(to, eighths, size, first, eighths // factor, size // factor):
        return reserved(t, word)
    for i in range(np.int64(t.vector_core.vl)):
        if is_active(t, word, i):
            value = element(t, first, i, size // factor)
            set_element(t, to, i, size, signed_of(value, size // factor) if kind & 1 else value)
    return DONE


@kernel
def move_to_first(t: TileRecord, word: Int, scalar: Int) -> Any:
    """vmv.s.x and vfmv.s.f; returns a status."""
    if (word >> 20) & 31 or (word >> 25) & 1 == 0:
        return reserved(t, word)
    if t.vector_core.vl != 0:
        set_element(t, (word >> 7) & 31, np.int64(0), element_bytes(t), scalar)
    return DONE


@kernel
def move_registers(t: TileRecord, word: Int) -> Any:
    """vmv1r.v, vmv2r.v, vmv4r.v and vmv8r.v; returns a status."""
    to, first, count = (word >> 7) & 31, (word >> 20) & 31, ((word >> 15) & 31) + 1
    if count not in (1, 2, 4, 8) or to % count or first % count or (word >> 25) & 1 == 0:
        return reserved(t, word)
    copy_registers(t, to, first, count)
    return DONE


@kernel
def permute_integer(t: TileRecord, core: Int, word: Int, f: Int) -> Any:
    """OPI instructions that are not element by element; returns a status."""
    form, number = (word >> 12) & 7, (word >> 15) & 31
    if f in (WREDSUMU, WREDSUM):
        return reduce(t, word, np.int64(0), 1, f - WREDSUMU) if form == _VV else reserved(t, word)
    if f == WHOLE:
        return move_registers(t, word)
    scalar = number if form == _VI else np.int64(t.core_x[core, number])
    if f == GATHER or (f == SLIDE_UP and form == _VV):
        index_size = np.int64(2) if f == SLIDE_UP else element_bytes(t)
        return gather(t, word, number if form == _VV else np.int64(-1), index_size, scalar)
    if form == _VV:
        return reserved(t, word)
    return slide(t, word, f == SLIDE_UP, scalar)


@kernel
def permute_mask(t: TileRecord, core: Int, word: Int, f: Int) -> Any:
    """OPM instructions that are not element by element; returns a status."""
    scalar_form = (word >> 12) & 4 != 0
    if f in (SLIDE1_UP, SLIDE1_DOWN):
        if not scalar_form:
            return reserved(t, word)
        return slide_one(t, word, f == SLIDE1_UP, np.int64(t.core_x[core, (word >> 15) & 31]))
    if f == SCALARS:
        if scalar_form:
            return move_to_first(t, word, np.int64(t.core_x[core, (word >> 15) & 31]))
        return _to_scalar(t, core, word)
    if scalar_form:
        return reserved(t, word)
    if f <= LAST_REDUCTION:
        return reduce(t, word, f, 0, 1 if f in (5, 7) else 0)
    if f == EXTEND:
        return _extend(t, word)
    if f == MASKS:
        return _mask_unary(t, word)
    if f == COMPRESS:
        return _compress(t, word)
    return _mask_logic(t, word)
