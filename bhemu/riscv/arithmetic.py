"""What instructions of RV32IM, Zba, Zbb and Zbkb compute of two registers and an immediate (tile T1 to T4)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.isa.riscv import NUMBER
from bhemu.machine.kernel import kernel
from bhemu.machine.types import AnyInt, Int

WORD: Final = 0xFFFFFFFF
_SIGN: Final = 1 << 31

_N: Final = NUMBER
LUI, AUIPC = _N["lui"], _N["auipc"]
ADDI, SLTI, SLTIU, XORI, ORI, ANDI = _N["addi"], _N["slti"], _N["sltiu"], _N["xori"], _N["ori"], _N["andi"]
SLLI, SRLI, SRAI, RORI = _N["slli"], _N["srli"], _N["srai"], _N["rori"]
ADD, SUB, SLL, SLT, SLTU = _N["add"], _N["sub"], _N["sll"], _N["slt"], _N["sltu"]
XOR, SRL, SRA, OR, AND = _N["xor"], _N["srl"], _N["sra"], _N["or"], _N["and"]
MUL, MULH, MULHSU, MULHU = _N["mul"], _N["mulh"], _N["mulhsu"], _N["mulhu"]
DIV, DIVU, REM, REMU = _N["div"], _N["divu"], _N["rem"], _N["remu"]
SH1ADD, SH2ADD, SH3ADD = _N["sh1add"], _N["sh2add"], _N["sh3add"]
ANDN, ORN, XNOR = _N["andn"], _N["orn"], _N["xnor"]
MIN, MINU, MAX, MAXU = _N["min"], _N["minu"], _N["max"], _N["maxu"]
ROL, ROR = _N["rol"], _N["ror"]
CLZ, CTZ, CPOP, SEXT_B, SEXT_H = _N["clz"], _N["ctz"], _N["cpop"], _N["sext.b"], _N["sext.h"]
ORC_B, REV8, PACK = _N["orc.b"], _N["rev8"], _N["pack"]


@kernel
def signed(x: Int) -> AnyInt:
    """A register's 32 bits as a signed number."""
    return (x ^ _SIGN) - _SIGN


@kernel
def rotate_right(x: Int, amount: Int) -> Int:
    """32 bits rotated right by 0 to 31."""
    return (x >> amount) | (x << (32 - amount))


@kernel
def count_leading_zeros(x: Int) -> Int:
    """Of 32 bits; 32 for 0."""
    count = np.int64(0)
    for step in (16, 8, 4, 2, 1):
        if x >> (32 - step) == 0:
            count += step
            x = (x << step) & WORD
    return count + (1 if x == 0 else 0)


@kernel
def count_ones(x: Int) -> Int:
    """Of 32 bits."""
    x = x - ((x >> 1) & 0x55555555)
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F
    return ((x * 0x01010101) & WORD) >> 24


@kernel
def reverse_bytes(x: Int) -> Int:
    return ((x & 0xFF) << 24) | ((x & 0xFF00) << 8) | ((x >> 8) & 0xFF00) | (x >> 24)


@kernel
def reverse_bits_in_bytes(x: Int) -> Int:
    x = ((x >> 1) & 0x55555555) | ((x & 0x55555555) << 1)
    x = ((x >> 2) & 0x33333333) | ((x & 0x33333333) << 2)
    return ((x >> 4) & 0x0F0F0F0F) | ((x & 0x0F0F0F0F) << 4)


@kernel
def or_combine(x: Int) -> Any:
    """Each byte 0xff where it has a bit (orc.b)."""
    value = np.int64(0)
    for byte in range(4):
        if (x >> (8 * byte)) & 0xFF:
            value |= 0xFF << (8 * byte)
    return value


@kernel
def divide(n: Int, a: Int, b: Int) -> AnyInt:
    """div, divu, rem, remu with the corner cases of T4."""
    if n == DIVU:
        return a // b if b != 0 else np.int64(WORD)
    if n == REMU:
        return a % b if b != 0 else a
    dividend, divisor = signed(a), signed(b)
    if divisor == 0:
        return np.int64(-1) if n == DIV else dividend
    quotient = abs(dividend) // abs(divisor)  # -2**31 / -1 wraps to itself when it is stored
    if (dividend < 0) != (divisor < 0):
        quotient = -quotient
    return quotient if n == DIV else dividend - quotient * divisor


@kernel(forceinline=True)
def _multiply(n: Int, a: Int, b: Int) -> AnyInt:
    """M (T4)."""
    if n == MUL:
        return signed(a) * signed(b)
    if n == MULH:
        return (signed(a) * signed(b)) >> 32
    if n == MULHSU:
        return (signed(a) * b) >> 32
    if n == MULHU:
        # The product of two 32-bit numbers needs 64 bits without a sign.
        return (a * (b >> 16) + ((a * (b & 0xFFFF)) >> 16)) >> 16
    return divide(n, a, b)


@kernel(forceinline=True)
def _manipulate(n: Int, a: Int, b: Int, immediate: Int) -> AnyInt:
    """Zba, Zbb and Zbkb (T3)."""
    if n == SH1ADD:
        return (a << 1) + b
    if n == SH2ADD:
        return (a << 2) + b
    if n == SH3ADD:
        return (a << 3) + b
    if n == ANDN:
        return a & ~b
    if n == ORN:
        return a | ~b
    if n == XNOR:
        return ~(a ^ b)
    if n == MIN:
        return min(signed(a), signed(b))
    if n == MAX:
        return max(signed(a), signed(b))
    if n == MINU:
        return min(a, b)
    if n == MAXU:
        return max(a, b)
    if n == ROL:
        return rotate_right(a, (32 - (b & 31)) & 31)
    if n == ROR:
        return rotate_right(a, b & 31)
    if n == RORI:
        return rotate_right(a, immediate)
    if n == PACK:
        return (a & 0xFFFF) | (b << 16)
    if n == CLZ:
        return count_leading_zeros(a)
    if n == CTZ:
        return count_ones(((a & -a) - 1) & WORD)
    if n == CPOP:
        return count_ones(a)
    if n == SEXT_B:
        return ((a & 0xFF) ^ 0x80) - 0x80
    if n == SEXT_H:
        return ((a & 0xFFFF) ^ 0x8000) - 0x8000
    if n == ORC_B:
        return or_combine(a)
    if n == REV8:
        return reverse_bytes(a)
    return reverse_bits_in_bytes(a)


@kernel(forceinline=True)  # into the loop of a core: its compiler makes one table of jumps of all of it
def compute(n: Int, a: Int, b: Int, immediate: Int, pc: Int) -> AnyInt:
    """What an instruction puts into its register: the low 32 bits of the result.

    Args:
        n: number of the instruction; one that neither jumps nor accesses memory.
        a, b: registers, 0 to 2**32 - 1.
        immediate: extended by its sign.
    """
    if n == ADDI:
        return a + immediate
    if n == ADD:
        return a + b
    if n == LUI:
        return immediate
    if n == SLLI:
        return a << immediate
    if n == SRLI:
        return a >> immediate
    if n == SRAI:
        return signed(a) >> immediate
    if n == ANDI:
        return a & immediate
    if n == ORI:
        return a | (immediate & WORD)
    if n == XORI:
        return a ^ (immediate & WORD)
    if n == SUB:
        return a - b
    if n == AND:
        return a & b
    if n == OR:
        return a | b
    if n == XOR:
        return a ^ b
    if n == AUIPC:
        return pc + immediate
    if n == SLTI:
        return np.int64(1 if signed(a) < immediate else 0)
    if n == SLTIU:
        return np.int64(1 if a < immediate & WORD else 0)
    if n == SLT:
        return np.int64(1 if signed(a) < signed(b) else 0)
    if n == SLTU:
        return np.int64(1 if a < b else 0)
    if n == SLL:
        return a << (b & 31)
    if n == SRL:
        return a >> (b & 31)
    if n == SRA:
        return signed(a) >> (b & 31)
    if n in (MUL, MULH, MULHSU, MULHU, DIV, DIVU, REM, REMU):
        return _multiply(n, a, b)
    return _manipulate(n, a, b, immediate)
