"""Recordings of what goes over links (bhemu/cluster/recording.py)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bhemu.cluster.topology import End
from bhemu.errors import BhemuError, ProgramError
from tests.chip.test_links import DATA, QUEUE, SENT, data_frame, ends, pair, register_frame, start

pytestmark = [pytest.mark.plain, pytest.mark.rule("ethernet 2.2")]


@pytest.mark.parametrize("step", [1, 30, 75, 1000])
def test_each_frame_is_recorded_once_however_the_clock_is_cut(step: int) -> None:
    """Twelve of a core, in both directions, and one that the host sends between two clocks."""
    cluster = pair(60)
    own, other = ends(cluster)
    start(own, "".join(data_frame(0x1000, 16 * n, SENT + 64 * n) for n in range(1, 7)))
    start(other, "".join(register_frame(DATA + 4 * n, n) for n in range(6)))
    recording = cluster.record_links()
    own.write_word(QUEUE + 0x1C, DATA)
    own.write_word(QUEUE + 0x44, 7)
    own.write_word(QUEUE + 4, 4)
    while cluster.time < 1000:
        cluster.clock(min(step, 1000 - cluster.time))
    there = [frame for frame in recording.frames if frame.sender == End(0, 2)]
    back = [frame for frame in recording.frames if frame.sender == End(1, 9)]
    assert [(frame.kind, frame.target, frame.size) for frame in there] == [
        ("register", DATA, 4),
        *(("data", SENT + 64 * n, 16 * n) for n in range(1, 7)),
    ]
    assert [(frame.kind, frame.target, frame.receiver) for frame in back] == [
        ("register", DATA + 4 * n, End(0, 2)) for n in range(6)
    ]
    assert all(frame.arrival == frame.sent + 60 for frame in recording.frames)
    assert there[0].sent == 0
    assert [frame.sent for frame in recording.frames] == sorted(frame.sent for frame in recording.frames)


def test_recording_changes_nothing_and_ends_where_it_is_stopped() -> None:
    found = []
    for recorded in (False, True):
        cluster = pair(60)
        start(ends(cluster)[0], "".join(register_frame(SENT + 4 * n, n + 1) for n in range(12)))
        recording = cluster.record_links() if recorded else None
        cluster.clock(60)
        if recording is not None:
            recording.stop()
            count = len(recording.frames)
        cluster.clock(500)
        found.append(cluster.snapshot())
    assert found[0] == found[1]
    assert 0 < count == len(recording.frames) < 12


def test_a_refusal_in_a_span_loses_no_frame_of_the_recording() -> None:
    cluster = pair(60)
    start(ends(cluster)[0], register_frame(0xFFB93000, 1) + "".join(register_frame(SENT, n) for n in range(8)))
    recording = cluster.record_links()
    with pytest.raises(BhemuError):
        cluster.clock(300)
    cluster.clock(300)
    assert len(recording.frames) == 9


def test_a_trace_has_a_track_for_each_direction(tmp_path: Path) -> None:
    cluster = pair(60)
    start(ends(cluster)[0], register_frame(SENT, 1))
    start(ends(cluster)[1], data_frame(0x1000, 64, SENT))
    recording = cluster.record_links()
    cluster.clock(200)
    recording.save_trace(tmp_path / "links.json")
    events = json.loads((tmp_path / "links.json").read_text())["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["ph"] == "M"}
    slices = {names[event["tid"]]: (event["name"], event["dur"]) for event in events if event["ph"] == "X"}
    assert slices == {"0:2 to 1:9": ("register", 60), "1:9 to 0:2": ("data", 60)}
    assert "0:2    1:9    1       4" in str(recording)
    with pytest.raises(ProgramError, match="cannot be written"):
        recording.save_trace(tmp_path / "nowhere" / "links.json")
