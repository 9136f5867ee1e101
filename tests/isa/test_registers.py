"""The configuration-register map: structure, held bits, lookup."""

from __future__ import annotations

import numpy as np
import pytest

from bhemu.errors import AssemblyError
from bhemu.isa import registers
from bhemu.isa.registers import CONFIG_FIELDS, THREAD_FIELDS, THREAD_WRITABLE_MASK, WRITABLE_MASK

CONFIG_WORDS_WITHOUT_FIELDS = {9, 10, 11, 41, 42, 43, 54, 55, *range(160, 180), 223}
ALIASES = {
    f"THCON_SEC{unit}_REG0_TileDescriptor{part}" for unit in (0, 1) for part in ("", "_word1", "_word2", "_word3")
}


@pytest.mark.parametrize(("space", "words"), [("config", registers.CONFIG_WORDS), ("thread", registers.THREAD_WORDS)])
def test_fields_of_a_word_are_in_order_and_do_not_overlap(space: registers.Space, words: int) -> None:
    bits = 32 if space == "config" else 16
    for word in range(words):
        next_free = 0
        for row in registers.fields_of_word(space, word):
            assert row.lsb >= next_free, row
            assert row.width > 0
            assert row.msb < bits, row
            assert row.mask == ((1 << row.width) - 1) << row.lsb
            next_free = row.msb + 1


def test_only_the_tile_descriptor_words_have_aliases_and_those_cover_whole_words() -> None:
    aliases = {row.name: row for row in CONFIG_FIELDS.values() if row.access == "alias"}
    assert set(aliases) == ALIASES
    assert all((row.lsb, row.width) == (0, 32) for row in aliases.values())
    assert {row.word for row in aliases.values()} == {64, 65, 66, 67, 112, 113, 114, 115}
    assert not any(row.access == "alias" for row in THREAD_FIELDS.values())


def test_every_word_has_a_field_except_the_listed_holes() -> None:
    empty = {word for word in range(registers.CONFIG_WORDS) if not registers.fields_of_word("config", word)}
    assert empty == CONFIG_WORDS_WITHOUT_FIELDS
    assert all(registers.fields_of_word("thread", word) for word in range(registers.THREAD_WORDS))


def test_names_are_unique_over_both_spaces() -> None:
    assert len({row.name for row in registers._ROWS}) == len(registers._ROWS)
    assert len(CONFIG_FIELDS) + len(THREAD_FIELDS) == len(registers._ROWS)


def test_second_thcon_section_repeats_the_first_48_words_higher() -> None:
    first = {row.name[11:]: row for row in CONFIG_FIELDS.values() if row.name.startswith("THCON_SEC0_")}
    second = {row.name[11:]: row for row in CONFIG_FIELDS.values() if row.name.startswith("THCON_SEC1_")}
    assert first.keys() == second.keys()
    for name, row in first.items():
        assert (second[name].word, second[name].lsb, second[name].width) == (row.word + 48, row.lsb, row.width)


def test_held_bits_are_the_union_of_the_fields_of_a_word() -> None:
    for space, masks in (("config", WRITABLE_MASK), ("thread", THREAD_WRITABLE_MASK)):
        for word, mask in enumerate(masks):
            rows = [row for row in registers._ROWS if (row.space, row.word) == (space, word)]
            union = 0
            for row in rows:
                union |= row.mask
            acts_only = any(row.access == "pulse" for row in rows)
            assert int(mask) == (0 if acts_only else union), (space, word)
    assert WRITABLE_MASK.dtype == np.uint32
    assert THREAD_WRITABLE_MASK.dtype == np.uint16
    assert int(WRITABLE_MASK[64]) == 0xFFFF_FFFF
    assert int(WRITABLE_MASK[71]) == 0xFFDF_FFFF
    assert int(THREAD_WRITABLE_MASK[41]) == 0xFF3F


def test_words_that_act_at_the_write_hold_nothing() -> None:
    pulses = {row.word for row in CONFIG_FIELDS.values() if row.access == "pulse"}
    assert pulses == {185, 186}
    assert not WRITABLE_MASK[[185, 186]].any()


def test_masks_cannot_be_changed() -> None:
    for mask in (WRITABLE_MASK, THREAD_WRITABLE_MASK):
        with pytest.raises(ValueError, match="read-only"):
            mask[0] = 0


# --- lookup -----------------------------------------------------------------------------------------------------------


def test_config_and_thread_return_plain_ints_with_an_unshifted_value_mask() -> None:
    assert registers.config("THCON_SEC0_REG1_Out_data_format") == (70, 4, 0xF)
    assert registers.config("PRNG_SEED_Seed_Val") == (186, 0, 0xFFFF_FFFF)
    assert registers.thread("UNPACK_MISC_CFG_CfgContextOffset_1") == (41, 8, 0xF)
    assert [type(part) for part in registers.config("STACC_RELU_ReluThreshold")] == [int, int, int]


def test_field_searches_both_spaces_and_the_narrow_lookups_only_their_own() -> None:
    assert registers.field("PRNG_SEED_Seed_Val").space == "config"
    assert registers.field("SRCA_SET_Base").space == "thread"
    with pytest.raises(AssemblyError):
        registers.config("SRCA_SET_Base")
    with pytest.raises(AssemblyError):
        registers.thread("PRNG_SEED_Seed_Val")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("THCON_SEC0_REG1_Out_dataformat", "THCON_SEC0_REG1_Out_data_format"),
        ("prng_seed_seed_val", "PRNG_SEED_Seed_Val"),
        ("SRCA_SET_SetOverdWithAddr", "SRCA_SET_SetOvrdWithAddr"),
    ],
)
def test_a_misspelled_field_is_refused_with_the_name_that_was_meant(wrong: str, right: str) -> None:
    with pytest.raises(AssemblyError) as refusal:
        registers.field(wrong)
    assert wrong in refusal.value.message
    assert refusal.value.remedy is not None
    assert right in refusal.value.remedy


def test_a_name_like_no_other_is_refused_with_a_pointer_to_search() -> None:
    with pytest.raises(AssemblyError) as refusal:
        registers.field("@@@")
    assert "search" in (refusal.value.remedy or "")


@pytest.mark.parametrize(("space", "word"), [("config", 224), ("config", -1), ("thread", 68)])
def test_a_word_outside_its_space_is_refused(space: registers.Space, word: int) -> None:
    with pytest.raises(AssemblyError, match=f"{space} space has no word {word}"):
        registers.fields_of_word(space, word)


def test_decode_word_splits_a_value_into_fields_that_rebuild_it() -> None:
    # ADDR_MOD_PACK 38 of the pack document: 0x2820 clears Y of both channels and source Z
    decoded = {
        row.name[len("ADDR_MOD_PACK_SEC1_") :]: value for row, value in registers.decode_word("thread", 38, 0x2820)
    }
    assert {name for name, value in decoded.items() if value} == {"YsrcClear", "YdstClear", "ZsrcClear"}
    for word, mask in enumerate(WRITABLE_MASK):
        value = 0xA5C3_96F1
        rebuilt = sum(part << row.lsb for row, part in registers.decode_word("config", word, value))
        named = sum(row.mask for row in registers.fields_of_word("config", word))
        assert rebuilt == value & named
        assert named & ~int(mask) == 0 or word in (185, 186)


def test_search_finds_names_and_meanings_in_any_case() -> None:
    assert registers.field("PRNG_SEED_Seed_Val") in registers.search("prng")
    assert registers.field("THCON_SEC0_REG1_Source_interface_selection") in registers.search("SRC_IF_SEL")
    assert registers.search("no such text anywhere") == []


def test_descriptions_are_single_clean_lines() -> None:
    for row in registers._ROWS:
        assert row.description == row.description.strip()
        assert "\n" not in row.description
        assert not row.description.endswith((".", ":", "\\")), row
