"""Pages in circular buffers and values of semaphores over time."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bhemu import Chip
from bhemu.isa.assembler import assemble as tensix_word
from bhemu.loader.by_content import CodeIndex
from bhemu.recording.parts import Reader
from bhemu.report.figures import Report
from bhemu.report.levels import TileLevels
from bhemu.report.model import make_report
from bhemu.report.names import PartNames
from bhemu.report.text import perfetto_json, report_as_json
from bhemu.report.timeline import LEVEL
from tests.chip.noc_programs import ALL_HELD, SOFT_RESET
from tests.riscv.rv_asm import assemble

pytestmark = pytest.mark.plain

TILE = (1, 2)
B_AND_T0_RUN = ALL_HELD & ~(1 << 11) & ~(1 << 12)
T0_CODE = 0x6000
PUSH, SEMAPHORES = 0xFFE40000, 0xFFE80020
ACKED, RECEIVED = 0xFFB40020, 0xFFB40028
"""Counters of circular buffer 0 (tile K51); those of buffer 1 are 0x1000 further."""
BUFFER = "CB 0 (pages)"
MATH_PACK, UNPACK_SYNC = "semaphore 1 MATH_PACK", "semaphore 5 UNPACK_SYNC"


def reported(folder: Path, b: str, t0: str = "", **options: object) -> Report:
    """What a tile does whose cores B and T0 run these programs."""
    chip = Chip()
    chip[TILE].write(0, assemble(b + "end: j end\n", 0))
    chip[TILE].write(T0_CODE, assemble(t0 + "end: j end\n", T0_CODE))
    chip[TILE].write_word(SOFT_RESET, B_AND_T0_RUN)
    recording = chip.record(tiles=[TILE], **options)  # type: ignore[arg-type]
    chip.clock(300)
    recording.stop()
    recording.save(folder / "out")
    return make_report(folder / "out")


def store(address: int, value: int) -> str:
    return f"li a0, {address:#x}\nli t0, {value:#x}\nsw t0, 0(a0)\n"


def push(*words: str) -> str:
    return "".join(store(PUSH, tensix_word(word)) for word in words)


def levels(report: Report, lane: str) -> list[int]:
    """The levels of a lane, one after the other; each step begins where the one before has ended."""
    begin, length, track, kind, text = report.timeline.columns()
    assert (TILE, lane) in report.timeline.tracks, report.timeline.tracks
    own = track == report.timeline.tracks.index((TILE, lane))
    assert (kind[own] == LEVEL).all()
    ends = begin[own] + length[own]
    assert begin[own][1:] == pytest.approx(ends[:-1], abs=1e-3)
    assert ends[-1] == pytest.approx(300, abs=1)
    return [int(report.timeline.texts[number].split()[0]) for number in text[own].tolist()]


def test_pages_are_received_ones_that_are_not_acknowledged(tmp_path: Path) -> None:
    text = store(RECEIVED, 0) + store(ACKED, 0)
    text += store(RECEIVED, 2) + store(ACKED, 1) + store(RECEIVED, 5) + store(ACKED, 5)
    report = reported(tmp_path, text)
    assert levels(report, BUFFER) == [0, 2, 1, 4, 0]
    assert report.timeline.levels[TILE, BUFFER].most == 4
    texts = [text for text in report.timeline.texts if "pages" in text]
    assert any(text.startswith("2 of 2 pages | pushed by B") for text in texts), texts
    assert any(text.startswith("1 of 2 pages | popped by B") for text in texts), texts


def test_counters_of_16_bits_run_over(tmp_path: Path) -> None:
    report = reported(tmp_path, store(RECEIVED, 0xFFFF) + store(ACKED, 0xFFFF) + store(RECEIVED, 1) + store(ACKED, 0))
    assert levels(report, BUFFER) == [0, 2, 1]


def test_a_buffer_that_nobody_fills_has_no_lane(tmp_path: Path) -> None:
    text = store(RECEIVED, 0) + store(ACKED, 0) + store(RECEIVED + 0x1000, 0) + store(ACKED + 0x1000, 0)
    report = reported(tmp_path, text + store(RECEIVED + 0x1000, 1))
    assert [name for _, name in report.timeline.tracks if name.startswith("CB")] == ["CB 1 (pages)"]


def test_words_change_semaphores(tmp_path: Path) -> None:
    """SEMPOST does not stop at the maximum, SEMGET stops at 0 (math Y11a)."""
    words = ["SEMINIT max_value=2, init_value=1, sem_sel=2", *["SEMPOST sem_sel=2"] * 2, *["SEMGET sem_sel=2"] * 4]
    report = reported(tmp_path, push(*words))
    assert levels(report, MATH_PACK) == [1, 2, 3, 2, 1, 0]
    assert any(text.startswith("2 of 2 | post by thread 0") for text in report.timeline.texts)


def test_a_semaphore_is_known_from_when_it_is_set(tmp_path: Path) -> None:
    report = reported(tmp_path, push("SEMPOST sem_sel=2", "SEMINIT max_value=2, init_value=2, sem_sel=2"))
    assert levels(report, MATH_PACK) == [2]


SLOW = "li a3, 30\nwait: addi a3, a3, -1\nbnez a3, wait\n"


def test_a_core_posts_and_gets(tmp_path: Path) -> None:
    """A store with bit 0 set gets, another one posts; what a core loads is known then (tile K20)."""
    semaphore = SEMAPHORES + 4 * 5
    load = f"li a0, {semaphore:#x}\nlw a1, 0(a0)\n"
    text = SLOW + load + store(semaphore, 0) + store(semaphore, 0) + store(semaphore, 1)
    report = reported(tmp_path, "", text)
    assert levels(report, UNPACK_SYNC) == [0, 1, 2, 1]


def test_without_single_instructions_nothing_is_known(tmp_path: Path) -> None:
    """A core may have changed the semaphore of the words."""
    words = push("SEMINIT max_value=2, init_value=1, sem_sel=2", "SEMGET sem_sel=2")
    report = reported(tmp_path, words + store(RECEIVED, 0) + store(ACKED, 0) + store(RECEIVED, 2), instructions=False)
    assert not report.timeline.levels
    assert any(name == "unit: sync" for _, name in report.timeline.tracks)


def test_after_a_part_with_gaps_a_level_is_known_when_it_is_set_again(tmp_path: Path) -> None:
    reported(tmp_path, push("SEMINIT max_value=2, init_value=1, sem_sel=2", "SEMGET sem_sel=2"))
    (part,) = Reader(tmp_path / "out").parts()
    gaps = replace(part, log=replace(part.log, dropped=1))
    names = PartNames(part, CodeIndex([]), {})
    followed = TileLevels()
    followed.begin([part])
    found = [followed.part(one, [], names)[MATH_PACK] for one in (part, part, gaps, part)]
    assert [[step.level for step in steps] for steps in found] == [[1, 0], [0, 1, 0], [-1], [1, 0]]


def test_json_has_shares_and_perfetto_counters(tmp_path: Path) -> None:
    report = reported(tmp_path, store(RECEIVED, 0) + store(ACKED, 0) + store(RECEIVED, 2) + store(ACKED, 1))
    (told,) = report_as_json(report)["levels"]
    assert (told["tile"], told["name"], told["most"]) == ([1, 2], BUFFER, 2)
    assert told["mean"] == pytest.approx(1, abs=0.1)
    assert 0 < told["full"] < 0.1
    counters = [one for one in json.loads(perfetto_json(report))["traceEvents"] if one["ph"] == "C"]
    assert [one["args"]["level"] for one in counters] == [0, 2, 1]
    assert np.all(np.diff([one["ts"] for one in counters]) > 0)
