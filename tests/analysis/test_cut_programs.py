"""However a recording of a program is cut, its hazards are the same; where rows were left out, none is made up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import bhemu
from bhemu import Tile
from bhemu.analysis.check_tile import TileCheck
from bhemu.analysis.found import check_log, check_parts
from bhemu.analysis.hazard import ORDER
from bhemu.analysis.loops import slack
from bhemu.isa import assemble as word
from bhemu.machine.agents import B
from bhemu.recording import CoreRecorder
from bhemu.recording import core_columns as column
from bhemu.recording.log import Log, Pushes
from bhemu.recording.parts import Part
from tests.analysis.test_planted_kernels import RING, start
from tests.riscv.rv_asm import assemble
from tests.riscv.rv_machine import machine

CLOCKS = 1600
"""Until the kernels have ended."""


def parts_of(chip: bhemu.Chip, folder: Path, fault: str, every: int) -> list[Part]:
    """The kernels with a fault, recorded in parts of `every` clocks."""
    recording = start(chip, folder, "copy", fault)
    for _ in range(0, CLOCKS, every):
        chip.clock(every)
        recording.flush()
    recording.stop()
    return recording.parts


def told(parts: list[Part]) -> set[tuple[str, str, str, str, int]]:
    found = check_parts(parts, ("noc", "cb", "l1"))
    return {
        (one.hazard.kind, one.hazard.message, one.ends[0].place, one.ends[1].place, one.hazard.count) for one in found
    }


@pytest.mark.parametrize("fault", ["NONE", "NO_READ_BARRIER", "NO_WAIT", "PUSHES_TOO_MANY", "POPS_TOO_MANY"])
def test_any_cutting_of_a_program_gives_the_same_hazards(chip: bhemu.Chip, tmp_path: Path, fault: str) -> None:
    expected = told(parts_of(chip, tmp_path, fault, CLOCKS))
    assert bool(expected) == (fault != "NONE")
    for every in (7, 40):
        parts = parts_of(chip, tmp_path, fault, every)
        assert len(parts) > 10
        assert told(parts) == expected, every


def without_rows(part: Part) -> Part:
    """A part as it is written behind the limit of a file."""
    log = part.log
    words = Log(log.tensix.rows[:0], tuple(Pushes(np.zeros((0, 3), np.int64)) for _ in range(3)), [])  # type: ignore[arg-type]
    dropped, words_dropped = log.dropped + len(log.rows), log.tensix_dropped + len(log.tensix)
    return replace(
        part,
        log=replace(log, rows=log.rows[:0], dropped=dropped, tensix=words, tensix_dropped=words_dropped),
    )


def test_rows_that_were_left_out_make_no_hazard(chip: bhemu.Chip, tmp_path: Path) -> None:
    parts = parts_of(chip, tmp_path, "NONE", 40)
    for at in range(len(parts)):
        assert told([*parts[:at], without_rows(parts[at]), *parts[at + 1 :]]) == set(), at


def test_the_first_rows_that_were_left_out_make_no_hazard(chip: bhemu.Chip, tmp_path: Path) -> None:
    (part,) = parts_of(chip, tmp_path, "NONE", CLOCKS)
    rows = part.log.rows
    for at in range(1, len(rows), 97):
        assert told([replace(part, log=replace(part.log, rows=rows[at:], dropped=at))]) == set(), at


def test_words_that_were_left_out_make_no_hazard_of_order() -> None:
    words = (word("RDCFG 12, 0"), word("STALLWAIT 128, 4096"), word("WRCFG 12, 0, 69"))
    nops = "nop\n" * 20
    tile, recorder = Tile(), CoreRecorder()
    recorder.attach(tile)
    machine({"T2": nops.join(f".ttinsn {one:#x}\n" for one in words) + "ebreak"}, tile=tile)
    parts = []
    for _ in words:
        pushes = recorder.first_push
        tile.clock(20)
        parts.append(Part((1, 2), 0, 0, 0, None, recorder.cut(), pushes, [], np.zeros((2, 4, 14), np.uint32)))
    write, wait, read = parts
    assert [len(part.log.tensix) for part in parts] == [1, 1, 1]
    assert TileCheck((ORDER,)).program([write, wait, read]) == []
    assert len(TileCheck((ORDER,)).program([write, read])) == 1
    assert TileCheck((ORDER,)).program([write, without_rows(wait), read]) == []
    left_out = replace(read, log=replace(read.log, tensix_dropped=1))
    assert TileCheck((ORDER,)).program([write, left_out]) == []


# --- what a wait has found --------------------------------------------------------------------------------------------

START = 0x1000
LOOP = """
        li a0, 1
wait:   lw s9, 32(t5)
        mv a5, s9
        bgeu a0, a5, wait
        mv a1, a5
"""
VALUES = (1, 4, 4, -1, 4)
"""What the instructions write: four pages are there, two are needed."""


def loop_rows() -> list[list[int]]:
    """Rows of core B that waits for more than one page."""
    words = np.frombuffer(assemble(LOOP, START), np.int32).tolist()
    return [
        [number, B, START + 4 * number | word << 32, -1, value, 0, 0, 0]
        for number, (word, value) in enumerate(zip(words, VALUES, strict=True))
    ]


def between(kind: int, core: int = B, pc: int = 0) -> list[int]:
    """A row that is no executed instruction."""
    return [4, core | kind << 4, pc, -1, -1, 1, 0, 0]


@pytest.mark.parametrize("at", [2, 3, 4])
def test_rows_of_rounds_without_time_say_nothing_about_a_branch(at: int) -> None:
    rows = loop_rows()
    rows[at:at] = [between(column.MOVED)]
    assert slack(np.array(rows), 1, 4) == 2


def test_the_next_row_of_a_core_may_be_far_away() -> None:
    rows = loop_rows()
    rows[4:4] = [between(column.INSTRUCTION, core=B + 1)] * 1000
    assert slack(np.array(rows), 1, 4) == 2


def test_an_access_that_was_blocked_when_a_part_ended_follows_the_branch() -> None:
    rows = loop_rows()
    rows[4:4] = [between(column.GAVE_UP, pc=START + 16)]
    assert slack(np.array(rows), 1, 4) == 2


@pytest.mark.parametrize("kind", [column.POLL, column.RESTARTED])
def test_a_core_that_went_on_elsewhere_says_nothing_about_its_branch(kind: int) -> None:
    rows = loop_rows()
    rows[4:4] = [between(kind)]
    assert slack(np.array(rows), 1, 4) is None


def test_a_branch_in_the_last_row_says_nothing() -> None:
    assert slack(np.array(loop_rows()[:4]), 1, 4) is None


PRODUCER = """
        li t5, 0xffb43000
        sw zero, 40(t5)
        sw zero, 32(t5)
        li a0, 1                # two pages at a time
        li s2, 16
next:   lw s7, 40(t5)
wait:   lw s9, 32(t5)
        addi a5, s9, 4
        sub a5, a5, s7
        slli a5, a5, 16
        srli a5, a5, 16
        bgeu a0, a5, wait
        addi s7, s7, 2
        sw s7, 40(t5)
        addi s2, s2, -1
        bnez s2, next
        ebreak
"""
CONSUMER = """
        li t5, 0xffb43000
        li s2, 16
        li s3, 0
next:   lw a1, 40(t5)
        sub a1, a1, s3
        slli a1, a1, 16
        beqz a1, next
        addi s3, s3, 2
        sw s3, 32(t5)
        addi s2, s2, -1
        bnez s2, next
        ebreak
"""
WORDS = """
next:   .ttinsn 0x02000000
        .ttinsn 0x02000000
        nop
        j next
"""


def test_a_producer_beside_a_busy_coprocessor_has_reserved_what_it_pushes() -> None:
    recorder, tile = CoreRecorder(), Tile()
    recorder.attach(tile)
    machine({"B": PRODUCER, "NC": CONSUMER, "T0": WORDS}, 2000, tile=tile)
    log = recorder.log()
    kinds = log.rows[:, column.WHO] >> 4 & 0xF
    assert (kinds == column.MOVED).sum() > 50
    assert (log.rows[:, column.CODE] >> 32 == 0x00100073).sum() == 2  # both have ended
    assert check_log(log, np.zeros((2, 4, 14), np.uint32), ("cb",), buffers=[RING]) == []
