"""Multiply-add (math V10, V11): the table of section T, and an exact scalar model typed from the rule."""

from __future__ import annotations

import numpy as np
import pytest

from bhemu.errors import UndefinedBehavior
from tests.tensix.sfpu import FMA, Sfpu


def test_the_sixteen_published_multiply_adds(sfpu: Sfpu) -> None:
    for register in range(3):
        sfpu.set(register, *[row[register] for row in FMA])
    sfpu.do("SFPMAD", lreg_src_a=0, lreg_src_b=1, lreg_src_c=2, lreg_dest=3)
    assert sfpu.get(3)[: len(FMA)] == [row[3] for row in FMA]


def _sticky(value: int, amount: int) -> int:
    kept = value >> amount
    return kept | 1 if kept and kept << amount != value else kept


def scalar_fma(x: int, y: int, z: int) -> int:
    """V10 with Python integers, step by step."""
    (sx, ex, fx), (sy, ey, fy), (sz, ez, fz) = (((v >> 31), (v >> 23) & 255, v & 0x7FFFFF) for v in (x, y, z))
    sp, ep = sx ^ sy, ex + ey - 127
    if any(e == 255 and f for e, f in ((ex, fx), (ey, fy), (ez, fz))):
        return 0x7FC00000
    x_inf, y_inf, z_inf = ex == 255, ey == 255, ez == 255
    if (x_inf and ey == 0) or (y_inf and ex == 0) or (z_inf and (x_inf or y_inf) and sz != sp):
        return 0x7FC00000
    if z_inf:
        return z
    if x_inf or y_inf or ep >= 255:
        return sp << 31 | 0x7F800000
    mx, my, mz = ((1 << 23 | f) if e else 0 for e, f in ((ex, fx), (ey, fy), (ez, fz)))
    if mx * my == 0 or ep < 0:
        return z if mz else (sz & sp) << 31
    product = mx * my
    p, q = (product >> 20) | bool(product & 0xFFFFF), mz * 8
    exponent = max(ep, ez)
    p, q = _sticky(p, exponent - ep), _sticky(q, exponent - ez)
    total = (-p if sp else p) + (-q if sz else q)
    if total == 0:
        return (sz & sp) << 31
    sign, r = int(total < 0), abs(total)
    n = r.bit_length() - 27
    exponent += n
    if exponent >= 255:
        return sign << 31 | 0x7F800000
    if exponent <= 0:
        n, exponent = n + 1, 0
    r = r << -n if n <= 0 else (r >> n) | bool(r & ((1 << n) - 1))
    kept, rest = (r >> 3) & 0x7FFFFF, r & 7
    bits = (exponent << 23) + kept + (rest > 4 or (rest == 4 and kept & 1))
    return sign << 31 | (bits if bits >> 23 else 0)


def _operands(rng: np.random.Generator, kind: str) -> list[int]:
    low, high = {"any": (0, 256), "close": (120, 134), "small": (0, 70), "large": (185, 255), "special": (0, 3)}[kind]
    exponent = rng.integers(low, high, 32)
    if kind == "special":
        exponent = np.array([0, 254, 255])[exponent]
    mantissa = np.where(rng.random(32) < 0.3, rng.choice([0, 1, 0x7FFFFF, 0x400000], 32), rng.integers(0, 1 << 23, 32))
    return [
        int(s) << 31 | int(e) << 23 | int(m) for s, e, m in zip(rng.integers(0, 2, 32), exponent, mantissa, strict=True)
    ]


@pytest.mark.parametrize("kinds", ["any any any", "close close close", "small close small", "large close large",
                                   "special close special", "special special any", "small large close"])  # fmt: skip
def test_lanes_agree_with_exact_integers(sfpu: Sfpu, kinds: str) -> None:
    rng = np.random.default_rng(sum(map(ord, kinds)))
    for _ in range(60):
        x, y, z = (_operands(rng, kind) for kind in kinds.split())
        for register, values in enumerate((x, y, z)):
            sfpu.set(register, *values)
        sfpu.do("SFPMAD", lreg_src_a=0, lreg_src_b=1, lreg_src_c=2, lreg_dest=3)
        want = [scalar_fma(*lane) for lane in zip(x, y, z, strict=True)]
        assert sfpu.get(3) == want, [tuple(map(hex, lane)) for lane in zip(x, y, z, want, sfpu.get(3), strict=True)]


def test_mode_bits_flip_the_signs_of_a_and_c(sfpu: Sfpu) -> None:
    sfpu.set(0, 0x40000000)  # 2
    sfpu.set(1, 0x40400000)  # 3
    sfpu.set(2, 0x3F800000)  # 1
    for mode, want in ((0, 7.0), (1, -5.0), (2, 5.0), (3, -7.0)):
        sfpu.do("SFPMAD", lreg_src_a=0, lreg_src_b=1, lreg_src_c=2, lreg_dest=3, instr_mod1=mode)
        assert sfpu.t["lregs"][3].view(np.float32)[0] == want


def test_add_is_a_product_whatever_its_multiplicands_hold(sfpu: Sfpu) -> None:
    sfpu.set(0, 0x40000000)
    sfpu.set(1, 0x40400000)
    sfpu.do("SFPADD", lreg_src_a=0, lreg_src_b=1, lreg_src_c=10, lreg_dest=3)
    assert sfpu.t["lregs"][3].view(np.float32)[0] == 7.0


def test_a_product_without_addend_turns_minus_zero_into_zero(sfpu: Sfpu) -> None:
    sfpu.set(0, 0x80000000)
    sfpu.do("SFPMUL", lreg_src_a=0, lreg_src_b=10, lreg_src_c=9, lreg_dest=3)
    assert sfpu.get(3)[0] == 0


def test_register_indices_come_from_lreg_7_lane_by_lane(sfpu: Sfpu) -> None:
    sfpu.set(0, 0x3F800000)
    sfpu.set(1, 0x40000000)
    sfpu.set(7, *[lane & 1 for lane in range(32)])
    sfpu.do("SFPMAD", lreg_src_a=5, lreg_src_b=10, lreg_src_c=9, lreg_dest=4, instr_mod1=4)
    assert sfpu.get(4) == [0x40000000 if lane & 1 else 0x3F800000 for lane in range(32)]
    sfpu.set(7, *[2 + (lane & 1) for lane in range(32)])
    sfpu.do("SFPMAD", lreg_src_a=0, lreg_src_b=10, lreg_src_c=9, lreg_dest=4, instr_mod1=8)
    assert sfpu.get(2) == [0 if lane & 1 else 0x3F800000 for lane in range(32)]
    assert sfpu.get(3) == [0x3F800000 if lane & 1 else 0 for lane in range(32)]


def test_disabled_lanes_keep_their_result_register(sfpu: Sfpu) -> None:
    sfpu.flags(0x0000FFFF)
    sfpu.set(3, 0x1234)
    sfpu.do("SFPADDI", imm16_math=0x3F80, lreg_dest=3)
    assert sfpu.get(3) == [0x3F800000] * 16 + [0x1234] * 16


def test_constants_are_not_written(sfpu: Sfpu) -> None:
    sfpu.do("SFPMUL", lreg_src_a=10, lreg_src_b=10, lreg_src_c=9, lreg_dest=9)
    assert sfpu.get(9) == [0] * 32


def test_reserved_immediate_modes_are_refused(sfpu: Sfpu) -> None:
    with pytest.raises(UndefinedBehavior, match="mode 4 of SFPADDI"):
        sfpu.do("SFPADDI", imm16_math=0, lreg_dest=0, instr_mod1=4)


def test_mode_bit_1_of_muli_and_addi_negates_the_old_destination(sfpu: Sfpu) -> None:
    for mnemonic, want in (("SFPMULI", 0xC0400000), ("SFPADDI", 0xC0000000)):
        sfpu.set(0, 0x40400000)  # 3.0
        sfpu.do(mnemonic, imm16_math=0x3F80, lreg_dest=0, instr_mod1=2)
        assert sfpu.get(0) == [want] * 32
