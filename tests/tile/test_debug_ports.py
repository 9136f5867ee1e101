"""Debug array, debug bus, injection and timestamps (tile K35 to K37, K4, K31, E18, E20, E21)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bhemu import Tile
from bhemu.errors import MemoryError_, MissingSpecification, NonContractualBehavior, UndefinedBehavior, Unimplemented
from bhemu.isa.instructions import encode
from bhemu.machine.counters import CARRY, CH0_W, CH0_X, CH0_Y, CH0_Z, CH1_X, PACKER
from bhemu.tensix.banks import MATRIX
from tests.riscv.rv_machine import START, machine

pytestmark = pytest.mark.plain

CONTROL = 0xFFB12000
RD_EN, RD_CMD, RD_DATA = CONTROL + 0x60, CONTROL + 0x64, CONTROL + 0x6C
BUS_CTRL, BUS_DATA = CONTROL + 0x54, CONTROL + 0x5C
L1_REG0, L1_REG2 = CONTROL + 0x48, CONTROL + 0x50
CTRL0, CTRL1, PUSH_STATUS = CONTROL + 0xA0, CONTROL + 0xA4, CONTROL + 0xA8
STAMP, STAMP_CONTROL, STAMP_STATUS, STAMP_BUFFERS = (CONTROL + offset for offset in (0x1FC, 0x200, 0x204, 0x208))
ENABLED = 1 << 29


# --- K35: arrays ------------------------------------------------------------------------------------------------------


def array_word(tile: Tile, array: int, row: int, index: int, bank: int = 0) -> int:
    """One word, as drivers read it."""
    tile.cores.store(RD_CMD, row | index << 12 | array << 16 | bank << 19)
    return tile.cores.load(RD_DATA)


def array_row(tile: Tile, array: int, row: int, bank: int = 0) -> Any:
    """16 halves of a row."""
    data = [array_word(tile, array, row, index, bank) for index in range(8)]
    return np.array(data, np.uint32).view(np.uint16)


@pytest.mark.rule("tile K35")
def test_rows_of_dst_are_the_stored_cells() -> None:
    tile = Tile()
    tile.dst.cells[...] = np.random.default_rng(35).integers(0, 1 << 16, (1024, 16))
    tile.dst.valid[5] = 0  # not asked
    tile.cores.store(RD_EN, 1)
    for row in (0, 5, 8, 511, 512, 1023):
        assert np.array_equal(array_row(tile, 2, row), tile.dst.cells[row])
    tile.cores.store(RD_EN, 0)
    tile.cores.store(RD_CMD, 0)
    with pytest.raises(UndefinedBehavior, match="DBG_ARRAY_RD_EN is 0"):
        tile.cores.load(RD_DATA)


def remapped(row: int) -> int:
    """Adj16 of rules I.3."""
    return (row & 0x3C7) ^ ((row & 0x30) >> 1) ^ ((row & 8) << 2)


def swizzled(row: int) -> int:
    """Adj32 of rules I.3, behind Adj16."""
    return (row & 0x3F3) ^ ((row & 0x18) >> 1) ^ ((row & 4) << 1)


@pytest.mark.rule("tile K35", "I.3")
def test_with_remapped_rows_the_array_has_16_bit_rows_where_drivers_look_for_them() -> None:
    tile = Tile()
    tile.dst.cells[...] = np.random.default_rng(36).integers(0, 1 << 16, (1024, 16))
    tile.config["DEST_ACCESS_CFG_remap_addrs"] = 1
    tile.config["DEST_ACCESS_CFG_swizzle_32b"] = 1  # not of this view
    tile.cores.store(RD_EN, 1)
    assert [remapped(row) for row in (1, 8, 16, 56)] == [1, 32, 8, 56]
    for row in (*range(0, 64), 100, 519, 1023):
        assert np.array_equal(array_row(tile, 2, remapped(row)), tile.dst.cells[row])


@pytest.mark.rule("tile K35", "I.3")
@pytest.mark.parametrize("swizzle", [0, 1])
@pytest.mark.parametrize("view", ["ALU_ACC_CTRL_Fp32_enabled", "ALU_ACC_CTRL_INT8_math_enabled"])
def test_with_remapped_rows_the_array_has_the_halves_of_32_bit_rows_8_rows_apart(view: str, swizzle: int) -> None:
    tile = Tile()
    tile.dst.cells[...] = np.random.default_rng(37).integers(0, 1 << 16, (1024, 16))
    tile.config["DEST_ACCESS_CFG_remap_addrs"] = 1
    tile.config["DEST_ACCESS_CFG_swizzle_32b"] = swizzle
    tile.config[view] = 1
    tile.cores.store(RD_EN, 1)
    for row in (*range(0, 64), 100, 263, 511):
        moved = swizzled(remapped(row)) if swizzle else remapped(row)
        for half in (0, 8):
            seen = array_row(tile, 2, (moved & ~7) << 1 | half | moved & 7)
            assert np.array_equal(seen, tile.dst.cells[(row & ~7) << 1 | half | row & 7])


@pytest.mark.rule("tile K35", "tile E20")
@pytest.mark.parametrize(
    "command", [1024 | 2 << 16, 8 << 12 | 2 << 16, 3 << 16, 2 << 16 | 1 << 19, 64, 1 << 20 | 2 << 16]
)
def test_what_does_not_exist_is_refused(command: int) -> None:
    tile = Tile(allow_open=True)
    tile.cores.store(RD_EN, 1)
    tile.cores.store(RD_CMD, command)
    with pytest.raises(UndefinedBehavior, match=f"DBG_ARRAY_RD_CMD = {command:#x}"):
        tile.cores.load(RD_DATA)


@pytest.mark.rule("tile K35", "tile E20")
@pytest.mark.parametrize("file", [0, 1])
def test_src_cells_are_an_open_choice(file: int) -> None:
    tile = Tile()
    tile.cores.store(RD_EN, 1)
    with pytest.raises(MissingSpecification, match="19 bits"):
        array_word(tile, file, 3, 0)
    tile.record.allow_open = 1
    view = tile.srcb if file else tile.srca
    view.cells[...] = np.random.default_rng(file).integers(0, 1 << 19, (2, 64, 16))
    for bank, row, code in ((0, 3, 5), (1, 63, 1), (1, 0, 4)):
        tile.record.src_format[file, bank] = code
        cells = view.cells[bank, row].astype(np.int64)
        sign, mantissa, exponent = cells >> 18, cells >> 8 & 0x3FF, cells & 0xFF
        expected = sign << 15 | mantissa >> 3 << 8 | exponent
        if code == 1:
            expected = sign << 15 | mantissa << 5 | exponent & 0x1F
        assert np.array_equal(array_row(tile, file, row, bank), expected)
        for index in range(4, 8):  # drivers mark the upper columns in the row, too
            assert array_word(tile, file, row | 64, index, bank) == array_word(tile, file, row, index, bank)


@pytest.mark.rule("tile K35")
def test_a_move_to_dst_shows_the_same_as_the_array() -> None:
    """The open choice is what drivers get when they read SrcA by way of Dst."""
    tile = Tile(allow_open=True)
    tile.srca.cells[0] = np.random.default_rng(4).integers(0, 1 << 19, (64, 16))
    tile.record.src_owner[0, 0] = MATRIX
    tile.record.src_format[0, 0] = 5
    tile.execute(1, encode("MOVDBGA2D", src=9))
    tile.cores.store(RD_EN, 1)
    assert np.array_equal(array_row(tile, 2, 0), array_row(tile, 0, 9))


# --- K36: bus ---------------------------------------------------------------------------------------------------------


def select(tile: Tile, daisy: int, signal: int, index: int) -> int:
    """One word of a group."""
    tile.cores.store(BUS_CTRL, signal | daisy << 16 | index << 25 | ENABLED)
    return tile.cores.load(BUS_DATA)


def group(tile: Tile, daisy: int, signal: int) -> int:
    """128 bits."""
    return sum(select(tile, daisy, signal, index) << 32 * index for index in range(4))


def bits(value: int, first: int, last: int) -> int:
    return value >> first & (1 << last - first + 1) - 1


@pytest.mark.rule("tile K36")
@pytest.mark.parametrize("signal", range(6))
def test_the_debug_bus_shows_address_counters(signal: int) -> None:
    tile = Tile()
    unit, channel = signal >> 1, signal & 1
    thread = 2 if unit == PACKER else 0
    tile.record.adc[...] = 0x3FFFF
    base = CH1_X if channel else CH0_X
    counters = {CH0_X: 0x2ABCD, CH0_Y: 0x1234, CH0_Z: 0x56, CH0_W: 0x78}
    for dimension, value in counters.items():
        tile.record.adc[thread, unit, base + dimension] = value
        tile.record.adc[thread, unit, base + dimension + CARRY] = value ^ 1
    shown = group(tile, 6, signal)
    places = {CH0_X: ((0, 17), (18, 35)), CH0_Y: ((64, 76), (80, 92)), CH0_Z: ((96, 103), (104, 111)),
              CH0_W: ((112, 119), (120, 127))}  # fmt: skip
    for dimension, (here, carried) in places.items():
        assert bits(shown, *here) == counters[dimension]
        assert bits(shown, *carried) == counters[dimension] ^ 1
    assert bits(shown, 36, 63) == bits(shown, 77, 79) == bits(shown, 93, 95) == 0


@pytest.mark.rule("tile K36")
def test_the_debug_bus_shows_bank_owners_and_pointers() -> None:
    tile = Tile()
    names = {84: "a free", 85: "a valid", 90: "a1", 91: "a0", 92: "ma", 93: "ma", 94: "ua"}
    names |= {100: "mb", 101: "mb", 102: "ub", 105: "b0", 106: "b1"}

    def shown() -> set[str]:
        value = group(tile, 6, 9)
        assert value & ~sum(1 << bit for bit in names) == 0
        return {name for bit, name in names.items() if value >> bit & 1}

    assert shown() == {"a free"}
    tile.record.src_owner[0, 0] = MATRIX
    assert shown() == {"a valid", "a0"}
    tile.record.unpack.bank[0] = 1
    assert shown() == {"a free", "a valid", "a0", "ua"}
    tile.record.src_owner[0] = [0, MATRIX]
    tile.record.matrix.bank[0] = 1
    assert shown() == {"a valid", "a1", "ma", "ua"}
    tile.record.src_owner[1] = [MATRIX, 0]
    tile.record.matrix.bank[1] = tile.record.unpack.bank[1] = 1
    assert shown() == {"a valid", "a1", "ma", "ua", "b0", "mb", "ub"}
    tile.record.src_owner[1] = [0, MATRIX]
    assert shown() == {"a valid", "a1", "ma", "ua", "b1", "mb", "ub"}


@pytest.mark.rule("tile K36")
def test_the_debug_bus_shows_row_counters_and_fidelity() -> None:
    tile = Tile()
    rng = np.random.default_rng(36)
    for thread in range(3):
        tile.record.rwc[thread] = [*rng.integers(0, 64, 4), *rng.integers(0, 1024, 2), rng.integers(0, 4), 0]
    shown = group(tile, 3, 2) | group(tile, 3, 3) << 128
    fidelity = group(tile, 3, 4)
    for thread in range(3):
        a, a_cr, b, b_cr, dst, dst_cr, phase, _ = (int(v) for v in tile.record.rwc[thread])
        assert (bits(shown, 16 * thread, 16 * thread + 7), bits(shown, 16 * thread + 8, 16 * thread + 15)) == (a, a_cr)
        at = 60 + 16 * thread
        assert (bits(shown, at, at + 7), bits(shown, at + 8, at + 15)) == (b, b_cr)
        at = 120 + 20 * thread
        assert (bits(shown, at, at + 9), bits(shown, at + 10, at + 19)) == (dst, dst_cr)
        assert bits(fidelity, 60 + 2 * thread, 61 + 2 * thread) == phase
    assert shown >> 180 == 0
    assert fidelity >> 66 == bits(fidelity, 0, 59) == 0


@pytest.mark.rule("tile K36", "tile E21")
def test_the_debug_bus_shows_program_counters() -> None:
    tile = machine(dict.fromkeys(START, f"{'nop;' * 0}end: j end"))
    tile.clock(3)
    signals = {"B": 11, "T0": 13, "T1": 15, "T2": 17, "NC": 25}
    for core, signal in signals.items():
        assert select(tile, 7, signal, 1) & 0x3FFFFFFF == START[core] == tile.cores[core].pc
    tile.cores["T1"].pc = 0xC0001234
    assert group(tile, 7, 15) == 0x1234 << 32  # 30 bits


@pytest.mark.rule("tile K37", "tile E21")
@pytest.mark.parametrize(
    ("daisy", "signal", "index"),
    [(6, 6, 0), (6, 10, 1), (3, 5, 0), (7, 10, 0), (7, 18, 1), (7, 12, 1), (1, 0, 0), (6, 0, 4)],
)
def test_other_signals_are_refused_by_number(daisy: int, signal: int, index: int) -> None:
    with pytest.raises(Unimplemented, match=f"word {index} of signal group {signal} at daisy stop {daisy}"):
        select(Tile(), daisy, signal, index)


@pytest.mark.rule("tile K31", "tile E18")
def test_bus_control_reads_back_and_must_enable_the_bus() -> None:
    tile = Tile()
    tile.cores.store(BUS_CTRL, 9 | 6 << 16 | 3 << 25 | ENABLED)
    assert tile.cores.load(BUS_CTRL) == 9 | 6 << 16 | 3 << 25 | ENABLED
    tile.cores.store(BUS_CTRL, 0)
    with pytest.raises(UndefinedBehavior, match="does not enable"):
        tile.cores.load(BUS_DATA)
    for bit in (24, 30, 31):
        with pytest.raises(UndefinedBehavior, match="reserved"):
            tile.cores.store(BUS_CTRL, ENABLED | 1 << bit)


@pytest.mark.rule("tile K36")
def test_groups_are_written_to_l1() -> None:
    tile = Tile()
    tile.record.adc[0, 0] = np.arange(16)
    expected = group(tile, 6, 0)
    for mode, places in ((1, (0x4000, 0x4010, 0x4020)), (0, (0x4000, 0x4000))):
        tile.cores.store(L1_REG2, 0xF)
        tile.cores.store(L1_REG0, 0x4000 >> 4)
        tile.cores.store(L1_REG2, mode)
        tile.l1[0x4000:0x4040] = 0xEE
        for place in places:
            assert int.from_bytes(tile.l1[place : place + 16].tobytes(), "little") != expected or mode == 0
            tile.cores.store(L1_REG2, mode | 1 << 12)
            assert int.from_bytes(tile.l1[place : place + 16].tobytes(), "little") == expected
            tile.cores.store(L1_REG2, mode)
        assert (tile.l1[places[-1] + 16 : places[-1] + 32] == 0xEE).all()
    with pytest.raises(Unimplemented, match="write mode 4"):
        tile.cores.store(L1_REG2, 4 | 1 << 12)
    tile.cores.store(L1_REG2, 0xF)
    tile.cores.store(L1_REG0, 0x100000 >> 4)
    with pytest.raises(UndefinedBehavior, match="first MiB"):
        tile.cores.store(L1_REG2, 1 | 1 << 12)


# --- K4: injection ----------------------------------------------------------------------------------------------------


def inject(tile: Tile, thread: int, instruction: int) -> None:
    """As drivers do."""
    assert tile.cores.load(PUSH_STATUS) & 1 << thread
    tile.cores.store(CTRL0, 1 << thread)
    tile.cores.store(CTRL1, instruction)
    tile.cores.store(CTRL0, 0x11 << thread)
    tile.clock(3)
    assert tile.cores.load(PUSH_STATUS) & 0x10 << thread
    tile.cores.store(CTRL0, 0)


@pytest.mark.rule("tile K4", "tile E18")
@pytest.mark.parametrize("thread", range(3))
def test_the_debug_port_injects_instructions_into_the_thread_it_names(thread: int) -> None:
    tile = Tile()
    assert tile.cores.load(PUSH_STATUS) == 0x77
    for register, value in ((16, 0x1234), (18, 0x4321)):
        inject(tile, thread, encode("SETDMAREG", RegIndex16b=register, Payload_SigSel=value))
    assert tile.gpr[thread, 8] & 0xFFFF == 0x1234
    assert tile.gpr[thread, 9] & 0xFFFF == 0x4321
    assert (np.delete(tile.record.gpr, thread, axis=0) == 0).all()
    assert tile.cores.load(CTRL0) == 0


@pytest.mark.rule("tile K4")
def test_debuggers_look_at_both_banks_whoever_owns_them() -> None:
    """tt-exalens dumps SrcA with SETRWC, which moves the matrix unit from bank to bank."""
    tile = Tile()
    inject(tile, 2, encode("SETRWC", clear_ab_vld=3))
    assert tile.record.matrix.bank.tolist() == [1, 1]
    with pytest.raises(NonContractualBehavior, match="already own it"):
        tile.execute(2, encode("SETRWC", clear_ab_vld=3))


@pytest.mark.rule("tile K4")
def test_errors_say_that_a_word_came_through_the_debug_port() -> None:
    with pytest.raises(UndefinedBehavior, match="pushed through the debug port"):
        inject(Tile(), 1, encode("SETRWC", reserved=0x20))


@pytest.mark.rule("tile K4")
def test_a_word_is_pushed_by_a_rising_bit_alone() -> None:
    tile = Tile()
    tile.cores.store(CTRL1, encode("NOP"))
    tile.cores.store(CTRL0, 0x77)
    tile.cores.store(CTRL0, 0x77)
    assert tile.record.frontend.side_count.tolist() == [1, 1, 1]
    assert tile.cores.load(PUSH_STATUS) == 7
    tile.cores.store(CTRL0, 0x57)
    tile.cores.store(CTRL0, 0x77)
    assert tile.record.frontend.side_count.tolist() == [1, 2, 1]
    tile.clock(5)
    assert tile.cores.load(PUSH_STATUS) == 0x77


@pytest.mark.rule("tile K4")
def test_status_tells_a_full_fifo_and_a_push_to_it_is_refused() -> None:
    tile = Tile()
    tile.cores.store(CTRL1, encode("NOP"))
    count = 0
    while tile.cores.load(PUSH_STATUS) & 2:
        tile.cores.store(CTRL0, 0x22)
        tile.cores.store(CTRL0, 0x02)
        count += 1
    assert count == 29
    assert tile.cores.load(PUSH_STATUS) == 0x55
    with pytest.raises(UndefinedBehavior, match="FIFO is full"):
        tile.cores.store(CTRL0, 0x22)
    tile.clock(40)
    assert tile.cores.load(PUSH_STATUS) == 0x77


@pytest.mark.rule("tile K3", "tile K4")
def test_mops_and_fifos_of_others_are_refused() -> None:
    tile = Tile()
    tile.cores.store(CTRL1, encode("MOP"))
    with pytest.raises(UndefinedBehavior, match="MOP"):
        tile.cores.store(CTRL0, 0x11)
    tile.cores.store(CTRL1, encode("NOP"))
    with pytest.raises(UndefinedBehavior, match="without owning"):
        tile.cores.store(CTRL0, 0x12)
    assert not tile.record.frontend.side_count.any()
    assert tile.cores.load(CTRL0) == 0


# --- K31: timestamps --------------------------------------------------------------------------------------------------


def stamping(first: tuple[int, int] = (0x400, 0x40F), second: tuple[int, int] = (0x500, 0x50F)) -> Tile:
    """A tile with two buffers, in units of 16 bytes, at a time above 2**32."""
    tile = Tile()
    tile.record.clock = tile.record.round_goal = 0x7_1234_5678
    for i, value in enumerate((*first, *second)):
        tile.cores.store(STAMP_BUFFERS + 4 * i, value)
        assert tile.cores.load(STAMP_BUFFERS + 4 * i) == value
    return tile


def line(tile: Tile, unit: int) -> list[int]:
    return [int(v) for v in tile.record.l1_u32[4 * unit : 4 * unit + 4]]


@pytest.mark.rule("tile K31")
def test_events_of_128_96_64_and_32_bits_reach_the_buffer() -> None:
    low, high = 0x12345678, 7
    tile = stamping()
    tile.cores.store(STAMP, 0xABCDE0)
    assert line(tile, 0x400) == [0xABCDE0, low, high, 0]
    for i in range(4):
        tile.cores.store(STAMP, 0x100 * i + 4)
    stream = [v for i in range(4) for v in (0x100 * i + 4, low, high)]
    assert line(tile, 0x401) + line(tile, 0x402) + line(tile, 0x403) == stream
    tile.cores.store(STAMP, 0x11)
    assert line(tile, 0x404) == [0, 0, 0, 0]
    tile.cores.store(STAMP, 0x21)
    assert line(tile, 0x404) == [0x11, low, 0x21, low]
    for i in range(4):
        tile.cores.store(STAMP, 0xFFFF0002 + 0x10 * i)
    short = (low & 0x1FFFE0) << 11
    assert line(tile, 0x405) == [short + 2 + 0x10 * i for i in range(4)]
    assert tile.cores.load(STAMP) == 0
    assert tile.cores.load(STAMP_STATUS) == 6 << 14


@pytest.mark.rule("tile K31")
def test_gathered_events_are_counted_and_flushed() -> None:
    tile = stamping()
    for token, flush, shown in ((1, 3, 1 << 8), (4, 7, 1 << 11)):
        tile.cores.store(STAMP, token)
        position = tile.cores.load(STAMP_STATUS) >> 14
        assert tile.cores.load(STAMP_STATUS) & 0x3FFF == shown
        with pytest.raises(UndefinedBehavior, match="have not been flushed"):
            tile.cores.store(STAMP, 0)
        tile.cores.store(STAMP, flush)
        assert tile.cores.load(STAMP_STATUS) == position + 1 << 14
        assert line(tile, 0x400 + position)[0] == token
    for i in range(3):
        tile.cores.store(STAMP, 2)
        assert tile.cores.load(STAMP_STATUS) & 0x3FFF == i + 1 << 9
    tile.cores.store(STAMP_CONTROL, 1 << 31 | 3)
    assert tile.cores.load(STAMP_STATUS) & 0x3FFF == 0
    tile.cores.store(STAMP_CONTROL, 3)
    tile.cores.store(STAMP, 0)
    for wrong in (5, 6):
        with pytest.raises(UndefinedBehavior, match=f"no event has {wrong}"):
            tile.cores.store(STAMP, wrong)


@pytest.mark.rule("tile K31")
def test_buffers_fill_in_turn_and_overflow() -> None:
    tile = stamping((0x400, 0x401), (0x500, 0x500))
    assert tile.cores.load(STAMP_CONTROL) == 3
    full = []
    for i in range(4):
        tile.cores.store(STAMP, 0x100 * (i + 1))
        full.append(tile.cores.load(STAMP_STATUS) & 0x33)
    assert full == [0, 1, 3, 0x33]
    assert [line(tile, unit)[0] for unit in (0x400, 0x401, 0x500, 0x501, 0x402)] == [0x100, 0x200, 0x300, 0, 0]
    tile.cores.store(STAMP_STATUS, 0x31)  # buffer 0 begins again; overflows are forgotten
    assert tile.cores.load(STAMP_STATUS) == 2
    tile.cores.store(STAMP, 0x800)
    assert line(tile, 0x400)[0] == 0x800
    tile.cores.store(STAMP_CONTROL, 2)  # buffer 1 alone
    tile.cores.store(STAMP_STATUS, 2)
    tile.cores.store(STAMP, 0x900)
    assert line(tile, 0x500)[0] == 0x900
    tile.cores.store(STAMP_CONTROL, 0)
    tile.cores.store(STAMP, 0xA00)
    assert tile.cores.load(STAMP_STATUS) & 0x30 == 0  # only enabled buffers overflow


@pytest.mark.rule("tile K31")
def test_a_buffer_outside_l1_is_refused() -> None:
    tile = stamping((0x17FFF, 0x18010))
    tile.cores.store(STAMP, 0)
    with pytest.raises(MemoryError_, match="0x180000"):
        tile.cores.store(STAMP, 0)
