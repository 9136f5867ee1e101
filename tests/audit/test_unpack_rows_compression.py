"""Audit rows 001.1.3, 001.2.3: compressed tiles built by hand from the layout, and the packer's tiles given back."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from bhemu.errors import MissingSpecification
from tests.tensix.packer_bench import L1_BASE, Bench
from tests.tensix.unpacker import BF16, BFP2, BFP4, BFP8, INT16, Unpacker, src_cells

WIDTH = 64
ROWS = 16
UNITS_OF_ROW_STARTS = 3
"""16-byte units of (16 rows + 1) 16-bit row start indices: 34 bytes."""


def bf16_bits(values: NDArray[np.int64]) -> NDArray[np.uint16]:
    """Upper halves of float32."""
    return np.asarray(values.astype(np.float32).view(np.uint32) >> 16, np.uint16)


def rows_of(seed: int, top: int, zeros: float) -> NDArray[np.int64]:
    """Signed integers 1 .. `top`; row 5 is all zeros, rows 0 and 15 begin and end with runs above 15 zeros."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(1, top + 1, (ROWS, WIDTH)) * rng.choice([-1, 1], (ROWS, WIDTH))
    rows = rows * (rng.random((ROWS, WIDTH)) >= zeros)
    rows[5] = 0
    rows[0, :33] = 0
    rows[15, 20:] = 0
    rows[7] = 0
    rows[7, 63] = 1
    return np.asarray(rows)


def packed(rows: NDArray[np.int64], out_format: int) -> Bench:
    """16 compression rows of 64 datums, each from four rows of Dst by one PACR."""
    bench = Bench(BF16, out_format)
    for row in range(4 * ROWS):
        bench.bf16_row(row, bf16_bits(rows.reshape(-1, 16)[row]))
    is_bfp = out_format != BF16
    bench.packer(
        Disable_zero_compress=0,
        Row_start_section_size=UNITS_OF_ROW_STARTS,
        Exp_section_size=ROWS * WIDTH // 16 // 16 if is_bfp else 0,
    )
    bench.modifier(0, YsrcIncr=4)
    for row in range(ROWS):
        bench.pacr(ReadIntfSel=0, Last=int(row == ROWS - 1))
    return bench


def reader(content: NDArray[np.uint8], data_format: int, *, unpacker: int = 1) -> Unpacker:
    """An unpacker in front of a compressed tile of 16 x 64 datums at TILE."""
    u = Unpacker(unpacker)
    u.formats(data_format)
    u.l1(content, "<u1")
    for name, value in {
        "THCON_SEC{}_REG2_Disable_zero_compress_cntx0": 0,
        "THCON_SEC{}_REG0_TileDescriptor_x_dim": WIDTH,
        "THCON_SEC0_REG5_Tile_x_dim_cntx0": WIDTH,
        "THCON_SEC{}_REG0_TileDescriptor_y_dim": ROWS,
        "THCON_SEC{}_REG0_TileDescriptor_z_dim": 1,
    }.items():
        u.set(name, value)
    return u


def output(bench: Bench) -> NDArray[np.uint8]:
    return np.array(bench.tile["l1"][L1_BASE : L1_BASE + 0x2000])


@pytest.mark.rule("001.1.3a", "001.1.3d", "I.4")
@pytest.mark.parametrize("unpacker", [0, 1])
@pytest.mark.parametrize(("data_format", "top"), [(BF16, 255), (BFP8, 15), (BFP4, 7)])
@pytest.mark.parametrize("zeros", [0.0, 0.4, 0.95, 1.0])
def test_pack_then_unpack_gives_the_tile_back(zeros: float, data_format: int, top: int, unpacker: int) -> None:
    """All values are exact in the format whatever 16 stored datums share an exponent."""
    rows = rows_of(int(zeros * 100), top, zeros)
    u = reader(output(packed(rows, data_format)), data_format, unpacker=unpacker)
    for y in range(ROWS):
        u.adc(x=0, x1=WIDTH - 1, y=y)
        assert u.unpack()
        np.testing.assert_array_equal(u.src()[:4].reshape(-1), src_cells(bf16_bits(rows[y]), BF16))


@pytest.mark.rule("001.2.3e", "I.4")
def test_pack_then_unpack_of_a_part_of_a_row_and_of_several_rows() -> None:
    """X range within a row; RowSearch for rows 3 .. 8."""
    rows = rows_of(1, 200, 0.7)
    u = reader(output(packed(rows, BF16)), BF16)
    for y in (0, 5, 7, 15):
        u.adc(x=19, x1=60, y=y)
        assert u.unpack()
        np.testing.assert_array_equal(u.src().reshape(-1)[:42], src_cells(bf16_bits(rows[y, 19:61]), BF16))
    u.adc(y=3, x=8)
    assert u.unpack(RowSearch=1)
    np.testing.assert_array_equal(u.src()[:24].reshape(-1), src_cells(bf16_bits(rows[3:9].reshape(-1)), BF16))


@pytest.mark.rule("001.1.3a", "001.1.3d")
def test_compression_saves_space_and_its_counts_are_nibbles_of_0_to_15() -> None:
    """A row of 64 zeros is stored as datums 0, 16, 32, 48 and the last, one count of 14."""
    bench = packed(np.zeros((ROWS, WIDTH), np.int64), BF16)
    assert bench.l1("<u2", ROWS + 1) == [5 * row for row in range(ROWS + 1)]
    counts = bench.l1("u1", 16, 16 * UNITS_OF_ROW_STARTS + 64)
    nibbles = [n for byte in counts for n in (byte & 15, byte >> 4)]
    assert nibbles[:10] == [15, 15, 15, 14, 0] * 2


def nibble_bytes(counts: list[int]) -> bytes:
    """32 zero counts, the first in the low half of the first byte."""
    filled = counts + [0] * (32 - len(counts))
    return bytes(filled[i] | filled[i + 1] << 4 for i in range(0, 32, 2))


@pytest.mark.rule("001.1.3a", "001.1.3d", "001.14.2d")
def test_a_tile_built_by_hand_decodes() -> None:
    """Row starts as datum indices, then groups of 32 datums with 32 counts.

    Two rows of 64 datums: row 0 is 33 datums that carry 31 zeros in all, so that row 1 starts in the second group, at
    index 33, byte 32 * 2 + 16 + 2 of the datums; as a byte offset the entry would point into the first group.
    """
    first = list(range(1, 34))
    first_counts = [0] * 33
    first_counts[0], first_counts[31], first_counts[32] = 15, 1, 15
    second = [1001, 1002, 1003, 1004]
    second_counts = [15, 15, 15, 15]
    datums, counts = first + second, first_counts + second_counts
    content = np.array([0, 33, 37], "<u2").tobytes() + bytes(10)
    for start in (0, 32):
        part = datums[start : start + 32] + [0xDEAD] * 32
        content += np.array(part[:32], "<u2").tobytes() + nibble_bytes(counts[start : start + 32])
    u = reader(np.frombuffer(content, np.uint8), INT16)
    u.set("THCON_SEC1_REG0_TileDescriptor_y_dim", 2)
    u.adc(x=0, x1=63, y=0)
    assert u.unpack()
    row0 = [1] + [0] * 15 + list(range(2, 33)) + [0] + [33] + [0] * 15
    np.testing.assert_array_equal(u.values()[:4].reshape(-1), row0)
    u.adc(x=0, x1=63, y=1)
    assert u.unpack()
    row1 = [v for n in range(1001, 1005) for v in [n] + [0] * 15]
    np.testing.assert_array_equal(u.values()[:4].reshape(-1), row1)


@pytest.mark.rule("001.1.3a", "001.1.2a")
def test_a_bfp_tile_built_by_hand_has_its_exponents_between_row_starts_and_datums() -> None:
    """2 rows of 64 datums have an exponent section of 8 bytes rounded up to 16.

    The second exponent serves augmented datums 16 .. 31, not datums 16 .. 31 of the tile (001.1.3c).
    """
    datums = [0x40] * 17 + [0] * 15  # 1.0 * 2^(E - 127)
    counts = [15, 15, 15, *[0] * 13, 2]  # 16 stored datums and the 45 zeros make 61, the 17th with 2 zeros the rest
    content = np.array([0, 17, 17], "<u2").tobytes() + bytes(10)
    content += bytes([120, 130]) + bytes(14)
    content += bytes(datums) + nibble_bytes(counts)
    u = reader(np.frombuffer(content, np.uint8), BFP8)
    u.set("THCON_SEC1_REG0_TileDescriptor_y_dim", 2)
    u.adc(x=0, x1=63, y=0)
    assert u.unpack()
    expected = ([120] + [0] * 15) * 3 + [120] * 13 + [130, 0, 0]
    np.testing.assert_array_equal(u.src()[:4].reshape(-1), expected)


@pytest.mark.rule("I.4")
def test_compressed_two_bit_tiles_are_refused_by_the_packer() -> None:
    """Groups of 32 two-bit datums would be 8 bytes, for which no layout is documented."""
    with pytest.raises(MissingSpecification, match=r"zero compression .* with the 2-bit"):
        packed(rows_of(0, 1, 0.5), BFP2)
