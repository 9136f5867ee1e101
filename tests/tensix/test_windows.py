"""Cores' access to GPRs and configuration through the memory map (I.10; tile K7 to K11, T24, T26, T28)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from packer_bench import BF16, FP8, FP32, L1_BASE, Bench
from unpacker import FP16, Unpacker

from bhemu.errors import AssemblyError, NonContractualBehavior, UndefinedBehavior
from bhemu.host.tile import Tile
from bhemu.isa.instructions import encode
from bhemu.isa.names import Block, Condition
from bhemu.isa.registers import WRITABLE_MASK, config, decode_word
from bhemu.machine.compiler import JIT, compile_entry
from bhemu.machine.config_access import UNITS_OF_WORD
from bhemu.machine.faults import DONE
from bhemu.machine.state import new_tiles
from bhemu.tensix.coprocessor import Coprocessor
from bhemu.tensix.windows import T0, T1, B, window_store

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


@pytest.fixture(scope="module")
def shared_tile() -> Tile:
    return Tile()


@pytest.fixture
def tile(shared_tile: Tile) -> Tile:
    shared_tile.reset()
    shared_tile.record.allow_open = 0
    return shared_tile


def changed_words(tile: Tile) -> dict[tuple[int, int], int]:
    """(bank, word): value of every Config word that is not zero."""
    words = tile.record.config
    return {(int(b), int(w)): int(words[b, w]) for b, w in zip(*np.nonzero(words), strict=True)}


# --- GPRs -------------------------------------------------------------------------------------------------------------


def test_003_1a_003_1b_b_sees_the_words_of_all_threads(tile: Tile) -> None:
    tile.record.gpr[...] = np.arange(1000, 1192).reshape(3, 64)
    assert [tile.load_word(GPRS + 4 * i) for i in range(192)] == list(range(1000, 1192))
    for thread in range(3):
        for register in (0, 1, 63):
            tile.store_word(GPRS + 0x100 * thread + 4 * register, 0xABCD0000 + register)
            assert tile.gpr[thread, register] == 0xABCD0000 + register
            tile.gpr[thread, register] = 1000 + 64 * thread + register
    assert (tile.record.gpr == np.arange(1000, 1192).reshape(3, 64)).all()


@pytest.mark.parametrize("thread", range(3))
@pytest.mark.parametrize("repeat", [0, 1, 15])
def test_003_1b_003_1d_a_t_core_sees_its_own_words_at_the_same_base(tile: Tile, thread: int, repeat: int) -> None:
    """Again every 256 bytes up to +0xfff (tile K7)."""
    tile.record.gpr[...] = 7
    tile.record.gpr[thread] = np.arange(64)
    base, core = GPRS + 0x100 * repeat, T_CORES[thread]
    assert [tile.load_word(base + 4 * i, core) for i in range(64)] == list(range(64))
    tile.store_word(base + 4 * 63, ALL_ONES, core)
    assert tile.gpr[thread].tolist() == [*range(63), ALL_ONES]
    assert (np.delete(tile.record.gpr, thread, axis=0) == 7).all()


@pytest.mark.parametrize(("core", "who"), [("NC", "core NC"), ("HOST", "the host")])
@pytest.mark.parametrize("address", [GPRS, BANK_0 + 48, THREADS])
def test_003_1c_nc_and_the_noc_reach_neither_window(tile: Tile, core: str, who: str, address: int) -> None:
    with pytest.raises(UndefinedBehavior, match=f"{who} accesses {address:#x}") as caught:
        tile.load_word(address, core)
    assert caught.value.remedy is not None
    assert "as one of those" in caught.value.remedy
    with pytest.raises(UndefinedBehavior, match=f"{who} accesses {address:#x}"):
        tile.store_word(address, 1, core)
    assert not tile.record.gpr.any()
    assert changed_words(tile) == {}


def test_003_6_3_stores_to_gprs_are_what_instructions_read(tile: Tile) -> None:
    tile.store_word(GPRS + 4 * 16, 0x800, "T2")
    tile.execute(2, encode("WRCFG", GprAddress=16, CfgReg=BANKED))
    assert changed_words(tile) == {(0, BANKED): 0x800}
    assert tile.gpr[:, 16].tolist() == [0, 0, 0x800]


@pytest.mark.parametrize("core", REACHING)
def test_003_6_4_a_load_behind_a_store_returns_it_and_the_instruction_after_both_uses_it(tile: Tile, core: str) -> None:
    thread = max(REACHING.index(core) - 1, 0)
    tile.gpr[thread, 20] = 1
    for value in (0xDEADBEEF, 2):
        tile.store_word(GPRS + 4 * 20, value, core)
        assert tile.load_word(GPRS + 4 * 20, core) == value
        tile.execute(thread, encode("WRCFG", GprAddress=20, CfgReg=BANKED))
        assert changed_words(tile) == {(0, BANKED): value}


# --- Config -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("core", REACHING)
@pytest.mark.parametrize(("base", "bank"), [(BANK_0, 0), (BANK_1, 1)])
def test_000_0a_003_3c_each_bank_has_224_words_at_its_base(tile: Tile, core: str, base: int, bank: int) -> None:
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


def test_000_0a_bank_1_begins_896_bytes_behind_bank_0(tile: Tile) -> None:
    assert BANK_1 - BANK_0 == 896 == 56 * 16
    tile.store_word(BANK_0 + 896, 5)
    tile.store_word(BANK_0 + 892, 6)
    tile.execute(0, encode("SETC16", 0, 1))
    tile.execute(0, encode("RDCFG", GprAddress=1, CfgReg=0))
    assert tile.gpr[0, 1] == 5
    assert tile.load_word(BANK_0 + 892) == 6 & int(WRITABLE_MASK[223])


@pytest.mark.parametrize("core", REACHING)
def test_000_0b_003_3c_a_store_to_the_dual_window_writes_both_banks(tile: Tile, core: str) -> None:
    tile.record.config_dirty[...] = 0
    tile.store_word(BOTH + 4 * BANKED, 3, core)
    tile.store_word(BOTH + 4 * SHARED, 4, core)
    assert changed_words(tile) == {(0, BANKED): 3, (1, BANKED): 3, (0, SHARED): 4}
    units = int(UNITS_OF_WORD[BANKED] | UNITS_OF_WORD[SHARED])
    assert tile.record.config_dirty.tolist() == [units, units]


def test_003_3c_loads_from_the_dual_window_show_bank_0_where_the_user_accepts_it(tile: Tile) -> None:
    tile.record.config[:, BANKED] = [5, 6]
    with pytest.raises(NonContractualBehavior, match=r"core T1 loads 0xffef0730 .*bank 0") as caught:
        tile.load_word(BOTH + 4 * BANKED, "T1")
    assert "0xffef0380" in str(caught.value.remedy)
    tile.record.allow_open = 1
    assert tile.load_word(BOTH + 4 * BANKED, "T1") == 5


@pytest.mark.parametrize("word", [w for w in range(224) if w not in (4, SEED)])
def test_stores_keep_bits_with_a_field_only_and_tell_the_units(tile: Tile, word: int) -> None:
    tile.record.config_dirty[...] = 0
    tile.store_word(BANK_1 + 4 * word, ALL_ONES, "T0")
    home = (0 if word >= 180 else 1, word)
    assert changed_words(tile) == ({home: int(WRITABLE_MASK[word])} if WRITABLE_MASK[word] else {})
    assert tile.load_word(BANK_1 + 4 * word, "T0") == WRITABLE_MASK[word]
    units = int(UNITS_OF_WORD[word])
    assert tile.record.config_dirty.tolist() == [units if word >= 180 else 0, units]


@pytest.mark.parametrize(("base", "banks"), [(BANK_0, [0]), (BANK_1, [1]), (BOTH, [0, 1])])
def test_003_3i_a_store_to_state_reset_en_zeroes_the_banks_words_below_180(
    tile: Tile, base: int, banks: list[int]
) -> None:
    tile.record.config[...] = 3
    tile.store_word(base + 16, 0)
    for bank in (0, 1):
        assert set(tile.record.config[bank, :180].tolist()) == ({0} if bank in banks else {3})
    assert (tile.record.config[:, 180:] == 3).all()


@pytest.mark.parametrize("base", [BANK_0, BANK_1, BOTH])
def test_003_3j_a_store_to_prng_seed_seeds_the_generators(tile: Tile, base: int) -> None:
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


@pytest.mark.parametrize("core", REACHING)
def test_003_3b_003_3c_threadconfig_has_68_entries_of_4_bytes_a_thread(tile: Tile, core: str) -> None:
    values = np.arange(0xFF00, 0xFF00 + 204).reshape(3, 68)
    tile.record.thread_config[...] = values
    assert [tile.load_word(THREADS + 4 * i, core) for i in range(204)] == values.reshape(-1).tolist()
    with pytest.raises(UndefinedBehavior, match=f"core {core} accesses 0xffef0db0"):
        tile.load_word(THREADS + 4 * 204, core)


def test_003_3b_setc16_shows_at_its_threads_place_with_an_upper_half_of_zeros(tile: Tile) -> None:
    tile.execute(2, encode("SETC16", 7, 0xFFFF))
    assert tile.load_word(THREADS + (2 * 68 + 7) * 4) == 0xFFFF
    assert sum(tile.load_word(THREADS + 4 * i) for i in range(204)) == 0xFFFF


@pytest.mark.parametrize("core", REACHING)
@pytest.mark.parametrize(("thread", "entry"), [(0, 0), (1, 37), (2, 67)])
def test_003_3g_cores_cannot_write_threadconfig(tile: Tile, core: str, thread: int, entry: int) -> None:
    address = THREADS + (thread * 68 + entry) * 4
    with pytest.raises(
        UndefinedBehavior, match=f"core {core} stores to {address:#x}.*entry {entry} of thread"
    ) as caught:
        tile.store_word(address, 1, core)
    assert "SETC16" in str(caught.value.remedy)
    assert not tile.record.thread_config.any()
    assert changed_words(tile) == {}


# --- refusals and widths ----------------------------------------------------------------------------------------------


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
def test_t25_addresses_without_a_word_are_refused(tile: Tile, core: str, address: int) -> None:
    before = tile.snapshot()
    for access in (lambda: tile.load_word(address, core), lambda: tile.store_word(address, 1, core)):
        with pytest.raises(
            UndefinedBehavior, match=f"core {core} accesses {address:#x}, where it sees neither"
        ) as caught:
            access()
        assert caught.value.remedy is not None
    tile.record.fault_value[...] = 0
    assert tile.snapshot() == before


@pytest.mark.parametrize("address", [GPRS, BANK_0, BANK_1, BOTH])
@pytest.mark.parametrize("off", [1, 2, 3])
def test_t27_misaligned_words_are_refused(tile: Tile, address: int, off: int) -> None:
    with pytest.raises(UndefinedBehavior, match=f"core T0 accesses 4 bytes at {address + off:#x}"):
        tile.load_word(address + off, "T0")
    with pytest.raises(UndefinedBehavior, match=f"core B accesses 4 bytes at {address + off:#x}"):
        tile.store_word(address + off, ALL_ONES)
    assert not tile.record.gpr.any()
    assert changed_words(tile) == {}


def test_t26_configuration_may_be_loaded_in_bytes_and_halves(tile: Tile) -> None:
    tile.record.config[1, BANKED] = 0x89ABCDEF
    tile.record.thread_config[1, 5] = 0xBEEF
    load = tile.coprocessor.load
    assert [load(T1, BANK_1 + 48 + i, 1) for i in range(4)] == [0xEF, 0xCD, 0xAB, 0x89]
    assert [load(B, BANK_1 + 48 + i, 2) for i in (0, 2)] == [0xCDEF, 0x89AB]
    assert [load(B, THREADS + 73 * 4 + i, 1) for i in range(4)] == [0xEF, 0xBE, 0, 0]
    with pytest.raises(UndefinedBehavior, match="core T1 accesses 2 bytes at 0xffef03b1, which is no multiple"):
        load(T1, BANK_1 + 49, 2)
    with pytest.raises(UndefinedBehavior, match="core T0 accesses 1 bytes at 0xffe00000, where only whole words"):
        load(T0, GPRS, 1)


def narrow_store(t: Any, size: int, address: int, value: int) -> int:
    return window_store(t, B, address, value, size)  # type: ignore[no-any-return]


def test_t26_stores_are_whole_words() -> None:
    tiles = new_tiles(1)
    target = tiles.ctypes.data if JIT else tiles[0]
    store = compile_entry("narrow_store", narrow_store, arguments=3).call
    coprocessor = Coprocessor(tiles)
    for address in (BANK_0 + 48, BOTH + 48, GPRS):
        for size in (1, 2):
            assert store(target, size, address, 1) != DONE
            with pytest.raises(UndefinedBehavior, match=f"core B accesses {size} bytes at {address:#x}, where only"):
                raise coprocessor._recorded()
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


def test_000_4_1_stores_take_effect_in_program_order(tile: Tile) -> None:
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


def test_003_5c_condition_c10_stands_for_a_cores_pending_config_store(tile: Tile) -> None:
    """Stores never are pending here, so the wait ends and what it held finds the value."""
    assert Condition.TRISC_CFG == 1 << 10
    tile.store_word(BANK_0 + 4 * BANKED, 0x55, "T1")
    tile.coprocessor.push(1, encode("STALLWAIT", stall_res=Block.CFG, wait_res=Condition.TRISC_CFG))
    tile.coprocessor.push(1, encode("RDCFG", GprAddress=2, CfgReg=BANKED))
    assert tile.coprocessor.drain(1)
    assert tile.gpr[1, 2] == 0x55


def test_003_2b_a_busy_scalar_unit_holds_the_issuing_thread_only(tile: Tile) -> None:
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


# --- encodings and fields whose effect a store can show ---------------------------------------------------------------


def test_003_7b_encodings_of_the_configuration_instructions(tile: Tile) -> None:
    """Words spelt out from the quick reference; what they do is read through the window."""
    tile.store_word(GPRS + 4 * 33, 0x89ABCDEF, "T1")
    tile.execute(1, 0xB0 << 24 | 33 << 16 | BANKED)  # WRCFG: GPR [21:16], width [15], word [10:0]
    assert tile.load_word(BANK_0 + 4 * BANKED) == 0x89ABCDEF
    tile.execute(1, 0xB1 << 24 | 34 << 16 | BANKED)  # RDCFG: GPR [21:16], word [10:0]
    assert tile.load_word(GPRS + 4 * 34, "T1") == 0x89ABCDEF
    tile.execute(1, 0xB2 << 24 | 7 << 16 | 0x0104)  # SETC16: entry [23:16], value [15:0]
    assert tile.load_word(THREADS + (68 + 7) * 4) == 0x0104
    for byte, expected in enumerate((0x89ABCD3F, 0x89AB3D3F, 0x893B3D3F, 0x393B3D3F)):
        # RMWCIB: byte in the opcode, mask [23:16], data [15:8], word [7:0]
        tile.execute(1, (0xB3 + byte) << 24 | 0xF0 << 16 | 0x36 << 8 | BANKED)
        assert tile.load_word(BANK_0 + 4 * BANKED) == expected
    tile.record.gpr[1, 36:40] = [1, 2, 3, 4]
    tile.execute(1, 0xB0 << 24 | 36 << 16 | 1 << 15 | BANKED)
    assert [tile.load_word(BANK_0 + 4 * BANKED + 4 * i) for i in range(4)] == [1, 2, 3, 4]


def fields_of(word: int) -> dict[str, tuple[int, int]]:
    """Name: (lowest bit, width) of a Config word's fields."""
    return {f.name: (f.lsb, f.width) for f, _ in decode_word("config", word, 0)}


def test_000_3a_word_0_has_three_formats_that_count_with_their_override_only() -> None:
    prefix = "ALU_FORMAT_SPEC_REG_"
    assert fields_of(0) == {
        f"{prefix}{name}": place
        for name, place in {
            "SrcA_val": (0, 4),
            "SrcA_override": (4, 1),
            "SrcB_val": (5, 4),
            "SrcB_override": (9, 1),
            "Dstacc_val": (10, 4),
            "Dstacc_override": (14, 1),
        }.items()
    }
    for override, kind in ((0, BF16), (1, FP32)):
        bench = Bench(BF16, FP32)
        bench.word_row(0, [0x3F80_1234] * 16)
        bench.set(PCK_DEST_RD_CTRL_Read_32b_data=override)  # the width of a read goes with the format
        bench.context(0, In_data_format=kind, Out_data_format=FP32)
        Coprocessor(bench._tiles).store(B, BANK_0, FP32 << 10 | override << 14)
        bench.pacr()
        assert bench.l1("<u4", 1) == [0x3F80_1234 if override else 0x3F80_0000]


def eltwise_sum(word_0: int, word_1: int, implied: int, not_implied: int) -> int:
    """The FP32 result of ELWADD of a SrcA cell with more mantissa than BF16 has, and zero."""
    tile = Tile()
    t = tile.record
    t.src_owner[...] = 1
    t.src_format[...] = implied
    t.srca[...] = 0x7 << 8 | 0x7F  # 1 and the three lowest bits of TF32's mantissa
    tile.store_word(BANK_0, word_0, "T1")
    tile.store_word(BANK_0 + 4, word_1 | 1 << 29, "T1")
    tile.execute(1, [encode("SETC16", 2, not_implied), encode("SETC16", 3, not_implied)])
    tile.execute(1, encode("ELWADD"))
    cell, low = int(t.dst[0, 0]), int(t.dst[8, 0])
    return ((cell & 0x8000) | (cell & 0xFF) << 7 | cell >> 8 & 0x7F) << 16 | low


TF32_FORMAT = 4
TRIMMED, WHOLE = 0x3F800000, 0x3F80E000


def test_000_3a_the_srca_format_of_word_0_counts_with_its_override_only() -> None:
    configured = BF16 << 17 | BF16 << 21
    for override, expected in ((0, TRIMMED), (1, WHOLE)):
        assert hex(eltwise_sum(TF32_FORMAT | override << 4, configured, BF16, 1)) == hex(expected)


def test_000_3b_srca_takes_the_format_of_its_bank_unless_threadconfig_disables_it() -> None:
    tf32 = TF32_FORMAT << 17 | TF32_FORMAT << 21
    assert hex(eltwise_sum(0, tf32, BF16, 0)) == hex(TRIMMED)
    assert hex(eltwise_sum(0, tf32, BF16, 1)) == hex(WHOLE)
    assert hex(eltwise_sum(0, 0, TF32_FORMAT, 0)) == hex(WHOLE)


@pytest.mark.parametrize("unpacker", [0, 1])
def test_000_3b_both_src_files_record_the_format_of_each_bank(unpacker: int) -> None:
    u = Unpacker(unpacker)
    for kind in (FP16, BF16):
        u.formats(kind)
        assert u.unpack(SetDatValid=1)
    assert u.t["src_format"][unpacker].tolist() == [FP16, BF16]


def test_000_3c_word_1_fields(tile: Tile) -> None:
    expected = {
        "ALU_ROUNDING_MODE_Fpu_srnd_en": (0, 1),
        "ALU_ROUNDING_MODE_Gasket_srnd_en": (1, 1),
        "ALU_ROUNDING_MODE_Packer_srnd_en": (2, 1),
        "ALU_ROUNDING_MODE_Padding": (3, 10),
        "ALU_ROUNDING_MODE_GS_LF": (13, 1),
        "ALU_ROUNDING_MODE_Bfp8_HF": (14, 1),
        "ALU_FORMAT_SPEC_REG0_SrcAUnsigned": (15, 1),
        "ALU_FORMAT_SPEC_REG0_SrcBUnsigned": (16, 1),
        "ALU_FORMAT_SPEC_REG0_SrcA": (17, 4),
        "ALU_FORMAT_SPEC_REG1_SrcB": (21, 4),
        "ALU_FORMAT_SPEC_REG2_Dstacc": (25, 4),
        "ALU_ACC_CTRL_Fp32_enabled": (29, 1),
        "ALU_ACC_CTRL_SFPU_Fp32_enabled": (30, 1),
        "ALU_ACC_CTRL_INT8_math_enabled": (31, 1),
    }
    assert fields_of(1) == expected
    for name, (lsb, width) in expected.items():
        tile.store_word(BANK_0 + 4, ((1 << width) - 1) << lsb)
        assert {other for other in expected if tile.config[other]} == {name}


def test_000_5a_word_71_has_blackholes_layout(tile: Tile) -> None:
    tile.store_word(BANK_0 + 4 * 71, 0xA5 << 24 | 1 << 20 | 5 << 16 | 0x1234)
    group = "THCON_SEC0_REG1_"
    values = {f.name.removeprefix(group): value for f, value in decode_word("config", 71, tile.load_word(BANK_0 + 284))}
    assert values == {
        "Downsample_mask": 0x1234,
        "Downsample_rate": 5,
        "Pack_L1_Acc": 0,
        "Exp_threshold_en": 1,
        "Unp_LF8_4b_exp": 0,
        "Pac_LF8_4b_exp": 0,
        "Exp_threshold": 0xA5,
    }


@pytest.mark.parametrize(("word_71", "expected"), [(0, 0x4000), (1 << 19, 0x4040)])
def test_000_5a_bit_19_of_word_71_accumulates_in_l1(word_71: int, expected: int) -> None:
    bench = Bench()
    bench.bf16_row(0, [0x4000] * 16)
    bench.tile["l1"][L1_BASE : L1_BASE + 32].view("<u2")[...] = 0x3F80
    Coprocessor(bench._tiles).store(B, BANK_0 + 4 * 71, word_71)
    bench.pacr()
    assert [hex(v) for v in bench.l1("<u2", 16)] == [hex(expected)] * 16


@pytest.mark.parametrize(("unpacker", "word"), [(0, 71), (1, 119)])
@pytest.mark.parametrize(("bit", "exponent"), [(None, 14), (22, 15), (23, 14)])
def test_000_5d_bit_22_makes_an_unpacker_read_e4m3(unpacker: int, word: int, bit: int | None, exponent: int) -> None:
    """0x38 is 1.0 as E4M3 and 0.5 as E5M2; each unpacker has a bit of its own."""
    u = Unpacker(unpacker)
    u.formats(FP8)
    u.coprocessor.store(B, BANK_0 + 4 * word, 0 if bit is None else 1 << bit)
    u.coprocessor.store(B, BANK_0 + 4 * (71 + 119 - word), 0)
    u.l1([0x38] * 16, "<u1")
    assert u.unpack()
    assert set(u.src()[0].tolist()) == {exponent}


@pytest.mark.parametrize(("bit", "byte"), [(None, 0x3C), (23, 0x38), (22, 0x3C)])
def test_000_5d_bit_23_of_word_71_makes_the_packer_write_e4m3(bit: int | None, byte: int) -> None:
    bench = Bench(BF16, FP8)
    bench.bf16_row(0, [0x3F80] * 16)
    Coprocessor(bench._tiles).store(B, BANK_0 + 4 * 71, 0 if bit is None else 1 << bit)
    bench.pacr()
    assert bench.l1("u1", 16) == [byte] * 16
