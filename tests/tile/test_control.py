"""Registers of the control block (tile K31 to K33, K12, T14 to T18, E18, E19, E40)."""

from __future__ import annotations

import pytest

from bhemu import Tile
from bhemu.errors import MissingSpecification, UndefinedBehavior, Unimplemented
from bhemu.isa.registers import WRITABLE_MASK, config
from bhemu.isa.tile_registers import registers_of
from bhemu.machine.agents import NC, NOC, T0, T1, T2, B
from bhemu.tile.control_registers import ACTS, KIND, NOTHING, OPEN, PLAIN, REFUSED, RESULT
from tests.riscv.rv_machine import ALL_HELD, START, machine, release, word, words

pytestmark = pytest.mark.plain

CONTROL = 0xFFB12000
EVERYBODY = (B, T0, T1, T2, NC, NOC)
SOFT_RESET, DISABLE_RESET = CONTROL + 0x1B0, CONTROL + 0x224
WALL_CLOCK = CONTROL + 0x1F0


KINDS = {"acts": ACTS, "plain": PLAIN, "open": OPEN, "result": RESULT, "refused": REFUSED}
REGISTERS = {row.offset: (row.name, KINDS[row.kind]) for row in registers_of("control")}


def of_kind(kind: int) -> list[int]:
    """Offsets of the registers of a kind."""
    return [offset for offset, row in REGISTERS.items() if row[1] == kind]


@pytest.fixture(scope="module")
def tile() -> Tile:
    return Tile()


# --- K31: every register ----------------------------------------------------------------------------------------------


@pytest.mark.rule("tile K31")
def test_every_register_of_the_header_has_one_behaviour() -> None:
    """The vendor's header for Blackhole names 86 addresses."""
    assert len(REGISTERS) == 86
    assert len({name for name, _ in REGISTERS.values()}) == 86
    for offset, (_, kind) in REGISTERS.items():
        assert KIND[offset // 4] == kind != NOTHING
    assert (KIND != NOTHING).sum() == 86


@pytest.mark.rule("tile K31")
def test_plain_registers_keep_what_is_written(tile: Tile) -> None:
    """Clock gating (0x070 to 0x07c, 0x240 to 0x248), ECC, counters' periods and events: E18, E46."""
    offsets = of_kind(PLAIN)
    assert {0x070, 0x074, 0x07C, 0x240, 0x244, 0x248, 0x1D0, 0x090, 0x000, 0x004, 0x218} <= set(offsets)
    for i, offset in enumerate(offsets):
        tile.cores.store(CONTROL + offset, 0xA5000000 + i)
    for i, offset in enumerate(offsets):
        assert tile.cores.load(CONTROL + offset) == 0xA5000000 + i
        tile.cores.store(CONTROL + offset, 0)


@pytest.mark.rule("tile T24")
@pytest.mark.parametrize("agent", EVERYBODY)
def test_cores_and_the_noc_reach_the_block(tile: Tile, agent: int) -> None:
    tile.cores.store(CONTROL + 0x240, 7 + agent, agent)
    assert tile.cores.load(CONTROL + 0x240, agent) == 7 + agent


@pytest.mark.rule("tile K31")
@pytest.mark.parametrize("offset", [0x024, 0x044, 0x098, 0x0C0, 0x128, 0x24C, 0x3FC, 0xFFC])
def test_unlisted_offsets_are_undefined(tile: Tile, offset: int) -> None:
    with pytest.raises(UndefinedBehavior, match=f"no register at {offset:#x}"):
        tile.cores.load(CONTROL + offset)
    with pytest.raises(UndefinedBehavior, match=f"no register at {offset:#x}"):
        tile.cores.store(CONTROL + offset, 0)


@pytest.mark.rule("tile K31")
@pytest.mark.parametrize("offset", of_kind(REFUSED))
def test_registers_that_nobody_describes_are_refused_by_name(tile: Tile, offset: int) -> None:
    name = REGISTERS[offset][0]
    with pytest.raises(Unimplemented, match=rf"{name} \(0xffb12"):
        tile.cores.load(CONTROL + offset)
    with pytest.raises(Unimplemented, match=name):
        tile.cores.store(CONTROL + offset, 0)


@pytest.mark.rule("tile K31")
@pytest.mark.parametrize("offset", of_kind(RESULT))
def test_results_of_what_never_runs_are_zero(tile: Tile, offset: int) -> None:
    assert tile.cores.load(CONTROL + offset) == 0
    tile.cores.store(CONTROL + offset, 0)
    with pytest.raises(Unimplemented, match=REGISTERS[offset][0]):
        tile.cores.store(CONTROL + offset, 1)


@pytest.mark.rule("tile K58", "I.3")
def test_feature_disable_takes_what_is_documented(tile: Tile) -> None:
    for value in (8, 0):
        tile.cores.store(CONTROL + 0x068, value)
        assert tile.cores.load(CONTROL + 0x068) == value
    with pytest.raises(Unimplemented, match="DBG_FEATURE_DISABLE = 0x808: bit 11"):
        tile.cores.store(CONTROL + 0x068, 1 << 11 | 8)
    with pytest.raises(MissingSpecification, match="DBG_FEATURE_DISABLE = 0x240c: of its bits"):
        tile.cores.store(CONTROL + 0x068, 0x240C)
    assert tile.cores.load(CONTROL + 0x068) == 0


@pytest.mark.rule("tile K58")
def test_other_bits_of_feature_disable_are_kept_as_an_open_choice() -> None:
    tile = Tile(allow_open=True)
    tile.cores.store(CONTROL + 0x068, 0x240C)
    assert tile.cores.load(CONTROL + 0x068) == 0x240C


@pytest.mark.rule("tile K57")
def test_registers_that_no_source_describes_are_an_open_choice(tile: Tile) -> None:
    assert [REGISTERS[offset][0] for offset in of_kind(OPEN)] == ["LFSR_HIT_MASK"]
    for access in (lambda: tile.cores.store(CONTROL + 0x220, 15), lambda: tile.cores.load(CONTROL + 0x220)):
        with pytest.raises(MissingSpecification, match="no source says what LFSR_HIT_MASK"):
            access()
    allowed = Tile(allow_open=True)
    allowed.cores.store(CONTROL + 0x220, 15)
    assert allowed.cores.load(CONTROL + 0x220) == 15


@pytest.mark.rule("tile K31")
def test_sticky_bits_can_be_cleared_but_not_asked_for(tile: Tile) -> None:
    tile.cores.store(CONTROL + 0x0B4, 0)
    with pytest.raises(Unimplemented, match="FPU_STICKY_BITS"):
        tile.cores.load(CONTROL + 0x0B4)
    with pytest.raises(Unimplemented, match="FPU_STICKY_BITS"):
        tile.cores.store(CONTROL + 0x0B4, 1)


@pytest.mark.rule("tile K31")
def test_stores_to_registers_that_report_are_discarded(tile: Tile) -> None:
    """Drivers store to DBG_RD_DATA to order it behind DBG_BUS_CTRL."""
    for offset in (0x05C, 0x06C, 0x078, 0x088, 0x08C, 0x0A8, 0x1F4, 0x1F8):
        assert REGISTERS[offset][1] == ACTS
        tile.cores.store(CONTROL + offset, 0xFFFFFFFF)
    assert tile.cores.load(CONTROL + 0x078) == 0


@pytest.mark.rule("tile T26")
def test_accesses_narrower_than_32_bits_are_refused(tile: Tile) -> None:
    for size in (1, 2):
        with pytest.raises(UndefinedBehavior, match="whole words"):
            tile.cores.load(CONTROL + 0x240, B, size)


# --- K32, K33, E40: wall clock ----------------------------------------------------------------------------------------


@pytest.mark.rule("tile K32", "tile K33")
def test_the_wall_clock_counts_clocks_while_cores_are_held() -> None:
    tile = Tile()
    start = tile.cores.load(WALL_CLOCK)
    tile.clock(600)
    assert tile.cores.load(WALL_CLOCK) == start + 600
    tile.cores.store(SOFT_RESET, 0x7FFFF & ~(1 << 10))
    assert tile.cores.load(WALL_CLOCK) == start + 600
    tile.clock(1)
    assert tile.cores.load(WALL_CLOCK) == start + 601


@pytest.mark.rule("tile K32")
def test_a_program_sees_time_pass() -> None:
    text = f"""
        li a0, {WALL_CLOCK}
        lw a1, 0(a0)
        nop
        nop
        lw a2, 0(a0)
        sub a3, a2, a1
        li a4, 0x20000
        sw a3, 0(a4)
    end: j end
    """
    assert word(machine(text, 30)) == 3


@pytest.mark.rule("tile E40")
def test_a_load_of_the_low_half_latches_the_high_half() -> None:
    tile = Tile()
    tile.record.clock = tile.record.round_goal = (5 << 32) - 2
    tile.clock(1)
    assert tile.cores.load(WALL_CLOCK) == 0xFFFFFFFF
    tile.clock(1)
    assert tile.cores.load(WALL_CLOCK + 4) == 5  # alive
    assert tile.cores.load(WALL_CLOCK + 8) == 4  # latched
    assert tile.cores.load(WALL_CLOCK) == 0
    assert tile.cores.load(WALL_CLOCK + 8) == 5
    tile.record.wall_clock_latch = 0
    tile.cores.store(WALL_CLOCK, 123)  # a store latches, too, and changes nothing else
    assert tile.cores.load(WALL_CLOCK + 8) == 5
    assert tile.cores.load(WALL_CLOCK) == 0


# --- K12: configuration -----------------------------------------------------------------------------------------------


def config_word(tile: Tile, index: int) -> int:
    """CREG_READ of a word."""
    tile.cores.store(CONTROL + 0x058, index)
    return tile.cores.load(CONTROL + 0x078)


@pytest.mark.rule("tile K12")
def test_every_word_of_the_window_can_be_read() -> None:
    tile = Tile()
    for bank in range(2):
        for index in range(180):
            tile.record.config[bank, index] = 0x10000 * (bank + 1) + index
    tile.record.config[0, 180:] = 0x50000
    tile.record.thread_config[...] = [[0x100 * thread + i for i in range(68)] for thread in range(3)]
    for bank in range(2):
        assert [config_word(tile, 224 * bank + i) for i in (0, 1, 179)] == [
            0x10000 * (bank + 1) + i for i in (0, 1, 179)
        ]
        assert config_word(tile, 224 * bank + 200) == 0x50000  # K9: shared
    assert config_word(tile, 448 + 3) == 0x10003  # the window of both banks shows bank 0
    for thread in range(3):
        for entry in (0, 1, 67):
            assert config_word(tile, 672 + 68 * thread + entry) == 0x100 * thread + entry
    with pytest.raises(UndefinedBehavior, match="word 876"):
        tile.cores.store(CONTROL + 0x058, 876)


@pytest.mark.rule("tile K12")
def test_the_value_is_that_at_the_moment_of_the_write() -> None:
    tile = Tile()
    place = config("SCRATCH_SEC0_val")[0]
    tile.cores.store(0xFFEF0000 + 4 * place, 1234, T0)
    tile.cores.store(CONTROL + 0x058, place)
    tile.cores.store(0xFFEF0000 + 4 * place, 5678, T0)
    assert tile.cores.load(CONTROL + 0x078) == 1234
    assert tile.cores.load(CONTROL + 0x058) == place
    assert config_word(tile, place) == 5678
    assert WRITABLE_MASK[place] == 0xFFFFFFFF


# --- T14 to T18: reset registers --------------------------------------------------------------------------------------


@pytest.mark.rule("tile T14")
def test_power_on_holds_the_five_cores() -> None:
    tile = Tile()
    assert tile.cores.load(SOFT_RESET) == ALL_HELD == 0x47800
    for core in START:
        assert tile.cores[core].state == "in reset"
        release(tile, core)
        assert tile.cores[core].state == "running"
    assert tile.cores.load(SOFT_RESET) == 0


@pytest.mark.rule("tile T17")
def test_bit_31_is_ignored() -> None:
    tile = Tile()
    tile.cores.store(SOFT_RESET, 0x80000000 | ALL_HELD)
    assert tile.cores.load(SOFT_RESET) == ALL_HELD


@pytest.mark.rule("tile T14", "tile E19")
def test_reset_pcs_and_overrides_read_back() -> None:
    tile = Tile()
    for offset, value in ((0x228, 0x100), (0x22C, 0x200), (0x230, 0x300), (0x234, 5), (0x238, 0x400), (0x23C, 1)):
        assert tile.cores.load(CONTROL + offset) == 0
        tile.cores.store(CONTROL + offset, value)
    assert [tile.cores.load(CONTROL + 0x228 + 4 * i) for i in range(6)] == [0x100, 0x200, 0x300, 5, 0x400, 1]
    tile.cores.store(CONTROL + 0x234, 0xFFFFFFFF)
    assert tile.cores.load(CONTROL + 0x234) == 7
    tile.cores.store(CONTROL + 0x23C, 0xFFFFFFFE)
    assert tile.cores.load(CONTROL + 0x23C) == 0


@pytest.mark.rule("tile T14", "tile T15")
@pytest.mark.parametrize("core", ["T0", "T1", "T2", "NC"])
def test_an_override_counts_at_the_release(core: str) -> None:
    for enabled in (0, 1):
        tile = Tile()
        if core == "NC":
            tile.cores.store(CONTROL + 0x238, 0x4000)
            tile.cores.store(CONTROL + 0x23C, enabled)
        else:
            i = int(core[1])
            tile.cores.store(CONTROL + 0x228 + 4 * i, 0x4000)
            tile.cores.store(CONTROL + 0x234, enabled << i)
        release(tile, core)
        assert tile.cores[core].pc == (0x4000 if enabled else START[core])
        # T15: the same value again does nothing to a running core.
        tile.cores[core].pc = 0x4444
        tile.cores.store(SOFT_RESET, tile.cores.load(SOFT_RESET))
        assert tile.cores[core].pc == 0x4444


@pytest.mark.rule("tile T16", "tile E19")
def test_disable_reset_reads_back_and_spares_local_ram() -> None:
    for spared, bit in (("B", 6), ("T0", 0), ("T1", 2), ("T2", 4), ("NC", 8)):
        tile = Tile()
        tile.cores.store(DISABLE_RESET, 1 << bit)
        assert tile.cores.load(DISABLE_RESET) == 1 << bit
        for core in START:
            tile.cores[core].local_ram[...] = 9
        release(tile, *START)
        for core in START:
            assert tile.cores[core].local_ram.any() == (core == spared)


@pytest.mark.rule("tile T18")
def test_registers_are_zero_at_the_release() -> None:
    tile = Tile()
    for core in START:
        tile.cores[core].x[1:] = 5
    release(tile, *START)
    for core in START:
        assert not tile.cores[core].x.any()


@pytest.mark.rule("tile T18")
def test_a_program_releases_the_others() -> None:
    """As firmware does: core B writes the reset pcs, the overrides and the soft-reset register."""
    boot = f"""
        li a0, {CONTROL}
        li a1, 0x5000
        sw a1, 0x228(a0)
        li a1, 1
        sw a1, 0x234(a0)
        lw a2, 0x1b0(a0)
        li a3, {~(1 << 12) & 0xFFFFFFFF}
        and a2, a2, a3
        sw a2, 0x1b0(a0)
    end: j end
    """
    tile = machine(boot)
    code = machine({"T0": "li a0, 0x20000\nli a1, 42\nsw a1, 0(a0)\nend: j end"}).l1[0x6000:0x6010]
    tile.l1[0x5000:0x5010] = code
    tile.clock(40)
    assert words(tile, 1) == [42]
