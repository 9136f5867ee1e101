"""FP32 multiply-add as Blackhole computes it (math V10), and the instructions that are nothing else (V11)."""

from __future__ import annotations

from typing import Final

from bhemu.machine.faults import refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import (
    as_integers,
    leading_zeros,
    load32,
    mask_bits,
    maximum,
    minimum,
    shift_right_logical,
    splat32,
    where,
)
from bhemu.machine.types import AnyInt, Int, Lanes, TileRecord
from bhemu.tensix.instruction import DOCUMENTED, VERIFIED, Mode, instruction
from bhemu.tensix.vector.registers import ONE_FP32, SIGN, deliver, destination, read_indirect, reserved_mode
from bhemu.tensix.vector_queue import EXECUTE

MANTISSA: Final = 0x7FFFFF
HIDDEN: Final = 0x800000
INFINITY: Final = 0x7F800000
NAN: Final = 0x7FC00000
MAGNITUDE: Final = 0x7FFFFFFF


@kernel
def exponent_of(x: Lanes) -> Lanes:
    """Raw exponent field of FP32 lanes."""
    return shift_right_logical(x, 23) & 0xFF


@kernel
def significand_of(x: Lanes, exponent: Lanes) -> Lanes:
    """24-bit significand; exponent field 0 counts as zero (V10 step 1)."""
    return where(exponent == 0, 0, (x & MANTISSA) | HIDDEN)


@kernel
def shift_right_sticky(value: Lanes, amount: Lanes) -> Lanes:
    """Right shift of non-negative lanes; lost bits go into bit 0 only if something remains (V10 step 5)."""
    amount = minimum(amount, 31)
    kept = shift_right_logical(value, amount)
    lost = (kept << amount) != value
    return kept | as_integers(lost & (kept != 0))


@kernel
def _product(mx: Lanes, my: Lanes) -> Lanes:
    """48-bit product shifted right 20, dropped bits OR-ed into bit 0 (V10 step 2); 12-bit halves fit 32-bit lanes."""
    xh, xl = shift_right_logical(mx, 12), mx & 0xFFF
    yh, yl = shift_right_logical(my, 12), my & 0xFFF
    middle = xh * yl + xl * yh
    low = xl * yl + ((middle & 0xFFF) << 12)
    high = xh * yh + shift_right_logical(middle, 12)
    return (high << 4) + shift_right_logical(low, 20) | as_integers((low & 0xFFFFF) != 0)


@kernel
def _specials(x: Int, y: Int, z: Int, ex: Int, ey: Int, ez: Int, ep: Int, sp: Int, finite: Int) -> AnyInt:
    """V10 step 3: NaN, infinite operands, and products whose exponent overflows before normalisation."""
    zero_x, zero_y = ex == 0, ey == 0
    top_x, top_y, top_z = ex == 255, ey == 255, ez == 255
    no_x, no_y, no_z = (x & MANTISSA) != 0, (y & MANTISSA) != 0, (z & MANTISSA) != 0
    nan = (top_x & no_x) | (top_y & no_y) | (top_z & no_z)
    invalid = (top_x & zero_y) | (top_y & zero_x)
    infinite = top_x | top_y
    opposite = top_z & infinite & (((z ^ sp) & SIGN) != 0)
    result = where(infinite | (ep >= 255), sp | INFINITY, finite)
    result = where(top_z, z, result)
    return where(nan | invalid | opposite, NAN, result)


@kernel
def fma(x: Lanes, y: Lanes, z: Lanes) -> Lanes:
    """x * y + z on 32 lanes of FP32 bits (V10)."""
    ex, ey, ez = exponent_of(x), exponent_of(y), exponent_of(z)
    sp = (x ^ y) & SIGN
    ep = ex + ey - 127
    p = _product(significand_of(x, ex), significand_of(y, ey))
    # Step 4: the product vanishes entirely; with exponent 0 it leaves z as it is.
    vanishes = (p == 0) | (ep < 0)
    p = where(vanishes, 0, p)
    ep = where(vanishes, 0, ep)
    q = significand_of(z, ez) << 3
    # Step 5
    e = maximum(ep, ez)
    p = shift_right_sticky(p, e - ep)
    q = shift_right_sticky(q, e - ez)
    # Step 6
    total = where(sp < 0, -p, p) + where(z < 0, -q, q)
    s = total & SIGN
    r = maximum(total, -total)
    n = 5 - leading_zeros(r)
    e = e + n
    # Steps 7 and 8
    small = e <= 0
    n = n + as_integers(small)
    field = where(small, 0, e) << 23
    down = maximum(n, 0)
    right = shift_right_logical(r, down)
    right = right | as_integers((right << down) != r)
    r = where(n > 0, right, r << minimum(maximum(-n, 0), 31))
    rounded = field + shift_right_logical((r & 0x3FFFFFF) + 3 + (shift_right_logical(r, 3) & 1), 3)
    rounded = where(e >= 255, INFINITY, rounded)
    # Steps 6 and 9: an exact zero and a result without exponent
    result = s | where(rounded < HIDDEN, 0, rounded)
    result = where(total == 0, z & sp & SIGN, result)
    special = (ex == 255) | (ey == 255) | (ez == 255) | (ep >= 255)
    if mask_bits(special) != 0:
        return _specials(x, y, z, ex, ey, ez, ep, sp, result)
    return result


# --- instructions ----------------------------------------------------------------------------------------------------

NEGATE_A: Final = 1
NEGATE_C: Final = 2
INDIRECT_A: Final = 4
INDIRECT_D: Final = 8

_IMMEDIATE_MODES = "bit 1 (sign of the old destination) and bit 3 (destination index from LReg 7) only"
MULI_MODE = reserved_mode("SFPMULI", _IMMEDIATE_MODES, "math V11")
ADDI_MODE = reserved_mode("SFPADDI", _IMMEDIATE_MODES, "math V11")


@kernel
def _multiply_add(t: TileRecord, a: Int, b: Int, c: Int, d: Int, mode: Int, word: Int) -> Int:
    """SFPMAD, and SFPADD and SFPMUL, which are its special cases (V11)."""
    status = destination(t, d, word)
    if status != EXECUTE:
        return status
    x = read_indirect(t) if mode & INDIRECT_A else load32(t.lregs, a)
    z = load32(t.lregs, c)
    x = x ^ ((mode & NEGATE_A) << 31)
    z = z ^ ((mode & NEGATE_C) << 30)
    return deliver(t, d, mode & INDIRECT_D, fma(x, load32(t.lregs, b), z))


_INDIRECT = Mode("register indices from LReg 7 (mode bits 2, 3)", DOCUMENTED, rule="math V11")


@instruction(
    Mode("multiply and add, signs of a and c", VERIFIED, vectors="sfpu:SFPMAD:3", rule="math V10, V11"),
    _INDIRECT,
)
def SFPMAD(
    t: TileRecord,
    thread: Int,
    lreg_src_a: Int,
    lreg_src_b: Int,
    lreg_src_c: Int,
    lreg_dest: Int,
    instr_mod1: Int,
    word: Int,
) -> Int:
    return _multiply_add(t, lreg_src_a, lreg_src_b, lreg_src_c, lreg_dest, instr_mod1, word)


@instruction(
    Mode("a multiplicand is 1.0 (LReg 10)", VERIFIED, vectors="sfpu:SFPADD:3", rule="math V10, V11"),
    Mode("other multiplicands: a product", DOCUMENTED, rule="math V11"),
    _INDIRECT,
)
def SFPADD(
    t: TileRecord,
    thread: Int,
    lreg_src_a: Int,
    lreg_src_b: Int,
    lreg_src_c: Int,
    lreg_dest: Int,
    instr_mod1: Int,
    word: Int,
) -> Int:
    return _multiply_add(t, lreg_src_a, lreg_src_b, lreg_src_c, lreg_dest, instr_mod1, word)


@instruction(
    Mode("c is zero (LReg 9)", VERIFIED, vectors="sfpu:SFPMUL:1", rule="math V10, V11"),
    Mode("other c: added; sign of c", DOCUMENTED, rule="math V11"),
    _INDIRECT,
)
def SFPMUL(
    t: TileRecord,
    thread: Int,
    lreg_src_a: Int,
    lreg_src_b: Int,
    lreg_src_c: Int,
    lreg_dest: Int,
    instr_mod1: Int,
    word: Int,
) -> Int:
    return _multiply_add(t, lreg_src_a, lreg_src_b, lreg_src_c, lreg_dest, instr_mod1, word)


@instruction(
    Mode("BF16 immediate", VERIFIED, vectors="sfpu:SFPMULI", rule="math V10, V11"),
    Mode("sign of the old destination, destination index from LReg 7 (mode bits 1, 3)", DOCUMENTED, rule="math V11"),
)
def SFPMULI(t: TileRecord, thread: Int, imm16_math: Int, lreg_dest: Int, instr_mod1: Int, word: Int) -> Int:
    status = destination(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    if instr_mod1 & ~(NEGATE_C | INDIRECT_D):
        return refuse(t, MULI_MODE, instr_mod1)
    y = load32(t.lregs, lreg_dest) ^ ((instr_mod1 & NEGATE_C) << 30)
    return deliver(t, lreg_dest, instr_mod1 & INDIRECT_D, fma(splat32(imm16_math << 16), y, splat32(0)))


@instruction(
    Mode("BF16 immediate", VERIFIED, vectors="sfpu:SFPADDI", rule="math V10, V11"),
    Mode("sign of the old destination, destination index from LReg 7 (mode bits 1, 3)", DOCUMENTED, rule="math V11"),
)
def SFPADDI(t: TileRecord, thread: Int, imm16_math: Int, lreg_dest: Int, instr_mod1: Int, word: Int) -> Int:
    status = destination(t, lreg_dest, word)
    if status != EXECUTE:
        return status
    if instr_mod1 & ~(NEGATE_C | INDIRECT_D):
        return refuse(t, ADDI_MODE, instr_mod1)
    z = load32(t.lregs, lreg_dest) ^ ((instr_mod1 & NEGATE_C) << 30)
    return deliver(t, lreg_dest, instr_mod1 & INDIRECT_D, fma(splat32(imm16_math << 16), splat32(ONE_FP32), z))
