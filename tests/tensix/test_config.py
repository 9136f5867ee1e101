"""Configuration unit: two spaces, their writers, words that act when written (I.10, I.11; rows 000.4, 003.3, 003.4)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bhemu.api.tile import Tile
from bhemu.errors import BhemuError, MissingSpecification, UndefinedBehavior, Unimplemented
from bhemu.isa.instructions import encode
from bhemu.isa.registers import WRITABLE_MASK
from bhemu.isa.registers import config as config_position
from bhemu.isa.registers import thread as thread_position
from bhemu.machine.compiler import JIT, compile_entry
from bhemu.machine.config_access import UNITS_OF_WORD
from bhemu.machine.faults import DONE
from bhemu.machine.state import new_tiles
from bhemu.tensix.config import write_config

pytestmark = pytest.mark.plain

THREAD = 0
OTHER = 1
ALL_ONES = 0xFFFFFFFF
BANKED = 12  # a word of 32 writable bits below 180
PARTLY_HELD = next(w for w in range(16, 180) if 0 < WRITABLE_MASK[w] < ALL_ONES)
SHARED = config_position("SCRATCH_SEC0_val")[0]
ACT_WHEN_WRITTEN = (config_position("STATE_RESET_EN")[0], config_position("PRNG_SEED_Seed_Val")[0])
STATE_ID = thread_position("CFG_STATE_ID_StateID")[0]
CONTEXT_CONTROL = thread_position("UNPACK_MISC_CFG_CfgContextCntReset_0")[0]


def use_bank(tile: Tile, bank: int, thread: int = THREAD) -> None:
    tile.execute(thread, encode("SETC16", STATE_ID, bank))


def wrcfg(tile: Tile, word: int, value: int, thread: int = THREAD) -> None:
    tile.record.gpr[thread, 9] = value
    tile.execute(thread, encode("WRCFG", GprAddress=9, CfgReg=word))


def changed_words(tile: Tile) -> dict[tuple[int, int], int]:
    """(bank, word): value of every Config word that is not zero."""
    words = tile.record.config
    return {(int(b), int(w)): int(words[b, w]) for b, w in zip(*np.nonzero(words), strict=True)}


@pytest.mark.rule("003.3d")
@pytest.mark.parametrize("bank", [0, 1])
def test_wrcfg_writes_the_bank_that_cfg_state_id_chooses(tile: Tile, bank: int) -> None:
    use_bank(tile, bank)
    wrcfg(tile, BANKED, 0x12345678)
    assert changed_words(tile) == {(bank, BANKED): 0x12345678}


@pytest.mark.rule("003.3d")
def test_each_thread_has_its_own_bank_choice(tile: Tile) -> None:
    use_bank(tile, 1, OTHER)
    wrcfg(tile, BANKED, 1)
    wrcfg(tile, BANKED, 2, OTHER)
    assert changed_words(tile) == {(0, BANKED): 1, (1, BANKED): 2}


@pytest.mark.rule("000.0b", "003.3f")
@pytest.mark.parametrize("bank", [0, 1])
def test_words_from_180_on_are_one_for_both_banks(tile: Tile, bank: int) -> None:
    use_bank(tile, bank)
    wrcfg(tile, SHARED, 77)
    use_bank(tile, 1 - bank)
    tile.execute(THREAD, encode("RDCFG", GprAddress=3, CfgReg=SHARED))
    assert tile.record.gpr[THREAD, 3] == 77
    assert tile.record.config[1, SHARED] == 0


@pytest.mark.parametrize("word", range(224))
def test_bits_without_a_field_are_not_kept(tile: Tile, word: int) -> None:
    wrcfg(tile, word, ALL_ONES)
    kept = 0 if word == config_position("STATE_RESET_EN")[0] else int(WRITABLE_MASK[word])
    assert tile.record.config[0, word] == kept


@pytest.mark.parametrize("word", [w for w in range(224) if w not in ACT_WHEN_WRITTEN])
def test_a_write_tells_the_units_that_decode_the_word(tile: Tile, word: int) -> None:
    tile.record.config_dirty[...] = 0
    wrcfg(tile, word, 1)
    units = int(UNITS_OF_WORD[word])
    assert tile.record.config_dirty.tolist() == [units, units if word >= 180 else 0]


@pytest.mark.rule("000.4.2a", "003.4.1a")
def test_wrcfg_has_gpr_width_and_word_at_their_bits(tile: Tile) -> None:
    tile.record.gpr[THREAD, 28] = 5
    tile.execute(THREAD, 0xB0_1C000C)  # GPR in [21:16], width in bit 15, word in [10:0]
    assert changed_words(tile) == {(0, 12): 5}


@pytest.mark.rule("000.4.2c", "003.4.1b")
@pytest.mark.parametrize("gpr", [8, 9, 10, 11])
@pytest.mark.parametrize("word", [12, 13, 14, 15])
def test_the_128_bit_form_drops_the_low_bits_of_both_indices(tile: Tile, gpr: int, word: int) -> None:
    tile.record.gpr[THREAD, 8:12] = [1, 2, 3, 4]
    tile.execute(THREAD, encode("WRCFG", GprAddress=gpr, wr128b=1, CfgReg=word))
    assert changed_words(tile) == {(0, 12): 1, (0, 13): 2, (0, 14): 3, (0, 15): 4}


@pytest.mark.rule("003.3i")
@pytest.mark.parametrize("bank", [0, 1])
@pytest.mark.parametrize("wide", [0, 1])
@pytest.mark.parametrize("value", [0, 1])
def test_any_write_of_state_reset_en_zeroes_the_words_below_180_of_the_bank(
    tile: Tile, bank: int, wide: int, value: int
) -> None:
    tile.record.config[...] = 3
    use_bank(tile, bank)
    tile.record.config_dirty[...] = 0
    tile.record.gpr[THREAD, 8] = value
    tile.execute(THREAD, encode("WRCFG", GprAddress=8, wr128b=wide, CfgReg=4))
    assert not tile.record.config[bank, :180].any()
    assert (tile.record.config[bank, 180:] == 3).all()
    assert (tile.record.config[1 - bank] == 3).all()
    assert tile.record.config_dirty[bank] == ALL_ONES
    assert tile.record.config_dirty[1 - bank] == 0


@pytest.mark.rule("003.3i")
def test_cfgshiftmask_resets_too_but_rmwcib_does_not(tile: Tile) -> None:
    tile.record.config[0, BANKED] = 3
    tile.execute(THREAD, encode("RMWCIB0", Mask=1, Data=1, CfgRegAddr=4))
    assert changed_words(tile) == {(0, BANKED): 3, (0, 4): 1}
    tile.execute(THREAD, encode("CFGSHIFTMASK", operation=3, CfgReg=4))
    assert changed_words(tile) == {}


@pytest.mark.rule("000.4.3", "003.4.4a")
@pytest.mark.parametrize("byte", range(4))
@pytest.mark.parametrize("mask", [0, 0x0F, 0x5A, 0xFF])
def test_rmwcib_replaces_the_masked_bits_of_one_byte(tile: Tile, byte: int, mask: int) -> None:
    use_bank(tile, 1)
    tile.record.config[1, BANKED] = 0x89ABCDEF
    tile.execute(THREAD, encode(f"RMWCIB{byte}", Mask=mask, Data=0x36, CfgRegAddr=BANKED))
    keep = ~(mask << 8 * byte) & ALL_ONES
    assert changed_words(tile) == {(1, BANKED): 0x89ABCDEF & keep | (0x36 & mask) << 8 * byte}


@pytest.mark.rule("003.4.2a")
def test_rdcfg_has_gpr_and_word_at_their_bits(tile: Tile) -> None:
    tile.record.config[0, 100] = 0xCAFE0000
    tile.execute(THREAD, 0xB1_3F0064)  # GPR in [21:16], word in [10:0]
    assert tile.record.gpr[THREAD, 63] == 0xCAFE0000


@pytest.mark.rule("000.0c", "000.4.4", "003.3e")
@pytest.mark.parametrize("entry", [1, 7, 12, 28, 47, 67])
def test_setc16_writes_the_threads_own_entry_and_no_config(tile: Tile, entry: int) -> None:
    tile.execute(OTHER, encode("SETC16", entry, 0x0105))
    assert [int(v) for v in tile.record.thread_config[:, entry]] == [0, 0x0105, 0]
    assert np.count_nonzero(tile.record.thread_config) == 1
    assert changed_words(tile) == {}


@pytest.mark.rule("003.4.3a")
def test_setc16_has_entry_and_value_at_their_bits(tile: Tile) -> None:
    tile.execute(OTHER, 0xB2_25_0104)  # entry in [23:16], value in [15:0]
    assert tile.record.thread_config[OTHER, 37] == 0x0104


@pytest.mark.rule("000.4.4")
def test_the_two_spaces_overlap_in_number_only(tile: Tile) -> None:
    tile.execute(THREAD, encode("SETC16", 12, 9))
    wrcfg(tile, 12, 5)
    assert tile.record.thread_config[THREAD, 12] == 9
    assert tile.record.config[0, 12] == 5


@pytest.mark.rule("000.2.7b")
@pytest.mark.parametrize(
    ("value", "counters"), [(0x0010, [0, 7]), (0x1000, [7, 0]), (0x1010, [0, 0]), (0xCFCF, [7, 7])]
)
def test_context_counter_resets_act_on_the_own_thread(tile: Tile, value: int, counters: list[int]) -> None:
    tile.record.unpack.context_counter[...] = 7
    tile.execute(THREAD, encode("SETC16", CONTEXT_CONTROL, value))
    assert tile.record.unpack.context_counter.tolist() == [counters, [7, 7], [7, 7]]


@pytest.mark.rule("001.9.3a")
@pytest.mark.parametrize(("value", "counters"), [(0x0020, [3, 2]), (0x2000, [2, 0]), (0x2030, [1, 0])])
def test_the_counter_increment_is_one_step_at_the_write(tile: Tile, value: int, counters: list[int]) -> None:
    """Unpacker 0 counts to 4, unpacker 1 to 3 (not a power of two); a reset comes before the step."""
    tile.config["THCON_SEC0_REG2_Context_count"] = 2
    tile.config["THCON_SEC1_REG2_Context_count_non_log2"] = 3
    tile.config["THCON_SEC1_REG2_Context_count_non_log2_en"] = 1
    tile.record.unpack.context_counter[...] = 2
    tile.execute(THREAD, encode("SETC16", CONTEXT_CONTROL, value))
    assert tile.record.unpack.context_counter[THREAD].tolist() == counters
    tile.execute(THREAD, encode("SETC16", CONTEXT_CONTROL, 0))
    assert tile.record.unpack.context_counter[THREAD].tolist() == counters
    assert tile.record.unpack.context_counter[OTHER].tolist() == [2, 2]


def test_fp16a_force_is_refused_until_the_user_accepts_that_it_has_no_effect(tile: Tile) -> None:
    tile.execute(THREAD, encode("SETC16", 55, 0))
    with pytest.raises(MissingSpecification, match="FP16A_FORCE"):
        tile.execute(THREAD, encode("SETC16", 55, 1))
    assert tile.record.thread_config[THREAD, 55] == 0
    tile.record.allow_open = 1
    tile.execute(THREAD, encode("SETC16", 55, 1))
    assert tile.record.thread_config[THREAD, 55] == 1


def rotated(value: int, amount: int) -> int:
    return (value >> amount | value << (32 - amount)) & ALL_ONES


def shift_mask(old: int, scratch: int, keep_old: int, operation: int, width: int, amount: int) -> int:
    """CFGSHIFTMASK as I.11 words it."""
    mask = (1 << (width + 1)) - 1
    operand = rotated(scratch & mask, amount)
    if not keep_old:
        old &= ~rotated(mask, amount)
    results = (
        old | operand,
        old & operand,
        old ^ operand,
        old + operand,
        old | ~operand,
        old & ~operand,
        old ^ ~operand,
        old - operand,
    )
    return results[operation] & ALL_ONES


@pytest.mark.rule("003.4.5")
@given(
    old=st.integers(0, ALL_ONES),
    scratch=st.integers(0, ALL_ONES),
    keep_old=st.integers(0, 1),
    operation=st.integers(0, 7),
    width=st.integers(0, 31),
    amount=st.integers(0, 31),
    selector=st.integers(0, 3),
    bank=st.integers(0, 1),
)
def test_cfgshiftmask_combines_a_rotated_field_of_a_scratch_word(
    shared_tile: Tile,
    old: int,
    scratch: int,
    keep_old: int,
    operation: int,
    width: int,
    amount: int,
    selector: int,
    bank: int,
) -> None:
    tile = shared_tile
    tile.reset()
    use_bank(tile, bank, OTHER)
    tile.record.config[0, SHARED + (OTHER if selector == 3 else selector)] = scratch
    tile.record.config[bank, BANKED] = old
    tile.execute(OTHER, encode("CFGSHIFTMASK", keep_old, operation, width, amount, selector, BANKED))
    assert tile.record.config[bank, BANKED] == shift_mask(old, scratch, keep_old, operation, width, amount)


def test_cfgshiftmask_drops_bits_without_a_field(tile: Tile) -> None:
    tile.record.config[0, SHARED] = ALL_ONES
    tile.execute(THREAD, encode("CFGSHIFTMASK", 0, 0, 31, 0, 0, PARTLY_HELD))
    assert tile.record.config[0, PARTLY_HELD] == WRITABLE_MASK[PARTLY_HELD]


@pytest.mark.rule("003.4.5")
def test_streamwrcfg_refuses_overlay_registers_that_are_not_built(tile: Tile) -> None:
    with pytest.raises(Unimplemented, match="register 260 of overlay stream 0"):
        tile.execute(THREAD, encode("STREAMWRCFG", StreamRegAddr=260, CfgReg=12))
    assert changed_words(tile) == {}


@pytest.mark.parametrize(
    ("word", "error", "text"),
    [
        (encode("WRCFG", CfgReg=224), UndefinedBehavior, "no word 224"),
        (encode("WRCFG", CfgReg=2047, wr128b=1), UndefinedBehavior, "no word 2047"),
        (encode("RDCFG", CfgReg=224), UndefinedBehavior, "no word 224"),
        (encode("RMWCIB3", Mask=1, CfgRegAddr=255), UndefinedBehavior, "no word 255"),
        (encode("CFGSHIFTMASK", CfgReg=224), UndefinedBehavior, "no word 224"),
        (encode("STREAMWRCFG", CfgReg=224), UndefinedBehavior, "no word 224"),
        (encode("SETC16", 68, 1), UndefinedBehavior, "no entry 68"),
        (encode("WRCFG", reserved=0x800), UndefinedBehavior, "belong to no operand"),
        (encode("RDCFG", reserved=0x8000), UndefinedBehavior, "belong to no operand"),
    ],
)
def test_indices_out_of_range_and_reserved_bits_are_refused(
    tile: Tile, word: int, error: type[BhemuError], text: str
) -> None:
    with pytest.raises(error, match=text):
        tile.execute(THREAD, word)
    assert changed_words(tile) == {}
    assert not tile.record.gpr.any()


def write_config_entry(t, bank, word, value):  # type: ignore[no-untyped-def]
    """An entry, as the memory map of cores and host writes Config."""
    write_config(t, bank, word, value)
    return DONE


def test_the_host_and_the_cores_write_config_through_the_same_rules() -> None:
    tiles = new_tiles(1)
    entry = compile_entry("write_config", write_config_entry, arguments=3)
    target = tiles.ctypes.data if JIT else tiles[0]
    assert entry.call(target, 1, BANKED, 5) == DONE
    assert entry.call(target, 1, SHARED, 6) == DONE
    assert entry.call(target, 0, ACT_WHEN_WRITTEN[1], 1) == DONE
    words = tiles[0].config
    assert {(int(b), int(w)): int(words[b, w]) for b, w in zip(*np.nonzero(words), strict=True)} == {
        (1, BANKED): 5,
        (0, SHARED): 6,
    }
    assert tiles[0].prng.any()
    entry.call(target, 1, ACT_WHEN_WRITTEN[0], 0)
    assert not words[1].any()
