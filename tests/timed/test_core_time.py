"""Cores in timed mode: how long instructions take, and that they compute the same."""

from __future__ import annotations

import numpy as np
import pytest

import bhemu
from bhemu.bench.silicon_micro import measure
from bhemu.bench.silicon_programs import addi, lw, sw
from bhemu.errors import ConfigurationError
from bhemu.isa.riscv_words import EBREAK, riscv_word, set_register
from bhemu.isa.silicon import figure
from bhemu.isa.tile_registers import address_of
from bhemu.recording import CoreRecorder
from bhemu.tile.debug_ports.watch import WATCHING
from bhemu.timed import SiliconTime

pytestmark = pytest.mark.plain


def per_block(phase: str, name: str, unroll: int = 16, threads: int = 1, counts: tuple[int, ...] = (4, 8, 16)) -> float:
    """Cycles of a further block, once the caches are warm."""
    cycles = measure(phase, name, unroll, threads, 1, counts)
    return (cycles[-1] - cycles[-2]) / (counts[-1] - counts[-2])


def run(words: list[int], *, timed: bool, clocks: int = 4000) -> bhemu.Tile:
    tile = bhemu.Tile(timed=timed)
    tile.record.l1_u32[: len(words)] = np.array(words, np.uint32)
    tile.cores.store(address_of("control", "SOFT_RESET_0"), 0x47000)
    tile.clock(clocks)
    return tile


def test_a_chain_of_additions_takes_a_cycle_each() -> None:
    assert per_block("r", "rv_addi_dep") == 16 + 2  # and the loop's own two


def test_a_chain_of_products_takes_their_latency() -> None:
    latency = figure("core.multiply").value
    assert per_block("r", "rv_mul_dep") == pytest.approx(16 * latency + 2, abs=1)


def test_independent_products_take_a_cycle_each() -> None:
    assert per_block("r", "rv_mul_indep") == 16 + 2


def test_a_division_occupies_the_core_by_its_dividend() -> None:
    assert per_block("r", "rv_div") == 16 * figure("core.divide.most").value + 2
    assert per_block("r", "rv_div_small") == 16 * figure("core.divide.base").value + 2


def test_a_chain_of_pointers_takes_the_latency_of_l1_each() -> None:
    assert per_block("r", "rv_load_chase") == pytest.approx(16 * figure("core.load.l1.miss").value, abs=2)


def test_stores_to_the_same_sixteen_bytes_coalesce() -> None:
    assert per_block("r", "rv_store_coalesce") == 16 + 2


def test_stores_to_other_sixteen_bytes_take_the_pace_of_l1() -> None:
    assert per_block("r", "rv_store_stride") == pytest.approx(16 * figure("core.store.64ths").value / 64, abs=1)


def test_a_loop_larger_than_the_instruction_cache_pays_for_each_line() -> None:
    fits, exceeds = per_block("f", "f_512", 512, counts=(1, 2, 3)), per_block("f", "f_2048", 2048, counts=(1, 2, 3))
    assert fits == pytest.approx(512 + 2, abs=8)
    assert exceeds == pytest.approx(2048 * (1 + figure("core.fetch.next").value / 4), rel=0.01)


def test_a_branch_is_mispredicted_until_it_is_known() -> None:
    first, *_, last = measure("c", "c_t", 16, 1, 1, (2, 2, 2, 2))
    assert first - last >= 2 * 16 * figure("core.mispredicted").value


def test_the_wall_clock_reads_the_timed_clock() -> None:
    clock = address_of("control", "WALL_CLOCK_0")
    program = [*set_register(5, clock), lw(10, 5, 0), *[riscv_word("div", 12, 13, 14)] * 3, lw(11, 5, 0), EBREAK]
    tile = run([addi(13, 0, 2047), addi(14, 0, 3), *program], timed=True)
    passed = int(tile.cores["B"].x[11]) - int(tile.cores["B"].x[10])
    assert passed > 3 * figure("core.divide.least").value


def test_timed_cores_compute_what_functional_ones_do() -> None:
    loop = [lw(11, 8, 0), riscv_word("mul", 11, 11, 9), addi(11, 11, 7), sw(11, 8, 4), addi(8, 8, 4), addi(9, 9, -1)]
    words = [*set_register(8, 0x2000), addi(9, 0, 20), *loop, riscv_word("bne", rs1=9, imm=-4 * len(loop)), EBREAK]
    plain, timed = run(words, timed=False), run(words, timed=True)
    assert np.array_equal(plain.record.l1, timed.record.l1)
    assert np.array_equal(plain.cores["B"].x, timed.cores["B"].x)
    assert plain.cores["B"].retired == timed.cores["B"].retired


def test_a_core_that_polls_goes_on_when_the_word_has_changed() -> None:
    poll = [
        lw(10, 8, 0),
        riscv_word("beq", rs1=10, imm=-4),
        *set_register(5, address_of("control", "WALL_CLOCK_0")),
        lw(11, 5, 0),
    ]
    tile = bhemu.Tile(timed=True)
    words = np.array([*set_register(8, 0x20000), *poll, EBREAK], np.uint32)
    tile.record.l1_u32[: len(words)] = words
    tile.cores.store(address_of("control", "SOFT_RESET_0"), 0x47000)
    tile.clock(1000)
    assert tile.cores["B"].state == "polling"
    tile.record.l1_u32[0x8000] = 5
    tile.clock(200)
    assert tile.cores["B"].state == "halted"
    assert tile.cores["B"].x[10] == 5
    assert 1000 <= tile.cores["B"].x[11] < 1100


def test_time_begins_anew_after_a_reset() -> None:
    words = [addi(9, 0, 3), riscv_word("div", 10, 9, 9), EBREAK]
    tile = run(words, timed=True)
    first = int(tile.record.core_round[0])
    tile.reset()
    tile.record.l1_u32[: len(words)] = np.array(words, np.uint32)
    tile.cores.store(address_of("control", "SOFT_RESET_0"), 0x47000)
    tile.clock(4000)
    assert int(tile.record.core_round[0]) == first


def test_a_tile_is_recorded_or_timed() -> None:
    tile = bhemu.Tile()
    CoreRecorder().attach(tile)
    with pytest.raises(ConfigurationError, match="observed already"):
        SiliconTime().attach(tile)


def test_the_report_says_how_much_is_guessed() -> None:
    tile = run([addi(9, 0, 3), 0xC00025F3, EBREAK], timed=True)  # csrr a1, cycle: no source has its time
    assert tile.time is not None
    assert 0 < tile.time.report().guessed_share < 1


def test_simple_instructions_take_the_same_time_in_their_loop_and_one_by_one() -> None:
    body = [
        lw(6, 5, 0),
        riscv_word("mul", 7, 6, 6),
        sw(7, 5, 16),
        riscv_word("div", 8, 7, 6),
        addi(6, 6, 3),
        sw(6, 5, 0),
    ]
    words = [*set_register(5, 0x8000), addi(6, 0, 5), sw(6, 5, 0), addi(10, 0, 12), *body]
    words += [addi(10, 10, -1), riscv_word("bne", rs1=10, imm=-4 * (len(body) + 1)), EBREAK]
    tiles = []
    for watched in (False, True):
        tile = bhemu.Tile(timed=True)
        tile.record.l1_u32[: len(words)] = np.array(words, np.uint32)
        tile.record.debug_watch[0] = WATCHING if watched else 0  # the loop leaves a watched core's instructions alone
        tile.cores.store(address_of("control", "SOFT_RESET_0"), 0x47000)
        tile.clock(4000)
        assert tile.cores["B"].state == "halted"
        tiles.append(tile)
    loop, one_by_one = tiles
    assert loop.record.core_round[0] == one_by_one.record.core_round[0] > 12 * len(body)
    assert loop.record.core_retired[0] == one_by_one.record.core_retired[0]
    assert loop.record.l1_u32[0x8000 >> 2] == 5 + 12 * 3
    assert loop.time.report() == one_by_one.time.report()
