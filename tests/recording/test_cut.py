"""A recording that is cut into parts says the same as one in a piece; changes of watched words name who made them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from bhemu import Tile
from bhemu.errors import ConfigurationError
from bhemu.isa import assemble
from bhemu.machine.agents import CORE_NAMES, CORES
from bhemu.recording import CoreRecorder, profile
from bhemu.recording import core_columns as column
from bhemu.recording import log as tensix_column
from bhemu.recording.core_log import CoreLog
from tests.recording.core_runs import CLOCKS, WAITS, programs, run
from tests.riscv.rv_machine import START, put, release

pytestmark = pytest.mark.plain


def cut_run(parts: int) -> tuple[list[CoreLog], Tile]:
    """The program of `core_runs`, cut after equal times."""
    tile, recorder, loaded = Tile(), CoreRecorder(), programs(WAITS)
    recorder.attach(tile, loaded)
    for core, executable in loaded.items():
        put(tile, START[core], executable.segments[0].content)
    release(tile, *(core for core in CORE_NAMES if core in WAITS))
    logs = []
    for _ in range(parts):
        tile.cores.advance(CLOCKS // parts)
        logs.append(recorder.cut())
    return logs, tile


def whole() -> CoreLog:
    recorder = CoreRecorder()
    run(WAITS, recorder)
    return recorder.log()


@pytest.mark.parametrize("parts", [2, 6, 60])
def test_the_counts_and_waits_of_parts_add_up(parts: int) -> None:
    logs, _ = cut_run(parts)
    expected = whole()
    executed = np.zeros_like(expected.executed)
    for log in logs:
        executed[:, log.words] += log.executed
    assert np.array_equal(executed, expected.executed)
    assert sum((log.mix for log in logs), np.zeros_like(expected.mix)).sum() + sum(
        int(log.polled.sum()) for log in logs
    ) == int(expected.executed.sum())
    waits: Counter[tuple[int, int, str]] = Counter()
    for log in logs:
        waits.update(log.waits)
    assert waits == expected.waits
    assert sum(sum(log.polls.values()) for log in logs) == pytest.approx(sum(expected.polls.values()), abs=200 * parts)
    # A cut wakes cores that poll: a few turns more are executed one by one.
    assert sum(int(log.modelled.sum()) for log in logs) >= int(expected.modelled.sum())
    assert [log.rounds[0] for log in logs[1:]] == [log.rounds[1] for log in logs[:-1]]


def test_the_rows_of_parts_are_those_of_the_whole() -> None:
    logs, _ = cut_run(3)
    expected = whole()
    kept = [column.INSTRUCTION, column.DEVICE, column.PUSHES]

    def instructions(log: CoreLog) -> list[tuple[int, int]]:
        rows = log.rows[np.isin(log.rows[:, column.WHO] >> 4 & 0xF, kept)]
        return [(row[column.WHO] & 7, row[column.CODE]) for row in rows.tolist() if row[column.WHO] & 7 == 2]

    assert [row for log in logs for row in instructions(log)] == instructions(expected)
    words = np.concatenate([log.tensix.rows for log in logs])
    assert np.array_equal(words[:, tensix_column.CLOCK], expected.tensix.rows[:, tensix_column.CLOCK])
    assert all(log.dropped == log.tensix_dropped == 0 for log in logs)


def test_each_word_of_a_part_has_its_push() -> None:
    for log in cut_run(6)[0]:
        for row in log.tensix.rows.tolist():
            pushes = log.tensix.pushes[row[tensix_column.THREAD]]
            assert 1 <= row[tensix_column.PUSH] <= len(pushes)


def test_cutting_changes_nothing_in_the_tile() -> None:
    _, tile = cut_run(60)
    plain = run(WAITS)
    for name in ("core_x", "core_pc", "l1", "core_retired", "clock"):
        assert np.array_equal(tile.record[name], plain.record[name])


def test_the_profile_of_a_part_counts_that_part() -> None:
    logs, _ = cut_run(2)
    assert [profile(log).clocks for log in logs] == [CLOCKS // 2, CLOCKS // 2]
    assert sum(log.retired(core) for log in logs for core in range(CORES)) == int(whole().executed.sum())


def test_a_watched_word_says_who_has_changed_it() -> None:
    recorder = CoreRecorder(watch=[0x20000, 0x20004])
    tile = run({"B": "li a0, 0x20000\nli a1, 7\nsw a1, 0(a0)\nebreak"}, recorder, clocks=20)
    tile.record.l1_u32[0x20004 >> 2] = 9
    tile.cores.advance(1)
    first, second = recorder.log().changes
    assert (first.by, first.core, first.pc) == ("B", 0, START["B"] + 8)
    assert (first.address, first.before, first.after) == (0x20000, 0, 7)
    assert (second.by, second.address, second.after, second.pc) == ("the NoC or the host", 0x20004, 9, None)


def test_a_word_that_a_thread_writes_names_the_thread() -> None:
    recorder = CoreRecorder(watch=[0x20000])
    tile = Tile()
    recorder.attach(tile)
    tile.cores.store(0xFFE00000 + 4 * 8, 0x1234, agent=0)  # GPR 8 of thread 0
    tile.cores.store(0xFFE00000 + 4 * 9, 0x20000 >> 4, agent=0)
    tile.coprocessor.push(0, assemble("STOREIND 1, 1, 1, 0, 0, 8, 9"), 0)
    tile.cores.advance(8)
    (change,) = recorder.log().changes
    assert change.by == "thread 0 (unpack)"
    assert change.after == 0x34


@pytest.mark.parametrize("watch", [[0x20001], [0x180000], [-4], [4 * n for n in range(17)]])
def test_watched_words_that_cannot_be_are_refused(watch: list[int]) -> None:
    with pytest.raises(ConfigurationError, match="watched"):
        CoreRecorder(watch=watch)
