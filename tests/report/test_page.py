"""The page of a report: one file, nothing from the network, and a browser draws it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bhemu.errors import ProgramError
from bhemu.report import page as page_module
from bhemu.report.model import Report, make_report
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
    text = page_module.page(report, "a <name> & more")
    assert "a &lt;name&gt; &amp; more" in text
    assert not re.search(r"""(src|href)=["'](?!#)""", text)
    assert not re.search(r"https?://", text)
    assert "/*DATA*/null" not in text


@pytest.mark.slow
def test_a_browser_draws_the_page(report: Report, tmp_path: Path) -> None:
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("THE PAGE IS NOT DRAWN: there is no Chromium")
    pytest.importorskip("plotly", reason="THE PAGE IS NOT DRAWN: there is no plotly")
    path = tmp_path / "report.html"
    path.write_text(page_module.page(report, "out"))
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    done = subprocess.run(
        [browser, *options, "--virtual-time-budget=60000", "--dump-dom", path.as_uri()],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert 'data-ready="' in done.stdout, done.stdout[-2000:]
    assert "data-failed" not in done.stdout
    for place in ("chip-time", "tile-time", "grid-map"):
        assert re.search(rf'id="{place}" class="js-plotly-plot"', done.stdout), place
    assert f"{len(report.timeline):,} events" in done.stdout
