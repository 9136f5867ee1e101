"""Row counters and address modifiers (math R1 to R7), and giving Src banks back (math F28)."""

from __future__ import annotations

from typing import Any

import pytest

from bhemu.api.tile import Tile
from bhemu.errors import MissingSpecification, NonContractualBehavior, UndefinedBehavior
from bhemu.isa.instructions import encode
from bhemu.machine.counters import (
    RWC_A,
    RWC_A_CR,
    RWC_B,
    RWC_B_CR,
    RWC_BIAS,
    RWC_DST,
    RWC_DST_CR,
    RWC_FIDELITY,
)

pytestmark = pytest.mark.plain

THREAD = 1
COUNTERS = {
    "a": RWC_A,
    "a_cr": RWC_A_CR,
    "b": RWC_B,
    "b_cr": RWC_B_CR,
    "dst": RWC_DST,
    "dst_cr": RWC_DST_CR,
    "fidelity": RWC_FIDELITY,
    "bias": RWC_BIAS,
}


def counters(tile: Tile, **values: int) -> None:
    for name, value in values.items():
        tile.record.rwc[THREAD, COUNTERS[name]] = value


def read(tile: Tile) -> dict[str, int]:
    return {name: int(tile.record.rwc[THREAD, place]) for name, place in COUNTERS.items()}


START = {"a": 60, "a_cr": 50, "b": 10, "b_cr": 20, "dst": 1020, "dst_cr": 1000, "fidelity": 3, "bias": 0}


def modifier(tile: Tile, index: int, **fields: int) -> None:
    config = tile.config.for_thread(THREAD)
    for name, value in fields.items():
        group, field = name.split("_", 1)
        config[f"ADDR_MOD_{group}_SEC{index}_{field}"] = value


@pytest.mark.rule("math R4")
@pytest.mark.parametrize("index", range(8))
@pytest.mark.parametrize(
    ("fields", "changed"),
    [
        ({}, {}),
        ({"AB_SrcAIncr": 8}, {"a": 4}),
        ({"AB_SrcAIncr": 16, "AB_SrcACR": 1}, {"a": 2, "a_cr": 2}),
        ({"AB_SrcAClear": 1, "AB_SrcAIncr": 5, "AB_SrcACR": 1}, {"a": 0, "a_cr": 0}),
        ({"AB_SrcBIncr": 63}, {"b": 9}),
        ({"AB_SrcBIncr": 4, "AB_SrcBCR": 1}, {"b": 24, "b_cr": 24}),
        ({"AB_SrcBClear": 1, "AB_SrcBIncr": 5}, {"b": 0, "b_cr": 0}),
        ({"DST_DestIncr": 8}, {"dst": 4}),
        ({"DST_DestIncr": 32, "DST_DestCR": 1}, {"dst": 8, "dst_cr": 8}),
        ({"DST_DestIncr": 6, "DST_DestCToCR": 1}, {"dst": 2, "dst_cr": 2}),
        ({"DST_DestIncr": 6, "DST_DestCToCR": 1, "DST_DestCR": 1}, {"dst": 2, "dst_cr": 2}),
        ({"DST_DestIncr": 6, "DST_DestClear": 1, "DST_DestCToCR": 1}, {"dst": 0, "dst_cr": 0}),
        ({"DST_FidelityIncr": 2}, {"fidelity": 1}),
        ({"DST_FidelityIncr": 2, "DST_FidelityClear": 1}, {"fidelity": 0}),
        ({"BIAS_BiasIncr": 1}, {"bias": 1}),
        ({"BIAS_BiasIncr": 4}, {}),
    ],
)
def test_an_address_modifier_moves_the_counters(
    tile: Tile, index: int, fields: dict[str, int], changed: dict[str, int]
) -> None:
    counters(tile, **START)
    modifier(tile, index, **fields)
    tile.execute(THREAD, encode("ZEROACC", addr_mode=index))
    assert read(tile) == START | changed


@pytest.mark.rule("math R4")
def test_bias_clear_goes_before_bias_increment(tile: Tile) -> None:
    counters(tile, bias=1)
    modifier(tile, 0, BIAS_BiasIncr=1, BIAS_BiasClear=1)
    tile.execute(THREAD, encode("ZEROACC", addr_mode=0))
    assert read(tile)["bias"] == 0


@pytest.mark.rule("math R4")
def test_loads_and_stores_of_the_vector_unit_keep_the_fidelity_phase(tile: Tile) -> None:
    counters(tile, **START)
    modifier(tile, 2, DST_DestIncr=2, DST_FidelityClear=1, AB_SrcAIncr=1)
    tile.execute(THREAD, encode("SFPLOAD", instr_mod0=4, sfpu_addr_mode=2))
    assert read(tile) == START | {"dst": 1022, "a": 61}


@pytest.mark.rule("math R3")
def test_ab2_is_refused_until_the_user_accepts_that_it_does_nothing(tile: Tile) -> None:
    modifier(tile, 3, AB2_SrcAIncr=1, DST_DestIncr=8)
    word = encode("ZEROACC", addr_mode=3)
    with pytest.raises(MissingSpecification, match="address modifier 3 has ADDR_MOD_AB2 = 0x1"):
        tile.execute(THREAD, word)
    assert read(tile)["dst"] == 0
    tile.record.allow_open = 1
    tile.execute(THREAD, word)
    assert read(tile)["dst"] == 8


@pytest.mark.rule("math R5")
@pytest.mark.parametrize(
    ("operands", "changed"),
    [
        ({"BitMask": 1, "rwc_a": 9}, {"a": 9, "a_cr": 9}),
        ({"BitMask": 2, "rwc_b": 9}, {"b": 9, "b_cr": 9}),
        ({"BitMask": 4, "rwc_d": 9}, {"dst": 9, "dst_cr": 9}),
        ({"BitMask": 8}, {"fidelity": 0}),
        ({"BitMask": 0, "rwc_a": 1, "rwc_b": 2, "rwc_d": 3}, {}),
        ({"BitMask": 1, "rwc_cr": 1, "rwc_a": 15}, {"a": 1, "a_cr": 1}),
        ({"BitMask": 2, "rwc_cr": 2, "rwc_b": 15}, {"b": 35, "b_cr": 35}),
        ({"BitMask": 4, "rwc_cr": 4, "rwc_d": 15}, {"dst": 1015, "dst_cr": 1015}),
        ({"BitMask": 0, "rwc_cr": 7, "rwc_a": 1, "rwc_b": 2, "rwc_d": 3}, {}),
        ({"BitMask": 0, "rwc_cr": 8, "rwc_d": 6}, {"dst": 2, "dst_cr": 2}),
        ({"BitMask": 4, "rwc_cr": 12, "rwc_d": 6}, {"dst": 2, "dst_cr": 2}),
    ],
)
def test_setrwc_sets_the_counters_that_its_masks_name(
    tile: Tile, operands: dict[str, int], changed: dict[str, int]
) -> None:
    counters(tile, **START)
    tile.execute(THREAD, encode("SETRWC", **operands))
    assert read(tile) == START | changed


@pytest.mark.rule("math R5")
def test_bit_4_sets_the_threads_vector_stack_pointer_from_all_twelve_value_bits(tile: Tile) -> None:
    counters(tile, **START)
    tile.execute(THREAD, encode("SETRWC", BitMask=16, rwc_a=0xA, rwc_b=0x5, rwc_d=0xE))
    assert tile.record.vector.dst_stack_pointer.tolist() == [0x25A if thread == THREAD else 0 for thread in range(3)]
    assert read(tile) == START  # and its ten bits are all that the pointer has (R1)


@pytest.mark.rule("math R6")
@pytest.mark.parametrize(
    ("operands", "changed"),
    [
        ({"rwc_a": 5, "rwc_b": 6, "rwc_d": 7}, {"a": 1, "b": 16, "dst": 3}),
        ({"rwc_cr": 1, "rwc_a": 15}, {"a": 1, "a_cr": 1}),
        ({"rwc_cr": 2, "rwc_b": 15}, {"b": 35, "b_cr": 35}),
        ({"rwc_cr": 4, "rwc_d": 15}, {"dst": 1015, "dst_cr": 1015}),
        ({"rwc_cr": 7}, {"a": 50, "b": 20, "dst": 1000}),
    ],
)
def test_incrwc_adds_to_counters_and_to_the_copies_that_its_mask_names(
    tile: Tile, operands: dict[str, int], changed: dict[str, int]
) -> None:
    counters(tile, **START)
    tile.execute(THREAD, encode("INCRWC", **operands))
    assert read(tile) == START | changed


@pytest.mark.rule("math R1")
def test_threads_do_not_see_each_others_counters(tile: Tile) -> None:
    tile.execute(0, encode("INCRWC", rwc_d=3))
    assert read(tile)["dst"] == 0
    assert tile.record.rwc[0, RWC_DST] == 3


def valid(tile: Tile, *banks: tuple[int, int]) -> None:
    for file, bank in banks:
        tile.record.src_owner[file, bank] = 1


@pytest.mark.rule("math F28")
@pytest.mark.parametrize(("mask", "owners", "banks"), [(1, [0, 1], [1, 0]), (2, [1, 0], [0, 1]), (3, [0, 0], [1, 1])])
def test_setrwc_gives_banks_back(tile: Tile, mask: int, owners: list[int], banks: list[int]) -> None:
    valid(tile, (0, 0), (1, 0))
    tile.execute(THREAD, encode("SETRWC", clear_ab_vld=mask))
    assert tile.record.src_owner[:, 0].tolist() == owners
    assert tile.record.matrix.bank.tolist() == banks


@pytest.mark.rule("math F28")
@pytest.mark.parametrize(("file", "letter"), [(0, "A"), (1, "B")])
def test_with_clr_dvalid_disable_the_bank_stays_valid_and_the_matrix_unit_moves_on(
    tile: Tile, file: int, letter: str
) -> None:
    valid(tile, (0, 0), (1, 0))
    tile.config.for_thread(THREAD)[f"CLR_DVALID_Src{letter}_Disable"] = 1
    tile.execute(THREAD, encode("SETRWC", clear_ab_vld=3))
    assert tile.record.src_owner[:, 0].tolist() == [1 - file, file]
    assert tile.record.matrix.bank.tolist() == [1, 1]


@pytest.mark.rule("math F29")
def test_hand_back_can_ignore_the_disable_bits(tile: Tile) -> None:
    valid(tile, (0, 0), (1, 0))
    config = tile.config.for_thread(THREAD)
    config["CLR_DVALID_SrcA_Disable"] = config["CLR_DVALID_SrcB_Disable"] = 1
    tile.execute(THREAD, encode("CLEARDVALID", cleardvalid=3))
    assert not tile.record.src_owner.any()
    assert tile.record.matrix.bank.tolist() == [1, 1]


@pytest.mark.rule("math F28")
def test_a_bank_of_the_unpackers_cannot_be_given_back_and_nothing_changes(tile: Tile) -> None:
    valid(tile, (0, 0))
    before = tile.snapshot()
    with pytest.raises(NonContractualBehavior, match="SrcB bank 0"):
        tile.execute(THREAD, encode("SETRWC", clear_ab_vld=3, BitMask=15, rwc_a=4, rwc_d=4))
    assert_same_machine(before, tile)


def assert_same_machine(before: Any, tile: Tile) -> None:
    """Everything but the accounts of the front end is as it was."""
    now = tile.record.copy()
    tile.restore(before)
    for name in ("rwc", "src_owner", "config", "thread_config", "gpr", "adc"):
        assert (tile.record[name] == now[name]).all(), name
    assert (tile.record["matrix"]["bank"] == now["matrix"]["bank"]).all()


@pytest.mark.parametrize("word", [encode("SETRWC", reserved=0x20), encode("INCRWC", reserved=1)])
def test_reserved_bits_are_refused(tile: Tile, word: int) -> None:
    with pytest.raises(UndefinedBehavior, match="belong to no operand"):
        tile.execute(THREAD, word)
