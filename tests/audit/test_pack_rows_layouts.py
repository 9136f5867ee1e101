"""Audit rows 002.14, 002.17.2, 000.0d: whole tiles of 32 x 32, packed as software does it, byte by byte (I.4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.audit.pack_words import Words
from tests.tensix.packer_bench import (
    BF16,
    BFP2,
    BFP2A,
    BFP4,
    BFP4A,
    BFP8,
    BFP8A,
    FP8,
    FP16,
    FP32,
    INT8,
    INT16,
    INT32,
    TF32,
)

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Layout:
    """How the packer is set up for a format, and what it must write."""

    code: int
    source: int
    """In_data_format."""
    width: int
    """Bits of a datum in L1."""
    top: int
    """Magnitudes 0 to `top` are exact; each 16 datums contain `top`."""
    control: int = 0
    """Word 18."""
    extra: int = 0
    """Word 71."""
    bias: int = 0
    """Exponent bias of a BFP format, 0 of others."""


WIDE = 1
RAW = 4
LAYOUTS = {
    "FP32": Layout(FP32, FP32, 32, 100000, WIDE),
    "TF32": Layout(TF32, TF32, 32, 1023, WIDE),
    "INT32": Layout(INT32, INT32, 32, 0x7FFFFFFF, WIDE),
    "BF16": Layout(BF16, BF16, 16, 255),
    "FP16": Layout(FP16, FP16, 16, 1023),
    "INT16": Layout(INT16, INT16, 16, 0x7FFF),
    "FP8 E5M2": Layout(FP8, FP16, 8, 7),
    "FP8 E4M3": Layout(FP8, FP16, 8, 15, extra=1 << 23),
    "INT8": Layout(INT8, INT8, 8, 127, WIDE),
    "UINT8": Layout(INT8, INT8, 8, 255, WIDE | 2),
    "BFP8": Layout(BFP8, BF16, 8, 127, bias=127),
    "BFP4": Layout(BFP4, BF16, 4, 7, bias=127),
    "BFP2": Layout(BFP2, BF16, 2, 1, bias=127),
    "BFP8a": Layout(BFP8A, FP16, 8, 127, bias=15),
    "BFP4a": Layout(BFP4A, FP16, 4, 7, bias=15),
    "BFP2a": Layout(BFP2A, FP16, 2, 1, bias=15),
}
SIZES = {
    **dict.fromkeys(("FP32", "TF32", "INT32"), 4096),
    **dict.fromkeys(("BF16", "FP16", "INT16"), 2048),
    **dict.fromkeys(("FP8 E5M2", "FP8 E4M3", "INT8", "UINT8"), 1024),
    **dict.fromkeys(("BFP8", "BFP8a"), 1088),
    **dict.fromkeys(("BFP4", "BFP4a"), 576),
    **dict.fromkeys(("BFP2", "BFP2a"), 320),
}
"""Bytes of a tile of 4 faces (I.1)."""


def numbers(layout: Layout) -> Integers:
    """int64 [1024] in the order of faces, rows, columns."""
    rng = np.random.default_rng(layout.code)
    values = rng.integers(0, layout.top, 1024, endpoint=True).reshape(64, 16)
    values[np.arange(64), rng.integers(0, 16, 64)] = layout.top
    signs = rng.choice([-1, 1], values.shape)
    return np.asarray((values if layout.control & 2 else values * signs).reshape(-1))


def sign_magnitude(values: Integers, bits: int) -> Integers:
    return np.asarray(np.abs(values) | (values < 0).astype(np.int64) << (bits - 1))


def float_bits(values: Integers, kind: str) -> Integers:
    """Patterns of exact float16 or float32 values."""
    floats = values.astype(kind)
    assert np.array_equal(floats.astype(np.int64), values)
    return np.asarray(floats.view({"f2": np.uint16, "f4": np.uint32}[kind]).astype(np.int64))


def fill_dst(bench: Words, layout: Layout, values: Integers) -> None:
    """64 rows of Dst, in the view that the packer reads."""
    rows = values.reshape(64, 16)
    for row in range(64):
        datums = rows[row]
        if layout.control & WIDE:
            is_integer = layout.source in (INT32, INT8)
            words = sign_magnitude(datums, 32) if is_integer else float_bits(datums, "f4")
            physical = (row & 0x1F8) << 1 | row & 7
            bench.bf16_row(physical, words >> 16)
            bench.tile["dst"][physical + 8] = words & 0xFFFF
        elif layout.source == INT16:
            bench.tile["dst"][row] = sign_magnitude(datums, 16)
        elif layout.source == FP16:
            bench.fp16_row(row, float_bits(datums, "f2"))
        else:
            bench.bf16_row(row, float_bits(datums, "f4") >> 16)


def expected_bytes(name: str, layout: Layout, values: Integers) -> bytes:
    """The tile in L1, from the description of its format."""
    if layout.bias:
        exponent = layout.bias + layout.top.bit_length() - 1  # of the largest datum, which every group has
        codes = np.where(values == 0, 0, sign_magnitude(values, layout.width))
        packed = sum(int(code) << layout.width * i for i, code in enumerate(codes))
        return bytes([exponent] * 64) + packed.to_bytes(1024 * layout.width // 8, "little")
    if layout.code in (INT32, INT16, INT8):
        datums = values if layout.control & 2 else sign_magnitude(values, layout.width)
    elif layout.width == 32:
        datums = float_bits(values, "f4")
    elif layout.code == BF16:
        datums = float_bits(values, "f4") >> 16
    elif layout.code == FP16:
        datums = float_bits(values, "f2")
    else:
        half = float_bits(values, "f2")
        exponent, mantissa = half >> 10 & 31, half & 1023
        byte = exponent << 2 | mantissa >> 8 if "E5M2" in name else exponent - 8 << 3 | mantissa >> 7
        datums = np.where(values == 0, 0, (half >> 15 & 1) << 7 | byte)
    return datums.astype(f"<u{layout.width // 8}").tobytes()


def pack_tile(bench: Words) -> list[int]:
    """Sixteen PACRs of 64 datums, four a face, as the MOP of LLK does; returns the first Dst row of each.

    Modifier 0: Y + 4; 1: clear Y and Z; 2: clear Y, next Z (002.4.6f).
    """
    for entry, value in ((37, 0x0104), (38, 0x2820), (39, 0x1120)):
        bench.setc16(entry, value)
    first = []
    for face in range(4):
        for part in range(4):
            modifier = 0 if part < 3 else 1 if face == 3 else 2
            first.append(16 * bench.counter(0, "Z") + bench.counter(0, "Y"))
            bench.send(AddrMode=modifier, Last=int(face == part == 3))
    return first


@pytest.mark.rule("002.14.1", "002.14.2")
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_tile_of_each_format_byte_by_byte(name: str) -> None:
    """002.14.1, 002.14.2 to 002.14.9, 000.0d.

    FP32 and TF32 4096 bytes, TF32 with 13 zero bits; 16-bit 2048 (INT16 as it is); 8-bit 1024; BFP 64 exponents, one
    for each 16 datums, and then the datums, of BFP4 and BFP2 the first in the lowest bits; A formats the same.
    """
    layout = LAYOUTS[name]
    bench = Words(layout.source, layout.code)
    bench.wrcfg(18, layout.control)
    bench.bits(71, 0, 32, layout.extra)
    size = (4, 2, 1)[layout.source & 3]
    bench.wrcfg(12, 16 * size << 16)
    bench.wrcfg(13, 256 * size)
    bench.wrcfg(68, (4 << 16) if layout.bias else 0)
    values = numbers(layout)
    fill_dst(bench, layout, values)
    pack_tile(bench)
    tile = expected_bytes(name, layout, values)
    assert len(tile) == SIZES[name]
    assert bytes(bench.l1("u1", len(tile))) == tile
    assert bench.untouched(len(tile))
    if name == "TF32":
        assert not any(word & 0x1FFF for word in bench.l1("<u4", 1024))


@pytest.mark.rule("002.14.1")
def test_tf32_output_of_finer_values_has_13_zero_bits() -> None:
    """1 + 2^-11 + ... is rounded by the early conversion, and what L1 holds is the ten-bit value."""
    bench = Words(TF32, TF32, read_32b=1)
    bench.word_row(0, [0x3F801FFF, 0x3F800FFF] * 8)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1("<u4", 2) == [0x3F802000, 0x3F800000]


@pytest.mark.rule("002.17.1e", "002.17.2")
def test_a_tile_is_16_pacrs_of_64_datums() -> None:
    """Four a face, each four adjacent rows; four PACRs would be one face."""
    bench = Words()
    bench.wrcfg(13, 512)
    assert pack_tile(bench) == list(range(0, 64, 4))
    assert bench.rows(64) == list(range(64))
    assert bench.tile["issued"][2, 0x41] == 16
    assert (bench.counter(0, "Y"), bench.counter(0, "Z")) == (0, 0)
    assert not bench.tile.pack.open


@pytest.mark.rule("002.14.5")
def test_one_exponent_byte_serves_one_row_of_a_face() -> None:
    """16 groups of 16 datums a face are 16 bytes."""
    bench = Words(BF16, BFP8)
    bench.wrcfg(13, 512)
    bench.wrcfg(68, 4 << 16)
    for row in range(64):
        bench.bf16_row(row, [(row + 64) << 7] * 16)
    pack_tile(bench)
    assert bench.l1("u1", 64) == list(range(64, 128))
    assert bench.l1("u1", 1024, 64) == [0x40] * 1024
