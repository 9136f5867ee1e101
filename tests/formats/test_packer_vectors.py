"""The hardware rounding against conformance vectors of PACR: every datum it wrote must be one that we would write.

Where a datum lands is the packer's business and tested there; here each 16-byte piece of L1 that changed must be a
piece of some Dst row converted by `bhemu.formats`, or a piece of the exponent stream of such rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bhemu.conformance.vector_file import VectorFile
from bhemu.formats import DataFormat, bfp, floats, integers

NAMES = {
    "fp32": DataFormat.FP32,
    "bf16": DataFormat.BF16,
    "fp16": DataFormat.FP16,
    "fp8": DataFormat.FP8_E4M3,
    "bfp8": DataFormat.BFP8,
    "bfp4": DataFormat.BFP4,
    "bfp2": DataFormat.BFP2,
    "int8": DataFormat.INT8,
    "int32": DataFormat.INT32,
}
CONVERSIONS = [
    "fp32->fp32",
    "bf16->bf16",
    "fp16->fp16",
    "fp32->fp16",
    "fp16->fp8",
    "fp32->bfp8",
    "bfp8->bfp8",
    "fp32->bfp4",
    "bfp8->bfp4",
    "fp32->bfp2",
    "int8->int8",
    "int32->int32",
]
CHANGES_VALUES = ("relu", "edge_mask", "l1_acc", "count8")
LEAVES_EXPONENTS_UNPADDED = "stream_left_open"


@cache
def vectors() -> VectorFile:
    return VectorFile(str(files("bhemu.conformance") / "vectors" / "pack.npz"))


def cases(conversion: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    for case in vectors():
        if f"32b:{conversion}" not in case.labels or any(label.startswith(CHANGES_VALUES) for label in case.labels):
            continue
        if "bfp" in conversion.split("->")[1] and LEAVES_EXPONENTS_UNPADDED in case.labels:
            continue
        yield case.index, case.labels


def dst32_values(state: dict[str, NDArray[Any]]) -> NDArray[np.uint32]:
    """The 32-bit view of Dst (`I.2`, `I.3`): 512 rows of 16 values."""
    row = np.arange(512)
    high_row = ((row & 0x1F8) << 1) | (row & 7)
    cells = state["dst"].reshape(1024, 16).astype(np.uint32)
    high, low = cells[high_row], cells[high_row + 8]
    top = (high & 0x8000) | (high & 0xFF) << 7 | high >> 8 & 0x7F
    return np.where(state["dst_valid"][high_row, None] != 0, top << 16 | low, 0).astype(np.uint32)


def converted(bits: NDArray[np.uint32], intermediate: str, data_format: DataFormat) -> tuple[Any, set[int]]:
    """Bytes of each Dst row in L1, and the exponent bytes that may accompany them."""
    if data_format.is_bfp:
        exponents, datums = bfp.encode_hardware(bits, data_format, NAMES[intermediate])
        return bfp.pack_datums(datums, data_format.bits), {0, *exponents.tolist()}
    if data_format.is_integer:
        values = integers.from_sign_magnitude(bits, np.dtype(np.int32))
        raw = integers.encode(values, data_format, saturate=True)
    else:
        raw = floats.encode_hardware(bits, data_format, NAMES[intermediate])
    return np.ascontiguousarray(raw).view(np.uint8).reshape(len(bits), -1), set()


def without_negative_zero(piece: NDArray[np.uint8], data_format: DataFormat) -> NDArray[np.uint8]:
    """Sign-magnitude negative zeros, which the packer passes on, as the zero that the host has for them."""
    if data_format not in (DataFormat.INT8, DataFormat.INT32):
        return piece
    raw = piece.view(data_format.bits_dtype)
    return np.where(raw == 1 << data_format.bits - 1, 0, raw).astype(raw.dtype).view(np.uint8)


@pytest.mark.parametrize("conversion", CONVERSIONS)
def test_packed_datums_are_those_of_the_hardware_rounding(conversion: str) -> None:
    intermediate, _, target = conversion.partition("->")
    seen: Counter[str] = Counter()
    for index, labels in cases(conversion):
        initial = vectors().initial(index)
        bits = dst32_values(initial)
        data_format = DataFormat.UINT8 if "unsigned" in labels else NAMES[target]
        rows, exponents = converted(bits, intermediate, data_format)
        pieces = rows.reshape(-1, min(16, rows.shape[1]))
        size = pieces.shape[1]
        known = {piece.tobytes() for piece in pieces}
        l1 = vectors().expected(index, initial)["l1"]
        written = np.unique(np.flatnonzero(l1 != initial["l1"]) // size)
        for place in written.tolist():
            piece = without_negative_zero(l1[place * size : (place + 1) * size], data_format)
            if piece.tobytes() in known:
                seen["datums"] += 1
            else:
                assert exponents.issuperset(piece.tolist()), (index, labels, place * size, piece.tolist())
                seen["exponents"] += 1
    assert seen["datums"] >= 20
    assert seen["datums"] > 2 * seen["exponents"]
