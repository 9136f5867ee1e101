"""Traces of RISC-V cores: functions by call and return, waits, polls, devices, in order of rounds; and as text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bhemu.analysis import core_trace, core_trace_json
from bhemu.analysis.core_trace import CORE_TRACKS, THREAD_TRACKS, UNIT_TRACKS
from bhemu.recording import CoreRecorder, text_lines
from bhemu.recording.core_log import CoreLog
from tests.recording.core_runs import PUSHED, WAITS, run
from tests.riscv.rv_machine import START

pytestmark = pytest.mark.plain

CALLS = """
    start: li sp, 0x30000
           call outer
           call leaf
           ebreak
    outer: addi sp, sp, -16
           sw ra, 0(sp)
           call leaf
           li a1, 1
           call self
           lw ra, 0(sp)
           addi sp, sp, 16
           j leaf              # in the place of a call and a return
    leaf:  addi a0, a0, 1
           ret
    self:  addi sp, sp, -16    # calls itself once
           sw ra, 0(sp)
           beqz a1, _out
           addi a1, a1, -1
           call self
    _out:  lw ra, 0(sp)
           addi sp, sp, 16
           ret
"""


def recorded(texts: dict[str, str] = WAITS, **options: Any) -> CoreLog:
    recorder = CoreRecorder(**options)
    run(texts, recorder)
    return recorder.log()


def events(log: CoreLog) -> list[dict[str, Any]]:
    return json.loads(core_trace_json(log))["traceEvents"]  # type: ignore[no-any-return]


def slices(log: CoreLog, pid: int, tid: int, category: str = "") -> list[tuple[str, float, float]]:
    return [
        (e["name"], e["ts"], e["ts"] + e["dur"])
        for e in events(log)
        if e["ph"] == "X" and (e["pid"], e["tid"]) == (pid, tid) and category in ("", e["cat"])
    ]


def test_the_trace_has_the_keys_that_viewers_need_in_order_of_rounds() -> None:
    log = recorded()
    found = events(log)
    assert all({"name", "ph", "ts", "pid", "tid", "args"} <= event.keys() for event in found)
    assert [e["ts"] for e in found] == sorted(e["ts"] for e in found)
    assert all(e["dur"] > 0 for e in found if e["ph"] == "X")
    assert max(e["ts"] + e.get("dur", 0) for e in found) <= log.rounds[1]
    names = {e["args"]["name"] for e in found if e["ph"] == "M"}
    assert {"RISC-V cores", "B", "T0", "NC", "threads", "thread 1 (math)", "units", "matrix"} <= names


def test_slices_of_a_track_lie_inside_each_other_or_apart() -> None:
    log = recorded()
    tracks = {(e["pid"], e["tid"]) for e in events(log) if e["ph"] == "X"}
    assert {(CORE_TRACKS, core) for core in range(3)} <= tracks
    for pid, tid in tracks:
        open_until: list[float] = []
        for _, begin, end in slices(log, pid, tid):
            while open_until and open_until[-1] <= begin + 1e-9:
                open_until.pop()
            assert not open_until or end <= open_until[-1] + 1e-9
            open_until.append(end)


def test_functions_follow_calls_returns_and_jumps() -> None:
    assert slices(recorded({"B": CALLS}), CORE_TRACKS, 0) == [
        ("start", 0, 32),
        ("outer", 2, 26),
        ("leaf", 5, 7),
        ("self", 9, 23),
        ("self", 14, 20),
        ("leaf", 26, 28),
        ("leaf", 29, 31),
    ]


def test_waits_polls_accesses_and_pushes_are_slices() -> None:
    log = recorded()
    (poll,) = slices(log, CORE_TRACKS, 1, "poll")
    assert poll[0] == "polls semaphore 1 (MATH_PACK) 0xffe80024"
    assert poll[2] - poll[1] == log.polled[1]
    blocked = slices(log, CORE_TRACKS, 2, "blocked")
    assert {name for name, _, _ in blocked} == {
        "blocked: mailbox with B",
        "blocked: FIFO of thread 1 (math)",
        "blocked: TTSync: instructions in flight",
    }
    assert sum(end - begin for _, begin, end in blocked) == sum(n for key, n in log.waits.items() if key[0] == 2)
    devices = [name for name, _, _ in slices(log, CORE_TRACKS, 2, "device")]
    assert devices == ["load mailbox with B", "store semaphore 1 (MATH_PACK)", "load TTSync: instructions in flight"]
    pushes = slices(log, CORE_TRACKS, 2, "push")
    assert [name for name, _, _ in pushes] == ["push NOP"] * PUSHED
    assert len(slices(log, THREAD_TRACKS, 1)) == PUSHED
    units = [slices(log, UNIT_TRACKS, unit) for unit in range(10)]
    assert sum(len(unit) for unit in units) == PUSHED


def test_slices_carry_clock_place_and_effect() -> None:
    log = recorded()
    (post,) = [e for e in events(log) if e["name"] == "store semaphore 1 (MATH_PACK)"]
    place = post["args"].pop("place")
    assert place == "loop+0x10"
    assert post["args"]["effect"] == "[0xffe80024] semaphore 1 (MATH_PACK) = 0x0"
    assert 800 < post["args"]["clock"] < post["ts"]
    word = next(e for e in events(log) if e["pid"] == THREAD_TRACKS and e["ph"] == "X")
    assert word["args"]["pushed at"].startswith(f"T1 {START['T1'] + 0x34:#x} push")


def test_a_trace_without_symbols_and_an_empty_one() -> None:
    recorder = CoreRecorder()
    tile = run({"B": CALLS})
    recorder.attach(tile)
    assert {event["ph"] for event in events(recorder.log())} == {"M"}
    tile.cores["B"].pc = 0
    tile.cores["B"].resume()
    tile.cores.advance(100)
    names = {name for name, _, _ in slices(recorder.log(), CORE_TRACKS, 0)}
    assert names == {"B (no symbol)"}


def test_the_text_has_a_line_for_each_row_and_word() -> None:
    log = recorded({"B": CALLS})
    lines = list(text_lines(log))
    assert len(lines) == 1 + len(log.rows)
    assert lines[0].split() == ["#", "clock", "round", "who", "pc", "place", "instruction", "effect"]
    assert lines[3].split() == ["1", "1", "B", "0x00004", "start+0x4", "jal", "ra,", "0x10", "ra", "=", "0x8"]
    assert lines[5].split()[4:] == ["outer+0x4", "sw", "ra,", "0(sp)", "[0x2fff0]", "=", "0x8"]


def test_the_text_interleaves_cores_and_coprocessor_by_round() -> None:
    log = recorded()
    told = [line.split() for line in list(text_lines(log))[1:]]
    rounds = [int(line[1]) for line in told if line[4:5] != ["polls"]]
    clocks = [int(line[0]) for line in told]
    assert clocks == sorted(clocks)
    assert rounds == sorted(rounds)
    assert sum(line[2] == "math" for line in told) == PUSHED
    text = "\n".join(text_lines(log))
    assert "rounds blocked on mailbox with B" in text
    assert "turns of 2 instructions" in text


def test_what_is_left_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bhemu.recording.core_recorder.column.ROWS", 100)
    log = recorded(limit=150)
    assert log.dropped > 0
    assert f"{log.dropped:,} rows of the cores" in list(text_lines(log))[1]
    about = json.loads(core_trace_json(log))["otherData"]
    assert about["rows left out at the beginning"] == log.dropped


def test_the_name_of_the_file_chooses_the_format() -> None:
    log = recorded({"B": CALLS})
    assert core_trace(log, "trace.txt").decode().splitlines() == list(text_lines(log))
    assert "traceEvents" in json.loads(core_trace(log, "trace.json"))
