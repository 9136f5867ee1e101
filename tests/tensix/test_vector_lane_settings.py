"""Settings that differ by lane: macro templates, sequences, Misc, LaneConfig (math V1, V5, V6)."""

from __future__ import annotations

import pytest

from bhemu.errors import UndefinedBehavior
from tests.tensix.sfpu import ALL, Sfpu, word

pytestmark = pytest.mark.plain


def by_column(*values: int) -> list[int]:
    return [values[lane % 8] for lane in range(32)]


def read_special(sfpu: Sfpu, source: int) -> list[int]:
    """What SFPMOV mode 8 reads, in all lanes."""
    sfpu.do("SFPMOV", lreg_c=source, lreg_dest=3, instr_mod1=8)
    return sfpu.get(3)


@pytest.mark.parametrize("destination", [0, 3, 4, 7, 8, 15])
def test_a_configuration_takes_the_first_eight_lanes_of_lreg_0_in_all_rows(sfpu: Sfpu, destination: int) -> None:
    values = [16 * n for n in range(8)]
    sfpu.set(0, *values, 0x3F)
    sfpu.do("SFPCONFIG", config_dest=destination)
    assert read_special(sfpu, destination) == by_column(*values)


@pytest.mark.parametrize("destination", [0, 5, 8, 15])
def test_equal_columns_are_kept_as_one_value(sfpu: Sfpu, destination: int) -> None:
    sfpu.set(0, 1, 2, 0)
    sfpu.do("SFPCONFIG", config_dest=destination)
    assert sfpu.t["vector"]["settings_mixed"] != 0
    sfpu.set(0, 6)
    sfpu.do("SFPCONFIG", config_dest=destination)
    assert sfpu.t["vector"]["settings_mixed"] == 0
    assert read_special(sfpu, destination) == [6] * 32


def test_columns_that_are_switched_off_keep_their_setting(sfpu: Sfpu) -> None:
    sfpu.flags(0xFFFFFF0F)
    sfpu.do("SFPCONFIG", config_dest=8, imm16_math=0x123, instr_mod1=1)
    sfpu.flags(0xFFFFFFFF)
    assert read_special(sfpu, 8) == by_column(0x123, 0x123, 0x123, 0x123, 0, 0, 0, 0)


@pytest.mark.parametrize(("mode", "want"), [(2, (0x30, 0x31)), (4, (0x10, 0x10)), (6, (0x20, 0x21))])
def test_columns_combine_with_their_own_old_value(sfpu: Sfpu, mode: int, want: tuple[int, int]) -> None:
    sfpu.set(0, 0x30, 0x31, 0x30)
    sfpu.do("SFPCONFIG", config_dest=15)
    sfpu.set(0, 0x10)
    sfpu.do("SFPCONFIG", config_dest=15, instr_mod1=mode)
    assert read_special(sfpu, 15)[:3] == [want[0], want[1], want[0]]


def test_an_immediate_leaves_the_high_bits_of_lane_config_alone_in_each_column(sfpu: Sfpu) -> None:
    sfpu.set(0, 0x10000, 0x20000, 0)
    sfpu.do("SFPCONFIG", config_dest=15)
    sfpu.do("SFPCONFIG", config_dest=15, imm16_math=1, instr_mod1=1)
    assert read_special(sfpu, 15)[:3] == [0x10001, 0x20001, 1]


def test_row_mask_is_obeyed_column_by_column_but_not_by_sfpconfig(sfpu: Sfpu) -> None:
    sfpu.set(0, 0xF000, 0x1000, 0x2000, 0)
    sfpu.do("SFPCONFIG", config_dest=15)
    sfpu.set(1, 0)
    sfpu.do("SFPLOADI", lreg_ind=1, imm16=5, instr_mod0=2)
    assert [sfpu.get(1)[lane] for lane in (0, 1, 2, 3)] == [0, 0, 5, 5]
    assert [sfpu.get(1)[lane] for lane in (8, 9, 10, 11)] == [0, 5, 0, 5]
    sfpu.do("SFPCONFIG", config_dest=15, imm16_math=0, instr_mod1=1)
    sfpu.do("SFPLOADI", lreg_ind=1, imm16=6, instr_mod0=2)
    assert sfpu.get(1) == [6] * 32


def test_a_template_is_recorded_in_the_enabled_lanes(sfpu: Sfpu) -> None:
    first, second = word("SFPMOV", lreg_c=1, lreg_dest=13), word("SFPMOV", lreg_c=2, lreg_dest=13)
    sfpu.do("SFPMOV", lreg_c=1, lreg_dest=13)
    sfpu.flags(0x0000FF01)
    sfpu.do("SFPMOV", lreg_c=2, lreg_dest=13)
    sfpu.flags(0xFFFFFFFF)
    got = read_special(sfpu, 1)
    assert [lane for lane in range(32) if got[lane] == second] == [0, *range(8, 16)]
    assert set(got) == {first, second}


@pytest.mark.rule("math V1")
def test_lanes_with_backdoor_load_switched_off_execute_and_the_others_record(sfpu: Sfpu) -> None:
    sfpu.set(0, 2, 0)
    sfpu.do("SFPCONFIG", config_dest=15)
    sfpu.flags(0x0000FFFF)
    sfpu.set(5, 0x80000000)
    sfpu.do("SFPSETCC", lreg_c=5, lreg_dest=12, instr_mod1=4)  # flag := not negative
    executed = 0x01010101
    assert sfpu.t["vector"]["lane_flags"] == 0x0000FFFF & ~executed
    sfpu.flags(ALL)
    recorded = [int(word("SFPSETCC", lreg_c=5, lreg_dest=12, instr_mod1=4) == value) for value in read_special(sfpu, 0)]
    assert recorded == [int(lane % 8 != 0 and lane < 16) for lane in range(32)]
    sfpu.do("SFPMOV", lreg_c=10, lreg_dest=2)  # the next instruction executes in all lanes again
    assert sfpu.get(2) == [0x3F800000] * 32


@pytest.mark.rule("math V1")
@pytest.mark.rule("math V3")
def test_each_lane_has_a_use_bit_and_a_flag_stack_of_its_own(sfpu: Sfpu) -> None:
    sfpu.set(0, 2, 0)
    sfpu.do("SFPCONFIG", config_dest=15)
    executed = 0x01010101
    sfpu.flags(0x000000FF)
    sfpu.do("SFPPUSHC", lreg_dest=13)
    assert sfpu.t["vector"]["flag_stack_held"].tolist() == [executed] + [0] * 7
    sfpu.do("SFPPUSHC")
    assert sfpu.t["vector"]["flag_stack_held"].tolist() == [ALL, executed] + [0] * 6
    sfpu.flags(ALL)
    sfpu.do("SFPENCC", imm12_math=0, lreg_dest=13, instr_mod1=10)  # use and flags to 0 in single lanes
    assert (sfpu.t["vector"]["use_flags"], sfpu.t["vector"]["lane_flags"]) == (ALL & ~executed, ALL & ~executed)
    sfpu.do("SFPMOV", lreg_c=10, lreg_dest=2)  # where the use bit is 0, the flag does not count
    assert sfpu.get(2) == [0x3F800000] * 32
    sfpu.do("SFPPOPC")
    assert sfpu.t["vector"]["flag_stack_held"].tolist() == [executed] + [0] * 7
    assert (sfpu.t["vector"]["use_flags"], sfpu.t["vector"]["lane_flags"]) == (ALL, 0xFF)
    with pytest.raises(UndefinedBehavior, match="empty"):
        sfpu.do("SFPPOPC")


def test_loads_and_stores_obey_the_bits_of_their_column(sfpu: Sfpu) -> None:
    dst = sfpu.t["dst"]
    dst[0:4] = [[100 * row + column for column in range(16)] for row in range(4)]
    sfpu.set(0, 0, 1 << 6, 1 << 5, 0)  # even columns; always odd; loads blocked
    sfpu.do("SFPCONFIG", config_dest=15)
    sfpu.set(1, 7)
    sfpu.do("SFPLOAD", lreg_ind=1, instr_mod0=6)
    assert sfpu.get(1)[:4] == [0, 3, 7, 6]
    assert sfpu.get(1)[8:12] == [100, 103, 7, 106]
    sfpu.set(0, 0, 1 << 7, 1 << 4, 0)
    sfpu.do("SFPCONFIG", config_dest=15)
    sfpu.set(1, 9)
    sfpu.do("SFPSTORE", lreg_ind=1, instr_mod0=6)
    assert dst[0, :8].tolist() == [9, 1, 2, 9, 4, 5, 9, 7]


def test_fp16_infinity_and_index_capture_by_column(sfpu: Sfpu) -> None:
    sfpu.t["dst"][0:4] = 0x7FFF
    sfpu.set(0, 1, 0xC, 0x4C, 0)
    sfpu.do("SFPCONFIG", config_dest=15)
    sfpu.set(5, 0)
    sfpu.do("SFPLOAD", lreg_ind=1, instr_mod0=1, dest_reg_addr=0)
    assert sfpu.get(1)[:2] == [0x7F800000, 0x47FFE000]
    assert sfpu.get(5)[:4] == [0, 2, 5, 0]
    assert sfpu.get(5)[8:12] == [0, 18, 21, 0]


def test_swaps_obey_the_bits_of_their_column(sfpu: Sfpu) -> None:
    sfpu.set(0, 0, 1 << 2, 1 << 8, 0)
    sfpu.do("SFPCONFIG", config_dest=15)
    for register, value in ((0, 9), (1, 3), (4, 90), (5, 30)):
        sfpu.set(register, value)
    sfpu.do("SFPSWAP", lreg_src_c=1, lreg_dest=0, instr_mod1=1)
    assert [sfpu.get(0)[n] for n in range(4)] == [3, 3, 9, 3]
    assert [sfpu.get(4)[n] for n in range(4)] == [90, 30, 90, 90]


def test_matrix_moves_skip_columns_by_lane_column(sfpu: Sfpu) -> None:
    sfpu.set(0, 0x600, 0x200, 0x400, 0)
    sfpu.do("SFPCONFIG", config_dest=15)
    sfpu.t["src_owner"][:] = 1
    sfpu.t["srca"][0, 0] = 0x40000 | 127
    sfpu.do("MOVA2D")
    assert [column for column in range(16) if sfpu.t["dst"][0, column] == 0] == [0, 1, 2, 5]
