"""Lane flags, their stack and what they keep from happening (math V3, V5)."""

from __future__ import annotations

import pytest

from bhemu.errors import UndefinedBehavior
from tests.tensix.sfpu import ALL, Sfpu, word

F, TOP = 0x0F0F3355, 0x00FF5533


def test_flags_count_only_while_the_use_bit_is_set(sfpu: Sfpu) -> None:
    sfpu.flags(0)
    sfpu.do("SFPMOV", lreg_c=10, lreg_dest=0)
    assert sfpu.get(0) == [0] * 32
    sfpu.t["vector"]["use_flags"] = 0
    sfpu.do("SFPMOV", lreg_c=10, lreg_dest=0)
    assert sfpu.get(0) == [0x3F800000] * 32


def test_row_mask_switches_rows_of_lanes_off(sfpu: Sfpu) -> None:
    sfpu.t["vector"]["lane_config"] = 0b0110 << 12
    sfpu.do("SFPMOV", lreg_c=10, lreg_dest=0)
    assert sfpu.get(0) == [0x3F800000] * 8 + [0] * 16 + [0x3F800000] * 8


@pytest.mark.parametrize(
    ("mode", "immediate", "use", "flags"),
    [
        (0, 0, ALL, ALL),
        (1, 0, 0, ALL),
        (2, 0, 0, ALL),
        (2, 1, ALL, ALL),
        (8, 0, ALL, 0),
        (10, 3, ALL, ALL),
        (10, 1, ALL, 0),
    ],
)
def test_encc_writes_the_use_bit_and_all_flags(sfpu: Sfpu, mode: int, immediate: int, use: int, flags: int) -> None:
    sfpu.flags(F)
    sfpu.do("SFPENCC", instr_mod1=mode, imm12_math=immediate)
    assert (sfpu.t["vector"]["use_flags"], sfpu.t["vector"]["lane_flags"]) == (use, flags)


SETCC = {0: lambda v: v < 0, 2: lambda v: v != 0, 4: lambda v: v >= 0, 6: lambda v: v == 0}


@pytest.mark.parametrize("mode", SETCC)
def test_setcc_compares_twos_complement_in_enabled_lanes_only(sfpu: Sfpu, mode: int) -> None:
    values = [0, 1, -1, -0x80000000] * 8
    sfpu.set(1, *[v & ALL for v in values])
    sfpu.flags(F)
    sfpu.do("SFPSETCC", lreg_c=1, instr_mod1=mode)
    holds = sum(1 << i for i, v in enumerate(values) if SETCC[mode](v))
    assert sfpu.t["vector"]["lane_flags"] == holds & F


def test_setcc_takes_an_immediate_or_clears(sfpu: Sfpu) -> None:
    sfpu.flags(F)
    sfpu.do("SFPSETCC", imm12_math=1, instr_mod1=1)
    assert sfpu.t["vector"]["lane_flags"] == F
    sfpu.do("SFPSETCC", imm12_math=0, instr_mod1=1)
    assert sfpu.t["vector"]["lane_flags"] == 0
    sfpu.flags(F)
    sfpu.do("SFPSETCC", instr_mod1=8)
    assert sfpu.t["vector"]["lane_flags"] == 0


def test_else_is_the_rest_of_the_pushed_flags(sfpu: Sfpu) -> None:
    sfpu.flags(F)
    sfpu.do("SFPPUSHC")
    sfpu.flags(F & 0xFF)
    sfpu.do("SFPCOMPC")
    assert sfpu.t["vector"]["lane_flags"] == F & ~0xFF
    sfpu.do("SFPPOPC")
    assert (sfpu.t["vector"]["lane_flags"], sfpu.t["vector"]["flag_stack_held"].any()) == (F, False)
    sfpu.do("SFPCOMPC")  # an empty stack counts as all lanes
    assert sfpu.t["vector"]["lane_flags"] == ~F & ALL


LOGIC = {
    1: lambda x, y: y, 2: lambda x, y: ~y, 3: lambda x, y: x & y, 4: lambda x, y: x | y,
    5: lambda x, y: x & ~y, 6: lambda x, y: x | ~y, 7: lambda x, y: ~x & y, 8: lambda x, y: ~x | y,
    9: lambda x, y: ~x & ~y, 10: lambda x, y: ~x | ~y, 11: lambda x, y: x ^ y, 12: lambda x, y: ~(x ^ y),
}  # fmt: skip


@pytest.mark.parametrize("mode", LOGIC)
def test_stack_logic_updates_the_top_on_push_and_the_flags_on_pop(sfpu: Sfpu, mode: int) -> None:
    def prepare() -> None:
        sfpu.flags(TOP)
        sfpu.t["vector"]["flag_stack_held"] = 0
        sfpu.do("SFPPUSHC")
        sfpu.flags(F)

    prepare()
    sfpu.do("SFPPUSHC", instr_mod1=mode)
    assert sfpu.t["vector"]["flag_stack"][0] == LOGIC[mode](TOP, F) & ALL
    assert sfpu.t["vector"]["lane_flags"] == F
    prepare()
    sfpu.do("SFPPOPC", instr_mod1=mode)
    assert sfpu.t["vector"]["lane_flags"] == LOGIC[mode](F, TOP) & ALL
    assert (sfpu.t["vector"]["flag_stack"][0], sfpu.t["vector"]["flag_stack_held"].tolist()) == (TOP, [ALL] + [0] * 7)


@pytest.mark.parametrize(("mode", "top", "flags"), [(13, ~F & ALL, ~F & ALL), (14, ALL, F), (15, 0, F)])
def test_push_modes_above_the_logic(sfpu: Sfpu, mode: int, top: int, flags: int) -> None:
    sfpu.do("SFPPUSHC")
    sfpu.flags(F)
    sfpu.do("SFPPUSHC", instr_mod1=mode)
    assert (sfpu.t["vector"]["flag_stack"][0], sfpu.t["vector"]["use_stack"][0], sfpu.t["vector"]["lane_flags"]) == (
        top,
        ALL,
        flags,
    )


@pytest.mark.parametrize(("mode", "flags"), [(13, ~F & ALL), (14, ALL), (15, 0)])
def test_pop_modes_above_the_logic(sfpu: Sfpu, mode: int, flags: int) -> None:
    sfpu.flags(F)
    sfpu.do("SFPPOPC", instr_mod1=mode)
    assert (sfpu.t["vector"]["lane_flags"], sfpu.t["vector"]["use_flags"]) == (flags, ALL)


def test_the_stack_holds_eight_entries(sfpu: Sfpu) -> None:
    for _ in range(8):
        sfpu.do("SFPPUSHC")
    with pytest.raises(UndefinedBehavior, match="8 entries"):
        sfpu.do("SFPPUSHC")
    for _ in range(8):
        sfpu.do("SFPPOPC")
    with pytest.raises(UndefinedBehavior, match="empty"):
        sfpu.do("SFPPOPC")
    with pytest.raises(UndefinedBehavior, match="empty"):
        sfpu.do("SFPPUSHC", instr_mod1=3)


def test_peeking_at_a_full_stack_overwrites_its_oldest_entry(sfpu: Sfpu) -> None:
    for depth in range(8):
        sfpu.flags(depth)
        sfpu.do("SFPPUSHC")
    sfpu.do("SFPPOPC", instr_mod1=1)
    assert sfpu.t["vector"]["flag_stack"].tolist() == [7, 1, 2, 3, 4, 5, 6, 7]


def test_instructions_that_write_no_register_leave_the_flags(sfpu: Sfpu) -> None:
    sfpu.do("SFPIADD", lreg_c=9, lreg_dest=9, imm12_math=1, instr_mod1=1)
    assert sfpu.t["vector"]["lane_flags"] == ALL


@pytest.mark.parametrize("mode", [0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14])
def test_integer_addition_flags_by_mode(sfpu: Sfpu, mode: int) -> None:
    values = [0, 1, ALL, 0x80000000] * 8
    sfpu.set(1, *values)
    sfpu.set(2, 0)
    sfpu.flags(F)
    sfpu.do("SFPIADD", lreg_c=1, lreg_dest=2, imm12_math=0, instr_mod1=mode)
    flags = F if mode & 4 else sum(1 << i for i, v in enumerate(values) if v >> 31)
    if mode & 8:
        flags = ~flags
    assert sfpu.t["vector"]["lane_flags"] == flags & F


def test_a_destination_above_11_records_the_word_as_template(sfpu: Sfpu) -> None:
    sfpu.do("SFPABS", lreg_c=10, lreg_dest=13, instr_mod1=1)
    assert sfpu.t["macro"]["template"][1] == word("SFPABS", lreg_c=10, lreg_dest=13, instr_mod1=1)
    sfpu.do("SFPMOV", lreg_c=1, lreg_dest=0, instr_mod1=8)
    assert sfpu.get(0)[0] == sfpu.t["macro"]["template"][1]
    sfpu.t["vector"]["lane_config"] = 2
    sfpu.do("SFPMOV", lreg_c=10, lreg_dest=12)
    assert sfpu.t["macro"]["template"][0] == 0


def test_results_for_lreg_4_to_7_are_refused_with_index_pairs_on(sfpu: Sfpu) -> None:
    sfpu.t["vector"]["lane_config"] = 4
    with pytest.raises(UndefinedBehavior, match="LReg 5"):
        sfpu.do("SFPMOV", lreg_c=10, lreg_dest=5)
    sfpu.do("SFPMOV", lreg_c=10, lreg_dest=3)
    assert sfpu.get(3)[0] == 0x3F800000
    sfpu.set(7, *[5 if lane == 9 else 1 for lane in range(32)])
    with pytest.raises(UndefinedBehavior, match="LReg 5"):
        sfpu.do("SFPMAD", lreg_src_a=10, lreg_src_b=10, lreg_src_c=9, lreg_dest=0, instr_mod1=8)
