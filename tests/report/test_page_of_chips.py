"""The page of a report of several chips: each can be chosen, and every section is that of the chosen one."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bhemu.errors import ProgramError
from bhemu.report import page as page_module
from bhemu.report.chips import ChipOperation
from bhemu.report.figures import Picture, Report
from bhemu.report.model import make_report, make_reports
from bhemu.report.text import perfetto_json, report_as_json
from tests.chip.noc_programs import B_RUNS, SOFT_RESET
from tests.chip.test_links import DATA, data_frame, ends, pair, start
from tests.chip.test_run_ahead import count_down
from tests.report.test_page import opened
from tests.riscv.rv_asm import assemble

TILES = ({(1, 2)}, {(3, 4), (5, 6)})
"""On which the two chips compute, the second longer."""


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    cluster = pair(60)
    for chip, places in zip(cluster.chips, TILES, strict=True):
        for place in places:
            count = 20 + 30 * cluster.chips.index(chip)
            chip[place].write(0, assemble(count_down(count, "busy") + "end: j end\n", 0))
            chip[place].write_word(SOFT_RESET, B_RUNS)
    start(ends(cluster)[0], data_frame(DATA, 16, 0x30000))
    chips = [chip.record(tiles=sorted(TILES[n]), states=True) for n, chip in enumerate(cluster.chips)]
    links = cluster.record_links()
    cluster.clock(300)
    links.save(tmp_path / "out")
    for recording in chips:
        recording.save(tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture
def reports(recorded: Path) -> list[Report]:
    made = make_reports(recorded)
    for number, report in enumerate(made):  # what these programs do not leave
        report.pictures.append(Picture((1 + 2 * number, 2), 300, "Dst", "", np.full((2, 2), number + 1, np.float32)))
        report.chips = [
            replace(chip, operations=(ChipOperation("add", 10, 60 + 40 * chip.number, 1),)) for chip in report.chips
        ]
    return made


@pytest.mark.plain
def test_a_trace_for_perfetto_has_the_events_of_all_chips_with_processes_of_their_own(recorded: Path) -> None:
    reports = make_reports(recorded)
    events = json.loads(perfetto_json(*reports))["traceEvents"]
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert sorted(names.values()) == ["chip 0 tile 1-2", "chip 1 tile 3-4", "chip 1 tile 5-6"]
    for report in reports:
        own = {pid for pid, name in names.items() if name.startswith(f"chip {report.chip} ")}
        slices = [event for event in events if event["pid"] in own and event["ph"] in "XC"]
        assert len(slices) == len(report.timeline) > 0
    (alone,) = json.loads(perfetto_json(make_report(recorded, chip=0)))["traceEvents"][:1]
    assert alone["args"]["name"] == "tile 1-2"


@pytest.mark.plain
def test_the_report_of_a_chip_is_the_same_alone_and_among_all(recorded: Path) -> None:
    for number, report in enumerate(make_reports(recorded)):
        assert report.chip == number
        assert set(report.tiles) == TILES[number]
        alone = make_report(recorded, chip=number)
        assert report_as_json(report) == report_as_json(alone)
        assert len(report.timeline) == len(alone.timeline) > 0
    with pytest.raises(ProgramError, match="no recording of chip 2"):
        make_reports(recorded, chip=2)


@pytest.mark.plain
def test_chips_share_the_room_of_the_timeline(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = max(len(report.timeline) for report in make_reports(recorded))
    monkeypatch.setattr("bhemu.report.timeline.MOST_EVENTS", whole)
    alone, among = make_report(recorded, chip=1).timeline, make_reports(recorded)[1].timeline
    assert len(alone) == whole
    assert len(among) <= whole // 2
    assert len(among) + among.left_out == whole


CHARTS = """
var charts = {};
var Plotly = {newPlot(place, data) { charts[place] = data; }, react(place, data) { charts[place] = data; }};
"""
ASKED = """<script>
(async () => {
  try {
  const cells = (one) => [...one.children].map((cell) => cell.textContent);
  const rows = (table) => [...byId(table).querySelectorAll("tr")].slice(1).map(cells);
  const look = async () => {
    await Promise.all(Object.keys(SECTIONS).map(draw));
    for (const picture of [systemTime, chipTime, tileTime]) picture.draw();
    const {width, height} = systemTime.canvas, on = systemTime.canvas.getContext("2d");
    const bytes = on.getImageData(0, 0, width, height).data, colour = parseInt(COLOURS[0].slice(1), 16);
    let filled = 0;
    for (let i = 0; i < bytes.length; i += 4)
      filled += (bytes[i] << 16 | bytes[i + 1] << 8 | bytes[i + 2]) === colour;
    const [grid] = charts["grid-map"];
    return {
      title: byId("chip").value, state: byId("state").textContent,
      system: rows("system").map((one) => one[0]), operations: rows("shared-operations"),
      shown: document.querySelector("#system tr.shown").children[0].textContent,
      tiles: [...new Set(events.tracks.map(([place]) => place))], begin: [...events.begin],
      lanes: chipTime.shown.map((one) => one.name), range: {...range}, whole, filled,
      heat: grid.text.flat().filter((text) => text !== "not recorded"), most: grid.zmax,
      links: rows("link-table").map((one) => one.slice(0, 3)), picture: charts["picture-map"][0].z,
      kernels: rows("kernel-table").length,
    };
  };
  const choose = (index) => { byId("chip").value = index; byId("chip").onchange(); };
  const told = [await look()];
  moveTo(20, 60);
  byId("which-links").value = "one";
  byId("which-links").onchange();
  choose(1);
  told.push(await look());
  document.querySelectorAll("#system tr.choice")[0].click();
  told.push(await look());
  byId("which-links").value = "";
  byId("which-links").onchange();
  choose(0);
  const quick = unpack;
  unpack = async (name, Kind) => {
    if (name.startsWith("0-")) await new Promise((done) => setTimeout(done, 300));
    return quick(name, Kind);
  };
  const early = [draw("time"), draw("pictures")];  // another chip is chosen while these are drawn
  await new Promise((done) => setTimeout(done, 20));
  choose(1);
  await look();
  await Promise.all(early);
  told.push(await look());
  document.body.append(element("output", JSON.stringify(told)));
  } catch (error) { document.body.append(element("output", JSON.stringify([error.stack]))); }
})();
</script></body>"""


@pytest.mark.slow
def test_every_section_is_that_of_the_chosen_chip(
    reports: list[Report], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_module, "charts_script", lambda: CHARTS)
    text = opened(page_module.page(reports, "out").replace("</body>", ASKED), tmp_path)
    found = re.search(r"<output>(.*?)</output>", text)
    assert found, text[-2000:]
    told: list[dict[str, Any]] = json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">"))
    assert len(told) == 4, told
    assert told[2] | {"filled": 0} == told[0] | {"range": told[1]["range"], "filled": 0}  # the chosen time stays
    assert told[3] == told[1]
    for number, state in ((0, told[0]), (1, told[1])):
        timeline = reports[number].timeline
        places = {f"{x}-{y}" for x, y in TILES[number]}
        assert state["title"] == str(number)
        assert state["state"] == f"{len(timeline):,} events"
        assert state["system"] == ["chip 0", "chip 1"]
        assert state["shown"] == f"chip {number}"
        assert state["operations"] == [["add", "10", "2", "50", "0", "90", "1"]]
        assert set(state["tiles"]) == set(state["lanes"]) == places
        assert state["begin"] == timeline.columns()[0].tolist()
        assert {re.split("[ <]", text)[1] for text in state["heat"]} == places
        assert state["picture"] == [[number + 1] * 2] * 2
        assert state["links"] == [["0:2", "1:9", "1"], ["1:9", "0:2", "0"]]
        assert state["kernels"] == len(reports[number].kernels)
        assert state["filled"] > 0
    assert told[0]["range"] == {"from": told[0]["whole"][0], "to": told[0]["whole"][1]}
    assert told[1]["range"] == {"from": 20, "to": 60}
    assert told[0]["most"] == told[1]["most"]  # one scale of colours
    assert told[0]["heat"] != told[1]["heat"]


@pytest.mark.slow
def test_the_page_begins_with_the_wanted_chip(reports: list[Report], tmp_path: Path) -> None:
    pytest.importorskip("plotly", reason="THE PAGE IS NOT DRAWN: there is no plotly")
    text = opened(page_module.page(reports, "out", chip=1), tmp_path)
    assert f"{len(reports[1].timeline):,} events" in text
    assert re.search(r'<tr class="choice shown"><td[^>]*>chip 1<', text)
    for section in ("work", "time", "grid", "noc", "links", "pictures"):
        assert re.search(rf'<section id="{section}" [^>]*data-drawn=', text), section


@pytest.mark.slow
def test_a_chip_alone_is_not_to_be_chosen(
    reports: list[Report], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_module, "charts_script", lambda: CHARTS)
    alone = replace(reports[0], chip=None, chips=[])
    text = opened(page_module.page([alone], "out"), tmp_path)
    assert '<label id="chip-choice" hidden="">' in text
    assert '<table id="system"></table>' in text
