"""A matrix unit for tests: Src cells in, one instruction at a time, Dst values out; and a scalar model of its sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bhemu.errors import BhemuError
from bhemu.isa.instructions import encode
from bhemu.isa.registers import config, thread
from bhemu.machine.counters import RWC_A, RWC_B, RWC_DST, RWC_FIDELITY
from bhemu.machine.state import ALL_CONFIG_DIRTY, new_tiles, reset
from bhemu.tensix.coprocessor import Coprocessor

THREAD = 1
FP32, FP16, TF32, BF16, INT32, INT8 = 0, 1, 4, 5, 8, 14


def cell(value: int) -> int:
    """A Src cell from 19 bits in the order sign, exponent, mantissa."""
    return (value >> 18) << 18 | (value & 0x3FF) << 8 | (value >> 10) & 0xFF


def dst_cell(bits: int) -> int:
    """A Dst cell from the upper 16 bits of a value in FP32 order."""
    return (bits & 0x8000) | (bits & 0x7F) << 8 | (bits >> 7) & 0xFF


def fp16_cell(bits: int) -> int:
    """A Dst cell from FP16 bits."""
    return (bits & 0x8000) | (bits & 0x3FF) << 5 | (bits >> 10) & 0x1F


class Matrix:
    """One tile that is used again and again; both Src files have valid banks and an implied format."""

    def __init__(self) -> None:
        self.tiles = new_tiles(1)
        self.coprocessor = Coprocessor(self.tiles)
        self.t: Any = self.tiles[0]

    def start(self, a: int = BF16, b: int = BF16, *, fp32: bool = False, int8: bool = False) -> Matrix:
        reset(self.tiles, 0)
        self.t.src_owner[...] = 1
        self.t.src_format[0] = a
        self.t.src_format[1] = b
        self.configure("ALU_ACC_CTRL_Fp32_enabled", fp32)
        self.configure("ALU_ACC_CTRL_INT8_math_enabled", int8)
        return self

    def configure(self, name: str, value: int) -> None:
        word, lsb, mask = config(name)
        self.t.config[0, word] = int(self.t.config[0, word]) & ~(mask << lsb) | int(value) << lsb
        self.t.config_dirty[0] = ALL_CONFIG_DIRTY

    def thread_configure(self, name: str, value: int) -> None:
        word, lsb, mask = thread(name)
        self.t.thread_config[THREAD, word] = int(self.t.thread_config[THREAD, word]) & ~(mask << lsb) | value << lsb
        self.t.config_dirty[0] = ALL_CONFIG_DIRTY

    def rows(self, *, a: int = 0, b: int = 0, dst: int = 0, phase: int = 0) -> None:
        for place, value in ((RWC_A, a), (RWC_B, b), (RWC_DST, dst), (RWC_FIDELITY, phase)):
            self.t.rwc[THREAD, place] = value

    def do(self, mnemonic: str, **operands: int) -> bool:
        """Execute; False when the instruction waits."""
        assert self.coprocessor.push(THREAD, encode(mnemonic, **operands))
        return self.coprocessor.drain(THREAD)

    def get32(self, row: int) -> np.ndarray[Any, Any]:
        """Row of the 32-bit view in FP32 order."""
        physical = (row & 0x1F8) << 1 | row & 0x207
        high = self.t.dst[physical].astype(np.uint32)
        upper = (high & 0x8000) | (high & 0xFF) << 7 | (high >> 8) & 0x7F
        return upper << 16 | self.t.dst[physical + 8]

    def set32(self, row: int, values: Any) -> None:
        physical = (row & 0x1F8) << 1 | row & 0x207
        for column, value in enumerate(np.broadcast_to(values, 16)):
            self.t.dst[physical, column] = dst_cell(int(value) >> 16)
            self.t.dst[physical + 8, column] = int(value) & 0xFFFF

    def get16(self, row: int, *, fp16: bool = False) -> np.ndarray[Any, Any]:
        """Row of the 16-bit view in BF16 or FP16 order."""
        cells = self.t.dst[row].astype(np.uint32)
        if fp16:
            return (cells & 0x8000) | (cells & 0x1F) << 10 | (cells >> 5) & 0x3FF
        return (cells & 0x8000) | (cells & 0xFF) << 7 | (cells >> 8) & 0x7F


# --- F4, F5, F8..F12 for one Dst element, in exact integers ---------------------------------------------------------


def half_up(value: int, places: int) -> int:
    """Non-negative value / 2^places, ties up."""
    return value if places == 0 else (value + (1 << (places - 1))) >> places


def align(sign: int, magnitude: int, places: int) -> int:
    """F12 step 2 for a term: magnitude at the greatest exponent, ties toward plus infinity."""
    if places == 0:
        return magnitude
    if places >= 31:
        return 0
    return (magnitude + (1 << (places - 1)) - sign) >> places


def accumulate(terms: list[tuple[int, int, int]], old: int, view: str) -> int:
    """F12: terms (sign, exponent, magnitude) onto the old Dst value `old`; values in the order of the view."""
    kept = {"fp32": 24, "bf16": 8, "fp16": 11}[view]
    e_bits = 5 if view == "fp16" else 8
    s_dst = old >> (kept - 1 + e_bits)
    e_dst = old >> (kept - 1) & ((1 << e_bits) - 1)
    m_dst = ((old & ((1 << (kept - 1)) - 1)) | 1 << (kept - 1)) << (24 - kept) if e_dst else 0
    greatest = max([e for _, e, _ in terms] + [e_dst])
    if greatest <= 0:
        return 0
    distance = greatest - e_dst
    aligned_dst = 0 if distance >= 31 else half_up(m_dst, distance)
    aligned = [(s, align(s, g, greatest - e)) for s, e, g in terms]
    if view != "fp32":
        aligned = [(s, (g + 4096 - s) >> 13 << 13) for s, g in aligned]
        aligned_dst = (aligned_dst + 4096) >> 13 << 13
    total = sum(-g if s else g for s, g in aligned) + (-aligned_dst if s_dst else aligned_dst)
    if total == 0:
        return 0
    sign, magnitude = int(total < 0), abs(total)
    length = magnitude.bit_length()
    exponent = greatest + length - 24
    magnitude = half_up(magnitude, length - kept) if length > kept else magnitude << (kept - length)
    if magnitude >> kept:
        magnitude, exponent = 1 << (kept - 1), exponent + 1
    if exponent <= 0:
        return 0
    mantissa = magnitude & ((1 << (kept - 1)) - 1)
    if view == "fp16" and exponent >= 32:
        exponent, mantissa = 31, 1023
    elif view != "fp16" and exponent >= 255:
        exponent, mantissa = 255, 0
    return (sign << e_bits | exponent) << (kept - 1) | mantissa


def fields(src_cell: int, trimmed: bool) -> tuple[int, int, int]:
    """(sign, exponent, mantissa) of a Src cell after F4."""
    mantissa = src_cell >> 8 & 0x3FF
    return src_cell >> 18 & 1, src_cell & 0xFF, mantissa & ~7 if trimmed else mantissa


def product(a: tuple[int, int, int], b: tuple[int, int, int], phase: int, bias: int) -> tuple[int, int, int, bool]:
    """F8, F9: (sign, exponent, P, is a zero product)."""
    k = bias - 5 * (phase & 1) - 7 * (phase >> 1)
    if a[1] == 0 or b[1] == 0:
        return 0, max(k, 0), 0, True
    ma, mb = 1024 + a[2], 1024 + b[2]
    slice_a = ma >> 1 & 31 if phase & 1 else ma >> 6
    slice_b = (mb & 15) * 8 if phase & 2 else mb >> 4
    return a[0] ^ b[0], a[1] + b[1] + k, slice_a * slice_b, False


def multiply_element(
    a: tuple[int, int, int], b: tuple[int, int, int], old: int, phase: int, bias: int, view: str
) -> int:
    """ELWMUL for one element (F11)."""
    sign, exponent, p, _ = product(a, b, phase, bias)
    if exponent <= 0:
        k = bias - 5 * (phase & 1) - 7 * (phase >> 1)
        sign, exponent, p = 0, max(k, 0), 0
    return accumulate([(sign, exponent, p * 8192)], old, view)


def dot_element(pairs: list[tuple[Any, Any]], old: int, phase: int, bias: int, view: str) -> int:
    """MVMUL for one element (F10)."""
    terms = []
    for group in (pairs[:8], pairs[8:]):
        products = [product(a, b, phase, bias) for a, b in group]
        greatest = max(e for _, e, _, _ in products)
        if greatest <= 0:
            terms.append((0, 0, 0))
            continue
        total = 0
        for sign, exponent, p, _ in products:
            rounded = half_up(2 * p, min(greatest - exponent, 30) + 1)
            total += -rounded if sign else rounded
        terms.append((int(total < 0), greatest, abs(total) * 8192))
    return accumulate(terms, old, view)


def add_element(
    a: tuple[int, int, int], b: tuple[int, int, int], old: int, subtract: bool, five_bit: bool, view: str
) -> int:
    """ELWADD and ELWSUB in phase 0 for one element, denormals flushed (F11)."""
    if subtract:
        b = (b[0] ^ 1, b[1], b[2])
    a, b = ((0, 0, 0) if x[1] == 0 else x for x in (a, b))
    significand = {x: 1024 + x[2] if any(x) else 0 for x in (a, b)}
    big, small = (a, b) if a[1] * 1024 + a[2] >= b[1] * 1024 + b[2] else (b, a)
    distance = big[1] - small[1]
    part = half_up(significand[small], distance) if distance < 12 else 0
    total = significand[big] + (part if big[0] == small[0] else -part)
    exponent = big[1]
    if five_bit and view == "fp32":
        exponent = big[1] + 112 if big[1] else 97
    return accumulate([(big[0], exponent, total * 8192)], old, view)


def refused(unit: Matrix, mnemonic: str, **operands: int) -> BhemuError:
    """The refusal of an instruction."""
    with pytest.raises(BhemuError) as caught:
        unit.do(mnemonic, **operands)
    return caught.value
