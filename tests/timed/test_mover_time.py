"""The mover in timed mode: how long transfers keep it busy, and who waits for it."""

from __future__ import annotations

import numpy as np
import pytest

import bhemu
from bhemu.bench.silicon_programs import lw, sw
from bhemu.isa.assembler import assemble_program, to_ttinsn
from bhemu.isa.registers import config
from bhemu.isa.riscv_words import EBREAK, riscv_word, set_register
from bhemu.isa.silicon import figure
from bhemu.isa.tile_registers import address_of
from bhemu.machine.agents import T0
from bhemu.tensix.mover import L1_TO_L1, ZEROS_TO_L1
from bhemu.tile.reset import CORE_BIT

pytestmark = pytest.mark.plain

CODE, RESULTS, SOURCE, TARGET = 0x10000, 0x20000, 0x40000, 0x50000
CLOCK, DONE = address_of("control", "WALL_CLOCK_0"), address_of("sync", "COPROCESSOR_DONE")
PARAMETERS, COMMAND = address_of("tdma", "MOVER_PARAMETER"), address_of("tdma", "COMMAND")
STATUS = address_of("tdma", "STATUS")
MOVE, IDLE = 0x40, 0x428
CLOCKS, BASE, VALUE, BEGUN, SPENT = 5, 6, 7, 30, 31


def noted(words: list[int], place: int) -> list[int]:
    """The words, and in L1 the cycles that they took."""
    before = [lw(BEGUN, CLOCKS, 0), riscv_word("and", BEGUN, BEGUN, BEGUN)]
    after = [lw(SPENT, CLOCKS, 0), riscv_word("sub", SPENT, SPENT, BEGUN)]
    return [*before, *words, *after, *set_register(BASE, RESULTS + 4 * place), sw(SPENT, BASE, 0)]


def run(words: list[int], *, units: int = 0, direction: int = L1_TO_L1) -> bhemu.Tile:
    """Execute words on core T0 of a timed tile, whose XMOV is set up."""
    tile = bhemu.Tile(timed=True)
    program = np.array([*set_register(CLOCKS, CLOCK), *words, EBREAK], np.uint32)
    tile.record.l1_u32[CODE >> 2 : (CODE >> 2) + len(program)] = program
    tile.record.l1[SOURCE : SOURCE + 0x4000] = np.arange(0x4000).astype(np.uint8)
    values = (
        ("Source_address", SOURCE >> 4),
        ("Destination_address", TARGET >> 4),
        ("Buffer_size", units),
        ("Transfer_direction", direction),
    )
    for name, value in values:
        place, lsb, _ = config(f"THCON_SEC0_REG6_{name}")
        for bank in range(2):
            tile.record.config[bank, place] |= np.uint32(value << lsb)
    tile.cores.store(address_of("control", "SOFT_RESET_0"), 0x47800 & ~(1 << int(CORE_BIT[T0])))
    tile.record.core_pc[T0] = CODE
    tile.clock(5000)
    assert tile.cores["T0"].state == "halted"
    return tile


def result(tile: bhemu.Tile, place: int) -> int:
    return int(tile.record.l1_u32[(RESULTS >> 2) + place])


def xmov_cycles(units: int, direction: int) -> tuple[int, bhemu.Tile]:
    """Cycles of an XMOV and a wait for the mover, and the tile afterwards."""
    words = [to_ttinsn(word) for word in assemble_program("XMOV 0, 0\nSTALLWAIT 0x100, 0x200\nSFPNOP")]
    wait = [*set_register(BASE, DONE), lw(VALUE, BASE, 0), riscv_word("and", VALUE, VALUE, VALUE)]
    tile = run(noted([*words, *wait], 0), units=units, direction=direction)
    return result(tile, 0), tile


@pytest.mark.parametrize(("direction", "name"), [(L1_TO_L1, "copy"), (ZEROS_TO_L1, "zeros")])
def test_a_thread_waits_for_the_mover_by_the_size_of_its_transfer(direction: int, name: str) -> None:
    (short, _), (long, tile) = xmov_cycles(64, direction), xmov_cycles(320, direction)
    assert long - short == pytest.approx(256 * figure(f"tensix.mover.{name}").value / 64, abs=2)
    content = tile.record.l1[TARGET : TARGET + 5120]
    assert np.array_equal(content, tile.record.l1[SOURCE : SOURCE + 5120]) if name == "copy" else not content.any()
    assert tile.time is not None
    assert tile.time.report().units["mover"] == pytest.approx(320 * figure(f"tensix.mover.{name}").value / 64, abs=1)


def test_a_thread_that_does_not_wait_goes_on_beside_the_mover() -> None:
    words = [to_ttinsn(word) for word in assemble_program("XMOV 0, 0\nSFPNOP")]
    wait = [*set_register(BASE, DONE), lw(VALUE, BASE, 0), riscv_word("and", VALUE, VALUE, VALUE)]
    assert result(run(noted([*words, *wait], 0), units=320), 0) < 60


def test_the_next_transfer_waits_for_the_one_before() -> None:
    words = [to_ttinsn(word) for word in assemble_program("XMOV 0, 0\nXMOV 0, 0")]
    wait = [*set_register(BASE, DONE), lw(VALUE, BASE, 0), riscv_word("and", VALUE, VALUE, VALUE)]
    assert result(run(noted([*words, *wait], 0), units=320), 0) > 320 * 11 / 8


def test_a_core_that_reads_the_status_waits_until_the_mover_is_idle() -> None:
    words: list[int] = set_register(BASE, PARAMETERS)
    for n, value in enumerate((SOURCE >> 4, TARGET >> 4, 128, L1_TO_L1)):
        words += [*set_register(VALUE, value), sw(VALUE, BASE, 4 * n)]
    command = [*set_register(BASE, COMMAND), *set_register(VALUE, MOVE), sw(VALUE, BASE, 0)]
    status = [*set_register(BASE, STATUS), lw(VALUE, BASE, 0), riscv_word("and", 9, VALUE, VALUE)]
    keep = [*set_register(BASE, RESULTS + 8), sw(VALUE, BASE, 0)]
    tile = run([*words, *noted(command, 0), *noted(status, 1), *keep])
    assert result(tile, 0) < 30
    assert result(tile, 1) > 128 * 11 / 8 - 30
    assert result(tile, 2) == IDLE
    assert np.array_equal(tile.record.l1[TARGET : TARGET + 2048], tile.record.l1[SOURCE : SOURCE + 2048])
