"""DataFormat: codes, sizes, names."""

from __future__ import annotations

import doctest
import importlib

import ml_dtypes
import numpy as np
import pytest

from bhemu.errors import FormatError
from bhemu.formats import TILE_SHAPES, DataFormat

CODES = {
    "FP32": 0,
    "FP16": 1,
    "BFP8A": 2,
    "BFP4A": 3,
    "TF32": 4,
    "BF16": 5,
    "BFP8": 6,
    "BFP4": 7,
    "INT32": 8,
    "UINT32": 8,
    "INT32_RAW": 8,
    "INT16": 9,
    "UINT16": 9,
    "FP8_E5M2": 10,
    "FP8_E4M3": 10,
    "BFP2A": 11,
    "INT8": 14,
    "UINT8": 14,
    "BFP2": 15,
}


@pytest.mark.rule("I.1")
def test_every_format_has_its_code() -> None:
    assert {f.name: f.code for f in DataFormat} == CODES


@pytest.mark.parametrize("data_format", list(DataFormat))
def test_low_code_bits_give_the_width_class(data_format: DataFormat) -> None:
    widths = {0: (32,), 1: (16,), 2: (8,), 3: (4, 2)}[data_format.code & 3]
    assert data_format.bits in widths


@pytest.mark.parametrize(
    ("names", "size"),
    [
        (("FP32", "TF32", "INT32", "UINT32"), 4096),
        (("FP16", "BF16", "UINT16", "INT16"), 2048),
        (("FP8_E5M2", "FP8_E4M3", "INT8", "UINT8"), 1024),
        (("BFP8", "BFP8A"), 1088),
        (("BFP4", "BFP4A"), 576),
        (("BFP2", "BFP2A"), 320),
    ],
)
def test_size_of_a_32x32_tile(names: tuple[str, ...], size: int) -> None:
    assert {DataFormat[name].tile_bytes() for name in names} == {size}


@pytest.mark.parametrize("tile_shape", TILE_SHAPES)
def test_bfp_exponent_section_is_one_byte_a_face_row(tile_shape: tuple[int, int]) -> None:
    datums = tile_shape[0] * tile_shape[1]
    assert DataFormat.BFP4.exponent_section_bytes(datums) == datums // 16
    assert DataFormat.BFP4.tile_bytes(tile_shape) == datums // 16 + datums // 2


@pytest.mark.parametrize(("datums", "size"), [(0, 0), (1, 16), (16, 16), (256, 16), (257, 32)])
def test_exponent_section_is_rounded_up_to_16_bytes(datums: int, size: int) -> None:
    assert DataFormat.BFP8.exponent_section_bytes(datums) == size


def test_families_biases_and_mode_bits() -> None:
    assert (DataFormat.BFP8.exponent_family, DataFormat.BFP8.exponent_bias) == ("B", 127)
    assert (DataFormat.BFP8A.exponent_family, DataFormat.BFP8A.exponent_bias) == ("A", 15)
    assert (DataFormat.FP8_E4M3.exponent_bias, DataFormat.INT8.exponent_family) == (7, None)
    assert [f.name for f in DataFormat if f.needs_e4m3_bit] == ["FP8_E4M3"]
    assert [f.name for f in DataFormat if f.needs_unsigned_bit] == ["UINT8"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bf16", "BF16"),
        ("Float16_b", "BF16"),
        ("float16-b", "BF16"),
        ("DataFormat.Float16", "FP16"),
        ("Bfp8_b", "BFP8"),
        ("bfloat8_b", "BFP8"),
        ("bfp8", "BFP8"),
        ("Bfp4_a", "BFP4A"),
        ("Lf8", "FP8_E5M2"),
        ("Fp8_e4m3", "FP8_E4M3"),
        ("float8_e4m3fn", "FP8_E4M3"),
        ("UInt16", "UINT16"),
        (" int32 ", "INT32"),
        ("Tf32", "TF32"),
    ],
)
def test_parse_accepts_the_spellings_of_documents_headers_and_libraries(name: str, expected: str) -> None:
    assert DataFormat.parse(name) is DataFormat[expected]


@pytest.mark.parametrize("data_format", list(DataFormat))
def test_parse_accepts_each_member_and_its_name(data_format: DataFormat) -> None:
    assert DataFormat.parse(data_format) is data_format
    assert DataFormat.parse(data_format.name) is data_format


def test_parse_suggests_the_nearest_name() -> None:
    with pytest.raises(FormatError, match=r"unknown data format 'blfoat16'[\s\S]*did you mean BF16\?"):
        DataFormat.parse("blfoat16")


@pytest.mark.parametrize("name", ["Bfp8", "Bfp4", "Bfp2"])
def test_parse_refuses_the_name_that_means_either_family(name: str) -> None:
    with pytest.raises(FormatError, match=f"ambiguous[\\s\\S]*'{name.lower()}a'[\\s\\S]*'{name.lower()}_b'"):
        DataFormat.parse(name)


def test_parse_refuses_what_is_no_name() -> None:
    with pytest.raises(FormatError, match="not int"):
        DataFormat.parse(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("data_format", list(DataFormat))
def test_from_code_inverts_code_and_mode_bits(data_format: DataFormat) -> None:
    found = DataFormat.from_code(
        data_format.code, e4m3=data_format.needs_e4m3_bit, unsigned=data_format.needs_unsigned_bit
    )
    carriers = {"UINT32": "INT32", "INT32_RAW": "INT32", "UINT16": "INT16"}
    assert found.name == carriers.get(data_format.name, data_format.name)


@pytest.mark.parametrize("code", [12, 13, 16, -1])
def test_from_code_refuses_unassigned_codes(code: int) -> None:
    with pytest.raises(FormatError, match=f"code {code} is unassigned"):
        DataFormat.from_code(code)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("f4", "FP32"),
        (">f4", "FP32"),
        ("f2", "FP16"),
        (ml_dtypes.bfloat16, "BF16"),
        (ml_dtypes.float8_e5m2, "FP8_E5M2"),
        (ml_dtypes.float8_e4m3fn, "FP8_E4M3"),
        ("i4", "INT32"),
        ("u4", "UINT32"),
        ("i2", "INT16"),
        ("u2", "UINT16"),
        ("i1", "INT8"),
        ("u1", "UINT8"),
    ],
)
def test_from_dtype(dtype: object, expected: str) -> None:
    assert DataFormat.from_dtype(dtype) is DataFormat[expected]


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.bool_, np.complex64])
def test_from_dtype_refuses_what_no_format_keeps(dtype: type) -> None:
    with pytest.raises(FormatError, match=np.dtype(dtype).name):
        DataFormat.from_dtype(dtype)


@pytest.mark.parametrize(
    "module", ["data_format", "layout", "floats", "bfp", "integers", "interchange", "tensor", "dump"]
)
def test_examples_in_docstrings_hold(module: str) -> None:
    results = doctest.testmod(importlib.import_module(f"bhemu.formats.{module}"))
    assert results.failed == 0
