"""The mover: XMOV, and its commands through TDMA-RISC (tile K30)."""

from __future__ import annotations

import numpy as np
import pytest

from bhemu.api.tile import Tile
from bhemu.errors import BhemuError, MemoryError_, MissingSpecification, UndefinedBehavior
from bhemu.isa.instructions import encode
from bhemu.isa.registers import WRITABLE_MASK
from bhemu.machine.agents import T0, T1, T2, B
from bhemu.machine.config_access import UNITS_OF_WORD
from bhemu.machine.state import L1_SIZE
from tests.tensix.mmio_agent import Registers

pytestmark = pytest.mark.plain

ZEROS_TO_L1, L1_TO_CONFIG, ZEROS_TO_CONFIG, L1_TO_L1 = range(4)
SOURCE, TARGET = 0x4000, 0x8000  # bytes
UNITS = L1_SIZE // 16
THREAD = 1
TDMA = 0xFFB11000


@pytest.fixture
def tile(shared_tile: Tile) -> Tile:
    """L1 holds 1, 2, 3, ... as words from SOURCE, and 0xEE from TARGET."""
    shared_tile.reset()
    shared_tile.record.allow_open = 0
    shared_tile.record.l1[:] = 0
    shared_tile.record.l1_u32[SOURCE // 4 : SOURCE // 4 + 1024] = np.arange(1, 1025)
    shared_tile.record.l1[TARGET : TARGET + 4096] = 0xEE
    return shared_tile


def xmov(tile: Tile, source: int, target: int, units: int, direction: int, bank: int = 0) -> None:
    """Addresses in bytes."""
    tile.record.thread_config[THREAD, 0] = bank
    tile.record.config[bank, 88] = source // 16
    tile.record.config[bank, 89] = target // 16
    tile.record.config[bank, 90] = units | direction << 30
    tile.execute(THREAD, encode("XMOV"))


def words(tile: Tile, address: int, count: int) -> list[int]:
    return [int(v) for v in tile.record.l1_u32[address // 4 : address // 4 + count]]


@pytest.mark.parametrize("bank", [0, 1])
@pytest.mark.parametrize("units", [0, 1, 7, 64])
def test_xmov_copies_l1_to_l1(tile: Tile, bank: int, units: int) -> None:
    xmov(tile, SOURCE, TARGET, units, L1_TO_L1, bank)
    assert words(tile, TARGET, 4 * units) == list(range(1, 4 * units + 1))
    assert words(tile, TARGET + 16 * units, 4) == [0xEEEEEEEE] * 4
    assert words(tile, SOURCE, 1024) == list(range(1, 1025))


def test_xmov_zeroes_l1_and_needs_no_source(tile: Tile) -> None:
    xmov(tile, 0xFFFFFFF0, TARGET + 16, 2, ZEROS_TO_L1)
    assert words(tile, TARGET, 16) == [0xEEEEEEEE] * 4 + [0] * 8 + [0xEEEEEEEE] * 4


def test_xmov_reaches_the_last_unit_of_l1(tile: Tile) -> None:
    xmov(tile, SOURCE, L1_SIZE - 16, 1, L1_TO_L1)
    assert words(tile, L1_SIZE - 16, 4) == [1, 2, 3, 4]
    xmov(tile, L1_SIZE - 16, TARGET, 1, L1_TO_L1)
    assert words(tile, TARGET, 4) == [1, 2, 3, 4]


def test_the_size_of_a_transfer_has_sixteen_bits(tile: Tile) -> None:
    xmov(tile, SOURCE, TARGET, 0x30001, L1_TO_L1)
    assert words(tile, TARGET, 8) == [1, 2, 3, 4] + [0xEEEEEEEE] * 4


@pytest.mark.rule("I.10")
@pytest.mark.parametrize(("window", "banks"), [(0, (0,)), (0x380, (1,)), (0x700, (0, 1))])
def test_xmov_to_config_reaches_either_bank_or_both(tile: Tile, window: int, banks: tuple[int, ...]) -> None:
    first = 124
    xmov(tile, SOURCE, window + 4 * first, 2, L1_TO_CONFIG)
    for bank in (0, 1):
        expected = (np.arange(1, 9) & WRITABLE_MASK[first : first + 8]).tolist() if bank in banks else [0] * 8
        assert tile.record.config[bank, first : first + 8].tolist() == expected
        assert not tile.record.config[bank, first + 8 : first + 12].any()


@pytest.mark.rule("I.10")
def test_xmov_writes_shared_words_once_for_both_banks_and_tells_the_units(tile: Tile) -> None:
    tile.record.config_dirty[:] = 0
    xmov(tile, SOURCE, 0x380 + 4 * 220, 1, L1_TO_CONFIG)
    assert tile.record.config[0, 220] == 1 & WRITABLE_MASK[220]
    assert tile.record.config_dirty[0] == tile.record.config_dirty[1] == UNITS_OF_WORD[220] != 0


def test_xmov_zeroes_config(tile: Tile) -> None:
    tile.record.config[1, 124:136] = 5
    xmov(tile, 0xFFFFFFF0, 0x380 + 4 * 128, 1, ZEROS_TO_CONFIG)
    assert tile.record.config[1, 124:136].tolist() == [5] * 4 + [0] * 4 + [5] * 4


@pytest.mark.rule("I.10")
def test_a_transfer_over_state_reset_en_resets_the_bank(tile: Tile) -> None:
    tile.record.config[1, 124] = 5
    xmov(tile, SOURCE, 0x380 + 16, 1, L1_TO_CONFIG)
    assert tile.record.config[1, 124] == 0
    assert tile.record.config[1, 5:8].tolist() == (np.arange(2, 5) & WRITABLE_MASK[5:8]).tolist()


def test_what_the_mover_writes_to_no_window_is_lost(tile: Tile) -> None:
    before = tile.record.l1.copy()
    for target in (0x10000, 0x3FFF0, 0x50000, 0xFFFFFFF0):
        xmov(tile, SOURCE, target, 1, L1_TO_CONFIG)
    xmov(tile, 0, 0x10000, 4096, ZEROS_TO_CONFIG)
    assert (tile.record.l1 == before).all()
    assert set(np.flatnonzero(tile.record.config[0])) <= {88, 89, 90}
    assert not tile.record.config[1].any()


@pytest.mark.parametrize(
    ("source", "target", "units", "direction", "error", "text"),
    [
        (SOURCE, L1_SIZE, 1, L1_TO_L1, MemoryError_, "16 bytes at L1 address 0x180000"),
        (SOURCE, L1_SIZE, 0, L1_TO_L1, MemoryError_, "0 bytes at L1 address 0x180000"),
        (SOURCE, L1_SIZE - 16, 2, L1_TO_L1, MemoryError_, "32 bytes at L1 address 0x17fff0"),
        (L1_SIZE - 16, TARGET, 2, L1_TO_L1, MemoryError_, "32 bytes at L1 address 0x17fff0"),
        (SOURCE, 0xFFFFFFFF0, 1, L1_TO_L1, MemoryError_, "L1 address 0xffffffff0"),
        (0, L1_SIZE - 16, 2, ZEROS_TO_L1, MemoryError_, "L1 address 0x17fff0"),
        (L1_SIZE, 0, 1, L1_TO_CONFIG, MemoryError_, "L1 address 0x180000"),
        (L1_SIZE, 0x10000, 1, L1_TO_CONFIG, MemoryError_, "L1 address 0x180000"),
        (SOURCE, 0xFFF0, 2, L1_TO_CONFIG, UndefinedBehavior, "across the end of a 64 KiB window"),
        (SOURCE, 0x1FFF0, 2, ZEROS_TO_CONFIG, UndefinedBehavior, "across the end of a 64 KiB window"),
        (SOURCE, 0x100000000, 1, L1_TO_CONFIG, UndefinedBehavior, "0x100000000, across the end"),
        (SOURCE, 0x40000, 1, L1_TO_CONFIG, UndefinedBehavior, "Blackhole has no instruction RAM"),
        (SOURCE, 0x4FFF0, 1, ZEROS_TO_CONFIG, UndefinedBehavior, "0x4fff0: Blackhole has no instruction RAM"),
        (SOURCE, 0xA80, 1, L1_TO_CONFIG, MissingSpecification, "past the words of Config"),
        (SOURCE, 0xA70, 2, ZEROS_TO_CONFIG, MissingSpecification, "32 bytes at 0xa70 of the Config window"),
        (SOURCE, SOURCE + 16, 2, L1_TO_L1, MissingSpecification, "0x4000 to 0x4010, which overlap"),
        (SOURCE + 16, SOURCE, 2, L1_TO_L1, MissingSpecification, "which overlap"),
    ],
)
def test_transfers_that_are_undefined_are_refused_whole(
    tile: Tile, source: int, target: int, units: int, direction: int, error: type[BhemuError], text: str
) -> None:
    before = tile.record.l1.copy()
    with pytest.raises(error, match=text):
        xmov(tile, source, target, units, direction)
    assert (tile.record.l1 == before).all()
    assert set(np.flatnonzero(tile.record.config[0])) <= {88, 89, 90}


def test_overlapping_copies_go_upwards_where_the_user_accepts_it(tile: Tile) -> None:
    tile.record.allow_open = 1
    xmov(tile, SOURCE + 16, SOURCE, 2, L1_TO_L1)
    assert words(tile, SOURCE, 12) == [5, 6, 7, 8, 9, 10, 11, 12, 9, 10, 11, 12]
    xmov(tile, SOURCE, SOURCE, 2, L1_TO_L1)
    assert words(tile, SOURCE, 4) == [5, 6, 7, 8]


def test_a_second_mover_is_refused_and_last_changes_nothing(tile: Tile) -> None:
    with pytest.raises(MissingSpecification, match="second mover"):
        tile.execute(THREAD, encode("XMOV", Mov_block_selection=1))
    tile.record.config[0, 88:91] = [SOURCE // 16, TARGET // 16, 1 | L1_TO_L1 << 30]
    tile.execute(THREAD, encode("XMOV", Last=1))
    assert words(tile, TARGET, 4) == [1, 2, 3, 4]


@pytest.mark.rule("math Y10")
def test_the_mover_is_never_busy(tile: Tile) -> None:
    tile.record.config[0, 88:91] = [SOURCE // 16, TARGET // 16, 1 | L1_TO_L1 << 30]
    for word in (encode("XMOV"), encode("STALLWAIT", stall_res=0x1FF, wait_res=0x200), encode("SEMPOST", sem_sel=1)):
        tile.coprocessor.push(THREAD, word)
    assert tile.coprocessor.drain(THREAD)


# --- TDMA-RISC ------------------------------------------------------------------------------------


@pytest.fixture
def registers() -> Registers:
    made = Registers()
    made.record.l1_u32[SOURCE // 4 : SOURCE // 4 + 1024] = np.arange(1, 1025)
    return made


def command(registers: Registers, word: int, *parameters: int, core: int = T2) -> None:
    for i, value in enumerate(parameters):
        registers.store(core, TDMA + 4 * i, value)
    registers.store(core, TDMA + 0x10, word)


@pytest.mark.rule("tile K30")
def test_a_command_moves_by_four_parameters(registers: Registers) -> None:
    command(registers, 0x40, SOURCE // 16, TARGET // 16, 0xABC0_0002, 0xF0 | L1_TO_L1)
    assert registers.record.l1_u32[TARGET // 4 : TARGET // 4 + 12].tolist() == [*range(1, 9), 0, 0, 0, 0]
    assert [registers.load(B, TDMA + 4 * i) for i in range(5)] == [0] * 5
    assert registers.load(B, TDMA + 0x14) == 0x428  # queues empty, four places free


@pytest.mark.rule("tile K30")
def test_compact_moves_count_from_the_base_of_the_core(registers: Registers) -> None:
    registers.store(T1, TDMA + 0x2C, SOURCE // 16)
    registers.store(T0, TDMA + 0x2C, TARGET // 16)
    assert registers.load(T1, TDMA + 0x2C) == SOURCE // 16
    assert registers.load(T2, TDMA + 0x2C) == 0
    command(registers, 1 << 31 | 1 << 30 | 2 << 24 | 0x20 << 16 | 1 << 8 | 0x40, core=T1)
    assert registers.record.l1_u32[0x200 // 4 : 0x200 // 4 + 12].tolist() == [*range(5, 13), 0, 0, 0, 0]
    command(registers, 1 << 31 | 1 << 24 | 124 // 4 << 16 | 0 << 8 | 0x40, core=T1)
    assert registers.record.config[0, 124:128].tolist() == (np.arange(1, 5) & WRITABLE_MASK[124:128]).tolist()


@pytest.mark.rule("tile K30")
@pytest.mark.parametrize(("word", "expected"), [(0x666, [3, 0]), (0x766, [3, 4])])
def test_a_command_writes_one_or_two_words_of_l1(registers: Registers, word: int, expected: list[int]) -> None:
    command(registers, word, TARGET, 2, 3, 4)
    assert registers.record.l1_u32[TARGET // 4 : TARGET // 4 + 2].tolist() == expected


@pytest.mark.rule("tile K30")
@pytest.mark.parametrize("word", [0x46, 0x89, 0x8000_0089, 0x8000_0046])
def test_mover_commands_that_wait_or_do_nothing_change_nothing(registers: Registers, word: int) -> None:
    before = registers.state()
    command(registers, word)
    assert registers.state() == before


@pytest.mark.rule("tile K30")
@pytest.mark.parametrize(
    ("word", "first", "error", "text"),
    [
        (0x41, 0, UndefinedBehavior, "no command 0x00000041"),
        (0x266, 0, UndefinedBehavior, "no command 0x00000266"),
        (0x8000_0666, 0, UndefinedBehavior, "no command 0x80000666"),
        (0x140, 0, MissingSpecification, "0x00000140 names a mover other than 0"),
        (0x666, L1_SIZE, MemoryError_, "4 bytes to 0x180000"),
        (0x666, 2, MemoryError_, "4 bytes to 0x2,"),
        (0x766, 4, MemoryError_, "8 bytes to 0x4,"),
        (0x40, UNITS, MemoryError_, "L1 address 0x180000"),
    ],
)
def test_undefined_commands_are_refused(
    registers: Registers, word: int, first: int, error: type[BhemuError], text: str
) -> None:
    with pytest.raises(error, match=text):
        command(registers, word, first, 0x100, 1, L1_TO_L1)
    assert registers.record.l1_u32[0x400:0x404].tolist() == [0] * 4
