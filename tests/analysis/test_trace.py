"""The trace is JSON in the Chrome format, ordered, with a track for each thread, unit and semaphore."""

from __future__ import annotations

import json
from pathlib import Path

from bhemu.analysis import timing, write_trace
from tests.analysis.logs import BOTH_BANKS_FULL, log_of


def test_the_trace_has_the_keys_that_viewers_need_in_order_of_time(tmp_path: Path) -> None:
    log = log_of(
        (1, "SEMINIT 2, 0, 2"),
        (1, "MVMUL"),
        (1, "MVMUL"),
        (1, "STALLWAIT 2, 0x10"),
        (1, "SEMPOST 2"),
        (2, "SEMWAIT 1, 2, 1"),
        (2, "PACR Last=1"),
        owners=BOTH_BANKS_FULL,
    )
    path = tmp_path / "trace.json"
    write_trace(log, path)
    events = json.loads(path.read_text())["traceEvents"]
    assert all({"name", "ph", "ts", "pid", "tid", "args"} <= event.keys() for event in events)
    assert [event["ts"] for event in events] == sorted(event["ts"] for event in events)
    slices = [event for event in events if event["ph"] == "X"]
    assert all(event["dur"] > 0 for event in slices)
    names = {event["args"]["name"] for event in events if event["ph"] == "M"}
    assert {"threads", "units", "semaphores", "thread 1 (math)", "matrix", "packer"} <= names
    counters = [(event["ts"], event["args"]["value"]) for event in events if event["ph"] == "C"]
    assert [value for _, value in counters] == [0, 1]
    # Slices of one track do not overlap, or viewers would nest them.
    for track in {(event["pid"], event["tid"]) for event in slices}:
        end = 0
        for event in (e for e in slices if (e["pid"], e["tid"]) == track):
            assert event["ts"] >= end
            end = event["ts"] + event["dur"]
    products = [e for e in slices if e["name"] == "MVMUL" and e["pid"] == 1]
    assert [e["ts"] for e in products] == [timing(log).issue[1], timing(log).issue[2]]
    assert products[0]["args"]["line"] == 2
    assert [e["dur"] for e in slices if e["name"] == "wait for MVMUL"] == [4]


def test_an_empty_log_gives_an_empty_trace(tmp_path: Path) -> None:
    write_trace(log_of(), tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {event["ph"] for event in events} == {"M"}
