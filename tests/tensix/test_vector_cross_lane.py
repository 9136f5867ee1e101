"""Swaps, shifts between lanes, transposition, comparisons, SFPCONFIG (math V5, V6, V18 to V20)."""

from __future__ import annotations

import numpy as np
import pytest

from tests.tensix.sfpu import ALL, Sfpu

# Values in ascending total order: -largest < ... < -0 < +0 < ... < +largest (F17)
ASCENDING = [0xFFFFFFFF, 0xFF800000, 0xC0000000, 0x80000001, 0x80000000, 0, 1, 0x3F800000, 0x7F800000, 0x7FFFFFFF]


@pytest.fixture
def sfpu() -> Sfpu:
    unit = Sfpu()
    for register in range(8):
        unit.set(register, *[100 * register + lane for lane in range(32)])
    return unit


@pytest.mark.rule("math V18")
@pytest.mark.parametrize(
    ("mode", "rows"),
    [(1, "0123"), (2, "01"), (3, "02"), (4, "03"), (5, "0"), (6, "1"), (7, "2"), (8, "3"), (9, "")]
    + [(mode, "") for mode in range(10, 16)],
)
def test_swap_leaves_the_minimum_in_the_rows_of_its_mode(sfpu: Sfpu, mode: int, rows: str) -> None:
    sfpu.set(0, 1)
    sfpu.set(1, 0x80000001)
    sfpu.do("SFPSWAP", lreg_src_c=0, lreg_dest=1, instr_mod1=mode)
    assert sfpu.get(1) == [0x80000001 if str(lane // 8) in rows else 1 for lane in range(32)]
    assert sfpu.get(0) == [1 if str(lane // 8) in rows else 0x80000001 for lane in range(32)]


@pytest.mark.rule("math F17")
def test_comparisons_use_the_total_order(sfpu: Sfpu) -> None:
    for i, low in enumerate(ASCENDING):
        for j, high in enumerate(ASCENDING):
            sfpu.set(0, low)
            sfpu.set(1, high)
            sfpu.do("SFPGT", lreg_c=0, lreg_dest=1, instr_mod1=8)
            assert sfpu.get(1)[0] == (ALL if j > i else 0)
            sfpu.set(1, high)
            sfpu.do("SFPLE", lreg_c=0, lreg_dest=1, instr_mod1=8)
            assert sfpu.get(1)[0] == (ALL if j <= i else 0)


def test_comparisons_go_into_the_flags_of_enabled_lanes(sfpu: Sfpu) -> None:
    sfpu.flags(0x00FFFF00)
    sfpu.set(0, *[lane & 1 for lane in range(32)])
    sfpu.do("SFPGT", lreg_c=9, lreg_dest=0, instr_mod1=1)
    assert sfpu.t["vector"]["lane_flags"] == 0x00AAAA00


def test_comparisons_combine_with_the_top_of_the_stack(sfpu: Sfpu) -> None:
    sfpu.do("SFPGT", lreg_c=9, lreg_dest=0, instr_mod1=2)  # an empty stack has no top
    assert sfpu.t["vector"]["flag_stack"][0] == 0
    sfpu.set(0, *[lane & 1 for lane in range(32)])
    for mode, want in ((2, 0x0000AAAA), (6, 0xAAAAFFFF)):
        sfpu.t["vector"]["flag_stack_held"][0], sfpu.t["vector"]["flag_stack"][0] = ALL, 0x0000FFFF
        sfpu.do("SFPGT", lreg_c=9, lreg_dest=0, instr_mod1=mode)
        assert sfpu.t["vector"]["flag_stack"][0] == want


@pytest.mark.rule("math V18")
def test_index_pairs_move_with_their_values(sfpu: Sfpu) -> None:
    sfpu.t["vector"]["lane_config"] = 4
    sfpu.do("SFPSWAP", lreg_src_c=0, lreg_dest=1, instr_mod1=1)
    assert [sfpu.get(r)[0] for r in (0, 1, 4, 5)] == [100, 0, 500, 400]


@pytest.mark.rule("math V18")
def test_lane_config_bit_8_inverts_the_comparison_but_not_a_plain_swap(sfpu: Sfpu) -> None:
    sfpu.t["vector"]["lane_config"] = 1 << 8
    sfpu.do("SFPSWAP", lreg_src_c=0, lreg_dest=1, instr_mod1=1)
    assert sfpu.get(1)[0] == 100
    sfpu.do("SFPSWAP", lreg_src_c=0, lreg_dest=1)
    assert sfpu.get(1)[0] == 0


@pytest.mark.rule("math V18")
def test_a_swap_with_a_constant_is_one_sided(sfpu: Sfpu) -> None:
    sfpu.do("SFPSWAP", lreg_src_c=10, lreg_dest=1)
    assert sfpu.get(1) == [0x3F800000] * 32
    assert sfpu.get(10) == [0x3F800000] * 32


@pytest.mark.rule("math V19")
@pytest.mark.parametrize(("mode", "first"), [(3, 7), (4, None)])
def test_lanes_move_right_within_their_row(sfpu: Sfpu, mode: int, first: int | None) -> None:
    sfpu.do("SFPSHFT2", lreg_src_c=1, lreg_dest=1, instr_mod1=mode)
    for row in range(4):
        base = 100 + 8 * row
        head = 0 if first is None else base + first
        assert sfpu.get(1)[8 * row : 8 * row + 8] == [head, *range(base, base + 7)]


@pytest.mark.rule("math V19")
def test_sfpshft2_moves_four_registers_down(sfpu: Sfpu) -> None:
    before = [sfpu.get(r) for r in range(8)]
    sfpu.do("SFPSHFT2", instr_mod1=0)
    assert [sfpu.get(r) for r in range(4)] == [*before[1:4], [0] * 32]
    sfpu.do("SFPSHFT2", instr_mod1=1)
    assert sfpu.get(3) == before[1][8:] + [0] * 8
    sfpu.do("SFPSHFT2", lreg_src_c=5, instr_mod1=2)
    assert sfpu.get(3)[:9] == [507, *range(500, 507), 515]


def test_shift_by_immediate_names_its_register_in_the_same_bits(sfpu: Sfpu) -> None:
    sfpu.do("SFPSHFT2", imm12_math=5, lreg_dest=0, instr_mod1=6)
    assert sfpu.get(0)[0] == 500 << 5
    sfpu.do("SFPSHFT2", imm12_math=0xFF5, lreg_dest=0, instr_mod1=6)  # -11
    assert sfpu.get(0)[31] == 531 >> 11


@pytest.mark.rule("math V20")
def test_transposition_exchanges_lane_rows_and_registers(sfpu: Sfpu) -> None:
    before = np.array(sfpu.t["lregs"][:8]).reshape(2, 4, 4, 8)
    sfpu.do("SFPTRANSP")
    after = np.array(sfpu.t["lregs"][:8]).reshape(2, 4, 4, 8)
    assert np.array_equal(after, before.swapaxes(1, 2))


@pytest.mark.rule("math V20")
def test_transposition_writes_enabled_lanes_only(sfpu: Sfpu) -> None:
    before = np.array(sfpu.t["lregs"][:8]).reshape(2, 4, 4, 8)
    sfpu.flags(0x000000FF)
    sfpu.do("SFPTRANSP")
    after = np.array(sfpu.t["lregs"][:8]).reshape(2, 4, 4, 8)
    assert np.array_equal(after[:, :, 0], before[:, 0])
    assert np.array_equal(after[:, :, 1:], before[:, :, 1:])


@pytest.mark.rule("math V6")
def test_constants_take_lane_columns_of_lreg_0(sfpu: Sfpu) -> None:
    sfpu.flags(0xFFFFFF0F)
    sfpu.do("SFPCONFIG", config_dest=13)
    default = 0xBF2CC4C7
    assert sfpu.get(13) == [lane % 8 if lane % 8 < 4 else default for lane in range(32)]


@pytest.mark.rule("math V6")
def test_an_immediate_may_choose_the_columns(sfpu: Sfpu) -> None:
    sfpu.do("SFPCONFIG", config_dest=12, imm16_math=0b0100_0001, instr_mod1=9)  # columns 0 and 3 take the default
    assert sfpu.get(12)[:4] == [0x37800000, 0x3B000000, 0x3B000000, 0x37800000]


@pytest.mark.rule("math V6")
@pytest.mark.parametrize(("mode", "want"), [(1, 0x0F0), (3, 0xFF0), (5, 0x0), (7, 0xFF0)])
def test_misc_and_lane_config_combine_with_their_old_value(sfpu: Sfpu, mode: int, want: int) -> None:
    sfpu.t["macro"]["misc"] = 0xF00
    sfpu.t["vector"]["lane_config"] = 0x30F00
    for destination in (8, 15):
        sfpu.do("SFPCONFIG", config_dest=destination, imm16_math=0x0F0, instr_mod1=mode)
    assert sfpu.t["macro"]["misc"] == want
    assert sfpu.t["vector"]["lane_config"] == want | 0x30000


@pytest.mark.rule("math V4")
def test_the_generator_is_read_before_it_steps(sfpu: Sfpu) -> None:
    sfpu.t["prng"][:] = 0x12345678
    sfpu.flags(1)
    sfpu.do("SFPMOV", lreg_c=9, lreg_dest=2, instr_mod1=8)
    assert sfpu.get(2)[:2] == [0x12345678, 201]
    assert [int(x) for x in sfpu.t["prng"][:2]] == [0x12345678 >> 1, 0x12345678]
