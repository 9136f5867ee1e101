"""PACR_SETREG, TBUFCMD, and the packer's registers in TDMA-RISC (tile K30, rule P11)."""

from __future__ import annotations

from typing import Any

import pytest

from bhemu.errors import BhemuError, MissingSpecification, UndefinedBehavior, Unimplemented
from bhemu.isa.instructions import encode
from bhemu.machine.agents import NC, NOC, T2, B
from bhemu.tensix.overlay_words import slot_of
from tests.tensix.mmio_agent import Registers
from tests.tensix.packer_bench import L1_BASE, Bench

pytestmark = pytest.mark.plain

ONES = [0x3F80] * 16
TDMA = 0xFFB11000
OVERLAY_BASE = 1 << 18  # 0xFFB40000 with the stream in AddrMid
REGISTER_1, REGISTER_10 = 1 << 2, 10 << 2


@pytest.fixture
def bench() -> Bench:
    made = Bench()
    made.tile.pack.setreg_base[0] = OVERLAY_BASE | REGISTER_1
    made.tile.pack.setreg_base[1] = OVERLAY_BASE | REGISTER_10
    return made


def setreg(bench: Bench, **operands: int) -> None:
    bench.word(int(encode("PACR_SETREG", **({"Push": 1, "Flush": 1} | operands))))


def program(bench: Bench, half: int, data: int) -> None:
    bench.word(0x4A << 24 | 1 << 22 | data << 3 | half << 2)


def plain_word(bench: Bench, stream: int) -> int:
    """Register 10 of a stream."""
    return int(bench.tile.stream_word[slot_of("REMOTE_DEST_BUF_SIZE"), stream])


def open_tile(bench: Bench) -> None:
    """One datum packed, and its unit of L1 not yet filled up."""
    bench.bf16_row(0, ONES)
    bench.tile["adc"][2, 2, 4] = 0
    bench.pacr(Last=0)
    bench.tile["l1"][L1_BASE + 2 : L1_BASE + 16] = 0xEE


def test_data_are_programmed_in_halves_and_written_to_the_register_of_a_stream(bench: Bench) -> None:
    program(bench, 0, 0x2345)
    program(bench, 1, 0xFFFF)
    program(bench, 1, 0x0001)
    assert bench.tile.pack.setreg_data == 0x12345
    assert not bench.tile.stream_word.any()
    setreg(bench, AddrSel=1, StreamId=63)
    assert plain_word(bench, 63) == 0x12345
    assert [plain_word(bench, i) for i in range(63)] == [0] * 63


def test_messages_are_pushed_to_a_stream_behind_the_packed_tile(bench: Bench) -> None:
    open_tile(bench)
    program(bench, 0, 3)
    setreg(bench, AddrSel=0, StreamId=5)
    assert bench.tile.stream_messages[5] == 3
    assert bench.l1("<u2", 8) == [0x3F80] + [0] * 7
    assert not bench.tile.pack.open


@pytest.mark.parametrize(("push", "flush"), [(0, 0), (0, 1), (1, 0)])
def test_a_write_needs_push_and_flush(bench: Bench, push: int, flush: int) -> None:
    open_tile(bench)
    program(bench, 0, 3)
    setreg(bench, Push=push, Flush=flush, StreamId=5)
    assert not bench.tile.stream_messages.any()
    assert bool(bench.tile.pack.open) is not bool(flush)


def test_a_write_behind_the_registers_goes_nowhere(bench: Bench) -> None:
    open_tile(bench)
    bench.tile.pack.setreg_base[1] = 2 << 18
    setreg(bench, AddrSel=1, StreamId=0)
    assert not bench.tile.pack.open


@pytest.mark.parametrize(
    ("base", "operands", "error", "text"),
    [
        (0, {"StreamId": 1}, UndefinedBehavior, "0xffb01000, below the registers"),
        (0x20300, {"StreamId": 0}, Unimplemented, "register 0x300 of the network interface of NoC 0"),
        (0, {"StreamId": 17}, MissingSpecification, "the coprocessor accesses TDMA-RISC"),
        (OVERLAY_BASE, {"StreamId": 1}, Unimplemented, "register 0 of overlay stream 1"),
        (OVERLAY_BASE, {"AddrSel": 2}, MissingSpecification, "from base 2"),
        (OVERLAY_BASE | REGISTER_1, {"value": 9}, MissingSpecification, "carries the value 9"),
        (OVERLAY_BASE, {"reserved": 0x800}, UndefinedBehavior, "belong to no operand"),
    ],
)
def test_what_cannot_be_written_is_refused_and_nothing_is_flushed(
    bench: Bench, base: int, operands: dict[str, Any], error: type[BhemuError], text: str
) -> None:
    open_tile(bench)
    bench.tile.pack.setreg_base[0] = base
    with pytest.raises(error, match=text):
        setreg(bench, **operands)
    assert bench.tile.pack.open
    assert not bench.tile.stream_messages.any()


def test_the_form_that_programs_data_has_no_other_operands(bench: Bench) -> None:
    for bit in (0, 1, 19, 20, 21, 23):
        with pytest.raises(MissingSpecification, match=f"bits {1 << bit:#x} of PACR_SETREG"):
            bench.word(0x4A << 24 | 1 << 22 | 1 << bit | 5 << 3)
    assert bench.tile.pack.setreg_data == 0


@pytest.mark.parametrize("out_format", [0, 1, 5, 6])
def test_a_value_in_the_instruction_is_scaled_by_format_where_the_user_accepts_it(out_format: int) -> None:
    bench = Bench(out_format=out_format)
    bench.tile.allow_open = 1
    bench.tile.pack.setreg_base[0] = OVERLAY_BASE | REGISTER_1
    bench.tile.pack.setreg_base[1] = OVERLAY_BASE | 31 << 2
    bench.tile.pack.setreg_scaler[:] = [7, 11, 13, 17]
    setreg(bench, AddrSel=1, StreamId=4, value=3)
    scaled = 3 * (7, 11, 13, 17)[out_format & 3]
    assert bench.tile.stream_word[slot_of("PHASE_AUTO_CFG_PTR"), 4] == 3 | scaled << 12
    setreg(bench, AddrSel=0, StreamId=4, value=3)
    assert bench.tile.stream_messages[4] == 3


def test_tbufcmd_is_refused(bench: Bench) -> None:
    with pytest.raises(MissingSpecification, match="TBUFCMD is reserved"):
        bench.word(int(encode("TBUFCMD")))


# --- TDMA-RISC ------------------------------------------------------------------------------------


@pytest.fixture
def registers() -> Registers:
    return Registers()


@pytest.mark.rule("tile K30")
def test_one_store_sets_two_register_bases(registers: Registers) -> None:
    registers.store(T2, TDMA + 0x38, 0x9 << 20 | 0x155 << 10 | 0x00A)
    assert registers.record.pack.setreg_base.tolist() == [1 << 18 | 0x00A << 2, 2 << 18 | 0x155 << 2]


@pytest.mark.rule("tile K30")
def test_scalers_have_nine_bits_and_the_fourth_is_beside_the_clock_gates(registers: Registers) -> None:
    registers.store(B, TDMA + 0x3C, 0xF800_0000 | 3 << 18 | 2 << 9 | 1)
    registers.store(B, TDMA + 0x28, 0xFFFF_FFFF)
    assert registers.record.pack.setreg_scaler.tolist() == [1, 2, 3, 0x1FF]
    assert registers.load(B, TDMA + 0x28) == 0x01FF007F
    registers.record.unpack.accumulator[:] = [0x0FFFF, 0x10000]
    assert registers.load(B, TDMA + 0x3C) == 3 << 18 | 2 << 9 | 1
    assert registers.load(B, TDMA + 0x13C) == 1 << 31 | 3 << 18 | 2 << 9 | 1


@pytest.mark.rule("tile K30")
def test_clock_gates_read_back(registers: Registers) -> None:
    registers.store(B, TDMA + 0x24, 0x3F)
    assert registers.load(B, TDMA + 0x24) == 0x3F
    registers.store(B, TDMA + 0x24, 0xFFFF_FFFF)
    assert registers.load(B, TDMA + 0x24) == 0xFFFF_FF7F


@pytest.mark.rule("tile K30")
def test_sizes_are_reported_by_thread(registers: Registers) -> None:
    pack = registers.record.pack
    pack.last_tile_size, pack.last_thread, pack.all_zero_flags = 0x88, 2, 0xC0FFEE
    pack.acc_tile_size[:] = [1, 2, 0x10003]
    registers.record.unpack.accumulator[:] = [0x1000A, 0x1000B]
    assert [registers.load(B, TDMA + 0x18 + 0x40 * i) for i in range(3)] == [0, 0, 0x88]
    assert [registers.load(B, TDMA + 0x1C + 0x40 * i) for i in range(3)] == [0xA0001, 0xA0002, 0xA0003]
    assert registers.load(B, TDMA + 0x20) == 0xC0FFEE


@pytest.mark.rule("P11")
@pytest.mark.parametrize("place", [0x1C, 0x5C, 0x9C])
def test_one_store_restarts_the_sizes_and_sets_the_address_offset(registers: Registers, place: int) -> None:
    pack = registers.record.pack
    pack.acc_tile_size[:] = [1, 2, 3]
    registers.store(T2, TDMA + place, 0xE0000 | 0x55)  # packers 1 to 3, which Blackhole does not have
    assert (pack.acc_tile_size.tolist(), pack.l1_dest_addr_offset) == ([1, 2, 3], 0)
    registers.store(T2, TDMA + place, 0x10000 | 0x8055)
    assert (pack.acc_tile_size.tolist(), pack.l1_dest_addr_offset) == ([0, 0, 0], 0x8055)


@pytest.mark.rule("tile K30")
def test_stores_to_what_only_reports_have_no_effect(registers: Registers) -> None:
    before = registers.state()
    for offset in (0x14, 0x18, 0x20, 0x58, 0x98, 0x118, 0x320):
        registers.store(B, TDMA + offset, 0xFFFF_FFFF)
    assert registers.state() == before


@pytest.mark.rule("tile K30")
@pytest.mark.parametrize("offset", [0x118, 0x15C, 0x220, 0x39C])
def test_other_packers_report_zeros_only_where_the_user_accepts_it(registers: Registers, offset: int) -> None:
    registers.record.pack.all_zero_flags = registers.record.pack.last_tile_size = 3
    registers.record.unpack.accumulator[:] = [5, 6]
    with pytest.raises(MissingSpecification, match=f"packer {offset >> 8}, and Blackhole has one"):
        registers.load(B, TDMA + offset)
    registers.record.allow_open = 1
    expected = (5, 6)[offset >> 8 & 1] << 16 if offset & 0x3F == 0x1C else 0
    assert registers.load(B, TDMA + offset) == expected


@pytest.mark.rule("tile K30")
@pytest.mark.parametrize("offset", [0x40, 0x54, 0x60, 0xD8, 0x100, 0x138, 0x23C, 0x3D8, 0x418, 0xFFC])
def test_offsets_without_a_register_are_refused(registers: Registers, offset: int) -> None:
    with pytest.raises(UndefinedBehavior, match=f"no register at {TDMA + offset:#x}"):
        registers.load(B, TDMA + offset)
    with pytest.raises(UndefinedBehavior, match="no register"):
        registers.store(B, TDMA + offset, 0)


@pytest.mark.rule("000.1.1h")
def test_the_metadata_fifo_is_refused(registers: Registers) -> None:
    for offset in (0x30, 0x34, 0x38, 0x134):
        with pytest.raises(MissingSpecification, match="metadata FIFO"):
            registers.load(B, TDMA + offset)
    with pytest.raises(MissingSpecification, match="metadata FIFO"):
        registers.store(B, TDMA + 0x34, 0)


@pytest.mark.rule("tile T24")
@pytest.mark.parametrize("agent", [NC, NOC])
def test_tdma_risc_is_not_mapped_for_core_nc_and_the_noc(registers: Registers, agent: int) -> None:
    with pytest.raises(UndefinedBehavior, match="not mapped for core NC"):
        registers.load(agent, TDMA + 0x14)
    with pytest.raises(UndefinedBehavior, match="not mapped for core NC"):
        registers.store(agent, TDMA + 0x24, 0x3F)
