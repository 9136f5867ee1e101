"""Taking a tile apart."""

from __future__ import annotations

import numpy as np
import pytest

from bhemu.errors import ConfigurationError, FormatError
from bhemu.formats import TILE_SHAPES, DataFormat, decode, encode, read_tile, render_tile, show_tile
from bhemu.formats.layout import FACE_NAMES


@pytest.mark.parametrize("tile_shape", TILE_SHAPES)
@pytest.mark.parametrize("data_format", list(DataFormat), ids=lambda f: f.name)
def test_faces_are_the_quarters_of_the_tile(data_format: DataFormat, tile_shape: tuple[int, int]) -> None:
    width = tile_shape[1]
    tensor = np.random.default_rng(0).integers(0, 100, tile_shape)
    data = encode(tensor, data_format, tile_shape=tile_shape)
    values = decode(data, data_format, tile_shape, tile_shape=tile_shape)
    tile = read_tile(data, data_format, tile_shape)
    assert [face.name for face in tile.faces] == list(FACE_NAMES[tile_shape])
    for face in tile.faces:
        row, column = divmod(face.index, width // 16)
        quarter = values[16 * row : 16 * row + 16, 16 * column : 16 * column + 16]
        assert np.array_equal(face.values, quarter)
        assert face.datums.shape == (16, 16)
        assert (face.exponents is not None) == data_format.is_bfp


def test_raw_datums_and_exponents_of_a_bfp_tile() -> None:
    data = np.zeros(DataFormat.BFP2.tile_bytes(), np.uint8)
    data[17] = 130  # face 1, row 1
    data[64 + 17 * 4] = 0b00_10_11_01
    face = read_tile(data, "bfp2").faces[1]
    assert face.exponents is not None
    assert face.exponents.tolist() == [0, 130] + [0] * 14
    assert face.datums[1, :4].tolist() == [1, 3, 2, 0]
    assert face.values[1, :4].astype(np.float32).tolist() == [8.0, -8.0, -np.inf, 0.0]


def test_text_names_the_format_the_faces_and_the_exponents() -> None:
    text = show_tile(encode(np.eye(32) * 3, "bfp8"), "bfp8", views=("values", "bits"), faces=(3,))
    lines = text.splitlines()
    assert lines[0] == "BFP8 tile 32x32, 1088 bytes, 4 faces"
    assert lines[2] == "face 3 (bottom-right), values"
    assert lines[3] == " 0 | e=128  3 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"
    assert lines[20] == "face 3 (bottom-right), bits"
    assert lines[21] == " 0 | e=128  60 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"
    assert len(lines) == 1 + 2 * 18


def test_text_of_integers_and_of_the_tensix_reading() -> None:
    integers = show_tile(encode(np.full((16, 16), -5), "int8", tile_shape=(16, 16)), "int8", (16, 16))
    assert integers.splitlines()[3] == " 0 | " + " ".join(["-5"] * 16)
    beyond = np.full(256, 0x7FFF, np.uint16).view(np.uint8)
    assert "131008" in show_tile(beyond, "fp16", (16, 16), interpretation="tensix")
    assert "nan" in show_tile(beyond, "fp16", (16, 16))


def test_refusals() -> None:
    data = encode(np.ones((32, 32)), "bf16")
    tile = read_tile(data, "bf16")
    with pytest.raises(FormatError, match="no face 4"):
        render_tile(tile, faces=[4])
    with pytest.raises(ConfigurationError, match=r"views\[0\] is 'hex'"):
        render_tile(tile, views=["hex"])  # type: ignore[list-item]
    with pytest.raises(FormatError, match="2047 bytes do not hold"):
        read_tile(data[:-1], "bf16")
    with pytest.raises(FormatError, match="tile shape"):
        read_tile(data, "bf16", (8, 32))
