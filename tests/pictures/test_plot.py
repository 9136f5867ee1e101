"""Plots with matplotlib, and what is said without it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import bhemu
from bhemu.analysis import plot_timeline
from bhemu.api.chip_report import TileResult
from bhemu.errors import ConfigurationError, ProgramError
from bhemu.programs.run import Report
from bhemu.recording import Recorder


@pytest.fixture
def pyplot() -> Iterator[Any]:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def shown(ax: Any) -> np.ndarray[Any, Any]:
    """The values of the image on the axes."""
    return np.asarray(ax.images[0].get_array())


def test_dst_is_drawn_in_the_configured_or_the_named_view(pyplot: Any) -> None:
    tile = bhemu.Tile()
    tile.dst.valid[:] = 1
    tile.dst.cells[0, 0] = 127  # BF16 1.0
    assert shown(tile.dst.plot())[0, 0] == 1.0
    assert shown(tile.dst.plot()).shape == (64, 16)
    assert shown(tile.dst.plot(slice(0, 512), view="int32")).shape == (512, 16)
    with pytest.raises(ConfigurationError, match="no view 'fp8'"):
        tile.dst.plot(view="fp8")


def test_source_banks_are_drawn(pyplot: Any) -> None:
    tile = bhemu.Tile()
    tile.srca.cells[1, 2, 3] = 127
    tile.record.src_format[0] = 5
    _, ax = pyplot.subplots()
    assert tile.srca.plot(1, ax=ax) is ax
    assert shown(ax)[2, 3] == 1.0


def test_chip_and_result_are_drawn_as_the_grid_of_tiles(pyplot: Any) -> None:
    chip = bhemu.Chip("p100")
    values = shown(chip.plot())
    assert values.shape == (10, 16)
    assert np.isfinite(values).sum() == 120
    result = bhemu.ChipResult("done", 9, {(1, 2): TileResult(9, None, ()), (16, 11): TileResult(5, None, ())})
    assert (shown(result.plot())[0, 0], shown(result.plot())[9, 15]) == (9, 5)


def test_outputs_and_inputs_are_drawn(pyplot: Any) -> None:
    result = bhemu.Result({"c": np.eye(64, dtype=np.float32)}, Report(), bhemu.Tile())
    assert (shown(result.plot()) == np.eye(64)).all()
    with pytest.raises(ProgramError, match="no output 'd'"):
        result.plot("d")
    tensor = bhemu.Program("test").input("a", (32, 32), "bf16")
    with pytest.raises(ProgramError, match="tensor a has no values"):
        tensor.plot()
    assert shown(tensor.plot(np.eye(32))).shape == (32, 32)


def test_infinite_and_missing_numbers_can_be_drawn(pyplot: Any) -> None:
    from bhemu.pictures.plot import matrix

    values = shown(matrix(np.array([[np.inf, -np.inf], [np.nan, 2.0]])))
    assert values[0, 0] == 2.0
    assert values[0, 1] == -2.0


def test_timeline_has_a_track_for_each_thread_and_unit(pyplot: Any) -> None:
    tile = bhemu.Tile()
    recorder = Recorder()
    recorder.attach(tile)
    tile.execute(0, ["SETDMAREG 0x1234, 6", "SETDMAREG 0x1234, 7", "SETC16 1, 2"])
    names = [label.get_text() for label in plot_timeline(recorder.log()).get_yticklabels()]
    assert names == ["thread 0 (unpack)", "scalar", "config"]
    with pytest.raises(ConfigurationError, match="empty"):
        plot_timeline(recorder.log(), between=(10_000, 10_001))


@pytest.mark.plain
def test_without_matplotlib_the_remedy_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigurationError, match="matplotlib is not installed") as refusal:
        bhemu.Tile().dst.plot()
    assert refusal.value.remedy == "pip install 'bhemu[plot]'"
