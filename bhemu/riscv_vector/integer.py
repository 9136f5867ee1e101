"""Integer and fixed-point vector instructions of core T2 (tile T7): what happens to one element, and the loops."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.machine.faults import DONE, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Int, TileRecord
from bhemu.riscv_vector.elements import (
    NOT_THERE,
    bad_overlap,
    clobbers_mask,
    element,
    element_bytes,
    flags_of,
    group_eighths,
    is_active,
    is_group,
    mask_bit,
    overlap,
    reserved,
    set_element,
    set_mask_bit,
    signed_of,
)

M: Final = 0x40
"""Added to funct6 of the OPM forms, which have numbers of their own."""

# funct6
ADD, SUB, RSUB, MINU, MIN, MAXU, MAX = 0x00, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07
AND, OR, XOR = 0x09, 0x0A, 0x0B
ADC, MADC, SBC, MSBC, MERGE = 0x10, 0x11, 0x12, 0x13, 0x17
MSEQ, MSNE, MSLTU, MSLT, MSLEU, MSLE, MSGTU, MSGT = 0x18, 0x19, 0x1A, 0x1B, 0x1C, 0x1D, 0x1E, 0x1F
SADDU, SADD, SSUBU, SSUB, SLL, SMUL = 0x20, 0x21, 0x22, 0x23, 0x25, 0x27
SRL, SRA, SSRL, SSRA, NSRL, NSRA, NCLIPU, NCLIP = 0x28, 0x29, 0x2A, 0x2B, 0x2C, 0x2D, 0x2E, 0x2F
AADDU, AADD, ASUBU, ASUB = M + 0x08, M + 0x09, M + 0x0A, M + 0x0B
DIVU, REM = M + 0x20, M + 0x23
MULHU, MUL, MULHSU, MULH = M + 0x24, M + 0x25, M + 0x26, M + 0x27
MADD, NMSUB, MACC, NMSAC = M + 0x29, M + 0x2B, M + 0x2D, M + 0x2F
WADDU, WADD, WSUBU, WSUB = M + 0x30, M + 0x31, M + 0x32, M + 0x33
WADDU_W, WADD_W, WSUBU_W, WSUB_W = M + 0x34, M + 0x35, M + 0x36, M + 0x37
WMULU, WMULSU, WMUL = M + 0x38, M + 0x3A, M + 0x3B
WMACCU, WMACC, WMACCUS, WMACCSU = M + 0x3C, M + 0x3D, M + 0x3E, M + 0x3F

# funct3: where the second operand comes from
VV: Final = 0
MVV: Final = 2
VI: Final = 3
VX: Final = 4
MVX: Final = 6


_IS_THERE: Final = flags_of(
    *(ADD, SUB, RSUB, MINU, MIN, MAXU, MAX, AND, OR, XOR, ADC, MADC, SBC, MSBC, MERGE, SADDU, SADD, SSUBU, SSUB),
    *(MSEQ, MSNE, MSLTU, MSLT, MSLEU, MSLE, MSGTU, MSGT, SLL, SMUL, SRL, SRA, SSRL, SSRA, NSRL, NSRA, NCLIPU, NCLIP),
    *(AADDU, AADD, ASUBU, ASUB, MULHU, MUL, MULHSU, MULH, MADD, NMSUB, MACC, NMSAC, WADDU, WADD, WSUBU, WSUB),
    *(WADDU_W, WADD_W, WSUBU_W, WSUB_W, WMULU, WMULSU, WMUL, WMACCU, WMACC, WMACCUS, WMACCSU),
)
_NO_VV: Final = flags_of(RSUB, MSGTU, MSGT, WMACCUS)
_NO_VI: Final = flags_of(SUB, MINU, MIN, MAXU, MAX, SBC, MSBC, MSLTU, MSLT, SSUBU, SSUB, SMUL)
_UNSIGNED_IMMEDIATE: Final = flags_of(SLL, SRL, SRA, SSRL, SSRA, NSRL, NSRA, NCLIPU, NCLIP)
_WIDENS: Final = flags_of(*range(M + 0x30, M + 0x40))
_WIDE_SOURCE: Final = flags_of(WADDU_W, WADD_W, WSUBU_W, WSUB_W, NSRL, NSRA, NCLIPU, NCLIP)
_COMPARES: Final = flags_of(MADC, MSBC, *range(MSEQ, MSGT + 1))
_CARRIES: Final = flags_of(ADC, MADC, SBC, MSBC, MERGE)
"""v0 is an operand of these, and masks nothing."""
_FIRST_SIGNED: Final = flags_of(
    *(MIN, MAX, MSLT, MSLE, MSGT, SADD, SSUB, SMUL, SRA, SSRA, NSRA, NCLIP, AADD, ASUB, MULHSU, MULH),
    *(WADD, WSUB, WADD_W, WSUB_W, WMUL, WMULSU, WMACC, WMACCUS, MUL, MADD, NMSUB, MACC, NMSAC),
)
_SECOND_SIGNED: Final = flags_of(
    *(MIN, MAX, MSLT, MSLE, MSGT, SADD, SSUB, SMUL, AADD, ASUB, MULH),
    *(WADD, WSUB, WADD_W, WSUB_W, WMUL, WMACC, WMACCSU, MUL, MADD, NMSUB, MACC, NMSAC),
)


@kernel
def second_operand(t: TileRecord, core: Int, word: Int, i: Int, size: Int) -> Int:
    """Element of vs1, the scalar of rs1, or the immediate sign-extended; its low bits, unsigned."""
    form = (word >> 12) & 7
    number = (word >> 15) & 31
    mask = (np.int64(1) << (8 * size)) - 1
    if form in (VV, MVV):
        return element(t, number, i, size)
    if form == VI:
        return ((number ^ 16) - 16) & mask
    return np.int64(t.core_x[core, number]) & mask


@kernel
def rounded(t: TileRecord, value: Int, shift: Int) -> Int:
    """A value shifted right and rounded as vxrm says: up, to even, down, to odd."""
    if shift == 0:
        return value
    mode = np.int64(t.vector_core.vxrm) & 3
    lost = value & ((np.int64(1) << shift) - 1)
    kept = value >> shift
    half = np.int64(1) << (shift - 1)
    if mode == 0:
        return kept + (1 if lost & half else 0)
    if mode == 1:
        return kept + (1 if lost > half or (lost == half and kept & 1) else 0)
    if mode == 2:
        return kept
    return kept | (1 if lost != 0 else 0)


@kernel
def _saturated(t: TileRecord, value: Int, low: Int, high: Int) -> Int:
    if value < low or value > high:
        t.vector_core.vxsat = np.uint32(1)
        return low if value < low else high
    return value


@kernel
def _fixed_point(t: TileRecord, f: Int, a: Int, b: Int, bits: Int) -> Int:
    """What saturates or rounds."""
    top, low = (np.int64(1) << (bits - 1)) - 1, -(np.int64(1) << (bits - 1))
    everything = (np.int64(1) << bits) - 1
    if f == SADDU:
        return _saturated(t, a + b, np.int64(0), everything)
    if f == SSUBU:
        return _saturated(t, a - b, np.int64(0), everything)
    if f == SADD:
        return _saturated(t, a + b, low, top)
    if f == SSUB:
        return _saturated(t, a - b, low, top)
    if f == SMUL:
        return _saturated(t, rounded(t, a * b, bits - 1), low, top)
    if f in (AADDU, AADD):
        return rounded(t, a + b, np.int64(1))
    if f in (ASUBU, ASUB):
        return rounded(t, a - b, np.int64(1))
    if f in (SSRL, SSRA):
        return rounded(t, a, b & (bits - 1))
    shifted = rounded(t, a, b & (2 * bits - 1))
    if f == NCLIPU:
        return _saturated(t, shifted, np.int64(0), everything)
    return _saturated(t, shifted, low, top)


@kernel
def _multiplied(f: Int, a: Int, b: Int, old: Int, bits: Int) -> Int:
    """Products and what is added to them; `a` is vs2."""
    if f in (MUL, WMUL, WMULU, WMULSU):
        return a * b
    if f == MULHU:
        low = (a & 0xFFFF) * b
        return ((a >> 16) * b + (low >> 16)) >> (bits - 16) if bits > 16 else (a * b) >> bits
    if f in (MULH, MULHSU):
        return (a * b) >> bits
    if f == MADD:
        return old * b + a
    if f == NMSUB:
        return a - old * b
    if f == NMSAC:
        return old - a * b
    return old + a * b


@kernel
def _plain(f: Int, a: Int, b: Int, bits: Int) -> Int:
    """Sums, extremes, logic and shifts."""
    if f in (ADD, WADDU, WADD, WADDU_W, WADD_W):
        return a + b
    if f in (SUB, WSUBU, WSUB, WSUBU_W, WSUB_W):
        return a - b
    if f == RSUB:
        return b - a
    if f in (MINU, MIN):
        return min(a, b)
    if f in (MAXU, MAX):
        return max(a, b)
    if f == AND:
        return a & b
    if f == OR:
        return a | b
    if f == XOR:
        return a ^ b
    if f == SLL:
        return a << (b & (bits - 1))
    if f in (NSRL, NSRA):
        return a >> (b & (2 * bits - 1))
    return a >> (b & (bits - 1))  # SRL, SRA


@kernel
def _compared(f: Int, a: Int, b: Int, carry: Int, bits: Int) -> Int:
    """The bit that a comparison or a carry-out gives."""
    holds = a == b
    if f == MADC:
        holds = (a + b + carry) >> bits != 0
    elif f == MSBC:
        holds = a - b - carry < 0
    elif f == MSNE:
        holds = a != b
    elif f in (MSLTU, MSLT):
        holds = a < b
    elif f in (MSLEU, MSLE):
        holds = a <= b
    elif f in (MSGTU, MSGT):
        holds = a > b
    return np.int64(1) if holds else np.int64(0)


@kernel
def _is_fixed_point(f: Int) -> Any:
    return (f >= SADDU and f <= SSUB) or f in (SMUL, SSRL, SSRA, NCLIPU, NCLIP, AADDU, AADD, ASUBU, ASUB)


@kernel
def _computed(t: TileRecord, f: Int, a: Int, b: Int, old: Int, bits: Int) -> Int:
    if _is_fixed_point(f):
        return _fixed_point(t, f, a, b, bits)
    if (f >= MULHU and f <= NMSAC) or f >= WMULU:
        return _multiplied(f, a, b, old, bits)
    return _plain(f, a, b, bits)


@kernel
def _check_encoding(t: TileRecord, f: Int, word: Int) -> Any:
    form, unmasked = (word >> 12) & 7, (word >> 25) & 1
    if f >= DIVU and f <= REM:
        return refuse(t, NOT_THERE, word)
    if not _IS_THERE[f] or (form in (VV, MVV) and _NO_VV[f]) or (form == VI and _NO_VI[f]):
        return reserved(t, word)
    if f in (ADC, SBC) and unmasked:
        return reserved(t, word)
    if f == MERGE and unmasked and (word >> 20) & 31 != 0:
        return reserved(t, word)
    return DONE


@kernel
def execute_integer(t: TileRecord, core: Int, word: Int) -> Any:
    """Execute an OPI or OPM instruction that works on each element by itself; returns a status."""
    form = (word >> 12) & 7
    f = (word >> 26) + (M if form in (MVV, MVX) else 0)
    status = _check_encoding(t, f, word)
    if status != DONE:
        return status
    to, first, second = (word >> 7) & 31, (word >> 20) & 31, (word >> 15) & 31
    size, eighths = element_bytes(t), group_eighths(t)
    to_size = 2 * size if _WIDENS[f] else size
    to_eighths = 2 * eighths if _WIDENS[f] else eighths
    first_size = 2 * size if _WIDE_SOURCE[f] else size
    first_eighths = 2 * eighths if _WIDE_SOURCE[f] else eighths
    vector_second = form in (VV, MVV)
    if not is_group(first, first_eighths, first_size) or (vector_second and not is_group(second, eighths, size)):
        return reserved(t, word)
    if _COMPARES[f]:
        if to != first and overlap(to, np.int64(8), first, first_eighths):
            return reserved(t, word)
        if vector_second and to != second and overlap(to, np.int64(8), second, eighths):
            return reserved(t, word)
    elif (
        not is_group(to, to_eighths, to_size)
        or clobbers_mask(word, to)
        or bad_overlap(to, to_eighths, to_size, first, first_eighths, first_size)
        or (vector_second and bad_overlap(to, to_eighths, to_size, second, eighths, size))
    ):
        return reserved(t, word)
    unsigned_immediate = form == VI and _UNSIGNED_IMMEDIATE[f]
    masked = (word >> 25) & 1 == 0
    bits = 8 * size
    for i in range(np.int64(t.vector_core.vl)):
        if not _CARRIES[f] and not is_active(t, word, i):
            continue
        a = element(t, first, i, first_size)
        b = second if unsigned_immediate else second_operand(t, core, word, i, size)
        carry = mask_bit(t, 0, i) if masked else np.int64(0)
        if _FIRST_SIGNED[f]:
            a = signed_of(a, first_size)
        if _SECOND_SIGNED[f]:
            b = signed_of(b, size)
        if _COMPARES[f]:
            set_mask_bit(t, to, i, _compared(f, a, b, carry, bits))
        elif f == MERGE:
            set_element(t, to, i, size, b if not masked or carry else a)
        elif f == ADC:
            set_element(t, to, i, size, a + b + carry)
        elif f == SBC:
            set_element(t, to, i, size, a - b - carry)
        else:
            set_element(t, to, i, to_size, _computed(t, f, a, b, element(t, to, i, to_size), bits))
    return DONE
