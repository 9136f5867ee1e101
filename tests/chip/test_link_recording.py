"""Recordings of what goes over links (bhemu/recording/link_recording.py)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bhemu.cluster.topology import End
from bhemu.errors import BhemuError, ProgramError
from bhemu.recording.parts import Reader
from bhemu.report.model import make_report
from bhemu.report.text import report_as_json, summary_lines
from tests.chip.test_links import DATA, QUEUE, SENT, data_frame, ends, pair, register_frame, start
from tests.loader.boot_programs import program

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


def test_a_report_has_links_and_the_chip_that_is_asked_for(tmp_path: Path) -> None:
    cluster = pair(60)
    own, other = ends(cluster)
    start(own, "".join(data_frame(0x1000, 64, SENT) for _ in range(5)))
    start(other, register_frame(DATA, 1))
    recording = cluster.record_links()
    cluster.links["0:2"].lose(2, sender="0:2")
    cluster.links["0:2"].take_down(at=600)
    cluster.links["0:2"].bring_up(at=900)
    cluster.links["0:2"].retrain(50, at=1200)
    cluster.clock(1500)
    recording.save(tmp_path)
    made = make_report(tmp_path)
    there, back = report_as_json(made)["links"]
    assert (there["from"], there["to"], there["frames"], there["bytes"], there["lost"]) == ("0:2", "1:9", 3, 192, 2)
    assert sum(size for _, size in there["sent"]) == 192
    assert [event["what"] for event in there["events"]] == ["lost 2 frames", "down", "up", "retrains until clock 1250"]
    assert (back["from"], back["frames"], back["bytes"], back["events"]) == ("1:9", 1, 4, [])
    assert [line.split()[:4] for line in summary_lines(made) if line[:3] in ("0:2", "1:9")] == [
        ["0:2", "1:9", "3", "192"],
        ["1:9", "0:2", "1", "4"],
    ]
    assert recording.frames  # what is saved stays


def test_recordings_of_chips_say_which_they_are(tmp_path: Path) -> None:
    cluster = pair(60)
    recordings = [chip.record(tiles=[(1, 2)]) for chip in cluster.chips]
    for chip in cluster.chips:
        chip.load(program("loop: j loop"), "B", tiles=[(1, 2)])
        chip.start(tiles=[(1, 2)])
    cluster.clock(100)
    for recording in recordings:
        recording.save(tmp_path)
    assert Reader(tmp_path).chips == [0, 1]
    assert [Reader(tmp_path, chip).about[0]["chip_number"] for chip in (0, 1)] == [0, 1]
    assert "this is chip 0 of chips 0, 1" in make_report(tmp_path).notes[0]
    with pytest.raises(ProgramError, match="no recording of chip 2"):
        make_report(tmp_path, chip=2)
