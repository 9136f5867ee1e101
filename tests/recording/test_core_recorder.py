"""The recorder of a tile with cores keeps what they execute, and changes nothing."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from bhemu import Tile
from bhemu.analysis import timing
from bhemu.errors import UndefinedBehavior
from bhemu.machine.agents import CORES
from bhemu.recording import CoreRecorder
from bhemu.recording import core_columns as column
from bhemu.recording import core_recorder as host
from bhemu.recording import log as tensix_column
from bhemu.recording.core_log import CoreLog, Step, steps
from tests.recording.core_runs import CLOCKS, PUSHED, WAITS, run
from tests.riscv.rv_machine import START

pytestmark = pytest.mark.plain
B, T0, T1, NC = 0, 1, 2, 4


def state(tile: Tile) -> bytes:
    """Everything that the tile is, sleeping cores included."""
    return bytes(tile.record.tobytes())


def recorded(texts: dict[str, str] = WAITS, **options: int) -> CoreLog:
    recorder = CoreRecorder()
    run(texts, recorder, **options)
    return recorder.log()


def of(log: CoreLog, core: int, *kinds: int) -> list[Step]:
    return [step for step in steps(log) if step.core == core and (not kinds or step.kind in kinds)]


@pytest.mark.parametrize("calls", [1, 7, 300])
@pytest.mark.parametrize("instructions", [True, False])
def test_a_recorded_run_and_a_plain_one_end_in_the_same_state(calls: int, instructions: bool) -> None:
    plain = run(WAITS, calls=calls)
    watched = run(WAITS, CoreRecorder(instructions=instructions), calls=calls)
    assert state(watched) == state(plain)
    assert int(watched.record.clock) == CLOCKS // calls * calls


def test_a_full_buffer_changes_nothing_and_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = recorded()
    monkeypatch.setattr(host.column, "ROWS", 3 * column.SPARE)
    recorder = CoreRecorder()
    tile = run(WAITS, recorder)
    assert state(tile) == state(run(WAITS))
    log = recorder.log()
    assert np.array_equal(log.rows, whole.rows)
    assert np.array_equal(log.tensix.rows, whole.tensix.rows)
    assert log.waits == whole.waits
    assert log.tensix.pushes == whole.tensix.pushes


def test_single_rounds_are_recorded_like_clocks() -> None:
    recorder = CoreRecorder()
    tile = run(WAITS, recorder, clocks=0)
    begin = True
    while tile.record.clock < CLOCKS or not begin:
        goal = int(tile.record.round_goal)
        tile.cores.advance_round(begin)
        begin = int(tile.record.round_goal) == goal + int(begin)
    log, whole = recorder.log(), recorded()
    assert [log.retired(core) for core in range(CORES)] == [whole.retired(core) for core in range(CORES)]
    kept = log.rows[(log.rows[:, column.WHO] >> 4 & 0xF) != column.MOVED]
    expected = whole.rows[(whole.rows[:, column.WHO] >> 4 & 0xF) != column.MOVED]
    # Cores run ahead of the coprocessor where it cannot be observed, so its words so far are not compared.
    assert np.array_equal(np.delete(kept, column.TENSIX_ROWS, 1), np.delete(expected, column.TENSIX_ROWS, 1))


def test_counts_are_the_retired_instructions_polling_included() -> None:
    recorder = CoreRecorder()
    tile = run(WAITS, recorder)
    log = recorder.log()
    assert [log.retired(core) for core in range(CORES)] == [tile.cores[core].retired for core in range(CORES)]
    assert (log.mix.sum(axis=1) + log.polled == log.executed.sum(axis=1)).all()


def test_rows_say_what_each_instruction_did() -> None:
    text = "li a0, 0x20000; li a1, -2; sh a1, 2(a0); lhu a2, 2(a0); add x0, a1, a1; amoadd.w a3, a2, (a0); ebreak"
    log = recorded({"B": text.replace("; ", "\n")})
    told = [(s.round, s.pc, s.address, s.size, s.value) for s in of(log, B, column.INSTRUCTION)]
    assert told == [
        (0, 0x00, None, 0, 0x20000),
        (1, 0x04, None, 0, 0xFFFFFFFE),
        (2, 0x08, 0x20002, 2, 0xFFFFFFFE),
        (3, 0x0C, 0x20002, 2, 0xFFFE),
        (4, 0x10, None, 0, None),
        (5, 0x14, 0x20000, 4, 0xFFFE0000),
        (6, 0x18, None, 0, None),
    ]
    assert [s.pc for s in of(log, B, column.RESTARTED)] == [0]


def test_accesses_to_devices_have_their_address_and_value() -> None:
    log = recorded()
    assert [(s.address, s.value) for s in of(log, B, column.DEVICE)] == [(0xFFEC2000, 3)]
    told = [(s.address, s.value) for s in of(log, T1, column.DEVICE)]
    assert told == [(0xFFEC0000, 3), (0xFFE80024, 0), (0xFFE80004, 0)]


def test_blocked_rounds_say_for_what() -> None:
    log = recorded()
    mailbox, post, sync = of(log, T1, column.DEVICE)
    stored = of(log, B, column.DEVICE)[0]
    assert mailbox.round == stored.round  # B moves before T1 in a round
    assert mailbox.rounds == mailbox.round - mailbox.begin > 800
    assert post.rounds == 0 < sync.rounds
    by_name: Counter[str] = Counter()
    for (core, _, what), rounds in log.waits.items():
        assert core == T1
        by_name[what] += rounds
    pushes = [s for s in of(log, T1, column.PUSHES) if s.rounds]
    assert by_name == {
        "mailbox with B": mailbox.rounds,
        "FIFO of thread 1 (math)": sum(s.rounds for s in pushes),
        "TTSync: instructions in flight": sync.rounds,
    }
    assert len(pushes) > 1


def test_pushes_have_their_words_and_the_rounds_of_the_coprocessor_follow_them() -> None:
    log = recorded()
    pushes = of(log, T1, column.PUSHES)
    assert [s.value for s in pushes] == [0x02000000] * PUSHED
    rows = log.tensix.rows
    assert rows[:, tensix_column.WORD].tolist() == [0x02000000] * PUSHED
    assert (rows[:, tensix_column.CLOCK] >= [s.round for s in pushes]).all()
    assert rows[:, tensix_column.LINE].tolist() == [-1 - s.pc for s in pushes]
    assert (np.diff(rows[:, tensix_column.CLOCK]) == 1).any()
    # Up to four pushes that lie side by side share a round (T11).
    assert sorted({[s.round for s in pushes].count(s.round) for s in pushes}) == [1, 4]


def test_a_sleeping_poller_is_one_row() -> None:
    log = recorded()
    (poll,) = of(log, T0, column.POLL)
    assert (poll.pc, poll.address, poll.length) == (START["T0"] + 4, 0xFFE80024, 2)
    before = [s for s in of(log, T0) if s.end <= poll.begin]
    assert len(before) < 60
    following = next(s for s in of(log, T0) if s.begin >= poll.end)
    assert following.begin == poll.end  # nothing is missing in between
    assert log.polled[T0] == poll.rounds > 700
    (of_b,) = of(log, B, column.POLL)
    assert log.polls == {
        (T0, START["T0"] + 4, "semaphore 1 (MATH_PACK)"): poll.rounds,
        (B, of_b.pc, "0x20000 in L1"): of_b.rounds,
    }


def test_a_core_that_polls_or_waits_for_ever_counts_up_to_now() -> None:
    log = recorded({"B": "poll: lw a0, 0x40(zero)\nbeqz a0, poll", "T0": "li a0, 0xffec0000\nlw a1, 0(a0)"})
    (poll,) = of(log, B, column.POLL)
    assert poll.end == CLOCKS
    (waits,) = of(log, T0, column.GAVE_UP)
    assert (waits.begin, waits.end, waits.address) == (1, CLOCKS, 0xFFEC0000)
    assert log.waits == {(T0, START["T0"] + 4, "mailbox with B"): CLOCKS - 1}


def test_a_core_that_waits_in_an_instruction_with_its_top_bit_set() -> None:
    log = recorded({"T0": "li a0, 0xffec0004\nlw a1, -4(a0)"})
    (waits,) = of(log, T0, column.GAVE_UP)
    assert (waits.end, waits.address) == (CLOCKS, 0xFFEC0000)
    assert log.waits[T0, waits.pc, "mailbox with B"] == waits.rounds


def test_two_logs_of_one_run_agree() -> None:
    recorder = CoreRecorder()
    tile = run(WAITS, recorder)
    first, second = recorder.log(), recorder.log()
    assert np.array_equal(first.rows, second.rows)
    assert first.waits == second.waits
    tile.cores.advance(100)
    assert len(recorder.log().rows) == len(first.rows)  # all have halted


def test_a_core_held_in_its_sleep_and_started_again() -> None:
    recorder = CoreRecorder()
    tile = run({"NC": "poll: lw a0, 0x40(zero)\nbeqz a0, poll"}, recorder, clocks=200)
    tile.cores.store(0xFFB121B0, 0x47800)
    tile.cores.advance(50)
    tile.cores.store(0xFFB121B0, 0x07800)
    tile.cores.advance(200)
    log = recorder.log()
    assert log.retired(NC) == tile.cores["NC"].retired
    assert [s.kind for s in of(log, NC, column.POLL, column.RESTARTED)] == [column.RESTARTED, column.POLL] * 2
    first, second = of(log, NC, column.POLL)
    assert first.end == 200
    assert second.end == 450


def test_clocks_of_rounds() -> None:
    recorder = CoreRecorder()
    tile = run(WAITS, recorder, calls=5)
    log = recorder.log()
    first, last = log.rounds
    clocks = log.clock_of(np.arange(first, last + 1))
    assert clocks[0] == 0
    assert clocks[-1] == CLOCKS == tile.record.clock
    assert last - first == CLOCKS + PUSHED
    moved = set(log.tensix.rows[:, tensix_column.CLOCK].tolist())
    assert [int(b - a) for a, b in pairwise(clocks)] == [0 if round_ in moved else 1 for round_ in range(first, last)]


def test_the_last_rows_are_kept_within_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = recorded()
    monkeypatch.setattr(host.column, "ROWS", 3 * column.SPARE)
    recorder = CoreRecorder(limit=200)
    run(WAITS, recorder)
    log = recorder.log()
    assert 200 <= len(log.rows) < 200 + 4 * column.SPARE
    assert log.dropped + len(log.rows) == len(whole.rows)
    assert log.waits == whole.waits
    rounds = np.unique(log.rows[:, column.ROUND])
    assert np.array_equal(log.clock_of(rounds), whole.clock_of(rounds))


def test_without_instructions_only_waits_are_rows() -> None:
    recorder = CoreRecorder(instructions=False)
    run(WAITS, recorder)
    log, whole = recorder.log(), recorded()
    assert len(log.rows) < len(whole.rows) / 20
    assert all(step.rounds or step.kind in (column.RESTARTED, column.DEVICE) for step in steps(log))
    assert np.array_equal(log.executed, whole.executed)
    assert log.waits == whole.waits
    assert log.polls == whole.polls


def test_the_timing_of_the_coprocessor_lets_pushes_wait_for_what_their_core_waited_for() -> None:
    log = recorded()
    timed = timing(log.tensix)
    assert timed.threads[1].issued == PUSHED
    assert timed.cycles == PUSHED  # words without waits, one a cycle; the FIFO's depth holds nothing up
    pushes = log.tensix.pushes[1]
    assert len(pushes) == PUSHED
    assert pushes[0].row == 0
    assert pushes[-1].row > 0  # the core had to wait for room
    assert pushes[-1].own


def test_a_refused_instruction_ends_the_rows() -> None:
    recorder = CoreRecorder()
    with pytest.raises(UndefinedBehavior) as caught:
        run({"B": "li a0, 1\nli a1, 0xffb00000\n.word 0xffffffff"}, recorder)
    assert caught.value.pc == 8
    assert [s.pc for s in of(recorder.log(), B, column.INSTRUCTION)] == [0, 4]


def test_detached_recorders_see_nothing() -> None:
    recorder = CoreRecorder()
    tile = run({"B": "again: addi a0, a0, 1\nj again"}, recorder, clocks=10)
    recorder.detach()
    tile.cores.advance(1000)
    assert tile.cores["B"].retired == 1010
    assert tile.cores.observer is None
