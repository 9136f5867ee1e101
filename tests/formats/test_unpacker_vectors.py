"""The unpackers' reading of L1 against conformance vectors of UNPACR.

Where a row lands is the unpacker's business and tested there; here each row of SrcA or SrcB that changed must be 16
consecutive datums of L1 in the reading of `bhemu.formats`.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bhemu.conformance.vector_file import VectorFile
from bhemu.formats import DataFormat, bfp, floats

MOVES_DATUMS = {"haloize", "tileize", "x_start", "count_partial", "count_tiny", "UNPACR_NOP", "multi_unpacr", "to_dst"}


@cache
def vectors() -> VectorFile:
    return VectorFile(str(files("bhemu.conformance") / "vectors" / "unpack.npz"))


def cells_of_8_bit_exponents(fp32_bits: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Src cells (`I.2`) of TF32 and BF16 values spelt as FP32."""
    return fp32_bits >> 31 << 18 | (fp32_bits >> 13 & 0x3FF) << 8 | fp32_bits >> 23 & 0xFF


def cells_of_halves(fp16_bits: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Src cells (`I.2`) of FP16 values."""
    return fp16_bits >> 15 << 18 | (fp16_bits & 0x3FF) << 8 | fp16_bits >> 10 & 0x1F


def scalar_rows(l1: NDArray[np.uint8], conversion: str, e4m3: bool) -> NDArray[np.uint32]:
    """Src rows that 16 datums from any 16-byte boundary of L1 make."""
    bits = {"fp8->fp8": 8, "fp16->fp16": 16, "bf16->bf16": 16}.get(conversion, 32)
    padded = np.concatenate([l1, np.zeros(2 * bits, np.uint8)])
    starts = np.arange(0, len(l1), 16)[:, None] + np.arange(2 * bits)
    datums: NDArray[Any] = padded[starts].view(f"<u{bits // 8}")
    if conversion == "fp8->fp8":
        halves = floats.e4m3_to_fp16(datums) if e4m3 else floats.e5m2_to_fp16(datums)
        return cells_of_halves(halves.astype(np.uint32))
    if conversion == "fp16->fp16":
        return cells_of_halves(datums.astype(np.uint32))
    if conversion == "fp32->fp16":
        return cells_of_halves(floats.fp32_to_fp16_truncate(datums))
    if conversion == "fp32->bf16":
        return cells_of_8_bit_exponents(floats.fp32_to_bf16_truncate(datums) << np.uint32(16))
    if conversion == "bf16->bf16":
        return cells_of_8_bit_exponents(datums.astype(np.uint32) << np.uint32(16))
    return cells_of_8_bit_exponents(floats.fp32_to_tf32_truncate(datums))


def bfp_rows(l1: NDArray[np.uint8], data_format: DataFormat) -> set[bytes]:
    """Src rows that the groups of 16 datums in L1 make with any shared exponent."""
    datums = bfp.unpack_datums(l1, data_format.bits).reshape(-1, 16)
    exponents = np.arange(256, dtype=np.uint8)
    rows: set[bytes] = set()
    for group in np.unique(datums, axis=0):
        bf16_bits = bfp.to_bf16_bits(exponents, np.tile(group, (256, 1)), data_format.bits)
        cells = cells_of_8_bit_exponents(bf16_bits.astype(np.uint32) << np.uint32(16))
        rows.update(row.tobytes() for row in cells)
    return rows


@pytest.mark.slow
@pytest.mark.parametrize(
    "conversion",
    ["fp32->tf32", "fp32->bf16", "fp32->fp16", "bf16->bf16", "fp16->fp16", "fp8->fp8", "bfp8->bfp8", "bfp4->bfp4"],
)
def test_unpacked_rows_are_datums_of_l1(conversion: str) -> None:
    found = 0
    for case in vectors():
        if conversion not in case.labels or MOVES_DATUMS & set(case.labels):
            continue
        initial = vectors().initial(case.index)
        expected = vectors().expected(case.index, initial)
        if conversion.startswith("bfp"):
            known = bfp_rows(initial["l1"], DataFormat.parse(conversion.split("->")[0]))
        else:
            known = {row.tobytes() for row in scalar_rows(initial["l1"], conversion, "e4m3" in case.labels)}
        for array in ("srca", "srcb"):
            before, after = initial[array].reshape(128, 16), expected[array].reshape(128, 16)
            for row in np.flatnonzero((before != after).any(axis=1)).tolist():
                assert after[row].tobytes() in known, (case.index, case.labels, array, row, after[row].tolist())
                found += 1
        if found > 150:
            break
    assert found >= 30
