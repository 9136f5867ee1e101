"""What notebooks show of tiles, register files, tensors, chips and results."""

from __future__ import annotations

import base64
import re
import struct
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

import bhemu
from bhemu.api.chip_report import TileResult
from bhemu.api.summary import CoreSummary, MachineResult
from bhemu.pictures import html
from bhemu.programs.run import Error, Report
from tests.loader.boot_programs import write_elf

pytestmark = pytest.mark.plain


def well_formed(text: str) -> ElementTree.Element:
    """The text parsed; void elements are closed first."""
    return ElementTree.fromstring("<div>" + re.sub(r"(<img [^>]*)>", r"\1/>", text).replace("&#9632;", "#") + "</div>")


def sizes(text: str) -> list[tuple[int, int]]:
    """Width and height of the pictures."""
    found = re.findall(r"data:image/png;base64,([^\"]*)", text)
    return [struct.unpack(">II", base64.b64decode(each)[16:24]) for each in found]  # type: ignore[misc]


def test_text_of_users_is_escaped() -> None:
    text = html.heading("<b>") + html.table(("<a>",), [("x < y & z",)]) + html.picture(np.zeros((2, 2)), title='"><')
    well_formed(text)
    assert "x &lt; y &amp; z" in text


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ((16, 16), (128, 128)),
        ((1000, 16), (16, 500)),
        ((4, 32, 32), (128, 512)),
        ((7,), (56, 8)),
        ((2048, 2048), (512, 512)),
    ],
)
def test_picture_of_any_shape_stays_small(shape: tuple[int, ...], size: tuple[int, int]) -> None:
    assert sizes(html.picture(np.ones(shape))) == [size]


def test_tile_shows_cores_instructions_semaphores_and_banks() -> None:
    tile = bhemu.Tile()
    tile.execute(0, ["SETDMAREG 0x1234, 6", "SEMINIT 2, 1, 4"])
    text = tile._repr_html_()
    well_formed(text)
    assert "SETDMAREG" in text
    assert "2 UNPACK_TO_DEST" in text
    assert "SrcA bank 0: unpacker" in text


def test_register_files_show_their_values() -> None:
    tile = bhemu.Tile()
    tile.dst.valid[64:] = 0
    assert sizes(tile.dst._repr_html_()) == [(128, 512)]
    assert sizes(tile.srca._repr_html_()) == [(128, 512)] * 2


def test_chip_shows_its_grid_and_what_tiles_do(tmp_path: Path) -> None:
    chip = bhemu.Chip("p100")
    chip.load(write_elf(tmp_path / "kernel.elf", "li a0, 1\nebreak"), "B", tiles=(3, 4))
    chip.start(tiles=(3, 4))
    chip.run(tiles=(3, 4))
    text = chip._repr_html_()
    assert len(well_formed(text).findall(".//{http://www.w3.org/2000/svg}rect")) == 120
    assert "3-4: B halted; 2 instructions" in text
    assert "halted" in chip[3, 4]._repr_html_()


def test_results_show_their_cores_and_outputs() -> None:
    core = CoreSummary("B", "halted", "ebreak", 0, "0x00000 main", 12, 0)
    text = MachineResult("done", 40, None, (core,))._repr_html_()
    assert "main returned 0" in text
    chip = bhemu.ChipResult("done", 40, {(1, 2): TileResult(40, None, (core,) * 30)})
    assert "and 10 more cores" in chip._repr_html_()
    report = Report({"matrix": {"MVMUL": 5}}, 1, 9, 0.5, {"c": Error(0.5, 0.25)})
    result = bhemu.Result({"c": np.eye(32, dtype=np.float32)}, report, bhemu.Tile())
    text = result._repr_html_()
    well_formed(text)
    assert sizes(text) == [(256, 256)]
    assert "MVMUL" in text


def test_tensor_shows_name_shape_and_values() -> None:
    program = bhemu.Program("test")
    tensor = program.input("a", ("M", 32), "bf16")
    assert "input a: M x 32, BF16" in tensor._repr_html_()
    tensor.shape, tensor.values, tensor.address = (64, 32), np.ones((64, 32), np.float32), 0x8000
    assert sizes(tensor._repr_html_()) == [(256, 512)]
