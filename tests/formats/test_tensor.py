"""Whole tensors: layout of the bytes, round trips, views, refusals."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bhemu.errors import FormatError
from bhemu.formats import TILE_SHAPES, DataFormat, bfp, decode, encode, floats, tensor_size, tilize

FORMATS = list(DataFormat)
ORDERS = [None, *TILE_SHAPES]
ids = {"ids": lambda f: getattr(f, "name", str(f))}


def numbers(data_format: DataFormat, shape: tuple[int, ...], seed: int = 0) -> NDArray[Any]:
    """Values that the format holds, as its own dtype."""
    rng = np.random.default_rng(seed)
    if data_format.is_integer:
        return rng.integers(0, 100, shape).astype(data_format.dtype)
    values = rng.choice([0.0, 0.5, 1.0, 1.5, -1.0, -0.5] if data_format.bits > 2 else [0.0, 1.0, -1.0], shape)
    values[..., ::16] = 1.0  # the largest in its group for BFP2, where only it is certain to survive
    return values.astype(data_format.dtype)


@pytest.mark.parametrize("tile_shape", ORDERS, **ids)
@pytest.mark.parametrize("data_format", FORMATS, **ids)
@pytest.mark.parametrize("rounding", ["nearest", "hardware"])
def test_values_of_the_format_survive_encode_and_decode(
    data_format: DataFormat, tile_shape: tuple[int, int] | None, rounding: Any
) -> None:
    tensor = numbers(data_format, (2, 64, 96))
    data = encode(tensor, data_format, tile_shape=tile_shape, rounding=rounding)
    assert data.dtype == np.uint8
    assert data.shape == (tensor_size(tensor.shape, data_format, tile_shape),)
    back = decode(data, data_format, tensor.shape, tile_shape=tile_shape)
    assert back.dtype == data_format.dtype
    assert np.array_equal(back, tensor)


@pytest.mark.parametrize("tile_shape", TILE_SHAPES, **ids)
@pytest.mark.parametrize("data_format", FORMATS, **ids)
def test_a_tiled_tensor_is_its_tiles_one_after_another(data_format: DataFormat, tile_shape: tuple[int, int]) -> None:
    height, width = tile_shape
    tensor = numbers(data_format, (2 * height, 2 * width), seed=1)
    whole = encode(tensor, data_format, tile_shape=tile_shape).tobytes()
    tiles = [
        encode(tensor[r : r + height, c : c + width], data_format, tile_shape=tile_shape).tobytes()
        for r in (0, height)
        for c in (0, width)
    ]
    assert whole == b"".join(tiles)
    assert {len(tile) for tile in tiles} == {data_format.tile_bytes(tile_shape)}


@pytest.mark.parametrize("data_format", [f for f in FORMATS if f.is_bfp], **ids)
def test_a_bfp_tile_is_its_exponents_then_its_datums(data_format: DataFormat) -> None:
    rng = np.random.default_rng(4)
    tensor = (rng.standard_normal((32, 32)) * 2.0 ** rng.integers(-6, 6, (32, 32))).astype(np.float32)
    data = encode(tensor, data_format)
    exponents, datums = bfp.encode_nearest(tilize(tensor).reshape(64, 16), data_format)
    assert data[:64].tolist() == exponents.tolist()
    assert bfp.unpack_datums(data[64:], data_format.bits).reshape(64, 16).tolist() == datums.tolist()


def test_a_row_major_bfp_tensor_has_one_exponent_section_with_a_short_last_group() -> None:
    tensor = np.ones(19, np.float32) * np.where(np.arange(19) < 16, 1.0, 4.0)
    data = encode(tensor, "bfp4", tile_shape=None)
    assert data.size == 16 + 10 == tensor_size(19, "bfp4", None)
    assert data[:16].tolist() == [127, 129] + [0] * 14
    assert data[16:].tolist() == [0x44] * 9 + [0x04]
    assert decode(data, "bfp4", 19, tile_shape=None).tolist() == tensor.tolist()


def test_conversion_in_chunks_leaves_no_seams() -> None:
    tensor = np.random.default_rng(7).standard_normal((1024, 544)).astype(np.float32)  # over two chunks, not whole ones
    for rounding in ("nearest", "hardware"):
        whole = encode(tensor, "bfp8", rounding=rounding)  # type: ignore[arg-type]
        rows = [encode(tensor[r : r + 32], "bfp8", rounding=rounding) for r in range(0, 1024, 32)]  # type: ignore[arg-type]
        assert np.array_equal(whole, np.concatenate(rows))
    parts = [decode(row, "bfp8", (32, 544)) for row in rows]
    assert np.array_equal(decode(whole, "bfp8", tensor.shape), np.concatenate(parts))


@settings(max_examples=60)
@given(
    data_format=st.sampled_from(FORMATS),
    tile_shape=st.sampled_from(ORDERS),
    raw=st.binary(min_size=16, max_size=64),
)
def test_any_bytes_decode_and_encode_to_the_same_values(
    data_format: DataFormat, tile_shape: tuple[int, int] | None, raw: bytes
) -> None:
    size = tensor_size((32, 32), data_format, tile_shape)
    data = np.resize(np.frombuffer(raw, np.uint8), size).copy()
    if data_format.is_bfp:  # exponents that no datum takes out of range
        for tile in data.reshape(1024 // math.prod(tile_shape) if tile_shape else 1, -1):
            section = data_format.exponent_section_bytes(math.prod(tile_shape) if tile_shape else 1024)
            tile[:section] = tile[:section] % 16 + 12
    values = decode(data, data_format, (32, 32), tile_shape=tile_shape)
    if np.isnan(values.astype(np.float64)).any() or (data_format.is_bfp and np.isinf(values.astype(np.float64)).any()):
        return
    again = decode(encode(values, data_format, tile_shape=tile_shape), data_format, (32, 32), tile_shape=tile_shape)
    assert np.array_equal(again, values)


# Memory ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["FP32", "FP16", "BF16", "FP8_E5M2", "FP8_E4M3", "UINT8", "UINT32"])
def test_row_major_bits_that_match_are_not_copied(name: str) -> None:
    tensor = numbers(DataFormat[name], (4, 5))
    data = encode(tensor, name, tile_shape=None)
    assert np.shares_memory(data, tensor)
    assert np.shares_memory(decode(data, name, (4, 5), tile_shape=None), tensor)


def test_decoding_bytes_gives_a_read_only_view() -> None:
    assert not decode(bytes(8), "fp32", 2, tile_shape=None).flags.writeable
    assert decode(bytearray(8), "fp32", 2, tile_shape=None).flags.writeable


def test_strided_and_big_endian_inputs_mean_the_same_numbers() -> None:
    tensor = np.random.default_rng(5).standard_normal((64, 64)).astype(np.float32)
    for data_format in (DataFormat.FP32, DataFormat.BFP8, DataFormat.FP16):
        expected = encode(tensor[::2, 1::2].copy(), data_format)
        assert np.array_equal(encode(tensor[::2, 1::2], data_format), expected)
        assert np.array_equal(encode(tensor[::2, 1::2].astype(">f4"), data_format), expected)
        row_major = encode(tensor.T, data_format, tile_shape=None)
        assert np.array_equal(row_major, encode(tensor.T.copy(), data_format, tile_shape=None))


def test_data_may_be_any_buffer_at_any_offset() -> None:
    tensor = np.arange(8, dtype=np.float32)
    storage = np.concatenate([np.zeros(3, np.uint8), tensor.view(np.uint8)])
    for data in (storage[3:], storage.tobytes()[3:], memoryview(storage)[3:], bytearray(storage[3:])):
        assert decode(data, "fp32", (2, 4), tile_shape=None).tolist() == tensor.reshape(2, 4).tolist()


@pytest.mark.parametrize("data_format", FORMATS, **ids)
@pytest.mark.parametrize("tile_shape", [None, (32, 32)], **ids)
def test_empty_tensors(data_format: DataFormat, tile_shape: tuple[int, int] | None) -> None:
    for shape in ((0, 32), (3, 32, 0)):
        data = encode(np.zeros(shape), data_format, tile_shape=tile_shape)
        assert data.size == tensor_size(shape, data_format, tile_shape) == 0
        assert decode(data, data_format, shape, tile_shape=tile_shape).shape == shape


# Roundings and readings --------------------------------------------------------------------------------


def test_hardware_and_nearest_differ_where_the_rules_do() -> None:
    tie = np.array([1.00390625, -1e-40, np.nan], np.float32)
    assert encode(tie, "bf16", tile_shape=None).view(np.uint16).tolist()[0] == 0x3F80
    assert encode(tie, "bf16", tile_shape=None, rounding="hardware").view(np.uint16).tolist() == [0x3F81, 0, 0x7F80]
    large = np.array([70000.0, 1e9], np.float32)
    assert encode(large, "fp16", tile_shape=None).view(np.uint16).tolist() == [0x7C00, 0x7C00]
    packed = encode(large, "fp16", tile_shape=None, rounding="hardware")
    assert decode(packed, "fp16", 2, tile_shape=None, interpretation="tensix").tolist() == [70016.0, 131008.0]


def test_hardware_rounding_starts_from_fp32() -> None:
    wide = np.array([1 + 2.0**-8 - 2.0**-40])  # FP32 rounds it up to the tie
    assert encode(wide, "bf16", tile_shape=None, rounding="hardware").view(np.uint16).tolist() == [0x3F81]
    assert encode(wide, "bf16", tile_shape=None).view(np.uint16).tolist() == [0x3F80]


@pytest.mark.parametrize("via", ["fp32", "bfp8", "bf16"])
def test_intermediate_chooses_the_packer_path(via: str) -> None:
    values = np.random.default_rng(6).standard_normal((32, 32)).astype(np.float32)
    got = encode(values, "bfp8", rounding="hardware", intermediate=via)
    grouped = tilize(values).reshape(64, 16).view(np.uint32)
    exponents, datums = bfp.encode_hardware(grouped, DataFormat.BFP8, via)
    assert got.tobytes() == exponents.tobytes() + datums.tobytes()


@pytest.mark.parametrize("data_format", [f for f in FORMATS if f.kind == "float"], **ids)
def test_tensix_reading_is_float32_of_the_scalar_codec(data_format: DataFormat) -> None:
    rng = np.random.default_rng(8)
    data = rng.integers(0, 256, 64 * data_format.bits // 8, dtype=np.uint8)
    got = decode(data, data_format, (8, 8), tile_shape=None, interpretation="tensix")
    assert got.dtype == np.float32
    expected = floats.decode_tensix(data.view(data_format.bits_dtype), data_format).reshape(8, 8)
    assert np.array_equal(got, expected, equal_nan=True)


def test_a_forced_exponent_leaves_out_the_section() -> None:
    tensor = np.arange(-32, 32, dtype=np.int8).reshape(1, 64)
    data = encode(tensor, "bfp8", tile_shape=None, forced_exponent=133)  # 2**6: units of 1
    assert data.tolist() == [128 | -v if v < 0 else v for v in tensor[0].tolist()]
    assert data.size == tensor_size(64, "bfp8", None, forced_exponent=133)
    assert decode(data, "bfp8", (1, 64), tile_shape=None, forced_exponent=133).tolist() == tensor.tolist()
    assert decode(data, "bfp8", (1, 64), tile_shape=None, forced_exponent=134).tolist() == (tensor * 2.0).tolist()


# Refusals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("array", "dtype", "remedy"),
    [
        (np.ones((32, 32), np.complex64), "complex64", "array.real"),
        (np.full((32, 32), "1"), "<U1", "astype"),
        (np.full((32, 32), None), "object", "astype"),
        (np.zeros((32, 32), "M8[s]"), "datetime64[s]", "view"),
        (np.zeros((32, 32), [("a", "f4")]), "[('a', '<f4')]", "fields"),
        (np.zeros((32, 32), np.longdouble), str(np.dtype(np.longdouble)), "float64"),
    ],
    ids=["complex", "string", "object", "date", "record", "longdouble"],
)
@pytest.mark.parametrize("name", ["BF16", "BFP8", "INT8"])
def test_dtypes_that_are_no_real_numbers_are_refused(array: NDArray[Any], dtype: str, remedy: str, name: str) -> None:
    with pytest.raises(FormatError) as refusal:
        encode(array, name)
    assert refusal.value.message == f"dtype {dtype} cannot be held by {name}"
    assert remedy in str(refusal.value.remedy)


@pytest.mark.parametrize("shape", [(33, 32), (32,), ()])
def test_shapes_that_are_no_whole_tiles_are_refused(shape: tuple[int, ...]) -> None:
    for call in (
        lambda: encode(np.zeros(shape), "bf16"),
        lambda: decode(b"", "bf16", shape),
        lambda: tensor_size(shape, "bf16"),
    ):
        with pytest.raises(FormatError, match=r"pad it to \(\d+, 32\)"):
            call()


def test_wrong_byte_counts_are_refused() -> None:
    with pytest.raises(
        FormatError, match=r"1024 bytes do not hold a BFP8 tensor[\s\S]*takes 1088 bytes \(32x32 tiles\)"
    ):
        decode(bytes(1024), "bfp8", (32, 32))
    with pytest.raises(FormatError, match=r"takes 8 bytes \(row-major\)"):
        decode(bytes(9), "fp32", 2, tile_shape=None)


@pytest.mark.parametrize("data", [np.zeros(4, np.float32), "text", 3], ids=["float32", "str", "int"])
def test_data_that_is_no_bytes_is_refused(data: Any) -> None:
    with pytest.raises(FormatError, match="bytes"):
        decode(data, "fp32", 4, tile_shape=None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rounding": "up"}, "unknown rounding 'up'"),
        ({"forced_exponent": 3}, "no meaning for BF16"),
        ({"intermediate": "bf16"}, "has none"),
        ({"intermediate": "int8", "rounding": "hardware"}, "through INT8 to BF16"),
        ({"data_format": "int8", "intermediate": "fp32", "rounding": "hardware"}, "has none"),
        ({"data_format": "bfp8", "forced_exponent": 256}, "256 is not an exponent of BFP8"),
        ({"data_format": "bfp8a", "forced_exponent": 32}, "32 is not an exponent of BFP8A"),
        ({"data_format": "bfp8", "forced_exponent": 127, "rounding": "hardware"}, "cannot force"),
        ({"tile_shape": (32, 8)}, r"tile shape \(32, 8\)"),
    ],
)
def test_contradicting_options_are_refused(options: dict[str, Any], message: str) -> None:
    options = {"data_format": "bf16", **options}
    with pytest.raises(FormatError, match=message):
        encode(np.ones((32, 32), np.float32), **options)


def test_unknown_interpretation_and_negative_shape_are_refused() -> None:
    with pytest.raises(FormatError, match="unknown interpretation 'host'"):
        decode(bytes(4), "fp32", 1, tile_shape=None, interpretation="host")  # type: ignore[arg-type]
    with pytest.raises(FormatError, match="dimension of shape = -1 is out of range"):
        decode(bytes(4), "fp32", (-1, 1), tile_shape=None)


def test_undefined_a_family_exponents_are_refused() -> None:
    data = np.zeros(272, np.uint8)
    data[3], data[16 + 3 * 16] = 40, 0x40
    with pytest.raises(FormatError, match="group 3: shared exponent 40 with datum 0"):
        decode(data, "bfp8a", (16, 16), tile_shape=(16, 16))


def test_ml_dtypes_inputs_of_any_width_are_exact() -> None:
    small = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn)
    got = decode(encode(small, "fp32", tile_shape=None), "fp32", 256, tile_shape=None)
    assert np.array_equal(got, small.astype(np.float32), equal_nan=True)
