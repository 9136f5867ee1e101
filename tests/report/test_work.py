"""Arithmetic and bytes of operations and kernels, against peaks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bhemu import Chip
from bhemu.isa.assembler import assemble as tensix_word
from bhemu.recording import log as column
from bhemu.recording.noc_requests import READ, WRITE
from bhemu.report.model import make_report
from bhemu.report.noc import LinkTraffic
from bhemu.report.text import report_as_json
from bhemu.report.work import (
    AMOUNT,
    BANK,
    BUSY,
    LINK,
    MATRIX,
    PACKER,
    PEAKS,
    VECTOR,
    work_as_json,
    work_of_request,
    work_of_traffic,
    work_of_words,
)
from tests.chip.noc_programs import B_RUNS, SOFT_RESET
from tests.report.test_noc import DRAM, asked
from tests.riscv.rv_asm import assemble

pytestmark = pytest.mark.plain

PUSH = 0xFFE40000
TILE = (1, 2)


def rows(*words: str) -> np.ndarray:
    """Rows of a log with these words, and nothing else."""
    found = np.zeros((len(words), column.COLUMNS), np.int64)
    found[:, column.WORD] = [tensix_word(word) for word in words]
    return found


def test_words_of_the_matrix_unit_by_their_products() -> None:
    """MVMUL is 8 x 16 by 16 x 16 (math F13), GAPOOL has 4 rows (F16), ELWMUL one product an element (F11)."""
    work = work_of_words(rows("MVMUL", "MVMUL", "GAPOOL", "ELWMUL", "ELWADD", "SETRWC"))
    assert work[MATRIX, AMOUNT] == 2 * 2048 + 1024 + 128 + 128
    assert work[MATRIX, BUSY] == 6


def test_words_of_the_vector_unit_by_their_lanes() -> None:
    work = work_of_words(rows("SFPMAD", "SFPEXEXP", "SFPLOAD", "SFPSETCC", "SFPNOP"))
    assert work[VECTOR, AMOUNT] == 64
    assert work[VECTOR, BUSY] >= 5


def test_bytes_unpacked_and_packed() -> None:
    found = rows("UNPACR", "UNPACR Unpack_block_selection=1", "PACR")
    found[:, column.L1_END] = [129, 64, 96]
    found[2, column.PACK_X] = 32 << 32  # X from 0 to 32: 33 datums, 16 a clock
    work = work_of_words(found)
    assert (work["unpacker 0", AMOUNT], work["unpacker 0", BUSY]) == (129, 2)
    assert (work["unpacker 1", AMOUNT], work["unpacker 1", BUSY]) == (64, 1)
    assert (work[PACKER, AMOUNT], work[PACKER, BUSY]) == (96, 3)


def test_requests_take_flits_of_64_bytes() -> None:
    read, write = work_of_request(asked(READ, DRAM, 65, noc=1)), work_of_request(asked(WRITE, DRAM, 4))
    assert (read["NoC 1 in", AMOUNT], read["NoC 1 in", BUSY]) == (65, 2)
    assert (write["NoC 0 out", AMOUNT], write["NoC 0 out", BUSY]) == (4, 1)


def test_the_busiest_link_and_bank_are_those_of_all_tiles() -> None:
    traffic = LinkTraffic()
    for place in ((1, 2), (2, 2)):
        traffic.add(place, [asked(READ, DRAM, 100)])
    work = work_of_traffic(traffic)
    assert (work[LINK, AMOUNT], work[BANK, AMOUNT]) == (200, 200)


def test_shares_are_of_the_tiles_and_the_nearest_bound_is_first() -> None:
    work = work_of_words(rows(*["MVMUL"] * 6, "SFPMAD"))
    told = work_as_json(work, clocks=10, tiles=2)
    assert told["nearest"] == MATRIX
    matrix = told["resources"][0]
    assert (matrix["per_clock"], matrix["least_clocks"], matrix["share"]) == (6 * 2048 / 20, 3, 0.3)
    assert matrix["per_clock"] / PEAKS[MATRIX].value == pytest.approx(0.3)
    assert told["intensity"] is None


def test_arithmetic_for_each_byte() -> None:
    work = work_of_words(rows("MVMUL"))
    work.update(work_of_request(asked(READ, DRAM, 512)))
    assert work_as_json(work, clocks=1, tiles=1)["intensity"] == 4


def test_a_report_has_the_work_of_a_kernel(tmp_path: Path) -> None:
    chip = Chip()
    words = [tensix_word("SFPMAD")] * 3
    pushes = "".join(f"li t0, {word:#x}\nsw t0, 0(a0)\n" for word in words)
    chip[TILE].write(0, assemble(f"li a0, {PUSH:#x}\n{pushes}end: j end\n", 0))
    chip[TILE].write_word(SOFT_RESET, B_RUNS)
    recording = chip.record(tiles=[TILE])
    chip.clock(200)
    recording.stop()
    recording.save(tmp_path / "out")
    told = report_as_json(make_report(tmp_path / "out"))
    amounts = [
        (resource["name"], resource["amount"]) for kernel in told["kernels"] for resource in kernel["work"]["resources"]
    ]
    assert amounts == [(VECTOR, 96)]
    assert {peak["name"] for peak in told["peaks"]} >= {MATRIX, VECTOR, PACKER, BANK}
