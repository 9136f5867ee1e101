"""Operands and expected results of single-instruction conformance cases, as arrays for `bhemu.numerics`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bhemu.conformance.vector_file import VectorFile
from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.isa.registers import thread

Array = NDArray[Any]

# How the matrix unit treats each format of the labels (math F2, F4): bf16 represents every trimmed 8-bit one.
SOURCES = dict.fromkeys(("bf16", "fp32", "bfp8", "bfp4", "bfp2", "int16", "int32"), "bf16")
SOURCES |= {"tf32": "tf32", "fp16": "fp16", "fp8": "fp16", "int8": "int8"}
_OFFSET = thread("DEST_TARGET_REG_CFG_MATH_Offset")


@cache
def vectors(family: str) -> VectorFile:
    return VectorFile(str(files("bhemu.conformance") / "vectors" / f"{family}.npz"))


def fields(word: int) -> dict[str, int]:
    """Operands of an instruction word by name."""
    row = next(row for row in INSTRUCTIONS.values() if row.opcode == word >> 24)
    return {field.name: (word & field.mask) >> field.lsb for field in row.fields}


def singles(family: str, label: str) -> Iterator[tuple[Any, dict[str, Array], dict[str, Array]]]:
    """(case, initial, expected) of the cases with that label, or with it and a mode, whose program is one word."""
    for case in vectors(family):
        if any(x == label or x.startswith(label + ":") for x in case.labels) and len(case.program) == 1:
            initial = vectors(family).initial(case.index)
            yield case, initial, vectors(family).expected(case.index, initial)


@dataclass
class Operands:
    """What a matrix instruction reads and writes."""

    a: Array  # [rows, 16] cells
    b: Array
    dst: Array  # [rows, 16] bits; invalid rows are zeros
    valid: bool  # the first Dst row is
    expected: Array
    source: tuple[str, str]  # SrcA, SrcB
    dst_format: str
    phase: int
    keep_denormals: bool
    word: dict[str, int]


def dst_rows(state: dict[str, Array], dst_format: str, row: int, count: int, masked: bool) -> Array:
    """Dst bits in the usual order (rules I.2, I.3)."""
    cells, valid = state["dst"].reshape(1024, 16).astype(np.uint32), state["dst_valid"]
    out = []
    for r in range(row, row + count):
        physical = (r & 0x1F8) << 1 | r & 0x207 if dst_format in ("fp32", "int32") else r
        c = cells[physical]
        if dst_format == "fp16":
            bits = c & 0x8000 | (c & 0x1F) << 10 | c >> 5 & 0x3FF
        else:
            bits = c & 0x8000 | (c & 0xFF) << 7 | c >> 8 & 0x7F
            if dst_format != "bf16":
                bits = bits << 16 | cells[physical + 8]
        out.append(bits if valid[physical] or not masked else bits * 0)
    return np.array(out, np.uint32)


def matrix_cases(mnemonic: str, a_rows: int, b_rows: int, dst_count: int) -> Iterator[Operands]:
    """Every single-instruction case of a matrix instruction."""
    for case, initial, expected in singles("fpu", mnemonic):
        (thread_number, word), labels = case.program[0], case.labels
        source = tuple(
            SOURCES[next(x for x in labels if x.startswith(f"src{file}_")).removeprefix(f"src{file}_")] for file in "ab"
        )
        if "int8" in source:
            source = ("int8", "int8")  # the other file may say int16, which integer mode treats alike
        wide = "dst32" in labels
        dst_format = "int32" if "int8" in source else "fp32" if wide else "fp16" if "fp16" in source else "bf16"
        rwc = initial["rwc"].reshape(3, 8)[thread_number]
        src = initial["src"]
        operands = fields(word)
        offset = int(initial["tcfg"].reshape(3, 68)[thread_number, _OFFSET[0]]) & _OFFSET[2]
        row = (operands["dst"] + int(rwc[4]) + offset) & 1023
        first = dst_rows(initial, dst_format, row, dst_count, True)
        physical = (row & 0x1F8) << 1 | row & 0x207 if wide or dst_format == "int32" else row
        yield Operands(
            initial["srca"].reshape(2, 64, 16)[src[3], rwc[0] :][:a_rows],
            initial["srcb"].reshape(2, 64, 16)[src[9], rwc[2] :][:b_rows],
            first,
            bool(initial["dst_valid"][physical]),
            dst_rows(expected, dst_format, row, dst_count, True),
            (source[0], source[1]),
            dst_format,
            int(rwc[6]) & 3,
            "keep_denormals" in labels,
            operands,
        )
