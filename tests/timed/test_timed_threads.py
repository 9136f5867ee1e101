"""Three cores and three threads in timed mode: programs without races compute what they do in functional mode."""

from __future__ import annotations

import numpy as np
import pytest

import bhemu
from bhemu.bench.silicon_programs import lw, sw
from bhemu.isa.assembler import assemble_program, to_ttinsn
from bhemu.isa.riscv_words import EBREAK, set_register
from bhemu.isa.tile_registers import address_of
from bhemu.machine.agents import T0
from bhemu.tile.reset import CORE_BIT

pytestmark = pytest.mark.plain

# Thread 0 makes numbers in its GPRs and lets thread 1 go on; thread 1 fills rows of Dst from the vector unit and lets
# thread 2 go on, which clears some of them.
PROGRAMS = (
    """
    SEMINIT 15, 0, 6
    SETDMAREG 0, 0x1234, 0, 2
    ADDDMAREG 0, 4, 1, 1
    MULDMAREG 0, 8, 4, 1
    STALLWAIT 0x40, 0x001
    SEMPOST 2
    """,
    """
    SEMWAIT 0x1ff, 2, 1
    SEMGET 2
    SFPENCC 3, 0, 0, 10
    SFPLOADI 1, 0, 0x3f80
    SFPADD 1, 1, 1, 2, 0
    SFPMUL 2, 2, 9, 3, 0
    SFPSTORE 3, 0, 0, 0
    STALLWAIT 0x40, 0x800
    SEMPOST 4
    """,
    """
    SEMWAIT 0x1ff, 4, 1
    SEMGET 4
    ZEROACC 0, 0, 0, 0, 4
    """,
)


def core_program(thread: int) -> list[int]:
    """Push the words, wait until they are done, and leave a number in L1."""
    words = [to_ttinsn(word) for word in assemble_program(PROGRAMS[thread])]
    done = [*set_register(8, address_of("sync", "COPROCESSOR_DONE")), lw(9, 8, 0)]
    return [
        *words,
        *done,
        *set_register(10, 0x30000 + 4 * thread),
        *set_register(11, 77 + thread),
        sw(11, 10, 0),
        EBREAK,
    ]


def run(*, timed: bool) -> bhemu.Tile:
    tile = bhemu.Tile(timed=timed)
    held = 0x47800
    for thread in range(3):
        words = np.array(core_program(thread), np.uint32)
        first = (0x10000 + 0x1000 * thread) >> 2
        tile.record.l1_u32[first : first + len(words)] = words
        held &= ~(1 << int(CORE_BIT[T0 + thread]))
    tile.cores.store(address_of("control", "SOFT_RESET_0"), held)
    for thread in range(3):
        tile.record.core_pc[T0 + thread] = 0x10000 + 0x1000 * thread
    tile.clock(3000)
    return tile


def test_three_threads_compute_the_same() -> None:
    plain, timed = run(timed=False), run(timed=True)
    for tile in (plain, timed):
        assert [tile.cores[core].state for core in ("T0", "T1", "T2")] == ["halted"] * 3
        assert tile.record.l1_u32[0x30000 >> 2 : (0x30000 >> 2) + 3].tolist() == [77, 78, 79]
    for name in ("l1", "dst", "dst_valid", "gpr", "lregs", "sync"):
        assert np.array_equal(plain.record[name], timed.record[name]), name


def test_the_same_run_takes_the_same_time_again() -> None:
    assert run(timed=True).record.core_round.tolist() == run(timed=True).record.core_round.tolist()


def test_a_copy_of_a_timed_tile_is_timed() -> None:
    import copy

    tile = bhemu.Tile(timed=True)
    assert copy.deepcopy(tile).time is not None
