"""The page of a report: one file, nothing from the network, and a browser draws it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from bhemu.errors import ProgramError
from bhemu.machine.agents import CORE_NAMES
from bhemu.report import page as page_module
from bhemu.report.figures import Report
from bhemu.report.model import make_report
from bhemu.report.timeline import KIND_NAMES
from tests.chip.test_chip_recording import RECEIVER, SENDER, running

LIMIT = 300


@pytest.fixture
def report(tmp_path: Path) -> Report:
    chip = running()
    recording = chip.record(tiles=[SENDER, RECEIVER], states=True)
    chip.clock(300)
    recording.stop()
    recording.save(tmp_path / "out")
    return make_report(tmp_path / "out")


@pytest.mark.plain
def test_without_the_package_of_the_charts_the_page_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "plotly.offline", None)
    with pytest.raises(ProgramError, match="plotly"):
        page_module.charts_script()


@pytest.mark.plain
def test_the_page_asks_the_network_for_nothing(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module, "charts_script", lambda: "var Plotly = {};")
    text = page_module.page([report], "a <name> & more")
    assert "a &lt;name&gt; &amp; more" in text
    assert not re.search(r"""(src|href)=["'](?!#)""", text)
    assert not re.search(r"https?://", text)
    assert "<!--" not in text


def browser() -> str:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("THE PAGE IS NOT DRAWN: there is no Chromium")
    return found


def opened(page: str, folder: Path) -> str:
    """What the document has become after a browser has opened it in a window in which all sections can be seen."""
    path = folder / "report.html"
    path.write_text(page)
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    done = subprocess.run(
        [browser(), *options, "--window-size=1300,9000", "--virtual-time-budget=60000", "--dump-dom", path.as_uri()],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert 'data-ready="' in done.stdout, done.stdout[-2000:]
    assert "data-failed" not in done.stdout
    return done.stdout


@pytest.mark.slow
def test_a_browser_draws_the_page(report: Report, tmp_path: Path) -> None:
    pytest.importorskip("plotly", reason="THE PAGE IS NOT DRAWN: there is no plotly")
    text = opened(page_module.page([report], "out"), tmp_path)
    assert re.search(r'id="grid-map" class="js-plotly-plot"', text)
    for section in ("work", "time", "grid", "noc", "links", "pictures"):
        assert re.search(rf'<section id="{section}" data-drawn=', text), section
    assert f"{len(report.timeline):,} events" in text
    assert "<title>NoC 0, tile 1-2 to tile 2-2: 16 bytes</title>" in text


ASKED = """<script>
(async () => {
  await draw("time");
  const asked = [whole, [40, 43.5], [whole[0], whole[0] + 0.5]];
  const columns = asked.map(([from, to]) => events.tracks.map((_, track) => [...events.columns(track, from, to, 40)]));
  const pixels = [chipTime, tileTime].map((picture) => {
    picture.draw();
    const {width, height} = picture.canvas, on = picture.canvas.getContext("2d");
    const bytes = on.getImageData(0, 0, width, height).data;
    const found = new Set();
    for (let i = 0; i < bytes.length; i += 4) found.add(bytes[i] << 16 | bytes[i + 1] << 8 | bytes[i + 2]);
    return COLOURS.map((colour) => found.has(parseInt(colour.slice(1), 16)));
  });
  document.body.append(element("output", JSON.stringify({asked, columns, pixels})));
})();
</script></body>"""


@pytest.mark.slow
def test_a_column_of_pixels_shows_the_event_that_takes_most_of_it(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_module, "charts_script", lambda: "var Plotly = {newPlot() {}, react() {}};")
    text = opened(page_module.page([report], "out").replace("</body>", ASKED), tmp_path)
    found = re.search(r"<output>(.*?)</output>", text)
    assert found, text[-2000:]
    told = json.loads(found[1])
    begin, length, track, kind, _ = report.timeline.columns()
    end = begin + length
    compared = 0
    for (start, stop), columns in zip(told["asked"], told["columns"], strict=True):
        edges = np.linspace(start, stop, 41)
        for number, chosen in enumerate(columns):
            own = np.flatnonzero(track == number)
            for left, right, event in zip(edges, edges[1:], chosen, strict=False):
                share = np.minimum(end[own], right) - np.maximum(begin[own], left)
                if np.count_nonzero(share > 0) > 16:
                    continue  # some of many are looked at
                if event < 0:
                    assert (share < 1e-6).all(), (number, left)
                else:
                    assert track[event] == number
                    assert share[own == event][0] >= share.max() - 1e-6, (number, left)
                    compared += 1
    assert compared > 300
    shown = np.unique(
        kind[np.isin(track, [i for i, (_, name) in enumerate(report.timeline.tracks) if name in CORE_NAMES])]
    )
    for number in shown.tolist():
        assert told["pixels"][0][number], KIND_NAMES[number]
    assert any(told["pixels"][1])


@pytest.mark.plain
def test_without_room_cores_of_all_tiles_stay_and_single_instructions_go(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = report.timeline
    cores = [number for number, (_, name) in enumerate(whole.tracks) if name in CORE_NAMES]
    most = int(np.isin(whole.columns()[2], cores).sum()) + 40
    assert most < len(whole)
    monkeypatch.setattr("bhemu.report.timeline.MOST_EVENTS", most)
    small = make_report(tmp_path / "out").timeline
    assert len(small) <= most
    assert len(small) + small.left_out == len(whole)
    counts = np.bincount(small.columns()[2], minlength=len(small.tracks))
    kept = {key: count for key, count in zip(small.tracks, counts.tolist(), strict=True) if key[1] in CORE_NAMES}
    expected = np.bincount(whole.columns()[2], minlength=len(whole.tracks))
    assert kept == {whole.tracks[number]: expected[number] for number in cores}
