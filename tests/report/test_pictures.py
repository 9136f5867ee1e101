"""Pictures of register files and tiles of L1 in any clock that was sampled."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from bhemu.recording.parts import Reader, Writer
from bhemu.report import page as page_module
from bhemu.report.figures import Report
from bhemu.report.model import make_report
from bhemu.report.pictures import STATES
from tests.chip.test_chip_recording import RECEIVER, SENDER, running
from tests.report.test_page import opened


def fill(chip: object, value: int) -> None:
    """A row of the sender's Dst as a program might have written it, in BF16 as Dst has it."""
    chip[SENDER].dst.cells[0] = value  # type: ignore[index]


@pytest.fixture
def report(tmp_path: Path) -> Report:
    chip = running()
    recording = chip.record(tiles=[SENDER, RECEIVER], states=True, states_every=5)
    for clocks, value in ((10, 0x3F80), (10, 0x4000), (10, 0), (270, 0)):
        chip.clock(clocks)
        fill(chip, value)
    recording.stop()
    recording.save(tmp_path / "out")
    return make_report(tmp_path / "out")


@pytest.mark.plain
def test_a_picture_stands_for_the_time_from_its_clock_to_the_next_change(report: Report) -> None:
    found = [(one.place, one.what, one.clock, one.values.shape) for one in report.pictures]
    assert found == [
        (SENDER, "Dst", 15, (1024, 16)),
        (SENDER, "Dst", 25, (1024, 16)),
        (SENDER, "Dst", 35, (0, 0)),
    ]
    assert [np.unique(one.values[0]).size for one in report.pictures[:2]] == [1, 1]
    assert report.pictures[0].values[0, 0] != report.pictures[1].values[0, 0] != 0
    assert not any(note.startswith("pictures") for note in report.notes)


@pytest.mark.plain
def test_without_room_for_all_states_those_are_left_that_lie_evenly(tmp_path: Path) -> None:
    chip = running()
    recording = chip.record(tiles=[SENDER], states_every=1)
    for number in range(2 * STATES):
        fill(chip, 0x3F80 + number)
        chip.clock(1)
    recording.stop()
    recording.save(tmp_path / "out")
    report = make_report(tmp_path / "out")
    clocks = [one.clock for one in report.pictures]
    assert len(clocks) == STATES - 1  # in clock 0 it holds nothing
    assert (clocks[0], clocks[-1]) == (2, 2 * STATES)
    assert max(np.diff(clocks)) <= 3
    assert f"pictures: {STATES} of {2 * STATES + 1} states" in report.notes


@pytest.mark.plain
def test_a_recording_without_states_has_no_pictures(tmp_path: Path) -> None:
    Writer(tmp_path / "a.parts", {"elf": []}, 1 << 20).close()
    assert list(Reader(tmp_path).samples()) == []
    assert make_report(tmp_path).pictures == []


CHARTS = """var seen = [], Plotly = {newPlot() {}, react(place, [{z}]) {
  if (place === "picture-map") seen.push(z.length ? z[0][0] : "nothing");
}};"""
LOOKS = """<script>
(async () => {
  const told = async () => {
    seen.push(byId("picture-told").textContent, chipTime.marked, byId("picture-tile").selectedOptions[0].text);
  };
  await draw("time");
  await draw("pictures");
  await told();
  byId("picture-clock").value = 0;
  await byId("picture-clock").onchange();
  await told();
  await showClock(29.5, "3-4");
  await told();
  document.body.append(element("output", JSON.stringify(seen)));
})();
</script></body>"""


@pytest.mark.slow
def test_a_reader_chooses_the_clock(report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module, "charts_script", lambda: CHARTS)
    text = opened(page_module.page([report], "out").replace("</body>", LOOKS), tmp_path)
    found = re.search(r"<output>(.*?)</output>", text)
    assert found, text[-2000:]
    first, second = (float(one.values[0, 0]) for one in report.pictures[:2])
    assert json.loads(found[1]) == [
        *("nothing", "clock 35, 3 of 3", 35, "1-2"),
        *(first, "clock 15, 1 of 3", 15, "1-2"),
        *(second, "clock 25, 2 of 3", 25, "1-2"),  # of tile 3-4 there is none
    ]
