"""Cores' access to GPRs and configuration through the memory map (I.10; tile K7 to K11, T24, T26, T28)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bhemu.api.tile import Tile
from bhemu.errors import AssemblyError, NonContractualBehavior, UndefinedBehavior
from bhemu.isa.instructions import encode
from bhemu.isa.names import Block, Condition
from bhemu.isa.registers import WRITABLE_MASK, config
from bhemu.machine.agents import T0, T1, B
from bhemu.machine.compiler import JIT, compile_entry
from bhemu.machine.config_access import UNITS_OF_WORD
from bhemu.machine.faults import DONE
from bhemu.machine.state import new_tiles
from bhemu.tensix.coprocessor import Coprocessor
from bhemu.tensix.windows import window_store

pytestmark = pytest.mark.plain

GPRS = 0xFFE00000
BANK_0 = 0xFFEF0000
BANK_1 = 0xFFEF0380
BOTH = 0xFFEF0700
THREADS = 0xFFEF0A80
ALL_ONES = 0xFFFFFFFF
T_CORES = ("T0", "T1", "T2")
REACHING = ("B", *T_CORES)
BANKED = 12  # 32 writable bits, below 180
SHARED = config("SCRATCH_SEC0_val")[0]
SEED = config("PRNG_SEED_Seed_Val")[0]


def changed_words(tile: Tile) -> dict[tuple[int, int], int]:
    """(bank, word): value of every Config word that is not zero."""
    words = tile.record.config
    return {(int(b), int(w)): int(words[b, w]) for b, w in zip(*np.nonzero(words), strict=True)}


# --- GPRs -------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("003.1a", "003.1b")
def test_b_sees_the_words_of_all_threads(tile: Tile) -> None:
    tile.record.gpr[...] = np.arange(1000, 1192).reshape(3, 64)
    assert [tile.load_word(GPRS + 4 * i) for i in range(192)] == list(range(1000, 1192))
    for thread in range(3):
        for register in (0, 1, 63):
            tile.store_word(GPRS + 0x100 * thread + 4 * register, 0xABCD0000 + register)
            assert tile.gpr[thread, register] == 0xABCD0000 + register
            tile.gpr[thread, register] = 1000 + 64 * thread + register
    assert (tile.record.gpr == np.arange(1000, 1192).reshape(3, 64)).all()


@pytest.mark.rule("003.1b", "003.1d")
@pytest.mark.parametrize("thread", range(3))
@pytest.mark.parametrize("repeat", [0, 1, 15])
def test_a_t_core_sees_its_own_words_at_the_same_base(tile: Tile, thread: int, repeat: int) -> None:
    """Again every 256 bytes up to +0xfff (tile K7)."""
    tile.record.gpr[...] = 7
    tile.record.gpr[thread] = np.arange(64)
    base, core = GPRS + 0x100 * repeat, T_CORES[thread]
    assert [tile.load_word(base + 4 * i, core) for i in range(64)] == list(range(64))
    tile.store_word(base + 4 * 63, ALL_ONES, core)
    assert tile.gpr[thread].tolist() == [*range(63), ALL_ONES]
    assert (np.delete(tile.record.gpr, thread, axis=0) == 7).all()


@pytest.mark.rule("003.1c")
@pytest.mark.parametrize(("core", "who"), [("NC", "core NC"), ("HOST", "the host")])
@pytest.mark.parametrize("address", [GPRS, BANK_0 + 48, THREADS])
def test_nc_and_the_noc_reach_neither_window(tile: Tile, core: str, who: str, address: int) -> None:
    with pytest.raises(UndefinedBehavior, match=f"{who} accesses {address:#x}") as caught:
        tile.load_word(address, core)
    assert caught.value.remedy is not None
    assert "as one of those" in caught.value.remedy
    with pytest.raises(UndefinedBehavior, match=f"{who} accesses {address:#x}"):
        tile.store_word(address, 1, core)
    assert not tile.record.gpr.any()
    assert changed_words(tile) == {}


@pytest.mark.rule("003.6.3")
def test_stores_to_gprs_are_what_instructions_read(tile: Tile) -> None:
    tile.store_word(GPRS + 4 * 16, 0x800, "T2")
    tile.execute(2, encode("WRCFG", GprAddress=16, CfgReg=BANKED))
    assert changed_words(tile) == {(0, BANKED): 0x800}
    assert tile.gpr[:, 16].tolist() == [0, 0, 0x800]


@pytest.mark.rule("003.6.4")
@pytest.mark.parametrize("core", REACHING)
def test_a_load_behind_a_store_returns_it_and_the_instruction_after_both_uses_it(tile: Tile, core: str) -> None:
    thread = max(REACHING.index(core) - 1, 0)
    tile.gpr[thread, 20] = 1
    for value in (0xDEADBEEF, 2):
        tile.store_word(GPRS + 4 * 20, value, core)
        assert tile.load_word(GPRS + 4 * 20, core) == value
        tile.execute(thread, encode("WRCFG", GprAddress=20, CfgReg=BANKED))
        assert changed_words(tile) == {(0, BANKED): value}


# --- Config -----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("000.0a", "003.3c")
@pytest.mark.parametrize("core", REACHING)
@pytest.mark.parametrize(("base", "bank"), [(BANK_0, 0), (BANK_1, 1)])
def test_each_bank_has_224_words_at_its_base(tile: Tile, core: str, base: int, bank: int) -> None:
    """The bank of the address counts, not the one that CFG_STATE_ID chooses."""
    tile.record.config[...] = np.arange(1, 449).reshape(2, 224)
    shown = [tile.load_word(base + 4 * i, core) for i in range(224)]
    assert shown[:180] == [224 * bank + 1 + i for i in range(180)]
    assert shown[180:] == list(range(181, 225))  # both banks share them
    tile.reset()
    tile.record.thread_config[:, 0] = 1 - bank
    tile.store_word(base + 4 * BANKED, 0x12345678, core)
    tile.store_word(base + 4 * SHARED, 9, core)
    assert changed_words(tile) == {(bank, BANKED): 0x12345678, (0, SHARED): 9}


@pytest.mark.rule("000.0a")
def test_bank_1_begins_896_bytes_behind_bank_0(tile: Tile) -> None:
    assert BANK_1 - BANK_0 == 896 == 56 * 16
    tile.store_word(BANK_0 + 896, 5)
    tile.store_word(BANK_0 + 892, 6)
    tile.execute(0, encode("SETC16", 0, 1))
    tile.execute(0, encode("RDCFG", GprAddress=1, CfgReg=0))
    assert tile.gpr[0, 1] == 5
    assert tile.load_word(BANK_0 + 892) == 6 & int(WRITABLE_MASK[223])


@pytest.mark.rule("000.0b", "003.3c")
@pytest.mark.parametrize("core", REACHING)
def test_a_store_to_the_dual_window_writes_both_banks(tile: Tile, core: str) -> None:
    tile.record.config_dirty[...] = 0
    tile.store_word(BOTH + 4 * BANKED, 3, core)
    tile.store_word(BOTH + 4 * SHARED, 4, core)
    assert changed_words(tile) == {(0, BANKED): 3, (1, BANKED): 3, (0, SHARED): 4}
    units = int(UNITS_OF_WORD[BANKED] | UNITS_OF_WORD[SHARED])
    assert tile.record.config_dirty.tolist() == [units, units]


@pytest.mark.rule("003.3c")
def test_loads_from_the_dual_window_show_bank_0_where_the_user_accepts_it(tile: Tile) -> None:
    tile.record.config[:, BANKED] = [5, 6]
    with pytest.raises(NonContractualBehavior, match=r"core T1 loads 0xffef0730 .*bank 0") as caught:
        tile.load_word(BOTH + 4 * BANKED, "T1")
    assert "0xffef0380" in str(caught.value.remedy)
    tile.record.allow_open = 1
    assert tile.load_word(BOTH + 4 * BANKED, "T1") == 5


@pytest.mark.parametrize("word", [w for w in range(224) if w not in (4, 185, SEED)])
def test_stores_keep_bits_with_a_field_only_and_tell_the_units(tile: Tile, word: int) -> None:
    tile.record.config_dirty[...] = 0
    tile.store_word(BANK_1 + 4 * word, ALL_ONES, "T0")
    home = (0 if word >= 180 else 1, word)
    assert changed_words(tile) == ({home: int(WRITABLE_MASK[word])} if WRITABLE_MASK[word] else {})
    assert tile.load_word(BANK_1 + 4 * word, "T0") == WRITABLE_MASK[word]
    units = int(UNITS_OF_WORD[word])
    assert tile.record.config_dirty.tolist() == [units if word >= 180 else 0, units]


@pytest.mark.rule("003.3i")
@pytest.mark.parametrize(("base", "banks"), [(BANK_0, [0]), (BANK_1, [1]), (BOTH, [0, 1])])
def test_a_store_to_state_reset_en_zeroes_the_banks_words_below_180(tile: Tile, base: int, banks: list[int]) -> None:
    tile.record.config[...] = 3
    tile.store_word(base + 16, 0)
    for bank in (0, 1):
        assert set(tile.record.config[bank, :180].tolist()) == ({0} if bank in banks else {3})
    assert (tile.record.config[:, 180:] == 3).all()


@pytest.mark.rule("003.3j")
@pytest.mark.parametrize("base", [BANK_0, BANK_1, BOTH])
def test_a_store_to_prng_seed_seeds_the_generators(tile: Tile, base: int) -> None:
    tile.gpr[1, 9] = 0x1234
    tile.execute(1, encode("WRCFG", GprAddress=9, CfgReg=SEED))
    seeded = tile.record.prng.tolist()
    assert len(set(seeded)) == 32
    tile.store_word(base + 4 * SEED, 0x1235)
    assert tile.record.prng.tolist() != seeded
    tile.store_word(base + 4 * SEED, 0x1234)
    assert tile.record.prng.tolist() == seeded
    assert tile.load_word(BANK_0 + 4 * SEED) == 0


# --- ThreadConfig -----------------------------------------------------------------------------------------------------


@pytest.mark.rule("003.3b", "003.3c")
@pytest.mark.parametrize("core", REACHING)
def test_threadconfig_has_68_entries_of_4_bytes_a_thread(tile: Tile, core: str) -> None:
    values = np.arange(0xFF00, 0xFF00 + 204).reshape(3, 68)
    tile.record.thread_config[...] = values
    assert [tile.load_word(THREADS + 4 * i, core) for i in range(204)] == values.reshape(-1).tolist()
    with pytest.raises(UndefinedBehavior, match=f"core {core} accesses 0xffef0db0"):
        tile.load_word(THREADS + 4 * 204, core)


@pytest.mark.rule("003.3b")
def test_setc16_shows_at_its_threads_place_with_an_upper_half_of_zeros(tile: Tile) -> None:
    tile.execute(2, encode("SETC16", 7, 0xFFFF))
    assert tile.load_word(THREADS + (2 * 68 + 7) * 4) == 0xFFFF
    assert sum(tile.load_word(THREADS + 4 * i) for i in range(204)) == 0xFFFF


@pytest.mark.rule("003.3g")
@pytest.mark.parametrize("core", REACHING)
@pytest.mark.parametrize(("thread", "entry"), [(0, 0), (1, 37), (2, 67)])
def test_cores_cannot_write_threadconfig(tile: Tile, core: str, thread: int, entry: int) -> None:
    address = THREADS + (thread * 68 + entry) * 4
    with pytest.raises(
        UndefinedBehavior, match=f"core {core} stores to {address:#x}.*entry {entry} of thread"
    ) as caught:
        tile.store_word(address, 1, core)
    assert "SETC16" in str(caught.value.remedy)
    assert not tile.record.thread_config.any()
    assert changed_words(tile) == {}


# --- refusals and widths ----------------------------------------------------------------------------------------------


@pytest.mark.rule("tile T25")
@pytest.mark.parametrize(
    ("core", "address"),
    [
        ("B", GPRS - 4),
        ("B", GPRS + 0x300),
        ("B", GPRS + 0xFFC),
        ("T1", GPRS + 0x1000),
        ("T2", BANK_0 - 4),
        ("B", THREADS + 0x330),
        ("T0", 0xFFFFFFFC),
        ("T0", 0),
    ],
)
def test_addresses_without_a_word_are_refused(tile: Tile, core: str, address: int) -> None:
    before = tile.snapshot()
    for access in (lambda: tile.load_word(address, core), lambda: tile.store_word(address, 1, core)):
        with pytest.raises(
            UndefinedBehavior, match=f"core {core} accesses {address:#x}, where it sees neither"
        ) as caught:
            access()
        assert caught.value.remedy is not None
    tile.record.fault_value[...] = 0
    assert tile.snapshot() == before


@pytest.mark.rule("tile T27")
@pytest.mark.parametrize("address", [GPRS, BANK_0, BANK_1, BOTH])
@pytest.mark.parametrize("off", [1, 2, 3])
def test_misaligned_words_are_refused(tile: Tile, address: int, off: int) -> None:
    with pytest.raises(UndefinedBehavior, match=f"core T0 accesses 4 bytes at {address + off:#x}"):
        tile.load_word(address + off, "T0")
    with pytest.raises(UndefinedBehavior, match=f"core B accesses 4 bytes at {address + off:#x}"):
        tile.store_word(address + off, ALL_ONES)
    assert not tile.record.gpr.any()
    assert changed_words(tile) == {}


@pytest.mark.rule("tile T26")
def test_configuration_may_be_loaded_in_bytes_and_halves(tile: Tile) -> None:
    tile.record.config[1, BANKED] = 0x89ABCDEF
    tile.record.thread_config[1, 5] = 0xBEEF
    load = tile.coprocessor.load
    assert [load(T1, BANK_1 + 48 + i, 1) for i in range(4)] == [0xEF, 0xCD, 0xAB, 0x89]
    assert [load(B, BANK_1 + 48 + i, 2) for i in (0, 2)] == [0xCDEF, 0x89AB]
    assert [load(B, THREADS + 73 * 4 + i, 1) for i in range(4)] == [0xEF, 0xBE, 0, 0]
    with pytest.raises(UndefinedBehavior, match="core T1 accesses 2 bytes at 0xffef03b1, a misaligned access"):
        load(T1, BANK_1 + 49, 2)
    with pytest.raises(UndefinedBehavior, match="core T0 accesses 1 bytes at 0xffe00000, where only whole words"):
        load(T0, GPRS, 1)


def narrow_store(t: Any, size: int, address: int, value: int) -> int:
    return window_store(t, B, address, value, size)  # type: ignore[no-any-return]


@pytest.mark.slow
@pytest.mark.rule("tile T26")
def test_stores_narrower_than_a_word_are_refused() -> None:
    tiles = new_tiles(1)
    target = tiles.ctypes.data if JIT else tiles[0]
    store = compile_entry("narrow_store", narrow_store, arguments=3).call
    coprocessor = Coprocessor(tiles)
    for address in (BANK_0 + 48, BOTH + 48, GPRS):
        for size in (1, 2):
            assert store(target, size, address, 1) != DONE
            with pytest.raises(UndefinedBehavior, match=f"core B accesses {size} bytes at {address:#x}, where only"):
                raise coprocessor.recorded()
    assert not tiles[0].config.any()
    assert not tiles[0].gpr.any()
    assert store(target, 4, GPRS, 1) == DONE
    assert tiles[0].gpr[0, 0] == 1


def test_wrong_cores_and_numbers_of_more_than_32_bits_are_refused(tile: Tile) -> None:
    with pytest.raises(UndefinedBehavior, match="core 'T3'"):
        tile.load_word(GPRS, "T3")
    for address, value in ((GPRS + (1 << 32), 0), (GPRS, 1 << 32), (GPRS, -1), (-4, 0)):
        with pytest.raises(AssemblyError, match="does not fit 32 bits"):
            tile.store_word(address, value)
    assert not tile.record.gpr.any()


def test_a_refusal_leaves_a_tile_that_goes_on(tile: Tile) -> None:
    with pytest.raises(UndefinedBehavior):
        tile.load_word(0)
    tile.execute(0, "SETDMAREG 0x1234, 6")
    assert tile.load_word(GPRS + 12) == 0x1234


# --- order between cores and instructions -----------------------------------------------------------------------------


@pytest.mark.rule("000.4.1")
def test_stores_take_effect_in_program_order(tile: Tile) -> None:
    """And at once: an instruction that was pushed before a store, and not executed yet, finds the new value."""
    read = encode("RDCFG", GprAddress=1, CfgReg=BANKED)
    for value in (1, 2, 3):
        tile.store_word(BANK_0 + 4 * BANKED, value, "T0")
        tile.execute(0, read)
        assert tile.load_word(GPRS + 4, "T0") == value
    tile.coprocessor.push(0, read)
    tile.store_word(BANK_0 + 4 * BANKED, 4, "T0")
    assert tile.coprocessor.drain(0)
    assert tile.load_word(GPRS + 4, "T0") == 4


@pytest.mark.rule("003.5c")
def test_condition_c10_stands_for_a_cores_pending_config_store(tile: Tile) -> None:
    """Stores never are pending here, so the wait ends and what it held finds the value."""
    assert Condition.TRISC_CFG == 1 << 10
    tile.store_word(BANK_0 + 4 * BANKED, 0x55, "T1")
    tile.coprocessor.push(1, encode("STALLWAIT", stall_res=Block.CFG, wait_res=Condition.TRISC_CFG))
    tile.coprocessor.push(1, encode("RDCFG", GprAddress=2, CfgReg=BANKED))
    assert tile.coprocessor.drain(1)
    assert tile.gpr[1, 2] == 0x55


@pytest.mark.rule("003.2b")
def test_a_busy_scalar_unit_holds_the_issuing_thread_only(tile: Tile) -> None:
    """An ATINCGETPTR that waits for its FIFO to be filled; the others' instructions of other units go on."""
    tile.gpr[0, 4] = 0x100
    tile.coprocessor.push(0, encode("ATINCGETPTR", WrapVal=4, DataRegIndex=8, AddrRegIndex=4))
    tile.coprocessor.push(0, encode("SETC16", 1, 7))
    for thread in (1, 2):
        tile.coprocessor.push(thread, encode("SETC16", 1, thread))
    tile.coprocessor.run(50)
    assert tile.record.thread_config[:, 1].tolist() == [0, 1, 2]
    tile.l1[0x1004] = 1
    tile.coprocessor.run(50)
    assert tile.record.thread_config[:, 1].tolist() == [7, 1, 2]
    assert tile.l1[0x1000] == 1
