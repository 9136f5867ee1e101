"""Registers of the network interfaces (tile N10 to N15, N20, N24; E27, E28)."""

from __future__ import annotations

import pytest

from bhemu import Tile
from bhemu.errors import UndefinedBehavior, Unimplemented
from bhemu.machine.agents import NC, NOC, T1, TENSIX, B
from bhemu.machine.device_state import place_niu

pytestmark = pytest.mark.plain

BASES = (0xFFB20000, 0xFFB30000)
OWN = 2 << 6 | 1


@pytest.fixture
def tile() -> Tile:
    return Tile()


@pytest.mark.rule("tile N10", "tile N11", "tile N12")
def test_a_lone_tile_is_at_1_2(tile: Tile) -> None:
    """The two NODE_ID words are those that N10 gives for tile (1, 2)."""
    for base, node, endpoint in zip(BASES, (0x10611081, 0x0061124F), (0x00010000, 0x01010000), strict=True):
        for page in range(4):
            assert tile.cores.load(base + 0x800 * page + 0x44, B) == node
            assert tile.cores.load(base + 0x800 * page + 0x48, NC) == endpoint
        assert tile.cores.load(base + 0x148) == OWN


@pytest.mark.rule("tile N10", "tile N11", "tile N12")
def test_a_tile_may_be_put_at_another_place(tile: Tile) -> None:
    place_niu(tile.record, 16, 11, 139)
    assert tile.cores.load(BASES[0] + 0x44) & 0xFFF == 11 << 6 | 16
    assert tile.cores.load(BASES[1] + 0x44) & 0xFFF == 0
    assert [tile.cores.load(base + 0x48) for base in BASES] == [0x0001008B, 0x0101008B]
    assert [tile.cores.load(base + 0x148) for base in BASES] == [11 << 6 | 16] * 2


def entry(tile: Tile, base: int, first: int, index: int) -> int:
    return tile.cores.load(base + first + 4 * (index // 6)) >> 5 * (index % 6) & 31


@pytest.mark.rule("tile N6", "tile N7")
def test_translation_tables_are_those_of_a_chip_without_faults(tile: Tile) -> None:
    for noc, base in enumerate(BASES):
        for x in range(17):
            assert entry(tile, base, 0x118, x) == (16 - x if noc else x)
        for y in range(12):
            assert entry(tile, base, 0x130, y) == (11 - y if noc else y)
        dram_west, dram_east, pcie = (entry(tile, base, 0x118, x) for x in (17, 18, 19))
        assert (dram_west, dram_east, pcie) == ((16, 7, 14) if noc else (0, 9, 2))
        rows = [entry(tile, base, 0x130, y) for y in range(12, 24)]
        assert rows == [11 - y if noc else y for y in (0, 1, 11, 2, 10, 3, 9, 4, 8, 5, 7, 6)]
        assert entry(tile, base, 0x130, 25) == (10 if noc else 1)
        assert tile.cores.load(base + 0x150) == 0
        assert tile.cores.load(base + 0x154) == 3
        assert tile.cores.load(base + 0x100) == 1 << 14


@pytest.mark.rule("tile N21")
def test_multicast_opt_out_words_are_mirrored_on_noc_1(tile: Tile) -> None:
    assert [tile.cores.load(base + 0x108) for base in BASES] == [0x301, 0x10180]
    assert [tile.cores.load(base + 0x110) for base in BASES] == [0x3, 0xC00]


@pytest.mark.rule("tile N13")
@pytest.mark.parametrize("agent", [B, T1, NC, NOC, TENSIX])
def test_initiator_words_keep_what_is_stored(tile: Tile, agent: int) -> None:
    stored = {}
    for base in BASES:
        for page in range(4):
            for offset in range(0, 0x38, 4):
                address = base + 0x800 * page + offset
                stored[address] = 0xA5000000 + len(stored)
                tile.cores.store(address, stored[address], agent)
    for address, value in stored.items():
        keeps = 0xFFFF if address & 0x7FF == 0x18 else 0xFFFFFFFF  # the upper half of PACKET_TAG reads as zero
        assert tile.cores.load(address, agent) == value & keeps


@pytest.mark.rule("tile N13")
def test_configuration_words_keep_what_is_stored(tile: Tile) -> None:
    offsets = [o for o in range(0x100, 0x178, 4) if o not in (0x14C, 0x174)]
    for base in BASES:
        for offset in offsets:
            tile.cores.store(base + offset, 0x12340000 | offset if offset != 0x100 else 0x4001, B)
    for base in BASES:
        for offset in offsets:
            assert tile.cores.load(base + offset, T1) == (0x12340000 | offset if offset != 0x100 else 0x4001)


@pytest.mark.rule("tile Q12")
def test_firmware_sets_the_clock_gate_bit(tile: Tile) -> None:
    for base in BASES:
        tile.cores.store(base + 0x100, tile.cores.load(base + 0x100) | 1)
        tile.cores.store(base + 0x104, tile.cores.load(base + 0x104) | 1)
        assert tile.cores.load(base + 0x100) == 0x4001
    for mode in (1 << 12, 1 << 16):
        with pytest.raises(Unimplemented, match="switching the tile off"):
            tile.cores.store(BASES[0] + 0x100, mode)
    assert tile.cores.load(BASES[0] + 0x100) == 0x4001


@pytest.mark.rule("tile N20", "tile E28")
def test_all_counters_can_be_read_and_none_stored(tile: Tile) -> None:
    tile.record.niu_counter[1, :62] = range(100, 162)
    for i in range(62):
        assert tile.cores.load(BASES[0] + 0x200 + 4 * i) == 0
        assert tile.cores.load(BASES[1] + 0x200 + 4 * i) == 100 + i
        with pytest.raises(UndefinedBehavior, match="can only be read"):
            tile.cores.store(BASES[1] + 0x200 + 4 * i, 0)


@pytest.mark.rule("tile E27")
def test_clear_outstanding_takes_a_mask(tile: Tile) -> None:
    tile.record.niu_counter[0, :62] = 7
    tile.cores.store(BASES[0] + 0x60, 0x10005 | 0x8000)
    counters = [tile.cores.load(BASES[0] + 0x200 + 4 * i) for i in range(62)]
    assert [i for i, value in enumerate(counters) if value == 0] == [16, 18, 31]
    assert {value for value in counters if value} == {7}
    with pytest.raises(UndefinedBehavior, match="can only be written"):
        tile.cores.load(BASES[0] + 0x60)


@pytest.mark.rule("tile N24")
def test_return_to_zero_registers_show_the_numbers_that_are_enabled(tile: Tile) -> None:
    base = BASES[1]
    tile.record.niu_rtz[1] = 0b1011_0100
    assert tile.cores.load(base + 0x378) == 0  # nothing enabled: no number, and nothing is cleared
    assert tile.cores.load(base + 0x37C) == 0b1011_0100
    tile.cores.store(base + 0x178, 0xFFFFFFF0)
    assert tile.cores.load(base + 0x178) == 0x1000FFF0
    assert [tile.cores.load(base + 0x378) for _ in range(3)] == [4, 4, 4]  # bit 28: the bit stays
    assert tile.cores.load(base + 0x37C) == 0b1011_0100
    tile.cores.store(base + 0x178, 0xFFF0)
    assert [tile.cores.load(base + 0x378) for _ in range(4)] == [4, 5, 7, 0]
    assert tile.cores.load(base + 0x37C) == 0b100
    for offset in (0x378, 0x37C):
        tile.cores.store(base + offset, 0xFFFF)
        assert tile.cores.load(base + 0x37C) == 0b100
    assert tile.cores.load(base + 0x17C) == 0
    tile.cores.store(base + 0x17C, 0xB)
    assert tile.cores.load(base + 0x37C) == 0b100
    tile.cores.store(base + 0x17C, 0x4)
    assert tile.cores.load(base + 0x37C) == 0


@pytest.mark.rule("tile N15")
def test_cmd_ctrl_reads_zero_and_zero_starts_nothing(tile: Tile) -> None:
    for base in BASES:
        for page in range(4):
            tile.cores.store(base + 0x800 * page + 0x40, 0)
            with pytest.raises(UndefinedBehavior, match="0x2 is stored to CMD_CTRL"):
                tile.cores.store(base + 0x800 * page + 0x40, 2)
            assert tile.cores.load(base + 0x800 * page + 0x40) == 0
    assert not tile.record.niu_counter.any()


@pytest.mark.rule("tile N13")
@pytest.mark.parametrize("offset", [0x44, 0x48, 0x844, 0x1848])
def test_identification_is_read_only(tile: Tile, offset: int) -> None:
    with pytest.raises(UndefinedBehavior, match=f"register {offset:#x} of the network interface of NoC 1 can only be"):
        tile.cores.store(BASES[1] + offset, 0)


@pytest.mark.rule("tile N13")
@pytest.mark.parametrize("offset", [0x38, 0x3C, 0x4C, 0x6C, 0xFC, 0x14C, 0x180, 0x860, 0x900, 0x1A00, 0x2000, 0xFFFC])
def test_offsets_without_a_register_are_refused(tile: Tile, offset: int) -> None:
    with pytest.raises(UndefinedBehavior, match=f"has no register at {offset:#x}"):
        tile.cores.load(BASES[0] + offset)
    with pytest.raises(UndefinedBehavior, match=f"has no register at {offset:#x}"):
        tile.cores.store(BASES[0] + offset, 0)


@pytest.mark.rule("tile N13")
@pytest.mark.parametrize("offset", [0x64, 0x68, 0x174, 0x2F8, 0x300, 0x374, 0x380, 0x400, 0x5FC, 0x864])
def test_what_is_not_built_is_refused_by_name(tile: Tile, offset: int) -> None:
    with pytest.raises(Unimplemented, match=f"register {offset:#x} .* is not built"):
        tile.cores.load(BASES[0] + offset)
    with pytest.raises((Unimplemented, UndefinedBehavior), match=f"register {offset:#x}"):
        tile.cores.store(BASES[0] + offset, 0)
