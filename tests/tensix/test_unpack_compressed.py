"""Zero-compressed tiles (I.4, U5, 001.1.3, 001.2.3e): documents only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from bhemu.errors import UndefinedBehavior
from bhemu.formats import bfp
from tests.tensix.unpacker import BF16, BFP4, BFP8, Unpacker, src_cells

WIDTH = 64
ROWS = 8


def compress(rows: NDArray[np.int64]) -> tuple[list[int], list[int], list[int]]:
    """Row start indices, kept datums and zero counts of rows: up to 15 zeros go with the datum before them."""
    starts: list[int] = []
    datums: list[int] = []
    zeros: list[int] = []
    for row in rows:
        starts.append(len(datums))
        for column, value in enumerate(row):
            if value == 0 and column and zeros[-1] < 15:
                zeros[-1] += 1
            else:
                datums.append(int(value))
                zeros.append(0)
    return [*starts, len(datums)], datums, zeros


def image(
    starts: Sequence[int], datums: Sequence[int], zeros: Sequence[int], bits: int, exponents: bytes = b""
) -> bytes:
    """RSI section, exponents, then groups of 32 datums and 32 counts of 4 bits; sections rounded up to 16 bytes."""
    section = np.array(starts, "<u2").tobytes()
    out = section + bytes(-len(section) % 16) + exponents
    for start in range(0, len(datums), 32):
        group = np.zeros(32, np.int64)
        counts = np.zeros(32, np.uint8)
        group[: len(datums[start : start + 32])] = datums[start : start + 32]
        counts[: len(zeros[start : start + 32])] = zeros[start : start + 32]
        if bits == 16:
            out += group.astype("<u2").tobytes()
        else:
            out += bfp.pack_datums(group.astype(np.uint8).reshape(2, 16), bits).tobytes()
        out += bytes(int(counts[i]) | int(counts[i + 1]) << 4 for i in range(0, 32, 2))
    return out


def sparse(seed: int, top: int = 0x10000) -> NDArray[np.int64]:
    rng = np.random.default_rng(seed)
    return np.asarray(rng.integers(1, top, (ROWS, WIDTH)) * (rng.random((ROWS, WIDTH)) < 0.3))


def compressed(content: bytes, unpacker: int = 1) -> Unpacker:
    u = Unpacker(unpacker)
    u.l1(np.frombuffer(content, np.uint8), "<u1")
    u.set("THCON_SEC{}_REG2_Disable_zero_compress_cntx0", 0)
    u.set("THCON_SEC{}_REG0_TileDescriptor_x_dim", WIDTH)
    u.set("THCON_SEC0_REG5_Tile_x_dim_cntx0", WIDTH)
    u.set("THCON_SEC{}_REG0_TileDescriptor_y_dim", ROWS)
    u.set("THCON_SEC{}_REG0_TileDescriptor_z_dim", 1)
    return u


@pytest.mark.parametrize("seed", range(4))
def test_a_whole_row_is_restored_with_its_zeros(seed: int) -> None:
    """RSI entries are indices of augmented datums (001.1.3b), X 0 .. XDim - 1 takes what lies between two of them."""
    rows = sparse(seed)
    u = compressed(image(*compress(rows), 16))
    for y in range(ROWS):
        u.adc(x=0, x1=WIDTH - 1, y=y)
        assert u.unpack()
        np.testing.assert_array_equal(u.values()[:4].reshape(-1), rows[y])


@pytest.mark.rule("001.2.3e")
@pytest.mark.parametrize(("first", "count"), [(0, 10), (5, 1), (17, 40), (63, 1)])
def test_part_of_a_row_is_decompressed_from_the_rows_start(first: int, count: int) -> None:
    """The datums before X are dropped after decompression."""
    rows = sparse(9)
    u = compressed(image(*compress(rows), 16))
    for y in range(ROWS):
        u.t["srcb"][:] = 0
        u.adc(x=first, x1=first + count - 1, y=y)
        assert u.unpack()
        flat = u.values().reshape(-1)
        np.testing.assert_array_equal(flat[:count], rows[y, first : first + count])
        assert not flat[count:].any()


@pytest.mark.rule("U5")
def test_planes_have_their_row_starts_behind_each_other() -> None:
    """Entry (W * ZDim + Z) * YDim + Y."""
    rows = sparse(3)
    u = compressed(image(*compress(rows), 16))
    u.set("THCON_SEC1_REG0_TileDescriptor_y_dim", 2)
    u.set("THCON_SEC1_REG0_TileDescriptor_z_dim", 2)
    u.set("THCON_SEC1_REG0_TileDescriptor_w_dim", 2)
    u.adc(x=0, x1=WIDTH - 1, y=1, z=1, w=1)
    assert u.unpack()
    np.testing.assert_array_equal(u.values()[:4].reshape(-1), rows[7])


@pytest.mark.rule("001.2.3e")
def test_row_search_takes_rows_y_to_x() -> None:
    """The end comes from entry X + 1."""
    rows = sparse(4)
    u = compressed(image(*compress(rows), 16))
    u.adc(y=2, x=4)
    assert u.unpack(RowSearch=1)
    np.testing.assert_array_equal(u.values()[:12].reshape(-1), rows[2:5].reshape(-1))


@pytest.mark.rule("001.1.3c")
@pytest.mark.parametrize(("kind", "bits"), [(BFP8, 8), (BFP4, 4)])
def test_each_exponent_serves_16_augmented_datums(kind: int, bits: int) -> None:
    """The section has the size of the uncompressed tile's."""
    rows = sparse(6, 1 << bits)
    starts, datums, zeros = compress(rows)
    exponents = np.arange(100, 100 + ROWS * WIDTH // 16, dtype=np.uint8)
    u = compressed(image(starts, datums, zeros, bits, exponents.tobytes()))
    u.formats(kind)
    for y in range(ROWS):
        u.adc(x=0, x1=WIDTH - 1, y=y)
        assert u.unpack()
        expected = []
        for n in range(starts[y], starts[y + 1]):
            datum = np.array([[datums[n]] * 16], np.uint8)
            value = bfp.to_bf16_bits(exponents[n // 16 : n // 16 + 1], datum, bits)
            expected += [int(src_cells(value, BF16)[0, 0])] + [0] * zeros[n]
        np.testing.assert_array_equal(u.src()[:4].reshape(-1), expected)


def test_upsampling_and_decompression_combine() -> None:
    """D's inner loops: zeros of both kinds behind each datum."""
    rows = sparse(8)
    u = compressed(image(*compress(rows), 16))
    u.set("THCON_SEC1_REG2_Upsample_rate", 1)
    u.adc(x=0, x1=WIDTH - 1, y=3)
    assert u.unpack()
    expected = np.zeros(2 * WIDTH)
    expected[::2] = rows[3]
    np.testing.assert_array_equal(u.values()[:8].reshape(-1), expected)


@pytest.mark.rule("001.2.6d")
def test_zero_write_inserts_no_zeros() -> None:
    """One zero for each augmented datum."""
    rows = sparse(8)
    starts, datums, zeros = compress(rows)
    u = compressed(image(starts, datums, zeros, 16))
    u.t["srcb"][0] = 0x7FFFF
    u.adc(x=0, x1=WIDTH - 1)
    assert u.unpack(ZeroWrite2=1)
    flat = u.src().reshape(-1)
    count = starts[1] - starts[0]
    assert not flat[:count].any()
    assert set(flat[count:]) == {0x7FFFF}


@pytest.mark.rule("I.4")
def test_falling_row_starts_are_refused() -> None:
    """A start index below the one before means that the section holds something else, such as byte offsets."""
    u = compressed(image([9, 3], [1] * 16, [0] * 16, 16))
    u.adc(x=0, x1=WIDTH - 1)
    with pytest.raises(UndefinedBehavior, match="row start index 3 follows row start index 9"):
        u.unpack()


@pytest.mark.rule("U5")
def test_a_compressed_tile_that_runs_out_of_l1_is_refused_before_anything_is_written() -> None:
    """A partial range reads until it has its datums."""
    u = compressed(b"")
    u.base(0x180000 - 96)
    u.count(63)
    with pytest.raises(UndefinedBehavior, match="0x180000"):
        u.unpack()
    assert not u.src().any()


@pytest.mark.rule("U2")
def test_the_descriptors_flag_counts_in_the_single_context_form() -> None:
    """Word 112 bit 4."""
    rows = sparse(2)
    u = compressed(image(*compress(rows), 16))
    u.set("THCON_SEC1_REG2_Disable_zero_compress_cntx0", 1)
    u.set("THCON_SEC1_REG0_TileDescriptor_uncompressed", 0)
    u.adc(x=0, x1=WIDTH - 1, y=5)
    assert u.unpack(OvrdThreadId=0)
    np.testing.assert_array_equal(u.values()[:4].reshape(-1), rows[5])
