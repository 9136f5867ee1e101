"""Packer: zero compression and tile sizes.

What the reference executes is covered by the vectors.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.tensix.packer_bench import (
    BF16,
    BFP8,
    Bench,
)


def unpack_compressed(bench: Bench, rows: int, size: int, data: int) -> list[list[int]]:
    """Rows of datums from the compressed layout of I.4, read with nothing but its description."""
    starts = bench.l1("<u2", rows + 1)
    result = []
    for row in range(rows):
        datums = []
        for n in range(starts[row], starts[row + 1]):
            group = data + n // 32 * (32 * size + 16)
            (datum,) = bench.l1(f"<u{size}", 1, group + n % 32 * size)
            count = bench.l1("u1", 16, group + 32 * size)[n % 32 // 2] >> n % 2 * 4 & 15
            datums += [datum] + [0] * count
        result.append(datums)
    return result


@pytest.mark.rule("002.11")
@pytest.mark.parametrize("zeros", [0.0, 0.5, 0.9, 1.0])
def test_zero_compression_keeps_every_datum(zeros: float) -> None:
    rng = np.random.default_rng(int(zeros * 10))
    bench = Bench()
    rows = rng.integers(0x3F80, 0x4100, (8, 16)) * (rng.random((8, 16)) >= zeros)
    for row in range(8):
        bench.bf16_row(row, rows[row])
    bench.packer(Disable_zero_compress=0, Row_start_section_size=2)
    bench.modifier(0, YsrcIncr=1)
    for row in range(8):
        bench.pacr(Last=row == 7)
    assert unpack_compressed(bench, 8, 2, 32) == rows.tolist()
    stored = bench.tile.pack.augmented
    assert stored == 128 if zeros == 0 else stored <= 128
    if zeros == 1.0:
        assert stored == 16  # first and last datum of each row
        assert bench.tile.pack.all_zero_flags == 0xFF


@pytest.mark.rule("002.11.1b")
def test_concat_continues_the_compression_row_in_the_next_pacr() -> None:
    bench = Bench()
    bench.bf16_row(0, [0x3F80] + [0] * 15)
    bench.packer(Disable_zero_compress=0, Row_start_section_size=1)
    bench.pacr(Concat=1, Last=0)
    bench.pacr(Concat=0, Last=0)
    bench.pacr(Concat=0, Last=1)
    assert bench.tile.pack.rows == 2
    assert [len(row) for row in unpack_compressed(bench, 2, 2, 16)] == [32, 16]


@pytest.mark.rule("002.11.1a")
def test_runs_longer_than_a_count_are_split() -> None:
    bench = Bench()
    bench.bf16_row(0, [0x3F80] + [0] * 15)
    bench.bf16_row(1, [0] * 16)
    bench.packer(Disable_zero_compress=0, Row_start_section_size=1)
    bench.pacr(ReadIntfSel=3)
    assert unpack_compressed(bench, 1, 2, 16) == [[0x3F80] + [0] * 31]
    assert bench.l1("<u2", 2) == [0, 3]


@pytest.mark.rule("I.4")
def test_compressed_bfp_has_an_exponent_for_16_stored_datums() -> None:
    bench = Bench(BF16, BFP8)
    bench.packer(Disable_zero_compress=0, Row_start_section_size=1, Exp_section_size=1)
    bench.bf16_row(0, [0x3F80, 0, 0, 0, 0, 0, 0, 0x4080] + [0] * 8)
    bench.pacr()
    assert bench.l1("<u2", 2) == [0, 3]
    assert bench.l1("u1", 2, 16) == [129, 0]
    assert bench.l1("u1", 4, 32) == [0x10, 0x40, 0, 0]
    assert bench.l1("u1", 16, 64)[:2] == [0x76, 0]


@pytest.mark.rule("002.11.4")
def test_zero_flags_can_be_turned_off() -> None:
    bench = Bench()
    bench.packer(Disable_zero_compress=0, Row_start_section_size=1, Disable_pack_zero_flags=1)
    bench.pacr()
    assert bench.tile.pack.all_zero_flags == 0


def test_tile_sizes_add_up_per_thread_on_last() -> None:
    bench = Bench(BF16, BFP8)
    bench.packer(Exp_section_size=4, Add_tile_header_size=1)
    bench.pacr(ReadIntfSel=0, Last=0)
    assert bench.tile.pack.acc_tile_size[2] == 0
    bench.pacr(ReadIntfSel=0)
    assert bench.tile.pack.last_tile_size == 4 + 8
    assert bench.tile.pack.last_thread == 2
    bench.pacr(ReadIntfSel=0)
    assert bench.tile.pack.acc_tile_size.tolist() == [0, 0, (4 + 8 + 1) + (4 + 4 + 1)]
